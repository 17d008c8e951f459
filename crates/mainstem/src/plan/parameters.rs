//! Parameters of a statement: which types they have, and the values bound to them.
//!
//! A parameter takes the type of its context: the column it is stored into, or what DataFusion infers where it is
//! compared or computed with. A value bound to it is fitted to that type if it can be without loss (text may spell any
//! type, doubles are rounded to REAL); else it keeps its own type, as a literal in its place would, unless no such
//! literal could stand there (42804). Where the context says nothing, the value's own type counts.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{self, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Statement as Ast};
use mainstem_postgres::cast::{assign, check_assignment};
use mainstem_postgres::types::field_type;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::row;
use mainstem_storage::schema::{Column, DataType, TableSchema};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::write::{explained, sources_of, table_of};
use crate::error::from_datafusion;
use crate::exec::{Environment, Parameter, Parameters, parameter_of};
use crate::provider::{Names, to_scalar};
use crate::sql::{Assignments, Insert, Statement, Target};
use crate::value::ValueRef;

/// What is known of a statement before it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    /// The type of each parameter, where the context or PREPARE tells it.
    pub(crate) types: Vec<Option<DataType>>,
    /// The columns of the rows it gives, if it gives any.
    pub(crate) columns: Option<SchemaRef>,
}

/// Looks at `statement`, which has `parameters` parameters; PREPARE declared the types of the first ones.
///
/// # Errors
/// Whatever is wrong with the statement, values aside.
pub(crate) fn describe(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    statement: &Statement,
    declared: &[DataType],
    parameters: usize,
) -> Result<Description> {
    let statement = match statement {
        Statement::Explain { statement, .. } => statement,
        statement => statement,
    };
    let mut types: Vec<Option<DataType>> = declared.iter().copied().map(Some).collect();
    types.resize(parameters.max(declared.len()), None);
    let names = env.settings.names();
    let (query, target) = explained(names, transaction, statement)?;
    let target = target.map(|table| transaction.view(table.id)).transpose()?;
    let mut plan = |parameters: Parameters| {
        env.with_parameters(&parameters, |env| env.plan(transaction, Ast::Query(query.clone()), target.clone()))
    };
    let untyped = plan(Parameters::default());
    stored_types(names, transaction, statement, &mut types)?;
    let arm = match statement {
        Statement::Insert(insert) if types.contains(&None) => update_arm(env, transaction, insert),
        _ => None,
    };
    let mut plan = |parameters: Parameters| {
        env.with_parameters(&parameters, |env| env.plan(transaction, Ast::Query(query.clone()), target.clone()))
    };
    let planned = if parameters == 0 {
        untyped?
    } else {
        if let Ok(untyped) = &untyped {
            inferred_types(untyped, &mut types)?;
        }
        if let Some(arm) = arm {
            inferred_types(&arm, &mut types)?;
        }
        let typed = Parameters::typed(&types);
        // A statement that no type of text fits is right or wrong without its parameters, or with numbers for them.
        let numbers = types.iter().map(|of_type| of_type.or(Some(DataType::BigInt))).collect::<Vec<_>>();
        plan(typed)
            .or(untyped)
            .or_else(|_| plan(Parameters((0..types.len()).map(|_| Parameter::Null).collect())))
            .or_else(|error| plan(Parameters::typed(&numbers)).map_err(|_| error))?
    };
    let columns = match statement {
        Statement::Query(_) | Statement::Lock(_) => Some(planned.schema().inner().clone()),
        Statement::Insert(insert) => returned(env, transaction, &insert.target, &types)?,
        Statement::Update(update) => returned(env, transaction, &update.target, &types)?,
        Statement::Delete(delete) => returned(env, transaction, &delete.target, &types)?,
        _ => None,
    };
    Ok(Description { types, columns })
}

/// The plan of the update arm of ON CONFLICT, if there is one; what is wrong with it shows when it runs.
fn update_arm(env: &mut Environment<'_>, transaction: &Transaction, insert: &Insert) -> Option<LogicalPlan> {
    let table = table_of(env.settings.names(), transaction, &insert.target.table).ok()?;
    let select = insert.update_arm(&table).ok()??;
    let target = transaction.view(table.id).ok()?;
    let parameters = Parameters::default();
    env.with_parameters(&parameters, |env| env.plan(transaction, Ast::Query(Box::new(select)), Some(target))).ok()
}

/// The columns of RETURNING.
fn returned(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    target: &Target,
    types: &[Option<DataType>],
) -> Result<Option<SchemaRef>> {
    if !target.gives_rows() {
        return Ok(None);
    }
    let table = table_of(env.settings.names(), transaction, &target.table)?;
    let Some(select) = target.returning(&table)? else { return Ok(None) };
    let typed = Parameters::typed(types);
    let plan = env.with_parameters(&typed, |env| env.plan(transaction, Ast::Query(Box::new(select)), None))?;
    Ok(Some(plan.schema().inner().clone()))
}

/// Types of the parameters that are stored into columns as they are; 42703 for columns that are not there.
fn stored_types(
    names: &Names,
    transaction: &Transaction,
    statement: &Statement,
    types: &mut [Option<DataType>],
) -> Result<()> {
    let mut store = |expr: &Expr, column: Option<&Column>| {
        if let (Some(slot), Some(column)) = (parameter_of(expr).and_then(|at| types.get_mut(at)), column) {
            slot.get_or_insert(column.data_type);
        }
    };
    match statement {
        Statement::Insert(insert) => {
            let table = table_of(names, transaction, &insert.target.table)?;
            insert.conflict_assignments().into_iter().flat_map(Assignments::iter).for_each(|(name, expr)| {
                store(expr, table.column_named(name));
            });
            sources_of(&table, &insert.columns, 0)?;
            match &*insert.source.body {
                SetExpr::Values(values) => {
                    for row in &values.rows {
                        row.content
                            .iter()
                            .enumerate()
                            .for_each(|(at, expr)| store(expr, stored_into(insert, &table, at)));
                    }
                }
                SetExpr::Select(select) => {
                    for (at, item) in select.projection.iter().enumerate() {
                        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                            store(expr, stored_into(insert, &table, at));
                        }
                    }
                }
                _ => {}
            }
        }
        Statement::Update(update) => {
            let table = table_of(names, transaction, &update.target.table)?;
            update.assignments.iter().for_each(|(name, expr)| store(expr, table.column_named(name)));
        }
        _ => {}
    }
    Ok(())
}

fn stored_into<'t>(insert: &Insert, table: &'t TableSchema, at: usize) -> Option<&'t Column> {
    match insert.columns.get(at) {
        Some(name) => table.column_named(name),
        None if insert.columns.is_empty() => table.columns.get(at),
        None => None,
    }
}

/// Types that DataFusion found for parameters; the first one counts.
fn inferred_types(plan: &LogicalPlan, types: &mut [Option<DataType>]) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let logical_expr::Expr::Placeholder(placeholder) = expr
                    && let Some(field) = &placeholder.field
                    && let Some(at) = placeholder.id.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
                    && let Some(slot) = at.checked_sub(1).and_then(|at| types.get_mut(at))
                    && slot.is_none()
                {
                    *slot = field_type(field);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|e| from_datafusion(&e))?;
    Ok(())
}

/// Binds `values` to parameters of the types that the context tells. The first `declared` of them were declared by
/// PREPARE: values are assigned to those, as to a column. `names` are those of the parameters, if they have any.
///
/// # Errors
/// 42804, 22P02, 22003 and others, with the number or name of the parameter.
pub(crate) fn bind(
    values: &[ValueRef<'_>],
    types: &[Option<DataType>],
    declared: usize,
    names: &[Box<str>],
) -> Result<Parameters> {
    let bind_one = |(at, value): (usize, &ValueRef<'_>)| {
        let context = types.get(at).copied().flatten();
        let bound = match context {
            Some(wanted) if at < declared => assigned(*value, wanted),
            Some(wanted) => fitted(*value, wanted),
            None => own(*value),
        };
        bound.map_err(|e| match names.get(at) {
            Some(name) => e.context(format_args!("parameter :{name}")),
            None => e.context(format_args!("parameter ${}", at + 1)),
        })
    };
    values.iter().enumerate().map(bind_one).collect::<Result<_>>().map(Parameters)
}

/// `value` as a value of its own type.
fn own(value: ValueRef<'_>) -> Result<Parameter> {
    let Some(data_type) = value.data_type() else { return Ok(Parameter::Null) };
    let scalar = to_scalar(&value.to_stored(), data_type)
        .ok_or_else(|| Error::internal(format!("a value that is not of its own type {data_type}")))?;
    Ok(Parameter::Bound(data_type, scalar))
}

#[derive(PartialEq, Eq)]
enum Class {
    Boolean,
    Number,
    Time,
    TimeOfDay,
    Text,
    Bytes,
    Uuid,
}

fn class(data_type: DataType) -> Class {
    match data_type {
        DataType::Boolean => Class::Boolean,
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Real
        | DataType::Double
        | DataType::Decimal { .. } => Class::Number,
        DataType::Date | DataType::Timestamp | DataType::TimestampTz => Class::Time,
        DataType::Time => Class::TimeOfDay,
        DataType::Text { .. } | DataType::Char { .. } => Class::Text,
        DataType::Bytea => Class::Bytes,
        DataType::Uuid => Class::Uuid,
    }
}

/// `value` where one of type `wanted` is expected.
fn fitted(value: ValueRef<'_>, wanted: DataType) -> Result<Parameter> {
    let whole = match value {
        ValueRef::SmallInt(v) => Some(i64::from(v)),
        ValueRef::Integer(v) => Some(i64::from(v)),
        ValueRef::BigInt(v) => Some(v),
        _ => None,
    };
    let fitting = match (wanted, whole, value) {
        (DataType::SmallInt, Some(v), _) => i16::try_from(v).ok().map(ValueRef::SmallInt),
        (DataType::Integer, Some(v), _) => i32::try_from(v).ok().map(ValueRef::Integer),
        (DataType::BigInt, Some(v), _) => Some(ValueRef::BigInt(v)),
        (DataType::Real, _, ValueRef::Double(v)) => {
            let rounded = v as f32;
            (rounded.is_finite() || !v.is_finite()).then_some(ValueRef::Real(rounded))
        }
        (DataType::Uuid, _, ValueRef::Bytes(v)) => <[u8; 16]>::try_from(v).ok().map(|v| ValueRef::Uuid(v.into())),
        (DataType::Char { .. }, _, ValueRef::Text(v)) => Some(ValueRef::Text(row::without_padding(v))),
        (DataType::Text { .. } | DataType::Char { .. }, _, _) => None,
        // With its own digits: those that the context has none of count.
        (DataType::Decimal { .. }, _, ValueRef::Text(v)) => match v.trim_ascii().parse() {
            Ok(number) => Some(ValueRef::Decimal(number)),
            Err(_) => return assigned(value, wanted),
        },
        (_, _, ValueRef::Text(_)) => return assigned(value, wanted),
        _ => None,
    };
    let (expected, found) = (class(wanted), fitting.unwrap_or(value).data_type());
    match found {
        Some(found) if expected != Class::Text && class(found) != expected => Err(Error::invalid(
            sqlstate::TYPE_MISMATCH,
            format!("a value of type {} was given where one of type {wanted} is expected", name_of(found)),
        )),
        _ => own(fitting.unwrap_or(value)),
    }
}

/// The name of a value's type; how long a decimal happens to be says nothing.
fn name_of(data_type: DataType) -> String {
    match data_type {
        DataType::Decimal { .. } => "decimal".into(),
        other => other.to_string(),
    }
}

/// `value` as a column of type `wanted` would take it.
fn assigned(value: ValueRef<'_>, wanted: DataType) -> Result<Parameter> {
    let value = match (wanted, value) {
        (DataType::Char { .. }, ValueRef::Text(text)) => ValueRef::Text(row::without_padding(text)),
        _ => value,
    };
    let Parameter::Bound(data_type, scalar) = own(value)? else {
        // Of a declared type it is, wherever it stands.
        let null = ScalarValue::try_new_null(&wanted.arrow()).map_err(|e| from_datafusion(&e))?;
        return Ok(Parameter::Bound(wanted, null));
    };
    if data_type == wanted {
        return Ok(Parameter::Bound(data_type, scalar));
    }
    let array: ArrayRef = match value {
        ValueRef::Text(text) => Arc::new(StringViewArray::from_iter_values([text])),
        _ => scalar.to_array().map_err(|e| from_datafusion(&e))?,
    };
    let column = Column::new(ColumnId(0), "", wanted, true);
    let array = assign(&array, &column).map_err(|e| {
        let given = match value {
            ValueRef::Text(text) => format!("\"{text}\""),
            _ => format!("a value of type {}", name_of(data_type)),
        };
        Error::invalid(e.sqlstate(), format!("{given} is no valid value of type {wanted}"))
    })?;
    let scalar = ScalarValue::try_from_array(&array, 0).map_err(|e| from_datafusion(&e))?;
    Ok(Parameter::Bound(wanted, scalar))
}

/// `value`, bound to a parameter that the context gives type `wanted`, as a write stores it in `column`.
///
/// # Errors
/// As [`bind`] and assignment.
pub(crate) fn stored_value(value: ValueRef<'_>, wanted: DataType, column: &Column) -> Result<row::Value> {
    let Parameter::Bound(data_type, scalar) = fitted(value, wanted)? else { return Ok(row::Value::Null) };
    // A bound value stands in the plan as a literal, which text may spell a value in.
    check_assignment(&data_type.arrow(), true, column)?;
    let array = scalar.to_array().map_err(|e| from_datafusion(&e))?;
    row::value_of(assign(&array, column)?.as_ref(), column.data_type, 0)
}

/// The value of type `wanted` that a text bound to a parameter of that type spells, if it is one.
pub(crate) fn parsed_value(value: ValueRef<'_>, wanted: DataType) -> Option<row::Value> {
    // A decimal would be rounded to the column's digits: compared with others it is another number then.
    if !matches!(value, ValueRef::Text(_)) || matches!(wanted, DataType::Text { .. } | DataType::Decimal { .. }) {
        return None;
    }
    let Parameter::Bound(data_type, scalar) = assigned(value, wanted).ok()? else { return None };
    let array = scalar.to_array().ok()?;
    (data_type == wanted).then(|| row::value_of(array.as_ref(), wanted, 0).ok()).flatten()
}

/// `value` in the storage form of `column`, converted as INSERT converts an expression.
///
/// # Errors
/// 42804, 22003 and others, with the name of the column.
pub(crate) fn assign_value(value: ValueRef<'_>, column: &Column) -> Result<row::Value> {
    let Parameter::Bound(data_type, scalar) = own(value)? else { return Ok(row::Value::Null) };
    check_assignment(&data_type.arrow(), false, column)?;
    let array = scalar.to_array().map_err(|e| from_datafusion(&e))?;
    row::value_of(assign(&array, column)?.as_ref(), column.data_type, 0)
}
