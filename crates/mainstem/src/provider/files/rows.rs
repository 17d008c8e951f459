//! The rows of files, in their order or as they come.
//!
//! A file whose rows cannot be told apart at any place is read by one thread. Of a Parquet file that is a row group. A
//! compressed file is a stream: one thread at a time decompresses, several make rows.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use mainstem_postgres::cast::assign;
use mainstem_postgres::error::external;
use mainstem_postgres::types::in_one_form;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::open::FoundFile;
use super::parquet::{ParquetContent, ParquetFile, ParquetRows};
use super::{Content, FileTable, Progress};
use crate::csv::detect::Detected;
use crate::csv::parallel::{FileRows, Rows, can_be_cut};
use crate::csv::{Conversion, CsvReader, SharedRows};
use crate::sql::FileCompression;

/// What is read of which files.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) files: Arc<[FoundFile]>,
    pub(super) content: Content,
    /// Places of the columns in the files.
    wanted: Vec<usize>,
    schema: SchemaRef,
    threads: usize,
    progress: Progress,
    has_misled: Arc<AtomicBool>,
}

/// Takes batches; an error ends the reading.
pub(super) type Give<'a> = &'a mut dyn FnMut(RecordBatch) -> Result<()>;

impl Reading {
    /// Of the columns at `wanted`, which `schema` has, of the files of `table`.
    pub(super) fn new(table: &FileTable, wanted: Vec<usize>, schema: SchemaRef) -> Self {
        let FileTable { files, content, threads, progress, has_misled, .. } = table;
        let (files, content, progress) = (files.clone(), content.clone(), progress.clone());
        Self { files, content, wanted, schema, threads: *threads, progress, has_misled: has_misled.clone() }
    }

    /// Hands all rows to `give`, in the order of the files, in batches of `batch_rows`.
    ///
    /// # Errors
    /// Of the files and their rows, which name the file; those of `give`.
    pub(super) fn in_order(&self, batch_rows: usize, give: Give<'_>) -> Result<()> {
        for (at, file) in self.files.iter().enumerate() {
            let read = match &self.content {
                Content::Csv(found) if file.bytes > 0 && is_cut(found) => {
                    self.by_threads(found, file, batch_rows, give)
                }
                Content::Csv(_) if file.bytes == 0 => Ok(()),
                _ => self.open(at, None, batch_rows).and_then(|mut stream| {
                    while let Some(batch) = stream.next(self)? {
                        self.batches(batch.num_rows(), batch.columns(), batch_rows)?
                            .into_iter()
                            .try_for_each(&mut *give)?;
                    }
                    Ok(())
                }),
            };
            read.map_err(|error| in_file(error, file))?;
        }
        Ok(())
    }

    fn by_threads(&self, found: &Detected, file: &FoundFile, batch_rows: usize, give: Give<'_>) -> Result<()> {
        let mut take =
            |part: Rows| self.batches(part.count, &part.columns, batch_rows)?.into_iter().try_for_each(&mut *give);
        if file.compression != FileCompression::None {
            let stream = file.stream(false, Some(&self.progress))?;
            let rows = FileRows::of_stream(&found.options, &found.columns).converted_by(self.conversion(found));
            return rows.read_stream(stream, self.threads, &|| Ok(()), take);
        }
        let opened = self.progress.of(file.open()?);
        let rows = FileRows::new(&opened, file.bytes, &found.options, &found.columns);
        rows.converted_by(self.conversion(found)).read(self.threads, &mut take)
    }

    fn conversion<'a>(&'a self, found: &'a Detected) -> Conversion<'a> {
        Conversion::of_all(&found.columns).of_some(&self.wanted).strict(&found.found)
    }

    /// `count` rows of `columns`, in batches of at most `batch_rows`; floats in their one form.
    fn batches(&self, count: usize, columns: &[ArrayRef], batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let columns = columns.iter().cloned().map(in_one_form).collect();
        let all = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        self.progress.add_rows(count);
        let starts = (0..count).step_by(batch_rows.max(1));
        Ok(starts.map(|from| all.slice(from, batch_rows.min(count - from))).collect())
    }

    /// Opens file `at`, or its row group `group`, to be read by one thread.
    fn open(&self, at: usize, group: Option<usize>, batch_rows: usize) -> Result<Stream> {
        let Some(file) = self.files.get(at) else { return Err(Error::internal("a file of a table is lost")) };
        match &self.content {
            Content::Csv(found) => {
                let names = found.columns.iter().map(|column| column.name.clone()).collect();
                let bytes = file.stream(found.options.latin1, Some(&self.progress))?;
                Ok(Stream::Lines(Box::new(CsvReader::new(bytes, found.options.clone(), names)), batch_rows))
            }
            Content::Parquet(content) => {
                let opened = ParquetFile::open(&file.name())?;
                let places = places(content, &opened, &self.wanted)?;
                Ok(Stream::Parquet(opened.read_group(&places, batch_rows, group)?))
            }
            Content::Told(_) => Err(Error::internal("a file that was only looked at is read")),
        }
    }

    /// `error` as one of the plan. It is noted if the type of a column may be to blame that was found in a sample.
    pub(super) fn told(&self, error: Error) -> DataFusionError {
        let state = error.sqlstate();
        let is_of_value = state.starts_with("22") && state != sqlstate::BAD_COPY_FORMAT && state != "22021";
        if is_of_value && matches!(&self.content, Content::Csv(found) if !found.is_certain) {
            self.has_misled.store(true, Ordering::Release);
        }
        external(error)
    }
}

fn in_file(error: Error, file: &FoundFile) -> Error {
    let name = format!("\"{}\"", file.name());
    if error.message().contains(&name) { error } else { error.context(name) }
}

/// Where the columns at `wanted` are in `file`, whose columns may be in another order than those of the first.
fn places(content: &ParquetContent, file: &ParquetFile, wanted: &[usize]) -> Result<Vec<usize>> {
    let schema = file.schema();
    let place = |at: &usize| {
        let column = content.columns.get(*at)?;
        schema.fields().iter().position(|field| *field.name() == column.name)
    };
    let places = wanted.iter().map(place).collect::<Option<Vec<_>>>();
    places.ok_or_else(|| Error::invalid(sqlstate::BAD_COPY_FORMAT, "the file has changed since it was looked at"))
}

/// Whether the rows of files that look so can be told apart at any place.
fn is_cut(found: &Detected) -> bool {
    can_be_cut(&found.options, found.columns.len())
}

/// A file that one thread reads.
enum Stream {
    /// With the rows of a batch.
    Lines(Box<CsvReader<Box<dyn Read + Send>>>, usize),
    Parquet(ParquetRows),
}

impl Stream {
    /// The next rows, as `reading` wants them.
    fn next(&mut self, reading: &Reading) -> Result<Option<RecordBatch>> {
        let (columns, rows) = match (self, &reading.content) {
            (Self::Lines(reader, rows), Content::Csv(found)) => {
                let Some(batch) = reader.next_batch(*rows)? else { return Ok(None) };
                let (columns, lines, _) = reading.conversion(found).rows(batch)?;
                (columns, lines.len())
            }
            (Self::Parquet(rows), Content::Parquet(content)) => {
                let Some(batch) = rows.next().transpose()? else { return Ok(None) };
                let of = |at: &usize| {
                    let column = content.columns.get(*at);
                    let column = column.ok_or_else(|| Error::internal("a column of a file is lost"))?;
                    let array = batch.column_by_name(&column.name);
                    assign(array.ok_or_else(|| Error::internal("a column of a file is lost"))?, column)
                };
                (reading.wanted.iter().map(of).collect::<Result<Vec<_>>>()?, batch.num_rows())
            }
            _ => return Err(Error::internal("a file of another kind")),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(reading.schema.clone(), columns, &options)?))
    }
}

/// What the partitions of a run share.
#[derive(Debug)]
pub(super) struct Run {
    parts: Vec<Part>,
}

/// A file, or a part of one, that partitions read.
#[derive(Debug)]
enum Part {
    /// A file that any number of them reads at once; opened by the first one.
    Shared(usize, Mutex<Option<Arc<SharedRows>>>),
    /// A file that one of them reads, or a row group of it, and whether one does.
    One(usize, Option<usize>, AtomicBool),
}

impl Run {
    pub(super) fn new(reading: &Reading) -> Self {
        let of_file = |(at, file): (usize, &FoundFile)| match &reading.content {
            Content::Csv(_) if file.bytes == 0 => Vec::new(),
            Content::Csv(found) if is_cut(found) => vec![Part::Shared(at, Mutex::default())],
            Content::Csv(_) | Content::Told(_) => vec![Part::One(at, None, AtomicBool::default())],
            Content::Parquet(content) => {
                let groups = 0..content.groups.get(at).copied().unwrap_or_default();
                groups.map(|group| Part::One(at, Some(group), AtomicBool::default())).collect()
            }
        };
        Self { parts: reading.files.iter().enumerate().flat_map(of_file).collect() }
    }
}

/// A partition that takes what no other one has taken.
pub(super) struct Partition {
    run: Arc<Run>,
    reading: Arc<Reading>,
    /// The part that it is at.
    at: usize,
    stream: Option<(usize, Stream)>,
    ready: VecDeque<RecordBatch>,
    buffer: Vec<u8>,
    batch_rows: usize,
    left: usize,
}

impl Partition {
    pub(super) fn new(run: Arc<Run>, reading: Arc<Reading>, batch_rows: usize, left: usize) -> Self {
        let (stream, ready, buffer) = (None, VecDeque::new(), Vec::new());
        Self { run, reading, at: 0, stream, ready, buffer, batch_rows, left }
    }

    /// The next batch.
    ///
    /// # Errors
    /// As [`Reading::in_order`].
    pub(super) fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        while self.left > 0 {
            if let Some(batch) = self.ready.pop_front() {
                let batch = batch.slice(0, batch.num_rows().min(self.left));
                self.left -= batch.num_rows();
                return Ok(Some(batch));
            }
            if !self.advance().map_err(|error| self.reading.told(error))? {
                break;
            }
        }
        Ok(None)
    }

    /// Reads some more; false when there is nothing more.
    fn advance(&mut self) -> Result<bool> {
        let reading = self.reading.clone();
        if let Some((file, stream)) = &mut self.stream {
            match stream.next(&reading).map_err(|error| name_file(error, &reading, *file))? {
                Some(batch) => self.add(batch.num_rows(), batch.columns())?,
                None => self.stream = None,
            }
            return Ok(true);
        }
        let run = self.run.clone();
        let Some(part) = run.parts.get(self.at) else { return Ok(false) };
        match part {
            Part::Shared(file, shared) => {
                let rows = open_shared(shared, &reading, *file).and_then(|shared| shared.next(&mut self.buffer));
                match rows.map_err(|error| name_file(error, &reading, *file))? {
                    Some(parts) => {
                        for part in parts {
                            self.add(part.count, &part.columns)?;
                        }
                    }
                    None => self.at += 1,
                }
            }
            Part::One(file, group, is_taken) => {
                self.at += 1;
                if !is_taken.swap(true, Ordering::AcqRel) {
                    let opened = reading.open(*file, *group, self.batch_rows);
                    self.stream = Some((*file, opened.map_err(|error| name_file(error, &reading, *file))?));
                }
            }
        }
        Ok(true)
    }

    fn add(&mut self, count: usize, columns: &[ArrayRef]) -> Result<()> {
        self.ready.extend(self.reading.batches(count, columns, self.batch_rows)?);
        Ok(())
    }
}

fn name_file(error: Error, reading: &Reading, file: usize) -> Error {
    match reading.files.get(file) {
        Some(file) => in_file(error, file),
        None => error,
    }
}

/// The rows of file `at`, opened if none of the partitions has done so.
fn open_shared(shared: &Mutex<Option<Arc<SharedRows>>>, reading: &Reading, at: usize) -> Result<Arc<SharedRows>> {
    let mut shared = shared.lock();
    if let Some(rows) = &*shared {
        return Ok(rows.clone());
    }
    let (Some(file), Content::Csv(found)) = (reading.files.get(at), &reading.content) else {
        return Err(Error::internal("a file of another kind"));
    };
    let columns = (found.columns.clone().into(), found.found.clone().into());
    let (options, wanted) = (found.options.clone(), Some(reading.wanted.clone()));
    let rows = if file.compression == FileCompression::None {
        let opened = (Arc::new(reading.progress.of(file.open()?)) as Arc<_>, file.bytes);
        SharedRows::new(opened, options, columns, wanted)
    } else {
        SharedRows::of_stream(file.stream(false, Some(&reading.progress))?, options, columns, wanted)
    };
    Ok(shared.insert(Arc::new(rows)).clone())
}
