//! Each fast twin against its scalar twin, and the scalar twins against a plain loop.

use super::*;
use crate::bitpack::{mask, pack};
use crate::hash::hash_u64;
use proptest::prelude::*;

fn packed(codes: &[u64], width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(codes, width, &mut bytes);
    bytes
}

fn bitmap(rows: impl Iterator<Item = bool>) -> Vec<u64> {
    let rows: Vec<bool> = rows.collect();
    let mut bits = vec![0; words(rows.len())];
    for (row, _) in rows.iter().enumerate().filter(|(_, yes)| **yes) {
        crate::bitmap::set(&mut bits, row);
    }
    bits
}

/// Codes of all sizes: a third of them small, so that narrow ranges hit.
fn codes(count: usize, width: u32) -> Vec<u64> {
    (0..count as u64).map(|i| if i % 3 == 0 { i % 5 } else { hash_u64(i) } & mask(width)).collect()
}

#[test]
fn ranges_at_every_width_start_and_length() {
    for width in 0..=64 {
        let codes = codes(300, width);
        let bytes = packed(&codes, width);
        let largest = mask(width);
        for start in (0..9).chain([63, 64, 65]) {
            for len in [0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 300 - start] {
                for (lo, hi) in [
                    (0, 0),
                    (1, 3),
                    (0, u64::MAX),
                    (largest / 4, largest / 2),
                    (largest / 2, u64::MAX),
                    (largest, largest),
                    (2, 1),
                    (largest.wrapping_add(1), u64::MAX),
                ] {
                    let expected = bitmap(codes[start..].iter().take(len).map(|code| (lo..=hi).contains(code)));
                    let mut out = vec![u64::MAX; words(len) + 1];
                    select_range(&bytes, width, start, len, lo, hi, &mut out);
                    assert_eq!(out[..words(len)], expected, "width {width} rows {start}+{len} in {lo}..={hi}");
                    assert_eq!(out[words(len)], 0);
                    scalar::select_range(&bytes, width, start, len, lo, hi, &mut out);
                    assert_eq!(out[..words(len)], expected);
                }
            }
        }
    }
}

#[test]
fn members_at_every_width_start_and_length() {
    for width in 0..=64 {
        let codes = codes(300, width);
        let bytes = packed(&codes, width);
        for domain in [0usize, 1, 3, 64, 200, 256, 4096, 1 << 16] {
            let members: Vec<u64> = (0..words(domain) as u64).map(hash_u64).collect();
            for start in (0..9).chain([63, 64, 65]) {
                for len in [0, 1, 17, 64, 65, 300 - start] {
                    let expected =
                        bitmap(codes[start..].iter().take(len).map(|&code| {
                            code < members.len() as u64 * 64 && crate::bitmap::get(&members, code as usize)
                        }));
                    let mut out = vec![u64::MAX; words(len)];
                    select_members(&bytes, width, start, len, &members, &mut out);
                    assert_eq!(out, expected, "width {width} rows {start}+{len} of {domain}");
                    scalar::select_members(&bytes, width, start, len, &members, &mut out);
                    assert_eq!(out, expected);
                }
            }
        }
    }
}

/// The allocation ends with the last code, without the padding: a read beyond would be seen by Miri.
#[test]
fn bytes_without_padding() {
    for width in (1..=64).step_by(if cfg!(miri) { 9 } else { 1 }) {
        for len in [17, 77] {
            let codes = codes(len, width);
            let exact: Box<[u8]> = packed(&codes, width)[..(len * width as usize).div_ceil(8)].into();
            let mut out = [0; 2];
            select_range(&exact, width, 0, len, 1, 3, &mut out);
            assert_eq!(out[..words(len)], bitmap(codes.iter().map(|code| (1..=3).contains(code))));
            select_members(&exact, width, 0, len, &[0b1110], &mut out);
            assert_eq!(out[..words(len)], bitmap(codes.iter().map(|code| (1..=3).contains(code))));
        }
    }
}

/// Both twins on `values` for the bounds that occur in it, against `order`.
fn plain<T: Plain + PartialEq + std::fmt::Debug>(values: &[T], order: impl Fn(T, T) -> std::cmp::Ordering) {
    for &lo in values.iter().step_by(3).take(12) {
        for &hi in values.iter().rev().step_by(5).take(12).chain([&lo]) {
            for start in [0, 1, 5] {
                let values = &values[start..];
                let expected = bitmap(values.iter().map(|&v| order(v, lo).is_ge() && order(v, hi).is_le()));
                let mut out = vec![u64::MAX; words(values.len())];
                select_range_plain(values, lo, hi, &mut out);
                assert_eq!(out, expected, "{lo:?}..={hi:?}");
                scalar::select_range_plain(values, lo, hi, &mut out);
                assert_eq!(out, expected, "{lo:?}..={hi:?}");
            }
        }
    }
}

#[test]
fn plain_ranges_of_every_type() {
    let bits: Vec<u64> = (0..333).map(|i| if i % 4 == 0 { i % 7 } else { hash_u64(i) }).collect();
    plain(&bits.iter().map(|&b| b as u8).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| b as i16).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| b as u16).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| b as i32).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| b as u32).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| b as i64).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits, |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| (i128::from(b) << 64) - 7).collect::<Vec<_>>(), |a, b| a.cmp(&b));
    plain(&bits.iter().map(|&b| (u128::from(b) << 65) + 7).collect::<Vec<_>>(), |a, b| a.cmp(&b));
}

#[test]
fn plain_ranges_of_floats() {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MAX, f64::MIN, -f64::NAN, 1.5];
    let values: Vec<f64> = (0..333)
        .map(|i| if i % 3 == 0 { special[i / 3 % 8] } else { hash_u64(i as u64) as i64 as f64 / 1e16 })
        .collect();
    // NaN equals NaN and is above all numbers, infinity included.
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    for &lo in &special {
        for &hi in &special {
            let expected = bitmap(values.iter().map(|&v| order(v, lo).is_ge() && order(v, hi).is_le()));
            let mut out = vec![0; words(values.len())];
            select_range_plain(&values, lo, hi, &mut out);
            assert_eq!(out, expected, "{lo}..={hi}");
            let narrow: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            let (lo, hi) = (lo as f32, hi as f32);
            select_range_plain(&narrow, lo, hi, &mut out);
            let mut twin = vec![0; words(values.len())];
            scalar::select_range_plain(&narrow, lo, hi, &mut twin);
            assert_eq!(out, twin, "{lo}..={hi}");
        }
    }
    // -0.0 is 0.0.
    let mut out = [0];
    select_range_plain(&[-0.0, 0.0, 1.0], 0.0, 0.5, &mut out);
    assert_eq!(out, [0b11]);
}

#[test]
#[should_panic(expected = "do not fit")]
fn rows_beyond_the_bytes_panic() {
    select_range(&[0; 16], 7, 10, 10, 0, 0, &mut [0]);
}

proptest! {
    #[test]
    fn twins_agree(
        width in 0u32..=64,
        raw in prop::collection::vec(any::<u64>(), 0..400),
        (lo, hi) in any::<(u64, u64)>(),
        members in prop::collection::vec(any::<u64>(), 0..80),
        start in 0usize..80,
    ) {
        let codes: Vec<u64> = raw.iter().map(|code| code & mask(width)).collect();
        let bytes = packed(&codes, width);
        let start = start.min(codes.len());
        let len = codes.len() - start;
        let (lo, hi) = (lo & mask(width), hi & mask(width));
        let (mut fast, mut slow) = (vec![9; words(len)], vec![7; words(len)]);
        select_range(&bytes, width, start, len, lo, hi, &mut fast);
        scalar::select_range(&bytes, width, start, len, lo, hi, &mut slow);
        prop_assert_eq!(&fast, &slow);
        select_members(&bytes, width, start, len, &members, &mut fast);
        scalar::select_members(&bytes, width, start, len, &members, &mut slow);
        prop_assert_eq!(&fast, &slow);
    }
}
