//! Ranges of keys of every shape against all keys, while the generation grows.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::{delta, rows, table};
use crate::delta_store::{DeltaGeneration, OrderedRows};
use crate::ids::{CommitTs, KeyId};
use crate::row::Value;
use crate::row::key::{KeyRange, TableKey};
use crate::schema::{DataType, TableSchema, UniqueKey};

const TEXT: DataType = DataType::Text { max_chars: None };

fn text(word: &str) -> Value {
    Value::Text(word.into())
}

/// Texts that begin alike, some beyond the bytes that stand beside a row.
fn word() -> BoxedStrategy<Value> {
    prop_oneof![
        "[ab]{0,3}".prop_map(|word| text(&word)),
        "[ab]{0,2}".prop_map(|word| text(&format!("letters, the same for all of the words: {word}"))),
        Just(text("a\0")),
        Just(text("a\u{1}")),
    ]
    .boxed()
}

fn limit<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Bound<T>> {
    prop_oneof![Just(Bound::Unbounded), value.clone().prop_map(Bound::Included), value.prop_map(Bound::Excluded),]
}

/// The first rows of the keys in `range`, in key order.
fn listed(delta: &DeltaGeneration, range: &KeyRange) -> Vec<u32> {
    let mut keyed: Vec<(Vec<u8>, u32)> = Vec::new();
    for list in delta.key_range(KeyId::PRIMARY, range).unwrap() {
        let start = keyed.len();
        for offset in list.offsets() {
            let mut key = Vec::new();
            assert!(delta.key_of(KeyId::PRIMARY, offset, &mut key).unwrap());
            keyed.push((key, offset));
        }
        assert!(keyed[start..].is_sorted(), "a list out of order");
    }
    keyed.sort();
    keyed.into_iter().map(|(_, offset)| offset).collect()
}

/// Appends `added`, some rows a time, and asks for `equal` and the bounds behind each.
fn check(
    columns: &[(DataType, bool)],
    added: &[Vec<Value>],
    equal: &[Value],
    (low, high): (Bound<Value>, Bound<Value>),
) -> Result<(), TestCaseError> {
    let key: Vec<u32> = (0..columns.len() as u32).collect();
    let schema = table(columns, &key, &key);
    let delta = delta(&schema);
    let codec = TableKey::of(&schema, KeyId::PRIMARY).unwrap();
    let range = KeyRange::new(codec.codec(), equal.to_vec(), low.clone(), high.clone()).unwrap();
    let encoded = |values: &[Value]| {
        let mut key = Vec::new();
        codec.codec().encode_prefix(values, &mut key).unwrap();
        key
    };
    let wanted = |row: &[Value]| {
        let next = encoded(&row[..columns.len().min(equal.len() + 1)]);
        let of_bound = |bound: &Bound<Value>| bound.clone().map(|value| encoded(&[equal, &[value]].concat()));
        row.starts_with(equal) && std::ops::RangeBounds::contains(&(of_bound(&low), of_bound(&high)), &next)
    };
    let mut first: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for (number, some) in added.chunks(50).enumerate() {
        for row in some {
            let offset = delta.rows();
            delta.append(&rows(&schema, std::slice::from_ref(row)), CommitTs(number as u64 + 1)).unwrap();
            if wanted(row) {
                first.entry(encoded(row)).or_insert(offset);
            }
        }
        prop_assert_eq!(listed(&delta, &range), first.values().copied().collect::<Vec<_>>());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn keys_of_numbers(
        added in proptest::collection::vec((-3_i64..4, -40_i64..40), 1..400),
        equal in proptest::option::of(-4_i64..5),
        limits in (limit(-45_i64..45), limit(-45_i64..45)),
    ) {
        let added: Vec<_> = added.into_iter().map(|(a, b)| vec![Value::Int(a), Value::Int(b)]).collect();
        let columns = [(DataType::BigInt, false), (DataType::Integer, false)];
        let limits = (limits.0.map(Value::Int), limits.1.map(Value::Int));
        check(&columns, &added, &equal.into_iter().map(Value::Int).collect::<Vec<_>>(), limits)?;
    }

    #[test]
    fn keys_of_texts(
        added in proptest::collection::vec((word(), -3_i64..3), 1..300),
        limits in (limit(word()), limit(word())),
    ) {
        let added: Vec<_> = added.into_iter().map(|(a, b)| vec![a, Value::Int(b)]).collect();
        check(&[(TEXT, false), (DataType::SmallInt, false)], &added, &[], limits)?;
    }

    #[test]
    fn keys_behind_a_text(
        added in proptest::collection::vec((word(), -3_i64..3), 1..300),
        equal in word(),
        limits in (limit(-4_i64..4), limit(-4_i64..4)),
    ) {
        let added: Vec<_> = added.into_iter().map(|(a, b)| vec![a, Value::Int(b)]).collect();
        let limits = (limits.0.map(Value::Int), limits.1.map(Value::Int));
        check(&[(TEXT, false), (DataType::SmallInt, false)], &added, &[equal], limits)?;
    }
}

/// Readers make levels while the writer appends: each finds every row that was published before it asked, in order.
#[test]
fn readers_find_what_is_published_while_rows_come() {
    const ROWS: u32 = 20_000;
    let schema = table(&[(DataType::BigInt, false)], &[0], &[0]);
    let delta = delta(&schema);
    let codec = TableKey::of(&schema, KeyId::PRIMARY).unwrap();
    let all = KeyRange::new(codec.codec(), Vec::new(), Bound::Unbounded, Bound::Unbounded).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for offset in 0..ROWS {
                // Distinct, in no order.
                let id = Value::Int(i64::from(offset.wrapping_mul(0x9e37_79b1)));
                delta.append(&rows(&schema, &[vec![id]]), CommitTs(u64::from(offset) + 1)).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let published = delta.rows();
                    let found = listed(&delta, &all);
                    let mut offsets: Vec<u32> = found.into_iter().filter(|offset| *offset < published).collect();
                    offsets.sort_unstable();
                    assert!(offsets.into_iter().eq(0..published), "of {published} rows");
                    if published == ROWS {
                        break;
                    }
                }
            });
        }
    });
}

/// Each key has an order of its own, in which rows without it are not.
#[test]
fn rows_without_a_key_are_in_the_order_of_the_others() {
    let mut schema = TableSchema::clone(&table(&[(DataType::BigInt, false), (TEXT, true)], &[0], &[0]));
    let unique = KeyId(1);
    schema.unique_keys.push(UniqueKey { id: unique, name: "u".into(), columns: vec![schema.columns[1].id] });
    let schema = Arc::new(schema);
    let delta = delta(&schema);
    let all = |id| {
        let key = TableKey::of(&schema, id).unwrap();
        KeyRange::new(key.codec(), Vec::new(), Bound::Unbounded, Bound::Unbounded).unwrap()
    };
    let found = |id: KeyId| -> Vec<u32> {
        let mut keyed: Vec<(Vec<u8>, u32)> = Vec::new();
        for offset in delta.key_range(id, &all(id)).unwrap().iter().flat_map(OrderedRows::offsets) {
            let mut key = Vec::new();
            assert!(delta.key_of(id, offset, &mut key).unwrap());
            keyed.push((key, offset));
        }
        keyed.sort();
        keyed.into_iter().map(|(_, offset)| offset).collect()
    };
    for number in 0..1_000_u32 {
        let id = i64::from(number * 7 % 1_000);
        let word = if number % 3 == 0 { Value::Null } else { text(&format!("{:04}", number * 11 % 1_000)) };
        delta.append(&rows(&schema, &[vec![Value::Int(id), word]]), CommitTs(u64::from(number) + 1)).unwrap();
        // Asked early and late, so that both orders are made of several pieces.
        if number % 97 == 0 || number == 999 {
            let mut by_id: Vec<u32> = (0..=number).collect();
            by_id.sort_by_key(|offset| offset * 7 % 1_000);
            assert_eq!(found(KeyId::PRIMARY), by_id);
            let mut by_word: Vec<u32> = (0..=number).filter(|offset| offset % 3 != 0).collect();
            by_word.sort_by_key(|offset| offset * 11 % 1_000);
            assert_eq!(found(unique), by_word);
        }
    }
    assert!(delta.key_range(KeyId(2), &all(unique)).is_err());
}
