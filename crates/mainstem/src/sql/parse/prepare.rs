//! PREPARE, EXECUTE and DEALLOCATE, and where parameters stand in a statement.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, Query};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::super::types::column_type;
use super::super::{check_query, column_name, fold, state};
use super::{Part, Statement, Template, convert};

/// Parameters of one statement: as many as the protocol of PostgreSQL can name.
const PARAMETERS_MAX: usize = 65_535;

/// A statement about prepared statements.
#[derive(Clone, Debug)]
pub(crate) enum PreparedStatement {
    /// PREPARE; types of the first parameters, as far as they are declared.
    Prepare { name: String, types: Vec<DataType>, template: Arc<Template> },
    /// EXECUTE; the arguments are a SELECT without FROM, or none.
    Execute { name: String, arguments: Option<Box<Query>> },
    /// DEALLOCATE of one, or of all.
    Deallocate { name: Option<String> },
}

/// The highest parameter that `tokens` name.
///
/// # Errors
/// 42601 for parameters that are no number; 54000 for too high ones.
pub(super) fn count_parameters(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut highest = 0;
    for token in tokens {
        let Token::Placeholder(text) = &token.token else { continue };
        let digits = text.strip_prefix('$').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        let number = match digits.map(str::parse::<usize>) {
            Some(Ok(0)) | None => {
                return Err(Error::invalid(
                    sqlstate::SYNTAX,
                    format!("syntax error: \"{text}\" is no parameter (they are $1, $2, ...){}", token.span.start),
                ));
            }
            Some(Ok(number)) if number <= PARAMETERS_MAX => number,
            Some(_) => {
                return Err(Error::invalid(
                    sqlstate::LIMIT_EXCEEDED,
                    format!("parameter {text}: a statement has at most {PARAMETERS_MAX}"),
                ));
            }
        };
        highest = highest.max(number);
    }
    Ok(highest)
}

/// A statement that has parameters, where there are no values for them.
pub(super) fn no_parameter(number: usize) -> Error {
    Error::invalid(
        state::UNDEFINED_PARAMETER,
        format!("there is no parameter ${number}; a statement with parameters is prepared or run with values"),
    )
    .with_object(NamedObject::new(ObjectKind::Other, [format!("${number}")]))
}

/// Reads a PREPARE.
pub(super) fn prepare(
    name: &ast::Ident,
    types: &[ast::DataType],
    statement: ast::Statement,
    part: Part,
) -> Result<PreparedStatement> {
    let statement = convert(statement, Vec::new())?;
    if !takes_parameters(&statement) {
        return Err(Error::invalid(sqlstate::SYNTAX, "PREPARE is for SELECT, INSERT, UPDATE and DELETE"));
    }
    let types = types.iter().map(column_type).collect::<Result<Vec<_>>>()?;
    let template = Arc::new(Template::new("", statement, part.parameters, part.deep));
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
