//! Entries of a key index, as they come with the rows of a run, become the index (`docs/design/0003-key-index.md`).

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array};

use super::entries::Entries;
use super::run::RunWriter;
use super::target::SegmentTarget;
use crate::error::{Error, Result};
use crate::ids::{ContainerId, RowRef};
use crate::limits;
use crate::main_store::{Run, RunIndex, RunSegment, index_schema};
use crate::memory::MemoryKind;
use crate::order::{Gather, KeyReader, Picks, Stop, entries_in_order};
use crate::row::key::TableKey;
use crate::schema::TableSchema;

/// Sorts entries in bounded memory: full buffers become runs aside, and [`limits::KEY_INDEX_FAN_IN`] of those one
/// larger one. What is left is merged in the end.
#[derive(Debug)]
pub(super) struct IndexWriter {
    key: TableKey,
    /// Of the index.
    schema: Arc<TableSchema>,
    reader: KeyReader,
    target: SegmentTarget,
    segment_rows: usize,
    /// Memory of a sort, by [`limits::KEY_INDEX_ENTRY_BYTES`].
    sort_entries: usize,
    entries: Entries,
    /// Bytes of all entries so far, and how many there were.
    seen: (usize, usize),
    /// Runs of entries: those of a place are merged of a full place before it. Fewer than fit each.
    sorted: Vec<Vec<Arc<Run>>>,
}

impl IndexWriter {
    /// For rows of `schema`'s table: one for each key that is not their order. Together they sort as much at once as
    /// one would.
    pub fn all(schema: &TableSchema, target: &SegmentTarget) -> Vec<Self> {
        let keys: Vec<TableKey> = schema.indexed_keys().filter_map(|id| TableKey::of(schema, id)).collect();
        let sort_entries = sort_entries(target).div_ceil(keys.len().max(1));
        keys.into_iter().map(|key| Self::new(schema, key, target.clone(), sort_entries)).collect()
    }

    fn new(schema: &TableSchema, key: TableKey, target: SegmentTarget, sort_entries: usize) -> Self {
        let segment_rows =
            schema.options.segment_rows.clamp(limits::SEGMENT_ROWS_MIN, limits::SEGMENT_ROWS_MAX) as usize;
        Self {
            reader: KeyReader::new(schema, key.columns()),
            schema: index_schema(schema, &key),
            key,
            target,
            segment_rows,
            sort_entries,
            entries: Entries::default(),
            seen: (0, 0),
            sorted: Vec::new(),
        }
    }

    /// Takes rows that were just written to `container`: one array per column of the table.
    pub fn add(&mut self, container: ContainerId, columns: &[ArrayRef], go_on: GoOn<'_>) -> Result<()> {
        let array =
            |at: &usize| columns.get(*at).cloned().ok_or_else(|| Error::internal("rows without a column of their key"));
        let arrays = self.reader.positions().iter().map(array).collect::<Result<Vec<_>>>()?;
        self.add_keys(container, 0, &arrays, go_on)
    }

    /// Takes the rows of `part`, which stands already: reads their keys.
    pub fn add_segment(&mut self, part: &RunSegment, go_on: GoOn<'_>) -> Result<()> {
        let columns = self.reader.columns().iter().map(|column| part.segment.read(column, part.range.clone()));
        let arrays = columns.collect::<Result<Vec<_>>>()?;
        self.add_keys(part.segment.id(), part.range.start, &arrays, go_on)
    }

    fn add_keys(&mut self, container: ContainerId, first: u32, arrays: &[ArrayRef], go_on: GoOn<'_>) -> Result<()> {
        let (mut columns, rows) = self.key.with_key(arrays)?;
        #[cfg(test)]
        testing::hash_keys(&self.key, &self.schema, &mut columns)?;
        let count = columns.first().map_or(0, |column| column.len() as u32);
        let references = (0..count).map(|nth| RowRef::new(container, first + rows.row(nth)).to_bits().cast_signed());
        columns.push(Arc::new(references.collect::<Int64Array>()));
        let bytes = self.entries.push(columns);
        self.seen = (self.seen.0 + bytes, self.seen.1 + count as usize);
        if self.is_full() { self.sort(go_on) } else { Ok(()) }
    }

    /// Whether there are as many entries as are sorted at once.
    fn is_full(&self) -> bool {
        #[cfg(test)]
        if testing::SORT_ENTRIES.get().is_some() {
            return self.entries.rows() >= self.sort_entries;
        }
        self.entries.sort_bytes() >= self.sort_entries.saturating_mul(limits::KEY_INDEX_ENTRY_BYTES as usize)
    }

    /// Bytes of the entries at hand.
    pub fn entry_bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Writes the entries at hand aside; none are left in memory.
    pub fn put_aside(&mut self, go_on: GoOn<'_>) -> Result<()> {
        if self.entries.rows() == 0 { Ok(()) } else { self.sort(go_on) }
    }

    /// Sorts the entries at hand and writes them aside; merges what was written, where that is much.
    fn sort(&mut self, go_on: GoOn<'_>) -> Result<()> {
        let sorted = std::mem::take(&mut self.entries).sorted(&self.schema)?;
        let mut writer = RunWriter::new(self.schema.clone(), self.target.clone());
        for columns in sorted.chunks(self.segment_rows) {
            writer.write(&columns?)?;
        }
        drop(sorted);
        let mut run = writer.finish()?.map(|written| written.run);
        let mut place = 0;
        while let Some(whole) = run.take() {
            if self.sorted.len() == place {
                self.sorted.push(Vec::new());
            }
            let Some(runs) = self.sorted.get_mut(place) else { break };
            runs.push(whole);
            if runs.len() >= limits::KEY_INDEX_FAN_IN {
                let full = std::mem::take(runs);
                run = self.merge(&full, go_on)?;
                place += 1;
            }
        }
        Ok(())
    }

    /// The index, its bytes durable. Its files go with it unless somebody keeps them. `go_on` is asked before each
    /// segment.
    pub fn finish(mut self, go_on: GoOn<'_>) -> Result<RunIndex> {
        self.put_aside(go_on)?;
        let mut runs = Vec::new();
        for place in std::mem::take(&mut self.sorted) {
            // Few in all, the smallest first.
            if runs.len() + place.len() > limits::KEY_INDEX_FAN_IN {
                runs = self.merge(&runs, go_on)?.into_iter().collect();
            }
            runs.extend(place);
        }
        let entries = if runs.len() < 2 { runs.pop() } else { self.merge(&runs, go_on)? };
        let entries = match entries {
            Some(entries) => entries,
            // No row has the key.
            None => Arc::new(Run::new(self.target.ids.next_run(), Vec::new())?),
        };
        Ok(RunIndex::new(self.key.id(), entries))
    }

    /// Bytes that merging `runs` takes, about: of each the keys of a segment and a column of what was picked of them,
    /// and of the segment that is written the picks, their places and all columns, once more while they are encoded.
    fn merge_bytes(&self, runs: &[Arc<Run>]) -> usize {
        let entry = self.seen.0.div_ceil(self.seen.1.max(1));
        let largest = |run: &Arc<Run>| run.segments().iter().map(|part| part.range.len()).max().unwrap_or(0);
        runs.iter().map(largest).sum::<usize>() * (entry + 8) + self.segment_rows * (2 * entry + 8)
    }

    /// One run of all of `runs`. Counted as long as it takes.
    fn merge(&self, runs: &[Arc<Run>], go_on: GoOn<'_>) -> Result<Option<Arc<Run>>> {
        let _counted = self.target.memory.charge(MemoryKind::Reserve, self.merge_bytes(runs));
        let mut cursor = entries_in_order(&self.schema, runs)?;
        let mut writer = RunWriter::new(self.schema.clone(), self.target.clone());
        let mut picks = Picks::default();
        loop {
            go_on()?;
            let stop = cursor.next(self.segment_rows, &mut picks)?;
            if !picks.is_empty() {
                let gather = Gather::new(cursor.parts(), &picks)?;
                let column = |column| gather.column(cursor.parts(), column);
                writer.write(&self.schema.columns.iter().map(column).collect::<Result<Vec<_>>>()?)?;
                picks.clear();
            }
            if stop == Stop::End {
                break;
            }
        }
        Ok(writer.finish()?.map(|written| written.run))
    }
}

/// Asked before each segment of entries that is merged: its error ends the work.
type GoOn<'a> = &'a dyn Fn() -> Result<()>;

fn sort_entries(target: &SegmentTarget) -> usize {
    #[cfg(test)]
    if let Some(entries) = testing::SORT_ENTRIES.get() {
        return entries;
    }
    target.sort_entries.clamp(1, limits::KEY_INDEX_SORT_ENTRIES)
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::Cell;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use crate::error::Result;
    use crate::main_store::index_key;
    use crate::row::key::TableKey;
    use crate::schema::TableSchema;

    /// The hashes of `key` in the place of `columns`, for an index of `schema`, if that is one by hash.
    pub(super) fn hash_keys(key: &TableKey, schema: &TableSchema, columns: &mut Vec<ArrayRef>) -> Result<()> {
        if schema.columns.first().is_some_and(|column| column.name == "hash") {
            let keys = key.codec().encode_arrays(columns)?;
            *columns = vec![Arc::new(keys.iter().map(index_key).collect::<Int64Array>())];
        }
        Ok(())
    }

    thread_local! {
        /// Entries that this thread's writers sort at once, if not as many as usual.
        pub(crate) static SORT_ENTRIES: Cell<Option<usize>> = const { Cell::new(None) };
    }
}
