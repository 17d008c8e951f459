//! Experiment `load/unload`: a table to files and back, beside DuckDB, and in our own form beside our own CSV load.
//! Issue "Instant Loading", section Figures; Instant Loading, section 4.
//!
//! Comes in: the scale. Goes out: the time of each way, and how large the files are.
//!
//! 1. The line items of TPC-H are written as a CSV file, and loaded by all: that is timed as the yardstick of a reload.
//! 2. Rounds of each way out, the engines in turn; then of each way in, all from the same file.
//! 3. After each way in the rows are counted and a column is summed; the peer says how many rows it wrote or read.
//!
//! It does not own: what a load of CSV costs beside others (`load`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstem::{Connection, Database};

use super::LINE_ITEM_COLUMNS;
use crate::duel::{Duel, Sample, Series};
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::peers::{Call, Engine, Load, Peers, Told};
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::milliseconds;
use crate::tpch::write_line_items;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/unload",
    about: "line items of TPC-H out to CSV and Parquet and back, beside DuckDB; UNLOAD and LOAD beside our CSV load",
    parts: &[("lineitem", "one table")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

const PEER: [Engine; 1] = [Engine::DuckDbMemory];
/// So short that each way is gone once a round.
const ONCE: Duration = Duration::from_micros(1);
/// What a reload may take of our own load of the CSV file.
const RELOAD_SHARE: f64 = 1.0 / 8.0;
/// What files may have of the bytes of the database.
const SIZE_SHARE: f64 = 1.05;

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each way.
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

    /// Just enough to see each way work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.01, rounds: 1 }
    }
}

/// Runs it.
///
/// # Errors
/// When there is no place for the files, or ours cannot write or read them; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let folder = directory.path();
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let (rows, sum) = write_line_items(plan.factor, folder)?;
    let csv = folder.join("lineitem.csv");
    let load = format!("COPY lineitem FROM {} (FORMAT csv, HEADER true)", quoted(&csv));
    let create = format!("CREATE TABLE lineitem ({LINE_ITEM_COLUMNS})");
    let peers = match &settings.peers {
        Some(scripts) => {
            let script = [create.clone(), load.clone()];
            Peers::start(scripts, "statements.py", &PEER, &Load { rows: 0, directory: folder, script: &script })
        }
        None => Peers::none(),
    };
    let database = Database::in_memory()?;
    let connection = database.connect()?;
    let mut bench = Bench { plan, connection: &connection, rows, sum, peers, report };
    bench.report.note(format!("{rows} rows, {} MB of CSV", std::fs::metadata(&csv)?.len() / 1_000_000));
    let again = ["DROP TABLE IF EXISTS lineitem".to_owned(), create, load];
    let of_csv = bench.ours(|connection| execute(connection, &again))?;
    bench.check("CSV in", "lineitem")?;
    bench.out("CSV", "csv", "FORMAT csv, HEADER true", folder)?;
    bench.out("Parquet", "parquet", "FORMAT parquet", folder)?;
    bench.parquet_in(folder)?;
    bench.own_form(&database, folder, &of_csv)?;
    for note in bench.peers.notes() {
        bench.report.note(note);
    }
    Ok(())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

fn execute(connection: &Connection, statements: &[String]) -> Result<(), mainstem::Error> {
    statements.iter().try_for_each(|sql| connection.execute(sql).map(drop))
}

/// Where ours writes, and where others do.
fn places(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    (folder.join(format!("ours.{name}")), folder.join(format!("theirs.{name}")))
}

struct Bench<'a> {
    plan: Plan,
    connection: &'a Connection,
    rows: u64,
    /// Of a column.
    sum: i64,
    peers: Peers,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Rounds of ours alone.
    fn ours(&self, mut work: impl FnMut(&Connection) -> Result<(), mainstem::Error>) -> Result<Series, Failure> {
        let mut duel = Duel::default();
        for _ in 0..self.plan.rounds {
            duel.ours(Sample::timed(ONCE, || (), |()| work(self.connection))?);
        }
        Ok(duel.series(milliseconds))
    }

    /// Rounds of `ours` and of `theirs`, a statement, in turn.
    fn duel(&mut self, case: &str, ours: &[String], theirs: &str) -> Result<Duel, Failure> {
        let told = Told { case, sql: theirs, call: Call::Text, values: None };
        for (who, answers) in self.peers.tell(&told, &[None]) {
            if answers.first().is_none_or(|answer| answer.rows != self.rows) {
                self.report.wrong(format!("{case}: {who} has {answers:?} of {} rows", self.rows));
            }
        }
        let mut duel = Duel::default();
        for round in 0..self.plan.rounds {
            self.report.progress(format_args!("{case}: round {}", round + 1));
            duel.ours(Sample::timed(ONCE, || (), |()| execute(self.connection, ours))?);
            self.peers.round(case, ONCE, &PEER, &mut duel);
        }
        Ok(duel)
    }

    /// Puts down what a duel gave: at least the peer's rate.
    fn put(&mut self, case: &str, duel: &Duel) -> Result<(), Failure> {
        let Some(figure) = Figure::of(case, "time", Unit::Milliseconds, &duel.series(milliseconds)) else {
            return Ok(());
        };
        let compared = match duel.yardsticks(milliseconds).first() {
            Some((name, time)) => figure.beside(name, *time).to_reach(Reach::AtMostOfYardstick(1.0)),
            None => figure,
        };
        Ok(self.report.add(compared)?)
    }

    /// The table to a file of a format.
    fn out(&mut self, name: &str, extension: &str, options: &str, folder: &Path) -> Result<(), Failure> {
        let case = format!("{name} out");
        let (ours, theirs) = places(folder, extension);
        let copy = |to: &Path| format!("COPY lineitem TO {} ({options})", quoted(to));
        let duel = self.duel(&case, &[copy(&ours)], &copy(&theirs))?;
        self.put(&case, &duel)?;
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len() / 1_000_000);
        self.report.note(format!("{case}: {} MB, theirs {} MB", bytes(&ours), bytes(&theirs)));
        Ok(())
    }

    /// A table from the file that ours wrote.
    fn parquet_in(&mut self, folder: &Path) -> Result<(), Failure> {
        let (file, _) = places(folder, "parquet");
        let statements = [
            "DROP TABLE IF EXISTS again".to_owned(),
            format!("CREATE TABLE again ({LINE_ITEM_COLUMNS})"),
            format!("COPY again FROM {} (FORMAT parquet)", quoted(&file)),
        ];
        let duel = self.duel("Parquet in", &statements, &statements.join("; "))?;
        self.check("Parquet in", "again")?;
        self.connection.execute("DROP TABLE again")?;
        self.put("Parquet in", &duel)
    }

    /// UNLOAD and LOAD; `of_csv` is what our load of the CSV file takes.
    fn own_form(&mut self, database: &Database, folder: &Path, of_csv: &Series) -> Result<(), Failure> {
        let containers = database.storage().containers();
        let kept: u64 = containers.iter().filter(|c| c.kind == "segment").map(|c| c.bytes).sum();
        for compression in ["none", "lz4"] {
            let to = folder.join(format!("unloaded-{compression}"));
            let unload = format!("UNLOAD TABLE lineitem TO {} (COMPRESSION {compression})", quoted(&to));
            let out = self.ours(|connection| {
                if to.exists() {
                    std::fs::remove_dir_all(&to).map_err(|e| mainstem::Error::io("remove", to.display(), e))?;
                }
                connection.execute(&unload).map(drop)
            })?;
            let load = ["DROP TABLE IF EXISTS again".to_owned(), format!("LOAD TABLE again FROM {}", quoted(&to))];
            let back = self.ours(|connection| execute(connection, &load))?;
            let case = format!("LOAD, {compression}");
            self.check(&case, "again")?;
            self.connection.execute("DROP TABLE again")?;
            if let Some(figure) = Figure::of(&format!("UNLOAD, {compression}"), "time", Unit::Milliseconds, &out) {
                self.report.add(figure)?;
            }
            if let (Some(figure), Some(own)) = (Figure::of(&case, "time", Unit::Milliseconds, &back), of_csv.median()) {
                let reach = Reach::AtMostOfYardstick(RELOAD_SHARE);
                self.report.add(figure.beside("our CSV load", own).to_reach(reach))?;
            }
            let bytes = bytes_below(&to)?;
            let share = bytes as f64 / kept.max(1) as f64;
            let verdict = if share <= SIZE_SHARE { "reached" } else { "missed" };
            self.report.note(format!(
                "UNLOAD, {compression}: {} MB, {share:.3} of the {} MB of segments (at most {SIZE_SHARE}: {verdict})",
                bytes / 1_000_000,
                kept / 1_000_000
            ));
        }
        Ok(())
    }

    /// All rows are there, with the quantities that were written.
    fn check(&mut self, case: &str, table: &str) -> Result<(), Failure> {
        let query = format!("SELECT count(*), CAST(sum(l_linenumber) AS BIGINT) FROM {table}");
        let row = self.connection.query_row(&query, ())?;
        let (rows, sum): (i64, i64) = (row.get(0)?, row.get(1)?);
        if rows as u64 != self.rows || sum != self.sum {
            self.report.wrong(format!("{case}: {rows} rows with {sum} instead of {} with {}", self.rows, self.sum));
        }
        Ok(())
    }
}

/// Bytes of all files below `folder`.
fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}
