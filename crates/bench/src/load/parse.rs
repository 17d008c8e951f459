//! Experiment `load/parse`: the structure of CSV, and the values of all its columns, with one thread and with two
//! (Instant Loading, section 5.2, figure 9). Issue "Instant Loading", section Figures.
//!
//! Comes in: the scale. Goes out: bytes a second of each step, and how many times as fast two threads are.
//!
//! 1. The line items of TPC-H are written as CSV into memory, and cut at line feeds into blocks that a core's cache
//!    holds.
//! 2. Threads take block by block: they find its separators, with registers or a byte at a time, and then, for the last
//!    case, make plain arrays of all sixteen columns.
//! 3. A loop that touches no memory is timed in the same rounds: more than it gains two threads cannot gain.
//! 4. Rows are counted and a column is summed after each round.
//!
//! Invariants: nothing is encoded or kept. It does not own: files, rows that span blocks, the table (`load`).

use std::hint::black_box;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mainstem_kernels::csv::{
    Fields, Marks, Quoting, Structure, dates, decimals, find_separators, integers, scalar, texts,
};
use mainstem_kernels::hash::hash_u64;
use tpchgen::csv::LineItemCsv;
use tpchgen::generators::LineItemGenerator;

use crate::duel::Series;
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::report::{Figure, Reach, Report, Unit};

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/parse",
    about: "structure and values of CSV without a table, figure 9 of Instant Loading",
    parts: &[("lineitem", "line items of TPC-H, sixteen columns")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// Bytes of a block.
const BLOCK_BYTES: usize = 256 << 10;
/// Columns of a line item.
const COLUMNS: usize = 16;
/// What a core has to reach: bytes a second with registers, and a byte at a time.
const RATE_MIN: f64 = 1e9;
const SCALAR_RATE_MIN: f64 = 400e6;
/// What two threads have to reach of what they gain where there is no memory to wait for.
const SPEED_UP_SHARE: f64 = 0.95;
const MARKS: Marks = Marks { delimiter: b',', quote: b'"' };

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each case.
    pub rounds: u32,
}

impl Plan {
    /// The plan of that scale.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factor: 0.1, rounds: 5 },
            Scale::Full | Scale::Paper => Self { factor: 1.0, rounds: 5 },
        }
    }

    /// Just enough to see each case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.001, rounds: 1 }
    }
}

/// What is done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Structure,
    StructureByByte,
    Values,
}

const STEPS: [(Step, &str); 3] = [
    (Step::Structure, "structure"),
    (Step::StructureByByte, "structure, a byte at a time"),
    (Step::Values, "structure and values"),
];

/// Runs the cases.
///
/// # Errors
/// Never in fact; a wrong answer stands in the report.
pub fn run(plan: Plan, _settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let file = File::of(plan.factor)?;
    report.note(format!("{} rows, {} MB", file.rows, file.bytes.len() / 1_000_000));
    let mut rates = STEPS.map(|_| [Series::default(), Series::default()]);
    let (mut gains, mut gain_of_loops) = (Series::default(), Series::default());
    for round in 0..plan.rounds {
        report.progress(format_args!("round {}", round + 1));
        for ((step, case), rates) in STEPS.into_iter().zip(&mut rates) {
            let mut seconds = [0.0; 2];
            for (threads, (rates, seconds)) in (1..).zip(rates.iter_mut().zip(&mut seconds)) {
                let (time, seen) = file.work(step, threads);
                *seconds = time;
                rates.push(file.bytes.len() as f64 / time);
                if seen.rows != file.rows || (step == Step::Values && seen.sum != file.sum) {
                    report.wrong(format!("{case}: {seen:?} instead of {} rows with {}", file.rows, file.sum));
                }
            }
            if step == Step::Values {
                gains.push(seconds[0] / seconds[1]);
            }
        }
        gain_of_loops.push(loops(1) / loops(2));
    }
    for ((step, case), [one, two]) in STEPS.into_iter().zip(&rates) {
        let least = if step == Step::StructureByByte { SCALAR_RATE_MIN } else { RATE_MIN };
        add(report, Figure::of(case, "rate", Unit::PerSecond, one).map(|rate| rate.to_reach(Reach::AtLeast(least))))?;
        add(report, Figure::of(&format!("{case}, two threads"), "rate", Unit::PerSecond, two))?;
    }
    let gain = Figure::of("two threads beside one", "speed-up", Unit::Times, &gains);
    let limit = gain_of_loops.median().unwrap_or(1.0);
    add(report, gain.map(|gain| gain.beside("a loop", limit).to_reach(Reach::OfYardstick(SPEED_UP_SHARE))))
}

fn add(report: &mut Report, figure: Option<Figure>) -> Result<(), Failure> {
    figure.map_or(Ok(()), |figure| Ok(report.add(figure)?))
}

/// The line items as CSV, and what was written.
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// Where blocks end, behind line feeds.
    ends: Vec<usize>,
    pub(super) rows: u64,
    /// Of the numbers of lines.
    pub(super) sum: i64,
}

/// What was found in blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rows: u64,
    sum: i64,
}

impl File {
    pub(super) fn of(factor: f64) -> Result<Self, Failure> {
        let mut file = Self { bytes: Vec::new(), ends: Vec::new(), rows: 0, sum: 0 };
        let mut begun = 0;
        for item in LineItemGenerator::new(factor, 1, 1).iter() {
            file.rows += 1;
            file.sum += i64::from(item.l_linenumber);
            writeln!(file.bytes, "{}", LineItemCsv::new(item))?;
            if file.bytes.len() - begun >= BLOCK_BYTES {
                begun = file.bytes.len();
                file.ends.push(begun);
            }
        }
        file.ends.push(file.bytes.len());
        Ok(file)
    }

    /// Block number `at`.
    pub(super) fn block(&self, at: usize) -> Option<&[u8]> {
        let begin = at.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.bytes.get(*begin..*self.ends.get(at)?)
    }

    /// The seconds that `threads` threads need for `step` of all blocks.
    fn work(&self, step: Step, threads: usize) -> (f64, Seen) {
        let next = AtomicUsize::new(0);
        let some = || {
            let (mut separators, mut seen) = (Vec::new(), Seen::default());
            loop {
                let Some(block) = self.block(next.fetch_add(1, Ordering::Relaxed)) else { return seen };
                let of_block = work_on(block, step, &mut separators);
                seen = Seen { rows: seen.rows + of_block.rows, sum: seen.sum + of_block.sum };
            }
        };
        let start = Instant::now();
        let all = std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
            helpers.into_iter().fold(some(), |all, helper| match helper.join() {
                Ok(seen) => Seen { rows: all.rows + seen.rows, sum: all.sum + seen.sum },
                Err(panic) => std::panic::resume_unwind(panic),
            })
        });
        (start.elapsed().as_secs_f64().max(1e-9), all)
    }
}

/// Does `step` of one block.
fn work_on(block: &[u8], step: Step, separators: &mut Vec<u32>) -> Seen {
    separators.clear();
    let find = if step == Step::StructureByByte { scalar::find_separators } else { find_separators };
    let structure = find(block, MARKS, false, separators);
    let rows = structure.line_feeds as u64;
    if step != Step::Values {
        black_box(&*separators);
        return Seen { rows, sum: 0 };
    }
    Seen { rows, sum: values_of(block, separators, structure) }
}

/// Makes plain arrays of all columns; returns the sum of the numbers of lines. A column that is not taken adds nothing.
fn values_of(block: &[u8], ends: &[u32], structure: Structure) -> i64 {
    let quoting = Quoting { quote: b'"', null: b"" };
    let (mut sum, mut nulls) = (0, Vec::new());
    for column in 0..COLUMNS {
        let fields = Fields::new(block, ends, 0, (COLUMNS, column), false);
        let is_plain = match column {
            0..=2 => {
                let mut values: Vec<i64> = Vec::new();
                integers(fields, quoting, &mut values, &mut nulls) && black_box(&values).len() == fields.len()
            }
            3 => {
                let mut values: Vec<i32> = Vec::new();
                let is_plain = integers(fields, quoting, &mut values, &mut nulls);
                sum += values.iter().map(|value| i64::from(*value)).sum::<i64>();
                is_plain
            }
            4..=7 => {
                let mut values = Vec::<i64>::new();
                decimals(fields, quoting, (15, 2), &mut values, &mut nulls) && black_box(&values).len() == fields.len()
            }
            10..=12 => {
                let mut values = Vec::new();
                dates(fields, quoting, &mut values, &mut nulls) && black_box(&values).len() == fields.len()
            }
            _ => {
                let (mut heap, mut ends) = (Vec::new(), vec![0]);
                let is_plain = texts(fields, quoting, structure.has_quotes, &mut heap, &mut ends, &mut nulls);
                is_plain && black_box(&heap).len() == ends.last().map_or(0, |end| *end as usize)
            }
        };
        if !is_plain || !nulls.is_empty() {
            return -1;
        }
    }
    sum
}

/// The seconds that `threads` threads need for a loop in registers alone, each for its share of it.
fn loops(threads: u64) -> f64 {
    const STEPS: u64 = 40_000_000;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || black_box((0..STEPS / threads).fold(thread, |hash, step| hash_u64(hash ^ step))));
        }
    });
    start.elapsed().as_secs_f64().max(1e-9)
}
