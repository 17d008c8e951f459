//! A text of several statements, as the texts of these: what a text that was seen before is run by.
//!
//! Comes in: a text. Goes out: where each of its statements stands. All of them can be parsed: nothing runs of a text
//! in which one is wrong, and whether it is wrong depends on the text alone.

use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::position::is_solid;
use super::script::Statement;
use crate::sql::dialect::MainstemDialect;

/// Longest text that is looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Most statements: more would displace each other where they are kept.
const STATEMENTS_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Several {
    text: Box<str>,
    places: Box<[Place]>,
}

#[derive(Debug)]
struct Place {
    bytes: Range<usize>,
    /// Characters in front of it.
    before: usize,
}

/// Whether `text` may have several statements.
pub(crate) fn may_be_several(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && text.trim_ascii_end().trim_end_matches(';').contains(';')
}

impl Several {
    /// `None` for a text of one statement or of very many, one that is wrong, and one with statements that want more
    /// than their own text: of PREPARE and EXECUTE errors may stand in another one, COPY may want data behind it.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let script = super::parse(text).ok()?;
        let is_apart = |statement: &Statement| !matches!(statement, Statement::Prepared(_) | Statement::Copy(_));
        if script.is_deep() || !script.statements().all(is_apart) {
            return None;
        }
        let places = places(text)?;
        let is_whole = places.len() == script.statements().count();
        (is_whole && (2..=STATEMENTS_MAX).contains(&places.len()))
            .then(|| Self { text: text.into(), places: places.into() })
    }

    /// Statement number `at`, from 0, and how many characters stand in front of it.
    pub(crate) fn statement(&self, at: usize) -> Option<(&str, usize)> {
        let place = self.places.get(at)?;
        Some((self.text.get(place.bytes.clone())?, place.before))
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.places)
    }
}

/// Where the statements of `text` stand, from their first token that is no comment to the semicolon.
fn places(text: &str) -> Option<Vec<Place>> {
    let tokens = Tokenizer::new(&MainstemDialect::new(0), text).tokenize_with_location().ok()?;
    let mut characters = Characters { text, at: Location::new(1, 1), bytes: 0, passed: 0 };
    let mut places = Vec::new();
    let mut parts = tokens.split(|token| token.token == Token::SemiColon).peekable();
    let mut behind = 0;
    while let Some(part) = parts.next() {
        behind += part.len() + 1;
        let first: Option<&TokenWithSpan> = part.iter().find(|token| is_solid(token));
        let start = match first {
            Some(first) => Some(characters.pass_to(first.span.start)?),
            None => None,
        };
        let end = if parts.peek().is_some() {
            let semicolon = tokens.get(behind - 1)?;
            let (end, _) = characters.pass_to(semicolon.span.start)?;
            text.get(end..)?.starts_with(';').then_some(end)?
        } else {
            text.len()
        };
        if let Some((start, before)) = start {
            places.push(Place { bytes: start..end, before });
        }
    }
    Some(places)
}

/// A walk over a text.
struct Characters<'a> {
    text: &'a str,
    at: Location,
    bytes: usize,
    passed: usize,
}

impl Characters<'_> {
    /// Goes on to `location`: how many bytes and characters are in front of it. `None` if the text has no such place.
    fn pass_to(&mut self, location: Location) -> Option<(usize, usize)> {
        while self.at < location {
            let next = self.text.get(self.bytes..)?.chars().next()?;
            self.bytes += next.len_utf8();
            self.passed += 1;
            self.at = match next {
                '\n' => Location::new(self.at.line + 1, 1),
                _ => Location::new(self.at.line, self.at.column + 1),
            };
        }
        (self.at == location).then_some((self.bytes, self.passed))
    }
}

#[cfg(test)]
mod tests {
    use super::{Several, may_be_several};

    fn of(text: &str) -> Option<Vec<(String, usize)>> {
        let several = Several::of(text)?;
        Some((0..).map_while(|at| several.statement(at)).map(|(text, before)| (text.to_owned(), before)).collect())
    }

    fn is(text: &str, statements: &[&str]) {
        assert!(may_be_several(text));
        let found = of(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), statements);
        for (statement, before) in found {
            assert!(text.chars().skip(before).collect::<String>().starts_with(&statement));
        }
    }

    #[test]
    fn statements_are_told_apart_by_their_tokens() {
        is("SELECT 1; SELECT 2", &["SELECT 1", "SELECT 2"]);
        is(";;BEGIN;\n  SELECT ';' ;\tCOMMIT ; ", &["BEGIN", "SELECT ';' ", "COMMIT "]);
        is(
            "-- ü; no statement\nSELECT 'ü', $$;$$; /* ; /* ; */ */ SELECT \";\" FROM t -- the end;",
            &["SELECT 'ü', $$;$$", "SELECT \";\" FROM t -- the end;"],
        );
        is("SELECT 1;\r\nSELECT E'\\';';\r\n", &["SELECT 1", "SELECT E'\\';'"]);
    }

    #[test]
    fn others_are_left_alone() {
        assert!(!may_be_several("SELECT 1;"));
        for text in [
            "SELECT ';'",
            "SELECT 1; -- more",
            "SELECT 1; SELECT",
            "SELECT 1; SELECT $1",
            "PREPARE p AS SELECT 1; EXECUTE p",
            "COPY t FROM stdin; SELECT 1",
            &"SELECT 1;".repeat(65),
        ] {
            assert!(of(text).is_none(), "{text}");
        }
    }
}
