#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::MemTable;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use mainstem_kernels::hash::hash_u64;
use mainstem_postgres::function::Carried;
use mainstem_storage::database::Database;
use mainstem_storage::limits::{MEMORY_SHARES, MEMORY_UNITS};
use mainstem_storage::memory::MemoryKind;
use mainstem_storage::settings::OpenOptions;

use super::{SpillingAggregate, SpillingAggregates};
use crate::exec::memory_pool::QueryPool;
use crate::exec::spilling::QueryBytes;

const ROWS: u64 = 40_000;

/// Aggregations of all kinds of states: numbers, texts, lists, values in an order; with few and with many groups.
const QUERIES: [&str; 7] = [
    "SELECT k, count(*), sum(n), min(t), max(t), avg(n), count(n) FILTER (WHERE n > 500) FROM t GROUP BY k",
    "SELECT t, k, count(*), sum(n), max(t) FROM t GROUP BY t, k",
    "SELECT DISTINCT t FROM t",
    "SELECT k % 100, count(DISTINCT n), count(DISTINCT t), sum(DISTINCT n), avg(n) FROM t GROUP BY 1",
    "SELECT k, max(n + k), count(DISTINCT t) FROM t GROUP BY k",
    "SELECT k, n, k IS NULL, count(*) FROM t GROUP BY GROUPING SETS ((k), (k, n), ())",
    "SELECT n / 500.0 - 1, k, bool_or(n > 3), stddev(n) FROM t GROUP BY 1, 2",
];

/// A physical plan of DataFusion's over `ROWS` rows of a key of `keys` values or NULL, a number and a text.
fn plan(sql: &str, keys: u64, partitions: usize) -> Arc<dyn ExecutionPlan> {
    let fields = [("k", DataType::Int64), ("n", DataType::Int64), ("t", DataType::Utf8View)];
    let schema = Arc::new(Schema::new(fields.map(|(name, of)| Field::new(name, of, true)).to_vec()));
    let numbers: Vec<u64> = (0..ROWS).map(hash_u64).collect();
    let batches = numbers.chunks(1_000).map(|numbers| {
        let key = numbers.iter().map(|n| (n % 13 > 0).then(|| (n / 13 % keys) as i64));
        let columns: [ArrayRef; 3] = [
            Arc::new(key.collect::<Int64Array>()),
            Arc::new(numbers.iter().map(|n| Some((n % 1_000) as i64)).collect::<Int64Array>()),
            Arc::new(numbers.iter().map(|n| Some(format!("a text of some length {n}"))).collect::<StringViewArray>()),
        ];
        RecordBatch::try_new(schema.clone(), columns.to_vec()).unwrap()
    });
    let batches: Vec<_> = batches.collect();
    let parts = batches.chunks(batches.len().div_ceil(partitions)).map(<[_]>::to_vec).collect();
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(1_000);
    let context = SessionContext::new_with_config(config);
    context.register_table("t", Arc::new(MemTable::try_new(schema.clone(), parts).unwrap())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { context.sql(sql).await?.create_physical_plan().await }).unwrap()
}

/// `plan` as the rule makes it where queries may take `query_bytes`.
fn with_spilling(plan: Arc<dyn ExecutionPlan>, query_bytes: u64) -> Arc<dyn ExecutionPlan> {
    let mut options = ConfigOptions::default();
    let bytes = QueryBytes::default();
    bytes.set(query_bytes);
    options.extensions.insert(Carried(bytes));
    SpillingAggregates.optimize(reset_plan_states(plan).unwrap(), &options).unwrap()
}

/// The rows of `plan` as texts, sorted, with `bytes` for queries, of which it leaves nothing taken.
fn rows(plan: &Arc<dyn ExecutionPlan>, bytes: u64) -> Result<Vec<String>> {
    let limit = bytes.div_ceil(MEMORY_SHARES[MemoryKind::Queries as usize]) * MEMORY_UNITS;
    let storage = Database::in_memory(OpenOptions::new().memory_limit(limit).background(false)).unwrap();
    let pool: Arc<dyn MemoryPool> = Arc::new(QueryPool::new(storage.query_memory()));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).build_arc().unwrap();
    let config = SessionConfig::new().with_batch_size(1_000);
    let context = TaskContext::default().with_runtime(environment.clone()).with_session_config(config);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batches = runtime.block_on(collect(plan.clone(), Arc::new(context)));
    drop(runtime);
    assert_eq!((pool.reserved(), environment.disk_manager.used_disk_space()), (0, 0));
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches? {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
        rows.extend((0..batch.num_rows()).map(row));
    }
    rows.sort_unstable();
    Ok(rows)
}

/// What the aggregations of `plan` that spill have counted: files, and rows they gave.
fn counted(plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
    let below = plan.children().into_iter().map(counted);
    let (files, rows) = below.fold((0, 0), |(files, rows), (more_files, more)| (files + more_files, rows + more));
    match plan.downcast_ref::<SpillingAggregate>().and_then(|aggregate| aggregate.metrics()) {
        Some(metrics) => (files + metrics.spill_count().unwrap_or(0), rows + metrics.output_rows().unwrap_or(0)),
        None => (files, rows),
    }
}

#[test]
fn aggregations_without_memory_give_the_same_rows() {
    for partitions in [1, 3] {
        for sql in QUERIES {
            let plan = plan(sql, 30_000, partitions);
            let expected = rows(&plan, 1 << 30).unwrap();
            let spilling = with_spilling(plan, 0);
            assert!(rows(&spilling, 900 << 10).unwrap() == expected, "{partitions}: {sql}");
            let (files, given) = counted(&spilling);
            assert!(files > 15 && given >= expected.len(), "{files} files, {given} rows, {partitions}: {sql}");
        }
    }
}

/// Rows of a group come in the order in which they were read.
#[test]
fn states_of_a_group_stay_in_order() {
    let plan = plan("SELECT k, array_agg(n), string_agg(t, ',') FROM t GROUP BY k", 1_000, 1);
    let expected = rows(&plan, 1 << 30).unwrap();
    let spilling = with_spilling(plan, 0);
    assert!(rows(&spilling, 900 << 10).unwrap() == expected);
    assert!(counted(&spilling).0 > 15);
}

/// Aggregations with memory spill nothing, and a plan may be run again.
#[test]
fn aggregations_with_memory_spill_nothing() {
    for partitions in [1, 3] {
        for sql in QUERIES {
            let plan = plan(sql, 200, partitions);
            let expected = rows(&plan, 1 << 30).unwrap();
            let spilling = with_spilling(plan, 0);
            for _ in 0..2 {
                let spilling = reset_plan_states(spilling.clone()).unwrap();
                assert!(rows(&spilling, 256 << 20).unwrap() == expected, "{partitions}: {sql}");
                assert_eq!(counted(&spilling).0, 0, "{sql}");
            }
        }
    }
}

/// A grouping set without columns has a group though there are no rows.
#[test]
fn grouping_sets_of_no_rows_have_a_group() {
    let sql = "SELECT k, n, count(*), sum(n) FROM t WHERE t = '' GROUP BY GROUPING SETS ((k, n), ())";
    for partitions in [1, 3] {
        let spilling = with_spilling(plan(sql, 10, partitions), 0);
        assert_eq!(counted(&spilling), (0, 0));
        assert_eq!(rows(&spilling, 64 << 20).unwrap(), ["NULL|NULL|0|NULL"]);
    }
}

/// Files whose groups do not fit are divided again, by another hash.
#[test]
fn what_is_much_larger_than_memory_is_divided_more_than_once() {
    let plan = plan("SELECT t, count(*), max(t) FROM t GROUP BY t", 1, 1);
    let expected = rows(&plan, 1 << 30).unwrap();
    let spilling = with_spilling(plan, 0);
    assert!(rows(&spilling, 200 << 10).unwrap() == expected);
    let (files, _) = counted(&spilling);
    assert!((256..4_096).contains(&files), "{files}");
}

/// One group cannot be divided: then the query ends.
#[test]
fn a_group_that_does_not_fit_ends_the_query() {
    let spilling = with_spilling(plan("SELECT k, array_agg(t) FROM t GROUP BY k", 1, 1), 0);
    let error = rows(&spilling, 400 << 10).unwrap_err();
    assert!(error.to_string().contains("out of query memory"), "{error}");
}

#[test]
fn the_last_steps_spill_that_may_have_many_groups() {
    let shown = |sql: &str, partitions: usize, query_bytes: u64| {
        let plan = with_spilling(plan(sql, 100, partitions), query_bytes);
        displayable(&*plan).indent(false).to_string()
    };
    let groups = "SELECT k, count(*) FROM t GROUP BY k";
    for partitions in [1, 3] {
        // Of 40,000 rows there may be as many groups, of two integers and 48 bytes for the table.
        let small = shown(groups, partitions, 32 << 20);
        assert_eq!(small.matches("SpillingAggregateExec").count(), 1, "{small}");
        assert!(!shown(groups, partitions, 64 << 20).contains("Spilling"));
        // Filters are estimated, and left out.
        assert!(shown("SELECT k, count(*) FROM t WHERE n = 7 GROUP BY k", partitions, 32 << 20).contains("Spilling"));
    }
    // Without groups, and with a limit.
    assert!(!shown("SELECT count(*) FROM t", 3, 0).contains("Spilling"));
    assert!(!shown("SELECT DISTINCT k FROM t LIMIT 5", 3, 0).contains("Spilling"));
    // In the order of its keys.
    assert!(
        !shown("SELECT k, count(*) FROM (SELECT k FROM t ORDER BY k LIMIT 1000) GROUP BY k", 1, 0).contains("Spilling")
    );
}
