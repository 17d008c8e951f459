//! The memory pool of queries, which tells the storage what they take: what they leave is lent to the block cache.
//!
//! Comes in: what operators want to take, and the share of queries, which follows `memory_limit` and may change at any
//! time. Goes out: permission or an error, which makes operators spill that can. As in DataFusion's `FairSpillPool`
//! what cannot spill takes what there is, and what can spill shares the rest evenly; but some of the rest stays free,
//! for sorts that have taken all there is would end in merges for which nothing is left. Where others have all, a small
//! part is there for each that can spill, to do it in.
//!
//! Invariant: queries take more than the share only by [`MemoryPool::grow`], which cannot fail, by exchanges, by the
//! small part that is always there, and where the share became smaller. Exchanges must not spill, and are counted up to
//! a quarter of the share. It does not own: what operators do without memory, what the cache then evicts.

use std::fmt::{Display, Formatter};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use mainstem_storage::commit::QueryMemory;
use parking_lot::Mutex;

use crate::error::Refused;

/// What of a share of `share` bytes is not for what can spill: two thirds of the first 64 MiB and a quarter of the
/// rest.
///
/// A sort counts its rows twice while it collects them, and gives half of that back when it merges them. Keys of
/// several columns then take up to three times the rows, in memory that cannot spill.
fn left_free(share: usize) -> usize {
    let first = share.min(64 << 20);
    first / 3 * 2 + (share - first) / 4
}

/// The part of a share that each that can spill may take whatever others have: one in so many. DataFusion 55.2's
/// aggregations end the query where they are refused what they take without groups.
const ALWAYS: usize = 64;

/// The part of a share that exchanges are taken to have at most: one in so many. They count the texts that batches
/// share once for each batch, which is many times what they hold, and nothing would be left for others.
const EXCHANGES: usize = 4;

/// Whether `consumer` must not spill: DataFusion 55.2's exchanges stop for ever where two of their inputs do
/// (<https://github.com/apache/datafusion/issues/24883>, mended behind 55.2). They hold a few batches for each output,
/// as long as no reader stays behind the others.
fn is_exchange(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() && consumer.name().starts_with("RepartitionExec")
}

/// Whether `consumer` spills where it is given nothing.
fn spills(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() && !is_exchange(consumer)
}

/// What all queries of a database take.
#[derive(Debug)]
pub(super) struct QueryPool {
    taken: Mutex<Taken>,
    memory: QueryMemory,
}

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// How many there are that can spill.
    spilling: usize,
    /// Bytes of those.
    spillable: usize,
    /// Bytes that exchanges count.
    exchanges: usize,
    /// Bytes of the others.
    unspillable: usize,
}

impl Taken {
    /// All bytes, of `share`.
    fn bytes(self, share: usize) -> usize {
        self.spillable.saturating_add(self.unspillable(share))
    }

    /// Bytes of what cannot spill, of `share`.
    fn unspillable(self, share: usize) -> usize {
        self.unspillable.saturating_add(self.exchanges.min(share / EXCHANGES))
    }

    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if is_exchange(consumer) {
            &mut self.exchanges
        } else if spills(consumer) {
            &mut self.spillable
        } else {
            &mut self.unspillable
        }
    }

    /// What one more reservation of `consumer` that has `size` bytes may take in addition, of `share` bytes.
    fn available(self, consumer: &MemoryConsumer, size: usize, share: usize) -> usize {
        if spills(consumer) {
            let all = share.saturating_sub(self.unspillable(share).max(left_free(share)));
            all.checked_div(self.spilling).unwrap_or(all).max(share / ALWAYS).saturating_sub(size)
        } else {
            share.saturating_sub(self.bytes(share))
        }
    }
}

impl QueryPool {
    /// A pool of the share of queries, noted in `memory`.
    pub fn new(memory: QueryMemory) -> Self {
        Self { taken: Mutex::default(), memory }
    }

    fn share(&self) -> usize {
        usize::try_from(self.memory.share()).unwrap_or(usize::MAX)
    }

    fn note(&self) {
        self.memory.note(|| self.reserved() as u64);
    }
}

impl Display for QueryPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.name(), self.share())
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "memory of queries"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if spills(consumer) {
            self.taken.lock().spilling += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if spills(consumer) {
            let mut taken = self.taken.lock();
            taken.spilling = taken.spilling.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.taken.lock().of(reservation.consumer()) += additional;
        self.note();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut taken = self.taken.lock();
        let of = taken.of(reservation.consumer());
        *of = of.saturating_sub(shrink);
        drop(taken);
        self.note();
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let (consumer, share) = (reservation.consumer(), self.share());
        let mut taken = self.taken.lock();
        let available = taken.available(consumer, reservation.size(), share);
        if additional > available && !is_exchange(consumer) {
            let refused = Refused {
                has: reservation.size(),
                wants: additional,
                left: available,
                share,
                memory_limit: self.memory.memory_limit(),
            };
            return Err(refused.error());
        }
        *taken.of(consumer) += additional;
        drop(taken);
        self.note();
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.taken.lock().bytes(self.share())
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.share())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::sync::Arc;

    use mainstem_storage::database::Database;
    use mainstem_storage::limits::{MEMORY_SHARES, MEMORY_UNITS};
    use mainstem_storage::memory::{MemoryKind, share_of};
    use mainstem_storage::settings::OpenOptions;

    use super::*;
    use crate::exec::template;

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

    /// A pool of `kib` KiB for queries, and its database.
    fn pool_of(kib: u64) -> (Database, Arc<dyn MemoryPool>) {
        let bytes = (kib << 10).div_ceil(MEMORY_SHARES[MemoryKind::Queries as usize]) * MEMORY_UNITS;
        let storage = Database::in_memory(OpenOptions::new().memory_limit(bytes).background(false)).unwrap();
        let pool: Arc<dyn MemoryPool> = Arc::new(QueryPool::new(storage.query_memory()));
        (storage, pool)
    }

    #[test]
    fn what_cannot_spill_takes_what_there_is_and_what_can_shares_the_rest() {
        let (_storage, pool) = pool_of(900);
        let [first, second] = ["a", "b"].map(|name| MemoryConsumer::new(name).with_can_spill(true).register(&pool));
        let table = MemoryConsumer::new("a hash table").register(&pool);
        let kib = |n: usize| n << 10;
        table.try_grow(kib(200)).unwrap();
        // 600 are not for what can spill, and 150 are for each of the two.
        first.try_grow(kib(100)).unwrap();
        first.try_grow(kib(50)).unwrap();
        assert!(first.try_grow(kib(1)).is_err());
        second.try_grow(kib(149)).unwrap();
        table.try_grow(kib(401)).unwrap();
        assert!(table.try_grow(kib(1)).is_err(), "all is taken");
        drop(first);
        table.try_grow(kib(150)).unwrap();
        // Alone, but no more than it has is left for it.
        assert!(second.try_grow(kib(1)).is_err());
        assert_eq!(pool.reserved(), kib(900));
        assert_eq!([3, 64, 128, 1_280].map(|mib| left_free(mib << 20) >> 20), [2, 42, 58, 346]);
        drop(second);
        // Where all is taken a small part is there for each that can spill.
        table.try_grow(kib(149)).unwrap();
        let third = MemoryConsumer::new("c").with_can_spill(true).register(&pool);
        third.try_grow(kib(14)).unwrap();
        assert!(third.try_grow(kib(1)).is_err());
        drop((third, table));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn exchanges_are_given_what_they_want() {
        let (_storage, pool) = pool_of(100);
        let exchange = MemoryConsumer::new("RepartitionExec[1]").with_can_spill(true).register(&pool);
        exchange.try_grow(20 << 10).unwrap();
        assert_eq!(pool.reserved(), 20 << 10, "it is counted");
        exchange.try_grow(4 << 20).unwrap();
        let table = MemoryConsumer::new("a hash table").register(&pool);
        table.try_grow(74 << 10).unwrap();
        assert!((99 << 10..=101 << 10).contains(&pool.reserved()), "others are left three quarters");
        assert!(table.try_grow(2 << 10).is_err());
        exchange.shrink(4 << 20);
        assert_eq!(pool.reserved(), 94 << 10);
        // Of another version: look whether exchanges that spill still stop for ever.
        assert_eq!(datafusion::DATAFUSION_VERSION, "55.2.0");
    }

    #[test]
    fn its_size_follows_memory_limit() {
        let (storage, pool) = pool_of(100);
        let one = MemoryConsumer::new("one").register(&pool);
        assert!(one.try_grow(4 << 20).is_err());
        storage.set_memory_limit(Some(16 << 20)).unwrap();
        assert!(matches!(pool.memory_limit(), MemoryLimit::Finite(bytes) if bytes == 5 << 20));
        one.try_grow(4 << 20).unwrap();
        storage.set_memory_limit(None).unwrap();
        // What is taken is nobody's to take away; more is not given.
        assert_eq!(pool.reserved(), 4 << 20);
        assert!(one.try_grow(1).is_err());
        let of = |kind| storage.memory().into_iter().find(|status| status.kind == kind).unwrap();
        let cache = share_of(storage.memory_limit(), MemoryKind::BlockCache);
        assert_eq!(of(MemoryKind::BlockCache).limit, cache, "nothing is left to be lent");
        one.grow(1);
        assert_eq!(of(MemoryKind::Queries).bytes, (4 << 20) + 1);
    }
}
