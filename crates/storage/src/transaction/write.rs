//! A finished statement joins the write set; a write set that outgrows its memory goes aside.
//!
//! Rows are buffered until write sets, of this transaction or of all together, take half of their share of memory; then
//! this transaction's live rows of the table become runs of segments, as those of a large statement do, and their keys
//! are found in the runs. The other half is for statements under way and for what cannot go aside: deletes, and rows
//! that a savepoint holds.
//!
//! When there are more than [`limits::OWN_RUNS_MAX`] runs of a table, as the policy of `merge` says some of them are
//! merged here and now, by the transaction's own thread and those that help loads, so that a look-up asks few: a row is
//! rewritten about once each time that the rows written aside grow eightfold. Savepoints and views of before keep the
//! runs that they know.
//!
//! Such a merge is part of its statement, and of no lane: the background neither waits for it nor has its inputs, and
//! yields to it as to any work of users (contract 8). One at a time in the database does so, whose memory is a part of
//! the reserve; a transaction that meets another goes on with its runs as they are, for nobody waits for a merge, and
//! tries again with its next statement. It asks between batches whether its statement is to go on. Canceled, it leaves
//! the runs as they were, and the statement, whose rows are in the write set by then, has ended. Whoever holds a write
//! gate does not merge at all: others wait for it, and it commits next.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{ContainerId, TableId};
use crate::limits;
use crate::load::Waiting;
use crate::main_store::Run;
use crate::memory::MemoryKind;
use crate::merge::{Lane, MergeControl, MergeJob, MergePlan, RunDescription, TableDescription, choose};
use crate::transaction::Transaction;
use crate::transaction::statement::{Finished, no_room};
use crate::version::Work;
use crate::write_set::TableWrites;

impl Transaction {
    /// Refuses references to own rows that are no more.
    pub(super) fn check_own_references(&self, writes: &Finished) -> Result<()> {
        let own = self.writes.tables.get(&writes.schema.id);
        let moved = |id: &ContainerId| own.is_some_and(|own| own.has_moved(*id));
        let valid = writes.deleted.by_container.iter().filter(|(id, _)| id.is_own_rows()).all(|(id, set)| {
            own.is_some_and(|own| {
                own.rows().id() == *id && set.max().is_none_or(|max| (max as usize) < own.rows().len())
            })
        });
        let valid = valid && !writes.deleted.by_container.keys().any(moved);
        if valid { Ok(()) } else { Err(Error::internal("a statement names own rows that a later one has moved")) }
    }

    /// Refuses a finished statement when, with its bytes that are not counted yet, write sets take more than their
    /// share of memory.
    pub(super) fn check_room(&self, uncounted: u64) -> Result<()> {
        let memory = &self.engine.memory;
        let used = memory.used(MemoryKind::WriteSets) + uncounted;
        if used > memory.share(MemoryKind::WriteSets) { Err(no_room()) } else { Ok(()) }
    }

    /// Whether the table's buffered rows have to go aside with those of `writes`.
    pub(super) fn must_spill(&self, writes: &Finished) -> bool {
        let memory = &self.engine.memory;
        let share = memory.share(MemoryKind::WriteSets);
        let (rows, bytes) = self
            .writes
            .tables
            .get(&writes.schema.id)
            .map_or((true, 0), |own| (own.rows().has_room(writes.rows.len()), own.rows().bytes()));
        let worth_it = (bytes + writes.rows.bytes()) as u64 >= limits::SPILL_BYTES_MIN.min(share / 8);
        !rows || (worth_it && memory.used(MemoryKind::WriteSets) > share / 2)
    }

    /// Takes `writes` over.
    pub(super) fn take_over(&mut self, writes: Finished) {
        let Finished { schema, rows, keys: new, runs, deleted, charge: _counted } = writes;
        self.enter_keys(&schema);
        let (memory, ids) = (&self.engine.memory, &mut self.own_containers);
        let make = || Arc::new(TableWrites::new(schema.clone(), memory, ids.next_id()));
        let own = Arc::make_mut(self.writes.tables.entry(schema.id).or_insert_with(make));
        let first = own.rows().len() as u32;
        let keys = self.keys.get_mut(&schema.id);
        for (keys, new) in keys.into_iter().flatten().zip(&new) {
            for offset in deleted.by_container.get(&own.rows().id()).into_iter().flatten() {
                if let Some(row) = own.rows().row(offset) {
                    keys.remove(offset, row);
                }
            }
            keys.insert_all(first, new);
        }
        if !deleted.by_container.is_empty() {
            own.delete(deleted.by_container);
        }
        own.insert(rows, runs);
    }

    /// Takes `writes` over and puts the table's buffered rows aside. After an error nothing has changed.
    pub(super) fn take_over_aside(&mut self, writes: Finished) -> Result<()> {
        let Finished { schema, rows, keys: _, runs, deleted, charge: _counted } = writes;
        let mut own = match self.writes.tables.get(&schema.id) {
            Some(own) => TableWrites::clone(own),
            None => TableWrites::new(schema.clone(), &self.engine.memory, self.own_containers.next_id()),
        };
        own.delete(deleted.by_container);
        own.insert(rows, runs);
        let aside = self.engine.write_aside(&own)?;
        own.spilled(aside, self.own_containers.next_id());
        self.writes.tables.insert(schema.id, Arc::new(own));
        self.keys.remove(&schema.id);
        Ok(())
    }

    /// Writes the buffered rows of those tables aside that are worth it, when write sets take more than a quarter of
    /// their share of memory, and whatever is buffered when they take half of it: savepoints would add up else. What
    /// cannot be written stays in memory, where it counts.
    pub(super) fn spill_before_savepoint(&mut self) {
        let memory = &self.engine.memory;
        let share = memory.share(MemoryKind::WriteSets);
        let used = memory.used(MemoryKind::WriteSets);
        if used <= share / 4 {
            return;
        }
        self.spill_rows(if used > share / 2 { 1 } else { limits::SPILL_BYTES_MIN.min(share / 8) });
    }

    /// Writes the buffered rows of those tables aside that are worth it, when write sets take more than their share of
    /// memory: it may have become smaller since the last statement, and the next one would find no room at all.
    /// References to own rows are then void, so this is called before a writing statement looks at any.
    pub fn make_room(&mut self) {
        let memory = &self.engine.memory;
        if memory.is_over(MemoryKind::WriteSets) {
            self.spill_rows(limits::SPILL_BYTES_MIN.min(memory.share(MemoryKind::WriteSets) / 8));
        }
    }

    /// Writes the buffered rows of tables with at least `least` bytes of them aside.
    fn spill_rows(&mut self, least: u64) {
        let worth_it = |own: &TableWrites| own.rows().bytes() as u64 >= least;
        let large = self.writes.tables.iter().filter(|(_, own)| worth_it(own)).map(|(table, _)| *table);
        for table in large.collect::<Vec<_>>() {
            let Some(own) = self.writes.tables.get(&table) else { continue };
            match self.engine.write_aside(own) {
                Ok(aside) => {
                    let mut own = TableWrites::clone(own);
                    own.spilled(aside, self.own_containers.next_id());
                    self.writes.tables.insert(table, Arc::new(own));
                    self.keys.remove(&table);
                    self.merge_own_runs(table);
                }
                Err(e) => tracing::warn!("rows of an open transaction could not be written aside: {e}"),
            }
        }
    }

    /// Whether rows of `table` that this transaction has inserted stand aside as runs: its next statement may merge
    /// some.
    #[must_use]
    pub fn has_runs(&self, table: TableId) -> bool {
        self.writes.tables.get(&table).is_some_and(|own| !own.runs().is_empty())
    }

    /// Whether look-ups in the rows of `table` that were written aside ask too many runs.
    pub(super) fn has_many_runs(&self, table: TableId) -> bool {
        self.writes.tables.get(&table).is_some_and(|own| own.runs().len() > limits::OWN_RUNS_MAX)
    }

    /// Merges runs of `table` until there are few. Where that fails or is canceled, or another transaction merges, the
    /// rest stay as they are: the next statement tries again.
    pub(super) fn merge_own_runs(&mut self, table: TableId) {
        if !self.has_many_runs(table) || matches!(self.waiting, Waiting::Never) {
            return;
        }
        let engine = self.engine.clone();
        let Some(_only) = engine.own_merges.try_lock() else { return };
        let _at_work = engine.timeline.activity().begin(Work::Thread);
        while self.has_many_runs(table) {
            let control = Arc::new(MergeControl::default());
            match self.merge_some(table, &control) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if control.is_cancelled() => break,
                Err(e) => {
                    tracing::warn!("runs of an open transaction could not be merged: {e}");
                    break;
                }
            }
        }
    }

    fn merge_some(&mut self, table: TableId, control: &Arc<MergeControl>) -> Result<bool> {
        let Some(own) = self.writes.tables.get(&table) else { return Ok(false) };
        let describe = |run: &Arc<Run>| {
            let dead: u64 = run.segments().iter().map(|part| own.deletes().count_of(part.segment.id())).sum();
            RunDescription {
                id: run.id(),
                segments: run.segments().len() as u64,
                rows: run.rows(),
                live_rows: run.rows().saturating_sub(dead),
                stepped_over: false,
                busy: false,
            }
        };
        let description = TableDescription {
            segment_rows: own.schema().options.segment_rows,
            frozen: Vec::new(),
            runs: own.runs().iter().map(describe).collect(),
        };
        let Some(choice) = choose(&description, Lane::Long).filter(|choice| choice.runs.len() > 1) else {
            return Ok(false);
        };
        let chosen = own.runs().iter().filter(|run| choice.runs.contains(&run.id()));
        let runs: Vec<_> = chosen.cloned().collect();
        let of_runs = |id: ContainerId| runs.iter().any(|run| run.segment(id).is_some());
        let plan = MergePlan::of_own(own.schema().clone(), runs.clone(), own.deletes().collect(of_runs));
        let threads = self.engine.load_threads();
        let _counted = self.engine.memory.charge(MemoryKind::Reserve, plan.memory_bytes(threads));
        let ask = || {
            if self.engine.check_open().and_then(|()| self.waiting.go_on()).is_err() {
                control.cancel();
            }
        };
        let job = MergeJob::new(plan, self.engine.load_target(), control.clone())?;
        let outcome = job.with_threads(threads).run_at(&ask)?;
        let mut own = TableWrites::clone(own);
        own.merged(&choice.runs, outcome.output);
        self.writes.tables.insert(table, Arc::new(own));
        Ok(true)
    }
}
