//! Rates of writes through the storage layer alone: what the library adds on top is left out. For profiles: run it
//! under `perf` or `valgrind`.
//!
//! `cargo run --release -p mainstem-storage --example write_rates -- CASE ROWS [THREADS] [OPTIONS]` inserts ROWS rows
//! of a BIGINT key and 16 INTEGERs, in scattered key order. CASE is `single` (a row, a transaction), `statements`
//! (transactions of 100 statements of a row each) or `values` (statements of 100 rows). Or it is `update` (of single
//! rows, ROWS of them, over 100,000 loaded ones), `select` (the same, read) or `batches` (statements of 100,000 rows as
//! Arrow batches). Of `single` the longest stalls are told. With `quiet` nothing runs in the background.

use std::error::Error;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::error::ErrorKind;
use mainstem_storage::ids::{KeyId, TableId};
use mainstem_storage::point::{self, PointTable};
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;
use mainstem_storage::version::TableView;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const INTEGERS: usize = 16;
/// Transactions of a row that take longer are told.
const STALL: Duration = Duration::from_millis(5);
/// Rows of a transaction.
const ROWS: u64 = 100;
/// Rows of a statement of batches, and of a table that is updated or read.
const LOADED: u64 = 100_000;
const OFF: TransactionMode =
    TransactionMode { read_only: false, synchronous: Synchronous::Off, base: mainstem_storage::version::Base::Visible };

/// Keys that look random, each once.
fn key(at: u64) -> i64 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) as i64
}

fn values(key: i64, out: &mut Vec<Value>) {
    out.clear();
    out.push(Value::Int(key));
    out.extend((1..=INTEGERS as i64).map(|column| Value::Int(key.wrapping_mul(column) & 0x3fff_ffff)));
}

fn create(db: &Database) -> Outcome<TableId> {
    let mut columns = vec![ColumnDefinition::new("k", DataType::BigInt, false)];
    columns.extend((1..=INTEGERS).map(|at| ColumnDefinition::new(format!("c{at}"), DataType::Integer, true)));
    let mut definition = TableDefinition::new("t", columns);
    definition.primary_key = vec!["k".into()];
    let mut txn = db.begin(OFF)?;
    let id = txn.create_table(definition)?;
    txn.commit()?;
    Ok(id)
}

fn keyed(db: &Database, id: TableId) -> Outcome<PointTable> {
    let txn = db.begin(OFF)?;
    Ok(PointTable::new(txn.view(id)?.schema()).ok_or("no key")?)
}

fn single(db: &Database, id: TableId, keys: &[i64]) -> Outcome<()> {
    let (table, mut row, mut encoded) = (keyed(db, id)?, Vec::new(), Vec::new());
    let (begun, mut last, mut stalls) = (Instant::now(), Instant::now(), Vec::new());
    for &key in keys {
        let took = last.elapsed();
        if took > STALL {
            stalls.push((begun.elapsed() - took, took));
        }
        last = Instant::now();
        loop {
            let txn = db.begin(OFF)?;
            values(key, &mut row);
            let mut new = table.new_rows();
            new.push_values(&row)?;
            encoded.clear();
            table.encode_key_of(new.row(0), &mut encoded);
            let view = txn.view(id)?;
            txn.check_free(&table, &view, &encoded)?;
            match txn.write_row(&table, &view, &encoded, None, new) {
                Ok(_) => break,
                // A merge came between: the statement is run again.
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
    stalls.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    println!(
        "{} of more than {STALL:?}; the longest, and when they began: {:.0?}",
        stalls.len(),
        stalls.get(..8).unwrap_or(&stalls)
    );
    Ok(())
}

fn statements(db: &Database, id: TableId, keys: &[i64], rows: usize) -> Outcome<()> {
    let (table, mut row) = (keyed(db, id)?, Vec::new());
    for keys in keys.chunks(ROWS as usize) {
        let mut txn = db.begin(OFF)?;
        for keys in keys.chunks(rows) {
            let mut new = table.new_rows();
            for &key in keys {
                values(key, &mut row);
                new.push_values(&row)?;
            }
            let mut writes = txn.statement();
            writes.insert_rows(&table, new)?;
            txn.apply(writes)?;
        }
        txn.commit()?;
    }
    Ok(())
}

fn batches(db: &Database, id: TableId, keys: &[i64]) -> Outcome<()> {
    for keys in keys.chunks(LOADED as usize) {
        let mut txn = db.begin(OFF)?;
        let schema = txn.view(id)?.schema().clone();
        let mut writes = txn.statement();
        for part in keys.chunks(8_192) {
            let integer = |column: i64| -> ArrayRef {
                Arc::new(part.iter().map(|key| (key.wrapping_mul(column) & 0x3fff_ffff) as i32).collect::<Int32Array>())
            };
            let mut columns: Vec<ArrayRef> = vec![Arc::new(part.iter().copied().collect::<Int64Array>())];
            columns.extend((1..=INTEGERS as i64).map(integer));
            writes.insert(&schema, &RecordBatch::try_new(schema.arrow(), columns)?)?;
        }
        txn.apply(writes)?;
        txn.commit()?;
    }
    Ok(())
}

fn update(db: &Database, id: TableId, keys: &[i64]) -> Outcome<()> {
    let (table, mut row, mut encoded) = (keyed(db, id)?, Vec::new(), Vec::new());
    let positions: Vec<usize> = (0..=INTEGERS).collect();
    for (at, &key) in keys.iter().enumerate() {
        let txn = db.begin(OFF)?;
        encoded.clear();
        table.encode(&[Value::Int(key)], &mut encoded)?;
        let view = txn.view(id)?;
        let found = txn.find_key(&view, KeyId::PRIMARY, &encoded)?.ok_or("no row")?;
        row.clear();
        view.read_row(found, &positions, &mut row)?;
        if let Some(value) = row.get_mut(1) {
            *value = Value::Int(at as i64 & 0xffff);
        }
        let mut new = table.new_rows();
        new.push_values(&row)?;
        txn.write_row(&table, &view, &encoded, Some(found), new)?;
    }
    Ok(())
}

fn select(db: &Database, id: TableId, keys: &[i64]) -> Outcome<()> {
    let (table, mut row, mut encoded) = (keyed(db, id)?, Vec::new(), Vec::new());
    let positions: Vec<usize> = (0..=INTEGERS).collect();
    for &key in keys {
        let snapshot = Arc::new(db.snapshot()?);
        encoded.clear();
        table.encode(&[Value::Int(key)], &mut encoded)?;
        let view = TableView::at(&snapshot, id).ok_or("no table")?;
        let found = point::find(&view, KeyId::PRIMARY, &encoded, |_| true)?.ok_or("no row")?;
        row.clear();
        view.read_row(found, &positions, &mut row)?;
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().ok_or("which case?")?;
    let rows: u64 = arguments.next().ok_or("how many rows?")?.parse()?;
    let threads: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let quiet = arguments.any(|text| text == "quiet");
    let dir = std::env::temp_dir().join(format!("mainstem-write-rates-{}", std::process::id()));
    let db = Database::open(&dir, OpenOptions::new().background(!quiet))?;
    let id = create(&db)?;
    let over_loaded = matches!(case.as_str(), "update" | "select");
    if over_loaded {
        batches(&db, id, &(0..LOADED).map(key).collect::<Vec<_>>())?;
        std::thread::sleep(Duration::from_millis(200));
    }
    let ready = Barrier::new(threads as usize);
    let lane = |thread: u64| -> Outcome<Duration> {
        let number = |at: u64| at * threads + thread;
        let keys: Vec<i64> =
            (0..rows / threads).map(|at| key(if over_loaded { number(at) % LOADED } else { number(at) })).collect();
        ready.wait();
        let start = Instant::now();
        match case.as_str() {
            "single" => single(&db, id, &keys),
            "statements" => statements(&db, id, &keys, 1),
            "values" => statements(&db, id, &keys, ROWS as usize),
            "batches" => batches(&db, id, &keys),
            "update" => update(&db, id, &keys),
            "select" => select(&db, id, &keys),
            _ => Err("no such case".into()),
        }?;
        Ok(start.elapsed())
    };
    let took = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..threads).map(|thread| scope.spawn(move || lane(thread))).collect();
        let ends = lanes.into_iter().map(|lane| lane.join().map_err(|_| "a thread panicked")?);
        ends.collect::<Outcome<Vec<_>>>()
    })?;
    let took = took.into_iter().max().unwrap_or_default();
    println!("{case}, {threads} threads: {:.0} rows/s", rows as f64 / took.as_secs_f64());
    println!("longest under the commit lock: {:?}", db.take_commit_lock_held_max());
    db.close()?;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
