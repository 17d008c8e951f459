//! Tables that a program has: queries read them by a name.
//!
//! Comes in: an [`ExternalTable`], which gives batches of the columns wanted. Goes out: a scan of them in the types
//! that columns of tables have; several threads take the batches as they come.
//!
//! 1. A name that no table has is looked up among those registered with the session, then by its [`TableResolver`].
//!    What was found stands for the name until the statement ends.
//! 2. A scan that begins asks the table for its batches once, whatever the number of threads.
//! 3. Values are converted to types of our own (`value`).
//!
//! It does not own: what the batches come from, and how often that can be read.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DfResult, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;
use mainstem_storage::Result;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use crate::value::{own_batch, own_schema};

/// Rows that are worth a second thread.
const PARTITION_ROWS_MIN: usize = 1 << 17;
/// Rows that a thread takes at once.
const SLICE_ROWS: usize = 1 << 15;

/// Batches of a table, one after the other.
pub type ExternalBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// A table that a program has. Queries read it by the name it is registered by ([`crate::Connection::register`]).
pub trait ExternalTable: fmt::Debug + Send + Sync {
    /// Names and types of its columns. Names that differ in upper and lower case need quotes in SQL.
    fn schema(&self) -> SchemaRef;

    /// How many rows it has, if that is known: plans go by it.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// All rows, of the columns at the positions `columns` of the schema, in that order. It may be called by any
    /// thread, and once for each time that a query names the table.
    ///
    /// # Errors
    /// Whatever is wrong with it: the query fails with that.
    fn scan(&self, columns: &[usize]) -> Result<ExternalBatches>;
}

/// Tables for names that are none of the database's: see [`crate::Connection::set_table_resolver`].
pub trait TableResolver: fmt::Debug + Send + Sync {
    /// The table called `name`, which SQL has folded to lower case unless it was quoted. It is asked by the thread that
    /// runs the statement.
    ///
    /// # Errors
    /// The statement fails with it.
    fn resolve(&self, name: &str) -> Result<Option<Arc<dyn ExternalTable>>>;
}

/// The external tables of a session.
#[derive(Debug, Default)]
pub(crate) struct ExternalTables {
    registered: HashMap<String, Arc<dyn ExternalTable>>,
    resolver: Option<Arc<dyn TableResolver>>,
    /// What names mean in the running statement.
    found: Mutex<HashMap<String, Option<Arc<ExternalSource>>>>,
}

impl ExternalTables {
    /// From now on `name` means `table`, or nothing; what it meant before.
    pub(crate) fn register(
        &mut self,
        name: &str,
        table: Option<Arc<dyn ExternalTable>>,
    ) -> Option<Arc<dyn ExternalTable>> {
        match table {
            Some(table) => self.registered.insert(name.to_owned(), table),
            None => self.registered.remove(name),
        }
    }

    pub(crate) fn set_resolver(&mut self, resolver: Option<Arc<dyn TableResolver>>) {
        self.resolver = resolver;
    }

    /// The table that `name` means in the running statement.
    ///
    /// # Errors
    /// Those of the resolver.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<ExternalSource>>> {
        if self.registered.is_empty() && self.resolver.is_none() {
            return Ok(None);
        }
        if let Some(known) = self.found.lock().get(name) {
            return Ok(known.clone());
        }
        let table = match (self.registered.get(name), &self.resolver) {
            (Some(table), _) => Some(table.clone()),
            (None, Some(resolver)) => resolver.resolve(name)?,
            (None, None) => None,
        };
        let source = table.map(|table| Arc::new(ExternalSource::new(name, table)));
        self.found.lock().insert(name.to_owned(), source.clone());
        Ok(source)
    }

    /// Those that the running statement reads, by name.
    pub(crate) fn of_statement(&self) -> HashMap<String, Arc<ExternalSource>> {
        let found = self.found.lock();
        found.iter().filter_map(|(name, source)| Some((name.clone(), source.clone()?))).collect()
    }

    /// Whether the running statement reads any.
    pub(crate) fn are_any(&self) -> bool {
        self.found.lock().values().any(Option::is_some)
    }

    /// The statement has ended.
    pub(crate) fn clear(&mut self) {
        self.found.get_mut().clear();
    }
}

/// An external table as queries read it.
#[derive(Debug)]
pub(crate) struct ExternalSource {
    name: String,
    table: Arc<dyn ExternalTable>,
    /// In types of our own.
    schema: SchemaRef,
}

impl ExternalSource {
    fn new(name: &str, table: Arc<dyn ExternalTable>) -> Self {
        let schema = own_schema(&table.schema());
        Self { name: name.to_owned(), table, schema }
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.schema
    }
}

#[async_trait]
impl TableProvider for ExternalSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let columns = projection.map_or_else(|| (0..self.schema.fields().len()).collect(), Clone::clone);
        let schema = Arc::new(self.schema.project(&columns)?);
        let rows = self.table.rows();
        let worth = rows.unwrap_or(usize::MAX) / PARTITION_ROWS_MIN + 1;
        let partitions =
            if limit.is_some() { 1 } else { worth.min(state.config_options().execution.target_partitions) };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(ExternalScan {
            name: self.name.clone(),
            table: self.table.clone(),
            columns,
            schema,
            properties: Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)),
            rows,
            run: Mutex::default(),
        }))
    }
}

/// The scan of an external table.
#[derive(Debug)]
struct ExternalScan {
    name: String,
    table: Arc<dyn ExternalTable>,
    columns: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    rows: Option<usize>,
    /// What the partitions share in the run that began last, and those that have joined it.
    run: Mutex<(Arc<Mutex<Run>>, HashSet<usize>)>,
}

/// What is left of the batches in one run.
#[derive(Default)]
struct Run {
    batches: Option<ExternalBatches>,
    /// Of the batch that is being taken.
    rest: Option<RecordBatch>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl Run {
    /// The next rows, at most [`SLICE_ROWS`].
    fn next(&mut self, table: &dyn ExternalTable, columns: &[usize]) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => {
                let batches = match &mut self.batches {
                    Some(batches) => batches,
                    none => none.insert(table.scan(columns)?),
                };
                match batches.next().transpose()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                }
            }
        };
        if batch.num_rows() <= SLICE_ROWS {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(SLICE_ROWS, batch.num_rows() - SLICE_ROWS));
        Ok(Some(batch.slice(0, SLICE_ROWS)))
    }
}

impl ExternalScan {
    /// The run that partition `partition` joins: each time it begins, another one.
    fn join(&self, partition: usize) -> Arc<Mutex<Run>> {
        let mut run = self.run.lock();
        let (current, joined) = &mut *run;
        if !joined.insert(partition) {
            *current = Arc::default();
            *joined = HashSet::from([partition]);
        }
        current.clone()
    }
}

impl DisplayAs for ExternalScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "ExternalScan: table={}, columns=[{}]", self.name, columns.join(", "))
    }
}

impl ExecutionPlan for ExternalScan {
    fn name(&self) -> &str {
        "ExternalScan"
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

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let state = (self.join(partition), self.table.clone(), self.columns.clone(), self.schema.clone());
        let batches = stream::try_unfold(state, |state| async move {
            // The program may wait for anything, another query of the same database among them: on the threads of
            // queries it would wait for itself.
            let next = spawn_blocking(move || {
                let (run, table, columns, schema) = &state;
                let batch = run.lock().next(&**table, columns);
                let batch = batch.and_then(|batch| batch.map(|batch| own_batch(&batch, schema)).transpose());
                (batch, state)
            });
            let (batch, state) = next.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let batch = batch.map_err(|error| DataFusionError::External(Box::new(error)))?;
            Ok(batch.map(|batch| (batch, state)))
        });
        let batches = RecordBatchStreamAdapter::new(self.schema.clone(), Box::pin(batches));
        Ok(make_cooperative(Box::pin(batches)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let rows = self.rows.map_or(Precision::Absent, Precision::Inexact);
        Ok(Arc::new(Statistics { num_rows: rows, ..Statistics::new_unknown(&self.schema) }))
    }
}
