//! Experiment `recovery`: how soon a database answers after it was opened. Issue "Survives anything", section Figures.
//!
//! Comes in: the scale. Goes out: milliseconds to open and to the first answer, and the memory that took.
//!
//! 1. `tail`: a process writes until a restart has as much log to replay as a database may have, and is killed; others
//!    open what it left.
//! 2. `rows`: a table of many rows is loaded and closed; processes open it, each for one query.
//!
//! What has to be killed, or measured by the memory of its process, is one of its own (`child`).
//!
//! Invariants: each round opens the very same files; every answer is compared with what was written. The files are in
//! the cache of the operating system, for they have just been written.

mod child;
mod rows;
mod tail;
mod writer;

use crate::experiment::{Experiment, Failure, Part, Scale, Settings, run_parts};
use crate::report::Report;
pub use child::run as child;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "recovery",
    about: "opening a database: after a kill with the longest log, and with many rows",
    parts: &[
        ("tail", "the largest tail of the log: time to the first answer, and peak memory"),
        ("rows", "100 million rows: time to the first answer"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rows of the table before its tail is written.
    pub loaded_rows: u64,
    /// Bytes of the tail.
    pub tail_bytes: u64,
    /// Rows of the large table.
    pub rows: u64,
    /// Openings of each case.
    pub rounds: u32,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { loaded_rows: 100_000, tail_bytes: 16 << 20, rows: 1_000_000, rounds: 3 },
            Scale::Full | Scale::Paper => Self {
                loaded_rows: 1_000_000,
                tail_bytes: mainstem::OpenOptions::new().log_tail_bytes_max,
                rows: 100_000_000,
                rounds: 5,
            },
        }
    }

    /// Just enough to see every case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { loaded_rows: 3_200, tail_bytes: 64 << 10, rows: 5_000, rounds: 1 }
    }
}

const PARTS: [(&str, Part<Plan>); 2] = [("tail", tail::run), ("rows", rows::run)];

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the database, or a process cannot be started; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    run_parts(&PARTS, plan, settings, report)
}
