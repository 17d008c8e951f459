//! Keys of the live rows a transaction has inserted and not written aside, to the row that has each.
//!
//! One of them for each key of a table. Only the transaction's newest state has it: views never ask. Rows hold their
//! keys, so an entry is a hash and an offset.

use std::sync::Arc;

use hashbrown::HashTable;

use super::OwnRows;
use crate::ids::KeyId;
use crate::memory::{Charge, MemoryBudget, MemoryKind};
use crate::row::RowView;
use crate::row::key::{HashedKey, RowKeys, TableKey, hash_key};

/// A row and the hash of its key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    row: u32,
}

/// One key of a table, for the own rows that have it.
#[derive(Debug)]
pub struct OwnKeys {
    of: TableKey,
    entries: HashTable<Entry>,
    charge: Charge,
    /// The key at hand.
    key: Vec<u8>,
}

impl OwnKeys {
    /// No rows yet, for the key `of` a table.
    #[must_use]
    pub fn new(of: TableKey, budget: &Arc<MemoryBudget>) -> Self {
        let charge = budget.charge(MemoryKind::WriteSets, 0);
        Self { of, entries: HashTable::new(), charge, key: Vec::new() }
    }

    /// The key of the table.
    #[must_use]
    pub fn key(&self) -> &TableKey {
        &self.of
    }

    /// Which key of the table.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.of.id()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// The row of `rows` that has `key`.
    #[must_use]
    pub fn find(&self, key: HashedKey<'_>, rows: &OwnRows) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let (hash, key) = (key.hash(), key.bytes());
        let mut theirs = Vec::new();
        let has_key = |entry: &Entry| {
            theirs.clear();
            entry.hash == hash
                && rows.row(entry.row).is_some_and(|row| self.of.encode_row(row, &mut theirs) && theirs == key)
        };
        self.entries.find(hash, has_key).map(|entry| entry.row)
    }

    /// Adds the key of `row`, which stands at `offset`, if it has one; no other live row has it.
    pub fn insert(&mut self, offset: u32, row: RowView<'_>) {
        if let Some(hash) = self.hash(row) {
            self.entries.insert_unique(hash, Entry { hash, row: offset }, |entry| entry.hash);
            self.recount();
        }
    }

    /// As [`OwnKeys::insert`], of rows that stand at `first` on and have `keys`.
    pub fn insert_all(&mut self, first: u32, keys: &RowKeys) {
        self.entries.reserve(keys.rows(), |entry| entry.hash);
        for (row, key) in keys.iter() {
            let entry = Entry { hash: key.hash(), row: first + row as u32 };
            self.entries.insert_unique(entry.hash, entry, |entry| entry.hash);
        }
        self.recount();
    }

    /// Removes the key of `row`, which stands at `offset`, if it is there.
    pub fn remove(&mut self, offset: u32, row: RowView<'_>) {
        let Some(hash) = self.hash(row) else { return };
        if let Ok(entry) = self.entries.find_entry(hash, |entry| entry.row == offset) {
            entry.remove();
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.entries = HashTable::new();
        self.recount();
    }

    fn hash(&mut self, row: RowView<'_>) -> Option<u64> {
        self.key.clear();
        self.of.encode_row(row, &mut self.key).then(|| hash_key(&self.key))
    }

    fn recount(&mut self) {
        let bytes = self.entries.allocation_size();
        if bytes as u64 != self.charge.bytes() {
            self.charge.resize(bytes);
        }
    }
}
