//! What the parts of the experiment share: the loaded table, the books, the peers, the report.

use std::time::{Duration, Instant};

use mainstem::{Connection, Database};

use super::lanes::{Lanes, Run, Work};
use super::model::Model;
use super::plan::Plan;
use super::rows::{self, COLUMNS, Keys};
use crate::duel::Duel;
use crate::experiment::Failure;
use crate::peers::{Engine, Peers};
use crate::report::Report;
use crate::sessions;

/// Rows of one flush of the appender.
const FLUSH_ROWS: usize = 100_000;
/// Fresh rows that one statement deletes when the table is put back.
const TIDY_ROWS: u64 = 50_000;
/// How long merges are waited for before something is measured that they would disturb.
const SETTLE: Duration = Duration::from_secs(60);

/// The experiment while it runs.
pub(super) struct Bench<'a> {
    pub(super) plan: Plan,
    pub(super) keys: Keys,
    pub(super) database: Database,
    /// Puts things in order between timed loops.
    pub(super) connection: Connection,
    pub(super) model: Model,
    pub(super) peers: &'a mut Peers,
    pub(super) report: &'a mut Report,
    /// Where the database lies.
    pub(super) directory: &'a std::path::Path,
    /// Number of the next operation: keys and values go on from round to round.
    next: u64,
}

impl<'a> Bench<'a> {
    /// Makes the database in `directory` and loads the table, in random key order.
    pub(super) fn load(
        plan: Plan,
        directory: &'a std::path::Path,
        peers: &'a mut Peers,
        report: &'a mut Report,
    ) -> Result<Self, Failure> {
        let database = Database::open(directory.join("mainstem"))?;
        let connection = sessions::connect(&database, "off")?;
        let keys = Keys::new(plan.rows);
        let model = Model::loaded(keys);
        let mut bench = Self { plan, keys, database, connection, model, peers, report, directory, next: 0 };
        bench.reload()?;
        Ok(bench)
    }

    /// Makes the table anew: after a wrong answer nothing is known of it.
    pub(super) fn reload(&mut self) -> Result<(), Failure> {
        self.report.progress(format_args!("loading {} rows", self.keys.rows()));
        self.connection.execute("DROP TABLE IF EXISTS t")?;
        self.connection.execute(&rows::create_table("t", COLUMNS))?;
        self.model = Model::loaded(self.keys);
        let keys = self.keys;
        append(&self.connection, "t", (0..keys.rows()).map(|at| keys.loaded(at)), |key| rows::value(key, 1))?;
        self.model.check(&self.connection)?;
        self.settle()
    }

    /// Waits until no merge runs or is due.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        let since = Instant::now();
        let mut quiet = 0;
        while quiet < 3 && since.elapsed() < SETTLE {
            let busy: i64 = self
                .connection
                .query_row(
                    "SELECT (SELECT count(*) FROM mainstem.merges WHERE state = 'running') \
                     + (SELECT count(*) FROM mainstem.containers WHERE kind = 'frozen delta')",
                    (),
                )?
                .get(0)?;
            quiet = if busy == 0 { quiet + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// One timed run, with the books kept and the table checked afterwards.
    pub(super) fn timed(
        &mut self,
        work: Work,
        threads: u64,
        synchronous: &str,
        time: Duration,
    ) -> Result<Run, Failure> {
        let victims = if work == Work::Delete { self.model.victims(self.keys) } else { vec![] };
        let lanes = Lanes::new(work, threads, self.next, self.keys, &victims);
        let run = lanes.run(&self.database, synchronous, time)?;
        self.next = lanes.next(&run);
        lanes.book(&run, &mut self.model)?;
        if work != Work::Select {
            self.model.check(&self.connection)?;
        }
        Ok(run)
    }

    /// Puts the table back to its loaded rows, untimed.
    pub(super) fn tidy(&mut self) -> Result<(), Failure> {
        let fresh = self.model.fresh_rows();
        if fresh > 0 {
            self.model.check_rows(&self.connection, self.keys, 100)?;
            self.delete_fresh(fresh)?;
        }
        let model = &mut self.model;
        let missing = model.take_missing();
        append(&self.connection, "t", missing.into_iter(), |key| model.c1(key))?;
        self.model.check(&self.connection)?;
        self.model.check_rows(&self.connection, self.keys, 100)
    }

    fn delete_fresh(&mut self, fresh: u64) -> Result<(), Failure> {
        let parts = fresh.div_ceil(TIDY_ROWS) as i64;
        let end = self.keys.end();
        let mut deleted = 0;
        for part in 0..parts {
            let (from, to) = (end / parts * part, if part + 1 == parts { end } else { end / parts * (part + 1) });
            let sql = format!("DELETE FROM t WHERE k >= {from} AND k < {to} AND k % 16 <> 0");
            deleted += self.connection.execute(&sql)?;
        }
        if deleted != fresh {
            return Err(Failure::Wrong(format!("{deleted} rows were deleted instead of {fresh}")));
        }
        self.model.take_fresh();
        Ok(())
    }

    /// A round of each peer.
    pub(super) fn peers(&mut self, case: &str, engines: &[Engine], duel: &mut Duel) {
        self.peers.round(case, self.plan.peer_time, engines, duel);
    }

    /// A number of the system tables.
    pub(super) fn number(&self, sql: &str) -> Result<i64, Failure> {
        Ok(self.connection.query_row(sql, ())?.get(0)?)
    }
}

/// Appends the rows with `keys` to `table`; how many, and how long the appender took: rows are made while the clock
/// stands, as the peers' are.
pub(super) fn append(
    connection: &Connection,
    table: &str,
    mut keys: impl Iterator<Item = i64>,
    c1: impl Fn(i64) -> i32,
) -> Result<(u64, Duration), Failure> {
    /// Rows that are made at once: few enough to be in the cache still when they are appended.
    const MADE_ROWS: usize = 1_024;
    let mut appender = connection.appender(table)?;
    let (mut written, mut time) = (0, Duration::ZERO);
    let mut made = Vec::with_capacity(MADE_ROWS);
    loop {
        made.clear();
        made.extend(keys.by_ref().take(MADE_ROWS).map(|key| rows::stored(key, c1(key))));
        if made.is_empty() {
            break;
        }
        let start = Instant::now();
        for row in &made {
            appender.append_values(row)?;
            if appender.pending_rows() >= FLUSH_ROWS {
                written += appender.flush()?;
            }
        }
        time += start.elapsed();
    }
    let start = Instant::now();
    written += appender.finish()?;
    Ok((written, time + start.elapsed()))
}
