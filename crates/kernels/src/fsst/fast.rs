//! The fast twin of decoding many texts: each symbol is written as a whole word, and the place for the next one moves
//! on by the symbol's length (section 4.1 of the paper).

use super::{ESCAPE, SYMBOL_BYTES_MAX, Symbols, TEXT_BYTES_MAX};

/// Codes whose symbols there is made room for at once.
const CODES_AT_ONCE: usize = 4096;

/// See [`Symbols::decode_all`].
pub(super) fn decode_all(
    symbols: &Symbols,
    codes: &[u8],
    lengths: &[u32],
    out: &mut Vec<u8>,
    ends: &mut Vec<i32>,
) -> bool {
    ends.reserve(lengths.len());
    let mut rest = codes;
    for length in lengths {
        let Some((one, behind)) = rest.split_at_checked(*length as usize) else { return false };
        let mut one = one;
        loop {
            // An escape and its byte stay together.
            let mut head = one.len().min(CODES_AT_ONCE);
            if head < one.len() && ends_in_escape(&one[..head]) {
                head -= 1;
            }
            // Damaged codes must not fill the memory before their end is looked at.
            if !decode(symbols, &one[..head], out) || out.len() > TEXT_BYTES_MAX {
                return false;
            }
            one = &one[head..];
            if one.is_empty() {
                break;
            }
        }
        ends.push(out.len() as i32);
        rest = behind;
    }
    rest.is_empty()
}

/// Whether the last code of `codes` is an escape, rather than a byte that stands for itself.
fn ends_in_escape(codes: &[u8]) -> bool {
    codes.iter().rev().take_while(|code| **code == ESCAPE).count() % 2 == 1
}

/// Appends the text of `codes` to `out`; false if they are damaged.
#[inline]
fn decode(symbols: &Symbols, codes: &[u8], out: &mut Vec<u8>) -> bool {
    // Each code takes the place by at most a word, and the last one is written as a whole word.
    let room = (codes.len() + 1) * SYMBOL_BYTES_MAX;
    if out.capacity() - out.len() < room {
        out.reserve(room.max(codes.len() * 4 + CODES_AT_ONCE * SYMBOL_BYTES_MAX));
    }
    let start = out.len();
    let begin = out.as_mut_ptr();
    let (mut at, mut next) = (start, 0);
    while let Some(code) = codes.get(next) {
        let mut word = symbols.words[usize::from(*code)];
        let mut length = usize::from(symbols.lengths[usize::from(*code)]);
        if length == 0 {
            next += 1;
            let (ESCAPE, Some(byte)) = (*code, codes.get(next)) else { return false };
            (word, length) = (u64::from(*byte), 1);
        }
        // SAFETY: `at` moved on by at most SYMBOL_BYTES_MAX for each code before this one, so that a word fits the room
        // behind it.
        unsafe { begin.add(at).cast::<[u8; 8]>().write(word.to_le_bytes()) };
        at += length;
        next += 1;
    }
    // SAFETY: all bytes from `start` to `at` were written, and `at` is within the room.
    unsafe { out.set_len(at) };
    true
}
