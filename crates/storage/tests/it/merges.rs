//! Merges and transactions beside one another: a merge never makes a user's transaction fail (contract 2).

use std::sync::Arc;

use mainstem_storage::background::MergeState;
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;

use crate::held_disk::HeldDisk;
use crate::support::*;

/// A merge is installed above a commit whose fsync is under way. A transaction that begins now starts below both: it names
/// rows where the merge found them, so the merge must have kept its forwarding.
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

/// Deletes of every size land in the inputs while a merge waits to write its output: all are carried, and survive a restart.
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

    let options = mainstem_storage::settings::OpenOptions { background: true, ..options() };
    let db = Database::open_on(Arc::new(disk), options).unwrap();
    for t in tables {
        insert_and_commit(&db, t, (0..8).map(|id| 2 * id + 1));
        db.freeze(t).unwrap();
        insert_and_commit(&db, t, 200..250);
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while db.containers().iter().any(|container| container.kind == "frozen delta") {
        assert!(std::time::Instant::now() < deadline, "{:?}", db.merges());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let failed = |state: &MergeState| matches!(state, MergeState::Failed(why) if why.contains("data/"));
    assert!(db.merges().iter().any(|merge| merge.table == "damaged" && failed(&merge.state)), "{:?}", db.merges());
    assert_eq!(contents(&db, tables[1]).len(), 108);
}
