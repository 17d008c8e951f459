//! Rows that several parts of a plan read, computed once.
//!
//! A query that is computed for all outer rows at once reads those rows too (`unnest`), and is joined with them by
//! value. Rows that would be others if they were computed again (random ones, LIMIT, sums of doubles, which depend on
//! the order) must not be; long plans should not, as each LATERAL query of a chain would double what is before it.
//!
//! Comes in: a plan. Goes out: a scan of its rows, with the names of before; all copies of it read the same ones.
//! Steps:
//!
//! 1. the plan is analyzed to its end, and kept behind a table;
//! 2. the table's first scan optimizes and plans it;
//! 3. the first reader that runs computes its rows and keeps them, counted as memory of the query, until the last
//!    reader is gone.
//!
//! Invariant: such a plan refers to nothing around it. It does not own: which plans these are (`rule`).

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DataFusionError, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use crate::optimize::short_circuit_plan;

/// The rules that analyze plans after the one that keeps them.
pub(super) type LaterRules = Vec<Arc<dyn AnalyzerRule + Send + Sync>>;

/// A scan of the rows of `plan`, called `name`, which is no other's.
///
/// # Errors
/// Those of `later`.
pub(super) fn computed_once(
    plan: LogicalPlan,
    name: &str,
    later: &LaterRules,
    config: &ConfigOptions,
) -> Result<LogicalPlan> {
    let names = plan.schema().clone();
    let plan = later.iter().try_fold(plan, |plan, rule| rule.analyze(plan, config))?;
    let fields = plan.schema().fields().iter().enumerate();
    let fields: Vec<Field> =
        fields.map(|(at, field)| field.as_ref().clone().with_name(format!("column{at}"))).collect();
    let columns = fields.iter().map(|field| Column::new(Some(TableReference::bare(name)), field.name()));
    let items = columns
        .zip(names.iter())
        .map(|(column, (relation, field))| Expr::Column(column).alias_qualified(relation.cloned(), field.name()));
    let items: Vec<Expr> = items.collect();
    let table = OnceTable { plan, schema: Arc::new(Schema::new(fields)), planned: OnceCell::new() };
    LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(table)), None)?.project(items)?.build()
}

/// A plan as a table.
#[derive(Debug)]
struct OnceTable {
    plan: LogicalPlan,
    schema: SchemaRef,
    planned: OnceCell<OnceExec>,
}

#[async_trait]
impl TableProvider for OnceTable {
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
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = self.planned.get_or_try_init(|| self.planned(state)).await?;
        planned.projected(projection).map(|plan| Arc::new(plan) as Arc<dyn ExecutionPlan>)
    }
}

impl OnceTable {
    async fn planned(&self, state: &dyn Session) -> Result<OnceExec> {
        let Some(state) = state.as_any().downcast_ref::<SessionState>() else {
            return Err(DataFusionError::Internal("a session without an optimizer".into()));
        };
        let plan = short_circuit_plan(state.optimizer().optimize(self.plan.clone(), state, |_, _| {})?)?;
        let input = state.query_planner().create_physical_plan(&plan, state).await?;
        Ok(OnceExec {
            input,
            rows: Arc::default(),
            projection: None,
            properties: properties_of(self.schema.clone()),
            all: self.schema.clone(),
        })
    }
}

fn properties_of(schema: SchemaRef) -> Arc<PlanProperties> {
    let equal = EquivalenceProperties::new(schema);
    let partitions = Partitioning::UnknownPartitioning(1);
    Arc::new(PlanProperties::new(equal, partitions, EmissionType::Final, Boundedness::Bounded))
}

/// Rows, and the memory that they take.
struct Kept {
    batches: Vec<RecordBatch>,
    _room: MemoryReservation,
}

type Rows = Shared<BoxFuture<'static, std::result::Result<Arc<Kept>, Arc<DataFusionError>>>>;

/// A reader of the rows of `input`. Its copies read the same ones, whatever becomes of the input meanwhile.
#[derive(Clone)]
struct OnceExec {
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<OnceLock<Rows>>,
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
    all: SchemaRef,
}

impl OnceExec {
    fn projected(&self, projection: Option<&Vec<usize>>) -> Result<Self> {
        let Some(projection) = projection else { return Ok(self.clone()) };
        let properties = properties_of(Arc::new(self.all.project(projection)?));
        Ok(Self { projection: Some(projection.clone()), properties, ..self.clone() })
    }
}

impl fmt::Debug for OnceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for OnceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnceExec")
    }
}

impl ExecutionPlan for OnceExec {
    fn name(&self) -> &str {
        "OnceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
        Ok(Arc::new(Self { input, ..(*self).clone() }))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.rows.get_or_init(|| {
            let rows = kept(self.input.clone(), context.clone());
            rows.map(|rows| rows.map(Arc::new).map_err(Arc::new)).boxed().shared()
        });
        let (rows, projection, schema) = (rows.clone(), self.projection.clone(), self.schema());
        let batches = async move {
            let kept = rows.await.map_err(DataFusionError::Shared)?;
            let at = 0..kept.batches.len();
            Ok::<_, DataFusionError>(futures::stream::iter(at).map(move |at| {
                let Some(batch) = kept.batches.get(at) else {
                    return Err(DataFusionError::Internal("a batch is lost".into()));
                };
                let columns = match &projection {
                    Some(projection) => batch.project(projection)?.columns().to_vec(),
                    None => batch.columns().to_vec(),
                };
                let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &rows)?)
            }))
        };
        let batches = futures::stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

async fn kept(input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Kept> {
    let room = MemoryConsumer::new("rows read several times").register(context.memory_pool());
    let mut stream = execute_stream(input, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.try_next().await? {
        room.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(Kept { batches, _room: room })
}
