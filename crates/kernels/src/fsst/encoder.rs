//! Codes of texts by a table of symbols: at each place the longest symbol that a table of one probe finds (sections 4.2
//! and 5 of the paper).
//!
//! Comes in: a table, and texts. Goes out: codes that [`Symbols::decode_all`] makes the same texts of, one text behind
//! another, and how many each has.
//!
//! Where the next symbol begins is known when this one is found: a chain of look-ups, each of which waits for the one
//! before. So four texts are encoded in turn, and nothing branches where one of them ends: how long a text is no
//! processor foresees. A word of eight bytes is read that ends where the text does, or before; what stands before the
//! place is shifted out, and zeros come behind the end. Only a symbol that ends in a zero could reach into them: where
//! a table has some, what is left of the text is asked, too.

use std::hint::select_unpredictable;
use std::ops::Range;
use std::{mem, ptr};

use super::{ESCAPE, Symbols};

/// Texts that are encoded in turn.
const LANES: usize = 4;
/// Texts of a lane at once: what they become stands aside until those of the lanes before it are known.
const LANE_TEXTS: usize = 64;
/// Places for symbols of three bytes or more.
const PLACES: usize = 1 << 11;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// No symbol: shifted so far no word is a one.
const NONE: Long = Long { shifted: 1, shift: 63, short: Short::new(0, 0) };

/// A symbol of three bytes or more.
#[derive(Clone, Copy)]
struct Long {
    /// Its bytes, highest in the word, and how far a word that begins with them is shifted to have no others.
    shifted: u64,
    shift: u8,
    short: Short,
}

/// A code, and above it how many bytes it stands for: one number, so that one of two is chosen without a branch.
#[derive(Clone, Copy)]
struct Short(u16);

impl Short {
    const fn new(code: u8, length: u8) -> Self {
        Self(code as u16 | (length as u16) << 8)
    }

    #[inline(always)]
    fn code(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    fn length(self) -> usize {
        usize::from(self.0 >> 8)
    }
}

/// See the module.
pub struct Encoder {
    /// By the hash of the first three bytes.
    long: Box<[Long; PLACES]>,
    /// By the first two bytes: a symbol of both, or of the first one, or an escape.
    pairs: Box<[Short; 1 << 16]>,
    /// By the first byte.
    singles: [Short; 256],
    /// Whether a symbol of several bytes ends in a zero.
    has_zeros: bool,
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

impl Encoder {
    /// An encoder by `symbols`. Where two symbols have one place the longer one has it.
    #[must_use]
    pub fn new(symbols: &Symbols) -> Self {
        let mut singles = [Short::new(ESCAPE, 1); 256];
        let mut pairs = vec![Short::new(ESCAPE, 1); 1 << 16].into_boxed_slice();
        let mut long = vec![NONE; PLACES].into_boxed_slice();
        let known = || (0..ESCAPE).zip(symbols.words.iter().zip(&symbols.lengths));
        let ends_in_zero = |word: u64, length: u8| length > 1 && word >> (8 * (length - 1)) == 0;
        let has_zeros = known().any(|(_, (word, length))| ends_in_zero(*word, *length));
        for (code, (word, _)) in known().filter(|(_, (_, length))| **length == 1) {
            singles[*word as usize] = Short::new(code, 1);
        }
        for (pair, short) in pairs.iter_mut().enumerate() {
            *short = singles[pair % 256];
        }
        for (code, (word, length)) in known() {
            match length {
                2 => pairs[*word as usize] = Short::new(code, 2),
                3..=8 => {
                    let (place, shift) = (&mut long[place_of(*word)], 64 - 8 * length);
                    if place.short.length() < usize::from(*length) {
                        *place = Long { shifted: word << shift, shift, short: Short::new(code, *length) };
                    }
                }
                _ => {}
            }
        }
        // Of the lengths that they were made with.
        let (Ok(long), Ok(pairs)) = (long.try_into(), pairs.try_into()) else {
            unreachable!("tables of fixed lengths")
        };
        Self { long, pairs, singles, has_zeros }
    }

    /// The code of the first bytes of `word`: of `rest` bytes, 1 or more, with zeros behind them. [`ESCAPE`] wants the
    /// byte behind it.
    #[inline(always)]
    fn find<const ZEROS: bool>(&self, word: u64, rest: usize) -> Short {
        let (long, mut short) = (self.long[place_of(word)], self.pairs[word as u16 as usize]);
        let mut is_long = word << long.shift == long.shifted;
        if ZEROS {
            is_long &= long.short.length() <= rest;
            if short.length() > rest {
                short = self.singles[word as u8 as usize];
            }
        }
        Short(select_unpredictable(is_long, long.short.0, short.0))
    }

    /// Appends the codes of `texts` to `codes`, and how many each has to `lengths`.
    pub fn encode_all(&self, texts: &[&[u8]], codes: &mut Vec<u8>, lengths: &mut Vec<u64>) {
        let mut aside: [Vec<u8>; LANES] = Default::default();
        let mut lanes: [Lane; LANES] = Default::default();
        // Used by way of pointers alone, so that what is kept of one stays good.
        let mut short = vec![[0; 2 * WORD]; LANES * LANE_TEXTS];
        for (lane, short) in lanes.iter_mut().zip(short.chunks_mut(LANE_TEXTS)) {
            lane.short = short.as_mut_ptr();
        }
        for texts in texts.chunks(LANES * LANE_TEXTS) {
            let of_lane = texts.len().div_ceil(LANES).max(1);
            let mut parts = texts.chunks(of_lane);
            for (lane, out) in lanes.iter_mut().zip(&mut aside) {
                // SAFETY: the lane has places for as many short texts as a part has texts.
                unsafe { lane.take(parts.next().unwrap_or_default(), out) };
            }
            // SAFETY: each lane has taken its texts, and room for two bytes for each byte of them.
            unsafe { if self.has_zeros { self.run::<true>(&mut lanes) } else { self.run::<false>(&mut lanes) } }
            for ((lane, out), texts) in lanes.iter().zip(&mut aside).zip(texts.chunks(of_lane)) {
                // SAFETY: the lane wrote as many bytes, within the room that it had.
                unsafe { out.set_len(lane.written()) };
                codes.extend_from_slice(out);
                lane.lengths_of(texts, lengths);
            }
        }
    }

    /// Encodes all texts of `lanes`.
    ///
    /// # Safety
    /// Each has room for two bytes for each byte of its texts, which are where they were when it took them.
    unsafe fn run<const ZEROS: bool>(&self, lanes: &mut [Lane; LANES]) {
        #[cfg(target_arch = "x86_64")]
        {
            /// The same with shifts that take one step.
            ///
            /// # Safety
            /// As [`Encoder::run`]; the processor has BMI2.
            #[target_feature(enable = "bmi1,bmi2")]
            unsafe fn fast<const ZEROS: bool>(encoder: &Encoder, lanes: &mut [Lane; LANES]) {
                // SAFETY: the caller's.
                unsafe { encoder.run_on_any::<ZEROS>(lanes) };
            }
            if crate::dispatch::avx2() {
                // SAFETY: the caller's; processors with AVX2 that are asked for have BMI2.
                return unsafe { fast::<ZEROS>(self, lanes) };
            }
        }
        // SAFETY: the caller's.
        unsafe { self.run_on_any::<ZEROS>(lanes) };
    }

    /// See [`Encoder::run`].
    #[inline(always)]
    unsafe fn run_on_any<const ZEROS: bool>(&self, lanes: &mut [Lane; LANES]) {
        // By value, so that what is written among codes is known to leave them as they are.
        let mut all = lanes.each_mut().map(Lane::begin);
        while all.iter().all(Place::has_bytes) {
            for place in &mut all {
                // SAFETY: it has bytes, and room as the caller says.
                unsafe { place.step::<ZEROS>(self) };
            }
        }
        for mut place in all {
            while place.has_bytes() {
                // SAFETY: as above.
                unsafe { place.step::<ZEROS>(self) };
            }
        }
    }
}

/// Texts that are encoded one after the other.
struct Lane {
    /// Those that have bytes, and the last one once more.
    texts: [Text; LANE_TEXTS + 1],
    /// Texts of less than a word, each behind a word of zeros: the word that ends where one does can be read.
    short: *mut [u8; 2 * WORD],
    /// How many texts have bytes.
    count: usize,
    out: *mut u8,
}

/// Where a text begins and ends, and once it is encoded where its codes end.
#[derive(Clone, Copy)]
struct Text {
    start: *const u8,
    end: *const u8,
    codes: *mut u8,
}

impl Default for Lane {
    fn default() -> Self {
        const NOWHERE: Text = Text { start: ptr::null(), end: ptr::null(), codes: ptr::null_mut() };
        Self { texts: [NOWHERE; LANE_TEXTS + 1], short: ptr::null_mut(), count: 0, out: ptr::null_mut() }
    }
}

impl Lane {
    /// Takes `texts`, at most [`LANE_TEXTS`], whose codes will stand in `out`, which is empty then and has room.
    ///
    /// # Safety
    /// `short` has [`LANE_TEXTS`] places.
    unsafe fn take(&mut self, texts: &[&[u8]], out: &mut Vec<u8>) {
        let mut bytes = 0;
        self.count = 0;
        for text in texts.iter().filter(|text| !text.is_empty()) {
            bytes += text.len();
            let Range { start, end } = if text.len() < WORD {
                // SAFETY: there are as many places as texts; a short one fits behind the zeros.
                unsafe {
                    let place = self.short.add(self.count).cast::<u8>().add(WORD);
                    place.copy_from_nonoverlapping(text.as_ptr(), text.len());
                    place.cast_const()..place.add(text.len()).cast_const()
                }
            } else {
                text.as_ptr_range()
            };
            self.texts[self.count] = Text { start, end, codes: ptr::null_mut() };
            self.count += 1;
        }
        // What is behind the last text is begun, and not read.
        self.texts[self.count] = self.texts[self.count.saturating_sub(1)];
        out.clear();
        out.reserve(2 * bytes);
        self.out = out.as_mut_ptr();
    }

    /// The first text.
    #[inline(always)]
    fn begin(&mut self) -> Place {
        let Text { start, end, .. } = self.texts[0];
        let text = self.texts.as_mut_ptr();
        // SAFETY: `count` texts are there.
        Place { start, end, text, last: unsafe { text.add(self.count) }, out: self.out }
    }

    /// How many codes there are, once all texts were encoded.
    fn written(&self) -> usize {
        let end = self.count.checked_sub(1).map_or(self.out, |last| self.texts[last].codes);
        end.addr() - self.out.addr()
    }

    /// Appends the number of codes of each of `texts`, which were encoded.
    fn lengths_of(&self, texts: &[&[u8]], lengths: &mut Vec<u64>) {
        let (mut encoded, mut before) = (self.texts.iter(), self.out.addr());
        lengths.extend(texts.iter().map(|text| {
            let end = if text.is_empty() { before } else { encoded.next().map_or(before, |text| text.codes.addr()) };
            (end - mem::replace(&mut before, end)) as u64
        }));
    }
}

/// Where a lane stands.
struct Place {
    /// What is left of the text at hand.
    start: *const u8,
    end: *const u8,
    /// Which one that is, and the place behind the last one.
    text: *mut Text,
    last: *mut Text,
    /// Where the next code goes.
    out: *mut u8,
}

impl Place {
    /// Whether there are bytes left.
    #[inline(always)]
    fn has_bytes(&self) -> bool {
        self.text < self.last
    }

    /// Encodes the next symbol of the text, and begins the next text behind the last one.
    ///
    /// # Safety
    /// There are bytes left, and room for two more bytes.
    #[inline(always)]
    unsafe fn step<const ZEROS: bool>(&mut self, encoder: &Encoder) {
        let Self { start, end, .. } = *self;
        // SAFETY: before the end of each text are as many bytes as a word has, those of `short` among them.
        let (word, rest) = unsafe {
            let last = end.sub(WORD);
            let first = if start < last { start } else { last };
            // At least one byte is left, so that the word is shifted by less than all of it.
            let word = first.cast::<u64>().read_unaligned().to_le() >> (8 * start.offset_from_unsigned(first));
            (word, end.offset_from_unsigned(start))
        };
        let found = encoder.find::<ZEROS>(word, rest);
        // SAFETY: the caller's; a byte that stands for itself is written in any case. No symbol has zeros from behind
        // the end, so that it ends in the text. Behind the last text is one more.
        unsafe {
            self.out.cast::<[u8; 2]>().write([found.code(), word as u8]);
            self.out = self.out.add(1 + usize::from(found.code() == ESCAPE));
            (*self.text).codes = self.out;
            let start = start.add(found.length());
            let (is_end, next) = (start == end, *self.text.add(1));
            self.start = select_unpredictable(is_end, next.start, start);
            self.end = select_unpredictable(is_end, next.end, end);
            self.text = self.text.add(usize::from(is_end));
        }
    }
}
