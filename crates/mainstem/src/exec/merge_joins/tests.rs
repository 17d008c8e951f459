//! Merge joins of random rows beside DataFusion's hash joins of them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, Int16Array, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, Statistics};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use futures::StreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::groups::{Groups, PairCursor, found, leading};
use super::operator::{MergeJoin, Parts};

const TYPES: [JoinType; 7] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
];

/// Columns `k`, ascending, `v` and `n`, which numbers the rows, in batches of random lengths, some of none.
fn side(random: &mut StdRng, rows: usize, keys: i64, of: &DataType) -> (Arc<dyn ExecutionPlan>, Arc<Schema>) {
    let mut ascending: Vec<i64> = (0..rows).map(|_| random.random_range(0..keys)).collect();
    ascending.sort_unstable();
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", of.clone(), false),
        Field::new("v", DataType::Int64, true),
        Field::new("n", DataType::Int64, false),
    ]));
    let batch = |from: usize, keys: &[i64], random: &mut StdRng| {
        let narrow: ArrayRef = match of {
            DataType::Int16 => Arc::new(keys.iter().map(|key| *key as i16).collect::<Int16Array>()),
            DataType::Date32 => Arc::new(keys.iter().map(|key| Some(*key as i32)).collect::<Date32Array>()),
            _ => Arc::new(Int64Array::from(keys.to_vec())),
        };
        let values: Int64Array = keys.iter().map(|_| Some(random.random_range(0..4)).filter(|v| *v > 0)).collect();
        let numbers: Int64Array = (from as i64..).take(keys.len()).collect();
        RecordBatch::try_new(schema.clone(), vec![narrow, Arc::new(values), Arc::new(numbers)]).unwrap()
    };
    let (mut batches, mut at, longest) = (Vec::new(), 0, random.random_range(1..12));
    while at < rows {
        let len = random.random_range(0..=longest).min(rows - at);
        batches.push(batch(at, &ascending[at..at + len], random));
        at += len;
    }
    (MemorySourceConfig::try_new_exec(&[batches], schema.clone(), None).unwrap(), schema)
}

/// `v <> v`, which is not known of NULLs.
fn differ() -> JoinFilter {
    let v = |at| Arc::new(Column::new("v", at)) as Arc<dyn PhysicalExpr>;
    let columns = vec![ColumnIndex { index: 1, side: JoinSide::Left }, ColumnIndex { index: 1, side: JoinSide::Right }];
    let field = |name| Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field("l"), field("r")]));
    JoinFilter::new(Arc::new(BinaryExpr::new(v(0), Operator::NotEq, v(1))), columns, schema)
}

fn run(plan: &Arc<dyn ExecutionPlan>, memory: usize) -> Result<RecordBatch> {
    let pool = Arc::new(GreedyMemoryPool::new(memory));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    let context = Arc::new(TaskContext::default().with_runtime(environment));
    let batches = plan.execute(0, context)?;
    let batches: Vec<_> = futures::executor::block_on(batches.collect::<Vec<_>>());
    let batches = batches.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(concat_batches(&plan.schema(), &batches)?)
}

fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    let row = |at| columns.iter().map(|column| column.value(at).to_string()).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = (0..batch.num_rows()).map(row).collect();
    rows.sort();
    rows
}

fn joins(
    left: &Arc<dyn ExecutionPlan>,
    right: &Arc<dyn ExecutionPlan>,
    join_type: JoinType,
    larger: JoinSide,
    filter: Option<JoinFilter>,
    projection: Option<Vec<usize>>,
) -> [Arc<dyn ExecutionPlan>; 2] {
    let key = || Arc::new(Column::new("k", 0)) as Arc<dyn PhysicalExpr>;
    let hash = HashJoinExec::try_new(
        left.clone(),
        right.clone(),
        vec![(key(), key())],
        filter.clone(),
        &join_type,
        projection.clone(),
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    )
    .unwrap();
    let schema = hash.schema();
    let statistics = Arc::new(Statistics::new_unknown(&schema));
    let (left, right) = (left.clone(), right.clone());
    let parts = Parts { left, right, on: (0, 0), join_type, larger, filter, projection, schema, statistics };
    [Arc::new(hash), Arc::new(MergeJoin::new(parts).unwrap())]
}

#[test]
fn random_rows_join_as_by_hash() {
    let mut random = StdRng::seed_from_u64(7);
    for case in 0..400 {
        let of = [DataType::Int64, DataType::Int16, DataType::Date32][case % 3].clone();
        let keys = [1, 3, 40, 300][random.random_range(0..4)];
        let mut a_side = || {
            let most = [0, 5, 60, 60][random.random_range(0..4)];
            let rows = random.random_range(0..=most);
            side(&mut random, rows, keys, &of).0
        };
        let (left, right) = (a_side(), a_side());
        for join_type in TYPES {
            let larger = if case % 2 == 0 { JoinSide::Left } else { JoinSide::Right };
            let is_outer = matches!(join_type, JoinType::Left | JoinType::Right);
            let filter = (!is_outer && random.random_bool(0.5)).then(differ);
            let has_filter = filter.is_some();
            let [hash, merge] = joins(&left, &right, join_type, larger, filter, None);
            let (expected, found) = (run(&hash, usize::MAX).unwrap(), run(&merge, usize::MAX).unwrap());
            assert_eq!(rows(&found), rows(&expected), "case {case}: {join_type}, filter: {has_filter}");
            // What the plan says of its order holds.
            for order in merge.properties().equivalence_properties().oeq_class().iter() {
                let at = order.first().expr.downcast_ref::<Column>().unwrap().index();
                let keys = arrow::compute::cast(found.column(at), &DataType::Int64).unwrap();
                assert!(keys.as_primitive::<Int64Type>().values().is_sorted(), "case {case}: {join_type}");
            }
        }
    }
}

#[test]
fn columns_come_as_projected() {
    let mut random = StdRng::seed_from_u64(8);
    let (left, right) = (side(&mut random, 30, 9, &DataType::Int64).0, side(&mut random, 30, 9, &DataType::Int64).0);
    for (join_type, projection) in [
        (JoinType::Inner, vec![5, 0, 2]),
        (JoinType::Inner, vec![]),
        (JoinType::Left, vec![4, 1]),
        (JoinType::RightAnti, vec![2]),
        (JoinType::LeftSemi, vec![]),
    ] {
        let [hash, merge] = joins(&left, &right, join_type, JoinSide::Right, None, Some(projection));
        let (expected, found) = (run(&hash, usize::MAX).unwrap(), run(&merge, usize::MAX).unwrap());
        assert_eq!(found.num_rows(), expected.num_rows());
        assert_eq!(rows(&found), rows(&expected), "{join_type}");
    }
}

#[test]
fn rows_of_one_key_are_charged() {
    let mut random = StdRng::seed_from_u64(9);
    let (left, right) = (side(&mut random, 2, 1, &DataType::Int64).0, side(&mut random, 900, 1, &DataType::Int64).0);
    let [_, merge] = joins(&left, &right, JoinType::Inner, JoinSide::Left, None, None);
    assert_eq!(run(&merge, usize::MAX).unwrap().num_rows(), 1_800);
    let refused = run(&merge, 1_000).unwrap_err();
    assert!(refused.to_string().contains("merge join"), "{refused}");
    // Whoever asks whether there is a partner needs no group.
    let [_, semi] = joins(&left, &right, JoinType::LeftSemi, JoinSide::Left, None, None);
    assert_eq!(run(&semi, 1_000).unwrap().num_rows(), 2);
}

#[test]
fn keys_are_found_as_one_by_one() {
    let mut random = StdRng::seed_from_u64(10);
    for _ in 0..300 {
        let most = random.random_range(1..400);
        let mut ascending = |len: usize| {
            let mut keys: Vec<i64> = (0..random.random_range(0..=len)).map(|_| random.random_range(0..most)).collect();
            keys.sort_unstable();
            keys
        };
        let (keys, others) = (ascending(50), ascending(300));
        let count = |is: &dyn Fn(i64) -> bool| others.iter().filter(|other| is(**other)).count();
        let groups = Groups::new(&keys, &others);
        let is_found = found(&keys, &others);
        let mut pairs = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let (start, end) = (count(&|other| other < *key), count(&|other| other <= *key));
            assert_eq!((groups.starts[at] as usize, groups.ends[at] as usize), (start, end));
            assert_eq!(leading(&others, |other| other < *key), start);
            assert_eq!(is_found.value(at), start < end);
            pairs.extend((start..end).map(|other| (at as u32, other as u32)));
        }
        let mut cursor = PairCursor::new(groups, false);
        let mut met = Vec::new();
        loop {
            let next = cursor.next(7);
            assert!(next.rows.len() <= 7);
            if next.rows.is_empty() {
                break;
            }
            met.extend(next.rows.into_iter().zip(next.others));
        }
        assert_eq!(met, pairs);
    }
}
