//! The scalar twins: plain loops, the meaning that the fast twins must match.

use super::{check, mask, packed_bytes};

/// See [`super::pack`].
pub fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    assert!(width <= 64, "bit width {width} is above 64");
    if width == 0 {
        debug_assert!(values.iter().all(|&v| v == 0), "a value does not fit 0 bits");
        return;
    }
    let start = out.len();
    out.resize(start + packed_bytes(values.len(), width), 0);
    let words = out.get_mut(start..).unwrap_or_default().as_chunks_mut().0;
    let mut packer = Packer { words: words.iter_mut(), width, word: 0, filled: 0 };
    // Each step waits for the one before: values that fit a word together take one.
    let rest = match width {
        0..=16 => packer.put_groups::<4>(values),
        17..=32 => packer.put_groups::<2>(values),
        _ => values,
    };
    packer.put_groups::<1>(rest);
    packer.finish();
}

/// Fills words, as many as the values take.
struct Packer<'a> {
    words: std::slice::IterMut<'a, [u8; 8]>,
    width: u32,
    word: u64,
    /// Bits of `word` that are taken.
    filled: u32,
}

impl Packer<'_> {
    /// Appends `values`, `N` at once, which fit 64 bits together; returns those that make no whole group.
    #[inline]
    fn put_groups<'v, const N: usize>(&mut self, values: &'v [u64]) -> &'v [u64] {
        let (groups, rest) = values.as_chunks::<N>();
        let (mask, bits) = (mask(self.width), self.width * N as u32);
        for group in groups {
            let mut value = 0;
            for (at, one) in (0..).zip(group) {
                debug_assert!(*one <= mask, "{one} does not fit {} bits", self.width);
                value |= (one & mask) << (at * self.width);
            }
            self.word |= value << self.filled;
            self.filled += bits;
            if self.filled >= 64 {
                self.flush();
                self.filled -= 64;
                // What did not fit: the top `filled` bits of the value.
                self.word = if self.filled == 0 { 0 } else { value >> (bits - self.filled) };
            }
        }
        rest
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(cell) = self.words.next() {
            *cell = self.word.to_le_bytes();
        }
    }

    fn finish(mut self) {
        if self.filled > 0 {
            self.flush();
        }
    }
}

/// The `width` bits at bit `at`; the caller has checked that `packed` holds them.
#[inline]
pub(crate) fn read(packed: &[u8], width: u32, at: usize) -> u64 {
    let (byte, shift) = (at / 8, (at % 8) as u32);
    let Some(window) = packed.get(byte..).and_then(|rest| rest.first_chunk::<9>()) else {
        return read_end(packed, width, byte, shift);
    };
    let low =
        u64::from_le_bytes([window[0], window[1], window[2], window[3], window[4], window[5], window[6], window[7]]);
    // Two shifts, because shifting by 64 when shift is 0 is not allowed.
    ((low >> shift) | ((u64::from(window[8]) << 1) << (63 - shift))) & mask(width)
}

/// [`read`] near the end of `packed`, where nine bytes may not be there.
#[cold]
fn read_end(packed: &[u8], width: u32, byte: usize, shift: u32) -> u64 {
    let mut window = [0u8; 16];
    let rest = packed.get(byte..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(9)];
    window[..rest.len()].copy_from_slice(rest);
    (u128::from_le_bytes(window) >> shift) as u64 & mask(width)
}

#[inline(always)]
fn unpack_with<T>(packed: &[u8], width: u32, start: usize, out: &mut [T], make: impl Fn(u64) -> T) {
    if width == 64 {
        let (words, _) = packed[start * 8..].as_chunks::<8>();
        for (slot, word) in out.iter_mut().zip(words) {
            *slot = make(u64::from_le_bytes(*word));
        }
        return;
    }
    let mut at = start * width as usize;
    for slot in out {
        *slot = make(read(packed, width, at));
        at += width as usize;
    }
}

macro_rules! unpack {
    ($($name:ident $t:ty, $max:literal;)*) => {$(
        #[doc = concat!("See [`super::", stringify!($name), "`].")]
        pub fn $name(packed: &[u8], width: u32, start: usize, out: &mut [$t]) {
            check(packed, width, start, out.len(), $max);
            unpack_with(packed, width, start, out, |code| code as $t);
        }
    )*};
}
unpack! {
    unpack_u64 u64, 64;
    unpack_u32 u32, 32;
    unpack_u16 u16, 16;
    unpack_u8 u8, 8;
}

macro_rules! unpack_for {
    ($($name:ident $t:ty, $max:literal;)*) => {$(
        #[doc = concat!("See [`super::", stringify!($name), "`].")]
        pub fn $name(packed: &[u8], width: u32, start: usize, reference: $t, out: &mut [$t]) {
            check(packed, width, start, out.len(), $max);
            unpack_with(packed, width, start, out, |code| reference.wrapping_add(code as $t));
        }
    )*};
}
unpack_for! {
    unpack_for_i128 i128, 64;
    unpack_for_i64 i64, 64;
    unpack_for_i32 i32, 32;
    unpack_for_i16 i16, 16;
}
