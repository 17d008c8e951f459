//! Division of decimals, and where products become functions (`products`).
//!
//! Arrow's has four digits more than the dividend, cut off. PostgreSQL's has at least sixteen significant ones,
//! rounded, which depend on the values; here they depend on the types: sixteen digits behind the point (more if an
//! operand has more), fewer where the digits before the point need the place, at most 38 altogether.

use arrow::datatypes::{DataType, i256};
use arrow::error::ArrowError;

/// Digits behind the point that a quotient has where there is room.
pub(crate) const SCALE: i8 = 16;
/// Digits behind the point that it has at least.
const SCALE_MIN: i8 = 6;
const DIGITS: u8 = 38;

/// The scale of a result with `before` digits in front of the point, of operands with scales up to `scale`.
pub(crate) fn scale_of(before: i16, scale: i8) -> i8 {
    let room = (i16::from(DIGITS) - before).clamp(0, i16::from(SCALE.max(scale))) as i8;
    room.max(scale).max(SCALE_MIN)
}

/// The scale of `left / right`, if one of the types is a decimal and the other too, or an integer.
pub fn quotient_scale(left: &DataType, right: &DataType) -> Option<i8> {
    let decimals = matches!(left, DataType::Decimal128(..)) || matches!(right, DataType::Decimal128(..));
    let ((digits, scale), (_, right_scale)) = (digits_of(left)?, digits_of(right)?);
    let before = i16::from(digits) - i16::from(scale) + i16::from(right_scale);
    (decimals && scale >= 0 && right_scale >= 0).then(|| scale_of(before, scale.max(right_scale)))
}

/// Digits, and those behind the point, of a type of exact numbers.
pub(crate) fn digits_of(data_type: &DataType) -> Option<(u8, i8)> {
    Some(match data_type {
        DataType::Decimal128(digits, scale) => (*digits, *scale),
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (19, 0),
        _ => return None,
    })
}

pub(crate) fn overflow() -> ArrowError {
    ArrowError::ArithmeticOverflow("a number has more than 38 digits".into())
}

/// `left * 10^power / right`, halves away from zero; 38 digits at most.
pub(crate) fn rounded(left: i128, power: i32, right: i128) -> Result<i128, ArrowError> {
    if right == 0 {
        return Err(ArrowError::DivideByZero);
    }
    let factor = u32::try_from(power).ok().and_then(|power| 10_i128.checked_pow(power));
    if let Some(dividend) = factor.and_then(|factor| left.checked_mul(factor)) {
        let (quotient, rest) = (dividend / right, dividend % right);
        // Of magnitudes: -2^127 has none among signed numbers.
        let up = rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
        let away = if (dividend < 0) == (right < 0) { 1 } else { -1 };
        return fitting(if up { quotient + away } else { quotient });
    }
    let power = u8::try_from(power).map_err(|_| overflow())?;
    let factor = i256::from_i128(10).checked_pow(u32::from(power)).ok_or_else(overflow)?;
    let dividend = i256::from_i128(left).checked_mul(factor).ok_or_else(overflow)?;
    let divisor = i256::from_i128(right);
    let quotient = dividend.checked_div(divisor).ok_or_else(overflow)?;
    let rest = dividend.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    let up = rest >= divisor.wrapping_abs().wrapping_sub(rest);
    let away = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
    let quotient = if up { quotient.wrapping_add(away) } else { quotient };
    fitting(quotient.to_i128().ok_or_else(overflow)?)
}

/// `value`, if it has at most 38 digits.
pub(crate) fn fitting(value: i128) -> Result<i128, ArrowError> {
    const MOST: u128 = 10_u128.pow(DIGITS as u32);
    if value.unsigned_abs() < MOST { Ok(value) } else { Err(overflow()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (left, right, expected) in
            [(1, 3, 33), (2, 3, 67), (1, 8, 13), (-1, 8, -13), (1, -8, -13), (-1, -8, 13), (0, 5, 0)]
        {
            assert_eq!(rounded(left, 2, right).ok(), Some(expected), "{left} / {right}");
        }
        assert!(matches!(rounded(1, 2, 0), Err(ArrowError::DivideByZero)));
    }

    #[test]
    fn dividends_of_more_than_128_bits() {
        let large = 10_i128.pow(37);
        assert_eq!(rounded(large, 10, 10_i128.pow(20)).ok(), Some(10_i128.pow(27)));
        assert_eq!(rounded(-large, 10, 3 * 10_i128.pow(20)).ok(), Some(-333_333_333_333_333_333_333_333_333));
        assert_eq!(
            rounded(large, 16, 3 * 10_i128.pow(16)).ok(),
            Some(3_333_333_333_333_333_333_333_333_333_333_333_333)
        );
        assert_eq!(
            rounded(2 * large, 16, 3 * 10_i128.pow(16)).ok(),
            Some(6_666_666_666_666_666_666_666_666_666_666_666_667)
        );
        assert!(rounded(large, 20, 1).is_err());
        assert!(rounded(large, 1, 1).is_err(), "39 digits");
    }

    #[test]
    fn scales_leave_room_for_digits_before_the_point() {
        assert_eq!(scale_of(2, 2), 16);
        assert_eq!(scale_of(2, 20), 20);
        assert_eq!(scale_of(30, 2), 8);
        assert_eq!(scale_of(38, 2), 6);
        assert_eq!(scale_of(50, 10), 10);
    }
}
