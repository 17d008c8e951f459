//! Parquet files that a user names.
//!
//! Comes in: a path. Goes out: the columns of the file, then its rows: by one thread as they are asked for, or row
//! groups by several threads at once, handed over in the file's order. Arrow's reader fails on damaged files in many
//! ways, panics among them; whatever it is, it is an error about the file here, which names the file. Units and logical
//! types of the file are those of tables here (`types`).
//!
//! Invariants: threads share one open file and what its end says; each reads at places of its own, a row group at a
//! time. What is decoded and not taken fits the memory that the caller grants, but for a batch a thread, whatever the
//! file says of its row groups.

mod types;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType as ArrowType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::basic::{ConvertedType, Encoding, Type as PhysicalType};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use mainstem_postgres::types::{UUID, sql_type};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::threads::{Parts, streams_in_order};
use mainstem_storage::{Error, Result, limits};
use parking_lot::Mutex;

use self::types::OwnType;
use super::open::FoundFile;
use crate::read_at::{FromPlace, read_full};

/// Bytes of a decoded value at most, besides those of its text: 16 of a number, a text's place, and validity.
const VALUE_BYTES: u64 = 20;
/// Bytes of texts that offsets of 32 bits tell apart, whatever stands around them.
const OFFSETS_MAX: u64 = 1 << 30;
/// Bytes that are decoded and not taken yet, at most: few are reused sooner.
const AHEAD_BYTES: u64 = 64 << 20;
/// Bytes that are read to find the head of a page.
const HEAD_BYTES: usize = 256;

/// How row groups are read.
struct Reading {
    threads: usize,
    batch_rows: usize,
    /// What a batch takes, as far as the file tells.
    batch_bytes: u64,
    /// What may wait to be taken.
    ahead_bytes: u64,
}

impl Reading {
    /// Of rows of `row_bytes` bytes, whatever a damaged file says of them, at most `rows_max` at once.
    fn of(row_bytes: u64, rows_max: usize, (threads, memory): (usize, u64)) -> Self {
        // Each thread has a batch in the making, and one is taken; as many bytes are ahead.
        let room = memory / 2;
        let worth = room / row_bytes.saturating_mul(limits::BATCH_ROWS as u64).max(1);
        let threads = threads.min(usize::try_from(worth).unwrap_or(usize::MAX)).max(1);
        let fit = room / (threads as u64 + 1) / row_bytes.max(1);
        let batch_rows = usize::try_from(fit).unwrap_or(usize::MAX).clamp(limits::BATCH_ROWS, rows_max);
        let batch_bytes = row_bytes.saturating_mul(batch_rows as u64);
        Self { threads, batch_rows, batch_bytes, ahead_bytes: room.min(AHEAD_BYTES.max(batch_bytes)) }
    }
}

/// A file whose end, which says what is in it, has been read.
pub(crate) struct ParquetFile {
    path: String,
    file: SharedFile,
    metadata: ArrowReaderMetadata,
    /// The types of its columns here, which are not always those that Arrow's reader gives.
    own: Vec<OwnType>,
}

impl ParquetFile {
    /// Opens the file.
    ///
    /// # Errors
    /// 58P01 and others where there is none, 22P04 when it is no Parquet file.
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))?;
        let bytes = file.metadata().map_err(|e| Error::io("look at", format_args!("\"{path}\""), e))?.len();
        let file = SharedFile { file: Arc::new(file), bytes, spare: Arc::default() };
        let metadata = step(path, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?;
        let opened = Self { path: path.to_owned(), file, metadata, own: Vec::new() };
        let better = types::read_as(opened.metadata.schema(), opened.metadata.parquet_schema());
        opened.read_as(better)
    }

    /// The same, with columns that Arrow's reader gives as `schema` says, if it does.
    ///
    /// # Errors
    /// 22P04.
    fn read_as(mut self, schema: Option<SchemaRef>) -> Result<Self> {
        if let Some(schema) = schema {
            let options = ArrowReaderOptions::new().with_schema(schema);
            let of_file = self.metadata.metadata().clone();
            self.metadata = step(&self.path, || ArrowReaderMetadata::try_new(of_file, options))?;
        }
        self.own = OwnType::all(self.metadata.schema(), self.metadata.parquet_schema());
        if self.own.len() == self.metadata.schema().fields().len() {
            return Ok(self);
        }
        Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("\"{}\" has columns without a type", self.path)))
    }

    /// The same, with columns of 16 bytes that `are_uuids` as such, though their logical type does not say so: for
    /// files that were written for a table of these columns.
    pub(crate) fn with_uuids(mut self, are_uuids: impl Fn(&str) -> bool) -> Self {
        for (own, field) in self.own.iter_mut().zip(self.metadata.schema().fields()) {
            if *field.data_type() == UUID && are_uuids(field.name()) {
                own.data_type = UUID;
            }
        }
        self
    }

    /// The same, with columns as storage takes them for a load: texts that are codes in the file as such; others as
    /// Utf8, offsets and bytes, but as Utf8View where a batch may have more bytes than offsets tell; decimals that are
    /// integers of 64 bits in the file as such.
    ///
    /// # Errors
    /// 22P04.
    pub(crate) fn for_load(self) -> Result<Self> {
        let is_small = |at: usize| {
            let mut groups = self.metadata.metadata().row_groups().iter().map(|group| self.text_bytes(group, at));
            groups.all(|bytes| bytes.is_some_and(|bytes| bytes < OFFSETS_MAX))
        };
        let columns = self.metadata.metadata().file_metadata().schema_descr().columns();
        let is_flat = columns.len() == self.metadata.schema().fields().len();
        let in_file = self.metadata.schema();
        let is_narrow = |at: usize| {
            let column = columns.get(at).filter(|_| is_flat);
            column.is_some_and(|column| matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64))
        };
        let of_load = |(at, field): (usize, &FieldRef)| match field.data_type() {
            ArrowType::Decimal128(digits, scale) if *digits <= DECIMAL64_MAX_PRECISION && is_narrow(at) => {
                Arc::new(Field::clone(field).with_data_type(ArrowType::Decimal64(*digits, *scale)))
            }
            ArrowType::Utf8View | ArrowType::Utf8 if is_flat && self.is_coded(at) => {
                let coded = ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8));
                Arc::new(Field::clone(field).with_data_type(coded))
            }
            ArrowType::Utf8View if is_small(at) => Arc::new(Field::clone(field).with_data_type(ArrowType::Utf8)),
            ArrowType::Utf8 if !is_small(at) => Arc::new(Field::clone(field).with_data_type(ArrowType::Utf8View)),
            _ => field.clone(),
        };
        let fields: Vec<_> = in_file.fields().iter().enumerate().map(of_load).collect();
        if fields.iter().eq(in_file.fields().iter()) {
            return Ok(self);
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, in_file.metadata().clone()));
        self.read_as(Some(schema))
    }

    /// Its columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        let in_file = self.metadata.schema();
        if in_file.fields().iter().map(|field| field.data_type()).eq(self.own.iter().map(|own| &own.data_type)) {
            return in_file.clone();
        }
        let own = in_file.fields().iter().zip(&self.own);
        Arc::new(Schema::new(
            own.map(|(f, own)| Field::clone(f).with_data_type(own.data_type.clone())).collect::<Vec<_>>(),
        ))
    }

    /// Refuses its column at position `at` if that has a type that tables have not.
    ///
    /// # Errors
    /// 0A000.
    pub(crate) fn check_type(&self, at: usize) -> Result<()> {
        match self.own.get(at).zip(self.metadata.schema().fields().get(at)) {
            Some((OwnType { data_type: ArrowType::Interval(_), .. }, field)) => Err(unsupported(&self.path, field)),
            _ => Ok(()),
        }
    }

    /// Its rows, of the columns at the positions `columns`, in the file's order, `batch_rows` at a time; of the row
    /// group `group` alone if there is one.
    ///
    /// # Errors
    /// 22P04, as each batch.
    pub(super) fn read_group(&self, columns: &[usize], batch_rows: usize, group: Option<usize>) -> Result<ParquetRows> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let reader = step(&self.path, || {
            let builder = builder.with_projection(mask).with_batch_size(batch_rows);
            match group {
                Some(group) => builder.with_row_groups(vec![group]).build(),
                None => builder.build(),
            }
        })?;
        let mut places = columns.to_vec();
        places.sort_unstable();
        places.dedup();
        let schema = Arc::new(self.schema().project(&places)?);
        let own = places.iter().filter_map(|at| self.own.get(*at).cloned()).collect();
        Ok(ParquetRows { path: self.path.clone(), reader, schema, own })
    }

    /// How [`ParquetFile::read`] goes about the columns at the positions `columns`, with at most `threads` threads and
    /// `memory` bytes.
    fn reading(&self, columns: &[usize], rows_max: usize, (threads, memory): (usize, u64)) -> Reading {
        let groups = self.metadata.metadata().row_groups();
        let sizes = groups.iter().map(|group| self.size(group, columns));
        let row_bytes = sizes.filter_map(|(bytes, rows)| bytes.checked_div(rows)).max().unwrap_or_default();
        let is_known = groups.iter().all(|group| columns.iter().all(|at| self.text_bytes(group, *at).is_some()));
        let rows_max = if is_known { rows_max.max(limits::BATCH_ROWS) } else { limits::BATCH_ROWS };
        Reading::of(row_bytes, rows_max, (threads.min(groups.len()), memory))
    }

    /// Bytes that [`ParquetFile::read`] holds, about, of the same arguments.
    pub(crate) fn held_bytes(&self, columns: &[usize], rows_max: usize, memory: (usize, u64)) -> u64 {
        let Reading { threads, batch_bytes, ahead_bytes, .. } = self.reading(columns, rows_max, memory);
        let groups = self.metadata.metadata().row_groups().iter();
        let all = groups.map(|group| self.size(group, columns).0).fold(0, u64::saturating_add);
        all.min(batch_bytes.saturating_mul(threads as u64 + 1).saturating_add(ahead_bytes))
    }

    /// Hands what `convert` makes of its rows, of the columns at the positions `columns`, at most `rows_max` at once,
    /// to `take`, in the file's order. At most `threads` threads read and convert row groups, as many as `bytes` bytes
    /// of memory allow; `take` runs on this one.
    ///
    /// # Errors
    /// 22P04; those of `convert` and of `take`: the first one in order.
    pub(crate) fn read<T: Send>(
        &self,
        columns: &[usize],
        rows_max: usize,
        memory: (usize, u64),
        convert: impl Fn(RecordBatch) -> Result<T> + Sync,
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let groups = self.metadata.metadata().row_groups().len();
        let Reading { threads, batch_rows, ahead_bytes, .. } = self.reading(columns, rows_max, memory);
        // A batch of several groups may have more texts than offsets tell.
        let of_group = |group: usize, parts: &Parts<'_, T>| {
            for batch in self.read_group(columns, batch_rows, Some(group))? {
                let batch = batch?;
                let bytes = batch.get_array_memory_size() as u64;
                if !parts.put(convert(batch)?, bytes) {
                    break;
                }
            }
            Ok(())
        };
        streams_in_order(threads, groups, ahead_bytes, of_group, take)
    }

    /// What `group` says of the column at position `at`, if it is no nested one.
    fn of_column<'a>(&self, group: &'a RowGroupMetaData, at: usize) -> Option<&'a ColumnChunkMetaData> {
        let schema = group.schema_descr();
        let leaf = (at..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) >= at)?;
        (schema.get_column_root_idx(leaf) == at).then(|| group.column(leaf))
    }

    /// Whether all pages of the column at position `at` are codes of a dictionary, in all row groups.
    fn is_coded(&self, at: usize) -> bool {
        let of_group = |group: &RowGroupMetaData| {
            let column = self.of_column(group, at).filter(|column| {
                // Others Arrow's reader takes for bytes.
                column.column_descr().converted_type() == ConvertedType::UTF8
            });
            let pages = column.and_then(ColumnChunkMetaData::page_encoding_stats_mask);
            pages.is_some_and(|pages| {
                pages.is_only(Encoding::RLE_DICTIONARY) || pages.is_only(Encoding::PLAIN_DICTIONARY)
            })
        };
        self.metadata.metadata().row_groups().iter().all(of_group)
    }

    /// Bytes that the texts of the column at position `at` of `group` have at most, 0 where they are no texts; `None`
    /// if the file does not say.
    fn text_bytes(&self, group: &RowGroupMetaData, at: usize) -> Option<u64> {
        let column = self.of_column(group, at)?;
        if column.column_type() != PhysicalType::BYTE_ARRAY {
            return Some(0);
        }
        // Texts of a dictionary, and those that have their beginnings of others, are longer than what stands there.
        let is_whole =
            |encoding| matches!(encoding, Encoding::PLAIN | Encoding::RLE | Encoding::DELTA_LENGTH_BYTE_ARRAY);
        let whole = column.encodings().all(is_whole).then(|| column.uncompressed_size());
        u64::try_from(column.unencoded_byte_array_data_bytes().or(whole)?).ok()
    }

    /// Bytes that the columns at the positions `columns` of a row group take when they are decoded, about, and its
    /// rows.
    fn size(&self, group: &RowGroupMetaData, columns: &[usize]) -> (u64, u64) {
        let of_column = |at: &usize| {
            let stored = self.of_column(group, *at).map_or(0, ColumnChunkMetaData::uncompressed_size);
            u64::try_from(stored).unwrap_or_default().max(self.text_bytes(group, *at).unwrap_or_default())
        };
        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
        let values = rows.saturating_mul(columns.len() as u64 * VALUE_BYTES);
        (columns.iter().map(of_column).fold(values, u64::saturating_add), rows)
    }
}

/// A file that several threads read at once, each at places of its own.
#[derive(Clone)]
struct SharedFile {
    file: Arc<File>,
    bytes: u64,
    spare: Arc<SpareBuffers>,
}

/// Buffers of pages that were decoded: the next pages are read into them. Fresh memory has to be cleared, and is in no
/// cache.
#[derive(Default)]
struct SpareBuffers(Mutex<Vec<Vec<u8>>>);

/// Bytes of a spare buffer at most: pages are mostly of a mebibyte.
const SPARE_BYTES_MAX: usize = 4 << 20;
/// Spare buffers at most: each thread reads a page at a time, and its head.
const SPARE_BUFFERS_MAX: usize = 32;

/// A buffer that becomes spare when nobody reads it any more.
struct PageBuffer {
    bytes: Vec<u8>,
    spare: Arc<SpareBuffers>,
}

impl AsRef<[u8]> for PageBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        let mut spare = self.spare.0.lock();
        if self.bytes.len() <= SPARE_BYTES_MAX && spare.len() < SPARE_BUFFERS_MAX {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FromPlace>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::with_capacity(HEAD_BYTES, FromPlace::new(self.file.clone(), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // Damaged files ask for any length.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("it ends before byte {}", start.saturating_add(length as u64))));
        }
        let mut bytes = self.spare.0.lock().pop().unwrap_or_default();
        // Longer ones keep their bytes: to clear them would take as long as to read others.
        if bytes.len() < length {
            bytes = vec![0; length];
        }
        let page = bytes.get_mut(..length).unwrap_or_default();
        let read = read_full(&*self.file, page, start).map_err(|e| ParquetError::External(Box::new(e)))?;
        if read < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Bytes::from_owner(PageBuffer { bytes, spare: self.spare.clone() }).slice(..length))
    }
}

/// Rows of a file. What comes behind an error says nothing.
pub(crate) struct ParquetRows {
    path: String,
    reader: ParquetRecordBatchReader,
    /// The columns here.
    schema: SchemaRef,
    own: Vec<OwnType>,
}

impl Iterator for ParquetRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { path, reader, .. } = self;
        let read = step(path, || reader.next().transpose()).transpose()?;
        Some(read.and_then(|batch| self.in_own_types(&batch)))
    }
}

impl ParquetRows {
    fn in_own_types(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let read = batch.columns().iter().zip(&self.own).zip(self.schema.fields());
        let columns = read.map(|((column, own), field)| own.of(column, field.name())).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// What Parquet files say of themselves.
#[derive(Debug)]
pub(super) struct ParquetContent {
    pub(super) columns: Vec<Column>,
    pub(super) rows: u64,
    /// The row groups of each file.
    pub(super) groups: Vec<usize>,
}

impl ParquetContent {
    /// That of `files`, whose columns are those of the first one, perhaps in another order.
    ///
    /// # Errors
    /// Io; 22P04 for a file that is none, or has other columns; 0A000 for a column of a type that tables have not.
    pub(super) fn of(files: &[FoundFile]) -> Result<Self> {
        let mut content = Self { columns: Vec::new(), rows: 0, groups: Vec::new() };
        for (number, file) in files.iter().enumerate() {
            let opened = ParquetFile::open(&file.name())?;
            let metadata = opened.metadata.metadata();
            content.groups.push(metadata.num_row_groups());
            content.rows += u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default();
            let columns = columns_of(&opened.schema(), &file.name())?;
            if number == 0 {
                content.columns = columns;
            } else if let Some(differs) = content.difference(&columns) {
                let message = format!("\"{}\" {differs}, unlike the first file of the table", file.name());
                return Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, message));
            }
        }
        Ok(content)
    }

    /// What distinguishes `columns`.
    fn difference(&self, columns: &[Column]) -> Option<String> {
        let named = |columns: &[Column], name: &str| columns.iter().find(|column| column.name == name).cloned();
        for column in &self.columns {
            match named(columns, &column.name) {
                None => return Some(format!("has no column \"{}\"", column.name)),
                Some(other) if other.data_type != column.data_type => {
                    return Some(format!("has a column \"{}\" of type {}", other.name, other.data_type));
                }
                Some(_) => {}
            }
        }
        let extra = columns.iter().find(|column| named(&self.columns, &column.name).is_none())?;
        Some(format!("has a column \"{}\"", extra.name))
    }
}

fn columns_of(schema: &Schema, path: &str) -> Result<Vec<Column>> {
    let column = |(at, field): (usize, &FieldRef)| {
        let data_type = match field.data_type() {
            ArrowType::Null => Some(DataType::Text { max_chars: None }),
            ArrowType::Dictionary(_, values) => sql_type(values),
            of => sql_type(of),
        };
        let data_type = data_type.ok_or_else(|| unsupported(path, field))?;
        Ok(Column::new(ColumnId(at as u32), field.name(), data_type, true))
    };
    schema.fields().iter().enumerate().map(column).collect()
}

fn unsupported(path: &str, field: &Field) -> Error {
    let data_type = field.data_type().to_string().to_lowercase();
    Error::unsupported(format_args!("\"{path}\": the column \"{}\" of type {data_type}", field.name()))
}

/// Runs a step of the reader, which is not used again when it fails.
fn step<T, E: Display>(path: &str, run: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    let what = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it is damaged".to_owned(),
    };
    let what = what.lines().next().unwrap_or_default();
    Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("could not read \"{path}\" as a Parquet file: {what}")))
}

#[cfg(test)]
mod tests;
