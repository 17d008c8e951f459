//! Types of the columns that CREATE TABLE AS makes of decimals.
//!
//! A computed decimal has the digits that its values can have, and no more: `SELECT 1.5 AS w` is a NUMERIC(2,1), into
//! which 2.75 would be rounded later. PostgreSQL's computed columns are NUMERIC without a precision. So a column that
//! is not a column of a table, or a cast, gets [`DIGITS`] digits, of which as many stand behind the point as in the
//! expression; if nothing but literals is in it, at least those of a cast to NUMERIC without a precision.
//!
//! Comes in: the query's plan, as it is before the optimizer has seen it. It does not own: what the types of
//! expressions are.

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use mainstem_storage::schema::DataType;

use crate::analyze::decimal_of;

/// Digits of any decimal.
const DIGITS: u8 = 38;
/// Digits behind the point of a cast to NUMERIC without a precision.
const PLAIN_SCALE: u8 = 10;

/// Where a column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It has a type of its own: it is a column of a table, or a cast.
    Declared,
    /// Computed of columns.
    Computed,
    /// Computed of literals alone.
    Literals,
}

impl Origin {
    /// Of a column that comes from both.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Computed, _) | (_, Self::Computed) => Self::Computed,
            // A declared column beside a literal.
            _ => Self::Computed,
        }
    }
}

/// The type that the column at `at` of `plan`, of type `data_type` there, has in a table.
pub(super) fn widened(plan: &LogicalPlan, at: usize, data_type: DataType) -> DataType {
    let DataType::Decimal { precision, scale } = data_type else { return data_type };
    let before = precision.saturating_sub(scale.unsigned_abs());
    let wanted = match origin(plan, at) {
        Origin::Declared => return data_type,
        Origin::Computed => scale.unsigned_abs(),
        Origin::Literals => scale.unsigned_abs().max(PLAIN_SCALE.min(DIGITS.saturating_sub(before))),
    };
    DataType::Decimal { precision: DIGITS, scale: i8::try_from(wanted).unwrap_or(scale) }
}

fn origin(plan: &LogicalPlan, at: usize) -> Origin {
    match plan {
        LogicalPlan::TableScan(_) => Origin::Declared,
        LogicalPlan::Projection(projection) => {
            projection.expr.get(at).map_or(Origin::Computed, |expr| origin_of(expr, &projection.input))
        }
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(_)] => Origin::Computed,
            keys => match keys.get(at) {
                Some(key) => origin_of(key, &aggregate.input),
                None => aggregate
                    .aggr_expr
                    .get(at.saturating_sub(keys.len()))
                    .map_or(Origin::Computed, |expr| origin_of(expr, &aggregate.input)),
            },
        },
        LogicalPlan::Window(window) => match at.checked_sub(window.input.schema().fields().len()) {
            None => origin(&window.input, at),
            Some(_) => Origin::Computed,
        },
        LogicalPlan::Join(join) => match at.checked_sub(join.left.schema().fields().len()) {
            None => origin(&join.left, at),
            Some(behind) => origin(&join.right, behind),
        },
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| {
                let same = type_at(input.schema(), at) == type_at(&union.schema, at);
                // Of two declared types, neither is that of both.
                match origin(input, at) {
                    Origin::Declared if !same => Origin::Computed,
                    origin => origin,
                }
            });
            inputs.reduce(Origin::or).unwrap_or(Origin::Computed)
        }
        LogicalPlan::Values(values) => {
            let cells = values.values.iter().filter_map(|row| row.get(at));
            cells.map(origin_of_cell).reduce(Origin::or).unwrap_or(Origin::Computed)
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Distinct(_) => match plan.inputs().as_slice() {
            [input] if input.schema().fields().len() == plan.schema().fields().len() => origin(input, at),
            _ => Origin::Computed,
        },
        _ => Origin::Computed,
    }
}

fn type_at(schema: &DFSchema, at: usize) -> Option<&ArrowType> {
    schema.fields().get(at).map(|field| field.data_type())
}

/// Where the value of `expr` over the rows of `input` comes from.
fn origin_of(expr: &Expr, input: &LogicalPlan) -> Origin {
    match expr {
        Expr::Alias(alias) => origin_of(&alias.expr, input),
        Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
            Some(at) => origin(input, at),
            None => Origin::Computed,
        },
        // A literal that is cast to the digits that it is written with: NUMERIC without a precision.
        Expr::Cast(cast) if is_written(cast.field.data_type(), &cast.expr) => Origin::Literals,
        Expr::Cast(_) | Expr::TryCast(_) => Origin::Declared,
        other => {
            let reads = other.exists(|expr| {
                Ok(matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)))
            });
            if reads.unwrap_or(true) { Origin::Computed } else { Origin::Literals }
        }
    }
}

/// Where a cell of VALUES comes from. The planner casts literals to the type of the list; a cast that is written is
/// there twice (`analyze`).
fn origin_of_cell(cell: &Expr) -> Origin {
    match cell {
        Expr::Cast(outer) => match &*outer.expr {
            Expr::Literal(..) => Origin::Literals,
            Expr::Cast(inner) if matches!(&*inner.expr, Expr::Cast(_)) => origin_of_cell(&outer.expr),
            Expr::Cast(inner) if is_written(inner.field.data_type(), &inner.expr) => Origin::Literals,
            _ => Origin::Declared,
        },
        _ => Origin::Literals,
    }
}

/// Whether `data_type` has the digits with which `literal` is written, if it is one.
fn is_written(data_type: &ArrowType, literal: &Expr) -> bool {
    let Expr::Literal(scalar, _) = literal else { return false };
    let written = match scalar {
        ScalarValue::Int64(Some(number)) => decimal_of(&number.to_string()),
        ScalarValue::Decimal128(..) => scalar.data_type(),
        text => match text.try_as_str().flatten() {
            Some(text) => decimal_of(text),
            None => return false,
        },
    };
    written == *data_type
}
