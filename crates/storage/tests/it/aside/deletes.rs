//! Deletes too many for a log record: in files, for exactly as long as a restart needs them.

use std::sync::Arc;

use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::transaction::Transaction;

use super::{all_aside, check_damage, check_orphans, files, killed, open};
use crate::held_disk::HeldDisk;
use crate::support::*;

fn delete_files(disk: &impl Disk) -> Vec<String> {
    files(disk, ".del")
}

fn delete_where(txn: &mut Transaction, t: TableId, wanted: impl Fn(&Row) -> bool) -> usize {
    let found: Vec<RowRef> = select(txn, t, wanted).unwrap().into_iter().map(|(at, _)| at).collect();
    let schema = txn.catalog().table(t).cloned().unwrap();
    let mut statement = txn.statement();
    statement.delete(&schema, &found).unwrap();
    txn.apply(statement).unwrap();
    found.len()
}

fn delete_and_commit(db: &Database, t: TableId, wanted: impl Fn(&Row) -> bool) {
    let mut txn = begin(db);
    assert!(delete_where(&mut txn, t, wanted) > 0);
    txn.commit().unwrap();
}

#[test]
fn a_file_lives_until_a_checkpoint_covers_its_commit() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..40);
    db.flush(t).unwrap();
    assert_eq!(delete_files(&disk.live), Vec::<String>::new());
    disk.take_done();
    delete_and_commit(&db, t, |r| r.0 % 3 == 0);
    let [first] = delete_files(&disk.live).try_into().unwrap();
    let done = disk.take_done();
    let place = |wanted: &dyn Fn(&str) -> bool| done.iter().position(|step| wanted(step)).unwrap();
    let record = place(&|step| step.starts_with("sync wal/"));
    let (bytes, name) = (place(&|step| step == format!("sync data/{first}")), place(&|step| step == "sync data"));
    assert!(bytes < record && name < record, "durable before its record: {done:?}");

    let before = contents(&db, t);
    for _ in 0..2 {
        let (again, files) = killed(&disk);
        assert_eq!(contents(&again, t), before);
        assert_eq!(delete_files(&files), std::slice::from_ref(&first), "a restart may come again");
        assert_eq!(again.files_aside().unwrap().0, 2, "beside that of the run that was flushed");
    }
    insert_and_commit(&db, t, 50..52);
    disk.take_done();
    db.checkpoint().unwrap();
    let done = disk.take_done();
    let place =
        |wanted: &str| done.iter().position(|step| step == wanted).unwrap_or_else(|| panic!("{wanted}: {done:?}"));
    let removed = place(&format!("remove data/{first}"));
    assert!(place("rename MANIFEST") < removed);
    assert!(done[..removed].iter().any(|step| step == "sync "), "the manifest's name is durable first: {done:?}");
    let [of_manifest] = delete_files(&disk.live).try_into().unwrap();
    assert_ne!(of_manifest, first);
    assert!(place(&format!("sync data/{of_manifest}")) < place("rename MANIFEST"));

    // Its number is never given out again.
    let (again, files) = killed(&disk);
    delete_and_commit(&again, t, |r| r.0 % 3 == 1);
    assert_eq!(delete_files(&files).len(), 2);
    let after = contents(&again, t);
    assert_eq!(contents(&Database::open_on(Arc::new(files.copy()), all_aside()).unwrap(), t), after);

    // The next checkpoint takes the file of this one along; with nothing deleted there is none.
    delete_and_commit(&db, t, |r| r.0 % 3 == 1);
    assert_eq!(delete_files(&disk.live).len(), 2);
    disk.take_done();
    db.checkpoint().unwrap();
    let done = disk.take_done();
    let place =
        |wanted: &str| done.iter().position(|step| step == wanted).unwrap_or_else(|| panic!("{wanted}: {done:?}"));
    let (renamed, removed) = (place("rename MANIFEST"), place(&format!("remove data/{of_manifest}")));
    assert!(renamed < removed && done[renamed..removed].iter().any(|step| step == "sync "), "{done:?}");
    assert_eq!(delete_files(&disk.live).len(), 1);
    let before = contents(&db, t);
    assert_eq!(contents(&killed(&disk).0, t), before);
    db.merge(t).unwrap();
    db.checkpoint().unwrap();
    assert_eq!(delete_files(&disk.live), Vec::<String>::new());
    assert_eq!(contents(&killed(&disk).0, t), before);
}

#[test]
fn what_fits_stays_in_the_record() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 1_000);
    insert_and_commit(&db, t, 0..9_000);
    db.flush(t).unwrap();
    // A long range takes few bytes, as it does for TRUNCATE.
    delete_and_commit(&db, t, |r| r.0 < 8_000);
    assert_eq!(delete_files(&disk.live), Vec::<String>::new());
    let before = contents(&db, t);
    assert_eq!(contents(&killed(&disk).0, t), before);
}

/// More rows than the lock has time for, over many containers, deltas and segments: attached whole, marked later.
#[test]
fn a_delete_of_many_rows_is_whole_or_not_there() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", false, 500);
    insert_and_commit(&db, t, 0..9_000);
    insert_and_commit(&db, t, 9_000..9_300);
    let reader = begin(&db);
    let mut beside = begin(&db);
    assert_eq!(delete_where(&mut beside, t, |r| r.0 == 4), 1);
    delete_and_commit(&db, t, |r| r.0 % 7 != 3);
    assert_eq!(all(&reader, t).len(), 9_300);
    assert_eq!(state(beside.commit()), "40001", "the row was deleted");
    let left = contents(&db, t);
    assert_eq!(left.len(), 9_300 / 7 + 1);
    assert_eq!(contents(&killed(&disk).0, t), left);
    db.merge(t).unwrap();
    assert_eq!(contents(&db, t), left);
    assert_eq!(contents(&killed(&disk).0, t), left);
}

#[test]
fn a_refused_commit_leaves_no_file() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..40);
    let mut loser = begin(&db);
    delete_where(&mut loser, t, |r| r.0 < 20);
    delete_and_commit(&db, t, |r| r.0 == 3);
    assert_eq!(state(loser.commit()), "40001");
    assert_eq!(delete_files(&disk.live).len(), 1);
}

/// A merge moves the rows after the file was written and before the lock: what the record names is where they are now.
#[test]
fn a_file_is_made_anew_when_a_merge_moves_its_rows() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, (0..40).map(|id| id * 3));
    db.flush(t).unwrap();
    disk.hold(".del");
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| {
            let mut txn = begin(&db);
            delete_where(&mut txn, t, |r| r.0 % 2 == 0);
            txn.commit().unwrap();
        });
        disk.wait_for_sync(".del");
        // Between the others, so that no segment stays as it is.
        insert_and_commit(&db, t, (0..40).map(|id| id * 3 + 1));
        db.merge(t).unwrap();
        disk.release(".del");
        commit.join().unwrap();
    });
    let left: Vec<i64> = contents(&db, t).iter().map(|r| r.0).collect();
    let wanted: Vec<i64> = (0..120).filter(|id| (id % 3 == 0 && id % 2 == 1) || id % 3 == 1).collect();
    assert_eq!(left, wanted);
    assert_eq!(delete_files(&disk.live).len(), 1, "the first one is gone");
    assert_eq!(contents(&killed(&disk).0, t), contents(&db, t));
}

/// Deletes that land in a merge's inputs while it runs go with its install, in a file when they are many.
#[test]
fn carried_deletes_survive_in_a_file_of_the_install() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..60);
    disk.hold(".seg");
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.flush(t).unwrap());
        disk.wait_for_sync(".seg");
        delete_and_commit(&db, t, |r| r.0 % 5 == 0);
        delete_and_commit(&db, t, |r| r.0 % 5 == 1);
        assert_eq!(delete_files(&disk.live).len(), 2);
        disk.release(".seg");
        merge.join().unwrap();
    });
    assert_eq!(delete_files(&disk.live).len(), 3, "two commits and the install");
    // Fsynced behind the install, which waits for nobody.
    insert_and_commit(&db, t, 100..101);
    let left = contents(&db, t);
    assert_eq!(left.len(), 37);
    let (again, _) = killed(&disk);
    assert_eq!(contents(&again, t), left);
    assert_eq!(again.verify().len(), 0);
    db.checkpoint().unwrap();
    assert_eq!(delete_files(&disk.live).len(), 1);
    assert_eq!(contents(&killed(&disk).0, t), left);
}

#[test]
fn files_nobody_names_go_when_the_database_is_opened_for_writing() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..40);
    db.checkpoint().unwrap();
    delete_and_commit(&db, t, |r| r.0 < 20);
    check_orphans(&db, t, &disk, ".del");
}

#[test]
fn a_missing_or_damaged_file_is_an_error_that_names_it() {
    for by_manifest in [false, true] {
        let disk = HeldDisk::default();
        let db = open(&disk);
        let t = create(&db, "t", true, 7);
        insert_and_commit(&db, t, 0..40);
        db.flush(t).unwrap();
        delete_and_commit(&db, t, |r| r.0 % 2 == 0);
        if by_manifest {
            db.checkpoint().unwrap();
        }
        check_damage(&db, &disk, ".del");
    }
}

/// The checkpoint that would let go of them is held up: commits wait before the bound is passed, although the log is
/// short.
#[test]
fn delete_files_count_as_log_that_a_restart_reads() {
    const BOUND: u64 = 32 << 10;
    // All but the part of installs.
    const WRITERS: u64 = BOUND - BOUND / 8;
    const ROWS: i64 = 30_000;
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 10_000);
    insert_and_commit(&db, t, 0..ROWS);
    db.checkpoint().unwrap();
    db.close().unwrap();
    drop(db);
    let options = all_aside().background(true).log_tail_bytes_max(BOUND);
    let db = Database::open_on(Arc::new(disk.clone()), options).unwrap();
    let begun = db.log_status().position.0;
    disk.hold("MANIFEST");
    std::thread::scope(|scope| {
        let db = &db;
        // Each commit's file takes some KiB. Few segments, so that records of merges, which never wait, are small.
        let writer = scope.spawn(move || (0..20).for_each(|part| delete_and_commit(db, t, |r| r.0 % 20 == part)));
        disk.wait_for_sync("MANIFEST");
        while db.log_tail_bytes() < WRITERS && !writer.is_finished() {
            std::thread::yield_now();
        }
        // Time for some more commits, if none waits.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let waits = !writer.is_finished();
        let (tail, log) = (db.log_tail_bytes(), db.log_status().position.0 - begun);
        disk.release("MANIFEST");
        assert!(waits, "{tail} bytes of tail, and no commit waits");
        assert!(tail < BOUND + 8_192 && log < BOUND / 2, "{tail} bytes of tail, {log} of log");
        writer.join().unwrap();
    });
    assert_eq!(contents(&db, t).len(), 0);
}
