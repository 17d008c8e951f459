//! The memory pool of queries, which tells the storage what they take: what they leave is lent to the block cache.
//!
//! It does not own: who gets how much (the pool behind it), what the cache then evicts.

use std::fmt::{Display, Formatter};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use mainstem_storage::commit::QueryMemory;

/// A [`FairSpillPool`] whose sum is noted whenever it changes.
#[derive(Debug)]
pub(super) struct NotedPool {
    pool: FairSpillPool,
    memory: QueryMemory,
}

impl NotedPool {
    /// A pool of `bytes_max` bytes, noted in `memory`.
    pub fn new(bytes_max: usize, memory: QueryMemory) -> Self {
        Self { pool: FairSpillPool::new(bytes_max), memory }
    }

    fn note(&self) {
        self.memory.note(|| self.pool.reserved() as u64);
    }
}

impl Display for NotedPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.pool, f)
    }
}

impl MemoryPool for NotedPool {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.note();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.note();
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.pool.try_grow(reservation, additional)?;
        self.note();
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use mainstem_storage::database::Database;
    use mainstem_storage::memory::MemoryKind;
    use mainstem_storage::settings::OpenOptions;

    use super::*;
    use crate::session::template;

    #[test]
    fn the_storage_knows_what_queries_take() {
        let storage = Database::in_memory(OpenOptions::default()).unwrap();
        let pool = template(&storage, 1).unwrap().runtime_env().memory_pool.clone();
        let of = |kind| storage.memory().into_iter().find(|status| status.kind == kind).unwrap();
        let free = of(MemoryKind::BlockCache).limit;
        let reservation = MemoryConsumer::new("a query").register(&pool);
        reservation.try_grow(3 << 20).unwrap();
        reservation.grow(1 << 20);
        assert_eq!(of(MemoryKind::Queries).bytes, 4 << 20);
        assert_eq!(of(MemoryKind::BlockCache).limit, free - (4 << 20));
        reservation.shrink(1 << 20);
        assert_eq!(of(MemoryKind::BlockCache).limit, free - (3 << 20));
        drop(reservation);
        assert_eq!((of(MemoryKind::Queries).bytes, of(MemoryKind::BlockCache).limit), (0, free));
    }
}
