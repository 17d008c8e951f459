use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::*;
use crate::database::testing::{ID, Table, V, pairs, table};
use crate::predicate::{CompareOp, Predicate};
use crate::row::Value;
use crate::scan::{LiveFilters, Scan, ScanRequest};

/// A condition on integers, NULLs among them, that counts what it is asked about.
struct Condition<F> {
    columns: Vec<ColumnId>,
    is_total: bool,
    holds: F,
    asked: AtomicUsize,
}

impl<F> Debug for Condition<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a condition on {:?}", self.columns)
    }
}

impl<F: Fn(&[Option<i64>]) -> Result<bool> + Send + Sync> RowFilter for Condition<F> {
    fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    fn is_total(&self) -> bool {
        self.is_total
    }

    fn select(&self, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer> {
        self.asked.fetch_add(rows, Ordering::Relaxed);
        let of_row = |row: usize| {
            let value = |array: &ArrayRef| array.is_valid(row).then(|| array.as_primitive::<Int64Type>().value(row));
            (self.holds)(&columns.iter().map(value).collect::<Vec<_>>())
        };
        (0..rows).map(of_row).collect()
    }
}

fn condition<F>(columns: &[ColumnId], is_total: bool, holds: F) -> Arc<Condition<F>>
where
    F: Fn(&[Option<i64>]) -> Result<bool> + Send + Sync + 'static,
{
    Arc::new(Condition { columns: columns.to_vec(), is_total, holds, asked: AtomicUsize::new(0) })
}

/// Rows 0..2_000 in segments, 2_000..2_100 in a delta; `v` is one of few values in the first segment, one value in the
/// second, one of many in the third, NULL at each ninth row, and some rows are dead.
fn rows() -> (Table, Vec<(i64, Option<i64>)>) {
    let t = table(700);
    let value = |id: i64| match id {
        _ if id % 9 == 4 => None,
        0..700 if id % 5 == 3 => Some(3),
        0..700 => Some(id % 5 * 1_000_003),
        700..1_400 => Some(3),
        _ => Some(id * 1_000_003 % 7_919),
    };
    let all: Vec<_> = (0..2_100).map(|id| (id, value(id))).collect();
    for (part, is_flushed) in [(&all[..2_000], true), (&all[2_000..], false)] {
        let mut txn = t.begin();
        t.write_in(&mut txn, &[], part).unwrap();
        txn.commit().unwrap();
        if is_flushed {
            t.flush();
        }
    }
    let dead: Vec<i64> = (0..2_100).filter(|id| id % 13 == 2).collect();
    t.delete(&dead);
    let lives = all.into_iter().filter(|(id, _)| id % 13 != 2).collect();
    (t, lives)
}

fn scan(t: &Table, request: &ScanRequest, filters: &[Arc<dyn RowFilter>]) -> Arc<Scan> {
    t.view().filtered_scan(request, LiveFilters { rows: filters, ..LiveFilters::default() }).unwrap()
}

fn all() -> ScanRequest {
    ScanRequest::all(vec![ID, V])
}

#[test]
fn rows_are_those_that_all_filters_are_true_for() {
    let (t, lives) = rows();
    let of_v = || condition(&[V], true, |row: &[Option<i64>]| Ok(row[0].is_none_or(|v| v % 3 == 0)));
    let of_both = || condition(&[V, ID], true, |row: &[Option<i64>]| Ok(row[0] < row[1]));
    let may_fail = || condition(&[ID], false, |row: &[Option<i64>]| Ok(row[0].is_some_and(|id| id % 4 != 0)));
    let sets: [(Vec<Arc<dyn RowFilter>>, u8); 5] = [
        (vec![of_v()], 1),
        (vec![of_both()], 2),
        (vec![may_fail()], 4),
        (vec![may_fail(), of_v()], 5),
        (vec![of_both(), may_fail(), of_v()], 7),
    ];
    let from = Predicate::Compare { column: ID, op: CompareOp::GtEq, value: Value::Int(650) };
    for (filters, which) in sets {
        for batch_rows in [0, 64] {
            for predicates in [vec![], vec![from.clone()]] {
                let keeps = |(id, v): &&(i64, Option<i64>)| {
                    (which & 1 == 0 || v.is_none_or(|v| v % 3 == 0))
                        && (which & 2 == 0 || *v < Some(*id))
                        && (which & 4 == 0 || id % 4 != 0)
                        && (predicates.is_empty() || *id >= 650)
                };
                let expected: Vec<_> = lives.iter().filter(keeps).copied().collect();
                let request = ScanRequest { batch_rows, predicates: predicates.clone(), ..all() };
                assert_eq!(pairs(&scan(&t, &request, &filters)), expected, "{which} {batch_rows} {predicates:?}");
            }
        }
    }
}

#[test]
fn few_distinct_values_are_asked_once_each() {
    let (t, lives) = rows();
    let filter = condition(&[V], true, |row: &[Option<i64>]| Ok(row[0] == Some(3)));
    let view = t.view();
    let filters: [Arc<dyn RowFilter>; 1] = [filter.clone()];
    let first = Predicate::Compare { column: ID, op: CompareOp::Lt, value: Value::Int(1_400) };
    let request = ScanRequest { predicates: vec![first], ..all() };
    let live = LiveFilters { rows: &filters, ..LiveFilters::default() };
    let found = pairs(&view.filtered_scan(&request, live).unwrap());
    let expected = lives.iter().filter(|(id, v)| *id < 1_400 && *v == Some(3));
    assert_eq!(found, expected.copied().collect::<Vec<_>>());
    let asked = filter.asked.load(Ordering::Relaxed);
    // Five values and NULL; one and NULL; what the delta has is outside.
    assert!(asked <= 8 + 100, "{asked} rows were looked at");
}

#[test]
fn what_may_fail_is_asked_about_rows_that_are_left() {
    let (t, lives) = rows();
    let seen = |row: &[Option<i64>]| match (row[0], row[1]) {
        (Some(v), Some(id)) if v == 3 && id % 13 != 2 => Ok(id % 2 == 0),
        other => Err(Error::internal(format!("asked about {other:?}"))),
    };
    let is_three = condition(&[V], true, |row: &[Option<i64>]| Ok(row[0] == Some(3)));
    let filters: [Arc<dyn RowFilter>; 2] = [condition(&[V, ID], false, seen), is_three];
    let expected: Vec<_> = lives.iter().filter(|(id, v)| *v == Some(3) && id % 2 == 0).copied().collect();
    assert!(expected.len() > 100);
    assert_eq!(pairs(&scan(&t, &all(), &filters)), expected);
    let failing: [Arc<dyn RowFilter>; 1] = [condition(&[V], false, |_: &[Option<i64>]| Err(Error::internal("no")))];
    let mut worker = scan(&t, &all(), &failing).worker();
    assert!(worker.next().unwrap().unwrap_err().to_string().contains("no"));
}

#[test]
fn a_limit_counts_what_is_left() {
    let (t, lives) = rows();
    let filters: [Arc<dyn RowFilter>; 1] =
        [condition(&[V, ID], true, |row: &[Option<i64>]| Ok(row[0].is_some_and(|v| v % 2 == 1)))];
    let odd: BTreeSet<i64> = lives.iter().filter(|(_, v)| v.is_some_and(|v| v % 2 == 1)).map(|(id, _)| *id).collect();
    for limit in [1, 70, 300, 5_000] {
        let request = ScanRequest { limit: Some(limit), ..all() };
        let found = pairs(&scan(&t, &request, &filters));
        assert_eq!(found.len(), limit.min(odd.len()));
        assert!(found.iter().all(|(id, _)| odd.contains(id)));
    }
}

/// A scan that finds nothing comes back after each piece.
#[test]
fn pieces_of_which_nothing_is_left_are_empty_batches() {
    let (t, _) = rows();
    let filters: [Arc<dyn RowFilter>; 1] = [condition(&[V, ID], true, |_: &[Option<i64>]| Ok(false))];
    let batches: Vec<_> = scan(&t, &all(), &filters).worker().map(|batch| batch.unwrap().num_rows()).collect();
    assert!(batches.len() >= 3 && batches.iter().all(|rows| *rows == 0), "{batches:?}");
}

#[test]
fn what_is_left_out_is_counted() {
    let (t, lives) = rows();
    let filters: [Arc<dyn RowFilter>; 1] = [condition(&[V, ID], true, |row: &[Option<i64>]| Ok(row[0] == Some(3)))];
    let mut worker = scan(&t, &all(), &filters).worker();
    let found: usize = worker.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(worker.emitted().filtered, (lives.len() - found) as u64);
}

/// The one that drops the most rows for its time comes first, and what may fail last.
#[test]
fn filters_are_asked_in_measured_order() {
    let planned = |is_total| PlannedFilter::new(condition(&[V], is_total, |_: &[Option<i64>]| Ok(true)), Vec::new());
    let filters = [planned(false), planned(true), planned(true)];
    filters[0].count(100, 0, Duration::from_nanos(1));
    filters[1].count(100, 90, Duration::from_micros(1));
    filters[2].count(100, 10, Duration::from_micros(1));
    let mut order = [0, 1, 2];
    arrange(&filters, &mut order);
    assert_eq!(order, [2, 1, 0]);
}
