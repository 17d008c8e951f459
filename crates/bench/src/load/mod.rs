//! Experiment `load`: CSV to tables that can be queried, beside DuckDB, which reads the same file. Issue "Instant
//! Loading", section Figures.
//!
//! Comes in: the scale. Goes out: the time of each load.
//!
//! 1. The line items of TPC-H are written as a CSV file; it stays in the memory of the operating system.
//! 2. Rounds of each load, the engines in turn. A load makes the table anew, and reads the file into it.
//! 3. After each of ours the rows are counted and a column is summed; the peer's rows are counted, too.
//! 4. The same file by STDIN, and a query on the file itself, in the same way.
//! 5. A file of the same rows in no order, into a table that is sorted by its primary key.
//!
//! Invariants: all have the same types. It does not own: what queries on the rows cost (`tpch`).

pub mod buffers;
pub mod chunk_size;
pub mod online;
pub mod parse;
pub mod scale;
pub mod unload;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use mainstem::{Connection, Database, OpenOptions};

use crate::duel::{Duel, Sample, Series};
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::peers::{Call, Engine, Load, Peers, Told};
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::milliseconds;
use crate::tpch::write_line_items;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load",
    about: "line items of TPC-H from CSV into a table, in memory and durable with a primary key, beside DuckDB",
    parts: &[("lineitem", "one file into one table")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

const PEER: [Engine; 1] = [Engine::DuckDbMemory];
/// So short that each load is run once a round.
const ONCE: Duration = Duration::from_micros(1);
/// What a load may take of the peer's time, whose table has no key: in memory, and durable with a primary key.
const MEMORY_SHARE: f64 = 1.0 / 4.0;
const DURABLE_SHARE: f64 = 1.0 / 2.5;
/// Fsyncs of a durable load: so many, and one for so many bytes of the file.
const FSYNCS_MAX: u64 = 3;
const FSYNC_BYTES: u64 = 256 << 20;
/// What a query on the file may take of the peer's time.
const QUERY_SHARE: f64 = 1.0 / 2.0;
/// The files: as they were written, and in no order.
const LINES: &str = "lineitem.csv";
const SHUFFLED: &str = "shuffled.csv";
/// Scale factor up to which a file is shuffled, in memory.
const SHUFFLED_FACTOR_MAX: f64 = 1.0;
/// Lines of the file from one that is written to the next: a prime, so that each is written once where it divides no
/// number of lines.
const STRIDE: usize = 1_000_003;

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each load.
    pub rounds: u32,
}

impl Plan {
    /// The plan of that scale.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factor: 0.1, rounds: 3 },
            Scale::Full => Self { factor: 1.0, rounds: 5 },
            Scale::Paper => Self { factor: 10.0, rounds: 3 },
        }
    }

    /// Just enough to see each load work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.01, rounds: 1 }
    }
}

/// Runs the loads.
///
/// # Errors
/// When there is no place for the files, or ours cannot load them; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let (rows, sum) = write_line_items(plan.factor, directory.path())?;
    let bytes = std::fs::metadata(directory.path().join("lineitem.csv"))?.len();
    report.note(format!("{rows} rows, {} MB", bytes / 1_000_000));
    let script = ["CREATE TABLE nothing (i INTEGER)".to_owned()];
    let peers = match &settings.peers {
        Some(folder) => {
            let load = Load { rows: 0, directory: directory.path(), script: &script };
            Peers::start(folder, "statements.py", &PEER, &load)
        }
        None => Peers::none(),
    };
    let mut bench = Bench { plan, directory: directory.path(), rows, sum, bytes, peers, report };
    let memory = Database::in_memory()?;
    bench.measure("lineitem, in memory", &memory, (LINES, false), Some(MEMORY_SHARE))?;
    bench.stream("lineitem by STDIN, in memory", &memory)?;
    bench.query("sum from 'lineitem.csv'", &memory)?;
    memory.close()?;
    let disk = Database::open_with(directory.path().join("db"), OpenOptions::new())?;
    bench.measure("lineitem, durable, primary key", &disk, (LINES, true), Some(DURABLE_SHARE))?;
    if plan.factor <= SHUFFLED_FACTOR_MAX {
        write_shuffled(directory.path())?;
        bench.measure("lineitem in no order, durable, primary key", &disk, (SHUFFLED, true), None)?;
    }
    disk.close()?;
    for note in bench.peers.notes() {
        bench.report.note(note);
    }
    Ok(())
}

struct Bench<'a> {
    plan: Plan,
    /// Where the file is.
    directory: &'a Path,
    rows: u64,
    /// Of a column.
    sum: i64,
    bytes: u64,
    peers: Peers,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Loads `file` into a table, of ours one with a key if `has_key`.
    fn measure(
        &mut self,
        case: &str,
        database: &Database,
        (file, has_key): (&str, bool),
        share: Option<f64>,
    ) -> Result<(), Failure> {
        let connection = database.connect()?;
        let ours = script(&self.directory.join(file), has_key);
        let theirs = script(&self.directory.join(file), false).join("; ");
        let told = Told { case, sql: &theirs, call: Call::Text, values: None };
        for (who, answers) in self.peers.tell(&told, &[None]) {
            if answers.first().is_none_or(|answer| answer.rows != self.rows) {
                self.report.wrong(format!("{case}: {who} has {answers:?} of {} rows", self.rows));
            }
        }
        let (mut duel, mut fsyncs) = (Duel::default(), Series::default());
        for round in 0..self.plan.rounds {
            self.report.progress(format_args!("{case}: round {}", round + 1));
            let load = |()| ours.iter().try_for_each(|sql| connection.execute(sql).map(drop));
            let syncs = database.storage().syncs();
            duel.ours(Sample::timed(ONCE, || (), load)?);
            fsyncs.push((database.storage().syncs() - syncs) as f64);
            self.check(case, &connection)?;
            self.peers.round(case, ONCE, &PEER, &mut duel);
        }
        connection.execute("DROP TABLE lineitem")?;
        // Of DROP and CREATE TABLE one each; a load in memory has none.
        let allowed = (2 + FSYNCS_MAX + self.bytes / FSYNC_BYTES) as f64;
        if let Some(figure) = Figure::of(case, "fsyncs", Unit::Count, &fsyncs).filter(|_| has_key) {
            self.report.add(figure.to_reach(Reach::AtMost(allowed)))?;
        }
        self.put(case, &duel, share)
    }

    /// The file as a stream that the program reads, by ours alone: the peer reads files.
    fn stream(&mut self, case: &str, database: &Database) -> Result<(), Failure> {
        let connection = database.connect()?;
        let ours = script(&self.directory.join(LINES), false);
        let mut duel = Duel::default();
        for round in 0..self.plan.rounds {
            self.report.progress(format_args!("{case}: round {}", round + 1));
            let load = |()| -> Result<(), Failure> {
                ours.iter().take(2).try_for_each(|sql| connection.execute(sql).map(drop))?;
                let file = std::fs::File::open(self.directory.join(LINES))?;
                connection.copy_in("COPY lineitem FROM STDIN (FORMAT csv, HEADER true)", file)?;
                Ok(())
            };
            duel.ours(Sample::timed(ONCE, || (), load)?);
            self.check(case, &connection)?;
        }
        connection.execute("DROP TABLE lineitem")?;
        self.put(case, &duel, None)
    }

    /// A query on the file itself, whose types both find out.
    fn query(&mut self, case: &str, database: &Database) -> Result<(), Failure> {
        let connection = database.connect()?;
        let file = self.directory.join(LINES).display().to_string().replace('\'', "''");
        let sql = format!("SELECT count(*), CAST(sum(l_linenumber) AS BIGINT), sum(l_quantity) FROM '{file}'");
        self.peers.tell(&Told { case, sql: &sql, call: Call::Text, values: None }, &[None]);
        let mut duel = Duel::default();
        for round in 0..self.plan.rounds {
            self.report.progress(format_args!("{case}: round {}", round + 1));
            let mut found = None;
            let query = |()| -> Result<(), Failure> {
                let row = connection.query_row(&sql, ())?;
                found = Some((row.get::<i64>(0)? as u64, row.get::<i64>(1)?));
                Ok(())
            };
            duel.ours(Sample::timed(ONCE, || (), query)?);
            if found != Some((self.rows, self.sum)) {
                self.report.wrong(format!("{case}: {found:?} instead of {} rows with {}", self.rows, self.sum));
            }
            self.peers.round(case, ONCE, &PEER, &mut duel);
        }
        self.put(case, &duel, Some(QUERY_SHARE))
    }

    /// Puts the time down, and the rate in which the file was read, beside what may be taken of the peer's time.
    fn put(&mut self, case: &str, duel: &Duel, share: Option<f64>) -> Result<(), Failure> {
        let Some(figure) = Figure::of(case, "time", Unit::Milliseconds, &duel.series(milliseconds)) else {
            return Ok(());
        };
        let rate = self.bytes as f64 / 1e3 / figure.value.max(1e-9);
        self.report.note(format!("{case}: {rate:.0} MB/s"));
        let yardsticks = duel.yardsticks(milliseconds);
        let compared = match (yardsticks.first(), share) {
            (Some((name, time)), Some(share)) => figure.beside(name, *time).to_reach(Reach::AtMostOfYardstick(share)),
            (Some((name, time)), None) => figure.beside(name, *time),
            (None, _) => figure,
        };
        Ok(self.report.add(compared)?)
    }

    /// All rows are there, with the quantities that were written.
    fn check(&mut self, case: &str, connection: &Connection) -> Result<(), Failure> {
        check_rows(case, connection, (self.rows, self.sum), self.report)
    }
}

/// Whether the table of line items has the rows, and the sum of their numbers of lines, that were written.
fn check_rows(case: &str, connection: &Connection, written: (u64, i64), report: &mut Report) -> Result<(), Failure> {
    let row = connection.query_row("SELECT count(*), CAST(sum(l_linenumber) AS BIGINT) FROM lineitem", ())?;
    let (rows, sum): (i64, i64) = (row.get(0)?, row.get(1)?);
    if (rows as u64, sum) != written {
        let (due, of) = written;
        report.wrong(format!("{case}: {rows} rows with {sum} instead of {due} with {of}"));
    }
    Ok(())
}

/// The columns of the line items of TPC-H.
pub(crate) const LINE_ITEM_COLUMNS: &str = "l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, \
    l_suppkey BIGINT NOT NULL, l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15, 2) NOT NULL, \
    l_extendedprice DECIMAL(15, 2) NOT NULL, l_discount DECIMAL(15, 2) NOT NULL, l_tax DECIMAL(15, 2) NOT NULL, \
    l_returnflag VARCHAR(1) NOT NULL, l_linestatus VARCHAR(1) NOT NULL, l_shipdate DATE NOT NULL, \
    l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR(25) NOT NULL, \
    l_shipmode VARCHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL";

/// Writes the lines of the file once more, each far from those that it stood beside.
fn write_shuffled(directory: &Path) -> Result<(), Failure> {
    let text = std::fs::read(directory.join(LINES))?;
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut out = std::io::BufWriter::new(std::fs::File::create(directory.join(SHUFFLED))?);
    out.write_all(lines.next().unwrap_or_default())?;
    let lines: Vec<&[u8]> = lines.collect();
    for number in 0..lines.len() {
        let line = lines.get(number * STRIDE % lines.len()).copied().unwrap_or_default();
        out.write_all(line)?;
    }
    Ok(out.flush()?)
}

/// The statements of a load of `file`.
fn script(file: &Path, has_key: bool) -> Vec<String> {
    let key = if has_key { ", PRIMARY KEY (l_orderkey, l_linenumber)" } else { "" };
    let file = file.display().to_string().replace('\'', "''");
    vec![
        "DROP TABLE IF EXISTS lineitem".to_owned(),
        format!("CREATE TABLE lineitem ({LINE_ITEM_COLUMNS}{key})"),
        format!("COPY lineitem FROM '{file}' (FORMAT csv, HEADER true)"),
    ]
}
