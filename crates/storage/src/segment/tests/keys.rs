//! Rows by key: filter, bounds and search against looking at every row.

use proptest::prelude::*;

use super::{disk, schema, segment};
use crate::row::Value;
use crate::row::key::{KeyCodec, hash_key};
use crate::schema::DataType;

fn search_everything(types: &[DataType], mut rows: Vec<Vec<Value>>, sought: &[Vec<Value>]) {
    let key_columns = types.len() - 1;
    rows.sort();
    let schema = schema(types, key_columns);
    let codec = KeyCodec::new(&schema, &schema.primary_key);
    let columns: Vec<Vec<Value>> = (0..types.len()).map(|c| rows.iter().map(|r| r[c].clone()).collect()).collect();
    let (_memory, disk) = disk();
    let segment = segment(&disk, 1, &schema, &columns);
    segment.verify(&schema).unwrap();
    let all = rows.iter().map(|r| r[..key_columns].to_vec());
    for key in all.chain(sought.iter().cloned()) {
        let mut bytes = Vec::new();
        codec.encode_values(&key, &mut bytes).unwrap();
        let found = segment.find_key(&schema, &bytes).unwrap();
        let expected: Vec<usize> = (0..rows.len()).filter(|r| rows[*r][..key_columns] == key[..]).collect();
        assert_eq!(found.clone().map(|r| r as usize).collect::<Vec<_>>(), expected, "{key:?}");
        if !expected.is_empty() {
            assert!(segment.may_contain_key(hash_key(&bytes)).unwrap());
            let bounds = segment.meta().key_bounds.as_ref().unwrap();
            assert!(*bounds.min <= *bytes && *bytes <= *bounds.max);
        }
    }
}

fn int() -> impl Strategy<Value = Value> {
    prop_oneof![(-5i64..5), Just(i64::MIN), Just(i64::MAX), any::<i64>()].prop_map(Value::Int)
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof!["[ab\u{0}\u{1}]{0,4}", "k[0-9]{300}", "\\PC{0,9}"].prop_map(|t| Value::Text(t.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn one_integer(rows in prop::collection::vec(int(), 1..300), sought in prop::collection::vec(int(), 10)) {
        let rows = rows.into_iter().map(|k| vec![k, Value::Int(0)]).collect();
        let sought: Vec<_> = sought.into_iter().map(|k| vec![k]).collect();
        search_everything(&[DataType::BigInt, DataType::Integer], rows, &sought);
    }

    #[test]
    fn integers_close_together(
        rows in prop::collection::vec(7_000i64..7_400, 1..300),
        sought in prop::collection::vec(6_990i64..7_410, 20),
    ) {
        let rows = rows.into_iter().map(|k| vec![Value::Int(k), Value::Int(0)]).collect();
        let sought: Vec<_> = sought.into_iter().map(|k| vec![Value::Int(k)]).collect();
        search_everything(&[DataType::BigInt, DataType::Integer], rows, &sought);
    }

    #[test]
    fn text_and_integer(
        rows in prop::collection::vec((text(), int()), 1..100),
        sought in prop::collection::vec((text(), int()), 10),
    ) {
        let types = [DataType::Text { max_chars: None }, DataType::BigInt, DataType::Integer];
        let rows = rows.into_iter().map(|(a, b)| vec![a, b, Value::Null]).collect();
        let sought: Vec<_> = sought.into_iter().map(|(a, b)| vec![a, b]).collect();
        search_everything(&types, rows, &sought);
    }

    #[test]
    fn floats_and_booleans(
        rows in prop::collection::vec((prop::sample::select(vec![0.0, 1.5, f64::NAN, f64::INFINITY, -3.0]), any::<bool>()), 1..40),
    ) {
        let rows = rows.into_iter().map(|(a, b)| vec![Value::Double(a), Value::Boolean(b), Value::Null]).collect();
        let sought = [vec![Value::Double(2.0), Value::Boolean(true)], vec![Value::Double(f64::NEG_INFINITY), Value::Boolean(false)]];
        search_everything(&[DataType::Double, DataType::Boolean, DataType::Integer], rows, &sought);
    }
}

#[test]
fn the_filter_denies_most_absent_keys() {
    let schema = schema(&[DataType::BigInt], 1);
    let (_memory, disk) = disk();
    let segment = segment(&disk, 1, &schema, &[(0..2000).map(|i| Value::Int(i * 2)).collect()]);
    let codec = KeyCodec::new(&schema, &schema.primary_key);
    let passed = (0..2000)
        .filter(|i| {
            let mut key = Vec::new();
            codec.encode_values(&[Value::Int(i * 2 + 1)], &mut key).unwrap();
            segment.may_contain_key(hash_key(&key)).unwrap()
        })
        .count();
    assert!(passed < 60, "{passed} of 2000 absent keys passed the filter");
}

#[test]
fn a_table_without_a_searchable_key_says_so() {
    let mut other = schema(&[DataType::BigInt], 1);
    let (_memory, disk) = disk();
    let segment = segment(&disk, 1, &other, &[vec![Value::Int(1)]]);
    other.sort_key.clear();
    segment.find_key_values(&other, &[Value::Int(1)]).unwrap_err();
}
