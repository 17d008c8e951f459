//! Many rows at once: transactions of 100 rows into the large table, and the appender into an empty one.

use std::time::{Duration, Instant};

use mainstem::ValueRef;

use super::bench::{Bench, append};
use super::rows::{self, COLUMNS};
use crate::duel::{Duel, Sample};
use crate::experiment::Failure;
use crate::latency::Recorder;
use crate::peers::Engine;
use crate::report::Promise;

const PEERS: [Engine; 2] = [Engine::SqliteMemory, Engine::DuckDbMemory];
/// Rows of a transaction.
const ROWS: usize = 100;

/// How the rows of a transaction come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// BEGIN, a statement a row, COMMIT.
    Statements,
    /// One statement with all of them.
    Values,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let (mut statements, mut values, mut appended) = (Duel::default(), Duel::default(), Duel::default());
    for round in 1..=bench.plan.rounds {
        bench.report.progress(format_args!("transactions of {ROWS} rows, round {round}"));
        for (form, duel) in [(Form::Statements, &mut statements), (Form::Values, &mut values)] {
            duel.ours(transactions(bench, form)?);
            bench.model.check(&bench.connection)?;
            bench.tidy()?;
        }
        bench.peers("transactions", &PEERS, &mut statements);
        bench.report.progress(format_args!("appender, round {round}"));
        appended.ours(appender(bench)?);
        bench.peers("append", &PEERS, &mut appended);
    }
    let promise = |rate| Promise { rate: Some(rate), ..Promise::default() };
    bench.report.add_duel("rows in transactions of 100 INSERTs", &statements, promise(1e6))?;
    bench.report.add_duel("rows in INSERTs of 100 rows", &values, promise(1e6))?;
    Ok(bench.report.add_duel("rows by the appender", &appended, promise(2e6))?)
}

/// Transactions of fresh rows; the rate counts rows.
fn transactions(bench: &mut Bench<'_>, form: Form) -> Result<Sample, Failure> {
    let insert =
        bench.connection.prepare(&rows::insert_statement(if form == Form::Values { ROWS } else { 1 }, COLUMNS))?;
    let mut latency = Recorder::default();
    let mut parameters = Vec::new();
    let (mut at, mut spent) = (0, Duration::ZERO);
    while spent < bench.plan.time && at + (ROWS as u64) < bench.keys.fresh_count() / 2 {
        parameters.clear();
        for _ in 0..ROWS {
            let key = bench.keys.fresh(at);
            parameters.push(rows::parameters(key, rows::value(key, 1)));
            bench.model.inserted(key);
            at += 1;
        }
        let start = Instant::now();
        let written = match form {
            Form::Values => insert.execute(parameters.as_flattened() as &[ValueRef<'_>])?,
            Form::Statements => {
                let transaction = bench.connection.transaction()?;
                let mut written = 0;
                for row in &parameters {
                    written += insert.execute(row)?;
                }
                transaction.commit()?;
                written
            }
        };
        let elapsed = start.elapsed();
        latency.record(elapsed);
        spent += elapsed;
        if written != ROWS as u64 {
            return Err(Failure::Wrong(format!("{written} rows were inserted instead of {ROWS}")));
        }
    }
    Ok(Sample::of(at, spent.as_secs_f64(), &latency))
}

/// Appends rows in random key order to an empty table.
fn appender(bench: &mut Bench<'_>) -> Result<Sample, Failure> {
    bench.connection.execute("DROP TABLE IF EXISTS appended")?;
    bench.connection.execute(&rows::create_table("appended", COLUMNS))?;
    let keys = bench.keys;
    let count = bench.plan.append_rows.min(keys.rows());
    let (written, time) =
        append(&bench.connection, "appended", (0..count).map(|at| keys.loaded(at)), |key| rows::value(key, 1))?;
    let wanted: i64 = (0..count).map(|at| keys.loaded(at)).sum();
    let row = bench.connection.query_row("SELECT count(*), CAST(sum(k) AS BIGINT) FROM appended", ())?;
    let found: (i64, i64) = (row.get(0)?, row.get(1)?);
    if written != count || found != (count as i64, wanted) {
        return Err(Failure::Wrong(format!(
            "{written} rows appended, {found:?} found instead of {count} and {wanted}"
        )));
    }
    bench.connection.execute("DROP TABLE appended")?;
    let mut latency = Recorder::default();
    latency.record(time);
    Ok(Sample::of(count, time.as_secs_f64(), &latency))
}
