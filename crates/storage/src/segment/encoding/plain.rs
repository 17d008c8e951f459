//! Plain: the values as they are. Numbers at full width; text and bytes as bit-packed lengths and one heap.
//!
//! Sections: numbers: the values. Text and bytes: lengths (packed at `length_width` bits), where in the heap each group
//! of [`GROUP`] values but the first begins, heap. NULL slots hold 0 or nothing. In memory text and bytes are Arrow
//! view arrays onto the heap, made once when the block is opened; reading a range is a slice. A dictionary keeps its
//! values in this form too.
//!
//! With a table of symbols ([`super::fsst`]), in a section of its own before the heap, lengths and heap are those of
//! codes. They are decoded when the block is opened.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::ByteViewType;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, GenericByteViewArray, StringArray, StringViewArray, UInt32Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use mainstem_kernels::fsst::{Symbols, TEXT_BYTES_MAX};
use mainstem_kernels::{bitmap, bitpack, cast, gather, sum};

use super::condition::{Condition, wrong_constant};
use super::form::Form;
use super::native::{Native, Place};
use super::sections::{Damage, Sections, begin_section, make_room, padded};
use crate::error::{Error, Result};
use crate::predicate::{CompareOp, Predicate};
use crate::row::Value;
use crate::schema::DataType;

/// Values at full width.
#[derive(Debug)]
pub(crate) enum Plain {
    SmallInt(ScalarBuffer<i16>),
    Int(ScalarBuffer<i32>),
    BigInt(ScalarBuffer<i64>),
    Decimal(ScalarBuffer<i128>),
    Real(ScalarBuffer<f32>),
    Double(ScalarBuffer<f64>),
    Uuid(ScalarBuffer<u128>),
    Text(StringViewArray),
    Bytes(BinaryViewArray),
}

/// Runs one expression for whichever number buffer this is, another for whichever view array.
macro_rules! each {
    ($plain:expr, $numbers:ident => $number:expr, $views:ident => $view:expr) => {
        match $plain {
            Plain::SmallInt($numbers) => $number,
            Plain::Int($numbers) => $number,
            Plain::BigInt($numbers) => $number,
            Plain::Decimal($numbers) => $number,
            Plain::Real($numbers) => $number,
            Plain::Double($numbers) => $number,
            Plain::Uuid($numbers) => $number,
            Plain::Text($views) => $view,
            Plain::Bytes($views) => $view,
        }
    };
}

/// Values of a group of texts: to find one of them, its group's lengths are added up, a kilobyte at most; and to say
/// where a group begins takes a bit for each eight values.
pub(crate) const GROUP: usize = 256;

/// Groups of `count` texts besides the first.
pub(crate) fn groups_after_first(count: usize) -> usize {
    count.saturating_sub(1) / GROUP
}

/// Bytes that `count` numbers take.
pub(crate) fn number_bytes<N: Native>(count: usize) -> usize {
    count * size_of::<N>()
}

/// Bytes that texts take: their packed lengths, the beginnings of groups and the heap.
pub(crate) fn text_bytes(count: usize, length_max: usize, heap: usize) -> usize {
    padded(bitpack::packed_bytes(count, bitpack::bits_needed(length_max as u64)))
        + padded(groups_after_first(count) * size_of::<u32>())
        + heap
}

/// Appends the section of `values`.
pub(crate) fn encode_numbers<N: Native>(values: &[N], body: &mut Vec<u8>) {
    make_room(body, size_of_val(values));
    begin_section(body);
    cast::to_le_bytes(values, body);
}

/// How texts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextForm {
    /// Bits of the length of a text, or of its codes.
    pub length_width: u8,
    /// Bytes of the table of symbols; 0 where bytes stand for themselves.
    pub symbol_bytes: u16,
}

impl TextForm {
    /// What numbers have.
    const NUMBERS: Self = Self { length_width: 0, symbol_bytes: 0 };

    /// Proves that `data_type` may have it, in the section at byte `at`.
    pub fn check(self, data_type: DataType, at: usize) -> Result<(), Damage> {
        if !data_type.is_text() && data_type != DataType::Bytea && self != Self::NUMBERS {
            return Err(Damage::new(at, "numbers with a width of lengths, or symbols"));
        }
        if self.length_width > 31 {
            return Err(Damage::new(at, "lengths of more than 31 bits"));
        }
        Ok(())
    }
}

/// Appends the sections of `lengths` and of the beginnings of groups, and returns the width of a length.
pub(crate) fn write_lengths(lengths: &[u64], body: &mut Vec<u8>) -> u8 {
    let width = bitpack::bits_needed(lengths.iter().copied().max().unwrap_or(0));
    begin_section(body);
    bitpack::pack(lengths, width, body);
    begin_section(body);
    let mut begin = 0;
    for group in lengths.chunks(GROUP).take(groups_after_first(lengths.len())) {
        begin += group.iter().sum::<u64>();
        body.extend_from_slice(&(begin as u32).to_le_bytes());
    }
    width as u8
}

/// Appends the sections of `values` and returns the width of a length.
pub(crate) fn encode_texts(values: &[&[u8]], body: &mut Vec<u8>) -> u8 {
    let lengths: Vec<u64> = values.iter().map(|v| v.len() as u64).collect();
    let length_max = lengths.iter().copied().max().unwrap_or(0) as usize;
    make_room(body, text_bytes(values.len(), length_max, values.iter().map(|v| v.len()).sum()));
    let width = write_lengths(&lengths, body);
    begin_section(body);
    for value in values {
        body.extend_from_slice(value);
    }
    width
}

impl Plain {
    /// Opens the sections of `count` values, the last ones of the block. `nulls` are kept by text and bytes only.
    pub fn open(
        data_type: DataType,
        sections: &mut Sections,
        count: usize,
        form: TextForm,
        nulls: Option<&NullBuffer>,
    ) -> Result<Self, Damage> {
        form.check(data_type, sections.position())?;
        macro_rules! numbers {
            ($variant:ident, $t:ty) => {
                Self::$variant(ScalarBuffer::new(sections.take(count * size_of::<$t>())?, 0, count))
            };
        }
        Ok(match data_type {
            DataType::Boolean => return Err(Damage::new(0, "plain booleans")),
            DataType::SmallInt => numbers!(SmallInt, i16),
            DataType::Integer | DataType::Date => numbers!(Int, i32),
            DataType::BigInt | DataType::Time | DataType::Timestamp | DataType::TimestampTz => numbers!(BigInt, i64),
            DataType::Decimal { .. } => numbers!(Decimal, i128),
            DataType::Real => numbers!(Real, f32),
            DataType::Double => numbers!(Double, f64),
            DataType::Uuid => numbers!(Uuid, u128),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Bytea => {
                Self::open_views(data_type, sections, count, form, nulls.cloned())?
            }
        })
    }

    fn open_views(
        data_type: DataType,
        sections: &mut Sections,
        count: usize,
        form: TextForm,
        nulls: Option<NullBuffer>,
    ) -> Result<Self, Damage> {
        let width = u32::from(form.length_width);
        let packed = sections.take(bitpack::packed_bytes(count, width))?;
        let mut lengths = vec![0u32; count];
        bitpack::unpack_u32(&packed, width, 0, &mut lengths);
        let at = sections.position();
        let groups = sections.take(groups_after_first(count) * size_of::<u32>())?;
        let symbols = match usize::from(form.symbol_bytes) {
            0 => None,
            bytes => {
                let table = Symbols::from_bytes(&sections.take(bytes)?);
                Some(table.ok_or_else(|| Damage::new(at, "a table of symbols that is none"))?)
            }
        };
        let mut heap = sections.rest();
        let mut offsets = Vec::with_capacity(count + 1);
        let mut end = 0u64;
        offsets.push(0i32);
        for length in &lengths {
            end += u64::from(*length);
            offsets.push(i32::try_from(end).map_err(|_| Damage::new(at, "lengths of more than 2 GiB"))?);
        }
        if end != heap.len() as u64 {
            return Err(Damage::new(at, format!("lengths add up to {end} bytes, the heap has {}", heap.len())));
        }
        let begins = offsets.iter().skip(GROUP).step_by(GROUP).map(|begin| begin.cast_unsigned().to_le_bytes());
        if !groups.as_chunks().0.iter().copied().eq(begins.take(groups_after_first(count))) {
            return Err(Damage::new(at, "the beginnings of groups disagree with the lengths"));
        }
        if let Some(symbols) = symbols {
            let mut texts = Vec::with_capacity((heap.len() * 3).min(TEXT_BYTES_MAX));
            offsets.truncate(1);
            if !symbols.decode_all(&heap, &lengths, &mut texts, &mut offsets) {
                return Err(Damage::new(at, "codes of texts that have no symbols, or of more than 2 GiB"));
            }
            texts.shrink_to_fit();
            heap = Buffer::from_vec(texts);
        }
        let offsets = OffsetBuffer::new(offsets.into());
        let damaged = |e: arrow_schema::ArrowError| Damage::new(at, e.to_string());
        Ok(if data_type == DataType::Bytea {
            Self::Bytes((&BinaryArray::try_new(offsets, heap, nulls).map_err(damaged)?).into())
        } else {
            Self::Text((&StringArray::try_new(offsets, heap, nulls).map_err(damaged)?).into())
        })
    }

    /// Values held.
    pub fn len(&self) -> usize {
        each!(self, numbers => numbers.len(), views => views.len())
    }

    /// Bytes of memory beside the values' own bytes.
    pub fn memory(&self) -> usize {
        each!(self, _numbers => 0, views => views.views().inner().len())
    }

    /// Bytes of the values, where they are not those of the block.
    pub fn value_bytes(&self) -> usize {
        each!(self,
            numbers => numbers.inner().len(),
            views => views.data_buffers().iter().map(Buffer::len).sum())
    }

    /// Rows `rows` as an Arrow array, in place but for narrowed ones. `nulls` are theirs.
    pub fn read(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        if let (Self::Decimal(values), true) = (self, form.narrows(data_type)) {
            let values: Vec<i64> = values.get(rows).unwrap_or_default().iter().map(|digits| *digits as i64).collect();
            return Native::array(data_type, values.into(), nulls);
        }
        each!(self,
            numbers => Native::array(data_type, numbers.slice(rows.start, rows.len()), nulls),
            views => Ok(Arc::new(views.slice(rows.start, rows.len())) as ArrayRef))
    }

    /// The values at `indices` as an Arrow array; those of text and bytes are NULL where `nulls` or the value is, those
    /// of numbers where `nulls` is. Every index must be below [`Plain::len`].
    pub fn take(
        &self,
        (data_type, form): (DataType, Form),
        indices: Vec<u32>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        if let (Self::Decimal(values), true) = (self, form.narrows(data_type)) {
            let value = |index: &u32| values.get(*index as usize).map_or(0, |digits| *digits as i64);
            let out: Vec<i64> = indices.iter().map(value).collect();
            return Native::array(data_type, out.into(), nulls);
        }
        each!(self,
        numbers => {
            let mut out = Vec::with_capacity(indices.len());
            gather::gather(numbers, &indices, &mut out);
            Native::array(data_type, out.into(), nulls)
        },
        views => {
            let indices = UInt32Array::try_new(indices.into(), nulls)?;
            Ok(arrow_select::take::take(views, &indices, None)?)
        })
    }

    /// The sum of the values of those of `rows` that `selection` has; `None` if they are no integers.
    pub fn sum(&self, rows: Range<usize>, selection: &[u64]) -> Option<i128> {
        /// Values that are widened at once: a multiple of 64.
        const VALUES: usize = 1024;
        fn of_all<N: Native>(values: &[N], selection: &[u64], mut of_some: impl FnMut(&[N], &[u64]) -> i128) -> i128 {
            let parts = values.chunks(VALUES).zip(selection.chunks(VALUES / 64));
            parts.fold(0, |all, (some, selected)| all.wrapping_add(of_some(some, selected)))
        }
        // Values without a sign: as codes over the least value of the type.
        let above = |least: i128, codes: u128, selected: &[u64]| {
            least * bitmap::count_ones(selected) as i128 + codes.cast_signed()
        };
        let (mut narrow, mut wide) = ([0_u32; VALUES], [0_u64; VALUES]);
        Some(match self {
            Self::SmallInt(values) => of_all(values.get(rows)?, selection, |some, selected| {
                narrow.iter_mut().zip(some).for_each(|(to, v)| *to = (i32::from(*v) - i32::from(i16::MIN)) as u32);
                let codes = narrow.get(..some.len()).unwrap_or_default();
                above(i16::MIN.into(), sum::sum_selected_u32(codes, selected), selected)
            }),
            Self::Int(values) => of_all(values.get(rows)?, selection, |some, selected| {
                narrow.iter_mut().zip(some).for_each(|(to, v)| *to = v.wrapping_sub(i32::MIN).cast_unsigned());
                let codes = narrow.get(..some.len()).unwrap_or_default();
                above(i32::MIN.into(), sum::sum_selected_u32(codes, selected), selected)
            }),
            Self::BigInt(values) => of_all(values.get(rows)?, selection, |some, selected| {
                wide.iter_mut().zip(some).for_each(|(to, v)| *to = v.wrapping_sub(i64::MIN).cast_unsigned());
                let codes = wide.get(..some.len()).unwrap_or_default();
                above(i64::MIN.into(), sum::sum_selected_u64(codes, selected), selected)
            }),
            Self::Decimal(values) => of_all(values.get(rows)?, selection, |some, selected| {
                let mut all = 0_i128;
                bitmap::for_each_one(selected, |at| all = all.wrapping_add(some.get(at).copied().unwrap_or(0)));
                all
            }),
            Self::Real(_) | Self::Double(_) | Self::Uuid(_) | Self::Text(_) | Self::Bytes(_) => return None,
        })
    }

    /// The sum of the values at those of `indices` that `selection` has; `None` if they are no integers. Indices that
    /// are not there add nothing.
    pub fn sum_at(&self, indices: &[u32], selection: &[u64]) -> Option<i128> {
        fn of_all<N: Native>(values: &[N], indices: &[u32], selection: &[u64], number: impl Fn(N) -> i128) -> i128 {
            let mut all = 0_i128;
            bitmap::for_each_one(selection, |at| {
                let value = indices.get(at).and_then(|index| values.get(*index as usize));
                all = value.map_or(all, |value| all.wrapping_add(number(*value)));
            });
            all
        }
        Some(match self {
            Self::SmallInt(values) => of_all(values, indices, selection, i128::from),
            Self::Int(values) => of_all(values, indices, selection, i128::from),
            Self::BigInt(values) => of_all(values, indices, selection, i128::from),
            Self::Decimal(values) => of_all(values, indices, selection, |value| value),
            Self::Real(_) | Self::Double(_) | Self::Uuid(_) | Self::Text(_) | Self::Bytes(_) => return None,
        })
    }

    /// Value `i` of whole numbers, NULL or not.
    #[inline]
    pub fn whole(&self, i: usize) -> Option<i64> {
        match self {
            Self::SmallInt(values) => values.get(i).map(|v| i64::from(*v)),
            Self::Int(values) => values.get(i).map(|v| i64::from(*v)),
            Self::BigInt(values) => values.get(i).copied(),
            _ => None,
        }
    }

    /// Value `i`, NULL or not.
    pub fn value(&self, i: usize) -> Result<Value> {
        match self {
            Self::Text(views) if i < views.len() => Ok(Value::Text(views.value(i).into())),
            Self::Bytes(views) if i < views.len() => Ok(Value::Bytes(views.value(i).into())),
            _ => each!(self, numbers => numbers.get(i).map(|v| v.value()), _views => None)
                .ok_or_else(|| Error::internal(format!("row {i} is outside its block"))),
        }
    }

    /// Of the ascending values `rows`: where those equal to `value` begin and end.
    ///
    /// # Errors
    /// Internal when `value` is of another type.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> Result<(usize, usize)> {
        fn numbers_equal<N: Native>(all: &[N], value: &Value, rows: &Range<usize>) -> Result<(usize, usize)> {
            let part = all.get(rows.clone()).ok_or_else(|| Error::internal("rows are outside their block"))?;
            let (first, end) = match N::place(value).ok_or_else(|| wrong_constant(value))? {
                Place::Below => (0, 0),
                Place::Above => (part.len(), part.len()),
                Place::At(v) => {
                    let first = part.partition_point(|x| x.order(v).is_lt());
                    (first, first + part[first..].partition_point(|x| x.order(v).is_eq()))
                }
            };
            Ok((rows.start + first, rows.start + end))
        }
        each!(self,
        numbers => numbers_equal(numbers, value, &rows),
        views => {
            let sought = bytes_of(value).ok_or_else(|| wrong_constant(value))?;
            let (start, end) = (rows.start, rows.end.min(views.len()));
            let bytes = |i: usize| bytes_at(views, i);
            let first = partition(start..end, |i| bytes(i) < sought);
            Ok((first, partition(first..end, |i| bytes(i) == sought)))
        })
    }

    /// Rows of `rows` that meet `predicate`; NULL slots come out either way.
    pub fn select(&self, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        fn select_numbers<N: Native>(all: &[N], predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
            let part = all.get(rows).ok_or_else(|| Error::internal("rows are outside their block"))?;
            Ok(Condition::<N>::of(predicate)?.select(part))
        }
        each!(self,
        numbers => select_numbers(numbers, predicate, rows),
        views => {
            let test = TextTest::of(predicate)?;
            let mut out = vec![0; bitmap::words(rows.len())];
            for (at, i) in rows.enumerate() {
                if test.holds(bytes_at(views, i)) {
                    bitmap::set(&mut out, at);
                }
            }
            Ok(out)
        })
    }

    /// Whether the values ascend, each distinct: what a dictionary must.
    pub fn is_strictly_ascending(&self) -> bool {
        each!(self,
        numbers => numbers.windows(2).all(|w| w[0].order(w[1]).is_lt()),
            views => (1..views.len()).all(|i| bytes_at(views, i - 1) < bytes_at(views, i)))
    }
}

/// Of the rows of `array` that `selection` has: how many values are not NULL, and their sum, if it is asked for and
/// they are integers; `None` if they are not. The sum must fit 128 bits.
pub(crate) fn sum_of_array(array: &dyn Array, selection: &[u64], with_sum: bool) -> Option<(u64, i128)> {
    let valid = array.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| {
        let mut valid = selection.to_vec();
        valid.iter_mut().zip(nulls.inner().bit_chunks().iter_padded()).for_each(|(to, bits)| *to &= bits);
        valid
    });
    let selection = valid.as_deref().unwrap_or(selection);
    let count = bitmap::count_ones(selection) as u64;
    if !with_sum || count == 0 {
        return Some((count, 0));
    }
    let values = (i16::values_of(array).map(Plain::SmallInt))
        .or_else(|| i32::values_of(array).map(Plain::Int))
        .or_else(|| i64::values_of(array).map(Plain::BigInt))
        .or_else(|| i128::values_of(array).map(Plain::Decimal))?;
    values.sum(0..array.len(), selection).map(|sum| (count, sum))
}

/// Text or bytes `i`.
#[inline]
fn bytes_at<T: ByteViewType>(views: &GenericByteViewArray<T>, i: usize) -> &[u8] {
    views.value(i).as_ref()
}

/// The first index of `range` for which `before` is false, when it is true for a prefix.
pub(crate) fn partition(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The bytes of a text or bytea value.
pub(crate) fn bytes_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(v) => Some(v.as_bytes()),
        Value::Bytes(v) => Some(v),
        _ => None,
    }
}

/// A predicate on texts or bytes.
enum TextTest<'a> {
    Never,
    Always,
    Compare(CompareOp, &'a [u8]),
    OneOf(Vec<&'a [u8]>),
}

impl<'a> TextTest<'a> {
    fn of(predicate: &'a Predicate) -> Result<Self> {
        let bytes = |value: &'a Value| bytes_of(value).ok_or_else(|| wrong_constant(value));
        Ok(match predicate {
            Predicate::IsNull { .. } | Predicate::Compare { value: Value::Null, .. } => Self::Never,
            Predicate::IsNotNull { .. } => Self::Always,
            Predicate::Compare { op, value, .. } => Self::Compare(*op, bytes(value)?),
            Predicate::In { values, .. } => {
                let mut listed = values.iter().filter(|v| !v.is_null()).map(bytes).collect::<Result<Vec<_>>>()?;
                listed.sort_unstable();
                Self::OneOf(listed)
            }
        })
    }

    #[inline]
    fn holds(&self, value: &[u8]) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Compare(CompareOp::Eq, other) => value == *other,
            Self::Compare(op, other) => op.holds(value.cmp(other)),
            Self::OneOf(listed) => listed.binary_search(&value).is_ok(),
        }
    }
}
