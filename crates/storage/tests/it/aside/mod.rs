//! Files aside, which log records and the manifest name: what they have in common, whatever stands in them.

mod deletes;
mod runs;

use std::sync::Arc;

use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::TableId;
use mainstem_storage::settings::OpenOptions;

use crate::held_disk::HeldDisk;
use crate::support::*;

/// Nothing fits into a record.
fn all_aside() -> OpenOptions {
    options().inline_delete_bytes(0).inline_run_bytes(0)
}

fn open(disk: &HeldDisk) -> Database {
    Database::open_on(Arc::new(disk.clone()), all_aside()).unwrap()
}

/// What the next process finds after a kill.
fn killed(disk: &HeldDisk) -> (Database, MemDisk) {
    let copy = disk.live.copy();
    (Database::open_on(Arc::new(copy.clone()), all_aside()).unwrap(), copy)
}

/// Names of files that end with `extension`.
fn files(disk: &impl Disk, extension: &str) -> Vec<String> {
    disk.list("data").unwrap().into_iter().filter(|name| name.ends_with(extension)).collect()
}

/// The only file with `extension` is missing, or has one wrong bit in any byte: `db` does not open, and the error names
/// the file.
fn check_damage(db: &Database, disk: &HeldDisk, extension: &str) {
    let [name] = files(&disk.live, extension).try_into().unwrap();
    let path = format!("data/{name}");
    let good = disk.live.get(&path).unwrap();
    let refused = |change: &dyn Fn(&MemDisk)| {
        let copy = disk.live.copy();
        change(&copy);
        let error = Database::open_on(Arc::new(copy), all_aside()).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::CORRUPT, "{error}");
        assert!(error.message().contains(&path), "{error}");
    };
    refused(&|copy| copy.remove(&path).unwrap());
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        refused(&|copy| copy.put(&path, bytes.clone()));
    }
    // Damage that comes later is found by the check.
    disk.live.put(&path, good[..good.len() - 1].to_vec());
    let [wrong] = db.verify().try_into().unwrap();
    assert!(wrong.message().contains(&path), "{wrong}");
}

/// Files with `extension` that nobody names, of a commit that never came to its record and one half written, go when
/// the database is opened for writing, and those that are named stay.
fn check_orphans(db: &Database, t: TableId, disk: &HeldDisk, extension: &str) {
    let copy = disk.live.copy();
    let named = files(&copy, extension);
    assert_eq!(named.len(), 1);
    let (orphan, half) = (format!("data/0000009998{extension}"), format!("data/0000009999{extension}"));
    copy.put(&orphan, vec![0; 40]);
    copy.put(&half, Vec::new());
    let read_only = all_aside().read_only(true);
    let reader = Database::open_on(Arc::new(copy.clone()), read_only).unwrap();
    assert_eq!(contents(&reader, t), contents(db, t));
    assert_eq!(reader.verify().len(), 0);
    reader.close().unwrap();
    assert_eq!(files(&copy, extension).len(), 3, "a reader changes nothing");
    let watched = HeldDisk::on(copy.clone());
    let writer = open(&watched);
    let done = watched.take_done();
    let place = |wanted: &str| done.iter().position(|step| step == wanted).unwrap_or_else(|| panic!("{done:?}"));
    // A power cut must not take back the manifest that is the reason why a file is an orphan.
    assert!(place("sync ") < place(&format!("remove {orphan}")));
    assert_eq!(contents(&writer, t), contents(db, t));
    assert_eq!(files(&copy, extension), named);
}
