//! What is committed between a commit's validation at P and its turn under the commit lock (contract 2, phases a and
//! b). The commit is held where it asks for log space, which is between the two.

use std::sync::Arc;

use mainstem_storage::catalog::{TableChange, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::Transaction;

use crate::held_disk::HeldDisk;
use crate::support::*;

/// More rows than go through the delta.
const MANY: i64 = 6_000;

/// Rows whose record is larger than half of the log space set aside at a time, and smaller than all of it.
fn wide(first: i64) -> Vec<Row> {
    (first..first + 700).map(|id| (id, 1, Some("w".repeat(900)))).collect()
}

/// A table of the rows 0..100 in a log with little space left, and a disk that gives no more until it is told to.
fn prepared(definition: TableDefinition) -> (HeldDisk, Database, TableId) {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create_as(&db, definition);
    insert_and_commit(&db, t, 0..100);
    let mut txn = begin(&db);
    insert(&mut txn, t, &wide(1_000)).unwrap();
    txn.commit().unwrap();
    disk.hold_space("wal/");
    (disk, db, t)
}

/// What a transaction's commit answers when `meanwhile` is done between P and the lock.
pub fn with(
    definition: TableDefinition,
    write: impl FnOnce(&mut Transaction, TableId),
    meanwhile: impl FnOnce(&Database, TableId),
) -> (&'static str, Database, TableId) {
    let (disk, db, t) = prepared(definition);
    let mut txn = begin(&db);
    write(&mut txn, t);
    insert(&mut txn, t, &wide(2_000)).unwrap();
    let answer = std::thread::scope(|scope| {
        let held = scope.spawn(|| state(txn.commit()));
        disk.wait_for_space("wal/");
        meanwhile(&db, t);
        disk.release("wal/");
        held.join().unwrap()
    });
    let wrong = db.verify();
    assert!(wrong.is_empty(), "{wrong:?}");
    (answer, db, t)
}

fn insert_row(db: &Database, t: TableId, new: Row) {
    let mut txn = begin(db);
    insert(&mut txn, t, &[new]).unwrap();
    txn.commit().unwrap();
}

fn ids(db: &Database, t: TableId) -> Vec<i64> {
    contents(db, t).iter().map(|row| row.0).collect()
}

#[test]
fn a_row_that_goes_in_between_is_a_conflict() {
    // Deleted, not updated: the new version's key would be taken as well.
    let write = |txn: &mut Transaction, t| assert_eq!(delete(txn, t, &[5]).unwrap(), 1);
    let meanwhile = |db: &Database, t, id| {
        let mut txn = begin(db);
        update(&mut txn, t, &[id], |row| row.1 = 501).unwrap();
        txn.commit().unwrap();
    };
    for definition in keyed_definitions("t", 500).into_iter().chain([definition("t", false, 500)]) {
        let (answer, db, t) = with(definition.clone(), write, |db, t| meanwhile(db, t, 5));
        assert_eq!(answer, "40001");
        assert_eq!(contents(&db, t)[5].1, 501);
        // Another row is none.
        let (answer, db, t) = with(definition, write, |db, t| meanwhile(db, t, 6));
        let rows = contents(&db, t);
        assert_eq!((answer, rows[4].0, rows[5].0, rows[5].1), ("ok", 4, 6, 501));
    }
}

#[test]
fn a_key_that_is_taken_in_between_is_a_conflict() {
    for definition in keyed_definitions("t", 500) {
        let write = |txn: &mut Transaction, t| insert(txn, t, &rows([700])).unwrap();
        let (answer, db, t) = with(definition.clone(), write, |db, t| insert_row(db, t, row(700, 9)));
        assert_eq!(answer, "40001");
        assert_eq!(contents(&db, t)[100], row(700, 9));
        let (answer, db, t) = with(definition, write, |db, t| insert_row(db, t, row(701, 9)));
        assert_eq!(answer, "ok");
        assert_eq!(ids(&db, t)[99..103], [99, 700, 701, 1_000]);
    }
}

/// The larger part of the commit is in segments: under the lock only their filters are asked.
#[test]
fn a_key_of_a_large_insert_that_is_taken_in_between_is_a_conflict() {
    for definition in keyed_definitions("t", 500) {
        let write = |txn: &mut Transaction, t| insert(txn, t, &rows(10_000..10_000 + MANY)).unwrap();
        for taken in [10_000, 12_345, 10_000 + MANY - 1] {
            let (answer, db, t) = with(definition.clone(), write, |db, t| insert_row(db, t, row(taken, 9)));
            assert_eq!(answer, "40001", "key {taken}");
            assert_eq!(ids(&db, t).last(), Some(&taken));
        }
        let (answer, db, t) = with(definition, write, |db, t| insert_row(db, t, row(10_000 + MANY, 9)));
        assert_eq!(answer, "ok");
        assert_eq!(ids(&db, t).len(), 100 + 2 * 700 + MANY as usize + 1);
    }
}

/// A merge moves the row that the commit deletes: it is forwarded, and nothing is a conflict.
#[test]
fn an_install_in_between_is_no_conflict() {
    for definition in keyed_definitions("t", 500) {
        let write = |txn: &mut Transaction, t| {
            update(txn, t, &[5], |row| row.1 = 500).unwrap();
            assert_eq!(delete(txn, t, &[6]).unwrap(), 1);
        };
        let (answer, db, t) = with(definition, write, |db, t| db.merge(t).unwrap());
        assert_eq!(answer, "ok");
        let rows = contents(&db, t);
        assert_eq!((rows[5].1, rows[6].0, rows.len()), (500, 7, 99 + 2 * 700));
    }
}

/// Loads and merges come in between: rows are forwarded, keys looked for in the runs that were not there.
#[test]
fn a_load_in_between_is_a_conflict_only_where_it_has_the_key() {
    for definition in keyed_definitions("t", 500) {
        for merged in [false, true] {
            for large in [false, true] {
                let write = |txn: &mut Transaction, t| {
                    insert(txn, t, &rows(if large { 10_000..10_000 + MANY } else { 10_000..10_001 })).unwrap();
                    assert_eq!(delete(txn, t, &[6]).unwrap(), 1);
                };
                let load = |db: &Database, t, first: i64| {
                    insert_and_commit(db, t, first..first + MANY);
                    if merged {
                        db.merge(t).unwrap();
                    }
                };
                let (answer, db, t) = with(definition.clone(), write, |db, t| load(db, t, 10_001 - MANY));
                assert_eq!(answer, "40001", "{definition:?} {merged} {large}");
                assert_eq!(ids(&db, t).len(), 800 + MANY as usize);
                let (answer, db, t) = with(definition.clone(), write, |db, t| load(db, t, 10_000 - MANY));
                assert_eq!((answer, db.take_commit_rounds_max()), ("ok", 2));
                let own = if large { MANY as usize } else { 1 };
                assert_eq!(ids(&db, t).len(), 100 + 2 * 700 + MANY as usize + own - 1);
            }
        }
    }
}

/// Rows of a table that is emptied, altered or dropped in between are not there to be deleted.
#[test]
fn a_schema_change_in_between_is_a_conflict() {
    let change = |turn: usize, txn: &mut Transaction, t| match turn {
        0 => txn.truncate(t, false).unwrap(),
        1 => drop(txn.alter_table(t, &[TableChange::Rename("u".into())]).unwrap()),
        _ => txn.drop_table(t).unwrap(),
    };
    for definition in keyed_definitions("t", 500).into_iter().chain([definition("t", false, 500)]) {
        for turn in 0..3 {
            let write = |txn: &mut Transaction, t| assert_eq!(delete(txn, t, &[5]).unwrap(), 1);
            let (answer, db, t) = with(definition.clone(), write, |db, t| {
                let mut txn = begin(db);
                change(turn, &mut txn, t);
                txn.commit().unwrap();
            });
            assert_eq!(answer, "40001", "change {turn}");
            let table = if turn < 2 { t } else { create_as(&db, definition.clone()) };
            insert_row(&db, table, (7_000, 1, None));
            assert!(ids(&db, table).contains(&7_000));
        }
    }
}

/// A commit that fails has changed nothing: a table it was to alter takes rows as before.
#[test]
fn a_failed_schema_change_leaves_deltas_that_take_rows() {
    for keyed in [true, false] {
        let db = memory();
        let [a, b] = ["a", "b"].map(|name| create(&db, name, keyed, 500));
        insert_and_commit(&db, a, 0..2);
        let rename = |txn: &mut Transaction, table, name: &str| {
            txn.alter_table(table, &[TableChange::Rename(name.into())]).unwrap();
        };
        let mut txn = begin(&db);
        rename(&mut txn, a, "c");
        rename(&mut txn, b, "d");
        let mut first = begin(&db);
        rename(&mut first, b, "e");
        first.commit().unwrap();
        assert_eq!(state(txn.commit()), "40001");
        insert_row(&db, a, (2, 1, None));
        assert_eq!(ids(&db, a), [0, 1, 2]);
    }
}
