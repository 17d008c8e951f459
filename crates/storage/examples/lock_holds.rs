//! How long commits, freezes, installs and checkpoints hold the commit lock (contract 2b: at most 1 ms), with many tables, many
//! deltas, and loads and merges of many segments.
//!
//! `cargo run --release -p mainstem-storage --example lock_holds -- [TABLES] [SEGMENTS]` makes TABLES tables (default 1,000) with eight
//! frozen deltas each, then loads and merges SEGMENTS segments (default 4,000) of a table with eight columns.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;

type Outcome<T> = Result<T, Box<dyn Error>>;

const COLUMNS: usize = 8;
const DELTAS: i64 = 8;
const SEGMENT_ROWS: u32 = 100;

fn create(db: &Database, name: &str) -> Outcome<TableId> {
    let column = |at| ColumnDefinition::new(format!("c{at}"), DataType::BigInt, false);
    let mut definition = TableDefinition::new(name, (0..COLUMNS).map(column).collect());
    definition.primary_key = vec!["c0".into()];
    definition.options.segment_rows = SEGMENT_ROWS;
    let mut txn = db.begin(TransactionMode::default())?;
    let id = txn.create_table(definition)?;
    txn.commit()?;
    Ok(id)
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
    let options = OpenOptions { background: false, ..OpenOptions::default() };
    let db = Database::open(&dir, options)?;

    let ids = measured(&db, &format!("{tables} tables made"), || {
        (0..tables).map(|at| create(&db, &format!("t{at}"))).collect::<Outcome<Vec<_>>>()
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
    measured(&db, "a freeze", || Ok(db.freeze(first)?))?;
    measured(&db, "an install of nine deltas", || Ok(db.flush(first)?))?;
    measured(&db, "a checkpoint, all deltas flushed first", || Ok(db.checkpoint()?))?;

    let large = create(&db, "large")?;
    let rows = segments * i64::from(SEGMENT_ROWS);
    measured(&db, &format!("a load of {segments} segments"), || insert(&db, large, 0..2 * rows, 2))?;
    measured(&db, "a second one", || insert(&db, large, 1..2 * rows, 2))?;
    measured(&db, "their merge", || Ok(db.merge(large)?))?;
    db.close()?;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
