//! SQL that the catalog keeps as text: DEFAULT, CHECK.
//!
//! Comes in: an expression as the user wrote it. Goes out: its text, which reads back as the same tree, and the tree
//! again. The text names columns without their table, so that it outlives a new name of the table.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Visit, Visitor};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, ErrorKind, Result};

use super::dialect::{MainstemDialect, STORED_NESTING_MAX, on_stack, syntax};
use super::{check_query, fold, state};
use crate::walk::{walk, walk_expressions, walk_expressions_mut};

/// Bytes of a text from which its tree may need a stack of its own.
const TEXT_OF_SMALL: usize = 200;

/// Runs `work`, which walks the trees of stored texts of `bytes` bytes, on a stack that is large enough.
pub(crate) fn with_stored<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    on_stack(bytes > TEXT_OF_SMALL, work)
}

/// The keyword DEFAULT in the place of a value; sqlparser reads it as a column.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// The text of DEFAULT.
///
/// # Errors
/// 0A000 for columns and subqueries.
pub(super) fn default_text(expr: &Expr) -> Result<String> {
    refuse_queries(expr, "DEFAULT expression")?;
    if let Some(column) = columns_in(expr).into_iter().next() {
        return Err(Error::invalid(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("cannot use column reference in DEFAULT expression: \"{column}\""),
        )
        .with_object(NamedObject::new(ObjectKind::Column, [column])));
    }
    text_of(expr)
}

/// The text of a CHECK of table `table`.
///
/// # Errors
/// 0A000 for subqueries, 42P01 for columns of another table.
pub(super) fn check_text(expr: &Expr, table: &str) -> Result<String> {
    refuse_queries(expr, "check constraint")?;
    let mut expr = expr.clone();
    let other = walk_expressions_mut(&mut expr, |expr| {
        if let Expr::CompoundIdentifier(idents) = expr {
            match idents.as_slice() {
                [of, column] if fold(of) == table => *expr = Expr::Identifier(column.clone()),
                _ => return ControlFlow::Break(expr.to_string()),
            }
        }
        ControlFlow::Continue(())
    });
    if let ControlFlow::Break(other) = other {
        return Err(Error::new(
            ErrorKind::NotFound,
            sqlstate::UNDEFINED_TABLE,
            format!("invalid reference to \"{other}\" in a check constraint of table \"{table}\""),
        ));
    }
    text_of(&expr)
}

/// The expression that is stored as `text`.
///
/// # Errors
/// Internal: it was read before.
pub(crate) fn expression_of(text: &str) -> Result<Expr> {
    parsed(text).map_err(|e| Error::internal(format!("a stored expression cannot be read: {text}: {}", e.message())))
}

fn parsed(text: &str) -> Result<Expr> {
    let dialect = MainstemDialect::new(text.len());
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(STORED_NESTING_MAX).try_with_sql(text).map_err(|e| syntax(&e))?;
    parser.parse_expr().map_err(|e| syntax(&e))
}

fn text_of(expr: &Expr) -> Result<String> {
    let text = expr.to_string();
    match parsed(&text) {
        Ok(again) if again == *expr => Ok(text),
        _ => Err(Error::unsupported(format_args!("the expression {text} in the definition of a table"))),
    }
}

fn refuse_queries(expr: &Expr, place: &str) -> Result<()> {
    check_query(expr)?;
    if has_query(expr) {
        return Err(Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {place}")));
    }
    Ok(())
}

/// Whether there is a subquery in `tree`.
pub(crate) fn has_query(tree: &impl Visit) -> bool {
    walk(tree, &mut Queries).is_break()
}

/// Stops at a subquery.
struct Queries;

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The columns that `expr` names, without their tables.
pub(crate) fn columns_in(expr: &Expr) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    let _ = walk_expressions(expr, |expr| {
        match expr {
            Expr::Identifier(ident) => columns.extend([fold(ident)]),
            Expr::CompoundIdentifier(idents) => columns.extend(idents.last().map(fold)),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    columns
}

/// The stored CHECK `text` with column `old` called `new`.
///
/// # Errors
/// Internal.
pub(crate) fn renamed_in(text: &str, old: &str, new: &str) -> Result<String> {
    let mut expr = expression_of(text)?;
    let _ = walk_expressions_mut(&mut expr, |expr| {
        if let Expr::Identifier(ident) = expr
            && fold(ident) == old
        {
            *ident = Ident::with_quote('"', new);
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(expr.to_string())
}

/// A name for a constraint without one, as PostgreSQL makes it: `table_column_suffix`, with a number behind it when
/// that is taken.
pub(super) fn constraint_name(table: &str, column: Option<&str>, suffix: &str, taken: &[String]) -> String {
    let stem = match column {
        Some(column) => format!("{table}_{column}_{suffix}"),
        None => format!("{table}_{suffix}"),
    };
    let mut name = stem.clone();
    let mut number = 0_u32;
    while taken.contains(&name) {
        number += 1;
        name = format!("{stem}{number}");
    }
    name
}

/// A name that two constraints of one table would have.
pub(super) fn constraint_twice(name: &str, table: &str) -> Error {
    Error::invalid(state::DUPLICATE_OBJECT, format!("constraint \"{name}\" for relation \"{table}\" already exists"))
}
