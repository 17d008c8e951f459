//! Codes of texts by a table of symbols: at each place the longest symbol that a table of one probe finds (sections 4.2
//! and 5 of the paper).
//!
//! Comes in: a table, and texts. Goes out: codes that [`Symbols::decode_all`] makes the same texts of, one text behind
//! another, and how many each has.
//!
//! Where the next symbol begins is known when this one is found: a chain of look-ups, each of which waits for the one
//! before. So four texts are encoded in turn. The last bytes of a text are looked at as a word with zeros behind them,
//! of which no symbol may take any.

use super::{ESCAPE, SYMBOL_BYTES_MAX, Symbols};

/// Texts that are encoded in turn.
const LANES: usize = 4;
/// Texts of a lane at once: what they become stands aside until those of the lanes before it are known.
const LANE_TEXTS: usize = 64;
/// Places for symbols of three bytes or more.
const PLACES: usize = 1 << 11;
/// No symbol: no word is one with all bits left out.
const NONE: Long = Long { word: 1, mask: 0, code: 0, length: 0 };

/// A symbol of three bytes or more.
#[derive(Clone, Copy)]
struct Long {
    word: u64,
    mask: u64,
    code: u8,
    length: u8,
}

/// The code of one or two bytes.
#[derive(Clone, Copy)]
struct Short {
    code: u8,
    length: u8,
}

/// See the module.
pub struct Encoder {
    /// By the hash of the first three bytes.
    long: Box<[Long; PLACES]>,
    /// By the first two bytes: a symbol of both, or of the first one, or an escape.
    pairs: Box<[Short; 1 << 16]>,
    /// By the first byte.
    singles: [Short; 256],
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// The place of a symbol that begins as `word` does.
#[inline(always)]
fn place_of(word: u64) -> usize {
    // The hash by which symbols were found: those of one table have places of their own.
    let hash = (word & 0xff_ffff).wrapping_mul(2_971_215_073);
    (hash ^ (hash >> 15)) as usize % PLACES
}

/// The lowest `length` bytes of a word.
#[inline(always)]
fn mask_of(length: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(length))
}

impl Encoder {
    /// An encoder by `symbols`. Where two symbols have one place the longer one has it.
    #[must_use]
    pub fn new(symbols: &Symbols) -> Self {
        let mut singles = [Short { code: ESCAPE, length: 1 }; 256];
        let mut pairs = vec![Short { code: ESCAPE, length: 1 }; 1 << 16].into_boxed_slice();
        let mut long = vec![NONE; PLACES].into_boxed_slice();
        let known = || (0..ESCAPE).zip(symbols.words.iter().zip(&symbols.lengths));
        for (code, (word, _)) in known().filter(|(_, (_, length))| **length == 1) {
            singles[*word as usize] = Short { code, length: 1 };
        }
        for (pair, short) in pairs.iter_mut().enumerate() {
            *short = singles[pair % 256];
        }
        for (code, (word, length)) in known() {
            match length {
                2 => pairs[*word as usize] = Short { code, length: 2 },
                3..=8 => {
                    let place = &mut long[place_of(*word)];
                    if place.length < *length {
                        *place = Long { word: *word, mask: mask_of(*length), code, length: *length };
                    }
                }
                _ => {}
            }
        }
        // Of the lengths that they were made with.
        let (Ok(long), Ok(pairs)) = (long.try_into(), pairs.try_into()) else {
            unreachable!("tables of fixed lengths")
        };
        Self { long, pairs, singles }
    }

    /// The code, and how many bytes it stands for, of the first of `rest` bytes, 1 or more, that are the lowest of
    /// `word`, zeros above them. [`ESCAPE`] wants the byte behind it.
    #[inline(always)]
    fn step(&self, word: u64, rest: usize) -> (u8, usize) {
        let long = &self.long[place_of(word)];
        let is_long = (word & long.mask == long.word) & (usize::from(long.length) <= rest);
        let mut short = self.pairs[word as u16 as usize];
        if usize::from(short.length) > rest {
            short = self.singles[word as u8 as usize];
        }
        let (code, length) = if is_long { (long.code, long.length) } else { (short.code, short.length) };
        (code, usize::from(length))
    }

    /// Appends the codes of `texts` to `codes`, and how many each has to `lengths`.
    pub fn encode_all(&self, texts: &[&[u8]], codes: &mut Vec<u8>, lengths: &mut Vec<u64>) {
        let mut aside: [Vec<u8>; LANES] = Default::default();
        for texts in texts.chunks(LANES * LANE_TEXTS) {
            let of_lane = texts.len().div_ceil(LANES).max(1);
            let mut lanes = texts.chunks(of_lane);
            let first = lengths.len();
            lengths.resize(first + texts.len(), 0);
            let mut rest = lengths[first..].chunks_mut(of_lane);
            let mut lane = |out: &mut Vec<u8>| {
                let texts = lanes.next().unwrap_or_default();
                out.clear();
                out.reserve(2 * texts.iter().map(|text| text.len()).sum::<usize>());
                Lane::new(texts, rest.next().unwrap_or_default(), out)
            };
            let [a, b, c, d] = &mut aside;
            let mut lanes = [lane(a), lane(b), lane(c), lane(d)];
            // SAFETY: each lane has room for two bytes for each byte of its texts.
            unsafe { self.run(&mut lanes) };
            let written = lanes.map(|lane| lane.written);
            for (out, written) in aside.iter_mut().zip(written) {
                // SAFETY: the lane wrote as many bytes, within the room that it had.
                unsafe { out.set_len(written) };
                codes.extend_from_slice(out);
            }
        }
    }

    /// Encodes all texts of `lanes`.
    ///
    /// # Safety
    /// Each has room for two bytes for each byte of its texts.
    unsafe fn run(&self, lanes: &mut [Lane<'_>; LANES]) {
        while lanes.iter_mut().all(Lane::has_bytes) {
            for lane in lanes.iter_mut() {
                // SAFETY: it has bytes, and room as the caller says.
                unsafe { lane.step(self) };
            }
        }
        for lane in lanes {
            while lane.has_bytes() {
                // SAFETY: as above.
                unsafe { lane.step(self) };
            }
        }
    }
}

/// Texts that are encoded one after the other.
struct Lane<'a> {
    texts: std::slice::Iter<'a, &'a [u8]>,
    lengths: std::slice::IterMut<'a, u64>,
    /// What is left of the text.
    rest: &'a [u8],
    /// The last bytes of the text, at most 8, as a number; and how many they are.
    tail: u64,
    tail_bytes: usize,
    out: *mut u8,
    written: usize,
    /// Bytes that were written before the text.
    before: usize,
    /// Whether there is a text whose length is not told.
    is_within: bool,
}

impl<'a> Lane<'a> {
    fn new(texts: &'a [&'a [u8]], lengths: &'a mut [u64], out: &mut Vec<u8>) -> Self {
        let (texts, lengths, out) = (texts.iter(), lengths.iter_mut(), out.as_mut_ptr());
        Self { texts, lengths, rest: &[], tail: 0, tail_bytes: 0, out, written: 0, before: 0, is_within: false }
    }

    /// Whether there are bytes left: of this text, or of the next one that has some.
    #[inline(always)]
    fn has_bytes(&mut self) -> bool {
        !self.rest.is_empty() || self.next_text()
    }

    /// Ends the text, and begins the next one that is not empty, if there is one.
    fn next_text(&mut self) -> bool {
        loop {
            if std::mem::take(&mut self.is_within)
                && let Some(length) = self.lengths.next()
            {
                *length = (self.written - self.before) as u64;
            }
            let Some(text) = self.texts.next() else { return false };
            (self.rest, self.before, self.is_within) = (text, self.written, true);
            if text.is_empty() {
                continue;
            }
            self.tail_bytes = text.len().min(SYMBOL_BYTES_MAX);
            self.tail = match text.last_chunk() {
                Some(last) => u64::from_le_bytes(*last),
                None => text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            };
            return true;
        }
    }

    /// Encodes the next symbol of the text.
    ///
    /// # Safety
    /// There are bytes left, and room for two more bytes.
    #[inline(always)]
    unsafe fn step(&mut self, encoder: &Encoder) {
        let word = match self.rest.first_chunk() {
            Some(first) => u64::from_le_bytes(*first),
            // At least one byte is left, so that the number is shifted by less than a word.
            None => self.tail >> (8 * (self.tail_bytes - self.rest.len())),
        };
        let (code, length) = encoder.step(word, self.rest.len());
        // SAFETY: the caller's; a byte that stands for itself is written in any case.
        unsafe { self.out.add(self.written).cast::<[u8; 2]>().write([code, word as u8]) };
        self.written += 1 + usize::from(code == ESCAPE);
        self.rest = &self.rest[length..];
    }
}
