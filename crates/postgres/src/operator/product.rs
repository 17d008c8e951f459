//! Products of decimals whose operands have many digits behind the point.
//!
//! In PostgreSQL a product has the digits of both operands behind the point, and as many before it as it takes. With 38
//! altogether that leaves six before the point for a product of two quotients (sixteen digits behind the point each),
//! and nothing for one of three. So products that may need more than 38 digits, more than [`EXACT_SCALE_MAX`] of them
//! behind the point, have as many there as a quotient, or more where the digits before it leave room; they are computed
//! in 256 bits and rounded. Others are exact (`checked`). What does not fit before the point is an error.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, i256};
use arrow::error::ArrowError;

use super::division::{SCALE, digits_of, fitting, overflow};

/// Digits behind the point that an exact product may have whatever stands before it: a price times an average has
/// eighteen.
const EXACT_SCALE_MAX: i8 = 20;

/// The scale of `left * right`, of decimals or one beside an integer, if their product is not to be computed exactly.
pub fn product_scale(left: &DataType, right: &DataType) -> Option<i8> {
    if !matches!(left, DataType::Decimal128(..)) && !matches!(right, DataType::Decimal128(..)) {
        return None;
    }
    let ((left_digits, left_scale), (right_digits, right_scale)) = (digits_of(left)?, digits_of(right)?);
    scale_of(left_digits, left_scale, right_digits, right_scale)
}

fn scale_of(left_digits: u8, left_scale: i8, right_digits: u8, right_scale: i8) -> Option<i8> {
    let exact = i16::from(left_scale) + i16::from(right_scale);
    let digits = i16::from(left_digits) + i16::from(right_digits);
    let fits = digits < i16::from(DECIMAL128_MAX_PRECISION) || exact <= i16::from(EXACT_SCALE_MAX);
    if fits || left_scale < 0 || right_scale < 0 {
        return None;
    }
    let room = i16::from(DECIMAL128_MAX_PRECISION) - (digits - exact);
    i8::try_from(room.clamp(i16::from(SCALE), exact)).ok()
}

/// `left * right` without the last `surplus` digits, halves away from zero; 38 digits at most.
pub(crate) fn rounded(left: i128, right: i128, surplus: u8) -> Result<i128, ArrowError> {
    // Below 10^76, which has room in 256 bits.
    let product = i256::from_i128(left).checked_mul(i256::from_i128(right)).ok_or_else(overflow)?;
    let divisor = i256::from_i128(10).checked_pow(u32::from(surplus)).ok_or_else(overflow)?;
    let quotient = product.checked_div(divisor).ok_or_else(overflow)?;
    let rest = product.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    let up = rest >= divisor.wrapping_sub(rest);
    let away = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
    let quotient = if up { quotient.wrapping_add(away) } else { quotient };
    fitting(quotient.to_i128().ok_or_else(overflow)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn products_that_fit_are_left_to_others() {
        assert_eq!(scale_of(10, 2, 10, 2), None);
        assert_eq!(scale_of(18, 9, 19, 12), None);
        assert_eq!(scale_of(38, 2, 38, 2), None);
        assert_eq!(scale_of(38, 16, 10, 2), None);
        assert_eq!(scale_of(38, 16, 38, 16), Some(16));
        assert_eq!(scale_of(38, 20, 38, 16), Some(16));
        assert_eq!(scale_of(20, 18, 20, 18), Some(34));
        assert_eq!(scale_of(38, 38, 38, 38), Some(38));
    }

    #[test]
    fn digits_that_go_are_rounded() {
        assert_eq!(rounded(15, 1, 1).unwrap(), 2);
        assert_eq!(rounded(-15, 1, 1).unwrap(), -2);
        assert_eq!(rounded(14, 1, 1).unwrap(), 1);
        assert_eq!(rounded(5, -1, 1).unwrap(), -1);
        assert_eq!(rounded(7, 3, 0).unwrap(), 21);
        let most = 10_i128.pow(38) - 1;
        assert_eq!(rounded(most, most, 38).unwrap(), most - 1);
        assert!(rounded(most, most, 37).is_err());
    }
}
