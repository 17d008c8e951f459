//! Timed loops of single statements: one lane a thread, each with its own connection and its own keys.
//!
//! An operation of a lane has a number; key and values follow from it, so that afterwards the books can be kept from
//! the number of operations alone ([`Lanes::book`]).

use std::time::{Duration, Instant};

use mainstem::{Connection, Database, Statement, ValueRef};

use super::model::Model;
use super::rows::{self, COLUMNS, Keys};
use crate::duel::Sample;
use crate::experiment::Failure;
use crate::keys::mix;
use crate::latency::Recorder;
use crate::sessions;

/// What a lane does, each operation in a transaction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Read a loaded row by its key, all columns.
    Select,
    /// Insert a fresh row.
    Insert,
    /// Set the first integer of a loaded row.
    Update,
    /// Delete a row.
    Delete,
    /// Insert a fresh row, or set the first integer of a loaded one: half and half.
    Upsert,
}

impl Work {
    /// The writing statements of one row.
    pub(super) const WRITES: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    /// As the report names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT by key",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Upsert => "upsert, half hits",
        }
    }

    /// As the peers name it.
    pub(super) fn peer_case(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Upsert => "upsert",
        }
    }

    fn sql(self) -> String {
        match self {
            Self::Select => "SELECT * FROM t WHERE k = $1".into(),
            Self::Insert => rows::insert_statement(1, COLUMNS),
            Self::Update => "UPDATE t SET c1 = $2 WHERE k = $1".into(),
            Self::Delete => "DELETE FROM t WHERE k = $1".into(),
            Self::Upsert => {
                format!("{} ON CONFLICT (k) DO UPDATE SET c1 = excluded.c1", rows::insert_statement(1, COLUMNS))
            }
        }
    }
}

/// Several threads that do the same work on keys of their own.
pub(super) struct Lanes<'a> {
    work: Work,
    threads: u64,
    /// Number of the first operation.
    first: u64,
    keys: Keys,
    /// For [`Work::Delete`]: what to delete, in order.
    victims: &'a [i64],
}

/// What one lane did.
#[derive(Debug)]
pub(super) struct Lane {
    operations: u64,
    /// Of all values read.
    sum: i64,
    elapsed: Duration,
    latency: Recorder,
}

/// What all lanes did.
#[derive(Debug)]
pub(super) struct Run {
    lanes: Vec<Lane>,
}

impl Run {
    /// Rate and durations of all lanes together.
    pub(super) fn sample(&self) -> Sample {
        Sample::of_threads(self.lanes.iter().map(|lane| (&lane.latency, lane.elapsed)))
    }
}

impl<'a> Lanes<'a> {
    /// `threads` lanes whose operations are numbered from `first`.
    pub(super) fn new(work: Work, threads: u64, first: u64, keys: Keys, victims: &'a [i64]) -> Self {
        Self { work, threads, first, keys, victims }
    }

    /// Runs all lanes for `time`, with transactions as durable as `synchronous` says.
    pub(super) fn run(&self, database: &Database, synchronous: &str, time: Duration) -> Result<Run, Failure> {
        let connect = || sessions::connect(database, synchronous);
        let lanes =
            sessions::together(self.threads, connect, |connection, thread| self.lane(connection, thread, time))?;
        Ok(Run { lanes })
    }

    fn lane(&self, connection: &Connection, thread: u64, time: Duration) -> Result<Lane, Failure> {
        let statement = connection.prepare(&self.work.sql())?;
        let mut latency = Recorder::default();
        let (mut operations, mut sum) = (0, 0);
        let start = Instant::now();
        let mut last = start;
        while last - start < time {
            let number = self.first + operations * self.threads + thread;
            let Some(key) = self.key(operations, thread) else { break };
            sum += self.operate(&statement, key, number)?;
            let now = Instant::now();
            latency.record(now - last);
            last = now;
            operations += 1;
        }
        Ok(Lane { operations, sum, elapsed: last - start, latency })
    }

    /// The key of operation `at` of a lane; none when there is no key left.
    fn key(&self, at: u64, thread: u64) -> Option<i64> {
        let number = self.first + at * self.threads + thread;
        match self.work {
            Work::Select => {
                let position = mix(number) % (self.keys.rows() / self.threads) * self.threads + thread;
                Some(self.keys.loaded(position))
            }
            Work::Update => Some(self.keys.loaded(number)),
            Work::Upsert if hits(number) => Some(self.keys.loaded(number)),
            Work::Insert | Work::Upsert => {
                // Fresh rows that are there at once must differ.
                (at * self.threads + thread < self.keys.fresh_count() / 2).then(|| self.keys.fresh(number))
            }
            Work::Delete => self.victims.get((at * self.threads + thread) as usize).copied(),
        }
    }

    fn operate(&self, statement: &Statement<'_>, key: i64, number: u64) -> Result<i64, Failure> {
        let written = match self.work {
            Work::Select => return read(statement, key),
            Work::Insert => statement.execute(rows::parameters(key, rows::value(key, 1)))?,
            Work::Update => statement.execute([ValueRef::BigInt(key), ValueRef::Integer(new_value(number))])?,
            Work::Delete => statement.execute([key])?,
            Work::Upsert if hits(number) => statement.execute(rows::parameters(key, new_value(number)))?,
            Work::Upsert => statement.execute(rows::parameters(key, rows::value(key, 1)))?,
        };
        match written {
            1 => Ok(0),
            _ => Err(Failure::Wrong(format!("{} of key {key} wrote {written} rows", self.work.name()))),
        }
    }

    /// Keeps the books of a run, and checks what it read.
    pub(super) fn book(&self, run: &Run, model: &mut Model) -> Result<(), Failure> {
        let count = |thread: usize| run.lanes.get(thread).map_or(0, |lane| lane.operations);
        if self.work == Work::Delete {
            let threads = self.threads as usize;
            model.deleted(self.victims, |at| ((at / threads) as u64) < count(at % threads));
            return Ok(());
        }
        for (thread, lane) in (0..).zip(&run.lanes) {
            let mut sum = 0;
            for at in 0..lane.operations {
                let number = self.first + at * self.threads + thread;
                let Some(key) = self.key(at, thread) else { continue };
                match self.work {
                    Work::Select => sum += model.row_sum(key),
                    Work::Update => model.updated(key, new_value(number)),
                    Work::Upsert if hits(number) => model.updated(key, new_value(number)),
                    Work::Insert | Work::Upsert => model.inserted(key),
                    Work::Delete => {}
                }
            }
            if sum != lane.sum {
                return Err(Failure::Wrong(format!(
                    "the values of {} rows add up to {} instead of {sum}",
                    lane.operations, lane.sum
                )));
            }
        }
        Ok(())
    }

    /// The number after those of a run.
    pub(super) fn next(&self, run: &Run) -> u64 {
        let most = run.lanes.iter().map(|lane| lane.operations).max().unwrap_or(0);
        self.first + most * self.threads
    }
}

/// Reads one row, every column of it; the sum of its values.
fn read(statement: &Statement<'_>, key: i64) -> Result<i64, Failure> {
    let row = statement.query_row([key])?;
    let mut sum = row.get::<i64>(0)?;
    for column in 1..=COLUMNS {
        sum += i64::from(row.get::<i32>(column)?);
    }
    Ok(sum)
}

/// Whether upsert `number` names a key that is there.
fn hits(number: u64) -> bool {
    mix(number) & 1 == 0
}

/// What operation `number` sets.
fn new_value(number: u64) -> i32 {
    (number & 0x3fff_ffff) as i32
}
