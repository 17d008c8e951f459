//! A user's table at one snapshot.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use mainstem_postgres::registry::may_fail;
use mainstem_storage::ids::{ColumnId, TableId};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::version::TableView;

use super::estimate::Estimates;
use super::filter::translate;
use super::scan_slot::ScanSlot;
use super::source::{Snapshot, StoreSource, partitions};
use super::statistics::{some_rows, statistics};
use crate::optimize::unanalysed;
use crate::sql::ROW_REF;

/// A table of schema `public`. Without a view it can be described, not read.
#[derive(Clone, Debug)]
pub(crate) struct UserTable {
    table: Arc<TableSchema>,
    view: Option<Arc<TableView>>,
    arrow: SchemaRef,
    row_refs: bool,
    /// What a scan of a kept physical plan reads, instead of the view.
    slot: Option<Arc<ScanSlot>>,
}

impl UserTable {
    /// The table as queries see it.
    pub(crate) fn new(table: Arc<TableSchema>, view: Option<Arc<TableView>>) -> Self {
        let arrow = table.arrow();
        Self { table, view, arrow, row_refs: false, slot: None }
    }

    /// The table as the target of a write: with a last column of row references.
    pub(crate) fn with_row_refs(view: Arc<TableView>) -> Self {
        let table = view.schema().clone();
        let mut fields = table.arrow().fields().to_vec();
        fields.push(Arc::new(Field::new(ROW_REF, ArrowType::UInt64, false)));
        Self { table, view: Some(view), arrow: Arc::new(Schema::new(fields)), row_refs: true, slot: None }
    }

    /// Its definition.
    pub(crate) fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    pub(crate) fn id(&self) -> TableId {
        self.table.id
    }

    /// Its rows, if it has a snapshot; those that were found already, if it is scanned with such.
    pub(crate) fn rows(&self) -> Option<u64> {
        if let Some(found) = self.slot.as_ref().and_then(|slot| slot.found()) {
            return u64::try_from(found).ok();
        }
        self.view.as_ref().map(|view| view.statistics_of(&[]).rows)
    }

    /// The same table without a snapshot.
    pub(crate) fn without_view(&self) -> Self {
        Self { view: None, ..self.clone() }
    }

    /// The same table at `view`.
    pub(crate) fn at(&self, view: Arc<TableView>) -> Self {
        Self { view: Some(view), ..self.clone() }
    }

    /// The same table, to be scanned with the predicates of `slot`.
    pub(crate) fn in_slot(&self, slot: Arc<ScanSlot>) -> Self {
        Self { slot: Some(slot), ..self.clone() }
    }

    /// The predicates of the store that mean what `filter` does, if there are.
    pub(crate) fn predicates(&self, filter: &Expr) -> Option<Vec<Predicate>> {
        translate(filter, &self.table)
    }

    /// What those of `filters` leave that the store evaluates, with estimates of `columns`, and the other filters;
    /// `None` without a snapshot.
    pub(crate) fn estimates<'a>(
        &self,
        columns: &[ColumnId],
        filters: &'a [Expr],
    ) -> Option<(Estimates, Vec<&'a Expr>)> {
        let view = self.view.as_ref()?;
        let (mut predicates, mut others) = (Vec::new(), Vec::new());
        for filter in filters {
            match translate(filter, &self.table) {
                Some(translated) => predicates.extend(translated),
                None => others.push(filter),
            }
        }
        let known = view.statistics_of(&with_columns_of(columns, &predicates));
        Some((Estimates::of(&self.table, &known, &predicates), others))
    }
}

#[async_trait]
impl TableProvider for UserTable {
    fn schema(&self) -> SchemaRef {
        self.arrow.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| {
            Ok(match translate(filter, &self.table) {
                Some(_) => TableProviderFilterPushDown::Exact,
                // Its value is known when the plan is run: a scan evaluates what is no predicate of the store.
                None if has_parameter(filter) && !self.may_fail(filter)? => TableProviderFilterPushDown::Exact,
                None => TableProviderFilterPushDown::Unsupported,
            })
        };
        filters.iter().map(support).collect()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.arrow.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let (mut predicates, mut others) = (Vec::new(), Vec::new());
        if let Some(slot) = &self.slot {
            predicates = slot.bound()?.predicates;
        }
        for filter in filters {
            match translate(filter, &self.table) {
                Some(translated) => predicates.extend(translated),
                None => others.push(filter.clone()),
            }
        }
        match conjunction(others) {
            None => self.source(state, projection, predicates, limit),
            Some(filter) => self.filtered(state, projection, predicates, filter),
        }
    }
}

impl UserTable {
    /// Whether `filter` may end in an error: in a scan it would be evaluated for rows that others keep away from it.
    fn may_fail(&self, filter: &Expr) -> Result<bool> {
        let schema = DFSchema::try_from(self.arrow.clone())?;
        Ok(may_fail(&unnormalize_col(filter.clone()), &schema))
    }

    /// The rows that fulfil `predicates` and `filter`, which the store does not know any more: the optimizer rewrites
    /// filters that it has pushed down.
    fn filtered(
        &self,
        state: &dyn Session,
        projection: &[usize],
        predicates: Vec<Predicate>,
        filter: Expr,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut read = projection.to_vec();
        for column in filter.column_refs() {
            let at = self.arrow.index_of(&column.name)?;
            if !read.contains(&at) {
                read.push(at);
            }
        }
        let source = self.source(state, &read, predicates, None)?;
        let schema = DFSchema::try_from(source.schema())?;
        let filter = state.create_physical_expr(unanalysed(filter, &schema), &schema)?;
        let filter = FilterExecBuilder::new(filter, source);
        Ok(Arc::new(filter.apply_projection(Some((0..projection.len()).collect()))?.build()?))
    }

    fn source(
        &self,
        state: &dyn Session,
        projection: &[usize],
        predicates: Vec<Predicate>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let view = self.view.clone().ok_or_else(|| {
            DataFusionError::Internal(format!("no snapshot of table \"{}\" was taken", self.table.name))
        })?;
        let row_ref_at = self.table.columns.len();
        let row_refs = self.row_refs && projection.contains(&row_ref_at);
        // The store puts row references last; the order asked for is restored by the source.
        let columns = projection
            .iter()
            .filter(|at| **at != row_ref_at)
            .filter_map(|at| self.table.columns.get(*at).map(|c| c.id))
            .collect::<Vec<_>>();
        let found = self.slot.as_ref().and_then(|slot| slot.found());
        let width = columns.len() + usize::from(row_refs);
        let (stored, rows) = if names_one_row(&self.table, &predicates) {
            // Asked for nothing else: counting the rows of a large table costs more than finding one.
            (some_rows(1, width), 1)
        } else if let Some(found) = found {
            (some_rows(found, width), found)
        } else {
            let known = view.statistics_of(&with_columns_of(&columns, &predicates));
            let rows = usize::try_from(known.rows).unwrap_or(usize::MAX);
            (statistics(&self.table, &known, &columns, &predicates, row_refs), rows)
        };
        let batch_rows = state.config().batch_size();
        let request = ScanRequest { predicates, limit, row_refs, batch_rows, ..ScanRequest::all(columns) };
        let snapshot = match &self.slot {
            Some(slot) => Snapshot::Slot(slot.clone()),
            None => Snapshot::Of(view),
        };
        let partitions = partitions(rows, state.config().target_partitions());
        let source = StoreSource::new(self.table.clone(), snapshot, request, stored, partitions);
        let row_ref_out = projection.iter().position(|at| *at == row_ref_at).filter(|_| row_refs);
        let source = match row_ref_out {
            Some(at) if at + 1 != projection.len() => source.with_row_ref_at(at),
            _ => source,
        };
        Ok(DataSourceExec::from_data_source(source))
    }
}

/// `columns`, and those that `predicates` are about.
fn with_columns_of(columns: &[ColumnId], predicates: &[Predicate]) -> Vec<ColumnId> {
    let mut all = columns.to_vec();
    for predicate in predicates {
        if !all.contains(&predicate.column()) {
            all.push(predicate.column());
        }
    }
    all
}

fn has_parameter(filter: &Expr) -> bool {
    filter.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).unwrap_or_default()
}

/// Whether every column of a key is asked to equal a constant.
fn names_one_row(table: &TableSchema, predicates: &[Predicate]) -> bool {
    let fixed = |key: &ColumnId| {
        predicates.iter().any(|p| matches!(p, Predicate::Compare { column, op: CompareOp::Eq, .. } if column == key))
    };
    table.keys().any(|(_, columns)| columns.iter().all(fixed))
}
