#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionConfig;
use mainstem_kernels::hash::hash_u64;
use mainstem_postgres::function::Carried;

use super::{SpillingHashJoin, SpillingJoins};
use crate::exec::spilling::{QueryBytes, estimated_bytes, most_bytes};

const TYPES: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

/// `rows` rows in batches: a key of `keys` values or NULL, a number, a text.
fn table(rows: u64, keys: u64, seed: u64) -> Arc<dyn ExecutionPlan> {
    let fields = [("k", DataType::Int64), ("n", DataType::Int64), ("t", DataType::Utf8View)];
    let schema = Arc::new(Schema::new(fields.map(|(name, of)| Field::new(name, of, true)).to_vec()));
    let numbers: Vec<u64> = (0..rows).map(|row| hash_u64(row ^ seed << 32)).collect();
    let batches = numbers.chunks(700).map(|numbers| {
        let key = numbers.iter().map(|n| (n % 13 > 0).then(|| (n / 13 % keys) as i64));
        let columns: [ArrayRef; 3] = [
            Arc::new(key.collect::<Int64Array>()),
            Arc::new(numbers.iter().map(|n| Some((n % 1_000) as i64)).collect::<Int64Array>()),
            Arc::new(numbers.iter().map(|n| Some(format!("a text of some length {n}"))).collect::<StringViewArray>()),
        ];
        RecordBatch::try_new(schema.clone(), columns.to_vec()).unwrap()
    });
    MemorySourceConfig::try_new_exec(&[batches.collect()], schema.clone(), None).unwrap()
}

fn join(build: u64, probe: u64, keys: u64, of: JoinType, nulls: NullEquality, filtered: bool) -> HashJoinExec {
    let (left, right) = (table(build, keys, 1), table(probe, keys, 2));
    let on = vec![(Arc::new(Column::new("k", 0)) as _, Arc::new(Column::new("k", 0)) as _)];
    let filter = filtered.then(|| {
        let less = BinaryExpr::new(Arc::new(Column::new("a", 0)), Operator::Lt, Arc::new(Column::new("b", 1)));
        let columns = [JoinSide::Left, JoinSide::Right].map(|side| ColumnIndex { index: 1, side });
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
        JoinFilter::new(Arc::new(less), columns.to_vec(), Arc::new(Schema::new(fields.to_vec())))
    });
    let join = HashJoinExecBuilder::new(left, right, on, of).with_filter(filter).with_null_equality(nulls);
    join.with_partition_mode(PartitionMode::CollectLeft).build().unwrap()
}

fn context(bytes: usize) -> Arc<TaskContext> {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)));
    let config = SessionConfig::new().with_batch_size(1_000);
    Arc::new(TaskContext::default().with_runtime(runtime.build_arc().unwrap()).with_session_config(config))
}

/// The rows of `plan` as texts, sorted.
fn rows(plan: Arc<dyn ExecutionPlan>, bytes: usize) -> datafusion::common::Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batches = runtime.block_on(collect(plan, context(bytes)))?;
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")),
        );
    }
    rows.sort_unstable();
    Ok(rows)
}

fn spilled(plan: &dyn ExecutionPlan) -> usize {
    plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0)
}

#[test]
fn joins_without_memory_for_their_build_side_give_the_same_rows() {
    for of in TYPES {
        for (nulls, filtered) in [
            (NullEquality::NullEqualsNothing, false),
            (NullEquality::NullEqualsNull, false),
            (NullEquality::NullEqualsNothing, true),
        ] {
            // NULL that equals NULL makes many pairs.
            let (build, probe) = if nulls == NullEquality::NullEqualsNull { (4_000, 900) } else { (20_000, 6_000) };
            let join = join(build, probe, 30_000, of, nulls, filtered);
            let bytes = build as usize * 40;
            let expected = rows(Arc::new(join.builder().build().unwrap()), usize::MAX).unwrap();
            assert!(rows(Arc::new(join.builder().reset_state().build().unwrap()), bytes).is_err(), "{of}");
            let spilling = Arc::new(SpillingHashJoin::new(&join).unwrap());
            assert!(!expected.is_empty(), "{of} {nulls:?} {filtered}");
            assert!(rows(spilling.clone(), bytes).unwrap() == expected, "{of} {nulls:?} {filtered}");
            assert!(spilled(&*spilling) > 16, "{of}");
        }
    }
}

#[test]
fn joins_with_memory_spill_nothing() {
    let join = join(2_000, 2_000, 500, JoinType::Left, NullEquality::NullEqualsNothing, false);
    let expected = rows(Arc::new(join.builder().build().unwrap()), usize::MAX).unwrap();
    let spilling = Arc::new(SpillingHashJoin::new(&join).unwrap());
    assert_eq!(rows(spilling.clone(), 4 << 20).unwrap(), expected);
    // A plan may be run again.
    assert_eq!(rows(spilling.clone(), 4 << 20).unwrap(), expected);
    assert_eq!(spilled(&*spilling), 0);
}

/// Files that do not fit are divided again.
#[test]
fn what_is_much_larger_than_memory_is_divided_more_than_once() {
    let join = join(60_000, 2_000, 60_000, JoinType::Full, NullEquality::NullEqualsNothing, false);
    let expected = rows(Arc::new(join.builder().build().unwrap()), usize::MAX).unwrap();
    let spilling = Arc::new(SpillingHashJoin::new(&join).unwrap());
    assert!(rows(spilling.clone(), 400 << 10).unwrap() == expected);
    assert!(spilled(&*spilling) > 64, "{}", spilled(&*spilling));
}

#[test]
fn rows_and_times_are_counted() {
    for bytes in [200 << 10, 64 << 20] {
        let join = join(6_000, 6_000, 500, JoinType::Inner, NullEquality::NullEqualsNothing, false);
        let spilling = Arc::new(SpillingHashJoin::new(&join).unwrap());
        let found = rows(spilling.clone(), bytes).unwrap().len();
        let metrics = spilling.metrics().unwrap();
        assert_eq!(metrics.output_rows(), Some(found));
        assert!(metrics.elapsed_compute().unwrap() > 100_000, "{metrics}");
        assert_eq!(spilled(&*spilling) > 0, bytes < 1 << 20);
    }
}

/// Nobody knows how many rows a function makes.
#[test]
fn build_sides_of_unknown_size_may_be_large() {
    let schema = table(1, 1, 1).schema();
    let unknown = || Arc::new(StreamingTableExec::try_new(schema.clone(), vec![], None, None, false, None).unwrap());
    let statistics = StatisticsContext::new();
    assert_eq!(estimated_bytes(&*unknown(), &statistics), u64::MAX);
    assert_eq!(most_bytes(&*unknown(), &schema, &statistics), None);
    let known = table(1_000, 10, 1);
    assert!((60_000..200_000).contains(&estimated_bytes(&*known, &statistics)));
    assert!(most_bytes(&*known, &schema, &statistics).is_some_and(|most| most >= 60_000));
}

/// Rows with one key cannot be divided: then the query ends as ever.
#[test]
fn rows_of_one_key_that_do_not_fit_end_the_query() {
    let join = join(20_000, 10, 1, JoinType::Inner, NullEquality::NullEqualsNothing, false);
    let spilling = Arc::new(SpillingHashJoin::new(&join).unwrap());
    let error = rows(spilling, 200 << 10).unwrap_err();
    assert!(error.to_string().contains("Resources exhausted"), "{error}");
}

#[test]
fn joins_spill_whose_build_side_may_be_large() {
    let shown = |plan: Arc<dyn ExecutionPlan>, query_bytes: u64| {
        let mut options = ConfigOptions::default();
        let bytes = QueryBytes::default();
        bytes.set(query_bytes);
        options.extensions.insert(Carried(bytes));
        let plan = SpillingJoins.optimize(plan, &options).unwrap();
        displayable(&*plan).one_line().to_string()
    };
    let plain = |of| join(20_000, 10, 100, of, NullEquality::NullEqualsNothing, false);
    // Two integers, a text, and 48 for the table: some 100 to 150 bytes a row.
    for (query_bytes, spills) in [(24 << 20, true), (64 << 20, false)] {
        let shown = shown(Arc::new(plain(JoinType::Inner)), query_bytes);
        assert_eq!(shown.starts_with("SpillingHashJoinExec: mode=CollectLeft"), spills, "{shown}");
    }
    let limited = plain(JoinType::Inner).builder().with_fetch(Some(5)).build_exec().unwrap();
    assert!(!shown(limited, 1).contains("Spilling"));
    let one_column = HashJoinExecBuilder::from(&plain(JoinType::LeftAnti)).with_null_aware(true).build_exec().unwrap();
    assert!(!shown(one_column, 1).contains("Spilling"));
}
