//! The choice for numbers: constant, one frame of reference, frames by vector, scaled floats, plain, a dictionary.
//!
//! 1. One pass over the valid values finds least and greatest of each vector of rows, and its sum.
//! 2. The sizes of constant, frame of reference, frames by vector and plain follow from them, that of scaled floats
//!    from encoding them.
//! 3. Distinct values near each other are marked in a bitmap from the least to the greatest one. Others are collected
//!    only as long as a dictionary of them would still be smaller, and only if a sample of the rows does not say that
//!    there will be more.

use std::borrow::Cow;

use arrow_buffer::NullBuffer;
use mainstem_kernels::alp::Float;
use mainstem_kernels::bitpack;

use super::super::super::sketch::DistinctSketch;
use super::super::dictionary::{Distinct, Marked};
use super::super::frame::VECTOR_ROWS;
use super::super::frame::vectors::Plan;
use super::super::native::Native;
use super::super::{Encoding, alp, dictionary, frame, plain};
use super::{Encoded, is_worth, present};
use crate::schema::DataType;
use crate::settings::Encodings;

/// Encodes `values`, which are stored as `S`: decimals that fit 64 bits are looked at in these.
pub(super) fn encode<N: Native, S: Native + From<N>>(
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
    let (mut bounds, mut sum) = (Vec::with_capacity(values.len().div_ceil(VECTOR_ROWS)), Some(0_i128));
    for (number, vector) in values.chunks(VECTOR_ROWS).enumerate() {
        bounds.push(match nulls {
            None => N::extremes(vector),
            Some(_) => extremes(vector, |row| valid(number * VECTOR_ROWS + row)),
        });
        // While it is in the first cache.
        sum = sum.and_then(|sum| sum.checked_add(sum_of(data_type, vector)?));
    }
    let Some((least, greatest)) = bounds.iter().flatten().copied().reduce(wider) else { return };
    encoded.bounds = (S::from(least).value(), S::from(greatest).value());
    encoded.sum = sum;
    let plan = Plan::of(&bounds, least, values.len());
    let is_forced =
        encodings != Encodings::Smallest && (plan.is_some() || matches!(data_type, DataType::Real | DataType::Double));
    if least.order(greatest).is_eq() && !is_forced {
        encoded.encoding = Encoding::Constant { value: S::from(least).value() };
        encoded.distinct = Some(1);
        return;
    }
    let plain_bytes = plain::number_bytes::<S>(values.len());
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
    let marked = least.integer().and_then(|reference| Marked::of(values, nulls, reference, greatest.integer()?));
    if !is_forced && encode_dictionary::<N, S>(values, nulls, marked.as_ref(), budget, encoded) {
        return;
    }
    encoded.distinct = None;
    encoded.sketch = Some(match marked {
        Some(marked) => marked.sketch(),
        None => DistinctSketch::of(present(values, nulls).flatten().map(N::hash)),
    });
    match (least.integer(), packed, by_vector, scaled) {
        (_, _, _, Some(scaled)) => {
            let (code_bytes, exceptions) = scaled.write(&mut encoded.body);
            encoded.encoding = Encoding::ScaledFloats { code_bytes, exceptions };
        }
        (Some(reference), _, Some(plan), _) => {
            let code_bytes = plan.write(values, nulls, reference, &mut encoded.body);
            encoded.encoding = Encoding::VectorFrames { reference, code_bytes };
        }
        (Some(reference), Some((width, packed)), _, _) if packed < plain_bytes => {
            frame::encode(values, nulls, reference, width, &mut encoded.body);
            encoded.encoding = Encoding::FrameOfReference { reference, width: width as u8 };
        }
        _ => {
            encode_plain::<N, S>(values, &mut encoded.body);
            encoded.encoding = Encoding::Plain { length_width: 0 };
        }
    }
}

/// Encodes `values`, which are `marked` where they are near each other, as a dictionary, if that takes less than
/// `budget` bytes; says whether it did.
fn encode_dictionary<N: Native, S: Native + From<N>>(
    values: &[N],
    nulls: Option<&NullBuffer>,
    marked: Option<&Marked>,
    budget: usize,
    encoded: &mut Encoded,
) -> bool {
    let distinct_max = dictionary::distinct_max(values.len(), size_of::<S>(), budget);
    if distinct_max <= 1 {
        return false;
    }
    let fits = |distinct: usize| {
        distinct <= distinct_max
            && dictionary::code_bytes(values.len(), distinct) + plain::number_bytes::<S>(distinct) < budget
    };
    let found: Distinct<N> = match marked {
        Some(marked) if fits(marked.distinct()) => marked.distinct_numbers(values, nulls),
        Some(_) => return false,
        None => {
            let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
            if !dictionary::may_be_few(values, valid, distinct_max) {
                return false;
            }
            match dictionary::distinct_numbers(present(values, nulls), distinct_max) {
                Some(found) if fits(found.values.len()) => found,
                _ => return false,
            }
        }
    };
    let distinct = found.values.len();
    let value_bytes = plain::number_bytes::<S>(distinct);
    let width = dictionary::encode_codes(found.codes, distinct, value_bytes, &mut encoded.body);
    encode_plain::<N, S>(&found.values, &mut encoded.body);
    encoded.distinct = Some(distinct as u32);
    encoded.encoding = Encoding::Dictionary { distinct: distinct as u32, width, length_width: 0, symbol_bytes: 0 };
    true
}

/// Appends the section of `values`, each stored as `S`.
fn encode_plain<N: Native, S: Native + From<N>>(values: &[N], body: &mut Vec<u8>) {
    if size_of::<N>() == size_of::<S>() {
        return plain::encode_numbers(values, body);
    }
    plain::encode_numbers(&values.iter().map(|value| S::from(*value)).collect::<Vec<S>>(), body);
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

/// The sum of integers or unscaled decimals that are not NULL, unless it overflows.
fn sum_of<N: Native>(data_type: DataType, values: &[N]) -> Option<i128> {
    if !matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Decimal { .. }) {
        return None;
    }
    // NULL slots were made 0.
    N::sum(values)
}
