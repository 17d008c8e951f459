//! Texts, without their quotes.

use super::fields::{Fields, Quoting};

/// Bytes of texts that 31 bits count.
const HEAP_BYTES_MAX: usize = i32::MAX as usize;

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
    ends.reserve(fields.len());
    for row in 0..fields.len() {
        let field = fields.get(row);
        let begins_in_quotes = has_quotes && field.first() == Some(&quoting.quote);
        let inner = if begins_in_quotes { quoting.inner(field) } else { None };
        if let Some(inner) = inner {
            append(inner, heap);
        } else if begins_in_quotes || has_quotes && field.contains(&quoting.quote) {
            unquote(field, quoting.quote, heap);
        } else if field == quoting.null {
            nulls.push(row as u32);
        } else {
            append(field, heap);
        }
        if heap.len() > HEAP_BYTES_MAX {
            return false;
        }
        ends.push(heap.len() as i32);
    }
    true
}

/// Appends `text`, mostly a short one, for which a call that copies costs more than the copy.
#[inline(always)]
fn append(text: &[u8], heap: &mut Vec<u8>) {
    const WORD: usize = size_of::<u64>();
    match text.len() {
        1..WORD => text.iter().for_each(|byte| heap.push(*byte)),
        WORD..=16 => {
            // Two words that overlap.
            let (Some(first), Some(last)) = (text.first_chunk::<WORD>(), text.last_chunk::<WORD>()) else { return };
            let end = heap.len() + text.len();
            heap.extend_from_slice(first);
            heap.truncate(end - WORD);
            heap.extend_from_slice(last);
        }
        _ => heap.extend_from_slice(text),
    }
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
