//! Decimal numbers.

use std::fmt;
use std::str::FromStr;

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// Most digits a decimal has.
const DIGITS_MAX: u8 = 38;

/// A decimal number: an integer and how many of its digits stand behind the point, both at most 38. Equality is that of
/// both parts: 1.0 and 1.00 are equal numbers, not equal decimals.
///
/// ```
/// use mainstem::Decimal;
/// let price: Decimal = "-12.50".parse()?;
/// assert_eq!((price.unscaled(), price.scale()), (-1250, 2));
/// assert_eq!(Decimal::new(5, 3)?.to_string(), "0.005");
/// # Ok::<(), mainstem::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

impl Decimal {
    /// `unscaled` / 10^`scale`.
    ///
    /// # Errors
    /// 22003 for more than 38 digits.
    pub fn new(unscaled: i128, scale: u8) -> Result<Self> {
        if scale > DIGITS_MAX || unscaled.unsigned_abs() >= 10_u128.pow(u32::from(DIGITS_MAX)) {
            return Err(Error::invalid(
                sqlstate::OUT_OF_RANGE,
                format!("a decimal has at most {DIGITS_MAX} digits: {unscaled} with {scale} behind the point has more"),
            ));
        }
        Ok(Self { unscaled, scale })
    }

    /// A whole number.
    #[must_use]
    pub fn from_integer(value: i64) -> Self {
        Self { unscaled: value.into(), scale: 0 }
    }

    /// A stored value; its digits were checked when it was stored.
    pub(super) fn stored(unscaled: i128, scale: i8) -> Self {
        Self { unscaled, scale: scale.unsigned_abs() }
    }

    /// The number without its point.
    #[must_use]
    pub fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// Digits behind the point.
    #[must_use]
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// The scale as storage writes it.
    pub(super) fn stored_scale(self) -> i8 {
        i8::try_from(self.scale).unwrap_or(i8::MAX)
    }

    /// The fewest digits that hold it, those behind the point counted whole.
    pub(super) fn precision(self) -> u8 {
        let digits = self.unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
        u8::try_from(digits).unwrap_or(DIGITS_MAX).max(self.scale).max(1)
    }
}

/// Plain digits, as many behind the point as the scale says.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.unscaled.unsigned_abs(), width = scale + 1);
        let (whole, behind) = digits.split_at(digits.len() - scale);
        if behind.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{behind}") }
    }
}

/// Digits with an optional sign and point; 22P02 for anything else.
impl FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::invalid(sqlstate::INVALID_TEXT, format!("\"{text}\" is not a decimal number"));
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole, behind].concat();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let too_long = || Error::invalid(sqlstate::OUT_OF_RANGE, format!("\"{text}\" has more than 38 digits"));
        let scale = u8::try_from(behind.len()).map_err(|_| too_long())?;
        let magnitude: i128 = digits.parse().map_err(|_| too_long())?;
        Self::new(if text.starts_with('-') { -magnitude } else { magnitude }, scale).map_err(|_| too_long())
    }
}
