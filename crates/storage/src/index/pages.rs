//! Items in pages that keep their names whoever owns the page.
//!
//! An item is named by the number of its page and its place there. Whoever fills pages takes their numbers from a
//! counter that it shares with others: so the pages of all of them can go to one owner, who reads each item by the name
//! that it has always had. To move a page is to move a pointer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mainstem_kernels::memory;

use crate::error::{Error, ErrorKind, Result, sqlstate};

/// Numbers of pages, one counter for each kind of items: what is to become one index is made in one space.
#[derive(Clone, Debug, Default)]
pub struct IndexSpace {
    counters: Arc<[AtomicU32; Self::KINDS]>,
}

impl IndexSpace {
    /// Kinds of items that an index has at most: four kinds of nodes, leaves, bytes of keys.
    const KINDS: usize = 6;

    /// A space without pages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether both are the same space.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.counters, &other.counters)
    }

    /// The number of a page of items of `kind`.
    pub(super) fn next(&self, kind: usize) -> u32 {
        self.counters[kind].fetch_add(1, Ordering::Relaxed)
    }
}

/// How many times larger a small page becomes when it is full.
const GROWTH: usize = 4;

/// Pages of items, 2^`SHIFT` in each, and names of `BITS` bits.
#[derive(Debug)]
pub(super) struct Pages<T, const BITS: u32, const SHIFT: u32> {
    space: IndexSpace,
    kind: usize,
    /// By number; those of others are empty.
    pages: Vec<Vec<T>>,
    /// The page that is being filled.
    open: usize,
    /// Whether it is the first one.
    is_small: bool,
    /// Places of items that are no more.
    free: Vec<u32>,
}

impl<T, const BITS: u32, const SHIFT: u32> Pages<T, BITS, SHIFT> {
    /// Items of a page.
    const LEN: usize = 1 << SHIFT;

    /// No pages yet; their numbers are those of `kind` in `space`.
    pub fn new(space: &IndexSpace, kind: usize) -> Self {
        Self { space: space.clone(), kind, pages: Vec::new(), open: usize::MAX, is_small: true, free: Vec::new() }
    }

    /// Others in the same space.
    pub fn sibling(&self) -> Self {
        Self::new(&self.space, self.kind)
    }

    pub fn space(&self) -> &IndexSpace {
        &self.space
    }

    /// The item `at`, which was pushed here, or came with a page.
    #[inline]
    pub fn get(&self, at: u32) -> &T {
        &self.pages[(at >> SHIFT) as usize][at as usize & (Self::LEN - 1)]
    }

    /// As [`Pages::get`].
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.pages[(at >> SHIFT) as usize][at as usize & (Self::LEN - 1)]
    }

    /// Adds an item and names it.
    ///
    /// # Errors
    /// Full (54000) when the space has no names left.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<u32> {
        if let Some(page) = self.pages.get_mut(self.open)
            && page.len() < page.capacity()
            && page.len() < Self::LEN
            && self.free.is_empty()
        {
            let at = (self.open << SHIFT | page.len()) as u32;
            page.push(item);
            return Ok(at);
        }
        self.push_elsewhere(item)
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, item: T) -> Result<u32> {
        if let Some(at) = self.free.pop() {
            *self.get_mut(at) = item;
            return Ok(at);
        }
        if self.pages.get(self.open).is_none_or(|page| page.len() >= Self::LEN) {
            self.begin_page()?;
        }
        let page = &mut self.pages[self.open];
        let at = (self.open << SHIFT | page.len()) as u32;
        if page.len() == page.capacity() {
            // The first page of an index grows by and by, for many are small.
            let room = if self.is_small { (GROWTH * page.len()).clamp(1, Self::LEN) } else { Self::LEN };
            page.reserve_exact(room - page.len());
            if room == Self::LEN {
                memory::advise_huge_pages(page);
            }
        }
        page.push(item);
        Ok(at)
    }

    fn begin_page(&mut self) -> Result<()> {
        let number = self.space.next(self.kind) as usize;
        if number >> (BITS - SHIFT) > 0 {
            return Err(no_names());
        }
        if self.pages.len() <= number {
            self.pages.resize_with(number + 1, Vec::new);
        }
        self.is_small = self.open == usize::MAX;
        self.open = number;
        Ok(())
    }

    /// The item `at` is no more: its place is for another one.
    #[inline]
    pub fn free(&mut self, at: u32) {
        self.free.push(at);
    }

    /// Takes all pages of `other`, which is of the same space.
    pub fn adopt(&mut self, other: Self) {
        if self.pages.len() < other.pages.len() {
            self.pages.resize_with(other.pages.len(), Vec::new);
        }
        for (number, page) in other.pages.into_iter().enumerate().filter(|(_, page)| !page.is_empty()) {
            debug_assert!(self.pages[number].is_empty(), "two owners of page {number}");
            self.pages[number] = page;
        }
        self.free.extend(other.free);
        if self.open == usize::MAX {
            (self.open, self.is_small) = (other.open, other.is_small);
        }
    }

    /// The items `dead` are no more. Pages in which there is no other are given back.
    pub fn free_all(&mut self, dead: impl IntoIterator<Item = u32>) {
        self.free.extend(dead);
        let mut dead_of = vec![0_usize; self.pages.len()];
        self.free.iter().for_each(|at| dead_of[(at >> SHIFT) as usize] += 1);
        for (page, dead) in self.pages.iter_mut().zip(&dead_of) {
            if *dead > 0 && *dead == page.len() {
                *page = Vec::new();
            }
        }
        let pages = &self.pages;
        self.free.retain(|at| !pages[(at >> SHIFT) as usize].is_empty());
        self.free.shrink_to_fit();
        if self.pages.get(self.open).is_none_or(Vec::is_empty) {
            self.open = usize::MAX;
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let items: usize = self.pages.iter().map(Vec::capacity).sum();
        items * size_of::<T>() + self.pages.capacity() * size_of::<Vec<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

/// Full: there are more items than 32 bits name.
pub(super) fn no_names() -> Error {
    Error::new(
        ErrorKind::Full,
        sqlstate::LIMIT_EXCEEDED,
        "there are more entries than an index in memory has names for",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const SHIFT: u32>(pages: &Pages<u64, 29, SHIFT>, names: &[u32]) -> Vec<u64> {
        names.iter().map(|at| *pages.get(*at)).collect()
    }

    #[test]
    fn items_keep_their_names_with_another_owner() {
        let space = IndexSpace::new();
        let (mut a, mut b) = (Pages::<u64, 29, 2>::new(&space, 0), Pages::<u64, 29, 2>::new(&space, 0));
        let mut names = (Vec::new(), Vec::new());
        for number in 0..11 {
            names.0.push(a.push(number).unwrap());
            names.1.push(b.push(100 + number).unwrap());
        }
        a.adopt(b);
        assert_eq!(numbers(&a, &names.0), (0..11).collect::<Vec<_>>());
        assert_eq!(numbers(&a, &names.1), (100..111).collect::<Vec<_>>());
        let next = a.push(7).unwrap();
        assert!(!names.0.contains(&next) && !names.1.contains(&next));
    }

    #[test]
    fn places_are_taken_again_and_dead_pages_given_back() {
        let mut pages = Pages::<u64, 29, 2>::new(&IndexSpace::new(), 3);
        let names: Vec<u32> = (0..12).map(|number| pages.push(number).unwrap()).collect();
        pages.free(names[1]);
        assert_eq!((pages.push(20).unwrap(), *pages.get(names[1])), (names[1], 20));
        let before = pages.bytes();
        // All of the second page, and one item of the third.
        pages.free_all(names[4..9].iter().copied());
        assert_eq!(before - pages.bytes() + size_of::<u32>(), 4 * size_of::<u64>() + 4 * size_of::<u32>());
        assert_eq!(pages.push(21).unwrap(), names[8]);
        let next = pages.push(22).unwrap();
        assert!(!names[..4].contains(&next) && !names[8..].contains(&next));
        pages.free_all(names[..4].iter().chain(&names[8..]).copied().chain([next]));
        assert!(pages.pages.iter().all(Vec::is_empty) && pages.free.is_empty());
        pages.push(1).unwrap();
    }

    #[test]
    fn a_space_ends() {
        let space = IndexSpace::new();
        space.counters[0].store(7, Ordering::Relaxed);
        let mut pages = Pages::<u64, 5, 2>::new(&space, 0);
        let names: Vec<u32> = (0..4).map(|number| pages.push(number).unwrap()).collect();
        assert_eq!(names, [28, 29, 30, 31]);
        let error = pages.push(4).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::LIMIT_EXCEEDED));
    }
}
