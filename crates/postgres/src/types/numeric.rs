//! Decimal numbers.

use std::fmt;
use std::str::FromStr;

use mainstem_storage::{Error, Result};

use crate::sqlstate;

/// Most digits a decimal has.
const DIGITS_MAX: u8 = 38;

/// A decimal number: an integer and how many of its digits stand behind the point, both at most 38. Equality is that of
/// both parts: 1.0 and 1.00 are equal numbers, not equal decimals.
///
/// ```
/// use mainstem_postgres::types::Decimal;
/// let price: Decimal = "-12.50".parse()?;
/// assert_eq!((price.unscaled(), price.scale()), (-1250, 2));
/// assert_eq!(Decimal::new(5, 3)?.to_string(), "0.005");
/// # Ok::<(), mainstem_storage::Error>(())
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

    /// A stored value; its digits were checked when it was stored. For this engine, not for programs.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(unscaled: i128, scale: i8) -> Self {
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

    /// The scale as storage writes it. For this engine, not for programs.
    #[doc(hidden)]
    #[must_use]
    pub fn stored_scale(self) -> i8 {
        i8::try_from(self.scale).unwrap_or(i8::MAX)
    }

    /// The fewest digits that hold it, those behind the point counted whole.
    #[must_use]
    pub fn precision(self) -> u8 {
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

/// More zeros than a decimal has digits: what has so many behind its digits is out of range, behind the point in front
/// of them nothing.
const ZEROS_MAX: i64 = 40;

/// `text`, a number, without its exponent: `1.5e-3` is `0.0015`. None for one without exponent, and for other texts.
pub fn without_exponent(text: &str) -> Option<String> {
    let (number, exponent) = text.split_once(['e', 'E'])?;
    let (sign, number) = match number.strip_prefix(['+', '-']) {
        Some(rest) => (if number.starts_with('-') { "-" } else { "" }, rest),
        None => ("", number),
    };
    let (whole, behind) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, behind].concat();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(&digits) || !is_number(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)) {
        return None;
    }
    // One that is too long to be read is as good as the longest.
    let longest = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent = exponent.parse::<i64>().unwrap_or(longest).clamp(i64::MIN / 2, i64::MAX / 2);
    let point = exponent.saturating_add(whole.len() as i64);
    if digits.bytes().all(|b| b == b'0') || point < -ZEROS_MAX {
        return Some("0".to_owned());
    }
    let zeros = |count: i64| "0".repeat(count.clamp(0, ZEROS_MAX) as usize);
    if point <= 0 {
        return Some(format!("{sign}0.{}{digits}", zeros(-point)));
    }
    match usize::try_from(point).ok().and_then(|point| digits.split_at_checked(point)) {
        Some((whole, "")) => Some(format!("{sign}{whole}")),
        Some((whole, behind)) => Some(format!("{sign}{whole}.{behind}")),
        None => Some(format!("{sign}{digits}{}", zeros(point - digits.len() as i64))),
    }
}

/// The decimal with `scale` digits behind the point that `value` is by its first `figures` digits, halves away from
/// zero; without the point. None if it has more than 38 digits, or is no number.
pub(crate) fn of_float(value: f64, figures: u8, scale: i8) -> Option<i128> {
    let behind = usize::from(figures).saturating_sub(1);
    let text = format!("{value:.behind$e}");
    let (digits, exponent) = text.split_once('e')?;
    let digits: i128 = digits.replace('.', "").parse().ok()?;
    let shift = exponent.parse::<i32>().ok()? - i32::try_from(behind).ok()? + i32::from(scale);
    let power = 10_i128.checked_pow(shift.unsigned_abs());
    let number = match power {
        _ if digits == 0 => 0,
        Some(power) if shift >= 0 => digits.checked_mul(power)?,
        Some(power) => {
            let (quotient, rest) = (digits / power, digits % power);
            if rest.abs() >= power - rest.abs() { quotient + digits.signum() } else { quotient }
        }
        None if shift > 0 => return None,
        None => 0,
    };
    Decimal::new(number, 0).ok().map(Decimal::unscaled)
}
