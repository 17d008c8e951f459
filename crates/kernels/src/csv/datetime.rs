//! Dates and timestamps as ISO 8601 writes them.

#[cfg(target_arch = "x86_64")]
use super::avx512::values::{Form, Lanes, by_eights};
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
    let one = |bytes: &[u8], start: usize, end: usize| match end - start {
        DATE_LEN => date(bytes, start),
        _ => None,
    };
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        // SAFETY: the processor has what this twin asks for.
        return unsafe { dates_by_eights(fields, quoting, values, nulls, one) };
    }
    each(fields, quoting, values, nulls, one)
}

/// As [`dates`], eight at once; `one` reads what is not plain.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
fn dates_by_eights(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    values: &mut Vec<i32>,
    nulls: &mut Vec<u32>,
    one: impl Fn(&[u8], usize, usize) -> Option<i32> + Copy,
) -> bool {
    let form = Form::date();
    by_eights(fields, quoting, values, nulls, |lanes: Lanes| lanes.days(form, FIRST_DAY), one)
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
    let [century, of_century, month, day] = [0, 16, 32, 48].map(|shift| (pairs >> shift) as usize & 0xFF);
    let days = days_of(100 * century + of_century, MONTH_STEP * month + day);
    (days != NO_DAY).then_some(days)
}

/// The days since 1970-01-01 of `year` and `MONTH_STEP` times a month plus a day; [`NO_DAY`] if there is no such date.
#[inline(always)]
fn days_of(year: usize, day: usize) -> i32 {
    let (before, is_leap) = YEARS[year % YEARS.len()];
    let day = DAYS[usize::from(is_leap)][day % DAYS_LEN];
    if day == 0 || before == NO_DAY { NO_DAY } else { before + i32::from(day) }
}

/// What is no date.
const NO_DAY: i32 = i32::MIN;
/// What 1970-01-01 is, where 0001-01-01 is day 1.
const FIRST_DAY: i32 = 719_163;
/// What a month counts in the places of a table of days: more than two digits can be.
const MONTH_STEP: usize = 128;
/// More than 99 months and days.
const DAYS_LEN: usize = 1 << 14;

/// The day before each year, and whether it is a leap year; of four digits, and none before year 1: the proleptic
/// Gregorian calendar has no year 0 in SQL.
static YEARS: [(i32, bool); 1 << 14] = {
    let mut years = [(NO_DAY, false); 1 << 14];
    let mut year = 1;
    while year <= 9_999 {
        let (before, centuries) = (year - 1, (year - 1) / 100);
        let is_leap = if year % 100 == 0 { year % 400 == 0 } else { year % 4 == 0 };
        years[year as usize] = (365 * before + before / 4 - centuries + centuries / 4 - FIRST_DAY, is_leap);
        year += 1;
    }
    years
};

/// Which day of a year each day of each month is, from 1 on, 0 for none; of leap years behind.
static DAYS: [[u16; DAYS_LEN]; 2] = [days_of_year(28), days_of_year(29)];

const fn days_of_year(february: usize) -> [u16; DAYS_LEN] {
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut days = [0; DAYS_LEN];
    let (mut month, mut number) = (1, 1);
    while month <= lengths.len() {
        let mut day = 1;
        while day <= lengths[month - 1] {
            days[MONTH_STEP * month + day] = number;
            number += 1;
            day += 1;
        }
        month += 1;
    }
    days
}
