//! Experiment `transactions`: several statements in one transaction. Issue "Nothing planned twice, no cliff beside the
//! point path", section Figures.
//!
//! Comes in: the scale. Goes out: transactions a second.
//!
//! 1. `transfers` moves money between accounts from several threads, alone and beside sums of all balances;
//! 2. `tpcc` runs a mix like TPC-C's, here and in SQLite.
//!
//! Invariants: both write to a disk with `synchronous = normal`; what has to hold after any number of transactions is
//! checked after each run, and what does not is a wrong answer.

mod tpcc;
mod transfers;

use std::time::Duration;

use crate::experiment::{Experiment, Failure, Part, Scale, Settings, run_parts};
use crate::report::Report;
pub use tpcc::Size;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "transactions",
    about: "transactions of several statements, beside SQLite",
    parts: &[
        ("transfers", "2 SELECTs, 2 UPDATEs, 1 INSERT by one-shot calls: 1 and 4 threads, beside sums"),
        ("tpcc", "a mix like TPC-C's with prepared statements, 1 warehouse, 1 thread"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

const PARTS: [(&str, Part<Plan>); 2] = [("transfers", transfers::run), ("tpcc", tpcc::run)];

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Accounts of the transfers.
    pub accounts: u64,
    /// The warehouse.
    pub size: Size,
    /// Transactions of the mix whose answers are compared before the first round.
    pub compared: u64,
    /// Rounds of each case.
    pub rounds: u32,
    /// A round.
    pub time: Duration,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                accounts: 10_000,
                size: Size { customers: 300, items: 1_000 },
                compared: 500,
                rounds: 3,
                time: Duration::from_millis(500),
            },
            Scale::Full | Scale::Paper => Self {
                accounts: 100_000,
                size: Size { customers: 3_000, items: 100_000 },
                compared: 5_000,
                rounds: 5,
                time: Duration::from_secs(5),
            },
        }
    }

    /// Just enough to see every case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            accounts: 200,
            size: Size { customers: 30, items: 100 },
            compared: 60,
            rounds: 1,
            time: Duration::from_millis(20),
        }
    }
}

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the databases; what goes wrong in one part stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    run_parts(&PARTS, plan, settings, report)
}
