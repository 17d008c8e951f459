//! GENERATED ... AS IDENTITY and the SERIAL types.

use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, GeneratedAs, SequenceOptions};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{DataType, Identity};
use mainstem_storage::{Error, Result};

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
    let lists: Vec<(usize, usize)> = (0..tokens.len())
        .filter_map(begins)
        .filter_map(|from| {
            let open = from + tokens.get(from..)?.iter().position(|t| !matches!(t.token, Token::Whitespace(_)))?;
            let is_list = matches!(tokens.get(open)?.token, Token::LParen);
            let close = open + tokens.get(open..)?.iter().position(|t| matches!(t.token, Token::RParen))?;
            is_list.then_some((open + 1, close))
        })
        .collect();
    for (from, to) in lists {
        let Some(list) = tokens.get_mut(from..to) else { continue };
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
