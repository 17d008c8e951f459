//! Sizes in bytes, as settings and options write them.

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// Units, each with the power of 1024 that it stands for. PostgreSQL's `MB` is the `MiB` of others.
const UNITS: &[(&str, u32)] =
    &[("", 0), ("b", 0), ("kb", 1), ("kib", 1), ("mb", 2), ("mib", 2), ("gb", 3), ("gib", 3), ("tb", 4), ("tib", 4)];

/// The bytes that `text` stands for: a number of them, or a number with a unit, which are PostgreSQL's: `B`, `kB`, `MB`, `GB`,
/// `TB`, each 1024 of the one before. `KiB`, `MiB`, `GiB` and `TiB` mean the same, in either case. The number may have a
/// fraction; what it comes to is rounded down to whole bytes.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// assert_eq!(mainstem::parse_byte_size("512MB")?, 512 << 20);
/// assert_eq!(mainstem::parse_byte_size("1.5 GiB")?, 1_610_612_736);
/// assert_eq!(mainstem::parse_byte_size("65536")?, 65_536);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// 22023 for any other text, and for more than 64 bits of bytes.
pub fn parse_byte_size(text: &str) -> Result<u64> {
    let bad = || {
        Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!(
                "\"{text}\" is no size: it is a number of bytes, or one with a unit (kB, MB, GB, TB), such as 512MB"
            ),
        )
    };
    let written = text.trim();
    let end = written.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(written.len());
    let (number, unit) = written.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, power) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let bytes_per_unit = 1024_u128.pow(*power);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // A fraction of more digits than there are bytes in the largest unit adds nothing.
    let fraction = fraction.get(..15).unwrap_or(fraction);
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
        return Err(bad());
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| bad())?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).map_err(|_| bad())?);
    let bytes = digits.checked_mul(bytes_per_unit).ok_or_else(bad)? / scale;
    u64::try_from(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::parse_byte_size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4_096),
            ("17 B", 17),
            ("1kB", 1 << 10),
            ("2KiB", 2 << 10),
            ("512MB", 512 << 20),
            (" 512 mib ", 512 << 20),
            ("2GiB", 2 << 30),
            ("1.5GB", 3 << 29),
            ("0.0001kB", 0),
            ("0.3333333333333333333333333kB", 341),
            ("16TB", 16 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_byte_size(text).ok(), Some(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            " ",
            "MB",
            "-1",
            "+1",
            "1,5GB",
            "1.",
            ".5GB",
            "1.2.3",
            "12 apples",
            "1e3",
            "5 M",
            "18446744073709551616",
            "99999999TB",
        ] {
            assert_eq!(parse_byte_size(text).err().map(|e| e.sqlstate()), Some("22023"), "{text}");
        }
    }
}
