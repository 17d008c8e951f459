//! A list that grows at its end while others read it: entries never move, so nobody waits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Level `n` holds `2^n` entries.
const LEVELS: usize = 16;

/// At most 65,535 entries of one writer. Empty, it costs 256 bytes.
pub(super) struct Directory<T> {
    levels: [OnceLock<Box<[OnceLock<T>]>>; LEVELS],
    len: AtomicUsize,
}

/// Level and place in it of entry `index`.
fn place(index: usize) -> (usize, usize) {
    let level = (index + 1).ilog2() as usize;
    (level, index + 1 - (1 << level))
}

impl<T> Directory<T> {
    pub(super) fn new() -> Self {
        Self { levels: std::array::from_fn(|_| OnceLock::new()), len: AtomicUsize::new(0) }
    }

    /// Entries pushed so far.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Entry `index`, if it was pushed.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        let (level, within) = place(index);
        self.levels.get(level)?.get()?.get(within)?.get()
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<&T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Appends an entry, for the one writer; false if there is no room.
    pub(super) fn push(&self, entry: T) -> bool {
        let (level, within) = place(self.len());
        let Some(entries) = self.levels.get(level) else { return false };
        let entries = entries.get_or_init(|| (0..1 << level).map(|_| OnceLock::new()).collect());
        let pushed = entries.get(within).is_some_and(|cell| cell.set(entry).is_ok());
        if pushed {
            self.len.fetch_add(1, Ordering::Release);
        }
        pushed
    }
}
