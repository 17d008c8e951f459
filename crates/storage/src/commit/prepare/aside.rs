//! Buffered rows of a write set, written aside as runs: those of a commit that has too many for the lock, and those of
//! a transaction that has too many for memory.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::commit::Engine;
use crate::error::Result;
use crate::limits;
use crate::load::{Loader, Waiting};
use crate::main_store::Run;
use crate::memory::MemoryKind;
use crate::schema::TableSchema;
use crate::write_set::TableWrites;

impl Engine {
    /// A load into `schema`'s table that takes turns with the other loads, for which it waits as `waiting` says: its
    /// sort fits the memory that they may take.
    #[must_use]
    pub fn loader(&self, schema: &Arc<TableSchema>, waiting: Waiting) -> Loader {
        let loader = self.loader_within(schema, self.loads.sort_bytes());
        // Who waits for nobody holds others up, and has few rows.
        let loader = if matches!(waiting, Waiting::Never) { loader } else { loader.with_spill() };
        loader.in_turn(self.loads.enter(waiting))
    }

    fn loader_within(&self, schema: &Arc<TableSchema>, bytes: u64) -> Loader {
        let bytes = limits::LOAD_SORT_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX));
        Loader::new(schema.clone(), self.load_target(), schema.options.segment_rows)
            .with_sort_limits(limits::LOAD_SORT_ROWS, bytes)
            .with_threads(self.load_threads)
    }

    /// The live buffered rows of `writes` as runs. It frees memory, or ends in a commit, so it waits for no load: its
    /// sorts are parts of the reserve, smaller ones when others do the same.
    ///
    /// # Errors
    /// Io or Full: nothing is left of them. Constraint (23505) when two have one key.
    pub fn write_aside(&self, writes: &TableWrites) -> Result<Vec<Arc<Run>>> {
        let schema = writes.schema();
        let (columns, arrow) = (schema.column_ids(), schema.arrow());
        let dead: Vec<_> = writes.deletes().sets_of(writes.rows().id()).collect();
        let kind = MemoryKind::Reserve;
        let left = self.memory.share(kind).saturating_sub(self.memory.used(kind));
        let sort = (left / 4).max(limits::LOAD_PIECE_BYTES_MIN.min(self.memory.share(kind) / 32));
        // At most: the rows once more, joined or in their order, and encoded.
        let _counted = self.memory.charge(kind, (sort as usize).min(3 * writes.rows().bytes()));
        let mut loader = self.loader_within(schema, sort);
        for chunk in writes.rows().chunks() {
            let is_live = |at: &u32| !dead.iter().any(|set| set.contains(chunk.first() + at));
            let live: Vec<u32> = (0..chunk.rows().len() as u32).filter(is_live).collect();
            for part in live.chunks(limits::BATCH_ROWS) {
                let arrays = chunk.rows().take_arrays(&columns, part)?;
                loader.push(&RecordBatch::try_new(arrow.clone(), arrays)?)?;
            }
        }
        loader.finish()
    }
}
