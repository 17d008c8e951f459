use proptest::prelude::*;

use super::{key_bounds, zone_map};
use crate::limits::{KEY_BOUND_BYTES_MAX, ZONE_TEXT_BYTES_MAX};
use crate::row::Value;

proptest! {
    #[test]
    fn bounds_of_text_hold(text in prop_oneof!["\\PC{0,60}", "[a\u{d7ff}\u{10ffff}]{0,20}", "\u{10ffff}{30}"]) {
        let value = Value::Text(text.as_str().into());
        let zone = zone_map(value.clone(), value.clone());
        prop_assert!(zone.min <= value && zone.max >= value);
        let short = text.len() <= ZONE_TEXT_BYTES_MAX;
        prop_assert_eq!((zone.min_exact, zone.max_exact), (zone.min == value, zone.max == value));
        prop_assert_eq!(zone.min_exact, short);
        let Value::Text(max) = zone.max else { panic!() };
        let all_last = text.starts_with(&"\u{10ffff}".repeat(8));
        prop_assert!(short || all_last || max.len() <= ZONE_TEXT_BYTES_MAX + 3);
    }

    #[test]
    fn bounds_of_bytes_hold(bytes in prop::collection::vec(prop_oneof![3 => Just(0xffu8), 1 => any::<u8>()], 20..60)) {
        let value = Value::Bytes(bytes.as_slice().into());
        let zone = zone_map(value.clone(), value.clone());
        prop_assert!(zone.min <= value && zone.max >= value);
        prop_assert_eq!((zone.min_exact, zone.max_exact), (zone.min == value, zone.max == value));
    }

    #[test]
    fn bounds_of_keys_hold_and_keep_their_order(
        keys in prop::collection::vec((0usize..3, 250usize..262, any::<u8>()), 2..20),
    ) {
        let mut keys: Vec<Vec<u8>> = keys
            .into_iter()
            .map(|(fill, len, last)| {
                let mut key = vec![[0, 7, 0xff][fill]; len];
                key.push(last);
                key
            })
            .collect();
        keys.sort();
        for pair in keys.windows(2) {
            let (left, right) = (key_bounds(&pair[0], &pair[0]), key_bounds(&pair[1], &pair[1]));
            prop_assert!(*left.min <= *pair[0] && *left.max >= *pair[0]);
            prop_assert!(left.min <= right.min && left.max <= right.max);
            prop_assert!(left.min.len() <= KEY_BOUND_BYTES_MAX);
        }
    }
}

#[test]
fn surrogates_are_stepped_over() {
    let text = Value::Text(format!("{}\u{d7ff}{}", "x".repeat(29), "tail").into());
    let zone = zone_map(text.clone(), text);
    assert_eq!(zone.max, Value::Text(format!("{}\u{e000}", "x".repeat(29)).into()));
}
