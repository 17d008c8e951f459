#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;

fn shift(back: Option<i64>, ignore_nulls: bool, default: Option<i64>) -> Shift {
    let (default, null) = (ScalarValue::Int64(default), ScalarValue::Int64(None));
    Shift { back, ignore_nulls, default, null, seen: VecDeque::new() }
}

fn array(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// By the words of the standard: row by row, one step at a time.
fn naive(values: &[Option<i64>], back: Option<i64>, ignore_nulls: bool, default: Option<i64>) -> Vec<Option<i64>> {
    let value = |row: usize| {
        let back = back?;
        let (mut at, mut left) = (row as i64, back.abs());
        while left > 0 {
            at -= back.signum();
            match usize::try_from(at).ok().and_then(|at| values.get(at)) {
                None => return default,
                Some(None) if ignore_nulls => {}
                Some(_) => left -= 1,
            }
        }
        values[at as usize]
    };
    (0..values.len()).map(value).collect()
}

fn at_once(mut shift: Shift, values: &[Option<i64>]) -> Vec<Option<i64>> {
    let results = shift.evaluate_all(&[array(values)], values.len()).unwrap();
    results.as_primitive::<Int64Type>().iter().collect()
}

/// As DataFusion evaluates a window while its rows come, `batch` at a time, and forgets those that are not asked for.
fn as_rows_come(mut shift: Shift, values: &[Option<i64>], batch: usize) -> Vec<Option<i64>> {
    let (mut held, mut next, mut results) = (Vec::new(), 0, Vec::new());
    let batches = values.chunks(batch).map(|rows| (rows, false)).chain([(&[] as &[_], true)]);
    for (rows, is_end) in batches {
        held.extend_from_slice(rows);
        let (of_held, mut start) = (array(&held), 0);
        while next < held.len() {
            let range = shift.get_range(next, held.len()).unwrap();
            if range.end == held.len() && !shift.is_causal() && !is_end {
                break;
            }
            start = range.start;
            match shift.evaluate(std::slice::from_ref(&of_held), &range).unwrap() {
                ScalarValue::Int64(value) => results.push(value),
                other => panic!("{other}"),
            }
            next += 1;
        }
        held.drain(..start);
        next -= start;
    }
    results
}

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn values_are_those_of_a_walk_from_row_to_row() {
    let mut numbers = Numbers(25_471);
    for _ in 0..4_000 {
        let rows = numbers.below(24) as usize;
        let share = numbers.below(5);
        let values: Vec<_> = (0..rows as i64).map(|row| (numbers.below(4) >= share).then_some(row * 10)).collect();
        let back = match numbers.below(12) {
            0 => None,
            1 => Some([i64::MAX, -i64::MAX, 1_000][numbers.below(3) as usize]),
            _ => Some(numbers.below(11) as i64 - 5),
        };
        let (ignore_nulls, default) = (numbers.below(2) == 0, (numbers.below(2) == 0).then_some(-1));
        // Steps of a walk that ends with the partition.
        let steps = back.map(|back| back.clamp(-2_000, 2_000));
        let expected = naive(&values, steps, ignore_nulls, default);
        let told = format!("{values:?}, {back:?} back, IGNORE NULLS: {ignore_nulls}, default {default:?}");
        assert_eq!(at_once(shift(back, ignore_nulls, default), &values), expected, "{told}");
        if shift(back, ignore_nulls, default).supports_bounded_execution() {
            let batch = 1 + numbers.below(6) as usize;
            let results = as_rows_come(shift(back, ignore_nulls, default), &values, batch);
            assert_eq!(results, expected, "{told}, {batch} rows at a time");
        } else {
            assert!(ignore_nulls && back.is_some_and(|back| back < 0), "{told}");
        }
    }
}

/// The table of the public issue.
#[test]
fn two_values_ahead_are_beyond_nulls() {
    let values = [Some(10), Some(20), Some(30), Some(40), None, None, Some(70), Some(80), None];
    let expected = [Some(30), Some(40), Some(70), Some(80), Some(80), Some(80), None, None, None];
    assert_eq!(at_once(shift(Some(-2), true, None), &values), expected);
}
