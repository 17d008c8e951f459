//! Parameters of a statement in its tokens: `$1`, `$2`, ..., or by name, `:name`.
//!
//! Comes in: the tokens of one statement. Goes out: the same with numbers in the places of names, in the order in which
//! the names first appear, and the names: what comes behind knows numbers only, so a statement with names is compiled
//! as the same one with numbers. A colon is no parameter's where it divides the bounds of a slice (`a[1:2]`). It does
//! not own: values, or types of parameters.

use std::sync::Arc;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, Result};

use crate::sql::state;

/// Parameters of one statement: as many as the protocol of PostgreSQL can name.
const PARAMETERS_MAX: usize = 65_535;

/// Words behind which an expression begins: a colon there divides no slice.
const OPERATOR_WORDS: &[Keyword] = &[
    Keyword::ALL,
    Keyword::AND,
    Keyword::ANY,
    Keyword::ARRAY,
    Keyword::BETWEEN,
    Keyword::CASE,
    Keyword::DISTINCT,
    Keyword::ELSE,
    Keyword::FROM,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::NOT,
    Keyword::OR,
    Keyword::THEN,
    Keyword::TO,
    Keyword::WHEN,
];

/// The parameters of one statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    /// The highest number.
    pub(super) count: usize,
    /// Names in the order of their numbers, without colons; none where the text has numbers.
    pub(super) names: Vec<Box<str>>,
}

/// Finds the parameters in `tokens`, and numbers those that have names.
///
/// # Errors
/// 42601 for parameters that are neither, or both; 54000 for too many.
pub(super) fn take(tokens: &mut Vec<TokenWithSpan>) -> Result<Parameters> {
    let names = number_names(tokens)?;
    if names.is_empty() {
        return Ok(Parameters { count: highest(tokens)?, names });
    }
    Ok(Parameters { count: names.len(), names })
}

/// Puts `$1`, `$2`, ... in the places of `:name`; one name has one number.
fn number_names(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<Box<str>>> {
    let mut names: Vec<Box<str>> = Vec::new();
    if !tokens.iter().any(|t| matches!(t.token, Token::Colon)) {
        return Ok(names);
    }
    let first_number = tokens.iter().find(|t| matches!(t.token, Token::Placeholder(_))).map(|t| t.token.to_string());
    let mut numbered = Vec::with_capacity(tokens.len());
    let mut open = Open::default();
    let mut rest = std::mem::take(tokens).into_iter().peekable();
    while let Some(mut token) = rest.next() {
        if token.token == Token::Colon && !open.is_in_slice() {
            let name = match rest.peek().map(|next| &next.token) {
                Some(Token::Word(word)) if word.quote_style.is_none() => word.value.clone(),
                next => {
                    let text = next.map(ToString::to_string).unwrap_or_default();
                    return Err(no_parameter_is(&format!(":{text}"), &token));
                }
            };
            if let Some(number) = first_number {
                let message = format!(
                    "syntax error: a statement has parameters by number or by name, not both {number} and :{name}{}",
                    token.span.start
                );
                return Err(Error::invalid(sqlstate::SYNTAX, message));
            }
            let at = names.iter().position(|known| **known == *name).unwrap_or_else(|| {
                names.push(name.into());
                names.len() - 1
            });
            token.token = Token::Placeholder(format!("${}", at + 1));
            rest.next();
        }
        open.pass(&token.token);
        numbered.push(token);
    }
    *tokens = numbered;
    if names.len() > PARAMETERS_MAX {
        return Err(too_many(&format!(":{}", names.last().map_or("", |name| &**name))));
    }
    Ok(names)
}

/// What is open where a scan of tokens stands.
#[derive(Default)]
struct Open {
    /// For each bracket or parenthesis: whether it is that of a subscript.
    subscripts: Vec<bool>,
    /// Whether an operand has just ended.
    behind_operand: bool,
    /// Whether a bracket has just begun.
    at_begin: bool,
    /// Whether a point is in front: a word there is a name, whatever it is.
    behind_point: bool,
}

impl Open {
    /// Whether a colon here divides the bounds of a slice: of an empty one, too.
    fn is_in_slice(&self) -> bool {
        self.subscripts.last() == Some(&true) && (self.behind_operand || self.at_begin)
    }

    fn pass(&mut self, token: &Token) {
        match token {
            Token::Whitespace(_) => return,
            Token::LBracket => self.subscripts.push(self.behind_operand),
            Token::LParen => self.subscripts.push(false),
            Token::RBracket | Token::RParen => {
                self.subscripts.pop();
            }
            _ => {}
        }
        self.at_begin = matches!(token, Token::LBracket);
        self.behind_operand = match token {
            Token::Word(word) => {
                self.behind_point || word.quote_style.is_some() || !OPERATOR_WORDS.contains(&word.keyword)
            }
            Token::RBracket
            | Token::RParen
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_) => true,
            _ => false,
        };
        self.behind_point = matches!(token, Token::Period);
    }
}

/// The highest number of a parameter.
fn highest(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut highest = 0;
    for token in tokens {
        let Token::Placeholder(text) = &token.token else { continue };
        let digits = text.strip_prefix('$').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        let number = match digits.map(str::parse::<usize>) {
            Some(Ok(0)) | None => return Err(no_parameter_is(text, token)),
            Some(Ok(number)) if number <= PARAMETERS_MAX => number,
            Some(_) => return Err(too_many(text)),
        };
        highest = highest.max(number);
    }
    Ok(highest)
}

fn no_parameter_is(text: &str, token: &TokenWithSpan) -> Error {
    Error::invalid(
        sqlstate::SYNTAX,
        format!("syntax error: \"{text}\" is no parameter (they are $1, $2, ..., or :name){}", token.span.start),
    )
}

fn too_many(parameter: &str) -> Error {
    Error::invalid(sqlstate::LIMIT_EXCEEDED, format!("parameter {parameter}: a statement has at most {PARAMETERS_MAX}"))
}

/// `error`, a parser's, about the parameter that was written: by name, if it has one of `names`.
pub(super) fn with_names(error: Error, names: &[Box<str>]) -> Error {
    let (what, place) = match error.message().rsplit_once(" at Line: ") {
        Some((what, place)) => (what, format!(" at Line: {place}")),
        None => (error.message(), String::new()),
    };
    let Some((before, found)) = what.rsplit_once('$') else { return error };
    let (digits, quote) = found.strip_suffix('"').map_or((found, ""), |digits| (digits, "\""));
    let is_found = before.ends_with("found: ") && quote.is_empty() || before.ends_with("at \"") && !quote.is_empty();
    let name = digits.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
    match name.filter(|_| is_found) {
        Some(name) => {
            let message = format!("{before}:{name}{quote}{place}");
            error.with_message(message)
        }
        None => error,
    }
}

/// A statement that has parameters, where there are no values for them.
pub(super) fn without_values(part: &Part) -> Error {
    let parameter = match part.names.first() {
        Some(name) => format!(":{name}"),
        None => format!("${}", part.parameters),
    };
    Error::invalid(
        state::UNDEFINED_PARAMETER,
        format!("there is no parameter {parameter}; a statement with parameters is prepared or run with values"),
    )
    .with_object(NamedObject::new(ObjectKind::Other, [parameter]))
}

/// What is known of a statement before it is parsed.
pub(super) struct Part {
    /// How many parameters it has: the highest number of one.
    pub(super) parameters: usize,
    /// Their names, if it has them by name.
    pub(super) names: Arc<[Box<str>]>,
    /// Whether its tree needs a stack of its own.
    pub(super) deep: bool,
}
