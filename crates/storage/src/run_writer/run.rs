//! Rows in order become the segments of a run, aside: nothing lists them yet.

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::index::IndexWriter;
use super::target::SegmentTarget;
use crate::error::Result;
use crate::ids::ContainerId;
use crate::limits;
use crate::main_store::{Run, RunSegment};
use crate::schema::TableSchema;
use crate::segment::{Segment, SegmentPlace, SymbolTables, create_segment, rows_that_fit};

/// Writes one run. Until somebody calls [`Segment::keep`] on them, the files of its segments go with the last
/// reference.
#[derive(Debug)]
pub struct RunWriter {
    schema: Arc<TableSchema>,
    target: SegmentTarget,
    segments: Vec<RunSegment>,
    written: Vec<Arc<Segment>>,
    /// One for each key that is not the order.
    indexes: Vec<IndexWriter>,
    /// Threads that encode columns.
    threads: usize,
    /// Those of the last segment.
    symbols: SymbolTables,
}

/// A run that stands aside.
#[derive(Debug)]
pub struct WrittenRun {
    /// The run.
    pub run: Arc<Run>,
    /// Those of its segments that were written for it, without those of its key indexes, which always are.
    pub written: Vec<Arc<Segment>>,
}

impl RunWriter {
    /// A writer of rows of `schema`.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, target: SegmentTarget) -> Self {
        let indexes = IndexWriter::all(&schema, &target);
        let symbols = SymbolTables::new(schema.columns.len());
        Self { schema, target, segments: Vec::new(), written: Vec::new(), indexes, threads: 1, symbols }
    }

    /// The same with `threads` threads that encode columns.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Writes the next rows, one array per column of the schema, as one segment: as several if their texts are too long
    /// for one. Returns the containers with their rows.
    ///
    /// # Errors
    /// Io or Full; Internal when arrays and schema disagree.
    pub fn write(&mut self, columns: &[ArrayRef]) -> Result<Vec<(ContainerId, u32)>> {
        self.write_while(columns, limits::WRITTEN_BLOCKS_KEPT_BYTES, &|| Ok(()))
    }

    /// As [`RunWriter::write`]; of the blocks of each segment at most `kept_bytes` are kept in memory until it is
    /// opened. Ends with the error that `go_on` returns, which is asked now and then: entries of key indexes may have
    /// to be merged.
    ///
    /// # Errors
    /// As [`RunWriter::write`], and those of `go_on`: the writer is of no use any more.
    pub fn write_while(
        &mut self,
        columns: &[ArrayRef],
        kept_bytes: usize,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<(ContainerId, u32)>> {
        let mut rest = columns.to_vec();
        let mut made = Vec::with_capacity(1);
        while rest.first().is_some_and(|column| !column.is_empty()) {
            let fit = rows_that_fit(&rest);
            let head: Vec<ArrayRef> = rest.iter().map(|column| column.slice(0, fit)).collect();
            rest = rest.iter().map(|column| column.slice(fit, column.len() - fit)).collect();
            let SegmentTarget { disk, cache, encodings, ids, .. } = &self.target;
            let (id, file) = (ids.next_container(), ids.next_file());
            let symbols = Some(&self.symbols);
            let place = SegmentPlace { disk, id, file, threads: self.threads, encodings: *encodings, symbols };
            let segment = create_segment(place, cache, &self.schema, &head, kept_bytes)?;
            for index in &mut self.indexes {
                index.add(segment.id(), &head, go_on)?;
            }
            made.push((segment.id(), segment.rows()));
            self.written.push(segment.clone());
            self.segments.push(RunSegment::whole(segment));
        }
        Ok(made)
    }

    /// Bytes of the entries of key indexes that are in memory.
    #[must_use]
    pub fn entry_bytes(&self) -> usize {
        self.indexes.iter().map(IndexWriter::entry_bytes).sum()
    }

    /// Writes those entries aside, while `go_on` says so.
    ///
    /// # Errors
    /// Io or Full; those of `go_on`.
    pub fn put_entries_aside(&mut self, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        self.indexes.iter_mut().try_for_each(|index| index.put_aside(go_on))
    }

    /// Makes `part`, which stands already, the next part of the run, while `go_on` says so.
    ///
    /// # Errors
    /// Io or Corrupt, when its keys are read for the key indexes; those of `go_on`.
    pub fn keep(&mut self, part: RunSegment, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        for index in &mut self.indexes {
            index.add_segment(&part, go_on)?;
        }
        self.segments.push(part);
        Ok(())
    }

    /// The run, the bytes of its files durable, under temporary names; `None` if there are no rows.
    ///
    /// # Errors
    /// Io or Full; Internal when the rows were not in order.
    pub fn finish(self) -> Result<Option<WrittenRun>> {
        self.finish_while(&|| Ok(()))
    }

    /// As [`RunWriter::finish`]; ends with the error that `go_on` returns, which is asked now and then, for a key index
    /// may take a while.
    ///
    /// # Errors
    /// As [`RunWriter::finish`], and those of `go_on`.
    pub fn finish_while(self, go_on: &dyn Fn() -> Result<()>) -> Result<Option<WrittenRun>> {
        if self.segments.is_empty() {
            return Ok(None);
        }
        let indexes = self.indexes.into_iter().map(|index| index.finish(go_on)).collect::<Result<Vec<_>>>()?;
        let run = Run::new(self.target.ids.next_run(), self.segments)?.with_indexes(indexes);
        Ok(Some(WrittenRun { run: Arc::new(run), written: self.written }))
    }
}
