//! Texts, without their quotes.

use std::mem;

use arrow_array::StringArray;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::fields::{Fields, Quoting};

/// Bytes of texts that 31 bits count.
pub(super) const HEAP_BYTES_MAX: usize = i32::MAX as usize;

/// Texts that were read, one behind the other.
///
/// Invariants: `ends` begins with 0 and never descends, and its last one is at most the length of `heap`. Where
/// `is_ascii`, all bytes of `heap` are. So an array of them needs no second look at what was just written.
#[derive(Debug)]
pub struct Texts {
    pub(super) heap: Vec<u8>,
    /// Where each text ends; 0 before the first one.
    pub(super) ends: Vec<i32>,
    pub(super) is_ascii: bool,
}

impl Texts {
    /// None yet, in the memory of `heap` and `ends`.
    #[must_use]
    pub fn new(mut heap: Vec<u8>, mut ends: Vec<i32>) -> Self {
        heap.clear();
        ends.clear();
        ends.push(0);
        Self { heap, ends, is_ascii: true }
    }

    /// Appends the texts of `fields`; a NULL has none, and its row goes to `nulls`. `has_quotes` says whether there may
    /// be quotes among them. False when all become longer than 2 GiB, with something or nothing appended.
    pub fn read(&mut self, fields: Fields<'_>, quoting: Quoting<'_>, has_quotes: bool, nulls: &mut Vec<u32>) -> bool {
        if self.heap.len() > HEAP_BYTES_MAX {
            // Some did not fit before.
            return false;
        }
        self.ends.reserve(fields.len());
        #[cfg(target_arch = "x86_64")]
        if crate::dispatch::avx512() {
            // SAFETY: the processor has what this twin asks for.
            return unsafe { super::avx512::text::read(self, fields, quoting, has_quotes, nulls) };
        }
        (0..fields.len()).all(|row| self.append(fields, row, quoting, has_quotes, nulls))
    }

    /// Appends the text of field `row`, or `row` to `nulls`. False when all become too long.
    #[inline]
    pub(super) fn append(
        &mut self,
        fields: Fields<'_>,
        row: usize,
        quoting: Quoting<'_>,
        has_quotes: bool,
        nulls: &mut Vec<u32>,
    ) -> bool {
        let before = self.heap.len();
        let fits = append(fields, row, quoting, has_quotes, &mut self.heap, nulls);
        self.is_ascii = self.is_ascii && self.heap[before..].is_ascii();
        if fits {
            self.ends.push(self.heap.len() as i32);
        }
        fits
    }

    /// Makes room for `times` as much as there is, and a little more.
    pub fn reserve(&mut self, times: usize) {
        self.heap.reserve(self.heap.len() * times + self.heap.len() * times / 16);
        self.ends.reserve(self.ends.len() * times + self.ends.len() * times / 16);
    }

    /// All as an array; None if they are no UTF-8, too long together, or `nulls` are not as many.
    #[must_use]
    pub fn finish(self, nulls: Option<NullBuffer>) -> Option<StringArray> {
        let Self { heap, ends, is_ascii } = self;
        if heap.len() > HEAP_BYTES_MAX || nulls.as_ref().is_some_and(|nulls| nulls.len() + 1 != ends.len()) {
            return None;
        }
        let begins_character = |end: &i32| heap.get(*end as usize).is_none_or(|byte| byte.cast_signed() >= -0x40);
        if !is_ascii && (std::str::from_utf8(&heap).is_err() || !ends.iter().all(begins_character)) {
            return None;
        }
        // SAFETY: `ends` are not negative and do not descend, as the type says.
        let ends = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(ends)) };
        // SAFETY: the last end is within the heap; all bytes of the heap are UTF-8, and each end is between two
        // characters: where all is ASCII any place is, elsewhere it was looked at.
        Some(unsafe { StringArray::new_unchecked(ends, Buffer::from_vec(heap), nulls) })
    }
}

/// As [`Texts::read`], of texts that are `heap`, and end at `ends`. Nobody has looked whether they are UTF-8.
pub fn texts(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    has_quotes: bool,
    heap: &mut Vec<u8>,
    ends: &mut Vec<i32>,
    nulls: &mut Vec<u32>,
) -> bool {
    let mut texts = Texts { heap: mem::take(heap), ends: mem::take(ends), is_ascii: true };
    let fits = texts.read(fields, quoting, has_quotes, nulls);
    (*heap, *ends) = (texts.heap, texts.ends);
    fits
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
