//! Single-row writes by key, each its own transaction, on a table of any size: rates, latencies, and what the block
//! cache read for them.
//!
//! `cargo run --release -p mainstem-storage --example row_writes -- [ROWS [SECONDS [MEMORY_MIB]]]` loads ROWS rows
//! (default 5,000,000) of a BIGINT key and 16 INTEGERs in random order of their keys. Then it inserts, updates and
//! deletes random rows for SECONDS each (default 10), with `synchronous = off` and merges running, within MEMORY_MIB of
//! `memory_limit` (default 4,096).

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use mainstem_storage::ErrorKind;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::limits::BATCH_ROWS;
use mainstem_storage::memory::MemoryKind;
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;

type Outcome<T> = Result<T, Box<dyn Error>>;

const INTEGERS: usize = 16;

fn mixed(number: u64) -> u64 {
    mainstem_kernels::hash::hash_u64(number)
}

/// Position `at` in a random order of `0..rows`.
fn shuffled(at: u64, rows: u64) -> u64 {
    let bits = rows.next_power_of_two().trailing_zeros().next_multiple_of(2);
    let (half, mask) = (bits / 2, (1 << (bits / 2)) - 1);
    let mut at = at;
    loop {
        for round in 0..4 {
            let (left, right) = (at >> half, at & mask);
            at = right << half | (left ^ mixed(right << 8 | round) & mask);
        }
        if at < rows {
            return at;
        }
    }
}

fn load(db: &Database, rows: u64) -> Outcome<TableId> {
    let mut columns = vec![ColumnDefinition::new("k", DataType::BigInt, false)];
    columns.extend((0..INTEGERS).map(|c| ColumnDefinition::new(format!("c{c}"), DataType::Integer, true)));
    let mut txn = db.begin(TransactionMode::default())?;
    let table =
        txn.create_table(TableDefinition { primary_key: vec!["k".into()], ..TableDefinition::new("t", columns) })?;
    let schema = txn.view(table)?.schema().clone();
    let mut statement = txn.statement();
    for start in (0..rows).step_by(BATCH_ROWS) {
        let keys: Vec<u64> = (start..rows.min(start + BATCH_ROWS as u64)).map(|at| shuffled(at, rows) * 16).collect();
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(keys.iter().map(|k| *k as i64)))];
        for c in 0..INTEGERS as u64 {
            let value = |k: &u64| (mixed(*k + c) % 1_000_000_007) as i32;
            arrays.push(Arc::new(Int32Array::from_iter_values(keys.iter().map(value))));
        }
        statement.insert(&schema, &RecordBatch::try_new(schema.arrow(), arrays)?)?;
    }
    txn.apply(statement)?;
    txn.commit()?;
    Ok(table)
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Insert,
    Update,
    Delete,
}

/// One row with `key` is written.
fn write(db: &Database, table: &PointTable, work: Work, key: u64, number: u64) -> mainstem_storage::Result<()> {
    let txn = db.begin(TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() })?;
    let view = txn.view(table.schema().id)?;
    let mut encoded = Vec::with_capacity(16);
    table.encode(&[Value::Int(key as i64)], &mut encoded)?;
    let mut new = table.new_rows();
    let mut old = None;
    match work {
        Work::Insert => {
            let mut values = vec![Value::Int(key as i64)];
            values.extend((0..INTEGERS as u64).map(|c| Value::Int((mixed(key + c) % 1_000_000_007) as i64)));
            new.push_values(&values)?;
            txn.check_free(table, &view, &encoded)?;
        }
        Work::Update | Work::Delete => {
            let row = txn.find_key(&view, table.found_by()?, &encoded)?;
            let row = row.ok_or_else(|| mainstem_storage::Error::internal("no such row"))?;
            old = Some(row);
            if work == Work::Update {
                let mut values = Vec::with_capacity(INTEGERS + 1);
                view.read_row(row, &(0..=INTEGERS).collect::<Vec<_>>(), &mut values)?;
                values[1] = Value::Int((mixed(number) % 1_000_000_007) as i64);
                new.push_values(&values)?;
            }
        }
    }
    txn.write_row(table, &view, &encoded, old, new)?;
    Ok(())
}

fn main() -> Outcome<()> {
    let number = |at: usize, default: u64| std::env::args().nth(at).map_or(Ok(default), |text| text.parse());
    let (rows, seconds, mib) = (number(1, 5_000_000)?, number(2, 10)?, number(3, 4_096)?);
    let dir = tempfile::tempdir_in(".")?;
    let db = Database::open(dir.path(), OpenOptions::new().memory_limit(mib << 20))?;
    let start = Instant::now();
    let id = load(&db, rows)?;
    println!("{rows} rows loaded in {:.1} s", start.elapsed().as_secs_f64());
    let schema = db.begin(TransactionMode::default())?.view(id)?.schema().clone();
    let table = PointTable::new(&schema).ok_or("no key")?;
    let mut inserted = Vec::new();
    for (name, work) in [("INSERT", Work::Insert), ("UPDATE", Work::Update), ("DELETE", Work::Delete)] {
        let before = db.cache_stats();
        let (mut times, start) = (Vec::new(), Instant::now());
        let mut last = start;
        for number in 0.. {
            let key = match work {
                Work::Insert => mixed(number) % (rows * 16) / 16 * 16 + 1 + number % 15,
                Work::Update => shuffled(number % rows, rows) * 16,
                Work::Delete => match inserted.get(number as usize) {
                    Some(key) => *key,
                    None => break,
                },
            };
            loop {
                match write(&db, &table, work, key, number) {
                    Ok(()) if work == Work::Insert => inserted.push(key),
                    Ok(()) => {}
                    Err(e) if e.kind() == ErrorKind::Conflict => continue,
                    // The same key twice.
                    Err(e) if e.kind() == ErrorKind::Constraint => {}
                    Err(e) => return Err(e.into()),
                }
                break;
            }
            let now = Instant::now();
            times.push((now - last).as_nanos() as u64);
            last = now;
            if now - start > Duration::from_secs(seconds) {
                break;
            }
        }
        let (elapsed, after) = (start.elapsed().as_secs_f64(), db.cache_stats());
        times.sort_unstable();
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
        let used =
            db.memory().into_iter().find(|m| m.kind == MemoryKind::BlockCache).map_or((0, 0), |m| (m.bytes, m.limit));
        println!(
            "{name}: {:.0}/s; p50 {:.1}, p99 {:.1}, p99.9 {:.0}, worst {:.0} us; {} blocks ({} MiB), {} page reads ({} MiB); cache {} of {} MiB",
            times.len() as f64 / elapsed,
            at(0.5),
            at(0.99),
            at(0.999),
            at(0.999_999_9),
            after.blocks_read - before.blocks_read,
            (after.block_bytes_read - before.block_bytes_read) >> 20,
            after.page_reads - before.page_reads,
            (after.page_bytes_read - before.page_bytes_read) >> 20,
            used.0 >> 20,
            used.1 >> 20,
        );
    }
    db.close()?;
    Ok(())
}
