//! Numbers of bytes as people write them.

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
        ("1.5GB", 3 << 29),
        (".5kB", 512),
        ("1.kB", 1 << 10),
        ("0.1kB", 102),
        ("0.0009765625kB", 1),
        ("1.00000000000000000000000001MB", 1 << 20),
        ("18446744073709551615", u64::MAX),
        ("16777215TB", 16_777_215 << 40),
    ] {
        assert_eq!(parse_byte_size(text).unwrap(), bytes, "{text}");
    }
}

#[test]
fn what_is_no_byte_size_is_refused_with_its_text() {
    for text in ["", " ", "MB", ".", ".MB", "1.2.3MB", "-1MB", "+1", "1e6", "12 parsecs", "1 k", "0x10", "1,5GB", "١MB"]
    {
        let error = parse_byte_size(text).unwrap_err();
        assert_eq!(error.sqlstate(), "22023", "{text}");
        assert!(error.message().contains(&format!("\"{text}\" is no number of bytes")), "{error}");
    }
    for text in ["18446744073709551616", "16777216TB", "17179869184GB", "99999999999999999999999999999999999999999 B"] {
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
    for bytes in [7, 1 << 10, 3 << 29, 512 << 20, 9 << 40] {
        assert_eq!(parse_byte_size(&byte_size_text(bytes)).unwrap(), bytes);
    }
}
