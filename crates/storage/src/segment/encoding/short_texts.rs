//! A dictionary of texts of at most [`SHORT_BYTES`] bytes: nearly all rows of most such columns have a text that was
//! met lately, and are found by a kernel (`recent_texts`).
//!
//! Comes in: the texts of a column, one behind the other, none NULL. Goes out: the distinct ones, ascending, and the
//! position of each row's.

use arrow_array::{Array, StringArray};
use hashbrown::HashMap;
use mainstem_kernels::extremes::longest_text;
use mainstem_kernels::recent_texts::{LEN_MAX, RecentTexts};

use super::dictionary::{Distinct, code_bytes, codes_of_rows, keep_codes};

/// Bytes of the longest text that is short.
pub(super) const SHORT_BYTES: usize = LEN_MAX;
/// Rows from which on it is asked whether most rows are found by the kernel: otherwise each is looked up.
const ROWS_MIN: usize = 1024;

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
    if length_max == 1 && bytes.len() + 1 == offsets.len() {
        return distinct_bytes(bytes, budget);
    }
    distinct_texts(heap, offsets, budget).map(|found| found.ascending(|a, b| a.cmp(b)))
}

/// The distinct ones of `texts`, and which of them each is, if all are short and codes take at most half of their
/// bytes. NULLs are whatever stands there.
pub(crate) fn short_text_codes(texts: &StringArray) -> Option<(Vec<&str>, Vec<u32>)> {
    let offsets = texts.value_offsets();
    let length_max = longest_text(offsets) as usize;
    let bytes = offsets.last()?.abs_diff(*offsets.first()?) as usize;
    if length_max > SHORT_BYTES {
        return None;
    }
    let found = distinct(texts.value_data(), offsets, length_max, (bytes + texts.len()) / 2)?;
    let values = found.values.into_iter().map(std::str::from_utf8).collect::<Result<_, _>>().ok()?;
    Some((values, found.codes))
}

/// As [`distinct`], of texts of one byte each.
fn distinct_bytes(bytes: &[u8], budget: usize) -> Option<Distinct<&[u8]>> {
    let mut places = [None; 1 << u8::BITS];
    for (row, byte) in bytes.iter().enumerate() {
        // Mostly there is one already: it is read, and not written.
        let place = &mut places[usize::from(*byte)];
        if place.is_none() {
            *place = Some(row);
        }
    }
    let (mut values, mut codes_of_bytes) = (Vec::new(), [0_u32; 1 << u8::BITS]);
    for (code, place) in codes_of_bytes.iter_mut().zip(places) {
        if let Some(row) = place {
            *code = values.len() as u32;
            values.push(bytes.get(row..=row).unwrap_or_default());
        }
    }
    if values.len() + code_bytes(bytes.len(), values.len()) >= budget {
        return None;
    }
    let mut codes = codes_of_rows(bytes.len());
    codes.extend(bytes.iter().map(|byte| codes_of_bytes[usize::from(*byte)]));
    Some(Distinct { values, codes })
}

/// As [`distinct`], in the order of appearance.
fn distinct_texts<'a>(heap: &'a [u8], offsets: &[i32], budget: usize) -> Option<Distinct<&'a [u8]>> {
    let rows = offsets.len().saturating_sub(1);
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let mut recent = RecentTexts::default();
    let (mut values, mut bytes): (Vec<&[u8]>, usize) = (Vec::new(), 0);
    let mut codes = codes_of_rows(rows);
    let (mut row, mut looked_up) = (0, 0);
    while row < rows {
        let is_mostly_known = row < ROWS_MIN || looked_up < row / 2;
        if is_mostly_known {
            row += recent.find(heap, offsets.get(row..).unwrap_or_default(), &mut codes);
        }
        let Some([start, end]) = offsets.get(row..).and_then(|rest| rest.first_chunk()) else { break };
        let text = heap.get(*start as usize..*end as usize).unwrap_or_default();
        let next = values.len();
        let number = *numbers.entry(text).or_insert(next as u32);
        if number as usize == next {
            values.push(text);
            bytes += text.len();
            if bytes + code_bytes(rows, values.len()) >= budget {
                keep_codes(codes);
                return None;
            }
        }
        if is_mostly_known {
            recent.note(text, number);
        }
        codes.push(number);
        looked_up += 1;
        row += 1;
    }
    Some(Distinct { values, codes })
}

#[cfg(test)]
mod tests {
    use super::super::dictionary;
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
            let expected = dictionary::distinct_texts(rows.iter().map(|text| Some(*text)), usize::MAX).unwrap();
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
