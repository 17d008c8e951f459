//! Dates and timestamps as ISO 8601 writes them.

use super::fields::{Fields, Quoting, each};
use super::number::{digits, pairs_of_word};

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
    let pairs = pairs_of_word(u64::from_le_bytes([y0, y1, y2, y3, m0, m1, d0, d1]))?;
    let [century, of_century, month, day] = [0, 16, 32, 48].map(|shift| (pairs >> shift) as u32 & 0xFF);
    let year = 100 * century + of_century;
    let is_leap = if of_century == 0 { century % 4 == 0 } else { of_century % 4 == 0 };
    let (before, days) = MONTHS[usize::from(is_leap)].get(month as usize).copied()?;
    // The proleptic Gregorian calendar has no year 0 in SQL. Day 0 exceeds all days when one is taken from it.
    if year == 0 || day.wrapping_sub(1) >= days {
        return None;
    }
    let years = year - 1;
    let centuries = years / 100;
    Some((365 * years + years / 4 - centuries + centuries / 4 + before + day) as i32 - FIRST_DAY)
}

/// What 1970-01-01 is, where 0001-01-01 is day 1.
const FIRST_DAY: i32 = 719_163;

/// Days before each month of a year and days in it, from month 1 on; of leap years behind.
const MONTHS: [[(u32, u32); 13]; 2] = [months(28), months(29)];

const fn months(february: u32) -> [(u32, u32); 13] {
    let days = [0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut months = [(0, 0); 13];
    let (mut month, mut before) = (1, 0);
    while month < months.len() {
        months[month] = (before, days[month]);
        before += days[month];
        month += 1;
    }
    months
}
