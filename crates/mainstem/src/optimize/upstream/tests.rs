//! Canaries: each fails when DataFusion no longer does what a file of this folder keeps it from. The file may go then.

mod statements;

use std::collections::HashMap;
use std::ops::Not as _;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, NullEquality, ScalarValue};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, JoinConstraint, JoinType, LogicalPlan, Operator, col, lit};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{
    OrderedOutput, computed_keys_as_columns, guarded, null_safe_joins, null_safe_simplification, pushes_by_name,
    safe_group_limits, simplified,
};

fn simplifier() -> ExprSimplifier {
    let field = |name: &str| (None, Arc::new(Field::new(name, DataType::Int32, true)));
    let schema = DFSchema::new_with_metadata(vec![field("x"), field("a"), field("b")], HashMap::new()).unwrap();
    ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::new(schema)).build())
}

fn x_in(members: &[i32], negated: bool) -> Expr {
    col("x").in_list(members.iter().map(|member| lit(*member)).collect(), negated)
}

fn xor(left: Expr, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::BitwiseXor, Box::new(right)))
}

/// What the simplifier gets wrong, with what it makes of it.
fn forgets_null() -> Vec<(Expr, Expr)> {
    let null = || lit(ScalarValue::Int32(None));
    vec![
        (x_in(&[1], false).and(x_in(&[2], false)), lit(false)),
        (x_in(&[1], true).or(x_in(&[2], true)), lit(true)),
        (x_in(&[0, 2], false).and(col("x").in_list(vec![lit(2), null()], true)), col("x").eq(lit(0))),
        (col("x").in_list(vec![col("a")], false).and(col("x").in_list(vec![col("b")], false)), lit(false)),
        ((col("x").eq(lit(1)).or(col("x").eq(lit(2)))).and(col("x").eq(lit(3)).or(col("x").eq(lit(4)))), lit(false)),
        (x_in(&[0, 4], true).and(x_in(&[4], false)).not(), lit(true)),
        (
            (col("x").eq(lit(1)).or(col("x").eq(lit(2)))).not().or(col("x").eq(lit(3)).or(col("x").eq(lit(4))).not()),
            lit(true),
        ),
        (xor(col("x"), col("x")), lit(0)),
    ]
}

/// [Issue 24246](https://github.com/apache/datafusion/issues/24246): `null_simplification`.
#[test]
fn canary_simplification_forgets_null() {
    for (expr, wrong) in forgets_null() {
        assert_eq!(simplifier().simplify(expr.clone()).unwrap(), wrong, "{expr} is simplified rightly now");
    }
}

#[test]
fn null_is_kept_in_lists_over_one_column() {
    for (expr, wrong) in forgets_null() {
        let kept = simplified(&simplifier(), expr.clone()).unwrap();
        assert_ne!(kept, wrong, "{expr}");
        // All that is written is there still, and no alias is left.
        let columns = |expr: &Expr| expr.column_refs().into_iter().cloned().collect::<std::collections::HashSet<_>>();
        assert_eq!(columns(&kept), columns(&expr), "{expr} became {kept}");
        assert!(!format!("{kept:?}").contains("Alias"), "{expr} became {kept:?}");
        let (mut values, mut of_wrong) = (Vec::new(), Vec::new());
        for row in rows() {
            values.push((value(&kept, &row), value(&expr, &row)));
            of_wrong.push((value(&wrong, &row), value(&expr, &row)));
        }
        assert!(values.iter().all(|(kept, written)| kept == written), "{expr} became {kept}: {values:?}");
        assert!(of_wrong.iter().any(|(wrong, written)| wrong != written), "{wrong} is what {expr} says");
    }
}

/// All rows of `x`, `a` and `b` over NULL, 0, 1, 2, 3 and 4.
fn rows() -> Vec<[Option<i32>; 3]> {
    let values = [None, Some(0), Some(1), Some(2), Some(3), Some(4)];
    let pairs = values.into_iter().flat_map(|x| values.map(|a| (x, a)));
    pairs.flat_map(|(x, a)| values.map(|b| [x, a, b])).collect()
}

/// The value of `expr` by SQL's rules, of truth values 1 and 0: not DataFusion's, which is what is tested.
fn value(expr: &Expr, row: &[Option<i32>; 3]) -> Option<i32> {
    let not = |value: Option<i32>| value.map(|value| 1 - value);
    let equal = |left: Option<i32>, right: Option<i32>| Some(i32::from(left? == right?));
    let or = |left: Option<i32>, right: Option<i32>| match (left, right) {
        (Some(1), _) | (_, Some(1)) => Some(1),
        (Some(left), Some(right)) => Some(left | right),
        _ => None,
    };
    match expr {
        Expr::Column(column) => row[["x", "a", "b"].iter().position(|name| *name == column.name).unwrap()],
        Expr::Literal(ScalarValue::Boolean(value), _) => value.map(i32::from),
        Expr::Literal(ScalarValue::Int32(value), _) => *value,
        Expr::Literal(ScalarValue::Null, _) => None,
        Expr::Not(inner) => not(value(inner, row)),
        Expr::IsNull(inner) => Some(i32::from(value(inner, row).is_none())),
        Expr::IsNotNull(inner) => Some(i32::from(value(inner, row).is_some())),
        Expr::InList(list) => {
            let member = value(&list.expr, row);
            let is_in = list.list.iter().map(|other| equal(member, value(other, row))).fold(Some(0), or);
            if list.negated { not(is_in) } else { is_in }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (value(left, row), value(right, row));
            match op {
                Operator::Eq => equal(left, right),
                Operator::NotEq => not(equal(left, right)),
                Operator::Or => or(left, right),
                Operator::And => not(or(not(left), not(right))),
                Operator::BitwiseXor => Some(left? ^ right?),
                other => panic!("{other} is not evaluated here"),
            }
        }
        other => panic!("{other} is not evaluated here"),
    }
}

#[test]
fn lists_that_may_be_one_become_one() {
    let both = x_in(&[1, 2, 3, 4], false).or(x_in(&[5, 6], false));
    assert_eq!(simplified(&simplifier(), both).unwrap(), x_in(&[1, 2, 3, 4, 5, 6], false));
    let same = || x_in(&[1, 2, 3, 4], false);
    let factored =
        simplified(&simplifier(), (same().and(col("a").eq(lit(1)))).or(same().and(x_in(&[9], false)))).unwrap();
    assert_eq!(factored, same().and(col("a").eq(lit(1)).or(col("x").eq(lit(9)))));
}

/// `computed_keys`.
#[test]
fn canary_computed_keys_are_not_seen_to_be_sorted() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    for query in [
        "SELECT rank() OVER (ORDER BY upper(s) > 'X') FROM (VALUES ('a'), ('b')) AS t(s)",
        "SELECT array_agg(s ORDER BY upper(s) > 'X') FROM (VALUES ('a'), ('b')) AS t(s)",
    ] {
        let planned = runtime.block_on(async { context.sql(query).await?.create_physical_plan().await });
        let error = planned.expect_err("such a plan passes the check now").to_string();
        assert!(error.contains("does not satisfy order requirements"), "{query}: {error}");
    }
}

/// `computed_keys`, of joins.
#[test]
fn canary_join_keys_of_one_name_make_columns_of_one_table() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    let read = |sql: &str| Arc::new(runtime.block_on(context.sql(sql)).unwrap().into_unoptimized_plan());
    let left = read("SELECT * FROM (VALUES (1)) AS a(k) CROSS JOIN (VALUES (1)) AS b(k)");
    let right = read("SELECT * FROM (VALUES (1)) AS c(k)");
    let (on, constraint) = (vec![(lit(false), lit(false))], JoinConstraint::On);
    let equality = NullEquality::NullEqualsNothing;
    let join = Join::try_new(left, right, on, None, JoinType::Left, constraint, equality, false).unwrap();
    let plan = LogicalPlan::Join(join);
    let planned = |plan: &LogicalPlan| {
        let state = context.state();
        runtime.block_on(state.query_planner().create_physical_plan(plan, &state))
    };
    let error = planned(&plan).expect_err("such a join is planned now").to_string();
    assert!(error.contains("duplicate"), "{error}");
    let mended = computed_keys_as_columns(plan.clone()).unwrap();
    assert_eq!(mended.schema().columns(), plan.schema().columns());
    planned(&mended).unwrap();
}

/// `analyze::names::functional_dependencies`.
#[test]
fn canary_a_cast_of_a_group_is_taken_for_the_group() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    let sql = "SELECT CAST(k AS INT), count(*) FROM \
        (SELECT k, max(v) AS m FROM (VALUES (1.2, 1), (1.4, 2)) AS t(k, v) GROUP BY k) d GROUP BY CAST(k AS INT), m";
    let batches = runtime.block_on(async { context.sql(sql).await?.collect().await }).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 1, "two rows, as it should be: casts need no labels there");
}

/// `enable_topk_repartition`, turned off in `exec::pipeline`.
#[test]
fn canary_first_rows_are_kept_of_each_input_of_a_repartition() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sql = "SELECT sum(x) OVER (PARTITION BY p ORDER BY x ROWS UNBOUNDED PRECEDING) FROM \
        (SELECT value AS x, value % 7 AS p FROM generate_series(1, 100)) t LIMIT 5";
    let planned = |is_on: bool| {
        let mut config = SessionConfig::new().with_target_partitions(2);
        config.options_mut().optimizer.enable_topk_repartition = is_on;
        let context = SessionContext::new_with_config(config);
        let plan = runtime.block_on(async { context.sql(sql).await?.create_physical_plan().await }).unwrap();
        displayable(&*plan).indent(false).to_string()
    };
    let sorts = |plan: &str| plan.matches("TopK(fetch=5)").count();
    let (on, off) = (planned(true), planned(false));
    assert!(!on.contains("SortPreservingMergeExec"), "rows are merged in order now\n{on}");
    assert_eq!((sorts(&on), sorts(&off)), (2, 1), "{on}\n{off}");
}

/// `eliminate_cross_join`.
#[test]
fn canary_null_equality_of_one_join_is_that_of_all() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    let of = |name: &str| format!("(VALUES (1), (NULL)) AS {name}(k)");
    let sql = format!(
        "SELECT a.k FROM {} JOIN {} ON a.k = b.k JOIN {} ON b.k IS NOT DISTINCT FROM c.k",
        of("a"),
        of("b"),
        of("c")
    );
    let batches = runtime.block_on(async { context.sql(&sql).await?.collect().await }).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 2, "one row, as it should be: the file may go");
}

/// `ordered_output`.
#[test]
fn canary_rows_of_a_sort_are_spread_over_partitions() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    let sql = "SELECT value FROM generate_series(1, 100000) AS g(value) ORDER BY -value";
    let planned = async {
        let above = vec![(col("value") + lit(1)).alias("above")];
        context.sql(sql).await?.select(above)?.create_physical_plan().await
    };
    let plan = runtime.block_on(planned).unwrap();
    let spread = |plan: &Arc<dyn ExecutionPlan>| {
        let shown = displayable(&**plan).indent(false).to_string();
        (shown.matches("RoundRobinBatch").count(), plan.output_partitioning().partition_count())
    };
    let (times, partitions) = spread(&plan);
    assert!(times > 0 && partitions == 2, "rows keep their order now\n{}", displayable(&*plan).indent(false));
    let mended = OrderedOutput.optimize(plan, &ConfigOptions::new()).unwrap();
    assert_eq!(spread(&mended), (times - 1, 1), "{}", displayable(&*mended).indent(false));
}

/// The rules that this folder stands around are found by their names.
#[test]
fn rules_are_there() {
    let names = |rule: &dyn std::fmt::Debug| format!("{rule:?}");
    for rule in Optimizer::new().rules {
        let (before, is_ours) =
            (names(&rule), ["push_down_filter", "simplify_expressions", "eliminate_cross_join"].contains(&rule.name()));
        let after = names(&null_safe_simplification(null_safe_joins(guarded(rule))));
        assert_eq!(before != after, is_ours, "{before}");
    }
    let physical = PhysicalOptimizer::new().rules;
    assert_eq!(physical.iter().filter(|rule| pushes_by_name(&***rule)).count(), 2);
    let limits = physical.into_iter().filter(|rule| names(rule) != names(&safe_group_limits(rule.clone())));
    assert_eq!(limits.count(), 1);
}

/// The first column of what DataFusion by itself answers to `sql`.
fn first_column(sql: &str) -> Result<Vec<ScalarValue>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let batches = runtime.block_on(async { context.sql(sql).await?.collect().await }).map_err(|e| e.to_string())?;
    let values = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|row| ScalarValue::try_from_array(batch.column(0), row).unwrap()));
    Ok(values.collect())
}

fn doubles(values: &[f64]) -> Result<Vec<ScalarValue>, String> {
    Ok(values.iter().map(|value| ScalarValue::from(*value)).collect())
}

/// `mainstem_postgres::aggregate::of_floats`.
#[test]
fn canary_extremes_of_groups_know_neither_infinity_nor_nan() {
    let greatest = |values: &str| {
        let rows = values.split(", ").map(|value| format!("(1, CAST('{value}' AS DOUBLE))")).collect::<Vec<_>>();
        first_column(&format!("SELECT max(v) FROM (VALUES {}) AS t(k, v) GROUP BY k", rows.join(", ")))
    };
    assert_eq!(greatest("-Infinity"), doubles(&[f64::MIN]), "the greatest is right now");
    assert_eq!(greatest("NaN, 1"), doubles(&[1.0]), "NaN is the greatest now");
}

/// The one form of floats, `mainstem_postgres::types`.
#[test]
fn canary_minus_zero_is_another_value() {
    let zeros = "(VALUES (CAST('-0' AS DOUBLE)), (CAST('0' AS DOUBLE))) AS t(v)";
    assert_eq!(
        first_column(&format!("SELECT count(*) FROM {zeros} WHERE round(v) IN (0, 1, 2, 3)")),
        Ok(vec![ScalarValue::from(1_i64)]),
        "lists compare by value now"
    );
}

/// `decorrelate_lateral_join`.
#[test]
fn canary_schemas_above_lateral_joins_are_those_of_before() {
    let sql = "SELECT row_number() OVER (ORDER BY CAST(s.a + 1 AS SMALLINT), s.a, l.x), s.a, \
        (SELECT count(*) FROM (VALUES (1)) u) FROM (VALUES (1), (2)) s(a) LEFT JOIN LATERAL \
        (SELECT t.a AS x, t.b AS y FROM (VALUES (1, 5)) t(a, b) WHERE t.b = s.a) l ON true WHERE s.a = 1";
    let error = first_column(sql).expect_err("LATERAL joins are right now");
    assert!(error.contains("wrong number of fields"), "{error}");
}

/// `limits::group_limits`, of floats.
#[test]
fn canary_limits_of_groups_take_nan_for_any_number() {
    let sql = "SELECT min(v) AS m, k FROM (VALUES (1, CAST('1' AS DOUBLE)), (2, CAST('5' AS DOUBLE)), \
        (3, CAST('NaN' AS DOUBLE)), (4, CAST('9' AS DOUBLE))) AS t(k, v) GROUP BY k ORDER BY m LIMIT 2";
    let found = first_column(sql).unwrap();
    assert_ne!(Ok(found.clone()), doubles(&[1.0, 5.0]), "the two least are found now");
}

/// `date_bin`, `generate_series` and `range` of `mainstem_postgres`, which count in microseconds.
#[test]
fn canary_datetimes_are_counted_in_nanoseconds() {
    let (first, other) = ("to_timestamp_micros('0001-01-01T05:00:00')", "to_timestamp_micros('2001-01-01T00:00:00')");
    for call in [
        format!("date_bin(INTERVAL '1 day', {first}, {other})"),
        format!("generate_series({first}, {first}, INTERVAL '1 day')"),
    ] {
        let answer = first_column(&format!("SELECT {call}"));
        assert!(answer.is_err(), "{call} is {answer:?} now");
    }
}
