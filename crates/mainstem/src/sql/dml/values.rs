//! VALUES of an INSERT whose rows give a column values of different types.
//!
//! PostgreSQL assigns each row to the column on its own: `VALUES (1), (2.5)` into TEXT is '1' and '2.5', where a VALUES
//! list by itself has one type a column. So each such cell becomes a call of [`ASSIGNED_TO`], which is the assignment
//! cast. Columns whose cells have one type as they are written stay as they are: large lists are literals, mostly.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value, Values,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_postgres::cast::ASSIGNED_TO;
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};

use super::super::dialect::{MainstemDialect, syntax};
use super::super::types::ast_type;

/// Integers with fewer digits are not decimals.
const WHOLE_DIGITS_MAX: usize = 18;

/// What a cell is as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Decimal,
    /// Of a type with a name.
    Typed(String),
    Computed,
}

/// The kind of `cell`; none for NULL, and for parameters, which have the column's type.
fn kind(cell: &Expr) -> Option<Kind> {
    match cell {
        Expr::Nested(inner) => kind(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => match kind(expr) {
            Some(number @ (Kind::Whole | Kind::Decimal)) => Some(number),
            _ => Some(Kind::Computed),
        },
        Expr::Value(value) => match &value.value {
            Value::Null | Value::Placeholder(_) => None,
            Value::Number(digits, _) => {
                let is_whole = digits.len() <= WHOLE_DIGITS_MAX && digits.bytes().all(|b| b.is_ascii_digit());
                Some(if is_whole { Kind::Whole } else { Kind::Decimal })
            }
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) => Some(Kind::Text),
            Value::Boolean(_) => Some(Kind::Typed("boolean".into())),
            Value::HexStringLiteral(_) => Some(Kind::Typed("bytea".into())),
            _ => Some(Kind::Computed),
        },
        Expr::Cast { data_type, .. } => Some(Kind::Typed(data_type.to_string())),
        Expr::TypedString(typed) => Some(Kind::Typed(typed.data_type.to_string())),
        _ => Some(Kind::Computed),
    }
}

fn is_parameter(cell: &Expr) -> bool {
    matches!(cell, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)))
}

/// Whether cells of `kinds`, perhaps beside parameters, have to be assigned to `column` one by one.
fn is_mixed(kinds: &[Kind], beside_parameters: bool, column: &Column) -> bool {
    let Some(first) = kinds.first() else { return false };
    let differ = beside_parameters || kinds.iter().any(|kind| kind != first || *kind == Kind::Computed);
    if column.data_type.is_text() {
        // Decimals of one list have as many digits behind the point as any of them.
        return differ || *first == Kind::Decimal;
    }
    differ && !kinds.iter().all(|kind| matches!(kind, Kind::Whole | Kind::Decimal))
}

/// Makes the cells of `values`, whose columns are assigned to those that `column` gives, values of their columns where
/// they have to be.
///
/// # Errors
/// Internal.
pub(super) fn assign_cells<'c>(values: &mut Values, column: impl Fn(usize) -> Option<&'c Column>) -> Result<()> {
    if values.rows.len() < 2 {
        return Ok(());
    }
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..width {
        let Some(column) = column(at) else { continue };
        let cells = values.rows.iter().filter_map(|row| row.content.get(at));
        let kinds: Vec<Kind> = cells.clone().filter_map(kind).collect();
        if !is_mixed(&kinds, cells.clone().any(is_parameter), column) {
            continue;
        }
        let call = assignment(column)?;
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            if kind(cell).is_some() {
                *cell = call_of(&call, cell.clone())?;
            }
        }
    }
    Ok(())
}

/// The call for `column`, of NULL.
fn assignment(column: &Column) -> Result<Expr> {
    let data_type = ast_type(column.data_type).ok_or_else(|| Error::internal("a column has a type without a name"))?;
    let name = column.name.replace('\'', "''");
    let text = format!("\"{ASSIGNED_TO}\"(NULL, CAST(NULL AS {data_type}), '{name}')");
    let dialect = MainstemDialect::new(text.len());
    Parser::new(&dialect).try_with_sql(&text).and_then(|mut parser| parser.parse_expr()).map_err(|e| syntax(&e))
}

/// `call` with `value` as its first argument.
fn call_of(call: &Expr, value: Expr) -> Result<Expr> {
    let mut call = call.clone();
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
        && let Some(first) = list.args.first_mut()
    {
        *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
        return Ok(call);
    }
    Err(Error::internal("a call parsed as no call"))
}
