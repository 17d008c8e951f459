//! Rows in bulk: the appender, Arrow batches, COPY.
//!
//! `cargo run -p mainstem --example appender`

#![allow(clippy::unwrap_used, reason = "an example ends where it does not show what it is to show")]

use std::sync::Arc;
use std::time::Instant;

use mainstem::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use mainstem::{Database, Result};

const ROWS: i64 = 200_000;

fn main() -> Result<()> {
    let connection = Database::in_memory()?.connect()?;
    connection.execute(
        "CREATE TABLE reading (sensor INTEGER, at BIGINT, value DOUBLE PRECISION NOT NULL, PRIMARY KEY (sensor, at))",
    )?;

    // Row by row. Rows are kept until they are many, or until `flush` or `finish`.
    let start = Instant::now();
    let mut appender = connection.appender("reading")?;
    for at in 0..ROWS {
        appender.append_row(((at % 10) as i32, at, at as f64 / 10.0))?;
    }
    assert_eq!(appender.finish()?, ROWS as u64);
    println!("{ROWS} rows in {:?}", start.elapsed());

    // Whole Arrow batches.
    let columns: [(&str, ArrayRef); 3] = [
        ("sensor", Arc::new(Int32Array::from(vec![77, 77]))),
        ("at", Arc::new(Int64Array::from(vec![1, 2]))),
        ("value", Arc::new(Float64Array::from(vec![0.5, 1.5]))),
    ];
    let mut appender = connection.appender("reading")?;
    appender.append_batch(&RecordBatch::try_from_iter(columns)?)?;
    assert_eq!(appender.finish()?, 2);

    // Constraints hold here too: a key twice, and nothing of that flush is inserted.
    let mut appender = connection.appender("reading")?;
    appender.append_row((88, 1_i64, 1.0))?;
    appender.append_row((77, 1_i64, 1.0))?;
    assert_eq!(appender.finish().unwrap_err().sqlstate(), "23505");

    // In a transaction, all that is appended is committed or undone together.
    let transaction = connection.transaction()?;
    let mut appender = transaction.appender("reading")?;
    appender.append_row((99, 1_i64, 1.0))?;
    appender.finish()?;
    transaction.rollback();

    // COPY reads CSV, or PostgreSQL's text, from anything that can be read.
    let csv = "sensor,at,value\n66,1,2.5\n66,2,3.5\n";
    assert_eq!(connection.copy_in("COPY reading FROM STDIN (FORMAT csv, HEADER)", csv.as_bytes())?, 2);
    let mut out = Vec::new();
    connection.copy_out(
        "COPY (SELECT * FROM reading WHERE sensor = 66 ORDER BY at) TO STDOUT (FORMAT csv, HEADER)",
        &mut out,
    )?;
    assert_eq!(String::from_utf8_lossy(&out), "sensor,at,value\n66,1,2.5\n66,2,3.5\n");

    let count: i64 = connection.query_row("SELECT count(*) FROM reading", ())?.get(0)?;
    assert_eq!(count, ROWS + 4);
    Ok(())
}
