//! Numbers for IDENTITY columns: blocks of them, reserved in the log before one is given out.
//!
//! Comes in: how many numbers somebody needs. Goes out: as many that nobody else gets.
//!
//! 1. A column's numbers are counted from 0; [`NumberSource`] says which value each stands for, and how many there are.
//! 2. Numbers come from the block at hand, under a lock of the column's own: no commit lock, no log.
//! 3. When it is empty, the next block is reserved: a record that says how many numbers are taken, fsynced whatever the
//!    session's `synchronous`. Blocks double in size with use, so that a busy column reserves seldom.
//! 4. A clean close gives back what no one has drawn ([`Engine::return_numbers`]); after a crash the rest of a block is
//!    a gap.
//! 5. TRUNCATE ... RESTART IDENTITY begins anew at its commit: a block of an older era is then worth nothing, and rows
//!    with numbers that were drawn before cannot be committed any more (`TableStamp::numbers_restarted`). What was
//!    taken until then is remembered for older snapshots ([`super::ended_numbers`]): UNLOAD and EXPORT write it beside
//!    their rows.
//!
//! Invariants: a number is below the mark of a durable record before anybody has it; whoever holds a column's lock may
//! take the commit lock, never the other way round. It does not own: numbers of tables that are not committed
//! (`transaction`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::blocks::{Block, Column};
use crate::commit::Engine;
use crate::commit::conflict::table_conflict;
use crate::commit::engine::{CommitLock, CommitState};
use crate::commit::record::CommitEncoder;
use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, CommitTs, SchemaVersion, TableId};
use crate::limits::{IDENTITY_BLOCK_MAX, IDENTITY_BLOCK_MIN};
use crate::schema::{DataType, TableSchema};
use crate::settings::Synchronous;
use crate::version::Root;
use crate::wal::{NewRecord, RecordKind, Reservation};
use crate::write_set::DdlChange;

/// Which values an IDENTITY column counts through.
#[derive(Clone, Debug)]
pub struct NumberSource {
    schema: Arc<TableSchema>,
    column: ColumnId,
    start: i64,
    increment: i64,
    /// How many there are.
    count: u64,
}

/// Numbers of a column as somebody has found them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumbersSeen {
    /// How many anybody has.
    pub taken: u64,
    /// How many are reserved, if any were ever.
    pub mark: Option<u64>,
}

impl NumberSource {
    /// The values of `column` of `schema`'s table.
    ///
    /// # Errors
    /// Internal for a column that is none of the table's, or counts nothing.
    pub fn new(schema: &Arc<TableSchema>, id: ColumnId) -> Result<Self> {
        let column = schema.column(id);
        let identity = column.and_then(|column| Some((column.data_type, column.identity?)));
        let Some((data_type, identity)) = identity else {
            return Err(Error::internal(format!("column {id} of table \"{}\" counts nothing", schema.name)));
        };
        let (start, increment) = (identity.start, identity.increment);
        let last = limit(data_type, increment);
        let steps = (i128::from(last) - i128::from(start)).checked_div(i128::from(increment)).unwrap_or(-1);
        let beyond = (i128::from(last) - i128::from(start)).signum() * i128::from(increment.signum()) < 0;
        let count = if beyond { 0 } else { u64::try_from(steps + 1).unwrap_or(u64::MAX) };
        Ok(Self { schema: schema.clone(), column: id, start, increment, count })
    }

    /// The values of the numbers `taken..taken + n`.
    ///
    /// # Errors
    /// Invalid (2200H) when there are not as many.
    pub fn values(&self, taken: u64, n: u64) -> Result<Vec<i64>> {
        let end = taken.checked_add(n).filter(|end| *end <= self.count).ok_or_else(|| self.exhausted())?;
        let value = |number: u64| i128::from(self.start) + i128::from(number) * i128::from(self.increment);
        let values = (taken..end).map(|number| i64::try_from(value(number)).map_err(|_| self.exhausted()));
        values.collect()
    }

    fn exhausted(&self) -> Error {
        let column = self.schema.column(self.column);
        let last = column.map_or(0, |column| limit(column.data_type, self.increment));
        let bound = if self.increment > 0 { "maximum" } else { "minimum" };
        let (table, name) = (&self.schema.name, column.map_or("", |column| &column.name));
        let message = format!("nextval: reached {bound} value of sequence \"{table}_{name}_seq\" ({last})");
        Error::invalid(sqlstate::SEQUENCE_EXHAUSTED, message)
    }
}

/// The last value of a type, in the direction of `increment`.
fn limit(data_type: DataType, increment: i64) -> i64 {
    let (least, most) = match data_type {
        DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if increment < 0 { least } else { most }
}

impl Engine {
    /// The next `n` numbers of `source`, for whoever asks.
    ///
    /// # Errors
    /// Invalid (2200H): there are not as many, none is taken. Conflict (40001): the table or column is gone. Full,
    /// Closed: as a commit; numbers may be lost then.
    pub fn draw_numbers(&self, source: &NumberSource, n: usize) -> Result<Vec<i64>> {
        let column = self.numbers.column((source.schema.id, source.column));
        let mut block = column.block.lock();
        if block.era != column.era.load(Ordering::Acquire) {
            block.next = block.end;
        }
        let wanted = n as u64;
        let at_hand = block.end - block.next;
        if at_hand >= wanted {
            let (first, count) = block.take(wanted);
            return source.values(first, count);
        }
        let more = self.reserve_numbers(source, &column, &mut block, wanted - at_hand)?;
        let mut values = Vec::with_capacity(n);
        // What was at hand is worth nothing if counting has begun anew meanwhile; `more` is then enough for all.
        if let Some((first, count)) = more {
            values.extend(source.values(first, count)?);
        }
        let (first, count) = block.take(wanted - values.len() as u64);
        values.extend(source.values(first, count)?);
        Ok(values)
    }

    /// Reserves at least `missing` numbers for `block`. What was left in it, as (first, count), comes before them.
    fn reserve_numbers(
        &self,
        source: &NumberSource,
        column: &Column,
        block: &mut Block,
        missing: u64,
    ) -> Result<Option<(u64, u64)>> {
        let (table, id) = (source.schema.id, source.column);
        self.check_writable()?;
        let change = |taken| DdlChange::TakeNumbers { table, column: id, taken };
        let space = self.reserve_log(CommitEncoder::new(&[change(0)], &[])?.bytes(), || {})?;
        let size = (block.size * 2).clamp(IDENTITY_BLOCK_MIN, IDENTITY_BLOCK_MAX);
        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, root) = self.timeline.present();
        let present = root.catalog.table(table).and_then(|schema| schema.column(id));
        if present.is_none_or(|column| column.identity.is_none()) {
            return Err(table_conflict(&source.schema));
        }
        let era = column.era.load(Ordering::Acquire);
        let left = (era == block.era && block.next < block.end).then_some((block.next, block.end - block.next));
        let missing = missing + if left.is_none() { block.end - block.next } else { 0 };
        let taken = lock.state.numbers.get(&(table, id)).copied().unwrap_or(0);
        let least = taken.checked_add(missing).filter(|end| *end <= source.count).ok_or_else(|| source.exhausted())?;
        let end = taken.saturating_add(size).min(source.count).max(least);
        let ts = applied.next();
        self.append_numbers(&mut lock, ts, space, &[change(end)], Synchronous::Full)?;
        drop(lock);
        self.wait_visible(ts)?;
        *block = Block { era, next: taken, end, size };
        Ok(left)
    }

    /// Has the first `taken` numbers of `source` be taken, durably.
    ///
    /// # Errors
    /// As [`Engine::draw_numbers`].
    pub fn advance_numbers(&self, source: &NumberSource, taken: u64) -> Result<()> {
        let (table, id) = (source.schema.id, source.column);
        let column = self.numbers.column((table, id));
        let mut block = column.block.lock();
        self.check_writable()?;
        let changes = [DdlChange::TakeNumbers { table, column: id, taken }];
        let space = self.reserve_log(CommitEncoder::new(&changes, &[])?.bytes(), || {})?;
        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, root) = self.timeline.present();
        let present = root.catalog.table(table).and_then(|schema| schema.column(id));
        if present.is_none_or(|column| column.identity.is_none()) {
            return Err(table_conflict(&source.schema));
        }
        let era = column.era.load(Ordering::Acquire);
        let mark = lock.state.numbers.get(&(table, id)).copied().unwrap_or(0);
        if taken <= mark {
            // Those of the block at hand that lie below are lost.
            if block.era == era && block.end == mark {
                block.next = block.next.max(taken);
            }
            return Ok(());
        }
        let ts = applied.next();
        self.append_numbers(&mut lock, ts, space, &changes, Synchronous::Full)?;
        drop(lock);
        self.wait_visible(ts)?;
        *block = Block { era, next: taken, end: taken, size: block.size };
        Ok(())
    }

    /// Under the lock: logs and notes how many numbers are taken.
    fn append_numbers(
        &self,
        lock: &mut CommitLock<'_>,
        ts: CommitTs,
        space: Reservation,
        changes: &[DdlChange],
        level: Synchronous,
    ) -> Result<()> {
        let record = CommitEncoder::new(changes, &[])?;
        let kind = RecordKind::Commit;
        self.log.append(
            space,
            NewRecord { ts, kind, schema_version: SchemaVersion(0), level, payload: record.payload() },
        )?;
        for change in changes {
            if let DdlChange::TakeNumbers { table, column, taken } = change {
                lock.state.numbers.insert((*table, *column), *taken);
            }
        }
        self.publish(ts, None, None)
    }

    /// What is wrong with the numbers taken, at `root` or later: they belong to columns that count.
    ///
    /// # Errors
    /// As [`Engine::lock`].
    pub fn verify_numbers(&self, root: &Root) -> Result<Vec<Error>> {
        let lock = self.lock()?;
        let counts = |table: TableId, column: ColumnId| {
            let present = self.timeline.present().1;
            let of = |root: &Root| root.catalog.table(table)?.column(column)?.identity;
            of(root).or_else(|| of(&present)).is_some()
        };
        let strays = lock.state.numbers.keys().filter(|(table, column)| !counts(*table, *column));
        let text = |(table, column): &(TableId, ColumnId)| {
            Error::internal(format!("numbers are taken of column {column} of table {table}, which counts nothing"))
        };
        Ok(strays.map(text).collect())
    }

    /// How many numbers of each IDENTITY column were taken when a transaction began that stands at `at`, or later:
    /// those that rows may have which it sees. Where counting has begun anew since, or has ended with the column, these
    /// are numbers of before.
    ///
    /// # Errors
    /// As [`Engine::lock`].
    pub fn numbers_taken(&self, at: CommitTs) -> Result<BTreeMap<(TableId, ColumnId), u64>> {
        let lock = self.lock()?;
        let ended: BTreeMap<_, _> =
            lock.state.ended_numbers.iter().filter_map(|(of, ended)| Some((*of, ended.at(at)?))).collect();
        let mut taken = lock.state.numbers.clone();
        // Eras as of these marks: a block of a later one says nothing of them.
        let columns =
            self.numbers.all().into_iter().map(|(of, column)| (of, column.era.load(Ordering::Acquire), column));
        let columns: Vec<_> = columns.collect();
        drop(lock);
        for (of, era, column) in columns {
            if let Some(mark) = taken.get_mut(&of) {
                *mark = column.block.lock().taken_of(*mark, era);
            }
        }
        taken.extend(ended);
        Ok(taken)
    }

    /// Under the lock: counting ends for the columns of `table` that `ends`, as of the commit at `ts`. What was taken
    /// stays known to those who see rows of before.
    pub(super) fn end_numbers(
        &self,
        state: &mut CommitState,
        table: TableId,
        ends: impl Fn(ColumnId) -> bool,
        ts: CommitTs,
    ) {
        let oldest = self.oldest_at();
        let marks = state.numbers.range((table, ColumnId(0))..).take_while(|((of, _), _)| *of == table);
        let gone: Vec<_> = marks.filter(|((_, column), _)| ends(*column)).map(|(of, mark)| (*of, *mark)).collect();
        for (of, mark) in gone {
            state.numbers.remove(&of);
            let ended = state.ended_numbers.entry(of).or_default();
            ended.forget_before(oldest);
            ended.push(ts, self.numbers.taken(of, mark));
        }
    }

    /// Forgets what nobody stands before any more. Under the lock.
    pub(in crate::commit) fn forget_ended_numbers(&self, state: &mut CommitState) {
        if !state.ended_numbers.is_empty() {
            let oldest = self.oldest_at();
            state.ended_numbers.retain(|_, ended| !ended.forget_before(oldest));
        }
    }

    /// Where the oldest transaction stands, or the next one will.
    fn oldest_at(&self) -> CommitTs {
        // In this order: a snapshot that is not seen was taken at this mark or later.
        let visible = self.timeline.visible();
        self.timeline.oldest_snapshot().map_or(visible, |oldest| oldest.min(visible))
    }

    /// How many numbers of column `of` anybody has, and the mark below which they lie: while the mark stands nobody
    /// gets another one. What was left at hand is lost to who would draw next, unless the mark goes.
    ///
    /// # Errors
    /// As [`Engine::lock`].
    pub fn close_block(&self, of: (TableId, ColumnId)) -> Result<NumbersSeen> {
        let column = self.numbers.column(of);
        let mut block = column.block.lock();
        let lock = self.lock()?;
        let mark = lock.state.numbers.get(&of).copied();
        let taken = block.taken_of(mark.unwrap_or(0), column.era.load(Ordering::Acquire));
        drop(lock);
        block.end = block.next;
        Ok(NumbersSeen { taken, mark })
    }

    /// Gives numbers that are reserved and not drawn back, for whoever opens the database next: a clean end leaves no
    /// gaps. Those who draw meanwhile wait, and reserve anew.
    ///
    /// # Errors
    /// As a commit; the numbers are then a gap.
    pub fn return_numbers(&self) -> Result<()> {
        let columns = self.numbers.all();
        let mut blocks = Vec::new();
        for (of, column) in &columns {
            let block = column.block.lock();
            if block.next < block.end {
                blocks.push((*of, column, block));
            }
        }
        if blocks.is_empty() {
            return Ok(());
        }
        self.check_writable()?;
        let change =
            |((table, column), taken): ((TableId, ColumnId), u64)| DdlChange::TakeNumbers { table, column, taken };
        let most: Vec<_> = blocks.iter().map(|(of, ..)| change((*of, 0))).collect();
        let space = self.log.reserve(CommitEncoder::new(&most, &[])?.bytes())?;
        let mut lock = self.lock()?;
        self.check_writable()?;
        let mut changes = Vec::new();
        for (of, column, block) in &mut blocks {
            let marked = lock.state.numbers.get(of) == Some(&block.end);
            if marked && block.era == column.era.load(Ordering::Acquire) {
                changes.push(change((*of, block.next)));
            }
            block.end = block.next;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let ts = self.timeline.present().0.next();
        self.append_numbers(&mut lock, ts, space, &changes, Synchronous::Off)
    }
}
