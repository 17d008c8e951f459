//! Where statements end, without parsing them: what a shell needs to know when to run what was typed, and a reader of a
//! script to run it piece by piece.

use std::borrow::Cow;

/// Splits `text` after each semicolon that ends a statement. Returns the complete statements without their semicolon,
/// and the rest, which is an unfinished statement or blank. Semicolons in quotes, dollar quotes and comments end
/// nothing.
///
/// ```
/// let (done, rest) = mainstem::split_statements("SELECT ';'; SELECT 2 -- ;");
/// assert_eq!(done, ["SELECT ';'"]);
/// assert_eq!(rest, " SELECT 2 -- ;");
/// ```
#[must_use]
pub fn split_statements(text: &str) -> (Vec<&str>, &str) {
    let bytes = text.as_bytes();
    let (mut done, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte == b';' {
            done.push(text.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        at = after(text, at);
    }
    (done, text.get(start..).unwrap_or_default())
}

/// Words that statements begin with which begin no transaction where autocommit is off.
const NO_TRANSACTION: [&str; 13] = [
    "begin",
    "start",
    "commit",
    "rollback",
    "end",
    "abort",
    "set",
    "show",
    "reset",
    "checkpoint",
    "unload",
    "load",
    "discard",
];

/// The texts of the statements in `text`; what is nothing but blanks and comments is left out.
pub(crate) fn statement_texts(text: &str) -> Vec<&str> {
    let (statements, rest) = split_statements(text);
    statements.into_iter().chain([rest]).filter(|statement| !without_comments(statement).is_empty()).collect()
}

/// Whether the first statement of `text` begins a transaction where autocommit is off: unless it begins or ends one, or
/// needs none.
pub(crate) fn begins_transaction(text: &str) -> bool {
    let text = statement_texts(text).first().copied().unwrap_or_default();
    let word: String = without_comments(text).chars().take_while(char::is_ascii_alphabetic).collect();
    !NO_TRANSACTION.contains(&word.to_ascii_lowercase().as_str())
}

/// `text` from where its first statement begins.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(line) = rest.strip_prefix("--") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return rest;
        };
        rest = after.trim_start();
    }
}

/// `text` with `$1`, `$2`, ... for the question marks that stand for parameters: those of ODBC, JDBC and Python's
/// DB-API. Question marks in quotes, dollar quotes and comments are none.
///
/// ```
/// assert_eq!(mainstem::number_placeholders("SELECT '?', ?, ?"), "SELECT '?', $1, $2");
/// ```
#[must_use]
pub fn number_placeholders(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'?') {
        return Cow::Borrowed(text);
    }
    let (mut numbered, mut number, mut start, mut at) = (String::with_capacity(text.len() + 16), 0, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte == b'?' {
            number += 1;
            numbered.push_str(text.get(start..at).unwrap_or_default());
            numbered.push('$');
            numbered.push_str(&number.to_string());
            // A number that follows would become part of its own.
            if bytes.get(at + 1).is_some_and(|byte| is_word(*byte)) {
                numbered.push(' ');
            }
            start = at + 1;
        }
        at = after(text, at);
    }
    numbered.push_str(text.get(start..).unwrap_or_default());
    Cow::Owned(numbered)
}

/// Where what begins at `at` ends: a quote, a comment, or a byte.
fn after(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'\'') => {
            let escapes = at > 0
                && matches!(bytes.get(at - 1), Some(b'e' | b'E'))
                && !at.checked_sub(2).and_then(|i| bytes.get(i)).is_some_and(|b| is_word(*b));
            after_quote(bytes, at, escapes)
        }
        Some(b'"') => after_quote(bytes, at, false),
        Some(b'-') if bytes.get(at + 1) == Some(&b'-') => {
            memchr_from(bytes, at, b'\n').map_or(bytes.len(), |end| end + 1)
        }
        Some(b'/') if bytes.get(at + 1) == Some(&b'*') => after_comment(bytes, at),
        Some(b'$') if !at.checked_sub(1).and_then(|i| bytes.get(i)).is_some_and(|b| is_word(*b)) => {
            after_dollar_quote(text, at)
        }
        _ => at + 1,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn memchr_from(bytes: &[u8], from: usize, byte: u8) -> Option<usize> {
    bytes.iter().skip(from).position(|b| *b == byte).map(|i| from + i)
}

fn after_quote(bytes: &[u8], open: usize, escapes: bool) -> usize {
    let quote = bytes.get(open).copied();
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        if escapes && byte == b'\\' {
            at += 2;
        } else if Some(byte) == quote {
            // A doubled quote closes and opens again, which comes to the same.
            return at + 1;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn after_comment(bytes: &[u8], open: usize) -> usize {
    let (mut at, mut depth) = (open, 0_usize);
    while at < bytes.len() {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'/'), Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (Some(b'*'), Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn after_dollar_quote(text: &str, open: usize) -> usize {
    let rest = text.get(open + 1..).unwrap_or_default();
    let Some(tag_len) = rest.find('$') else { return open + 1 };
    let tag = rest.get(..tag_len).unwrap_or_default();
    let starts_well = !tag.starts_with(|c: char| c.is_ascii_digit());
    if !(starts_well && tag.bytes().all(is_word)) {
        return open + 1;
    }
    let delimiter_len = tag_len + 2;
    let delimiter = text.get(open..open + delimiter_len).unwrap_or_default();
    let body = text.get(open + delimiter_len..).unwrap_or_default();
    body.find(delimiter).map_or(text.len(), |at| open + delimiter_len + at + delimiter_len)
}
