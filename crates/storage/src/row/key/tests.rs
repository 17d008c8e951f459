use proptest::prelude::*;

use super::*;
use crate::row::testing::{batch, id, table, table_and_rows};
use crate::row::{RowBuffer, RowLayout, Value};
use crate::schema::{Column, DataType, TableSchema};

fn key_of(codec: &KeyCodec, values: &[Value]) -> Vec<u8> {
    let mut key = vec![];
    codec.encode_values(values, &mut key).unwrap();
    key
}

fn codec_of(schema: &TableSchema) -> KeyCodec {
    KeyCodec::new(schema, &schema.column_ids())
}

proptest! {
    #[test]
    fn keys_order_and_come_back_as_their_values((schema, rows) in table_and_rows(3, 16)) {
        let codec = codec_of(&schema);
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| key_of(&codec, row)).collect();
        for (row, key) in rows.iter().zip(&keys) {
            prop_assert_eq!(&codec.decode(key).unwrap(), row);
            prop_assert!(codec.fixed_width().is_none_or(|width| width == key.len()));
            for (other, other_key) in rows.iter().zip(&keys) {
                // Vec compares value by value, and Value as compare_values.
                prop_assert_eq!(key.cmp(other_key), row.cmp(other), "{:?} {:?}", row, other);
                let mut start = vec![];
                codec.encode_prefix(&other[..1], &mut start).unwrap();
                prop_assert_eq!(key.starts_with(&start), row[0] == other[0]);
            }
        }
    }

    #[test]
    fn arrays_rows_and_values_give_the_same_keys((schema, rows) in table_and_rows(4, 20)) {
        let reversed: Vec<_> = schema.column_ids().into_iter().rev().collect();
        let codec = KeyCodec::new(&schema, &reversed);
        let mut arrays = batch(&schema, &rows).columns().to_vec();
        arrays.reverse();
        let keys = codec.encode_arrays(&arrays).unwrap();
        prop_assert_eq!(keys.len(), rows.len());

        let mut buffer = RowBuffer::new(RowLayout::new(&schema));
        for (i, row) in rows.iter().enumerate() {
            buffer.push_values(row).unwrap();
            let mut of_row = vec![];
            codec.encode_row(buffer.row(i), &mut of_row);
            let mut values = row.clone();
            values.reverse();
            prop_assert_eq!(&of_row, &key_of(&codec, &values));
            prop_assert_eq!(keys.get(i), &of_row[..]);
        }
        let order = keys.sorted_permutation();
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|i| rows[*i as usize].iter().rev().collect::<Vec<_>>());
        prop_assert_eq!(&order, &expected);
        prop_assert_eq!(keys.is_sorted(), order.is_sorted());
    }

    #[test]
    fn foreign_bytes_are_no_key((schema, rows) in table_and_rows(3, 1), noise in any::<Vec<u8>>(), at in any::<usize>()) {
        let codec = codec_of(&schema);
        let mut key = rows.first().map(|row| key_of(&codec, row)).unwrap_or_default();
        key.splice(at % (key.len() + 1).., noise);
        if let Err(e) = codec.decode(&key) {
            prop_assert_eq!(e.kind(), crate::ErrorKind::Corrupt);
        }
    }

    /// Enough keys for the radix sort, few enough values for ties.
    #[test]
    fn many_keys_sort_stably(keys in prop::collection::vec((0..40i64, any::<bool>()), 300..900), shift in 0..56u32) {
        for width in [8, 12, 20] {
            let number = |(k, negative): &(i64, bool)| if *negative { -(k << shift) } else { k << shift };
            let data: Vec<u8> = keys
                .iter()
                .flat_map(|k| {
                    let mut key = vec![0; width];
                    key[width - 8..].copy_from_slice(&codec::flip_i64(number(k)));
                    key
                })
                .collect();
            let order = Keys::fixed(data, width, keys.len()).sorted_permutation();
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            expected.sort_by_key(|i| number(&keys[*i as usize]));
            prop_assert_eq!(order, expected);
        }
    }

    /// Keys whose bytes differ in few places and in all, some of them twice.
    #[test]
    fn orders_tell_the_first_key_that_is_there_twice(
        keys in prop::collection::vec(prop::collection::vec(0..3u8, 24), 2..600),
        varying in prop::collection::vec(any::<bool>(), 24),
        cut in 0..24usize,
    ) {
        for width in [3, 8, 12, 16, 24] {
            let byte = |key: &Vec<u8>, at: usize| if varying[at] { key[at] } else { 7 };
            let fixed: Vec<Vec<u8>> = keys.iter().map(|key| (0..width).map(|at| byte(key, at)).collect()).collect();
            let ragged: Vec<Vec<u8>> = keys.iter().map(|key| key[..width.min(cut + usize::from(key[0]))].to_vec()).collect();
            let ends = ragged.iter().scan(0, |end, key| { *end += key.len(); Some(*end) }).collect();
            let of_ragged = Keys::variable(ragged.concat(), ends);
            for (keys, sorted) in [
                (&fixed, Keys::fixed(fixed.concat(), width, fixed.len()).sorted()),
                (&ragged, of_ragged.sorted()),
            ] {
                let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
                expected.sort_by_key(|row| &keys[*row as usize]);
                let is_repeated = |at: &usize| keys[expected[at - 1] as usize] == keys[expected[*at] as usize];
                prop_assert_eq!(sorted.first_repeated, (1..keys.len()).find(is_repeated));
                prop_assert_eq!(sorted.order, expected);
            }
        }
    }
}

#[test]
fn widths_are_known_where_they_are_fixed() {
    let width = |columns: &[(DataType, bool)]| codec_of(&table(columns)).fixed_width();
    assert_eq!(width(&[(DataType::BigInt, false)]), Some(8));
    assert_eq!(width(&[(DataType::Boolean, false), (DataType::SmallInt, true), (DataType::Date, false)]), Some(8));
    assert_eq!(width(&[(DataType::Decimal { precision: 18, scale: 2 }, false)]), Some(8));
    assert_eq!(width(&[(DataType::Decimal { precision: 19, scale: 2 }, true)]), Some(17));
    assert_eq!(width(&[(DataType::Uuid, true), (DataType::Time, false)]), Some(25));
    assert_eq!(width(&[(DataType::Text { max_chars: Some(1) }, false)]), None);
    assert_eq!(width(&[(DataType::Char { chars: 1 }, false)]), None);
    assert_eq!(width(&[]), Some(0));
}

#[test]
fn bytes_of_keys_are_a_format() {
    let schema = table(&[(DataType::Integer, true), (DataType::Text { max_chars: None }, false)]);
    let key = key_of(&codec_of(&schema), &[Value::Int(-2), Value::Text("a\0\u{1}".into())]);
    assert_eq!(key, [0, 0x7f, 0xff, 0xff, 0xfe, b'a', 1, 1, 1, 2, 0]);
    let null = key_of(&codec_of(&schema), &[Value::Null, Value::Text("".into())]);
    assert_eq!(null, [1, 0, 0, 0, 0, 0]);
    assert_eq!(hash_key(b""), 0x2d06_8005_38d3_94c2);
    let doubles = codec_of(&table(&[(DataType::Double, false)]));
    assert_eq!(key_of(&doubles, &[Value::Double(-0.0)]), [0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(key_of(&doubles, &[Value::Double(-f64::NAN)]), [0xff, 0xf8, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn values_that_are_no_key_are_refused() {
    let schema = table(&[(DataType::SmallInt, false), (DataType::Decimal { precision: 5, scale: 0 }, true)]);
    let codec = codec_of(&schema);
    let mut out = vec![9];
    let mut state = |values: &[Value]| codec.encode_values(values, &mut out).unwrap_err().sqlstate();
    assert_eq!(state(&[Value::Null, Value::Null]), "23502");
    assert_eq!(state(&[Value::Int(40_000), Value::Null]), "22003");
    assert_eq!(state(&[Value::Int(1), Value::Decimal(i128::MAX)]), "22003");
    assert_eq!(state(&[Value::Decimal(1), Value::Null]), "42804");
    assert_eq!(state(&[Value::Int(1), Value::Int(1)]), "42804");
    assert_eq!(state(&[Value::Text("1".into()), Value::Null]), "42804");
    assert_eq!(state(&[Value::Int(1)]), "XX000");
    assert_eq!(out, [9]);
}

#[test]
fn rows_of_other_schema_versions_have_keys() {
    let old = table(&[(DataType::Integer, false)]);
    let mut new = TableSchema::clone(&old);
    let added = Column { missing_value: Value::Int(5), ..Column::new(id(1), "added", DataType::BigInt, false) };
    new.columns.insert(0, added);
    let codec = KeyCodec::new(&new, &[id(0), id(1)]);
    let mut buffer = RowBuffer::new(RowLayout::new(&old));
    buffer.push_values(&[Value::Int(3)]).unwrap();
    let mut key = vec![];
    codec.encode_row(buffer.row(0), &mut key);
    assert_eq!(codec.decode(&key).unwrap(), [Value::Int(3), Value::Int(5)]);
}
