//! What is known of a segment without reading it, and how that becomes bytes: in a segment file's footer, in the
//! manifest, in log records. Byte tables: `docs/formats/segment.md`.
//!
//! Comes in: a [`SegmentMeta`] or bytes. Goes out: the other. Invariant: what [`SegmentMeta::decode`] accepts is
//! consistent in itself (counts, ranges, ids); whether the blocks hold what it says is proved when they are opened.

use crate::catalog::format::{decode_type, decode_value, encode_type, encode_value};
use crate::codec::{Decoder, Encoder};
use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, ContainerId, FileId, SchemaVersion};
use crate::limits;
use crate::predicate::ValueRange;
use crate::row::Value;
use crate::schema::DataType;

use super::encoding::Encoding;
use super::sketch::DistinctSketch;

/// First bytes of a segment file.
pub(crate) const MAGIC: [u8; 8] = *b"MSTMSEG1";
/// Version of the format. Segments of version 1 are read: they lack some encodings; those of version 2 too: those of
/// key indexes among them are in the order of hashes (`main_store::key_index`).
pub(crate) const FORMAT_VERSION: u32 = 3;
/// What the metadata begins with, and its version behind it. That of version 1 begins with the container, which is
/// never 0.
const VERSION_FOLLOWS: u64 = 0;
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes behind the footer: its length, its checksum, the magic again.
pub(crate) const TRAILER_BYTES: usize = 16;
/// Bytes of a checksum.
pub(crate) const CHECKSUM_BYTES: u64 = 4;

/// Bytes of a page: what the operating system and a disk move at least, so that a smaller one would cost as much.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of a page's checksum.
pub(super) const SUM_BYTES: usize = CHECKSUM_BYTES as usize;

/// A block: where it is and what its checksum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// The file.
    pub file: FileId,
    /// Where in the file it begins.
    pub offset: u64,
    /// Its bytes, the checksums at its end included.
    pub len: u64,
    /// CRC-32C of the checksums of its pages.
    pub checksum: u32,
}

/// Bytes of the body of a block of `len` bytes; `None` if no block has that length.
pub(crate) fn body_bytes(len: u64) -> Option<usize> {
    let len = usize::try_from(len).ok()?.checked_sub(SUM_BYTES)?;
    let pages = len.div_ceil(PAGE_BYTES + SUM_BYTES);
    let body = len.checked_sub(pages * SUM_BYTES)?;
    (body.div_ceil(PAGE_BYTES) == pages).then_some(body)
}

/// Least and greatest value of a column in a segment. NULL when all rows are.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneMap {
    /// No value is below it.
    pub min: Value,
    /// No value is above it.
    pub max: Value,
    /// Whether `min` occurs: a long text is shortened.
    pub min_exact: bool,
    /// Whether `max` occurs.
    pub max_exact: bool,
}

/// One column of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMeta {
    /// The column.
    pub id: ColumnId,
    /// Its type when the segment was written.
    pub data_type: DataType,
    /// How its values are stored.
    pub encoding: Encoding,
    /// Where; `None` when the metadata says it all: a constant without NULLs, or NULL in every row.
    pub block: Option<BlockRef>,
    /// NULL rows.
    pub null_count: u32,
    /// Bounds of the values.
    pub zone: ZoneMap,
    /// Distinct values without NULL, where the encoding counted them.
    pub distinct: Option<u32>,
    /// Sum of the values, of integers and decimals (unscaled), unless it overflows 128 bits.
    pub sum: Option<i128>,
    /// A sketch of the distinct values, where nobody counted them; none in segments of format version 1.
    pub sketch: Option<DistinctSketch>,
}

/// A bound of the keys of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBounds {
    /// At or below the key of the first row.
    pub min: Box<[u8]>,
    /// At or above the key of the last row.
    pub max: Box<[u8]>,
}

/// What is known of a segment without reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentMeta {
    /// The container.
    pub id: ContainerId,
    /// Rows, deleted ones included.
    pub rows: u32,
    /// The schema it was written under.
    pub schema_version: SchemaVersion,
    /// Its columns in the order of that schema.
    pub columns: Vec<ColumnMeta>,
    /// Bounds of its sort keys, encoded; `None` without a sort key. Long keys are shortened.
    pub key_bounds: Option<KeyBounds>,
    /// The filter over hashes of primary keys; `None` without a primary key.
    pub key_filter: Option<BlockRef>,
}

impl ColumnMeta {
    /// Its zone map as predicates use it.
    #[must_use]
    pub fn range(&self, rows: u32) -> ValueRange {
        ValueRange {
            min: self.zone.min.clone(),
            max: self.zone.max.clone(),
            has_nulls: self.null_count > 0,
            all_null: self.null_count == rows,
        }
    }
}

impl SegmentMeta {
    /// The column with id `id`, unless the segment was written without it.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&ColumnMeta> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// All its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = &BlockRef> {
        self.columns.iter().filter_map(|c| c.block.as_ref()).chain(&self.key_filter)
    }

    /// The files its blocks are in, each once, ascending.
    #[must_use]
    pub fn files(&self) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.blocks().map(|b| b.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Bytes of all its blocks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks().map(|b| b.len).sum()
    }

    /// Appends it to a record.
    pub fn encode(&self, e: &mut Encoder) {
        e.varint(VERSION_FOLLOWS);
        e.varint(u64::from(FORMAT_VERSION));
        e.varint(self.id.0);
        e.varint(u64::from(self.rows));
        e.varint(self.schema_version.0);
        e.list(self.columns.iter(), |e, column| column.encode(e));
        e.option(self.key_bounds.as_ref(), |e, bounds| {
            e.bytes(&bounds.min);
            e.bytes(&bounds.max);
        });
        e.option(self.key_filter.as_ref(), |e, block| block.encode(e));
    }

    /// Takes it from a record.
    ///
    /// # Errors
    /// Corrupt; Invalid (0A000) for a format version that this program does not know.
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let (mut version, mut id) = (1, d.varint()?);
        if id == VERSION_FOLLOWS {
            (version, id) = (d.varint_u32()?, d.varint()?);
            if version > FORMAT_VERSION {
                return Err(newer("the metadata of a segment", version));
            }
            if version < 2 {
                return Err(d.corrupt(format_args!("metadata of a segment that says it has format version {version}")));
            }
        }
        let id = ContainerId(id);
        let rows = d.varint_u32()?;
        if id > ContainerId::MAX || rows == 0 || rows > limits::SEGMENT_ROWS_MAX {
            return Err(d.corrupt(format_args!("a segment {id} of {rows} rows")));
        }
        let schema_version = SchemaVersion(d.varint()?);
        let columns = d.list(|d| ColumnMeta::decode(d, rows, version))?;
        for (i, column) in columns.iter().enumerate() {
            if columns.iter().take(i).any(|other| other.id == column.id) {
                return Err(d.corrupt(format_args!("column {} twice", column.id)));
            }
        }
        let key_bounds = d.option(|d| Ok(KeyBounds { min: d.bytes()?.into(), max: d.bytes()?.into() }))?;
        if key_bounds.as_ref().is_some_and(|b| b.min > b.max) {
            return Err(d.corrupt("key bounds out of order"));
        }
        let key_filter = d.option(BlockRef::decode)?;
        Ok(Self { id, rows, schema_version, columns, key_bounds, key_filter })
    }
}

impl BlockRef {
    fn encode(&self, e: &mut Encoder) {
        e.varint(self.file.0);
        e.varint(self.offset);
        e.varint(self.len);
        e.u32(self.checksum);
    }

    fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let block = Self { file: FileId(d.varint()?), offset: d.varint()?, len: d.varint()?, checksum: d.u32()? };
        // A length that no segment can have would only end in a failed allocation.
        if body_bytes(block.len).is_none()
            || block.len > limits::SEGMENT_BLOCK_BYTES_MAX
            || block.offset.checked_add(block.len).is_none()
        {
            return Err(d.corrupt(format_args!("a block of {} bytes at {}", block.len, block.offset)));
        }
        Ok(block)
    }
}

impl ColumnMeta {
    fn encode(&self, e: &mut Encoder) {
        e.varint(u64::from(self.id.0));
        encode_type(e, self.data_type);
        encode_encoding(&self.encoding, e);
        e.option(self.block.as_ref(), |e, block| block.encode(e));
        e.varint(u64::from(self.null_count));
        encode_value(e, &self.zone.min);
        encode_value(e, &self.zone.max);
        e.u8(u8::from(self.zone.min_exact) | u8::from(self.zone.max_exact) << 1);
        e.option(self.distinct, |e, n| e.varint(u64::from(n)));
        e.option(self.sum, Encoder::i128);
        e.option(self.sketch.as_ref(), |e, sketch| sketch.encode(e));
    }

    fn decode(d: &mut Decoder<'_>, rows: u32, version: u32) -> Result<Self> {
        let id = ColumnId(d.varint_u32()?);
        let data_type = decode_type(d)?;
        let encoding = decode_encoding(d, version)?;
        let block = d.option(BlockRef::decode)?;
        let null_count = d.varint_u32()?;
        let (min, max) = (decode_value(d)?, decode_value(d)?);
        let exact = d.u8()?;
        let zone = ZoneMap { min, max, min_exact: exact & 1 != 0, max_exact: exact & 2 != 0 };
        let distinct = d.option(Decoder::varint_u32)?;
        let sum = d.option(Decoder::i128)?;
        let sketch = if version == 1 { None } else { d.option(DistinctSketch::decode)? };
        let all_null = null_count == rows;
        if null_count > rows || exact > 3 || zone.min.is_null() != all_null || zone.max.is_null() != all_null {
            return Err(d.corrupt(format_args!("column {id}: {null_count} NULLs in {rows} rows, or bad bounds")));
        }
        if zone.min > zone.max || distinct.is_some_and(|n| n > rows) {
            return Err(d.corrupt(format_args!("column {id}: bounds or distinct count that cannot be")));
        }
        let needs_block = !matches!(encoding, Encoding::Constant { .. }) || (null_count > 0 && !all_null);
        if needs_block != block.is_some() {
            return Err(d.corrupt(format_args!("column {id}: a block too many or too few")));
        }
        Ok(Self { id, data_type, encoding, block, null_count, zone, distinct, sum, sketch })
    }
}

fn encode_encoding(encoding: &Encoding, e: &mut Encoder) {
    match encoding {
        Encoding::Constant { value } => {
            e.u8(0);
            encode_value(e, value);
        }
        Encoding::Dictionary { distinct, width, length_width, symbol_bytes } => {
            e.u8(if *symbol_bytes == 0 { 1 } else { 5 });
            e.varint(u64::from(*distinct));
            e.u8(*width);
            e.u8(*length_width);
            if *symbol_bytes > 0 {
                e.u16(*symbol_bytes);
            }
        }
        Encoding::FrameOfReference { reference, width } => {
            e.u8(2);
            e.i128(*reference);
            e.u8(*width);
        }
        Encoding::Plain { length_width } => {
            e.u8(3);
            e.u8(*length_width);
        }
        Encoding::Symbols { length_width, symbol_bytes } => {
            e.u8(4);
            e.u8(*length_width);
            e.u16(*symbol_bytes);
        }
        Encoding::VectorFrames { reference, code_bytes } => {
            e.u8(6);
            e.i128(*reference);
            e.varint(u64::from(*code_bytes));
        }
        Encoding::ScaledFloats { code_bytes, exceptions } => {
            e.u8(7);
            e.varint(u64::from(*code_bytes));
            e.varint(u64::from(*exceptions));
        }
    }
}

/// Takes an encoding from a record of format `version`.
fn decode_encoding(d: &mut Decoder<'_>, version: u32) -> Result<Encoding> {
    let tag = d.u8()?;
    if version == 1 && tag > 3 {
        return Err(d.corrupt(format_args!("encoding {tag} is unknown in format version 1")));
    }
    Ok(match tag {
        0 => Encoding::Constant { value: decode_value(d)? },
        1 | 5 => Encoding::Dictionary {
            distinct: d.varint_u32()?,
            width: d.u8()?,
            length_width: d.u8()?,
            symbol_bytes: if tag == 5 { d.u16()? } else { 0 },
        },
        2 => Encoding::FrameOfReference { reference: d.i128()?, width: d.u8()? },
        3 => Encoding::Plain { length_width: d.u8()? },
        4 => Encoding::Symbols { length_width: d.u8()?, symbol_bytes: d.u16()? },
        6 => Encoding::VectorFrames { reference: d.i128()?, code_bytes: d.varint_u32()? },
        7 => Encoding::ScaledFloats { code_bytes: d.varint_u32()?, exceptions: d.varint_u32()? },
        tag => return Err(d.corrupt(format_args!("encoding {tag} is unknown"))),
    })
}

/// The first [`HEADER_BYTES`] of the file `file` of container `id`.
pub(crate) fn header(file: FileId, id: ContainerId) -> Vec<u8> {
    let mut e = Encoder::with_capacity(HEADER_BYTES);
    e.raw(&MAGIC);
    e.u32(FORMAT_VERSION);
    e.u64(file.0);
    e.u64(id.0);
    let checksum = crc32c::crc32c(e.as_slice());
    e.u32(checksum);
    e.finish()
}

/// The error for `what` of a newer format.
fn newer(what: impl std::fmt::Display, version: u32) -> Error {
    let message = format!(
        "{what} has format version {version}, this program knows up to {FORMAT_VERSION}: open it with a newer Mainstem"
    );
    Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message)
}

/// Checks a header and returns the container the file was written for.
pub(crate) fn check_header(bytes: &[u8], file: FileId, name: &str) -> Result<ContainerId> {
    let mut d = Decoder::new(bytes, name, 0);
    if d.raw(MAGIC.len())? != MAGIC {
        return Err(Error::corrupt(name, 0, "it is no segment file"));
    }
    let version = d.u32()?;
    let (own, id) = (FileId(d.u64()?), ContainerId(d.u64()?));
    let (covered, checksum) = (d.position(), d.u32()?);
    if bytes.get(..covered).map(crc32c::crc32c) != Some(checksum) {
        return Err(Error::corrupt(name, 0, "the header does not match its checksum"));
    }
    if version > FORMAT_VERSION {
        return Err(newer(format_args!("file {name}"), version));
    }
    if version == 0 {
        return Err(Error::corrupt(name, 8, "there is no format version 0"));
    }
    if own != file {
        return Err(Error::corrupt(name, 12, format_args!("it was written as file {own}")));
    }
    Ok(id)
}

/// Footer and trailer for `meta`.
pub(crate) fn footer(meta: &SegmentMeta) -> Vec<u8> {
    let mut e = Encoder::new();
    meta.encode(&mut e);
    let len = e.len() as u32;
    let checksum = crc32c::crc32c(e.as_slice());
    e.u32(len);
    e.u32(checksum);
    e.raw(&MAGIC);
    e.finish()
}

/// Where the footer of a file of `len` bytes begins, and its bytes and checksum, as `trailer`, the last
/// [`TRAILER_BYTES`], says.
pub(crate) fn check_trailer(trailer: &[u8], len: u64, name: &str) -> Result<(u64, u32, u32)> {
    let at = len.saturating_sub(TRAILER_BYTES as u64);
    let mut d = Decoder::new(trailer, name, at);
    let (bytes, checksum) = (d.u32()?, d.u32()?);
    if d.raw(MAGIC.len())? != MAGIC {
        return Err(Error::corrupt(name, at, "the file does not end as a segment file does"));
    }
    match at.checked_sub(u64::from(bytes)) {
        Some(start) if start >= HEADER_BYTES as u64 => Ok((start, bytes, checksum)),
        _ => Err(Error::corrupt(name, at, format_args!("a footer of {bytes} bytes in a file of {len}"))),
    }
}

/// The metadata in `footer`, which begins at byte `start` of the file.
pub(crate) fn decode_footer(footer: &[u8], checksum: u32, start: u64, name: &str) -> Result<SegmentMeta> {
    if crc32c::crc32c(footer) != checksum {
        return Err(Error::corrupt(name, start, "the footer does not match its checksum"));
    }
    let mut d = Decoder::new(footer, name, start);
    let meta = SegmentMeta::decode(&mut d)?;
    d.finish()?;
    Ok(meta)
}
