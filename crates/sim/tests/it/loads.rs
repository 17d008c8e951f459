//! Loads of rows in no order, which go to a file without a name: the power goes at every sync, and calls of the disk
//! fail. All rows are there afterwards or none, and nothing is left of the file.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use mainstem_sim::{FaultKind, SimDisk};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::schema::{DataType, TableOptions};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::TransactionMode;

/// As many as several sorts of the memory that loads have.
const ROWS: i64 = 30_000;
/// Rows at a time.
const BATCH_ROWS: usize = 2_500;

fn open(disk: &SimDisk) -> mainstem_storage::Result<Database> {
    Database::open_on(Arc::new(disk.clone()), OpenOptions::new().background(false).memory_limit(16 << 20))
}

fn create(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let text = DataType::Text { max_chars: None };
    let columns = vec![ColumnDefinition::new("id", DataType::BigInt, false), ColumnDefinition::new("t", text, false)];
    txn.create_table(TableDefinition {
        primary_key: vec!["id".into()],
        options: TableOptions { segment_rows: 8_192, ..TableOptions::default() },
        ..TableDefinition::new("t", columns)
    })
    .unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
}

/// Loads all rows. Returns how many runs they are.
fn load(disk: &SimDisk) -> mainstem_storage::Result<usize> {
    load_into(&open(disk)?)
}

fn load_into(db: &Database) -> mainstem_storage::Result<usize> {
    let mut txn = db.begin(TransactionMode::default())?;
    let table = txn.catalog().table_named("t").unwrap().clone();
    let mut writes = txn.statement();
    let keys: Vec<i64> = (0..ROWS).map(|i| i * 7_919 % ROWS).collect();
    for keys in keys.chunks(BATCH_ROWS) {
        let texts = keys.iter().map(|key| format!("{} of some", key % 7));
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(keys.to_vec())), Arc::new(StringArray::from_iter_values(texts))];
        writes.load(&table, columns)?;
    }
    txn.apply(writes)?;
    let runs = txn.view(table.id)?.own().map_or(0, |own| own.runs().len());
    txn.commit()?;
    Ok(runs)
}

/// The rows that are found after a restart.
fn rows(disk: &SimDisk) -> u64 {
    let db = open(disk).unwrap();
    let wrong = db.verify();
    assert!(wrong.is_empty(), "{wrong:?}");
    let table = db.catalog().table_named("t").unwrap().id;
    let txn = db.begin(TransactionMode::default()).unwrap();
    txn.view(table).unwrap().statistics_of(&[]).rows
}

#[test]
fn power_is_cut_at_every_sync_of_a_load_in_no_order() {
    let whole = SimDisk::new();
    create(&whole);
    let before = whole.syncs();
    assert_eq!(load(&whole).unwrap(), 1, "it was put aside");
    for sync in before + 1..=whole.syncs() {
        let disk = SimDisk::new();
        create(&disk);
        disk.cut_at_sync(sync);
        let done = load(&disk).is_ok();
        let found = rows(&disk.power_cut(sync));
        assert!(found == ROWS as u64 || found == 0 && !done, "sync {sync}: {found}");
    }
}

#[test]
fn calls_of_a_load_in_no_order_fail() {
    let whole = SimDisk::new();
    create(&whole);
    let before = whole.calls();
    load(&whole).unwrap();
    let full = whole.used_bytes();
    for call in (before + 1..=whole.calls()).step_by(3) {
        for kind in [FaultKind::Io, FaultKind::Full] {
            let disk = SimDisk::new();
            create(&disk);
            disk.fail_at(call, kind);
            let done = load(&disk).is_ok();
            disk.repair();
            let found = rows(&disk);
            assert!(found == ROWS as u64 || found == 0 && !done, "call {call}, {kind:?}: {found}");
            if found == 0 {
                load(&disk).unwrap();
                assert_eq!(rows(&disk), ROWS as u64, "call {call}, {kind:?}: again");
            }
            assert!(disk.used_bytes() < 2 * full, "call {call}: {} bytes, {full} of a load", disk.used_bytes());
        }
    }
}

/// The file alone does not fit.
#[test]
fn a_load_in_no_order_on_a_disk_that_is_too_small_says_so() {
    let disk = SimDisk::new();
    create(&disk);
    let db = open(&disk).unwrap();
    disk.limit_capacity(disk.used_bytes() + (20 << 10));
    let error = load_into(&db).unwrap_err();
    drop(db);
    assert_eq!(error.sqlstate(), "53100", "{error}");
    assert!(error.message().contains("temp/"), "{error}");
    disk.repair();
    assert_eq!(rows(&disk), 0);
    load(&disk).unwrap();
    assert_eq!(rows(&disk), ROWS as u64);
}
