//! Experiment `scan`: how fast rows are read, beside DuckDB. Issue "Scans at DuckDB's speed", section Figures.
//!
//! Comes in: the scale. Goes out: rows a second beside DuckDB's, values a second of one thread, and the curves of time
//! over selectivity.
//!
//! 1. `hybrid` reads the table of experiment `hybrid`: half of it by a filter, and all columns as sums and as Arrow
//!    batches; then again after short statements wrote to it that nothing has merged.
//! 2. `packed` filters and sums packed integers in one thread: through SQL, and by the kernels alone.
//! 3. `curves` reads 1, 4 and 17 columns of each encoding (`columns`) at ten selectivities, and looks for cliffs
//!    (`cliffs`).
//!
//! Invariants: all engines load the same rows by the same statements; their answers are compared before anything is
//! measured. A query that is refused or answered wrongly does not end the others.

mod cliffs;
mod columns;
mod curves;
mod hybrid;
mod packed;

use std::path::Path;
use std::time::Duration;

use mainstem::{Database, OpenOptions, Synchronous};

use crate::experiment::{Experiment, Failure, Part, Scale, Settings, run_parts};
use crate::report::Report;
use crate::suite::{self, Rounds};

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "scan",
    about: "reading tables, beside DuckDB",
    parts: &[
        ("hybrid", "a filter that keeps half, and all columns, of a table before and after unmerged writes"),
        ("packed", "filter and sum of packed integers in one thread, through SQL and by the kernels alone"),
        ("curves", "ten selectivities of 1, 4 and 17 columns of each encoding, and the cliffs among them"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rows of the table of `hybrid`.
    pub rows: u64,
    /// Short statements that write to it.
    pub writes: u64,
    /// Rows of the table of packed integers.
    pub packed_rows: u64,
    /// Rows of each table of `curves`.
    pub curve_rows: u64,
    /// Rounds of each query.
    pub rounds: u32,
    /// A round: a query is run until it took this long, once at least.
    pub time: Duration,
    /// A round of a query of `curves`: there are hundreds.
    pub curve_time: Duration,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        let ms = Duration::from_millis;
        match scale {
            Scale::Quick => Self {
                rows: 200_000,
                writes: 8_000,
                packed_rows: 1 << 20,
                curve_rows: 1 << 17,
                rounds: 3,
                time: ms(100),
                curve_time: ms(5),
            },
            Scale::Full | Scale::Paper => Self {
                rows: 5_000_000,
                writes: 200_000,
                packed_rows: 1 << 24,
                curve_rows: 1 << 20,
                rounds: 5,
                time: ms(500),
                curve_time: ms(30),
            },
        }
    }

    /// Just enough to see every query work.
    #[must_use]
    pub fn tiny() -> Self {
        let time = Duration::ZERO;
        Self { rows: 3_200, writes: 320, packed_rows: 4_096, curve_rows: 4_096, rounds: 1, time, curve_time: time }
    }

    fn rounds(self) -> Rounds {
        Rounds { count: self.rounds, time: self.time }
    }
}

const PARTS: [(&str, Part<Plan>); 3] = [("hybrid", hybrid::run), ("packed", packed::run), ("curves", curves::run)];

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the tables, or they cannot be loaded; what is wrong with single queries stands in the
/// report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    run_parts(&PARTS, plan, settings, report)
}

/// Opens the database in `folder`; `background` says whether it merges by itself.
fn open(folder: &Path, background: bool) -> Result<Database, Failure> {
    let options = OpenOptions::new().synchronous(Synchronous::Off).background(background);
    Ok(Database::open_with(folder, options)?)
}

/// Runs `script`, and waits until what it loaded is merged.
fn load(database: &Database, script: &[String]) -> Result<mainstem::Connection, Failure> {
    let connection = database.connect()?;
    script.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
    suite::settle(database);
    Ok(connection)
}
