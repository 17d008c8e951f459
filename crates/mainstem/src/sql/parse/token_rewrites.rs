//! Tokens that sqlparser misreads.
//!
//! - CURRENT_SCHEMA and CURRENT_ROLE become calls: sqlparser takes them for columns.
//! - `a ISNULL`, `FROM ONLY t`, `BETWEEN SYMMETRIC` and string literals that follow one another are refused: sqlparser
//!   takes the word for a name. So are names of no characters, which nothing has.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// Refuses what would be taken for an alias.
///
/// # Errors
/// 42601.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut before: Option<&TokenWithSpan> = None;
    for token in tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))) {
        let is_misread = match (&token.token, before) {
            (Token::Word(word), _) if word.quote_style.is_some() && word.value.is_empty() => {
                let message = format!("zero-length delimited identifier at \"\"\"\"{}", token.span.start);
                return Err(Error::invalid(sqlstate::SYNTAX, message));
            }
            (Token::Word(_), Some(before)) if is_bare(token, "only") => precedes_table(before),
            (Token::Word(_), Some(before)) if is_bare(token, "isnull") || is_bare(token, "notnull") => {
                ends_operand(before)
            }
            (Token::Word(_), Some(before)) if is_bare(token, "symmetric") => keyword(before) == Some(Keyword::BETWEEN),
            (literal, Some(before)) => is_literal(literal) && is_literal(&before.token),
            _ => false,
        };
        if is_misread {
            let message = format!("syntax error at \"{}\"{}", token.token, token.span.start);
            return Err(Error::invalid(sqlstate::SYNTAX, message));
        }
        before = Some(token);
    }
    Ok(())
}

/// Writes parentheses behind CURRENT_SCHEMA and CURRENT_ROLE.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let is_call = |token: &TokenWithSpan| is_bare(token, "current_schema") || is_bare(token, "current_role");
    if !tokens.iter().any(is_call) {
        return;
    }
    let solid = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut parsed = Vec::with_capacity(tokens.len() + 4);
    for (at, token) in tokens.iter().enumerate() {
        parsed.push(token.clone());
        let before = tokens.iter().take(at).rfind(solid);
        let next = tokens.iter().skip(at + 1).find(solid);
        if is_call(token)
            && !next.is_some_and(|t| matches!(t.token, Token::LParen | Token::Period))
            && before.is_none_or(|t| t.token != Token::Period && keyword(t) != Some(Keyword::AS))
        {
            let parentheses = [Token::LParen, Token::RParen];
            parsed.extend(parentheses.map(|rewritten| TokenWithSpan { token: rewritten, span: token.span }));
        }
    }
    *tokens = parsed;
}

/// Whether a table may stand behind `token`.
fn precedes_table(token: &TokenWithSpan) -> bool {
    use Keyword::{FROM, JOIN, UPDATE, USING};
    matches!(token.token, Token::Comma | Token::LParen) || matches!(keyword(token), Some(FROM | UPDATE | JOIN | USING))
}

/// Whether an operand may end with `token`.
fn ends_operand(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => {
            word.quote_style.is_some() || word.keyword != Keyword::AS && word.keyword != Keyword::SELECT
        }
        Token::Comma | Token::Period | Token::LParen => false,
        _ => true,
    }
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

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => Some(word.keyword),
        _ => None,
    }
}

fn is_bare(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}
