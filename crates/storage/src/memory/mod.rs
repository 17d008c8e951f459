//! The memory of a database, counted by what it is for (contract 8).
//!
//! Comes in: bytes, as they are taken and given back, and how many there may be. Goes out: sums, and how near they are
//! to `memory_limit`.
//!
//! 1. What belongs to somebody is counted by a [`Charge`], which gives its bytes back when it is dropped.
//! 2. What grows where nobody may wait is measured now and then, and noted whole: [`MemoryBudget::note`].
//!
//! The limit may change at any time. Nothing is taken from anybody for it: who asks next finds another share, and gives
//! way as at any other share.
//!
//! Invariants: a kind's sum is that of its living charges plus what was noted last; counting waits for nobody. It does
//! not own: who waits, spills or fails near the limit (`commit::pressure`, `transaction`, the cache, the query pool).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits;

mod machine;

#[cfg(test)]
mod tests;

pub use machine::memory_limit_default;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Deltas that take rows.
    ActiveDeltas,
    /// Deltas that wait for a merge.
    FrozenDeltas,
    /// Deltas that merges have replaced, or whose table is gone, while an older snapshot still reads them. Nobody is
    /// made to wait for those: they end with their snapshots.
    OldDeltas,
    /// What open transactions have written and not put aside.
    WriteSets,
    /// Rows that running loads have collected, what their sorts and the segments being written take beside them, their
    /// entries of key indexes, and blocks that they keep from writing.
    Loads,
    /// Where rows went that merges moved.
    Forwarding,
    /// Delete logs of segments.
    DeleteLogs,
    /// Open blocks of segments.
    BlockCache,
    /// Queries: sorts, hash tables, groups.
    Queries,
    /// What is kept of statements: trees, short statements, plans. An estimate.
    Plans,
    /// Files that loads read: chunks and row groups of which the rows are not taken yet, with their arrays. An
    /// estimate.
    Files,
    /// Set aside for merges, commits and recovery.
    Reserve,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ActiveDeltas,
        Self::FrozenDeltas,
        Self::OldDeltas,
        Self::WriteSets,
        Self::Loads,
        Self::Forwarding,
        Self::DeleteLogs,
        Self::BlockCache,
        Self::Queries,
        Self::Plans,
        Self::Files,
        Self::Reserve,
    ];

    /// As `mainstem.memory` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ActiveDeltas => "active deltas",
            Self::FrozenDeltas => "frozen deltas",
            Self::OldDeltas => "old deltas",
            Self::WriteSets => "write sets",
            Self::Loads => "loads",
            Self::Forwarding => "forwarding",
            Self::DeleteLogs => "delete logs",
            Self::BlockCache => "block cache",
            Self::Queries => "queries",
            Self::Plans => "plans",
            Self::Files => "files",
            Self::Reserve => "reserve",
        }
    }

    /// Units of `memory_limit` that it may take: there is a share for each kind.
    const fn units(self) -> u64 {
        limits::MEMORY_SHARES[self as usize]
    }
}

/// The memory of one database.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes_max: AtomicU64,
    used: [AtomicU64; MemoryKind::ALL.len()],
}

impl MemoryBudget {
    /// A budget of `bytes_max` bytes, nothing of it used.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max: AtomicU64::new(bytes_max), used: Default::default() })
    }

    /// `memory_limit`.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// There are `bytes_max` bytes from now on.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// What `kind` may take.
    #[must_use]
    pub fn share(&self, kind: MemoryKind) -> u64 {
        share_of(self.bytes_max(), kind)
    }

    /// What `kind` takes.
    #[must_use]
    pub fn used(&self, kind: MemoryKind) -> u64 {
        self.counter(kind).load(Ordering::Relaxed)
    }

    /// Whether `kind` takes more than its share.
    #[must_use]
    pub fn is_over(&self, kind: MemoryKind) -> bool {
        self.used(kind) > self.share(kind)
    }

    /// Counts `bytes` of `kind` for as long as what it returns lives.
    #[must_use]
    pub fn charge(self: &Arc<Self>, kind: MemoryKind, bytes: usize) -> Charge {
        let mut charge = Charge { budget: self.clone(), kind, bytes: 0 };
        charge.resize(bytes);
        charge
    }

    /// Counts what is left of the share of `kind`, or `least` bytes, for as long as what it returns lives. Who takes it
    /// gives back what it does not need ([`Charge::resize`]): of several who ask at once each has something else.
    #[must_use]
    pub fn charge_rest(self: &Arc<Self>, kind: MemoryKind, least: u64) -> Charge {
        let rest = |used: u64| self.share(kind).saturating_sub(used).max(least);
        let take = |used: u64| Some(used.saturating_add(rest(used)));
        let (Ok(used) | Err(used)) = self.counter(kind).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        Charge { budget: self.clone(), kind, bytes: rest(used) }
    }

    /// Notes that `kind`, which has no charges, takes `bytes` as of now.
    pub fn note(&self, kind: MemoryKind, bytes: u64) {
        self.counter(kind).store(bytes, Ordering::Relaxed);
    }

    /// There is a counter for each kind.
    fn counter(&self, kind: MemoryKind) -> &AtomicU64 {
        &self.used[kind as usize]
    }
}

/// What `kind` may take of `bytes_max` bytes.
#[must_use]
pub const fn share_of(bytes_max: u64, kind: MemoryKind) -> u64 {
    // In this order nothing overflows, and less than a unit's count of bytes is lost.
    bytes_max / limits::MEMORY_UNITS * kind.units()
}

/// Bytes that somebody holds.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<MemoryBudget>,
    kind: MemoryKind,
    bytes: u64,
}

impl Charge {
    /// Bytes counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether its kind takes more than its share.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.budget.is_over(self.kind)
    }

    /// Counts `bytes` from now on.
    pub fn resize(&mut self, bytes: usize) {
        let (bytes, counter) = (bytes as u64, self.budget.counter(self.kind));
        if bytes >= self.bytes {
            counter.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            counter.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// A charge of `bytes` for the same purpose.
    #[must_use]
    pub fn alike(&self, bytes: usize) -> Self {
        self.budget.charge(self.kind, bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.resize(0);
    }
}
