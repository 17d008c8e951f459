//! Install: a finished merge becomes part of the current version (contract 3).
//!
//! 1. Deletes that landed in the inputs after H are carried to the output in rounds, outside the lock: nobody reads the
//!    output yet, so its delete logs can be written to. A round whose deletes the record has no room for writes them to
//!    a delete file, as an output of many segments is named by a file aside: the record is bounded, whatever the merge.
//! 2. Under the lock, the few that came since are carried, of the few containers that the commit state knows them to be
//!    in; timestamp I; log record; the output replaces its inputs in the version; *applied* moves. With too many left
//!    there is another round. A table that is gone, an input that left the version, or deletes that keep coming faster
//!    than they are carried, discard the merge.
//! 3. Forwarding is kept while a snapshot older than I may still write; dropped segments' files go later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::commit::Engine;
use crate::commit::engine::Dropped;
use crate::commit::record::InstallEncoder;
use crate::deletes::{DeleteCollector, DeleteSet, NamedDeletes, named_bytes};
use crate::disk::AsideFile;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, TableId};
use crate::main_store::write_runs_aside;
use crate::memory::MemoryKind;
use crate::merge::MergeOutcome;
use crate::segment::Segment;
use crate::settings::Synchronous;
use crate::version::{Base, Snapshot, TableVersion};
use crate::wal::{NewRecord, RecordKind, Reservation};

/// Rows whose deletes may be left for the lock: 0.1 us each.
const CARRY_UNDER_LOCK_ROWS: u64 = 4_096;
/// Containers that they may be in: 1 us each, for what has come to their logs is moved into them first.
const CARRY_UNDER_LOCK_CONTAINERS: usize = 256;
/// Log space for them: at most 16 bytes each, their containers included.
const CARRY_UNDER_LOCK_BYTES: usize = 64 << 10;
/// Rounds after which the merge is given up. Each takes 0.1 us a row that was deleted during the one before, so a
/// second round is seldom, and a third one needs millions of deletes a second.
const CARRY_ROUNDS_MAX: u32 = 16;

/// Deletes on their way from the inputs to the output.
struct Carry<'a> {
    outcome: &'a MergeOutcome,
    upto: CommitTs,
    /// All so far, by output segment, for the record.
    deletes: NamedDeletes,
    /// Files aside that the record names: those of deletes, and the one with the output.
    files: Vec<Arc<AsideFile>>,
    /// Bytes of deletes the record still has room for.
    room: usize,
    /// Registered, so that no fold joins the deletes of two rounds.
    rounds: Vec<Arc<Snapshot>>,
}

/// What came of an attempt under the lock.
enum Attempt {
    Installed(CommitTs),
    Discarded,
    TooManyDeletes,
}

impl Engine {
    /// Installs `outcome` for `table` and returns I, or `None` when the merge had to be discarded.
    ///
    /// # Errors
    /// Full or Closed when the log takes no record: nothing changed, the output's files go away.
    pub fn install(&self, table: TableId, outcome: MergeOutcome) -> Result<Option<CommitTs>> {
        // Before the lock, for they may be many; and a panic under it must not take along files that the record names.
        outcome.keep_files();
        let installed = self.install_kept(table, &outcome);
        if !matches!(installed, Ok(Some(_))) {
            outcome.release_files();
        }
        installed
    }

    /// As [`Engine::install`]; an error or `None` says that there is no record.
    fn install_kept(&self, table: TableId, outcome: &MergeOutcome) -> Result<Option<CommitTs>> {
        self.check_writable()?;
        let mut carry = Carry {
            outcome,
            upto: outcome.h,
            deletes: NamedDeletes::default(),
            files: Vec::new(),
            room: self.options.inline_delete_bytes,
            rounds: Vec::new(),
        };
        self.name_files(outcome.own_segments())?;
        let aside = self.write_output_aside(outcome)?;
        carry.files.extend(aside.clone());
        for _ in 1..=CARRY_ROUNDS_MAX {
            self.check_writable()?;
            self.turns.pass_install(table, || self.is_waited_for());
            let now = self.timeline.snapshot(Base::Applied, false);
            let Some(version) = now.root().tables.get(&table) else { return Ok(None) };
            carry.upto(self, now.ts(), version)?;
            let dropped = dropped_segments(version, outcome);
            carry.rounds.push(now);
            let record = InstallEncoder::new(table, outcome, aside.as_ref(), carry.deletes.clone());
            let space = self.log.reserve(record.bytes() + CARRY_UNDER_LOCK_BYTES)?;
            match self.try_install(table, &mut carry, record, space, dropped)? {
                Attempt::Installed(at) => {
                    self.timeline.advance_visible(self.log.visible());
                    return Ok(Some(at));
                }
                Attempt::Discarded => return Ok(None),
                Attempt::TooManyDeletes => {}
            }
        }
        Ok(None)
    }

    /// The file that names the output, when its segments are too many for the record.
    fn write_output_aside(&self, outcome: &MergeOutcome) -> Result<Option<Arc<AsideFile>>> {
        // A log in memory is never read again.
        if self.log.is_disabled() {
            return Ok(None);
        }
        let mut room = self.options.inline_run_bytes;
        write_runs_aside(&self.disk, || self.next_file(), outcome.output.as_slice(), &mut room)
    }

    /// Under the lock, in memory only.
    fn try_install(
        &self,
        table: TableId,
        carry: &mut Carry<'_>,
        record: InstallEncoder,
        space: Reservation,
        dropped: Vec<Arc<Segment>>,
    ) -> Result<Attempt> {
        let outcome = carry.outcome;
        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, root) = self.timeline.present();
        let Some(version) = root.tables.get(&table).filter(|version| has_inputs(version, outcome)) else {
            return Ok(Attempt::Discarded);
        };
        // Of the inputs, which may be very many, only those that rows were deleted from since the last round.
        let Some(deleted_from) = lock.state.recent_deletes.after(carry.upto) else {
            return Ok(Attempt::TooManyDeletes);
        };
        let inputs: BTreeSet<_> = deleted_from.filter(|id| outcome.forwarding.has_input(*id)).collect();
        if inputs.len() > CARRY_UNDER_LOCK_CONTAINERS {
            return Ok(Attempt::TooManyDeletes);
        }
        let inputs = || inputs.iter().filter_map(|id| Some((*id, version.container(*id)?.deletes())));
        if inputs().map(|(_, log)| log.count_after(carry.upto)).sum::<u64>() > CARRY_UNDER_LOCK_ROWS {
            return Ok(Attempt::TooManyDeletes);
        }
        let rest = unions(outcome.carry(carry.upto, applied, inputs()));
        let at = applied.next();
        let record = record.finish(&rest);
        let new = NewRecord {
            ts: at,
            kind: RecordKind::Install,
            schema_version: version.schema.version,
            level: Synchronous::Off,
            payload: &record,
        };
        // Before the record is there: a panic from here on must not take along files that it names.
        carry.files.iter().for_each(|file| file.keep());
        self.log.append(space, new).inspect_err(|_| carry.files.iter().for_each(|file| file.release()))?;
        let next = version.with_merge(at, &outcome.consumed_deltas, &outcome.consumed_runs, outcome.output.clone());
        for (id, set) in &rest {
            if let Some(container) = next.container(*id) {
                container.deletes().record(applied, set);
            }
        }
        // Always: a transaction may begin below I until *visible* has reached it.
        self.forwardings.add(at, table, outcome.forwarding.clone());
        carry.files.iter().for_each(|file| self.note_aside(&mut lock, at, Some(file)));
        lock.state.dropped.push((at, Dropped::Segments(dropped)));
        let consumed = version.deltas.iter().filter(|delta| outcome.consumed_deltas.contains(&delta.id()));
        for delta in consumed {
            lock.state.delta_starts.forget(delta.id());
            delta.count_as(&self.memory, MemoryKind::OldDeltas);
        }
        self.timeline.apply(at, Some(Arc::new(root.with_table_version(Arc::new(next)))));
        self.log.mark_applied(at);
        // What is let go of below may be the last of a great deal.
        drop(lock);
        Ok(Attempt::Installed(at))
    }
}

impl Carry<'_> {
    /// A round: carries the deletes up to `upto` into the output, which nobody reads yet.
    fn upto(&mut self, engine: &Engine, upto: CommitTs, version: &TableVersion) -> Result<()> {
        let next_file = || engine.next_file();
        let mut collector = DeleteCollector::new(&engine.disk, &next_file, self.room);
        let inputs = self.outcome.inputs_in(version);
        for (id, set) in unions(self.outcome.carry(self.upto, upto, inputs)) {
            let part = self.outcome.output.as_ref().and_then(|run| run.segment(id));
            let part = part.ok_or_else(|| Error::internal(format!("deletes carried to unknown segment {id}")))?;
            part.segment.deletes().record(upto, &set);
            // A log in memory is never read again.
            if !engine.log.is_disabled() {
                collector.push(id, &set)?;
            }
        }
        let (inline, file) = collector.finish()?;
        self.room = self.room.saturating_sub(inline.iter().map(|(_, set)| named_bytes(set)).sum());
        self.deletes.inline.extend(inline);
        self.deletes.files.extend(file.iter().map(|file| file.at()));
        self.files.extend(file);
        self.upto = upto;
        Ok(())
    }
}

/// Deletes by container. Any snapshot that reads the output stands at I or later, so their order among themselves is of
/// no use.
fn unions(carried: Vec<(ContainerId, CommitTs, DeleteSet)>) -> BTreeMap<ContainerId, DeleteSet> {
    let mut sets: BTreeMap<ContainerId, Vec<DeleteSet>> = BTreeMap::new();
    for (id, _, set) in carried {
        sets.entry(id).or_default().push(set);
    }
    sets.into_iter().map(|(id, sets)| (id, DeleteSet::union(&sets))).collect()
}

/// Whether every input is still part of `version`, and no load has extended one.
fn has_inputs(version: &TableVersion, outcome: &MergeOutcome) -> bool {
    let deltas = outcome.consumed_deltas.iter().all(|id| version.frozen_deltas().iter().any(|d| d.id() == *id));
    let consumed = version.runs.iter().filter(|run| outcome.consumed_runs.contains(&run.id()));
    let (runs, rows) = consumed.fold((0, 0), |(runs, rows), run| (runs + 1, rows + run.rows()));
    deltas && runs == outcome.consumed_runs.len() && rows == outcome.consumed_run_rows
}

/// Segments of the consumed runs, and of their key indexes, that the output does not list. A run that a load extends
/// before the install is none of its inputs any more.
fn dropped_segments(before: &TableVersion, outcome: &MergeOutcome) -> Vec<Arc<Segment>> {
    let kept = |id: ContainerId| outcome.output.as_ref().is_some_and(|run| run.segment(id).is_some());
    let consumed = before.runs.iter().filter(|run| outcome.consumed_runs.contains(&run.id()));
    let segments = consumed.flat_map(|run| run.all_segments()).map(|part| part.segment.clone());
    segments.filter(|segment| !kept(segment.id())).collect()
}
