//! Experiment `hybrid`: one table that takes short statements at the rate of a row store. Issue "SQL people expect, and
//! short statements at row-store speed", section Figures.
//!
//! Comes in: the scale. Goes out: rates, p99s and stalls beside SQLite's and DuckDB's.
//!
//! 1. A table of a BIGINT key and 16 INTEGERs is loaded in random key order (`rows`, `bench`), here and by the peers;
//! 2. each part runs its cases in rounds: ours, then each peer, then ours again; timed loops stand in `lanes`;
//! 3. what the table has to hold afterwards is kept aside (`model`) and compared by row count, sums and single rows;
//! 4. each part leaves the table as it was loaded, but for the first integer of its rows, which the model knows.

mod bench;
mod bulk;
mod lanes;
mod memory;
mod model;
mod plan;
pub(crate) mod rows;
mod scan;
mod short;
mod threads;
mod writes;

pub use plan::Plan;

use crate::experiment::{Experiment, Failure, Settings};
use crate::peers::{Engine, Load, Peers};
use crate::report::Report;
use bench::Bench;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "hybrid",
    about: "short statements on a key, beside SQLite and DuckDB",
    parts: PARTS_ABOUT,
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// A part: leaves the table as it found it.
type Part = fn(&mut Bench<'_>) -> Result<(), Failure>;

const PARTS: [(&str, Part); 8] = [
    ("select", short::selects),
    ("write", writes::sustained),
    ("full", writes::durable),
    ("upsert", short::upserts),
    ("threads", threads::run),
    ("bulk", bulk::run),
    ("memory", memory::run),
    ("scan", scan::run),
];

const PARTS_ABOUT: &[(&str, &str)] = &[
    ("select", "SELECT by key, one thread"),
    ("write", "INSERT, UPDATE, DELETE of one row, synchronous = off, sustained"),
    ("full", "the same with synchronous = full: 1 and 16 threads"),
    ("upsert", "INSERT ... ON CONFLICT DO UPDATE, half hits"),
    ("threads", "two threads against one, disjoint keys"),
    ("bulk", "transactions of 100 rows, and the appender"),
    ("memory", "bytes of a delta a row"),
    ("scan", "sums of all columns, alone and beside a writer"),
];

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the database, or the table cannot be loaded; whatever goes wrong in one part stands in
/// the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let mut peers = match &settings.peers {
        Some(folder) => {
            report.progress("starting the peers, who load the same rows");
            let mut engines = vec![Engine::SqliteMemory, Engine::DuckDbMemory];
            if settings.wants("full") {
                engines.push(Engine::SqliteDisk);
            }
            let load = Load { rows: rows::Keys::new(plan.rows).rows(), directory: directory.path(), script: &[] };
            Peers::start(folder, "hybrid.py", &engines, &load)
        }
        None => Peers::none(),
    };
    let outcome = parts(plan, directory.path(), settings, &mut peers, report);
    for note in peers.notes() {
        report.note(note);
    }
    match outcome {
        Err(Failure::Wrong(what)) => report.wrong(what),
        other => other?,
    }
    Ok(())
}

fn parts(
    plan: Plan,
    directory: &std::path::Path,
    settings: &Settings,
    peers: &mut Peers,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut bench = Bench::load(plan, directory, peers, report)?;
    for (name, part) in PARTS.iter().filter(|(name, _)| settings.wants(name)) {
        match part(&mut bench) {
            Ok(()) => {}
            Err(Failure::Refused(why)) => {
                bench.report.note(format!("{name}: nothing measured, the statement is refused: {why}"));
                bench.reload()?;
            }
            Err(Failure::Wrong(what)) => {
                bench.report.wrong(format!("{name}: {what}"));
                bench.reload()?;
            }
            Err(broken) => return Err(broken),
        }
    }
    bench.database.close()?;
    Ok(())
}
