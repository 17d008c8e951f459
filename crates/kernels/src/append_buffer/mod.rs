//! A buffer of fixed capacity with a published prefix: one writer appends, any number of readers see all that was
//! appended before they looked. Readers never wait, and what they hold never moves or changes.
//!
//! In: values, by [`AppendBuffer::push`], [`AppendBuffer::extend_from_slice`] or a claimed [`Writer`]. Out: slices of the
//! published prefix, and [`PublishedBytes`], which keeps the buffer alive and shows the prefix as bytes.
//!
//! 1. The writer claims the buffer (a swap), so that a second writer gets an error instead of a race.
//! 2. It writes the cells behind the published length, which no reader looks at.
//! 3. It publishes the new length (release). A reader loads the length (acquire) and so sees the cells before it.
//!
//! Invariants:
//! - Cells below `published` are initialised and never written again; only the claimed writer writes the others.
//! - `published` only grows, and never beyond the capacity.
//!
//! The orderings are checked by loom: `RUSTFLAGS="--cfg loom" cargo test -p mainstem-kernels --release --lib append_buffer`
//! (with a target directory of its own, since the flag rebuilds everything). The rest is plain enough for Miri:
//! `cargo +nightly miri test -p mainstem-kernels append_buffer`.

mod published;
mod sync;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

pub use published::PublishedBytes;

use crate::cast::Pod;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;
use sync::{AtomicBool, AtomicUsize, Ordering, RaceCheck};

/// Why values were not appended. Nothing was: an append is whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    contended: bool,
}

impl Full {
    const NO_ROOM: Self = Self { contended: false };
    const CONTENDED: Self = Self { contended: true };

    /// True if the buffer was claimed by another writer, false if it has no room.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        self.contended
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.contended { "append buffer has another writer" } else { "append buffer is full" })
    }
}

impl std::error::Error for Full {}

/// See the module.
pub struct AppendBuffer<T> {
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    published: AtomicUsize,
    claimed: AtomicBool,
    /// Loom's view of the cells; nothing in other builds.
    race: RaceCheck,
}

// SAFETY: readers on several threads copy or borrow T (Sync), and values travel from the writer's thread to others (Send).
// Access to the cells follows the module's invariants, so there is no data race.
unsafe impl<T: Send + Sync> Sync for AppendBuffer<T> {}

impl<T: Copy + 'static> AppendBuffer<T> {
    /// A buffer for `capacity` values. Reserves the memory without touching it: pages cost nothing until written.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let cells = Box::<[UnsafeCell<MaybeUninit<T>>]>::new_uninit_slice(capacity);
        // SAFETY: UnsafeCell<MaybeUninit<T>> is valid without initialisation.
        let cells = unsafe { cells.assume_init() };
        Self { cells, published: AtomicUsize::new(0), claimed: AtomicBool::new(false), race: RaceCheck::new(capacity) }
    }

    /// Claims the buffer for appending until the writer is dropped; `None` if another writer has it. A claimed writer
    /// appends at the price of a store.
    #[inline]
    #[must_use]
    pub fn writer(&self) -> Option<Writer<'_, T>> {
        // Acquire pairs with the release in Writer::drop: the cells written by the last writer are ours to follow.
        if self.claimed.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Writer { buffer: self, len: self.published.load(Ordering::Relaxed) })
    }

    /// Appends `value` and publishes it.
    ///
    /// Errors: no room, or another writer at work (see [`Full::is_contended`]).
    #[inline]
    pub fn push(&self, value: T) -> Result<(), Full> {
        self.writer().ok_or(Full::CONTENDED)?.push(value)
    }

    /// Appends `values` and publishes them together: a reader sees all of them or none.
    ///
    /// Errors: no room for all, or another writer at work (see [`Full::is_contended`]).
    #[inline]
    pub fn extend_from_slice(&self, values: &[T]) -> Result<(), Full> {
        self.writer().ok_or(Full::CONTENDED)?.extend_from_slice(values)
    }

    /// The values published so far.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self.prefix(self.len())
    }

    /// Values published so far.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.published.load(Ordering::Acquire)
    }

    /// Whether nothing was published yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values the buffer can hold.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.cells.len()
    }

    /// Value `index`, if published.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        self.as_slice().get(index).copied()
    }

    /// The first `len` values; the caller has seen `len` published.
    #[inline]
    fn prefix(&self, len: usize) -> &[T] {
        debug_assert!(len <= self.cells.len());
        self.race.read(len);
        // SAFETY: `len` came from an acquire load of `published`, so cells below it are initialised, visible here, and
        // never written again. UnsafeCell<MaybeUninit<T>> has the layout of T.
        unsafe { std::slice::from_raw_parts(self.cells.as_ptr().cast::<T>(), len) }
    }
}

impl<T: Pod> AppendBuffer<T> {
    /// The prefix published now, as bytes that keep the buffer alive.
    #[must_use]
    pub fn bytes(self: &Arc<Self>) -> PublishedBytes<T> {
        PublishedBytes::new(Arc::clone(self), self.len())
    }
}

impl<T: Copy + fmt::Debug + 'static> fmt::Debug for AppendBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendBuffer").field("len", &self.len()).field("capacity", &self.capacity()).finish()
    }
}

/// The one writer of a buffer; releases it when dropped.
pub struct Writer<'a, T: Copy + 'static> {
    buffer: &'a AppendBuffer<T>,
    len: usize,
}

impl<T: Copy + 'static> Writer<'_, T> {
    /// Appends `value` and publishes it. Errors: no room.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), Full> {
        let cell = self.buffer.cells.get(self.len).ok_or(Full::NO_ROOM)?;
        self.buffer.race.write(self.len, 1);
        // SAFETY: this writer holds the claim, so nobody else writes; the cell is not published, so nobody reads it.
        unsafe { (*cell.get()).write(value) };
        self.publish(self.len + 1);
        Ok(())
    }

    /// Appends `values` and publishes them together. Errors: no room for all.
    #[inline]
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), Full> {
        let end = self.len.checked_add(values.len()).ok_or(Full::NO_ROOM)?;
        let cells = self.buffer.cells.get(self.len..end).ok_or(Full::NO_ROOM)?;
        self.buffer.race.write(self.len, values.len());
        // SAFETY: as in push, for each of these cells; the slice of UnsafeCells may be written through a shared reference,
        // has room for values.len() values, and cannot overlap `values`: safe code borrows only published cells.
        unsafe {
            let target = cells.as_ptr().cast_mut().cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len());
        }
        self.publish(end);
        Ok(())
    }

    /// Values published so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was published yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn publish(&mut self, len: usize) {
        self.len = len;
        self.buffer.published.store(len, Ordering::Release);
    }
}

impl<T: Copy + 'static> Drop for Writer<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.buffer.claimed.store(false, Ordering::Release);
    }
}
