//! Sums, differences and products of decimals: exact, and an error where they have more than 38 digits.
//!
//! Comes in: the digits of both operands, in 128 bits, and their scales. Goes out: the digits of the results. Where
//! both operands fit into 64 bits, which is nearly everywhere, no result can have too many digits, and none is looked
//! at: one multiplication of the processor a row, where Arrow's operators check each of three. It does not own: types
//! (`checked`), rounding (`products`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::division::{fitting, overflow};
use super::operand::{Op, Operand};

/// With larger powers of ten an operand of 64 bits may become one of more than 38 digits.
const FACTOR_MAX: i128 = 10_i128.pow(18);

/// `left op right` as the type `to`, whose scale is the larger of both for a sum or a difference, and both together for
/// a product.
pub(crate) fn decimals(op: Op, left: &Operand, right: &Operand, to: Option<&DataType>) -> Result<ArrayRef, ArrowError> {
    let mismatch = || ArrowError::ComputeError(format!("{op:?} of decimals as {to:?}"));
    let (Some(l), Some(r)) = (left.array.as_primitive_opt(), right.array.as_primitive_opt()) else {
        return Err(mismatch());
    };
    let Some(to @ DataType::Decimal128(_, scale)) = to else { return Err(mismatch()) };
    let sides = Sides::of((l, left.scalar), (r, right.scalar));
    if (left.scalar && l.is_null(0)) || (right.scalar && r.is_null(0)) {
        return Ok(new_null_array(to, sides.rows));
    }
    let raised = |from: i8| 10_i128.checked_pow(u32::from(scale.checked_sub(from)?.cast_unsigned()));
    let digits = match op {
        Op::Multiply => sides.each(false, |l, r| l * r, i128::checked_mul),
        Op::Add | Op::Subtract => {
            let (by_left, by_right) = raised(l.scale()).zip(raised(r.scale())).ok_or_else(mismatch)?;
            let by_right = if op == Op::Add { by_right } else { -by_right };
            let careful = |l: i128, r: i128| l.checked_mul(by_left)?.checked_add(r.checked_mul(by_right)?);
            let wide = by_left.max(by_right.abs()) > FACTOR_MAX;
            sides.each(wide, |l, r| l * by_left + r * by_right, careful)
        }
        Op::Divide | Op::Negate => return Err(mismatch()),
    }?;
    Ok(Arc::new(Decimal128Array::new(digits.into(), sides.nulls).with_data_type(to.clone())))
}

/// Both operands of an operator, row by row.
struct Sides<'a> {
    left: &'a [i128],
    right: &'a [i128],
    rows: usize,
    nulls: Option<NullBuffer>,
}

impl<'a> Sides<'a> {
    /// Of arrays, each with whether it is one value that stands for many.
    fn of(left: (&'a Decimal128Array, bool), right: (&'a Decimal128Array, bool)) -> Self {
        let rows = match (left, right) {
            ((_, true), (right, _)) => right.len(),
            ((left, false), _) => left.len(),
        };
        let nulls = |(side, scalar): (&Decimal128Array, bool)| side.nulls().filter(|_| !scalar).cloned();
        Self {
            left: left.0.values(),
            right: right.0.values(),
            rows,
            nulls: NullBuffer::union(nulls(left).as_ref(), nulls(right).as_ref()),
        }
    }

    /// The result of each row: by `narrow` where all operands fit into 64 bits, unless `wide`, by `careful` otherwise.
    fn each(
        &self,
        wide: bool,
        narrow: impl Fn(i128, i128) -> i128,
        careful: impl Fn(i128, i128) -> Option<i128>,
    ) -> Result<Vec<i128>, ArrowError> {
        if !wide && fit(self.left) && fit(self.right) {
            // As numbers of 64 bits, so that their product is one instruction.
            return Ok(self.map(|left, right| narrow(i128::from(left as i64), i128::from(right as i64))));
        }
        let mut row = 0;
        let mut too_large = false;
        let results = self.map(|left, right| {
            let digits = careful(left, right).and_then(|digits| fitting(digits).ok());
            // What stands where a value is NULL is no value.
            too_large |= digits.is_none() && self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            row += 1;
            digits.unwrap_or_default()
        });
        if too_large { Err(overflow()) } else { Ok(results) }
    }

    #[inline]
    fn map(&self, mut result: impl FnMut(i128, i128) -> i128) -> Vec<i128> {
        match (self.left, self.right) {
            ([left], right) if right.len() == self.rows => right.iter().map(|right| result(*left, *right)).collect(),
            (left, [right]) if left.len() == self.rows => left.iter().map(|left| result(*left, *right)).collect(),
            (left, right) => left.iter().zip(right).map(|(left, right)| result(*left, *right)).collect(),
        }
    }
}

/// Whether all `values` fit into 64 bits: then the upper 65 bits of each are the same.
fn fit(values: &[i128]) -> bool {
    values.iter().fold(0, |differ, value| differ | ((value >> 63) ^ (value >> 127))) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use arrow::datatypes::Decimal128Type;

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
}
