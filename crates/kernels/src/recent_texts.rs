//! Codes of texts that were met lately: of a column with few different texts nearly all.
//!
//! In: texts of at most [`LEN_MAX`] bytes, one behind the other, and what the codes of some are. Out: the codes of
//! texts, up to the first one that is not known.
//!
//! Each text has one place, by a hash of its bytes; a later one of the same place takes it. A text is compared as a
//! whole, in one register with zeros behind it, and so is its length: equal is the same text.

/// Bytes of the longest text.
pub const LEN_MAX: usize = 32;
/// Places.
const PLACES: usize = 1 << 8;
/// The length of no text.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub struct RecentTexts {
    places: Box<[Place; PLACES]>,
}

/// A text and its code.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The text, with zeros behind it.
    bytes: [u8; LEN_MAX],
    len: u32,
    code: u32,
}

impl Default for RecentTexts {
    fn default() -> Self {
        Self { places: Box::new([Place { bytes: [0; LEN_MAX], len: NONE, code: 0 }; PLACES]) }
    }
}

/// The place of a text whose bytes are these words, of `len` bytes. The highest bits of a product depend on all others.
#[inline(always)]
fn place_of(words: [u64; 2], len: usize) -> usize {
    let word = words[0] ^ words[1].rotate_left(29) ^ (len as u64).rotate_left(56);
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - PLACES.ilog2())) as usize
}

/// The two words that [`place_of`] takes of `bytes`.
#[inline(always)]
fn words_of(bytes: &[u8; LEN_MAX]) -> [u64; 2] {
    let [low, high] = [0, 16].map(|at| {
        let mut half = [0; 16];
        half.copy_from_slice(&bytes[at..at + 16]);
        u128::from_le_bytes(half)
    });
    let both = low ^ high;
    [both as u64, (both >> 64) as u64]
}

impl RecentTexts {
    /// Notes the code of `text`.
    ///
    /// # Panics
    /// When it has more than [`LEN_MAX`] bytes.
    pub fn note(&mut self, text: &[u8], code: u32) {
        let mut bytes = [0; LEN_MAX];
        bytes[..text.len()].copy_from_slice(text);
        self.places[place_of(words_of(&bytes), text.len())] = Place { bytes, len: text.len() as u32, code };
    }

    /// Appends to `codes` those of the texts of `heap` that `offsets` are the ends of, the first one's beginning before
    /// them, up to the first text that is longer than [`LEN_MAX`] or not known. Returns how many they are.
    ///
    /// # Panics
    /// When offsets descend or leave `heap`.
    pub fn find(&self, heap: &[u8], offsets: &[i32], codes: &mut Vec<u32>) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::dispatch::avx512() {
            // SAFETY: the processor has what this twin asks for.
            return unsafe { avx512::find(self, heap, offsets, codes) };
        }
        scalar::find(self, heap, offsets, codes)
    }
}

/// The scalar twin.
pub mod scalar {
    use super::{LEN_MAX, RecentTexts, place_of, words_of};

    /// See [`RecentTexts::find`].
    pub fn find(recent: &RecentTexts, heap: &[u8], offsets: &[i32], codes: &mut Vec<u32>) -> usize {
        let known = codes.len();
        for ends in offsets.windows(2) {
            let text = &heap[ends[0] as usize..ends[1] as usize];
            if text.len() > LEN_MAX {
                break;
            }
            let mut bytes = [0; LEN_MAX];
            bytes[..text.len()].copy_from_slice(text);
            let place = &recent.places[place_of(words_of(&bytes), text.len())];
            if place.len as usize != text.len() || place.bytes != bytes {
                break;
            }
            codes.push(place.code);
        }
        codes.len() - known
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{LEN_MAX, RecentTexts, place_of};

    /// See [`RecentTexts::find`]. A text is loaded by a mask of its bytes, so that nothing behind it is read.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
    pub(super) fn find(recent: &RecentTexts, heap: &[u8], offsets: &[i32], codes: &mut Vec<u32>) -> usize {
        let rows = offsets.len().saturating_sub(1);
        codes.reserve(rows);
        let known = codes.len();
        let out = codes.as_mut_ptr();
        let mut found = 0;
        while found < rows {
            let (start, end) = (offsets[found] as usize, offsets[found + 1] as usize);
            assert!(start <= end && end <= heap.len(), "a text from {start} to {end} of {} bytes", heap.len());
            let len = end - start;
            if len > LEN_MAX {
                break;
            }
            let bytes = _bzhi_u32(u32::MAX, len as u32);
            // SAFETY: the bytes of the mask are those of the text.
            let text = unsafe { _mm256_maskz_loadu_epi8(bytes, heap.as_ptr().add(start).cast()) };
            let both = _mm_xor_si128(_mm256_castsi256_si128(text), _mm256_extracti128_si256::<1>(text));
            let words = [_mm_cvtsi128_si64(both), _mm_extract_epi64::<1>(both)].map(i64::cast_unsigned);
            let place = &recent.places[place_of(words, len)];
            // SAFETY: the place has the bytes of a register.
            let other = unsafe { _mm256_loadu_si256(place.bytes.as_ptr().cast()) };
            if _mm256_cmpneq_epi8_mask(text, other) != 0 || place.len as usize != len {
                break;
            }
            // SAFETY: there is room for a code of each row.
            unsafe { out.add(known + found).write(place.code) };
            found += 1;
        }
        // SAFETY: so many were written behind the length.
        unsafe { codes.set_len(known + found) };
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Both twins find the same texts: those that were noted, and no other one, however alike; up to the first that
        /// is not known.
        #[test]
        fn texts_are_found_by_both_twins(
            texts in vec(vec(prop_oneof![4 => Just(b'a'), 1 => Just(0u8), 1 => any::<u8>()], 0..36), 0..20),
            noted in vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut recent = RecentTexts::default();
            let mut last = std::collections::HashMap::new();
            for (code, index) in noted.iter().enumerate().filter(|_| !texts.is_empty()) {
                let text = index.get(&texts);
                if text.len() <= LEN_MAX {
                    recent.note(text, code as u32);
                    last.insert(text.clone(), code as u32);
                }
            }
            let (mut heap, mut offsets) = (b"before".to_vec(), vec![6]);
            for text in &texts {
                heap.extend_from_slice(text);
                offsets.push(heap.len() as i32);
            }
            let (mut codes, mut again) = (vec![7], vec![7]);
            let found = recent.find(&heap, &offsets, &mut codes);
            prop_assert_eq!(scalar::find(&recent, &heap, &offsets, &mut again), found);
            prop_assert_eq!(&codes, &again);
            prop_assert_eq!(codes.len(), found + 1);
            for (text, code) in texts.iter().zip(&codes[1..]) {
                prop_assert_eq!(last.get(text), Some(code));
            }
            // Another text may have taken the place of one that was noted; one that is its place's is found.
            if let Some(next) = texts.get(found).filter(|text| text.len() <= LEN_MAX) {
                recent.note(next, 99);
                let mut one = Vec::new();
                prop_assert_eq!(recent.find(&heap, &offsets[found..found + 2], &mut one), 1);
                prop_assert_eq!(one, vec![99]);
            }
        }
    }

    #[test]
    fn no_texts_are_all_known() {
        let recent = RecentTexts::default();
        assert_eq!((recent.find(b"", &[0], &mut Vec::new()), recent.find(b"", &[], &mut Vec::new())), (0, 0));
        assert_eq!(recent.find(b"", &[0, 0], &mut Vec::new()), 0);
    }
}
