//! Whole numbers and decimals.

use super::fields::{Fields, Quoting, each};

/// Digits that one word holds.
const WORD_DIGITS: usize = 8;
/// Digits that surely fit 64 bits.
const DIGITS_MAX: usize = 18;

/// An integer type of a column.
pub trait Whole: Copy + Default {
    /// `value` of this type.
    fn narrow(value: i64) -> Option<Self>;
}

macro_rules! whole {
    ($($t:ty),*) => {$(
        impl Whole for $t {
            #[inline]
            fn narrow(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
        }
    )*};
}

whole!(i16, i32, i64);

/// Appends the values of `fields` to `values`, 0 for NULL, whose rows go to `nulls`. False when there is a field that
/// is neither NULL nor a number of the type in digits alone, at most 18 of them and perhaps a minus.
pub fn integers<T: Whole>(fields: Fields<'_>, quoting: Quoting<'_>, values: &mut Vec<T>, nulls: &mut Vec<u32>) -> bool {
    each(fields, quoting, values, nulls, |bytes, start, end| T::narrow(signed(bytes, start, end, digits)?))
}

/// Appends the values of `fields`, as multiples of 10 to the power of minus `scale`, as [`integers`] does. False when
/// there is a field that is neither NULL nor a number in digits, at most 18 of them, with at most `scale` behind a
/// point and `precision` in all, those that the scale adds counted.
///
/// # Panics
/// When `scale` exceeds `precision`.
pub fn decimals(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    (precision, scale): (u8, u8),
    values: &mut Vec<i128>,
    nulls: &mut Vec<u32>,
) -> bool {
    assert!(scale <= precision, "a scale of {scale} and a precision of {precision}");
    let (scale, whole_max) = (usize::from(scale), usize::from(precision - scale));
    if scale > DIGITS_MAX {
        return false;
    }
    let power = |digits: usize| 10i64.pow(digits as u32);
    let powers: [i64; DIGITS_MAX + 1] = std::array::from_fn(power);
    each(fields, quoting, values, nulls, |bytes, start, end| {
        let unsigned = |bytes: &[u8], start: usize, end: usize| {
            let text = &bytes[start..end];
            // Most decimals of a column have all digits of its scale.
            let at = end.checked_sub(scale + 1).filter(|at| *at > start && bytes[*at] == b'.' && scale > 0);
            let point = at.or_else(|| text.iter().position(|byte| *byte == b'.').map(|at| start + at));
            let Some(point) = point else {
                let fits = text.len() <= whole_max && text.len() + scale <= DIGITS_MAX;
                return if fits { Some(digits(bytes, start, end)? * powers[scale]) } else { None };
            };
            let (whole, fraction) = (point - start, end - point - 1);
            if whole > whole_max || fraction == 0 || fraction > scale || whole + scale > DIGITS_MAX {
                return None;
            }
            let (whole, part) = (digits(bytes, start, point)?, digits(bytes, point + 1, end)?);
            Some(whole * powers[scale] + part * powers[scale - fraction])
        };
        signed(bytes, start, end, unsigned).map(i128::from)
    })
}

/// What `unsigned` makes of `bytes[start..end]`, less a minus in front.
#[inline(always)]
fn signed(
    bytes: &[u8],
    start: usize,
    end: usize,
    unsigned: impl Fn(&[u8], usize, usize) -> Option<i64>,
) -> Option<i64> {
    if bytes.get(start) == Some(&b'-') && start < end {
        return unsigned(bytes, start + 1, end).map(|value| -value);
    }
    unsigned(bytes, start, end)
}

/// The number that the digits `bytes[start..end]` are, if they are digits, 1 to 18 of them.
#[inline(always)]
pub(super) fn digits(bytes: &[u8], start: usize, end: usize) -> Option<i64> {
    match end.wrapping_sub(start) {
        1..=WORD_DIGITS => word(bytes, start, end),
        len @ 9..=DIGITS_MAX => {
            let middle = end - WORD_DIGITS;
            let low = word(bytes, middle, end)?;
            if len <= 2 * WORD_DIGITS {
                return Some(word(bytes, start, middle)? * 100_000_000 + low);
            }
            let high = middle - WORD_DIGITS;
            let top = word(bytes, start, high)? * 100_000_000 + word(bytes, high, middle)?;
            Some(top * 100_000_000 + low)
        }
        _ => None,
    }
}

/// The number that at most eight digits `bytes[start..end]` are.
#[inline(always)]
fn word(bytes: &[u8], start: usize, end: usize) -> Option<i64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    let Some(last) = bytes.get(..end).and_then(|head| head.last_chunk::<WORD_DIGITS>()) else {
        return few(&bytes[start..end]);
    };
    // The digits are the highest bytes; zeros take the place of what stands before them.
    let others = 8 * (WORD_DIGITS - (end - start)) as u32;
    let word = u64::from_le_bytes(*last) >> others << others | ZEROS & !(u64::MAX << others);
    number_of_word(word)
}

/// The number whose eight digits are the bytes of `word`, the first one lowest (Lemire, "Quickly parsing eight
/// digits", 2018).
#[inline(always)]
pub(super) fn number_of_word(word: u64) -> Option<i64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let is_digits = word & HIGH | (word.wrapping_add(0x0606_0606_0606_0606) & HIGH) >> 4;
    if is_digits != 0x3333_3333_3333_3333 {
        return None;
    }
    let pairs = (word & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(2_561) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(6_553_601) >> 16;
    let all = (fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(42_949_672_960_001) >> 32;
    Some(all as i64)
}

/// The number that `digits` are, of which there are at most eight.
#[cold]
fn few(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}
