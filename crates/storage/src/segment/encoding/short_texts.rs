//! Texts of at most [`SHORT_BYTES`] bytes as numbers: what makes a dictionary of them compares and hashes words, and
//! asks no text how long it is.
//!
//! Comes in: the texts of a column, one behind the other, none NULL. Goes out: the distinct ones, ascending, and the
//! position of each row's. A text is its first 16 bytes and its last 16, where it has more than 16, and its length:
//! equal for equal texts alone.

use mainstem_kernels::hash::hash_u64;

use super::dictionary::{Distinct, code_bytes};
use hashbrown::HashMap;

/// Bytes of the longest text that is short.
pub(super) const SHORT_BYTES: usize = 2 * WORD;
/// Bytes of one of its two words.
const WORD: usize = size_of::<u128>();

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

impl Words {
    /// The text of `len` bytes that begins at `start` of `heap`.
    #[inline]
    fn of(heap: &[u8], start: usize, len: usize) -> Self {
        // Bytes behind the text are cut off again: how long it is takes no branch.
        let mask = BEGINNINGS.get(len).copied().unwrap_or(u128::MAX);
        let (Some(first), Some(last)) = (word_at(heap, start), word_at(heap, start + len.max(WORD) - WORD)) else {
            return Self::near_the_end(heap.get(start..start + len).unwrap_or_default());
        };
        Self { first: first & mask, last: if len > WORD { last } else { 0 }, len }
    }

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

    #[inline]
    fn hash(self) -> u64 {
        let fold = |word: u128| word as u64 ^ ((word >> 64) as u64).rotate_left(29);
        hash_u64(fold(self.first) ^ fold(self.last).rotate_left(17) ^ self.len as u64)
    }
}

#[inline]
fn word_at(heap: &[u8], at: usize) -> Option<u128> {
    heap.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u128::from_le_bytes(*word))
}

/// The distinct ones of the texts of `heap` that `offsets` are the ends of, the first one's beginning before them, all
/// short; `None` once a dictionary of them takes `budget` bytes.
pub(super) fn distinct<'a>(heap: &'a [u8], offsets: &[i32], budget: usize) -> Option<Distinct<&'a [u8]>> {
    let rows = offsets.len().saturating_sub(1);
    let mut numbers: HashMap<Words, u32> = HashMap::new();
    let mut recent = [u32::MAX; 1 << u8::BITS];
    let (mut found, mut texts): (Vec<Words>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    let (mut codes, mut bytes) = (Vec::with_capacity(rows), 0);
    for (start, end) in offsets.iter().zip(offsets.get(1..).unwrap_or_default()) {
        let (start, end) = (*start as usize, *end as usize);
        let words = Words::of(heap, start, end - start);
        let place = &mut recent[(words.hash() >> 56) as usize];
        if found.get(*place as usize) == Some(&words) {
            codes.push(*place);
            continue;
        }
        let next = found.len();
        let number = *numbers.entry(words).or_insert(next as u32);
        *place = number;
        if number as usize == next {
            found.push(words);
            texts.push(heap.get(start..end).unwrap_or_default());
            bytes += words.len;
            if bytes + code_bytes(rows, found.len()) >= budget {
                return None;
            }
        }
        codes.push(number);
    }
    Some(Distinct { values: texts, codes }.ascending(|a, b| a.cmp(b)))
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
        for rows in [1, 2, 300, 3_000] {
            let mut heap = b"before".to_vec();
            let mut offsets = vec![heap.len() as i32];
            for _ in 0..rows {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                heap.extend_from_slice(&texts[(state >> 33) as usize % texts.len()]);
                offsets.push(heap.len() as i32);
            }
            let rows: Vec<&[u8]> = offsets.windows(2).map(|ends| &heap[ends[0] as usize..ends[1] as usize]).collect();
            let expected = distinct_texts(rows.iter().map(|text| Some(*text)), usize::MAX).unwrap();
            let found = distinct(&heap, &offsets, usize::MAX).unwrap();
            assert_eq!((found.values, found.codes), (expected.values, expected.codes));
            let all: Vec<i32> = offsets.iter().copied().chain(std::iter::repeat_n(heap.len() as i32, 20)).collect();
            assert!(distinct(&heap, &all, usize::MAX).unwrap().values.contains(&&b""[..]));
            assert!(rows.len() < 300 || distinct(&heap, &offsets, 1_000).is_none(), "beyond what they may take");
        }
        assert!(distinct(b"", &[0], 9).unwrap().values.is_empty());
    }
}
