//! `mainstem check`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{run, text};

/// A database with one segment; rows of every column kind.
fn database(dir: &Path) -> PathBuf {
    let database = dir.join("db");
    let sql = "CREATE TABLE t (n BIGINT PRIMARY KEY, name TEXT, price DECIMAL(9, 2)); \
        INSERT INTO t SELECT i, concat('name ', i), i FROM generate_series(1, 20000) i; \
        DELETE FROM t WHERE n <= 5;";
    run([text(&database), "--format", "none", "-c", sql]).ok();
    database
}

/// Files of the database, with their bytes; large ones last.
fn files(dir: &Path) -> Vec<(u64, PathBuf)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.extend(files(&entry.path()));
        } else {
            all.push((entry.metadata().unwrap().len(), entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_sound_database_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(dir.path());
    let before: Vec<_> = files(&database);
    let said = run(["check", text(&database)]).ok();
    assert!(said.contains("19995 rows") && said.contains("sound"), "{said}");
    assert_eq!(files(&database), before, "a check writes nothing");
}

/// The shell that writes goes on.
#[test]
fn a_database_that_is_open_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(dir.path());
    let (open, done) = (dir.path().join("open"), dir.path().join("done"));
    let sql = format!(
        "INSERT INTO t VALUES (0, 'open', 0); COPY (SELECT 1) TO '{}' (FORMAT csv); SELECT pg_sleep(5); DELETE FROM t WHERE n = 0; \
         COPY (SELECT 1) TO '{}' (FORMAT csv);",
        open.display(),
        done.display()
    );
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| run([text(&database), "--format", "none", "-c", &sql]));
        while !open.exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let said = run(["check", text(&database)]).ok();
        assert!(said.contains("19996 rows") && said.contains("sound, beside a process that has it open"), "{said}");
        assert!(!done.exists(), "the writer had it open");
        writer.join().unwrap().ok();
    });
    let said = run(["check", text(&database)]).ok();
    assert!(said.contains("19995 rows in all are sound\n"), "{said}");
}

#[test]
fn rows_with_a_key_index_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let sql = "CREATE TABLE t (n BIGINT PRIMARY KEY, m BIGINT) ORDER BY (m); \
        INSERT INTO t SELECT i, -i FROM generate_series(1, 20000) i;";
    run([text(&database), "--format", "none", "-c", sql]).ok();
    let said = run(["check", text(&database)]).ok();
    assert!(said.contains("2 segments") && said.contains("20000 rows"), "{said}");
}

#[test]
fn each_damaged_file_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(dir.path());
    let mut damaged = 0;
    for (bytes, path) in files(&database) {
        // A lock file holds no data.
        if bytes < 64 {
            continue;
        }
        let sound = fs::read(&path).unwrap();
        for part in 1..8 {
            let at = sound.len() * part / 8;
            let mut wrong = sound.clone();
            wrong[at] ^= 0x10;
            fs::write(&path, &wrong).unwrap();
            let ran = run(["check", text(&database)]);
            assert!(!ran.err.contains("panicked"), "{ran:?}");
            if ran.status != 0 {
                // A log whose first file does not know its own place is missed in its folder.
                let name = text(path.file_name().unwrap().as_ref());
                let named =
                    ran.err.contains(name) || path.parent().unwrap().ends_with("wal") && ran.err.contains("file wal ");
                // A format version may be a damaged one or a newer one.
                let version = ran.err.contains("ERROR 0A000: ") && ran.err.contains("format version");
                assert!(version || ran.err.contains("ERROR XX001: ") && named, "{} byte {at}: {ran:?}", path.display());
                damaged += 1;
            }
        }
        fs::write(&path, &sound).unwrap();
    }
    assert!(damaged >= 7, "{damaged} damages found");
    run(["check", text(&database)]).ok();
}

#[test]
fn what_is_no_database_cannot_be_checked() {
    let dir = tempfile::tempdir().unwrap();
    run(["check", "/no/such/database"]).failed("58P01");
    let ran = run(["check", text(dir.path())]);
    let complaint = ran.failed("58P01");
    assert!(complaint.contains(text(dir.path())), "{complaint}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The last of the sorted log files.
fn newest_log(database: &Path) -> PathBuf {
    let logs = fs::read_dir(database.join("wal")).unwrap().map(|entry| entry.unwrap().path());
    logs.max().unwrap()
}

fn cut_last_byte(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
}

#[test]
fn a_closed_log_that_lost_its_last_byte_is_named_and_nothing_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(dir.path());
    let log = newest_log(&database);
    cut_last_byte(&log);
    let before: Vec<_> = files(&database);
    let name = text(log.file_name().unwrap().as_ref());
    for arguments in [vec!["check", text(&database)], vec![text(&database), "-c", "SELECT count(*) FROM t"]] {
        let complaint = run(arguments).failed("XX001");
        assert!(complaint.contains(&format!("file wal/{name} is damaged at byte")), "{complaint}");
        assert!(complaint.contains("LOG_END"), "{complaint}");
    }
    // The writing one has taken the lock.
    let unlocked = |files: Vec<(u64, PathBuf)>| -> Vec<_> {
        files.into_iter().filter(|(_, path)| !path.ends_with("LOCK")).collect()
    };
    assert_eq!(unlocked(files(&database)), unlocked(before));
    fs::write(database.join("LOG_END"), "rubbish").unwrap();
    let complaint = run(["check", text(&database)]).failed("XX001");
    assert!(complaint.contains("file LOG_END is damaged at byte"), "{complaint}");
}

/// As a crash leaves a log: without the mark of a clean close, and with a torn tail.
#[test]
fn files_that_a_torn_tail_may_have_named_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let sql = "CREATE TABLE t (n BIGINT PRIMARY KEY); INSERT INTO t VALUES (0)";
    run([text(&database), "--format", "none", "-c", sql]).ok();
    let sql = "INSERT INTO t SELECT i FROM generate_series(1, 20000) i";
    run([text(&database), "--format", "none", "-c", sql]).ok();
    fs::remove_file(database.join("LOG_END")).unwrap();
    cut_last_byte(&newest_log(&database));

    let torn = run(["check", text(&database)]);
    assert_eq!(torn.status, 0, "a crash is no damage: {torn:?}");
    assert!(torn.err.contains("WARNING 01000: the log ends at byte"), "{torn:?}");
    assert!(torn.err.contains("nothing lists these files") && torn.err.contains("data/0000000001.seg"), "{torn:?}");

    let opened = run([text(&database), "-c", "SELECT count(*) FROM t"]);
    assert_eq!((opened.status, opened.out.as_str()), (0, "count\n1\n"), "{opened:?}");
    assert!(opened.err.contains("were set aside") && opened.err.contains("data/0000000001.seg.lost-"), "{opened:?}");

    let said = run(["check", text(&database)]).ok();
    assert!(said.contains("1 rows in all are sound"), "{said}");
    assert!(said.contains("data/0000000001.seg.lost-") && said.contains("files set aside: 1, "), "{said}");
    let sql = "SELECT count(*), min(file) LIKE 'data/%.seg.lost-%', min(bytes) > 1000, min(log_file), min(container) > 0 \
        FROM mainstem.lost_files";
    let rows = run([text(&database), "--format", "csv", "-c", sql]).ok();
    assert!(rows.ends_with("\n1,true,true,2,true\n"), "{rows}");
}
