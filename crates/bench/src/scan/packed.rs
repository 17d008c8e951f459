//! Part `packed`: filter and sum of packed integers in one thread.
//!
//! Comes in: the plan. Goes out: values a second.
//!
//! 1. A table has a column for each width; its values are as good as random, so that they are packed in that many bits.
//! 2. `SELECT sum(c) FROM p WHERE c < half` runs in one thread here and in DuckDB, in turn.
//! 3. The kernels do the same with the rows of one segment: select by the packed codes, unpack, keep what was selected,
//!    and add it up, a batch at a time. Two of these steps are measured alone, too.

use std::hint::black_box;

use mainstem_kernels::{bitmap, bitpack, compare, gather, sum};

use super::{Plan, load, open};
use crate::duel::{Sample, Series};
use crate::experiment::{Failure, Settings, note};
use crate::keys::mix;
use crate::peers::Engine;
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::{self, Engines};

/// Bits of a value.
const WIDTHS: [u32; 3] = [8, 16, 24];
/// Rows of the segment that the kernels read.
const SEGMENT_ROWS: usize = 1 << 17;
/// Rows of a batch, as scans make them.
const BATCH_ROWS: usize = 1 << 13;
/// Values a second of one thread.
const PROMISED: f64 = 2e9;

/// Measures the part.
///
/// # Errors
/// When the table cannot be loaded; a wrong answer of the kernels ends it, too.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let database = open(&directory.path().join("db"), true)?;
    report.progress(format_args!("packed: loading {} rows", plan.packed_rows));
    let script = script(plan.packed_rows);
    let peers = suite::start_peers(settings, Engine::DuckDbMemory, &script, directory.path());
    let connection = load(&database, &script)?;
    let mut engines = Engines { connection: &connection, local: None, peers };
    for width in WIDTHS {
        let outcome = through_sql(&mut engines, width, plan, report);
        note(&format!("{width} bits"), outcome, report)?;
    }
    engines.peers.notes().iter().for_each(|note| report.note(note));
    drop(engines);
    drop(connection);
    database.close()?;
    WIDTHS.into_iter().try_for_each(|width| by_kernels(width, plan, report))
}

/// The table, and one thread for whoever reads it. The multipliers share no factor with what they are divided by.
fn script(rows: u64) -> [String; 3] {
    let columns = WIDTHS.map(|width| format!("w{width} INTEGER"));
    let values = WIDTHS.map(|width| format!("x * 2654435761 % 1000000007 % {}", 1_u64 << width));
    [
        format!("CREATE TABLE p ({})", columns.join(", ")),
        format!("INSERT INTO p SELECT {} FROM {}", values.join(", "), suite::numbers(rows)),
        "SET threads = 1".into(),
    ]
}

fn through_sql(engines: &mut Engines<'_>, width: u32, plan: Plan, report: &mut Report) -> Result<(), Failure> {
    let case = format!("{width} bits, SQL, 1 thread");
    report.progress(&case);
    let sql = format!("SELECT sum(w{width}) FROM p WHERE w{width} < {}", 1_u64 << (width - 1));
    let told = suite::text(&case, &sql);
    engines.compare(&told)?;
    let duel = engines.duel(&told, plan.rounds())?;
    let values = plan.packed_rows as f64;
    let rates = duel.series(|sample| sample.rate).scaled(values);
    let Some(figure) = Figure::of(&case, "filter, sum", Unit::PerSecond, &rates) else { return Ok(()) };
    let figure = figure.to_reach(Reach::AtLeast(PROMISED));
    Ok(report.add(match duel.yardsticks(|sample| sample.rate).into_iter().next() {
        Some((name, rate)) => figure.beside(&name, rate * values),
        None => figure,
    })?)
}

/// A column of packed values, with places for what is made of a batch.
struct Column {
    packed: Vec<u8>,
    width: u32,
    half: u64,
    selected: Vec<u64>,
    values: Vec<i32>,
    kept: Vec<i32>,
}

impl Column {
    fn of(values: &[u64], width: u32) -> Self {
        let mut packed = Vec::new();
        bitpack::pack(values, width, &mut packed);
        Self {
            packed,
            width,
            half: 1 << (width - 1),
            selected: vec![0; bitmap::words(BATCH_ROWS)],
            values: vec![0; BATCH_ROWS],
            kept: Vec::with_capacity(BATCH_ROWS),
        }
    }

    /// How many values lie below the half.
    fn select(&mut self) -> i128 {
        let mut found = 0;
        for start in (0..SEGMENT_ROWS).step_by(BATCH_ROWS) {
            compare::select_range(&self.packed, self.width, start, BATCH_ROWS, 0, self.half - 1, &mut self.selected);
            found += bitmap::count_ones(&self.selected) as i128;
        }
        found
    }

    /// The sum of all values.
    fn sum(&mut self) -> i128 {
        let mut found = 0;
        for start in (0..SEGMENT_ROWS).step_by(BATCH_ROWS) {
            bitpack::unpack_for_i32(&self.packed, self.width, start, 0, &mut self.values);
            found += sum::sum_i32(&self.values);
        }
        found
    }

    /// The sum of values below the half.
    fn filter_sum(&mut self) -> i128 {
        let mut found = 0;
        for start in (0..SEGMENT_ROWS).step_by(BATCH_ROWS) {
            compare::select_range(&self.packed, self.width, start, BATCH_ROWS, 0, self.half - 1, &mut self.selected);
            bitpack::unpack_for_i32(&self.packed, self.width, start, 0, &mut self.values);
            self.kept.clear();
            gather::filter_numbers(&self.values, &self.selected, &mut self.kept);
            found += sum::sum_i32(&self.kept);
        }
        found
    }
}

/// A loop of kernels over a column.
type Loop = fn(&mut Column) -> i128;

fn by_kernels(width: u32, plan: Plan, report: &mut Report) -> Result<(), Failure> {
    let case = format!("{width} bits, kernels");
    report.progress(&case);
    let values: Vec<u64> = (0..SEGMENT_ROWS as u64).map(|at| mix(at) >> (u64::BITS - width)).collect();
    let below = || values.iter().filter(|value| **value < 1 << (width - 1));
    let add = |sum: i128, value: &u64| sum + i128::from(*value);
    let loops: [(&'static str, Loop, i128, bool); 3] = [
        ("filter, sum", Column::filter_sum, below().fold(0, add), true),
        ("filter", Column::select, below().count() as i128, false),
        ("sum", Column::sum, values.iter().fold(0, add), false),
    ];
    let mut column = Column::of(&values, width);
    for (metric, run, wanted, is_promised) in loops {
        let found = run(&mut column);
        if found != wanted {
            return Err(Failure::Wrong(format!("{case}, {metric}: {found} instead of {wanted}")));
        }
        let mut rates = Series::default();
        for _ in 0..plan.rounds {
            let work = |()| {
                black_box(run(black_box(&mut column)));
                Ok::<_, Failure>(())
            };
            rates.push(Sample::timed(plan.time, || (), work)?.rate * SEGMENT_ROWS as f64);
        }
        if let Some(figure) = Figure::of(&case, metric, Unit::PerSecond, &rates) {
            report.add(if is_promised { figure.to_reach(Reach::AtLeast(PROMISED)) } else { figure })?;
        }
    }
    Ok(())
}
