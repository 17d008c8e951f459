//! What COPY FROM alone is told.
//!
//! ```text
//! option: ON_ERROR stop | ignore, REJECT_LIMIT n, REJECTS_TABLE name, REJECTS_FILE 'path',
//!         LOG_VERBOSITY default | silent,
//!         NULL_PADDING [bool], AUTO_DETECT [bool], ENCODING 'UTF8' | 'LATIN1'
//! COPY table FROM ... [WITH (...)] [WHERE condition]
//! ```

use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::super::dialect::syntax;
use super::super::extensions::{is_latin1, rewrite_extensions};
use super::super::{CsvHints, TableName, check_query, query_of, table_name};
use super::{flag, word_or_text};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadOptions {
    /// Rows of the table for which this is not true are left out.
    pub(crate) condition: Option<Expr>,
    pub(crate) rejects: Rejects,
    /// What is known of a file whose options are found in it; none if all are given.
    pub(crate) hints: Option<CsvHints>,
}

/// What becomes of rows with a text that is no value of its column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejects {
    /// Whether they are left out.
    pub(crate) ignores: bool,
    /// Most of them.
    pub(crate) limit: Option<u64>,
    /// Where they are told.
    pub(crate) table: Option<TableName>,
    /// And the file.
    pub(crate) file: Option<String>,
    /// Whether nothing is said of them.
    pub(crate) is_silent: bool,
}

/// The options as they are read.
#[derive(Default)]
pub(super) struct GivenToRead {
    on_error: Option<bool>,
    limit: Option<u64>,
    table: Option<TableName>,
    file: Option<String>,
    is_silent: Option<bool>,
    padding: Option<bool>,
    detects: Option<bool>,
    latin1: Option<bool>,
}

impl GivenToRead {
    /// Reads the value of option `name`, if it is one of these; whether it was set before.
    pub(super) fn option(&mut self, parser: &mut Parser<'_>, name: &str) -> Result<Option<bool>> {
        let set_before = match name {
            "on_error" => self.on_error.replace(on_error(&word_or_text(parser)?)?).is_some(),
            "reject_limit" => self.limit.replace(limit(parser)?).is_some(),
            "rejects_table" => {
                let table = parser.parse_object_name(false).map_err(|e| syntax(&e))?;
                self.table.replace(table_name(&table)?).is_some()
            }
            "rejects_file" => {
                let path = parser.parse_literal_string().map_err(|e| syntax(&e))?;
                self.file.replace(path).is_some()
            }
            "log_verbosity" => self.is_silent.replace(is_silent(&word_or_text(parser)?)?).is_some(),
            "null_padding" => self.padding.replace(flag(parser, "NULL_PADDING")?).is_some(),
            "auto_detect" => self.detects.replace(flag(parser, "AUTO_DETECT")?).is_some(),
            "encoding" => self.latin1.replace(is_latin1(&word_or_text(parser)?)?).is_some(),
            _ => return Ok(None),
        };
        Ok(Some(set_before))
    }

    /// The encoding, of a list without parentheses.
    pub(super) fn set_encoding(&mut self, encoding: &str) -> Result<bool> {
        Ok(self.latin1.replace(is_latin1(encoding)?).is_some())
    }

    pub(super) fn pads(&self) -> bool {
        self.padding.unwrap_or_default()
    }

    pub(super) fn is_latin1(&self) -> bool {
        self.latin1.unwrap_or_default()
    }

    pub(super) fn detects(&self) -> bool {
        self.detects.unwrap_or_default()
    }

    /// The option that says where rejects are told.
    fn place(&self) -> Option<&'static str> {
        self.table.as_ref().map(|_| "REJECTS_TABLE").or(self.file.as_ref().map(|_| "REJECTS_FILE"))
    }

    /// Fails if COPY TO, or a file in `format`, is given one of these.
    ///
    /// # Errors
    /// 22023, 0A000.
    pub(super) fn check(&self, to: bool, format: &str) -> Result<()> {
        let of_rejects = self.on_error.is_some() || self.limit.is_some() || self.place().is_some();
        let of_files = self.padding.is_some() || self.detects.is_some();
        if to && (of_rejects || of_files || self.is_silent.is_some()) {
            let message = "ON_ERROR, REJECT_LIMIT, REJECTS_TABLE, REJECTS_FILE, LOG_VERBOSITY, NULL_PADDING and AUTO_DETECT are options of COPY FROM";
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
        if to && self.is_latin1() {
            return Err(Error::unsupported("COPY TO with ENCODING 'LATIN1' (files are written in UTF8)"));
        }
        if format == "parquet" && (of_rejects || of_files || self.latin1.is_some()) {
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "FORMAT parquet has no options of text files"));
        }
        if format != "csv" && of_files {
            let message = "NULL_PADDING and AUTO_DETECT are options of FORMAT csv";
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
        if self.on_error != Some(true)
            && let Some(what) = self.limit.map(|_| "REJECT_LIMIT").or(self.place())
        {
            let message = format!("COPY {what} requires ON_ERROR to be set to IGNORE");
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
        Ok(())
    }

    /// The options, but for the condition, of a file of which `hints` is known if its options are to be found.
    pub(super) fn options(self, hints: CsvHints) -> ReadOptions {
        let rejects = Rejects {
            ignores: self.on_error.unwrap_or_default(),
            limit: self.limit,
            table: self.table,
            file: self.file,
            is_silent: self.is_silent.unwrap_or_default(),
        };
        let hints = self.detects.unwrap_or_default().then_some(hints);
        ReadOptions { condition: None, rejects, hints }
    }
}

fn on_error(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "stop" => Ok(false),
        "ignore" => Ok(true),
        _ => {
            Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("COPY ON_ERROR is stop or ignore, not \"{text}\"")))
        }
    }
}

fn is_silent(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "silent" => Ok(true),
        "default" => Ok(false),
        "verbose" => {
            Err(Error::unsupported("COPY LOG_VERBOSITY verbose (REJECTS_TABLE and REJECTS_FILE have the rows)"))
        }
        _ => {
            let message = format!("COPY LOG_VERBOSITY is default or silent, not \"{text}\"");
            Err(Error::invalid(sqlstate::INVALID_PARAMETER, message))
        }
    }
}

fn limit(parser: &mut Parser<'_>) -> Result<u64> {
    let token = parser.next_token();
    let text = match &token.token {
        Token::Number(number, _) => number.clone(),
        Token::SingleQuotedString(text) => text.clone(),
        other => other.to_string(),
    };
    let limit = text.parse::<u64>().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| {
        Error::invalid(sqlstate::INVALID_PARAMETER, format!("REJECT_LIMIT is a number greater than zero, not {text}"))
    })
}

/// Reads `WHERE condition`, if it is there.
///
/// # Errors
/// 42601; those of an expression.
pub(super) fn condition(parser: &mut Parser<'_>) -> Result<Option<Expr>> {
    if !parser.parse_keyword(Keyword::WHERE) {
        return Ok(None);
    }
    let condition = parser.parse_expr().map_err(|e| syntax(&e))?;
    // As the condition of a query, whose rules are those of all.
    let mut query = query_of("SELECT true")?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = vec![SelectItem::UnnamedExpr(condition.clone())];
    }
    rewrite_extensions(&mut query)?;
    check_query(&query)?;
    Ok(Some(condition))
}
