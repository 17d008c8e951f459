//! One column of a batch, as fields are made of it.
//!
//! A value that has no byte which means something else, and cannot be taken for NULL, is written as it is. Whether
//! that is so of a type is known from the few bytes that its texts are made of. All other columns become texts first.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use mainstem_kernels::to_text::{day, push_decimal, push_hex, push_i64, push_time};
use mainstem_postgres::cast::{double_text, inside, real_text};
use mainstem_postgres::types::{Date, MICROS_OF_DAY, Timestamp, TimestampTz, UUID, civil_from_days};
use mainstem_storage::Result;

use super::LineFormat;
use crate::sql::CsvOptions;

/// A column.
pub(super) struct Field<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

/// Its values.
enum Values<'a> {
    Boolean(&'a BooleanArray),
    SmallInt(&'a [i16]),
    Integer(&'a [i32]),
    BigInt(&'a [i64]),
    Real(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128], u8),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp(&'a [i64]),
    TimestampTz(&'a [i64]),
    Uuid(&'a FixedSizeBinaryArray),
    /// What stands before their digits, and they.
    Bytes(&'static [u8], &'a BinaryViewArray),
    /// To be quoted or escaped where they need it.
    Text(&'a StringViewArray),
    /// The same, made of something else.
    MadeText(StringViewArray),
}

impl<'a> Field<'a> {
    /// The fields of `column` in lines of `format`.
    ///
    /// # Errors
    /// 0A000 for a type that has no text.
    pub(super) fn new(column: &'a ArrayRef, format: &LineFormat) -> Result<Self> {
        let values = match (column.as_string_view_opt(), plain_values(column, format)) {
            (Some(texts), _) => Values::Text(texts),
            (None, Some(plain)) => plain,
            (None, None) => Values::MadeText(inside(column)?),
        };
        let nulls = match values {
            // Theirs are those of the text: another type may have NULLs of another kind.
            Values::MadeText(_) => None,
            _ => column.nulls().filter(|nulls| nulls.null_count() > 0),
        };
        Ok(Self { nulls, values })
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        match &self.values {
            Values::MadeText(texts) => texts.is_null(row),
            _ => self.nulls.is_some_and(|nulls| nulls.is_null(row)),
        }
    }

    /// Appends the value of `row`, which is not NULL.
    #[inline]
    pub(super) fn push(&self, row: usize, format: &LineFormat, out: &mut Vec<u8>) {
        match &self.values {
            Values::Boolean(flags) => out.push(if flags.value(row) { b't' } else { b'f' }),
            Values::SmallInt(numbers) => push_i64(out, at(numbers, row).into()),
            Values::Integer(numbers) => push_i64(out, at(numbers, row).into()),
            Values::BigInt(numbers) => push_i64(out, at(numbers, row)),
            Values::Real(numbers) => out.extend_from_slice(real_text(at(numbers, row)).as_bytes()),
            Values::Double(numbers) => out.extend_from_slice(double_text(at(numbers, row)).as_bytes()),
            Values::Decimal(digits, scale) => push_decimal(out, at(digits, row), *scale),
            Values::Date(days) => push_date(out, at(days, row)),
            Values::Time(micros) => push_time(out, at(micros, row).unsigned_abs()),
            Values::Timestamp(micros) => push_timestamp(out, at(micros, row), ""),
            Values::TimestampTz(micros) => push_timestamp(out, at(micros, row), "+00"),
            Values::Uuid(uuids) => push_uuid(out, uuids.value(row)),
            Values::Bytes(prefix, values) => {
                out.extend_from_slice(prefix);
                push_hex(out, values.value(row));
            }
            Values::Text(texts) => format.text(texts.value(row), out),
            Values::MadeText(texts) => format.text(texts.value(row), out),
        }
    }
}

#[inline]
fn at<T: Copy + Default>(values: &[T], row: usize) -> T {
    values.get(row).copied().unwrap_or_default()
}

/// The values of `column`, if all of them may be written as they are.
fn plain_values<'a>(column: &'a ArrayRef, format: &LineFormat) -> Option<Values<'a>> {
    let (values, bytes) = typed_values(column, format)?;
    is_plain(bytes, format).then_some(values)
}

/// The values of `column` by their type, and the bytes that their texts may have.
fn typed_values<'a>(column: &'a ArrayRef, format: &LineFormat) -> Option<(Values<'a>, &'static [u8])> {
    const WHOLE: &[u8] = b"-0123456789";
    const FLOAT: &[u8] = b"+-.0123456789eNaInfity";
    const MOMENT: &[u8] = b"+-.: 0123456789BC";
    Some(match column.data_type() {
        DataType::Boolean => (Values::Boolean(column.as_boolean_opt()?), b"tf"),
        DataType::Int16 => (Values::SmallInt(column.as_primitive_opt::<Int16Type>()?.values()), WHOLE),
        DataType::Int32 => (Values::Integer(column.as_primitive_opt::<Int32Type>()?.values()), WHOLE),
        DataType::Int64 => (Values::BigInt(column.as_primitive_opt::<Int64Type>()?.values()), WHOLE),
        DataType::Float32 => (Values::Real(column.as_primitive_opt::<Float32Type>()?.values()), FLOAT),
        DataType::Float64 => (Values::Double(column.as_primitive_opt::<Float64Type>()?.values()), FLOAT),
        DataType::Decimal128(_, scale @ 0..=38) => {
            let digits: &PrimitiveArray<Decimal128Type> = column.as_primitive_opt()?;
            (Values::Decimal(digits.values(), scale.unsigned_abs()), b"-.0123456789")
        }
        DataType::Date32 => (Values::Date(column.as_primitive_opt::<Date32Type>()?.values()), MOMENT),
        DataType::Time64(TimeUnit::Microsecond) => {
            let times: &PrimitiveArray<Time64MicrosecondType> = column.as_primitive_opt()?;
            // What is no time of day is an error of its own.
            let are_times = times.iter().flatten().all(|micros| (0..MICROS_OF_DAY).contains(&micros));
            (Values::Time(are_times.then_some(times.values())?), MOMENT)
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.values();
            let values = if zone.is_some() { Values::TimestampTz(micros) } else { Values::Timestamp(micros) };
            (values, MOMENT)
        }
        uuid if *uuid == UUID => (Values::Uuid(column.as_fixed_size_binary_opt()?), b"-0123456789abcdef"),
        DataType::BinaryView => {
            let values = column.as_binary_view_opt()?;
            match format {
                LineFormat::Csv(_) => (Values::Bytes(b"\\x", values), b"\\x0123456789abcdef"),
                LineFormat::Text(_) => (Values::Bytes(b"\\\\x", values), b"x0123456789abcdef"),
            }
        }
        _ => return None,
    })
}

/// Whether texts made of `bytes` stand for themselves in lines of `format`.
fn is_plain(bytes: &[u8], format: &LineFormat) -> bool {
    let null = format.null().as_bytes();
    let is_null = !null.is_empty() && null.iter().all(|byte| bytes.contains(byte));
    let special: &[u8] = match format {
        LineFormat::Csv(CsvOptions { delimiter, quote, escape, .. }) => &[*delimiter, *quote, *escape],
        // NULL is not told from a text that looks like it.
        LineFormat::Text(options) => return !bytes.contains(&options.delimiter),
    };
    !is_null && !special.iter().any(|byte| bytes.contains(byte))
}

/// Year, month and day, if the year has four digits.
#[inline]
fn four_digits(days: i64) -> Option<[u8; 10]> {
    let (year, month, of_month) = civil_from_days(days);
    let year = u32::try_from(year).ok().filter(|year| (1..=9_999).contains(year))?;
    Some(day(year, month, of_month))
}

#[inline]
fn push_date(out: &mut Vec<u8>, days: i32) {
    match four_digits(days.into()) {
        Some(text) => out.extend_from_slice(&text),
        None => out.extend_from_slice(Date::from_days(days).to_string().as_bytes()),
    }
}

#[inline]
fn push_timestamp(out: &mut Vec<u8>, micros: i64, zone: &str) {
    if let Some(text) = four_digits(micros.div_euclid(MICROS_OF_DAY)) {
        out.extend_from_slice(&text);
        out.push(b' ');
        push_time(out, micros.rem_euclid(MICROS_OF_DAY).unsigned_abs());
        out.extend_from_slice(zone.as_bytes());
        return;
    }
    let text = if zone.is_empty() {
        Timestamp::from_micros(micros).to_string()
    } else {
        TimestampTz::from_micros(micros).to_string()
    };
    out.extend_from_slice(text.as_bytes());
}

#[inline]
fn push_uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut from = 0;
    for (part, to) in [4, 6, 8, 10, 16].into_iter().enumerate() {
        if part > 0 {
            out.push(b'-');
        }
        push_hex(out, bytes.get(from..to).unwrap_or_default());
        from = to;
    }
}
