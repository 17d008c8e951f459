//! String literals that follow one another: with a line break between they are one literal, as in the SQL standard, on
//! one line they are a mistake. sqlparser takes the second for an alias. And names of no characters, which nothing has.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// Joins the literals that are one.
///
/// # Errors
/// 42601 for literals on one line and for `""`; 0A000 for an escape in a line that continues `E'...'`.
pub(super) fn join(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let (mut last, mut breaks): (Option<usize>, bool) = (None, false);
    let mut joined = false;
    // Tokens that go, in order: literals that continue one, and what stands between.
    let mut drops: Vec<usize> = Vec::new();
    for at in 0..tokens.len() {
        let Some(token) = tokens.get(at) else { break };
        match &token.token {
            Token::Whitespace(space) => {
                breaks |= matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. })
            }
            Token::Word(word) if word.quote_style.is_some() && word.value.is_empty() => {
                let message = format!("zero-length delimited identifier at \"\"\"\"{}", token.span.start);
                return Err(Error::invalid(sqlstate::SYNTAX, message));
            }
            literal if is_literal(literal) => {
                match last {
                    Some(first) => {
                        let more = match literal {
                            Token::SingleQuotedString(more) if breaks => more.clone(),
                            _ => return Err(misplaced(token)),
                        };
                        let span = token.span;
                        match tokens.get_mut(first).map(|token| &mut token.token) {
                            Some(Token::EscapedStringLiteral(_)) if more.contains('\\') => {
                                return Err(Error::unsupported(
                                    "an escape in a line that continues a string literal E'...'",
                                ));
                            }
                            Some(
                                Token::SingleQuotedString(text)
                                | Token::EscapedStringLiteral(text)
                                | Token::NationalStringLiteral(text)
                                | Token::HexStringLiteral(text),
                            ) => text.push_str(&more),
                            _ => {
                                return Err(Error::invalid(
                                    sqlstate::SYNTAX,
                                    format!("syntax error at a string{}", span.start),
                                ));
                            }
                        }
                        let next = drops.last().map_or(0, |dropped| dropped + 1);
                        drops.extend(next.max(first + 1)..=at);
                        joined = true;
                    }
                    None => last = Some(at),
                }
                breaks = false;
            }
            _ => (last, breaks) = (None, false),
        }
    }
    if joined {
        let (mut at, mut drops) = (0, drops.into_iter().peekable());
        tokens.retain(|_| {
            at += 1;
            drops.next_if_eq(&(at - 1)).is_none()
        });
    }
    Ok(())
}

fn misplaced(token: &TokenWithSpan) -> Error {
    Error::invalid(sqlstate::SYNTAX, format!("syntax error at \"{}\"{}", token.token, token.span.start))
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::DollarQuotedString(_)
    )
}
