//! Texts, without their quotes.

use super::fields::{Fields, Quoting};

/// Bytes of texts that 31 bits count.
pub(super) const HEAP_BYTES_MAX: usize = i32::MAX as usize;

/// Appends the texts of `fields` to `heap`, and where in it each ends to `ends`; a NULL has none, and its row goes to
/// `nulls`. `has_quotes` says whether there may be quotes among them. False when `heap` becomes longer than 2 GiB, with
/// something or nothing appended. Nobody has looked whether texts are UTF-8.
pub fn texts(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    has_quotes: bool,
    heap: &mut Vec<u8>,
    ends: &mut Vec<i32>,
    nulls: &mut Vec<u32>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        // SAFETY: the processor has what this twin asks for.
        return unsafe { super::avx512::text::texts(fields, quoting, has_quotes, heap, ends, nulls) };
    }
    ends.reserve(fields.len());
    for row in 0..fields.len() {
        if !append(fields, row, quoting, has_quotes, heap, nulls) {
            return false;
        }
        ends.push(heap.len() as i32);
    }
    true
}

/// Appends the text of field `row` to `heap`, or `row` to `nulls`. False when `heap` becomes too long.
#[inline]
pub(super) fn append(
    fields: Fields<'_>,
    row: usize,
    quoting: Quoting<'_>,
    has_quotes: bool,
    heap: &mut Vec<u8>,
    nulls: &mut Vec<u32>,
) -> bool {
    let field = fields.get(row);
    let wanted = if has_quotes { Some(quoting.quote) } else { None };
    if field.len() == quoting.null.len() && field == quoting.null {
        // It has no quotes in it.
        nulls.push(row as u32);
    } else if !append_unless(wanted, fields.with_rest(row), field.len(), heap) {
        let inner = if field.first() == Some(&quoting.quote) { quoting.inner(field) } else { None };
        match inner {
            Some(inner) => heap.extend_from_slice(inner),
            None => unquote(field, quoting.quote, heap),
        }
    }
    heap.len() <= HEAP_BYTES_MAX
}

/// Bytes that are copied at once: most texts take one or two of these steps, and no call.
const BLOCK: usize = size_of::<u128>();
/// Room that is made for texts at least.
const ROOM: usize = 16 << 10;

/// Appends the first `len` of `bytes` to `heap`, unless there is `wanted` among them. Says whether it did.
#[inline(always)]
fn append_unless(wanted: Option<u8>, bytes: &[u8], len: usize, heap: &mut Vec<u8>) -> bool {
    let blocks = len.div_ceil(BLOCK);
    let Some(source) = bytes.get(..blocks * BLOCK) else {
        // Near the end of all bytes.
        let Some(text) = bytes.get(..len).filter(|text| wanted.is_none_or(|wanted| !text.contains(&wanted))) else {
            return false;
        };
        heap.extend_from_slice(text);
        return true;
    };
    if heap.capacity() - heap.len() < blocks * BLOCK {
        heap.reserve((blocks * BLOCK).max(ROOM));
    }
    let room = &mut heap.spare_capacity_mut()[..blocks * BLOCK];
    let mut left = len;
    for (block, to) in source.as_chunks::<BLOCK>().0.iter().zip(room.as_chunks_mut::<BLOCK>().0) {
        if wanted.is_some_and(|wanted| is_among(wanted, block, left)) {
            return false;
        }
        *to = block.map(std::mem::MaybeUninit::new);
        left = left.saturating_sub(BLOCK);
    }
    // SAFETY: the room behind the length was written in whole blocks, of which there are enough for `len` bytes.
    unsafe { heap.set_len(heap.len() + len) };
    true
}

/// Whether `wanted` is among the first `len` bytes of `block`, all of them if `len` exceeds those.
#[inline(always)]
fn is_among(wanted: u8, block: &[u8; BLOCK], len: usize) -> bool {
    const LOW: u128 = u128::from_le_bytes([0x01; BLOCK]);
    const HIGH: u128 = u128::from_le_bytes([0x80; BLOCK]);
    // The lowest byte that becomes 0 borrows; those above it may be taken for others, those below it never.
    let differs = u128::from_le_bytes(*block) ^ (LOW * u128::from(wanted));
    let hits = differs.wrapping_sub(LOW) & !differs & HIGH;
    hits.trailing_zeros() < 8 * len.min(BLOCK) as u32
}

/// Appends `field` without its quotes; two of them in quotes are one.
fn unquote(field: &[u8], quote: u8, heap: &mut Vec<u8>) {
    let mut in_quotes = false;
    let mut bytes = field.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte != quote {
            heap.push(*byte);
        } else if in_quotes && bytes.next_if_eq(&&quote).is_some() {
            heap.push(quote);
        } else {
            in_quotes = !in_quotes;
        }
    }
}
