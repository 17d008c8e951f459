//! Sums, differences and products of decimals: exact, and an error where they have more than 38 digits.
//!
//! Comes in: the digits of both operands, in 64 or in 128 bits, and their scales. Goes out: the digits of the results.
//! Where both operands fit into 64 bits, which is nearly everywhere, no result can have too many digits, and none is
//! looked at: one multiplication of the processor a row, where Arrow's operators check each of three. Results of 18
//! digits at most, by the types of the operands, may be asked for in 64 bits. It does not own: types (`checked`),
//! rounding (`products`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type};
use arrow::error::ArrowError;

use super::division::{fitting, overflow};
use super::operand::{Op, Operand};

/// With larger powers of ten an operand of 64 bits may become one of more than 38 digits.
const FACTOR_MAX: i128 = 10_i128.pow(18);

/// `left op right` as the type `to`, whose scale is the larger of both for a sum or a difference, and both together for
/// a product. If `to` has 64 bits, the types of the operands have to tell that these suffice.
pub(crate) fn decimals(op: Op, left: &Operand, right: &Operand, to: Option<&DataType>) -> Result<ArrayRef, ArrowError> {
    let to = to.ok_or_else(|| mismatch(op, to))?;
    let narrow = |side: &Operand| side.array.as_primitive_opt::<Decimal64Type>().is_some();
    match (narrow(left), narrow(right), to) {
        (true, true, DataType::Decimal64(..)) => in_64_bits(op, left, right, to),
        (true, true, _) => in_128_bits::<Decimal64Type, Decimal64Type>(op, left, right, to),
        (true, false, _) => in_128_bits::<Decimal64Type, Decimal128Type>(op, left, right, to),
        (false, true, _) => in_128_bits::<Decimal128Type, Decimal64Type>(op, left, right, to),
        (false, false, _) => in_128_bits::<Decimal128Type, Decimal128Type>(op, left, right, to),
    }
}

fn mismatch(op: Op, to: Option<&DataType>) -> ArrowError {
    ArrowError::ComputeError(format!("{op:?} of decimals as {to:?}"))
}

/// What the digits of each operand are multiplied with before these are added, for results of type `to`; `None` for
/// types that are none.
fn factors(left: &Operand, right: &Operand, to: &DataType) -> Option<(i128, i128)> {
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    };
    let to = scale(to)?;
    let raised = |side: &Operand| {
        let from = scale(side.array.data_type())?;
        10_i128.checked_pow(u32::try_from(to.checked_sub(from)?).ok()?)
    };
    raised(left).zip(raised(right))
}

fn in_64_bits(op: Op, left: &Operand, right: &Operand, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let sides = Sides::<Decimal64Type, Decimal64Type>::of(left, right).ok_or_else(|| mismatch(op, Some(to)))?;
    if sides.has_null_scalar {
        return Ok(new_null_array(to, sides.rows));
    }
    // What stands where a value is NULL may have any digits: it wraps.
    let digits = match op {
        Op::Multiply => sides.map(i64::wrapping_mul),
        Op::Add | Op::Subtract => {
            let narrow = |(l, r): (i128, i128)| Some((i64::try_from(l).ok()?, i64::try_from(r).ok()?));
            let (by_left, by_right) =
                factors(left, right, to).and_then(narrow).ok_or_else(|| mismatch(op, Some(to)))?;
            let by_right = if op == Op::Add { by_right } else { -by_right };
            sides.map(|l, r| l.wrapping_mul(by_left).wrapping_add(r.wrapping_mul(by_right)))
        }
        Op::Divide | Op::Modulo | Op::Negate => return Err(mismatch(op, Some(to))),
    };
    let results = PrimitiveArray::<Decimal64Type>::new(digits.into(), sides.nulls);
    Ok(Arc::new(results.with_data_type(to.clone())))
}

fn in_128_bits<L: Decimal, R: Decimal>(
    op: Op,
    left: &Operand,
    right: &Operand,
    to: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let mismatch = || mismatch(op, Some(to));
    let sides = Sides::<L, R>::of(left, right).ok_or_else(mismatch)?;
    if !matches!(to, DataType::Decimal128(..)) {
        return Err(mismatch());
    }
    if sides.has_null_scalar {
        return Ok(new_null_array(to, sides.rows));
    }
    let digits = match op {
        Op::Multiply => sides.each(false, |l, r| l * r, i128::checked_mul),
        Op::Add | Op::Subtract => {
            let (by_left, by_right) = factors(left, right, to).ok_or_else(mismatch)?;
            let by_right = if op == Op::Add { by_right } else { -by_right };
            let careful = |l: i128, r: i128| l.checked_mul(by_left)?.checked_add(r.checked_mul(by_right)?);
            let wide = by_left.max(by_right.abs()) > FACTOR_MAX;
            sides.each(wide, |l, r| l * by_left + r * by_right, careful)
        }
        Op::Divide | Op::Modulo | Op::Negate => return Err(mismatch()),
    }?;
    let results = PrimitiveArray::<Decimal128Type>::new(digits.into(), sides.nulls);
    Ok(Arc::new(results.with_data_type(to.clone())))
}

/// A type of decimals, by how many bits their digits take.
trait Decimal: ArrowPrimitiveType<Native: Into<i128>> {
    /// Whether all `values` fit into 64 bits.
    fn fit(values: &[Self::Native]) -> bool;
    /// `value`, which fits into 64 bits.
    fn low(value: Self::Native) -> i64;
}

impl Decimal for Decimal64Type {
    fn fit(_: &[i64]) -> bool {
        true
    }

    #[inline]
    fn low(value: i64) -> i64 {
        value
    }
}

impl Decimal for Decimal128Type {
    /// Then the upper 65 bits of each are the same.
    fn fit(values: &[i128]) -> bool {
        values.iter().fold(0, |differ, value| differ | ((value >> 63) ^ (value >> 127))) == 0
    }

    #[inline]
    fn low(value: i128) -> i64 {
        value as i64
    }
}

/// Both operands of an operator, row by row.
struct Sides<'a, L: Decimal, R: Decimal> {
    left: &'a [L::Native],
    right: &'a [R::Native],
    rows: usize,
    nulls: Option<NullBuffer>,
    /// Whether one value that stands for many is NULL.
    has_null_scalar: bool,
}

impl<'a, L: Decimal, R: Decimal> Sides<'a, L, R> {
    /// `None` for operands of other types.
    fn of(left: &'a Operand, right: &'a Operand) -> Option<Self> {
        let rows = match (left, right) {
            (Operand { scalar: true, .. }, right) => right.array.len(),
            (left, _) => left.array.len(),
        };
        let nulls = |side: &Operand| side.array.nulls().filter(|_| !side.scalar).cloned();
        let is_null = |side: &Operand| side.scalar && side.array.is_null(0);
        Some(Self {
            left: left.array.as_primitive_opt::<L>()?.values(),
            right: right.array.as_primitive_opt::<R>()?.values(),
            rows,
            nulls: NullBuffer::union(nulls(left).as_ref(), nulls(right).as_ref()),
            has_null_scalar: is_null(left) || is_null(right),
        })
    }

    /// The result of each row: by `narrow` where all operands fit into 64 bits, unless `wide`, by `careful` otherwise.
    fn each(
        &self,
        wide: bool,
        narrow: impl Fn(i128, i128) -> i128,
        careful: impl Fn(i128, i128) -> Option<i128>,
    ) -> Result<Vec<i128>, ArrowError> {
        if !wide && L::fit(self.left) && R::fit(self.right) {
            // As numbers of 64 bits, so that their product is one instruction.
            return Ok(self.map(|left, right| narrow(L::low(left).into(), R::low(right).into())));
        }
        let mut row = 0;
        let mut too_large = false;
        let results = self.map(|left, right| {
            let digits = careful(left.into(), right.into()).and_then(|digits| fitting(digits).ok());
            // What stands where a value is NULL is no value.
            too_large |= digits.is_none() && self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            row += 1;
            digits.unwrap_or_default()
        });
        if too_large { Err(overflow()) } else { Ok(results) }
    }

    #[inline]
    fn map<T>(&self, mut result: impl FnMut(L::Native, R::Native) -> T) -> Vec<T> {
        match (self.left, self.right) {
            ([left], right) if right.len() == self.rows => right.iter().map(|right| result(*left, *right)).collect(),
            (left, [right]) if left.len() == self.rows => left.iter().map(|left| result(*left, *right)).collect(),
            (left, right) => left.iter().zip(right).map(|(left, right)| result(*left, *right)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use arrow::array::Decimal128Array;

    use super::*;

    const MOST: i128 = 10_i128.pow(38) - 1;

    fn operand(digits: &[Option<i128>], scale: i8, scalar: bool) -> Operand {
        let array = Decimal128Array::from(digits.to_vec()).with_precision_and_scale(38, scale).unwrap();
        Operand { array: Arc::new(array), scalar }
    }

    fn result(op: Op, left: &Operand, right: &Operand, scale: i8) -> Option<Vec<Option<i128>>> {
        let results = decimals(op, left, right, Some(&DataType::Decimal128(38, scale))).ok()?;
        Some(results.as_primitive::<Decimal128Type>().iter().collect())
    }

    #[test]
    fn scales_meet() {
        let (left, right) = (operand(&[Some(15), None, Some(-7)], 1, false), operand(&[Some(225)], 2, true));
        assert_eq!(result(Op::Add, &left, &right, 2), Some(vec![Some(375), None, Some(155)]));
        assert_eq!(result(Op::Subtract, &left, &right, 2), Some(vec![Some(-75), None, Some(-295)]));
        assert_eq!(result(Op::Subtract, &right, &left, 2), Some(vec![Some(75), None, Some(295)]));
        assert_eq!(result(Op::Multiply, &right, &left, 3), Some(vec![Some(3_375), None, Some(-1_575)]));
        let one = operand(&[Some(3)], 0, true);
        assert_eq!(
            result(Op::Add, &one, &operand(&[Some(4)], 30, true), 30),
            Some(vec![Some(3 * 10_i128.pow(30) + 4)])
        );
    }

    #[test]
    fn a_null_beside_any_number_of_rows() {
        let (null, rows) = (operand(&[None], 0, true), operand(&[Some(1), Some(2)], 0, false));
        assert_eq!(result(Op::Add, &null, &rows, 0), Some(vec![None, None]));
        assert_eq!(result(Op::Multiply, &rows, &null, 0), Some(vec![None, None]));
        assert_eq!(result(Op::Add, &null, &operand(&[], 0, false), 0), Some(Vec::new()));
        assert_eq!(result(Op::Add, &operand(&[Some(1)], 0, true), &operand(&[], 0, false), 0), Some(Vec::new()));
    }

    #[test]
    fn ends_of_64_and_128_bits() {
        let (low, high) = (i128::from(i64::MIN), i128::from(i64::MAX));
        for value in [low - 1, low, low + 1, -1, 0, 1, high - 1, high, high + 1] {
            for other in [low - 1, low, -1, 0, 1, high, high + 1] {
                let (left, right) = (operand(&[Some(value)], 0, false), operand(&[Some(other)], 0, false));
                let expected = value.checked_mul(other).filter(|product| product.unsigned_abs() <= MOST as u128);
                assert_eq!(result(Op::Multiply, &left, &right, 0), expected.map(|product| vec![Some(product)]));
                assert_eq!(result(Op::Subtract, &left, &right, 0), Some(vec![Some(value - other)]));
            }
        }
    }

    #[test]
    fn more_than_38_digits_are_an_error_but_where_a_value_is_null() {
        let (most, one) = (operand(&[Some(MOST)], 0, false), operand(&[Some(1)], 0, false));
        assert_eq!(result(Op::Add, &most, &one, 0), None);
        assert_eq!(result(Op::Subtract, &operand(&[Some(-MOST)], 0, false), &one, 0), None);
        assert_eq!(result(Op::Multiply, &most, &operand(&[Some(2)], 0, true), 0), None);
        assert_eq!(result(Op::Add, &most, &operand(&[Some(1)], 1, true), 1), None);
        let hidden = Decimal128Array::new(vec![MOST].into(), Some(vec![false].into()));
        let hidden = hidden.with_precision_and_scale(38, 0).unwrap();
        let hidden = Operand { array: Arc::new(hidden), scalar: false };
        assert_eq!(result(Op::Add, &hidden, &one, 0), Some(vec![None]));
    }

    /// `operand` in 64 bits.
    fn narrow(digits: &[Option<i64>], precision: u8, scale: i8, scalar: bool) -> Operand {
        let array = PrimitiveArray::<Decimal64Type>::from_iter(digits.iter().copied());
        Operand { array: Arc::new(array.with_precision_and_scale(precision, scale).unwrap()), scalar }
    }

    /// Whatever the bits of both operands and of results: the same digits, NULLs among them.
    #[test]
    fn operands_of_64_bits_are_those_of_128() {
        let all = [Some(15), None, Some(-7), Some(0), Some(10_i64.pow(12) - 1), Some(1 - 10_i64.pow(12))];
        let wide = |digits: &[Option<i64>], scale, scalar| {
            let digits: Vec<Option<i128>> = digits.iter().map(|digits| digits.map(i128::from)).collect();
            operand(&digits, scale, scalar)
        };
        let others =
            [(vec![Some(225), Some(3), None, Some(-1), Some(99_999), Some(99_999)], false), (vec![Some(-9)], true)];
        for (other, scalar) in others.iter().chain([&(vec![None], true)]) {
            for (op, scale, digits) in [(Op::Add, 2, 14), (Op::Subtract, 2, 14), (Op::Multiply, 3, 17)] {
                let left = || [wide(&all, 1, false), narrow(&all, 12, 1, false)];
                let right = || [wide(other, 2, *scalar), narrow(other, 5, 2, *scalar)];
                let expected = result(op, &left()[0], &right()[0], scale).unwrap();
                for (left, right) in left().iter().flat_map(|l| right().map(|r| (l.array.clone(), r))) {
                    let left = Operand { array: left, scalar: false };
                    assert_eq!(result(op, &left, &right, scale).as_ref(), Some(&expected), "{op:?}");
                    assert!(result(op, &right, &left, scale).is_some());
                }
                let [_, left] = left();
                let [_, right] = right();
                let results = decimals(op, &left, &right, Some(&DataType::Decimal64(digits, scale))).unwrap();
                let results = results.as_primitive::<Decimal64Type>().iter().map(|digits| digits.map(i128::from));
                assert_eq!(results.collect::<Vec<_>>(), expected, "{op:?}");
            }
        }
    }

    #[test]
    fn results_of_64_bits_want_operands_of_64_bits() {
        let (wide, narrow) = (operand(&[Some(1)], 0, false), narrow(&[Some(1)], 1, 0, false));
        for (left, right) in [(&wide, &narrow), (&narrow, &wide), (&wide, &wide)] {
            decimals(Op::Add, left, right, Some(&DataType::Decimal64(18, 0))).unwrap_err();
        }
        decimals(Op::Add, &narrow, &narrow, Some(&DataType::Int64)).unwrap_err();
        decimals(Op::Add, &narrow, &narrow, None).unwrap_err();
    }
}
