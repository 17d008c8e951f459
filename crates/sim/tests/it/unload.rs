//! The power goes at every sync of an unload, and every call of the disk fails once: a folder can be loaded if the
//! unload had said that it is done, and never holds anything else than the snapshot.

use std::sync::Arc;

use mainstem_sim::{FaultKind, SimDisk};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::{DataType, TableOptions};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::TransactionMode;
use mainstem_storage::unload::Compression;

const GO_ON: &(dyn Fn() -> mainstem_storage::Result<()> + Sync) = &|| Ok(());
const ROWS: i64 = 120;

fn options() -> OpenOptions {
    OpenOptions::new().background(false)
}

/// A table of a few segments and a delta.
fn database() -> (Database, TableId) {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    let db = Database::in_memory(options()).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn
        .create_table(TableDefinition {
            primary_key: vec!["id".into()],
            options: TableOptions { segment_rows: 16, ..TableOptions::default() },
            ..TableDefinition::new("t", vec![ColumnDefinition::new("id", DataType::BigInt, false)])
        })
        .unwrap();
    txn.commit().unwrap();
    for part in [0..100, 100..ROWS] {
        let mut txn = db.begin(TransactionMode::default()).unwrap();
        let schema = txn.catalog().table(id).unwrap().clone();
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(part.clone()));
        let mut writes = txn.statement();
        writes.insert(&schema, &RecordBatch::try_from_iter_with_nullable([("id", ids, false)]).unwrap()).unwrap();
        txn.apply(writes).unwrap();
        txn.commit().unwrap();
        if part.start == 0 {
            db.merge(id).unwrap();
        }
    }
    (db, id)
}

fn unload(db: &Database, disk: &SimDisk) -> mainstem_storage::Result<()> {
    let txn = db.begin(TransactionMode::default()).unwrap();
    txn.unload_all(disk, Compression::Lz4, |_| false, GO_ON).map(drop)
}

/// The rows that the folder `disk` gives; None where it is told to be none.
fn loaded(disk: &dyn Disk) -> Option<u64> {
    let db = Database::in_memory(options()).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    match txn.reload_all(disk, GO_ON) {
        Ok(rows) => {
            txn.commit().unwrap();
            let wrong = db.verify();
            assert!(wrong.is_empty(), "{wrong:?}");
            Some(rows)
        }
        Err(error) => {
            assert_eq!(error.sqlstate(), "58P01", "{error}");
            None
        }
    }
}

#[test]
fn power_is_cut_at_every_sync_of_an_unload() {
    let (db, _) = database();
    let whole = SimDisk::new();
    unload(&db, &whole).unwrap();
    assert_eq!(loaded(&whole.power_cut(1)), Some(ROWS as u64), "what is done is durable");
    let syncs = whole.syncs();
    assert!(syncs > 5, "{syncs}");
    for sync in 1..=syncs {
        for tear in 0..3 {
            let disk = SimDisk::new();
            disk.cut_at_sync(sync);
            assert!(unload(&db, &disk).is_err(), "sync {sync} of {syncs}");
            let found = loaded(&disk.power_cut(tear));
            // The last sync makes the name of the manifest durable: it may have been before.
            assert!(found.is_none() || sync == syncs && found == Some(ROWS as u64), "sync {sync}: {found:?}");
        }
    }
}

#[test]
fn every_call_of_an_unload_fails() {
    let (db, _) = database();
    let whole = SimDisk::new();
    unload(&db, &whole).unwrap();
    for call in 1..=whole.calls() {
        for kind in [FaultKind::Io, FaultKind::Full] {
            let disk = SimDisk::new();
            disk.fail_at(call, kind);
            let ended = unload(&db, &disk);
            disk.repair();
            match (ended, loaded(&disk)) {
                (Ok(()), Some(rows)) => assert_eq!(rows, ROWS as u64, "call {call}"),
                (Err(_), None) => {}
                // Its name was taken; whether it is durable is not known.
                (Err(_), Some(rows)) => assert_eq!(rows, ROWS as u64, "call {call}"),
                (Ok(()), None) => panic!("call {call}: done, and not there"),
            }
        }
    }
}

/// The same of a load: after a restart all of it is there, or nothing.
#[test]
fn power_is_cut_at_every_sync_of_a_load() {
    let (db, _) = database();
    let folder = SimDisk::new();
    unload(&db, &folder).unwrap();
    let load = |disk: &SimDisk| -> mainstem_storage::Result<()> {
        let copy = Database::open_on(Arc::new(disk.clone()), options())?;
        let mut txn = copy.begin(TransactionMode::default())?;
        txn.reload_all(&folder, GO_ON)?;
        txn.commit().map(drop)
    };
    let whole = SimDisk::new();
    load(&whole).unwrap();
    for sync in 1..=whole.syncs() {
        let disk = SimDisk::new();
        disk.cut_at_sync(sync);
        let done = load(&disk).is_ok();
        let after = disk.power_cut(sync);
        let copy = match Database::open_on(Arc::new(after), options()) {
            Ok(copy) => copy,
            // Before there was a database.
            Err(_) => {
                assert!(!done);
                continue;
            }
        };
        let wrong = copy.verify();
        assert!(wrong.is_empty(), "sync {sync}: {wrong:?}");
        let rows = copy.catalog().table_named("t").map(|table| {
            let txn = copy.begin(TransactionMode::default()).unwrap();
            txn.view(table.id).unwrap().statistics_of(&[]).rows
        });
        assert!(rows == Some(ROWS as u64) || rows.is_none() && !done, "sync {sync}: {rows:?}");
    }
}
