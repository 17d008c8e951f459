//! A snapshot to files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Compression, ROWS_DIR, UnloadManifest, UnloadedFile, UnloadedTable, rows_path};
use crate::disk::{DATA_DIR, Disk, MemDisk};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, FileId};
use crate::limits;
use crate::main_store::RunSegment;
use crate::order::{Cursor, Gather, KeyReader, Part, Picks, Stop};
use crate::schema::TableSchema;
use crate::segment::{PackedSegment, Segment, SegmentPlace, rows_that_fit, segment_path, write_segment};
use crate::settings::Encodings;
use crate::threads::in_parallel_alone;
use crate::version::TableView;

/// What is to be unloaded, and how.
#[derive(Clone, Copy)]
pub struct Unload<'a> {
    /// The folder, empty.
    pub disk: &'a dyn Disk,
    /// How its files are compressed.
    pub compression: Compression,
    /// How rows are encoded that are written anew.
    pub encodings: Encodings,
    /// Threads that write files.
    pub threads: usize,
    /// Asked before each file: an error ends it.
    pub go_on: &'a (dyn Fn() -> Result<()> + Sync),
}

/// A table to be unloaded.
#[derive(Clone, Debug)]
pub struct ViewedTable {
    /// What is seen of it.
    pub view: Arc<TableView>,
    /// Numbers taken of its IDENTITY columns.
    pub numbers: Vec<(ColumnId, u64)>,
}

/// What was unloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnloadSummary {
    /// Rows.
    pub rows: u64,
    /// Segments whose blocks were copied.
    pub copied: u64,
    /// Segments that were written anew.
    pub written: u64,
    /// Bytes of all files but the manifest.
    pub bytes: u64,
}

/// What becomes files by itself.
enum Work<'a> {
    /// A segment of a run, as it is.
    Copy { table: usize, run: usize, segment: &'a Arc<Segment> },
    /// All other rows of a table.
    Rest { table: usize, streams: Vec<Vec<Part>> },
}

impl Unload<'_> {
    /// Writes `views` to the folder, and what else `manifest` says; its tables are those of the views.
    ///
    /// # Errors
    /// Full or Io, Corrupt for damage in the database, those of `go_on`. There is no manifest in the folder then.
    pub fn run(&self, mut manifest: UnloadManifest, views: &[ViewedTable]) -> Result<UnloadSummary> {
        self.disk.create_dir(ROWS_DIR)?;
        let mut tables = Vec::with_capacity(views.len());
        let mut work = Vec::new();
        for (table, ViewedTable { view, numbers }) in views.iter().enumerate() {
            work.extend(Self::work_of(table, view));
            // One more for the rest.
            let runs = vec![Vec::new(); view.version().runs.len() + 1];
            tables.push(UnloadedTable { schema: view.schema().clone(), numbers: numbers.clone(), runs });
        }
        // Those that take long come first.
        work.sort_by_key(|work| matches!(work, Work::Copy { .. }));
        let next = AtomicU64::new(1);
        let done = in_parallel_alone(self.threads, work.len(), |at| match work.get(at) {
            Some(Work::Copy { segment, table, .. }) => self.copy(segment, schema_of(views, *table)?, &next),
            Some(Work::Rest { streams, table }) => self.merge(streams.clone(), schema_of(views, *table)?, &next),
            None => Err(Error::internal("a piece of an unload is not there")),
        })?;
        let mut summary = UnloadSummary::default();
        for (work, files) in work.iter().zip(done) {
            summary.rows += files.iter().map(|file| u64::from(file.rows)).sum::<u64>();
            summary.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
            let count = files.len() as u64;
            let run = match work {
                Work::Copy { table, run, .. } => {
                    summary.copied += count;
                    tables.get_mut(*table).and_then(|table| table.runs.get_mut(*run))
                }
                Work::Rest { table, .. } => {
                    summary.written += count;
                    tables.get_mut(*table).and_then(|table| table.runs.last_mut())
                }
            };
            run.ok_or_else(|| Error::internal("files of an unload that belong to no run"))?.extend(files);
        }
        tables.iter_mut().for_each(|table| table.runs.retain(|run| !run.is_empty()));
        manifest.tables = tables;
        manifest.compression = self.compression;
        self.disk.sync_dir(ROWS_DIR)?;
        (self.go_on)()?;
        manifest.write(self.disk)?;
        Ok(summary)
    }

    /// What is to be done for table number `table`, which `view` sees.
    fn work_of<'v>(table: usize, view: &'v TableView) -> Vec<Work<'v>> {
        let (mut work, mut streams) = (Vec::new(), Vec::new());
        for (run, found) in view.version().runs.iter().enumerate() {
            let (whole, rest) = Self::sort_out(view, found.segments());
            work.extend(whole.into_iter().map(|segment| Work::Copy { table, run, segment }));
            streams.push(rest);
        }
        streams.extend(view.version().deltas.iter().map(|delta| {
            let dead = delta.deletes().bitmap_at(view.ts());
            let rows = view.delta_rows(delta);
            if rows == 0 { Vec::new() } else { vec![Part::delta(delta.clone(), rows).without(dead)] }
        }));
        streams.retain(|stream| !stream.is_empty());
        if !streams.is_empty() {
            work.push(Work::Rest { table, streams });
        }
        work
    }

    /// The segments that can be copied, and the others as parts of a stream.
    fn sort_out<'s>(view: &TableView, segments: &'s [RunSegment]) -> (Vec<&'s Arc<Segment>>, Vec<Part>) {
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for part in segments {
            let segment = &part.segment;
            let dead = segment.deletes().bitmap_at(view.ts());
            let has_dead = dead.as_deref().is_some_and(|dead| dead.iter().any(|word| *word != 0));
            let has_columns =
                view.schema().columns.iter().all(|column| {
                    segment.meta().column(column.id).is_some_and(|meta| meta.data_type == column.data_type)
                });
            if part.is_whole() && !has_dead && has_columns {
                whole.push(segment);
            } else {
                rest.push(Part::segment(segment.clone(), part.range.clone()).without(dead));
            }
        }
        (whole, rest)
    }

    fn copy(&self, segment: &Segment, schema: &TableSchema, next: &AtomicU64) -> Result<Vec<UnloadedFile>> {
        (self.go_on)()?;
        let number = next.fetch_add(1, Ordering::Relaxed);
        let packed = PackedSegment::of(segment, &schema.column_ids(), FileId(number))?;
        Ok(vec![self.store(number, segment.rows(), packed.bytes())?])
    }

    /// The live rows of `streams`, in the order of the table.
    fn merge(&self, streams: Vec<Vec<Part>>, schema: &TableSchema, next: &AtomicU64) -> Result<Vec<UnloadedFile>> {
        let segment_rows =
            schema.options.segment_rows.clamp(limits::SEGMENT_ROWS_MIN, limits::SEGMENT_ROWS_MAX) as usize;
        let mut cursor = Cursor::new(KeyReader::of_sort_key(schema), streams)?;
        let (mut picks, mut files) = (Picks::default(), Vec::new());
        loop {
            (self.go_on)()?;
            let wanted = (segment_rows - picks.len()).min(limits::BATCH_ROWS);
            let stop = cursor.next(wanted, &mut picks)?;
            match stop {
                Stop::Full if picks.len() < segment_rows => continue,
                Stop::Whole(_) => return Err(Error::internal("a part of an unload is to be kept whole")),
                Stop::Full | Stop::End => {}
            }
            if !picks.is_empty() {
                let gather = Gather::new(cursor.parts(), &picks)?;
                let columns = schema.columns.iter().map(|column| gather.column(cursor.parts(), column));
                let mut columns = columns.collect::<Result<Vec<_>>>()?;
                while columns.first().is_some_and(|column| !column.is_empty()) {
                    let fit = rows_that_fit(&columns);
                    let head: Vec<_> = columns.iter().map(|column| column.slice(0, fit)).collect();
                    columns = columns.iter().map(|column| column.slice(fit, column.len() - fit)).collect();
                    files.push(self.encode(schema, &head, next.fetch_add(1, Ordering::Relaxed))?);
                }
                picks.clear();
            }
            if stop == Stop::End {
                return Ok(files);
            }
        }
    }

    fn encode(&self, schema: &TableSchema, columns: &[arrow_array::ArrayRef], number: u64) -> Result<UnloadedFile> {
        let scratch: Arc<dyn Disk> = Arc::new(MemDisk::new());
        scratch.create_dir(DATA_DIR)?;
        let (id, file) = (ContainerId(number), FileId(number));
        let place = SegmentPlace { disk: &scratch, id, file, threads: 1, encodings: self.encodings, symbols: None };
        let meta = write_segment(place, schema, columns)?;
        let mut bytes = Vec::new();
        if meta.files().is_empty() {
            bytes = PackedSegment::without_blocks(meta.clone()).bytes();
        } else {
            let written = scratch.open(&segment_path(file))?;
            written.read_into(0, usize::try_from(written.len()?).unwrap_or(usize::MAX), &mut bytes)?;
        }
        self.store(number, meta.rows, bytes)
    }

    /// Writes a file, durably.
    fn store(&self, number: u64, rows: u32, bytes: Vec<u8>) -> Result<UnloadedFile> {
        let bytes = self.compression.pack(bytes);
        let file = self.disk.create(&rows_path(number))?;
        file.append(&bytes)?;
        file.sync()?;
        Ok(UnloadedFile { number, bytes: bytes.len() as u64, checksum: crc32c::crc32c(&bytes), rows })
    }
}

fn schema_of(views: &[ViewedTable], table: usize) -> Result<&TableSchema> {
    let found = views.get(table).ok_or_else(|| Error::internal("a table of an unload is not there"))?;
    Ok(found.view.schema())
}
