//! The choice of an encoding: the smallest by computed size. What is only a little larger but cheaper to read wins
//! ties: constant, frame of reference, plain, dictionary. What has to be decoded, or takes more steps to read, has to
//! save an eighth or more, and half where the column is searched: a search pays for each step at every row it looks at.
//!
//! 1. One pass over the valid values finds least and greatest of each vector of rows, and the sum.
//! 2. The sizes of constant, frame of reference, frames by vector and plain follow from them, that of scaled floats
//!    from encoding them.
//! 3. Distinct values are collected only as long as a dictionary of them would still be smaller, and only if a sample
//!    of the rows does not say that there will be more.
//! 4. [`texts`] has the choice for texts and bytes, whose sizes are estimated from samples.

mod texts;

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use mainstem_kernels::alp::Float;
use mainstem_kernels::{bitmap, bitpack};

use super::super::sketch::DistinctSketch;
use super::frame::VECTOR_ROWS;
use super::frame::vectors::Plan;
use super::native::{Native, dispatch, wrong_type};
use super::sections::begin_section;
use super::{Encoding, alp, dictionary, frame, plain};
use crate::error::Result;
use crate::limits;
use crate::row::Value;
use crate::schema::DataType;
use crate::settings::Encodings;

const _: () = assert!(limits::SEGMENT_ROWS_MAX <= 1 << 31, "the sum of a segment's 32-bit integers fits 64 bits");

/// Whether `bytes` are so much less than `others` that it is worth to take more steps to read them.
fn is_worth(bytes: usize, others: usize) -> bool {
    bytes <= others / 8 * 7
}

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
    /// A sketch of the distinct values, where the encoding does not know them.
    pub sketch: Option<DistinctSketch>,
}

/// Encodes `array`, of type `data_type.arrow()`. `is_searched` says that its rows are found by its values, as those of
/// a sort key are.
///
/// # Errors
/// Internal for another type; Full when texts exceed 2 GiB.
pub(crate) fn encode(
    data_type: DataType,
    array: &ArrayRef,
    encodings: Encodings,
    is_searched: bool,
) -> Result<Encoded> {
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
        sketch: None,
    };
    if null_count == array.len() {
        return Ok(encoded);
    }
    dispatch!(data_type,
    N => {
        let values = N::values_of(array.as_ref()).ok_or_else(|| wrong_type(data_type, "numbers"))?;
        encode_numbers::<N>(data_type, &values, nulls, (encodings, is_searched), &mut encoded);
    },
    boolean => encode_booleans(array, nulls, &mut encoded),
    bytes => texts::encode(data_type, &texts_of(data_type, array), nulls, encodings, &mut encoded)?);
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

fn encode_numbers<N: Native>(
    data_type: DataType,
    values: &[N],
    nulls: Option<&NullBuffer>,
    (encodings, is_searched): (Encodings, bool),
    encoded: &mut Encoded,
) {
    let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
    // One form for equal values, 0 for NULL.
    let normalised = || {
        let one = |(i, v): (usize, &N)| if valid(i) { v.normalised() } else { N::default() };
        values.iter().enumerate().map(one).collect::<Vec<N>>()
    };
    let values = match nulls {
        None if N::IS_NORMAL => Cow::Borrowed(values),
        _ => Cow::Owned(normalised()),
    };
    let values = values.as_ref();
    let bounds: Vec<Option<(N, N)>> = match nulls {
        None => values.chunks(VECTOR_ROWS).map(extremes_of_all).collect(),
        Some(_) => {
            let vectors = values.chunks(VECTOR_ROWS).enumerate();
            vectors.map(|(number, vector)| extremes(vector, |row| valid(number * VECTOR_ROWS + row))).collect()
        }
    };
    let Some((least, greatest)) = bounds.iter().flatten().copied().reduce(wider) else { return };
    encoded.bounds = (least.value(), greatest.value());
    encoded.sum = sum_of(data_type, values);
    let plan = Plan::of(&bounds, least, values.len());
    let is_forced =
        encodings != Encodings::Smallest && (plan.is_some() || matches!(data_type, DataType::Real | DataType::Double));
    if least.order(greatest).is_eq() && !is_forced {
        encoded.encoding = Encoding::Constant { value: least.value() };
        encoded.distinct = Some(1);
        return;
    }
    let plain_bytes = plain::number_bytes::<N>(values.len());
    let packed = frame::width_of(least, greatest).map(|width| (width, bitpack::packed_bytes(values.len(), width)));
    let in_place = packed.map_or(plain_bytes, |(_, packed)| packed.min(plain_bytes));
    let by_vector = plan.filter(|plan| {
        let most = if is_searched { in_place / 2 } else { usize::MAX };
        is_forced || (is_worth(plan.bytes(), in_place) && plan.bytes() <= most)
    });
    let scaled = scaled_floats(data_type, values, valid, is_forced)
        .filter(|scaled| is_forced || is_worth(scaled.bytes(), in_place));
    let budget = in_place
        .min(by_vector.as_ref().map_or(usize::MAX, Plan::bytes))
        .min(scaled.as_ref().map_or(usize::MAX, Scaled::bytes));
    if !is_forced && encode_dictionary(values, nulls, budget, encoded) {
        return;
    }
    encoded.distinct = None;
    encoded.sketch = Some(DistinctSketch::of(present(values, nulls).flatten().map(N::hash)));
    match (least.integer(), packed, by_vector, scaled) {
        (_, _, _, Some(scaled)) => {
            let (code_bytes, exceptions) = scaled.write(&mut encoded.body);
            encoded.encoding = Encoding::ScaledFloats { code_bytes, exceptions };
        }
        (Some(reference), _, Some(plan), _) => {
            let code_bytes = plan.write(values, valid, reference, &mut encoded.body);
            encoded.encoding = Encoding::VectorFrames { reference, code_bytes };
        }
        (Some(reference), Some((width, packed)), _, _) if packed < plain_bytes => {
            frame::encode(values, valid, reference, width, &mut encoded.body);
            encoded.encoding = Encoding::FrameOfReference { reference, width: width as u8 };
        }
        _ => {
            plain::encode_numbers(values, &mut encoded.body);
            encoded.encoding = Encoding::Plain { length_width: 0 };
        }
    }
}

/// Encodes `values` as a dictionary, if that takes less than `budget` bytes; says whether it did.
fn encode_dictionary<N: Native>(
    values: &[N],
    nulls: Option<&NullBuffer>,
    budget: usize,
    encoded: &mut Encoded,
) -> bool {
    let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
    let distinct_max = dictionary::distinct_max(values.len(), size_of::<N>(), budget);
    if distinct_max <= 1 || !dictionary::may_be_few(values, valid, distinct_max) {
        return false;
    }
    let Some(found) = dictionary::distinct_numbers(present(values, nulls), distinct_max) else { return false };
    let distinct = found.values.len();
    if dictionary::code_bytes(values.len(), distinct) + plain::number_bytes::<N>(distinct) >= budget {
        return false;
    }
    let width = dictionary::encode_codes(&found.codes, distinct, &mut encoded.body);
    plain::encode_numbers(&found.values, &mut encoded.body);
    encoded.distinct = Some(distinct as u32);
    encoded.encoding = Encoding::Dictionary { distinct: distinct as u32, width, length_width: 0, symbol_bytes: 0 };
    true
}

/// Scaled floats of either width.
enum Scaled {
    Real(alp::Coded<f32>),
    Double(alp::Coded<f64>),
}

impl Scaled {
    fn bytes(&self) -> usize {
        match self {
            Self::Real(coded) => coded.bytes(),
            Self::Double(coded) => coded.bytes(),
        }
    }

    fn write(&self, body: &mut Vec<u8>) -> (u32, u32) {
        match self {
            Self::Real(coded) => coded.write(body),
            Self::Double(coded) => coded.write(body),
        }
    }
}

/// `values` as scaled floats, if they are floats, and a sample says that most are decimals or `is_forced`.
fn scaled_floats<N: Native>(
    data_type: DataType,
    values: &[N],
    valid: impl Fn(usize) -> bool,
    is_forced: bool,
) -> Option<Scaled> {
    fn of<F: Native + Float>(values: &[F], valid: impl Fn(usize) -> bool, is_forced: bool) -> Option<alp::Coded<F>> {
        let candidates = alp::candidates(values);
        let is_tried = is_forced || alp::is_promising(values, &candidates);
        is_tried.then(|| alp::Coded::of(values, valid, &candidates))
    }
    match data_type {
        DataType::Real => {
            of(&values.iter().map(|v| v.real()).collect::<Option<Vec<f32>>>()?, valid, is_forced).map(Scaled::Real)
        }
        DataType::Double => {
            of(&values.iter().map(|v| v.double()).collect::<Option<Vec<f64>>>()?, valid, is_forced).map(Scaled::Double)
        }
        _ => None,
    }
}

/// Bounds of the values within both.
fn wider<N: Native>(a: (N, N), b: (N, N)) -> (N, N) {
    let least = if b.0.order(a.0).is_lt() { b.0 } else { a.0 };
    let greatest = if b.1.order(a.1).is_gt() { b.1 } else { a.1 };
    (least, greatest)
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
