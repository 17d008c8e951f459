//! Rows read FOR UPDATE: they must be unchanged when their transaction commits, though nothing is written for them
//! (contract 2).

use mainstem_storage::Result;
use mainstem_storage::catalog::TableChange;
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::memory::MemoryKind;
use mainstem_storage::transaction::{Transaction, TransactionMode};

use crate::support::*;
use crate::under_lock::with;

/// SELECT ... FOR UPDATE of the rows with these ids.
fn lock(txn: &mut Transaction, t: TableId, ids: &[i64]) -> Result<()> {
    let schema = txn.catalog().table(t).cloned().unwrap();
    let found: Vec<_> = select(txn, t, |row| ids.contains(&row.0))?.iter().map(|(at, _)| *at).collect();
    assert_eq!(found.len(), ids.len());
    txn.lock_rows(&schema, &found)
}

fn set(db: &Database, t: TableId, id: i64, v: i32) {
    let mut txn = begin(db);
    update(&mut txn, t, &[id], |row| row.1 = v).unwrap();
    txn.commit().unwrap();
}

fn table() -> (Database, TableId) {
    let db = memory();
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..20);
    (db, t)
}

/// What may happen to a row that does not change it.
const MOVES: [fn(&Database, TableId); 4] = [
    |_, _| {},
    |db, t| db.freeze(t).unwrap(),
    |db, t| db.flush(t).unwrap(),
    |db, t| {
        db.flush(t).unwrap();
        db.merge(t).unwrap();
    },
];

/// Each reads what the other writes: without the locks both would commit (`isolation`).
#[test]
fn write_skew_is_a_conflict_for_who_commits_second() {
    for moved in MOVES {
        for both_rows in [false, true] {
            let (db, t) = table();
            let (mut a, mut b) = (begin(&db), begin(&db));
            lock(&mut a, t, if both_rows { &[1, 2] } else { &[1] }).unwrap();
            lock(&mut b, t, if both_rows { &[1, 2] } else { &[2] }).unwrap();
            moved(&db, t);
            update(&mut a, t, &[2], |row| row.1 = -2).unwrap();
            update(&mut b, t, &[1], |row| row.1 = -1).unwrap();
            a.commit().unwrap();
            moved(&db, t);
            assert_eq!(state(b.commit()), "40001");
            let rows = contents(&db, t);
            assert_eq!((rows[1].1, rows[2].1), (row(1, 7).1, -2));
        }
    }
}

/// Whether it writes something itself or not, and wherever the row is by then.
#[test]
fn a_locked_row_that_is_changed_is_a_conflict_at_the_commit() {
    for (turn, before) in MOVES.into_iter().enumerate() {
        for after in MOVES {
            for (writes, id) in [(false, 3), (true, 3), (false, 4), (true, 4)] {
                let (db, t) = table();
                let mut txn = begin(&db);
                lock(&mut txn, t, &[3, 5, 19]).unwrap();
                before(&db, t);
                set(&db, t, id, 77);
                after(&db, t);
                if writes {
                    insert(&mut txn, t, &rows([100])).unwrap();
                }
                let read_ts = txn.read_ts();
                let answer = txn.commit();
                if id == 4 {
                    assert_eq!(answer.unwrap() == read_ts, !writes, "the row of nobody");
                } else {
                    assert_eq!(state(answer), "40001", "moved as in {turn}, then changed");
                }
                assert_eq!(contents(&db, t).len(), if writes && id == 4 { 21 } else { 20 });
            }
        }
    }
}

/// FOR UPDATE does not say that the row will be changed: who but reads it so is in nobody's way.
#[test]
fn who_locks_a_row_too_is_no_conflict_and_nothing_is_written() {
    let (db, t) = table();
    let (mut a, mut b, mut c) = (begin(&db), begin(&db), begin(&db));
    let before = select(&begin(&db), t, |_| true).unwrap();
    for txn in [&mut a, &mut b, &mut c] {
        lock(txn, t, &[1, 2, 3]).unwrap();
    }
    insert(&mut a, t, &rows([30])).unwrap();
    insert(&mut b, t, &rows([31])).unwrap();
    let read_ts = c.read_ts();
    a.commit().unwrap();
    b.commit().unwrap();
    assert_eq!(c.commit().unwrap(), read_ts, "a commit of nothing draws no timestamp");
    let after = select(&begin(&db), t, |row| row.0 < 20).unwrap();
    assert_eq!(before, after, "rows that are locked stay where they are");
}

#[test]
fn rolling_back_to_a_savepoint_drops_the_locks_since() {
    let (db, t) = table();
    for (id, expected) in [(1, "40001"), (2, "ok"), (3, "40001"), (4, "40001")] {
        let mut txn = begin(&db);
        lock(&mut txn, t, &[1]).unwrap();
        let mark = txn.savepoint();
        lock(&mut txn, t, &[2]).unwrap();
        txn.rollback_to(&mark).unwrap();
        lock(&mut txn, t, &[3]).unwrap();
        let kept = txn.savepoint();
        lock(&mut txn, t, &[4]).unwrap();
        txn.release(kept).unwrap();
        set(&db, t, id, 100 + id as i32);
        assert_eq!(state(txn.commit()), expected, "row {id}");
    }
}

#[test]
fn a_transaction_may_write_what_it_has_locked_and_lock_what_it_has_written() {
    for moved in MOVES {
        let (db, t) = table();
        let mut txn = begin(&db);
        lock(&mut txn, t, &[1, 2, 3]).unwrap();
        moved(&db, t);
        update(&mut txn, t, &[1], |row| row.1 = 11).unwrap();
        delete(&mut txn, t, &[2]).unwrap();
        insert(&mut txn, t, &rows([50])).unwrap();
        lock(&mut txn, t, &[1, 3, 50]).unwrap();
        delete(&mut txn, t, &[50]).unwrap();
        txn.commit().unwrap();
        let rows = contents(&db, t);
        assert_eq!((rows.len(), rows[1].1, rows[2].0), (19, 11, 3));
    }
    // Rows that went aside are its own, too.
    let db = Database::in_memory(options().memory_limit(4 << 20)).unwrap();
    let t = create(&db, "t", true, 500);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..30_000)).unwrap();
    let all: Vec<i64> = (0..30_000).collect();
    lock(&mut txn, t, &[5, 29_999]).unwrap();
    update(&mut txn, t, &all[..10], |row| row.1 = 1).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_row_changed_since_the_snapshot_cannot_be_locked() {
    for moved in MOVES {
        let (db, t) = table();
        let (mut txn, mut reads) =
            (begin(&db), db.begin(TransactionMode { read_only: true, ..TransactionMode::default() }).unwrap());
        set(&db, t, 3, 77);
        moved(&db, t);
        assert_eq!(state(lock(&mut txn, t, &[2, 3])), "40001");
        assert_eq!(state(lock(&mut reads, t, &[2])), "25006");
        // The statement that failed has locked nothing.
        lock(&mut txn, t, &[4]).unwrap();
        set(&db, t, 2, 78);
        txn.commit().unwrap();
    }
}

/// What becomes of the whole table is a conflict; what a transaction does to it itself is none.
#[test]
fn a_table_that_is_emptied_altered_or_dropped_is_a_conflict_for_who_has_locked_rows() {
    let change = |turn: usize, txn: &mut Transaction, t| match turn {
        0 => txn.truncate(t, false).unwrap(),
        1 => drop(txn.alter_table(t, &[TableChange::Rename("u".into())]).unwrap()),
        _ => txn.drop_table(t).unwrap(),
    };
    for turn in 0..3 {
        for writes in [false, true] {
            let (db, t) = table();
            let other = create(&db, "other", true, 7);
            let mut txn = begin(&db);
            lock(&mut txn, t, &[1]).unwrap();
            let mut changes = begin(&db);
            change(turn, &mut changes, t);
            changes.commit().unwrap();
            if writes {
                insert(&mut txn, other, &rows([1])).unwrap();
            }
            assert_eq!(state(txn.commit()), "40001", "change {turn}");
        }
        for beside in [None, Some(1), Some(9)] {
            let (db, t) = table();
            let mut txn = begin(&db);
            lock(&mut txn, t, &[1]).unwrap();
            change(turn, &mut txn, t);
            if let Some(id) = beside {
                set(&db, t, id, 5);
            }
            let expected = if beside.is_some() { "40001" } else { "ok" };
            assert_eq!(state(txn.commit()), expected, "its own change {turn} beside {beside:?}");
        }
    }
}

/// Between P and the commit lock, too, and where a merge moves the rows there.
#[test]
fn a_locked_row_that_changes_between_validation_and_lock_is_a_conflict() {
    for definition in keyed_definitions("t", 500).into_iter().chain([definition("t", false, 500)]) {
        let write = |txn: &mut Transaction, t| lock(txn, t, &[5, 6]).unwrap();
        let (answer, db, t) = with(definition.clone(), write, |db, t| set(db, t, 5, 501));
        assert_eq!((answer, contents(&db, t)[5].1), ("40001", 501));
        let (answer, ..) = with(definition.clone(), write, |db, t| set(db, t, 7, 501));
        assert_eq!(answer, "ok");
        let (answer, db, _) = with(definition.clone(), write, |db, t| db.merge(t).unwrap());
        assert_eq!((answer, db.take_commit_rounds_max()), ("ok", 2));
        let (answer, ..) = with(definition, write, |db, t| {
            db.merge(t).unwrap();
            set(db, t, 6, 501);
            db.merge(t).unwrap();
        });
        assert_eq!(answer, "40001");
    }
}

/// Under the lock only so many of them are looked at: more are looked at again outside.
#[test]
fn many_locked_rows_are_validated_again_outside_the_lock() {
    const MANY: i64 = 40_000;
    let lock_all = |txn: &mut Transaction, t| {
        insert(txn, t, &rows([2_000_000])).unwrap();
        let schema = txn.catalog().table(t).cloned().unwrap();
        let found: Vec<_> = select(txn, t, |row| row.0 >= 1_000_000).unwrap().iter().map(|(at, _)| *at).collect();
        txn.lock_rows(&schema, &found).unwrap();
    };
    for (deleted, expected) in [(1_000_000 + MANY / 2, "40001"), (7, "ok")] {
        let db = memory();
        let t = create(&db, "t", true, 500);
        insert_and_commit(&db, t, (0..10).chain(1_000_000..1_000_000 + MANY));
        db.flush(t).unwrap();
        let mut txn = begin(&db);
        lock_all(&mut txn, t);
        let mut other = begin(&db);
        delete(&mut other, t, &[deleted]).unwrap();
        other.commit().unwrap();
        assert_eq!(state(txn.commit()), expected);
        assert!(db.verify().is_empty());
    }
}

/// Many rows of many statements are counted as write sets, and refused when they take too much.
#[test]
fn locks_are_counted_and_bounded() {
    let db = Database::in_memory(options().memory_limit(4 << 20)).unwrap();
    let t = create(&db, "t", true, 500);
    insert_and_commit(&db, t, 0..20_000);
    let used = || db.memory().iter().find(|of| of.kind == MemoryKind::WriteSets).unwrap().bytes;
    let mut txn = begin(&db);
    let before = used();
    lock(&mut txn, t, &(0..20_000).step_by(3).collect::<Vec<_>>()).unwrap();
    let one = used() - before;
    assert!(one > 1_000, "{one} bytes for 6,667 rows");
    lock(&mut txn, t, &(0..20_000).step_by(3).collect::<Vec<_>>()).unwrap();
    assert_eq!(used() - before, one, "each row once");
    drop(txn);
    assert_eq!(used(), before);
}
