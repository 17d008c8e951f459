//! What may stand where the cursor is.
//!
//! Comes in: the statement so far, and what is behind the cursor. Goes out: what kind of word is being typed, where it
//! begins, and the tables that the statement names. The text is looked at word by word; nothing is parsed, for it is
//! not complete.

use crate::commands::{self, Argument, COMMANDS};

/// A kind of word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing that is known: text, a comment, a number.
    Nothing,
    /// A `\` command.
    Command,
    /// A path.
    File,
    /// on or off.
    Switch,
    /// A table or view; of a schema, if that is said.
    Relation { schema: Option<String> },
    /// A column of what is called so, or a table of the schema that is.
    Member { of: String },
    /// A setting.
    Setting,
    /// A keyword, a column, a table.
    Any,
}

/// A table that a statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub schema: Option<String>,
    pub name: String,
    pub alias: Option<String>,
}

/// What is at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub wanted: Wanted,
    /// Where in the text the word begins.
    pub start: usize,
    /// The tables of the statement.
    pub tables: Vec<Named>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or keyword, folded unless it was quoted.
    Word {
        text: String,
        quoted: bool,
    },
    Symbol(char),
    /// A number or a text.
    Value,
}

/// Tokens with where they begin and end.
type Tokens = Vec<(Token, usize, usize)>;

/// Words behind which a table stands.
const BEFORE_TABLES: &[&str] = &["from", "join", "into", "update", "table", "view", "copy", "truncate", "only"];
/// Words that end a list of tables, or are no alias of one.
const NO_ALIASES: &[&str] = &[
    "on",
    "using",
    "where",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "fetch",
    "for",
    "union",
    "intersect",
    "except",
    "join",
    "left",
    "right",
    "full",
    "inner",
    "cross",
    "natural",
    "lateral",
    "set",
    "values",
    "select",
    "returning",
    "as",
    "window",
    "to",
    "from",
    "with",
    "default",
    "tablesample",
    "if",
    "add",
    "drop",
    "alter",
    "rename",
    "column",
];

/// What is at byte `at` of `text`, the statement as far as it is typed.
pub fn place(text: &str, at: usize) -> Place {
    let (before, behind) = (text.get(..at).unwrap_or(text), text.get(at..).unwrap_or_default());
    if before.trim_start().starts_with('\\') {
        return of_command(before);
    }
    let nothing = Place { wanted: Wanted::Nothing, start: at, tables: Vec::new() };
    let Some((tokens, open)) = tokens(before) else { return nothing };
    // What comes behind the statement is another one's.
    let behind = behind.split(';').next().unwrap_or_default();
    let tables = match self::tokens(&format!("{before}{behind}")) {
        Some((all, _)) => tables(&all),
        None => tables(&tokens),
    };

    // The word at the cursor, with what stands in front of it and a point.
    let is_touched = tokens.last().is_some_and(|(token, _, end)| *end == at && matches!(token, Token::Word { .. }));
    let (start, front) = match (open, is_touched) {
        (Some(open), _) => (open, tokens.as_slice()),
        (None, true) => match tokens.split_last() {
            Some(((_, start, _), front)) => (*start, front),
            None => return nothing,
        },
        (None, false) => (at, tokens.as_slice()),
    };
    let kinds: Vec<&Token> = front.iter().map(|(token, ..)| token).collect();
    let touches = |from: usize| front.last().is_some_and(|(_, _, end)| *end == from);
    if let [front @ .., Token::Word { text: of, .. }, Token::Symbol('.')] = kinds.as_slice()
        && touches(start)
    {
        let wanted = match is_behind_table_word(front) {
            true => Wanted::Relation { schema: Some(of.clone()) },
            false => Wanted::Member { of: of.clone() },
        };
        return Place { wanted, start, tables };
    }
    let is_empty = start == at;
    // A blank invites a word; behind anything else that is no word a Tab is a character.
    let wanted = if is_empty && !before.ends_with(' ') {
        Wanted::Nothing
    } else if wants_setting(&kinds) {
        Wanted::Setting
    } else if is_behind_table_word(&kinds) {
        Wanted::Relation { schema: None }
    } else if is_empty {
        Wanted::Nothing
    } else {
        Wanted::Any
    };
    Place { wanted, start, tables }
}

/// What is at the end of `text`, a command.
fn of_command(text: &str) -> Place {
    let indent = text.len() - text.trim_start().len();
    let command = text.get(indent..).unwrap_or_default();
    let place = |wanted, start| Place { wanted, start, tables: Vec::new() };
    let Some(end) = command.find(char::is_whitespace) else { return place(Wanted::Command, indent) };
    let (name, _) = commands::parts(command);
    let rest = command.get(end..).unwrap_or_default();
    let start = text.len() - rest.trim_start().len();
    match COMMANDS.iter().find(|(known, _)| *known == name) {
        Some((_, Argument::File)) => place(Wanted::File, start),
        Some((_, Argument::Switch)) => place(Wanted::Switch, start),
        Some((_, Argument::Relation)) => {
            let word = text.get(start..).unwrap_or_default();
            match word.rsplit_once('.') {
                Some((schema, name)) => place(
                    Wanted::Relation { schema: Some(schema.trim_matches('"').to_owned()) },
                    text.len() - name.len(),
                ),
                None => place(Wanted::Relation { schema: None }, start),
            }
        }
        _ => place(Wanted::Nothing, text.len()),
    }
}

/// Whether `tokens` end with SET, SHOW or RESET.
fn wants_setting(tokens: &[&Token]) -> bool {
    let words: Vec<&str> = tokens.iter().map(|token| word(token)).collect();
    matches!(words.as_slice(), ["set" | "show" | "reset"] | ["set", "local" | "session"])
}

/// Whether a table stands behind `tokens`, directly or in a list.
fn is_behind_table_word(tokens: &[&Token]) -> bool {
    let mut tokens = tokens.iter().rev().copied().peekable();
    match tokens.peek().map(|token| (word(token), *token)) {
        Some(("from", _)) => {
            let before = tokens.nth(1).map(word);
            before != Some("distinct")
        }
        Some((last, _)) if BEFORE_TABLES.contains(&last) => true,
        // Another table of FROM: names, points and aliases up to it.
        Some((_, Token::Symbol(','))) => {
            let before = tokens.find(|token| {
                let is_of_list = matches!(token, Token::Symbol(',' | '.'))
                    || matches!(token, Token::Word { text, quoted } if *quoted || text == "as" || !is_clause(text));
                !is_of_list
            });
            before.is_some_and(|token| word(token) == "from")
        }
        _ => false,
    }
}

fn is_clause(word: &str) -> bool {
    NO_ALIASES.contains(&word) || BEFORE_TABLES.contains(&word)
}

/// A bare word; empty for anything else.
fn word(token: &Token) -> &str {
    match token {
        Token::Word { text, quoted: false } => text,
        _ => "",
    }
}

/// The tables that stand behind FROM, JOIN and the like.
fn tables(tokens: &Tokens) -> Vec<Named> {
    let mut found = Vec::new();
    let tokens: Vec<&Token> = tokens.iter().map(|(token, ..)| token).collect();
    for at in 0..tokens.len() {
        if !tokens.get(..at).is_some_and(is_behind_table_word) {
            continue;
        }
        let rest = tokens.get(at..).unwrap_or_default();
        let (schema, name, rest) = match rest {
            [Token::Word { text: schema, .. }, Token::Symbol('.'), Token::Word { text: name, .. }, rest @ ..] => {
                (Some(schema.clone()), name.clone(), rest)
            }
            [Token::Word { text, quoted }, rest @ ..] if *quoted || !is_clause(text) => (None, text.clone(), rest),
            _ => continue,
        };
        let alias = match rest {
            [first, Token::Word { text, .. }, ..] if word(first) == "as" => Some(text.clone()),
            [Token::Word { text, quoted }, ..] if *quoted || !is_clause(text) => Some(text.clone()),
            _ => None,
        };
        found.push(Named { schema, name, alias });
    }
    found
}

/// The tokens of the last statement of `text`, and where a quoted name begins that is still open. None if `text` ends
/// within a text or a comment.
fn tokens(text: &str) -> Option<(Tokens, Option<usize>)> {
    let mut tokens: Tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let start = text.len() - rest.len();
        let end = |rest: &str| text.len() - rest.len();
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if rest.starts_with("--") {
            rest = rest.split_once('\n')?.1;
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/")?.1;
        } else if first == '\'' {
            rest = rest.get(1..)?.split_once('\'')?.1;
            tokens.push((Token::Value, start, end(rest)));
        } else if let Some(tag) = dollar_tag(rest) {
            rest = rest.get(tag.len()..)?.split_once(tag)?.1;
            tokens.push((Token::Value, start, end(rest)));
        } else if first == '"' {
            let Some((name, behind)) = rest.get(1..)?.split_once('"') else { return Some((tokens, Some(start))) };
            rest = behind;
            tokens.push((Token::Word { text: name.to_owned(), quoted: true }, start, end(rest)));
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| is_of_word(c) || c == '.');
            tokens.push((Token::Value, start, end(rest)));
        } else if is_of_word(first) {
            let behind = rest.trim_start_matches(is_of_word);
            let name = rest.get(..rest.len() - behind.len())?.to_lowercase();
            rest = behind;
            tokens.push((Token::Word { text: name, quoted: false }, start, end(rest)));
        } else {
            rest = rest.get(first.len_utf8()..)?;
            if first == ';' {
                tokens.clear();
            } else {
                tokens.push((Token::Symbol(first), start, end(rest)));
            }
        }
    }
    Some((tokens, None))
}

/// The quote that `text` begins with, if that is `$$` or `$tag$`.
fn dollar_tag(text: &str) -> Option<&str> {
    let tag = text.strip_prefix('$')?;
    let end = tag.find('$')?;
    let is_name = tag.get(..end)?.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_name && !tag.starts_with(|c: char| c.is_ascii_digit()) { text.get(..end + 2) } else { None }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests;
