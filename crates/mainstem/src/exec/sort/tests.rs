#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::compute::{SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::expressions::{Column, NegativeExpr};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use mainstem_kernels::hash::hash_u64;

use super::key::{KeyColumn, is_sortable};
use super::order::ordered;
use super::{RadixSort, RadixSorts};

/// Numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = hash_u64(self.0);
        self.0 % bound.max(1)
    }

    /// A number of a few, of many, or of those at the ends; or none.
    fn integer(&mut self) -> Option<i64> {
        match self.below(12) {
            0 => None,
            1 => Some(i64::MIN),
            2 => Some(i64::MAX),
            3 => Some(self.below(u64::MAX) as i64),
            4..=7 => Some(self.below(1_000) as i64 - 500),
            _ => Some(self.below(4) as i64),
        }
    }

    /// A text of a few bytes or of many, often behind a prefix that others have too.
    fn text(&mut self) -> Option<String> {
        let number = self.integer()?;
        Some(match self.below(6) {
            0 => String::new(),
            1 => "\0".repeat(number.unsigned_abs() as usize % 20),
            2 => format!("Customer#{:09}", number.unsigned_abs() % 1_000),
            3 => format!("a prefix that is longer than two words {number}"),
            4 => "ä".repeat(number.unsigned_abs() as usize % 9),
            _ => ["A", "N", "R", "AIR", "REG AIR"][number.unsigned_abs() as usize % 5].to_owned(),
        })
    }
}

const KINDS: usize = 16;

/// A column of `rows` rows; of `prefixed` texts all have a prefix in common.
fn column(kind: usize, rows: usize, numbers: &mut Numbers) -> ArrayRef {
    let mut integers = || (0..rows).map(|_| numbers.integer()).collect::<Vec<_>>();
    match kind {
        0 => Arc::new(integers().into_iter().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
        1 => Arc::new(integers().into_iter().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        2 => Arc::new(integers().into_iter().collect::<Int64Array>()),
        3 => Arc::new(integers().into_iter().map(|n| n.map(|n| n as u64)).collect::<UInt64Array>()),
        4 => Arc::new(integers().into_iter().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
        5 => Arc::new(integers().into_iter().collect::<TimestampMicrosecondArray>()),
        6 => Arc::new(integers().into_iter().map(|n| n.map(i128::from)).collect::<Decimal128Array>()),
        7 => {
            let wide = |n: i64| i128::from(n) << 64 | i128::from(n & 0xff);
            Arc::new(integers().into_iter().map(|n| n.map(wide)).collect::<Decimal128Array>())
        }
        8 => Arc::new(integers().into_iter().map(|n| n.map(|n| f64::from_bits(n as u64))).collect::<Float64Array>()),
        9 => Arc::new(integers().into_iter().map(|n| n.map(|n| n as f32 / -3.0)).collect::<Float32Array>()),
        10 => Arc::new(integers().into_iter().map(|n| n.map(|n| n & 1 == 1)).collect::<BooleanArray>()),
        11 => {
            let bytes = integers().into_iter().map(|n| n.map(|n| (n as u128).wrapping_mul(3 << 70).to_be_bytes()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap())
        }
        12 => Arc::new((0..rows).map(|_| numbers.text()).collect::<StringViewArray>()),
        13 => {
            Arc::new((0..rows).map(|_| numbers.text().map(|t| format!("the same: {t}"))).collect::<StringViewArray>())
        }
        14 => Arc::new((0..rows).map(|_| numbers.text()).collect::<StringArray>()),
        _ => Arc::new((0..rows).map(|_| numbers.text().map(String::into_bytes)).collect::<BinaryViewArray>()),
    }
}

fn options(numbers: &mut Numbers) -> SortOptions {
    SortOptions { descending: numbers.below(2) == 1, nulls_first: numbers.below(2) == 1 }
}

/// The keys of rows in the order `order`, which is right if they equal those of Arrow's sort.
fn keys(columns: &[KeyColumn], order: &[u32]) -> Vec<String> {
    let schema = Schema::new(
        (columns.iter().enumerate())
            .map(|(at, c)| Field::new(format!("c{at}"), c.values.data_type().clone(), true))
            .collect::<Vec<_>>(),
    );
    let batch = RecordBatch::try_new(Arc::new(schema), columns.iter().map(|c| c.values.clone()).collect()).unwrap();
    let taken = take_record_batch(&batch, &UInt32Array::from(order.to_vec())).unwrap();
    (0..taken.num_rows()).map(|row| format!("{:?}", taken.slice(row, 1))).collect()
}

#[test]
fn rows_are_in_the_order_of_arrow() {
    let mut numbers = Numbers(1);
    for round in 0..400 {
        let rows = [0, 1, 2, 31, 33, 700, 2_000][numbers.below(7) as usize];
        // Each kind leads some keys, and stands behind others.
        let kinds = 1 + numbers.below(4) as usize;
        let columns: Vec<KeyColumn> = (0..kinds)
            .map(|at| {
                let kind = if at == 0 { round % KINDS } else { numbers.below(KINDS as u64) as usize };
                KeyColumn { values: column(kind, rows, &mut numbers), options: options(&mut numbers) }
            })
            .collect();
        assert!(columns.iter().all(|column| is_sortable(column.values.data_type())));
        let sorted: Vec<SortColumn> =
            (columns.iter()).map(|c| SortColumn { values: c.values.clone(), options: Some(c.options) }).collect();
        let expected = lexsort_to_indices(&sorted, None).unwrap();
        let order = ordered(&columns, rows, usize::MAX).unwrap();
        let mut all = order.clone();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..rows as u32), "each row once");
        assert_eq!(keys(&columns, &order), keys(&columns, expected.values()), "round {round}: {columns:?}");
        let limit = numbers.below(rows as u64 + 2) as usize;
        let first = ordered(&columns, rows, limit).unwrap();
        assert_eq!(keys(&columns, &first), keys(&columns, expected.values().get(..limit.min(rows)).unwrap()));
    }
}

/// `rows` rows in batches, with a text, a computed key and numbers.
fn input(rows: usize, numbers: &mut Numbers) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let mut left = rows;
    while left > 0 {
        let rows = left.min(1 + numbers.below(3_000) as usize);
        left -= rows;
        let narrow = (0..rows).map(|_| numbers.integer().map(|n| n % 100)).collect::<Int64Array>();
        let columns: [(&str, ArrayRef); 3] =
            [("n", Arc::new(narrow)), ("s", column(12, rows, numbers)), ("d", column(6, rows, numbers))];
        batches
            .push(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap());
    }
    batches
}

fn sort_of(batches: &[RecordBatch], fetch: Option<usize>, numbers: &mut Numbers) -> SortExec {
    let schema = batches.first().unwrap().schema();
    let scan = MemorySourceConfig::try_new_exec(&[batches.to_vec()], schema, None).unwrap();
    let negative = Arc::new(NegativeExpr::new(Arc::new(Column::new("n", 0))));
    let parts: [Arc<dyn PhysicalExpr>; 3] = [negative, Arc::new(Column::new("s", 1)), Arc::new(Column::new("d", 2))];
    let skipped = numbers.below(3) as usize;
    let parts = parts.into_iter().skip(skipped).map(|part| PhysicalSortExpr::new(part, options(numbers)));
    SortExec::new(LexOrdering::new(parts).unwrap(), scan).with_fetch(fetch)
}

/// The rows of `plan`, where queries may take `bytes`.
fn run(plan: Arc<dyn ExecutionPlan>, bytes: usize) -> RecordBatch {
    let pool = Arc::new(GreedyMemoryPool::new(bytes));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let mut config = SessionConfig::new();
    config.options_mut().execution.sort_spill_reservation_bytes = bytes.min(1 << 20);
    let context = Arc::new(TaskContext::default().with_session_config(config).with_runtime(environment));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let schema = plan.schema();
    concat_batches(&schema, &runtime.block_on(collect(plan, context)).unwrap()).unwrap()
}

fn spilled(plan: &dyn ExecutionPlan) -> usize {
    plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0)
}

#[test]
fn limits_keep_the_first_rows_and_all_rows_come_without_one() {
    let mut numbers = Numbers(2);
    for fetch in [None, Some(1), Some(10), Some(1_000), Some(17_000), Some(40_000), Some(200_000)] {
        let batches = input(60_000, &mut numbers);
        let sort = sort_of(&batches, fetch, &mut numbers);
        let expected = run(Arc::new(sort.clone()), usize::MAX);
        let radix = Arc::new(RadixSort::new(&sort, None));
        let found = run(radix.clone(), usize::MAX);
        assert_eq!(spilled(&*radix), 0);
        let shown =
            |batch: &RecordBatch| keys(&key_of(&sort, batch), &(0..batch.num_rows() as u32).collect::<Vec<_>>());
        assert_eq!(found.num_rows(), fetch.unwrap_or(60_000).min(60_000));
        assert!(shown(&found) == shown(&expected), "{sort:?}");
        if fetch.is_none() {
            // Whole rows, not just their keys.
            let all = |batch: &RecordBatch| {
                let mut rows: Vec<String> =
                    (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1))).collect();
                rows.sort_unstable();
                rows
            };
            assert!(all(&found) == all(&expected), "each row once");
        }
    }
}

fn key_of(sort: &SortExec, batch: &RecordBatch) -> Vec<KeyColumn> {
    let part = |part: &PhysicalSortExpr| KeyColumn {
        values: part.expr.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap(),
        options: part.options,
    };
    sort.expr().iter().map(part).collect()
}

/// Words of eight bytes see no zeros at the end of a text.
#[test]
fn texts_that_differ_in_zeros_alone_are_told_apart() {
    let texts = (0..100).map(|row| Some(["a".to_owned(), format!("a{}", "\0".repeat(row % 3 * 9))][row % 2].clone()));
    let values: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
    let options = SortOptions::default();
    let expected = lexsort_to_indices(&[SortColumn { values: values.clone(), options: Some(options) }], None).unwrap();
    let columns = [KeyColumn { values, options }];
    let order = ordered(&columns, 100, usize::MAX).unwrap();
    assert_eq!(keys(&columns, &order), keys(&columns, expected.values()));
}

/// A limit of few rows needs little memory, whatever its rows keep in memory before they are dropped.
#[test]
fn a_small_limit_does_not_spill() {
    let mut numbers = Numbers(4);
    let batches = input(100_000, &mut numbers);
    let sort = sort_of(&batches, Some(100), &mut numbers);
    let expected = run(Arc::new(sort.clone()), usize::MAX);
    let radix = Arc::new(RadixSort::new(&sort, None));
    let found = run(radix.clone(), 1 << 20);
    assert_eq!(spilled(&*radix), 0);
    let shown = |batch: &RecordBatch| keys(&key_of(&sort, batch), &(0..batch.num_rows() as u32).collect::<Vec<_>>());
    assert!(shown(&found) == shown(&expected), "{sort:?}");
}

#[test]
fn rows_without_memory_are_spilled() {
    let mut numbers = Numbers(3);
    // Without a limit, with one that keeps all that fits, and with one that drops rows before that.
    for fetch in [None, Some(60_000), Some(30_000)] {
        let batches = input(100_000, &mut numbers);
        let sort = sort_of(&batches, fetch, &mut numbers);
        let expected = run(Arc::new(sort.clone()), usize::MAX);
        let radix = Arc::new(RadixSort::new(&sort, None));
        let found = run(radix.clone(), 4 << 20);
        assert!(spilled(&*radix) > 0 || fetch == Some(30_000));
        let shown =
            |batch: &RecordBatch| keys(&key_of(&sort, batch), &(0..batch.num_rows() as u32).collect::<Vec<_>>());
        assert!(shown(&found) == shown(&expected), "{sort:?}");
    }
}

/// Sorts of DataFusion 55.2 are replaced; where that is not possible large limits are not heaps.
#[test]
fn canary_large_limits_are_heaps() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    let planned = |sql: &str| {
        let plan = runtime.block_on(async { context.sql(sql).await?.create_physical_plan().await }).unwrap();
        let before = displayable(&*plan).indent(false).to_string();
        let plan = RadixSorts.optimize(plan, &ConfigOptions::new()).unwrap();
        let mut replaced = false;
        let mut nodes = vec![plan.clone()];
        while let Some(node) = nodes.pop() {
            replaced |= node.is::<RadixSort>();
            nodes.extend(node.children().into_iter().cloned());
        }
        (before, displayable(&*plan).indent(false).to_string(), replaced)
    };
    let (before, _, replaced) = planned("SELECT n FROM (VALUES (2), (1)) AS t(n) ORDER BY n LIMIT 1000000");
    assert!(before.contains("TopK(fetch=1000000)") && replaced, "{before}");
    // Texts with offsets of 32 bits.
    let texts = "SELECT s FROM (VALUES ('a'), ('b')) AS t(s) ORDER BY s LIMIT";
    let (before, after, replaced) = planned(&format!("{texts} 1000000"));
    assert!(before.contains("TopK(fetch=1000000)") && !replaced, "{before}");
    assert!(!after.contains("TopK") && after.contains("LocalLimitExec: fetch=1000000"), "{after}");
    assert!(planned(&format!("{texts} 10")).1.contains("TopK(fetch=10)"));
}
