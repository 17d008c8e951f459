//! Patterns of days and times, in parts.
//!
//! Comes in: a pattern, and the fields that are read there. Goes out: fields, perhaps with FM in front, and characters
//! that stand for themselves, as those in double quotes do. Other fields of PostgreSQL's are refused, and so are TM, TH
//! and SP.

use mainstem_storage::{Error, Result};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// PostgreSQL's fields, longer ones before those that they begin with; TM is a prefix.
const FIELDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TM", "TZH", "TZM",
    "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day",
    "ddd", "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw",
    "iyyy", "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss",
    "ss", "tm", "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

#[derive(Clone, Debug)]
pub(super) enum Part {
    Field {
        name: &'static str,
        /// FM stands in front.
        fill: bool,
    },
    /// A blank, or a character that is neither letter nor digit.
    Separator(char),
    /// Any other character, or one in quotes.
    Character(char),
}

pub(super) fn is_separator(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_punctuation()
}

/// The parts of `text`, of which the fields are among `read`, which has them in capitals.
///
/// # Errors
/// 0A000 for other fields.
pub(super) fn parts(text: &str, read: &[&str]) -> Result<Vec<Part>> {
    let unsupported = |what: &str| Error::unsupported(format_args!("\"{what}\" in a pattern of dates and times"));
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut fill = false;
        while let Some("FM" | "fm") = rest.get(..2) {
            (fill, rest) = (true, rest.get(2..).unwrap_or_default());
        }
        if let Some(name) = FIELDS.iter().find(|name| rest.starts_with(**name)) {
            rest = rest.get(name.len()..).unwrap_or_default();
            if !read.contains(&name.to_ascii_uppercase().as_str()) {
                return Err(unsupported(name));
            }
            if let Some(suffix @ ("TH" | "th" | "SP" | "sp")) = rest.get(..2) {
                return Err(unsupported(suffix));
            }
            parts.push(Part::Field { name, fill });
            continue;
        }
        let mut chars = rest.chars();
        match chars.next() {
            Some('"') => {
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    let next = if c == '\\' { chars.next() } else { None };
                    parts.push(Part::Character(next.unwrap_or(c)));
                }
            }
            Some('\\') if chars.as_str().starts_with('"') => parts.extend(chars.next().map(Part::Separator)),
            Some(c) if is_separator(c) => parts.push(Part::Separator(c)),
            c => parts.extend(c.map(Part::Character)),
        }
        rest = chars.as_str();
    }
    Ok(parts)
}
