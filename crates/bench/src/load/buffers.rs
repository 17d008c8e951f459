//! Experiment `load/buffers`: what it costs to merge the partition buffers of a load into the relation (Instant
//! Loading, section 3.5 and table 1), in the column layout. Issue "Instant Loading", section Figures.
//!
//! Comes in: the scale. Goes out: the time of a load into plain columns with each of the three ways to merge.
//!
//! 1. The line items of TPC-H are written as CSV into memory, and cut at line feeds into blocks.
//! 2. Threads take block by block, and make of each a partition buffer: arrays of all sixteen columns, laid out as
//!    those of the relation.
//! 3. A buffer is merged as soon as it is full, one at a time: *insert* appends it row by row, *copy* column by column,
//!    both to columns that are contiguous; *chunk* hands the buffer over as it is to a relation that is a list of them.
//! 4. Rows are counted and a column is summed in the relation after each round.
//!
//! Tables of the engine have the third way: a segment is encoded of the columns of a chunk, and no row is moved again.
//! It does not own: encoding, files (`load`).

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mainstem_kernels::csv::{Fields, Marks, Quoting, dates, decimals, find_separators, integers, texts};

use super::parse::File;
use crate::duel::Series;
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::report::{Figure, Report, Unit};

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/buffers",
    about: "partition buffers merged by insert, copy and chunk, table 1 of Instant Loading",
    parts: &[("lineitem", "line items of TPC-H, sixteen plain columns")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

const COLUMNS: usize = 16;
/// The paper's milliseconds of a column store, in the order of [`Way::ALL`].
const PAPER: [f64; 3] = [7_841.0, 6_939.0, 6_092.0];

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Rounds of each way.
    pub rounds: u32,
    /// Threads that fill buffers.
    pub threads: usize,
}

impl Plan {
    /// The plan of that scale; the paper's are scale factor 10, all tables, and eight threads.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { factor: 0.1, rounds: 5, threads: 2 },
            Scale::Full => Self { factor: 1.0, rounds: 5, threads: 2 },
            Scale::Paper => Self { factor: 4.0, rounds: 5, threads: 8 },
        }
    }

    /// Just enough to see each way work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.001, rounds: 1, threads: 2 }
    }
}

/// How a buffer is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Insert,
    Copy,
    Chunk,
}

impl Way {
    const ALL: [(Self, &'static str); 3] = [(Self::Insert, "insert"), (Self::Copy, "copy"), (Self::Chunk, "chunk")];
}

/// Runs the ways.
///
/// # Errors
/// Never in fact; a wrong answer stands in the report.
pub fn run(plan: Plan, _settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let file = File::of(plan.factor)?;
    report.note(format!("{} rows, {} MB", file.rows, file.bytes.len() / 1_000_000));
    let mut times = Way::ALL.map(|_| Series::default());
    for round in 0..plan.rounds {
        report.progress(format_args!("round {}", round + 1));
        for ((way, case), times) in Way::ALL.into_iter().zip(&mut times) {
            let start = Instant::now();
            let relation = load(&file, way, plan.threads)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            let (rows, sum) = relation.sum();
            if rows != file.rows || sum != file.sum {
                let (due, of) = (file.rows, file.sum);
                report.wrong(format!("{case}: {rows} rows with {sum} instead of {due} with {of}"));
            }
        }
    }
    let medians: Vec<f64> = times.iter().filter_map(Series::median).collect();
    for (((_, case), times), paper) in Way::ALL.into_iter().zip(&times).zip(PAPER) {
        if let Some(figure) = Figure::of(case, "time", Unit::Milliseconds, times) {
            report.add(figure)?;
        }
        if let (Some(own), Some(chunk)) = (times.median(), medians.last()) {
            let times_of_chunk = Figure::once(case, "beside chunk", Unit::Times, own / chunk.max(1e-9));
            report.add(times_of_chunk.beside("the paper", paper / PAPER[2]))?;
        }
    }
    let is_in_order = medians.is_sorted_by(|slower, faster| slower >= faster);
    report
        .note(format!("the paper's order, insert, copy, chunk: {}", if is_in_order { "the same" } else { "another" }));
    Ok(())
}

/// All of `file`, its buffers merged by `way`.
fn load(file: &File, way: Way, threads: usize) -> Result<Relation, Failure> {
    let (next, relation) = (AtomicUsize::new(0), Mutex::new(Relation::default()));
    let work = || -> Result<(), Failure> {
        let mut separators = Vec::new();
        loop {
            let Some(block) = file.block(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(()) };
            let buffer = Columns::parse(block, &mut separators);
            let buffer = buffer.ok_or_else(|| Failure::Wrong("a block has a value of another form".into()))?;
            relation.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(buffer, way);
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let join = |helper: std::thread::ScopedJoinHandle<'_, Result<(), Failure>>| {
            helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        helpers.into_iter().map(join).fold(own, Result::and)
    })?;
    Ok(relation.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// A relation: contiguous columns, or a list of chunks.
#[derive(Default)]
struct Relation {
    columns: Columns,
    chunks: Vec<Columns>,
}

impl Relation {
    fn merge(&mut self, buffer: Columns, way: Way) {
        match way {
            Way::Insert => (0..buffer.lines.len()).for_each(|row| self.columns.insert(&buffer, row)),
            Way::Copy => self.columns.copy(&buffer),
            Way::Chunk => self.chunks.push(buffer),
        }
    }

    /// How many rows it has, and the sum of their numbers of lines; nothing if its columns differ in length.
    fn sum(&self) -> (u64, i64) {
        let parts = self.chunks.iter().chain([&self.columns]);
        parts.filter(|part| part.is_even()).fold((0, 0), |(rows, sum), part| {
            (rows + part.lines.len() as u64, sum + part.lines.iter().map(|line| i64::from(*line)).sum::<i64>())
        })
    }
}

/// Texts, one behind the other, and where each ends.
#[derive(Default)]
struct Texts {
    heap: Vec<u8>,
    /// Behind a 0, if there are any.
    ends: Vec<i32>,
}

impl Texts {
    fn count(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }

    fn append(&mut self, other: &Self, rows: std::ops::Range<usize>) {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        let (from, upto) = (other.ends[rows.start], other.ends[rows.end]);
        // Ends of a relation of some gigabytes of one text would need more bits; those of the largest scale fit.
        let base = self.heap.len() as i32 - from;
        self.heap.extend_from_slice(&other.heap[from as usize..upto as usize]);
        self.ends.extend(other.ends[rows.start + 1..=rows.end].iter().map(|end| base + end));
    }
}

/// Columns of line items, by their types.
#[derive(Default)]
struct Columns {
    keys: [Vec<i64>; 3],
    lines: Vec<i32>,
    decimals: [Vec<i128>; 4],
    dates: [Vec<i32>; 3],
    texts: [Texts; 5],
}

impl Columns {
    /// Those of `block`; none if a value is not in the plainest form.
    fn parse(block: &[u8], separators: &mut Vec<u32>) -> Option<Self> {
        let marks = Marks { delimiter: b',', quote: b'"' };
        separators.clear();
        let structure = find_separators(block, marks, false, separators);
        let quoting = Quoting { quote: b'"', null: b"" };
        let (mut all, mut nulls) = (Self::default(), Vec::new());
        for column in 0..COLUMNS {
            let fields = Fields::new(block, separators, 0, (COLUMNS, column), false);
            let is_plain = match column {
                0..=2 => integers(fields, quoting, &mut all.keys[column], &mut nulls),
                3 => integers(fields, quoting, &mut all.lines, &mut nulls),
                4..=7 => decimals(fields, quoting, (15, 2), &mut all.decimals[column - 4], &mut nulls),
                10..=12 => dates(fields, quoting, &mut all.dates[column - 10], &mut nulls),
                _ => {
                    let Texts { heap, ends } = &mut all.texts[if column < 10 { column - 8 } else { column - 11 }];
                    ends.push(0);
                    texts(fields, quoting, structure.has_quotes, heap, ends, &mut nulls)
                }
            };
            if !is_plain || !nulls.is_empty() {
                return None;
            }
        }
        Some(all)
    }

    /// Appends row `row` of `buffer`, value by value.
    fn insert(&mut self, buffer: &Self, row: usize) {
        for (to, from) in self.keys.iter_mut().zip(&buffer.keys) {
            to.push(from[row]);
        }
        self.lines.push(buffer.lines[row]);
        for (to, from) in self.decimals.iter_mut().zip(&buffer.decimals) {
            to.push(from[row]);
        }
        for (to, from) in self.dates.iter_mut().zip(&buffer.dates) {
            to.push(from[row]);
        }
        for (to, from) in self.texts.iter_mut().zip(&buffer.texts) {
            to.append(from, row..row + 1);
        }
    }

    /// Appends all of `buffer`, column by column.
    fn copy(&mut self, buffer: &Self) {
        for (to, from) in self.keys.iter_mut().zip(&buffer.keys) {
            to.extend_from_slice(from);
        }
        self.lines.extend_from_slice(&buffer.lines);
        for (to, from) in self.decimals.iter_mut().zip(&buffer.decimals) {
            to.extend_from_slice(from);
        }
        for (to, from) in self.dates.iter_mut().zip(&buffer.dates) {
            to.extend_from_slice(from);
        }
        for (to, from) in self.texts.iter_mut().zip(&buffer.texts) {
            to.append(from, 0..from.count());
        }
    }

    /// Whether all columns have as many rows.
    fn is_even(&self) -> bool {
        let rows = self.lines.len();
        self.keys.iter().all(|column| column.len() == rows)
            && self.decimals.iter().all(|column| column.len() == rows)
            && self.dates.iter().all(|column| column.len() == rows)
            && self.texts.iter().all(|column| column.count() == rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_make_the_same_columns() {
        let file = File::of(0.001).unwrap();
        let [insert, copy, chunk] = Way::ALL.map(|(way, _)| load(&file, way, 1).unwrap());
        assert!(insert.columns.is_even() && copy.columns.is_even() && chunk.columns.lines.is_empty());
        assert!(insert.chunks.is_empty() && !chunk.chunks.is_empty());
        assert_eq!(insert.columns.keys, copy.columns.keys);
        let heaps = |relation: &Relation| relation.columns.texts.iter().map(|t| t.heap.clone()).collect::<Vec<_>>();
        assert_eq!(heaps(&insert), heaps(&copy));
        let ends = |relation: &Relation| relation.columns.texts.iter().map(|t| t.ends.clone()).collect::<Vec<_>>();
        assert_eq!(ends(&insert), ends(&copy));
        let of_chunks: Vec<i64> = chunk.chunks.iter().flat_map(|part| part.keys[0].clone()).collect();
        assert_eq!(of_chunks, copy.columns.keys[0]);
        assert_eq!(insert.sum(), (file.rows, file.sum));
    }
}
