//! Numbers for IDENTITY columns.
//!
//! Comes in: how many numbers a statement needs. Goes out: as many, which nobody else gets, before or after a crash.
//! Mostly they come from the blocks that all transactions share (`commit`); a transaction that has made the table or
//! the column, or has begun its numbers anew, counts by itself, and its commit says how far it came.
//!
//! When another transaction begins the numbers anew, those drawn before are drawn again: the commit of rows that have
//! them is a conflict.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::{Transaction, no_table};
use crate::commit::NumberSource;
use crate::error::Result;
use crate::ids::{ColumnId, CommitTs, TableId};
use crate::write_set::DdlChange;

/// Numbers taken of columns for which a transaction counts by itself.
pub(super) type OwnNumbers = Mutex<BTreeMap<(TableId, ColumnId), u64>>;

/// Tables with a timestamp from before the first draw.
pub(super) type DrawnNumbers = Mutex<BTreeMap<TableId, CommitTs>>;

impl Transaction {
    /// The next `n` numbers of an IDENTITY column, in order. Numbers of a statement that fails, or of a transaction
    /// that is rolled back, are lost; none is given out twice, whatever happens, but after TRUNCATE ... RESTART
    /// IDENTITY, and then this transaction cannot commit rows any more that have numbers from before (40001).
    ///
    /// # Errors
    /// Invalid (2200H) when there are no more, none is taken then; NotFound (42P01); Internal for a column that counts
    /// nothing; Conflict (40001) when the table was dropped meanwhile; Full and Closed as a commit.
    pub fn next_identity_values(&self, table: TableId, column: ColumnId, n: usize) -> Result<Vec<i64>> {
        self.check_may_write()?;
        let schema = self.catalog.table(table).ok_or_else(no_table)?;
        let source = NumberSource::new(schema, column)?;
        if !self.counts_alone(table, column) {
            // Read first: who begins anew later than this may do so between the draw and whatever is read then.
            let before = self.engine.timeline.applied();
            let values = self.engine.draw_numbers(&source, n)?;
            self.drawn.get_or_init(Box::default).lock().entry(table).or_insert(before);
            return Ok(values);
        }
        let mut numbers = self.numbers.get_or_init(Box::default).lock();
        let taken = numbers.entry((table, column)).or_default();
        let values = source.values(*taken, n as u64)?;
        *taken += n as u64;
        Ok(values)
    }

    /// How many numbers of each IDENTITY column are taken, by this transaction too.
    ///
    /// # Errors
    /// Closed.
    pub fn numbers_taken(&self) -> Result<BTreeMap<(TableId, ColumnId), u64>> {
        let mut taken = self.engine.numbers_taken()?;
        if let Some(own) = self.numbers.get() {
            taken.extend(own.lock().iter().map(|(of, count)| (*of, *count)));
        }
        Ok(taken)
    }

    /// The first `taken` numbers of an IDENTITY column count as taken from here on, those that are already anyway. As
    /// lost numbers they stay so when the transaction is rolled back, unless it counts by itself.
    ///
    /// # Errors
    /// As [`Transaction::next_identity_values`].
    pub fn advance_numbers(&self, table: TableId, column: ColumnId, taken: u64) -> Result<()> {
        self.check_may_write()?;
        let schema = self.catalog.table(table).ok_or_else(no_table)?;
        let source = NumberSource::new(schema, column)?;
        // There are as many.
        source.values(taken, 0)?;
        if !self.counts_alone(table, column) {
            return self.engine.advance_numbers(&source, taken);
        }
        let mut numbers = self.numbers.get_or_init(Box::default).lock();
        let own = numbers.entry((table, column)).or_default();
        *own = taken.max(*own);
        Ok(())
    }

    /// What a commit must know of numbers that others may draw again.
    pub(super) fn finish_numbers(&mut self) {
        if let Some(drawn) = self.drawn.get() {
            self.writes.drawn.clone_from(&drawn.lock());
        }
    }

    /// Where this transaction's own counting has come to.
    pub(super) fn own_numbers(&self) -> Vec<DdlChange> {
        let stands = |table: &TableId, column: &ColumnId| {
            let found = self.catalog.table(*table).and_then(|schema| schema.column(*column));
            found.is_some_and(|found| found.identity.is_some())
        };
        let Some(numbers) = self.numbers.get() else { return Vec::new() };
        let numbers = numbers.lock();
        let own =
            numbers.iter().filter(|((table, column), _)| stands(table, column) && self.counts_alone(*table, *column));
        own.map(|((table, column), taken)| DdlChange::TakeNumbers { table: *table, column: *column, taken: *taken })
            .collect()
    }

    fn counts_alone(&self, table: TableId, column: ColumnId) -> bool {
        let restarted = |change: &DdlChange| match change {
            DdlChange::Truncate { schema, restart_identity } => *restart_identity && schema.id == table,
            _ => false,
        };
        let before = self.snapshot.root().catalog.table(table).and_then(|schema| schema.column(column));
        before.is_none() || self.writes.ddl.iter().any(restarted)
    }
}
