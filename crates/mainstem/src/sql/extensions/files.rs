//! Files in FROM: `FROM 'file.csv'`, `read_csv('*.csv', delim => ';')`, `read_parquet('file.parquet')`, and
//! `sniff_csv('file.csv')`, which tells what a file looks like.
//!
//! Comes in: the tree of a statement. Goes out: `FROM 'file'` as the call [`FileFunction::Any`], called like the file;
//! and what a call asks for. It does not own: files.

use datafusion::sql::sqlparser::ast::{BinaryOperator, UnaryOperator};
use datafusion::sql::sqlparser::ast::{
    ColumnDef, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor,
    TableFunctionArgs, Value, ValueWithSpan, Visit, Visitor,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use std::ops::ControlFlow;

use super::super::dialect::{MainstemDialect, syntax};
use super::super::types::column_type;
use super::super::{LineEnd, NO_QUOTE, fold};
use crate::names::{did_you_mean, similar};
use crate::walk::walk;

/// The schema in which the files of a statement stand while it is planned.
pub(crate) const FILES_SCHEMA: &str = "files of the statement";

/// What reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFunction {
    /// As the name of the file says.
    Any,
    Csv,
    Parquet,
    /// What the file looks like.
    Sniff,
}

impl FileFunction {
    const NAMES: &[(&str, Self)] = &[
        ("read_file", Self::Any),
        ("read_csv", Self::Csv),
        ("read_csv_auto", Self::Csv),
        ("read_parquet", Self::Parquet),
        ("parquet_scan", Self::Parquet),
        ("sniff_csv", Self::Sniff),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, function)| *function == self).map_or("read_file", |(name, _)| *name)
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileCompression {
    None,
    Gzip,
    Zstd,
}

/// What is known of a CSV file before it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CsvHints {
    pub(crate) delimiter: Option<u8>,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) header: Option<bool>,
    pub(crate) null: Option<String>,
    pub(crate) line_end: Option<LineEnd>,
    pub(crate) null_padding: bool,
    pub(crate) latin1: bool,
    /// All columns are TEXT, but for those of `types`.
    pub(crate) all_text: bool,
    /// The names of all columns; none for those of the header.
    pub(crate) names: Vec<String>,
    /// The types of some columns, by name.
    pub(crate) types: Vec<(String, DataType)>,
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileRequest {
    pub(crate) function: FileFunction,
    /// Paths, with wildcards perhaps.
    pub(crate) paths: Vec<String>,
    pub(crate) hints: CsvHints,
    /// None: by the ends of their names.
    pub(crate) compression: Option<FileCompression>,
}

/// Says `FROM 'file'` as a call.
pub(super) fn name_file(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, args: args @ None, .. } = factor else { return };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return };
    if ident.quote_style != Some('\'') {
        return;
    }
    let path = ident.value.clone();
    let stem = path.rsplit(['/', '\\']).next().unwrap_or(&path).split('.').next().unwrap_or_default();
    let called = if stem.is_empty() || stem.contains(['*', '?', '[']) { "file" } else { stem };
    alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', called),
        columns: Vec::new(),
        at: None,
    });
    let file = Expr::value(Value::SingleQuotedString(path));
    *args = Some(TableFunctionArgs { args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(file))], settings: None });
    *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(FileFunction::Any.name()))]);
}

/// The function that `factor` calls, if it reads files.
fn called(factor: &TableFactor) -> Option<(FileFunction, &TableFunctionArgs)> {
    let TableFactor::Table { name, args: Some(args), .. } = factor else { return None };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    FileFunction::named(&fold(ident)).map(|function| (function, args))
}

/// Whether `tree` reads files.
pub(crate) fn reads_files(tree: &impl Visit) -> bool {
    struct Files;
    impl Visitor for Files {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if called(factor).is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    walk(tree, &mut Files).is_break()
}

/// Fails if `query`, which is kept by `what`, reads files.
///
/// # Errors
/// 0A000.
pub(crate) fn refuse_files(query: &Query, what: &str) -> Result<()> {
    if reads_files(query) { Err(Error::unsupported(format_args!("{what} that reads a file"))) } else { Ok(()) }
}

impl FileRequest {
    /// What `factor` asks for, if it reads files.
    ///
    /// # Errors
    /// 22023 and 42601 for arguments that are none.
    pub(crate) fn of(factor: &TableFactor) -> Result<Option<Self>> {
        let Some((function, arguments)) = called(factor) else { return Ok(None) };
        let mut request = Self { function, paths: Vec::new(), hints: CsvHints::default(), compression: None };
        let mut set: Vec<String> = Vec::new();
        for (at, argument) in arguments.args.iter().enumerate() {
            match named(argument) {
                Some((name, value)) => {
                    if set.contains(&name) {
                        let message = format!("{}: {name} is set twice", function.name());
                        return Err(Error::invalid(sqlstate::SYNTAX, message));
                    }
                    request.set(&name, value)?;
                    set.push(name);
                }
                None if at == 0 => request.paths = paths(argument, function)?,
                None => {
                    let message = format!(
                        "{} takes one argument without a name, the file or an array of files; options have names: \
                         header => true",
                        function.name()
                    );
                    return Err(Error::invalid(sqlstate::SYNTAX, message));
                }
            }
        }
        if request.paths.is_empty() {
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("{} needs a file", function.name())));
        }
        Ok(Some(request))
    }

    fn set(&mut self, name: &str, value: &Expr) -> Result<()> {
        let of = |error: Error| error.context(format_args!("{}: {name}", self.function.name()));
        if self.function == FileFunction::Parquet {
            return Err(of(Error::invalid(sqlstate::INVALID_PARAMETER, "a Parquet file has no options")));
        }
        let hints = &mut self.hints;
        match name {
            "delim" | "sep" | "delimiter" => hints.delimiter = Some(byte(value).map_err(of)?),
            "quote" => hints.quote = Some(byte_or_none(value).map_err(of)?),
            "escape" => hints.escape = Some(byte_or_none(value).map_err(of)?),
            "header" => hints.header = Some(flag(value).map_err(of)?),
            "null" | "nullstr" => hints.null = Some(text(value).map_err(of)?),
            "new_line" => hints.line_end = Some(line_end(&text(value).map_err(of)?).map_err(of)?),
            "null_padding" => hints.null_padding = flag(value).map_err(of)?,
            "all_varchar" | "all_text" => hints.all_text = flag(value).map_err(of)?,
            "encoding" => hints.latin1 = is_latin1(&text(value).map_err(of)?).map_err(of)?,
            "names" => hints.names = texts(value).map_err(of)?,
            "types" | "dtypes" => hints.types = columns_of(&text(value).map_err(of)?).map_err(of)?,
            "columns" => {
                hints.types = columns_of(&text(value).map_err(of)?).map_err(of)?;
                hints.names = hints.types.iter().map(|(name, _)| name.clone()).collect();
            }
            "compression" => self.compression = compression(&text(value).map_err(of)?).map_err(of)?,
            _ => return Err(unknown(self.function, name)),
        }
        Ok(())
    }
}

fn unknown(function: FileFunction, name: &str) -> Error {
    let known = [
        "delim",
        "quote",
        "escape",
        "header",
        "nullstr",
        "new_line",
        "null_padding",
        "all_varchar",
        "encoding",
        "names",
        "types",
        "columns",
        "compression",
    ];
    let near = similar(name, known);
    let hint = if near.is_empty() { format!("; there are {}", known.join(", ")) } else { did_you_mean(&near) };
    Error::invalid(sqlstate::INVALID_PARAMETER, format!("{} has no option \"{name}\"{hint}", function.name()))
}

/// The name and value of an argument: `name => value`, `name := value` or `name = value`.
fn named(argument: &FunctionArg) -> Option<(String, &Expr)> {
    match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), operator: _ } => Some((fold(name), value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Expr::Identifier(name) => Some((fold(name), right)),
            _ => None,
        },
        _ => None,
    }
}

fn paths(argument: &FunctionArg, function: FileFunction) -> Result<Vec<String>> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else {
        return Err(Error::invalid(sqlstate::SYNTAX, format!("{} takes the name of a file", function.name())));
    };
    let paths = match value {
        Expr::Array(_) => texts(value),
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }) => {
            return Err(Error::unsupported(format_args!("a parameter as the file of {}", function.name())));
        }
        value => text(value).map(|path| vec![path]),
    };
    paths.map_err(|error| error.context(format_args!("the file of {}", function.name())))
}

fn text(value: &Expr) -> Result<String> {
    match value {
        Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text),
            ..
        }) => Ok(text.clone()),
        _ => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("a text in quotes is wanted, not {value}"))),
    }
}

fn texts(value: &Expr) -> Result<Vec<String>> {
    match value {
        Expr::Array(array) => array.elem.iter().map(text).collect(),
        _ => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("an array of texts is wanted, not {value}"))),
    }
}

fn flag(value: &Expr) -> Result<bool> {
    match value {
        Expr::Value(ValueWithSpan { value: Value::Boolean(flag), .. }) => Ok(*flag),
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) if number == "1" => Ok(true),
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) if number == "0" => Ok(false),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => flag(expr).map(|flag| !flag),
        _ => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("true or false is wanted, not {value}"))),
    }
}

/// A text of one byte; `\t` is a tab.
fn byte(value: &Expr) -> Result<u8> {
    let text = text(value)?;
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !b"\r\n\0".contains(byte) => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("one ASCII character is wanted, not \"{text}\""))),
    }
}

/// The same, where nothing means that there is none.
fn byte_or_none(value: &Expr) -> Result<u8> {
    if text(value)?.is_empty() { Ok(NO_QUOTE) } else { byte(value) }
}

fn line_end(text: &str) -> Result<LineEnd> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "\n" | "\\n" | "lf" => LineEnd::LineFeed,
        "\r\n" | "\\r\\n" | "crlf" => LineEnd::Both,
        "\r" | "\\r" | "cr" => LineEnd::CarriageReturn,
        _ => return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "a line ends in '\\n', '\\r\\n' or '\\r'")),
    })
}

/// Whether an encoding is LATIN1, and not UTF-8.
pub(in crate::sql) fn is_latin1(encoding: &str) -> Result<bool> {
    match encoding.to_ascii_lowercase().as_str() {
        "utf8" | "utf-8" | "unicode" => Ok(false),
        "latin1" | "latin-1" | "iso88591" | "iso-8859-1" => Ok(true),
        _ => Err(Error::unsupported(format_args!("the encoding '{encoding}' (there are UTF8 and LATIN1)"))),
    }
}

fn compression(text: &str) -> Result<Option<FileCompression>> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "auto" | "auto_detect" => None,
        "none" => Some(FileCompression::None),
        "gzip" | "gz" => Some(FileCompression::Gzip),
        "zstd" | "zst" => Some(FileCompression::Zstd),
        _ => {
            let message = format!("there are none, gzip, zstd and auto, not \"{text}\"");
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
    })
}

/// Names and types as in `CREATE TABLE`: `a INTEGER, b TEXT`.
fn columns_of(text: &str) -> Result<Vec<(String, DataType)>> {
    let dialect = MainstemDialect::new(text.len());
    let read = Parser::new(&dialect).try_with_sql(&format!("({text})")).and_then(|mut parser| parser.parse_columns());
    let (columns, constraints) = read.map_err(|e| syntax(&e))?;
    if columns.is_empty() || !constraints.is_empty() || columns.iter().any(|column| !column.options.is_empty()) {
        let message = format!("names with types are wanted, as in 'a INTEGER, b TEXT', not \"{text}\"");
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
    }
    let typed = |column: &ColumnDef| match column_type(&column.data_type)? {
        DataType::Text { max_chars: Some(_) } | DataType::Char { .. } => {
            Err(Error::unsupported(format_args!("{} as the type of a file's column (use TEXT)", column.data_type)))
        }
        data_type => Ok((fold(&column.name), data_type)),
    };
    columns.iter().map(typed).collect()
}
