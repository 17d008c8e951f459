//! Functions over texts that PostgreSQL has for writing SQL and patterns: `quote_ident`, `quote_literal`,
//! `quote_nullable`, `similar_to_escape`, `like_escape`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use crate::cast::convert;
use crate::error::external;
use crate::evaluate::simple::Simple;

/// The words that PostgreSQL takes for no name, or not everywhere.
const KEYWORDS: &str = "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast \
    char character check coalesce collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable \
    desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group \
    grouping having ilike in initially inner inout int integer intersect interval into is isnull join lateral leading \
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric \
    offset on only or order out outer overlaps overlay placing position precision primary real references returning right \
    row select session_user setof similar smallint some substring symmetric table tablesample then time timestamp to \
    trailing treat trim true union unique user using values varchar variadic verbose when where window with xmlattributes \
    xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";
/// invalid_escape_sequence
const INVALID_ESCAPE: &str = "22025";

/// The function `name` of the module.
pub(crate) fn quoted(name: &'static str) -> ScalarUDF {
    let signature = match name {
        "similar_to_escape" => {
            Signature::one_of(vec![TypeSignature::String(1), TypeSignature::String(2)], Volatility::Immutable)
        }
        "like_escape" => Signature::string(2, Volatility::Immutable),
        "quote_ident" => Signature::string(1, Volatility::Immutable),
        _ => Signature::any(1, Volatility::Immutable),
    };
    Simple::new(name, signature, DataType::Utf8View, move |arrays, rows| each(name, arrays, rows)).udf()
}

fn each(name: &str, arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = |array: &ArrayRef| -> Result<StringViewArray> {
        let texts = convert(array, SqlType::Text { max_chars: None }).map_err(external)?;
        Ok(texts.as_string_view().clone())
    };
    let [text, more @ ..] = arrays else {
        return Err(DataFusionError::Internal(format!("{name} without its argument")));
    };
    let text = texts(text)?;
    let escapes = more.first().map(texts).transpose()?;
    let mut out = StringViewBuilder::with_capacity(rows);
    for row in 0..rows {
        let given = text.is_valid(row).then(|| text.value(row));
        let result = match (name, given) {
            ("quote_nullable", None) => Some("NULL".to_owned()),
            (_, None) => None,
            ("quote_ident", Some(text)) => Some(quoted_name(text)),
            ("similar_to_escape", Some(pattern)) => match &escapes {
                None => Some(regex_of(pattern, Some('\\'))),
                Some(escapes) if escapes.is_null(row) => None,
                Some(escapes) => Some(regex_of(pattern, escape_of(escapes.value(row))?)),
            },
            ("like_escape", Some(pattern)) => match &escapes {
                Some(escapes) if escapes.is_valid(row) => Some(like_of(pattern, escape_of(escapes.value(row))?)?),
                _ => None,
            },
            (_, Some(text)) => Some(quoted_text(text)),
        };
        out.append_option(result);
    }
    Ok(Arc::new(out.finish()))
}

/// `name` as SQL reads it back.
fn quoted_name(name: &str) -> String {
    let mut chars = name.chars();
    let is_plain = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_reserved(name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn is_reserved(name: &str) -> bool {
    KEYWORDS.split(' ').any(|word| word == name)
}

/// `text` as SQL reads it back.
fn quoted_text(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

fn escape_of(text: &str) -> Result<Option<char>> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (escape, None) => Ok(escape),
        _ => {
            let message = "invalid escape string: it is empty or one character";
            Err(external(Error::invalid(INVALID_ESCAPE, message)))
        }
    }
}

/// `pattern` of LIKE, in which `escape` stands in front of what means itself, with backslashes there.
fn like_of(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut like = String::with_capacity(pattern.len() + 4);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let plain = if Some(c) == escape {
            chars.next().ok_or_else(|| {
                let message = "LIKE pattern must not end with escape character";
                external(Error::invalid(INVALID_ESCAPE, message))
            })?
        } else if matches!(c, '%' | '_') {
            like.push(c);
            continue;
        } else {
            c
        };
        if matches!(plain, '%' | '_' | '\\') {
            like.push('\\');
        }
        like.push(plain);
    }
    Ok(like)
}

/// The regular expression that matches the texts that `pattern` is similar to: `%` is any characters, `_` is one; `|`,
/// `*`, `+`, `?`, `{m,n}`, parentheses and brackets are those of regular expressions; all else is itself.
fn regex_of(pattern: &str, escape: Option<char>) -> String {
    let mut regex = String::with_capacity(pattern.len() + 12);
    regex.push_str("(?s)^(?:");
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            _ if Some(c) == escape => match chars.next() {
                // Classes of characters, as in PostgreSQL.
                Some(class @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => regex.extend(['\\', class]),
                Some(escaped) => push_plain(&mut regex, escaped),
                None => {}
            },
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(c),
            '[' => {
                regex.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    regex.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    regex.push_str("\\]");
                }
                while let Some(c) = chars.next() {
                    match c {
                        ']' => {
                            regex.push(']');
                            break;
                        }
                        _ if Some(c) == escape => match chars.next() {
                            Some(class @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => regex.extend(['\\', class]),
                            Some(escaped) => push_plain(&mut regex, escaped),
                            None => {}
                        },
                        // `[:alpha:]`; Rust's expressions nest brackets, SQL's do not.
                        '[' if chars.peek() == Some(&':') => {
                            regex.push('[');
                            for c in chars.by_ref() {
                                regex.push(c);
                                if c == ']' {
                                    break;
                                }
                            }
                        }
                        '[' | '&' | '~' | '\\' => regex.extend(['\\', c]),
                        other => regex.push(other),
                    }
                }
            }
            other => push_plain(&mut regex, other),
        }
    }
    regex.push_str(")$");
    regex
}

/// Pushes a character that means itself.
fn push_plain(regex: &mut String, c: char) {
    if "\\.+*?()|[]{}^$#&-~".contains(c) {
        regex.push('\\');
    }
    regex.push(c);
}

#[cfg(test)]
mod tests {
    use super::{like_of, quoted_name, quoted_text, regex_of};

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, regex) in [
            ("a%", "a.*"),
            ("a_|(b)+", "a.|(?:b)+"),
            ("a.b^$", "a\\.b\\^\\$"),
            ("\\%\\_", "%_"),
            ("\\d{2,3}", "\\d{2,3}"),
            ("[a-c%]x", "[a-c%]x"),
            ("[^]a]", "[^\\]a]"),
            ("[[:alpha:]&&b]", "[[:alpha:]\\&\\&b]"),
        ] {
            assert_eq!(regex_of(pattern, Some('\\')), format!("(?s)^(?:{regex})$"), "{pattern}");
        }
        assert_eq!(regex_of("a#%\\", Some('#')), "(?s)^(?:a%\\\\)$");
        assert_eq!(regex_of("#%", None), "(?s)^(?:\\#.*)$");
    }

    #[test]
    fn patterns_of_like_get_backslashes() {
        let like = |pattern, escape| like_of(pattern, escape).map_err(|e| e.to_string());
        assert_eq!(like("a#%_##\\", Some('#')), Ok("a\\%_#\\\\".to_owned()));
        assert_eq!(like("a\\%", None), Ok("a\\\\%".to_owned()));
        assert_eq!(like("%%%_", Some('%')), Ok("\\%\\_".to_owned()));
        assert!(like("a#", Some('#')).is_err());
    }

    #[test]
    fn texts_are_quoted_where_sql_needs_it() {
        assert_eq!(quoted_name("abc_1"), "abc_1");
        assert_eq!(quoted_name("select"), "\"select\"");
        assert_eq!(quoted_name("a\"B"), "\"a\"\"B\"");
        assert_eq!(quoted_name(""), "\"\"");
        assert_eq!(quoted_text("it's"), "'it''s'");
        assert_eq!(quoted_text("a\\b"), "E'a\\\\b'");
    }
}
