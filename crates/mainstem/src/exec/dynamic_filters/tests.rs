//! When keys are told, and when nobody waits for them any more.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, RecordBatch};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;

use super::KeyCollector;
use crate::provider::RuntimeFilter;

const UNKNOWN: (bool, bool) = (false, false);
const KNOWN: (bool, bool) = (true, true);
const GIVEN_UP: (bool, bool) = (true, false);

/// A collector of the keys of two partitions of two batches each.
fn collector(keys: ArrayRef) -> (Arc<dyn ExecutionPlan>, Arc<RuntimeFilter>) {
    let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
    let partitions = vec![vec![batch.clone(), batch.clone()]; 2];
    let input = MemorySourceConfig::try_new_exec(&partitions, batch.schema(), None).unwrap();
    let keys = RuntimeFilter::of_join();
    (Arc::new(KeyCollector::new(input, vec![(0, keys.clone())])), keys)
}

fn context(memory: usize) -> Arc<TaskContext> {
    let pool = Arc::new(GreedyMemoryPool::new(memory));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    Arc::new(TaskContext::default().with_runtime(environment))
}

/// Reads `batches` batches of a partition, or all and their end, and lets go of it.
fn read(plan: &Arc<dyn ExecutionPlan>, partition: usize, context: &Arc<TaskContext>, batches: usize) {
    let mut stream = plan.execute(partition, context.clone()).unwrap();
    futures::executor::block_on(async {
        for _ in 0..batches {
            if stream.next().await.transpose().unwrap().is_none() {
                break;
            }
        }
    });
}

#[test]
fn the_last_partition_tells_the_keys_of_all() {
    let (plan, keys) = collector(Arc::new(Int64Array::from(vec![Some(3), None, Some(8)])));
    let context = context(1 << 30);
    read(&plan, 1, &context, usize::MAX);
    assert_eq!(keys.state(), UNKNOWN);
    read(&plan, 0, &context, usize::MAX);
    assert_eq!(keys.state(), KNOWN);
    // Whoever runs the plan again finds the keys told.
    read(&plan, 1, &context, 1);
    assert_eq!(keys.state(), KNOWN);
}

#[test]
fn nobody_waits_for_a_partition_that_is_left() {
    let (plan, keys) = collector(Arc::new(Int64Array::from(vec![3, 8])));
    let context = context(1 << 30);
    read(&plan, 0, &context, 1);
    assert_eq!(keys.state(), GIVEN_UP);
    read(&plan, 1, &context, usize::MAX);
    assert_eq!(keys.state(), GIVEN_UP, "half of the keys");
}

#[test]
fn keys_leave_the_memory_to_joins() {
    let (plan, keys) = collector(Arc::new(Date32Array::from(vec![5; 1_000])));
    let small = context(100_000);
    read(&plan, 0, &small, usize::MAX);
    assert_eq!(keys.state(), GIVEN_UP);
    assert_eq!(small.memory_pool().reserved(), 0);
    // Of 64-bit numbers the join has the batches anyway, and the set is small.
    let (plan, keys) = collector(Arc::new(Int64Array::from(vec![5; 1_000])));
    (0..2).for_each(|partition| read(&plan, partition, &small, usize::MAX));
    assert_eq!(keys.state(), KNOWN);
    assert!(small.memory_pool().reserved() <= 100_000 / 16);
    drop(plan);
    assert_eq!(small.memory_pool().reserved(), 0);
}
