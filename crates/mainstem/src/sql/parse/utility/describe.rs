//! DESCRIBE and SUMMARIZE of a table, a query or a file, and SHOW TABLES: by grammar of our own.

use datafusion::sql::sqlparser::ast::{Query, Statement as Ast, TableFactor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::super::dialect::{is_word, syntax};
use super::super::super::extensions::rewrite_extensions;
use super::super::super::refuse::is_write;
use super::super::super::{TableName, check_query, query_of, table_name};
use super::super::Statement;

/// The tables that names without a schema find.
const TABLES: &str = "SELECT table_name AS name FROM information_schema.tables \
    WHERE array_has(current_schemas(true), table_schema) ORDER BY 1";

/// DESCRIBE or SUMMARIZE.
#[derive(Clone, Debug)]
pub(crate) struct Describe {
    /// Whose columns are told.
    pub(crate) query: Box<Query>,
    /// The table that it reads, if it is all of one.
    pub(crate) table: Option<TableName>,
    /// Whether their values are told, too.
    pub(crate) summarizes: bool,
}

/// Reads a statement that begins with one of the words; None for others.
///
/// # Errors
/// 42601, and those of a query.
pub(in super::super) fn describe(parser: &mut Parser<'_>) -> Result<Option<Statement>> {
    let summarizes = match () {
        () if is_word(parser, "describe") || is_word(parser, "desc") => false,
        () if is_word(parser, "summarize") => true,
        () => return Ok(None),
    };
    parser.advance_token();
    let _ = parser.parse_keyword(Keyword::TABLE);
    let begins_query = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES, Keyword::FROM];
    let is_query =
        begins_query.iter().any(|word| parser.peek_keyword(*word)) || parser.peek_token_ref().token == Token::LParen;
    if is_query {
        let mut query = parser.parse_query().map_err(|e| syntax(&e))?;
        if is_write(&query) {
            return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: DESCRIBE takes a table, a file or a query"));
        }
        rewrite_extensions(&mut query)?;
        check_query(&query)?;
        return Ok(Some(Statement::Describe(Describe { query, table: None, summarizes })));
    }
    let factor = parser.parse_table_factor().map_err(|e| syntax(&e))?;
    let table = match &factor {
        TableFactor::Table { name, args: None, .. } => table_name(name).ok(),
        _ => None,
    };
    let mut query = query_of(&format!("SELECT * FROM {factor}"))?;
    rewrite_extensions(&mut query)?;
    check_query(&query)?;
    Ok(Some(Statement::Describe(Describe { query, table, summarizes })))
}

/// Whether SHOW TABLES asks for nothing more.
pub(in super::super) fn is_plain(statement: &Ast) -> bool {
    statement.to_string() == "SHOW TABLES"
}

/// The query that SHOW TABLES is.
///
/// # Errors
/// Internal.
pub(in super::super) fn tables() -> Result<Statement> {
    query_of(TABLES).map(Statement::Query)
}
