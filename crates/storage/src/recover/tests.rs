//! Opening: what is there, what is half there, what is somebody else's.

mod closed;
mod extended;
mod lost;

use std::sync::Arc;

use super::*;
use crate::database::Database;
use crate::database::testing::{self, Table, rows_of};
use crate::disk::MemDisk;
use crate::error::sqlstate;
use crate::settings::OpenOptions;

fn open_at(disk: &MemDisk) -> Result<Database> {
    Database::open_on(Arc::new(disk.clone()), testing::options())
}

fn ids(t: &Table) -> Vec<i64> {
    let mut ids: Vec<i64> = rows_of(&t.view()).into_iter().map(|row| row.1).collect();
    ids.sort_unstable();
    ids
}

/// All files with their bytes.
fn files_of(disk: &MemDisk) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in ["", "data/", "wal/"] {
        for name in disk.list(dir.trim_end_matches('/')).unwrap() {
            let path = format!("{dir}{name}");
            all.push((path.clone(), disk.get(&path).unwrap()));
        }
    }
    all
}

/// The table after a crash: the files as they are now, without a close.
fn crashed(t: &Table, disk: &MemDisk) -> (Table, MemDisk) {
    let copy = disk.copy();
    (Table { db: open_at(&copy).unwrap(), id: t.id }, copy)
}

#[test]
fn a_creation_that_was_interrupted_is_begun_again() {
    let disk = MemDisk::new();
    disk.create_dir(DATA_DIR).unwrap();
    let begin = LogStart { log_id: 7, file_number: 1, position: LogPosition(0), ts: CommitTs::ZERO };
    drop(Log::create(Arc::new(disk.clone()), begin).unwrap());
    disk.put("MANIFEST.tmp", vec![1]);
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..3);
    assert_eq!(ids(&t), [0, 1, 2]);
}

fn read_only() -> OpenOptions {
    testing::options().read_only(true).create(false)
}

/// Whatever is left of a database without its manifest, however damaged, is no place for another.
#[test]
fn a_lost_manifest_is_an_error_and_no_new_database() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..3);
    let young = disk.copy();
    t.db.checkpoint_now().unwrap();
    t.db.close().unwrap();
    // No file of rows, and a log whose beginning is not needed any more.
    let opened = || Table { db: open_at(&disk).unwrap(), id: t.id };
    for at in [10, 20] {
        let t = opened();
        t.insert([at]);
        t.flush();
        t.insert([at + 1]);
        t.db.checkpoint_now().unwrap();
        t.delete(&(0..at + 2).filter(|id| ids(&t).contains(id)).collect::<Vec<_>>());
        t.flush();
        t.db.merge(t.id).unwrap();
        t.db.checkpoint_now().unwrap();
        t.db.close().unwrap();
    }
    let t = opened();
    t.insert(100..200);
    let (aged, flushed) = (disk.copy(), disk.copy());
    assert_eq!(aged.list(DATA_DIR).unwrap(), Vec::<String>::new());
    assert!(!aged.exists("wal/0000000001.log").unwrap());
    let t = Table { db: open_at(&flushed).unwrap(), id: t.id };
    t.flush();
    t.db.close().unwrap();
    flushed.list(WAL_DIR).unwrap().iter().for_each(|name| flushed.remove(&format!("wal/{name}")).unwrap());
    assert!(!flushed.list(DATA_DIR).unwrap().is_empty());
    let headless = |disk: &MemDisk| {
        let headless = disk.copy();
        for name in headless.list(WAL_DIR).unwrap() {
            let path = format!("wal/{name}");
            let mut bytes = headless.get(&path).unwrap();
            bytes[20] ^= 1;
            headless.put(&path, bytes);
        }
        headless
    };
    for remains in [headless(&young), headless(&aged), young, aged, flushed] {
        remains.remove("MANIFEST").unwrap();
        let before = files_of(&remains);
        for options in [testing::options(), read_only()] {
            let error = Database::open_on(Arc::new(remains.clone()), options).unwrap_err();
            assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "{error}");
            assert!(error.message().contains("the manifest is missing though "), "{error}");
        }
        assert_eq!(files_of(&remains), before);
    }
}

#[test]
fn what_is_not_ours_is_neither_made_a_database_nor_removed() {
    for (folder, name) in
        [("", "notes.txt"), ("photos", "a.jpg"), ("data", "mine.csv"), ("wal", "1.log"), ("data/1", "x")]
    {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        std::fs::write(dir.path().join(folder).join(name), "precious").unwrap();
        let error = Database::open(dir.path(), testing::options()).unwrap_err();
        let named = if folder.is_empty() { name } else { folder };
        assert_eq!(error.sqlstate(), sqlstate::INVALID_PARAMETER, "{folder}/{name}: {error}");
        assert!(error.message().contains(named), "{error}");
        let error = Database::open(dir.path(), read_only()).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::UNDEFINED_FILE, "{folder}/{name}: {error}");
        let top = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(top, 1, "nothing was made beside {folder}/{name}");
    }
    let dir = tempfile::tempdir().unwrap();
    let t = testing::on(Database::open(dir.path(), testing::options()).unwrap(), 7);
    t.insert(0..20);
    t.flush();
    t.db.close().unwrap();
    let orphans = ["data/0000009999.seg", "data/0000009999.seg.tmp", "data/0000009998.del", "data/0000009997.run"];
    let others = ["notes.txt", "data/notes.txt", "data/9999.seg", "data/0000009999.seg.bak", "wal/notes.txt"];
    for path in orphans.iter().chain(&others) {
        std::fs::write(dir.path().join(path), "precious").unwrap();
    }
    std::fs::create_dir(dir.path().join("data/0000009996.seg")).unwrap();
    let t = Table { db: Database::open(dir.path(), testing::options()).unwrap(), id: t.id };
    assert_eq!(ids(&t), (0..20).collect::<Vec<_>>());
    assert!(orphans.iter().all(|path| !dir.path().join(path).exists()));
    assert!(others.iter().chain(&["data/0000009996.seg"]).all(|path| dir.path().join(path).exists()));
}

#[test]
fn the_same_state_comes_back_however_often_and_with_every_placement() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..30);
    t.flush();
    t.delete(&[1, 8]);
    t.insert(40..50);
    t.db.checkpoint_now().unwrap();
    t.delete(&[2, 41]);
    t.insert([41, 60]);
    t.db.freeze(t.id).unwrap();
    t.delete(&[60]);
    t.insert(70..75);
    t.flush();
    t.delete(&[70]);
    t.db.merge(t.id).unwrap();
    t.insert([70]);
    let expected = ids(&t);
    let (mut again, mut files) = crashed(&t, &disk);
    for _ in 0..4 {
        assert_eq!(ids(&again), expected);
        assert!(again.db.verify().is_empty());
        (again, files) = crashed(&again, &files);
    }
    again.insert([100]);
    let (after, _) = crashed(&again, &files);
    assert_eq!(ids(&after), [expected, vec![100]].concat());
}

/// Rows of a former life must not be found under an id that is given out again.
#[test]
fn ids_that_the_log_names_are_never_given_out_again() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..20);
    t.flush();
    t.insert(20..25);
    let used: Vec<_> = t.db.containers().iter().map(|container| container.id).collect();
    let (again, _) = crashed(&t, &disk);
    again.db.merge(again.id).unwrap();
    again.insert(30..35);
    let largest = used.iter().max().unwrap();
    let fresh: Vec<_> = again.db.containers().into_iter().map(|c| c.id).filter(|id| !used.contains(id)).collect();
    assert!(!fresh.is_empty() && fresh.iter().all(|id| id > largest), "{fresh:?} after {used:?}");
}

#[test]
fn a_read_only_open_replays_and_writes_nothing() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..20);
    t.flush();
    t.insert(20..25);
    let copy = disk.copy();
    copy.put("data/0000009999.seg", vec![0]);
    let before = files_of(&copy);
    let options = testing::options().read_only(true);
    let read = Table { db: Database::open_on(Arc::new(copy.clone()), options).unwrap(), id: t.id };
    assert_eq!(ids(&read), (0..25).collect::<Vec<_>>());
    read.db.close().unwrap();
    assert_eq!(before, files_of(&copy));
}

/// Deltas of several schema versions stand in the manifest while their rows stand in the log only.
#[test]
fn rows_come_back_under_the_version_they_were_written_under() {
    use crate::catalog::{ColumnDefinition, TableChange};
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    let alter = |t: &Table, changes: &[TableChange]| {
        let mut txn = t.begin();
        txn.alter_table(t.id, changes).unwrap();
        txn.commit().unwrap();
    };
    let add = |name: &str| TableChange::AddColumn {
        column: ColumnDefinition::new(name, crate::schema::DataType::BigInt, true),
        missing_value: crate::row::Value::Int(7),
    };
    let drop_column = |t: &Table, name: &str| {
        let schema = t.begin().catalog().table(t.id).unwrap().clone();
        TableChange::DropColumn(schema.column_named(name).unwrap().id)
    };
    t.insert(0..5);
    alter(&t, &[add("a")]);
    alter(&t, &[drop_column(&t, "a"), TableChange::RenameColumn(testing::V, "w".into())]);
    t.delete(&[3]);
    t.insert(5..8);
    alter(&t, &[add("b")]);
    alter(&t, &[drop_column(&t, "b")]);
    let versions = |t: &Table| {
        let version = t.view().version().clone();
        version.deltas.iter().map(|delta| (delta.schema().version.0, delta.rows())).collect::<Vec<_>>()
    };
    assert_eq!(versions(&t), [(1, 5), (3, 3), (5, 0)]);
    t.db.checkpoint_now().unwrap();
    let (mut again, mut files) = crashed(&t, &disk);
    assert_eq!(versions(&again), [(1, 5), (3, 3), (5, 0)]);
    for round in 0..3 {
        assert_eq!(ids(&again), [vec![0, 1, 2, 4, 5, 6, 7], (20..20 + round).collect()].concat());
        assert!(again.db.verify().is_empty());
        assert!(again.begin().catalog().table(again.id).unwrap().column_named("w").is_some());
        again.insert([20 + round]);
        if round == 1 {
            again.db.checkpoint_now().unwrap();
        }
        (again, files) = crashed(&again, &files);
    }
    again.db.merge(again.id).unwrap();
    assert_eq!(ids(&again).len(), 10);
    drop(files);
}

#[test]
fn a_dropped_table_stays_dropped_and_its_name_is_free() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..20);
    t.flush();
    let mut txn = t.begin();
    txn.drop_table(t.id).unwrap();
    txn.commit().unwrap();
    let (again, files) = crashed(&t, &disk);
    assert!(again.begin().catalog().table_named("t").is_none());
    assert_eq!(files.list(DATA_DIR).unwrap(), Vec::<String>::new(), "its files are orphans");
    let new = testing::on(again.db.clone(), 7);
    assert!(new.id > t.id);
    new.insert(0..3);
    assert_eq!(ids(&crashed(&new, &files).0), [0, 1, 2]);
}

/// What a checkpoint knows to have been fsynced is no torn tail, though nothing behind it says so.
#[test]
fn a_log_that_ends_below_what_the_checkpoint_knows_is_damaged() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 7);
    t.insert(0..3);
    t.insert([3]);
    t.db.checkpoint_now().unwrap();
    let known = disk.copy();
    t.insert([4]);
    // Without a close, which would make a checkpoint of its own.
    let later = disk.copy();
    let path = format!("wal/{}", disk.list(WAL_DIR).unwrap().pop().unwrap());
    let end = known.get(&path).unwrap().len();
    let outcome = |bytes: Vec<u8>| {
        let damaged = later.copy();
        damaged.put(&path, bytes);
        open_at(&damaged).map(|db| ids(&Table { db, id: t.id }))
    };
    let whole = later.get(&path).unwrap();
    for at in end..whole.len() {
        assert_eq!(outcome(whole[..at].to_vec()).unwrap(), [0, 1, 2, 3], "cut off at {at}: a torn tail");
    }
    for at in end - 100..end {
        let mut flipped = whole[..end].to_vec();
        flipped[at] ^= 1;
        for bytes in [whole[..at].to_vec(), flipped] {
            let error = outcome(bytes).unwrap_err();
            assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "byte {at}: {error}");
            assert!(error.message().contains(&path) && error.message().contains("fsynced"), "{error}");
        }
    }
}
