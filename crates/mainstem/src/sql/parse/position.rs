//! Where in the text of statements an error is.
//!
//! Comes in: an error, and the text that was run. Goes out: the error with the number of the character at which it is,
//! if that can be told for certain. Steps: a parser's message ends with line and column; else the name that the error
//! is about is looked for among the tokens of its statement. It counts if it is there once, or if one of its places is
//! where the planner read it: the planner reads rewritten statements, and those of views, so its places are not
//! believed alone.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use mainstem_storage::Error;
use mainstem_storage::error::{NamedObject, ObjectKind};

use super::super::dialect::MainstemDialect;

/// The end of a message about a statement that ends too early.
const AT_END: &str = "found: EOF";

/// A parser's `error` about `text`, with its position. `end` is where the last token of the statement ends.
pub(super) fn of_syntax_error(error: Error, text: &str, end: Option<Location>) -> Error {
    let Some(reported) = location_in(error.message()) else {
        let end = end.filter(|_| error.message().ends_with(AT_END));
        return error.with_position(end.and_then(|end| offset(text, end)));
    };
    match token_found(error.message(), text, reported) {
        Some(found) if found != reported => {
            let (before, _) = error.message().rsplit_once(" at Line: ").unwrap_or_default();
            let message = format!("{before}{found}");
            error.with_message(message).with_position(offset(text, found))
        }
        found => error.with_position(found.and_then(|found| offset(text, found))),
    }
}

/// Where the token is that `message` says was found at `reported`. sqlparser tells the place of the token behind it
/// sometimes.
fn token_found(message: &str, text: &str, reported: Location) -> Option<Location> {
    let Some((_, found)) = message.rsplit_once("found: ") else { return Some(reported) };
    let (found, _) = found.rsplit_once(" at Line: ")?;
    let tokens = Tokenizer::new(&MainstemDialect::new(0), text).tokenize_with_location().ok()?;
    let solid: Vec<&TokenWithSpan> = tokens.iter().filter(|token| is_solid(token)).collect();
    let seen = solid.iter().take_while(|token| token.span.start <= reported).count();
    if found.starts_with(':') && found.chars().nth(1).is_some_and(char::is_alphanumeric) {
        // Two tokens, of which the parser has seen the first one.
        let pairs = solid.windows(2).take(seen).rev().take(3);
        return pairs.filter(|pair| is_parameter(pair, found)).find_map(|pair| Some(pair.first()?.span.start));
    }
    let last_two = solid.iter().take(seen).rev().take(2);
    last_two.filter(|token| token.token.to_string() == found).map(|token| token.span.start).next()
}

/// Where the last token of a statement ends.
pub(super) fn end_of(tokens: &[TokenWithSpan]) -> Option<Location> {
    tokens.iter().rev().find(|token| is_solid(token)).map(|token| token.span.end)
}

/// Line and column that a parser's message ends with.
pub(super) fn location_in(message: &str) -> Option<Location> {
    let (_, behind) = message.rsplit_once(" at Line: ")?;
    let (line, column) = behind.split_once(", Column: ")?;
    Some(Location::new(line.parse().ok()?, column.parse().ok()?))
}

/// `error` of statement number `statement`, from 0, of `text`, with the position of the name that it is about.
pub(super) fn of_name(error: Error, text: &str, statement: usize) -> Error {
    let Some(object) = error.object().filter(|_| error.position().is_none()) else { return error };
    let Ok(tokens) = Tokenizer::new(&MainstemDialect::new(0), text).tokenize_with_location() else { return error };
    let statements = tokens.split(|token| token.token == Token::SemiColon);
    let solid = statements.map(|part| part.iter().filter(|token| is_solid(token)).collect::<Vec<_>>());
    let Some(tokens) = solid.filter(|part| !part.is_empty()).nth(statement) else { return error };
    let position = place(object, &tokens).and_then(|at| offset(text, at));
    error.with_position(position)
}

/// Whether `token` is neither blank nor a comment.
pub(super) fn is_solid(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

/// The number of the character, from 1, at a line and column of `text`.
fn offset(text: &str, location: Location) -> Option<usize> {
    let mut at = Location::new(1, 1);
    let mut position = 1;
    for c in text.chars() {
        if at == location {
            return Some(position);
        }
        at = if c == '\n' { Location::new(at.line + 1, 1) } else { Location::new(at.line, at.column + 1) };
        position += 1;
    }
    (at == location).then_some(position)
}

/// Where the name of `object` stands in the statement of `tokens`.
fn place(object: &NamedObject, tokens: &[&TokenWithSpan]) -> Option<Location> {
    let mut found = places(object, &object.name, tokens);
    // The planner may have added the table to a column's name, and the schema to a table's.
    if let ([], [.., last], true) = (found.as_slice(), object.name.as_slice(), object.name.len() > 1) {
        found = places(object, std::slice::from_ref(last), tokens);
    }
    match found.as_slice() {
        [only] => Some(*only),
        several => several.iter().copied().find(|at| object.location == Some((at.line, at.column))),
    }
}

/// All places where `name` stands as that of an object of this kind does.
fn places(object: &NamedObject, name: &[String], tokens: &[&TokenWithSpan]) -> Vec<Location> {
    if let [parameter] = name
        && parameter.starts_with(':')
    {
        let found = tokens.windows(2).filter(|pair| is_parameter(pair, parameter));
        return found.filter_map(|pair| pair.first()).map(|colon| colon.span.start).collect();
    }
    // With the points between its parts.
    let length = (name.len() * 2).saturating_sub(1);
    let is_name = |window: &[&TokenWithSpan]| {
        window.iter().enumerate().all(|(at, token)| match name.get(at / 2).filter(|_| at % 2 == 0) {
            Some(part) => is_word(&token.token, part),
            None => token.token == Token::Period,
        })
    };
    let starts = (0..tokens.len()).filter(|start| {
        let (before, behind) = (start.checked_sub(1), start + length);
        let token_at = |at: usize| tokens.get(at).map(|token| &token.token);
        tokens.get(*start..behind).is_some_and(|window| !window.is_empty() && is_name(window))
            && stands_as(object.kind, before.and_then(token_at), token_at(behind))
    });
    starts.filter_map(|start| tokens.get(start).map(|token| token.span.start)).collect()
}

/// Whether a name between these tokens is one of an object of `kind`.
fn stands_as(kind: ObjectKind, before: Option<&Token>, behind: Option<&Token>) -> bool {
    let is_part = before == Some(&Token::Period);
    let qualifies = behind == Some(&Token::Period);
    let is_alias = before.is_some_and(|token| is_word(token, "as"));
    match kind {
        ObjectKind::Column => !is_part && !qualifies && !is_alias && behind != Some(&Token::LParen),
        ObjectKind::Table => !is_part && !qualifies,
        ObjectKind::Qualifier => !is_part && qualifies,
        ObjectKind::Function => !is_part && behind == Some(&Token::LParen),
        ObjectKind::Schema => !is_part,
        ObjectKind::Type | ObjectKind::Other => true,
    }
}

/// Whether the tokens `pair` are `parameter`, one by name, such as `:a`.
fn is_parameter(pair: &[&TokenWithSpan], parameter: &str) -> bool {
    match pair {
        [colon, name] => match &name.token {
            Token::Word(word) if word.quote_style.is_none() && colon.token == Token::Colon => {
                parameter.strip_prefix(':') == Some(word.value.as_str())
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether `token` is `name`, as SQL folds it.
fn is_word(token: &Token, name: &str) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase() == name,
        Token::Word(word) => word.value == name,
        Token::Placeholder(parameter) => parameter == name,
        _ => false,
    }
}
