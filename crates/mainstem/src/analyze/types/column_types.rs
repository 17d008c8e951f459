//! Columns that come from several places: of VALUES lists, and of set operations.
//!
//! Comes in: a list or a UNION whose inputs have their types. Goes out: the same with one type a column, which the
//! values are cast to. It does not own which type that is ([`common`]).

use std::sync::Arc;

use arrow::datatypes::DataType;
use arrow::datatypes::TimeUnit::Nanosecond;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::logical_plan::{Union, Values};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use mainstem_storage::schema::DataType as ColumnType;

use super::bpchar::as_text;
use super::shared_type::{Purpose, cast_to_common, changes, common, is_decimal, is_double, written_decimal};

/// Whether coercion has nothing to do in `expr`: most VALUES are literals.
fn is_typed(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_typed(&cast.expr),
        Expr::Alias(alias) => is_typed(&alias.expr),
        _ => false,
    }
}

/// The list with one type a column, its expressions coerced.
///
/// # Errors
/// Those of coercion.
pub(super) fn typed_values(Values { schema, mut values }: Values) -> Result<LogicalPlan> {
    let nothing = DFSchema::empty();
    let unsettled = |field: &DataType| is_decimal(field) || matches!(field, DataType::Timestamp(Nanosecond, _));
    for (at, field) in schema.fields().iter().enumerate().filter(|(_, field)| unsettled(field.data_type())) {
        // The planner has cast the cells of a column to the type that it found for it.
        let mut cells: Vec<&mut Expr> = values.iter_mut().filter_map(|row| row.get_mut(at)).collect();
        let inner = |cell: &Expr| match cell {
            Expr::Cast(cast) if cast.field.data_type() == field.data_type() => cast.expr.get_type(&nothing).ok(),
            other => other.get_type(&nothing).ok(),
        };
        let types: Vec<DataType> = cells.iter().filter_map(|cell| inner(cell)).collect();
        let doubles = types.iter().any(is_double) && !types.iter().all(is_double);
        for cell in cells.iter_mut().filter(|_| is_decimal(field.data_type()) && !doubles) {
            if let Expr::Cast(cast) = &**cell
                && cast.field.data_type() == field.data_type()
                && let Some(decimal) = written_decimal(&cast.expr)
            {
                **cell = decimal;
            }
        }
        let is_one = types.contains(&DataType::Float64);
        let wanted = match doubles {
            true if is_one => Some(DataType::Float64),
            true => Some(DataType::Float32),
            false => common(types.iter(), Purpose::Column),
        };
        if let Some(wanted) = wanted {
            for cell in &mut cells {
                **cell = match std::mem::take(*cell) {
                    Expr::Cast(cast) if cast.field.data_type() == field.data_type() => {
                        cast_to_common(*cast.expr, &wanted)
                    }
                    other => cast_to_common(other, &wanted),
                };
            }
        }
    }
    let untyped = values.iter().flatten().any(|cell| !is_typed(cell));
    let coerce = |expr: Expr| match untyped {
        true => expr.rewrite(&mut TypeCoercionRewriter::new(&nothing)).map(|coerced| coerced.data),
        false => Ok(expr),
    };
    let rows = values.into_iter().map(|row| row.into_iter().map(coerce).collect::<Result<Vec<_>>>());
    LogicalPlanBuilder::values(rows.collect::<Result<Vec<_>>>()?)?.build()
}

/// `union` of inputs whose columns have one type, where it is for us to say which.
///
/// # Errors
/// Internal.
pub(super) fn typed_union(union: Union) -> Result<LogicalPlan> {
    let columns = union.schema.fields().len();
    let type_of = |input: &Arc<LogicalPlan>, at: usize| {
        input.schema().fields().get(at).map_or(DataType::Null, |field| field.data_type().clone())
    };
    // A union of unions has no type yet but that of its first input: one beside doubles is told here.
    let doubles = |types: &[DataType]| {
        let is_mixed = types.iter().any(is_double) && types.iter().any(|t| t.is_integer());
        let is_one = types.contains(&DataType::Float64);
        is_mixed.then_some(if is_one { DataType::Float64 } else { DataType::Float32 })
    };
    let wanted: Vec<Option<DataType>> = (0..columns)
        .map(|at| {
            let types: Vec<DataType> = union.inputs.iter().map(|input| type_of(input, at)).collect();
            common(types.iter(), Purpose::Column).or_else(|| doubles(&types))
        })
        .collect();
    // CHAR(n) beside another text is text: DataFusion would keep the mark of the one.
    let chars_of = |input: &Arc<LogicalPlan>, at: usize| {
        input.schema().fields().get(at).and_then(|field| ColumnType::chars_of(field))
    };
    let chars: Vec<Option<u32>> = (0..columns)
        .map(|at| {
            let first = chars_of(union.inputs.first()?, at)?;
            union.inputs.iter().all(|input| chars_of(input, at) == Some(first)).then_some(first)
        })
        .collect();
    let loses_mark = |at: usize, input: &Arc<LogicalPlan>| {
        chars.get(at).is_some_and(Option::is_none) && chars_of(input, at).is_some()
    };
    let is_unmarked = union.inputs.iter().any(|input| (0..columns).any(|at| loses_mark(at, input)));
    if !is_unmarked && wanted.iter().all(Option::is_none) {
        return Ok(LogicalPlan::Union(union));
    }
    let inputs = union.inputs.iter().map(|input| {
        let items = input.schema().iter().zip(&wanted).enumerate().map(|(at, ((relation, field), wanted))| {
            let column = Expr::Column(Column::new(relation.cloned(), field.name()));
            if loses_mark(at, input) {
                return as_text(column).alias_qualified(relation.cloned(), field.name());
            }
            match wanted.as_ref().filter(|wanted| changes(field.data_type(), wanted)) {
                Some(wanted) => cast_to_common(column, wanted).alias_qualified(relation.cloned(), field.name()),
                None => column,
            }
        });
        let items = items.collect::<Vec<_>>();
        LogicalPlanBuilder::from((**input).clone()).project(items)?.build().map(Arc::new)
    });
    Union::try_new_with_loose_types(inputs.collect::<Result<Vec<_>>>()?).map(LogicalPlan::Union)
}
