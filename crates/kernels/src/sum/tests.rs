//! Each fast twin against its scalar twin.

use super::*;
use crate::bitmap;
use crate::hash::hash_u64;
use proptest::prelude::*;

#[test]
fn extremes_of_every_length() {
    for len in 0..70 {
        for pattern in [0, 1, 2, 3] {
            let long: Vec<i64> = (0..len)
                .map(|at| match (pattern, at % 2) {
                    (0, _) | (2, 0) => i64::MIN,
                    (1, _) | (2, _) => i64::MAX,
                    _ => hash_u64(at) as i64,
                })
                .collect();
            let middle: Vec<i32> = long.iter().map(|&v| (v >> 32) as i32).collect();
            let short: Vec<i16> = long.iter().map(|&v| (v >> 48) as i16).collect();
            assert_eq!(sum_i64(&long), scalar::sum_i64(&long), "{len} values of pattern {pattern}");
            assert_eq!(sum_i32(&middle), scalar::sum_i32(&middle), "{len} values of pattern {pattern}");
            assert_eq!(sum_i16(&short), scalar::sum_i16(&short), "{len} values of pattern {pattern}");
        }
    }
}

#[test]
fn several_rounds_of_the_largest() {
    let values = vec![i64::MIN; 10_001];
    assert_eq!(sum_i64(&values), i128::from(i64::MIN) * 10_001);
    let values = vec![i64::MAX; 10_001];
    assert_eq!(sum_i64(&values), i128::from(i64::MAX) * 10_001);
}

proptest! {
    #[test]
    fn any_values(long in prop::collection::vec(any::<i64>(), 0..300)) {
        prop_assert_eq!(sum_i64(&long), scalar::sum_i64(&long));
    }

    #[test]
    fn any_shorter_values(short in prop::collection::vec(any::<(i32, i16)>(), 0..300)) {
        let (middle, short): (Vec<i32>, Vec<i16>) = short.into_iter().unzip();
        prop_assert_eq!(sum_i32(&middle), scalar::sum_i32(&middle));
        prop_assert_eq!(sum_i16(&short), scalar::sum_i16(&short));
    }

    #[test]
    fn any_selection(
        values in prop::collection::vec(any::<u64>(), 0..400),
        words in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 7),
    ) {
        let mut selection = words[..bitmap::words(values.len())].to_vec();
        bitmap::mask_end(&mut selection, values.len());
        let narrow: Vec<u32> = values.iter().map(|value| (value >> 32) as u32).collect();
        prop_assert_eq!(sum_selected_u64(&values, &selection), scalar::sum_selected(&values, &selection));
        prop_assert_eq!(sum_selected_u32(&narrow, &selection), scalar::sum_selected(&narrow, &selection));
        #[cfg(target_arch = "x86_64")]
        if crate::dispatch::avx2() {
            let (blocks, _) = narrow.as_chunks::<64>();
            let (wide, _) = values.as_chunks::<64>();
            let whole = &selection[..blocks.len()];
            // SAFETY: the processor has AVX2.
            let (found, of_wide) = unsafe { (avx2::sum_selected_u32(blocks, whole), avx2::sum_selected_u64(wide, whole)) };
            prop_assert_eq!(u128::from(found), scalar::sum_selected(blocks.as_flattened(), whole));
            prop_assert_eq!(of_wide, scalar::sum_selected(wide.as_flattened(), whole));
        }
    }
}

#[test]
fn the_largest_of_all_rows() {
    let (narrow, wide, all) = (vec![u32::MAX; 100_000], vec![u64::MAX; 100_000], bitmap::full(100_000));
    assert_eq!(sum_selected_u32(&narrow, &all), u128::from(u32::MAX) * 100_000);
    assert_eq!(sum_selected_u64(&wide, &all), u128::from(u64::MAX) * 100_000);
}
