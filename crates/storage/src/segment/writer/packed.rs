//! Whole segments as the bytes of a file, out of one database and into another: blocks are copied, not decoded.
//!
//! Comes in: a segment, or the bytes of one. Goes out: the other.
//!
//! 1. [`PackedSegment::of`] reads the blocks of some columns and checks them.
//! 2. [`PackedSegment::bytes`] is the file: the form of any segment file, under a number of its own.
//! 3. [`PackedSegment::parse`] believes header, footer and places of blocks only when they check.
//! 4. [`PackedSegment::write`] makes a segment of a database of it, under ids, and with column ids, of that database.
//!
//! Invariant: blocks stand at the same places in every file they are copied to. It does not own: what bytes stand in
//! blocks, which are checked when they are opened; which segments belong together.

use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};

use super::super::cache::BlockCache;
use super::super::encoding::begin_section;
use super::super::file::temporary_path;
use super::super::format::{self, BlockRef, ColumnMeta, HEADER_BYTES, SegmentMeta, TRAILER_BYTES};
use super::super::pages::sums;
use super::super::reader::Segment;
use super::SegmentPlace;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, ContainerId, FileId, SchemaVersion};

/// A segment that belongs to no database.
#[derive(Debug)]
pub struct PackedSegment {
    meta: SegmentMeta,
    /// What stands between header and footer.
    blocks: Buffer,
}

impl PackedSegment {
    /// `segment` with `columns`, in their order, as file number `file`.
    ///
    /// # Errors
    /// Corrupt or Io; Internal when it lacks a column.
    pub fn of(segment: &Segment, columns: &[ColumnId], file: FileId) -> Result<Self> {
        let meta = segment.meta();
        let total: u64 = meta.blocks().map(|block| block.len).sum();
        let mut body = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
        let mut copy = |block: &BlockRef| copy_block(segment, block, file, &mut body);
        let mut copied = Vec::with_capacity(columns.len());
        for id in columns {
            let column = meta
                .column(*id)
                .ok_or_else(|| Error::internal(format!("segment {} is packed without its column {id}", meta.id)))?;
            copied.push(ColumnMeta { block: column.block.as_ref().map(&mut copy).transpose()?, ..column.clone() });
        }
        let key_filter = meta.key_filter.as_ref().map(&mut copy).transpose()?;
        let id = ContainerId(file.0);
        let meta = SegmentMeta { id, columns: copied, key_filter, ..meta.clone() };
        Ok(Self { meta, blocks: Buffer::from_vec(body) })
    }

    /// The segment of `meta`, which has no blocks.
    #[must_use]
    pub fn without_blocks(meta: SegmentMeta) -> Self {
        Self { meta, blocks: Buffer::from_vec(Vec::<u8>::new()) }
    }

    /// What is known of it.
    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let id = self.meta.id;
        let mut bytes = format::header(FileId(id.0), id);
        bytes.extend_from_slice(&self.blocks);
        bytes.extend_from_slice(&format::footer(&self.meta));
        bytes
    }

    /// The segment whose file number `file`, which messages call `name`, has these bytes.
    ///
    /// # Errors
    /// Corrupt; Invalid (0A000) for a newer format.
    pub fn parse(bytes: &[u8], file: FileId, name: &str) -> Result<Self> {
        let len = bytes.len() as u64;
        let short = || Error::corrupt(name, len, "the file ends before its footer");
        let (header, behind) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(short)?;
        let container = format::check_header(header, file, name)?;
        let body_end = behind.len().checked_sub(TRAILER_BYTES).ok_or_else(short)?;
        let (start, footer_bytes, checksum) = format::check_trailer(behind.split_at(body_end).1, len, name)?;
        let from = usize::try_from(start).unwrap_or(usize::MAX);
        let footer = bytes.get(from..from.saturating_add(footer_bytes as usize)).ok_or_else(short)?;
        let meta = format::decode_footer(footer, checksum, start, name)?;
        if meta.id != container {
            return Err(Error::corrupt(name, start, "header and footer name different containers"));
        }
        for block in meta.blocks() {
            let within = block.file == file && block.offset >= HEADER_BYTES as u64;
            if !within || block.offset.saturating_add(block.len) > start {
                let place = format!("a block of {} bytes at {} of file {}", block.len, block.offset, block.file);
                return Err(Error::corrupt(name, start, place));
            }
        }
        // Aligned, as blocks are read where they stand.
        let body = bytes.get(HEADER_BYTES..from).ok_or_else(short)?;
        let mut blocks = MutableBuffer::with_capacity(body.len());
        blocks.extend_from_slice(body);
        Ok(Self { meta, blocks: blocks.into() })
    }

    /// Makes a segment at `place` of it, for a table of schema `version` that calls its columns `columns`, in the order
    /// in which they were packed. Its file has a temporary name until [`Segment::take_names`].
    ///
    /// # Errors
    /// Full or Io; Internal for another number of columns. Nothing is left then.
    pub fn write(
        self,
        place: SegmentPlace<'_>,
        cache: &Arc<BlockCache>,
        version: SchemaVersion,
        columns: &[ColumnId],
    ) -> Result<Arc<Segment>> {
        let Self { meta, blocks } = self;
        if meta.columns.len() != columns.len() {
            return Err(Error::internal(format!("{} columns for {} packed ones", columns.len(), meta.columns.len())));
        }
        let moved = |block: BlockRef| BlockRef { file: place.file, ..block };
        let renamed = meta.columns.into_iter().zip(columns);
        let meta = SegmentMeta {
            id: place.id,
            schema_version: version,
            columns: renamed
                .map(|(column, id)| ColumnMeta { id: *id, block: column.block.map(moved), ..column })
                .collect(),
            key_filter: meta.key_filter.map(moved),
            ..meta
        };
        if meta.files().is_empty() {
            return Ok(Segment::open(meta, place.disk.clone(), cache.clone()));
        }
        let path = temporary_path(place.file);
        let written = write_file(place, &path, &meta, &blocks);
        if written.is_err() {
            // What cannot be removed now is an orphan that the next start removes; the first error is the one to tell.
            let _ = place.disk.remove(&path);
        }
        written?;
        let segment = Segment::open(meta, place.disk.clone(), cache.clone());
        segment.files().iter().for_each(|(_, file)| file.set_temporary());
        segment.drop_when_unreferenced();
        Ok(segment)
    }
}

/// Appends `block` of `segment` to `body`, what stands behind the header of file `file`, and says where.
fn copy_block(segment: &Segment, block: &BlockRef, file: FileId, body: &mut Vec<u8>) -> Result<BlockRef> {
    let (_, from) = segment
        .files()
        .iter()
        .find(|(id, _)| *id == block.file)
        .ok_or_else(|| Error::internal(format!("segment {} holds no file {}", segment.id(), block.file)))?;
    let start = body.len();
    let bytes = usize::try_from(block.len).unwrap_or(usize::MAX);
    body.resize(start + bytes, 0);
    let target = body.get_mut(start..).unwrap_or_default();
    from.read(block.offset, target)?;
    sums::check(block, target).map_err(|damage| segment.corrupt(block, damage))?;
    begin_section(body);
    Ok(BlockRef { file, offset: (HEADER_BYTES + start) as u64, ..*block })
}

fn write_file(place: SegmentPlace<'_>, path: &str, meta: &SegmentMeta, blocks: &Buffer) -> Result<()> {
    let file = place.disk.create(path)?;
    file.append(&format::header(place.file, place.id))?;
    // Each by itself: a disk in memory keeps them as they are.
    let mut at: Vec<usize> = meta.blocks().map(|block| block.offset as usize - HEADER_BYTES).collect();
    at.sort_unstable();
    at.push(blocks.len());
    for pair in at.windows(2) {
        let &[from, to] = pair else { continue };
        file.append_buffer(&blocks.slice_with_length(from, to - from))?;
    }
    file.append(&format::footer(meta))?;
    file.sync()
}
