//! Signs behind operators, without a blank: `a>-1`.
//!
//! In PostgreSQL an operator of several characters ends in `+` or `-` only if one of `~ ! @ # % ^ & | ?` and a backtick is in it. sqlparser takes
//! the longest text of such characters.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::sql::dialect::MainstemDialect;

/// Takes signs from the operators in `tokens` that cannot end in them.
pub(super) fn split(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|t| ends_in_sign(&t.token)) {
        return;
    }
    let split = |token: TokenWithSpan| match &token.token {
        Token::CustomBinaryOperator(text) if ends_in_sign(&token.token) => {
            let operator = text.trim_end_matches(['+', '-']);
            // Of signs alone the first is the operator.
            let operator = if operator.is_empty() { text.get(..1).unwrap_or_default() } else { operator };
            let signs = text.get(operator.len()..).unwrap_or_default();
            let signs = signs.chars().map(|sign| if sign == '-' { Token::Minus } else { Token::Plus });
            match Tokenizer::new(&MainstemDialect::new(1), operator).tokenize() {
                Ok(parts) => parts.into_iter().chain(signs).map(|part| TokenWithSpan::new(part, token.span)).collect(),
                Err(_) => vec![token],
            }
        }
        _ => vec![token],
    };
    *tokens = std::mem::take(tokens).into_iter().flat_map(split).collect();
}

fn ends_in_sign(token: &Token) -> bool {
    match token {
        Token::CustomBinaryOperator(text) => {
            text.ends_with(['+', '-']) && !text.contains(['~', '!', '@', '#', '%', '^', '&', '|', '?', '`'])
        }
        _ => false,
    }
}
