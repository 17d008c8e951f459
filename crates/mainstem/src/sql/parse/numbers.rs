//! Numbers with an exponent: `1.5e3` is the NUMERIC 1500, as in PostgreSQL.
//!
//! DataFusion takes it for 15 with two digits less than none behind the point, and computes with so many digits. It reads numbers without exponent as
//! they are meant; a point at the end keeps them from being integers. Those that no NUMERIC holds stay: a cast to a float may want them.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_postgres::types::without_exponent;

/// Digits of the longest NUMERIC.
const DIGITS_MAX: usize = 38;

/// Spells the numbers of `tokens` without exponents.
pub(super) fn spell(tokens: &mut [TokenWithSpan]) {
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
