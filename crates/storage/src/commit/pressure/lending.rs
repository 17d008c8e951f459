//! Memory that queries leave is lent to the block cache: most of the time few queries run, and a table that fits into
//! memory should be there.
//!
//! The cache is enlarged with each measurement ([`Engine::measure_memory`]), and made smaller at once when queries take
//! what was lent. Invariant: what cache and queries may take together is never more than their two shares of
//! `memory_limit`: what queries take is noted, and the bound computed from it, one after the other, under the cache's
//! lock.

use std::sync::Arc;

use crate::commit::Engine;
use crate::memory::{MemoryBudget, MemoryKind};
use crate::segment::BlockCache;

/// What the cache may take while queries take what they do.
fn bound(memory: &MemoryBudget) -> u64 {
    let left = memory.share(MemoryKind::Queries).saturating_sub(memory.used(MemoryKind::Queries));
    memory.share(MemoryKind::BlockCache) + left
}

impl Engine {
    /// `memory_limit` is `bytes_max` from now on. The cache and what it has borrowed fit into it when this returns.
    pub fn set_memory_limit(&self, bytes_max: u64) {
        self.memory.set_bytes_max(bytes_max);
        self.lend_to_cache();
    }

    /// Lends the block cache what queries leave now.
    pub(in crate::commit) fn lend_to_cache(&self) {
        self.cache.resize_by(|_| bound(&self.memory));
    }

    /// Where the memory of queries is counted.
    #[must_use]
    pub fn query_memory(&self) -> QueryMemory {
        QueryMemory { memory: self.memory.clone(), cache: self.cache.clone() }
    }
}

/// Where the memory of queries is counted, by whoever runs them.
#[derive(Clone, Debug)]
pub struct QueryMemory {
    memory: Arc<MemoryBudget>,
    cache: Arc<BlockCache>,
}

impl QueryMemory {
    /// Bytes that queries may take now.
    #[must_use]
    pub fn share(&self) -> u64 {
        self.memory.share(MemoryKind::Queries)
    }

    /// `memory_limit` now.
    #[must_use]
    pub fn memory_limit(&self) -> u64 {
        self.memory.bytes_max()
    }

    /// Queries take as many bytes as `bytes` says now: it is asked once, and nobody else's is at the same time, so that
    /// no older answer is noted after a newer one. What the block cache has borrowed of it is free when this returns.
    pub fn note(&self, bytes: impl FnOnce() -> u64) {
        self.cache.resize_by(|now| {
            self.memory.note(MemoryKind::Queries, bytes());
            // What queries give back is lent with the next measurement: they may want it again soon.
            bound(&self.memory).min(now)
        });
    }
}
