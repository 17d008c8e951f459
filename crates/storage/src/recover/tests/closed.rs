//! A database that was closed has no torn tail: whatever its log has lost is told by name, and nobody deletes anything
//! for it.

use super::*;
use crate::error::{Error, ErrorKind};
use crate::limits::COMMIT_ROWS_MAX;
use crate::wal::END_MARK_FILE;

/// More than go through a delta: they are a segment, which only the last record of the log names.
const LOADED: i64 = COMMIT_ROWS_MAX as i64 + 100;

fn loaded() -> (Table, MemDisk) {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    t.insert(0..LOADED);
    (t, disk)
}

fn newest_log(disk: &MemDisk) -> String {
    format!("wal/{}", disk.list(WAL_DIR).unwrap().pop().unwrap())
}

fn cut(disk: &MemDisk, path: &str, bytes: usize) {
    let whole = disk.get(path).unwrap();
    disk.put(path, whole[..whole.len() - bytes].to_vec());
}

/// No opening, to write or to read, takes `disk` for a sound database, or changes a file of it.
fn refused(disk: &MemDisk, path: &str) -> Error {
    let before = files_of(disk);
    let mut last = None;
    for options in [read_only(), testing::options()] {
        let error = Database::open_on(Arc::new(disk.clone()), options).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "{error}");
        assert!(error.message().contains(&format!("file {path} is damaged at byte ")), "{error}");
        assert!(files_of(disk) == before, "files were changed");
        last = Some(error);
    }
    last.unwrap()
}

/// The case that use has found: a bulk load, a close, `truncate -s -1` of the log; then 0 rows, and the segments were
/// deleted.
#[test]
fn a_bulk_load_whose_record_loses_its_last_byte_is_named() {
    let (t, disk) = loaded();
    t.db.close().unwrap();
    let path = newest_log(&disk);
    let segments = disk.list(DATA_DIR).unwrap();
    assert!(!segments.is_empty());
    cut(&disk, &path, 1);
    let error = refused(&disk, &path);
    assert!(error.message().contains(END_MARK_FILE), "it says who knows: {error}");
    assert_eq!(disk.list(DATA_DIR).unwrap(), segments);
}

#[test]
fn every_cut_and_every_flip_in_the_last_file_is_named() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..3);
    t.db.close().unwrap();
    let t = Table { db: open_at(&disk).unwrap(), id: t.id };
    t.insert([3]);
    t.insert([4]);
    t.db.close().unwrap();
    let path = newest_log(&disk);
    assert_eq!(path, "wal/0000000002.log");
    let whole = disk.get(&path).unwrap();
    let damaged = |bytes: Vec<u8>| {
        let copy = disk.copy();
        copy.put(&path, bytes);
        refused(&copy, &path);
    };
    for at in 0..whole.len() {
        damaged(whole[..at].to_vec());
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        damaged(flipped);
        let mut zeroed = whole.clone();
        zeroed[at..].fill(0);
        if zeroed != whole {
            damaged(zeroed);
        }
    }
    let gone = disk.copy();
    gone.remove(&path).unwrap();
    refused(&gone, "wal/0000000001.log");
    gone.remove("wal/0000000001.log").unwrap();
    refused(&gone, "wal");
    // What stands behind the end was never written by anybody: it is cut off.
    let longer = disk.copy();
    longer.put(&path, [&whole[..], &[7; 100]].concat());
    assert_eq!(ids(&Table { db: open_at(&longer).unwrap(), id: t.id }), [0, 1, 2, 3, 4]);
}

/// An only log file without its header: nothing else says which it is.
#[test]
fn an_only_log_file_that_is_emptied_is_named() {
    let (t, disk) = loaded();
    t.db.close().unwrap();
    for len in [0, 63] {
        let whole = disk.get("wal/0000000001.log").unwrap();
        let copy = disk.copy();
        copy.put("wal/0000000001.log", whole[..len].to_vec());
        refused(&copy, "wal/0000000001.log");
    }
}

#[test]
fn openings_that_crash_before_they_write_leave_the_mark_true() {
    let (t, disk) = loaded();
    t.db.close().unwrap();
    let (path, len) = (newest_log(&disk), disk.get(&newest_log(&disk)).unwrap().len());
    let mut disk = disk;
    for _ in 0..10 {
        let crashed = Table { db: open_at(&disk).unwrap(), id: t.id };
        assert_eq!(ids(&crashed).len() as i64, LOADED);
        disk = disk.copy();
        let damaged = disk.copy();
        let mut bytes = damaged.get(&path).unwrap();
        bytes[len - 1] ^= 1;
        damaged.put(&path, bytes);
        refused(&damaged, &path);
    }
    // Written, and then it crashes: what stands above the mark may be torn, what stands below may not.
    let t = Table { db: open_at(&disk).unwrap(), id: t.id };
    t.insert([LOADED]);
    let torn = disk.copy();
    cut(&torn, &newest_log(&torn), 1);
    assert_eq!(ids(&Table { db: open_at(&torn).unwrap(), id: t.id }).len() as i64, LOADED);
    let damaged = disk.copy();
    cut(&damaged, &path, 8);
    refused(&damaged, &path);
}

#[test]
fn a_log_without_its_mark_ends_where_it_ends() {
    let (t, disk) = loaded();
    t.db.close().unwrap();
    disk.remove(END_MARK_FILE).unwrap();
    cut(&disk, &newest_log(&disk), 1);
    let again = Table { db: open_at(&disk).unwrap(), id: t.id };
    assert_eq!(ids(&again), Vec::<i64>::new());
    assert!(again.db.notices().iter().any(|notice| notice.contains("no whole record and is cut off")));
}

#[test]
fn only_closes_that_have_something_to_mark_mark_it() {
    let mark = |disk: &MemDisk| disk.get(END_MARK_FILE).ok();
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..3);
    assert_eq!(mark(&disk), None);
    t.db.close().unwrap();
    let first = mark(&disk).unwrap();
    // The first opening after that begins a file, in which there is nothing to mark.
    for _ in 0..3 {
        open_at(&disk).unwrap().close().unwrap();
        assert_eq!(mark(&disk).unwrap(), first);
    }
    Database::open_on(Arc::new(disk.clone()), read_only()).unwrap().close().unwrap();
    assert_eq!(mark(&disk).unwrap(), first);
    // After a crash there are records that nobody has marked: also for a session that writes nothing.
    let t = Table { db: open_at(&disk).unwrap(), id: t.id };
    t.insert([9]);
    let crashed = disk.copy();
    open_at(&crashed).unwrap().close().unwrap();
    assert_ne!(mark(&crashed).unwrap(), first);
    let path = "wal/0000000002.log";
    assert!(crashed.get(path).unwrap().len() > 100);
    cut(&crashed, path, 9);
    refused(&crashed, path);
    t.db.close().unwrap();
    let second = mark(&disk).unwrap();
    assert_ne!(second, first);
    // A checkpoint knows as well where the log ends.
    let t = Table { db: open_at(&disk).unwrap(), id: t.id };
    t.insert([3]);
    t.db.checkpoint_now().unwrap();
    t.db.close().unwrap();
    assert_eq!(mark(&disk).unwrap(), second);
    let path = newest_log(&disk);
    cut(&disk, &path, 1);
    assert!(refused(&disk, &path).message().contains("MANIFEST"));
}

/// Dropped without a close is closed all the same.
#[test]
fn the_last_handle_that_goes_closes() {
    let (t, disk) = loaded();
    let other = t.db.clone();
    drop(t);
    assert!(!disk.exists(END_MARK_FILE).unwrap());
    drop(other);
    let path = newest_log(&disk);
    cut(&disk, &path, 1);
    refused(&disk, &path);
}

#[test]
fn a_mark_without_a_manifest_is_the_rest_of_a_database() {
    let (t, disk) = loaded();
    t.db.close().unwrap();
    let rest = MemDisk::new();
    rest.put(END_MARK_FILE, disk.get(END_MARK_FILE).unwrap());
    for options in [testing::options(), read_only()] {
        let error = Database::open_on(Arc::new(rest.clone()), options).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.message().contains(END_MARK_FILE), "{error}");
    }
}

/// What an interrupted close leaves goes with the next opening.
#[test]
fn a_mark_that_was_not_finished_is_removed() {
    let (t, disk) = loaded();
    let copy = disk.copy();
    copy.put("LOG_END.tmp", vec![1, 2]);
    let again = Table { db: open_at(&copy).unwrap(), id: t.id };
    assert_eq!(ids(&again).len() as i64, LOADED);
    assert!(!copy.exists("LOG_END.tmp").unwrap());
}
