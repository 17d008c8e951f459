//! VACUUM and ANALYZE: read in full, and answered by a notice that there is nothing to do.

use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::Result;

use super::super::super::dialect::{is_word, syntax};
use super::super::super::{TableName, table_name};

/// VACUUM or ANALYZE of tables; of all where it names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Maintenance {
    /// What is done: `VACUUM` or `ANALYZE`.
    pub(crate) command: &'static str,
    /// The tables that it names.
    pub(crate) tables: Vec<TableName>,
}

/// Options that PostgreSQL has words for, without parentheses.
const WORDS: [&str; 5] = ["full", "freeze", "verbose", "analyze", "analyse"];

/// Reads a statement that begins with one of both words; None for others.
///
/// # Errors
/// 42601.
pub(in super::super) fn maintenance(parser: &mut Parser<'_>) -> Result<Option<Maintenance>> {
    let command = match () {
        () if is_word(parser, "vacuum") => "VACUUM",
        () if is_word(parser, "analyze") || is_word(parser, "analyse") => "ANALYZE",
        () => return Ok(None),
    };
    parser.advance_token();
    let names = read(parser, command == "VACUUM").map_err(|e| syntax(&e))?;
    let tables = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    Ok(Some(Maintenance { command, tables }))
}

/// The names of the tables, behind the options.
fn read(parser: &mut Parser<'_>, has_words: bool) -> std::result::Result<Vec<ObjectName>, ParserError> {
    if parser.consume_token(&Token::LParen) {
        // Options say how the work is done that is not there.
        parser.parse_comma_separated(|parser| {
            parser.parse_identifier()?;
            if !matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
                parser.advance_token();
            }
            Ok(())
        })?;
        parser.expect_token(&Token::RParen)?;
    } else {
        while WORDS.iter().any(|word| (has_words || *word == "verbose") && is_word(parser, word)) {
            parser.advance_token();
        }
    }
    if matches!(parser.peek_token_ref().token, Token::EOF) {
        return Ok(Vec::new());
    }
    parser.parse_comma_separated(|parser| {
        let _ = parser.parse_keyword(Keyword::ONLY);
        let name = parser.parse_object_name(false)?;
        if parser.consume_token(&Token::LParen) {
            parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
        }
        Ok(name)
    })
}
