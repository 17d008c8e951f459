//! The operator.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, JoinType, Result, Statistics, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::utils::{JoinFilter, build_join_schema};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream;

use super::stream::{Merge, Output, Side};
use super::window::{Kind, Terms};

type Plan = Arc<dyn ExecutionPlan>;

/// A join of two inputs that come in the order of their keys, each partition with its range of them.
#[derive(Debug)]
pub(in crate::exec) struct MergeJoin {
    left: Plan,
    right: Plan,
    /// The columns of the keys.
    on: (usize, usize),
    join_type: JoinType,
    projection: Option<Vec<usize>>,
    terms: Arc<Terms>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What a merge join is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) left: Plan,
    pub(super) right: Plan,
    pub(super) on: (usize, usize),
    pub(super) join_type: JoinType,
    /// The side whose rows give the order of an inner join.
    pub(super) larger: JoinSide,
    pub(super) filter: Option<JoinFilter>,
    pub(super) projection: Option<Vec<usize>>,
    pub(super) schema: arrow::datatypes::SchemaRef,
    pub(super) statistics: Arc<Statistics>,
}

impl MergeJoin {
    /// # Errors
    /// Internal for types of joins that cannot be merged.
    pub(super) fn new(parts: Parts) -> Result<Self> {
        let Parts { left, right, on, join_type, larger, filter, projection, schema, statistics } = parts;
        let (kind, first) =
            Terms::of(join_type, larger).ok_or_else(|| internal_datafusion_err!("a merge join of type {join_type}"))?;
        let (_, all) = build_join_schema(&left.schema(), &right.schema(), &join_type);
        let columns = match &projection {
            Some(projection) => projection.iter().filter_map(|at| all.get(*at).cloned()).collect(),
            None => all,
        };
        let terms = Terms { kind, first, filter, columns, schema };
        let properties = properties(&terms, on, left.output_partitioning().partition_count());
        Ok(Self {
            left,
            right,
            on,
            join_type,
            projection,
            terms: Arc::new(terms),
            statistics,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Whether rows come in the order of output column `at`, no partition with values of another.
    pub(in crate::exec) fn is_by(&self, at: usize) -> bool {
        is_key(&self.terms, self.on, at)
    }

    fn with_terms(&self, left: Plan, right: Plan, terms: Terms) -> Self {
        let properties = properties(&terms, self.on, left.output_partitioning().partition_count());
        Self {
            left,
            right,
            on: self.on,
            join_type: self.join_type,
            projection: self.projection.clone(),
            terms: Arc::new(terms),
            statistics: self.statistics.clone(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same, with `wrapped` of the filter in its place, if it has one.
    pub(in crate::exec) fn with_filter(&self, wrapped: impl FnOnce(&JoinFilter) -> JoinFilter) -> Self {
        let terms = Terms { filter: self.terms.filter.as_ref().map(wrapped), ..Terms::clone(&self.terms) };
        self.with_terms(self.left.clone(), self.right.clone(), terms)
    }
}

fn is_key(terms: &Terms, (left, right): (usize, usize), at: usize) -> bool {
    terms.columns.get(at).is_some_and(|column| {
        let key = if column.side == JoinSide::Left { left } else { right };
        column.index == key && (column.side == terms.first || terms.kind == Kind::Inner)
    })
}

fn properties(terms: &Terms, on: (usize, usize), partitions: usize) -> PlanProperties {
    let keys = terms.schema.fields().iter().enumerate().filter(|(at, _)| is_key(terms, on, *at));
    let orders = keys.map(|(at, field)| {
        let key = Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>;
        [PhysicalSortExpr::new(key, SortOptions { descending: false, nulls_first: false })]
    });
    let equivalences = EquivalenceProperties::new_with_orderings(terms.schema.clone(), orders);
    let partitioning = Partitioning::UnknownPartitioning(partitions);
    PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded)
}

impl DisplayAs for MergeJoin {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |plan: &Plan, at: usize| {
            plan.schema().fields().get(at).map(|field| format!("{}@{at}", field.name())).unwrap_or_default()
        };
        let (left, right) = (name(&self.left, self.on.0), name(&self.right, self.on.1));
        write!(f, "MergeJoin: join_type={}, on=[({left}, {right})]", self.join_type)?;
        if let Some(filter) = &self.terms.filter {
            write!(f, ", filter={}", filter.expression())?;
        }
        if self.projection.is_some() {
            let fields = self.terms.schema.fields().iter().zip(&self.terms.columns);
            let names: Vec<_> = fields.map(|(field, _)| field.name().as_str()).collect();
            write!(f, ", projection=[{}]", names.join(", "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for MergeJoin {
    fn name(&self) -> &'static str {
        "MergeJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.left, &self.right]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        match &self.terms.filter {
            Some(filter) => f(filter.expression()),
            None => Ok(TreeNodeRecursion::Continue),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let [left, right] = <[Plan; 2]>::try_from(children)
            .map_err(|children| internal_datafusion_err!("a join of {} inputs", children.len()))?;
        Ok(Arc::new(self.with_terms(left, right, Terms::clone(&self.terms))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let left = Side::new(self.left.execute(partition, context.clone())?, self.on.0);
        let right = Side::new(self.right.execute(partition, context.clone())?, self.on.1);
        let (rows, others) = if self.terms.first == JoinSide::Left { (left, right) } else { (right, left) };
        let merge = Merge {
            terms: self.terms.clone(),
            rows,
            others,
            group: None,
            window: None,
            output: Output::new(self.schema()),
            memory: MemoryConsumer::new("rows of one key of a merge join").register(context.memory_pool()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = stream::try_unfold(merge, |mut merge| async move {
            let next = merge.next().await?;
            if let Some(batch) = &next {
                merge.metrics.record_output(batch.num_rows());
            }
            Ok(next.map(|batch| (batch, merge)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(match args.partition() {
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema())),
            None => self.statistics.clone(),
        })
    }
}
