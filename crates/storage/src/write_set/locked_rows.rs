//! Rows that a transaction has read FOR UPDATE or FOR SHARE.

use std::sync::Arc;

use super::{RowLayers, RowSets};
use crate::memory::MemoryBudget;
use crate::schema::TableSchema;

/// Rows of one table that nobody may have changed by the commit; nothing is written for them. A clone costs O(log
/// rows), and stays as it is.
#[derive(Clone, Debug)]
pub struct LockedRows {
    schema: Arc<TableSchema>,
    rows: RowLayers,
}

impl LockedRows {
    /// None yet of `schema`'s table.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, budget: &Arc<MemoryBudget>) -> Self {
        Self { schema, rows: RowLayers::new(budget.clone()) }
    }

    /// The schema version the first of them were read under.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The rows, by container.
    #[must_use]
    pub fn sets(&self) -> RowSets {
        self.rows.collect(|_| true)
    }

    /// Adds `rows`.
    pub fn add(&mut self, rows: RowSets) {
        self.rows.add(rows);
    }
}
