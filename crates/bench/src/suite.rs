//! Queries over the same tables in our engine and in others: answers compared, rounds in turn.
//!
//! Comes in: a loaded database of ours, peers that loaded the same, queries. Goes out: for each query a [`Duel`].
//!
//! 1. [`start_peers`] lets the peers load what a script makes; [`settle`] waits until ours has merged what it loaded.
//! 2. [`Engines::compare`] lets each engine answer a query once, and holds ours to the others.
//! 3. [`Engines::duel`] runs it in rounds, the engines in turn.
//!
//! Invariant: the clock runs from the text of a query to its last row. It does not own: what a time has to reach.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstem::arrow::array::RecordBatch;
use mainstem::{Connection, Database};

use crate::duel::{Duel, Sample};
use crate::experiment::{Failure, Settings};
use crate::peers::{Answer, Call, Engine, Load, Peers, Told};

/// Those that a suite may have started.
const PEERS: [Engine; 2] = [Engine::DuckDbMemory, Engine::DuckDbDisk];
/// Quotients and averages have engines' own types: sums of hundredths may differ by this share of the larger one.
const TOLERANCE: f64 = 1e-6;
/// Tables that stay as they are for this long are taken to be merged.
const SETTLED_AFTER: Duration = Duration::from_millis(500);
/// The longest wait for that.
const SETTLED_AT_LAST: Duration = Duration::from_secs(60);

/// How often each engine runs a query.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Rounds of each query.
    pub count: u32,
    /// A round: a query is run until it took this long, once at least.
    pub time: Duration,
}

/// A peer in this process.
pub trait Local {
    /// As the report names it.
    fn name(&self) -> &'static str;

    /// The answer to `sql`.
    ///
    /// # Errors
    /// The peer's.
    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>, Failure>;
}

/// The engines of a suite, loaded.
pub struct Engines<'a> {
    /// Ours.
    pub connection: &'a Connection,
    /// Another one in this process, if there is one.
    pub local: Option<&'a dyn Local>,
    /// Those in processes of their own.
    pub peers: Peers,
}

impl Engines<'_> {
    /// What ours answers to the query `told`, which the peers can run as a case from then on.
    ///
    /// # Errors
    /// Wrong when another engine answers differently.
    pub fn compare(&mut self, told: &Told<'_>) -> Result<Answer, Failure> {
        let found = answer(self.connection, told)?;
        let mut answers: Vec<(String, Answer)> = Vec::new();
        if let Some(local) = self.local {
            answers.push((local.name().into(), digest(&local.query(told.sql)?)));
        }
        let theirs = self.peers.tell(told, &[None]);
        answers.extend(theirs.into_iter().filter_map(|(who, answers)| Some((who, *answers.first()?))));
        for (who, expected) in answers {
            let is_near = (found.sum - expected.sum).abs() as f64 <= 1.0 + TOLERANCE * expected.sum.abs() as f64;
            if found.rows != expected.rows || !is_near {
                return Err(Failure::Wrong(format!("{found:?}, {who} answers {expected:?}")));
            }
        }
        Ok(found)
    }

    /// Rounds of the query `told`, which was compared before; rates count queries.
    ///
    /// # Errors
    /// Ours, and those of the peer in this process.
    pub fn duel(&mut self, told: &Told<'_>, rounds: Rounds) -> Result<Duel, Failure> {
        let mut duel = Duel::default();
        for _ in 0..rounds.count {
            self.round(told, rounds.time, &mut duel)?;
        }
        Ok(duel)
    }

    /// One round of the query `told` into `duel`, as [`Engines::duel`].
    ///
    /// # Errors
    /// As [`Engines::duel`].
    pub fn round(&mut self, told: &Told<'_>, time: Duration, duel: &mut Duel) -> Result<(), Failure> {
        duel.ours(Sample::timed(time, || (), |()| run(self.connection, told))?);
        self.peers.round(told.case, time, &PEERS, duel);
        if let Some(local) = self.local {
            duel.other(local.name(), Sample::timed(time, || (), |()| local.query(told.sql).map(drop))?);
        }
        Ok(())
    }
}

/// A query that is handed over as a text without values.
#[must_use]
pub fn text<'a>(case: &'a str, sql: &'a str) -> Told<'a> {
    Told { case, sql, call: Call::Text, values: None }
}

/// What ours answers to the query `told`. Of rows that come as Arrow batches only their number counts.
///
/// # Errors
/// Ours.
pub fn answer(connection: &Connection, told: &Told<'_>) -> Result<Answer, Failure> {
    let rows = connection.query(told.sql)?;
    match told.call {
        Call::Arrow => Ok(Answer { rows: rows.count_rows()?, sum: 0 }),
        _ => Ok(digest(&rows.collect_batches()?)),
    }
}

/// Runs the query `told`: all its rows are fetched, and forgotten.
///
/// # Errors
/// Ours.
pub fn run(connection: &Connection, told: &Told<'_>) -> mainstem::Result<()> {
    let rows = connection.query(told.sql)?;
    match told.call {
        Call::Arrow => rows.count_rows().map(drop),
        _ => rows.collect_batches().map(drop),
    }
}

/// The time of a query, of rounds whose rates count queries.
#[must_use]
pub fn milliseconds(sample: &Sample) -> f64 {
    1e3 / sample.rate.max(1e-9)
}

/// What stands behind FROM for the numbers `x` below `count`, of 64 bits in any engine.
#[must_use]
pub fn numbers(count: u64) -> String {
    format!("(SELECT CAST(n AS BIGINT) AS x FROM generate_series(0, {}) AS g (n)) AS numbers", count - 1)
}

/// `engine`, if `settings` allow peers, after it ran `script`; files of its go to `directory`.
#[must_use]
pub fn start_peers(settings: &Settings, engine: Engine, script: &[String], directory: &Path) -> Peers {
    match &settings.peers {
        Some(folder) => Peers::start(folder, "tpch.py", &[engine], &Load { rows: 0, directory, script }),
        None => Peers::none(),
    }
}

/// Waits until what loading has left to merges is done, which would be held against the first queries.
pub fn settle(database: &Database) {
    let look = || database.storage().containers().iter().map(|container| container.rows).collect::<Vec<_>>();
    let begun = Instant::now();
    let mut before = look();
    while begun.elapsed() < SETTLED_AT_LAST {
        std::thread::sleep(SETTLED_AFTER);
        let now = look();
        if now == before {
            break;
        }
        before = now;
    }
}

/// Rows, and the sum of all numbers in hundredths; a text counts its bytes, a date its days.
#[must_use]
pub fn digest(batches: &[RecordBatch]) -> Answer {
    use mainstem::arrow::array::{Array, AsArray};
    use mainstem::arrow::compute::cast;
    use mainstem::arrow::datatypes::{DataType, Date32Type, Float64Type};
    let mut answer = Answer::default();
    let mut sum = 0.0;
    for batch in batches {
        answer.rows += batch.num_rows() as u64;
        for column in batch.columns() {
            sum += match column.data_type() {
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
                    let texts = cast(column, &DataType::Utf8).ok();
                    let bytes = |text: &str| text.len() as f64;
                    texts.iter().flat_map(|texts| texts.as_string::<i32>().iter().flatten()).map(bytes).sum()
                }
                DataType::Date32 => column.as_primitive::<Date32Type>().iter().flatten().map(f64::from).sum(),
                _ => {
                    let numbers = cast(column, &DataType::Float64).ok();
                    let of = |numbers: &std::sync::Arc<dyn Array>| -> f64 {
                        numbers.as_primitive::<Float64Type>().iter().flatten().sum()
                    };
                    numbers.as_ref().map_or(0.0, of)
                }
            };
        }
    }
    answer.sum = (sum * 100.0).round() as i64;
    answer
}
