//! The atomics of this build: std's, or loom's when its model checker runs.
//!
//! Readers borrow the cells as one slice, which loom's cells cannot give; so loom watches shadow cells instead: each
//! write and each read of a cell is announced to a [`RaceCheck`], which fails the model when two of them are not
//! ordered.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Announces reads and writes of cells to loom; does nothing in other builds.
#[cfg(not(loom))]
pub(super) struct RaceCheck;

#[cfg(not(loom))]
impl RaceCheck {
    pub(super) fn new(_capacity: usize) -> Self {
        Self
    }

    #[inline(always)]
    pub(super) fn write(&self, _start: usize, _count: usize) {}

    #[inline(always)]
    pub(super) fn read(&self, _len: usize) {}
}

#[cfg(loom)]
pub(super) struct RaceCheck {
    cells: Vec<loom::cell::UnsafeCell<()>>,
}

#[cfg(loom)]
impl RaceCheck {
    pub(super) fn new(capacity: usize) -> Self {
        Self { cells: (0..capacity).map(|_| loom::cell::UnsafeCell::new(())).collect() }
    }

    pub(super) fn write(&self, start: usize, count: usize) {
        for cell in &self.cells[start..start + count] {
            cell.with_mut(|_| ());
        }
    }

    pub(super) fn read(&self, len: usize) {
        for cell in &self.cells[..len] {
            cell.with(|_| ());
        }
    }
}
