//! A check beside a writer, on a disk that loses files while they are read.

use std::sync::Arc;

use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, DiskFile, DiskLock, MemDisk};
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use crate::support::{create, insert_and_commit, options};

/// A disk of which files are not there the first times that they are opened.
#[derive(Debug)]
struct Losing {
    disk: MemDisk,
    /// Parts of paths, and how often such files are still missing.
    missing: Mutex<Vec<(&'static str, usize)>>,
}

impl Disk for Losing {
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        for (part, times) in self.missing.lock().iter_mut() {
            if path.contains(*part) && *times > 0 {
                *times -= 1;
                return Err(Error::io("open", path, std::io::ErrorKind::NotFound.into()));
            }
        }
        self.disk.open(path)
    }
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        panic!("a check creates {path}");
    }
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        panic!("a check writes {path}");
    }
    fn rename(&self, from: &str, _: &str) -> Result<()> {
        panic!("a check renames {from}");
    }
    fn remove(&self, path: &str) -> Result<()> {
        panic!("a check removes {path}");
    }
    fn truncate(&self, path: &str, _: u64) -> Result<()> {
        panic!("a check cuts {path}");
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list_others(dir)
    }
    fn create_dir(&self, dir: &str) -> Result<()> {
        panic!("a check makes {dir}");
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        panic!("a check syncs {dir}");
    }
    fn exists(&self, path: &str) -> Result<bool> {
        self.disk.exists(path)
    }
    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.disk.lock(exclusive)
    }
}

#[test]
fn what_is_missing_once_is_not_wrong() {
    let disk = MemDisk::new();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let table = create(&db, "t", true, 1_024);
    insert_and_commit(&db, table, 0..100);
    db.merge(table).unwrap();
    insert_and_commit(&db, table, 200..220);
    let check = |missing: &[(&'static str, usize)]| {
        let disk = Losing { disk: disk.clone(), missing: Mutex::new(missing.to_vec()) };
        Database::check_on(Arc::new(disk), options())
    };
    // Segments that a merge has taken, and a manifest and a log that a checkpoint has replaced.
    for missing in [&[][..], &[("data/", 1)], &[("MANIFEST", 3)], &[("wal/", 2), ("data/", 1)], &[("MANIFEST", 1)]] {
        let report = check(missing).unwrap();
        assert!(report.is_live && report.wrong.is_empty() && report.unsettled.is_empty(), "{missing:?}: {report:?}");
        assert_eq!(report.containers.iter().map(|c| c.rows).sum::<u64>(), 120, "{missing:?}");
    }
    // What stays away is wrong, what is away again and again in other words is not known.
    assert_eq!(check(&[("data/", usize::MAX)]).unwrap().wrong.len(), 1);
    assert_eq!(check(&[("MANIFEST", 4)]).unwrap_err().sqlstate(), "58P01");
    db.close().unwrap();
}
