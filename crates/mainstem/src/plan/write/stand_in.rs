//! Rows in hand in place of the tables of a planned SELECT.
//!
//! RETURNING and the update arm of ON CONFLICT are planned as SELECTs from the tables that they name, so that names are
//! resolved by the same rules as everywhere; then the tables are taken out, and the rows of the write put in.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Subquery};
use mainstem_storage::Result;

use crate::error::from_datafusion;
use crate::plan::row_wise::tables_of;

/// Name of the table of rows in hand.
const IN_HAND: &str = "rows_in_hand";

/// The columns of a SELECT's tables that it uses.
#[derive(Debug)]
pub(super) struct StandIn {
    columns: Vec<(Column, FieldRef)>,
}

impl StandIn {
    /// What `plan`, a projection of rows that may be filtered, uses of its tables.
    ///
    /// # Errors
    /// 42803, 42P20, 0A000 when it is more than that; `clause` is what is named then.
    pub(super) fn of(plan: &LogicalPlan, clause: &str) -> Result<Self> {
        let tables = tables_of(plan, clause)?.schema().clone();
        let mut used: Vec<Column> = Vec::new();
        let mut above = plan;
        while let LogicalPlan::Projection(_) | LogicalPlan::Filter(_) = above {
            above.apply_expressions(|expr| note_columns(expr, &mut used)).map_err(|e| from_datafusion(&e))?;
            let [below] = above.inputs()[..] else { break };
            above = below;
        }
        let mut columns: Vec<(Column, FieldRef)> = Vec::with_capacity(used.len());
        for (qualifier, field) in tables.iter() {
            let column = Column::new(qualifier.cloned(), field.name());
            if used.contains(&column) {
                columns.push((column, field.clone()));
            }
        }
        if columns.is_empty() {
            // A table needs a column to have rows.
            columns
                .extend(tables.iter().next().map(|(q, field)| (Column::new(q.cloned(), field.name()), field.clone())));
        }
        Ok(Self { columns })
    }

    /// The columns, as the SELECT names them.
    pub(super) fn columns(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.columns.iter().map(|(column, _)| column)
    }

    /// Schema of the rows in hand: a position as the name of each column.
    fn schema(&self) -> SchemaRef {
        let field = |(at, (_, field)): (usize, &(Column, FieldRef))| {
            let named = Field::new(at.to_string(), field.data_type().clone(), true);
            named.with_metadata(field.metadata().clone())
        };
        Arc::new(Schema::new(self.columns.iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    /// Rows in hand: values of [`StandIn::columns`].
    pub(super) fn batch(&self, values: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema(), values, &options)?)
    }

    /// `plan`, the one this was made of, over `rows`.
    pub(super) fn plan(&self, plan: &LogicalPlan, rows: Vec<RecordBatch>) -> Result<LogicalPlan> {
        let input = self.scan(rows).map_err(|e| from_datafusion(&e))?;
        replaced(plan, input).map_err(|e| from_datafusion(&e))
    }

    fn scan(&self, rows: Vec<RecordBatch>) -> Result<LogicalPlan, DataFusionError> {
        let table = MemTable::try_new(self.schema(), vec![rows])?;
        let named = self.columns.iter().enumerate().map(|(at, (column, _))| {
            let value = Expr::Column(Column::new(Some(IN_HAND), at.to_string()));
            value.alias_qualified(column.relation.clone(), &column.name)
        });
        LogicalPlanBuilder::scan(IN_HAND, provider_as_source(Arc::new(table)), None)?.project(named)?.build()
    }
}

/// Adds the columns that `expr` reads to `used`.
fn note_columns(expr: &Expr, used: &mut Vec<Column>) -> Result<TreeNodeRecursion, DataFusionError> {
    let mut note = |column: &Column| {
        if !used.contains(column) {
            used.push(column.clone());
        }
    };
    expr.apply(|expr| {
        match expr {
            Expr::Column(column) => note(column),
            Expr::ScalarSubquery(subquery)
            | Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. }) => outer_columns(subquery).for_each(&mut note),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })
}

fn outer_columns(subquery: &Subquery) -> impl Iterator<Item = &Column> {
    subquery.outer_ref_columns.iter().filter_map(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => Some(column),
        _ => None,
    })
}

/// `plan` with its tables replaced by `input`.
fn replaced(plan: &LogicalPlan, input: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    Ok(match plan {
        LogicalPlan::Projection(projection) => {
            let input = replaced(&projection.input, input)?;
            LogicalPlan::Projection(Projection::try_new(projection.expr.clone(), Arc::new(input))?)
        }
        LogicalPlan::Filter(filter) => {
            let input = replaced(&filter.input, input)?;
            LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(input))?)
        }
        _ => input,
    })
}
