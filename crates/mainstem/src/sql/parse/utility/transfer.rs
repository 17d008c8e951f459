//! UNLOAD, LOAD, EXPORT and IMPORT: whole tables and databases to folders and back.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::error::sqlstate;
use mainstem_storage::unload::Compression;
use mainstem_storage::{Error, Result};

use super::super::super::dialect::{is_word, syntax};
use super::super::super::{TableName, table_name};

/// What goes to a folder, or comes from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// UNLOAD: in the form that segments have.
    Unload { what: TransferOf, folder: String, compression: Compression },
    /// LOAD of what was unloaded.
    Load { what: TransferOf, folder: String },
    /// EXPORT DATABASE: SQL, and a file for each table.
    Export { folder: String, format: ExportFormat },
    /// IMPORT DATABASE.
    Import { folder: String },
}

/// All or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransferOf {
    Database,
    Table(TableName),
}

/// How EXPORT writes rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    #[default]
    Parquet,
    Csv,
}

impl ExportFormat {
    /// Its name, and how files end.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

impl Transfer {
    /// The command, as its tag names it.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Self::Unload { .. } => "UNLOAD",
            Self::Load { .. } => "LOAD",
            Self::Export { .. } => "EXPORT DATABASE",
            Self::Import { .. } => "IMPORT DATABASE",
        }
    }

    /// The folder that it writes or reads.
    pub(crate) fn folder(&self) -> &str {
        match self {
            Self::Unload { folder, .. }
            | Self::Load { folder, .. }
            | Self::Export { folder, .. }
            | Self::Import { folder } => folder,
        }
    }
}

/// Reads a statement that begins with one of the words; None for others.
///
/// # Errors
/// 42601, 22023.
pub(in super::super) fn transfer(parser: &mut Parser<'_>) -> Result<Option<Transfer>> {
    let words = ["unload", "load", "export", "import"];
    let Some(word) = words.into_iter().find(|word| is_word(parser, word)) else { return Ok(None) };
    // LOAD of a library is another statement.
    let of_tables =
        |token: &Token| matches!(token, Token::Word(w) if matches!(w.keyword, Keyword::DATABASE | Keyword::TABLE));
    if word == "load" && !of_tables(&parser.peek_nth_token_ref(1).token) {
        return Ok(None);
    }
    parser.advance_token();
    let what = what(parser, matches!(word, "unload" | "load"))?;
    match word {
        "unload" => expect(parser, Keyword::TO)?,
        "load" => expect(parser, Keyword::FROM)?,
        _ => {}
    }
    let folder = folder(parser)?;
    let options = options(parser)?;
    let refuse = |name: &str| {
        let message = format!("{} has no option {}", word.to_uppercase(), name.to_uppercase());
        Error::invalid(sqlstate::INVALID_PARAMETER, message)
    };
    let (mut compression, mut format) = (Compression::None, ExportFormat::default());
    for (name, value) in &options {
        match (word, name.as_str(), value.as_str()) {
            ("unload" | "load", "format", "binary") => {}
            ("unload", "compression", "none") => compression = Compression::None,
            ("unload", "compression", "lz4") => compression = Compression::Lz4,
            ("export", "format", "parquet") => format = ExportFormat::Parquet,
            ("export", "format", "csv") => format = ExportFormat::Csv,
            ("unload", "compression", _) | ("unload" | "load" | "export", "format", _) => {
                let known = match (word, name.as_str()) {
                    ("export", _) => "parquet or csv",
                    (_, "format") => "binary",
                    _ => "lz4 or none",
                };
                let message = format!("{} is {known}, not \"{value}\"", name.to_uppercase());
                return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
            }
            (_, name, _) => return Err(refuse(name)),
        }
    }
    Ok(Some(match word {
        "unload" => Transfer::Unload { what, folder, compression },
        "load" => Transfer::Load { what, folder },
        "export" => Transfer::Export { folder, format },
        _ => Transfer::Import { folder },
    }))
}

fn expect(parser: &mut Parser<'_>, keyword: Keyword) -> Result<()> {
    parser.expect_keyword_is(keyword).map_err(|e| syntax(&e))
}

fn what(parser: &mut Parser<'_>, may_be_table: bool) -> Result<TransferOf> {
    if may_be_table && parser.parse_keyword(Keyword::TABLE) {
        let name = parser.parse_object_name(false).map_err(|e| syntax(&e))?;
        return table_name(&name).map(TransferOf::Table);
    }
    expect(parser, Keyword::DATABASE)?;
    Ok(TransferOf::Database)
}

fn folder(parser: &mut Parser<'_>) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(path) => Ok(path),
        _ => Err(Error::invalid(
            sqlstate::SYNTAX,
            format!("syntax error: expected the name of a folder in quotes, found: {token}{}", token.span.start),
        )),
    }
}

/// Names and values, in small letters.
fn options(parser: &mut Parser<'_>) -> Result<Vec<(String, String)>> {
    let _ = parser.parse_keyword(Keyword::WITH);
    let mut options: Vec<(String, String)> = Vec::new();
    if !parser.consume_token(&Token::LParen) {
        return Ok(options);
    }
    loop {
        let name = parser.parse_identifier().map_err(|e| syntax(&e))?.value.to_ascii_lowercase();
        let token = parser.next_token();
        let value = match token.token {
            Token::SingleQuotedString(text) => text,
            Token::Word(word) => word.value,
            _ => {
                let place = token.span.start;
                return Err(Error::invalid(
                    sqlstate::SYNTAX,
                    format!("syntax error: expected a value, found: {token}{place}"),
                ));
            }
        };
        if options.iter().any(|(before, _)| *before == name) {
            return Err(Error::invalid(sqlstate::SYNTAX, format!("option {name} is set twice")));
        }
        options.push((name, value.to_ascii_lowercase()));
        if parser.consume_token(&Token::RParen) {
            return Ok(options);
        }
        parser.expect_token(&Token::Comma).map_err(|e| syntax(&e))?;
    }
}
