//! Ranges of keys against a scan, wherever rows live.

use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::point::{PointTable, RangeRequest, rows_between};
use crate::row::Value;
use crate::transaction::Transaction;

type Limits = (Bound<i64>, Bound<i64>);

fn within(id: i64, (low, high): Limits) -> bool {
    std::ops::RangeBounds::contains(&(low, high), &id)
}

/// What [`rows_between`] gives of `view`, if it looks at no more than `steps_max` rows.
fn found(view: &TableView, limits: Limits, backwards: bool, limit: usize, steps_max: usize) -> Option<Vec<RowRef>> {
    let table = PointTable::new(view.schema()).unwrap();
    assert_eq!(view.schema().ordered_key(), table.key());
    let range = table.range(Vec::new(), limits.0.map(Value::Int), limits.1.map(Value::Int)).unwrap();
    let request = RangeRequest { id: KeyId::PRIMARY, range: &range, backwards, limit, steps_max };
    rows_between(view, request, |row| Ok(Some(row))).unwrap()
}

/// What a scan gives.
fn scanned(view: &std::sync::Arc<TableView>, limits: Limits, backwards: bool, limit: usize) -> Vec<RowRef> {
    let mut rows = rows_of(view);
    rows.retain(|row| within(row.1, limits));
    rows.sort_by_key(|row| row.1);
    if backwards {
        rows.reverse();
    }
    rows.into_iter().map(|row| row.0).take(limit).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(i64),
    InsertMany(i64),
    Update(i64),
    Delete(i64),
    Flush,
    Merge,
    Ask(Limits, bool, usize),
}

fn limits() -> impl Strategy<Value = Limits> {
    let bound = || {
        prop_oneof![
            Just(Bound::Unbounded),
            (-5_i64..205).prop_map(Bound::Included),
            (-5_i64..205).prop_map(Bound::Excluded),
            Just(Bound::Excluded(i64::MAX)),
            Just(Bound::Included(i64::MIN)),
        ]
    };
    (bound(), bound())
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_i64..200;
    prop_oneof![
        4 => id.clone().prop_map(Step::Insert),
        1 => id.clone().prop_map(Step::InsertMany),
        3 => id.clone().prop_map(Step::Update),
        2 => id.prop_map(Step::Delete),
        1 => Just(Step::Flush),
        1 => Just(Step::Merge),
        6 => (limits(), any::<bool>(), prop_oneof![Just(usize::MAX), 0_usize..8]).prop_map(|(l, b, n)| Step::Ask(l, b, n)),
    ]
}

/// Does what `step` says in `txn`; false if it cannot.
fn write(t: &Table, txn: &mut Transaction, step: &Step) -> bool {
    let view = txn.view(t.id).unwrap();
    let there: Vec<i64> = rows_of(&view).iter().map(|row| row.1).collect();
    let (gone, new) = match *step {
        Step::Insert(id) if !there.contains(&id) => (vec![], vec![id]),
        Step::InsertMany(first) => (vec![], (first..first + 80).filter(|id| !there.contains(id)).collect()),
        Step::Update(id) if there.contains(&id) => (vec![id], vec![id]),
        Step::Delete(id) if there.contains(&id) => (vec![id], vec![]),
        _ => return false,
    };
    let rows: Vec<_> = new.into_iter().map(|id| (id, Some(id))).collect();
    t.write_in(txn, &gone, &rows).unwrap();
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// At each snapshot, forwards and backwards, with limits, in a transaction that writes and outside.
    #[test]
    fn ranges_are_what_a_scan_finds(steps in proptest::collection::vec(step(), 1..60), segment_rows in 3_u32..40) {
        let t = table(segment_rows);
        let mut views = Vec::new();
        let mut open = t.begin();
        for step in &steps {
            match step {
                Step::Flush => {
                    open.commit().unwrap();
                    t.flush();
                    open = t.begin();
                }
                Step::Merge => t.db.merge(t.id).unwrap(),
                Step::Ask(limits, backwards, limit) => {
                    views.push(t.view());
                    for view in [views.last().unwrap().clone(), views[views.len() / 2].clone(), open.view(t.id).unwrap()] {
                        prop_assert_eq!(
                            found(&view, *limits, *backwards, *limit, usize::MAX),
                            Some(scanned(&view, *limits, *backwards, *limit))
                        );
                    }
                }
                write_step => {
                    // Some rows stay with the transaction for a while.
                    write(&t, &mut open, write_step);
                    if steps.len() % 3 != 0 {
                        open.commit().unwrap();
                        open = t.begin();
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_that_is_updated_again_and_again_is_one_step() {
    let t = table(7);
    t.insert(0..3);
    for round in 0..200 {
        t.update(1, round);
    }
    let view = t.view();
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(found(&view, all, false, usize::MAX, 3).map(|rows| rows.len()), Some(3));
    assert_eq!(found(&view, all, false, usize::MAX, 2), None);
}

#[test]
fn what_takes_too_many_steps_is_given_up() {
    let t = table(7);
    t.insert(0..100);
    t.flush();
    t.delete(&(0..50).collect::<Vec<_>>());
    let view = t.view();
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(found(&view, all, false, usize::MAX, 99), None);
    assert_eq!(found(&view, all, false, usize::MAX, 100).map(|rows| rows.len()), Some(50));
    // A limit ends it early, but not before dead rows.
    assert_eq!(found(&view, all, true, 2, 2).map(|rows| rows.len()), Some(2));
    assert_eq!(found(&view, all, false, 2, 51), None);
    assert_eq!(found(&view, all, false, 2, 52).map(|rows| rows.len()), Some(2));
}
