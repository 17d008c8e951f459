//! Numbers for IDENTITY columns.
//!
//! Comes in: how many numbers a statement needs. Goes out: as many, which nobody else gets, before or after a crash.
//! Mostly they come from the blocks that all transactions share (`commit`); a transaction that has made the table or
//! the column, or has begun its numbers anew, counts by itself, and its commit says how far it came. A table that takes
//! the place of another one (a new key) draws from the blocks of that one until the commit.
//!
//! When another transaction begins the numbers anew, those drawn before are drawn again: the commit of rows that have
//! them is a conflict.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Transaction, no_table};
use crate::commit::NumberSource;
use crate::error::Result;
use crate::ids::{ColumnId, CommitTs, TableId};
use crate::schema::TableSchema;
use crate::write_set::DdlChange;

/// Numbers taken of columns for which a transaction counts by itself.
pub(super) type OwnNumbers = Mutex<BTreeMap<(TableId, ColumnId), u64>>;

/// Tables with a timestamp from before the first draw.
pub(super) type DrawnNumbers = Mutex<BTreeMap<TableId, CommitTs>>;

/// Tables that this transaction has made in the place of others, whose IDENTITY columns go on: with the one that has
/// their numbers.
pub(super) type ReplacedTables = BTreeMap<TableId, TableId>;

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
        if let Some(shared) = self.shared_numbers(table, column) {
            let source = NumberSource::new(shared, column)?;
            // Read first: who begins anew later than this may do so between the draw and whatever is read then.
            let before = self.engine.timeline.applied();
            let values = self.engine.draw_numbers(&source, n)?;
            self.drawn.get_or_init(Box::default).lock().entry(shared.id).or_insert(before);
            return Ok(values);
        }
        let source = NumberSource::new(schema, column)?;
        let mut numbers = self.numbers.get_or_init(Box::default).lock();
        let taken = numbers.entry((table, column)).or_default();
        let values = source.values(*taken, n as u64)?;
        *taken += n as u64;
        Ok(values)
    }

    /// How many numbers of each IDENTITY column rows may have that this transaction sees.
    ///
    /// # Errors
    /// Closed.
    pub fn numbers_taken(&self) -> Result<BTreeMap<(TableId, ColumnId), u64>> {
        let mut taken = self.engine.numbers_taken(self.snapshot.ts())?;
        for (new, old) in &self.replaced {
            let of_old: Vec<_> = taken.range((*old, ColumnId(0))..).take_while(|((of, _), _)| of == old).collect();
            let of_new: Vec<_> = of_old.into_iter().map(|((_, column), count)| ((*new, *column), *count)).collect();
            taken.extend(of_new);
        }
        if let Some(own) = self.numbers.get() {
            let own = own.lock();
            let alone = own.iter().filter(|((table, column), _)| self.shared_numbers(*table, *column).is_none());
            taken.extend(alone.map(|(of, count)| (*of, *count)));
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
        let shared = self.shared_numbers(table, column);
        let source = NumberSource::new(shared.unwrap_or(schema), column)?;
        // There are as many.
        source.values(taken, 0)?;
        if shared.is_some() {
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

    /// Where the counting has come to of tables that the commit makes, or whose counting it begins anew.
    ///
    /// # Errors
    /// Closed.
    pub(super) fn take_own_numbers(&mut self) -> Result<()> {
        let change = |(table, column): (TableId, ColumnId), taken| DdlChange::TakeNumbers { table, column, taken };
        let mut changes = Vec::new();
        if let Some(numbers) = self.numbers.get() {
            let numbers = numbers.lock();
            let own = numbers.iter().filter(|((table, column), _)| {
                let found = self.catalog.table(*table).and_then(|schema| schema.column(*column));
                let counts = found.is_some_and(|found| found.identity.is_some());
                counts && self.shared_numbers(*table, *column).is_none()
            });
            changes.extend(own.map(|(of, taken)| change(*of, *taken)));
        }
        let mut seen = BTreeMap::new();
        for (new, old) in &self.replaced {
            let Some(schema) = self.catalog.table(*new) else { continue };
            let counting = schema.columns.iter().filter(|column| column.identity.is_some()).map(|column| column.id);
            for column in counting.filter(|column| self.shared_numbers(*new, *column).is_some()) {
                let found = self.engine.close_block((*old, column))?;
                seen.insert((*old, column), found.mark);
                if found.taken > 0 {
                    changes.push(change((*new, column), found.taken));
                }
            }
        }
        self.writes.numbers_seen = seen;
        self.writes.ddl.extend(changes);
        Ok(())
    }

    /// The definition whose numbers all transactions share, of which those of `column` are; none if this transaction
    /// counts by itself: it has made the column, or has begun its numbers anew.
    fn shared_numbers(&self, table: TableId, column: ColumnId) -> Option<&Arc<TableSchema>> {
        let table = self.replaced.get(&table).copied().unwrap_or(table);
        let before = self.snapshot.root().catalog.table(table)?;
        let restarted = |change: &DdlChange| match change {
            DdlChange::Truncate { schema, restart_identity } => *restart_identity && schema.id == table,
            _ => false,
        };
        before.column(column)?;
        (!self.writes.ddl.iter().any(restarted)).then_some(before)
    }

    /// The numbers of the table `new`, made in the place of `old`, are those of `old`, so that none is drawn twice
    /// whatever comes of this transaction. Where it counts by itself for `old`, it goes on for `new`.
    pub(super) fn go_on_counting(&mut self, old: &TableSchema, new: TableId) {
        let counting = || old.columns.iter().filter(|column| column.identity.is_some()).map(|column| column.id);
        if counting().any(|column| self.shared_numbers(old.id, column).is_some()) {
            let shared = self.replaced.get(&old.id).copied().unwrap_or(old.id);
            self.replaced.insert(new, shared);
        }
        let mut own = self.numbers.get_or_init(Box::default).lock();
        for column in counting() {
            if let Some(taken) = own.get(&(old.id, column)).copied() {
                own.insert((new, column), taken);
            }
        }
    }
}
