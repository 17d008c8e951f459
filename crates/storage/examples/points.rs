//! Nanoseconds a single-row operation, storage alone: by key, through transactions of one statement each.
//!
//! `cargo run --release -p mainstem-storage --example points [ROWS]`

#![allow(clippy::expect_used, reason = "a measurement ends where something fails")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use mainstem_storage::ErrorKind;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::point::KeyedTable;
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, TableOptions};
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;
use mainstem_storage::version::Base;

const INTEGERS: usize = 16;

fn scatter(i: u64, n: u64) -> u64 {
    // A bijection of 0..2^bits, walked until it falls inside 0..n.
    let bits = 64 - (n - 1).leading_zeros();
    let mask = (1u64 << bits) - 1;
    let mut x = i;
    loop {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
        x ^= x >> (bits / 2).max(1);
        x = x.wrapping_mul(0xD134_2543_DE82_EF95) & mask;
        if x < n {
            return x;
        }
    }
}

fn batch(schema: &arrow_schema::SchemaRef, keys: &[i64]) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec()))];
    for c in 0..INTEGERS {
        columns.push(Arc::new(keys.iter().map(|k| (*k as i32).wrapping_mul(c as i32 + 1)).collect::<Int32Array>()));
    }
    RecordBatch::try_new(schema.clone(), columns).expect("a batch")
}

fn mode(synchronous: Synchronous) -> TransactionMode {
    TransactionMode { read_only: false, synchronous, base: Base::Applied }
}

fn report(name: &str, mut times: Vec<u64>, took: Duration) {
    let n = times.len();
    times.sort_unstable();
    let at = |q: f64| times[((n as f64 * q) as usize).min(n - 1)] as f64 / 1e3;
    println!(
        "{name:<28} {:>10.0} /s   p50 {:>7.2} us  p99 {:>7.2} us  p99.9 {:>8.1} us  max {:>9.0} us",
        n as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn timed(name: &str, n: u64, mut work: impl FnMut(u64)) {
    let mut times = Vec::with_capacity(n as usize);
    let started = Instant::now();
    for i in 0..n {
        let before = Instant::now();
        work(i);
        times.push(before.elapsed().as_nanos() as u64);
    }
    report(name, times, started.elapsed());
}

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::open(directory.path(), OpenOptions { create: true, ..OpenOptions::default() }).expect("open");
    let mut columns = vec![ColumnDefinition { name: "k".into(), data_type: DataType::BigInt, nullable: false }];
    for c in 0..INTEGERS {
        columns.push(ColumnDefinition { name: format!("c{c}"), data_type: DataType::Integer, nullable: true });
    }
    let definition = TableDefinition {
        name: "t".into(),
        columns,
        primary_key: vec!["k".into()],
        sort_key: None,
        layout: None,
        options: TableOptions::default(),
    };
    let mut txn = db.begin(mode(Synchronous::Off)).expect("begin");
    let table = txn.create_table(definition).expect("create");
    txn.commit().expect("commit");
    let schema = db.begin(mode(Synchronous::Off)).expect("begin").view(table).expect("a view").schema().clone();
    let started = Instant::now();
    let keys: Vec<i64> = (0..rows).map(|i| scatter(i, rows) as i64 * 2).collect();
    let mut txn = db.begin(mode(Synchronous::Off)).expect("begin");
    let mut writes = txn.statement();
    for chunk in keys.chunks(8192) {
        writes.insert(&schema, &batch(&schema.arrow(), chunk)).expect("an insert");
    }
    txn.apply(writes).expect("apply");
    txn.commit().expect("commit");
    println!("loaded {rows} rows in {:?}", started.elapsed());

    let keyed = KeyedTable::new(&schema).expect("a key");
    let positions: Vec<usize> = (0..=INTEGERS).collect();
    let n = 300_000.min(rows);
    let encoded = |key: i64| {
        let mut encoded = Vec::with_capacity(16);
        keyed.encode(&[Value::Int(key)], &mut encoded).expect("a key");
        encoded
    };
    let select = |i: u64| {
        let key = scatter(i, rows) as i64 * 2;
        let txn = db.begin(TransactionMode { read_only: true, ..TransactionMode::default() }).expect("begin");
        let view = txn.view(table).expect("a view");
        let row = txn.find_key(&view, &encoded(key)).expect("find").expect("a row");
        let mut values = Vec::with_capacity(positions.len());
        view.read_row(row, &positions, &mut values).expect("values");
        black_box(values);
    };
    let row_of = |key: i64| -> Vec<Value> {
        std::iter::once(Value::Int(key))
            .chain((0..INTEGERS).map(|c| Value::Int(i64::from(key as i32 ^ c as i32))))
            .collect()
    };
    // As a session runs a short statement: again when something came in between.
    let write = |key: i64, delete: bool, insert: bool| {
        let encoded = encoded(key);
        loop {
            let txn = db.begin(mode(Synchronous::Off)).expect("begin");
            let view = txn.view(table).expect("a view");
            let row = delete.then(|| txn.find_key(&view, &encoded).expect("find").expect("a row"));
            if let (Some(row), true) = (row, insert) {
                let mut values = Vec::with_capacity(positions.len());
                view.read_row(row, &positions, &mut values).expect("values");
                black_box(values);
            }
            let values = insert.then(|| row_of(key));
            match txn.write_row(&keyed, &view, &encoded, row, values.as_deref()) {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => return done.map(|_| ()).expect("a write"),
            }
        }
    };
    for _ in 0..2 {
        timed("begin, roll back", n, |_| {
            black_box(db.begin(mode(Synchronous::Off)).expect("begin"));
        });
        timed("select by key", n, select);
        timed("insert, off", n, |i| write(scatter(i, rows) as i64 * 2 + 1, false, true));
        timed("update, off", n, |i| write(scatter(i, rows) as i64 * 2, true, true));
        timed("select by key", n, select);
        timed("delete, off", n, |i| write(scatter(i, rows) as i64 * 2 + 1, true, false));
    }
}
