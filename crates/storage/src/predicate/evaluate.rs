//! Predicates on arrays: one selection bitmap per predicate.
//!
//! 1. The constant becomes a closed range of the array's type, or its complement; the kernel compares.
//! 2. IN becomes a range where the constants have no gap, a set otherwise.
//! 3. NULLs are masked out at the end.

use arrow_array::{Array, ArrayAccessor};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use hashbrown::HashSet;
use mainstem_kernels::bitmap;
use mainstem_kernels::compare::{Plain, select_range_plain};

use crate::error::{Error, Result, sqlstate};
use crate::row::{TypedValues, Value, uuid_at};
use crate::schema::DataType;

use super::{CompareOp, Predicate};

impl Predicate {
    /// The rows of `array` for which the predicate is true, as a bitmap of `array.len()` bits (least significant first,
    /// zeros past the end). `array` has type `data_type.arrow()`, anything else is an Internal error; a constant of
    /// another type is 42804.
    pub fn evaluate(&self, array: &dyn Array, data_type: DataType) -> Result<Vec<u64>> {
        let nulls = array.nulls();
        let mut bits = match self {
            Self::IsNull { .. } => {
                let mut bits = valid_bits(nulls, array.len());
                bitmap::not_in_place(&mut bits, array.len());
                return Ok(bits);
            }
            Self::IsNotNull { .. } => return Ok(valid_bits(nulls, array.len())),
            Self::Compare { value: Value::Null, .. } => return Ok(vec![0; bitmap::words(array.len())]),
            Self::Compare { op, value, .. } => compare(TypedValues::of(array, data_type)?, array.len(), *op, value)?,
            Self::In { values, .. } => member(TypedValues::of(array, data_type)?, array.len(), values)?,
        };
        if nulls.is_some() {
            bitmap::and_in_place(&mut bits, &valid_bits(nulls, array.len()));
        }
        Ok(bits)
    }
}

/// Bitmap of the rows that are not NULL.
fn valid_bits(nulls: Option<&NullBuffer>, len: usize) -> Vec<u64> {
    match nulls {
        None => bitmap::full(len),
        Some(nulls) => words_of(nulls.inner()),
    }
}

/// A Boolean buffer, wherever it starts, as words.
fn words_of(buffer: &BooleanBuffer) -> Vec<u64> {
    let mut words: Vec<u64> = buffer.bit_chunks().iter_padded().collect();
    words.truncate(bitmap::words(buffer.len()));
    words
}

fn mismatch(value: &Value) -> Error {
    Error::invalid(sqlstate::TYPE_MISMATCH, format!("a column of another type is compared with {value:?}"))
}

fn compare(values: TypedValues<'_>, len: usize, op: CompareOp, value: &Value) -> Result<Vec<u64>> {
    Ok(match (values, value) {
        (TypedValues::Boolean(v), Value::Boolean(c)) => truth(v.values(), |b| op.holds(b.cmp(c))),
        (TypedValues::Int16(v), Value::Int(c)) => compare_ints(v, op, (*c).into(), i16::MIN, i16::MAX),
        (TypedValues::Int32(v), Value::Int(c)) => compare_ints(v, op, (*c).into(), i32::MIN, i32::MAX),
        (TypedValues::Int64(v), Value::Int(c)) => compare_ints(v, op, (*c).into(), i64::MIN, i64::MAX),
        (TypedValues::Decimal(v), Value::Decimal(c)) => compare_ints(v, op, *c, i128::MIN, i128::MAX),
        (TypedValues::Real(v), Value::Real(c)) => compare_plain(v, op, *c, f32::NEG_INFINITY, f32::NAN),
        (TypedValues::Double(v), Value::Double(c)) => compare_plain(v, op, *c, f64::NEG_INFINITY, f64::NAN),
        (TypedValues::Text(v), Value::Text(c)) => {
            let c = c.as_bytes();
            if matches!(op, CompareOp::Eq | CompareOp::NotEq) {
                let of_length = |i: usize| v.views()[i] as u32 as usize == c.len();
                let want = op == CompareOp::Eq;
                collect(len, |i| (of_length(i) && v.value(i).as_bytes() == c) == want)
            } else {
                collect(len, |i| op.holds(v.value(i).as_bytes().cmp(c)))
            }
        }
        (TypedValues::Bytes(v), Value::Bytes(c)) => collect(len, |i| op.holds(v.value(i).cmp(c))),
        (TypedValues::Uuid(v), Value::Uuid(c)) => collect(len, |i| op.holds(uuid_at(v, i).cmp(c))),
        _ => return Err(mismatch(value)),
    })
}

fn member(values: TypedValues<'_>, len: usize, constants: &[Value]) -> Result<Vec<u64>> {
    let constants = constants.iter().filter(|c| !c.is_null());
    Ok(match values {
        TypedValues::Boolean(v) => {
            let set = set_of(constants, |c| if let Value::Boolean(c) = c { Some(*c) } else { None })?;
            truth(v.values(), |b| set.contains(&b))
        }
        TypedValues::Int16(v) => member_ints(v, constants)?,
        TypedValues::Int32(v) => member_ints(v, constants)?,
        TypedValues::Int64(v) => member_ints(v, constants)?,
        TypedValues::Decimal(v) => {
            let set = set_of(constants, |c| if let Value::Decimal(c) = c { Some(*c) } else { None })?;
            collect(len, |i| set.contains(&v[i]))
        }
        TypedValues::Real(v) => {
            let set = set_of(constants, |c| if let Value::Real(c) = c { Some(bits(f64::from(*c))) } else { None })?;
            collect(len, |i| set.contains(&bits(f64::from(v[i]))))
        }
        TypedValues::Double(v) => {
            let set = set_of(constants, |c| if let Value::Double(c) = c { Some(bits(*c)) } else { None })?;
            collect(len, |i| set.contains(&bits(v[i])))
        }
        TypedValues::Text(v) => {
            let set = set_of(constants, |c| if let Value::Text(c) = c { Some(&**c) } else { None })?;
            collect_from(v, |text| set.contains(text))
        }
        TypedValues::Bytes(v) => {
            let set = set_of(constants, |c| if let Value::Bytes(c) = c { Some(&**c) } else { None })?;
            collect_from(v, |bytes| set.contains(bytes))
        }
        TypedValues::Uuid(v) => {
            let set = set_of(constants, |c| if let Value::Uuid(c) = c { Some(*c) } else { None })?;
            collect(len, |i| set.contains(&uuid_at(v, i)))
        }
    })
}

/// The constants as `get` sees them.
fn set_of<'a, T: Eq + std::hash::Hash>(
    constants: impl Iterator<Item = &'a Value>,
    get: impl Fn(&'a Value) -> Option<T>,
) -> Result<HashSet<T>> {
    constants.map(|c| get(c).ok_or_else(|| mismatch(c))).collect()
}

/// Bits by which floats are equal or not: one zero, one NaN.
fn bits(v: f64) -> u64 {
    crate::row::normal_f64(v).to_bits()
}

fn member_ints<'a, T: Plain + Into<i64> + TryFrom<i64> + Ord>(
    values: &[T],
    constants: impl Iterator<Item = &'a Value>,
) -> Result<Vec<u64>> {
    let set = set_of(constants, |c| if let Value::Int(c) = c { Some(*c) } else { None })?;
    // A constant outside the array's type matches nothing.
    let mut known: Vec<T> = set.iter().filter_map(|c| T::try_from(*c).ok()).collect();
    known.sort_unstable();
    let (Some(&first), Some(&last)) = (known.first(), known.last()) else {
        return Ok(vec![0; bitmap::words(values.len())]);
    };
    let width = i128::from(last.into()) - i128::from(first.into()) + 1;
    if width == known.len() as i128 {
        let mut out = vec![0; bitmap::words(values.len())];
        select_range_plain(values, first, last, &mut out);
        return Ok(out);
    }
    Ok(collect(values.len(), |i| (first..=last).contains(&values[i]) && set.contains(&values[i].into())))
}

/// Booleans by what the predicate says of each of the two.
fn truth(values: &BooleanBuffer, holds: impl Fn(bool) -> bool) -> Vec<u64> {
    let len = values.len();
    let mut out = match (holds(false), holds(true)) {
        (false, false) => return vec![0; bitmap::words(len)],
        (true, true) => return bitmap::full(len),
        _ => words_of(values),
    };
    if holds(false) {
        bitmap::not_in_place(&mut out, len);
    }
    out
}

/// Integers against a constant that may be outside their type.
fn compare_ints<T: Plain + Ord + Into<i128> + TryFrom<i128>>(
    values: &[T],
    op: CompareOp,
    constant: i128,
    lowest: T,
    highest: T,
) -> Vec<u64> {
    if let Ok(constant) = T::try_from(constant) {
        return compare_plain(values, op, constant, lowest, highest);
    }
    // Every value is on the same side of the constant.
    if op.holds(lowest.into().cmp(&constant)) {
        bitmap::full(values.len())
    } else {
        vec![0; bitmap::words(values.len())]
    }
}

/// `values op constant` as a closed range between `lowest` and `highest`, or as the complement of one.
fn compare_plain<T: Plain>(values: &[T], op: CompareOp, constant: T, lowest: T, highest: T) -> Vec<u64> {
    let (lo, hi, complement) = match op {
        CompareOp::Eq => (constant, constant, false),
        CompareOp::NotEq => (constant, constant, true),
        CompareOp::Lt => (constant, highest, true),
        CompareOp::LtEq => (lowest, constant, false),
        CompareOp::Gt => (lowest, constant, true),
        CompareOp::GtEq => (constant, highest, false),
    };
    let mut out = vec![0; bitmap::words(values.len())];
    select_range_plain(values, lo, hi, &mut out);
    if complement {
        bitmap::not_in_place(&mut out, values.len());
    }
    out
}

fn collect_from<A: ArrayAccessor>(array: A, holds: impl Fn(A::Item) -> bool) -> Vec<u64> {
    collect(array.len(), |i| holds(array.value(i)))
}

/// A bitmap of the rows for which `holds` is true.
fn collect(len: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |first: usize| {
        let rows = first..(first + 64).min(len);
        rows.fold(0, |word, row| word | u64::from(holds(row)) << (row - first))
    };
    (0..len).step_by(64).map(word).collect()
}
