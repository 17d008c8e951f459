//! Dates and timestamps as ISO 8601 writes them.

use super::fields::{Fields, Quoting, each};
use super::number::{digits, number_of_word};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Characters of a date.
const DATE_LEN: usize = 10;
/// Characters of a timestamp without a fraction.
const TIMESTAMP_LEN: usize = 19;

/// Appends the days since 1970-01-01 of `fields` to `values`, 0 for NULL, whose rows go to `nulls`. False when there is
/// a field that is neither NULL nor a date of the form `2024-02-29`.
pub fn dates(fields: Fields<'_>, quoting: Quoting<'_>, values: &mut Vec<i32>, nulls: &mut Vec<u32>) -> bool {
    each(fields, quoting, values, nulls, |bytes, start, end| match end - start {
        DATE_LEN => date(bytes, start),
        _ => None,
    })
}

/// The same of microseconds since 1970-01-01 and timestamps of the form `2024-02-29 23:59:59`, perhaps with a `T` in
/// the place of the blank, and with a point and up to six digits behind.
pub fn timestamps(fields: Fields<'_>, quoting: Quoting<'_>, values: &mut Vec<i64>, nulls: &mut Vec<u32>) -> bool {
    each(fields, quoting, values, nulls, |bytes, start, end| {
        if end - start < TIMESTAMP_LEN || !matches!(bytes[start + DATE_LEN], b' ' | b'T') {
            return None;
        }
        let days = i64::from(date(bytes, start)?);
        let part = |from: usize, behind: Option<u8>| {
            let at = start + from;
            let is_apart = behind.is_none_or(|mark| bytes[at + 2] == mark);
            if is_apart { digits(bytes, at, at + 2) } else { None }
        };
        let (hour, minute, second) = (part(11, Some(b':'))?, part(14, Some(b':'))?, part(17, None)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let seconds = days * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second;
        Some(seconds * MICROS_PER_SECOND + fraction(bytes, start + TIMESTAMP_LEN, end)?)
    })
}

/// The microseconds that stand at `bytes[start..end]` behind a point; 0 of nothing.
#[inline(always)]
fn fraction(bytes: &[u8], start: usize, end: usize) -> Option<i64> {
    let count = match end - start {
        0 => return Some(0),
        count @ 2..=7 if bytes[start] == b'.' => count - 1,
        _ => return None,
    };
    Some(digits(bytes, start + 1, end)? * 10i64.pow(6 - count as u32))
}

/// The days since 1970-01-01 of the date at `bytes[start..]`, of which ten bytes are there.
#[inline(always)]
fn date(bytes: &[u8], start: usize) -> Option<i32> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *bytes[start..].first_chunk::<DATE_LEN>()? else { return None };
    let all = number_of_word(u64::from_le_bytes([y0, y1, y2, y3, m0, m1, d0, d1]))?;
    let (year, month, day) = (all / 10_000, all / 100 % 100, all % 100);
    // The proleptic Gregorian calendar has no year 0 in SQL.
    if year == 0 || !(1..=12).contains(&month) || day < 1 || day > days_of_month(year, month) {
        return None;
    }
    Some(days_since_1970(year, month, day))
}

#[inline(always)]
fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`).
#[inline(always)]
fn days_since_1970(year: i64, month: i64, day: i64) -> i32 {
    // Years begin in March, so that a leap day is their last.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (days - 719_468) as i32
}
