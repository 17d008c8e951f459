//! Part `rows`: the first answer of a database with many rows.
//!
//! Comes in: the plan. Goes out: for each of a few queries, the time from the beginning of an opening to its answer.
//!
//! 1. The table is loaded by INSERT ... SELECT, a few million rows a statement, and merged; the database is closed.
//! 2. Each round a process opens it for each query.

use std::time::Instant;

use mainstem::Database;

use super::Plan;
use super::child;
use crate::experiment::{Failure, Settings};
use crate::report::{Figure, Report, Unit};
use crate::suite::{numbers, settle};

/// Milliseconds from the beginning of an opening to its first answer.
const TOTAL_MS: f64 = 100.0;
/// Rows that one statement loads.
const LOADED_ROWS: u64 = 5_000_000;
/// Rows of a range of keys.
const RANGE: u64 = 10_000;

/// The value in the row with key `k`.
fn value(k: u64) -> i64 {
    (k * 7_919 % 1_000_003) as i64
}

/// A query with its answer, and whether its time is promised.
struct Query {
    case: &'static str,
    sql: String,
    answer: i64,
    is_promised: bool,
}

fn queries(rows: u64) -> [Query; 4] {
    let (from, to) = (rows / 3, (rows / 3 + RANGE).min(rows));
    let sum = "SELECT CAST(sum(v) AS BIGINT) FROM t";
    let sum_of = |keys: std::ops::Range<u64>| keys.map(value).sum::<i64>();
    let query = |case, sql, answer, is_promised| Query { case, sql, answer, is_promised };
    [
        query("row by key", format!("SELECT v FROM t WHERE k = {from}"), value(from), true),
        query("count(*)", "SELECT count(*) FROM t".into(), rows as i64, true),
        query("sum of 10,000 rows", format!("{sum} WHERE k >= {from} AND k < {to}"), sum_of(from..to), true),
        query("sum of all rows", sum.into(), sum_of(0..rows), false),
    ]
}

/// Measures the part.
///
/// # Errors
/// When the table cannot be loaded, or a process not be started; a wrong answer ends it, too.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let folder = directory.path().join("db");
    report.progress(format_args!("loading {} rows", plan.rows));
    let start = Instant::now();
    let database = Database::open(&folder)?;
    let connection = database.connect()?;
    connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v INTEGER, d DOUBLE PRECISION)")?;
    for first in (0..plan.rows).step_by(LOADED_ROWS as usize) {
        let rows = numbers(LOADED_ROWS.min(plan.rows - first));
        connection.execute(&format!(
            "INSERT INTO t SELECT x + {first}, (x + {first}) * 7919 % 1000003, sqrt(CAST(x AS DOUBLE PRECISION)) \
             FROM {rows}"
        ))?;
    }
    let rate = plan.rows as f64 / start.elapsed().as_secs_f64();
    report.add(Figure::once("INSERT ... SELECT", "rows", Unit::PerSecond, rate))?;
    settle(&database);
    drop(connection);
    database.close()?;
    for query in queries(plan.rows) {
        let case = format!("{} rows, {}", plan.rows, query.case);
        let mut openings = Vec::new();
        for round in 1..=plan.rounds {
            report.progress(format_args!("{case}, round {round}"));
            let opened = child::open_and_query(settings, &folder, &query.sql)?;
            if opened.answer != [query.answer] {
                return Err(Failure::Wrong(format!("{case}: {:?} instead of {}", opened.answer, query.answer)));
            }
            openings.push(opened);
        }
        child::report_openings(&case, &openings, query.is_promised.then_some(TOTAL_MS), None, report)?;
    }
    Ok(())
}
