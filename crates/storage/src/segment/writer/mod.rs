//! Writing a segment: rows, already in their order, become one file.
//!
//! Comes in: one array per column of the schema. Goes out: the file, its bytes durable under a temporary name, and the
//! [`SegmentMeta`] that finds it again.
//!
//! 1. Keys are encoded; those of a sort key must ascend; bounds and filter come from them.
//! 2. Each column is encoded, several at once if so wanted, and appended with its checksums, then the filter, then the
//!    footer.
//! 3. The file is synced.
//!
//! It does not own: which rows go where (load, merge), ids, the record that makes the segment true and before which the
//! file takes its final name (`commit`).

mod packed;

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use mainstem_kernels::filter::BlockedBloom;

use super::cache::BlockCache;
use super::encoding::{ColumnUse, SymbolTables, begin_section, encode, is_stored_as};
use super::file::{segment_path, temporary_path};
use super::format::{self, BlockRef, ColumnMeta, SegmentMeta};
use super::pages::sums;
use super::reader::Segment;
use super::zone;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, FileId};
use crate::limits;
use crate::row::bytes_of_array;
use crate::row::key::{KeyCodec, Keys, hash_key};
use crate::schema::{Column, TableSchema};
use crate::settings::Encodings;
use crate::threads::in_parallel;

pub use packed::PackedSegment;

/// Writes `columns`, one array per column of `schema` in its order and in sort-key order, as a segment at `place`.
///
/// The file stands under its final name and its bytes are synced when this returns; its name is durable only after
/// `disk.sync_dir(DATA_DIR)`, which the caller does once for all files of an install. The folder must exist. After an
/// error nothing is left under the final name. Where the metadata says it all (constants in every column, no key) there
/// is no file.
///
/// # Errors
/// Internal when arrays and schema disagree, rows are out of order or too many; Full or Io.
pub fn write_segment(place: SegmentPlace<'_>, schema: &TableSchema, columns: &[ArrayRef]) -> Result<SegmentMeta> {
    let (meta, _) = write_aside(place, schema, columns, 0)?;
    if !meta.files().is_empty() {
        place.disk.rename(&temporary_path(place.file), &segment_path(place.file))?;
    }
    Ok(meta)
}

/// Where and how a segment is written.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPlace<'a> {
    /// The disk.
    pub disk: &'a Arc<dyn Disk>,
    /// Its id.
    pub id: ContainerId,
    /// Its file.
    pub file: FileId,
    /// Threads that encode columns; with one, no two of its blocks need be in memory together.
    pub threads: usize,
    /// How columns are encoded.
    pub encodings: Encodings,
    /// The symbols of the segment before, if there is one with the same columns; those of this one from then on.
    pub symbols: Option<&'a SymbolTables>,
}

/// As [`write_segment`] at `place`, and opens the segment, whose file has a temporary name until
/// [`Segment::take_names`]. At most `kept_bytes` of its blocks stay open, as far as the cache has room for them: what
/// is merged is mostly what is in use, and need not be read again.
///
/// # Errors
/// As [`write_segment`].
pub fn create_segment(
    place: SegmentPlace<'_>,
    cache: &Arc<BlockCache>,
    schema: &TableSchema,
    columns: &[ArrayRef],
    kept_bytes: usize,
) -> Result<Arc<Segment>> {
    let kept_bytes = kept_bytes.min(usize::try_from(cache.room()).unwrap_or(usize::MAX));
    let (meta, blocks) = write_aside(place, schema, columns, kept_bytes)?;
    let segment = Segment::open(meta, place.disk.clone(), cache.clone());
    segment.files().iter().for_each(|(_, file)| file.set_temporary());
    segment.drop_when_unreferenced();
    segment.fill(blocks)?;
    Ok(segment)
}

/// Writes, and returns the first blocks, up to `kept_bytes` of them, beside their metadata, in the order of
/// [`SegmentMeta::blocks`].
fn write_aside(
    place: SegmentPlace<'_>,
    schema: &TableSchema,
    columns: &[ArrayRef],
    kept_bytes: usize,
) -> Result<(SegmentMeta, Vec<Buffer>)> {
    let rows = check(schema, columns)?;
    let SegmentPlace { disk, id, file, .. } = place;
    let unfinished = temporary_path(file);
    let mut out =
        Output { disk, path: &unfinished, id: file, container: id, file: None, at: 0, blocks: Vec::new(), kept_bytes };
    let written = write_blocks(&mut out, schema, columns, rows, place).and_then(|meta| {
        out.finish(&meta)?;
        Ok(meta)
    });
    if written.is_err() && out.file.is_some() {
        // What cannot be removed now is an orphan that the next start removes; the first error is the one to tell.
        let _ = disk.remove(&unfinished);
    }
    written.map(|meta| (meta, out.blocks))
}

/// The most rows, of the first ones of `columns`, whose texts fit one segment: at least 1. A caller cuts its output
/// there, so that wide rows make segments of fewer rows.
#[must_use]
pub fn rows_that_fit(columns: &[ArrayRef]) -> usize {
    use arrow_array::cast::AsArray;
    let rows = columns.first().map_or(0, |c| c.len());
    let mut fit = rows;
    for column in columns {
        let views = match column.data_type() {
            arrow_schema::DataType::Utf8View => column.as_string_view().views(),
            arrow_schema::DataType::BinaryView => column.as_binary_view().views(),
            arrow_schema::DataType::Utf8 => {
                let ends = column.as_string::<i32>().value_offsets();
                let first = ends.first().copied().unwrap_or_default();
                let bytes = |end: i32| u64::from((end - first).unsigned_abs());
                fit = fit.min(ends.partition_point(|end| bytes(*end) <= limits::SEGMENT_TEXT_BYTES_MAX).max(1) - 1);
                continue;
            }
            _ => continue,
        };
        let mut bytes = 0u64;
        // The low half of a view's low word is the length of its text.
        let over = views.iter().take(fit).position(|view| {
            bytes += u64::from(*view as u32);
            bytes > limits::SEGMENT_TEXT_BYTES_MAX
        });
        fit = over.unwrap_or(fit);
    }
    fit.max(1).min(rows.max(1))
}

/// Columns for each thread that are encoded together: of fewer the last ones leave threads idle.
const COLUMNS_OF_THREAD: usize = 8;

/// Columns that are encoded before the first of them is written, and so in memory together, where `threads` threads do
/// it.
#[must_use]
pub fn encoded_at_once(threads: usize) -> usize {
    if threads <= 1 { 1 } else { COLUMNS_OF_THREAD * threads }
}

fn check(schema: &TableSchema, columns: &[ArrayRef]) -> Result<u32> {
    let defect = |what: String| Error::internal(format!("segment of table {}: {what}", schema.name));
    if columns.len() != schema.columns.len() {
        return Err(defect(format!("{} arrays for {} columns", columns.len(), schema.columns.len())));
    }
    let rows = columns.first().map_or(0, |c| c.len());
    if rows == 0 || rows > limits::SEGMENT_ROWS_MAX as usize {
        return Err(defect(format!("{rows} rows")));
    }
    for (array, column) in columns.iter().zip(&schema.columns) {
        if array.len() != rows || !is_stored_as(column.data_type, array.data_type()) {
            let (len, found) = (array.len(), array.data_type());
            return Err(defect(format!("{len} rows of {found} for column {}, {rows} expected", column.name)));
        }
        if !column.nullable && array.null_count() > 0 {
            return Err(defect(format!("NULL in column {}, which is NOT NULL", column.name)));
        }
    }
    Ok(rows as u32)
}

fn write_blocks(
    out: &mut Output<'_>,
    schema: &TableSchema,
    columns: &[ArrayRef],
    rows: u32,
    SegmentPlace { threads, encodings, symbols, .. }: SegmentPlace<'_>,
) -> Result<SegmentMeta> {
    let sort_keys = keys(schema, &schema.sort_key, columns)?;
    if sort_keys.as_ref().is_some_and(|keys| !keys.is_sorted()) {
        return Err(Error::internal(format!("segment of table {}: rows out of order", schema.name)));
    }
    let key_bounds = sort_keys.as_ref().map(|keys| zone::key_bounds(keys.get(0), keys.get(rows as usize - 1)));
    // Where the order is that of no key, the filters are those of the key indexes.
    let ordered_keys = sort_keys.filter(|_| schema.ordered_key().is_some());

    let mut metas = Vec::with_capacity(columns.len());
    let at_once = encoded_at_once(threads);
    for first in (0..columns.len()).step_by(at_once) {
        let mut order: Vec<usize> = (first..columns.len().min(first + at_once)).collect();
        // What takes longest is begun first: begun last it would leave other threads idle.
        order.sort_by_key(|at| Reverse(columns.get(*at).map_or(0, bytes_of_array)));
        let encode = |number: usize| {
            let at = order.get(number).copied().unwrap_or_default();
            match (schema.columns.get(at), columns.get(at)) {
                (Some(column), Some(array)) => {
                    let is_searched = schema.sort_key.contains(&column.id);
                    let symbols = symbols.and_then(|symbols| symbols.of_column(at));
                    Ok((at, encode_column(column, array, ColumnUse { encodings, is_searched, symbols })?))
                }
                _ => Err(Error::internal("a column without an array")),
            }
        };
        let mut encoded = in_parallel(threads, order.len(), encode)?;
        encoded.sort_unstable_by_key(|(at, _)| *at);
        for (_, column) in encoded {
            metas.push(write_column(out, column)?);
        }
    }
    let key_filter = match ordered_keys {
        None => None,
        Some(keys) => {
            let hashes: Vec<u64> = keys.iter().map(hash_key).collect();
            let filter = BlockedBloom::build(&hashes, limits::KEY_FILTER_BITS).to_le_bytes();
            Some(out.block(Sealed::of(filter))?)
        }
    };
    Ok(SegmentMeta { id: out.container, rows, schema_version: schema.version, columns: metas, key_bounds, key_filter })
}

/// The encoded keys over `key`; `None` if it has no columns.
fn keys(schema: &TableSchema, key: &[ColumnId], columns: &[ArrayRef]) -> Result<Option<Keys>> {
    if key.is_empty() {
        return Ok(None);
    }
    let arrays = key
        .iter()
        .map(|id| schema.position(*id).and_then(|at| columns.get(at)).cloned())
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::internal(format!("table {} has no column that its key names", schema.name)))?;
    KeyCodec::new(schema, key).encode_arrays(&arrays).map(Some)
}

/// A block, with the checksum of the checksums of its pages.
struct Sealed {
    bytes: Vec<u8>,
    checksum: u32,
}

impl Sealed {
    /// The block with `body`.
    fn of(mut body: Vec<u8>) -> Self {
        let checksum = sums::seal(&mut body);
        Self { bytes: body, checksum }
    }
}

/// What the metadata says of a column, and its block, if it has one.
fn encode_column(column: &Column, array: &ArrayRef, column_use: ColumnUse<'_>) -> Result<(ColumnMeta, Option<Sealed>)> {
    let encoded = encode(column.data_type, array, column_use)?;
    let (min, max) = encoded.bounds;
    let block = if encoded.body.is_empty() { None } else { Some(Sealed::of(encoded.body)) };
    let meta = ColumnMeta {
        id: column.id,
        data_type: column.data_type,
        encoding: encoded.encoding,
        block: None,
        null_count: encoded.null_count,
        zone: zone::zone_map(min, max),
        distinct: encoded.distinct,
        sum: encoded.sum,
        sketch: encoded.sketch,
    };
    Ok((meta, block))
}

fn write_column(out: &mut Output<'_>, (meta, block): (ColumnMeta, Option<Sealed>)) -> Result<ColumnMeta> {
    let block = block.map(|block| out.block(block)).transpose()?;
    Ok(ColumnMeta { block, ..meta })
}

/// The file being written; made with its first block.
struct Output<'a> {
    disk: &'a Arc<dyn Disk>,
    path: &'a str,
    id: FileId,
    container: ContainerId,
    file: Option<Arc<dyn DiskFile>>,
    at: u64,
    /// The first that were written.
    blocks: Vec<Buffer>,
    /// Bytes that there may be more of them.
    kept_bytes: usize,
}

impl Output<'_> {
    /// Appends a block.
    fn block(&mut self, block: Sealed) -> Result<BlockRef> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = self.file.insert(self.disk.create(self.path)?);
                let header = format::header(self.id, self.container);
                file.append(&header)?;
                self.at = header.len() as u64;
                file
            }
        };
        let Sealed { bytes: mut body, checksum } = block;
        let block = BlockRef { file: self.id, offset: self.at, len: body.len() as u64, checksum };
        // Blocks begin at section boundaries too, so that a mapped file could be used in place.
        begin_section(&mut body);
        self.at += body.len() as u64;
        self.kept_bytes = self.kept_bytes.saturating_sub(body.len());
        if self.kept_bytes > 0 {
            // Kept for as long as the cache keeps it, which counts its bytes, not what it has room for.
            body.shrink_to_fit();
        }
        let body = Buffer::from_vec(body);
        file.append_buffer(&body)?;
        if self.kept_bytes > 0 {
            self.blocks.push(body);
        }
        Ok(block)
    }

    /// Ends the file, if there is one, and makes its bytes durable.
    fn finish(&self, meta: &SegmentMeta) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.append(&format::footer(meta))?;
        file.sync()
    }
}
