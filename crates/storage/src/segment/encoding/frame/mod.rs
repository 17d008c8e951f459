//! Frame of reference and bit packing: what a value exceeds the least one by, in as few bits as the largest such code
//! needs. For integers, dates, timestamps, decimals whose spread fits 64 bits, and booleans (reference 0, width 1: an
//! Arrow bitmap).
//!
//! Section: the packed codes. NULL slots hold code 0. Where rows near each other are alike, each vector of rows has its
//! own frame: [`vectors`].

pub(crate) mod vectors;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use mainstem_kernels::{bitmap, bitpack, compare, gather, sum};

use super::condition::{Condition, select_codes, wrong_constant};
use super::form::Form;
use super::native::{Integer, Native, dispatch_decoded, dispatch_integer, wide_value, wrong_type};
use super::plain::partition;
use super::sections::{Damage, Sections, begin_section, make_room};
use crate::error::Result;
use crate::predicate::Predicate;
use crate::row::Value;
use crate::schema::DataType;

pub(crate) use vectors::{VECTOR_ROWS, VectorFrames, rows_of_vector, vectors_of};

/// Packed differences from a reference.
#[derive(Debug)]
pub(crate) struct Frame {
    packed: Buffer,
    reference: i128,
    width: u32,
}

/// The bits of a code when values run from `least` to `greatest`; `None` if they are no integers or it takes more than
/// 64.
pub(crate) fn width_of<N: Native>(least: N, greatest: N) -> Option<u32> {
    let spread = greatest.integer()?.checked_sub(least.integer()?)?;
    u64::try_from(spread).ok().map(bitpack::bits_needed)
}

/// Appends the section of `values` less `reference`; those of NULL slots become 0.
pub(crate) fn encode<N: Native>(
    values: &[N],
    nulls: Option<&NullBuffer>,
    reference: i128,
    width: u32,
    body: &mut Vec<u8>,
) {
    /// Codes at a time: a multiple of 64, so that each part fills whole words.
    const CODES: usize = 1024;
    begin_section(body);
    make_room(body, bitpack::packed_bytes(values.len(), width));
    let mut codes = [0; CODES];
    for (number, values) in values.chunks(CODES).enumerate() {
        codes_of(values, nulls, number * CODES, reference, &mut codes);
        bitpack::pack(codes.get(..values.len()).unwrap_or_default(), width, body);
    }
}

/// What each of `values`, the rows from `first` on, exceeds `reference` by; 0 for NULL.
pub(super) fn codes_of<N: Native>(
    values: &[N],
    nulls: Option<&NullBuffer>,
    first: usize,
    reference: i128,
    codes: &mut [u64],
) {
    let code = |v: &N| v.integer().map_or(0, |wide| wide.wrapping_sub(reference) as u64);
    codes.iter_mut().zip(values).for_each(|(to, v)| *to = code(v));
    if let Some(nulls) = nulls {
        let part = codes.iter_mut().zip(first..).take(values.len());
        part.filter(|(_, row)| nulls.is_null(*row)).for_each(|(to, _)| *to = 0);
    }
}

impl Frame {
    /// Opens the section of `rows` codes and proves that each decodes to a value of `data_type`.
    pub fn open(
        data_type: DataType,
        sections: &mut Sections,
        rows: usize,
        reference: i128,
        width: u8,
    ) -> Result<Self, Damage> {
        let width = u32::from(width);
        let at = sections.position();
        let greatest = greatest_code(data_type, reference, width).map_err(|what| Damage::new(at, what))?;
        let packed = sections.take(bitpack::packed_bytes(rows, width))?;
        if !codes_upto(&packed, width, rows, greatest) {
            return Err(Damage::new(at, "a code beyond the range of its type"));
        }
        Ok(Self { packed, reference, width })
    }

    /// Rows `rows` as an Arrow array.
    pub fn read(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        fn read<N: Integer>(
            frame: &Frame,
            data_type: DataType,
            rows: Range<usize>,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            let mut out = Vec::with_capacity(rows.len());
            let reference = N::narrow(frame.reference).ok_or_else(|| wrong_type(data_type, "its frame"))?;
            unpack(&frame.packed, frame.width, rows, reference, &mut [N::default(); VALUES], &mut out);
            N::array(data_type, out.into(), nulls)
        }
        if data_type == DataType::Boolean {
            let bits = BooleanBuffer::new(self.packed.clone(), rows.start, rows.len());
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        dispatch_decoded!(data_type, form, N => read::<N>(self, data_type, rows, nulls),
            else => Err(wrong_type(data_type, "a frame of reference")))
    }

    /// The values at `offsets` as an Arrow array.
    pub fn gather(
        &self,
        (data_type, form): (DataType, Form),
        offsets: &[u32],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        fn collect<N: Integer>(
            frame: &Frame,
            codes: &[u64],
            data_type: DataType,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            let reference = N::narrow(frame.reference).ok_or_else(|| wrong_type(data_type, "its frame"))?;
            let out: Vec<N> = codes.iter().map(|code| reference.plus(*code)).collect();
            N::array(data_type, out.into(), nulls)
        }
        let mut codes = Vec::with_capacity(offsets.len());
        gather::gather_packed(&self.packed, self.width, offsets, &mut codes);
        if data_type == DataType::Boolean {
            let bits = BooleanBuffer::collect_bool(codes.len(), |i| codes[i] == 1);
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        dispatch_decoded!(data_type, form, N => collect::<N>(self, &codes, data_type, nulls),
            else => Err(wrong_type(data_type, "a frame of reference")))
    }

    /// Those of `rows` that `selection` has, `count` of them, without NULLs, as an Arrow array; `None` of booleans.
    pub fn read_selected(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        selection: &[u64],
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        fn read<N: Integer>(
            frame: &Frame,
            data_type: DataType,
            rows: Range<usize>,
            selection: &[u64],
            count: usize,
        ) -> Result<Option<ArrayRef>> {
            let reference = N::narrow(frame.reference).ok_or_else(|| wrong_type(data_type, "its frame"))?;
            let mut out = Vec::with_capacity(count + PLACES_BEHIND);
            let values = &mut [N::default(); VALUES];
            unpack_selected(&frame.packed, frame.width, rows, reference, selection, values, &mut out);
            N::array(data_type, out.into(), None).map(Some)
        }
        if data_type == DataType::Boolean {
            return Ok(None);
        }
        dispatch_decoded!(data_type, form, N => read::<N>(self, data_type, rows, selection, count),
            else => Err(wrong_type(data_type, "a frame of reference")))
    }

    /// The sum of the values of those of `rows` that `selection` has, which are `count`.
    pub fn sum(&self, rows: Range<usize>, selection: &[u64], count: usize) -> i128 {
        let codes = sum_of_codes(&self.packed, self.width, rows, selection);
        self.reference.wrapping_mul(count as i128).wrapping_add(codes)
    }

    /// Value `i`, NULL or not.
    pub fn value(&self, data_type: DataType, i: usize) -> Value {
        decoded(data_type, self.reference, bitpack::get(&self.packed, self.width, i))
    }

    /// Value `i`, of a column whose values fit 64 bits.
    #[inline]
    pub fn whole(&self, i: usize) -> i64 {
        (self.reference as i64).wrapping_add(bitpack::get(&self.packed, self.width, i).cast_signed())
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
        let code = |i: usize| bitpack::get(&self.packed, self.width, i);
        let near = guess(sought, &rows, code);
        let first = partition(near_to(rows.clone(), near, |i| code(i) < sought), |i| code(i) < sought);
        // Keys are mostly distinct: the end is next to the beginning.
        let equal = near_to(first..rows.end, first, |i| code(i) == sought);
        Ok((first, partition(equal, |i| code(i) == sought)))
    }

    /// Rows of `rows` that meet `predicate`, decided on codes; NULL slots come out either way.
    pub fn select(&self, data_type: DataType, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        if data_type == DataType::Boolean {
            let condition = on_booleans(predicate);
            return Ok(select_codes(&self.packed, self.width, rows.start, rows.len(), &condition));
        }
        let condition = dispatch_integer!(data_type,
            N => on_codes(&Condition::<N>::of(predicate)?, self.reference),
            else => return Err(wrong_type(data_type, "a frame of reference")));
        Ok(select_codes(&self.packed, self.width, rows.start, rows.len(), &condition))
    }
}

/// Values behind the last one that filtering may want room for.
pub(super) const PLACES_BEHIND: usize = 16;

/// Values that are unpacked at a time before they go on, in a place of the caller's: a multiple of 64, that the first
/// cache has room for.
const VALUES: usize = 1024;

/// Appends `reference` plus the codes of `rows`. To clear the room for them first would cost more than the copy.
fn unpack<N: Integer>(
    packed: &[u8],
    width: u32,
    rows: Range<usize>,
    reference: N,
    values: &mut [N; VALUES],
    out: &mut Vec<N>,
) {
    for start in rows.clone().step_by(VALUES) {
        let values = values.get_mut(..VALUES.min(rows.end - start)).unwrap_or_default();
        N::unpack(packed, width, start, reference, values);
        out.extend_from_slice(values);
    }
}

/// Appends `reference` plus the codes of those of `rows` that `selection` has.
fn unpack_selected<N: Integer>(
    packed: &[u8],
    width: u32,
    rows: Range<usize>,
    reference: N,
    selection: &[u64],
    values: &mut [N; VALUES],
    out: &mut Vec<N>,
) {
    for (start, selected) in rows.clone().step_by(VALUES).zip(selection.chunks(VALUES / 64)) {
        let values = values.get_mut(..VALUES.min(rows.end - start)).unwrap_or_default();
        N::unpack(packed, width, start, reference, values);
        gather::filter_numbers(values, selected, out);
    }
}

/// The sum of the codes of those of `rows` that `selection` has.
fn sum_of_codes(packed: &[u8], width: u32, rows: Range<usize>, selection: &[u64]) -> i128 {
    if width == 0 {
        return 0;
    }
    let (mut narrow, mut wide) = ([0_u32; VALUES], [0_u64; VALUES]);
    let mut all = 0;
    for (start, selected) in rows.clone().step_by(VALUES).zip(selection.chunks(VALUES / 64)) {
        if bitmap::is_empty(selected) {
            continue;
        }
        let len = VALUES.min(rows.end - start);
        all += if width <= u32::BITS {
            let codes = narrow.get_mut(..len).unwrap_or_default();
            bitpack::unpack_u32(packed, width, start, codes);
            sum::sum_selected_u32(codes, selected)
        } else {
            let codes = wide.get_mut(..len).unwrap_or_default();
            bitpack::unpack_u64(packed, width, start, codes);
            sum::sum_selected_u64(codes, selected)
        };
    }
    all.cast_signed()
}

/// The greatest code that `data_type` allows over `reference`, or what is wrong with the frame.
fn greatest_code(data_type: DataType, reference: i128, width: u32) -> Result<u64, &'static str> {
    fn of<N: Integer>(reference: i128, width: u32) -> Option<u64> {
        if width > N::WIDTH_MAX {
            return None;
        }
        let room = N::GREATEST.wide().checked_sub(N::narrow(reference)?.wide());
        Some(room.map_or(u64::MAX, |room| u64::try_from(room).unwrap_or(u64::MAX)))
    }
    let greatest = dispatch_integer!(data_type, N => of::<N>(reference, width), else => None);
    let greatest = greatest.ok_or("a frame of reference that its type cannot have")?;
    if data_type == DataType::Boolean && (reference, width) != (0, 1) {
        return Err("booleans that are no bitmap");
    }
    Ok(greatest)
}

fn decoded(data_type: DataType, reference: i128, code: u64) -> Value {
    let wide = reference.wrapping_add(i128::from(code));
    match data_type {
        DataType::Boolean => Value::Boolean(wide != 0),
        DataType::Decimal { .. } => Value::Decimal(wide),
        _ => Value::Int(wide as i64),
    }
}

/// The value of `code`, one of `width` bits over `reference` in the section that begins at byte `at`.
pub(crate) fn value_of(
    data_type: DataType,
    reference: i128,
    width: u32,
    code: u64,
    at: usize,
) -> Result<Value, Damage> {
    match greatest_code(data_type, reference, width) {
        Ok(greatest) if code <= greatest => Ok(decoded(data_type, reference, code)),
        Ok(_) => Err(Damage::new(at, "a code beyond the range of its type")),
        Err(what) => Err(Damage::new(at, what)),
    }
}

/// Where `sought` would stand among the ascending codes of `rows` if they were evenly spread: keys often are, and each
/// look at a code far from the last one costs a cache miss.
fn guess(sought: u64, rows: &Range<usize>, code: impl Fn(usize) -> u64) -> usize {
    let Some(last) = rows.len().checked_sub(1) else { return rows.start };
    let (least, greatest) = (code(rows.start), code(rows.start + last));
    if sought <= least || greatest <= least {
        return rows.start;
    }
    let share = (sought.min(greatest) - least) as f64 / (greatest - least) as f64;
    rows.start + ((share * last as f64) as usize).min(last)
}

/// A part of `range` in which the first row that is not `before` stands, or its end, found in steps that double from
/// `near`.
fn near_to(range: Range<usize>, near: usize, before: impl Fn(usize) -> bool) -> Range<usize> {
    if range.is_empty() {
        return range;
    }
    let near = near.clamp(range.start, range.end - 1);
    let mut step = 8;
    if before(near) {
        let mut low = near + 1;
        while low < range.end {
            let probe = low.saturating_add(step).min(range.end) - 1;
            if !before(probe) {
                return low..probe;
            }
            low = probe + 1;
            step *= 2;
        }
        return range.end..range.end;
    }
    let mut high = near;
    while high > range.start {
        let probe = high.saturating_sub(step).max(range.start);
        if before(probe) {
            return probe + 1..high;
        }
        high = probe;
        step *= 2;
    }
    range.start..range.start
}

/// Whether the first `rows` codes are all at most `greatest`.
pub(crate) fn codes_upto(packed: &[u8], width: u32, rows: usize, greatest: u64) -> bool {
    if width == 0 || (width < 64 && greatest >= (1 << width) - 1) || greatest == u64::MAX {
        return true;
    }
    let mut within = vec![0; bitmap::words(rows)];
    compare::select_range(packed, width, 0, rows, 0, greatest, &mut within);
    bitmap::count_ones(&within) == rows
}

/// `predicate` on booleans, as a condition on their codes 0 and 1.
fn on_booleans(predicate: &Predicate) -> Condition<u64> {
    match [false, true].map(|b| predicate.matches(&Value::Boolean(b))) {
        [false, false] => Condition::Never,
        [true, true] => Condition::Always,
        [_, holds_for_true] => Condition::Within(u64::from(holds_for_true), u64::from(holds_for_true)),
    }
}

/// `condition` on values, as one on values less `reference`.
fn on_codes<N: Integer>(condition: &Condition<N>, reference: i128) -> Condition<u64> {
    let within = |low: N, high: N| {
        let low = low.wide().saturating_sub(reference).max(0);
        let high = high.wide().saturating_sub(reference);
        match (u64::try_from(low), u64::try_from(high)) {
            (Ok(low), Ok(high)) => Some((low, high)),
            (Ok(low), Err(_)) if high > 0 => Some((low, u64::MAX)),
            _ => None,
        }
    };
    match condition {
        Condition::Never => Condition::Never,
        Condition::Always => Condition::Always,
        Condition::Within(low, high) => {
            within(*low, *high).map_or(Condition::Never, |(low, high)| Condition::Within(low, high))
        }
        Condition::Outside(low, high) => {
            within(*low, *high).map_or(Condition::Always, |(low, high)| Condition::Outside(low, high))
        }
        Condition::OneOf(listed) => Condition::OneOf(
            listed.iter().filter_map(|v| u64::try_from(v.wide().saturating_sub(reference)).ok()).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However uneven the values: the same as counting.
        #[test]
        fn equal_range_is_where_the_values_are(
            mut values in proptest::collection::vec(prop_oneof![0_i64..50, 1_000_000_i64..1_000_100, Just(-7)], 1..300),
            sought in prop_oneof![-10_i64..60, 999_990_i64..1_000_110],
            cut in 0_usize..300,
        ) {
            values.sort_unstable();
            let least = values[0];
            let width = bitpack::bits_needed((values[values.len() - 1] - least) as u64);
            let mut body = Vec::new();
            bitpack::pack(&values.iter().map(|v| (v - least) as u64).collect::<Vec<_>>(), width, &mut body);
            let frame = Frame { packed: Buffer::from_vec(body), reference: least.into(), width };
            let rows = cut.min(values.len())..values.len();
            let (first, end) = frame.equal_range(&Value::Int(sought), rows.clone()).unwrap();
            let below = values[rows.clone()].iter().filter(|v| **v < sought).count();
            let upto = values[rows.clone()].iter().filter(|v| **v <= sought).count();
            prop_assert_eq!((first, end), (rows.start + below, rows.start + upto));
        }
    }
}
