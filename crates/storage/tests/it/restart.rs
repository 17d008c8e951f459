//! What is committed is there after a restart, and nothing else.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::settings::OpenOptions;

use crate::held_disk::HeldDisk;
use crate::support::*;

#[test]
fn rows_deletes_and_tables_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..100)).unwrap();
    txn.commit().unwrap();
    let mut txn = begin(&db);
    delete(&mut txn, t, &[5, 6, 7]).unwrap();
    update(&mut txn, t, &[8], |r| r.1 = -8).unwrap();
    txn.commit().unwrap();
    let mut open = begin(&db);
    insert(&mut open, t, &rows(200..210)).unwrap();
    let before = contents(&db, t);
    db.close().unwrap();
    assert_eq!(state(open.commit()), "57P01");
    drop(db);

    for _ in 0..3 {
        let db = Database::open(dir.path(), options()).unwrap();
        assert_eq!(contents(&db, t), before);
        assert_eq!(state(insert(&mut begin(&db), t, &rows([8]))), "23505");
        insert(&mut begin(&db), t, &rows([5])).unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_checkpoint_shortens_the_replay_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let t = create(&db, "t", true, 7);
    for round in 0..10 {
        let mut txn = begin(&db);
        insert(&mut txn, t, &rows(round * 10..round * 10 + 10)).unwrap();
        delete(&mut txn, t, &[round * 10]).unwrap();
        txn.commit().unwrap();
        if round % 4 == 3 {
            db.checkpoint().unwrap();
            assert_eq!(db.log_tail_bytes(), 0);
        }
    }
    let before = contents(&db, t);
    db.close().unwrap();
    drop(db);
    let db = Database::open(dir.path(), options()).unwrap();
    assert_eq!(contents(&db, t), before);
    assert!(db.verify().is_empty());
}

#[test]
fn one_writer_or_many_readers() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..10)).unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
    drop(db);

    let read_only = options().read_only(true);
    let one = Database::open(dir.path(), read_only.clone()).unwrap();
    let two = Database::open(dir.path(), read_only).unwrap();
    assert_eq!(contents(&one, t), rows(0..10));
    assert_eq!(contents(&two, t), rows(0..10));
    assert_eq!(state(insert(&mut begin(&one), t, &rows(20..21))), "25006");
}

#[test]
fn what_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("letter.txt"), "dear all").unwrap();
    let error = Database::open(dir.path(), options()).unwrap_err();
    assert!(error.message().contains("letter.txt"), "{error}");
    let missing = dir.path().join("missing");
    let no_create = options().create(false);
    assert_eq!(state(Database::open(&missing, no_create)), "58P01");
}

#[test]
fn what_outlives_a_close_touches_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let t = create(&db, "t", true, 1_000);
    let mut open = begin(&db);
    insert(&mut open, t, &rows(0..20_000)).unwrap();
    assert!(std::fs::read_dir(dir.path().join("data")).unwrap().count() > 0, "a large insert is written aside");
    db.close().unwrap();

    let again = Database::open(dir.path(), options()).unwrap();
    let mut txn = begin(&again);
    insert(&mut txn, t, &rows(0..20_000)).unwrap();
    txn.commit().unwrap();
    assert_eq!(state(open.view(t).unwrap().scan(&all_columns()).map(|s| s.worker().count())), "ok");
    assert_eq!(state(open.commit()), "57P01");
    drop(db);
    assert_eq!(contents(&again, t).len(), 20_000);
    assert!(again.verify().is_empty());
}

fn all_columns() -> mainstem_storage::scan::ScanRequest {
    mainstem_storage::scan::ScanRequest::all(vec![mainstem_storage::ids::ColumnId(0)])
}

/// A killed process leaves its last records to the operating system. They are replayed, and make files orphans; a power
/// cut after that may take them back. So the log is fsynced before an orphan goes.
#[test]
fn what_was_replayed_is_fsynced_before_orphans_are_removed() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..10);
    let killed = HeldDisk::on(disk.live.copy());
    killed.live.put("data/0000000777.seg", vec![1, 2, 3]);
    let db = Database::open_on(Arc::new(killed.clone()), options()).unwrap();
    let done = killed.take_done();
    let at = |what: &str| done.iter().position(|done| done.starts_with(what)).unwrap();
    assert!(at("rename wal/") < at("remove data/0000000777.seg"), "{done:?}");
    assert!(at("create wal/") < at("remove data/0000000777.seg"), "{done:?}");
    assert_eq!(contents(&db, t), rows(0..10));
}

/// A large insert takes the names of its files when its record is about to name them, durably before that.
#[test]
fn files_take_their_names_when_a_record_is_about_to_name_them() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 5_000);
    let names = || disk.live.list("data").unwrap();
    let unfinished = |name: &String| name.ends_with(".seg.tmp");
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..20_000)).unwrap();
    assert!(names().len() > 3 && names().iter().all(unfinished), "{:?}", names());
    // Read while they stand there.
    assert_eq!(all(&txn, t).len(), 20_000);
    disk.take_done();
    txn.commit().unwrap();
    assert!(names().len() > 3 && !names().iter().any(unfinished), "{:?}", names());
    let check = |done: Vec<String>| {
        let last = |what: &str| {
            done.iter().rposition(|done| done.starts_with(what)).unwrap_or_else(|| panic!("no {what}: {done:?}"))
        };
        assert!(last("rename data/") < last("sync data"), "{done:?}");
        assert!(last("sync data") < last("sync wal/"), "{done:?}");
    };
    check(disk.take_done());
    assert_eq!(contents(&db, t).len(), 20_000);
    // So does what a merge has made; one that is not committed goes.
    insert_and_commit(&db, t, [-1]);
    disk.take_done();
    db.merge(t).unwrap();
    insert_and_commit(&db, t, [-2]);
    check(disk.take_done());
    let before = names();
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(30_000..50_000)).unwrap();
    drop(txn);
    assert_eq!(names(), before);
    assert!(db.verify().is_empty());
}

/// In this order, a power cut at any time takes nothing back that is a reason for it: the manifest's name, the files
/// that the torn tail may have named, the log without the tail, what nobody needs.
#[test]
fn files_are_set_aside_before_the_torn_tail_is_cut() {
    let disk = HeldDisk::default();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 7);
    insert_and_commit(&db, t, 0..10);
    insert_and_commit(&db, t, 10..11);
    let killed = HeldDisk::on(disk.live.copy());
    let log = killed.live.get("wal/0000000001.log").unwrap();
    killed.live.put("wal/0000000001.log", log[..log.len() - 1].to_vec());
    killed.live.put("data/0000000777.seg", vec![1, 2, 3]);
    killed.live.put("data/0000000778.seg.tmp", vec![1, 2, 3]);
    let db = Database::open_on(Arc::new(killed.clone()), options()).unwrap();
    let done = killed.take_done();
    let at = |what: &str| done.iter().position(|done| done == what).unwrap_or_else(|| panic!("no {what}: {done:?}"));
    let lost = at("rename data/0000000777.seg.lost-0000000001");
    assert!(
        at("sync ") < lost && lost < at("sync data") && at("sync data") < at("rename wal/0000000001.log"),
        "{done:?}"
    );
    assert!(at("rename wal/0000000001.log") < at("remove data/0000000778.seg.tmp"), "{done:?}");
    assert_eq!(contents(&db, t), rows(0..10));
}

/// Nothing but the log tells of a merge before the next checkpoint: files of its key indexes are no orphans, and
/// deletes of the time while it went on stay deletes.
#[test]
fn an_install_is_replayed_with_its_key_indexes_and_carried_deletes() {
    for definition in keyed_definitions("t", 50) {
        let disk = HeldDisk::default();
        let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
        let t = create_as(&db, definition);
        insert_and_commit(&db, t, 0..500);
        disk.hold("data/");
        std::thread::scope(|scope| {
            let merge = scope.spawn(|| db.flush(t).unwrap());
            disk.wait_for_sync("data/");
            let mut txn = begin(&db);
            assert_eq!(delete(&mut txn, t, &[7, 300, 499]).unwrap(), 3);
            txn.commit().unwrap();
            disk.release("data/");
            merge.join().unwrap();
        });
        // The merge waits for nobody's fsync: its record is in the file when that of a later commit is.
        insert_and_commit(&db, t, [500]);
        let before = contents(&db, t);
        assert_eq!(before.len(), 498);
        let killed = HeldDisk::on(disk.live.copy());
        for _ in 0..2 {
            let db = Database::open_on(Arc::new(killed.clone()), options()).unwrap();
            assert_eq!(contents(&db, t), before);
            assert!(db.verify().is_empty(), "{:?}", db.verify());
            assert_eq!(state(insert(&mut begin(&db), t, &rows([8]))), "23505");
            insert(&mut begin(&db), t, &rows([7, 300])).unwrap();
            db.close().unwrap();
        }
    }
}

/// A load that is making its files durable and a close wait for each other one after the other, not for ever.
#[test]
fn a_close_waits_for_a_file_that_is_synced_and_refuses_the_next() {
    const LONG: Duration = Duration::from_secs(60);
    let disk = HeldDisk::default();
    let db = Arc::new(Database::open_on(Arc::new(disk.clone()), options()).unwrap());
    let t = create(&db, "t", true, 1_000);
    let mut txn = begin(&db);
    disk.hold("data/");
    let (ended, told) = mpsc::channel();
    let spawn = |what: &'static str, run: Box<dyn FnOnce() -> bool + Send>| {
        let ended = ended.clone();
        std::thread::spawn(move || ended.send((what, run())));
    };
    spawn("load", Box::new(move || insert(&mut txn, t, &rows(0..5_000)).is_ok() && txn.commit().is_ok()));
    disk.wait_for_sync("data/");
    let closed = db.clone();
    spawn("close", Box::new(move || closed.close().is_ok()));
    // Long enough for the close to wait for the sync.
    assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "neither ends before the sync does");
    disk.release("data/");
    let mut ends: Vec<_> = (0..2).map(|_| told.recv_timeout(LONG).expect("both end")).collect();
    ends.sort_unstable();
    assert_eq!(ends, [("close", true), ("load", false)], "the load did not come to its record");
    drop(db);
    let db = Database::open_on(Arc::new(disk.live.clone()), options()).unwrap();
    assert_eq!(contents(&db, t), rows(0..0));
}

fn log_files(disk: &MemDisk) -> Vec<String> {
    disk.list("wal").unwrap()
}

#[test]
fn opening_without_writing_leaves_no_files() {
    let disk = MemDisk::new();
    let open = || Database::open_on(Arc::new(disk.clone()), OpenOptions::default()).unwrap();
    for _ in 0..5 {
        open().close().unwrap();
        assert_eq!(log_files(&disk), ["0000000001.log"]);
        // Nothing is committed whose end could be marked.
        assert_eq!(disk.list("").unwrap(), ["MANIFEST"]);
    }
    let db = open();
    let t = create(&db, "t", true, 7);
    db.close().unwrap();
    assert_eq!(disk.list("").unwrap(), ["LOG_END", "MANIFEST"]);
    let mut before = None;
    for _ in 0..10 {
        let db = open();
        assert!(contents(&db, t).is_empty());
        db.close().unwrap();
        let files = log_files(&disk);
        assert_eq!(before.get_or_insert(files.clone()), &files);
    }
    assert_eq!(before.unwrap().len(), 2);
}

#[test]
fn openings_that_write_a_little_leave_few_files() {
    let disk = MemDisk::new();
    let open = || Database::open_on(Arc::new(disk.clone()), OpenOptions::default()).unwrap();
    let db = open();
    let t = create(&db, "t", true, 7);
    db.close().unwrap();
    let most = mainstem_storage::limits::WAL_FILES_MAX as usize;
    for id in 0..3 * most as i64 {
        let db = open();
        let mut txn = begin(&db);
        insert(&mut txn, t, &rows([id])).unwrap();
        txn.commit().unwrap();
        db.close().unwrap();
        assert!(log_files(&disk).len() <= most, "{:?}", log_files(&disk));
    }
    assert_eq!(contents(&open(), t).len(), 3 * most);
}
