//! How long one commit of a very large, scattered delete holds the commit lock (contract 2b: at most 1 ms), and what it
//! costs outside of it.
//!
//! `cargo run -p mainstem-storage --example large_delete -- [SEGMENTS]` loads SEGMENTS segments of 131,072 rows
//! (default 40), deletes 95 % of the rows at random in one transaction, and opens the database again. 400 segments are
//! 50 million deletes.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::limits::{BATCH_ROWS, SEGMENT_ROWS_DEFAULT};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::{Transaction, TransactionMode};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Whether row `id` stays: one in twenty, without a pattern.
fn stays(id: i64) -> bool {
    (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (1 << 32) / 20
}

fn definition() -> TableDefinition {
    TableDefinition::new("t", vec![ColumnDefinition::new("id", DataType::BigInt, false)])
}

fn load(db: &Database, rows: i64) -> Outcome<TableId> {
    let mut txn = db.begin(TransactionMode::default())?;
    let table = txn.create_table(definition())?;
    let schema = txn.view(table)?.schema().clone();
    let mut statement = txn.statement();
    for start in (0..rows).step_by(BATCH_ROWS) {
        let ids: Int64Array = (start..rows.min(start + BATCH_ROWS as i64)).collect();
        statement.insert(&schema, &RecordBatch::try_new(schema.arrow(), vec![Arc::new(ids)])?)?;
    }
    txn.apply(statement)?;
    txn.commit()?;
    Ok(table)
}

/// Deletes what does not stay; returns how many rows.
fn delete(txn: &mut Transaction, table: TableId) -> Outcome<u64> {
    let view = txn.view(table)?;
    let schema = view.schema().clone();
    let mut statement = txn.statement();
    for batch in view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(schema.column_ids()) })?.worker() {
        let batch = batch?;
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let refs = batch.column(1).as_primitive::<UInt64Type>().values();
        let gone = ids.iter().zip(refs).filter(|(id, _)| !stays(**id));
        let gone: Vec<RowRef> = gone.map(|(_, bits)| RowRef::from_bits(*bits)).collect();
        statement.delete(&schema, &gone)?;
    }
    let rows = statement.deleted();
    txn.apply(statement)?;
    Ok(rows)
}

fn timed<T>(what: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let start = Instant::now();
    let result = work()?;
    println!("{what:<44}{:>12.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(result)
}

fn main() -> Outcome<()> {
    let segments: i64 = std::env::args().nth(1).map_or(Ok(40), |text| text.parse())?;
    let rows = segments * i64::from(SEGMENT_ROWS_DEFAULT);
    let dir = tempfile::tempdir()?;
    let options = || OpenOptions::new().background(false);
    let db = Database::open(dir.path(), options())?;
    let table = timed(&format!("load {rows} rows, {segments} segments"), || load(&db, rows))?;
    let mut txn = db.begin(TransactionMode::default())?;
    let deleted = timed("find and name the rows to delete", || delete(&mut txn, table))?;
    db.take_commit_lock_held_max();
    timed(&format!("commit {deleted} deletes"), || Ok(txn.commit()?))?;
    let held: Duration = db.take_commit_lock_held_max();
    println!("{:<44}{:>12.3} ms", "  of it under the commit lock", held.as_secs_f64() * 1e3);
    let (files, bytes) = db.files_aside()?;
    println!("{:<44}{:>12.1} KiB", format!("  written aside, in {files} file"), bytes as f64 / 1024.0);
    db.close()?;
    let db = timed("open again, the deletes replayed", || Ok(Database::open(dir.path(), options())?))?;
    let left = db.begin(TransactionMode::default())?.view(table)?.statistics().rows;
    if left != (0..rows).filter(|id| stays(*id)).count() as u64 || left + deleted != rows as u64 {
        return Err(format!("{left} rows are left of {rows}").into());
    }
    Ok(())
}
