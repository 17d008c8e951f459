//! The memory of an operator that spills: as much as there is, but for a part that is left to the operators around, of
//! which some cannot spill.
//!
//! An even share, as sorts have it, would be so small beside exchanges that files are divided again and again.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// The part of the memory of queries that an operator may take whatever others have: one in so many. Less would be
/// divided without end.
const ALWAYS: usize = 64;

/// See the module.
pub(in crate::exec) struct Room {
    memory: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
    left_to_others: usize,
}

impl Room {
    /// Room for `operator` that has no bytes yet, and leaves one in `left_to_others` of all bytes to others.
    pub(in crate::exec) fn new(operator: &'static str, left_to_others: usize, context: &TaskContext) -> Self {
        let pool = context.memory_pool().clone();
        let memory = MemoryConsumer::new(operator).register(&pool);
        Self { memory, pool, left_to_others }
    }

    /// Takes `bytes` more; whether there are so many.
    pub(in crate::exec) fn grow(&self, bytes: usize) -> bool {
        let may_grow = match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => {
                self.pool.reserved().saturating_add(bytes) <= limit - limit / self.left_to_others
                    || self.is_always_there(self.memory.size().saturating_add(bytes))
            }
            _ => true,
        };
        may_grow && self.memory.try_grow(bytes).is_ok()
    }

    /// Takes `bytes` in all; whether there are so many. A small part of all memory is there in any case.
    pub(in crate::exec) fn resize(&self, bytes: usize) -> bool {
        let size = self.memory.size();
        if bytes <= size {
            self.memory.shrink(size - bytes);
            return true;
        }
        if self.grow(bytes - size) {
            return true;
        }
        let is_there = self.is_always_there(bytes);
        if is_there {
            self.memory.grow(bytes - size);
        }
        is_there
    }

    /// Takes `bytes` in all, also of what is left to others.
    ///
    /// # Errors
    /// Of the pool, when there are not so many.
    pub(in crate::exec) fn insist(&self, bytes: usize) -> Result<()> {
        self.memory.try_resize(bytes)
    }

    /// Gives back `bytes`.
    pub(in crate::exec) fn shrink(&self, bytes: usize) {
        self.memory.shrink(bytes);
    }

    /// Whether an operator may have `bytes` whatever others have.
    fn is_always_there(&self, bytes: usize) -> bool {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => bytes <= limit / ALWAYS,
            _ => true,
        }
    }
}
