//! GENERATED ... AS IDENTITY and the SERIAL types.

use std::fmt;

use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GeneratedAs, ObjectName, Query,
    SelectItem, SequenceOptions, SetExpr,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{DataType, Identity};
use mainstem_storage::{Error, Result};

use super::super::dialect::syntax;
use super::super::{TableName, table_name};

/// The type of a SERIAL column: one that counts by default.
pub(super) fn serial_type(sql: &SqlType) -> Option<DataType> {
    let SqlType::Custom(name, modifiers) = sql else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    match name.to_string().to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => Some(DataType::SmallInt),
        "serial" | "serial4" => Some(DataType::Integer),
        "bigserial" | "serial8" => Some(DataType::BigInt),
        _ => None,
    }
}

/// How a SERIAL column counts.
pub(super) const SERIAL: Identity = Identity { always: false, start: 1, increment: 1 };

/// Puts the options of each `AS IDENTITY (...)` into the one order that sqlparser reads.
pub(in super::super) fn order_options(tokens: &mut [TokenWithSpan]) {
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let begins = |at: usize| word(tokens.get(at)?).filter(|keyword| *keyword == Keyword::IDENTITY).map(|_| at + 1);
    let of_sequence = sequence_options(tokens, &word);
    let lists: Vec<(usize, usize)> = (0..tokens.len())
        .filter_map(begins)
        .filter_map(|from| {
            let open = from + tokens.get(from..)?.iter().position(|t| !matches!(t.token, Token::Whitespace(_)))?;
            let is_list = matches!(tokens.get(open)?.token, Token::LParen);
            let close = open + tokens.get(open..)?.iter().position(|t| matches!(t.token, Token::RParen))?;
            is_list.then_some((open + 1, close))
        })
        .chain(of_sequence)
        .collect();
    for (from, to) in lists {
        let Some(list) = tokens.get_mut(from..to) else { continue };
        take_sequence_name(list);
        let mut options: Vec<(usize, Vec<TokenWithSpan>)> = vec![(0, Vec::new())];
        let mut negated = false;
        for token in list.iter() {
            let keyword = word(token);
            let rank = match keyword {
                Some(Keyword::INCREMENT) => Some(1),
                Some(Keyword::MINVALUE) => Some(2),
                Some(Keyword::MAXVALUE) => Some(3),
                Some(Keyword::START) => Some(4),
                Some(Keyword::CACHE) => Some(5),
                Some(Keyword::CYCLE) => Some(6),
                Some(Keyword::NO) => Some(0),
                _ => None,
            };
            match (rank, options.last_mut()) {
                // NO belongs to what comes behind it.
                (Some(rank), Some(last)) if negated => last.0 = rank,
                (Some(rank), _) => options.push((rank, Vec::new())),
                _ => {}
            }
            if !matches!(token.token, Token::Whitespace(_)) {
                negated = keyword == Some(Keyword::NO);
            }
            if let Some(last) = options.last_mut() {
                last.1.push(token.clone());
            }
        }
        options.sort_by_key(|(rank, _)| *rank);
        for (slot, token) in list.iter_mut().zip(options.into_iter().flat_map(|(_, tokens)| tokens)) {
            *slot = token;
        }
    }
}

/// Where the options of a CREATE SEQUENCE stand.
fn sequence_options(
    tokens: &[TokenWithSpan],
    word: &dyn Fn(&TokenWithSpan) -> Option<Keyword>,
) -> Option<(usize, usize)> {
    let mut solid = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let begins =
        solid.next().and_then(word) == Some(Keyword::CREATE) && solid.next().and_then(word) == Some(Keyword::SEQUENCE);
    let first = |token: &TokenWithSpan| {
        use Keyword as K;
        matches!(word(token), Some(K::INCREMENT | K::MINVALUE | K::MAXVALUE | K::START | K::CACHE | K::CYCLE | K::NO))
    };
    let from = tokens.iter().position(first).filter(|_| begins)?;
    let ends = |token: &TokenWithSpan| matches!(token.token, Token::EOF) || word(token) == Some(Keyword::OWNED);
    let to = tokens.iter().position(ends).unwrap_or(tokens.len());
    (from < to).then_some((from, to))
}

/// Takes `SEQUENCE NAME name` out, which sqlparser does not know: the sequence of a column is called by the column.
fn take_sequence_name(list: &mut [TokenWithSpan]) {
    let is = |token: &Token, what: &str| matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(what));
    let solid: Vec<usize> = (0..list.len())
        .filter(|at| !list.get(*at).is_some_and(|token| matches!(token.token, Token::Whitespace(_))))
        .collect();
    let token = |nth: usize| solid.get(nth).and_then(|at| list.get(*at)).map(|token| &token.token);
    let found = (0..solid.len())
        .find(|nth| token(*nth).is_some_and(|t| is(t, "sequence")) && token(nth + 1).is_some_and(|t| is(t, "name")));
    let Some(first) = found else { return };
    let mut end = first + 3;
    while token(end) == Some(&Token::Period) {
        end += 2;
    }
    for at in solid.get(first..end.min(solid.len())).unwrap_or_default() {
        if let Some(slot) = list.get_mut(*at) {
            slot.token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// Reads the options of an IDENTITY column.
///
/// # Errors
/// 22023 for an increment of 0, 0A000 for options that are not kept.
pub(super) fn identity(generated: &GeneratedAs, options: Option<&Vec<SequenceOptions>>) -> Result<Identity> {
    let always = match generated {
        GeneratedAs::Always => true,
        GeneratedAs::ByDefault => false,
        GeneratedAs::ExpStored => return Err(Error::unsupported("a column computed from others")),
    };
    let (mut start, mut increment) = (None, 1);
    for option in options.into_iter().flatten() {
        match option {
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            SequenceOptions::IncrementBy(value, _) => increment = number(value)?,
            // One at a time, as dumps say.
            SequenceOptions::Cache(count) if count.to_string() == "1" => {}
            SequenceOptions::MinValue(None) | SequenceOptions::MaxValue(None) | SequenceOptions::Cycle(true) => {}
            other => return Err(Error::unsupported(format_args!("the option{other} of an identity column"))),
        }
    }
    if increment == 0 {
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, "INCREMENT must not be zero"));
    }
    let start = start.unwrap_or(if increment > 0 { 1 } else { -1 });
    // Upwards from 1 and downwards from -1, as PostgreSQL's sequences without bounds of their own.
    if increment > 0 && start < 1 {
        let message = format!("START value ({start}) cannot be less than MINVALUE (1)");
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
    }
    if increment < 0 && start > -1 {
        let message = format!("START value ({start}) cannot be greater than MAXVALUE (-1)");
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
    }
    Ok(Identity { always, start, increment })
}

fn number(expr: &Expr) -> Result<i64> {
    let text = expr.to_string();
    text.parse()
        .map_err(|_| Error::invalid(sqlstate::SYNTAX, format!("\"{text}\" is no number for an identity column")))
}

/// `SELECT setval(sequence, value, is_called)`: where an IDENTITY column goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetPosition {
    pub(crate) sequence: Sequence,
    pub(crate) value: i64,
    /// Whether the value was given out already.
    pub(crate) is_called: bool,
}

/// What counts the values of an IDENTITY column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// By its name, which several columns may have.
    Named(TableName),
    /// `pg_get_serial_sequence(table, column)`: that of a column.
    OfColumn { table: TableName, column: String },
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{name}"),
            Self::OfColumn { table, column } => write!(f, "{table}.{column}"),
        }
    }
}

/// Reads a `setval`, if `query` is that and nothing else.
///
/// # Errors
/// 42601 for what is no name.
pub(in super::super) fn setval(query: &Query) -> Result<Option<SetPosition>> {
    let SetExpr::Select(select) = &*query.body else { return Ok(None) };
    let [SelectItem::UnnamedExpr(Expr::Function(call))] = select.projection.as_slice() else { return Ok(None) };
    let name = call.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    if name.strip_prefix("pg_catalog.").unwrap_or(&name) != "setval" || query.to_string() != format!("SELECT {call}") {
        return Ok(None);
    }
    let literal = |at: usize| match list.args.get(at) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => Some(expr.to_string()),
        _ => None,
    };
    let is_called = match (literal(2).as_deref(), list.args.len()) {
        (None, 2) | (Some("true"), 3) => true,
        (Some("false"), 3) => false,
        _ => return Ok(None),
    };
    let value = literal(1).and_then(|text| text.trim_matches('\'').parse().ok());
    let (Some(argument), Some(value)) = (list.args.first(), value) else { return Ok(None) };
    let sequence = match (serial_sequence(argument), sequence_text(argument)) {
        (Some((table, column)), _) => Sequence::OfColumn { table: sequence_name(&table)?, column },
        (None, Some(name)) => Sequence::Named(sequence_name(&name)?),
        (None, None) => return Ok(None),
    };
    Ok(Some(SetPosition { sequence, value, is_called }))
}

/// The texts of `pg_get_serial_sequence(table, column)`.
fn serial_sequence(argument: &FunctionArg) -> Option<(String, String)> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call))) = argument else { return None };
    let name = call.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [table, column] if name.strip_prefix("pg_catalog.").unwrap_or(&name) == "pg_get_serial_sequence" => {
            Some((sequence_text(table)?, sequence_text(column)?))
        }
        _ => None,
    }
}

/// A literal text, that of a sequence perhaps as a `regclass`.
fn sequence_text(argument: &FunctionArg) -> Option<String> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return None };
    let value = match expr {
        Expr::Cast { expr, data_type, .. } if data_type.to_string().eq_ignore_ascii_case("regclass") => expr,
        expr => expr,
    };
    match value {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    }
}

/// # Errors
/// 42601.
fn sequence_name(text: &str) -> Result<TableName> {
    let dialect = PostgreSqlDialect {};
    let name = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| parser.parse_object_name(false));
    table_name(&name.map_err(|e| syntax(&e))?)
}

/// The sequence that a default draws from, if that is all it does.
///
/// # Errors
/// 42601.
pub(super) fn nextval(default: &Expr) -> Result<Option<TableName>> {
    let Expr::Function(call) = default else { return Ok(None) };
    let name = call.name.to_string().to_ascii_lowercase();
    match &call.args {
        FunctionArguments::List(list) if name.strip_prefix("pg_catalog.").unwrap_or(&name) == "nextval" => {
            let [argument] = list.args.as_slice() else { return Ok(None) };
            sequence_text(argument).map(|text| sequence_name(&text)).transpose()
        }
        _ => Ok(None),
    }
}

/// CREATE SEQUENCE, as far as an IDENTITY column may count like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateSequence {
    pub(crate) name: TableName,
    pub(crate) identity: Identity,
}

/// Reads a CREATE SEQUENCE.
///
/// # Errors
/// As [`identity`].
pub(in super::super) fn create_sequence(name: &ObjectName, options: &Vec<SequenceOptions>) -> Result<CreateSequence> {
    let identity = identity(&GeneratedAs::ByDefault, Some(options))?;
    Ok(CreateSequence { name: table_name(name)?, identity })
}

/// 22023 unless the type counts.
pub(super) fn check_type(data_type: DataType) -> Result<()> {
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Ok(()),
        _ => Err(Error::invalid(
            sqlstate::INVALID_PARAMETER,
            "identity column type must be smallint, integer, or bigint",
        )),
    }
}
