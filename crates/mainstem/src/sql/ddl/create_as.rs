//! CREATE TABLE ... AS: grammar of our own, for sqlparser wants a type behind each name of a column.

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, OnCommit, OneOrManyWithParens, Query, SqlOption};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::dialect::syntax;
use super::super::extensions::rewrite_extensions;
use super::super::refuse::is_write;
use super::super::{check_query, fold, table_name};
use super::table::CreateTable;
use super::{set_option, sort_columns};

/// CREATE TABLE AS.
#[derive(Clone, Debug)]
pub(crate) struct CreateTableAs {
    /// The table, without columns.
    pub(crate) table: CreateTable,
    /// Names of its first columns; the others are called as those of the query.
    pub(crate) names: Vec<String>,
    pub(crate) query: Box<Query>,
    /// Whether the query's rows go into the table.
    pub(crate) with_data: bool,
}

/// What was read.
struct Parts {
    temporary: bool,
    on_commit: Option<OnCommit>,
    name: ObjectName,
    if_not_exists: bool,
    names: Vec<Ident>,
    order_by: Option<OneOrManyWithParens<Expr>>,
    options: Vec<SqlOption>,
    query: Box<Query>,
    with_data: bool,
}

/// Reads a CREATE TABLE AS, if that is what comes.
pub(in super::super) fn create_table_as(parser: &mut Parser<'_>) -> Result<Option<CreateTableAs>> {
    let Some(parts) = parser.maybe_parse(parts).map_err(|e| syntax(&e))? else { return Ok(None) };
    let Parts { temporary, on_commit, name, if_not_exists, names, order_by, options, mut query, with_data } = parts;
    if is_write(&query) {
        return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: CREATE TABLE AS takes a query"));
    }
    rewrite_extensions(&mut query)?;
    check_query(&query)?;
    let mut table = CreateTable::new(table_name(&name)?, if_not_exists);
    table.set_temporary(temporary, on_commit.as_ref())?;
    table.sort_key = order_by.map(|by| sort_columns(&by)).transpose()?;
    options.iter().try_for_each(|option| set_option(&mut table, option))?;
    let names = names.iter().map(fold).collect();
    Ok(Some(CreateTableAs { table, names, query, with_data }))
}

fn parts(parser: &mut Parser<'_>) -> Result<Parts, ParserError> {
    parser.expect_keyword(Keyword::CREATE)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::LOCAL, Keyword::GLOBAL]);
    let temporary = parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]).is_some();
    parser.expect_keyword(Keyword::TABLE)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let names = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    let (mut order_by, mut options, mut on_commit) = (None, Vec::new(), None);
    while !parser.parse_keyword(Keyword::AS) {
        if order_by.is_none() && parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
            parser.expect_token(&Token::LParen)?;
            order_by = Some(OneOrManyWithParens::Many(parser.parse_comma_separated(Parser::parse_expr)?));
            parser.expect_token(&Token::RParen)?;
        } else if options.is_empty() && parser.peek_keyword(Keyword::WITH) {
            options = parser.parse_options(Keyword::WITH)?;
        } else if on_commit.is_none() && parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
            on_commit = Some(if parser.parse_keyword(Keyword::DROP) {
                OnCommit::Drop
            } else if parser.parse_keywords(&[Keyword::PRESERVE, Keyword::ROWS]) {
                OnCommit::PreserveRows
            } else {
                parser.expect_keywords(&[Keyword::DELETE, Keyword::ROWS])?;
                OnCommit::DeleteRows
            });
        } else {
            return parser.expected_ref("AS", parser.peek_token_ref());
        }
    }
    let query = parser.parse_query()?;
    let with_data = if parser.parse_keyword(Keyword::WITH) {
        let no = parser.parse_keyword(Keyword::NO);
        parser.expect_keyword(Keyword::DATA)?;
        !no
    } else {
        true
    };
    Ok(Parts { temporary, on_commit, name, if_not_exists, names, order_by, options, query, with_data })
}
