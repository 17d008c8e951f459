//! Keys over deltas and runs, at every snapshot.

mod indexed;
mod range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::*;
use crate::database::testing::{ID, Table, V, batch, key, rows_of, table};
use crate::error::ErrorKind;
use crate::ids::{ContainerId, KeyId};
use crate::row::key::{RowKeys, TableKey};
use crate::row::{RowBuffer, RowLayout};

/// What the probe finds must be the row that a scan finds.
fn check(t: &Table, view: &std::sync::Arc<TableView>, ids: std::ops::Range<i64>) {
    let rows = rows_of(view);
    for id in ids {
        let wanted = rows.iter().find(|row| row.1 == id).map(|row| row.0);
        assert_eq!(
            find(view, KeyId::PRIMARY, &key(view, id), |_| true).unwrap(),
            wanted,
            "key {id} in {:?}",
            t.db.containers()
        );
    }
}

/// Whether all of `ids` are free at once.
fn free(view: &std::sync::Arc<TableView>, ids: &[i64]) -> bool {
    let rows: Vec<_> = ids.iter().map(|id| (*id, None)).collect();
    let mut buffer = RowBuffer::new(RowLayout::new(view.schema()));
    buffer.push_batch(&batch(&rows)).unwrap();
    let keys = RowKeys::all(&TableKey::all(view.schema()), &buffer);
    are_free(view, KeyId::PRIMARY, &keys[0], |_| true).unwrap()
}

/// More runs than have their filters asked at once, and deltas; each key is found where it is, and many are free only
/// if each is.
#[test]
fn keys_are_found_in_any_of_many_runs() {
    let t = table(7);
    for part in 0..11_i64 {
        t.insert((0..30).map(|id| id * 11 + part));
        t.flush();
    }
    t.delete(&[14, 200]);
    t.insert(400..410);
    let view = t.view();
    assert!(view.version().runs.len() > 8);
    check(&t, &view, -3..420);
    let taken: Vec<bool> = (-3..420).map(|id| !free(&view, &[id])).collect();
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 330 - 2 + 10);
    for many in [5, 16] {
        for first in -3..420 - many {
            let ids: Vec<i64> = (first..first + many).collect();
            let any_taken = ids.iter().any(|id| taken[(id + 3) as usize]);
            assert_eq!(free(&view, &ids), !any_taken, "{ids:?}");
        }
    }
    // Absent ones around one that is there.
    let absent = [-3, -2, 14, 200, 345, 399, 410, 419];
    assert!(free(&view, &absent));
    for there in [0, 13, 329, 405] {
        assert!(!free(&view, &[&absent[..], &[there]].concat()), "{there}");
    }
}

#[test]
fn each_snapshot_finds_its_own_version_wherever_it_lives() {
    let t = table(7);
    let mut views = Vec::new();
    for round in 0..12 {
        match round {
            0 => t.insert(0..20),
            3 => t.insert(30..40),
            5 => t.delete(&[4, 33]),
            7 => t.insert([4]),
            _ => t.update(10, round),
        }
        if round % 3 == 1 {
            t.flush();
        }
        if round == 8 {
            t.db.merge(t.id).unwrap();
        }
        views.push(t.view());
    }
    for view in &views {
        check(&t, view, -1..42);
    }
}

#[test]
fn a_key_on_either_side_of_a_segment_boundary_is_found() {
    let t = table(5);
    t.insert((0..25).map(|id| id * 2));
    t.flush();
    let view = t.view();
    assert_eq!(view.version().runs[0].segments().len(), 5);
    check(&t, &view, -1..52);
    for run in [1, 9, 10, 18, 19, 20, 48].map(|id| view.version().runs[0].find_segments(&key(&view, id)).len()) {
        assert!(run <= 2);
    }
}

#[test]
fn rows_that_do_not_count_are_passed_over() {
    let t = table(7);
    t.insert(0..10);
    t.flush();
    t.update(3, 33);
    let view = t.view();
    let newest = find(&view, KeyId::PRIMARY, &key(&view, 3), |_| true).unwrap().unwrap();
    assert!(view.version().deltas.iter().any(|delta| delta.id() == newest.container()));
    assert_eq!(
        find(&view, KeyId::PRIMARY, &key(&view, 3), |row| row != newest).unwrap(),
        None,
        "older versions are dead"
    );
}

#[test]
fn own_deletes_hide_a_row_and_own_rows_are_not_looked_for() {
    let t = table(7);
    t.insert(0..10);
    t.flush();
    t.insert(10..12);
    let mut txn = t.begin();
    t.write_in(&mut txn, &[3, 11], &[(50, None)]).unwrap();
    let view = txn.view(t.id).unwrap();
    for (id, there) in [(2, true), (3, false), (10, true), (11, false), (50, false)] {
        assert_eq!(find(&view, KeyId::PRIMARY, &key(&view, id), |_| true).unwrap().is_some(), there, "key {id}");
    }
}

#[test]
fn a_run_is_probed_at_a_time_or_at_all_times() {
    let t = table(7);
    t.insert(0..10);
    t.flush();
    let before = t.view();
    t.delete(&[3]);
    let after = t.view();
    let (run, key) = (after.version().runs[0].clone(), key(&after, 3));
    let at =
        |at| find_in_run(after.schema(), &run, KeyId::PRIMARY, HashedKey::of(&key), at, |_| true).unwrap().is_some();
    assert_eq!([at(Some(before.ts())), at(Some(after.ts())), at(None)], [true, false, true]);
}

/// Rows of every kind of container are fetched in the order asked for, one of them twice.
#[test]
fn rows_are_fetched_in_the_order_of_their_references() {
    let t = table(5);
    t.insert(0..12);
    t.flush();
    t.insert(20..23);
    let mut txn = t.begin();
    t.write_in(&mut txn, &[3], &[(50, Some(7)), (51, None)]).unwrap();
    t.insert_in(&mut txn, 1_000..6_000);
    let view = txn.view(t.id).unwrap();
    let mut rows = rows_of(&view);
    rows.sort_by_key(|row| (row.1 * 7919) % 104_729);
    rows.truncate(300);
    let own: Vec<_> = rows_of(&view).into_iter().filter(|row| [0, 11, 21, 50, 51, 1_000].contains(&row.1)).collect();
    rows.extend(own.iter().chain(&own));
    let references: Vec<RowRef> = rows.iter().map(|row| row.0).collect();
    let [ids, values] = view.fetch(&[ID, V], &references).unwrap().try_into().unwrap();
    let [v, id] = view.fetch(&[V, ID], &references[..3]).unwrap().try_into().unwrap();
    assert_eq!((&v, &id), (&values.slice(0, 3), &ids.slice(0, 3)));
    let ids: Vec<i64> = ids.as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(ids, rows.iter().map(|row| row.1).collect::<Vec<_>>());
    let values: Vec<Option<i64>> = values.as_primitive::<Int64Type>().iter().collect();
    let expected = |id: i64| match id {
        50 => Some(7),
        51 => None,
        id => Some(10 * id),
    };
    assert_eq!(values, ids.iter().map(|id| expected(*id)).collect::<Vec<_>>());
    assert_eq!(view.fetch(&[ID], &[]).unwrap()[0].len(), 0);
    let nowhere = RowRef::new(ContainerId(1 << 30), 0);
    assert_eq!(view.fetch(&[ID], &[nowhere]).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn own_rows_are_found_by_key_too() {
    let t = table(7);
    t.insert(0..10);
    t.flush();
    let mut txn = t.begin();
    t.write_in(&mut txn, &[3, 4], &[(4, Some(1)), (50, None)]).unwrap();
    t.insert_in(&mut txn, 1_000..6_000);
    t.write_in(&mut txn, &[50, 1_500], &[]).unwrap();
    let view = txn.view(t.id).unwrap();
    let rows = rows_of(&view);
    for id in [0, 3, 4, 9, 10, 50, 999, 1_000, 1_499, 1_500, 5_999, 6_000] {
        let wanted = rows.iter().find(|row| row.1 == id).map(|row| row.0);
        assert_eq!(txn.find_key(&view, KeyId::PRIMARY, &key(&view, id)).unwrap(), wanted, "key {id}");
    }
    let keys = keys_of(&view, KeyId::PRIMARY, &batch(&[(7, None), (4, Some(1))])).unwrap();
    assert_eq!(
        keys.iter().map(|key| key.as_ref().unwrap().to_vec()).collect::<Vec<_>>(),
        [key(&view, 7), key(&view, 4)]
    );
}
