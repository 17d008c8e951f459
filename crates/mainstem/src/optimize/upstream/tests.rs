//! Canaries: each fails when DataFusion no longer does what a file of this folder keeps it from. The file may go then.

use std::collections::HashMap;
use std::ops::Not as _;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, col, lit};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionContext;

use super::{guarded, null_safe_simplification, pushes_by_name, safe_group_limits, simplified};

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
    let null = || lit(datafusion::common::ScalarValue::Int32(None));
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

/// The rules that this folder stands around are found by their names.
#[test]
fn rules_are_there() {
    let names = |rule: &dyn std::fmt::Debug| format!("{rule:?}");
    for rule in Optimizer::new().rules {
        let (before, is_ours) = (names(&rule), ["push_down_filter", "simplify_expressions"].contains(&rule.name()));
        let after = names(&null_safe_simplification(guarded(rule)));
        assert_eq!(before != after, is_ours, "{before}");
    }
    let physical = PhysicalOptimizer::new().rules;
    assert_eq!(physical.iter().filter(|rule| pushes_by_name(&***rule)).count(), 2);
    let limits = physical.into_iter().filter(|rule| names(rule) != names(&safe_group_limits(rule.clone())));
    assert_eq!(limits.count(), 1);
}
