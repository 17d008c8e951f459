//! The write set, one part per table.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use crate::error::Result;
use crate::ids::{ContainerId, RowRef, TableId};
use crate::main_store::Run;
use crate::row::key::KeyCodec;
use crate::row::{RowBuffer, RowLayout};
use crate::schema::TableSchema;

/// A schema change of a transaction.
#[derive(Clone, Debug)]
pub enum DdlChange {
    /// CREATE TABLE.
    Create(Arc<TableSchema>),
    /// DROP TABLE.
    Drop(Arc<TableSchema>),
}

/// Encoded primary keys of rows not yet in a store, to the row's offset in its buffer.
pub type OwnKeys = HashMap<Box<[u8]>, u32>;

/// What a transaction writes to one table.
#[derive(Clone, Debug)]
pub struct TableWrites {
    /// The schema version the writes were made under.
    pub schema: Arc<TableSchema>,
    /// Rows inserted; row `i` is `RowRef(OWN_ROWS, i)` to the transaction's own later statements.
    pub rows: RowBuffer,
    /// Of [`TableWrites::rows`], those deleted again by a later statement.
    pub dead_rows: RoaringBitmap,
    /// Keys of the live [`TableWrites::rows`]; empty for a table without a key.
    pub keys: OwnKeys,
    /// Large inserts, written aside as runs of segments, whose files go unless a commit keeps them. Rows deleted from them again stand in [`TableWrites::deletes`].
    pub runs: Vec<Arc<Run>>,
    /// Rows of the stores, and of [`TableWrites::runs`], that are deleted.
    pub deletes: BTreeMap<ContainerId, RoaringBitmap>,
}

impl TableWrites {
    /// Nothing written to `schema`'s table yet.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>) -> Self {
        let rows = RowBuffer::new(RowLayout::new(&schema));
        Self {
            schema,
            rows,
            dead_rows: RoaringBitmap::new(),
            keys: OwnKeys::new(),
            runs: Vec::new(),
            deletes: BTreeMap::new(),
        }
    }

    /// Marks `row` deleted. Returns false when it was so already.
    pub fn delete(&mut self, row: RowRef) -> bool {
        if row.container() == ContainerId::OWN_ROWS {
            self.dead_rows.insert(row.offset())
        } else {
            self.deletes.entry(row.container()).or_default().insert(row.offset())
        }
    }

    /// Whether this transaction deleted `row`.
    #[must_use]
    pub fn is_deleted(&self, row: RowRef) -> bool {
        if row.container() == ContainerId::OWN_ROWS {
            self.dead_rows.contains(row.offset())
        } else {
            self.deletes.get(&row.container()).is_some_and(|set| set.contains(row.offset()))
        }
    }

    /// Rows inserted and still live, in rows and runs.
    #[must_use]
    pub fn live_inserts(&self) -> u64 {
        let in_runs: u64 = self.runs.iter().map(|run| run.rows()).sum();
        let dead_in_runs: u64 = self
            .runs
            .iter()
            .flat_map(|run| run.segments())
            .filter_map(|part| self.deletes.get(&part.segment.id()))
            .map(RoaringBitmap::len)
            .sum();
        self.rows.len() as u64 - self.dead_rows.len() + in_runs - dead_in_runs
    }

    /// Bytes of the buffered rows.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.runs.is_empty() && self.deletes.is_empty()
    }

    /// Rebuilds [`TableWrites::keys`] from the live rows. The caller has checked that they are distinct.
    ///
    /// # Errors
    /// Internal when a row does not fit the key.
    pub fn index_rows(&mut self, codec: &KeyCodec, from: usize) -> Result<()> {
        let mut key = Vec::new();
        for row in from..self.rows.len() {
            if self.dead_rows.contains(row as u32) {
                continue;
            }
            key.clear();
            codec.encode_row(self.rows.row(row), &mut key);
            self.keys.insert(key.as_slice().into(), row as u32);
        }
        Ok(())
    }
}

/// All a transaction wants to write.
#[derive(Clone, Debug, Default)]
pub struct WriteSet {
    /// Per table; shared with the scans of later statements.
    pub tables: BTreeMap<TableId, Arc<TableWrites>>,
    /// Schema changes in statement order.
    pub ddl: Vec<DdlChange>,
}

impl WriteSet {
    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ddl.is_empty() && self.tables.values().all(|t| t.is_empty())
    }
}
