//! What a running statement writes, aside until it ends.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};

use crate::commit::Engine;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::RowRef;
use crate::limits;
use crate::load::{Loader, Pace, Waiting};
use crate::main_store::Run;
use crate::memory::{Charge, MemoryKind};
use crate::point::PointTable;
use crate::row::key::RowKeys;
use crate::row::{RowBuffer, RowLayout, batch_of, check_batch, check_load};
use crate::schema::TableSchema;
use crate::threads;
use crate::version::{Snapshot, Work};
use crate::write_set::RowSets;

/// What the running statement writes: to one table, aside until the statement ends.
#[derive(Debug)]
pub struct StatementWrites {
    engine: Arc<Engine>,
    /// To look for rows that somebody else changed; `None` in a read-only transaction, for which nothing is forwarded.
    snapshot: Option<Arc<Snapshot>>,
    /// How a load of it waits for others.
    waiting: Waiting,
    table: Option<Arc<TableSchema>>,
    rows: Option<RowBuffer>,
    /// What takes many rows, and its pace.
    loader: Option<(Loader, Pace)>,
    /// Runs that others have written.
    runs: Vec<Arc<Run>>,
    inserted: u64,
    deleted: TableDeletes,
    /// Bytes of `rows` and `deleted`, about; the loader counts its own.
    charge: Option<Charge>,
}

/// Rows that come in small parts are counted in steps of so many bytes, and a statement that writes less is not: its
/// writes are as soon as it has ended.
const COUNT_BYTES: usize = 8 << 10;

/// What a finished statement wrote.
pub(super) struct Finished {
    pub schema: Arc<TableSchema>,
    pub rows: RowBuffer,
    /// What the rows have as the keys of the table, once they are checked.
    pub keys: Box<[RowKeys]>,
    pub runs: Vec<Arc<Run>>,
    pub deleted: TableDeletes,
    /// Counts the rows and deletes until others do.
    pub charge: Option<Charge>,
}

/// Rows a statement deletes, each once.
#[derive(Debug, Default)]
pub(super) struct TableDeletes {
    pub(super) by_container: RowSets,
    pub(super) rows: u64,
    /// Bytes of the sets.
    bytes: usize,
}

impl TableDeletes {
    fn add(&mut self, rows: &[RowRef]) {
        for part in rows.chunk_by(|a, b| a.container() == b.container()) {
            let Some(container) = part.first().map(|row| row.container()) else { continue };
            let set = self.by_container.entry(container).or_default();
            let before = set.serialized_size();
            self.rows += part.iter().filter(|row| set.insert(row.offset())).count() as u64;
            self.bytes += set.serialized_size() - before.min(self.bytes);
        }
    }

    pub(super) fn contains(&self, row: RowRef) -> bool {
        self.by_container.get(&row.container()).is_some_and(|set| set.contains(row.offset()))
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = RowRef> {
        self.by_container.iter().flat_map(|(&id, set)| set.iter().map(move |offset| RowRef::new(id, offset)))
    }
}

impl StatementWrites {
    pub(super) fn new(engine: Arc<Engine>, snapshot: Option<Arc<Snapshot>>, waiting: Waiting) -> Self {
        Self {
            engine,
            snapshot,
            waiting,
            table: None,
            rows: None,
            loader: None,
            runs: Vec::new(),
            inserted: 0,
            deleted: TableDeletes::default(),
            charge: None,
        }
    }

    /// Whether it has named no table.
    pub(super) fn is_untouched(&self) -> bool {
        self.table.is_none()
    }

    /// The writes; `None` when there are none.
    pub(super) fn finish(mut self) -> Result<Option<Finished>> {
        self.count();
        let Some(schema) = self.table else { return Ok(None) };
        let rows = self.rows.unwrap_or_else(|| RowBuffer::new(RowLayout::new(&schema)));
        let mut runs = self.runs;
        if let Some((loader, _)) = self.loader {
            // It writes what is left, which may be all of it, and may wait for other loads.
            let _at_work = self.engine.timeline.activity().begin(Work::Thread);
            runs.extend(loader.finish()?);
        }
        let nothing = rows.is_empty() && runs.is_empty() && self.deleted.rows == 0;
        let keys = Box::default();
        Ok((!nothing).then_some(Finished { schema, rows, keys, runs, deleted: self.deleted, charge: self.charge }))
    }

    /// Whether a later commit changed one of the rows it deletes (contract 2).
    pub(super) fn check_unchanged(&self) -> Result<()> {
        match (&self.snapshot, &self.table) {
            (Some(snapshot), Some(table)) => self.engine.check_unchanged(table, snapshot, self.deleted.rows()),
            _ => Ok(()),
        }
    }

    /// Bytes that a load may hold of files whose rows are not taken yet: what others leave of the share, and a part of
    /// it at least. Who takes it gives back what it does not need.
    #[must_use]
    pub fn take_file_memory(&self) -> Charge {
        let memory = &self.engine.memory;
        memory.charge_rest(MemoryKind::Files, memory.share(MemoryKind::Files) / limits::FILE_MEMORY_PART)
    }

    /// Inserts `batch`: the columns of `table` in their order. Types, NOT NULL, lengths and ranges are checked here;
    /// keys at the end of the statement. A large insert goes to segments aside, in bounded memory.
    ///
    /// # Errors
    /// Constraint or Invalid for a value the table does not take; Full or Io when written aside.
    pub fn insert(&mut self, table: &Arc<TableSchema>, batch: &RecordBatch) -> Result<()> {
        self.enter(table)?;
        let timeline = self.engine.timeline.clone();
        let _at_work = timeline.activity().begin(Work::Thread);
        let batch = check_batch(table, batch)?;
        self.inserted += batch.num_rows() as u64;
        if self.loader.is_none() {
            let rows = self.rows.get_or_insert_with(|| RowBuffer::new(RowLayout::new(table)));
            if rows.len() + batch.num_rows() <= table.commit_rows_max() && rows.bytes() <= limits::COMMIT_BYTES_MAX {
                rows.push_batch(&batch)?;
                self.count();
                return Ok(());
            }
        }
        self.load_checked(table, &batch)
    }

    /// As [`StatementWrites::insert`], of `columns`, many rows that are made for it: their texts may be Utf8.
    ///
    /// # Errors
    /// As [`StatementWrites::insert`].
    pub fn load(&mut self, table: &Arc<TableSchema>, columns: Vec<ArrayRef>) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        if self.loader.is_none() && rows <= table.commit_rows_max() {
            return self.insert(table, &batch_of(columns)?);
        }
        self.enter(table)?;
        let timeline = self.engine.timeline.clone();
        let _at_work = timeline.activity().begin(Work::Thread);
        let batch = batch_of(check_load(table, columns)?)?;
        self.inserted += rows as u64;
        self.load_checked(table, &batch)
    }

    /// Writes `batch`, which is checked, and what came before it to segments aside.
    fn load_checked(&mut self, table: &Arc<TableSchema>, batch: &RecordBatch) -> Result<()> {
        if let Some((loader, pace)) = &mut self.loader {
            loader.push(batch)?;
            // Others may wait for a gate that it holds where it waits for nobody.
            if !matches!(self.waiting, Waiting::Never) {
                let timeline = &self.engine.timeline;
                pace.breathe(
                    || timeline.applied(),
                    |rest| {
                        let _paused = timeline.activity().pause(Work::Thread);
                        std::thread::sleep(rest);
                    },
                );
            }
            return Ok(());
        }
        let mut loader = self.engine.loader(table, waits_while_open(&self.engine, &self.waiting));
        if let Some(rows) = self.rows.as_ref().filter(|rows| !rows.is_empty()) {
            let arrays = rows.to_arrays(&table.column_ids(), 0..rows.len())?;
            loader.push(&RecordBatch::try_new(table.arrow(), arrays)?)?;
        }
        loader.push(batch)?;
        self.rows = None;
        self.loader = Some((loader, Pace::new(threads::cores(), self.engine.timeline.applied())));
        self.count();
        Ok(())
    }

    /// Inserts `rows`, which are rows of `table` and thereby checked; keys are checked at the end of the statement.
    ///
    /// # Errors
    /// Full or Io when written aside.
    pub fn insert_rows(&mut self, table: &PointTable, rows: RowBuffer) -> Result<()> {
        let schema = table.schema();
        self.enter(schema)?;
        let (buffered, bytes) = self.rows.as_ref().map_or((0, 0), |rows| (rows.len(), rows.bytes()));
        let is_small = rows.len() == 1 || rows.bytes() <= limits::COMMIT_BYTES_MAX;
        let fits = buffered + rows.len() <= schema.commit_rows_max() && bytes <= limits::COMMIT_BYTES_MAX;
        if self.loader.is_none() && fits && is_small {
            self.inserted += rows.len() as u64;
            match &mut self.rows {
                Some(buffer) => buffer.push_rows(&rows),
                None => self.rows = Some(rows),
            }
            if bytes / COUNT_BYTES != self.rows.as_ref().map_or(0, RowBuffer::bytes) / COUNT_BYTES {
                self.count();
            }
            return Ok(());
        }
        for first in (0..rows.len()).step_by(limits::BATCH_ROWS) {
            let part = first..(first + limits::BATCH_ROWS).min(rows.len());
            let arrays = rows.to_arrays(&schema.column_ids(), part)?;
            self.insert(schema, &RecordBatch::try_new(schema.arrow(), arrays)?)?;
        }
        Ok(())
    }

    /// Inserts the rows of `runs`, which stand aside, were written for `table` as it is, and have no key twice.
    ///
    /// # Errors
    /// As [`StatementWrites::delete`] for two tables.
    pub(super) fn insert_runs(&mut self, table: &Arc<TableSchema>, runs: Vec<Arc<Run>>) -> Result<()> {
        self.enter(table)?;
        self.inserted += runs.iter().map(|run| run.rows()).sum::<u64>();
        self.runs.extend(runs);
        Ok(())
    }

    /// Deletes `rows`, which a scan or probe of this transaction's view of `table` named. A row named twice counts
    /// once.
    ///
    /// # Errors
    /// Conflict (40001) when a later commit changed one of them; Full (53200) when write sets take their whole share of
    /// memory; Invalid when the statement writes to two tables.
    pub fn delete(&mut self, table: &Arc<TableSchema>, rows: &[RowRef]) -> Result<()> {
        self.enter(table)?;
        if let Some(snapshot) = &self.snapshot {
            self.engine.check_writable()?;
            self.engine.check_unchanged(table, snapshot, rows.iter().copied())?;
        }
        self.deleted.add(rows);
        self.count();
        if self.engine.memory.is_over(MemoryKind::WriteSets) { Err(no_room()) } else { Ok(()) }
    }

    /// Whether this statement has deleted `row` already.
    #[must_use]
    pub fn has_deleted(&self, row: RowRef) -> bool {
        self.deleted.contains(row)
    }

    /// Rows inserted so far.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Rows deleted so far.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.deleted.rows
    }

    fn count(&mut self) {
        let bytes = self.rows.as_ref().map_or(0, RowBuffer::bytes) + self.deleted.bytes;
        if self.charge.is_none() && bytes < COUNT_BYTES {
            return;
        }
        let memory = &self.engine.memory;
        self.charge.get_or_insert_with(|| memory.charge(MemoryKind::WriteSets, 0)).resize(bytes);
    }

    fn enter(&mut self, table: &Arc<TableSchema>) -> Result<()> {
        match &self.table {
            Some(entered) if entered.id != table.id => Err(Error::unsupported("a statement that writes to two tables")),
            Some(_) => Ok(()),
            None => {
                self.table = Some(table.clone());
                Ok(())
            }
        }
    }
}

/// As `waiting`, and no longer than the database is open.
fn waits_while_open(engine: &Arc<Engine>, waiting: &Waiting) -> Waiting {
    if matches!(waiting, Waiting::Never) {
        return Waiting::Never;
    }
    let (engine, waiting) = (engine.clone(), waiting.clone());
    Waiting::While(Arc::new(move || engine.check_open().and_then(|()| waiting.go_on())))
}

/// Write sets take all the memory they may.
pub(super) fn no_room() -> Error {
    Error::new(
        ErrorKind::Full,
        sqlstate::OUT_OF_MEMORY,
        "the writes of open transactions take their whole share of memory_limit: end transactions, release savepoints, or raise memory_limit",
    )
}
