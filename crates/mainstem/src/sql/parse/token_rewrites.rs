//! Tokens that sqlparser misreads, rewritten to those that it reads.
//!
//! - `TABLE t` as a query becomes `SELECT * FROM t`: sqlparser reads it in few places, and without quotes.
//! - `ONLY t` and `ONLY (t)` become `t`, wherever a table may stand: no table inherits from another. sqlparser takes
//!   ONLY for the table and `t` for its alias.
//! - CURRENT_SCHEMA and CURRENT_ROLE become calls: sqlparser takes them for columns.
//! - `trim(BOTH FROM a)` becomes `trim(BOTH ' ' FROM a)`, `trim(FROM a)` becomes `trim(a)`: sqlparser wants the
//!   characters.
//! - `EXPLAIN (SELECT ...)` becomes `EXPLAIN (VERBOSE FALSE) (SELECT ...)`: sqlparser takes the parenthesis for that of
//!   options.
//! - `a ISNULL` becomes `a IS NULL`: sqlparser takes the word for an alias.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// See the module.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let is_rewritten = |token: &TokenWithSpan| {
        matches!(keyword(token), Some(Keyword::TABLE | Keyword::ONLY | Keyword::TRIM | Keyword::EXPLAIN))
            || ["isnull", "current_schema", "current_role"].iter().any(|word| is_bare(token, word))
    };
    if !tokens.iter().any(is_rewritten) {
        return;
    }
    let verb = tokens.iter().find_map(keyword);
    let (mut depth, mut before): (usize, Option<TokenWithSpan>) = (0, None);
    let mut in_trim = Trim::Outside;
    let mut parsed = Vec::with_capacity(tokens.len() + 4);
    // Parentheses around a name behind ONLY.
    let mut dropped: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if dropped.contains(&at) {
            continue;
        }
        if matches!(token.token, Token::Whitespace(_)) {
            parsed.push(token.clone());
            continue;
        }
        depth = depth_behind(depth, token);
        let mut behind = tokens.iter().skip(at + 1).filter(|t| !matches!(t.token, Token::Whitespace(_)));
        let next = behind.next();
        in_trim = in_trim.and(token);
        let names = next.is_some_and(|t| matches!(&t.token, Token::Word(_)));
        match keyword(token) {
            Some(Keyword::TABLE) if names && begins_query(before.as_ref(), verb, depth) => {
                parsed.extend(at_place(
                    token,
                    [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)],
                ));
            }
            Some(Keyword::ONLY) if verb != Some(Keyword::ALTER) && before.as_ref().is_some_and(precedes_table) => {
                match parentheses(tokens, at) {
                    Some(pair) => dropped.extend(pair),
                    None if names => {}
                    None => parsed.push(token.clone()),
                }
            }
            Some(Keyword::FROM) if in_trim == Trim::Open => {}
            Some(Keyword::FROM) if in_trim == Trim::Side => {
                parsed.extend(at_place(token, [Token::SingleQuotedString(" ".to_owned()), token.token.clone()]));
            }
            Some(Keyword::EXPLAIN)
                if before.is_none() && next.is_some_and(|t| t.token == Token::LParen) && opens_query(behind.next()) =>
            {
                let (verbose, no) = (word("VERBOSE", Keyword::VERBOSE), word("FALSE", Keyword::FALSE));
                parsed.push(token.clone());
                parsed.extend(at_place(token, [Token::LParen, verbose, no, Token::RParen]));
            }
            _ if is_bare(token, "isnull") && before.as_ref().is_some_and(ends_operand) => {
                parsed.extend(at_place(token, [word("IS", Keyword::IS), word("NULL", Keyword::NULL)]));
            }
            _ if (is_bare(token, "current_schema") || is_bare(token, "current_role"))
                && !next.is_some_and(|t| matches!(t.token, Token::LParen | Token::Period))
                && before
                    .as_ref()
                    .is_none_or(|t| !matches!(t.token, Token::Period) && keyword(t) != Some(Keyword::AS)) =>
            {
                parsed.push(token.clone());
                parsed.extend(at_place(token, [Token::LParen, Token::RParen]));
            }
            _ => parsed.push(token.clone()),
        }
        before = Some(token.clone());
    }
    *tokens = parsed;
}

/// How many parentheses are open behind `token`, of `depth` in front of it.
fn depth_behind(depth: usize, token: &TokenWithSpan) -> usize {
    match token.token {
        Token::LParen => depth + 1,
        Token::RParen => depth.saturating_sub(1),
        _ => depth,
    }
}

/// `tokens` in the place of `token`.
fn at_place<const N: usize>(token: &TokenWithSpan, tokens: [Token; N]) -> [TokenWithSpan; N] {
    tokens.map(|rewritten| TokenWithSpan { token: rewritten, span: token.span })
}

/// Where in a call of TRIM the last token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trim {
    Outside,
    /// It is the word.
    Word,
    /// Its parenthesis.
    Open,
    /// BOTH, LEADING or TRAILING.
    Side,
}

impl Trim {
    /// Where the token in front of the next one stands, if that is `token`; FROM is still looked at from where it
    /// stands itself.
    fn and(self, token: &TokenWithSpan) -> Self {
        match (self, keyword(token)) {
            (_, Some(Keyword::TRIM)) => Self::Word,
            (Self::Word, _) if token.token == Token::LParen => Self::Open,
            (Self::Open, Some(Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING)) => Self::Side,
            (Self::Open | Self::Side, Some(Keyword::FROM)) => self,
            _ => Self::Outside,
        }
    }
}

/// Whether a query, perhaps in parentheses, begins with `token`.
fn opens_query(token: Option<&TokenWithSpan>) -> bool {
    token.is_some_and(|token| {
        matches!(keyword(token), Some(Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE))
            || token.token == Token::LParen
    })
}

/// Whether a table may stand behind `token`. In a list of anything else ONLY, which is reserved, would be a mistake.
fn precedes_table(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Comma | Token::LParen)
        || matches!(
            keyword(token),
            Some(Keyword::FROM | Keyword::UPDATE | Keyword::JOIN | Keyword::USING | Keyword::TABLE | Keyword::TRUNCATE)
        )
}

/// Where the parentheses stand around a table's name behind the token at `only`, if it has them.
fn parentheses(tokens: &[TokenWithSpan], only: usize) -> Option<[usize; 2]> {
    let mut behind = tokens.iter().enumerate().skip(only + 1).filter(|(_, t)| !matches!(t.token, Token::Whitespace(_)));
    let (open, _) = behind.next().filter(|(_, t)| matches!(t.token, Token::LParen))?;
    let (close, _) = behind.find(|(_, t)| !matches!(t.token, Token::Word(_) | Token::Period))?;
    let is_name = close > open + 1 && matches!(tokens.get(close)?.token, Token::RParen);
    is_name.then_some([open, close])
}

/// Whether TABLE begins a query behind `before`, in a statement that begins with `verb`.
fn begins_query(before: Option<&TokenWithSpan>, verb: Option<Keyword>, depth: usize) -> bool {
    let Some(before) = before else { return true };
    if matches!(before.token, Token::LParen) {
        return true;
    }
    match keyword(before) {
        Some(
            Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::ALL
            | Keyword::DISTINCT
            | Keyword::AS
            | Keyword::EXPLAIN
            | Keyword::ANALYZE
            | Keyword::VERBOSE,
        ) => true,
        // Behind the names of columns, or the table's.
        _ if verb == Some(Keyword::INSERT) => depth == 0,
        _ => matches!(before.token, Token::RParen) && verb == Some(Keyword::WITH),
    }
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

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => Some(word.keyword),
        _ => None,
    }
}

fn is_bare(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}
