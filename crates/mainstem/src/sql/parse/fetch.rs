//! `FETCH { FIRST | NEXT } [n] { ROW | ROWS } ONLY` in the words of LIMIT, which means the same.
//!
//! WITH TIES and PERCENT stay as they are: they are refused once they are read.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Puts LIMIT in the place of each FETCH that is one.
pub(super) fn fetch_as_limit(tokens: &mut Vec<TokenWithSpan>) {
    let mut from = 0;
    while let Some(at) = tokens.iter().skip(from).position(|token| keyword(token) == Some(Keyword::FETCH)) {
        let at = from + at;
        from = at + 1;
        let Some((end, count)) = fetch_at(tokens, at) else { continue };
        let Some(span) = tokens.get(at).map(|token| token.span) else { continue };
        let word = Word { value: "LIMIT".to_owned(), quote_style: None, keyword: Keyword::LIMIT };
        let blank = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
        let mut limit = vec![Token::Word(word), blank];
        limit.extend(count);
        let limit: Vec<_> = limit.into_iter().map(|token| TokenWithSpan { token, span }).collect();
        drop(tokens.splice(at..end, limit));
    }
}

/// The end of the FETCH that begins at `at`, and how many rows it says.
fn fetch_at(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, Vec<Token>)> {
    let solid = |from: usize| {
        (from..tokens.len()).find(|at| !tokens.get(*at).is_some_and(|t| matches!(t.token, Token::Whitespace(_))))
    };
    let word_at = |at: usize| keyword(tokens.get(at)?);
    let is_row = |at: usize| matches!(word_at(at), Some(Keyword::ROW | Keyword::ROWS));
    let first = solid(at + 1).filter(|at| matches!(word_at(*at), Some(Keyword::FIRST | Keyword::NEXT)))?;
    let mut next = solid(first + 1)?;
    let mut count = Vec::new();
    let mut depth = 0_usize;
    while depth > 0 || !is_row(next) {
        let token = &tokens.get(next)?.token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            Token::EOF => return None,
            Token::Number(..) | Token::Placeholder(_) | Token::Minus | Token::Plus => {}
            _ if depth > 0 => {}
            _ => return None,
        }
        count.push(token.clone());
        next += 1;
        if depth == 0 {
            next = solid(next)?;
        }
    }
    if count.is_empty() {
        count.push(Token::Number("1".to_owned(), false));
    }
    let only = solid(next + 1).filter(|at| word_at(*at) == Some(Keyword::ONLY))?;
    Some((only + 1, count))
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
