//! A buffer of fixed capacity with a published prefix: one writer appends, any number of readers see all that was
//! appended before they looked. Readers never wait, and what they hold never moves or changes.
//!
//! In: values, by [`AppendBuffer::push`], [`AppendBuffer::extend_from_slice`], or a claimed [`Writer`] or
//! [`OwnedWriter`]. Out: slices of the published prefix, and [`PublishedBytes`], which keeps the buffer alive and shows
//! the prefix as bytes.
//!
//! 1. The writer claims the buffer (a swap), so that a second writer gets an error instead of a race.
//! 2. It writes the cells behind the published length, which no reader looks at.
//! 3. It publishes the new length (release). A reader loads the length (acquire) and so sees the cells before it.
//!
//! Invariants:
//! - Cells below `published` are initialised and never written again; only the claimed writer writes the others.
//! - `published` only grows, and never beyond the capacity.
//!
//! The orderings are checked by loom: `RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom -p mainstem-kernels
//! --lib append_buffer`, as `.ci/run` does (`docs/BUILD.md`). The rest is plain enough for Miri:
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

// SAFETY: readers on several threads copy or borrow T (Sync), and values travel from the writer's thread to others
// (Send). Access to the cells follows the module's invariants, so there is no data race.
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
        // Lazily: a writer that was made would release the claim of another when dropped.
        self.claim().then(|| Writer { buffer: self, len: self.claimed_len() })
    }

    /// As [`writer`](Self::writer), for a writer that outlives the borrow.
    #[must_use]
    pub fn owned_writer(self: &Arc<Self>) -> Option<OwnedWriter<T>> {
        self.claim().then(|| OwnedWriter { buffer: Arc::clone(self), len: self.claimed_len() })
    }

    #[inline]
    fn claim(&self) -> bool {
        // Acquire pairs with the release in release(): this writer follows all that the last one did.
        !self.claimed.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn release(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// The published length, for a writer that just took the claim: only such writers change it, one after the other.
    #[inline]
    fn claimed_len(&self) -> usize {
        self.published.load(Ordering::Relaxed)
    }

    /// Writes one value behind the `len` published ones, and publishes it. Returns the new length.
    ///
    /// # Safety
    /// The caller holds the claim, `len` is the published length, and no other append runs meanwhile.
    #[inline]
    unsafe fn append(&self, len: usize, value: T) -> Result<usize, Full> {
        let cell = self.cells.get(len).ok_or(Full::NO_ROOM)?;
        self.race.write(len, 1);
        // SAFETY: nobody else writes (the caller vouches), and nobody reads a cell that is not published.
        unsafe { (*cell.get()).write(value) };
        self.published.store(len + 1, Ordering::Release);
        Ok(len + 1)
    }

    /// Writes values behind the `len` published ones, and publishes them together. Returns the new length.
    ///
    /// # Safety
    /// As for [`append`](Self::append).
    #[inline]
    unsafe fn append_slice(&self, len: usize, values: &[T]) -> Result<usize, Full> {
        let end = len.checked_add(values.len()).ok_or(Full::NO_ROOM)?;
        let cells = self.cells.get(len..end).ok_or(Full::NO_ROOM)?;
        self.race.write(len, values.len());
        // SAFETY: as in append, for each of these cells. A slice of UnsafeCells may be written through a shared
        // reference; it has room for values.len() values, and cannot overlap `values`: safe code borrows only published
        // cells.
        unsafe {
            let target = cells.as_ptr().cast_mut().cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len());
        }
        self.published.store(end, Ordering::Release);
        Ok(end)
    }

    /// Appends `value` and publishes it. Claims the buffer for this one value, which costs an atomic swap (about 6 ns);
    /// who appends again and again keeps a [`Writer`] or an [`OwnedWriter`] (under 1 ns).
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
#[derive(Debug)]
pub struct Writer<'a, T: Copy + 'static> {
    buffer: &'a AppendBuffer<T>,
    /// The published length, which only this writer changes.
    len: usize,
}

/// A [`Writer`] that shares in the buffer, to be kept beside it for as long as one owner writes: it pays for the claim
/// once, not per append.
#[derive(Debug)]
pub struct OwnedWriter<T: Copy + 'static> {
    buffer: Arc<AppendBuffer<T>>,
    /// The published length, which only this writer changes.
    len: usize,
}

macro_rules! writer {
    ($writer:ident $(<$lifetime:lifetime>)?) => {
        impl<T: Copy + 'static> $writer<$($lifetime,)? T> {
            /// Appends `value` and publishes it. Errors: no room.
            #[inline]
            pub fn push(&mut self, value: T) -> Result<(), Full> {
                // SAFETY: this writer holds the claim and knows the length, and `&mut self` makes this the only append.
                self.len = unsafe { self.buffer.append(self.len, value) }?;
                Ok(())
            }

            /// Appends `values` and publishes them together. Errors: no room for all.
            #[inline]
            pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), Full> {
                // SAFETY: as in push.
                self.len = unsafe { self.buffer.append_slice(self.len, values) }?;
                Ok(())
            }

            /// The buffer.
            #[must_use]
            pub fn buffer(&self) -> &AppendBuffer<T> {
                &self.buffer
            }
        }

        impl<T: Copy + 'static> Drop for $writer<$($lifetime,)? T> {
            #[inline]
            fn drop(&mut self) {
                self.buffer.release();
            }
        }
    };
}
writer!(Writer<'_>);
writer!(OwnedWriter);
