//! Analytical queries, alone and beside the writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use mainstem::{Connection, Database};

use super::generate::panicked;
use super::latencies::Latencies;
use super::writer::{self, Size, Written};
use super::{Cancel, Outcome, progress, verify};

/// A query of TPC-H.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Its number in TPC-H.
    pub name: &'static str,
    /// What it asks, in short.
    pub asks: &'static str,
    sql: &'static str,
}

/// Scans with little and much arithmetic, joins of two to six tables, and a large grouping: the same texts as in the
/// SQL logic tests.
pub const QUERIES: [Query; 6] = [
    Query { name: "Q1", asks: "sums over nearly all line items", sql: include_str!("../../../../slt/tpch/q01.sql") },
    Query { name: "Q3", asks: "open orders worth most", sql: include_str!("../../../../slt/tpch/q03.sql") },
    Query { name: "Q5", asks: "revenue by nation, six tables", sql: include_str!("../../../../slt/tpch/q05.sql") },
    Query { name: "Q6", asks: "one sum over few line items", sql: include_str!("../../../../slt/tpch/q06.sql") },
    Query { name: "Q12", asks: "late line items by ship mode", sql: include_str!("../../../../slt/tpch/q12.sql") },
    Query { name: "Q18", asks: "orders of large quantity", sql: include_str!("../../../../slt/tpch/q18.sql") },
];

/// Fewest rounds without the writer.
const ROUNDS_MIN: u64 = 5;
/// Time of the rounds before them, at least one, that warm up and do not count: what loading has left to merges goes on
/// beside them, and would otherwise be held against the queries that are said to be alone.
const WARM_TIME: Duration = Duration::from_secs(2);
/// Time from which on no further round begins without the writer.
const ALONE_TIME: Duration = Duration::from_secs(3);

/// Times of [`QUERIES`], in their order.
pub type QueryTimes = Vec<Latencies>;

/// Queries and writer side by side.
#[derive(Debug)]
pub struct Together {
    /// Times of the queries.
    pub queries: QueryTimes,
    /// What the writer did.
    pub written: Written,
    /// How often orders were asked to agree with their line items, in one statement.
    pub probes: u64,
    /// Where they did not.
    pub wrong: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

/// Runs the queries with nobody else.
///
/// # Errors
/// A failed query; Ctrl-C.
pub fn alone(connection: &Connection, cancel: &Cancel) -> Outcome<QueryTimes> {
    let bar = progress::steps("Querying", (ROUNDS_MIN + 1) * QUERIES.len() as u64);
    rounds(connection, 1, WARM_TIME, &bar, cancel)?;
    let times = rounds(connection, ROUNDS_MIN, ALONE_TIME, &bar, cancel)?;
    bar.finish_and_clear();
    Ok(times)
}

/// Runs all queries at least `least` times, and until `time` has passed.
fn rounds(
    connection: &Connection,
    least: u64,
    time: Duration,
    bar: &ProgressBar,
    cancel: &Cancel,
) -> Outcome<QueryTimes> {
    let mut times = vec![Latencies::default(); QUERIES.len()];
    let (start, mut round) = (Instant::now(), 0);
    while round < least || start.elapsed() < time {
        for (query, times) in QUERIES.iter().zip(&mut times) {
            cancel.check()?;
            bar.set_message(query.name);
            times.push(time_of(connection, query)?);
            bar.inc(1);
        }
        round += 1;
    }
    Ok(times)
}

/// Runs the queries in a loop for `seconds`, all of them at least once, while a writer writes.
///
/// # Errors
/// A failed query or transaction; a write that met other rows than the ledger knows; Ctrl-C.
pub fn beside_writer(database: &Database, size: Size, seconds: Duration, cancel: &Cancel) -> Outcome<Together> {
    let reader = cancel.connect(database)?;
    let writer = cancel.connect(database)?;
    let done = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let written = writer::write(&writer, size, &done, cancel);
            // Queries go on without a writer only until they notice.
            done.store(true, Ordering::SeqCst);
            written
        });
        let read = read(&reader, seconds, &done, cancel);
        done.store(true, Ordering::SeqCst);
        let written = writing.join().unwrap_or_else(|_| Err(panicked("the writer")))?;
        let Read { queries, probes, wrong } = read?;
        Ok(Together { queries, written, probes, wrong, time: start.elapsed() })
    })
}

/// What the loop of queries brought.
struct Read {
    queries: QueryTimes,
    probes: u64,
    wrong: Vec<String>,
}

fn read(connection: &Connection, seconds: Duration, done: &AtomicBool, cancel: &Cancel) -> Outcome<Read> {
    let bar = progress::steps("Both", u64::try_from(seconds.as_millis()).unwrap_or(u64::MAX));
    let start = Instant::now();
    let mut read = Read { queries: vec![Latencies::default(); QUERIES.len()], probes: 0, wrong: Vec::new() };
    let mut first = true;
    while first || start.elapsed() < seconds {
        for (query, times) in QUERIES.iter().zip(&mut read.queries) {
            cancel.check()?;
            if done.load(Ordering::SeqCst) || !first && start.elapsed() >= seconds {
                break;
            }
            bar.set_message(query.name);
            times.push(time_of(connection, query)?);
            bar.set_position(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
        if done.load(Ordering::SeqCst) {
            break;
        }
        read.wrong.extend(verify::disagreeing(connection)?.map(|what| format!("beside the writer: {what}")));
        read.probes += 1;
        first = false;
    }
    bar.finish_and_clear();
    Ok(read)
}

/// From asking to the last row.
fn time_of(connection: &Connection, query: &Query) -> Outcome<Duration> {
    let start = Instant::now();
    for batch in connection.query(query.sql)? {
        batch?;
    }
    Ok(start.elapsed())
}
