//! How deep a statement's tree is, seen from its tokens: before anything walks it.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::{Error, Result};

use super::super::state;

/// Operators of one expression without a comma or parenthesis between them. Each makes the tree one level deeper, and
/// every walk over the tree, its drop included, takes a stack frame a level.
const OPERATORS_MAX: usize = 3_000;
/// Of them, those without AND, OR or another word between them that ends an operand: planning takes time that grows
/// with their square (`analyze::ast` deals with AND and OR).
const LINKS_MAX: usize = 1_000;

/// Refuses expressions whose tree would be too deep to walk. Returns about how deep it is.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut counts = vec![0_usize];
    let mut deepest = 0;
    let mut links = 0;
    for token in tokens {
        links = links_with(links, &token.token);
        if links > LINKS_MAX {
            return Err(Error::invalid(
                state::TOO_COMPLEX,
                format!(
                    "an expression has more than {LINKS_MAX} operators in a row (near line {}); use parentheses or a function",
                    token.span.start.line
                ),
            ));
        }
        match &token.token {
            Token::LParen | Token::LBracket => {
                counts.push(0);
                deepest = deepest.max(counts.len() * 4);
            }
            Token::RParen | Token::RBracket => {
                if counts.len() > 1 {
                    counts.pop();
                }
            }
            Token::Comma => {
                if let Some(last) = counts.last_mut() {
                    *last = 0;
                }
            }
            Token::Whitespace(_) => {}
            Token::Word(word) if !counts_as_level(word.keyword) => {}
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Period | Token::EOF => {}
            _ => {
                if let Some(last) = counts.last_mut() {
                    *last += 1;
                    deepest = deepest.max(*last);
                    if *last > OPERATORS_MAX {
                        return Err(Error::invalid(
                            state::TOO_COMPLEX,
                            format!(
                                "an expression has more than {OPERATORS_MAX} operators in a row (near line {}); use IN, a \
                                 join with VALUES, or parentheses",
                                token.span.start.line
                            ),
                        ));
                    }
                }
            }
        }
    }
    Ok(deepest)
}

/// Operators in a row when `token` comes after `links` of them.
fn links_with(links: usize, token: &Token) -> usize {
    match token {
        Token::Comma | Token::LParen | Token::RParen | Token::LBracket | Token::RBracket | Token::StringConcat => 0,
        Token::Word(word) => match word.keyword {
            Keyword::NOT | Keyword::IS | Keyword::LIKE | Keyword::ILIKE | Keyword::COLLATE => links + 1,
            Keyword::AND
            | Keyword::OR
            | Keyword::WHEN
            | Keyword::THEN
            | Keyword::ELSE
            | Keyword::SELECT
            | Keyword::FROM
            | Keyword::WHERE
            | Keyword::ON
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT => 0,
            _ => links,
        },
        Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period | Token::EOF => links,
        _ => links + 1,
    }
}

fn counts_as_level(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::IN
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::JOIN
            | Keyword::CASE
            | Keyword::COLLATE
    )
}
