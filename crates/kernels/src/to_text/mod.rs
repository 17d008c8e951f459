//! Numbers, dates and times as text, behind what a buffer holds already; and whether a text has a byte of a few.
//!
//! In: one value. Out: its bytes, appended. Digits are made two at a time, from the last one on, in a buffer of fixed
//! length, so that a value is one copy. There is one way only: nothing here has a faster twin.

/// 00 to 99.
const PAIRS: &[u8; 200] =
    b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// Digits of the largest `u64`.
const U64_DIGITS: usize = 20;
/// 10^19, the largest power of ten in 64 bits.
const HIGH: u128 = 10_000_000_000_000_000_000;
/// A sign, the digits of the largest `u128`, a point.
const NUMBER_BYTES: usize = 1 + 39 + 1;

/// The two digits of `value`, which is below 100.
#[inline]
fn pair(value: usize) -> [u8; 2] {
    [PAIRS[2 * value], PAIRS[2 * value + 1]]
}

/// Writes the digits of `value` so that they end before `end`, and returns where they begin.
#[inline]
fn digits_before(buffer: &mut [u8], mut end: usize, mut value: u64) -> usize {
    while value >= 100 {
        let (rest, low) = (value / 100, (value % 100) as usize);
        buffer[end - 2..end].copy_from_slice(&pair(low));
        end -= 2;
        value = rest;
    }
    if value >= 10 {
        buffer[end - 2..end].copy_from_slice(&pair(value as usize));
        end - 2
    } else {
        buffer[end - 1] = b'0' + value as u8;
        end - 1
    }
}

/// Appends `value`.
#[inline]
pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    let mut buffer = [0; U64_DIGITS + 1];
    let mut start = digits_before(&mut buffer, U64_DIGITS + 1, value.unsigned_abs());
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    out.extend_from_slice(&buffer[start..]);
}

/// Appends `digits` with a point before the last `scale` of them, at least one digit in front of it; without one when
/// `scale` is 0.
///
/// # Panics
/// When `scale` is above 38.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, digits: i128, scale: u8) {
    let scale = usize::from(scale);
    assert!(scale <= 38, "a decimal with {scale} digits behind the point");
    let mut buffer = [b'0'; NUMBER_BYTES];
    // One byte stays free for the point.
    let end = NUMBER_BYTES - 1;
    let magnitude = digits.unsigned_abs();
    let mut start = match u64::try_from(magnitude) {
        Ok(small) => digits_before(&mut buffer, end, small),
        Err(_) => {
            // The largest i128 is below 2 * 10^38: both parts fit.
            let (high, low) = ((magnitude / HIGH) as u64, (magnitude % HIGH) as u64);
            digits_before(&mut buffer, end, low);
            digits_before(&mut buffer, end - 19, high)
        }
    };
    // Zeros are there already.
    start = start.min(end - (scale + 1));
    if digits < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    if scale == 0 {
        out.extend_from_slice(&buffer[start..end]);
        return;
    }
    buffer.copy_within(end - scale..end, end - scale + 1);
    buffer[end - scale] = b'.';
    out.extend_from_slice(&buffer[start..]);
}

/// The bytes of a day, `2024-02-29`.
///
/// # Panics
/// When the year is above 9999 or the others above 99.
#[inline]
#[must_use]
pub fn day(year: u32, month: u32, day: u32) -> [u8; 10] {
    let mut text = *b"0000-00-00";
    text[..2].copy_from_slice(&pair((year / 100) as usize));
    text[2..4].copy_from_slice(&pair((year % 100) as usize));
    text[5..7].copy_from_slice(&pair(month as usize));
    text[8..].copy_from_slice(&pair(day as usize));
    text
}

/// Appends a time of day, `12:30:00.5`: `micros` microseconds after midnight.
///
/// # Panics
/// When the day has no such microsecond.
#[inline]
pub fn push_time(out: &mut Vec<u8>, micros: u64) {
    assert!(micros < 86_400_000_000, "microsecond {micros} of a day");
    let (seconds, fraction) = (micros / 1_000_000, (micros % 1_000_000) as usize);
    let mut text = *b"00:00:00.000000";
    text[..2].copy_from_slice(&pair((seconds / 3_600) as usize));
    text[3..5].copy_from_slice(&pair((seconds / 60 % 60) as usize));
    text[6..8].copy_from_slice(&pair((seconds % 60) as usize));
    if fraction == 0 {
        out.extend_from_slice(&text[..8]);
        return;
    }
    text[9..11].copy_from_slice(&pair(fraction / 10_000));
    text[11..13].copy_from_slice(&pair(fraction / 100 % 100));
    text[13..].copy_from_slice(&pair(fraction % 100));
    let behind = text.iter().rev().take_while(|digit| **digit == b'0').count();
    out.extend_from_slice(&text[..text.len() - behind]);
}

/// Appends two hexadecimal digits for each of `bytes`, in small letters.
#[inline]
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Bytes that are compared at once.
const LANES: usize = 16;

/// Whether one of `bytes` is one of `wanted`.
#[inline]
#[must_use]
pub fn has_any<const N: usize>(bytes: &[u8], wanted: &[u8; N]) -> bool {
    let lanes = |lanes: &[u8; LANES]| {
        let mut found = 0;
        for lane in lanes {
            for byte in wanted {
                found |= u8::from(lane == byte);
            }
        }
        found != 0
    };
    let (whole, rest) = bytes.as_chunks::<LANES>();
    if whole.iter().any(lanes) {
        return true;
    }
    match (rest, bytes.last_chunk()) {
        ([], _) => false,
        // Some of them were looked at before.
        (_, Some(last)) => lanes(last),
        ([first, ..], None) => {
            let mut padded = [*first; LANES];
            padded[..rest.len()].copy_from_slice(rest);
            lanes(&padded)
        }
    }
}

#[cfg(test)]
mod tests;
