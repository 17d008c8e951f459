//! Experiment `load/chunk-size`: the rate of a load by the size of its chunks (Instant Loading, section 3.3 and figure
//! 13). Issue "Instant Loading", section Figures.
//!
//! Comes in: the scale. Goes out: MB/s of a load of line items of TPC-H, in memory, for each size, and for the size
//! that is chosen where none is set.
//!
//! 1. The line items are written as a CSV file; it stays in the memory of the operating system.
//! 2. Rounds of a load with each size, the sizes in turn (`SET load_chunk_bytes`); after each the rows are counted and
//!    a column is summed.
//! 3. The size that is chosen by itself is held to the best one.
//!
//! The paper's curve rises up to about 100 kB, where beginning a task costs less than reading its chunk, and falls
//! beyond what the shared cache holds of all threads' chunks. Ours begins at 64 KiB.

use std::time::Instant;

use mainstem::Database;

use super::{LINE_ITEM_COLUMNS, check_rows};
use crate::duel::Series;
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::report::{Figure, Reach, Report, Unit};
use crate::tpch::write_line_items;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/chunk-size",
    about: "line items of TPC-H from CSV into memory, by the size of chunks, figure 13 of Instant Loading",
    parts: &[("lineitem", "one file into one table")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// KiB of a chunk; 0 is what is chosen by itself.
const SIZES: [u64; 7] = [0, 64, 256, 1_024, 4_096, 16_384, 32_768];
/// What the size chosen by itself has to reach of the best.
const SHARE_MIN: f64 = 0.95;

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each size.
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

    /// Just enough to see each size work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.01, rounds: 1 }
    }
}

fn name(kib: u64) -> String {
    match kib {
        0 => "chosen by itself".to_owned(),
        kib => format!("{kib} KiB"),
    }
}

/// Runs the loads.
///
/// # Errors
/// When there is no place for the file, or ours cannot load it; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let written = write_line_items(plan.factor, directory.path())?;
    let file = directory.path().join("lineitem.csv");
    let bytes = std::fs::metadata(&file)?.len();
    report.note(format!("{} rows, {} MB", written.0, bytes / 1_000_000));
    let copy =
        format!("COPY lineitem FROM '{}' (FORMAT csv, HEADER true)", file.display().to_string().replace('\'', "''"));
    let database = Database::in_memory()?;
    let connection = database.connect()?;
    let mut rates = SIZES.map(|_| Series::default());
    for round in 0..plan.rounds {
        for (kib, rates) in SIZES.into_iter().zip(&mut rates) {
            report.progress(format_args!("{}: round {}", name(kib), round + 1));
            connection.execute("DROP TABLE IF EXISTS lineitem")?;
            connection.execute(&format!("CREATE TABLE lineitem ({LINE_ITEM_COLUMNS})"))?;
            let setting = if kib == 0 { "DEFAULT".to_owned() } else { format!("'{kib}kB'") };
            connection.execute(&format!("SET load_chunk_bytes TO {setting}"))?;
            let start = Instant::now();
            connection.execute(&copy)?;
            rates.push(bytes as f64 / start.elapsed().as_secs_f64().max(1e-9));
            check_rows(&name(kib), &connection, written, report)?;
        }
    }
    let best = rates.iter().filter_map(Series::median).fold(0.0, f64::max);
    for (kib, rates) in SIZES.into_iter().zip(&rates) {
        let Some(figure) = Figure::of(&name(kib), "bytes", Unit::PerSecond, rates) else { continue };
        let figure = figure.beside("the best size", best);
        report.add(if kib == 0 { figure.to_reach(Reach::OfYardstick(SHARE_MIN)) } else { figure })?;
    }
    Ok(())
}
