//! Orders that are declared hold, whatever the plan; and canaries: each fails when DataFusion no longer derives what
//! this module keeps from its rules.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::col;
use datafusion::optimizer::Optimizer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream_partitioned};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{DeclaredPlans, declaring};
use crate::exec::merge_joins::MergeJoins;
use crate::exec::sort::RadixSorts;
use crate::exec::streaming::RankingWindows;
use crate::optimize::{safe_group_limits, with_unique_keys};

/// Queries that DataFusion 55.2 answers wrongly by what it derives, with the rows that are right.
const CANARIES: &[(&str, &[&str])] = &[
    // apache/datafusion 24958.
    ("SELECT x FROM (SELECT x FROM (VALUES (1), (2), (3), (4)) v(x) LIMIT 2 OFFSET 2) d ORDER BY x DESC", &["4", "3"]),
    // apache/datafusion 16965.
    (
        "SELECT x, count(*) FROM (SELECT 'a' AS x UNION ALL SELECT 'a') d GROUP BY ROLLUP (x) ORDER BY 2, 1",
        &["a 2", " 2"],
    ),
    // A constant of the NULL side of an outer join.
    (
        "SELECT t.k, a.m FROM (VALUES (1), (2), (3)) t(k) LEFT JOIN (SELECT max(column1) AS m FROM (VALUES (1), (3)) u) a \
         ON a.m = t.k ORDER BY a.m, t.k",
        &["3 3", "1 ", "2 "],
    ),
    // A running maximum begins with NULL.
    (
        "SELECT a, max(c) OVER (PARTITION BY a ORDER BY b) AS m FROM (VALUES (1, 1, NULL), (1, 2, 5), (1, 3, 7)) t(a, b, c) \
         ORDER BY a, m LIMIT 1",
        &["1 5"],
    ),
    // A sort below OFFSET.
    (
        "SELECT count(*) FROM (VALUES (1, 9), (2, 8), (3, 7)) t(k, c) WHERE k IN (SELECT k FROM (VALUES (1, 9), (2, 8), (3, 7)) \
         u(k, c) ORDER BY c OFFSET 2) AND k = 1",
        &["1"],
    ),
    // A limit of groups that goes through a window.
    (
        "SELECT value % 7 AS k, count(*) OVER () FROM generate_series(1, 70) GROUP BY value % 7 ORDER BY k LIMIT 1",
        &["0 7"],
    ),
    // apache/datafusion 16171: two keys that are one column in each branch.
    (
        "SELECT value AS x, value AS y FROM generate_series(1, 2) UNION ALL SELECT value AS x, value AS y FROM \
         generate_series(3, 4) ORDER BY x, y",
        &["1 1", "2 2", "3 3", "4 4"],
    ),
];

#[test]
fn canary_what_datafusion_derives_is_wrong() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let config = || SessionConfig::new().with_target_partitions(1);
    let mut mended = Vec::new();
    for (sql, right) in CANARIES {
        let theirs = runtime.block_on(rows(&SessionContext::new_with_config(config()), sql));
        if theirs.is_ok_and(|rows| rows == *right) {
            mended.push(sql);
        }
        let ours = runtime.block_on(rows(&SessionContext::new_with_state(state(config())), sql));
        assert_eq!(ours.unwrap_or_else(|error| panic!("{sql}: {error}")), *right, "{sql}");
    }
    assert_eq!(mended, Vec::<&&str>::new(), "DataFusion is right by itself");
}

async fn rows(context: &SessionContext, sql: &str) -> datafusion::common::Result<Vec<String>> {
    let batches = context.sql(sql).await?.collect().await?;
    let value = |values: &ArrayRef, row| array_value_to_string(values, row).unwrap();
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows())
            .map(|row| batch.columns().iter().map(|values| value(values, row)).collect::<Vec<_>>().join(" "))
    });
    Ok(rows.collect())
}

/// Random queries of the test, each with a plan of some ten operators.
const QUERIES: u64 = 400;

#[test]
fn declared_orders_hold() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut orders, mut above_scans) = (0, 0);
    for seed in 0..QUERIES {
        let mut random = StdRng::seed_from_u64(seed);
        let context = context(&mut random);
        let sql = query(&mut random, 3);
        let planned = runtime.block_on(async { context.sql(&sql).await?.create_physical_plan().await });
        let plan = planned.unwrap_or_else(|error| panic!("seed {seed}: {sql}\n{error}"));
        plan.apply(|node| {
            let declared: Vec<_> = node.equivalence_properties().oeq_class().iter().cloned().collect();
            orders += declared.len();
            above_scans += if node.children().is_empty() { 0 } else { declared.len() };
            if declared.is_empty() {
                return Ok(TreeNodeRecursion::Continue);
            }
            let node = reset_plan_states(node.clone())?;
            for rows in runtime.block_on(partitions(&node, context.task_ctx())) {
                for order in &declared {
                    let keys = order.iter().map(|key| SortColumn {
                        values: key.expr.evaluate(&rows).unwrap().into_array(rows.num_rows()).unwrap(),
                        options: Some(key.options),
                    });
                    assert!(is_sorted(&keys.collect::<Vec<_>>()), "seed {seed}: {sql}\n{order:?}\n{rows:?}");
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
    }
    assert!(orders > 500 && above_scans > 200, "{orders} orders were looked at, {above_scans} of them derived");
}

async fn partitions(plan: &Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Vec<RecordBatch> {
    let mut rows = Vec::new();
    let streams = execute_stream_partitioned(plan.clone(), context).unwrap();
    // All at once: exchanges hand rows to each partition.
    let read = streams.into_iter().map(|stream| tokio::spawn(stream.try_collect::<Vec<_>>()));
    for batches in read.collect::<Vec<_>>() {
        rows.push(concat_batches(&plan.schema(), &batches.await.unwrap().unwrap()).unwrap());
    }
    rows
}

fn is_sorted(keys: &[SortColumn]) -> bool {
    let Some(first) = keys.first() else { return true };
    if first.values.len() < 2 {
        return true;
    }
    let indices = lexsort_to_indices(keys, None).unwrap();
    // Rows that are equal may stand in any order: the values of the keys must be where they are.
    let moved: Vec<ArrayRef> = keys.iter().map(|key| take(&key.values, &indices, None).unwrap()).collect();
    moved.iter().zip(keys).all(|(moved, key)| moved == &key.values)
}

/// DataFusion's rules, with ours around and between them.
fn state(config: SessionConfig) -> SessionState {
    let logical = Optimizer::new().rules.into_iter().map(with_unique_keys);
    let ours: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 3] =
        [Arc::new(MergeJoins), Arc::new(RankingWindows), Arc::new(RadixSorts)];
    let physical = PhysicalOptimizer::new().rules.into_iter().chain(ours).map(declaring).map(safe_group_limits);
    let physical = std::iter::once(Arc::new(DeclaredPlans) as _).chain(physical);
    SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_optimizer_rules(logical.collect())
        .with_physical_optimizer_rules(physical.collect())
        .build()
}

/// Two tables of a few values, with NULLs; some of them say that they stand in an order.
fn context(random: &mut StdRng) -> SessionContext {
    let partitions = if random.random_bool(0.3) { 1 } else { 2 };
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(8);
    config.options_mut().sql_parser.enable_subquery_sort_elimination = false;
    let context = SessionContext::new_with_state(state(config));
    for name in ["a", "b"] {
        let fields = ["x", "y", "z"].map(|column| Field::new(column, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let rows = random.random_range(0..40);
        let columns = (0..3).map(|_| {
            let values = (0..rows).map(|_| Some(random.random_range(0..4)).filter(|_| random.random_bool(0.8)));
            Arc::new(values.collect::<Int64Array>()) as ArrayRef
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let keys = columns.iter().map(|values| SortColumn { values: values.clone(), options: Some(ascending()) });
        let indices = lexsort_to_indices(&keys.collect::<Vec<_>>(), None).unwrap();
        let sorted = columns.iter().map(|values| take(values, &indices, None).unwrap());
        let rows = RecordBatch::try_new(schema.clone(), sorted.collect()).unwrap();
        let mut table = MemTable::try_new(schema, vec![vec![rows]]).unwrap();
        if random.random_bool(0.7) {
            let order = ["x", "y", "z"].map(|column| col(column).sort(true, false));
            table = table.with_sort_order(vec![order.to_vec()]);
        }
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

fn ascending() -> arrow::compute::SortOptions {
    arrow::compute::SortOptions { descending: false, nulls_first: false }
}

/// A random query of columns x, y and z.
fn query(random: &mut StdRng, depth: u32) -> String {
    fn of<'a>(random: &mut StdRng, items: &[&'a str]) -> &'a str {
        items[random.random_range(0..items.len())]
    }
    if depth == 0 || random.random_bool(0.1) {
        return format!("SELECT x, y, z FROM {}", of(random, &["a", "b"]));
    }
    let input = query(random, depth - 1);
    let column = of(random, &["x", "y", "z"]);
    match random.random_range(0..9) {
        0 => {
            let items = of(
                random,
                &["x, y, z", "y AS x, x AS y, z", "x, 1 AS y, z", "-x AS x, y, y AS z", "y AS x, y, z + 1 AS z"],
            );
            format!(
                "SELECT {items} FROM ({input}) q WHERE {column} {}",
                of(random, &["IS NOT NULL", "= 2", "> 0", "= y"])
            )
        }
        1 | 2 => {
            let kind = of(random, &["INNER", "LEFT", "RIGHT", "FULL"]);
            let other = query(random, depth - 1);
            format!(
                "SELECT l.x, r.y, {}.z FROM ({input}) l {kind} JOIN ({other}) r ON l.x = r.x",
                of(random, &["l", "r"])
            )
        }
        3 => {
            let groups = of(random, &["x, y", "y, x", "ROLLUP (x, y)", "CUBE (y, x)"]);
            format!("SELECT x, y, {}(z) AS z FROM ({input}) q GROUP BY {groups}", of(random, &["max", "sum", "count"]))
        }
        4 | 5 => {
            let function = of(random, &["max(z)", "count(*)", "row_number()", "lag(z)", "sum(z)"]);
            let window = of(random, &["PARTITION BY x ORDER BY y, z", "ORDER BY x, y, z", "PARTITION BY y, x", ""]);
            format!("SELECT x, y, {function} OVER ({window}) AS z FROM ({input}) q")
        }
        6 => format!("({input}) UNION ALL ({})", query(random, depth - 1)),
        7 => {
            let order = of(random, &["x, y", "x DESC, y", "x, y, z", "-x, y", "z"]);
            format!(
                "SELECT * FROM (SELECT x, y, z FROM ({input}) q ORDER BY {order} LIMIT 9 {}) q",
                of(random, &["", "OFFSET 2"])
            )
        }
        _ => {
            let kind = of(random, &["IN", "NOT IN"]);
            format!("SELECT x, y, z FROM ({input}) q WHERE x {kind} (SELECT x FROM b WHERE x IS NOT NULL)")
        }
    }
}
