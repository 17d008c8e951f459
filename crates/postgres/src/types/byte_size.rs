//! Numbers of bytes as people write them: `512MB`.

use mainstem_storage::{Error, Result};

use crate::sqlstate;

/// Units and the power of two that each stands for. As in PostgreSQL, kB, MB, GB and TB are powers of 1024 like KiB,
/// MiB, GiB and TiB.
const UNITS: &[(&str, u32)] = &[
    ("", 0),
    ("b", 0),
    ("bytes", 0),
    ("kb", 10),
    ("kib", 10),
    ("mb", 20),
    ("mib", 20),
    ("gb", 30),
    ("gib", 30),
    ("tb", 40),
    ("tib", 40),
];

/// Reads a number of bytes: `memory_limit` of SET, and options of programs.
///
/// A number without a unit counts bytes. The units are B, kB, MB, GB and TB, in which 1 kB is 1024 bytes as in
/// PostgreSQL's settings, and KiB, MiB, GiB and TiB, which mean the same. Upper and lower case are equal, and blanks
/// may stand between number and unit.
///
/// ```
/// use mainstem_postgres::types::parse_byte_size;
///
/// assert_eq!(parse_byte_size("512MB")?, 512 << 20);
/// assert_eq!(parse_byte_size("2 GiB")?, 2 << 30);
/// assert_eq!(parse_byte_size("1048576")?, 1 << 20);
/// assert_eq!(parse_byte_size("1.5GB").unwrap_err().sqlstate(), "22023");
/// # Ok::<(), mainstem_storage::Error>(())
/// ```
///
/// # Errors
/// 22023 for text of another form, a negative number, and more bytes than 64 bits count.
pub fn parse_byte_size(text: &str) -> Result<u64> {
    let (number, unit) = split_number(text.trim());
    let unit = unit.trim_start().to_ascii_lowercase();
    let bits = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bits)| *bits).ok_or_else(|| malformed(text))?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed(text));
    }
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| {
        Error::invalid(sqlstate::INVALID_PARAMETER, format!("\"{text}\" is more bytes than 64 bits count"))
    })
}

/// The number that `text` begins with, with its exponent, and what is behind it. It has no sign.
#[must_use]
pub fn split_number(text: &str) -> (&str, &str) {
    let end_of_digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (_, behind) = text.split_at(end);
    let exponent = behind.strip_prefix(['e', 'E']).unwrap_or_default();
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match end_of_digits(unsigned) {
        0 => text.split_at(end),
        digits => text.split_at(text.len() - unsigned.len() + digits),
    }
}

fn malformed(text: &str) -> Error {
    let message = format!(
        "\"{text}\" is no number of bytes: write a whole number, perhaps with a unit of B, kB, MB, GB or TB, such as 512MB"
    );
    Error::invalid(sqlstate::INVALID_PARAMETER, message)
}

/// `bytes` in a unit that people read, with a digit behind the point where it says something.
#[must_use]
pub fn byte_size_text(bytes: u64) -> String {
    const STEPS: [(&str, u32); 4] = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    let Some((unit, bits)) = STEPS.into_iter().find(|(_, bits)| bytes >= 1 << bits) else {
        return format!("{bytes} bytes");
    };
    let tenths = (u128::from(bytes) * 10 + (1 << (bits - 1))) >> bits;
    match tenths % 10 {
        0 => format!("{}{unit}", tenths / 10),
        tenth => format!("{}.{tenth}{unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::{byte_size_text, parse_byte_size};

    #[test]
    fn byte_sizes_have_units_of_powers_of_two() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("1048576", 1 << 20),
            ("1B", 1),
            ("2kB", 2 << 10),
            ("2KiB", 2 << 10),
            ("512MB", 512 << 20),
            ("512MiB", 512 << 20),
            ("3GB", 3 << 30),
            ("3GiB", 3 << 30),
            ("1TB", 1 << 40),
            ("1TiB", 1 << 40),
            (" 16 mb ", 16 << 20),
            ("16gib", 16 << 30),
            ("18446744073709551615", u64::MAX),
            ("16777215TB", 16_777_215 << 40),
        ] {
            assert_eq!(parse_byte_size(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_byte_size_is_refused_with_its_text() {
        for text in ["", " ", "MB", ".MB", "1.5GB", "-1MB", "+1", "1e3", "1e3MB", "1 k", "0x10", "1,5GB", "١MB"] {
            let error = parse_byte_size(text).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{text}");
            assert!(error.message().contains(&format!("\"{text}\" is no number of bytes")), "{error}");
        }
        for text in
            ["18446744073709551616", "16777216TB", "17179869184GB", "99999999999999999999999999999999999999999 B"]
        {
            let error = parse_byte_size(text).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{text}");
            assert!(error.message().contains("more bytes than 64 bits count"), "{error}");
        }
    }

    #[test]
    fn byte_sizes_are_written_as_they_are_read() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1 << 10, "1kB"),
            (1_536, "1.5kB"),
            (1_150_540, "1.1MB"),
            (16 << 20, "16MB"),
            ((16 << 20) + 1, "16MB"),
            (3 << 29, "1.5GB"),
            (5 << 40, "5TB"),
            (u64::MAX, "16777216TB"),
        ] {
            assert_eq!(byte_size_text(bytes), text);
        }
        for bytes in [7, 1 << 10, 512 << 20, 9 << 40] {
            assert_eq!(parse_byte_size(&byte_size_text(bytes)).unwrap(), bytes);
        }
    }
}
