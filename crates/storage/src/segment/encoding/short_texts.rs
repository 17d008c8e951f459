//! Texts of at most [`SHORT_BYTES`] bytes as numbers: what makes a dictionary of them compares and hashes words, and
//! asks no text how long it is.
//!
//! Comes in: the texts of a column, one behind the other, none NULL. Goes out: the distinct ones, ascending, and the
//! position of each row's.
//!
//! How long the longest one is tells what is compared: a byte, a word of eight bytes and the length, or the first 16
//! bytes and the last 16, where there are more than 16, and the length. Equal for equal texts alone.

use std::hash::Hash;

use hashbrown::HashMap;

use super::dictionary::{Distinct, code_bytes};

/// Bytes of the longest text that is short.
pub(super) const SHORT_BYTES: usize = 2 * WORD;
/// Bytes of one of its two words.
const WORD: usize = size_of::<u128>();

/// A text as numbers, the same for equal texts alone.
trait Key: Copy + Eq + Hash {
    /// Of the text of `len` bytes that begins at `start` of `heap`.
    fn of(heap: &[u8], start: usize, len: usize) -> Self;
    /// What differs where texts do, mostly: 8 bits.
    fn slot(self) -> u8;
}

/// The highest bits of a product depend on all of `word`.
#[inline]
fn slot_of(word: u64) -> u8 {
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// A text of at most eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Word {
    word: u64,
    len: usize,
}

impl Key for Word {
    #[inline]
    fn of(heap: &[u8], start: usize, len: usize) -> Self {
        let word = match heap.get(start..).and_then(|rest| rest.first_chunk()) {
            Some(word) => u64::from_le_bytes(*word),
            None => Words::near_the_end(heap.get(start..start + len).unwrap_or_default()).first as u64,
        };
        // Bytes behind the text are cut off again.
        Self { word: word & BEGINNINGS.get(len).map_or(u64::MAX, |mask| *mask as u64), len }
    }

    #[inline]
    fn slot(self) -> u8 {
        slot_of(self.word ^ (self.len as u64).rotate_left(56))
    }
}

/// The bytes of a word that a text of each length below a word's has.
const BEGINNINGS: [u128; WORD] = {
    let mut masks = [0; WORD];
    let mut len = 1;
    while len < WORD {
        masks[len] = masks[len - 1] << 8 | 0xFF;
        len += 1;
    }
    masks
};

/// A text as words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Words {
    first: u128,
    last: u128,
    len: usize,
}

impl Key for Words {
    #[inline]
    fn of(heap: &[u8], start: usize, len: usize) -> Self {
        // Bytes behind the text are cut off again: how long it is takes no branch.
        let mask = BEGINNINGS.get(len).copied().unwrap_or(u128::MAX);
        let (Some(first), Some(last)) = (word_at(heap, start), word_at(heap, start + len.max(WORD) - WORD)) else {
            return Self::near_the_end(heap.get(start..start + len).unwrap_or_default());
        };
        Self { first: first & mask, last: if len > WORD { last } else { 0 }, len }
    }

    #[inline]
    fn slot(self) -> u8 {
        let fold = |word: u128| word as u64 ^ ((word >> 64) as u64).rotate_left(29);
        slot_of(fold(self.first) ^ fold(self.last).rotate_left(17) ^ self.len as u64)
    }
}

impl Words {
    /// As [`Words::of`], of a text behind which there are not as many bytes.
    #[cold]
    fn near_the_end(text: &[u8]) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; WORD];
            word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
            u128::from_le_bytes(word)
        };
        let last = text.len().checked_sub(WORD).filter(|from| *from > 0).and_then(|from| text.get(from..));
        Self { first: word(text), last: last.map_or(0, word), len: text.len() }
    }
}

#[inline]
fn word_at(heap: &[u8], at: usize) -> Option<u128> {
    heap.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u128::from_le_bytes(*word))
}

/// The distinct ones of the texts of `heap` that `offsets` are the ends of, the first one's beginning before them, of
/// `length_max` bytes at most; `None` once a dictionary of them takes `budget` bytes.
pub(super) fn distinct<'a>(
    heap: &'a [u8],
    offsets: &[i32],
    length_max: usize,
    budget: usize,
) -> Option<Distinct<&'a [u8]>> {
    let bytes = match offsets {
        [first, .., last] => heap.get(*first as usize..*last as usize).unwrap_or_default(),
        _ => &[],
    };
    let found = if length_max == 1 && bytes.len() + 1 == offsets.len() {
        distinct_bytes(bytes, budget)
    } else if length_max <= size_of::<u64>() {
        distinct_by::<Word>(heap, offsets, budget)
    } else {
        distinct_by::<Words>(heap, offsets, budget)
    };
    found.map(|found| found.ascending(|a, b| a.cmp(b)))
}

/// As [`distinct`], in the order of appearance, of texts of one byte each.
fn distinct_bytes(bytes: &[u8], budget: usize) -> Option<Distinct<&[u8]>> {
    const NONE: u32 = u32::MAX;
    let mut numbers = [NONE; 1 << u8::BITS];
    let mut values: Vec<&[u8]> = Vec::new();
    let mut codes = Vec::with_capacity(bytes.len());
    for (row, byte) in bytes.iter().enumerate() {
        let number = &mut numbers[usize::from(*byte)];
        if *number == NONE {
            *number = values.len() as u32;
            values.push(bytes.get(row..=row).unwrap_or_default());
        }
        codes.push(*number);
    }
    (values.len() + code_bytes(bytes.len(), values.len()) < budget).then_some(Distinct { values, codes })
}

/// As [`distinct`], in the order of appearance.
fn distinct_by<'a, K: Key>(heap: &'a [u8], offsets: &[i32], budget: usize) -> Option<Distinct<&'a [u8]>> {
    let rows = offsets.len().saturating_sub(1);
    let mut numbers: HashMap<K, u32> = HashMap::new();
    let mut recent = [u32::MAX; 1 << u8::BITS];
    let (mut found, mut texts): (Vec<K>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    let (mut codes, mut bytes) = (Vec::with_capacity(rows), 0);
    for (start, end) in offsets.iter().zip(offsets.get(1..).unwrap_or_default()) {
        let (start, end) = (*start as usize, *end as usize);
        let key = K::of(heap, start, end - start);
        let place = &mut recent[usize::from(key.slot())];
        if found.get(*place as usize) == Some(&key) {
            codes.push(*place);
            continue;
        }
        let next = found.len();
        let number = *numbers.entry(key).or_insert(next as u32);
        *place = number;
        if number as usize == next {
            found.push(key);
            texts.push(heap.get(start..end).unwrap_or_default());
            bytes += end - start;
            if bytes + code_bytes(rows, found.len()) >= budget {
                return None;
            }
        }
        codes.push(number);
    }
    Some(Distinct { values: texts, codes })
}

#[cfg(test)]
mod tests {
    use super::super::dictionary::distinct_texts;
    use super::*;

    /// Of all lengths, alike but for one byte, and near the end of the heap: the same as of texts.
    #[test]
    fn short_texts_are_told_apart_as_texts_are() {
        let mut texts: Vec<Vec<u8>> = vec![Vec::new(), vec![0], vec![0, 0]];
        for len in 1..=SHORT_BYTES {
            let plain: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
            for at in 0..len {
                let mut text = plain.clone();
                text[at] = 0xF0;
                texts.push(text);
            }
            texts.push(plain);
        }
        let mut state = 3u64;
        for (length_max, rows) in
            [(SHORT_BYTES, 1), (SHORT_BYTES, 2), (SHORT_BYTES, 300), (1, 300), (8, 300), (9, 3_000)]
        {
            let some: Vec<&[u8]> = texts.iter().filter(|text| text.len() <= length_max).map(Vec::as_slice).collect();
            // Of one byte each they are told apart in another way than with empty ones.
            let some = if rows == 300 { some.iter().filter(|text| !text.is_empty()).copied().collect() } else { some };
            let mut heap = b"before".to_vec();
            let mut offsets = vec![heap.len() as i32];
            for _ in 0..rows {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                heap.extend_from_slice(some[(state >> 33) as usize % some.len()]);
                offsets.push(heap.len() as i32);
            }
            let rows: Vec<&[u8]> = offsets.windows(2).map(|ends| &heap[ends[0] as usize..ends[1] as usize]).collect();
            let expected = distinct_texts(rows.iter().map(|text| Some(*text)), usize::MAX).unwrap();
            let found = distinct(&heap, &offsets, length_max, usize::MAX).unwrap();
            assert_eq!((found.values, found.codes), (expected.values, expected.codes));
            let all: Vec<i32> = offsets.iter().copied().chain(std::iter::repeat_n(heap.len() as i32, 20)).collect();
            assert!(distinct(&heap, &all, length_max, usize::MAX).unwrap().values.contains(&&b""[..]));
            let least = 1 + code_bytes(rows.len(), 1);
            assert!(distinct(&heap, &offsets, length_max, least).is_none(), "beyond what they may take");
        }
        assert!(distinct(b"", &[0], 0, 9).unwrap().values.is_empty());
    }
}
