//! Decimals are integers, and whatever is not is told; the same bits come back.

use proptest::prelude::*;

use super::*;

#[test]
fn decimals_are_integers() {
    for digits in 0..10u8 {
        let values: Vec<f64> = (-500i32..500)
            .map(|i| format!("{}e-{digits}", i64::from(i) * 7_919).parse().unwrap())
            .map(|v: f64| v + 0.0)
            .collect();
        let scales = candidates(values.chunks(100));
        let scale = best(&values, &scales);
        let exact = values.iter().filter(|value| exact(**value, scale).is_some()).count();
        assert!(exact > 950, "{exact} of 1,000 with {digits} digits in {scale:?}");
        let width = bits(&values, scale) / 1_000;
        assert!(width < 26, "{width} bits of {digits} digits in {scale:?}");
    }
    let prices: Vec<f32> = (0..1_000).map(|i| format!("{}.{:02}", i, i % 100).parse().unwrap()).collect();
    let scale = best(&prices, &candidates(prices.chunks(50)));
    assert!(prices.iter().all(|price| exact(*price, scale).is_some()), "{scale:?}");
}

#[test]
fn what_is_no_decimal_is_an_exception() {
    for scale in Scale::all() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX, 1e300] {
            assert_eq!(exact(value, scale), None, "{value} in {scale:?}");
        }
        assert_eq!(exact(0.0, scale), Some(0));
    }
    assert_eq!(Scale::new(18, 18), Some(Scale { exponent: 18, factor: 18 }));
    assert_eq!((Scale::new(19, 0), Scale::new(3, 4)), (None, None));
    assert_eq!(candidates::<f64>(std::iter::empty()).len(), 1);
}

proptest! {
    #[test]
    fn the_same_bits_come_back(value in any::<f64>(), small in any::<f32>(), exponent in 0u8..19, factor in 0u8..19) {
        let scale = Scale::new(exponent.max(factor), exponent.min(factor)).unwrap();
        if let Some(integer) = exact(value, scale) {
            prop_assert_eq!(decode::<f64>(integer, scale).to_bits(), value.to_bits());
        }
        if let Some(integer) = exact(small, scale) {
            prop_assert_eq!(decode::<f32>(integer, scale).to_bits(), small.to_bits());
        }
    }
}
