//! Pages of a block: the parts of it that have checksums of their own, so that one row is read without the others.
//!
//! A block in a file is its body, the CRC-32C of each page of the body ([`PAGE_BYTES`], the last page may be shorter),
//! and the CRC-32C of those, which the metadata knows too. Whoever reads the whole block checks all of them in one
//! pass; whoever wants one row checks the pages where it lies, by checksums that were checked themselves.
//!
//! 1. [`sums`] makes a block of a body, and takes it back.
//! 2. [`PagedBlock`] gives ranges of a body, and reads the pages that they are in. The checksums of a block's pages, a
//!    thousandth of it, are kept in the cache.
//! 3. [`Segment::is_worth_opening`] says when that has been done often enough: to rent pages until they have cost as
//!    much as the block is never worse than twice the best choice (ski rental; Karlin, Manasse, Rudolph and Sleator,
//!    "Competitive snoopy caching", 1988).
//!
//! Invariant: no byte is handed out before the checksum of its page was compared.

pub(super) mod sums;

use std::ops::Range;
use std::sync::Arc;

use super::cache::Place;
use super::encoding::{Damage, Source};
use super::format::{BlockRef, PAGE_BYTES, body_bytes};
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::limits;

use self::sums::PageSums;

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
