//! Pages of a block: the parts of it that have checksums of their own, so that one row is read without the others.
//!
//! A block in a file is its body, the CRC-32C of each page of the body ([`PAGE_BYTES`], the last page may be shorter),
//! and the CRC-32C of those, which the metadata knows too. Whoever reads the whole block checks all of them in one
//! pass; whoever wants one row checks the pages where it lies, by checksums that were checked themselves.
//!
//! 1. [`seal`] makes a block of a body, [`check`] takes it back.
//! 2. [`PagedBlock`] gives ranges of a body, and reads the pages that they are in. The checksums of a block's pages, a
//!    thousandth of it, are kept in the cache.
//! 3. [`Segment::is_worth_opening`] says when that has been done often enough: to rent pages until they have cost as
//!    much as the block is never worse than twice the best choice (ski rental; Karlin, Manasse, Rudolph and Sleator,
//!    "Competitive snoopy caching", 1988).
//!
//! Invariant: no byte is handed out before the checksum of its page was compared.

use std::ops::Range;
use std::sync::Arc;

use super::cache::Place;
use super::encoding::{ALIGN, Damage, Source};
use super::format::{BlockRef, CHECKSUM_BYTES};
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::limits;

/// Bytes of a page: what the operating system and a disk move at least, so that a smaller one would cost as much.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of a page's checksum.
const SUM_BYTES: usize = CHECKSUM_BYTES as usize;

/// The checksums of a block's pages.
#[derive(Debug)]
pub(crate) struct PageSums(Box<[u32]>);

impl PageSums {
    /// Takes them from `tail`, what stands behind the body of `block`.
    pub fn of(block: &BlockRef, tail: &[u8]) -> Result<Self, Damage> {
        let (sums, end) = tail.split_at(tail.len().saturating_sub(SUM_BYTES));
        let computed = crc32c::crc32c(sums);
        if computed != block.checksum || end != computed.to_le_bytes() {
            let what = "the checksums of a block's pages do not match theirs";
            return Err(Damage::new(body_bytes(block.len).unwrap_or(0), what));
        }
        let (sums, _) = sums.as_chunks::<SUM_BYTES>();
        Ok(Self(sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect()))
    }

    /// Compares the checksums of `pages`, whole ones of the body from byte `start` on.
    pub fn check(&self, start: usize, pages: &[u8]) -> Result<(), Damage> {
        let expected = self.0.get(start / PAGE_BYTES..).unwrap_or(&[]);
        for (at, page) in pages.chunks(PAGE_BYTES).enumerate() {
            if expected.get(at) != Some(&crc32c::crc32c(page)) {
                let what = format!("{} bytes of a block do not match their checksum", page.len());
                return Err(Damage::new(start + at * PAGE_BYTES, what));
            }
        }
        Ok(())
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.0)
    }
}

/// Appends the checksums to `body`, which makes a block of it, and returns that of the checksums.
pub(crate) fn seal(body: &mut Vec<u8>) -> u32 {
    let sums: Vec<u8> = body.chunks(PAGE_BYTES).flat_map(|page| crc32c::crc32c(page).to_le_bytes()).collect();
    let checksum = crc32c::crc32c(&sums);
    // A body that is full would double otherwise.
    body.reserve_exact(sums.len() + SUM_BYTES + ALIGN);
    body.extend_from_slice(&sums);
    body.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Bytes of the body of a block of `len` bytes; `None` if no block has that length.
pub(crate) fn body_bytes(len: u64) -> Option<usize> {
    let len = usize::try_from(len).ok()?.checked_sub(SUM_BYTES)?;
    let pages = len.div_ceil(PAGE_BYTES + SUM_BYTES);
    let body = len.checked_sub(pages * SUM_BYTES)?;
    (body.div_ceil(PAGE_BYTES) == pages).then_some(body)
}

/// Compares all checksums of `bytes`, the whole of `block`, and returns the length of its body.
pub(crate) fn check(block: &BlockRef, bytes: &[u8]) -> Result<usize, Damage> {
    let no_block = || Damage::new(0, format!("a block of {} bytes", bytes.len()));
    let body_len = body_bytes(bytes.len() as u64).ok_or_else(no_block)?;
    let (body, tail) = bytes.split_at_checked(body_len).ok_or_else(no_block)?;
    PageSums::of(block, tail)?.check(0, body)?;
    Ok(body_len)
}

/// The body of a block that is not open, page by page.
pub(super) struct PagedBlock<'a> {
    segment: &'a Segment,
    place: Place,
    at: &'a BlockRef,
    sums: Option<Arc<PageSums>>,
    /// The pages at hand, and where in the body they are.
    pages: &'a mut Vec<u8>,
    held: Range<usize>,
}

impl<'a> PagedBlock<'a> {
    /// The block of `segment` for `place`, which is at `at`; `pages` is for the pages.
    pub fn new(segment: &'a Segment, place: Place, at: &'a BlockRef, pages: &'a mut Vec<u8>) -> Self {
        Self { segment, place, at, sums: None, pages, held: 0..0 }
    }

    /// Bytes of the body.
    pub fn len(&self) -> usize {
        body_bytes(self.at.len).unwrap_or(0)
    }

    fn read(&mut self, pages: Range<usize>) -> Result<()> {
        let file = self.segment.file(self.at)?;
        let sums = match &self.sums {
            Some(sums) => sums,
            None => self.sums.insert(self.segment.page_sums(self.place, self.at)?),
        };
        self.held = 0..0;
        self.pages.resize(pages.len(), 0);
        file.read(self.at.offset + pages.start as u64, self.pages)?;
        self.segment.count_pages(self.place, pages.len() as u64);
        sums.check(pages.start, self.pages).map_err(|damage| self.segment.corrupt(self.at, damage))?;
        self.held = pages;
        Ok(())
    }
}

impl Source for PagedBlock<'_> {
    fn bytes(&mut self, range: Range<usize>) -> Result<&[u8]> {
        if range.start > range.end || range.end > self.len() {
            return Err(self.damage(Damage::new(range.start, "a section ends behind the block")));
        }
        if range.start < self.held.start || range.end > self.held.end {
            let first = range.start / PAGE_BYTES * PAGE_BYTES;
            self.read(first..range.end.next_multiple_of(PAGE_BYTES).min(self.len()))?;
        }
        let found = self.pages.get(range.start - self.held.start..range.end - self.held.start);
        found.ok_or_else(|| Error::internal("pages that were read are not there"))
    }

    fn damage(&self, damage: Damage) -> Error {
        self.segment.corrupt(self.at, damage)
    }
}

impl Segment {
    /// Whether the block at `at` is better opened whole than read in pages: when it is small, and when its pages were
    /// asked for so often that the block might have been read instead. What would push out others has to be asked for
    /// more often, and what would not be kept, as far as is known, is not opened.
    pub(super) fn is_worth_opening(&self, place: Place, at: &BlockRef) -> bool {
        if at.len <= limits::SMALL_BLOCK_BYTES {
            return true;
        }
        let weight = self.open_blocks().weight(place).max(at.len);
        let read = self.open_blocks().pages_read(place);
        if weight <= self.cache().room() {
            read >= at.len / limits::PAGES_BEFORE_OPENING_SHARE
        } else {
            read >= at.len * limits::PAGES_BEFORE_EVICTING && weight <= self.cache().bytes_max()
        }
    }

    fn page_sums(&self, place: Place, at: &BlockRef) -> Result<Arc<PageSums>> {
        if let Some(sums) = self.open_blocks().sums(place) {
            return Ok(sums);
        }
        let body = body_bytes(at.len).unwrap_or(0);
        let mut tail = vec![0; at.len as usize - body];
        self.file(at)?.read(at.offset + body as u64, &mut tail)?;
        let sums = Arc::new(PageSums::of(at, &tail).map_err(|damage| self.corrupt(at, damage))?);
        self.cache().put(self.open_blocks(), place, super::cache::OpenBlock::Sums(sums.clone()));
        Ok(sums)
    }

    fn count_pages(&self, place: Place, bytes: u64) {
        self.open_blocks().count_pages(place, bytes);
        self.cache().count_pages(bytes);
    }
}
