//! Whole numbers and decimals.

#[cfg(target_arch = "x86_64")]
use super::avx512::values::{EIGHT, Form, Lanes, by_eights};
use super::fields::{Fields, Quoting, each};

/// Digits that one word holds.
const WORD_DIGITS: usize = 8;
/// Digits of a lane of the fast twins.
#[cfg(target_arch = "x86_64")]
const WHOLE_DIGITS_MAX: usize = 16;
/// Digits that surely fit 64 bits.
const DIGITS_MAX: usize = 18;
/// Digits behind a point, with which it and one before it fit 16 bytes.
#[cfg(target_arch = "x86_64")]
const SCALE_MAX: usize = 14;

/// An integer type of a column.
pub trait Whole: Copy + Default {
    /// The greatest one.
    const GREATEST: u64;
    /// `value` of this type.
    fn narrow(value: i64) -> Option<Self>;
    /// `value`, which fits, of this type.
    fn cut(value: i64) -> Self;
}

macro_rules! whole {
    ($($t:ty),*) => {$(
        impl Whole for $t {
            const GREATEST: u64 = <$t>::MAX as u64;
            #[inline]
            fn cut(value: i64) -> Self {
                value as $t
            }
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
    let one = |bytes: &[u8], start: usize, end: usize| T::narrow(signed(bytes, start, end, digits)?);
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        // SAFETY: the processor has what this twin asks for.
        return unsafe { integers_by_eights(fields, quoting, values, nulls, one) };
    }
    each(fields, quoting, values, nulls, one)
}

/// As [`integers`], eight at once; `one` reads what is not plain.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn integers_by_eights<T: Whole>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    values: &mut Vec<T>,
    nulls: &mut Vec<u32>,
    one: impl Fn(&[u8], usize, usize) -> Option<T> + Copy,
) -> bool {
    let form = Form::whole();
    let eight = |lanes: Lanes| {
        let negative = lanes.negative();
        if negative != 0 && !lanes.have_upto(WHOLE_DIGITS_MAX, 0, negative) {
            return None;
        }
        let (wide, mut found) = (lanes.numbers(form, negative, T::GREATEST)?, [T::default(); EIGHT]);
        for lane in 0..EIGHT {
            found[lane] = T::cut(wide[lane]);
        }
        Some(found)
    };
    by_eights(fields, quoting, values, nulls, eight, one)
}

/// The digits of a decimal, in 64 or in 128 bits.
pub trait DecimalDigits: Copy + Default + From<i64> {}

impl DecimalDigits for i64 {}
impl DecimalDigits for i128 {}

/// As [`decimals`], eight at once, if `scale` leaves room for a point; `one` reads what is not plain.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn decimals_by_eights<D: DecimalDigits>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    (scale, whole_max): (usize, usize),
    values: &mut Vec<D>,
    nulls: &mut Vec<u32>,
    one: impl Fn(&[u8], usize, usize) -> Option<D> + Copy,
) -> bool {
    let (whole, with_point) = (Form::whole(), Form::with_point(scale));
    let power = 10i64.pow(scale as u32);
    // Whole numbers that fit sixteen digits with their zeros.
    let digits_max = whole_max.min(WHOLE_DIGITS_MAX - scale);
    let eight = |lanes: Lanes| {
        let negative = lanes.negative();
        let mut found = None;
        if lanes.have_upto(whole_max, scale + 1, negative) {
            found = lanes.numbers(with_point, negative, u64::MAX);
        }
        let mut factor = 1;
        if found.is_none() && lanes.have_upto(digits_max, 0, negative) {
            found = lanes.numbers(whole, negative, u64::MAX);
            factor = power;
        }
        let (mut wide, mut digits) = (found?, [D::default(); EIGHT]);
        if factor > 1 {
            for digits in &mut wide {
                *digits *= factor;
            }
        }
        for lane in 0..EIGHT {
            digits[lane] = D::from(wide[lane]);
        }
        Some(digits)
    };
    by_eights(fields, quoting, values, nulls, eight, one)
}

/// Appends the values of `fields`, as multiples of 10 to the power of minus `scale`, as [`integers`] does. False when
/// there is a field that is neither NULL nor a number in digits, at most 18 of them, with at most `scale` behind a
/// point and `precision` in all, those that the scale adds counted.
///
/// # Panics
/// When `scale` exceeds `precision`.
pub fn decimals<D: DecimalDigits>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    (precision, scale): (u8, u8),
    values: &mut Vec<D>,
    nulls: &mut Vec<u32>,
) -> bool {
    assert!(scale <= precision, "a scale of {scale} and a precision of {precision}");
    let (scale, whole_max) = (usize::from(scale), usize::from(precision - scale));
    if scale > DIGITS_MAX {
        return false;
    }
    let power = |digits: usize| 10i64.pow(digits as u32);
    let powers: [i64; DIGITS_MAX + 1] = std::array::from_fn(power);
    let short = ShortDecimals::of(scale, whole_max);
    let one = |bytes: &[u8], start: usize, end: usize| {
        if let Some(value) = short.as_ref().and_then(|short| short.parse(bytes, start, end)) {
            return Some(D::from(value));
        }
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
        signed(bytes, start, end, unsigned).map(D::from)
    };
    #[cfg(target_arch = "x86_64")]
    if (1..=SCALE_MAX).contains(&scale) && crate::dispatch::avx512() {
        // SAFETY: the processor has what this twin asks for.
        return unsafe { decimals_by_eights(fields, quoting, (scale, whole_max), values, nulls, one) };
    }
    each(fields, quoting, values, nulls, one)
}

/// Decimals that a word holds with their point, and that have all digits of their scale: most of a column.
struct ShortDecimals {
    scale: usize,
    /// Most digits in front of the point.
    whole_max: usize,
    /// Where in the word, whose last byte is the last digit, the point stands.
    point: u32,
    /// The bytes of the digits behind it.
    behind: u64,
}

impl ShortDecimals {
    /// Those of `scale` digits behind the point; none where they leave no room for one before it.
    fn of(scale: usize, whole_max: usize) -> Option<Self> {
        if !(1..=WORD_DIGITS - 2).contains(&scale) {
            return None;
        }
        let point = 8 * (WORD_DIGITS - scale - 1) as u32;
        Some(Self { scale, whole_max, point, behind: u64::MAX << point << 8 })
    }

    /// The number at `bytes[start..end]`, if it is one of those and not negative.
    #[inline(always)]
    fn parse(&self, bytes: &[u8], start: usize, end: usize) -> Option<i64> {
        const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
        let len = end - start;
        let whole = len.wrapping_sub(self.scale + 1);
        // Nothing in front of the point is seen here, too: so few digits wrap around.
        if len > WORD_DIGITS || whole.wrapping_sub(1) >= self.whole_max {
            return None;
        }
        let word = u64::from_le_bytes(*bytes.get(..end)?.last_chunk()?);
        if (word >> self.point) as u8 != b'.' {
            return None;
        }
        // The digits in front move up by one into the place of the point.
        let others = 8 * (WORD_DIGITS - len) as u32;
        let front = (word & !(u64::MAX << self.point)) >> others << others << 8;
        let zeros = ZEROS & !(u64::MAX << others << 8);
        number_of_word(word & self.behind | front | zeros)
    }
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
fn number_of_word(word: u64) -> Option<i64> {
    let fours = pairs_of_word(word)?.wrapping_mul(6_553_601) >> 16;
    let all = (fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(42_949_672_960_001) >> 32;
    Some(all as i64)
}

/// The four numbers of two digits that the bytes of `word` are, 16 bits for each, the first one lowest.
#[inline(always)]
pub(super) fn pairs_of_word(word: u64) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let is_digits = word & HIGH | (word.wrapping_add(0x0606_0606_0606_0606) & HIGH) >> 4;
    if is_digits != 0x3333_3333_3333_3333 {
        return None;
    }
    Some((word & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(2_561) >> 8 & 0x00FF_00FF_00FF_00FF)
}

/// The number that `digits` are, of which there are at most eight.
#[cold]
fn few(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}
