//! PREPARE, EXECUTE and DEALLOCATE, and which statements have parameters.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::types::column_type;
use super::super::{check_query, column_name, fold};
use super::parameters::Part;
use super::script::{PreparedStatement, Statement, Template};

/// A PREPARE of `statement`.
pub(super) fn prepare(
    name: &ast::Ident,
    types: &[ast::DataType],
    statement: Statement,
    part: &Part,
) -> Result<PreparedStatement> {
    if !takes_parameters(&statement) {
        return Err(Error::invalid(sqlstate::SYNTAX, "PREPARE is for SELECT, INSERT, UPDATE and DELETE"));
    }
    let types = types.iter().map(column_type).collect::<Result<Vec<_>>>()?;
    let template = Arc::new(Template::new("", statement, part.parameters, part.names.clone(), part.deep));
    Ok(PreparedStatement::Prepare { name: fold(name), types, template })
}

/// Whether a statement is of a kind that can have parameters.
pub(super) fn takes_parameters(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_)
        | Statement::Lock(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_) => true,
        Statement::Explain { statement, .. } => takes_parameters(statement),
        _ => false,
    }
}

/// Reads an EXECUTE.
pub(super) fn execute(name: &ObjectName, arguments: Vec<Expr>) -> Result<PreparedStatement> {
    let name = column_name(name)?;
    if arguments.is_empty() {
        return Ok(PreparedStatement::Execute { name, arguments: None });
    }
    let mut query = super::super::dml::query_of("SELECT 1")?;
    let ast::SetExpr::Select(select) = &mut *query.body else {
        return Err(Error::internal("a SELECT parsed as no SELECT"));
    };
    select.projection = arguments
        .into_iter()
        .enumerate()
        .map(|(at, expr)| ast::SelectItem::ExprWithAlias {
            expr,
            alias: ast::Ident::with_quote('"', format!("argument_{at}")),
        })
        .collect();
    check_query(&query)?;
    Ok(PreparedStatement::Execute { name, arguments: Some(query) })
}

/// Reads a DEALLOCATE.
pub(super) fn deallocate(name: &ast::Ident) -> PreparedStatement {
    let all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
    PreparedStatement::Deallocate { name: (!all).then(|| fold(name)) }
}
