//! Conflicts: first committer wins, per row and per key.

mod locks;

use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::TransactionMode;

use crate::support::*;

fn table_with(ids: std::ops::Range<i64>) -> (Database, TableId) {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(ids)).unwrap();
    txn.commit().unwrap();
    (db, t)
}

#[test]
fn the_first_committer_wins_a_row() {
    let (db, t) = table_with(0..5);
    let (mut a, mut b) = (begin(&db), begin(&db));
    update(&mut a, t, &[1], |r| r.1 = 1).unwrap();
    update(&mut b, t, &[1], |r| r.1 = 2).unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
    assert_eq!(contents(&db, t)[1].1, 1);
}

/// Nothing of the later one is inserted, so no key is in its way: the row itself is.
#[test]
fn the_first_committer_wins_a_row_that_both_delete() {
    for (keyed, moved) in [(true, false), (true, true), (false, false), (false, true)] {
        let db = memory();
        let t = create(&db, "t", keyed, 7);
        insert_and_commit(&db, t, 0..20);
        let (mut a, mut b) = (begin(&db), begin(&db));
        delete(&mut a, t, &[3]).unwrap();
        delete(&mut b, t, &[3, 4]).unwrap();
        a.commit().unwrap();
        if moved {
            db.flush(t).unwrap();
        }
        assert_eq!(state(b.commit()), "40001", "keyed: {keyed}, moved: {moved}");
        assert_eq!(contents(&db, t), rows((0..20).filter(|id| *id != 3)));
    }
}

/// Contract 2: statements check early. Where the row went meanwhile makes no difference.
#[test]
fn a_row_that_was_changed_since_the_snapshot_ends_the_statement() {
    let moves: [fn(&Database, TableId); 4] = [
        |_, _| {},
        |db, t| db.freeze(t).unwrap(),
        |db, t| db.flush(t).unwrap(),
        |db, t| {
            db.flush(t).unwrap();
            db.merge(t).unwrap();
        },
    ];
    for before in moves {
        for after in moves {
            let (db, t) = table_with(0..20);
            let (mut late, mut deleted, mut updated) = (begin(&db), begin(&db), begin(&db));
            before(&db, t);
            let mut first = begin(&db);
            update(&mut first, t, &[3], |r| r.1 = 33).unwrap();
            delete(&mut first, t, &[4]).unwrap();
            first.commit().unwrap();
            after(&db, t);
            assert_eq!(state(delete(&mut deleted, t, &[3])), "40001");
            assert_eq!(state(update(&mut updated, t, &[4], |r| r.1 = 44)), "40001");
            // Rows that only moved are no conflict, neither here nor at the commit.
            update(&mut late, t, &[2, 5], |r| r.1 = 55).unwrap();
            update(&mut late, t, &[5], |r| r.1 = 56).unwrap();
            assert_eq!(state(update(&mut late, t, &[3, 6], |r| r.1 = 66)), "40001");
            late.commit().unwrap();
            let values: Vec<(i64, i32)> = contents(&db, t).iter().map(|r| (r.0, r.1)).collect();
            assert_eq!(values[2..6], [(2, 55), (3, 33), (5, 56), (6, 42)]);
        }
    }
}

#[test]
fn a_table_that_was_dropped_since_the_snapshot_ends_the_statement() {
    let (db, t) = table_with(0..5);
    let (mut writer, mut deleter) = (begin(&db), begin(&db));
    let mut dropper = begin(&db);
    dropper.drop_table(t).unwrap();
    dropper.commit().unwrap();
    assert_eq!(state(insert(&mut writer, t, &[row(9, 9)])), "40001");
    assert_eq!(state(delete(&mut deleter, t, &[1])), "40001");
    let own = writer.create_table(definition("u", true, 7)).unwrap();
    insert(&mut writer, own, &rows(0..3)).unwrap();
    delete(&mut writer, own, &[1]).unwrap();
    writer.commit().unwrap();
    assert_eq!(contents(&db, own).len(), 2);
}

#[test]
fn different_rows_do_not_conflict() {
    let (db, t) = table_with(0..5);
    let (mut a, mut b) = (begin(&db), begin(&db));
    update(&mut a, t, &[1], |r| r.1 = 1).unwrap();
    delete(&mut b, t, &[2]).unwrap();
    a.commit().unwrap();
    b.commit().unwrap();
    assert_eq!(contents(&db, t).iter().map(|r| r.0).collect::<Vec<_>>(), vec![0, 1, 3, 4]);
}

#[test]
fn the_first_committer_wins_a_key() {
    let (db, t) = table_with(0..5);
    let (mut a, mut b) = (begin(&db), begin(&db));
    insert(&mut a, t, &[row(9, 1)]).unwrap();
    insert(&mut b, t, &[row(9, 2)]).unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
    assert_eq!(state(insert(&mut begin(&db), t, &[row(9, 3)])), "23505", "at a later snapshot it is a duplicate");
}

#[test]
fn a_key_freed_by_another_is_still_taken_at_the_snapshot() {
    let (db, t) = table_with(0..5);
    let mut late = begin(&db);
    let mut a = begin(&db);
    delete(&mut a, t, &[3]).unwrap();
    a.commit().unwrap();
    assert_eq!(state(insert(&mut late, t, &[row(3, 3)])), "23505");
    insert(&mut begin(&db), t, &[row(3, 3)]).unwrap();
}

#[test]
fn reads_stay_at_the_snapshot_and_write_skew_is_possible() {
    let (db, t) = table_with(0..2);
    let (mut a, mut b) = (begin(&db), begin(&db));
    assert_eq!(all(&a, t), all(&b, t));
    update(&mut a, t, &[0], |r| r.1 = -1).unwrap();
    update(&mut b, t, &[1], |r| r.1 = -1).unwrap();
    a.commit().unwrap();
    assert_eq!(all(&b, t)[0], rows(0..1)[0], "no read of what was committed later");
    b.commit().unwrap();
    assert_eq!(contents(&db, t).iter().map(|r| r.1).collect::<Vec<_>>(), vec![-1, -1]);
}

#[test]
fn ddl_conflicts_are_per_table() {
    let (db, t) = table_with(0..2);
    let mut writer = begin(&db);
    insert(&mut writer, t, &[row(7, 7)]).unwrap();
    let (mut dropper, mut alone) = (begin(&db), begin(&db));
    all(&dropper, t);
    dropper.drop_table(t).unwrap();
    let mut other = begin(&db);
    insert(&mut other, t, &[row(8, 8)]).unwrap();
    other.commit().unwrap();
    assert_eq!(state(dropper.commit()), "40001", "the table was written to since the snapshot");
    alone.drop_table(t).unwrap();
    alone.commit().unwrap();
    assert_eq!(state(writer.commit()), "40001", "the table is gone");

    let (mut a, mut b) = (begin(&db), begin(&db));
    a.create_table(definition("u", true, 7)).unwrap();
    b.create_table(definition("u", true, 7)).unwrap();
    a.commit().unwrap();
    assert_eq!(state(b.commit()), "40001");
}

#[test]
fn concurrent_increments_lose_no_update() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &[row(1, 0)]).unwrap();
    txn.commit().unwrap();
    let committed: i32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < 50 {
                        let mut txn = begin_applied(&db);
                        match update(&mut txn, t, &[1], |r| r.1 += 1).and_then(|_| txn.commit()) {
                            Ok(_) => done += 1,
                            Err(e) => assert_eq!(e.sqlstate(), "40001"),
                        }
                    }
                    done
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(contents(&db, t)[0].1, committed);
    assert_eq!(committed, 200);
}

/// A snapshot from before the wait would only meet the commit that was waited for.
#[test]
fn a_writer_that_waited_at_a_gate_sees_what_it_waited_for() {
    let (db, t) = table_with(0..5);
    let gate = db.close_write_gate(t, || Ok(())).unwrap();
    let (arrived, at_gate) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            arrived.send(()).unwrap();
            let mut txn = db.begin_behind_gate(TransactionMode::default(), |_| Some(t), || Ok(())).unwrap();
            update(&mut txn, t, &[1], |r| r.1 += 1).and_then(|_| txn.commit()).map(drop)
        });
        at_gate.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut holder = begin(&db);
        update(&mut holder, t, &[1], |r| r.1 = 100).unwrap();
        holder.commit().unwrap();
        drop(gate);
        assert_eq!(state(waiting.join().unwrap()), "ok");
    });
    assert_eq!(contents(&db, t)[1].1, 101);
    let gate = db.close_write_gate(t, || Ok(())).unwrap();
    db.begin_behind_gate(TransactionMode::default(), |_| None, || Ok(())).unwrap();
    drop(gate);
}
