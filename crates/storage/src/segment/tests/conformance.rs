//! Every type in every shape: whatever encoding is chosen answers like the values themselves.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal64Type, Decimal128Type, UInt32Type};
use arrow_array::{Array, ArrayRef, UInt32Array};
use mainstem_kernels::bitmap;
use proptest::prelude::*;

use super::{ENCODINGS, disk, schema, segment, write_with};
use crate::ids::{ColumnId, SchemaVersion};
use crate::predicate::{CompareOp, Predicate, Prune};
use crate::row::{Value, array_of};
use crate::schema::{Column, DataType};
use crate::segment::{BlockCache, Encoding, Form, Segment};
use crate::settings::Encodings;

const TYPES: [DataType; 18] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 12, scale: 2 },
    DataType::Decimal { precision: 18, scale: 9 },
    DataType::Decimal { precision: 38, scale: 0 },
    DataType::Date,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Text { max_chars: None },
    DataType::Text { max_chars: Some(200) },
    DataType::Bytea,
    DataType::Time,
    DataType::Uuid,
    DataType::Char { chars: 60 },
];

/// Any value of a type, extremes often.
fn any_value(data_type: DataType) -> BoxedStrategy<Value> {
    let int = |least: i64, greatest: i64| {
        prop_oneof![
            3 => (least..=greatest).prop_map(Value::Int),
            2 => (-100i64..100).prop_map(move |v| Value::Int(v.clamp(least, greatest))),
            1 => Just(Value::Int(least)),
            1 => Just(Value::Int(greatest)),
            1 => Just(Value::Int(0)),
        ]
        .boxed()
    };
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::SmallInt => int(i16::MIN.into(), i16::MAX.into()),
        DataType::Integer | DataType::Date => int(i32::MIN.into(), i32::MAX.into()),
        DataType::BigInt | DataType::Timestamp | DataType::TimestampTz => int(i64::MIN, i64::MAX),
        DataType::Decimal { precision, .. } => {
            let greatest = 10i128.pow(precision.into()) - 1;
            prop_oneof![
                (-greatest..=greatest).prop_map(Value::Decimal),
                (-1000i128..1000).prop_map(Value::Decimal),
                Just(Value::Decimal(greatest)),
                Just(Value::Decimal(-greatest)),
            ]
            .boxed()
        }
        DataType::Real => prop_oneof![
            any::<f32>().prop_map(|v| Value::Real(if v.is_nan() { f32::NAN } else { v + 0.0 })),
            (-8i8..8).prop_map(|v| Value::Real(f32::from(v) / 4.0)),
            prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, f32::MIN_POSITIVE])
                .prop_map(Value::Real),
        ]
        .boxed(),
        DataType::Double => prop_oneof![
            any::<f64>().prop_map(|v| Value::Double(if v.is_nan() { f64::NAN } else { v + 0.0 })),
            (-8i8..8).prop_map(|v| Value::Double(f64::from(v) / 4.0)),
            prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MIN_POSITIVE])
                .prop_map(Value::Double),
        ]
        .boxed(),
        DataType::Time => int(0, 86_399_999_999),
        DataType::Uuid => prop_oneof![
            any::<u128>().prop_map(Value::Uuid),
            (0u128..100).prop_map(Value::Uuid),
            prop::sample::select(vec![u128::MAX, 1 << 127, (1 << 127) - 1]).prop_map(Value::Uuid),
        ]
        .boxed(),
        DataType::Text { .. } | DataType::Char { .. } => prop_oneof![
            "[a-c]{0,3}".prop_map(|v| Value::Text(v.into())),
            "\\PC{0,40}".prop_map(|v| Value::Text(v.trim_end_matches(' ').into())),
            "[ab\u{10ffff}]{28,40}".prop_map(|v| Value::Text(v.into())),
        ]
        .boxed(),
        DataType::Bytea => prop_oneof![
            prop::collection::vec(any::<u8>(), 0..4).prop_map(|v| Value::Bytes(v.into())),
            prop::collection::vec(prop_oneof![Just(0xffu8), any::<u8>()], 30..60).prop_map(|v| Value::Bytes(v.into())),
        ]
        .boxed(),
    }
}

/// The values of a column: few or many distinct ones, close together or far apart, with and without NULLs.
fn column(data_type: DataType) -> impl Strategy<Value = Vec<Value>> {
    let rows = prop_oneof![Just(1usize), Just(7), 2usize..80, 190usize..400];
    let pool = prop_oneof![1usize..4, 4usize..30, Just(400)]
        .prop_flat_map(move |n| prop::collection::vec(any_value(data_type), n));
    let nulls = prop_oneof![4 => Just(0u8), 3 => 1u8..10, 1 => Just(10)];
    (rows, pool, nulls, any::<bool>()).prop_flat_map(move |(rows, pool, nulls, ascending)| {
        let one = (0..pool.len(), 0u8..10);
        prop::collection::vec(one, rows).prop_map(move |picks| {
            let base = pool[0].clone();
            let pick = |(i, null): (usize, u8), row: usize| match &base {
                _ if null < nulls => Value::Null,
                // Values close together, wherever they begin.
                Value::Int(b) if ascending => Value::Int(b.saturating_add(row as i64).min(int_max(data_type))),
                Value::Decimal(b) if ascending => Value::Decimal((b / 2) + i as i128),
                _ => pool[i].clone(),
            };
            picks.into_iter().enumerate().map(|(row, p)| pick(p, row)).collect()
        })
    })
}

fn int_max(data_type: DataType) -> i64 {
    match data_type {
        DataType::SmallInt => i16::MAX.into(),
        DataType::Integer | DataType::Date => i32::MAX.into(),
        DataType::Time => 86_399_999_999,
        _ => i64::MAX,
    }
}

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

fn predicates(constants: &[Value]) -> Vec<Predicate> {
    let column = ColumnId(1);
    let mut all = vec![
        Predicate::IsNull { column },
        Predicate::IsNotNull { column },
        Predicate::In { column, values: constants.to_vec() },
        Predicate::In { column, values: constants.iter().take(3).cloned().collect() },
        Predicate::In { column, values: vec![] },
    ];
    for value in constants {
        all.extend(OPS.map(|op| Predicate::Compare { column, op, value: value.clone() }));
    }
    all
}

/// Encodings met by [`check`], so that the battery can prove that it met all.
static MET: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

pub(super) fn check(data_type: DataType, values: &[Value], constants: &[Value]) {
    ENCODINGS.into_iter().for_each(|encodings| check_with(encodings, data_type, values, constants));
}

fn check_with(encodings: Encodings, data_type: DataType, values: &[Value], constants: &[Value]) {
    let schema = schema(&[data_type], 0);
    let column = &schema.columns[0];
    let (_memory, disk) = disk();
    let meta = write_with(encodings, &disk, 3, &schema, &[values.to_vec()]);
    let segment = Segment::open(meta, Arc::clone(&disk), BlockCache::new(64 << 20));
    MET.lock().unwrap().insert(segment.meta().columns[0].encoding.name());
    segment.verify(&schema).unwrap();
    let rows = values.len() as u32;
    let ranges = [0..rows, 0..0, rows..rows, rows / 3..rows, 1.min(rows)..rows.div_ceil(2).max(1), rows - 1..rows];
    for range in ranges {
        let expected = &values[range.start as usize..range.end as usize];
        let array = segment.read(column, range.clone()).unwrap();
        let naive = array_of(expected.iter(), data_type).unwrap();
        assert_eq!(array.data_type(), &data_type.arrow());
        assert_eq!(&array, &naive, "{:?}", segment.meta().columns[0].encoding);
        for form in [Form::Codes, Form::Narrow] {
            check_form(form, data_type, &segment.read_in(form, column, range.clone()).unwrap(), &naive);
        }
        for predicate in predicates(constants) {
            check_select(&segment, &predicate, values, range.clone());
        }
        let selections: [fn(usize) -> bool; 6] =
            [|_| true, |_| false, |i| i % 3 == 1, |i| i % 11 != 5, |i| i % 700 == 3, |i| i / 500 == 1];
        for is_selected in selections {
            check_selected(&segment, column, values, range.clone(), is_selected);
        }
    }
    let offsets: Vec<u32> = (0..rows).rev().chain([0, 0, rows / 2]).collect();
    let gathered = segment.gather(column, &offsets).unwrap();
    let naive = array_of(offsets.iter().map(|o| &values[*o as usize]), data_type).unwrap();
    assert_eq!(&gathered, &naive);
    for form in [Form::Codes, Form::Narrow] {
        check_form(form, data_type, &segment.gather_in(form, column, &offsets).unwrap(), &naive);
    }
    assert_eq!(segment.gather(column, &[]).unwrap().len(), 0);
    for (row, value) in values.iter().enumerate() {
        assert_eq!(segment.value(column, row as u32).unwrap(), *value);
        let mut alone = Vec::new();
        let (other, columns) = (SchemaVersion(segment.schema_version().0 + 1), std::iter::once((0, column)));
        segment.read_row(segment.schema_version(), columns.clone(), row as u32, &mut alone).unwrap();
        segment.read_row(other, columns, row as u32, &mut alone).unwrap();
        assert_eq!(alone, [value.clone(), value.clone()]);
    }
    super::pages::check_pages(&segment, 0, values);
    check_zone(&segment, values);
    segment.read(column, 0..rows + 1).unwrap_err();
    segment.gather(column, &[rows]).unwrap_err();
    segment.value(column, rows).unwrap_err();
}

fn check_select(segment: &Arc<Segment>, predicate: &Predicate, values: &[Value], range: std::ops::Range<u32>) {
    let schema = schema(&[segment.meta().columns[0].data_type], 0);
    let selected = segment.select(predicate, &schema.columns[0], range.clone()).unwrap();
    assert_eq!(selected.len(), range.len().div_ceil(64));
    for i in 0..selected.len() * 64 {
        let set = selected[i / 64] >> (i % 64) & 1 == 1;
        let expected = i < range.len() && predicate.matches(&values[range.start as usize + i]);
        assert_eq!(set, expected, "row {i} of {range:?}, {predicate:?}, {:?}", segment.meta().columns[0].encoding);
    }
    let matching = values.iter().filter(|v| predicate.matches(v)).count();
    match segment.prune(std::slice::from_ref(predicate)) {
        Prune::None => assert_eq!(matching, 0, "{predicate:?}"),
        Prune::All => assert_eq!(matching, values.len(), "{predicate:?}"),
        Prune::Some => {}
    }
}

/// `array`, in `form`, has the values of `naive`, an array of `data_type`.
fn check_form(form: Form, data_type: DataType, array: &ArrayRef, naive: &ArrayRef) {
    assert_eq!(array.data_type(), &form.arrow(data_type));
    match array.as_any_dictionary_opt() {
        Some(codes) if form == Form::Codes => {
            let keys: Vec<Option<u32>> = array.as_dictionary::<UInt32Type>().keys().iter().collect();
            assert_eq!(&arrow_select::take::take(codes.values(), &UInt32Array::from(keys), None).unwrap(), naive);
        }
        _ => match (array.as_primitive_opt::<Decimal64Type>(), naive.as_primitive_opt::<Decimal128Type>()) {
            (Some(narrow), Some(wide)) => {
                assert!(narrow.iter().map(|value| value.map(i128::from)).eq(wide.iter()), "{data_type:?}");
            }
            _ => assert_eq!(array, naive),
        },
    }
}

/// Counts, sums and values of the rows of `range` of which `is_selected` holds.
fn check_selected(
    segment: &Segment,
    column: &Column,
    values: &[Value],
    range: std::ops::Range<u32>,
    is_selected: fn(usize) -> bool,
) {
    let mut selection = vec![0; bitmap::words(range.len())];
    (0..range.len()).filter(|i| is_selected(*i)).for_each(|i| bitmap::set(&mut selection, i));
    let rows = &values[range.start as usize..range.end as usize];
    let selected: Vec<&Value> =
        rows.iter().enumerate().filter(|(i, _)| is_selected(*i)).map(|(_, value)| value).collect();
    let count = selected.iter().filter(|value| !value.is_null()).count() as u64;
    assert_eq!(segment.sum(column, range.clone(), &selection, false).unwrap().0, count);
    let read = |form| segment.read_selected(form, column, range.clone(), &selection, selected.len()).unwrap();
    let in_place = read(Form::Values);
    let naive = || array_of(selected.iter().copied(), column.data_type).unwrap();
    assert!(in_place.is_none_or(|array| array == naive()), "{:?}", segment.meta().columns[0].encoding);
    for form in [Form::Codes, Form::Narrow] {
        read(form).iter().for_each(|array| check_form(form, column.data_type, array, &naive()));
    }
    if column.data_type.has_small_sums() {
        let wide = |value: &&Value| match value {
            Value::Int(v) => i128::from(*v),
            Value::Decimal(v) => *v,
            _ => 0,
        };
        let sum = segment.sum(column, range, &selection, true).unwrap();
        assert_eq!(sum, (count, selected.iter().map(wide).sum()), "{:?}", segment.meta().columns[0].encoding);
    } else if count > 0 {
        segment.sum(column, range, &selection, true).unwrap_err();
    }
}

/// Columns of several vectors, plain, as codes and in frames, some with NULLs, of the types that are added up.
#[test]
fn sums_of_long_columns() {
    let mixed = |i: i64| mainstem_kernels::hash::hash_u64(i.cast_unsigned()).cast_signed();
    let types = [(DataType::SmallInt, 48), (DataType::Integer, 32), (DataType::BigInt, 0)];
    for (data_type, shift) in types {
        let column = |value: &dyn Fn(i64) -> i64| -> Vec<Value> {
            let some = |i| if i % 17 == 4 { Value::Null } else { Value::Int(value(i)) };
            (0..2_500).map(some).collect()
        };
        let constants = [Value::Int(mixed(7) >> shift)];
        check(data_type, &column(&|i| mixed(i) >> shift), &constants);
        check(data_type, &column(&|i| mixed(i % 5) >> shift), &constants);
        check(data_type, &column(&|i| i % 900 - 300), &constants);
    }
    let narrow = DataType::Decimal { precision: 19, scale: 0 };
    const GREATEST: i128 = 10_i128.pow(19) - 1;
    let wide: [fn(i128) -> i128; 3] =
        [|_| GREATEST, |i| if i % 2 == 0 { GREATEST } else { -GREATEST }, |i| i * 1_000_003];
    for value in wide {
        let values: Vec<Value> = (0..2_500).map(|i| Value::Decimal(value(i))).collect();
        check(narrow, &values, &[Value::Decimal(GREATEST)]);
    }
}

fn check_zone(segment: &Segment, values: &[Value]) {
    let zone = &segment.meta().columns[0].zone;
    let present = || values.iter().filter(|v| !v.is_null());
    let (Some(min), Some(max)) = (present().min(), present().max()) else {
        assert!(zone.min.is_null() && zone.max.is_null());
        return;
    };
    assert!(zone.min <= *min && zone.max >= *max);
    assert!(!zone.min_exact || zone.min == *min);
    assert!(!zone.max_exact || zone.max == *max);
    if let Some(sum) = segment.meta().columns[0].sum {
        let wide = |v: &Value| match v {
            Value::Int(v) => i128::from(*v),
            Value::Decimal(v) => *v,
            _ => panic!("a sum of {v:?}"),
        };
        assert_eq!(sum, present().map(wide).sum::<i128>());
    }
    if let Some(distinct) = segment.meta().columns[0].distinct {
        assert_eq!(distinct as usize, present().collect::<BTreeSet<_>>().len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_encoding_answers_like_the_values(
        columns in TYPES.map(|t| (column(t), prop::collection::vec(any_value(t), 3))),
    ) {
        for (data_type, (values, mut constants)) in TYPES.into_iter().zip(columns) {
            constants.extend([values[0].clone(), values[values.len() / 2].clone()]);
            check(data_type, &values, &constants);
        }
    }
}

#[test]
fn all_encodings_are_met() {
    let ints = |f: &dyn Fn(i64) -> i64| (0..200).map(|i| Value::Int(f(i))).collect::<Vec<_>>();
    let big = DataType::BigInt;
    let constants = [Value::Int(0), Value::Int(i64::MIN), Value::Int(i64::MAX), Value::Int(1_000_000)];
    check(big, &ints(&|_| 5), &constants);
    check(big, &ints(&|i| i * 3), &constants);
    check(big, &ints(&|i| (i % 3) * 1_000_000_000_000), &constants);
    check(big, &ints(&|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)), &constants);
    check(big, &ints(&|i| if i == 9 { i64::MIN } else { i64::MAX - i }), &constants);
    let texts: Vec<Value> = (0..200).map(|i| Value::Text(format!("text {i}").into())).collect();
    check(DataType::Text { max_chars: None }, &texts, &[Value::Text("text 7".into())]);
    let floats: Vec<Value> = (0..200).map(|i| Value::Double(f64::from(i) / 100.0)).collect();
    check(DataType::Double, &floats, &[Value::Double(0.07), Value::Double(1e300)]);
    let met = MET.lock().unwrap();
    for name in
        ["constant", "dictionary", "frame of reference", "plain", "symbols", "frames by vector", "scaled floats"]
    {
        assert!(met.contains(name), "{name} was never chosen");
    }
}

#[test]
fn the_smallest_encoding_is_chosen() {
    let encoding = |data_type, values: Vec<Value>| {
        let schema = schema(&[data_type], 0);
        let (_memory, disk) = disk();
        segment(&disk, 1, &schema, &[values]).meta().columns[0].encoding.clone()
    };
    let texts = |f: &dyn Fn(usize) -> String| (0..1000).map(|i| Value::Text(f(i).into())).collect::<Vec<_>>();
    let text = DataType::Text { max_chars: None };
    assert_eq!(encoding(text, texts(&|_| "same".into())), Encoding::Constant { value: Value::Text("same".into()) });
    assert_eq!(
        encoding(text, texts(&|i| ["AIR", "MAIL", "RAIL", "SHIP", "TRUCK"][i % 5].into())),
        Encoding::Dictionary { distinct: 5, width: 3, length_width: 3, symbol_bytes: 0 }
    );
    assert_eq!(encoding(text, texts(&|i| format!("value {i}")[i % 3..].into())), Encoding::Plain { length_width: 4 });
    // A long constant does not stand in the metadata.
    assert_eq!(
        encoding(text, texts(&|_| "x".repeat(100))),
        Encoding::Dictionary { distinct: 1, width: 0, length_width: 7, symbol_bytes: 0 }
    );
    let ints = |f: &dyn Fn(i64) -> i64| (0..1000).map(|i| Value::Int(f(i))).collect::<Vec<_>>();
    assert_eq!(
        encoding(DataType::Date, ints(&|i| 9_000 + i)),
        Encoding::FrameOfReference { reference: 9_000, width: 10 }
    );
    assert_eq!(
        encoding(DataType::Integer, ints(&|i| (i % 4) * 100_000)),
        Encoding::Dictionary { distinct: 4, width: 2, length_width: 0, symbol_bytes: 0 }
    );
    let doubles = (0..1000).map(|i| Value::Double(f64::from(i) / 7.0)).collect();
    assert_eq!(encoding(DataType::Double, doubles), Encoding::Plain { length_width: 0 });
    let nulls = vec![Value::Null; 10];
    assert_eq!(encoding(DataType::Double, nulls), Encoding::Constant { value: Value::Null });
}

#[test]
fn constants_of_another_type_compare_as_predicates_say() {
    let values: Vec<Value> = (0..70).map(|i| if i % 5 == 0 { Value::Null } else { Value::Int(i) }).collect();
    let constants = [Value::Text("5".into()), Value::Decimal(5), Value::Double(5.0), Value::Boolean(true), Value::Null];
    check(DataType::Integer, &values, &constants);
    let texts: Vec<Value> = (0..70).map(|i| Value::Text((i % 9).to_string().into())).collect();
    check(DataType::Text { max_chars: None }, &texts, &[Value::Int(5), Value::Bytes(b"5".as_slice().into())]);
    let flags: Vec<Value> = (0..70).map(|i| Value::Boolean(i % 2 == 0)).collect();
    check(DataType::Boolean, &flags, &[Value::Int(1), Value::Boolean(true), Value::Boolean(false)]);
    // An integer that a SMALLINT cannot be.
    let small: Vec<Value> = (0..70).map(Value::Int).collect();
    check(DataType::SmallInt, &small, &[Value::Int(100_000), Value::Int(-100_000), Value::Int(3)]);
}

#[test]
fn a_column_added_later_reads_as_its_missing_value() {
    let written = schema(&[DataType::Integer], 0);
    let (_memory, disk) = disk();
    let segment = segment(&disk, 1, &written, &[vec![Value::Int(1), Value::Int(2), Value::Int(3)]]);
    let mut now = schema(&[DataType::Integer, DataType::Text { max_chars: None }], 0);
    now.columns[1].missing_value = Value::Text("new".into());
    let added = &now.columns[1];
    let three = array_of([&added.missing_value; 3].into_iter(), added.data_type).unwrap();
    assert_eq!(&segment.read(added, 0..3).unwrap(), &three);
    assert_eq!(&segment.gather(added, &[2, 0, 1]).unwrap(), &three);
    assert_eq!(segment.value(added, 2).unwrap(), added.missing_value);
    let equal =
        |text: &str| Predicate::Compare { column: added.id, op: CompareOp::Eq, value: Value::Text(text.into()) };
    assert_eq!(segment.select(&equal("new"), added, 1..3).unwrap(), [0b11]);
    assert_eq!(segment.select(&equal("old"), added, 1..3).unwrap(), [0]);
    assert_eq!(segment.prune(&[equal("old")]), Prune::Some);
    assert!(segment.zone_map(added.id).is_none());
    // The same column under another type is a defect, told and not ignored.
    let other = schema(&[DataType::Double], 0);
    segment.read(&other.columns[0], 0..3).unwrap_err();
}
