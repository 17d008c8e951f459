//! Runs of many segments, whose metadata is too much for a log record: in files, for exactly as long as a restart needs
//! them.

use std::sync::Arc;

use mainstem_storage::catalog::TableDefinition;
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::ids::TableId;
use mainstem_storage::limits;

use super::{check_damage, check_orphans, files, killed, open};
use crate::held_disk::HeldDisk;
use crate::support::*;

/// More than fit into a delta at once.
const LOADED: i64 = limits::COMMIT_ROWS_MAX as i64 + 20;

fn run_files(disk: &impl Disk) -> Vec<String> {
    files(disk, ".run")
}

/// In the order of its key, and with a key index beside.
fn definitions() -> [TableDefinition; 2] {
    let by_value = Some(vec!["v".to_owned()]);
    let keyed = definition("t", true, 500);
    [keyed.clone(), TableDefinition { sort_key: by_value, ..keyed }]
}

fn load(db: &Database, t: TableId, from: i64) {
    insert_and_commit(db, t, from..from + LOADED);
}

#[test]
fn a_file_lives_until_a_checkpoint_covers_its_record() {
    for definition in definitions() {
        let disk = HeldDisk::default();
        let db = open(&disk);
        let t = create_as(&db, definition);
        disk.take_done();
        load(&db, t, 0);
        let [first] = run_files(&disk.live).try_into().unwrap();
        let done = disk.take_done();
        let place = |wanted: &dyn Fn(&str) -> bool| done.iter().position(|step| wanted(step)).unwrap();
        let record = place(&|step| step.starts_with("sync wal/"));
        let bytes = place(&|step| step == format!("sync data/{first}"));
        assert!(bytes < record, "durable before its record: {done:?}");
        assert!(done[bytes..record].iter().any(|step| step == "sync data"), "and its name: {done:?}");

        load(&db, t, LOADED);
        insert_and_commit(&db, t, 2 * LOADED..2 * LOADED + 40);
        db.freeze(t).unwrap();
        disk.take_done();
        db.merge(t).unwrap();
        let done = disk.take_done();
        let named = run_files(&disk.live);
        assert!(named.len() > 2, "{named:?}");
        for of_merge in &named[2..] {
            assert!(done.iter().any(|step| *step == format!("sync data/{of_merge}")), "{done:?}");
        }
        insert_and_commit(&db, t, 2 * LOADED + 40..2 * LOADED + 42);
        let before = contents(&db, t);
        assert_eq!(before.len() as i64, 2 * LOADED + 42);
        for _ in 0..2 {
            let (again, files) = killed(&disk);
            assert_eq!(contents(&again, t), before);
            assert_eq!(run_files(&files), named, "a restart may come again");
            assert_eq!(again.files_aside().unwrap().0, named.len());
            assert_eq!(again.verify().len(), 0);
            // Its numbers are never given out again.
            load(&again, t, 9 * LOADED);
            assert_eq!(run_files(&files).len(), named.len() + 1);
        }

        disk.take_done();
        db.checkpoint().unwrap();
        let done = disk.take_done();
        let place = |wanted: &str| done.iter().position(|step| step == wanted).unwrap();
        let removed = place(&format!("remove data/{first}"));
        assert!(place("rename MANIFEST") < removed);
        assert!(done[..removed].iter().any(|step| step == "sync "), "the manifest's name is durable first: {done:?}");
        assert_eq!(run_files(&disk.live), Vec::<String>::new());
        // The rows of the delta stand in a record behind some that name files which are gone.
        let (again, _) = killed(&disk);
        assert_eq!(contents(&again, t), before);
        assert_eq!(again.verify().len(), 0);
    }
}

/// With the limits as they are.
#[test]
fn a_record_is_bounded_whatever_the_number_of_segments() {
    const BOUND: u64 = 4096;
    let disk = MemDisk::new();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let t = create(&db, "t", true, 7);
    let of_log = |work: &dyn Fn()| {
        let before = db.log_status().position.0;
        work();
        db.log_status().position.0 - before
    };
    // The second is below the first: it does not extend its run.
    let (first, second) = (of_log(&|| load(&db, t, LOADED)), of_log(&|| load(&db, t, 0)));
    let merged = of_log(&|| {
        db.merge(t).unwrap();
    });
    let named: Vec<u64> =
        run_files(&disk).iter().map(|name| disk.get(&format!("data/{name}")).unwrap().len() as u64).collect();
    assert!(named.len() == 3 && named.iter().all(|bytes| *bytes > limits::INLINE_RUN_BYTES as u64), "{named:?}");
    assert!(first < BOUND && second < BOUND && merged < BOUND, "{first} {second} {merged}");
    let few = create(&db, "few", true, 1000);
    assert!(of_log(&|| load(&db, few, 0)) > 500, "few segments stand in the record");
    assert_eq!(run_files(&disk).len(), 3);
}

#[test]
fn a_commit_that_fails_leaves_no_file() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 500);
    insert_and_commit(&db, t, 0..10);
    let before = disk.live.list("data").unwrap();
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(10..10 + LOADED)).unwrap();
    insert_and_commit(&db, t, 12..13);
    assert_eq!(txn.commit().unwrap_err().sqlstate(), "40001");
    assert_eq!(disk.live.list("data").unwrap(), before);
}

#[test]
fn files_nobody_names_go_when_the_database_is_opened_for_writing() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 500);
    load(&db, t, 0);
    check_orphans(&db, t, &disk, ".run");
}

#[test]
fn a_missing_or_damaged_file_is_an_error_that_names_it() {
    let disk = HeldDisk::default();
    let db = open(&disk);
    let t = create(&db, "t", true, 2000);
    load(&db, t, 0);
    check_damage(&db, &disk, ".run");
    // A manifest that covers the record needs no file.
    db.checkpoint().unwrap();
    assert_eq!(contents(&killed(&disk).0, t), contents(&db, t));
}
