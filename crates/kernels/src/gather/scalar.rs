//! The scalar twins.

use crate::bitpack;

/// See [`super::gather`].
pub fn gather<T: Copy>(values: &[T], indices: &[u32], out: &mut Vec<T>) {
    out.extend(indices.iter().map(|&index| values[index as usize]));
}

/// See [`super::gather_packed`].
pub fn gather_packed(packed: &[u8], width: u32, indices: &[u32], out: &mut Vec<u64>) {
    super::check_packed(packed, width, indices);
    out.extend(indices.iter().map(|&index| bitpack::scalar::read(packed, width, index as usize * width as usize)));
}

/// See [`super::filter`].
pub fn filter<T: Copy>(values: &[T], selection: &[u64], out: &mut Vec<T>) {
    for (at, &word) in selection.iter().enumerate() {
        if word == u64::MAX {
            out.extend_from_slice(&values[at * 64..at * 64 + 64]);
            continue;
        }
        let mut word = word;
        while word != 0 {
            out.push(values[at * 64 + word.trailing_zeros() as usize]);
            word &= word - 1;
        }
    }
}
