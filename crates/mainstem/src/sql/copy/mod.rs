//! COPY, by a grammar of our own on sqlparser's tokens: its list of options is closed.
//!
//! ```text
//! COPY table [(column, ...)] FROM { 'file' | STDIN } [[WITH] (option, ...)]
//! COPY { table [(column, ...)] | (query) } TO { 'file' | STDOUT } [[WITH] (option, ...)]
//! COPY ... [WITH] [CSV] [HEADER] [DELIMITER [AS] 'c'] ..., as before there were parentheses
//! option: FORMAT text | csv | parquet, HEADER [bool | match], DELIMITER 'c', NULL 's', QUOTE 'c', ESCAPE 'c',
//!         ENCODING 'UTF8'; `from` has those of COPY FROM alone, and its WHERE
//! ```

mod from;
mod row_limit;

use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser};
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use self::from::{GivenToRead, condition};
pub(crate) use self::from::{ReadOptions, Rejects};
pub(crate) use self::row_limit::RowLimit;
use super::dialect::syntax;
use super::extensions::rewrite_extensions;
use super::{CsvHints, TableName, check_query, fold, query_of, state, table_name};

/// Where COPY TO takes its rows from, or COPY FROM puts them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CopySource {
    /// A table and the named columns; none named means all.
    Table { table: TableName, columns: Vec<String> },
    /// A query.
    Query(Box<Query>),
}

/// A file format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    /// A line a row, as PostgreSQL writes and reads them: special characters behind a backslash.
    Text(TextOptions),
    /// Comma-separated values, as PostgreSQL writes and reads them.
    Csv(CsvOptions),
    /// Apache Parquet.
    Parquet,
}

impl CopyFormat {
    /// The same, of rows that `limit` allows.
    pub(crate) fn limited(mut self, limit: RowLimit) -> Self {
        match &mut self {
            Self::Text(options) => options.row_limit = limit,
            Self::Csv(options) => options.row_limit = limit,
            Self::Parquet => {}
        }
        self
    }
}

/// How lines of FORMAT text look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextOptions {
    /// The first line is names, which a reader passes over.
    pub(crate) header: bool,
    pub(crate) delimiter: u8,
    /// What means NULL, before backslashes are looked at.
    pub(crate) null: String,
    /// Whether its bytes are LATIN1, and not UTF-8.
    pub(crate) latin1: bool,
    /// Of what is read.
    pub(crate) row_limit: RowLimit,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { header: false, delimiter: b'\t', null: "\\N".into(), latin1: false, row_limit: RowLimit::MAX }
    }
}

/// How CSV looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// The first line is names, which a reader passes over.
    pub(crate) header: bool,
    /// Whether its names must be those of the columns.
    pub(crate) matches: bool,
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    /// Stands before a quote within quotes; the quote itself unless told otherwise.
    pub(crate) escape: u8,
    /// Unquoted text that means NULL.
    pub(crate) null: String,
    /// How its lines end.
    pub(crate) line_end: LineEnd,
    /// Whether a row with too few fields has NULL in the others.
    pub(crate) padding: bool,
    /// Whether its bytes are LATIN1, and not UTF-8.
    pub(crate) latin1: bool,
    /// Of what is read.
    pub(crate) row_limit: RowLimit,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            header: false,
            matches: false,
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            line_end: LineEnd::default(),
            padding: false,
            latin1: false,
            row_limit: RowLimit::MAX,
        }
    }
}

/// What stands for a quote in files that have none: no file of text has it.
pub(crate) const NO_QUOTE: u8 = 1;

/// How the lines of a file end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// In a line feed, perhaps behind a carriage return.
    #[default]
    LineFeed,
    /// The same, of a file whose first line has both.
    Both,
    /// In a carriage return.
    CarriageReturn,
}

impl LineEnd {
    /// The last byte of a line.
    pub(crate) fn byte(self) -> u8 {
        if self == Self::CarriageReturn { b'\r' } else { b'\n' }
    }
}

impl std::fmt::Display for LineEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LineFeed => "LF",
            Self::Both => "CRLF",
            Self::CarriageReturn => "CR",
        })
    }
}

/// Where the data is, or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyPlace {
    /// A file of the machine that the database runs on.
    File(String),
    /// STDIN, STDOUT: the program that runs the statement.
    Client,
}

/// Place and format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    pub(crate) place: CopyPlace,
    pub(crate) format: CopyFormat,
    /// Of COPY TO.
    pub(crate) written: Written,
}

/// What COPY TO alone is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The columns by whose values rows are put into folders; none: there is one file.
    pub(crate) partition_by: Vec<String>,
    /// How pages of Parquet are compressed.
    pub(crate) compression: Compression,
}

/// How pages of a file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Compression {
    Zstd,
    #[default]
    Snappy,
    Lz4,
    None,
}

/// A COPY.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CopyStatement {
    /// COPY FROM.
    From { table: TableName, columns: Vec<String>, options: CopyOptions, read: Box<ReadOptions> },
    /// COPY TO.
    To { source: CopySource, options: CopyOptions },
}

/// A stream of the program that runs a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStream {
    /// COPY FROM STDIN: run it with [`crate::Connection::copy_in`].
    Stdin,
    /// COPY TO STDOUT: run it with [`crate::Connection::copy_out`].
    Stdout,
}

/// Reads a COPY.
pub(super) fn parse_copy(parser: &mut Parser<'_>) -> Result<CopyStatement> {
    parser.expect_keyword_is(Keyword::COPY).map_err(|e| syntax(&e))?;
    let source = if parser.consume_token(&Token::LParen) {
        let mut query = parser.parse_query().map_err(|e| syntax(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| syntax(&e))?;
        rewrite_extensions(&mut query)?;
        check_query(&query)?;
        CopySource::Query(query)
    } else {
        let name = parser.parse_object_name(false).map_err(|e| syntax(&e))?;
        let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false).map_err(|e| syntax(&e))?;
        match table_name(&name) {
            Ok(table) => CopySource::Table { table, columns: columns.iter().map(fold).collect() },
            // A system table can be read.
            Err(error) if error.sqlstate() == state::READ_ONLY_TABLE && parser.peek_keyword(Keyword::TO) => {
                let items: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let items = if items.is_empty() { "*".to_owned() } else { items.join(", ") };
                CopySource::Query(query_of(&format!("SELECT {items} FROM {name}"))?)
            }
            Err(error) => return Err(error),
        }
    };
    let direction = parser.expect_one_of_keywords(&[Keyword::FROM, Keyword::TO]).map_err(|e| syntax(&e))?;
    let to = direction == Keyword::TO;
    let place = place(parser, to)?;
    let (format, mut read, written) = options(parser, &place, to)?;
    if !to {
        read.condition = condition(parser)?;
    }
    let options = CopyOptions { place, format, written };
    match (source, to) {
        (source, true) => Ok(CopyStatement::To { source, options }),
        (_, false) if options.written != Written::default() => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            "PARTITION_BY and COMPRESSION are options of COPY TO (a reader finds out by itself)",
        )),
        (CopySource::Table { table, columns }, false) => {
            Ok(CopyStatement::From { table, columns, options, read: Box::new(read) })
        }
        (CopySource::Query(_), false) => {
            Err(Error::invalid(sqlstate::SYNTAX, "syntax error: COPY FROM needs a table, not a query"))
        }
    }
}

fn place(parser: &mut Parser<'_>, to: bool) -> Result<CopyPlace> {
    let (client, name) = if to { (Keyword::STDOUT, "STDOUT") } else { (Keyword::STDIN, "STDIN") };
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(path) => Ok(CopyPlace::File(path)),
        Token::Word(w) if w.keyword == client => Ok(CopyPlace::Client),
        Token::Word(w) if w.keyword == Keyword::PROGRAM => Err(Error::unsupported("COPY with PROGRAM")),
        _ => Err(Error::invalid(
            sqlstate::SYNTAX,
            format!("syntax error: expected a file name in quotes or {name}, found: {token}{}", token.span.start),
        )),
    }
}

#[derive(Default)]
struct Given {
    format: Option<String>,
    header: Option<bool>,
    /// Whether its names are to be those of the columns.
    matches: bool,
    delimiter: Option<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    null: Option<String>,
    read: GivenToRead,
    partition_by: Option<Vec<String>>,
    compression: Option<Compression>,
}

impl Given {
    /// What is for COPY TO, and leaves it out.
    fn take_written(&mut self, place: &CopyPlace) -> Result<Written> {
        let partition_by = self.partition_by.take().unwrap_or_default();
        if *place == CopyPlace::Client && !partition_by.is_empty() {
            return Err(Error::unsupported("COPY ... PARTITION_BY with STDOUT (name a folder)"));
        }
        Ok(Written { partition_by, compression: self.compression.unwrap_or_default() })
    }
}

fn options(parser: &mut Parser<'_>, place: &CopyPlace, to: bool) -> Result<(CopyFormat, ReadOptions, Written)> {
    let mut given = Given::default();
    let with = parser.parse_keyword(Keyword::WITH);
    if parser.consume_token(&Token::LParen) {
        loop {
            option(parser, &mut given)?;
            if parser.consume_token(&Token::RParen) {
                break;
            }
            parser.expect_token(&Token::Comma).map_err(|e| syntax(&e))?;
        }
    } else {
        let before = parser.index();
        while matches!(parser.peek_token_ref().token, Token::Word(_)) && !parser.peek_keyword(Keyword::WHERE) {
            bare_option(parser, &mut given)?;
        }
        if with && parser.index() == before {
            parser.expect_token(&Token::LParen).map_err(|e| syntax(&e))?;
        }
    }
    let extension = match place {
        CopyPlace::File(path) => path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase(),
        CopyPlace::Client => String::new(),
    };
    let format = given.format.clone().unwrap_or_else(|| match extension.as_str() {
        known @ ("csv" | "parquet") => known.to_string(),
        _ => "text".to_string(),
    });
    let written = given.take_written(place)?;
    if given.compression.is_some() && format != "parquet" {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "COMPRESSION is an option of FORMAT parquet"));
    }
    given.read.check(to, &format)?;
    if to && given.matches {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "cannot use \"match\" with HEADER in COPY TO"));
    }
    let hints = given.hints();
    if given.read.detects() && *place == CopyPlace::Client {
        return Err(Error::unsupported("COPY ... AUTO_DETECT with STDIN (name a file)"));
    }
    let read = std::mem::take(&mut given.read).options(hints.clone());
    let format = format_of(&format, given, &hints, place)?;
    Ok((format, read, written))
}

fn format_of(name: &str, given: Given, hints: &CsvHints, place: &CopyPlace) -> Result<CopyFormat> {
    match name {
        "csv" => csv(given, hints),
        "text" => text(given, hints.latin1),
        "parquet" if *place == CopyPlace::Client => {
            Err(Error::unsupported("COPY FORMAT parquet with STDIN or STDOUT (name a file)"))
        }
        "parquet" => {
            let Given { header, delimiter, quote, escape, null, .. } = given;
            if header.is_some() || delimiter.is_some() || quote.is_some() || escape.is_some() || null.is_some() {
                return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "FORMAT parquet has no CSV options"));
            }
            Ok(CopyFormat::Parquet)
        }
        "binary" => Err(Error::unsupported("COPY FORMAT binary (use text, csv or parquet)")),
        other => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("COPY format \"{other}\" is not known"))),
    }
}

fn text(given: Given, latin1: bool) -> Result<CopyFormat> {
    if given.matches {
        return Err(Error::unsupported("HEADER MATCH of FORMAT text"));
    }
    if given.quote.is_some() || given.escape.is_some() {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "QUOTE and ESCAPE are options of FORMAT csv"));
    }
    let default = TextOptions::default();
    let text = TextOptions {
        header: given.header.unwrap_or_default(),
        delimiter: given.delimiter.unwrap_or(default.delimiter),
        null: given.null.unwrap_or(default.null),
        latin1,
        row_limit: default.row_limit,
    };
    if breaks(text.delimiter) || text.null.bytes().any(breaks) {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "a line break cannot be a COPY option"));
    }
    // Those would be taken for an escape sequence, or for a part of one.
    if text.delimiter == b'.'
        || text.delimiter == b'\\'
        || text.delimiter.is_ascii_lowercase()
        || text.delimiter.is_ascii_digit()
    {
        let delimiter = char::from(text.delimiter);
        return Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("DELIMITER cannot be \"{delimiter}\" in FORMAT text"),
        ));
    }
    if text.null.bytes().any(|b| b == text.delimiter) {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "NULL must not contain the delimiter"));
    }
    Ok(CopyFormat::Text(text))
}

fn breaks(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

impl Given {
    /// What they say of a file whose other options are found in it.
    fn hints(&self) -> CsvHints {
        CsvHints {
            delimiter: self.delimiter,
            quote: self.quote,
            escape: self.escape,
            header: self.header,
            null: self.null.clone(),
            null_padding: self.read.pads(),
            latin1: self.read.is_latin1(),
            ..CsvHints::default()
        }
    }
}

fn csv(given: Given, hints: &CsvHints) -> Result<CopyFormat> {
    let default = CsvOptions::default();
    let quote = given.quote.unwrap_or(default.quote);
    let csv = CsvOptions {
        header: given.header.unwrap_or_default(),
        matches: given.matches,
        delimiter: given.delimiter.unwrap_or(default.delimiter),
        quote,
        escape: given.escape.unwrap_or(quote),
        null: given.null.unwrap_or_default(),
        padding: hints.null_padding,
        latin1: hints.latin1,
        ..default
    };
    if breaks(csv.delimiter) || breaks(csv.quote) || breaks(csv.escape) || csv.null.bytes().any(breaks) {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "a line break cannot be a COPY option"));
    }
    if csv.delimiter == csv.quote {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "DELIMITER and QUOTE must be different"));
    }
    if csv.null.bytes().any(|b| b == csv.delimiter || b == csv.quote) {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "NULL must not contain the delimiter or the quote"));
    }
    Ok(CopyFormat::Csv(csv))
}

fn option(parser: &mut Parser<'_>, given: &mut Given) -> Result<()> {
    let token = parser.next_token();
    let Token::Word(word) = &token.token else {
        return Err(Error::invalid(
            sqlstate::SYNTAX,
            format!("syntax error: expected an option of COPY, found: {token}{}", token.span.start),
        ));
    };
    let name = word.value.to_ascii_lowercase();
    let set_before = match name.as_str() {
        "format" => given.format.replace(word_or_text(parser)?.to_ascii_lowercase()).is_some(),
        "header" => {
            let (header, matches) = header(parser)?;
            given.matches = matches;
            given.header.replace(header).is_some()
        }
        "delimiter" => given.delimiter.replace(character(parser, &name)?).is_some(),
        "quote" => given.quote.replace(character(parser, &name)?).is_some(),
        "escape" => given.escape.replace(character(parser, &name)?).is_some(),
        "null" => given.null.replace(word_or_text(parser)?).is_some(),
        "partition_by" => given.partition_by.replace(columns(parser)?).is_some(),
        "compression" => given.compression.replace(compression(&word_or_text(parser)?)?).is_some(),
        name => match given.read.option(parser, name)? {
            Some(set_before) => set_before,
            None => return Err(Error::unsupported(format_args!("the COPY option {}", word.value))),
        },
    };
    if set_before {
        return Err(Error::invalid(sqlstate::SYNTAX, format!("COPY option {name} is set twice")));
    }
    Ok(())
}

/// An option as it was written before there were parentheses: `WITH CSV HEADER DELIMITER AS ';'`.
fn bare_option(parser: &mut Parser<'_>, given: &mut Given) -> Result<()> {
    let token = parser.next_token();
    let name = match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let text = |parser: &mut Parser<'_>| {
        let _ = parser.parse_keyword(Keyword::AS);
        word_or_text(parser)
    };
    let set_before = match name.as_str() {
        "csv" => given.format.replace(name.clone()).is_some(),
        "header" => given.header.replace(true).is_some(),
        "delimiter" | "delimiters" => {
            let text = text(parser)?;
            given.delimiter.replace(one_byte(&text, "delimiter")?).is_some()
        }
        "quote" => {
            let text = text(parser)?;
            given.quote.replace(one_byte(&text, &name)?).is_some()
        }
        "escape" => {
            let text = text(parser)?;
            given.escape.replace(one_byte(&text, &name)?).is_some()
        }
        "null" => given.null.replace(text(parser)?).is_some(),
        "encoding" => {
            let encoding = word_or_text(parser)?;
            given.read.set_encoding(&encoding)?
        }
        "binary" | "freeze" | "force" => {
            return Err(Error::unsupported(format_args!("the COPY option {}", name.to_uppercase())));
        }
        _ => {
            return Err(Error::invalid(
                sqlstate::SYNTAX,
                format!("syntax error: expected an option of COPY, found: {token}{}", token.span.start),
            ));
        }
    };
    if set_before {
        return Err(Error::invalid(sqlstate::SYNTAX, format!("COPY option {name} is set twice")));
    }
    Ok(())
}

fn word_or_text(parser: &mut Parser<'_>) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        Token::Word(word) => Ok(word.value),
        _ => Err(Error::invalid(
            sqlstate::SYNTAX,
            format!("syntax error: expected a value, found: {token}{}", token.span.start),
        )),
    }
}

/// The truth value of option `name`; nothing is true.
fn flag(parser: &mut Parser<'_>, name: &str) -> Result<bool> {
    if matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
        return Ok(true);
    }
    let token = parser.next_token();
    let text = match &token.token {
        Token::SingleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        Token::Number(number, false) => number.clone(),
        other => other.to_string(),
    };
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(Error::invalid(sqlstate::SYNTAX, format!("{name} is true or false, not \"{text}\""))),
    }
}

/// Whether there is a header, and whether its names are to be those of the columns.
fn header(parser: &mut Parser<'_>) -> Result<(bool, bool)> {
    let is_match = match &parser.peek_token_ref().token {
        Token::Word(word) => word.value.eq_ignore_ascii_case("match"),
        Token::SingleQuotedString(text) => text.eq_ignore_ascii_case("match"),
        _ => false,
    };
    if is_match {
        parser.advance_token();
        return Ok((true, true));
    }
    flag(parser, "HEADER").map(|header| (header, false))
}

fn columns(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let named = parser.parse_parenthesized_column_list(IsOptional::Mandatory, false).map_err(|e| syntax(&e))?;
    let named: Vec<String> = named.iter().map(fold).collect();
    match named.iter().enumerate().find(|(at, name)| named.iter().take(*at).any(|before| before == *name)) {
        Some((_, twice)) => {
            Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("PARTITION_BY names column \"{twice}\" twice")))
        }
        None => Ok(named),
    }
}

fn compression(name: &str) -> Result<Compression> {
    match name.to_ascii_lowercase().as_str() {
        "zstd" => Ok(Compression::Zstd),
        "snappy" => Ok(Compression::Snappy),
        "lz4" => Ok(Compression::Lz4),
        "none" | "uncompressed" => Ok(Compression::None),
        _ => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("COMPRESSION is zstd, snappy, lz4 or none, not \"{name}\""),
        )),
    }
}

fn character(parser: &mut Parser<'_>, name: &str) -> Result<u8> {
    one_byte(&word_or_text(parser)?, name)
}

fn one_byte(text: &str, name: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("COPY {} must be a single one-byte character", name.to_uppercase()),
        )),
    }
}
