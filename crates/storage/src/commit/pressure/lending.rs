//! Memory that queries leave is lent to the block cache: most of the time few queries run, and a table that fits into memory should be
//! there.
//!
//! The cache is enlarged with each measurement ([`Engine::measure_memory`]), and made smaller at once when queries take what was lent.
//! Invariant: what cache and queries may take together is never more than their two shares of `memory_limit`.

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
    /// Lends the block cache what queries leave now.
    pub(in crate::commit) fn lend_to_cache(&self) {
        self.cache.resize(bound(&self.memory));
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
    /// Queries take `bytes` as of now. What the block cache has borrowed of it is free when this returns.
    pub fn note(&self, bytes: u64) {
        self.memory.note(MemoryKind::Queries, bytes);
        let bound = bound(&self.memory);
        if bound < self.cache.bytes_max() {
            self.cache.resize(bound);
        }
    }
}
