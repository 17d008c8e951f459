//! The choice of an encoding: the smallest by computed size. What is only a little larger but cheaper to read wins
//! ties: constant, frame of reference, plain, dictionary.
//!
//! 1. One pass over the valid values finds least, greatest and sum.
//! 2. The sizes of constant, frame of reference and plain follow from them.
//! 3. Distinct values are collected only as long as a dictionary of them would still be smaller, and only if a sample
//!    of the rows does not say that there will be more.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use mainstem_kernels::{bitmap, bitpack};

use super::native::{Native, dispatch, wrong_type};
use super::sections::begin_section;
use super::{Encoding, constant, dictionary, frame, plain};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::limits;
use crate::row::Value;
use crate::schema::DataType;

/// Most bytes of text in one block: views have 31-bit offsets.
const HEAP_BYTES_MAX: usize = i32::MAX as usize;

const _: () = assert!(limits::SEGMENT_ROWS_MAX <= 1 << 31, "the sum of a segment's 32-bit integers fits 64 bits");

/// A column, encoded.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// How.
    pub encoding: Encoding,
    /// NULL rows.
    pub null_count: u32,
    /// The bitmap of rows that are not NULL, unless all or none are, and the sections of the encoding. Empty when the
    /// metadata says it all.
    pub body: Vec<u8>,
    /// Least and greatest value; NULL without any.
    pub bounds: (Value, Value),
    /// Distinct values, where the encoding knows them.
    pub distinct: Option<u32>,
    /// The sum of the values, of integers and unscaled decimals, unless it overflows.
    pub sum: Option<i128>,
}

/// Encodes `array`, of type `data_type.arrow()`.
///
/// # Errors
/// Internal for another type; Full when texts exceed 2 GiB.
pub(crate) fn encode(data_type: DataType, array: &ArrayRef) -> Result<Encoded> {
    if *array.data_type() != data_type.arrow() {
        return Err(wrong_type(data_type, &array.data_type().to_string()));
    }
    let nulls = array.nulls().filter(|n| n.null_count() > 0);
    let null_count = array.null_count();
    let mut body = Vec::new();
    if let Some(nulls) = nulls.filter(|n| n.null_count() < n.len()) {
        encode_validity(nulls, &mut body);
    }
    let mut encoded = Encoded {
        encoding: Encoding::Constant { value: Value::Null },
        null_count: null_count as u32,
        body,
        bounds: (Value::Null, Value::Null),
        distinct: Some(0),
        sum: None,
    };
    if null_count == array.len() {
        return Ok(encoded);
    }
    dispatch!(data_type,
    N => {
        let values = N::values_of(array.as_ref()).ok_or_else(|| wrong_type(data_type, "numbers"))?;
        encode_numbers::<N>(data_type, &values, nulls, &mut encoded);
    },
    boolean => encode_booleans(array, nulls, &mut encoded),
    bytes => encode_texts(data_type, &texts_of(data_type, array), nulls, &mut encoded)?);
    Ok(encoded)
}

/// The texts of `array`, empty for NULL.
fn texts_of(data_type: DataType, array: &ArrayRef) -> Vec<&[u8]> {
    let present = |i: usize| array.is_valid(i);
    if let DataType::Bytea = data_type {
        let views = array.as_binary_view();
        return (0..views.len()).map(|i| if present(i) { views.value(i) } else { &[] }).collect();
    }
    let views = array.as_string_view();
    (0..views.len()).map(|i| if present(i) { views.value(i).as_bytes() } else { &[] }).collect()
}

/// The bitmap of rows that are not NULL, in whole words.
fn encode_validity(nulls: &NullBuffer, body: &mut Vec<u8>) {
    begin_section(body);
    body.extend(nulls.inner().sliced().iter().take(nulls.len().div_ceil(8)));
    // Bits behind the last row are zero in the file, whatever Arrow has there.
    if let (Some(last), tail @ 1..) = (body.last_mut(), nulls.len() % 8) {
        *last &= (1u8 << tail) - 1;
    }
    body.resize(bitmap::words(nulls.len()) * 8, 0);
}

fn encode_booleans(array: &ArrayRef, nulls: Option<&NullBuffer>, encoded: &mut Encoded) {
    let bits = array.as_boolean().values();
    let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
    let any = |wanted: bool| bits.iter().enumerate().any(|(i, b)| b == wanted && valid(i));
    let (least, greatest) = (!any(false), any(true));
    encoded.bounds = (Value::Boolean(least), Value::Boolean(greatest));
    if least == greatest {
        encoded.encoding = Encoding::Constant { value: Value::Boolean(least) };
        encoded.distinct = Some(1);
    } else {
        let values: Vec<i16> = bits.iter().map(i16::from).collect();
        frame::encode(&values, valid, 0, 1, &mut encoded.body);
        encoded.encoding = Encoding::FrameOfReference { reference: 0, width: 1 };
        encoded.distinct = Some(2);
    }
}

fn encode_numbers<N: Native>(data_type: DataType, values: &[N], nulls: Option<&NullBuffer>, encoded: &mut Encoded) {
    let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
    // One form for equal values, 0 for NULL.
    let values: Vec<N> =
        values.iter().enumerate().map(|(i, v)| if valid(i) { v.normalised() } else { N::default() }).collect();
    let extremes = match nulls {
        None => extremes_of_all(&values),
        Some(_) => extremes(&values, valid),
    };
    let Some((least, greatest)) = extremes else { return };
    encoded.bounds = (least.value(), greatest.value());
    encoded.sum = sum_of(data_type, &values);
    if least.order(greatest).is_eq() {
        encoded.encoding = Encoding::Constant { value: least.value() };
        encoded.distinct = Some(1);
        return;
    }
    let plain_bytes = plain::number_bytes::<N>(values.len());
    let width = frame::width_of(least, greatest);
    let packed = width.map(|width| bitpack::packed_bytes(values.len(), width));
    let budget = packed.map_or(plain_bytes, |packed| packed.min(plain_bytes));
    let distinct_max = dictionary::distinct_max(values.len(), size_of::<N>(), budget);
    if distinct_max > 1
        && dictionary::may_be_few(&values, valid, distinct_max)
        && let Some(found) = dictionary::distinct_numbers(present(&values, nulls), distinct_max)
        && dictionary::code_bytes(values.len(), found.values.len()) + plain::number_bytes::<N>(found.values.len())
            < budget
    {
        let distinct = found.values.len();
        let width = dictionary::encode_codes(&found.codes, distinct, &mut encoded.body);
        plain::encode_numbers(&found.values, &mut encoded.body);
        encoded.distinct = Some(distinct as u32);
        encoded.encoding = Encoding::Dictionary { distinct: distinct as u32, width, length_width: 0 };
        return;
    }
    encoded.distinct = None;
    match (least.integer(), width) {
        (Some(reference), Some(width)) if packed.is_some_and(|packed| packed < plain_bytes) => {
            frame::encode(&values, valid, reference, width, &mut encoded.body);
            encoded.encoding = Encoding::FrameOfReference { reference, width: width as u8 };
        }
        _ => {
            plain::encode_numbers(&values, &mut encoded.body);
            encoded.encoding = Encoding::Plain { length_width: 0 };
        }
    }
}

/// The values with `None` for NULL.
fn present<'a, T: Copy>(
    values: &'a [T],
    nulls: Option<&'a NullBuffer>,
) -> impl ExactSizeIterator<Item = Option<T>> + 'a {
    values.iter().enumerate().map(move |(i, v)| nulls.is_none_or(|n| n.is_valid(i)).then_some(*v))
}

/// Least and greatest of the valid values.
fn extremes<N: Native>(values: &[N], valid: impl Fn(usize) -> bool) -> Option<(N, N)> {
    let first = (0..values.len()).find(|i| valid(*i))?;
    let (mut least, mut greatest) = (values[first], values[first]);
    for (_, value) in values.iter().enumerate().skip(first).filter(|(i, _)| valid(*i)) {
        least = if value.order(least).is_lt() { *value } else { least };
        greatest = if value.order(greatest).is_gt() { *value } else { greatest };
    }
    Some((least, greatest))
}

/// As [`extremes`], where all values are valid: a loop without branches.
fn extremes_of_all<N: Native>(values: &[N]) -> Option<(N, N)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(least, greatest), value| {
        let least = if value.order(least).is_lt() { *value } else { least };
        let greatest = if value.order(greatest).is_gt() { *value } else { greatest };
        (least, greatest)
    }))
}

/// The sum of integers or unscaled decimals that are not NULL, unless it overflows.
fn sum_of<N: Native>(data_type: DataType, values: &[N]) -> Option<i128> {
    if !matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Decimal { .. }) {
        return None;
    }
    // NULL slots were made 0. A segment has too few rows for these sums to overflow.
    match size_of::<N>() {
        0..=4 => {
            return Some(values.iter().map(|value| value.integer().map_or(0, |wide| wide as i64)).sum::<i64>().into());
        }
        5..=8 => return Some(values.iter().map(|value| value.integer().unwrap_or(0)).sum()),
        _ => {}
    }
    values.iter().try_fold(0i128, |sum, value| sum.checked_add(value.integer()?))
}

fn encode_texts(data_type: DataType, texts: &[&[u8]], nulls: Option<&NullBuffer>, encoded: &mut Encoded) -> Result<()> {
    let all = || present(texts, nulls).flatten();
    let (Some(least), Some(greatest)) = (all().min(), all().max()) else { return Ok(()) };
    let value = |text: &[u8]| match data_type {
        DataType::Text { .. } | DataType::Char { .. } => {
            std::str::from_utf8(text).map(|t| Value::Text(t.into())).map_err(|e| Error::internal(e.to_string()))
        }
        _ => Ok(Value::Bytes(text.into())),
    };
    encoded.bounds = (value(least)?, value(greatest)?);
    if least == greatest && least.len() <= constant::CONSTANT_BYTES_MAX {
        encoded.encoding = Encoding::Constant { value: value(least)? };
        encoded.distinct = Some(1);
        return Ok(());
    }
    let heap: usize = texts.iter().map(|t| t.len()).sum();
    let length_max = texts.iter().map(|t| t.len()).max().unwrap_or(0);
    let budget = plain::text_bytes(texts.len(), length_max, heap);
    if let Some(found) = dictionary::distinct_texts(present(texts, nulls), budget)
        && dictionary::text_bytes(texts.len(), &found.values) < budget
    {
        check_heap(found.values.iter().map(|t| t.len()).sum())?;
        let distinct = found.values.len();
        let width = dictionary::encode_codes(&found.codes, distinct, &mut encoded.body);
        let length_width = plain::encode_texts(&found.values, &mut encoded.body);
        encoded.distinct = Some(distinct as u32);
        encoded.encoding = Encoding::Dictionary { distinct: distinct as u32, width, length_width };
        return Ok(());
    }
    check_heap(heap)?;
    encoded.distinct = None;
    encoded.encoding = Encoding::Plain { length_width: plain::encode_texts(texts, &mut encoded.body) };
    Ok(())
}

fn check_heap(bytes: usize) -> Result<()> {
    if bytes <= HEAP_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Full,
        sqlstate::OUT_OF_MEMORY,
        format!("{bytes} bytes of text do not fit one segment; write fewer rows to a segment"),
    ))
}
