//! Numbers of IDENTITY columns across power cuts: whatever was fsynced, none is given out twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstem_sim::SimDisk;
use mainstem_storage::Result;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::ids::{ColumnId, TableId};
use mainstem_storage::schema::{DataType, Identity};
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;

use crate::model::number;

fn open(disk: &SimDisk) -> Result<Database> {
    Database::open_on(Arc::new(disk.clone()), OpenOptions::new().background(false))
}

fn make(db: &Database) -> Result<TableId> {
    let identity = Some(Identity { always: true, start: 1, increment: 1 });
    let column = ColumnDefinition { identity, ..ColumnDefinition::new("id", DataType::BigInt, false) };
    let mut txn = db.begin(TransactionMode::default())?;
    let table = txn.create_table(TableDefinition::new("t", vec![column]))?;
    txn.commit()?;
    Ok(table)
}

/// Draws, and notes what it got, until the disk fails; checkpoints and restarts now and then.
fn work(disk: &SimDisk, drawn: &mut Vec<i64>) -> Result<()> {
    let mut db = open(disk)?;
    let table = make(&db)?;
    for turn in 0..24_usize {
        // The mode of the session is none of the numbers' business.
        let mode = TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() };
        drawn.extend(db.begin(mode)?.next_identity_values(table, ColumnId(0), 1 + turn * 5 % 23)?);
        match turn % 9 {
            3 => db.checkpoint()?,
            7 => {
                db.close()?;
                db = open(disk)?;
            }
            _ => {}
        }
    }
    db.close()
}

#[test]
fn a_power_cut_at_every_sync_gives_no_number_twice() {
    let seed = number("MAINSTEM_SIM_SEED", 1);
    let whole = SimDisk::new();
    let mut drawn = Vec::new();
    work(&whole, &mut drawn).unwrap();
    assert_eq!(drawn, (1..=drawn.len() as i64).collect::<Vec<_>>(), "clean ends leave no gap");
    let (mut gaps, mut cuts) = (0, 0);
    for at in 1..=whole.syncs() {
        for tear in 0..3 {
            let disk = SimDisk::new();
            disk.cut_at_sync(at);
            let mut drawn = Vec::new();
            let cut = work(&disk, &mut drawn);
            if disk.is_powered() {
                // On a slow machine the log is fsynced now and then beside the work: not as often this time.
                assert!(cut.is_ok() && disk.syncs() < at, "sync {at}: {cut:?}");
                continue;
            }
            let found = disk.power_cut(seed * 1_009 + tear);
            let db = open(&found).unwrap();
            let Some(table) = db.catalog().table_named("t").map(|table| table.id) else {
                assert!(drawn.is_empty(), "sync {at}: the table is gone, but not its numbers");
                continue;
            };
            let last = drawn.last().copied().unwrap_or(0);
            let txn = db.begin(TransactionMode::default()).unwrap();
            let next = txn.next_identity_values(table, ColumnId(0), 40).unwrap();
            let before: BTreeSet<i64> = drawn.iter().copied().collect();
            let again = next.iter().find(|value| before.contains(value));
            assert_eq!(again, None, "MAINSTEM_SIM_SEED={seed}: cut at sync {at}, tear {tear}: given out twice");
            assert!(next.is_sorted() && next[0] > last);
            gaps += u64::from(next[0] > last + 1);
            cuts += 1;
            assert!(db.verify().is_empty());
            assert!(found.exists("MANIFEST").unwrap());
        }
    }
    assert!(cuts > 30 && gaps > 0, "{cuts} cuts, {gaps} gaps");
}
