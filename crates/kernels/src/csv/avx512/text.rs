//! Texts of up to a register's bytes, copied without their quotes in one step.

use std::arch::x86_64::*;

use super::super::fields::{Fields, Quoting};
use super::super::text::{HEAP_BYTES_MAX, Texts};

/// Bytes of a register.
const REGISTER: usize = 64;
/// Room that is made for texts at least.
const ROOM: usize = 64 << 10;

/// The first `count` bits, of at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
fn first_bits(count: usize) -> u64 {
    _bzhi_u64(u64::MAX, count as u32)
}

/// See [`Texts::read`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
pub(in super::super) fn read(
    out: &mut Texts,
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    has_quotes: bool,
    nulls: &mut Vec<u32>,
) -> bool {
    let mut null = [0; REGISTER];
    if let Some(null) = null.get_mut(..quoting.null.len()) {
        null.copy_from_slice(quoting.null);
    }
    // SAFETY: the array has the bytes of a register; the load needs no alignment.
    let null = unsafe { _mm512_loadu_si512(null.as_ptr().cast()) };
    let marks = Marks { quote: _mm512_set1_epi8(quoting.quote as i8), null, null_len: quoting.null.len() };
    let rows = fields.len();
    // Before the very first field no other one ends.
    let mut row = usize::from(fields.column == 0).min(rows);
    if !(0..row).all(|row| out.append(fields, row, quoting, has_quotes, nulls)) {
        return false;
    }
    while row < rows {
        if out.heap.capacity() - out.heap.len() < REGISTER {
            out.heap.reserve(ROOM);
        }
        out.ends.reserve(rows - row);
        // One text of one byte tells that more will come.
        let (start, end) = fields.place(row);
        // SAFETY: there is room for the ends of all rows and for a register, and the first row has an end before it.
        row += unsafe {
            match (has_quotes, end == start + 1) {
                (true, true) => plain::<true, true>(out, &fields, row, &marks),
                (true, false) => plain::<true, false>(out, &fields, row, &marks),
                (false, true) => plain::<false, true>(out, &fields, row, &marks),
                (false, false) => plain::<false, false>(out, &fields, row, &marks),
            }
        };
        let is_full = out.heap.capacity() - out.heap.len() < REGISTER;
        if out.heap.len() > HEAP_BYTES_MAX {
            // The last end is that of no text.
            out.ends.pop();
            return false;
        }
        // A NULL, or a text that is long, or has quotes within it.
        if row < rows && !is_full {
            if !out.append(fields, row, quoting, has_quotes, nulls) {
                return false;
            }
            row += 1;
        }
    }
    true
}

/// Texts of one byte at once.
const EIGHT: usize = 8;
/// All of eight.
const ALL: u16 = 0xFF;
/// Columns up to which the places of eight rows fit the distances of a gather.
const SINGLES_COLUMNS_MAX: usize = 1 << 24;

/// The bytes of eight fields, if each is one byte, and three are behind the last one: the first of them begins behind
/// `place`, and others `columns` further.
///
/// # Safety
/// The ends of eight rows are there, and at `place` the one before the first; `columns` is less than
/// [`SINGLES_COLUMNS_MAX`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
unsafe fn singles(place: *const u32, columns: usize, bytes: &[u8]) -> Option<__m128i> {
    let step = columns as i32;
    let rows = _mm256_mullo_epi32(_mm256_set1_epi32(step), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    // SAFETY: each pair of ends is there, as the caller says.
    let pairs = unsafe { _mm512_i32gather_epi64::<4>(rows, place.cast()) };
    let starts = _mm512_add_epi64(_mm512_and_si512(pairs, _mm512_set1_epi64(0xFFFF_FFFF)), _mm512_set1_epi64(1));
    let lens = _mm512_sub_epi64(_mm512_srli_epi64::<32>(pairs), starts);
    let last = _mm512_set1_epi64(bytes.len() as i64 - size_of::<u32>() as i64);
    let are_single = _mm512_cmpeq_epi64_mask(lens, _mm512_set1_epi64(1)) & _mm512_cmple_epi64_mask(starts, last);
    if u16::from(are_single) != ALL {
        return None;
    }
    // SAFETY: four bytes are there from each start on, as was just asked.
    let words = unsafe { _mm512_i64gather_epi32::<1>(starts, bytes.as_ptr().cast()) };
    Some(_mm256_cvtepi32_epi8(words))
}

/// What is looked for in texts.
struct Marks {
    quote: __m512i,
    /// The text of a NULL, with zeros behind it.
    null: __m512i,
    null_len: usize,
}

/// Appends the texts of `fields` from `row` on up to one that is not plain, as long as there is room and they are not
/// too long together; with `SINGLES` eight of one byte at once. Returns how many they are.
///
/// # Safety
/// An end stands before that of the field; `out` has room for the ends of all rows, and for a register of bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
unsafe fn plain<const HAS_QUOTES: bool, const SINGLES: bool>(
    out: &mut Texts,
    fields: &Fields<'_>,
    row: usize,
    marks: &Marks,
) -> usize {
    let &Marks { quote, null, null_len } = marks;
    let (bytes, len_max, before_line_feed) = (fields.bytes.as_ptr(), fields.bytes.len(), fields.before_line_feed);
    // What grows is written by way of pointers: bytes that are stored could be its length, as far as a compiler knows.
    let (heap, ends) = (out.heap.as_mut_ptr(), out.ends.as_mut_ptr());
    let (mut written, room) = (out.heap.len(), out.heap.capacity().min(HEAP_BYTES_MAX + 2 * REGISTER) - REGISTER);
    let (first, rows) = (out.ends.len(), fields.len() - row);
    let mut all = _mm512_setzero_si512();
    let mut count = 0;
    // SAFETY: the ends of all rows are there, and one before the first.
    let mut place = unsafe { fields.ends.as_ptr().add(row * fields.columns + fields.column) };
    let has_singles = before_line_feed == 0 && null_len != 1 && fields.columns < SINGLES_COLUMNS_MAX;
    while count < rows && written <= room && written <= HEAP_BYTES_MAX {
        // SAFETY: as before.
        let (start, end) = unsafe { (*place.sub(1) as usize + 1, (*place as usize).wrapping_sub(before_line_feed)) };
        let len = end.wrapping_sub(start);
        if SINGLES && len == 1 && has_singles && rows - count >= EIGHT {
            // SAFETY: the ends of eight rows are there, and one before the first; so few columns were asked for.
            let eight = unsafe { singles(place.sub(1), fields.columns, fields.bytes) };
            if let Some(eight) = eight
                && written + EIGHT <= HEAP_BYTES_MAX
                && (!HAS_QUOTES || _mm_cmpeq_epi8_mask(eight, _mm512_castsi512_si128(quote)) & ALL == 0)
            {
                all = _mm512_or_si512(all, _mm512_zextsi128_si512(eight));
                let behind =
                    _mm256_add_epi32(_mm256_set1_epi32(written as i32), _mm256_set_epi32(8, 7, 6, 5, 4, 3, 2, 1));
                // SAFETY: there is room for a register behind the texts, and for an end of each row.
                unsafe {
                    _mm_storel_epi64(heap.add(written).cast(), eight);
                    _mm256_storeu_si256(ends.add(first + count).cast(), behind);
                }
                place = place.wrapping_add(EIGHT * fields.columns);
                (written, count) = (written + EIGHT, count + EIGHT);
                continue;
            }
        }
        if end > len_max || len > REGISTER {
            break;
        }
        let of_field = first_bits(len);
        // SAFETY: only bytes of the mask are read, and those are of the field.
        let mut text = unsafe { _mm512_maskz_loadu_epi8(of_field, bytes.add(start).cast()) };
        if len == null_len && _mm512_cmpneq_epi8_mask(text, null) == 0 {
            break;
        }
        let mut inner = len;
        if HAS_QUOTES {
            let quotes = _mm512_mask_cmpeq_epi8_mask(of_field, text, quote);
            if quotes != 0 {
                inner = len.wrapping_sub(2);
                if len < 2 || quotes != 1 | 1 << (len - 1) {
                    break;
                }
                // SAFETY: as before; the bytes between the first and the last one.
                text = unsafe { _mm512_maskz_loadu_epi8(first_bits(inner), bytes.add(start + 1).cast()) };
            }
        }
        all = _mm512_or_si512(all, text);
        // SAFETY: there is room for a register behind the texts, all of which is written, and for an end of each row.
        unsafe {
            _mm512_storeu_si512(heap.add(written).cast(), text);
            written += inner;
            ends.add(first + count).write(written as i32);
            place = place.wrapping_add(fields.columns);
        }
        count += 1;
    }
    // SAFETY: so much was written, within the room.
    unsafe {
        out.heap.set_len(written);
        out.ends.set_len(first + count);
    }
    out.is_ascii &= _mm512_movepi8_mask(all) == 0;
    count
}
