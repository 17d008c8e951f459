//! Literals of a statement's text as parameters: texts that differ in their values alone are one prepared statement.
//!
//! Comes in: the text of one statement. Goes out: the same text with `$1`, `$2`, ... in the places of literals, which
//! is what the statement is kept by, and the values. Nothing is parsed: a text that has anything out of the ordinary
//! (comments, parameters, quoted names, other literals) is left alone.
//!
//! A literal becomes a parameter only where both mean the same:
//!
//! - a whole cell of VALUES, behind `(` or `,` and in front of `,` or `)`, is stored into a column by both; so is
//!   `DATE '2020-01-02'`, for which only a column of type DATE is taken by what is kept;
//! - what stands behind `=` in the WHERE of SELECT, UPDATE and DELETE, and in SET, and ends at a word, a comma or the
//!   text's end, is compared with a column, or stored.
//!
//! That what is kept is a short statement, whose parameters have the types of their columns, sees to the rest.

use std::fmt::Write as _;
use std::ops::Range;

use mainstem_storage::Error;

use crate::value::{Date, Decimal, ValueRef};

/// Longest text that is looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Most literals of a text.
const LITERALS_MAX: usize = 256;

/// A text without its literals.
#[derive(Debug, PartialEq)]
pub(crate) struct Parameterized {
    pub(crate) text: String,
    literals: Vec<Literal>,
}

#[derive(Debug, PartialEq)]
enum Literal {
    Whole(i64),
    Decimal(Decimal),
    Text(String),
    Date(Date),
}

impl Parameterized {
    /// The values of its parameters.
    pub(crate) fn values(&self) -> Vec<ValueRef<'_>> {
        let values = self.literals.iter().map(|literal| match literal {
            Literal::Whole(number) => ValueRef::BigInt(*number),
            Literal::Decimal(number) => ValueRef::Decimal(*number),
            Literal::Text(text) => ValueRef::Text(text),
            Literal::Date(date) => ValueRef::Date(*date),
        });
        values.collect()
    }
}

/// Whether `sql` may be a query, or a write that has one, by its first word.
pub(crate) fn may_have_query(sql: &str) -> bool {
    let sql = sql.trim_ascii_start();
    let is = |word: &str| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    sql.len() <= TEXT_BYTES_MAX && ["select", "with", "values", "(", "insert", "update", "delete"].into_iter().any(is)
}

/// Whether an error of a statement with parameters in the places of its literals may be told in other words, or not at
/// all, of the text itself. Nothing has happened then, and the text is run.
pub(crate) fn is_of_values(error: &Error) -> bool {
    ["22", "23", "42", "0A"].iter().any(|class| error.sqlstate().starts_with(class))
}

/// Where literals become parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In INSERT, in front of VALUES.
    Head,
    /// Behind VALUES.
    Cells,
    /// In another statement, in front of SET or WHERE.
    Items,
    /// Behind it: behind `=` alone.
    Operands,
}

/// See the module; `None` for texts that are left alone, or have no literal to take.
pub(crate) fn parameterize(sql: &str) -> Option<Parameterized> {
    let sql = sql.trim_ascii().trim_end_matches(';').trim_ascii_end();
    if sql.len() > TEXT_BYTES_MAX {
        return None;
    }
    let is = |word: &str| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let place = match () {
        () if is("insert ") => Place::Head,
        () if is("update ") || is("delete ") || is("select ") => Place::Items,
        () => return None,
    };
    Scanner {
        sql: sql.as_bytes(),
        at: 0,
        place,
        depth: 0,
        text: String::with_capacity(sql.len()),
        literals: Vec::new(),
    }
    .scan(sql)
}

struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
    place: Place,
    /// Open parentheses.
    depth: usize,
    text: String,
    literals: Vec<Literal>,
}

impl Scanner<'_> {
    fn scan(mut self, sql: &str) -> Option<Parameterized> {
        // What stands before, blanks left out, and where what is not copied yet begins.
        let (mut before, mut copied) = (b' ', 0);
        while let Some(byte) = self.sql.get(self.at).copied() {
            let start = self.at;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                b'\'' | b'0'..=b'9' | b'-' => {
                    let literal = self.literal()?;
                    if self.is_whole(before)
                        && let Some(literal) = literal
                    {
                        self.take(sql.get(copied..start)?, literal)?;
                        copied = self.at;
                    }
                }
                b'd' | b'D' if self.is_date() => {
                    let literal = self.date()?;
                    if !self.is_whole(before) {
                        return None;
                    }
                    self.take(sql.get(copied..start)?, literal)?;
                    copied = self.at;
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(sql)?,
                b'(' | b')' | b',' | b'=' | b'.' | b'+' | b'*' | b'/' | b'<' | b'>' | b'%' | b'!' => {
                    match byte {
                        b'(' => self.depth += 1,
                        b')' => self.depth = self.depth.checked_sub(1)?,
                        b'/' if self.sql.get(self.at + 1) == Some(&b'*') => return None,
                        _ => {}
                    }
                    self.at += 1;
                }
                // Quoted names, parameters, casts, comments, texts of other kinds, several statements.
                _ => return None,
            }
            before = *self.sql.get(self.at - 1)?;
            // Two signs are one operator: `<=`, `!=`.
            if byte == b'=' && start > 0 && matches!(self.sql.get(start - 1), Some(b'<' | b'>' | b'!' | b'=')) {
                before = b'<';
            }
        }
        if self.literals.is_empty() {
            return None;
        }
        self.text.push_str(sql.get(copied..)?);
        Some(Parameterized { text: self.text, literals: self.literals })
    }

    /// Puts a parameter in the place of `literal`, which stands behind `text`.
    fn take(&mut self, text: &str, literal: Literal) -> Option<()> {
        self.text.push_str(text);
        self.literals.push(literal);
        if self.literals.len() > LITERALS_MAX {
            return None;
        }
        write!(self.text, "${}", self.literals.len()).ok()
    }

    /// Whether a literal `DATE '...'` begins here.
    fn is_date(&self) -> bool {
        let (word, rest) = self.sql.get(self.at..).unwrap_or_default().split_at_checked(4).unwrap_or_default();
        word.eq_ignore_ascii_case(b"date") && rest.trim_ascii_start().first() == Some(&b'\'')
    }

    /// Passes it, if it is a day of the years 1700 to 2199 in the plain form.
    fn date(&mut self) -> Option<Literal> {
        self.at += self.sql.get(self.at..)?.iter().position(|byte| *byte == b'\'')?;
        let Literal::Text(text) = self.quoted()? else { return None };
        let is_plain = text.len() == 10
            && text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
            && ("17".."22").contains(&text.get(..2)?);
        let number = |range: Range<usize>| text.get(range)?.parse::<u32>().ok();
        let year = i32::try_from(number(0..4).filter(|_| is_plain)?).ok()?;
        Date::new(year, number(5..7)?, number(8..10)?).ok().map(Literal::Date)
    }

    /// Whether what ends here is all that stands behind `before`.
    fn is_whole(&self, before: u8) -> bool {
        let rest = self.sql.get(self.at..).unwrap_or_default().trim_ascii_start();
        match self.place {
            Place::Head | Place::Items => false,
            Place::Cells => self.depth == 1 && matches!((before, rest.first()), (b'(' | b',', Some(b',' | b')'))),
            Place::Operands => {
                let ends = match rest {
                    [] | [b',', ..] => true,
                    rest => {
                        let end = rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len());
                        let (word, _) = rest.split_at(end);
                        [&b"and"[..], b"where", b"returning"].iter().any(|known| word.eq_ignore_ascii_case(known))
                    }
                };
                before == b'=' && self.depth == 0 && ends
            }
        }
    }

    /// Passes a word. In front of a quote it is no word (`E'..'`).
    fn word(&mut self, sql: &str) -> Option<()> {
        let start = self.at;
        while self.sql.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            self.at += 1;
        }
        if matches!(self.sql.get(self.at), Some(b'\'' | b'&')) {
            return None;
        }
        let word = sql.get(start..self.at)?;
        if self.place == Place::Head && self.depth == 0 && word.eq_ignore_ascii_case("values") {
            self.place = Place::Cells;
        } else if self.place == Place::Cells && self.depth == 0 {
            // ON CONFLICT and RETURNING stay as they are.
            self.place = Place::Head;
        } else if self.place == Place::Items
            && self.depth == 0
            && ["set", "where"].iter().any(|known| word.eq_ignore_ascii_case(known))
        {
            self.place = Place::Operands;
        }
        // What a type stands in front of is a literal of that type.
        ["date", "time", "timestamp", "timestamptz", "interval"]
            .iter()
            .all(|of| !word.eq_ignore_ascii_case(of) || !self.is_before_quote())
            .then_some(())
    }

    fn is_before_quote(&self) -> bool {
        self.sql.get(self.at..).unwrap_or_default().trim_ascii_start().first() == Some(&b'\'')
    }

    /// Passes a literal or a minus; none inside if it is none that is taken. `None` for what is left alone.
    fn literal(&mut self) -> Option<Option<Literal>> {
        let start = self.at;
        if self.sql.get(self.at) == Some(&b'\'') {
            return self.quoted().map(Some);
        }
        if self.sql.get(self.at) == Some(&b'-') {
            self.at += 1;
            match self.sql.get(self.at) {
                Some(b'-') => return None,
                Some(b'0'..=b'9') => {}
                _ => return Some(None),
            }
        }
        let digits = |scanner: &mut Self| {
            while scanner.sql.get(scanner.at).is_some_and(u8::is_ascii_digit) {
                scanner.at += 1;
            }
        };
        digits(self);
        let whole = self.at;
        let mut scale = 0;
        if self.sql.get(self.at) == Some(&b'.') {
            self.at += 1;
            digits(self);
            scale = self.at - whole - 1;
            if scale == 0 {
                return None;
            }
        }
        // Exponents, digits in groups, other bases.
        if self.sql.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')) {
            return None;
        }
        let text = std::str::from_utf8(self.sql.get(start..self.at)?).ok()?;
        if scale == 0 {
            return Some(text.parse().ok().map(Literal::Whole));
        }
        let unscaled: String = text.chars().filter(|c| *c != '.').collect();
        let decimal = |unscaled: i128| Decimal::new(unscaled, u8::try_from(scale).ok()?).ok();
        Some(unscaled.parse().ok().and_then(decimal).map(Literal::Decimal))
    }

    /// Passes a text in quotes. One that goes on behind a line's end is two.
    fn quoted(&mut self) -> Option<Literal> {
        let mut text = Vec::new();
        loop {
            self.at += 1;
            match self.sql.get(self.at)? {
                b'\'' if self.sql.get(self.at + 1) == Some(&b'\'') => {
                    text.push(b'\'');
                    self.at += 1;
                }
                b'\'' => break,
                // The end of a text, as far as some read it.
                0 => return None,
                byte => text.push(*byte),
            }
        }
        self.at += 1;
        String::from_utf8(text).ok().map(Literal::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Literal, parameterize};
    use crate::value::{Date, Decimal};

    fn of(sql: &str) -> Option<(String, Vec<Literal>)> {
        parameterize(sql).map(|found| (found.text, found.literals))
    }

    fn text(text: &str) -> Literal {
        Literal::Text(text.to_owned())
    }

    #[test]
    fn cells_of_values_become_parameters() {
        let half = Literal::Decimal(Decimal::new(-50, 2).unwrap());
        let expected = vec![Literal::Whole(1), text("it's"), half];
        let found = of("INSERT INTO t (a, b) VALUES (1, 'it''s', -0.50) ON CONFLICT (a) DO UPDATE SET b = 5;");
        let kept = "INSERT INTO t (a, b) VALUES ($1, $2, $3) ON CONFLICT (a) DO UPDATE SET b = 5";
        assert_eq!(found, Some((kept.to_owned(), expected)));
        let found = of("insert into t values (1+2, 3, NULL), (-4, f(5), date '2024-01-31')");
        let kept = "insert into t values (1+2, $1, NULL), ($2, f(5), $3)";
        let date = Literal::Date(Date::new(2024, 1, 31).unwrap());
        assert_eq!(found, Some((kept.to_owned(), vec![Literal::Whole(3), Literal::Whole(-4), date])));
        let found = of("insert into t values (1+2, 3, NULL), (-4, f(5), '')");
        let kept = "insert into t values (1+2, $1, NULL), ($2, f(5), $3)";
        assert_eq!(found, Some((kept.to_owned(), vec![Literal::Whole(3), Literal::Whole(-4), text("")])));
    }

    #[test]
    fn operands_of_equality_become_parameters() {
        let found = of("UPDATE t SET a = 'x', b = b + 1 WHERE k = 7 AND n <= 8 and m = 9");
        let kept = "UPDATE t SET a = $1, b = b + 1 WHERE k = $2 AND n <= 8 and m = $3";
        assert_eq!(found, Some((kept.to_owned(), vec![text("x"), Literal::Whole(7), Literal::Whole(9)])));
        let found = of("SELECT v FROM t WHERE k = -7");
        assert_eq!(found, Some(("SELECT v FROM t WHERE k = $1".to_owned(), vec![Literal::Whole(-7)])));
        assert_eq!(of("SELECT 1 FROM t WHERE k = 7 + 1"), None);
        assert_eq!(of("SELECT k = 7 FROM t"), None);
        assert_eq!(of("SELECT v FROM t WHERE (k = 7)"), None);
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_alone() {
        for sql in [
            "INSERT INTO t VALUES (E'a')",
            "INSERT INTO t VALUES (1, $1)",
            "INSERT INTO \"t\" VALUES (1)",
            "INSERT INTO t VALUES (1) -- one",
            "INSERT INTO t VALUES (1); DELETE FROM t",
            "INSERT INTO t VALUES (1e5)",
            "INSERT INTO t VALUES (0x10)",
            "INSERT INTO t VALUES (DATE '2024-02-30')",
            "INSERT INTO t VALUES (DATE '24-02-20')",
            "INSERT INTO t VALUES (DATE 'today')",
            "INSERT INTO t VALUES (1, DATE '2024-02-20' + 1)",
            "INSERT INTO t VALUES (1, TIME '10:00')",
            "INSERT INTO t VALUES ('a'::text)",
            "INSERT INTO t VALUES ('a",
            "DROP TABLE t",
            "SELECT /* 1 */ v FROM t WHERE k = 1",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }
}
