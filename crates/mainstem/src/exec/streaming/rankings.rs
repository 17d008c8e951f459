//! `row_number`, `rank` and `dense_rank` count while rows come in the order of their window.
//!
//! Comes in: batches in the order of PARTITION BY and ORDER BY. Goes out: the same batches with a column of numbers for
//! each function. DataFusion 55.2 evaluates each function row by row, with a state for each window partition, which
//! takes ten times as long where those are small.
//!
//! 1. Where a column of the order differs from the row before, an other partition or an other group of peers begins.
//! 2. One pass over the rows counts.
//!
//! Invariant: between batches only the last row's columns and the counts are kept.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties, replace_children_if_necessary,
};
use futures::{Stream, StreamExt};

use crate::exec::sort::is_sortable;

/// The rule; see the module.
#[derive(Debug)]
pub(in crate::exec) struct RankingWindows;

impl PhysicalOptimizerRule for RankingWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let window = node.downcast_ref::<BoundedWindowAggExec>();
            Ok(match window.map(RankingWindow::of).transpose()?.flatten() {
                Some(ranking) => Transformed::yes(Arc::new(ranking) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "ranking_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
}

impl Ranking {
    fn of(expr: &Arc<dyn WindowExpr>) -> Option<Self> {
        let function = expr.as_any().downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr();
        match function.as_any().downcast_ref::<WindowUDFExpr>()?.fun().name() {
            "row_number" => Some(Self::RowNumber),
            "rank" => Some(Self::Rank),
            "dense_rank" => Some(Self::DenseRank),
            _ => None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct RankingWindow {
    /// What it stands for: how it is shown, and what is known of its rows.
    window: Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    rankings: Vec<Ranking>,
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    order_by: Vec<Arc<dyn PhysicalExpr>>,
    metrics: ExecutionPlanMetricsSet,
}

impl RankingWindow {
    /// The operator in the place of `window`, if all its functions are rankings and its rows come in order.
    fn of(window: &BoundedWindowAggExec) -> Result<Option<Self>> {
        let rankings: Option<Vec<Ranking>> = window.window_expr().iter().map(Ranking::of).collect();
        let (Some(rankings), Some(first)) = (rankings, window.window_expr().first()) else { return Ok(None) };
        let partition_by = first.partition_by().to_vec();
        let order_by: Vec<_> = first.order_by().iter().map(|part| part.expr.clone()).collect();
        let is_sorted = window.input_order_mode == InputOrderMode::Sorted && window.state_observer().is_none();
        let schema = window.input().schema();
        for expr in partition_by.iter().chain(&order_by) {
            if !is_sortable(&expr.data_type(&schema)?) {
                return Ok(None);
            }
        }
        let numbers = window.schema().fields().len().checked_sub(rankings.len());
        let are_counts = numbers.is_some_and(|at| {
            window.schema().fields().iter().skip(at).all(|field| *field.data_type() == DataType::Int64)
        });
        Ok((is_sorted && are_counts).then(|| Self {
            window: Arc::new(window.clone()),
            input: window.input().clone(),
            rankings,
            partition_by,
            order_by,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for RankingWindow {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt_as(format, f)
    }
}

impl ExecutionPlan for RankingWindow {
    fn name(&self) -> &str {
        self.window.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.window.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.window.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let window = replace_children_if_necessary(self.window.clone(), children)?;
        let ranking = window.downcast_ref::<BoundedWindowAggExec>().map(Self::of).transpose()?.flatten();
        Ok(match ranking {
            Some(ranking) => Arc::new(ranking),
            None => window,
        })
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(Ranked {
            input: self.input.execute(partition, context)?,
            schema: self.schema(),
            rankings: self.rankings.clone(),
            partition_by: Order::new(&self.partition_by),
            order_by: Order::new(&self.order_by),
            counts: Counts::default(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Columns in whose order rows come.
struct Order {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// Of the last row: one array of one row for each column.
    last: Option<Vec<ArrayRef>>,
}

impl Order {
    fn new(exprs: &[Arc<dyn PhysicalExpr>]) -> Self {
        Self { exprs: exprs.to_vec(), last: None }
    }

    /// Which rows of `batch` differ from the row before. The first row of all does not.
    fn begins(&mut self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let rows = batch.num_rows();
        let values = self.exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(rows));
        let values = values.collect::<Result<Vec<ArrayRef>>>()?;
        let mut begins = BooleanBuffer::new_unset(rows - 1);
        let mut first = false;
        for (at, array) in values.iter().enumerate() {
            let differs = distinct(&array.slice(0, rows - 1), &array.slice(1, rows - 1))?;
            begins = &begins | differs.values();
            if let Some(before) = self.last.as_ref().and_then(|last| last.get(at)) {
                first |= distinct(before, &array.slice(0, 1))?.value(0);
            }
        }
        self.last = Some(values.iter().map(|array| array.slice(rows - 1, 1)).collect());
        Ok(std::iter::once(first).chain(begins.iter()).collect())
    }
}

/// The numbers of the last row.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    row_number: i64,
    rank: i64,
    dense_rank: i64,
}

impl Counts {
    /// Goes on to the next row, of an other partition or of other peers.
    fn advance(&mut self, is_other_partition: bool, is_other_peer: bool) {
        if is_other_partition {
            *self = Self::default();
        }
        self.row_number += 1;
        if is_other_peer || self.row_number == 1 {
            self.rank = self.row_number;
            self.dense_rank += 1;
        }
    }

    fn number(self, ranking: Ranking) -> i64 {
        match ranking {
            Ranking::RowNumber => self.row_number,
            Ranking::Rank => self.rank,
            Ranking::DenseRank => self.dense_rank,
        }
    }
}

/// Batches of one partition of the plan.
struct Ranked {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    rankings: Vec<Ranking>,
    partition_by: Order,
    order_by: Order,
    counts: Counts,
    metrics: BaselineMetrics,
}

impl Ranked {
    fn rank(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (partitions, peers) = (self.partition_by.begins(batch)?, self.order_by.begins(batch)?);
        let mut numbers = vec![Vec::with_capacity(batch.num_rows()); self.rankings.len()];
        for (is_other_partition, is_other_peer) in partitions.iter().zip(&peers) {
            self.counts.advance(is_other_partition, is_other_peer);
            for (numbers, ranking) in numbers.iter_mut().zip(&self.rankings) {
                numbers.push(self.counts.number(*ranking));
            }
        }
        let numbers = numbers.into_iter().map(|numbers| Arc::new(Int64Array::from(numbers)) as ArrayRef);
        let columns = batch.columns().iter().cloned().chain(numbers).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

impl Stream for Ranked {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = loop {
            match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                next => break next,
            }
        };
        let timer = self.metrics.elapsed_compute().clone();
        let timer = timer.timer();
        let ranked = next.map(|batch| self.rank(&batch?));
        timer.done();
        self.metrics.record_poll(Poll::Ready(ranked))
    }
}

impl RecordBatchStream for Ranked {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
