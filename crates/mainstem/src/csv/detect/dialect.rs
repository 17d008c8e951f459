//! Delimiter, quote and escape: those by which the rows of a sample look alike.

use super::sample::{Sample, Split, most_frequent, split};
use super::{Known, NO_QUOTE};
use crate::sql::{CsvOptions, LineEnd};

/// Delimiters, the most likely first.
const DELIMITERS: &[u8] = b",;\t|";
/// Bytes of the sample that all combinations are tried on.
const TRIED_BYTES: usize = 128 << 10;

/// How well the rows of a sample are explained by a combination; more is better, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    /// Whether there are several columns, and most rows have as many.
    is_table: bool,
    /// Whether no quote stands where none should.
    is_clean: bool,
    /// How many rows have as many fields as most, in steps.
    regular: u8,
    columns: usize,
}

impl Score {
    /// That of `found`, in which rows with too few fields are as good as others if they are `padded`.
    fn of(found: &Split, padded: bool) -> Self {
        let rows = found.rows.len();
        if padded {
            let columns = found.rows.iter().map(Vec::len).max().unwrap_or_default();
            return Self { is_table: columns > 1, is_clean: found.strays == 0, regular: 3, columns };
        }
        let Some(columns) = most_frequent(found.rows.iter().map(Vec::len)) else { return Self::default() };
        let alike = found.rows.iter().filter(|row| row.len() == columns).count();
        let regular = match () {
            () if alike == rows => 3,
            () if alike * 10 >= rows * 9 => 2,
            () => u8::from(alike * 2 >= rows),
        };
        Self { is_table: columns > 1 && regular > 0, is_clean: found.strays == 0, regular, columns }
    }

    fn is_good(self) -> bool {
        self.is_clean && self.regular > 1
    }
}

/// The options of `sample` but for header and NULL, with what is `known`.
pub(super) fn find(sample: &Sample, known: &Known, line_end: LineEnd) -> CsvOptions {
    let head = sample.head();
    let (tried, is_all) = match head.get(..TRIED_BYTES) {
        Some(part) => (part, false),
        None => (head, sample.is_all()),
    };
    let base = CsvOptions { line_end, padding: known.null_padding, latin1: known.latin1, ..CsvOptions::default() };
    let with = |delimiter: u8, quote: u8, escape: u8| CsvOptions { delimiter, quote, escape, ..base.clone() };
    let delimiters: Vec<u8> = known.delimiter.map_or_else(|| DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
    // The best combination with `quote`, and what it gives.
    let best = |quote: u8| {
        let mut escapes = known.escape.map_or_else(|| vec![quote], |escape| vec![escape]);
        if known.escape.is_none() && tried.windows(2).any(|pair| pair == [b'\\', quote]) {
            escapes.push(b'\\');
        }
        let mut best: Option<(Score, usize, CsvOptions)> = None;
        for delimiter in delimiters.iter().copied().filter(|delimiter| *delimiter != quote) {
            for escape in &escapes {
                let options = with(delimiter, quote, *escape);
                let found = split(tried, &options, is_all);
                let score = Score::of(&found, known.null_padding);
                if best.as_ref().is_none_or(|(before, ..)| score > *before) {
                    best = Some((score, found.quoted, options));
                }
            }
        }
        best.unwrap_or_else(|| (Score::default(), 0, with(b',', quote, quote)))
    };
    if let Some(quote) = known.quote {
        return best(quote).2;
    }
    let (score, _, options) = best(b'"');
    if !tried.contains(&b'"') && tried.contains(&b'\'') {
        let (single, quoted, of_single) = best(b'\'');
        let rows = split(tried, &of_single, is_all).rows.len();
        if single.is_good() && single.columns >= score.columns && quoted * 2 >= rows {
            return of_single;
        }
    }
    if score.is_good() {
        return options;
    }
    let (without, _, of_none) = best(NO_QUOTE);
    if without.is_good() && without.columns >= score.columns.min(2) && tried.contains(&b'"') {
        of_none
    } else {
        options
    }
}
