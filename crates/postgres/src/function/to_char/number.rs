//! Numbers by a pattern, as PostgreSQL's `to_char` writes them.
//!
//! Comes in: a pattern, and a number's digits. Goes out: text. Read are `9 0 . D , G FM S MI PL SG PR TH`, in either
//! case, text in double quotes, and any other character, which stands for itself; `B C EEEE L RN SP V` are refused.
//! Steps follow those of PostgreSQL (`formatting.c`): each `9`, `0` and point takes one place of the number, from the
//! left; what stands between them is written as it comes, and the sign before the first digit that is written, unless
//! the pattern says where.

use mainstem_storage::{Error, Result};

use super::{Literal, literal};
use crate::sqlstate;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Nine,
    Zero,
    Point,
    Comma,
    /// MI.
    Minus,
    /// PL.
    Plus,
    /// SG.
    Sign,
    /// TH, or th (false).
    Ordinal(bool),
    /// S, PR, FM: they say something of the whole.
    Nothing,
    Text(String),
}

/// Where S puts the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Before,
    Behind,
}

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(super) struct NumberPattern {
    parts: Vec<Part>,
    /// Digits in front of the point, and behind it.
    before: usize,
    pub(super) behind: usize,
    /// Digits in front of the first `0`, if there is one before the point.
    zeros_from: Option<usize>,
    /// Digits up to the last `0`.
    zeros_to: usize,
    point: bool,
    fill: bool,
    minus: bool,
    plus: bool,
    brackets: bool,
    anchor: Option<Anchor>,
    /// Digits in front of S.
    before_anchor: usize,
}

/// A number as its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) negative: bool,
    /// Perhaps with a point.
    pub(super) digits: String,
}

const KEYWORDS: &[&str] = &[
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "E", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V",
];

impl NumberPattern {
    /// Reads `text`.
    ///
    /// # Errors
    /// 42601 for patterns that contradict themselves, 0A000 for what is not read.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut pattern = Self {
            parts: Vec::new(),
            before: 0,
            behind: 0,
            zeros_from: None,
            zeros_to: 0,
            point: false,
            fill: false,
            minus: false,
            plus: false,
            brackets: false,
            anchor: None,
            before_anchor: 0,
        };
        let mut rest = text;
        while !rest.is_empty() {
            let keyword = KEYWORDS.iter().find(|keyword| {
                rest.get(..keyword.len()).is_some_and(|head| {
                    head.eq_ignore_ascii_case(keyword) && (head == **keyword || head == keyword.to_ascii_lowercase())
                })
            });
            match keyword {
                Some(keyword) => {
                    let (head, behind) = rest.split_at(keyword.len());
                    rest = behind;
                    let part = pattern.keyword(keyword, head)?;
                    pattern.parts.push(part);
                }
                None => {
                    let Literal { text, behind } = literal(rest);
                    pattern.parts.push(Part::Text(text));
                    rest = behind;
                }
            }
        }
        let counts = pattern.parts.iter().any(|part| matches!(part, Part::Ordinal(_)));
        if counts && !pattern.point && pattern.before == 0 {
            return Err(Error::invalid(
                sqlstate::INVALID_TEXT,
                "\"TH\" in the pattern of to_char stands behind no digit",
            ));
        }
        Ok(pattern)
    }

    fn keyword(&mut self, keyword: &str, written: &str) -> Result<Part> {
        let wrong = |message: &str| Err(Error::invalid(sqlstate::SYNTAX, message));
        if self.anchor.is_some() && matches!(keyword, "MI" | "PL" | "SG" | "PR") {
            return wrong(&format!("cannot use \"S\" and \"{keyword}\" together"));
        }
        Ok(match keyword {
            "9" | "0" if self.brackets => return wrong(&format!("\"{keyword}\" must be ahead of \"PR\"")),
            "9" | "0" => {
                if keyword == "0" && self.zeros_from.is_none() && !self.point {
                    self.zeros_from = Some(self.before);
                }
                *(if self.point { &mut self.behind } else { &mut self.before }) += 1;
                if keyword == "9" {
                    return Ok(Part::Nine);
                }
                self.zeros_to = self.before + self.behind;
                Part::Zero
            }
            "." | "D" if self.point => return wrong("multiple decimal points"),
            "." | "D" => {
                self.point = true;
                Part::Point
            }
            "," | "G" => Part::Comma,
            "FM" => {
                self.fill = true;
                Part::Nothing
            }
            "S" if self.anchor.is_some() => return wrong("cannot use \"S\" twice"),
            "S" if self.plus || self.minus || self.brackets => {
                return wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
            }
            "S" => {
                self.anchor = Some(if self.point { Anchor::Behind } else { Anchor::Before });
                self.before_anchor = self.before;
                Part::Nothing
            }
            "MI" => {
                self.minus = true;
                Part::Minus
            }
            "PL" => {
                self.plus = true;
                Part::Plus
            }
            "SG" => {
                (self.minus, self.plus) = (true, true);
                Part::Sign
            }
            "PR" if self.plus || self.minus => {
                return wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
            }
            "PR" => {
                self.brackets = true;
                Part::Nothing
            }
            "TH" => Part::Ordinal(written == "TH"),
            _ => return Err(Error::unsupported(format_args!("\"{written}\" in the pattern of to_char for a number"))),
        })
    }

    /// Writes `number`, whose digits behind the point are as many as the pattern's, or fewer.
    pub(super) fn write(&self, number: &Digits) -> String {
        let whole = number.digits.find('.').unwrap_or(number.digits.len());
        let too_long = whole > self.before;
        let digits = if too_long {
            format!("{}.{}", "#".repeat(self.before), "#".repeat(self.behind))
        } else {
            number.digits.clone()
        };
        let blanks = self.before.saturating_sub(whole);
        let mut writer = Writer {
            pattern: self,
            out: String::new(),
            number: digits.into_bytes(),
            negative: number.negative,
            brackets: self.brackets && (number.negative || !self.fill || self.plus || self.minus),
            anchor: self.anchor,
            sign_written: false,
            blanks,
            last: None,
            at: 0,
            place: 0,
            places: (self.before + self.behind) as i64 - 1,
            in_number: false,
            end: None,
        };
        writer.prepare();
        writer.run();
        let end = writer.end.unwrap_or(writer.out.len());
        writer.out.truncate(end);
        writer.out
    }
}

/// One number on its way through a pattern.
struct Writer<'a> {
    pattern: &'a NumberPattern,
    out: String,
    /// Digits and point; `#` for a number that is too long.
    number: Vec<u8>,
    negative: bool,
    brackets: bool,
    anchor: Option<Anchor>,
    sign_written: bool,
    /// Places in front of the number.
    blanks: usize,
    /// The last place that FM shows, if it hides any.
    last: Option<usize>,
    /// The next place of the number.
    at: usize,
    /// The next place of the pattern.
    place: usize,
    places: i64,
    /// Whether the last place was part of the number.
    in_number: bool,
    /// Where the text ends, before all of it is written.
    end: Option<usize>,
}

impl Writer<'_> {
    fn prepare(&mut self) {
        let NumberPattern { fill, plus, minus, .. } = *self.pattern;
        if plus || minus {
            self.sign_written = !plus || minus;
        } else {
            self.sign_written = !self.negative && fill && self.anchor.is_none();
            if self.anchor == Some(Anchor::Before) && self.pattern.before == self.pattern.before_anchor {
                self.anchor = Some(Anchor::Behind);
            }
        }
        if fill && self.pattern.point {
            self.last = self.last_relevant();
            if let Some(last) = self.last
                && self.pattern.zeros_to > self.blanks
            {
                let zero = (self.number.len() - 1).min(self.pattern.zeros_to - self.blanks);
                self.last = Some(last.max(zero));
            }
        }
        if !self.sign_written && self.blanks == 0 {
            self.places += 1;
        }
    }

    /// The last digit behind the point that is not 0, or the point.
    fn last_relevant(&self) -> Option<usize> {
        let point = self.number.iter().position(|digit| *digit == b'.')?;
        let behind = self.number.iter().enumerate().skip(point + 1);
        Some(behind.filter(|(_, digit)| **digit != b'0').map(|(at, _)| at).next_back().unwrap_or(point))
    }

    fn run(&mut self) {
        let fill = self.pattern.fill;
        let blank = |out: &mut String| {
            if !fill {
                out.push(' ');
            }
        };
        for part in &self.pattern.parts {
            match part {
                Part::Nine | Part::Zero | Part::Point => self.digit(*part == Part::Zero),
                Part::Comma if self.in_number => self.out.push(','),
                Part::Comma => blank(&mut self.out),
                Part::Minus if self.negative => self.out.push('-'),
                Part::Plus if !self.negative => self.out.push('+'),
                Part::Minus | Part::Plus => blank(&mut self.out),
                Part::Sign => self.out.push(if self.negative { '-' } else { '+' }),
                Part::Ordinal(upper) => {
                    let none = self.number.first() == Some(&b'#') || self.negative || self.pattern.point;
                    if !none {
                        let digits = String::from_utf8_lossy(&self.number).into_owned();
                        self.out.push_str(super::ordinal(&digits, *upper));
                    }
                }
                Part::Nothing => {}
                Part::Text(text) => self.out.push_str(text),
            }
        }
    }

    /// Whether the number is below 1, nothing of it was written, and no `0` asks for its first digit.
    fn is_blank_zero(&self) -> bool {
        let pattern = self.pattern;
        pattern.zeros_from.is_none() && self.at == 0 && self.number.first() == Some(&b'0') && pattern.behind != 0
    }

    /// Whether the last place that FM shows is the point.
    fn ends_with_point(&self) -> bool {
        self.last.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn sign(&mut self) {
        if self.pattern.anchor.is_some() {
            if self.anchor == Some(Anchor::Before) {
                self.out.push(if self.negative { '-' } else { '+' });
                self.sign_written = true;
            }
            return;
        }
        if self.brackets {
            self.out.push(if self.negative { '<' } else { ' ' });
        } else if self.negative {
            self.out.push('-');
        } else if !self.pattern.fill {
            self.out.push(' ');
        }
        self.sign_written = true;
    }

    /// One place of the pattern.
    fn digit(&mut self, zero: bool) {
        self.in_number = false;
        let zeros_from = self.pattern.zeros_from;
        let begins = self.place >= self.blanks || zeros_from == Some(self.place);
        if !self.sign_written && begins && (!self.is_blank_zero() || self.ends_with_point()) {
            self.sign();
        }
        if self.place < self.blanks {
            if zeros_from.is_some_and(|from| from <= self.place) {
                self.out.push('0');
                self.in_number = true;
            } else if !self.pattern.fill {
                self.out.push(' ');
            }
        } else {
            self.of_number(zero);
        }
        let mut end = self.places + i64::from(self.blanks > 0) + i64::from(self.pattern.point);
        if self.last == Some(self.at) {
            end = self.place as i64;
        }
        if self.place as i64 + 1 == end {
            if self.sign_written && self.brackets {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.anchor == Some(Anchor::Behind) {
                self.out.push(if self.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    /// One place of the number.
    fn of_number(&mut self, zero: bool) {
        match self.number.get(self.at).copied() {
            Some(b'.') => {
                if !self.ends_with_point() || self.pattern.fill {
                    self.out.push('.');
                }
            }
            _ if !zero && self.last.is_some_and(|last| self.at > last) => {}
            _ if self.is_blank_zero() => {
                if !self.pattern.fill {
                    self.out.push(' ');
                } else if self.ends_with_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(digit));
                self.in_number = true;
            }
            // PostgreSQL writes the end of the text there: what comes behind is not seen.
            None => {
                self.end.get_or_insert(self.out.len());
            }
        }
        if self.at < self.number.len() {
            self.at += 1;
        }
    }
}
