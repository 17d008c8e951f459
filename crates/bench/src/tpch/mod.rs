//! Experiment `tpch`: the 22 queries of TPC-H beside DuckDB in memory, and beside plain DataFusion over Arrow batches
//! in the same process. Issue "Scans at DuckDB's speed", section Figures.
//!
//! Comes in: the scale. Goes out: the time of each query, and of all of them.
//!
//! 1. `tables` writes the rows of tpchgen as CSV files;
//! 2. each engine loads them; ours and DuckDB into the tables of `slt/tpch/schema.sql`, with or without their keys;
//! 3. every query is compared and measured as those of any suite (`crate::suite`).
//!
//! What changes to the tables cost is a part of its own (`changed`), of our own engine alone.
//!
//! Invariant: all read the same rows. It does not own: the answers at scale factor 0.01, which tests hold to recorded
//! ones.

mod arrow_peer;
mod changed;
mod queries;
mod tables;

use std::path::Path;
use std::time::Duration;

use mainstem::{Database, OpenOptions};

use crate::experiment::{Experiment, Failure, Scale, Settings, note};
use crate::peers::Engine;
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::{self, Engines, Local, Rounds, milliseconds, settle};
use arrow_peer::ArrowPeer;
use queries::{Query, SCHEMA};
pub use tables::{write as write_tables, write_line_items};

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "tpch",
    about: "the 22 queries of TPC-H, beside DuckDB and beside plain DataFusion",
    parts: &[
        ("keys", "tables with their primary keys"),
        ("no-keys", "tables without keys"),
        ("changed", "tables with changes: before and after a merge, and beside a writer"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// The same tables, other queries.
pub const SHAPES: Experiment = Experiment {
    name: "shapes",
    about: "shapes of queries that TPC-H lacks, over its line items: large limits, self-joins, wide groups, windows",
    parts: &[("shapes", "all of them")],
    run: |settings, report| run_shapes(Plan::of(settings.scale), settings, report),
};

/// The same queries over more rows than memory holds.
pub const LARGE: Experiment = Experiment {
    name: "tpch-large",
    about: "the 22 queries of TPC-H at ten times the scale, on disk under a memory limit of 4 GiB, beside DuckDB's",
    parts: &[("large", "tables with their primary keys")],
    run: |settings, report| run_large(Plan::large(settings.scale), settings, report),
};

/// What a query may take of the first peer's time.
const QUERY_SHARE: f64 = 2.5;
/// So short that a query is run once; peers run none in no time.
const ONCE: Duration = Duration::from_micros(1);
/// The memory limit of `tpch-large`, in GiB, of each engine.
const LARGE_MEMORY_GIB: u64 = 4;

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each query.
    pub rounds: u32,
    /// A round: a query is run until it took this long, once at least.
    pub time: Duration,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factor: 0.1, rounds: 3, time: Duration::from_millis(50) },
            Scale::Full | Scale::Paper => Self { factor: 1.0, rounds: 5, time: Duration::from_millis(200) },
        }
    }

    /// The plan of `tpch-large`.
    #[must_use]
    pub fn large(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factor: 0.2, rounds: 1, time: ONCE },
            Scale::Full | Scale::Paper => Self { factor: 10.0, rounds: 3, time: ONCE },
        }
    }

    fn rounds(self) -> Rounds {
        Rounds { count: self.rounds, time: self.time }
    }

    /// Just enough to see every query work; with fewer suppliers `partsupp` repeats its keys.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.01, rounds: 1, time: Duration::ZERO }
    }
}

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the files, or they cannot be loaded; what is wrong with single queries stands in the
/// report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let parts = [("keys", SCHEMA.to_owned(), 1.2), ("no-keys", without_keys(SCHEMA), 1.4)];
    let suites =
        parts.map(|(part, schema, share)| Suite { part, schema, queries: &queries::TPCH, share, memory_gib: None });
    if ["keys", "no-keys"].into_iter().any(|part| settings.wants(part)) {
        run_suites(&suites, plan, settings, report)?;
    }
    if settings.wants("changed") {
        let directory = settings.scratch()?;
        tables::write(plan.factor, directory.path())?;
        changed::run(&script(SCHEMA, directory.path()), plan, settings, report)?;
    }
    Ok(())
}

/// Runs the shapes; as [`run`].
///
/// # Errors
/// As [`run`].
pub fn run_shapes(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let (schema, queries) = (SCHEMA.to_owned(), &queries::SHAPES);
    let suite = Suite { part: "shapes", schema, queries, share: QUERY_SHARE, memory_gib: None };
    run_suites(&[suite], plan, settings, report)
}

/// Runs the queries over tables on disk under a memory limit; as [`run`].
///
/// # Errors
/// As [`run`].
pub fn run_large(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let (schema, queries) = (SCHEMA.to_owned(), &queries::TPCH);
    let suite = Suite { part: "large", schema, queries, share: 1.2, memory_gib: Some(LARGE_MEMORY_GIB) };
    run_suites(&[suite], plan, settings, report)
}

/// Queries over tables of one schema.
struct Suite {
    part: &'static str,
    schema: String,
    queries: &'static [Query],
    /// What all of them together may take of the first peer's time.
    share: f64,
    /// What each engine may use; without one, all are as they are by default, and peers are in memory.
    memory_gib: Option<u64>,
}

impl Suite {
    fn engine(&self) -> Engine {
        if self.memory_gib.is_some() { Engine::DuckDbDisk } else { Engine::DuckDbMemory }
    }

    /// What DuckDB does before `script`, to hold the tables in a file of `directory`, if memory is limited.
    fn script_of_peers(&self, script: &[String], directory: &Path) -> Vec<String> {
        let Some(memory_gib) = self.memory_gib else { return script.to_vec() };
        let file = |name: &str| directory.join(name).display().to_string().replace('\'', "''");
        let first = [
            format!("SET memory_limit = '{memory_gib}GiB'"),
            format!("SET temp_directory = '{}'", file("duckdb-spilled")),
            format!("ATTACH '{}' AS disk", file("duckdb")),
            "USE disk".to_owned(),
        ];
        first.into_iter().chain(script.iter().cloned()).chain(["CHECKPOINT".to_owned()]).collect()
    }
}

fn run_suites(suites: &[Suite], plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    report.progress(format_args!("writing the tables of scale factor {}", plan.factor));
    tables::write(plan.factor, directory.path())?;
    // DataFusion's tables would be all in memory.
    let is_limited = suites.iter().any(|suite| suite.memory_gib.is_some());
    let arrow = match settings.peers {
        Some(_) if !is_limited => Some(ArrowPeer::load(plan.factor)?),
        _ => None,
    };
    for suite in suites.iter().filter(|suite| settings.wants(suite.part)) {
        measure_all(suite, &script(&suite.schema, directory.path()), plan, settings, arrow.as_ref(), report)?;
    }
    Ok(())
}

/// The statements that make the tables of `schema` and fill them from the files in `directory`.
fn script(schema: &str, directory: &Path) -> Vec<String> {
    let create = schema.split(';').filter(|statement| statement.contains("CREATE")).map(|s| s.trim().to_owned());
    let copy = tables::NAMES.iter().map(|name| {
        let file = directory.join(name).with_extension("csv");
        format!("COPY {name} FROM '{}' (FORMAT csv, HEADER true)", file.display().to_string().replace('\'', "''"))
    });
    create.chain(copy).collect()
}

/// `schema` without its primary keys.
fn without_keys(schema: &str) -> String {
    let mut left = schema;
    let mut all = String::new();
    while let Some((before, after)) = left.split_once("PRIMARY KEY (") {
        all.push_str(before.trim_end().trim_end_matches(','));
        left = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    all + left
}

/// Loads the engines and measures every query.
fn measure_all(
    suite: &Suite,
    script: &[String],
    plan: Plan,
    settings: &Settings,
    arrow: Option<&ArrowPeer>,
    report: &mut Report,
) -> Result<(), Failure> {
    let (part, directory) = (suite.part, settings.scratch()?);
    let mut options = OpenOptions::new().synchronous("off".parse()?);
    if let Some(memory_gib) = suite.memory_gib {
        options = options.memory_limit(memory_gib << 30);
    }
    let database = Database::open_with(directory.path().join("db"), options)?;
    report.progress(format_args!("{part}: loading"));
    let peers = suite::start_peers(
        settings,
        suite.engine(),
        &suite.script_of_peers(script, directory.path()),
        directory.path(),
    );
    let connection = database.connect()?;
    script.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
    settle(&database);
    let engines = Engines { connection: &connection, local: arrow.map(|arrow| arrow as &dyn Local), peers };
    let mut bench = Bench { plan, engines, report, times: Vec::new() };
    for &(name, sql) in suite.queries {
        bench.report.progress(format_args!("{part}: {name}"));
        let case = format!("{part} {name}");
        let outcome = bench.measure(&case, sql);
        note(&case, outcome, bench.report)?;
    }
    bench.sum_up(suite)?;
    for note in bench.engines.peers.notes() {
        bench.report.note(note);
    }
    drop(connection);
    database.close()?;
    Ok(())
}

/// The part while it runs.
struct Bench<'a> {
    plan: Plan,
    engines: Engines<'a>,
    report: &'a mut Report,
    /// Medians of each query so far, in milliseconds: ours, and others' by name.
    times: Vec<(f64, Vec<(String, f64)>)>,
}

impl Bench<'_> {
    fn measure(&mut self, case: &str, sql: &str) -> Result<(), Failure> {
        let told = suite::text(case, sql);
        self.engines.compare(&told)?;
        let duel = self.engines.duel(&told, self.plan.rounds())?;
        let theirs = duel.yardsticks(milliseconds);
        let Some(figure) = Figure::of(case, "time", Unit::Milliseconds, &duel.series(milliseconds)) else {
            return Ok(());
        };
        self.times.push((figure.value, theirs.clone()));
        self.add(figure, theirs, QUERY_SHARE)
    }

    /// Adds `figure` beside each of `theirs`: at most `share` times the first of them.
    fn add(&mut self, figure: Figure, theirs: Vec<(String, f64)>, share: f64) -> Result<(), Failure> {
        if theirs.is_empty() {
            return Ok(self.report.add(figure)?);
        }
        for (at, (name, value)) in theirs.into_iter().enumerate() {
            let compared = figure.clone().beside(&name, value);
            let is_promised = at == 0 && name != arrow_peer::NAME;
            self.report.add(if is_promised { compared.to_reach(Reach::AtMostOfYardstick(share)) } else { compared })?;
        }
        Ok(())
    }

    /// The sum of all queries' medians.
    fn sum_up(&mut self, suite: &Suite) -> Result<(), Failure> {
        let ours: f64 = self.times.iter().map(|(ours, _)| ours).sum();
        let mut names: Vec<String> = Vec::new();
        for name in self.times.iter().flat_map(|(_, theirs)| theirs).map(|(name, _)| name) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let sums = names.into_iter().filter_map(|name| {
            let of = |theirs: &[(String, f64)]| theirs.iter().find(|(n, _)| *n == name).map(|(_, time)| *time);
            let sum: Option<f64> = self.times.iter().map(|(_, theirs)| of(theirs)).sum();
            Some((name.clone(), sum?))
        });
        let sums: Vec<_> = sums.collect();
        let figure = Figure::once(&format!("{}, all", suite.part), "time", Unit::Milliseconds, ours);
        self.add(figure, sums, suite.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_of_the_schema() {
        let schema = without_keys(SCHEMA);
        assert!(!schema.contains("PRIMARY"), "{schema}");
        assert!(schema.contains("n_comment VARCHAR(152) NOT NULL);"), "{schema}");
        assert_eq!(script(&schema, Path::new("d")).len(), 16);
    }
}
