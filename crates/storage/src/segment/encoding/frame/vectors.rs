//! Frames by vector: each [`VECTOR_ROWS`] rows have a frame of reference of their own (FFOR of Afroozeh and Boncz, "The
//! FastLanes compression layout", VLDB 2023). Where values near each other are alike, that takes fewer bits than one
//! frame for all; and the frames are zone maps: a condition takes or leaves a vector by its frame without unpacking it.
//!
//! Sections: an entry for each vector, the packed codes. A code is what a value exceeds the least one of its vector by;
//! NULL slots hold code 0.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, NullBuffer};
use mainstem_kernels::{bitmap, bitpack, cast, gather};

use super::super::condition::{Condition, select_codes, wrong_constant};
use super::super::form::Form;
use super::super::native::{Integer, Native, dispatch_decoded, dispatch_integer, wide_value, wrong_type};
use super::super::plain::partition;
use super::super::sections::{Damage, Sections, begin_section, make_room, padded};
use super::{
    PLACES_BEHIND, VALUES, codes_of, codes_upto, decoded, greatest_code, guess, near_to, on_codes, sum_of_codes,
    unpack, unpack_selected,
};
use crate::error::Result;
use crate::predicate::Predicate;
use crate::row::Value;
use crate::schema::DataType;

/// Rows of a vector.
pub(crate) const VECTOR_ROWS: usize = 1024;
/// Bytes of an entry: what its least value exceeds the least of all by, its greatest code, where among the packed codes
/// its own begin, in words of 8 bytes; each a u64.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Rows of one vector from which on they are gathered at once.
const GATHER_ROWS_MIN: usize = 16;

/// The frame of a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector {
    /// What its least value exceeds the least of all by.
    base: u64,
    /// The greatest code.
    greatest: u64,
    /// Where its codes begin.
    at: usize,
    /// Bits of a code.
    width: u32,
}

/// The frames of a column that is to be written.
#[derive(Debug)]
pub(crate) struct Plan {
    vectors: Vec<Vector>,
    code_bytes: usize,
}

impl Plan {
    /// The frames of `rows` values, whose vectors have these `bounds`; `None` for a vector without a value. `least` is
    /// the least of all. `None` if they are no integers, or too far apart.
    pub fn of<N: Native>(bounds: &[Option<(N, N)>], least: N, rows: usize) -> Option<Self> {
        let reference = least.integer()?;
        let mut plan = Self { vectors: Vec::with_capacity(bounds.len()), code_bytes: 0 };
        for (number, bounds) in bounds.iter().enumerate() {
            let (mut base, mut greatest) = (0u64, 0u64);
            if let Some((low, high)) = bounds {
                base = u64::try_from(low.integer()?.checked_sub(reference)?).ok()?;
                greatest = u64::try_from(high.integer()?.checked_sub(low.integer()?)?).ok()?;
                // A frame ends within 64 bits above the least value, as its readers ask.
                base.checked_add(greatest)?;
            }
            let width = bitpack::bits_needed(greatest);
            plan.vectors.push(Vector { base, greatest, at: plan.code_bytes, width });
            plan.code_bytes += bitpack::packed_bytes(rows_of_vector(number, rows), width);
        }
        Some(plan)
    }

    /// Bytes of its sections.
    pub fn bytes(&self) -> usize {
        padded(self.vectors.len() * ENTRY_BYTES) + self.code_bytes
    }

    /// Appends the sections of `values`, and returns the bytes of all codes; values of NULL slots become code 0.
    pub fn write<N: Native>(
        &self,
        values: &[N],
        nulls: Option<&NullBuffer>,
        reference: i128,
        body: &mut Vec<u8>,
    ) -> u32 {
        make_room(body, self.bytes());
        begin_section(body);
        for vector in &self.vectors {
            cast::to_le_bytes(&[vector.base, vector.greatest, vector.at as u64 / 8], body);
        }
        begin_section(body);
        let mut codes = [0; VECTOR_ROWS];
        for ((number, values), vector) in values.chunks(VECTOR_ROWS).enumerate().zip(&self.vectors) {
            let reference = reference + i128::from(vector.base);
            codes_of(values, nulls, number * VECTOR_ROWS, reference, &mut codes);
            bitpack::pack(codes.get(..values.len()).unwrap_or_default(), vector.width, body);
        }
        self.code_bytes as u32
    }
}

/// Rows of vector `number` of those of `rows` rows.
pub(crate) fn rows_of_vector(number: usize, rows: usize) -> usize {
    rows.saturating_sub(number * VECTOR_ROWS).min(VECTOR_ROWS)
}

/// Vectors of `rows` rows.
pub(crate) fn vectors_of(rows: usize) -> usize {
    rows.div_ceil(VECTOR_ROWS)
}

impl Vector {
    /// Takes the entry of vector `number` of `rows` rows, and proves that its codes lie within `code_bytes` and that it
    /// reaches no further than `room` above the least value.
    pub fn of_entry(
        entry: &[u8],
        number: usize,
        rows: usize,
        code_bytes: usize,
        room: u64,
    ) -> Result<Self, &'static str> {
        let &[base, greatest, word] = cast::from_le_bytes::<u64>(entry).as_slice() else {
            return Err("an entry of a vector that is cut off");
        };
        let width = bitpack::bits_needed(greatest);
        if base.checked_add(greatest).is_none_or(|end| end > room) {
            return Err("a vector beyond the range of its type");
        }
        let at = usize::try_from(word).ok().and_then(|word| word.checked_mul(8));
        let end = at.and_then(|at| at.checked_add(bitpack::packed_bytes(rows_of_vector(number, rows), width)));
        match (at, end) {
            (Some(at), Some(end)) if end <= code_bytes => Ok(Self { base, greatest, at, width }),
            _ => Err("a vector whose codes end behind all codes"),
        }
    }

    /// Where its codes begin, and their width.
    pub fn codes(&self) -> (usize, u32) {
        (self.at, self.width)
    }

    /// What the value of `code` exceeds the least of all by; `None` if it is none of its codes.
    pub fn above_least(&self, code: u64) -> Option<u64> {
        (code <= self.greatest).then_some(self.base + code)
    }
}

/// Frames by vector.
#[derive(Debug)]
pub(crate) struct VectorFrames {
    packed: Buffer,
    reference: i128,
    rows: usize,
    vectors: Vec<Vector>,
}

impl VectorFrames {
    /// Opens the sections of `rows` rows and proves that each decodes to a value of `data_type` within its frame.
    pub fn open(
        data_type: DataType,
        sections: &mut Sections,
        rows: usize,
        reference: i128,
        code_bytes: u32,
    ) -> Result<Self, Damage> {
        let at = sections.position();
        let room = room_above(data_type, reference).map_err(|what| Damage::new(at, what))?;
        let entries = sections.take(vectors_of(rows) * ENTRY_BYTES)?;
        let code_bytes = code_bytes as usize;
        let start = sections.position();
        let packed = sections.take(code_bytes)?;
        let mut vectors = Vec::with_capacity(vectors_of(rows));
        let mut next = 0;
        for (number, entry) in entries.chunks_exact(ENTRY_BYTES).enumerate() {
            let damaged = |what| Damage::new(at + number * ENTRY_BYTES, what);
            let vector = Vector::of_entry(entry, number, rows, code_bytes, room).map_err(damaged)?;
            if vector.at != next {
                return Err(damaged("vectors that do not stand one behind another"));
            }
            next += bitpack::packed_bytes(rows_of_vector(number, rows), vector.width);
            let codes = packed.get(vector.at..next).unwrap_or_default();
            if !codes_upto(codes, vector.width, rows_of_vector(number, rows), vector.greatest) {
                return Err(Damage::new(start + vector.at, "a code beyond the frame of its vector"));
            }
            vectors.push(vector);
        }
        if next != code_bytes {
            return Err(Damage::new(start, "bytes behind the codes of all vectors"));
        }
        Ok(Self { packed, reference, rows, vectors })
    }

    /// Bytes of memory beside the block's own buffer.
    pub fn memory(&self) -> usize {
        size_of_val(self.vectors.as_slice())
    }

    /// The vectors that `rows` are in: each with its codes and those behind them, the rows of it, counted from its
    /// first one, and where among `rows` they begin.
    fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = (&Vector, &[u8], Range<usize>, usize)> {
        let first = rows.start / VECTOR_ROWS;
        let last = if rows.is_empty() { first } else { rows.end.div_ceil(VECTOR_ROWS) };
        let vectors = self.vectors.get(first..last.min(self.vectors.len())).unwrap_or_default();
        vectors.iter().enumerate().map(move |(number, vector)| {
            let start = (first + number) * VECTOR_ROWS;
            let here = rows.start.max(start)..rows.end.min(start + VECTOR_ROWS);
            let codes = self.packed.get(vector.at..).unwrap_or_default();
            (vector, codes, here.start - start..here.end - start, here.start - rows.start)
        })
    }

    /// Rows `rows` as an Arrow array.
    pub fn read(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        fn read<N: Integer>(
            frames: &VectorFrames,
            data_type: DataType,
            rows: Range<usize>,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            let (mut out, mut values) = (Vec::with_capacity(rows.len()), [N::default(); VALUES]);
            let reference = N::narrow(frames.reference).ok_or_else(|| wrong_type(data_type, "its frames"))?;
            for (vector, codes, here, _) in frames.parts(rows) {
                unpack(codes, vector.width, here, reference.plus(vector.base), &mut values, &mut out);
            }
            N::array(data_type, out.into(), nulls)
        }
        dispatch_decoded!(data_type, form, N => read::<N>(self, data_type, rows, nulls),
            else => Err(wrong_type(data_type, "frames by vector")))
    }

    /// The values at `offsets` as an Arrow array.
    pub fn gather(
        &self,
        (data_type, form): (DataType, Form),
        offsets: &[u32],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        fn collect<N: Integer>(
            reference: i128,
            codes: &[u64],
            data_type: DataType,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            let reference = N::narrow(reference).ok_or_else(|| wrong_type(data_type, "its frames"))?;
            let out: Vec<N> = codes.iter().map(|code| reference.plus(*code)).collect();
            N::array(data_type, out.into(), nulls)
        }
        let codes = self.gather_codes(offsets);
        dispatch_decoded!(data_type, form, N => collect::<N>(self.reference, &codes, data_type, nulls),
            else => Err(wrong_type(data_type, "frames by vector")))
    }

    /// Those of `rows` that `selection` has, `count` of them, without NULLs, as an Arrow array.
    pub fn read_selected(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        selection: &[u64],
        count: usize,
    ) -> Result<ArrayRef> {
        fn read<N: Integer>(
            frames: &VectorFrames,
            data_type: DataType,
            rows: Range<usize>,
            selection: &[u64],
            count: usize,
        ) -> Result<ArrayRef> {
            let (mut out, mut values) = (Vec::with_capacity(count + PLACES_BEHIND), [N::default(); VALUES]);
            let reference = N::narrow(frames.reference).ok_or_else(|| wrong_type(data_type, "its frames"))?;
            for (vector, codes, here, to) in frames.parts(rows) {
                let selected = bitmap::copy_range(selection, to..to + here.len());
                let reference = reference.plus(vector.base);
                unpack_selected(codes, vector.width, here, reference, &selected, &mut values, &mut out);
            }
            N::array(data_type, out.into(), None)
        }
        dispatch_decoded!(data_type, form, N => read::<N>(self, data_type, rows, selection, count),
            else => Err(wrong_type(data_type, "frames by vector")))
    }

    /// The sum of the values of those of `rows` that `selection` has, which are `count`.
    pub fn sum(&self, rows: Range<usize>, selection: &[u64], count: usize) -> i128 {
        let mut above = 0;
        for (vector, codes, here, to) in self.parts(rows) {
            let selected = bitmap::copy_range(selection, to..to + here.len());
            above += i128::from(vector.base) * bitmap::count_ones(&selected) as i128
                + sum_of_codes(codes, vector.width, here, &selected);
        }
        self.reference.wrapping_mul(count as i128).wrapping_add(above)
    }

    /// What the values at `offsets` exceed the least one by.
    fn gather_codes(&self, offsets: &[u32]) -> Vec<u64> {
        let mut out = Vec::with_capacity(offsets.len());
        let mut local = Vec::new();
        for part in offsets.chunk_by(|a, b| *a as usize / VECTOR_ROWS == *b as usize / VECTOR_ROWS) {
            let number = part.first().map_or(0, |offset| *offset as usize / VECTOR_ROWS);
            match self.vectors.get(number) {
                Some(vector) if part.len() >= GATHER_ROWS_MIN => {
                    local.clear();
                    local.extend(part.iter().map(|offset| offset % VECTOR_ROWS as u32));
                    let done = out.len();
                    let codes = self.packed.get(vector.at..).unwrap_or_default();
                    gather::gather_packed(codes, vector.width, &local, &mut out);
                    out.iter_mut().skip(done).for_each(|code| *code += vector.base);
                }
                _ => out.extend(part.iter().map(|offset| self.code(*offset as usize))),
            }
        }
        out
    }

    /// What value `i` exceeds the least one by.
    #[inline]
    fn code(&self, i: usize) -> u64 {
        let Some(vector) = self.vectors.get(i / VECTOR_ROWS) else { return 0 };
        vector.base + bitpack::get(self.packed.get(vector.at..).unwrap_or_default(), vector.width, i % VECTOR_ROWS)
    }

    /// Value `i`, NULL or not.
    pub fn value(&self, data_type: DataType, i: usize) -> Value {
        decoded(data_type, self.reference, self.code(i))
    }

    /// Value `i`, of a column whose values fit 64 bits.
    #[inline]
    pub fn whole(&self, i: usize) -> i64 {
        (self.reference as i64).wrapping_add(self.code(i).cast_signed())
    }

    /// Of the ascending values `rows`: where those equal to `value` begin and end.
    ///
    /// # Errors
    /// Internal when `value` is of another type.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> Result<(usize, usize)> {
        let sought = wide_value(value).ok_or_else(|| wrong_constant(value))?.saturating_sub(self.reference);
        if sought < 0 {
            return Ok((rows.start, rows.start));
        }
        let Ok(sought) = u64::try_from(sought) else { return Ok((rows.end, rows.end)) };
        let code = |i: usize| self.code(i);
        let part = self.part_of(sought, &rows);
        let near = guess(sought, &part, code);
        let first = partition(near_to(part, near, |i| code(i) < sought), |i| code(i) < sought);
        let equal = near_to(first..rows.end, first, |i| code(i) == sought);
        Ok((first, partition(equal, |i| code(i) == sought)))
    }

    /// A part of the ascending rows `rows` in which the first code that is not below `sought` stands, or before which
    /// or behind which it does: a vector, where the frames tell. What a vector has outside of `rows` is in no order
    /// with them, so only those within tell.
    fn part_of(&self, sought: u64, rows: &Range<usize>) -> Range<usize> {
        let first = rows.start.div_ceil(VECTOR_ROWS);
        let end = if rows.end == self.rows { self.vectors.len() } else { rows.end / VECTOR_ROWS };
        let Some(within) = self.vectors.get(first..end).filter(|within| within.len() > 1) else { return rows.clone() };
        let (head, tail) = (rows.start..first * VECTOR_ROWS, (end * VECTOR_ROWS).min(rows.end)..rows.end);
        if !head.is_empty() && self.code(head.end - 1) >= sought {
            return head;
        }
        let base = |at: usize| within.get(at).map_or(u64::MAX, |vector| vector.base);
        let is_below = |at: usize| within.get(at).is_some_and(|vector| vector.base + vector.greatest < sought);
        let near = guess(sought, &(0..within.len()), base);
        let at = match is_below(near) {
            false if near == 0 || is_below(near - 1) => near,
            _ => partition(near_to(0..within.len(), near, is_below), is_below),
        };
        if at == within.len() {
            return tail;
        }
        let start = (first + at) * VECTOR_ROWS;
        start..(start + VECTOR_ROWS).min(rows.end)
    }

    /// Rows of `rows` that meet `predicate`, decided on frames, and on codes where those do not tell; NULL slots come
    /// out either way.
    pub fn select(&self, data_type: DataType, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        let condition = dispatch_integer!(data_type,
            N => on_codes(&Condition::<N>::of(predicate)?, self.reference),
            else => return Err(wrong_type(data_type, "frames by vector")));
        // Vectors begin at whole words of the answer, if it begins at one of the block.
        let early = rows.start % 64;
        let all = rows.start - early..rows.end;
        let mut out = vec![0; bitmap::words(all.len())];
        for (vector, codes, here, to) in self.parts(all.clone()) {
            match vector.decide(&condition) {
                Condition::Never => {}
                Condition::Always => bitmap::set_range(&mut out, to..to + here.len()),
                condition => {
                    let found = select_codes(codes, vector.width, here.start, here.len(), &condition);
                    let words = out.iter_mut().skip(to / 64);
                    words.zip(found).for_each(|(to, from)| *to = from);
                }
            }
        }
        Ok(if early == 0 { out } else { bitmap::copy_range(&out, early..all.len()) })
    }
}

impl Vector {
    /// What `condition`, on what values exceed the least one by, asks of its codes: nothing, where its frame tells.
    fn decide(&self, condition: &Condition<u64>) -> Condition<u64> {
        let (least, greatest) = (self.base, self.base + self.greatest);
        // A range that has some of the frame's values, and not all.
        let cut = |low: u64, high: u64| (low.saturating_sub(least), high.min(greatest) - least);
        match condition {
            Condition::Never => Condition::Never,
            Condition::Always => Condition::Always,
            Condition::Within(low, high) | Condition::Outside(low, high) => {
                let inside = matches!(condition, Condition::Within(..));
                if *low > greatest || *high < least || low > high {
                    if inside { Condition::Never } else { Condition::Always }
                } else if *low <= least && *high >= greatest {
                    if inside { Condition::Always } else { Condition::Never }
                } else {
                    let (low, high) = cut(*low, *high);
                    if inside { Condition::Within(low, high) } else { Condition::Outside(low, high) }
                }
            }
            Condition::OneOf(listed) => {
                let first = listed.partition_point(|code| *code < least);
                let end = listed.partition_point(|code| *code <= greatest);
                match listed.get(first..end).unwrap_or_default() {
                    [] => Condition::Never,
                    [one] => self.decide(&Condition::Within(*one, *one)),
                    few => Condition::OneOf(few.iter().map(|code| code - least).collect()),
                }
            }
        }
    }
}

/// How far above `reference` values of `data_type` reach, or what is wrong with it.
pub(crate) fn room_above(data_type: DataType, reference: i128) -> Result<u64, &'static str> {
    if data_type == DataType::Boolean {
        return Err("booleans that are no bitmap");
    }
    greatest_code(data_type, reference, 0)
}

/// The value that exceeds `reference` by `above`.
pub(crate) fn value_above(data_type: DataType, reference: i128, above: u64) -> Value {
    decoded(data_type, reference, above)
}
