//! Types that DataFusion's coercion settles otherwise than SQL does.
//!
//! - **DECIMAL beside REAL or DOUBLE PRECISION** is a double, in comparisons, IN, BETWEEN, CASE, COALESCE and the like,
//!   USING, set operations, ANY and ALL, ARRAY and VALUES: DataFusion makes both a DECIMAL with 15 digits behind the
//!   point, which 1e300 overflows, and in which 1e-20 is nothing. Beside REALs alone it is a REAL where values get one
//!   type, a double where they are compared.
//! - **Integers beside REAL** are compared as doubles, for a REAL has seven digits. Arithmetic is done as SQL does it
//!   (`arithmetic`).
//! - **Texts beside DECIMAL** spell decimals with digits of their own, which DataFusion rounds to those of the others:
//!   1.50 would equal `'1.499'`.
//! - **Dates, timestamps and texts beside one another** are microseconds, in the same places: DataFusion makes them
//!   nanoseconds, which end in 2262.
//! - **VALUES lists** have one type a column. DataFusion settles it when SQL becomes a plan, before it coerces the
//!   types of the expressions in the list, and does not look again: a CASE whose arms differ ends with another type
//!   than the list says, which fails when it runs.
//! - **Literals**: a number, or a text that spells one, that is cast to NUMERIC has the digits that are written.
//!   `X'00'` has a type that does not go with that of BYTEA columns, and `1e300` is a decimal out of any range.
//! - **Casts to VARCHAR(n)** cut the text. Text has one type in plans, so that the cast becomes a call of `substr`.
//!
//! 1. In the statement's tree ([`type_literals`]): literals of bytes and of numbers beyond decimals become casts, casts
//!    to VARCHAR(n) calls, `= ANY (ARRAY[...])` IN, arrays that may read columns of an outer query calls too; casts to
//!    CHAR(n) in VALUES lose their mark, which not all of its rows have.
//! 2. Before type coercion ([`coerced_types`]), bottom up: decimals beside doubles, and datetimes, are cast; the rows
//!    of a VALUES list are coerced, and the list is typed anew. A subquery comes after the inputs of the plan that it
//!    stands in, whose columns it may refer to: such a reference carries a type of its own.
//!
//! It does not own: whether a value fits the column it is assigned to (`plan`).

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, SetComparison};
use datafusion::logical_expr::logical_plan::{Join, Subquery};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator};
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CharacterLength, DataType as SqlType, ExactNumberInfo, Expr as SqlExpr, Query, SetExpr,
    Statement, TimezoneInfo, TypedString, UnaryOperator, Value, ValueWithSpan, Values as SqlValues, VisitorMut,
};
use mainstem_postgres::function::ROUNDED_SECONDS;
use mainstem_postgres::types::{is_datetime, without_exponent};
use mainstem_storage::schema::DataType as ColumnType;

use super::arithmetic::as_float_operation;
use super::column_types::{typed_union, typed_values};
use super::datetime_operators::{interval_order, measure, measured};
use super::shared_type::{MAKE_ARRAY, Purpose, cast_to_common, changes, common, is_decimal, widen};
use crate::analyze::ast::expr::{bare, call, called, cast};
use crate::analyze::ast::set_returning::reads_columns;
use crate::analyze::plan_walk::{rewrite_inputs, rewrite_node};
use crate::walk::walk_mut;

/// Most characters of a VARCHAR(n).
const VARCHAR_CHARS_MAX: u64 = 10_485_760;
/// Most digits of a decimal, before and behind the point.
const DECIMAL_DIGITS_MAX: i64 = 38;

/// Gives literals and casts of `statement` that DataFusion types otherwise the types that SQL gives them.
pub(crate) fn type_literals(statement: &mut Statement) {
    let ControlFlow::Continue(()) = walk_mut(statement, &mut Literals { queries: 0 });
}

struct Literals {
    /// How many outer queries there are.
    queries: usize,
}

impl VisitorMut for Literals {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        if let SetExpr::Values(values) = &mut *query.body {
            datetimes_of_columns(values);
            for cell in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
                let SqlExpr::Cast { data_type, .. } = bare(cell) else { continue };
                let again = match data_type {
                    SqlType::Char(_) | SqlType::Character(_) => SqlType::Text,
                    // So that it is told from a cast that the planner adds.
                    SqlType::Decimal(_) | SqlType::Numeric(_) | SqlType::Dec(_) => data_type.clone(),
                    _ => continue,
                };
                *cell = cast(cell.clone(), again);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        if let Some(listed) = listed(expr) {
            *expr = listed;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        match expr {
            // The planner looks for columns in it among those of its own query alone.
            SqlExpr::Array(Array { elem, .. }) if self.queries > 1 && elem.iter().any(reads_columns) => {
                *expr = call(MAKE_ARRAY, std::mem::take(elem));
            }
            // A minus in front of the text would be that of its first field alone.
            SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: span } if matches!(**span, SqlExpr::Interval(_)) => {
                let bare = std::mem::replace(&mut **span, SqlExpr::Value(Value::Null.into()));
                **span = SqlExpr::Nested(Box::new(bare));
            }
            SqlExpr::Value(ValueWithSpan { value: Value::HexStringLiteral(_), .. }) => {
                *expr = cast(expr.clone(), SqlType::Bytea);
            }
            SqlExpr::Value(ValueWithSpan { value: Value::Number(number, _), span }) if !is_decimal_number(number) => {
                let text = ValueWithSpan { value: Value::SingleQuotedString(number.clone()), span: *span };
                *expr = cast(SqlExpr::Value(text), SqlType::Double(ExactNumberInfo::None));
            }
            SqlExpr::Cast { data_type, expr: inner, format: None, array: false, .. } => {
                if let SqlType::Numeric(info @ ExactNumberInfo::None)
                | SqlType::Decimal(info @ ExactNumberInfo::None)
                | SqlType::Dec(info @ ExactNumberInfo::None) = data_type
                    && let Some(written) = written_digits(inner)
                {
                    *info = written;
                }
                if let SqlType::Dec(info) = data_type {
                    *data_type = SqlType::Numeric(*info);
                }
                if let Some(chars) = cut_to(data_type) {
                    *data_type = SqlType::Text;
                    *expr = first_chars(expr.clone(), chars);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// In `values`, string literals in a column with a date or timestamp get its type: the planner finds none for both.
fn datetimes_of_columns(values: &mut SqlValues) {
    let columns = values.rows.first().map_or(0, |row| row.len());
    for at in 0..columns {
        let given = values.rows.iter().filter_map(|row| match without_precision(bare(row.get(at)?)) {
            SqlExpr::Cast { data_type: given @ (SqlType::Date | SqlType::Timestamp(..)), array: false, .. }
            | SqlExpr::TypedString(TypedString {
                data_type: given @ (SqlType::Date | SqlType::Timestamp(..)), ..
            }) => Some(given.clone()),
            _ => None,
        });
        let rank = |given: &SqlType| match given {
            SqlType::Date => 0,
            SqlType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => 1,
            _ => 2,
        };
        let Some(given) = given.max_by_key(rank) else { continue };
        for cell in values.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            if matches!(bare(cell), SqlExpr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. })) {
                *cell = cast(cell.clone(), given.clone());
            }
        }
    }
}

/// `cell` without the rounding that a precision of its type has become.
fn without_precision(cell: &SqlExpr) -> &SqlExpr {
    match called(cell) {
        Some((name, args)) if name == ROUNDED_SECONDS => args.first().copied().map_or(cell, bare),
        _ => cell,
    }
}

/// `x = ANY (ARRAY[...])` as `x IN (...)`, `x <> ALL (ARRAY[...])` as `x NOT IN (...)`: lists are compared value by
/// value, each beside `x`, while an array has a type of its own.
fn listed(expr: &SqlExpr) -> Option<SqlExpr> {
    let (left, right, negated) = match expr {
        SqlExpr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        SqlExpr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let SqlExpr::Array(Array { elem, .. }) = bare(right) else { return None };
    let is_list = !elem.is_empty() && !elem.iter().any(|one| matches!(bare(one), SqlExpr::Array(_)));
    is_list.then(|| SqlExpr::InList { expr: left.clone(), list: elem.clone(), negated })
}

/// The digits of a number, or of a text that spells one, as it is written: what a cast to NUMERIC keeps.
fn written_digits(expr: &SqlExpr) -> Option<ExactNumberInfo> {
    let text = match bare(expr) {
        SqlExpr::Value(ValueWithSpan { value: Value::Number(text, _) | Value::SingleQuotedString(text), .. }) => text,
        SqlExpr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => return written_digits(expr),
        SqlExpr::Cast {
            data_type:
                SqlType::Numeric(info @ ExactNumberInfo::PrecisionAndScale(..))
                | SqlType::Decimal(info @ ExactNumberInfo::PrecisionAndScale(..))
                | SqlType::Dec(info @ ExactNumberInfo::PrecisionAndScale(..)),
            ..
        } => return Some(*info),
        _ => return None,
    };
    let plain = without_exponent(text.trim());
    let digits = plain.as_deref().unwrap_or(text).trim().trim_start_matches(['+', '-']);
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number =
        !(whole.is_empty() && behind.is_empty()) && [whole, behind].concat().bytes().all(|b| b.is_ascii_digit());
    let scale = i64::try_from(behind.len()).ok()?;
    let precision = (whole.trim_start_matches('0').len() + behind.len()).max(1);
    let fits = is_number && precision <= DECIMAL_DIGITS_MAX as usize;
    fits.then_some(ExactNumberInfo::PrecisionAndScale(precision as u64, scale))
}

/// The n of VARCHAR(n), if it is in range; else the cast is refused later.
fn cut_to(data_type: &SqlType) -> Option<u64> {
    match data_type {
        SqlType::Varchar(Some(length))
        | SqlType::CharacterVarying(Some(length))
        | SqlType::CharVarying(Some(length)) => match length {
            CharacterLength::IntegerLength { length: chars @ 1..=VARCHAR_CHARS_MAX, unit: None } => Some(*chars),
            _ => None,
        },
        _ => None,
    }
}

fn first_chars(text: SqlExpr, chars: u64) -> SqlExpr {
    let number = |n: u64| Some(Box::new(SqlExpr::Value(Value::Number(n.to_string(), false).into())));
    SqlExpr::Substring {
        expr: Box::new(text),
        substring_from: number(1),
        substring_for: number(chars),
        special: false,
        shorthand: true,
    }
}

/// Whether `number`, as it is written, is an integer or has a decimal's digits.
fn is_decimal_number(number: &str) -> bool {
    let Some((digits, exponent)) = number.split_once(['e', 'E']) else { return true };
    let Ok(exponent) = exponent.parse::<i64>() else { return true };
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let before = before.trim_start_matches('0').len() as i64;
    before.saturating_add(exponent) <= DECIMAL_DIGITS_MAX
        && (behind.len() as i64).saturating_sub(exponent) <= DECIMAL_DIGITS_MAX
}

/// The rule.
pub(crate) fn coerced_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    coerce_plan(plan, &[]).map(|transformed| transformed.data)
}

/// `plan` with the types that its columns will have: those that the rule changes are decimals, datetimes or CHAR(n)
/// until then.
pub(crate) fn resolve_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changes = |field: &FieldRef| {
        is_decimal(field.data_type()) || is_datetime(field.data_type()) || ColumnType::chars_of(field).is_some()
    };
    if plan.schema().fields().iter().any(changes) {
        return coerce_plan(plan, &[]).map(|transformed| transformed.data);
    }
    Ok(plan)
}

/// `plan`, bottom up. What it refers to of the outer queries has the types that these have by now: `outer`, the
/// nearest last.
fn coerce_plan(plan: LogicalPlan, outer: &[&DFSchema]) -> Result<Transformed<LogicalPlan>> {
    let typed = |expr: Expr, schema: &DFSchema| match expr {
        Expr::OuterReferenceColumn(..) => Ok(retyped(expr, outer)),
        Expr::AggregateFunction(_) | Expr::WindowFunction(_) => interval_order(expr, schema),
        other => match as_float_operation(&other, schema)? {
            Some(doubles) => Ok(Transformed::yes(doubles)),
            None => doubles(other, schema),
        },
    };
    let within = |plan: LogicalPlan, near: &DFSchema| {
        let outer: Vec<&DFSchema> = outer.iter().copied().chain([near]).collect();
        coerce_plan(plan, &outer)
    };
    rewrite_inputs(plan, |plan| {
        let mut changed = false;
        let mut plan = plan;
        if has_subqueries(&plan)? {
            let near = merge_schema(&plan.inputs());
            let subqueries = plan.map_subqueries(|plan| within(plan, &near))?;
            (plan, changed) = (subqueries.data, subqueries.transformed);
        }
        let plan = rewrite_node(plan, &typed)?;
        changed |= plan.transformed;
        match plan.data {
            LogicalPlan::Values(values) => typed_values(values).map(Transformed::yes),
            LogicalPlan::Sort(mut sort) => {
                let schema = sort.input.schema().clone();
                for by in &mut sort.expr {
                    changed |= measured(&mut by.expr, &schema);
                }
                Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
            }
            LogicalPlan::Union(union) => typed_union(union).map(Transformed::yes),
            LogicalPlan::Join(mut join) => {
                // Of LATERAL: it was looked at when the other side's types were not known.
                if join.right.exists(|plan| Ok(matches!(plan, LogicalPlan::Subquery(_))))? {
                    join.right = Arc::new(within(Arc::unwrap_or_clone(join.right), join.left.schema())?.data);
                }
                typed_join(join).map(Transformed::yes)
            }
            LogicalPlan::Subquery(mut subquery) => {
                let columns = subquery.outer_ref_columns.into_iter().map(|expr| {
                    let expr = retyped(expr, outer);
                    changed |= expr.transformed;
                    expr.data
                });
                subquery.outer_ref_columns = columns.collect();
                Ok(Transformed::new_transformed(LogicalPlan::Subquery(subquery), changed))
            }
            other => Ok(Transformed::new_transformed(other, changed)),
        }
    })
}

fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|expr| {
            let is_one = matches!(
                expr,
                Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_)
            );
            Ok(is_one)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A column of an outer query with the type that it has there.
fn retyped(expr: Expr, outer: &[&DFSchema]) -> Transformed<Expr> {
    let Expr::OuterReferenceColumn(field, column) = expr else { return Transformed::no(expr) };
    let found = outer.iter().rev().find_map(|schema| {
        let at = schema.maybe_index_of_column(&column)?;
        schema.fields().get(at).cloned()
    });
    match found {
        Some(found) if found != field => Transformed::yes(Expr::OuterReferenceColumn(found, column)),
        _ => Transformed::no(Expr::OuterReferenceColumn(field, column)),
    }
}

/// As [`widen`], of the values of `list` and of `value`.
fn widen_list(list: &mut Expr, value: &mut Expr, schema: &DFSchema) -> bool {
    let (Ok(DataType::List(item)), Ok(of_value)) = (list.get_type(schema), value.get_type(schema)) else {
        return false;
    };
    let both = [item.data_type(), &of_value].into_iter();
    let Some(common) = common(both, Purpose::Comparison) else { return false };
    if changes(&of_value, &common) {
        *value = cast_to_common(std::mem::take(value), &common);
    }
    if changes(item.data_type(), &common) {
        let items = DataType::new_list(common, item.is_nullable());
        *list = Expr::Cast(Cast::new(Box::new(std::mem::take(list)), items));
    }
    true
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Decimals beside doubles, and datetimes beside one another, in `expr`.
fn doubles(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let widened = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            let mut both = [&mut **left, &mut **right];
            widen(&mut both, Purpose::Comparison, schema) || measure(&mut both, schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            let mut all: Vec<&mut Expr> = list.iter_mut().collect();
            all.push(&mut **expr);
            widen(&mut all, Purpose::Comparison, schema) || measure(&mut all, schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            let mut all = [&mut **expr, &mut **low, &mut **high];
            widen(&mut all, Purpose::Comparison, schema) || measure(&mut all, schema)
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let (mut compared, mut results): (Vec<&mut Expr>, Vec<&mut Expr>) = (Vec::new(), Vec::new());
            for (when, then) in when_then_expr {
                compared.push(&mut **when);
                results.push(&mut **then);
            }
            results.extend(else_expr.iter_mut().map(|e| &mut **e));
            let by_value = expr.as_mut().is_some_and(|value| {
                compared.push(&mut **value);
                widen(&mut compared, Purpose::Comparison, schema)
            });
            widen(&mut results, Purpose::Column, schema) || by_value
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            let given = expr.get_type(schema).unwrap_or(DataType::Null);
            let found = subquery.subquery.schema().fields().first().map_or(DataType::Null, |f| f.data_type().clone());
            let common = common([&given, &found].into_iter(), Purpose::Comparison);
            if let Some(common) = &common {
                if changes(&given, common) {
                    **expr = cast_to_common(std::mem::take(&mut **expr), common);
                }
                if changes(&found, common) {
                    *subquery = common_column(subquery, common)?;
                }
            }
            common.is_some()
        }
        Expr::ScalarFunction(call)
            if matches!(
                call.func.name(),
                "coalesce" | "nullif" | "nvl" | "nvl2" | "greatest" | "least" | "make_array"
            ) =>
        {
            let purpose = if call.func.name() == "nullif" { Purpose::Comparison } else { Purpose::Column };
            let first = call.args.first().and_then(|first| first.get_type(schema).ok());
            let widened = widen(&mut call.args.iter_mut().collect::<Vec<_>>(), purpose, schema);
            // What it gives is its first argument, or NULL.
            if widened && purpose == Purpose::Comparison && first == Some(DataType::Float32) {
                expr = cast_to_common(std::mem::take(&mut expr), &DataType::Float32);
            }
            widened
        }
        // `x = ANY (array)`
        Expr::ScalarFunction(call) if call.func.name() == "array_has" => match call.args.as_mut_slice() {
            [list, value] => widen_list(list, value, schema),
            _ => false,
        },
        _ => false,
    };
    Ok(if widened { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Pairs of columns that are to be equal: of USING, INTERSECT and EXCEPT.
fn typed_join(mut join: Join) -> Result<LogicalPlan> {
    for (left, right) in &mut join.on {
        let (of_left, of_right) = (left.get_type(join.left.schema())?, right.get_type(join.right.schema())?);
        let Some(common) = common([&of_left, &of_right].into_iter(), Purpose::Comparison) else { continue };
        for (side, of_side) in [(left, &of_left), (right, &of_right)] {
            if changes(of_side, &common) {
                *side = cast_to_common(std::mem::take(side), &common);
            }
        }
    }
    Ok(LogicalPlan::Join(join))
}

/// `subquery` with its one column as `common`.
fn common_column(subquery: &Subquery, common: &DataType) -> Result<Subquery> {
    let plan = LogicalPlanBuilder::from((*subquery.subquery).clone());
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    // Not the column's own name: the column itself may be needed beside it, where the subquery refers to an outer
    // query.
    Ok(subquery.with_plan(Arc::new(plan.project([cast_to_common(column, common).alias("common")])?.build()?)))
}

#[cfg(test)]
mod tests {
    use super::is_decimal_number;

    #[test]
    fn numbers_beyond_decimals_are_told() {
        for number in
            ["1", "1.5", "1e5", "1.5e-3", "0e0", "1e37", "12.5e36", "1e-38", "000e38", "123456789012345678901234567890"]
        {
            assert!(is_decimal_number(number), "{number}");
        }
        for number in ["1e300", "1e38", "1e-39", "1.5e-38", "12E37", "1e99999"] {
            assert!(!is_decimal_number(number), "{number}");
        }
    }
}
