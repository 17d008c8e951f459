//! Merges and transactions beside one another: a merge never makes a user's transaction fail (contract 2).

use std::sync::Arc;

use mainstem_storage::background::MergeState;
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::transaction::TransactionMode;

use crate::held_disk::HeldDisk;
use crate::support::*;

/// A merge is installed above a commit whose fsync is under way. A transaction that begins now starts below both: it
/// names rows where the merge found them, so the merge must have kept its forwarding.
#[test]
fn a_transaction_below_an_install_that_is_not_visible_yet_can_commit() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..10)).unwrap();
    txn.commit().unwrap();

    disk.hold("data/");
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.flush(t).unwrap());
        disk.wait_for_sync("data/");
        disk.hold("wal/");
        let slow = scope.spawn(|| {
            let mut txn = begin(&db);
            update(&mut txn, t, &[1], |r| r.1 = 111).unwrap();
            txn.commit().unwrap();
        });
        disk.wait_for_sync("wal/");
        disk.release("data/");
        merge.join().unwrap();
        let mut below = begin(&db);
        assert_ne!(all(&below, t)[1].1, 111, "the slow commit is not visible yet");
        update(&mut below, t, &[5], |r| r.1 = 555).unwrap();
        disk.release("wal/");
        slow.join().unwrap();
        assert_eq!(state(below.commit()), "ok");
    });
    let values: Vec<i32> = contents(&db, t).iter().map(|r| r.1).collect();
    assert_eq!((values[1], values[5]), (111, 555));
}

/// One writer, so nobody conflicts with it, begins and commits while merges install one after the other.
#[test]
fn merges_alone_never_fail_a_transaction() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..10)).unwrap();
    txn.commit().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                db.merge(t).unwrap();
            }
        });
        for round in 0..3_000 {
            let mut txn = begin(&db);
            update(&mut txn, t, &[round % 10], |r| r.1 += 1).unwrap();
            let outcome = state(txn.commit());
            if outcome != "ok" {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert_eq!(outcome, "ok", "round {round}");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let expected: i32 = rows(0..10).iter().map(|r| r.1).sum::<i32>() + 3_000;
    assert_eq!(contents(&db, t).iter().map(|r| r.1).sum::<i32>(), expected);
}

/// Deletes of every size land in the inputs while a merge waits to write its output: all are carried, and survive a
/// restart.
#[test]
fn deletes_during_a_merge_are_carried() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 1_000);
    insert_and_commit(&db, t, 0..9_000);
    db.flush(t).unwrap();
    insert_and_commit(&db, t, 9_000..9_100);
    disk.hold("data/");
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.merge(t).unwrap());
        disk.wait_for_sync("data/");
        for ids in [vec![3], (100..6_000).collect(), vec![9_050], (6_000..6_100).collect()] {
            let mut txn = begin(&db);
            assert_eq!(delete(&mut txn, t, &ids).unwrap(), ids.len() as u64);
            txn.commit().unwrap();
        }
        disk.release("data/");
        merge.join().unwrap();
    });
    let left: Vec<i64> = (0..9_100).filter(|id| *id != 3 && !(100..6_100).contains(id) && *id != 9_050).collect();
    assert_eq!(contents(&db, t), rows(left.clone()));
    assert!(db.containers().iter().filter(|c| c.kind == "segment").map(|c| c.run).all(|run| run.is_some()));
    drop(db);
    let db = Database::open_on(Arc::new(disk), options()).unwrap();
    assert_eq!(contents(&db, t), rows(left));
}

/// A table with two runs, too large for a short merge.
fn two_runs(db: &Database, name: &str) -> mainstem_storage::ids::TableId {
    let mut definition = definition(name, true, 10);
    definition.options.delta_rows = 100;
    let t = create_as(db, definition);
    insert_and_commit(db, t, (0..200).map(|id| 2 * id));
    db.flush(t).unwrap();
    insert_and_commit(db, t, (0..200).map(|id| 2 * id + 1));
    db.flush(t).unwrap();
    t
}

fn running(db: &Database) -> Vec<(String, usize, usize)> {
    let merges = db.merges();
    let running = merges.iter().filter(|merge| merge.state == MergeState::Running);
    running.map(|merge| (merge.table.clone(), merge.deltas, merge.runs)).collect()
}

/// A merge of runs is held while it writes. Flushes, of the same table and of another, and a checkpoint go on; rows
/// they moved and rows it moves are found by transactions from before, and every delete of the meantime is carried.
#[test]
fn flushes_go_on_beside_a_long_merge() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let (t, other) = (two_runs(&db, "t"), create(&db, "other", true, 10));
    insert_and_commit(&db, other, 0..50);
    insert_and_commit(&db, t, 1_000..1_010);
    let mut before = begin(&db);
    assert_eq!(update(&mut before, t, &[8, 399, 1_000], |r| r.1 = 111).unwrap(), 3);
    let old = begin(&db);
    db.flush(t).unwrap();
    disk.hold("data/");
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.merge(t).unwrap());
        let held = disk.hold_first_only("data/");
        assert_eq!(running(&db), [("t".to_owned(), 0, 3)]);

        insert_and_commit(&db, t, 2_000..2_030);
        for ids in [vec![3, 1_003], (100..150).collect(), vec![2_003]] {
            let mut txn = begin(&db);
            assert_eq!(delete(&mut txn, t, &ids).unwrap(), ids.len() as u64);
            txn.commit().unwrap();
        }
        db.flush(t).unwrap();
        db.flush(other).unwrap();
        insert_and_commit(&db, t, 3_000..3_003);
        db.checkpoint().unwrap();
        assert_eq!(db.log_tail_bytes(), 0, "no delta holds the log");
        let mut txn = begin(&db);
        assert_eq!(delete(&mut txn, t, &[5, 2_005, 3_000]).unwrap(), 3);
        txn.commit().unwrap();

        assert_eq!(running(&db), [("t".to_owned(), 0, 3)], "it still runs");
        let flushed = db.merges().iter().rev().take_while(|merge| merge.state == MergeState::Installed).count();
        assert_eq!(flushed, 3, "{:?}", db.merges());
        disk.release(&held);
        merge.join().unwrap();
    });
    let merges = db.merges();
    assert!(merges.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert!(merges.iter().all(|merge| merge.state == MergeState::Installed), "{merges:?}");
    // The merge stands before what was flushed beside it.
    let firsts: Vec<_> =
        db.containers().iter().filter(|c| c.table == "t" && c.kind == "segment").map(|c| c.run).collect();
    let mut runs = firsts.clone();
    runs.dedup();
    assert_eq!(runs.len(), 3, "{firsts:?}");
    assert!(runs[0] > runs[2], "the youngest run holds the oldest rows: {runs:?}");
    assert_eq!(state(before.commit()), "ok");
    assert_eq!(all(&old, t).len(), 410, "the old snapshot is as it was");
    drop(old);
    let gone = |id: &i64| [3, 5, 1_003, 2_003, 2_005, 3_000].contains(id) || (100..150).contains(id);
    let ids = (0..400).chain(1_000..1_010).chain(2_000..2_030).chain(3_000..3_003).filter(|id| !gone(id));
    let mut expected = rows(ids);
    expected.iter_mut().filter(|r| [8, 399, 1_000].contains(&r.0)).for_each(|r| r.1 = 111);
    assert_eq!(contents(&db, t), expected);
    db.close().unwrap();
    drop(db);
    let db = Database::open_on(Arc::new(disk), options()).unwrap();
    assert_eq!((contents(&db, t), contents(&db, other).len()), (expected, 50));
    assert!(db.verify().is_empty(), "{:?}", db.verify());
}

/// Writers fill several times the memory that frozen deltas may take, while a merge of runs does not come to its end.
#[test]
fn a_long_merge_does_not_hold_writers_up() {
    let disk = HeldDisk::default();
    let memory_limit = 4 << 20;
    let options = options().memory_limit(memory_limit);
    let db = Database::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
    let t = two_runs(&db, "t");
    let busy = create_as(&db, {
        let mut definition = definition("busy", true, 1_000);
        definition.options.delta_rows = 1_000;
        definition
    });
    db.close().unwrap();
    drop(db);
    disk.hold("data/");
    // Only now, or the background would have merged the runs before the disk is held.
    let options = options.background(true);
    let db = Database::open_on(Arc::new(disk.clone()), options).unwrap();
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.merge(t).unwrap());
        let held = disk.hold_first_only("data/");
        let started = std::time::Instant::now();
        for start in 0..60 {
            insert_and_commit(&db, busy, 1_000 * start..1_000 * (start + 1));
            insert_and_commit(&db, t, 10_000 + 10 * start..10_000 + 10 * (start + 1));
        }
        println!("60,600 rows in {:?}", started.elapsed());
        assert_eq!(running(&db).iter().filter(|merge| merge.0 == "t" && merge.2 >= 2).count(), 1, "{:?}", running(&db));
        disk.release(&held);
        merge.join().unwrap();
    });
    assert_eq!((contents(&db, busy).len(), contents(&db, t).len()), (60_000, 1_000));
}

/// Nothing but the cancellation ends a merge in memory that is under way, before its install. One may have come to its
/// end before the database is closed: then there is more to merge the next time.
#[test]
fn closing_cancels_the_merges_of_both_lanes() {
    for rows in [20_000, 40_000, 80_000, 160_000] {
        let db = memory();
        let (t, other) = (create(&db, "t", true, 10), create(&db, "other", true, 10));
        // Two runs that interleave: no segment is kept as it is.
        insert_and_commit(&db, t, (0..rows).map(|id| 2 * id));
        insert_and_commit(&db, t, (0..rows).map(|id| 2 * id + 1));
        (0..rows / 4_000).for_each(|n| insert_and_commit(&db, other, 4_000 * n..4_000 * (n + 1)));
        std::thread::scope(|scope| {
            let merges = [scope.spawn(|| db.merge(t)), scope.spawn(|| db.flush(other))];
            while running(&db).len() < 2 && !merges.iter().any(|merge| merge.is_finished()) {
                std::thread::yield_now();
            }
            db.close().unwrap();
            merges.into_iter().for_each(|merge| drop(merge.join().unwrap()));
        });
        let merges = db.merges();
        let cancelled = |state: &MergeState| matches!(state, MergeState::Failed(why) if why.contains("cancelled"));
        if merges.iter().filter(|merge| cancelled(&merge.state)).count() == 2 {
            return;
        }
        println!("{merges:?}");
    }
    panic!("they were never cancelled");
}

/// Closing the database ends merges in both lanes after the segment they write.
#[test]
fn closing_ends_merges_in_both_lanes() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let (t, other) = (two_runs(&db, "t"), create(&db, "other", true, 10));
    insert_and_commit(&db, other, 0..500);
    disk.take_done();
    disk.hold("data/");
    std::thread::scope(|scope| {
        let long = scope.spawn(|| db.merge(t));
        let first = disk.hold_first_only("data/");
        disk.hold("data/");
        let short = scope.spawn(|| db.flush(other));
        while running(&db).len() < 2 {
            std::thread::yield_now();
        }
        let close = scope.spawn(|| db.close());
        while db.begin(TransactionMode::default()).is_ok() {
            std::thread::yield_now();
        }
        disk.release("data/");
        disk.release(&first);
        long.join().unwrap().unwrap();
        short.join().unwrap().unwrap();
        close.join().unwrap().unwrap();
    });
    let made = disk.take_done().iter().filter(|done| done.starts_with("create data/")).count();
    assert!(made <= 3, "{made} of 90 segments were written");
    assert!(db.merges().iter().rev().take(2).all(|merge| matches!(merge.state, MergeState::Failed(_))));
    drop(db);
    let db = Database::open_on(Arc::new(disk), options()).unwrap();
    assert_eq!((contents(&db, t).len(), contents(&db, other).len()), (400, 500));
}

/// A table with a damaged run cannot be merged. Its own deltas, and all of the next table, still are.
#[test]
fn a_merge_that_fails_keeps_no_other_from_being_done() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let tables = ["damaged", "sound"].map(|name| create(&db, name, true, 100));
    tables.iter().for_each(|t| insert_and_commit(&db, *t, (0..50).map(|id| 2 * id)));
    db.flush(tables[0]).unwrap();
    db.close().unwrap();
    drop(db);
    let [segment] = disk.live.list("data").unwrap().try_into().unwrap();
    let path = format!("data/{segment}");
    let mut bytes = disk.live.get(&path).unwrap();
    // The first block: the key column. The key filter stays sound, so that other keys can be inserted.
    bytes[64..72].fill(0xAB);
    disk.live.put(&path, bytes);

    let options = options().background(true);
    let db = Database::open_on(Arc::new(disk), options).unwrap();
    for t in tables {
        insert_and_commit(&db, t, (0..8).map(|id| 2 * id + 1));
        db.freeze(t).unwrap();
        insert_and_commit(&db, t, 200..250);
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while db.containers().iter().any(|container| container.kind == "frozen delta") {
        assert!(std::time::Instant::now() < deadline, "{:?}", db.merges());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let failed = |state: &MergeState| matches!(state, MergeState::Failed(why) if why.contains("data/"));
    assert!(db.merges().iter().any(|merge| merge.table == "damaged" && failed(&merge.state)), "{:?}", db.merges());
    assert_eq!(contents(&db, tables[1]).len(), 108);
}
