//! A check reads a database that somebody writes to.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem::{Database, OpenOptions, Synchronous};

/// Small deltas and segments: many merges, and files that go.
fn busy(folder: &tempfile::TempDir) -> (PathBuf, Database) {
    let path = folder.path().join("db");
    let options = OpenOptions::new().segment_rows(1_024).delta_rows(1_024).synchronous(Synchronous::Normal);
    let database = Database::open_with(&path, options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, m BIGINT UNIQUE, v TEXT)").unwrap();
    connection.execute("INSERT INTO t SELECT i, -i, concat('v', i) FROM generate_series(1, 20000) AS g(i)").unwrap();
    (path, database)
}

#[test]
fn nothing_is_wrong_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (path, database) = busy(&folder);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| {
            let connection = database.connect().unwrap();
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                connection.execute(&format!("UPDATE t SET v = concat(v, 'x') WHERE n % 50 = {}", round % 50)).unwrap();
                connection
                    .execute(&format!("DELETE FROM t WHERE n BETWEEN {0} * 100 AND {0} * 100 + 50", round % 150))
                    .unwrap();
                if round % 20 == 7 {
                    database.storage().checkpoint().unwrap();
                }
            }
        });
        let reports: Vec<_> = (0..150).map(|_| Database::check(&path, OpenOptions::new())).collect();
        stop.store(true, Ordering::Relaxed);
        write.join().unwrap();
        for report in reports {
            let report = report.unwrap();
            assert!(report.is_live && report.wrong.is_empty(), "{report:?}");
            assert!(report.containers.iter().map(|c| c.rows).sum::<u64>() > 1_000);
        }
    });
    database.close().unwrap();
    let report = Database::check(&path, OpenOptions::new()).unwrap();
    assert!(!report.is_live && report.wrong.is_empty(), "{report:?}");
}

#[test]
fn damage_is_found_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (path, database) = busy(&folder);
    for table in database.storage().catalog().tables() {
        database.storage().merge(table.id).unwrap();
    }
    let (bytes, file) = fs::read_dir(path.join("data"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.metadata().unwrap().len(), entry.path()))
        .max()
        .unwrap();
    let sound = fs::read(&file).unwrap();
    let mut wrong = sound.clone();
    wrong[bytes as usize / 2] ^= 0x10;
    fs::write(&file, &wrong).unwrap();
    let report = Database::check(&path, OpenOptions::new()).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(report.is_live && report.wrong.len() == 1, "{report:?}");
    assert!(report.wrong[0].message().contains(name), "{report:?}");
    fs::write(&file, &sound).unwrap();
    assert!(Database::check(&path, OpenOptions::new()).unwrap().wrong.is_empty());
    // What cannot be opened is told as it is.
    let manifest = path.join("MANIFEST");
    let sound = fs::read(&manifest).unwrap();
    fs::write(&manifest, &sound[..sound.len() / 2]).unwrap();
    assert_eq!(Database::check(&path, OpenOptions::new()).unwrap_err().sqlstate(), "XX001");
    fs::write(&manifest, &sound).unwrap();
    database.close().unwrap();
}
