//! New values of rows of a table: whether they can be assigned, and as its columns have them.

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan};
use mainstem_postgres::cast::{assign, check_assignment};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Identity, TableSchema};
use mainstem_storage::{Error, Result};

use crate::error::from_datafusion;
use crate::exec::{Parameter, Parameters, parameter_of};
use crate::plan::columns::literal_columns;
use crate::sql::{Assignments, is_default};

/// Checks that each value of a SELECT of references and new values can be assigned to its column.
pub(super) fn check_assigned(plan: &LogicalPlan, table: &TableSchema) -> Result<()> {
    let literals = literal_columns(plan);
    for (at, column) in (1..).zip(&table.columns) {
        let is_literal = literals.get(at).copied().unwrap_or(false);
        check_assignment(plan.schema().field(at).data_type(), is_literal, column)?;
        // A constant that is no value of the column's type is wrong, whether or not a row gets it.
        if let Some(constant) = constant_of(plan, at) {
            assign(&constant.to_array().map_err(|e| from_datafusion(&e))?, column)?;
        }
    }
    Ok(())
}

/// The same of the values that `assignments` give as they are, where a plan has parameters in their places.
pub(super) fn check_parameters(assignments: &Assignments, table: &TableSchema, parameters: &Parameters) -> Result<()> {
    for (name, value) in assignments.iter() {
        let column = table.columns.iter().find(|column| column.name == *name);
        if let (Some(column), Some(at)) = (column, parameter_of(value))
            && let Some(Parameter::Bound(_, value)) = parameters.0.get(at)
        {
            assign(&value.to_array().map_err(|e| from_datafusion(&e))?, column)?;
        }
    }
    Ok(())
}

/// The literal that column `at` of `plan` is.
fn constant_of(plan: &LogicalPlan, at: usize) -> Option<&ScalarValue> {
    match plan {
        LogicalPlan::Sort(sort) => constant_of(&sort.input, at),
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(at)?;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            match expr {
                Expr::Literal(scalar, _) => Some(scalar),
                Expr::Column(column) => {
                    constant_of(&projection.input, projection.input.schema().maybe_index_of_column(column)?)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Values of all columns of `table`: the columns of `batch` behind the first, which is a reference.
pub(super) fn assigned(table: &TableSchema, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let values = batch.columns().iter().skip(1).take(table.columns.len());
    let values = table.columns.iter().zip(values).map(|(column, array)| assign(array, column));
    let values = values.collect::<Result<Vec<_>>>()?;
    if values.len() < table.columns.len() {
        return Err(Error::internal("a write lost a column"));
    }
    Ok(values)
}

/// The identity columns, by position, that `assignments` set to DEFAULT: their next number.
///
/// # Errors
/// 428C9 for another value of a column that only the engine fills.
pub(super) fn counted_by(assignments: &Assignments, table: &TableSchema) -> Result<Vec<usize>> {
    let mut counted = Vec::new();
    for (name, value) in assignments.iter() {
        let Some((at, column)) = table.columns.iter().enumerate().find(|(_, column)| column.name == *name) else {
            continue;
        };
        match column.identity {
            Some(_) if is_default(value) => counted.push(at),
            Some(Identity { always: true, .. }) => {
                return Err(Error::invalid(
                    sqlstate::GENERATED_ALWAYS,
                    format!("column \"{name}\" can only be updated to DEFAULT: it is an identity column"),
                ));
            }
            _ => {}
        }
    }
    Ok(counted)
}
