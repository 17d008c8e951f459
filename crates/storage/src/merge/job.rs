//! A merge at work.
//!
//! 1. The cursor names the next rows, up to a segment's worth.
//! 2. Column by column they are gathered and written as one segment; forwarding notes which stream each came from.
//! 3. A segment that no other input reaches into is kept, unless that would leave a small piece before it.
//! 4. When no row is left: the run, the forwarding table, the outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mainstem_kernels::bitmap::{self, Rank};

use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::ContainerId;
use crate::limits;
use crate::main_store::RunSegment;
use crate::order::{Cursor, Gather, KeyReader, Part, PartRows, Picks, Stop};
use crate::run_writer::{RunWriter, SegmentTarget};
use crate::threads::in_parallel;
use crate::version::{ForwardedInput, ForwardingBuilder, Survivors};

use super::{MergeOutcome, MergePlan};

/// Whole parts in a row for which a small piece before them is accepted: at most one piece in five is small then.
const WHOLE_PARTS_MIN: usize = 4;

/// How others see a merge at work, and stop it.
#[derive(Debug, Default)]
pub struct MergeControl {
    cancelled: AtomicBool,
    rows: AtomicU64,
}

impl MergeControl {
    /// Has the merge stop soon, with Closed (57014).
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether somebody cancelled it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// # Errors
    /// Closed (57014) when it is cancelled.
    fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Closed, sqlstate::CANCELED, "the merge was cancelled"));
        }
        Ok(())
    }

    /// Rows written or kept so far.
    #[must_use]
    pub fn rows_done(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// A merge at work. Dropping it removes what it wrote.
#[derive(Debug)]
pub struct MergeJob {
    plan: MergePlan,
    control: Arc<MergeControl>,
    cursor: Cursor,
    writer: RunWriter,
    forwarding: ForwardingBuilder,
    /// For each part, whether its rows moved.
    moved: Vec<bool>,
    /// For each part that is not read in offset order: the number of each row among its survivors.
    places: Vec<Option<Places>>,
    outputs: Vec<(ContainerId, u32)>,
    picks: Picks,
    /// That gather and encode columns.
    threads: usize,
}

/// Where the rows of a delta went, among its own survivors.
#[derive(Debug)]
struct Places {
    of_row: Box<[u32]>,
    next: u32,
}

impl MergeJob {
    /// Begins `plan`: reads the first keys of all inputs.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn new(plan: MergePlan, target: SegmentTarget, control: Arc<MergeControl>) -> Result<Self> {
        let reader = KeyReader::of_sort_key(&plan.schema);
        let ordered = reader.codec().is_some();
        let streams = plan.streams();
        let forwarding = ForwardingBuilder::new(streams.len());
        let cursor = Cursor::new(reader, streams)?;
        let places = |part: &Part| match &part.rows {
            PartRows::Delta(_, rows) if ordered => {
                Some(Places { of_row: vec![Survivors::GONE; *rows as usize].into(), next: 0 })
            }
            _ => None,
        };
        Ok(Self {
            places: cursor.parts().iter().map(places).collect(),
            moved: vec![true; cursor.parts().len()],
            writer: RunWriter::new(plan.schema.clone(), target),
            outputs: Vec::new(),
            picks: Picks::default(),
            threads: 1,
            plan,
            control,
            cursor,
            forwarding,
        })
    }

    /// The same by `threads` threads, where somebody waits for it: what is in memory of columns grows with them.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.writer = self.writer.with_threads(threads);
        self.threads = threads;
        self
    }

    /// Does the whole merge.
    ///
    /// # Errors
    /// Io, Full or Corrupt; Closed (57014) when cancelled. Nothing is left behind then.
    pub fn run(self) -> Result<MergeOutcome> {
        self.run_at(&|| {})
    }

    /// As [`MergeJob::run`]; calls `breathe` between batches, and between the columns of a segment, holding no lock.
    ///
    /// # Errors
    /// As [`MergeJob::run`].
    pub fn run_at(mut self, breathe: &dyn Fn()) -> Result<MergeOutcome> {
        while self.step(breathe)? {}
        self.finish(breathe)
    }

    /// Writes the next output segment, or keeps the next whole one; false when no row is left.
    pub(super) fn step(&mut self, breathe: &dyn Fn()) -> Result<bool> {
        let segment_rows = self.plan.schema.options.segment_rows.max(1) as usize;
        loop {
            breathe();
            self.control.check()?;
            let wanted = (segment_rows - self.picks.len()).min(limits::BATCH_ROWS);
            match self.cursor.next(wanted, &mut self.picks)? {
                Stop::Full if self.picks.len() < segment_rows => {}
                Stop::Full => return self.write(breathe).map(|()| true),
                Stop::Whole(part) if self.keeps_next(segment_rows) => {
                    self.write(breathe)?;
                    self.keep(part, breathe)?;
                    return Ok(true);
                }
                Stop::Whole(_) => self.cursor.open_whole()?,
                Stop::End => return self.write(breathe).map(|()| false),
            }
        }
    }

    /// Whether to end the output segment here and keep the whole part that is next.
    fn keeps_next(&self, segment_rows: usize) -> bool {
        let pending = self.picks.len();
        pending == 0 || pending * 2 >= segment_rows || self.cursor.whole_parts_ahead() >= WHOLE_PARTS_MIN
    }

    fn keep(&mut self, part: u32, breathe: &dyn Fn()) -> Result<()> {
        let PartRows::Segment(segment, range) = self.cursor.part(part)?.rows.clone() else {
            return Err(Error::internal("a delta cannot be kept"));
        };
        self.control.rows.fetch_add(u64::from(range.end - range.start), Ordering::Relaxed);
        let control = self.control.clone();
        self.writer.keep(RunSegment { segment, range }, &|| goes_on(&control, breathe))?;
        if let Some(moved) = self.moved.get_mut(part as usize) {
            *moved = false;
        }
        self.cursor.skip_whole()
    }

    /// Writes the rows picked.
    fn write(&mut self, breathe: &dyn Fn()) -> Result<()> {
        if self.picks.is_empty() {
            return Ok(());
        }
        let parts = self.cursor.parts();
        let gather = Gather::new(parts, &self.picks)?;
        let columns = &self.plan.schema.columns;
        let columns = if self.threads > 1 {
            breathe();
            in_parallel(self.threads, columns.len(), |at| gather.column(parts, &columns[at]))?
        } else {
            let gathered = columns.iter().map(|column| {
                breathe();
                gather.column(parts, column)
            });
            gathered.collect::<Result<Vec<_>>>()?
        };
        let control = self.control.clone();
        let go_on = || goes_on(&control, breathe);
        self.outputs.extend(self.writer.write_while(&columns, limits::WRITTEN_BLOCKS_KEPT_BYTES, &go_on)?);
        for stretch in self.picks.stretches() {
            let part = stretch.part as usize;
            if let Some(stream) = self.cursor.streams().get(part) {
                self.forwarding.push(*stream, stretch.rows as usize);
            }
            if let Some(Some(places)) = self.places.get_mut(part) {
                stretch.offsets().for_each(|offset| places.put(offset));
            }
        }
        self.control.rows.fetch_add(self.picks.len() as u64, Ordering::Relaxed);
        self.picks.clear();
        Ok(())
    }

    fn finish(self, breathe: &dyn Fn()) -> Result<MergeOutcome> {
        let mut inputs = Vec::new();
        let streams = self.cursor.streams();
        let parts = self.cursor.parts().iter().zip(streams).zip(self.moved.iter().zip(self.places));
        for ((part, stream), (moved, places)) in parts {
            if *moved {
                let survivors = match places {
                    Some(places) => Survivors::Permuted(places.of_row),
                    None => Survivors::InOrder(survivors(part)),
                };
                let first = part.range().start;
                inputs.push(ForwardedInput { container: part.container(), first, stream: *stream, survivors });
            }
        }
        let forwarding = self.forwarding.finish(inputs, &self.outputs);
        let written = self.writer.finish_while(&|| goes_on(&self.control, breathe))?;
        MergeOutcome::new(self.plan, written, Arc::new(forwarding))
    }
}

impl Places {
    fn put(&mut self, offset: u32) {
        if let Some(place) = self.of_row.get_mut(offset as usize) {
            *place = self.next;
            self.next += 1;
        }
    }
}

/// Breathes, then fails if the merge was cancelled.
fn goes_on(control: &MergeControl, breathe: &dyn Fn()) -> Result<()> {
    breathe();
    control.check()
}

/// The live rows of `part`; bit 0 is the first of its range.
fn survivors(part: &Part) -> Rank {
    let range = part.range();
    let rows = range.len();
    let live = match &part.dead {
        None => bitmap::full(rows),
        Some(dead) => {
            let mut dead = dead.to_vec();
            dead.resize(dead.len().max(bitmap::words(range.end as usize)), 0);
            let mut live = bitmap::copy_range(&dead, range.start as usize..range.end as usize);
            bitmap::not_in_place(&mut live, rows);
            live
        }
    };
    Rank::new(live, rows)
}
