//! Small plans, whose leaves are given cardinalities.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::functions::math::expr_fn::random;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit, table_scan};

use super::estimate::{Cardinality, Values};
use super::graph::JoinGraph;
use super::tree::{JoinTree, Shape};
use super::{cheaper, ordered};

/// A table with columns `k`, `v`, `w`.
fn scan(name: &str) -> LogicalPlanBuilder {
    let fields = ["k", "v", "w"].map(|name| Field::new(name, DataType::Int64, name != "k"));
    table_scan(Some(name), &Schema::new(fields.to_vec()), None).unwrap()
}

/// `left` joined with tables, each by pairs of equal columns.
fn joined(left: &str, right: &[(&str, &[(&str, &str)])]) -> LogicalPlanBuilder {
    right.iter().fold(scan(left), |plan, (name, keys)| {
        let (a, b) = keys.iter().map(|(a, b)| (Column::from(*a), Column::from(*b))).unzip::<_, _, Vec<_>, Vec<_>>();
        plan.join(scan(name).build().unwrap(), JoinType::Inner, (a, b), None).unwrap()
    })
}

/// Leaves of so many rows, with that many distinct values of each column; `k` is a key. A single row is what a filter
/// has left of many.
fn graph_of(plan: &LogicalPlan, rows: &[f64]) -> (JoinTree, JoinGraph) {
    let tree = JoinTree::of(plan).unwrap().unwrap();
    let leaves = rows.iter().map(|rows| {
        let unfiltered = if *rows == 1.0 { 10_000.0 } else { *rows };
        let key = Values { distinct: Some(*rows), key: Some(unfiltered) };
        let other = Values { distinct: Some(rows.min(100.0)), key: None };
        Cardinality { rows: *rows, unfiltered, columns: vec![key, other, other] }
    });
    let graph = JoinGraph::of(&tree, leaves.collect()).unwrap();
    (tree, graph)
}

/// The shape with the leaves' numbers.
fn text(shape: &Shape) -> String {
    match shape {
        Shape::Leaf(at) => at.to_string(),
        Shape::Join(left, right) => format!("({} {})", text(left), text(right)),
    }
}

/// Names of the tables, as they are scanned from the left to the right.
fn names(plan: &LogicalPlan) -> Vec<String> {
    let here = match plan {
        LogicalPlan::TableScan(scan) => vec![scan.table_name.to_string()],
        _ => Vec::new(),
    };
    here.into_iter().chain(plan.inputs().into_iter().flat_map(names)).collect()
}

#[test]
fn the_cheapest_order_joins_small_things_first() {
    let star: &[(&str, &[(&str, &str)])] =
        &[("a", &[("f.v", "a.k")]), ("b", &[("f.w", "b.k")]), ("c", &[("f.k", "c.k")])];
    let chain: &[(&str, &[(&str, &str)])] =
        &[("b", &[("a.v", "b.k")]), ("c", &[("b.v", "c.k")]), ("d", &[("c.v", "d.k")])];
    // All equal: any two can be joined.
    let clique: &[(&str, &[(&str, &str)])] = &[("b", &[("a.k", "b.k")]), ("c", &[("b.k", "c.k")])];
    let cases = [
        (joined("f", star), vec![1000.0, 100.0, 100.0, 2.0], "(((3 0) 2) 1)"),
        (joined("a", chain), vec![100_000.0, 10_000.0, 1000.0, 1.0], "(((3 2) 1) 0)"),
        (joined("a", clique), vec![50_000.0, 10_000.0, 2.0], "((2 1) 0)"),
        (joined("a", clique), vec![2.0, 10_000.0, 3.0], "((0 2) 1)"),
    ];
    for (plan, rows, expected) in cases {
        let (tree, graph) = graph_of(&plan.build().unwrap(), &rows);
        let best = graph.best().unwrap();
        assert_eq!(text(&best), expected);
        assert!(graph.cost(&best) <= graph.cost(&tree.shape));
    }
}

#[test]
fn keys_that_follow_from_others_are_used_once() {
    let plan = joined("a", &[("b", &[("a.k", "b.k")]), ("c", &[("b.k", "c.k")])]).build().unwrap();
    let (tree, graph) = graph_of(&plan, &[2.0, 10_000.0, 3.0]);
    let leaves = tree.leaves.iter().map(|leaf| leaf.as_ref().clone()).collect();
    let built = graph.built(&graph.best().unwrap(), &tree, leaves, plan.schema()).unwrap().unwrap();
    assert_eq!(built.schema(), plan.schema());
    let shown = built.display_indent().to_string();
    assert_eq!(names(&built), ["a", "c", "b"], "{shown}");
    assert!(shown.contains("Inner Join: a.k = c.k\n"), "{shown}");
    assert_eq!(shown.matches("Inner Join").count(), 2);
    assert_eq!(shown.matches(" = ").count(), 2, "{shown}");
}

/// `a.k = b.k` and `a.v = b.k` make `a.k = a.v`, which is no key: both are kept.
#[test]
fn two_columns_of_one_leaf_that_are_equal_stay_so() {
    let keys: &[(&str, &str)] = &[("a.k", "b.k"), ("a.v", "b.k")];
    let plan = joined("a", &[("b", keys), ("c", &[("b.k", "c.k")])]).build().unwrap();
    let (tree, graph) = graph_of(&plan, &[10_000.0, 1000.0, 1.0]);
    let leaves = tree.leaves.iter().map(|leaf| leaf.as_ref().clone()).collect();
    let built = graph.built(&graph.best().unwrap(), &tree, leaves, plan.schema()).unwrap().unwrap();
    let shown = built.display_indent().to_string();
    assert_eq!(shown.matches(" = ").count(), 3, "{shown}");
}

#[test]
fn nothing_is_made_of_products() {
    let apart = joined("a", &[("b", &[("a.k", "b.k")])]).cross_join(scan("c").build().unwrap()).unwrap();
    let (_, graph) = graph_of(&apart.build().unwrap(), &[10.0, 10.0, 10.0]);
    assert_eq!(graph.best(), None);
}

#[test]
fn many_leaves_are_joined_greedily() {
    let names: Vec<String> = (0..14).map(|at| format!("t{at}")).collect();
    let mut plan = scan("t0");
    for pair in names.windows(2) {
        let keys = (vec![Column::from(format!("{}.v", pair[0]))], vec![Column::from(format!("{}.k", pair[1]))]);
        plan = plan.join(scan(&pair[1]).build().unwrap(), JoinType::Inner, keys, None).unwrap();
    }
    let mut rows = vec![10_000.0; 14];
    rows[13] = 1.0;
    let (tree, graph) = graph_of(&plan.build().unwrap(), &rows);
    let best = graph.best().unwrap();
    assert!(text(&best).contains("(13 12)"), "{}", text(&best));
    assert!(graph.cost(&best) < graph.cost(&tree.shape));
}

#[test]
fn conditions_are_put_where_their_columns_are() {
    let residual = col("a.w").lt(col("c.w"));
    let plan = joined("a", &[("b", &[("a.v", "b.k")]), ("c", &[("b.v", "c.k")]), ("d", &[("c.v", "d.k")])]);
    let plan = plan.filter(residual.and(col("d.w").gt(lit(3_i64)))).unwrap().build().unwrap();
    let (tree, graph) = graph_of(&plan, &[100_000.0, 10_000.0, 1000.0, 1.0]);
    let leaves = tree.leaves.iter().map(|leaf| leaf.as_ref().clone()).collect();
    let built = graph.built(&graph.best().unwrap(), &tree, leaves, plan.schema()).unwrap().unwrap();
    let shown = built.display_indent().to_string();
    assert!(shown.contains("Filter: a.w < c.w"), "{shown}");
    assert!(shown.contains("Filter: d.w > Int64(3)"), "{shown}");
    assert_eq!(built.schema(), plan.schema());
}

/// What another order must not ask of other rows, or knows nothing of.
#[test]
fn some_trees_are_left_as_they_are() {
    let three = || joined("a", &[("b", &[("a.v", "b.k")]), ("c", &[("b.v", "c.k")])]);
    let is_tree = |plan: LogicalPlanBuilder| JoinTree::of(&plan.build().unwrap()).unwrap().is_some();
    let filtered = |expr: Expr| three().filter(expr).unwrap();
    assert!(is_tree(three()));
    assert!(is_tree(filtered(col("a.w").gt(col("c.w")))));
    assert!(!is_tree(filtered(random().gt(lit(0.5)))), "volatile");
    assert!(!is_tree(filtered((lit(1_i64) / col("a.w")).gt(col("c.w")))), "may fail");
    assert!(!is_tree(joined("a", &[("b", &[("a.v", "b.k")])])), "one join");
    let on = (vec![Column::from("b.v")], vec![Column::from("c.k")]);
    let nulls = joined("a", &[("b", &[("a.v", "b.k")])]).join_detailed(
        scan("c").build().unwrap(),
        JoinType::Inner,
        on.clone(),
        None,
        NullEquality::NullEqualsNull,
    );
    assert!(!is_tree(nulls.unwrap()), "NULLs are equal");
    let outer = joined("a", &[("b", &[("a.v", "b.k")])]).join(scan("c").build().unwrap(), JoinType::Left, on, None);
    assert!(!is_tree(outer.unwrap()), "an outer join");
}

#[test]
fn an_outer_join_is_a_leaf() {
    let on = |a: &str, b: &str| (vec![Column::from(a)], vec![Column::from(b)]);
    let outer = scan("a").join(scan("b").build().unwrap(), JoinType::Left, on("a.v", "b.k"), None).unwrap();
    let plan = outer.join(scan("c").build().unwrap(), JoinType::Inner, on("a.w", "c.k"), None).unwrap();
    let plan = plan.join(scan("d").build().unwrap(), JoinType::Inner, on("c.v", "d.k"), None).unwrap();
    let tree = JoinTree::of(&plan.build().unwrap()).unwrap().unwrap();
    assert!(matches!(tree.leaves[0].as_ref(), LogicalPlan::Join(join) if join.join_type == JoinType::Left));
    assert_eq!(text(&tree.shape), "((0 1) 2)");
}

/// Each row finds one group at most; other semi joins would give a row once for each that it finds.
#[test]
fn a_semi_join_with_groups_is_an_inner_join() {
    let groups = |keys: &[&str]| {
        let keys: Vec<Expr> = keys.iter().map(|key| col(*key)).collect();
        let plan = scan("g").aggregate(keys, [sum(col("g.w"))]).unwrap();
        plan.project([col("g.v")]).unwrap().alias("s").unwrap().build().unwrap()
    };
    let plan = |right: LogicalPlan| {
        let on = (vec![Column::from("a.k")], vec![Column::from("s.v")]);
        let left = joined("a", &[("b", &[("a.v", "b.k")])]);
        JoinTree::of(&left.join(right, JoinType::LeftSemi, on, None).unwrap().build().unwrap()).unwrap()
    };
    assert_eq!(plan(groups(&["g.v"])).map(|tree| text(&tree.shape)).as_deref(), Some("((0 1) 2)"));
    assert!(plan(groups(&["g.v", "g.k"])).is_none());
    assert!(plan(scan("s").build().unwrap()).is_none());
}

/// Columns that projections leave out may not come back under the name of another one.
#[test]
fn the_same_table_twice() {
    let inner = joined("a", &[("b", &[("a.v", "b.k")])]).project([col("b.k"), col("b.v")]).unwrap();
    let on = |a: &str, b: &str| (vec![Column::from(a)], vec![Column::from(b)]);
    let plan = inner.join(scan("a").build().unwrap(), JoinType::Inner, on("b.v", "a.k"), None).unwrap();
    assert!(JoinTree::of(&plan.build().unwrap()).unwrap().is_none());
    let alias = |name: &str| scan("t").alias(name).unwrap().build().unwrap();
    let plan = scan("t").join(alias("u"), JoinType::Inner, on("t.v", "u.k"), None).unwrap();
    let plan = plan.join(alias("x"), JoinType::Inner, on("u.v", "x.k"), None).unwrap().build().unwrap();
    let (tree, graph) = graph_of(&plan, &[1000.0, 1000.0, 1.0]);
    let leaves = tree.leaves.iter().map(|leaf| leaf.as_ref().clone()).collect();
    let built = graph.built(&graph.best().unwrap(), &tree, leaves, plan.schema()).unwrap().unwrap();
    assert_eq!(built.schema(), plan.schema());
    let columns = |plan: &LogicalPlan| plan.schema().columns();
    assert_eq!(columns(&built), columns(&plan));
}

/// Of tables that nothing is known of, no order is better than another; the plan stays the same one.
#[test]
fn what_is_not_cheaper_is_left_alone() {
    let plan = joined("a", &[("b", &[("a.v", "b.k")]), ("c", &[("b.v", "c.k")])]).build().unwrap();
    assert_eq!(cheaper(&plan).unwrap(), None);
    let before = Arc::new(plan.clone());
    let after = ordered(plan).unwrap();
    assert!(!after.transformed);
    assert_eq!(after.data, *before);
}
