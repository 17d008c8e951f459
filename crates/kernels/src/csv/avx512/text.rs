//! Texts of up to a register's bytes, copied without their quotes in one step.

use std::arch::x86_64::*;

use super::super::fields::{Fields, Quoting};
use super::super::text::{HEAP_BYTES_MAX, append};

/// Bytes of a register.
const REGISTER: usize = 64;
/// Room that is made for texts at least.
const ROOM: usize = 64 << 10;

/// The first `count` bits, of at most 64.
#[inline(always)]
fn first_bits(count: usize) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// See [`super::super::texts`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(in super::super) fn texts(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    has_quotes: bool,
    heap: &mut Vec<u8>,
    ends: &mut Vec<i32>,
    nulls: &mut Vec<u32>,
) -> bool {
    let quote = _mm512_set1_epi8(quoting.quote as i8);
    ends.reserve(fields.len());
    for row in 0..fields.len() {
        let (start, end) = fields.place(row);
        let len = end.wrapping_sub(start);
        if end > fields.bytes.len() || len.wrapping_sub(1) >= REGISTER {
            // Empty, long, or no field at all.
            if !append(fields, row, quoting, has_quotes, heap, nulls) {
                return false;
            }
            ends.push(heap.len() as i32);
            continue;
        }
        if len == quoting.null.len() && &fields.bytes[start..end] == quoting.null {
            nulls.push(row as u32);
            ends.push(heap.len() as i32);
            continue;
        }
        if heap.capacity() - heap.len() < REGISTER {
            heap.reserve(ROOM);
        }
        // SAFETY: only bytes of the mask are read, and those are of the field.
        let text = unsafe { _mm512_maskz_loadu_epi8(first_bits(len), fields.bytes.as_ptr().add(start).cast()) };
        let quotes = if has_quotes { _mm512_mask_cmpeq_epi8_mask(first_bits(len), text, quote) } else { 0 };
        let (inner, text) = if quotes == 0 {
            (len, text)
        } else if len > 1 && quotes == 1 | 1 << (len - 1) {
            // SAFETY: as before; the bytes between the first and the last one.
            let inner =
                unsafe { _mm512_maskz_loadu_epi8(first_bits(len - 2), fields.bytes.as_ptr().add(start + 1).cast()) };
            (len - 2, inner)
        } else {
            if !append(fields, row, quoting, has_quotes, heap, nulls) {
                return false;
            }
            ends.push(heap.len() as i32);
            continue;
        };
        // SAFETY: there is room for a register behind the length, and all of it is written.
        unsafe {
            _mm512_storeu_si512(heap.as_mut_ptr().add(heap.len()).cast(), text);
            heap.set_len(heap.len() + inner);
        }
        if heap.len() > HEAP_BYTES_MAX {
            return false;
        }
        ends.push(heap.len() as i32);
    }
    true
}
