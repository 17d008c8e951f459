//! Numbers and their signs, in tokens: exponents, and signs that stand behind an operator without a blank.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use mainstem_postgres::types::without_exponent;

use crate::sql::dialect::MainstemDialect;

/// Digits of the longest NUMERIC.
const DIGITS_MAX: usize = 38;

/// Writes the numbers of `tokens` without exponents: `1.5e3` is the NUMERIC 1500, as in PostgreSQL.
///
/// DataFusion takes it for 15 with two digits less than none behind the point. A point at the end keeps a number from
/// being an integer. Those that no NUMERIC holds stay: a cast to a float may want them.
pub(super) fn write_exponents(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Number(text, _) = &mut token.token
            && let Some(parsed) = plain(text)
        {
            *text = parsed;
        }
    }
}

fn plain(text: &str) -> Option<String> {
    let (_, exponent) = text.split_once(['e', 'E'])?;
    if exponent.parse::<i32>().ok()?.unsigned_abs() as usize > DIGITS_MAX {
        return None;
    }
    let mut plain = without_exponent(text)?;
    if !plain.contains('.') {
        plain.push('.');
    }
    (plain.len() <= DIGITS_MAX + 1).then_some(plain)
}

/// Takes signs from the operators in `tokens` that cannot end in them: `a>-1`.
///
/// In PostgreSQL an operator of several characters ends in `+` or `-` only if one of `~ ! @ # % ^ & | ?` and a backtick
/// is in it. sqlparser takes the longest text of such characters.
pub(super) fn split_signs(tokens: &mut Vec<TokenWithSpan>) {
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
