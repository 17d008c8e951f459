//! Canaries that are statements, run by DataFusion alone, and the predicates that it analyses by intervals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, cast, col, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{Optimizer, OptimizerContext};
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::{AnalysisContext, ExprBoundaries, PhysicalExpr, analyze};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::optimize::upstream::interval_analysis::unanalysed;
use crate::optimize::upstream::{answers_of_scans, exact_sums_beside_distinct};

/// The rows of `sql`, values joined by commas, or why there are none.
fn answer(sql: &'static str) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let rows = async move {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        let batches = context.sql(sql).await?.collect().await?;
        let options = arrow::util::display::FormatOptions::default();
        let mut rows = Vec::new();
        for batch in &batches {
            let columns = batch.columns().iter();
            let columns = columns.map(|column| arrow::util::display::ArrayFormatter::try_new(column, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
                rows.push(values.join(","));
            }
        }
        Ok::<_, DataFusionError>(rows)
    };
    // A panic is one of a task.
    let rows = runtime.block_on(async { tokio::spawn(rows).await });
    rows.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
}

/// [Issue 22142](https://github.com/apache/datafusion/issues/22142): `analyze::types::casts`.
#[test]
fn canary_casts_that_may_fail_are_taken_off() {
    let schema = Schema::new(vec![Field::new("i", DataType::Int64, true)]);
    let schema = Arc::new(DFSchema::try_from(schema).unwrap());
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(schema).build());
    let narrow = cast(col("i"), DataType::Int16);
    let simplified = simplifier.simplify(narrow.clone().gt(lit(0_i16))).unwrap();
    assert_eq!(simplified, col("i").gt(lit(0_i64)), "it stays now");
    let in_list = simplifier.simplify(narrow.in_list((1..9_i16).map(lit).collect(), false)).unwrap();
    assert_eq!(in_list, col("i").in_list((1..9_i64).map(lit).collect(), false), "it stays now");
}

/// No public issue is known: `single_distinct`.
#[test]
fn canary_sums_of_sums_have_another_type() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sql =
        "SELECT a, count(DISTINCT b), sum(CAST(n AS DECIMAL(10, 2))) FROM (VALUES (1, 2, 3.5)) t(a, b, n) GROUP BY a";
    let plan = runtime.block_on(SessionContext::new().state().create_logical_plan(sql)).unwrap();
    let LogicalPlan::Projection(projection) = plan else { panic!("{plan}") };
    let input = Arc::unwrap_or_clone(projection.input);
    let type_of_sum = |plan: &LogicalPlan| plan.schema().field(2).data_type().clone();
    let rule = Optimizer::new().rules.into_iter().find(|rule| rule.name().starts_with("single_distinct")).unwrap();
    let theirs = rule.rewrite(input.clone(), &OptimizerContext::new()).unwrap();
    assert!(theirs.transformed);
    assert_ne!(type_of_sum(&theirs.data), type_of_sum(&input), "the type stays now");
    let ours = exact_sums_beside_distinct(rule).rewrite(input.clone(), &OptimizerContext::new()).unwrap();
    assert!(ours.transformed);
    assert_eq!(ours.data.schema().fields(), input.schema().fields());
}

/// `exact_statistics`.
#[test]
fn canary_statistics_answer_for_other_rows() {
    for (sql, right) in [
        ("SELECT count(*) FILTER (WHERE n > 3) FROM (SELECT count(*) n FROM (VALUES (1), (2), (3), (4)) t) q", "1"),
        (
            "SELECT count(DISTINCT a), count(DISTINCT b) FROM (SELECT * FROM (VALUES (1, 2)) t(a, b) LIMIT 1) q \
            WHERE a = 5 AND b = 5",
            "0,0",
        ),
    ] {
        let answer = answer(sql);
        assert_ne!(answer, Ok(vec![right.to_owned()]), "{sql} is right now");
    }
}

/// [Issue 25398](https://github.com/apache/datafusion/issues/25398): `repeated_sort_keys`.
#[test]
fn canary_repeated_keys_of_first_value_panic() {
    let sql = "SELECT DISTINCT ON (a) a, b FROM (VALUES (1, 2), (1, 3)) t(a, b) ORDER BY a, b, a";
    let error = answer(sql).expect_err("it is right now");
    assert!(error.contains("panic"), "{error}");
}

/// The rules that these stand around are found by their names.
#[test]
fn rules_are_there() {
    let names = |rule: &dyn std::fmt::Debug| format!("{rule:?}");
    let logical = Optimizer::new().rules.into_iter();
    let logical = logical.filter(|rule| names(rule) != names(&exact_sums_beside_distinct(rule.clone())));
    assert_eq!(logical.count(), 1);
    let physical = PhysicalOptimizer::new().rules;
    assert_eq!(physical.iter().filter(|rule| names(rule) != names(&answers_of_scans((*rule).clone()))).count(), 1);
}

const COLUMNS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn schema() -> Schema {
    let types = [DataType::Int64, DataType::Int64, DataType::Int32, DataType::Float64, DataType::Date32];
    Schema::new(COLUMNS.iter().zip(types).map(|(name, of)| Field::new(*name, of, true)).collect::<Vec<_>>())
}

/// What DataFusion's analysis of `predicate` ends with, over columns with the bounds `bounds`.
fn analysed(predicate: &Expr, bounds: &[(i64, i64); 5]) -> Result<(), String> {
    let schema = schema();
    let boundaries = bounds.iter().zip(schema.fields()).enumerate().map(|(at, ((low, high), field))| {
        let value = |value: &i64| ScalarValue::from(*value).cast_to(field.data_type()).unwrap();
        ExprBoundaries {
            column: datafusion::physical_expr::expressions::Column::new(field.name(), at),
            interval: Some(Interval::try_new(value(low), value(high)).unwrap()),
            distinct_count: Default::default(),
        }
    });
    let context = AnalysisContext::new(boundaries.collect());
    let physical = physical(predicate);
    if !check_support(&physical, &Arc::new(schema.clone())) {
        return Ok(());
    }
    analyze(&physical, context, &schema).map(|_| ()).map_err(|e| e.to_string())
}

fn physical(predicate: &Expr) -> Arc<dyn PhysicalExpr> {
    let schema = DFSchema::try_from(schema()).unwrap();
    let state = SessionContext::new().state();
    state.create_physical_expr(predicate.clone(), &schema).unwrap()
}

/// [Issue 22028](https://github.com/apache/datafusion/issues/22028): `interval_analysis`. DataFusion alone fails for some
/// predicates; of those that it is given none makes the analysis fail, whatever the bounds.
#[test]
fn canary_predicates_are_analysed_with_errors() {
    let of_types = DFSchema::try_from(schema()).unwrap();
    let (mut failed, mut kept) = (0, 0);
    for seed in 0..20_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let bounds = std::array::from_fn(|at| bounds(&mut random, at));
        let predicate = predicate(&mut random, 3);
        let alone = catch_unwind(AssertUnwindSafe(|| analysed(&predicate, &bounds)));
        failed += usize::from(!matches!(alone, Ok(Ok(()))));
        let safe = unanalysed(predicate.clone(), &of_types);
        kept += usize::from(safe == predicate);
        let result = catch_unwind(AssertUnwindSafe(|| analysed(&safe, &bounds)));
        assert!(matches!(result, Ok(Ok(()))), "seed {seed}: {safe} over {bounds:?}: {result:?}");
    }
    assert!(failed > 10 && kept > 1000, "{failed} predicates fail in DataFusion alone, {kept} stay as they are");
}

fn bounds(random: &mut StdRng, at: usize) -> (i64, i64) {
    let extremes = if at < 2 { (i64::MIN, i64::MAX) } else { (i64::from(i32::MIN), i64::from(i32::MAX)) };
    let value = |random: &mut StdRng| match random.random_range(0..8) {
        0 => extremes.0,
        1 => extremes.1,
        _ => random.random_range(-5..15),
    };
    let (one, other) = (value(random), value(random));
    (one.min(other), one.max(other))
}

fn predicate(random: &mut StdRng, depth: usize) -> Expr {
    if depth == 0 || random.random_bool(0.3) {
        return comparison(random);
    }
    let (left, right) = (predicate(random, depth - 1), predicate(random, depth - 1));
    match random.random_range(0..4) {
        0 | 1 => left.and(right),
        2 => left.or(right),
        _ => compared(random, left, right),
    }
}

fn compared(random: &mut StdRng, left: Expr, right: Expr) -> Expr {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, Lt, LtEq, NotEq};
    let operators = [Eq, Eq, NotEq, Lt, LtEq, Gt, GtEq, IsDistinctFrom];
    datafusion::logical_expr::binary_expr(left, operators[random.random_range(0..operators.len())], right)
}

fn comparison(random: &mut StdRng) -> Expr {
    let at = random.random_range(0..COLUMNS.len());
    let of = schema().field(at).data_type().clone();
    let (left, right) = (operand(random, at, &of), operand(random, at, &of));
    if random.random_bool(0.1) {
        let text = |side| cast(side, DataType::Utf8View);
        return compared(random, text(left), text(right));
    }
    compared(random, left, right)
}

fn operand(random: &mut StdRng, at: usize, of: &DataType) -> Expr {
    let column = |at: usize| col(COLUMNS[at]);
    let literal = |random: &mut StdRng| {
        let value = bounds(random, at).0;
        Expr::Literal(ScalarValue::from(value).cast_to(of).unwrap(), None)
    };
    match random.random_range(0..10) {
        0..3 => literal(random),
        3 if at == 0 => cast(col("c"), DataType::Int64),
        4 if of.is_numeric() => column(at) + literal(random),
        5 if of.is_numeric() => column(at) * literal(random),
        6 if of.is_numeric() => -column(at),
        7 if at < 2 => column(1 - at),
        _ => column(at),
    }
}
