//! A storage scan as a DataFusion data source.
//!
//! All partitions of one execution take pieces from one shared scan, so that cores finish together (`executions`).
//!
//! A sort by the table's sort key, or by a part of it that the conditions leave, becomes a scan in key order, from one
//! partition. The view must have that order, and every condition must be one that zone maps know of. Such a scan
//! evaluates conditions late. For aggregation it comes from several partitions, each with a range of the key.
//!
//! Scans may be told keys that joins find while the plan runs (`runtime_filter`), for which their streams wait
//! (`stream`).
//!
//! A source for an aggregation may leave out what metadata and codes answer for (`zone_aggregates`), and give columns
//! in other forms than their own (`forms`).
//!
//! The source of a physical plan that is kept has a [`ScanSlot`] instead of a view, and counts nothing.

mod executions;
mod expression_filter;
mod forms;
mod key_ranges;
mod runtime_filter;
mod stream;
mod zone_aggregates;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::datasource::source::{DataSource, OpenArgs};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use futures::FutureExt;
use futures::future::join_all;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::predicate::{CompareOp, Predicate, ValueRange};
use mainstem_storage::row::Value;
use mainstem_storage::scan::{LiveFilters, OrderedScan, ROW_REF_COLUMN, RowFilter, Scan, ScanCounts, ScanRequest};
use mainstem_storage::schema::{DataType as ColumnType, TableSchema};
use mainstem_storage::segment::Form;
use mainstem_storage::version::TableView;

pub(crate) use self::executions::Executions;
use self::expression_filter::ExpressionFilter;
pub(crate) use self::expression_filter::is_total;
pub(crate) use self::runtime_filter::RuntimeFilter;
pub(crate) use self::stream::yields_once;
use self::stream::{Origins, StoreRows, StoreStream};
use super::scan_slot::{ScanInput, ScanSlot};
use super::statistics::of_any_run;

/// Rows that make a second partition worth its overhead.
const ROWS_PER_PARTITION_MIN: usize = 32_768;

/// Partitions of a scan that looks at `rows` rows.
pub(super) fn partitions(rows: usize, cores: usize) -> usize {
    cores.clamp(1, (rows / ROWS_PER_PARTITION_MIN).max(1))
}

/// Which rows a source reads.
#[derive(Clone, Debug)]
pub(super) enum Snapshot {
    Of(Arc<TableView>),
    /// Those that a run binds, with predicates in the place of the request's.
    Slot(Arc<ScanSlot>),
}

impl Snapshot {
    fn is_slot(&self) -> bool {
        matches!(self, Self::Slot(_))
    }
}

/// A scan request against a view: a plain description until it is opened.
#[derive(Clone, Debug)]
pub(crate) struct StoreSource {
    table: Arc<TableSchema>,
    snapshot: Snapshot,
    request: ScanRequest,
    /// Columns of the output; the store's columns, with row references moved to `row_ref_at`.
    schema: SchemaRef,
    row_ref_at: Option<usize>,
    statistics: Arc<Statistics>,
    partitions: usize,
    /// What its rows are sorted by, if they are.
    order: Option<Vec<PhysicalSortExpr>>,
    /// Of a scan in order from several partitions: where the next one begins, in the first column of the sort key.
    cuts: Option<Vec<i64>>,
    /// Keys that rows must have, as far as they become known while the plan runs.
    filters: Vec<(ColumnId, Arc<RuntimeFilter>)>,
    /// Expressions that it evaluates, as they are shown.
    condition: Option<String>,
    row_filters: Vec<Arc<dyn RowFilter>>,
    metrics: ExecutionPlanMetricsSet,
}

impl StoreSource {
    /// A source for `request` of so many partitions. `statistics` are those of the table with the predicates of
    /// `request`, without its limit.
    pub(super) fn new(
        table: Arc<TableSchema>,
        snapshot: Snapshot,
        request: ScanRequest,
        statistics: Statistics,
        partitions: usize,
    ) -> Self {
        let statistics = if snapshot.is_slot() {
            // Another run reads other rows.
            of_any_run(statistics)
        } else if request.predicates.is_empty() && request.limit.is_none() {
            statistics
        } else {
            let limit = request.limit.unwrap_or(usize::MAX);
            let mut statistics = statistics.to_inexact();
            statistics.num_rows = statistics.num_rows.map(|rows| rows.min(limit));
            statistics
        };
        let schema = output_schema(&table, &request);
        Self {
            table,
            snapshot,
            request,
            schema,
            row_ref_at: None,
            statistics: Arc::new(statistics),
            partitions,
            order: None,
            cuts: None,
            filters: Vec::new(),
            condition: None,
            row_filters: Vec::new(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same, whose rows have one of `keys` in output column `at` as soon as they are known; None where it cannot
    /// be: keys are integers; a limit, or a kept plan, is not of certain rows; tables of less than `min_rows` are read
    /// at once.
    pub(crate) fn with_dynamic_filter(&self, at: usize, keys: &Arc<RuntimeFilter>, min_rows: u64) -> Option<Self> {
        let Snapshot::Of(view) = &self.snapshot else { return None };
        let is_small = view.statistics_of(&[]).rows < min_rows;
        if is_small || self.order.is_some() || self.request.limit.is_some() {
            return None;
        }
        let id = self.column_at(at)?;
        self.table.column(id).filter(|column| has_narrow_integers(column.data_type))?;
        let mut source = self.clone();
        source.filters.push((id, keys.clone()));
        Some(source)
    }

    /// The same, whose rows are those that `condition` is true for, an expression over its output, with the output
    /// columns of `projection`, and at most `limit` of them. `None` where it cannot be: rows in order, a kept plan, a
    /// limit of its own, a condition on row references. How many rows there are is not estimated.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn with_condition(
        &self,
        condition: &Arc<dyn PhysicalExpr>,
        projection: Option<&[usize]>,
        limit: Option<usize>,
    ) -> Result<Option<Self>> {
        let is_plain = !self.snapshot.is_slot() && self.order.is_none() && self.request.limit.is_none();
        if !is_plain || !self.row_filters.is_empty() || self.request.zone_aggregates.is_some() {
            return Ok(None);
        }
        let filters = ExpressionFilter::conjuncts(condition, &self.schema, |at| self.column_at(at))?;
        let Some(filters) = filters else { return Ok(None) };
        let mut source = self.clone();
        source.row_filters = filters.into_iter().map(|filter| Arc::new(filter) as _).collect();
        source.condition = Some(condition.to_string());
        source.request.limit = limit;
        if let Some(projection) = projection {
            source.request.columns = projection.iter().filter_map(|at| self.column_at(*at)).collect();
            let refs = |at: &usize| self.request.row_refs && self.column_at(*at).is_none();
            source.row_ref_at = projection.iter().position(refs);
            source.request.row_refs = source.row_ref_at.is_some();
            source.schema = Arc::new(self.schema.project(projection)?);
        }
        let mut statistics = Statistics::new_unknown(&source.schema);
        let known = |at: usize| {
            let at = projection.map_or(Some(at), |projection| projection.get(at).copied())?;
            self.statistics.column_statistics.get(at)
        };
        for (at, column) in statistics.column_statistics.iter_mut().enumerate() {
            column.distinct_count = known(at).map_or(Precision::Absent, |known| known.distinct_count.to_inexact());
        }
        source.statistics = Arc::new(statistics);
        Ok(Some(source))
    }

    /// Whether output column `at` has at most `max` distinct values, by estimate.
    pub(crate) fn has_distinct(&self, at: usize, max: usize) -> bool {
        let column = self.statistics.column_statistics.get(at);
        column.and_then(|column| column.distinct_count.get_value()).is_some_and(|distinct| *distinct <= max)
    }

    /// Least and greatest value of output column `at`, an integer, in the rows that are merged, and how many rows the
    /// table has. Others may lie beyond.
    pub(crate) fn expected_integers(&self, at: usize) -> Option<(i64, i64, u64)> {
        let Snapshot::Of(view) = &self.snapshot else { return None };
        let known = view.statistics_of(&[self.column_at(at)?]);
        match known.columns.first()?.in_runs.as_ref()? {
            ValueRange { min: Value::Int(min), max: Value::Int(max), .. } => Some((*min, *max, known.rows)),
            _ => None,
        }
    }

    /// Whether it reads all rows of its table.
    pub(crate) fn reads_all(&self) -> bool {
        let has_filters = !self.filters.is_empty() || !self.row_filters.is_empty();
        self.request.predicates.is_empty() && self.request.limit.is_none() && !has_filters
    }

    /// The same with the row references as output column `at` instead of the last.
    pub(super) fn with_row_ref_at(mut self, at: usize) -> Self {
        self.row_ref_at = Some(at);
        let mut fields = self.schema.fields().to_vec();
        if let Some(field) = fields.pop() {
            fields.insert(at.min(fields.len()), field);
        }
        self.schema = Arc::new(Schema::new(fields));
        let mut statistics = Arc::unwrap_or_clone(self.statistics);
        if let Some(column) = statistics.column_statistics.pop() {
            statistics.column_statistics.insert(at.min(statistics.column_statistics.len()), column);
        }
        self.statistics = Arc::new(statistics);
        self
    }

    /// The rows to read, and what is asked of them.
    fn reads(&self) -> Result<(Arc<TableView>, Cow<'_, ScanRequest>)> {
        Ok(match &self.snapshot {
            Snapshot::Of(view) => (view.clone(), Cow::Borrowed(&self.request)),
            Snapshot::Slot(slot) => {
                let input = slot.bound()?;
                (input.view, Cow::Owned(self.request_for(input.predicates)))
            }
        })
    }

    /// The request with the predicates of a run.
    fn request_for(&self, predicates: Vec<Predicate>) -> ScanRequest {
        let (columns, zone_aggregates) = (self.request.columns.clone(), self.request.zone_aggregates.clone());
        ScanRequest { columns, predicates, forms: Vec::new(), zone_aggregates, ..self.request }
    }

    /// The rows of this run, if they were found already.
    fn found(&self) -> Result<Option<RecordBatch>> {
        let Snapshot::Slot(slot) = &self.snapshot else { return Ok(None) };
        let ScanInput { view, predicates, found } = slot.bound()?;
        let Some(found) = found else { return Ok(None) };
        let batch = view.scan_rows(&self.request_for(predicates), &found.rows);
        batch.map(Some).map_err(|e| DataFusionError::External(Box::new(e)))
    }

    fn scan(&self) -> Result<Arc<Scan>> {
        let (view, request) = self.reads()?;
        let filters: Vec<_> = self.filters.iter().map(|(id, keys)| (*id, keys.filter().clone())).collect();
        let filters = LiveFilters { keys: &filters, rows: &self.row_filters };
        let scan = view.filtered_scan(&request, filters).map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.count(scan.counts());
        Ok(scan)
    }

    fn ordered_scan(&self, partition: usize) -> Result<OrderedScan> {
        let (view, request) = self.reads()?;
        let scan = match &self.cuts {
            // From the cut before, up to the next one.
            Some(cuts) => {
                let from = partition.checked_sub(1).and_then(|before| cuts.get(before).copied());
                let by_whole_key = self.order.as_ref().is_some_and(|order| order.len() > 1);
                view.scan_range_in_order(&request, from, cuts.get(partition).copied(), by_whole_key)
            }
            None => view.scan_in_order(&request),
        };
        let scan = scan.map_err(|e| DataFusionError::External(Box::new(e)))?;
        let scan = scan.ok_or_else(|| DataFusionError::Internal("a view has lost its order".into()))?;
        self.count(scan.counts());
        Ok(scan)
    }

    fn count(&self, counts: ScanCounts) {
        if self.snapshot.is_slot() {
            return;
        }
        let count = |name, n| MetricBuilder::new(&self.metrics).global_counter(name).add(n);
        count("segments", counts.segments);
        count("segments_pruned", counts.segments_pruned);
        count("segments_enclosed", counts.segments_enclosed);
        if self.request.zone_aggregates.is_some() {
            count("segments_from_metadata", counts.segments_from_metadata);
            count("segments_on_codes", counts.segments_on_codes);
        }
    }

    /// The table's column that output column `at` is.
    fn column_at(&self, at: usize) -> Option<ColumnId> {
        let at = match self.row_ref_at {
            Some(refs) if at == refs => return None,
            Some(refs) if at > refs => at - 1,
            _ => at,
        };
        self.request.columns.get(at).copied()
    }

    /// Whether rows can be read in the order of the table's sort key.
    fn is_in_order(&self) -> bool {
        match &self.snapshot {
            Snapshot::Of(view) => view.has_order(),
            Snapshot::Slot(slot) => slot.bound().is_ok_and(|input| input.has_order()),
        }
    }

    /// Whether rows can be read in `order`, and all conditions are such that zone maps know of.
    fn has_order(&self, order: &[PhysicalSortExpr]) -> bool {
        let table = &self.table;
        let in_key = |predicate: &Predicate| table.sort_key.contains(&predicate.column());
        self.is_in_order() && self.request.predicates.iter().all(in_key) && self.key_begins_with(order)
    }

    /// Whether the sort key is in `order`: columns that equal a constant do not count.
    fn key_begins_with(&self, order: &[PhysicalSortExpr]) -> bool {
        let table = &self.table;
        let is_constant = |id: &ColumnId| {
            let equals =
                |p: &Predicate| matches!(p, Predicate::Compare { column, op: CompareOp::Eq, .. } if column == id);
            self.request.predicates.iter().any(equals)
        };
        let mut key = table.sort_key.iter();
        order.iter().all(|sort| {
            let id = sort.expr.downcast_ref::<Column>().and_then(|column| self.column_at(column.index()));
            let nullable = id.and_then(|id| table.column(id)).is_none_or(|column| column.nullable);
            let descends = sort.options.descending || (sort.options.nulls_first && nullable);
            let Some(id) = id.filter(|_| !descends) else { return false };
            is_constant(&id) || key.find(|next| **next == id || !is_constant(next)) == Some(&id)
        })
    }
}

fn output_schema(table: &TableSchema, request: &ScanRequest) -> SchemaRef {
    use arrow::datatypes::{DataType, Field};
    let mut fields: Vec<Field> = request
        .columns
        .iter()
        .filter_map(|id| table.column(*id))
        .map(|c| c.data_type.field(&c.name, c.nullable))
        .collect();
    if request.row_refs {
        fields.push(Field::new(ROW_REF_COLUMN, DataType::UInt64, false));
    }
    Arc::new(Schema::new(fields))
}

impl DataSource for StoreSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.open_with_args(OpenArgs::new(partition, context))
    }

    fn create_sibling_state(&self, _config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        // A kept plan has one partition, and would gather the scans of all its runs.
        let is_shared = !self.snapshot.is_slot();
        is_shared.then(|| Arc::new(Executions::<Arc<Scan>>::default()) as _)
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        let shared = args.sibling_state.and_then(|state| state.downcast::<Executions<Arc<Scan>>>().ok());
        let rows = match (self.found()?, &self.order, &shared, self.partitions) {
            (Some(batch), ..) => StoreRows::Found(Some(batch)),
            (None, Some(_), ..) => {
                let memory = MemoryConsumer::new("keys of a scan in key order").register(args.context.memory_pool());
                let scan = self.ordered_scan(args.partition)?;
                memory.try_resize(scan.memory())?;
                StoreRows::InOrder(Box::new(scan), memory)
            }
            (None, None, Some(executions), _) => {
                StoreRows::AsTheyCome(executions.join(args.partition, || self.scan())?.worker())
            }
            (None, None, None, 1) => StoreRows::AsTheyCome(self.scan()?.worker()),
            _ => return Err(DataFusionError::Internal("a shared scan was opened without its state".into())),
        };
        let metrics = self.metrics();
        let keys = self.filters.iter().map(|(_, keys)| keys.clone().wait());
        let waits = match (self.filters.is_empty(), self.partitions) {
            (true, 1) => None,
            (false, 1) => Some(join_all(keys).map(drop).boxed()),
            _ => Some(join_all(keys).then(|_| yields_once()).boxed()),
        };
        Ok(Box::pin(StoreStream {
            waits,
            rows,
            schema: self.schema.clone(),
            row_ref_at: self.row_ref_at,
            left: self.request.limit.unwrap_or(usize::MAX),
            metrics: BaselineMetrics::new(&metrics, args.partition),
            origins: Origins::new(&metrics, args.partition, !self.filters.is_empty(), !self.row_filters.is_empty()),
        }))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        write!(f, "table={}, columns=[{}]", self.table.name, names.join(", "))?;
        if !self.request.predicates.is_empty() {
            write!(f, ", predicates=[")?;
            for (at, predicate) in self.request.predicates.iter().enumerate() {
                let name = self.table.column(predicate.column()).map_or("?", |c| c.name.as_str());
                write!(f, "{}{}", if at == 0 { "" } else { ", " }, describe(name, predicate))?;
            }
            write!(f, "]")?;
        }
        for (form, shown) in [(Form::Codes, "codes"), (Form::Narrow, "narrow")] {
            let columns = self.request.forms.iter().filter(|(_, of)| *of == form);
            let name = |(id, _): &(ColumnId, Form)| self.table.column(*id).map_or("?", |column| column.name.as_str());
            let names: Vec<&str> = columns.map(name).collect();
            if !names.is_empty() {
                write!(f, ", {shown}=[{}]", names.join(", "))?;
            }
        }
        if let Some(limit) = self.request.limit {
            write!(f, ", limit={limit}")?;
        }
        if !self.filters.is_empty() {
            let name = |(id, _): &(ColumnId, _)| self.table.column(*id).map_or("?", |column| column.name.as_str());
            write!(f, ", dynamic_filters=[{}]", self.filters.iter().map(name).collect::<Vec<_>>().join(", "))?;
        }
        if let Some(condition) = &self.condition {
            write!(f, ", condition={condition}")?;
        }
        if let Some(order) = &self.order {
            let names: Vec<String> = order.iter().map(|sort| sort.expr.to_string()).collect();
            write!(f, ", order=[{}]", names.join(", "))?;
        }
        if let Some(cuts) = &self.cuts {
            write!(f, ", cuts={cuts:?}")?;
        }
        write!(f, ", partitions={}", self.partitions)
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        match &self.order {
            Some(order) => EquivalenceProperties::new_with_orderings(self.schema.clone(), [order.clone()]),
            None => EquivalenceProperties::new(self.schema.clone()),
        }
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn DataSource>>> {
        if !self.row_filters.is_empty() || !self.has_order(order) {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        if let Snapshot::Slot(slot) = &self.snapshot {
            slot.set_needs_order();
        }
        let source = Self { order: Some(order.to_vec()), partitions: 1, ..self.clone() };
        Ok(SortOrderPushdownResult::Exact { inner: Arc::new(source) })
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        Ok(match partition {
            Some(_) if self.partitions > 1 => Arc::new(Statistics::new_unknown(&self.schema)),
            _ => self.statistics.clone(),
        })
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        if self.request.zone_aggregates.is_some() {
            return None;
        }
        let mut source = self.clone();
        source.request.limit = match (self.request.limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(limit) = source.request.limit {
            let mut statistics = Arc::unwrap_or_clone(source.statistics).to_inexact();
            statistics.num_rows = statistics.num_rows.map(|rows| rows.min(limit));
            source.statistics = Arc::new(statistics);
        }
        Some(Arc::new(source))
    }

    fn fetch(&self) -> Option<usize> {
        self.request.limit
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        // The operator around it counts, too: run after run.
        if self.snapshot.is_slot() { ExecutionPlanMetricsSet::new() } else { self.metrics.clone() }
    }

    fn try_swapping_with_projection(&self, _projection: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

fn describe(name: &str, predicate: &Predicate) -> String {
    match predicate {
        Predicate::Compare { op, value, .. } => {
            let op = match op {
                CompareOp::Eq => "=",
                CompareOp::NotEq => "<>",
                CompareOp::Lt => "<",
                CompareOp::LtEq => "<=",
                CompareOp::Gt => ">",
                CompareOp::GtEq => ">=",
            };
            format!("{name} {op} {value:?}")
        }
        Predicate::In { values, .. } => format!("{name} IN {} values", values.len()),
        Predicate::IsNull { .. } => format!("{name} IS NULL"),
        Predicate::IsNotNull { .. } => format!("{name} IS NOT NULL"),
    }
}

/// Whether values are integers of at most 64 bits, or such with a point.
fn has_narrow_integers(data_type: ColumnType) -> bool {
    const DIGITS_MAX: u8 = 18;
    data_type.is_whole() || matches!(data_type, ColumnType::Decimal { precision, .. } if precision <= DIGITS_MAX)
}
