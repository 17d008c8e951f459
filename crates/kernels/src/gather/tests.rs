//! Each fast twin against its scalar twin, and both against a plain loop.

use super::*;
use crate::bitmap;
use crate::bitpack::{mask, pack};
use crate::hash::hash_u64;
use proptest::prelude::*;

#[test]
fn packed_rows_at_every_width() {
    for width in (0..=64).step_by(if cfg!(miri) { 9 } else { 1 }) {
        for count in [1usize, 2, 7, 9, 64, 301] {
            let codes: Vec<u64> = (0..count as u64).map(|row| hash_u64(row) & mask(width)).collect();
            let mut packed = Vec::new();
            pack(&codes, width, &mut packed);
            // Without the padding: the last rows must not need it.
            packed.truncate((count * width as usize).div_ceil(8));
            for len in [0, 1, 3, 4, 5, 50] {
                let mut indices: Vec<u32> = (0..len).map(|i| (hash_u64(i) % count as u64) as u32).collect();
                indices.extend([count as u32 - 1, 0]);
                let expected: Vec<u64> = indices.iter().map(|&row| codes[row as usize]).collect();
                for gather in [gather_packed, scalar::gather_packed] {
                    let mut out = vec![5];
                    gather(&packed, width, &indices, &mut out);
                    assert_eq!((out[0], &out[1..]), (5, &expected[..]), "width {width}");
                }
            }
        }
    }
}

#[test]
fn selections_of_every_density() {
    for len in [0, 1, 63, 64, 65, 128, 1000] {
        for percent in [0, 1, 30, 90, 99, 100] {
            let chosen = |row: &usize| hash_u64(*row as u64) % 100 < percent;
            let mut bits = vec![0; bitmap::words(len) + 1];
            (0..len).filter(chosen).for_each(|row| bitmap::set(&mut bits, row));
            let values: Vec<(u8, i64)> = (0..len).map(|row| (row as u8, row as i64)).collect();
            let mut expected = vec![(9, 9)];
            expected.extend((0..len).filter(chosen).map(|row| values[row]));
            for filter in [filter, scalar::filter] {
                let mut out = vec![(9, 9)];
                filter(&values, &bits, &mut out);
                assert_eq!(out, expected, "{len} rows, {percent} %");
            }
            // A selection that ends early leaves out the rest.
            let words = bits.len() / 2;
            let mut out = Vec::new();
            filter(&values, &bits[..words], &mut out);
            assert_eq!(out, expected[1..].iter().filter(|v| (v.1 as usize) < words * 64).copied().collect::<Vec<_>>());
        }
    }
}

#[test]
#[should_panic(expected = "row 5 is outside 5 rows")]
fn rows_outside_panic() {
    gather(&[1, 2, 3, 4, 5], &[0, 5, 1], &mut Vec::new());
}

#[test]
#[should_panic(expected = "is outside")]
fn packed_rows_outside_panic() {
    gather_packed(&[0; 8], 7, &[0, 9], &mut Vec::new());
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn selected_rows_outside_panic() {
    filter(&[1; 70], &[1, 1 << 6], &mut Vec::new());
}

#[test]
#[should_panic(expected = "out of range")]
fn full_words_outside_panic() {
    filter(&[1; 70], &[1, u64::MAX], &mut Vec::new());
}

proptest! {
    #[test]
    fn twins_agree(values in prop::collection::vec(any::<u64>(), 1..300), picks in prop::collection::vec(any::<u32>(), 0..300),
                   mut bits in prop::collection::vec(any::<u64>(), 5), dense in any::<bool>()) {
        let indices: Vec<u32> = picks.iter().map(|pick| pick % values.len() as u32).collect();
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        gather(&values, &indices, &mut fast);
        scalar::gather(&values, &indices, &mut slow);
        prop_assert_eq!(&fast, &slow);
        if dense {
            bits[1] = u64::MAX;
        }
        bitmap::mask_end(&mut bits, values.len());
        filter(&values, &bits, &mut fast);
        scalar::filter(&values, &bits, &mut slow);
        prop_assert_eq!(&fast, &slow);
        filter_numbers(&values, &bits, &mut fast);
        scalar::filter(&values, &bits, &mut slow);
        prop_assert_eq!(&fast, &slow);
        let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
        let wide: Vec<i128> = values.iter().map(|value| i128::from(*value) << 60 | 5).collect();
        let (mut fast, mut slow) = ((vec![1], vec![2]), (vec![1], vec![2]));
        filter_numbers(&narrow, &bits, &mut fast.0);
        filter_numbers(&wide, &bits, &mut fast.1);
        scalar::filter(&narrow, &bits, &mut slow.0);
        scalar::filter(&wide, &bits, &mut slow.1);
        prop_assert_eq!(fast, slow);
        let small: Vec<i16> = values.iter().map(|value| *value as i16).collect();
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        filter_numbers(&small, &bits[..2], &mut fast);
        scalar::filter(&small, &bits[..2], &mut slow);
        prop_assert_eq!(fast, slow);
    }
}
