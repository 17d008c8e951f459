//! Texts as codes of symbols (Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", VLDB 2020).
//!
//! Comes in: texts when written, sections when opened. Goes out: the sections of plain texts with codes in the place of
//! bytes and the table of symbols before them, or the texts themselves: who opens a block decodes it once, who wants
//! one text decodes that one.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use fsst::Compressor;
use mainstem_kernels::fsst::{Encoder as SymbolEncoder, Symbols};
use parking_lot::Mutex;

use super::plain;
use super::sections::{begin_section, make_room, padded};

/// Bytes of texts from which on a table of symbols, up to 2.3 KB, may be worth its place.
pub(crate) const TEXT_BYTES_MIN: usize = 8 << 10;
/// Bytes of texts that are encoded to learn how many bytes all take.
const ESTIMATE_BYTES: usize = 32 << 10;
/// Texts that are encoded at once.
const TEXTS_AT_ONCE: usize = 2 << 10;
/// Texts that symbols are looked for in: enough for a sample of 16 KB that is taken from everywhere.
const TRAINED_TEXTS: usize = 4 << 10;
/// Bytes that a thread keeps at most for the codes of the next texts, with their lengths.
const KEPT_BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// Memory of codes that were written, and of their lengths: fresh memory has to be cleared by the system.
    static KEPT: RefCell<(Vec<u8>, Vec<u64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Columns of which a writer keeps a table: it takes 180 KB.
const TABLES_MAX: usize = 16;
/// By how much more of their bytes texts may take with a table of others: a sixteenth of what it left of those.
const SHARE_GROWTH: f64 = 17.0 / 16.0;

/// The symbols that columns of a table had in the last segment that was written. Texts of the next one mostly have the
/// same, and to look for symbols takes a fifth as long as to encode the texts of a segment.
#[derive(Debug)]
pub struct SymbolTables(Box<[LastSymbols]>);

/// Those of one column.
pub(crate) type LastSymbols = Mutex<Option<Arc<Encoder>>>;

impl SymbolTables {
    /// None yet, for `columns` columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self((0..columns.min(TABLES_MAX)).map(|_| LastSymbols::default()).collect())
    }

    /// That of column `at`, if it is kept.
    pub(crate) fn of_column(&self, at: usize) -> Option<&LastSymbols> {
        self.0.get(at)
    }
}

/// What finds the codes of texts.
#[derive(Debug)]
pub(crate) struct Encoder {
    encoder: SymbolEncoder,
    /// The table as it is stored.
    symbols: Vec<u8>,
    /// What codes took of the bytes of the texts that symbols were looked for in.
    share: f64,
}

/// Codes of texts, one behind another.
pub(crate) struct Coded {
    codes: Vec<u8>,
    lengths: Vec<u64>,
}

impl Drop for Coded {
    fn drop(&mut self) {
        let (codes, lengths) = (mem::take(&mut self.codes), mem::take(&mut self.lengths));
        let bytes = |codes: &Vec<u8>, lengths: &Vec<u64>| codes.capacity() + size_of::<u64>() * lengths.capacity();
        KEPT.with_borrow_mut(|(kept, kept_lengths)| {
            if (bytes(kept, kept_lengths)..=KEPT_BYTES_MAX).contains(&bytes(&codes, &lengths)) {
                (*kept, *kept_lengths) = (codes, lengths);
            }
        });
    }
}

impl Encoder {
    /// Symbols that are frequent in a sample of `texts`: 16 KB of them.
    fn of(texts: &[&[u8]]) -> Option<Self> {
        let step = texts.len().div_ceil(TRAINED_TEXTS).max(1);
        let texts: Vec<&[u8]> = texts.iter().step_by(step).copied().collect();
        let compressor = Compressor::train(&texts);
        let lengths = compressor.symbol_lengths();
        let words: Vec<[u8; 8]> =
            compressor.symbol_table().iter().map(|symbol| symbol.to_u64().to_le_bytes()).collect();
        let symbols = words.iter().zip(lengths).filter_map(|(word, length)| word.get(..usize::from(*length)));
        let (symbols, mut bytes) = (Symbols::new(symbols)?, Vec::new());
        symbols.to_bytes(&mut bytes);
        Some(Self { encoder: SymbolEncoder::new(&symbols), symbols: bytes, share: 1.0 })
    }

    /// Symbols for `texts`, of `text_bytes` bytes, and about how many bytes these take with their table: the symbols
    /// that `last` had, if they do for these, too. It has those that come out, if what they leave `is_enough`.
    pub fn of_next(
        texts: &[&[u8]],
        text_bytes: usize,
        last: Option<&LastSymbols>,
        is_enough: impl Fn(usize) -> bool,
    ) -> Option<(Arc<Self>, usize)> {
        let known = last.and_then(|last| last.lock().clone());
        if let Some(known) = known {
            let (share, bytes) = known.estimate(texts, text_bytes);
            if share <= known.share * SHARE_GROWTH && is_enough(bytes) {
                return Some((known, bytes));
            }
        }
        let mut found = Self::of(texts)?;
        let (share, bytes) = found.estimate(texts, text_bytes);
        found.share = share;
        let found = Arc::new(found);
        if let Some(last) = last.filter(|_| is_enough(bytes)) {
            *last.lock() = Some(found.clone());
        }
        Some((found, bytes))
    }

    /// What codes take of the bytes of `texts`, and about how many bytes all take with their table, judged by some of
    /// them.
    fn estimate(&self, texts: &[&[u8]], text_bytes: usize) -> (f64, usize) {
        let step = text_bytes.div_ceil(ESTIMATE_BYTES).max(1);
        let some: Vec<&[u8]> = texts.iter().step_by(step).copied().collect();
        let some_bytes: usize = some.iter().map(|text| text.len()).sum();
        let coded = self.encode(&some, |_| ());
        let length_max = coded.lengths.iter().copied().max().unwrap_or(0);
        // Of empty texts nothing is learnt.
        let share = if some_bytes == 0 { 1.0 } else { coded.codes.len() as f64 / some_bytes as f64 };
        (share, self.bytes(texts.len(), length_max as usize, (text_bytes as f64 * share) as usize))
    }

    /// The codes of `texts`; `look` sees some of them after the other before they are encoded, while the caches have
    /// them.
    pub fn encode<'t>(&self, texts: &[&'t [u8]], mut look: impl FnMut(&[&'t [u8]])) -> Coded {
        let (mut codes, mut lengths) = KEPT.take();
        codes.clear();
        lengths.clear();
        for some in texts.chunks(TEXTS_AT_ONCE) {
            look(some);
            self.encoder.encode_all(some, &mut codes, &mut lengths);
        }
        Coded { codes, lengths }
    }

    /// Bytes that the sections of `coded` take.
    pub fn coded_bytes(&self, coded: &Coded) -> usize {
        let length_max = coded.lengths.iter().copied().max().unwrap_or(0);
        self.bytes(coded.lengths.len(), length_max as usize, coded.codes.len())
    }

    fn bytes(&self, count: usize, length_max: usize, codes: usize) -> usize {
        plain::text_bytes(count, length_max, codes) + padded(self.symbols.len())
    }

    /// Appends the sections of `coded`, and returns the width of a length and the bytes of the table.
    pub fn write(&self, coded: &Coded, body: &mut Vec<u8>) -> (u8, u16) {
        make_room(body, self.coded_bytes(coded));
        let width = plain::write_lengths(&coded.lengths, body);
        begin_section(body);
        body.extend_from_slice(&self.symbols);
        begin_section(body);
        body.extend_from_slice(&coded.codes);
        (width, self.symbols.len() as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts like those of the segment before have its symbols; others have their own, and those behind them, too.
    #[test]
    fn symbols_serve_the_next_texts_that_are_alike() {
        let of = |words: [&str; 3], from: usize| -> Vec<String> {
            let text = |at: usize| format!("{} {} {}", words[at % 3], words[at / 3 % 3], words[(at * 7 + 1) % 3]);
            (from..from + 3_000).map(text).collect()
        };
        let last = LastSymbols::default();
        let encoder_of = |words, from, last| {
            let texts = of(words, from);
            let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let bytes = texts.iter().map(|text| text.len()).sum();
            Encoder::of_next(&texts, bytes, last, |found| found < bytes).unwrap()
        };
        let (some, others) = (["furiously", "regular", "deposits"], ["QXJZK-1", "94731", "##&&!!"]);
        let (first, bytes) = encoder_of(some, 0, Some(&last));
        let (second, bytes_again) = encoder_of(some, 500, Some(&last));
        assert!(Arc::ptr_eq(&first, &second) && bytes.abs_diff(bytes_again) < bytes / 8, "{bytes} {bytes_again}");
        let (third, _) = encoder_of(others, 0, Some(&last));
        assert!(!Arc::ptr_eq(&first, &third) && first.symbols != third.symbols);
        assert!(Arc::ptr_eq(&third, &encoder_of(others, 100, Some(&last)).0));
        assert!(!Arc::ptr_eq(&third, &encoder_of(others, 100, None).0));
        // What is not worth it is not kept.
        let (texts, last) = (of(some, 0), LastSymbols::default());
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        Encoder::of_next(&texts, 1 << 16, Some(&last), |_| false).unwrap();
        assert!(last.lock().is_none());
        // Nor is anything said of texts by a sample that is empty.
        let (share, _) = first.estimate(&[b"", b""], 0);
        assert!((share - 1.0).abs() < f64::EPSILON, "{share}");
    }
}
