//! Delimited text: where its fields and rows end, and what numbers and dates stand in them.
//!
//! In: bytes of a chunk of a file, and whether it begins in quotes. Out: the places of delimiters and line ends outside
//! of quotes; then, column by column, the values.
//!
//! 1. [`summarise`] counts quotes: their parity tells in which state the next chunk begins (Ge et al., "Speculative
//!    Distributed CSV Data Parsing for Big Data Analytics", SIGMOD 2019), so that no chunk waits for the parse of
//!    another.
//! 2. [`find_separators`] compares 64 bytes at a time; which of them are in quotes is the exclusive or of all quotes
//!    before them (Langdale and Lemire, "Parsing gigabytes of JSON per second", VLDB Journal 2019). Muehlbauer et al.,
//!    "Instant Loading for Main Memory Databases", VLDB 2013, section 3.4, compares 16 with SSE 4.2.
//! 3. [`Fields`] are those of one column; [`integers`], [`decimals`], [`dates`] and [`timestamps`] read them, up to
//!    sixteen digits at a time; [`Texts`] copies them without their quotes.
//!
//! Invariants: a quote toggles, wherever it stands, so that two of them in quotes are one that is escaped. What values
//! are read of is the plainest form of each type; whatever else may be one is left to the caller, column by column.
//!
//! Panics: chunks of 4 GiB or more.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod datetime;
mod fields;
mod number;
pub mod scalar;
mod text;

#[cfg(test)]
mod tests;

pub use datetime::{dates, timestamps};
pub use fields::{Fields, Quoting, each};
pub use number::{DecimalDigits, Whole, decimals, integers};
pub use text::{Texts, texts};

/// The bytes that end fields, and those that keep them from ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Ends a field.
    pub delimiter: u8,
    /// Begins and ends what is in quotes.
    pub quote: u8,
}

/// What is known of a chunk before it is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many quotes it has.
    pub quotes: u64,
    /// How many line feeds it has, in quotes or not.
    pub line_feeds: u64,
}

impl Summary {
    /// Adds what is known of the bytes behind.
    pub fn add(&mut self, behind: Self) {
        self.quotes += behind.quotes;
        self.line_feeds += behind.line_feeds;
    }
}

/// What [`find_separators`] saw on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Whether what follows is in quotes.
    pub in_quotes: bool,
    /// Whether there were quotes.
    pub has_quotes: bool,
    /// Line feeds outside of quotes: so many of the separators.
    pub line_feeds: usize,
    /// Carriage returns outside of quotes, which are no separators.
    pub carriage_returns: usize,
    /// Line feeds in quotes.
    pub quoted_line_feeds: usize,
}

/// Counts the quotes and line feeds of `bytes`.
#[must_use]
pub fn summarise(bytes: &[u8], quote: u8) -> Summary {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::summarise(bytes, quote) };
    }
    scalar::summarise(bytes, quote)
}

/// Appends to `separators` where in `bytes` delimiters and line feeds stand that are not in quotes. `in_quotes` says
/// whether `bytes` begin there.
pub fn find_separators(bytes: &[u8], marks: Marks, in_quotes: bool, separators: &mut Vec<u32>) -> Structure {
    assert!(u32::try_from(bytes.len()).is_ok(), "a chunk of {} bytes has places beyond 32 bits", bytes.len());
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        // SAFETY: the processor has what this twin asks for.
        return unsafe { avx512::find_separators(bytes, marks, in_quotes, separators) };
    }
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::find_separators(bytes, marks, in_quotes, separators) };
    }
    scalar::find_separators(bytes, marks, in_quotes, separators)
}

/// Each bit is the exclusive or of itself and all lower ones.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefix_xor(bits: u64) -> u64 {
    let mut bits = bits;
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ bits << 32
}
