//! How long commits, freezes, installs and checkpoints hold the commit lock (contract 2b: at most 1 ms), with many
//! tables, many deltas, and loads and merges of many segments.
//!
//! `cargo run --release -p mainstem-storage --example lock_holds -- [TABLES] [SEGMENTS]` makes TABLES tables (default
//! 1,000) with eight frozen deltas each, then loads, merges, thins out and empties SEGMENTS segments (default 4,000) of
//! a table with eight columns.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;

type Outcome<T> = Result<T, Box<dyn Error>>;

const COLUMNS: usize = 8;
const DELTAS: i64 = 8;
const SEGMENT_ROWS: u32 = 100;

fn definition(name: &str) -> TableDefinition {
    let column = |at| ColumnDefinition::new(format!("c{at}"), DataType::BigInt, false);
    let mut definition = TableDefinition::new(name, (0..COLUMNS).map(column).collect());
    definition.primary_key = vec!["c0".into()];
    definition.options.segment_rows = SEGMENT_ROWS;
    definition
}

fn create(db: &Database, name: &str) -> Outcome<TableId> {
    let mut txn = db.begin(TransactionMode::default())?;
    let id = txn.create_table(definition(name))?;
    txn.commit()?;
    Ok(id)
}

/// Deletes one row in `step`.
fn thin_out(db: &Database, table: TableId, step: i64) -> Outcome<()> {
    let mut txn = db.begin(TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() })?;
    let view = txn.view(table)?;
    let schema = view.schema().clone();
    let mut statement = txn.statement();
    let ids = schema.column_ids().into_iter().take(1).collect();
    for batch in view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(ids) })?.worker() {
        let batch = batch?;
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let refs = batch.column(1).as_primitive::<UInt64Type>().values();
        let gone = ids.iter().zip(refs).filter(|(id, _)| **id % step == 0);
        let gone: Vec<RowRef> = gone.map(|(_, bits)| RowRef::from_bits(*bits)).collect();
        statement.delete(&schema, &gone)?;
    }
    txn.apply(statement)?;
    txn.commit()?;
    Ok(())
}

fn truncate(db: &Database, table: TableId) -> Outcome<()> {
    let mut txn = db.begin(TransactionMode::default())?;
    txn.truncate(table, false)?;
    txn.commit()?;
    Ok(())
}

fn insert(db: &Database, table: TableId, ids: std::ops::Range<i64>, step: usize) -> Outcome<()> {
    let mut txn = db.begin(TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() })?;
    let schema = txn.view(table)?.schema().clone();
    let mut statement = txn.statement();
    let all: Vec<i64> = ids.step_by(step).collect();
    for part in all.chunks(8_192) {
        let column = || Arc::new(part.iter().copied().collect::<Int64Array>()) as ArrayRef;
        statement.insert(&schema, &RecordBatch::try_new(schema.arrow(), (0..COLUMNS).map(|_| column()).collect())?)?;
    }
    txn.apply(statement)?;
    txn.commit()?;
    Ok(())
}

fn measured<T>(db: &Database, what: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    db.take_commit_lock_held_max();
    let start = Instant::now();
    let done = work()?;
    println!(
        "{what}: {:?}, of it at most {:?} under the lock at a time",
        start.elapsed(),
        db.take_commit_lock_held_max()
    );
    Ok(done)
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: i64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (tables, segments) = (number(1_000)?, number(4_000)?);
    let dir = std::env::temp_dir().join(format!("mainstem-lock-holds-{}", std::process::id()));
    let options = OpenOptions::new().background(false);
    let db = Database::open(&dir, options)?;

    let ids = measured(&db, &format!("{tables} tables made"), || {
        (0..tables).map(|at| create(&db, &format!("t{at}"))).collect::<Outcome<Vec<_>>>()
    })?;
    measured(&db, "500 tables in one transaction", || {
        let mut txn = db.begin(TransactionMode::default())?;
        for at in 0..500 {
            txn.create_table(definition(&format!("u{at}")))?;
        }
        Ok(txn.commit()?)
    })?;
    for delta in 0..DELTAS {
        for id in &ids {
            insert(&db, *id, delta..delta + 1, 1)?;
            db.freeze(*id)?;
        }
    }
    println!("{} frozen deltas", tables * DELTAS);
    let first = *ids.first().ok_or("no table")?;
    measured(&db, "a small commit", || insert(&db, first, 100..110, 1))?;
    measured(&db, "a commit of 4,096 rows", || insert(&db, first, 1_000..5_096, 1))?;
    measured(&db, "a freeze", || Ok(db.freeze(first)?))?;
    measured(&db, "an install of nine deltas", || Ok(db.flush(first)?))?;
    measured(&db, "all deltas flushed", || ids.iter().try_for_each(|id| Ok(db.flush(*id)?)))?;
    measured(&db, "a checkpoint", || Ok(db.checkpoint()?))?;

    let large = create(&db, "large")?;
    let rows = segments * i64::from(SEGMENT_ROWS);
    measured(&db, &format!("a load of {segments} segments"), || insert(&db, large, 0..2 * rows, 2))?;
    measured(&db, "a second one", || insert(&db, large, 1..2 * rows, 2))?;
    measured(&db, "their merge", || Ok(db.merge(large)?))?;
    measured(&db, "one row in two deleted", || thin_out(&db, large, 2))?;
    measured(&db, "a checkpoint", || Ok(db.checkpoint()?))?;
    measured(&db, "its TRUNCATE", || truncate(&db, large))?;
    db.close()?;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
