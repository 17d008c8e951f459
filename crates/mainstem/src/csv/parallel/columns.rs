//! Columns of a table from the fields of rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanBufferBuilder, PrimitiveArray, StringArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use mainstem_kernels::csv::{Fields, Quoting, dates, decimals, each, integers, texts, timestamps};
use mainstem_storage::schema::{Column, DataType};

use super::FileRows;
use super::chunk::{Chunk, FoundRows};

/// The columns of the rows `found` in `chunk`; None if something is wrong with one of them, which others can tell.
pub(super) fn columns_of(rows: &FileRows<'_>, chunk: &Chunk, found: &FoundRows) -> Option<Vec<ArrayRef>> {
    if !found.is_regular {
        return None;
    }
    let quoting = Quoting { quote: rows.options.quote, null: rows.options.null.as_bytes() };
    let column = |(at, column): (usize, &Column)| {
        let fields = chunk.fields(found, at);
        let has_zeros = rows.conversion.wants_no_zeros(at) && has_zeros(fields, quoting.quote);
        let plain = if has_zeros { None } else { plain(column.data_type, fields, quoting, found.has_quotes) };
        plain.or_else(|| {
            let text: ArrayRef = Arc::new(text(fields, quoting, found.has_quotes)?);
            rows.conversion.column(at, &text).ok()
        })
    };
    rows.conversion.wanted().map(column).collect()
}

/// Whether one of `fields` has zeros in front of its digits.
fn has_zeros(fields: Fields<'_>, quote: u8) -> bool {
    let of_field = |field: &[u8]| {
        let field = field.strip_prefix(&[quote]).unwrap_or(field);
        matches!(field, [b'0', b'0'..=b'9', ..] | [b'-', b'0', b'0'..=b'9', ..])
    };
    (0..fields.len()).any(|row| of_field(fields.get(row)))
}

/// The values of `fields`, if all have the plainest form of their type.
fn plain(data_type: DataType, fields: Fields<'_>, quoting: Quoting<'_>, has_quotes: bool) -> Option<ArrayRef> {
    let rows = fields.len();
    match data_type {
        DataType::SmallInt => primitive::<Int16Type>(rows, |values, nulls| integers(fields, quoting, values, nulls)),
        DataType::Integer => primitive::<Int32Type>(rows, |values, nulls| integers(fields, quoting, values, nulls)),
        DataType::BigInt => primitive::<Int64Type>(rows, |values, nulls| integers(fields, quoting, values, nulls)),
        DataType::Decimal { precision, scale } => {
            let of_type = (precision, u8::try_from(scale).ok().filter(|scale| *scale <= precision)?);
            let values =
                array::<Decimal128Type>(rows, |values, nulls| decimals(fields, quoting, of_type, values, nulls));
            Some(Arc::new(values?.with_precision_and_scale(precision, scale).ok()?))
        }
        DataType::Date => primitive::<Date32Type>(rows, |values, nulls| dates(fields, quoting, values, nulls)),
        DataType::Timestamp => {
            primitive::<TimestampMicrosecondType>(rows, |values, nulls| timestamps(fields, quoting, values, nulls))
        }
        DataType::Real => primitive::<Float32Type>(rows, |values, nulls| {
            each(fields, quoting, values, nulls, |bytes, start, end| float(bytes.get(start..end)?))
        }),
        DataType::Double => primitive::<Float64Type>(rows, |values, nulls| {
            each(fields, quoting, values, nulls, |bytes, start, end| float(bytes.get(start..end)?))
        }),
        DataType::Text { .. } => Some(Arc::new(StringViewArray::from(&text(fields, quoting, has_quotes)?))),
        _ => None,
    }
}

fn primitive<T: ArrowPrimitiveType>(
    rows: usize,
    read: impl FnOnce(&mut Vec<T::Native>, &mut Vec<u32>) -> bool,
) -> Option<ArrayRef> {
    Some(Arc::new(array::<T>(rows, read)?))
}

fn array<T: ArrowPrimitiveType>(
    rows: usize,
    read: impl FnOnce(&mut Vec<T::Native>, &mut Vec<u32>) -> bool,
) -> Option<PrimitiveArray<T>> {
    let (mut values, mut nulls) = (Vec::new(), Vec::new());
    if !read(&mut values, &mut nulls) {
        return None;
    }
    Some(PrimitiveArray::new(ScalarBuffer::from(values), null_buffer(rows, &nulls)))
}

fn null_buffer(rows: usize, nulls: &[u32]) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    valid.append_n(rows, true);
    nulls.iter().for_each(|row| valid.set_bit(*row as usize, false));
    Some(NullBuffer::new(valid.finish()))
}

/// The texts of `fields`; None if they are no UTF-8, or too long.
fn text(fields: Fields<'_>, quoting: Quoting<'_>, has_quotes: bool) -> Option<StringArray> {
    let (mut heap, mut offsets, mut nulls) = (Vec::new(), vec![0], Vec::new());
    if !texts(fields, quoting, has_quotes, &mut heap, &mut offsets, &mut nulls) {
        return None;
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    StringArray::try_new(offsets, Buffer::from_vec(heap), null_buffer(fields.len(), &nulls)).ok()
}

/// A float that is read exactly.
trait Float: Copy + std::str::FromStr {
    fn is_finite(self) -> bool;
    fn is_zero(self) -> bool;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn is_zero(self) -> bool {
                self == 0.0
            }
        }
    )*};
}

float!(f32, f64);

/// The float that `text` spells in digits, perhaps with a point and an exponent. What is too large or too small for its
/// type is left to others, who refuse it.
fn float<T: Float>(text: &[u8]) -> Option<T> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.last().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    let value: T = if is_plain { std::str::from_utf8(text).ok()?.parse().ok()? } else { return None };
    let is_exact_zero = || digits.iter().all(|byte| matches!(byte, b'0' | b'.'));
    (value.is_finite() && (!value.is_zero() || is_exact_zero())).then_some(value)
}
