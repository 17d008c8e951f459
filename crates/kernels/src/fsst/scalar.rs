//! The scalar twins: what codes mean.

use super::{ESCAPE, Symbols, TEXT_BYTES_MAX};

/// See [`Symbols::decode`].
pub fn decode(symbols: &Symbols, codes: &[u8], out: &mut Vec<u8>) -> bool {
    let mut codes = codes.iter();
    while let Some(code) = codes.next() {
        if out.len() > TEXT_BYTES_MAX {
            return false;
        }
        if *code == ESCAPE {
            let Some(byte) = codes.next() else { return false };
            out.push(*byte);
            continue;
        }
        let length = usize::from(symbols.lengths[usize::from(*code)]);
        if length == 0 {
            return false;
        }
        out.extend_from_slice(&symbols.words[usize::from(*code)].to_le_bytes()[..length]);
    }
    out.len() <= TEXT_BYTES_MAX
}

/// See [`Symbols::decode_all`].
pub fn decode_all(symbols: &Symbols, codes: &[u8], lengths: &[u32], out: &mut Vec<u8>, ends: &mut Vec<i32>) -> bool {
    let mut rest = codes;
    for length in lengths {
        let Some((one, behind)) = rest.split_at_checked(*length as usize) else { return false };
        if !decode(symbols, one, out) {
            return false;
        }
        ends.push(out.len() as i32);
        rest = behind;
    }
    rest.is_empty()
}
