//! Where queries put aside what they have no memory for.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use mainstem::{Database, OpenOptions};

/// More rows than queries may have in memory, whose sort the first batch ends: what was put aside is there until the
/// result goes.
const SORT: &str =
    "SELECT value, repeat('x', 100) FROM generate_series(1, 600000) AS t(value) ORDER BY value % 1009, value";

fn limited() -> OpenOptions {
    OpenOptions::new().memory_limit(32 << 20).background(false)
}

/// Bytes of the files below `folder`.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        if found.is_dir() { bytes_below(&entry.path()) } else { found.len() }
    };
    entries.map(bytes).sum()
}

#[test]
fn queries_spill_to_the_folder_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let (path, temp) = (folder.path().join("db"), folder.path().join("db/temp"));
    let database = Database::open_with(&path, limited()).unwrap();
    assert!(!temp.exists());
    let mut result = database.connect().unwrap().query(SORT).unwrap();
    assert!(result.next().unwrap().unwrap().num_rows() > 0);
    assert!(bytes_below(&temp) > 4 << 20, "{} bytes", bytes_below(&temp));
    drop(result);
    database.close().unwrap();
    drop(database);
    // Whoever wrote them lets go of them in his own time.
    let end = Instant::now() + Duration::from_secs(20);
    while bytes_below(&temp) > 0 {
        assert!(Instant::now() < end, "{} bytes", bytes_below(&temp));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_opening_that_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, temp) = (folder.path().join("db"), folder.path().join("db/temp"));
    Database::open_with(&path, limited()).unwrap().close().unwrap();
    // A link to where there is room stays one, with what others have there.
    let room = folder.path().join("room");
    fs::create_dir_all(room.join("others")).unwrap();
    fs::write(room.join("others/file"), "rows").unwrap();
    std::os::unix::fs::symlink(&room, &temp).unwrap();
    let spilled = |database: &Database| {
        let mut result = database.connect().unwrap().query(SORT).unwrap();
        assert!(result.next().unwrap().unwrap().num_rows() > 0);
        result
    };
    let database = Database::open_with(&path, limited()).unwrap();
    let result = spilled(&database);
    assert!(temp.is_symlink() && bytes_below(&room) > 4 << 20);
    let own =
        fs::read_dir(&room).unwrap().map(|entry| entry.unwrap().path()).find(|path| !path.ends_with("others")).unwrap();
    drop(result);
    drop(database);
    fs::create_dir_all(own.join("left/deep")).unwrap();
    fs::write(own.join("left/deep/file"), "rows").unwrap();
    fs::write(own.join("file"), "rows").unwrap();
    // Another database with the same link.
    let other = folder.path().join("other");
    Database::open_with(&other, limited()).unwrap().close().unwrap();
    std::os::unix::fs::symlink(&room, other.join("temp")).unwrap();
    let other = Database::open_with(&other, limited()).unwrap();
    let result = spilled(&other);
    Database::open_with(&path, limited().read_only(true)).unwrap().close().unwrap();
    assert!(own.join("left/deep/file").exists() && own.join("file").exists());
    let _database = Database::open_with(&path, limited()).unwrap();
    assert!(!own.exists() && room.join("others/file").exists());
    assert!(bytes_below(&room) > 4 << 20, "what the other database reads is gone");
    assert!(result.count_rows().unwrap() > 500_000);
}

#[test]
fn a_stream_that_may_be_read_again_is_kept_in_the_folder_of_the_database() {
    struct Watched<'a>(io::Take<io::Repeat>, &'a Path, bool);
    impl Read for Watched<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.2 |= self.1.exists();
            let read = self.0.read(buffer)?;
            for (at, byte) in buffer[..read].iter_mut().enumerate() {
                *byte = if at % 64 == 63 { b'\n' } else { b'7' };
            }
            if let Some(last) = buffer[..read].last_mut() {
                *last = b'\n';
            }
            Ok(read)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, temp) = (folder.path().join("db"), folder.path().join("db/temp"));
    let database = Database::open_with(&path, OpenOptions::new().background(false)).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (s TEXT)").unwrap();
    let mut stream = Watched(io::repeat(0).take(32 << 20), &temp, false);
    assert!(connection.copy_in("COPY t FROM STDIN", &mut stream).unwrap() > 100_000);
    assert!(stream.2, "nothing was put aside");
}
