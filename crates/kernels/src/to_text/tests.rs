use proptest::prelude::*;

use super::*;

fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b"x".to_vec();
    push(&mut out);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix('x').unwrap().to_owned()
}

/// A decimal by way of the text of its digits.
fn decimal(digits: i128, scale: u8) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let width = usize::from(scale) + 1;
    let figures = format!("{:0>width$}", digits.unsigned_abs());
    let (whole, behind) = figures.split_at(figures.len() - usize::from(scale));
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{behind}") }
}

#[test]
fn numbers_at_the_ends() {
    for value in [0, 1, -1, 9, 10, 99, 100, -100, 12_345, i64::MAX, i64::MIN] {
        assert_eq!(text(|out| push_i64(out, value)), value.to_string());
    }
    let powers = (0..38).map(|n| 10_i128.pow(n));
    for digits in powers.chain([0, i128::MAX, i128::MIN, i128::from(u64::MAX), i128::from(u64::MAX) + 1]) {
        for digits in [digits, digits.wrapping_sub(1), digits.wrapping_neg()] {
            for scale in 0..=38 {
                assert_eq!(text(|out| push_decimal(out, digits, scale)), decimal(digits, scale), "{digits} {scale}");
            }
        }
    }
}

#[test]
fn days_and_times() {
    assert_eq!(&day(2024, 2, 29), b"2024-02-29");
    assert_eq!(&day(1, 12, 31), b"0001-12-31");
    assert_eq!(&day(9999, 10, 9), b"9999-10-09");
    for (micros, expected) in [
        (0, "00:00:00"),
        (1, "00:00:00.000001"),
        (45_015_500_000, "12:30:15.5"),
        (86_399_999_999, "23:59:59.999999"),
        (60_000_100, "00:01:00.0001"),
    ] {
        assert_eq!(text(|out| push_time(out, micros)), expected);
    }
    assert_eq!(text(|out| push_hex(out, &[0, 0xff, 0x1a])), "00ff1a");
}

proptest! {
    #[test]
    fn numbers(value in any::<i64>(), bits in 0..64_u32, wide in any::<i128>(), shift in 0..127_u32, scale in 0..39_u8) {
        let value = value >> bits;
        prop_assert_eq!(text(|out| push_i64(out, value)), value.to_string());
        let wide = wide >> shift;
        prop_assert_eq!(text(|out| push_decimal(out, wide, scale)), decimal(wide, scale));
    }

    #[test]
    fn bytes_of_a_few(bytes in prop::collection::vec(0..20_u8, 0..70), wanted in any::<[u8; 4]>()) {
        let wanted = wanted.map(|byte| byte % 64);
        prop_assert_eq!(has_any(&bytes, &wanted), bytes.iter().any(|byte| wanted.contains(byte)));
    }
}
