//! `rust_decimal::Decimal` is DECIMAL. It has 96 bits, about 28 digits, and DECIMAL has 38: what it cannot hold is
//! 22003, never rounded.

use mainstem_storage::{Error, Result};
use rust_decimal::Decimal as Theirs;

use crate::sqlstate;
use crate::types::Decimal;

/// Every one of them is a decimal, with as many digits behind the point.
impl From<Theirs> for Decimal {
    fn from(decimal: Theirs) -> Self {
        // 28 of 29 digits at most.
        Self::stored(decimal.mantissa(), i8::try_from(decimal.scale()).unwrap_or(i8::MAX))
    }
}

/// Exact: with as many digits behind the point, or without zeros at their end where there are too many. 22003 for a
/// number that needs more than 96 bits or 28 digits behind the point.
impl TryFrom<Decimal> for Theirs {
    type Error = Error;

    fn try_from(decimal: Decimal) -> Result<Self> {
        let (mut unscaled, mut scale) = (decimal.unscaled(), u32::from(decimal.scale()));
        loop {
            if let Ok(found) = Self::try_from_i128_with_scale(unscaled, scale) {
                return Ok(found);
            }
            if scale == 0 || unscaled % 10 != 0 {
                let message = format!("{decimal} has more digits than a rust_decimal::Decimal");
                return Err(Error::invalid(sqlstate::OUT_OF_RANGE, message));
            }
            (unscaled, scale) = (unscaled / 10, scale - 1);
        }
    }
}
