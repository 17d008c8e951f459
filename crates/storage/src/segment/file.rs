//! Segment files as things that live and die: a file is removed when no segment that lists it is left, and never while
//! one may be listed again after a crash (contract 1).
//!
//! 1. Every open segment holds an `Arc` of each file its blocks are in, one per file and process ([`SegmentFiles`]
//!    keeps track).
//! 2. [`SegmentFile::list`] counts the segment in; [`SegmentFile::unlist`] counts it out, after the record that dropped
//!    it was fsynced.
//! 3. The last `Arc` to go removes the file if nobody has it listed. On close everything still listed stays. While a
//!    reader holds a file that nobody lists, it stands under its temporary name ([`SegmentFile::give_name_up`]), for a
//!    restart to remove: the log may not name it any more by then.
//! 4. It is written, and may be read, under a temporary name. It takes its final one ([`SegmentFile::take_name`]) when
//!    a record is about to name it: so a file with a final name that nothing lists was named by a record that is lost,
//!    or by one that was never finished.
//! 5. Its header is checked when it is first read: a newer format is refused, never taken for this one. It is opened
//!    when it is first read, and closed when many others were opened since: with one descriptor per segment a large
//!    database would run out of them.
//!
//! It does not own: which segments a version lists, orphans left by a crash (recovery removes those).

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arrow_buffer::Buffer;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::encoding::{ALIGN, Damage};
use super::format::{self, BlockRef, SegmentMeta};
use super::pages::sums;
use crate::disk::{DATA_DIR, Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ContainerId, FileId};
use crate::limits;

/// Path of the segment file `file`.
#[must_use]
pub fn segment_path(file: FileId) -> String {
    format!("{DATA_DIR}/{:010}.seg", file.0)
}

/// Where it stands until a record is about to name it.
pub(super) fn temporary_path(file: FileId) -> String {
    format!("{}.tmp", segment_path(file))
}

/// The file a name in [`DATA_DIR`] stands for; `None` for anything else, names of unfinished files included.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<FileId> {
    let digits = name.strip_suffix(".seg")?;
    let file = FileId(digits.parse().ok()?);
    (segment_path(file).strip_prefix(DATA_DIR)?.strip_prefix('/')? == name).then_some(file)
}

/// The container that the segment file `file` was written for, as its header says; `None` when that cannot be read or
/// is damaged.
#[must_use]
pub fn container_of(disk: &dyn Disk, file: FileId) -> Option<ContainerId> {
    let path = segment_path(file);
    let mut header = vec![0; format::HEADER_BYTES];
    disk.open(&path).and_then(|opened| opened.read_at(0, &mut header)).ok()?;
    format::check_header(&header, file, &path).ok()
}

/// The segment files of a database that somebody may still read: each has one handle, and few of them are open.
#[derive(Debug, Default)]
pub(crate) struct SegmentFiles(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    all: HashMap<FileId, Weak<SegmentFile>>,
    /// Those whose handle is open, the one that was opened first in front.
    open: VecDeque<Weak<SegmentFile>>,
}

impl SegmentFiles {
    /// The one handle of file `id`, which is on `disk`.
    pub fn file(self: &Arc<Self>, id: FileId, disk: &Arc<dyn Disk>) -> Arc<SegmentFile> {
        let mut files = self.0.lock();
        if let Some(file) = files.all.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        let file = Arc::new(SegmentFile::new(id, Arc::clone(disk), Arc::downgrade(self)));
        files.all.insert(id, Arc::downgrade(&file));
        file
    }

    /// `file` has opened its handle: one that was opened long ago may have to be closed.
    fn opened(&self, file: &Arc<SegmentFile>) {
        let mut files = self.0.lock();
        files.open.push_back(Arc::downgrade(file));
        let too_many = files.open.len().saturating_sub(limits::SEGMENT_FILES_OPEN_MAX);
        let closing: Vec<_> = files.open.drain(..too_many).collect();
        drop(files);
        closing.iter().filter_map(Weak::upgrade).for_each(|file| file.close());
    }

    /// File `id` has lost its handle.
    fn forget(&self, id: FileId) {
        let mut files = self.0.lock();
        // A new handle may have been made meanwhile.
        if files.all.get(&id).is_some_and(|file| file.strong_count() == 0) {
            files.all.remove(&id);
        }
        files.open.retain(|file| file.strong_count() > 0);
    }
}

/// A segment file that somebody may still read.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    id: FileId,
    /// Its final path.
    path: String,
    /// Whether it stands there. Changed under `handle`, so that nobody opens it meanwhile.
    named: AtomicBool,
    disk: Arc<dyn Disk>,
    files: Weak<SegmentFiles>,
    listed: AtomicUsize,
    /// Its header was found sound.
    checked: AtomicBool,
    handle: Mutex<Option<Arc<dyn DiskFile>>>,
}

impl SegmentFile {
    fn new(id: FileId, disk: Arc<dyn Disk>, files: Weak<SegmentFiles>) -> Self {
        let (listed, checked, named) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(true));
        Self { id, path: segment_path(id), named, disk, files, listed, checked, handle: Mutex::default() }
    }

    /// It was written just now, and stands under its temporary name. Before anybody reads it.
    pub fn set_temporary(&self) {
        self.named.store(false, Ordering::Release);
    }

    /// Gives it its final name, unless it has it; returns whether it had not. The name is durable when the folder is
    /// synced.
    ///
    /// # Errors
    /// Io: it stands where it stood.
    pub fn take_name(&self) -> Result<bool> {
        let _held = self.handle.lock();
        if self.named.load(Ordering::Acquire) {
            return Ok(false);
        }
        self.disk.rename(&temporary_path(self.id), &self.path)?;
        self.named.store(true, Ordering::Release);
        Ok(true)
    }

    /// Takes [`SegmentFile::take_name`] back, unless somebody lists it: whoever lists it again gives it its name again.
    pub fn give_name_up(&self) {
        let _held = self.handle.lock();
        if self.listed.load(Ordering::Acquire) > 0 || !self.named.load(Ordering::Acquire) {
            return;
        }
        match self.disk.rename(&self.path, &temporary_path(self.id)) {
            Ok(()) => self.named.store(false, Ordering::Release),
            // At worst a restart sets it aside.
            Err(e) => tracing::debug!(file = %self.path, error = %e, "a segment file that is only read keeps its name"),
        }
    }

    /// Where it stands now.
    fn present_path(&self) -> Cow<'_, str> {
        if self.named.load(Ordering::Acquire) { Cow::Borrowed(&self.path) } else { Cow::Owned(temporary_path(self.id)) }
    }

    /// Its final path.
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
        let held = self.handle.lock();
        let file = self.open()?;
        drop(held);
        let len = file.len()?;
        if len < (format::HEADER_BYTES + format::TRAILER_BYTES) as u64 {
            return Err(Error::corrupt(&self.path, len, "the file ends before its footer"));
        }
        let container = self.check_header(file.as_ref())?;
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

    /// To be called while `handle` is held.
    fn open(&self) -> Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.present_path()).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::corrupt(&self.path, 0, "the file is missing, though rows that were committed stand in it")
            }
            _ => e,
        })
    }

    /// The container it was written for, if its header is sound, of this format and of this file.
    fn check_header(&self, file: &dyn DiskFile) -> Result<ContainerId> {
        let mut header = vec![0; format::HEADER_BYTES];
        file.read_at(0, &mut header)?;
        format::check_header(&header, self.id, &self.path)
    }

    /// Closes it until it is read again.
    pub fn close(&self) {
        let handle = self.handle.lock().take();
        drop(handle);
    }

    /// Whether it is open.
    #[cfg(test)]
    pub fn is_open(&self) -> bool {
        self.handle.lock().is_some()
    }

    fn handle(self: &Arc<Self>) -> Result<Arc<dyn DiskFile>> {
        let mut open = self.handle.lock();
        if let Some(handle) = &*open {
            return Ok(handle.clone());
        }
        // Under the lock: who comes meanwhile wants the same.
        let file = self.open()?;
        // A newer format may mean something else by the same bytes.
        if !self.checked.load(Ordering::Acquire) {
            self.check_header(file.as_ref())?;
            self.checked.store(true, Ordering::Release);
        }
        let handle = open.insert(file).clone();
        // Others are closed now, whose locks may be held by who closes this one.
        drop(open);
        if let Some(files) = self.files.upgrade() {
            files.opened(self);
        }
        Ok(handle)
    }

    /// Fills `buffer` from byte `offset` of the file. Nothing is verified.
    ///
    /// # Errors
    /// Corrupt when the file ends before; Io.
    pub fn read(self: &Arc<Self>, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.handle()?.read_at(offset, buffer)
    }

    /// The body of `block`, its checksums verified.
    ///
    /// # Errors
    /// Corrupt, or Io.
    pub fn read_block(self: &Arc<Self>, block: &BlockRef) -> Result<Buffer> {
        let file = self.handle()?;
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
        let damaged = |damage: Damage| Error::corrupt(&self.path, block.offset + damage.at as u64, damage.what);
        let shared = file.shared(block.offset, bytes).filter(|found| found.as_ptr().align_offset(ALIGN) == 0);
        if let Some(found) = shared {
            let body = sums::check(block, &found).map_err(damaged)?;
            return Ok(found.slice_with_length(0, body));
        }
        let mut buffer: Vec<u8> = Vec::with_capacity(bytes + ALIGN);
        // Sections are used where they stand, so the block has to begin at a multiple of their alignment.
        let start = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
        buffer.resize(start, 0);
        file.read_into(block.offset, bytes, &mut buffer)?;
        let found = buffer.get(start..).unwrap_or(&[]);
        let body = sums::check(block, found).map_err(damaged)?;
        if found.as_ptr().align_offset(ALIGN) != 0 {
            // Moved by an allocator that could not grow it in place.
            return Ok(Buffer::from(found).slice_with_length(0, body));
        }
        Ok(Buffer::from_vec(buffer).slice_with_length(start, body))
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        let gone = self.listed.load(Ordering::Acquire) == 0;
        if let Some(files) = self.files.upgrade() {
            files.forget(self.id);
        }
        if gone && let Err(e) = self.disk.remove(&self.present_path()) {
            // Not lost: whatever no manifest lists is removed at the next start.
            tracing::warn!(file = %self.path, error = %e, "could not remove a segment file that is no longer used");
        }
    }
}
