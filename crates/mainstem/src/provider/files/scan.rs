//! The scan of files.
//!
//! One partition gives the rows in the order of the files; of a long one other threads read the chunks. Several
//! partitions take chunks as they come, each on the thread that works with its rows (`rows`).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;
use mainstem_storage::Error;
use parking_lot::Mutex;

use super::open::FoundFile;
use super::rows::{Partition, Reading, Run};
use super::{Content, FileTable};

/// Batches that wait for whoever takes the rows of a partition that other threads read.
const BATCHES_AHEAD: usize = 8;
/// Bytes of files that are worth a second thread.
const PARTITION_BYTES_MIN: u64 = 1 << 20;
/// Says that whoever took the rows of a scan has enough of them.
const NOBODY_TAKES: &str = "nobody takes the rows of a file";

/// See the module.
#[derive(Debug)]
pub(super) struct FileScan {
    table: Arc<Reading>,
    schema: SchemaRef,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    rows: u64,
    /// What the partitions share in the run that began last, and those that have joined it.
    run: Mutex<(Arc<Run>, HashSet<usize>)>,
}

impl FileScan {
    pub(super) fn new(
        table: &FileTable,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
        partitions: usize,
    ) -> DfResult<Self> {
        let wanted = projection.map_or_else(|| (0..table.schema.fields().len()).collect(), Clone::clone);
        let schema = Arc::new(table.schema.project(&wanted)?);
        let chunks = table.files.iter().map(|file| file.bytes / PARTITION_BYTES_MIN + 1).sum::<u64>();
        let partitions = partitions.clamp(1, usize::try_from(chunks).unwrap_or(usize::MAX));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(if limit == Some(0) { 1 } else { partitions }),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let reading = Reading::new(table, wanted, schema.clone());
        Ok(Self {
            run: Mutex::new((Arc::new(Run::new(&reading)), HashSet::new())),
            table: Arc::new(reading),
            schema,
            limit,
            properties: Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)),
            rows: table.rows(),
        })
    }

    /// The rows in the order of the files, in batches of `rows`, read by other threads.
    fn in_order(&self, rows: usize, mut left: usize) -> SendableRecordBatchStream {
        let reading = self.table.clone();
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema.clone(), BATCHES_AHEAD);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let mut enough = false;
            let read = reading.in_order(rows, &mut |batch: RecordBatch| {
                let batch = batch.slice(0, batch.num_rows().min(left));
                left -= batch.num_rows();
                enough = sender.blocking_send(Ok(batch)).is_err() || left == 0;
                if enough { Err(Error::internal(NOBODY_TAKES)) } else { Ok(()) }
            });
            if enough { Ok(()) } else { read.map_err(|error| reading.told(error)) }
        });
        builder.build()
    }

    /// The run that partition `partition` joins: each time it begins, another one.
    fn join(&self, partition: usize) -> Arc<Run> {
        let mut run = self.run.lock();
        let (current, joined) = &mut *run;
        if !joined.insert(partition) {
            *current = Arc::new(Run::new(&self.table));
            *joined = HashSet::from([partition]);
        }
        current.clone()
    }
}

impl DisplayAs for FileScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self.table.content, Content::Csv(_)) { "csv" } else { "parquet" };
        let name = self.table.files.first().map(FoundFile::name).unwrap_or_default();
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "FileScan: {kind} \"{name}\", files={}, columns=[{}]", self.table.files.len(), columns.join(", "))?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for FileScan {
    fn name(&self) -> &str {
        "FileScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let (run, reading) = (self.join(partition), self.table.clone());
        let rows = context.session_config().batch_size();
        let partitions = self.properties.partitioning.partition_count();
        let limit = self.limit.unwrap_or(usize::MAX);
        if partitions == 1 && reading.files.iter().any(|file| file.bytes > PARTITION_BYTES_MIN) {
            return Ok(self.in_order(rows, limit));
        }
        let partition = Partition::new(run, reading, rows, limit);
        let batches = stream::unfold(partition, |mut partition| async move {
            let batch = partition.next().transpose()?;
            Some((batch, partition))
        });
        let batches = RecordBatchStreamAdapter::new(self.schema.clone(), Box::pin(batches));
        Ok(make_cooperative(Box::pin(batches)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let rows = Precision::Inexact(usize::try_from(self.rows).unwrap_or(usize::MAX));
        Ok(Arc::new(Statistics { num_rows: rows, ..Statistics::new_unknown(&self.schema) }))
    }
}
