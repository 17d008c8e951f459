use std::cmp::Ordering;

use arrow_array::{Array, Float64Array};
use mainstem_kernels::bitmap;
use proptest::prelude::*;

use super::*;
use crate::row::testing::{data_type, value};
use crate::row::{array_of, value_of};
use crate::schema::DataType;

const COLUMN: ColumnId = ColumnId(7);

fn compare(op: CompareOp, value: Value) -> Predicate {
    Predicate::Compare { column: COLUMN, op, value }
}

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

fn predicate(data_type: DataType) -> impl Strategy<Value = Predicate> {
    prop_oneof![
        4 => (proptest::sample::select(&OPS[..]), value(data_type, true)).prop_map(|(op, v)| compare(op, v)),
        2 => prop::collection::vec(value(data_type, true), 0..5)
            .prop_map(|values| Predicate::In { column: COLUMN, values }),
        1 => Just(Predicate::IsNull { column: COLUMN }),
        1 => Just(Predicate::IsNotNull { column: COLUMN }),
    ]
}

/// A column of values, and predicates on it; some of its constants occur in it.
fn case() -> impl Strategy<Value = (DataType, Vec<Value>, Vec<Predicate>)> {
    (data_type(), any::<bool>(), 0..3usize).prop_flat_map(|(data_type, nullable, size)| {
        let values = prop::collection::vec(value(data_type, nullable), 0..[2, 10, 150][size]);
        let foreign = prop::collection::vec(predicate(data_type), 8);
        (Just(data_type), values, foreign).prop_map(|(data_type, values, mut predicates)| {
            let constants = values.iter().take(3);
            predicates.extend(constants.flat_map(|v| OPS.map(|op| compare(op, v.clone()))));
            predicates.push(Predicate::In { column: COLUMN, values: values.iter().step_by(3).cloned().collect() });
            (data_type, values, predicates)
        })
    })
}

proptest! {
    #[test]
    fn evaluate_is_matches_row_by_row((data_type, values, predicates) in case(), skip in 0..70usize) {
        let whole = array_of(values.iter(), data_type).unwrap();
        // Arrays of a slice start in the middle of a byte.
        let skip = skip.min(values.len());
        let array = whole.slice(skip, values.len() - skip);
        for predicate in predicates {
            let bits = predicate.evaluate(array.as_ref(), data_type).unwrap();
            prop_assert_eq!(bits.len(), bitmap::words(array.len()));
            let expected = values[skip..].iter().filter(|v| predicate.matches(v)).count();
            prop_assert_eq!(bitmap::count_ones(&bits), expected, "{:?}: bits past the end too", predicate);
            for (row, v) in values[skip..].iter().enumerate() {
                prop_assert_eq!(bitmap::get(&bits, row), predicate.matches(v), "{:?} on {:?}", predicate, v);
            }
        }
    }

    #[test]
    fn pruning_never_lies((data_type, values, predicates) in case(), split in any::<prop::sample::Index>()) {
        let whole = array_of(values.iter(), data_type).unwrap();
        let split = split.index(values.len() + 1);
        let left = ValueRange::of_array(&whole.slice(0, split), data_type).unwrap();
        let right = ValueRange::of_array(&whole.slice(split, values.len() - split), data_type).unwrap();
        let range = ValueRange::of_array(&whole, data_type).unwrap();
        prop_assert_eq!(&left.clone().merge(right), &range);
        let unknown = ValueRange { has_nulls: range.has_nulls, ..left.merge(ValueRange::unknown()) };
        for predicate in predicates {
            let matching = values.iter().filter(|v| predicate.matches(v)).count();
            match predicate.may_match(&range) {
                Prune::None => prop_assert_eq!(matching, 0, "{:?}", predicate),
                Prune::All => prop_assert_eq!(matching, values.len(), "{:?}", predicate),
                Prune::Some => {}
            }
            match predicate.may_match(&unknown) {
                Prune::None => prop_assert_eq!(matching, 0, "{:?}", predicate),
                Prune::All => prop_assert_eq!(matching, values.len(), "{:?}", predicate),
                Prune::Some => {}
            }
        }
    }

    #[test]
    fn ranges_hold_what_the_order_says((data_type, values, _) in case()) {
        let range = ValueRange::of_array(array_of(values.iter(), data_type).unwrap().as_ref(), data_type).unwrap();
        let known = || values.iter().filter(|v| !v.is_null());
        prop_assert_eq!(&range.min, known().min().unwrap_or(&Value::Null));
        prop_assert_eq!(&range.max, known().max().unwrap_or(&Value::Null));
        prop_assert_eq!(range.has_nulls, values.iter().any(Value::is_null));
        prop_assert_eq!(range.all_null, known().count() == 0);
    }

    #[test]
    fn intervals_are_comparisons((_, values, predicates) in case()) {
        for predicate in predicates {
            let Some((lo, hi)) = predicate.int_interval() else { continue };
            for value in &values {
                let inside = match value {
                    Value::Int(v) => (lo..=hi).contains(&i128::from(*v)),
                    Value::Decimal(v) => (lo..=hi).contains(v),
                    _ => false,
                };
                prop_assert_eq!(inside, predicate.matches(value), "{:?} on {:?}", predicate, value);
            }
        }
    }

    #[test]
    fn the_order_is_total((a, b, c) in data_type().prop_flat_map(|t| (value(t, true), value(t, true), value(t, true)))) {
        prop_assert_eq!(compare_values(&a, &b), compare_values(&b, &a).reverse());
        prop_assert_eq!(compare_values(&a, &a), Ordering::Equal);
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
        prop_assert!(a <= Value::Null);
    }
}

#[test]
fn floats_mean_the_same_before_they_are_normalised() {
    let odd = f64::from_bits(f64::NAN.to_bits() | 1);
    let array = Float64Array::from(vec![-0.0, 0.0, f64::NAN, -odd, f64::INFINITY]);
    let select = |p: Predicate| p.evaluate(&array, DataType::Double).unwrap()[0];
    assert_eq!(select(compare(CompareOp::Eq, Value::Double(0.0))), 0b00011);
    assert_eq!(select(compare(CompareOp::Lt, Value::Double(0.0))), 0);
    assert_eq!(select(compare(CompareOp::Eq, Value::Double(odd))), 0b01100);
    assert_eq!(select(compare(CompareOp::Gt, Value::Double(f64::INFINITY))), 0b01100);
    assert_eq!(select(compare(CompareOp::LtEq, Value::Double(f64::NAN))), 0b11111);
    let values = vec![Value::Double(-0.0), Value::Double(-f64::NAN)];
    assert_eq!(select(Predicate::In { column: COLUMN, values }), 0b01111);
    assert_eq!(value_of(&array, DataType::Double, 0).unwrap(), Value::Double(0.0));
    let range = ValueRange::of_array(&array, DataType::Double).unwrap();
    assert_eq!((range.min, range.max), (Value::Double(0.0), Value::Double(f64::NAN)));
}

#[test]
fn full_enclosure_and_misses_are_found() {
    let range =
        |min, max, has_nulls| ValueRange { min: Value::Int(min), max: Value::Int(max), has_nulls, all_null: false };
    let prune = |op, v, r: &ValueRange| compare(op, Value::Int(v)).may_match(r);
    let r = range(10, 20, false);
    assert_eq!(prune(CompareOp::GtEq, 10, &r), Prune::All);
    assert_eq!(prune(CompareOp::Gt, 10, &r), Prune::Some);
    assert_eq!(prune(CompareOp::Gt, 20, &r), Prune::None);
    assert_eq!(prune(CompareOp::Lt, 10, &r), Prune::None);
    assert_eq!(prune(CompareOp::NotEq, 9, &r), Prune::All);
    assert_eq!(prune(CompareOp::GtEq, 10, &range(10, 20, true)), Prune::Some);
    assert_eq!(prune(CompareOp::Eq, 3, &range(3, 3, false)), Prune::All);
    assert_eq!(prune(CompareOp::NotEq, 3, &range(3, 3, true)), Prune::None);
    let values = vec![Value::Int(1), Value::Int(30), Value::Null];
    assert_eq!(Predicate::In { column: COLUMN, values }.may_match(&r), Prune::None);
    let nulls = ValueRange { min: Value::Null, max: Value::Null, has_nulls: true, all_null: true };
    assert_eq!(prune(CompareOp::NotEq, 1, &nulls), Prune::None);
    assert_eq!(Predicate::IsNull { column: COLUMN }.may_match(&nulls), Prune::All);
    assert_eq!(Predicate::IsNotNull { column: COLUMN }.may_match(&r), Prune::All);
    // A constant of another type proves nothing.
    assert_eq!(compare(CompareOp::Eq, Value::Text("x".into())).may_match(&r), Prune::Some);
}

#[test]
fn constants_of_another_type_are_refused() {
    let array = array_of([Value::Int(1)].iter(), DataType::SmallInt).unwrap();
    let state = |p: Predicate| p.evaluate(array.as_ref(), DataType::SmallInt).map_err(|e| e.sqlstate());
    assert_eq!(state(compare(CompareOp::Eq, Value::Text("1".into()))), Err("42804"));
    assert_eq!(state(Predicate::In { column: COLUMN, values: vec![Value::Double(1.0)] }), Err("42804"));
    // Outside the type, but of its kind.
    assert_eq!(state(compare(CompareOp::Lt, Value::Int(1 << 40))), Ok(vec![1]));
    assert_eq!(state(compare(CompareOp::GtEq, Value::Int(1 << 40))), Ok(vec![0]));
    assert_eq!(state(Predicate::In { column: COLUMN, values: vec![Value::Int(1 << 40)] }), Ok(vec![0]));
}

#[test]
fn intervals_at_the_ends_are_empty() {
    let interval = |op, v| compare(op, Value::Decimal(v)).int_interval().unwrap();
    let (lo, hi) = interval(CompareOp::Lt, i128::MIN);
    assert!(lo > hi);
    let (lo, hi) = interval(CompareOp::Gt, i128::MAX);
    assert!(lo > hi);
    assert_eq!(compare(CompareOp::NotEq, Value::Int(1)).int_interval(), None);
}
