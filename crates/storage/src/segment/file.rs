//! Segment files as things that live and die: a file is removed when no segment that lists it is left, and never while one
//! may be listed again after a crash (contract 1).
//!
//! 1. Every open segment holds an `Arc` of each file its blocks are in, one per file and process ([`BlockCache`] keeps track).
//! 2. [`SegmentFile::list`] counts the segment in; [`SegmentFile::unlist`] counts it out, after the record that dropped it was
//!    fsynced.
//! 3. The last `Arc` to go removes the file if nobody has it listed. On close everything still listed stays.
//!
//! It does not own: which segments a version lists, orphans left by a crash (recovery removes those).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arrow_buffer::{Buffer, MutableBuffer};

use super::cache::BlockCache;
use super::format::{self, BlockRef, CHECKSUM_BYTES, SegmentMeta};
use crate::disk::{DATA_DIR, Disk};
use crate::error::{Error, Result};
use crate::ids::FileId;

/// Path of the segment file `file`.
#[must_use]
pub fn segment_path(file: FileId) -> String {
    format!("{DATA_DIR}/{:010}.seg", file.0)
}

/// The file a name in [`DATA_DIR`] stands for; `None` for anything else, names of unfinished files included.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<FileId> {
    let digits = name.strip_suffix(".seg")?;
    let file = FileId(digits.parse().ok()?);
    (segment_path(file).strip_prefix(DATA_DIR)?.strip_prefix('/')? == name).then_some(file)
}

/// A segment file that somebody may still read.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    id: FileId,
    path: String,
    disk: Arc<dyn Disk>,
    cache: Weak<BlockCache>,
    listed: AtomicUsize,
}

impl SegmentFile {
    /// The file `id` on `disk`, which `cache` holds blocks of.
    pub fn new(id: FileId, disk: Arc<dyn Disk>, cache: Weak<BlockCache>) -> Self {
        Self { id, path: segment_path(id), disk, cache, listed: AtomicUsize::new(0) }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// One more segment lists the file.
    pub fn list(&self) {
        self.listed.fetch_add(1, Ordering::AcqRel);
    }

    /// A segment that listed the file is dropped for good.
    pub fn unlist(&self) {
        self.listed.fetch_sub(1, Ordering::AcqRel);
    }

    /// What the file says of itself: header and footer, checked.
    ///
    /// # Errors
    /// Corrupt, or Io.
    pub fn read_meta(&self) -> Result<SegmentMeta> {
        let file = self.disk.open(&self.path)?;
        let len = file.len()?;
        if len < (format::HEADER_BYTES + format::TRAILER_BYTES) as u64 {
            return Err(Error::corrupt(&self.path, len, "the file ends before its footer"));
        }
        let mut header = vec![0; format::HEADER_BYTES];
        file.read_at(0, &mut header)?;
        let container = format::check_header(&header, self.id, &self.path)?;
        let mut trailer = vec![0; format::TRAILER_BYTES];
        file.read_at(len - format::TRAILER_BYTES as u64, &mut trailer)?;
        let (start, bytes, checksum) = format::check_trailer(&trailer, len, &self.path)?;
        let mut footer = vec![0; bytes as usize];
        file.read_at(start, &mut footer)?;
        let meta = format::decode_footer(&footer, checksum, start, &self.path)?;
        if meta.id != container {
            return Err(Error::corrupt(&self.path, start, "header and footer name different containers"));
        }
        Ok(meta)
    }

    /// The body of `block`, its checksum verified. Opens and closes the file: with one descriptor per segment a large
    /// database would run out of them, and a block is large enough to pay for it.
    ///
    /// # Errors
    /// Corrupt, or Io.
    pub fn read_block(&self, block: &BlockRef) -> Result<Buffer> {
        let file = self.disk.open(&self.path)?;
        let end = block.offset.saturating_add(block.len);
        let len = file.len()?;
        // Before memory for it is asked for.
        if end > len {
            return Err(Error::corrupt(
                &self.path,
                block.offset,
                format_args!("a block ends at byte {end}, the file at {len}"),
            ));
        }
        let too_large = || Error::corrupt(&self.path, block.offset, format_args!("a block of {} bytes", block.len));
        let bytes = usize::try_from(block.len).map_err(|_| too_large())?;
        let body_len = bytes.checked_sub(CHECKSUM_BYTES as usize).ok_or_else(too_large)?;
        let mut buffer = MutableBuffer::from_len_zeroed(bytes);
        file.read_at(block.offset, buffer.as_slice_mut())?;
        let (body, stored) = buffer.as_slice().split_at(body_len);
        let computed = crc32c::crc32c(body);
        if computed != block.checksum || stored != computed.to_le_bytes() {
            return Err(Error::corrupt(
                &self.path,
                block.offset,
                format_args!("a block of {} bytes does not match its checksum", block.len),
            ));
        }
        buffer.truncate(body_len);
        Ok(buffer.into())
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        let gone = self.listed.load(Ordering::Acquire) == 0;
        if let Some(cache) = self.cache.upgrade() {
            cache.forget(self.id, gone);
        }
        if gone && let Err(e) = self.disk.remove(&self.path) {
            // Not lost: whatever no manifest lists is removed at the next start.
            tracing::warn!(file = %self.path, error = %e, "could not remove a segment file that is no longer used");
        }
    }
}
