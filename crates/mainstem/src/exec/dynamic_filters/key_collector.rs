//! Passes the rows of a join's build side on, and publishes their keys when all of them have come.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{Stream, StreamExt};
use mainstem_storage::scan::KeySet;
use parking_lot::Mutex;

use crate::provider::RuntimeFilter;

/// Of what queries may take: the part that the keys of one partition may.
const SHARE_OF_KEYS: usize = 16;
/// Of what queries may take: the part that keys of one partition may keep from being freed.
const SHARE_OF_BATCHES: usize = 4;
/// Of what queries may take: the part up to which keys take some.
const SHARE_OF_ALL: usize = 2;

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct KeyCollector {
    input: Arc<dyn ExecutionPlan>,
    /// Columns of integers, with what becomes of their values.
    keys: Vec<(usize, Arc<RuntimeFilter>)>,
    collected: Arc<Mutex<Collected>>,
}

/// Keys of one partition: a list of slices for each column.
type Keys = Vec<Vec<ScalarBuffer<i64>>>;

/// What came so far.
#[derive(Debug, Default)]
struct Collected {
    /// Keys of each partition, once it has ended, with the memory that they take.
    partitions: Vec<Option<(Keys, MemoryReservation)>>,
    /// Of a partition not all keys will come: nothing is published.
    is_given_up: bool,
    /// Room for the sets.
    memory: Option<MemoryReservation>,
}

impl KeyCollector {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, keys: Vec<(usize, Arc<RuntimeFilter>)>) -> Self {
        let partitions = (0..input.output_partitioning().partition_count()).map(|_| None).collect();
        Self { input, keys, collected: Arc::new(Mutex::new(Collected { partitions, ..Collected::default() })) }
    }
}

impl DisplayAs for KeyCollector {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let names: Vec<&str> = self.keys.iter().map(|(at, _)| schema.field(*at).name().as_str()).collect();
        write!(f, "KeyCollector: dynamic_filters=[{}]", names.join(", "))
    }
}

impl ExecutionPlan for KeyCollector {
    fn name(&self) -> &str {
        "KeyCollector"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Self::new(input, self.keys.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("keys of a join").register(context.memory_pool());
        let room = Room { pool: context.memory_pool().clone() };
        let input = self.input.execute(partition, context)?;
        let keys = vec![Vec::new(); self.keys.len()];
        let (filters, collected) = (self.keys.clone(), self.collected.clone());
        Ok(Box::pin(Collecting {
            input,
            partition,
            filters,
            keys,
            memory,
            shared_bytes: 0,
            room,
            collected,
            is_complete: true,
        }))
    }
}

/// How much keys may take: a filter saves time, and what it takes is missed by joins.
struct Room {
    pool: Arc<dyn MemoryPool>,
}

impl Room {
    /// Takes `bytes` for `memory`, if that leaves most to others.
    fn take(&self, memory: &MemoryReservation, bytes: usize) -> bool {
        let is_small = match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => {
                memory.size().saturating_add(bytes) <= limit / SHARE_OF_KEYS
                    && self.pool.reserved().saturating_add(bytes) <= limit / SHARE_OF_ALL
            }
            _ => true,
        };
        is_small && memory.try_grow(bytes).is_ok()
    }

    /// Whether so many bytes of batches may be kept from being freed. A join that holds them counts them itself, and
    /// one that spills lets go of them.
    fn may_share(&self, bytes: usize) -> bool {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => bytes <= limit / SHARE_OF_BATCHES,
            _ => true,
        }
    }
}

/// Batches of one partition.
struct Collecting {
    input: SendableRecordBatchStream,
    partition: usize,
    filters: Vec<(usize, Arc<RuntimeFilter>)>,
    keys: Keys,
    memory: MemoryReservation,
    /// Of keys that stand in the batches themselves.
    shared_bytes: usize,
    room: Room,
    collected: Arc<Mutex<Collected>>,
    /// Whether the keys of all batches are in `keys`.
    is_complete: bool,
}

impl Collecting {
    /// Remembers the keys of `batch`, as long as there is memory.
    fn remember(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.collected.lock().is_given_up {
            self.give_up();
            return Ok(());
        }
        for at in 0..self.filters.len() {
            let Some((column, _)) = self.filters.get(at) else { continue };
            let column = batch.column(*column);
            let (values, is_shared) = integers(column)?;
            let bytes = values.len() * size_of::<i64>();
            let has_room = if is_shared {
                self.shared_bytes += bytes;
                self.room.may_share(self.shared_bytes)
            } else {
                self.room.take(&self.memory, bytes)
            };
            if !has_room {
                self.give_up();
                return Ok(());
            }
            if let Some(keys) = self.keys.get_mut(at) {
                keys.push(values);
            }
        }
        Ok(())
    }

    /// Tells the scans, and other partitions, that not all keys will come.
    fn give_up(&mut self) {
        self.is_complete = false;
        self.keys.clear();
        self.memory.free();
        let mut collected = self.collected.lock();
        collected.is_given_up = true;
        collected.partitions.clear();
        self.filters.iter().for_each(|(_, keys)| keys.settle());
    }

    /// Hands over what was remembered; the last partition publishes it.
    fn end(&mut self) {
        if !std::mem::take(&mut self.is_complete) {
            return;
        }
        let mut collected = self.collected.lock();
        if let Some(partition) = collected.partitions.get_mut(self.partition) {
            *partition = Some((std::mem::take(&mut self.keys), self.memory.take()));
        }
        let all = collected.partitions.iter().map(Option::as_ref).collect::<Option<Vec<_>>>();
        let Some(partitions) = all.filter(|all| !all.is_empty()) else { return };
        for (at, (_, filter)) in self.filters.iter().enumerate() {
            let keys = partitions.iter().filter_map(|(keys, _)| keys.get(at));
            let slices: Vec<&ScalarBuffer<i64>> = keys.flatten().collect();
            filter.publish(KeySet::of(&slices, |bytes| self.room.take(&self.memory, bytes)));
        }
        collected.partitions.clear();
        collected.memory = Some(self.memory.take());
    }
}

/// The values of `array`, of a type of [`super::integer_columns`], that are not NULL, and whether they stand where
/// those of `array` do.
fn integers(array: &ArrayRef) -> Result<(ScalarBuffer<i64>, bool)> {
    let integers = match array.data_type() {
        DataType::Date32 => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(array, &DataType::Int64)?,
    };
    let integers = integers.as_primitive::<Int64Type>();
    Ok(match integers.null_count() {
        0 => (integers.values().clone(), array.data_type().primitive_width() == Some(size_of::<i64>())),
        _ => (integers.iter().flatten().collect(), false),
    })
}

impl Drop for Collecting {
    fn drop(&mut self) {
        // Its join was not interested in the rest.
        if self.is_complete {
            self.give_up();
        }
    }
}

impl Stream for Collecting {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        match &next {
            Some(Ok(batch)) if self.is_complete => self.remember(batch)?,
            Some(Ok(_)) => {}
            Some(Err(_)) => self.give_up(),
            None => self.end(),
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for Collecting {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
