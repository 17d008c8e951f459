//! Experiment `load/scale`: whether a load of ten or fifty times the rows takes so many times as long. Issue "Instant
//! Loading", section Figures.
//!
//! Comes in: the scale. Goes out: MB/s of a load of line items of TPC-H, in memory, of each scale factor.
//!
//! 1. A file of each size is written; it stays in the memory of the operating system.
//! 2. Rounds of each load, the sizes in turn, and of the small ones several, which are short and so differ more; after
//!    each the rows are counted and a column is summed.
//! 3. The rates are held to the fastest of them.

use std::path::PathBuf;
use std::time::Instant;

use mainstem::Database;

use super::{LINE_ITEM_COLUMNS, check_rows};
use crate::duel::Series;
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::report::{Figure, Reach, Report, Unit};
use crate::tpch::write_line_items;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/scale",
    about: "line items of TPC-H from CSV into memory, of three scale factors: the rate stays",
    parts: &[("lineitem", "one file into one table")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// What each rate has to reach of the fastest one.
const SHARE_MIN: f64 = 0.85;

/// Loads of a size in a round at most.
const LOADS_MAX: f64 = 5.0;

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factors.
    pub factors: [f64; 3],
    /// Rounds of each.
    pub rounds: u32,
}

impl Plan {
    /// The plan of that scale.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factors: [0.05, 0.1, 0.5], rounds: 3 },
            Scale::Full => Self { factors: [0.1, 1.0, 5.0], rounds: 3 },
            Scale::Paper => Self { factors: [0.1, 1.0, 10.0], rounds: 3 },
        }
    }

    /// Just enough to see each load work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factors: [0.001, 0.002, 0.01], rounds: 1 }
    }
}

/// A file of one size.
struct Input {
    factor: f64,
    file: PathBuf,
    bytes: u64,
    rows: u64,
    sum: i64,
    rates: Series,
}

/// Runs the loads.
///
/// # Errors
/// When there is no place for the files, or ours cannot load them; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let mut inputs = Vec::new();
    for factor in plan.factors {
        report.progress(format_args!("writing the line items of scale factor {factor}"));
        let folder = directory.path().join(format!("factor-{factor}"));
        std::fs::create_dir(&folder)?;
        let (rows, sum) = write_line_items(factor, &folder)?;
        let file = folder.join("lineitem.csv");
        let bytes = std::fs::metadata(&file)?.len();
        inputs.push(Input { factor, file, bytes, rows, sum, rates: Series::default() });
    }
    for round in 0..plan.rounds {
        for input in &mut inputs {
            report.progress(format_args!("scale factor {}: round {}", input.factor, round + 1));
            (0..input.loads()).try_for_each(|_| input.load(report))?;
        }
    }
    let fastest = inputs.iter().filter_map(|input| input.rates.median()).fold(0.0, f64::max);
    for input in &inputs {
        let case = format!("scale factor {}", input.factor);
        let Some(figure) = Figure::of(&case, "bytes", Unit::PerSecond, &input.rates) else { continue };
        report.add(figure.beside("the fastest", fastest).to_reach(Reach::OfYardstick(SHARE_MIN)))?;
    }
    Ok(())
}

impl Input {
    /// Loads of a round.
    fn loads(&self) -> u32 {
        (1.0 / self.factor).clamp(1.0, LOADS_MAX) as u32
    }

    /// One load into a database of its own.
    fn load(&mut self, report: &mut Report) -> Result<(), Failure> {
        let database = Database::in_memory()?;
        let connection = database.connect()?;
        connection.execute(&format!("CREATE TABLE lineitem ({LINE_ITEM_COLUMNS})"))?;
        let file = self.file.display().to_string().replace('\'', "''");
        let start = Instant::now();
        connection.execute(&format!("COPY lineitem FROM '{file}' (FORMAT csv, HEADER true)"))?;
        self.rates.push(self.bytes as f64 / start.elapsed().as_secs_f64().max(1e-9));
        check_rows(&format!("scale factor {}", self.factor), &connection, (self.rows, self.sum), report)?;
        drop(connection);
        Ok(database.close()?)
    }
}
