//! How deep a statement's tree is, seen from its tokens: before anything walks it.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::{Error, Result};

use super::super::state;

/// Operators of one expression without a comma or parenthesis between them. Each makes the tree one level deeper, and every
/// walk over the tree, its drop included, takes a stack frame a level.
const OPERATORS_MAX: usize = 3_000;

/// Refuses expressions whose tree would be too deep to walk. Returns about how deep it is.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut counts = vec![0_usize];
    let mut deepest = 0;
    for token in tokens {
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
