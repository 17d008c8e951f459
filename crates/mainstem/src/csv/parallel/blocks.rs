//! Whole rows, block by block: a block's separators are found; each row has to have as many as there are columns, and
//! all rows have to end in the same way.

use mainstem_kernels::csv::{Marks, Summary, find_separators};

/// What all rows have to look like.
pub(super) struct RowForm {
    marks: Marks,
    columns: usize,
    ends: Ends,
}

/// How rows end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Unknown,
    /// With a carriage return before the line feed, or without.
    Known {
        has_returns: bool,
    },
}

/// Rows at the beginning of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Their bytes.
    pub(super) bytes: usize,
    /// Their separators.
    ends: usize,
    has_quotes: bool,
    has_returns: bool,
    /// What they and all that was looked at behind them have.
    pub(super) summary: Summary,
}

/// Whole rows, each with a field for each column.
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the fields end.
    pub(super) ends: &'a [u32],
    pub(super) has_quotes: bool,
    pub(super) has_returns: bool,
}

impl Found {
    /// The rows, which were found in `bytes` with `separators`.
    pub(super) fn block<'a>(self, bytes: &'a [u8], separators: &'a [u32]) -> Option<Block<'a>> {
        let (bytes, ends) = (bytes.get(..self.bytes)?, separators.get(..self.ends)?);
        Some(Block { bytes, ends, has_quotes: self.has_quotes, has_returns: self.has_returns })
    }
}

impl RowForm {
    /// That of rows of `columns` fields behind `header`, if there is one, which has to end as they do; None if it has
    /// carriage returns elsewhere.
    pub(super) fn behind(header: &[u8], marks: Marks, columns: usize) -> Option<Self> {
        let returns = header.iter().filter(|byte| **byte == b'\r').count();
        let ends = match returns {
            0 => Ends::Unknown,
            1 if header.ends_with(b"\r\n") => Ends::Known { has_returns: true },
            _ => return None,
        };
        Some(Self { marks, columns, ends })
    }

    /// The whole rows that `part` begins with, if one ends in it; their separators, and those behind them, go to
    /// `separators`. None at all where a row has too few fields or too many, or ends otherwise than others.
    pub(super) fn rows_in(&mut self, part: &[u8], separators: &mut Vec<u32>) -> Option<Option<Found>> {
        separators.clear();
        let structure = find_separators(part, self.marks, false, separators);
        if structure.line_feeds == 0 {
            return Some(None);
        }
        let count = structure.line_feeds * self.columns;
        let ends = separators.get(..count)?;
        let bytes = *ends.last()? as usize + 1;
        let (whole, tail) = part.split_at_checked(bytes)?;
        // As many of them are line feeds as there are rows, and so no others.
        let mut lasts = ends.iter().skip(self.columns - 1).step_by(self.columns).map(|end| *end as usize);
        if !lasts.clone().all(|end| whole.get(end) == Some(&b'\n')) {
            return None;
        }
        // Those behind the rows are of the next block.
        let mut behind = Vec::new();
        let returns_behind = match structure.carriage_returns {
            0 => 0,
            _ => find_separators(tail, self.marks, false, &mut behind).carriage_returns,
        };
        let returns = structure.carriage_returns - returns_behind;
        let has_returns = returns > 0;
        let is_ended = |end: usize| whole.get(end.wrapping_sub(1)) == Some(&b'\r');
        if has_returns && !(returns == structure.line_feeds && lasts.all(is_ended)) {
            return None;
        }
        let ends_as = Ends::Known { has_returns };
        if self.ends != Ends::Unknown && self.ends != ends_as {
            return None;
        }
        self.ends = ends_as;
        let line_feeds = (structure.line_feeds + structure.quoted_line_feeds) as u64;
        // Whether they are odd is all that anybody asks.
        let summary = Summary { quotes: structure.in_quotes.into(), line_feeds };
        Some(Some(Found { bytes, ends: count, has_quotes: structure.has_quotes, has_returns, summary }))
    }
}

/// Whole rows that are there already.
pub(super) struct Blocks<'a> {
    form: RowForm,
    rest: &'a [u8],
    /// Bytes of a block, but of one with a longer row.
    block_bytes: usize,
}

impl<'a> Blocks<'a> {
    /// Those of `rows`, in blocks of `block_bytes` bytes.
    pub(super) fn new(form: RowForm, rows: &'a [u8], block_bytes: usize) -> Self {
        Self { form, rest: rows, block_bytes }
    }

    /// The next block, whose separators go to `separators`; none behind the last one. None at all where a row is not as
    /// others are.
    pub(super) fn next<'s>(&mut self, separators: &'s mut Vec<u32>) -> Option<Option<Block<'s>>>
    where
        'a: 's,
    {
        let mut bytes = self.block_bytes;
        while !self.rest.is_empty() {
            let part = self.rest.get(..bytes).unwrap_or(self.rest);
            if let Some(found) = self.form.rows_in(part, separators)? {
                self.rest = self.rest.get(found.bytes..).unwrap_or_default();
                return found.block(part, separators).map(Some);
            }
            if part.len() == self.rest.len() {
                return None;
            }
            // A row that is longer than a block.
            bytes *= 4;
        }
        Some(None)
    }
}
