//! What the mix asks of an engine, so that its transactions are written once.

use std::cell::Cell;

use mainstem::ValueRef;

use super::schema::Query;
use crate::experiment::Failure;

/// An engine that has prepared all statements. Values are BIGINT, TEXT and NULL.
pub(super) trait Engine {
    /// Runs a writing statement; how many rows it wrote.
    fn execute(&self, query: Query, values: &[ValueRef<'_>]) -> Result<u64, Failure>;

    /// Runs a query, and hands over each cell with the number of its column, row by row.
    fn query(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
        cell: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), Failure>;

    /// Runs `work` as one transaction, which is committed if it returns true, and rolled back otherwise.
    fn transaction(&self, work: &mut dyn FnMut() -> Result<bool, Failure>) -> Result<(), Failure>;
}

/// Numbers as values.
pub(super) fn numbers<const N: usize>(numbers: [i64; N]) -> [ValueRef<'static>; N] {
    numbers.map(ValueRef::BigInt)
}

/// Statements of transactions, and a digest of what they read.
pub(super) struct Session<'a> {
    engine: &'a dyn Engine,
    digest: Cell<i64>,
}

impl<'a> Session<'a> {
    pub(super) fn new(engine: &'a dyn Engine) -> Self {
        Self { engine, digest: Cell::new(0) }
    }

    /// Of all cells read since it was last asked for: the same in every engine that gives the same rows, in any order.
    pub(super) fn take_digest(&self) -> i64 {
        self.digest.take()
    }

    /// Runs `work` as one transaction.
    pub(super) fn transaction(&self, mut work: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
        self.engine.transaction(&mut work)
    }

    /// Runs a statement that writes one row.
    pub(super) fn write(&self, query: Query, values: &[ValueRef<'_>]) -> Result<(), Failure> {
        match self.write_any(query, values)? {
            1 => Ok(()),
            rows => Err(Failure::Wrong(format!("{query:?} wrote {rows} rows instead of 1"))),
        }
    }

    /// Runs a statement that writes any number of rows.
    pub(super) fn write_any(&self, query: Query, values: &[ValueRef<'_>]) -> Result<u64, Failure> {
        let rows = self.engine.execute(query, values)?;
        self.digest.set(self.digest.get().wrapping_add(rows as i64));
        Ok(rows)
    }

    /// The whole numbers in the first columns of all rows.
    pub(super) fn rows<const N: usize>(&self, query: Query, values: &[ValueRef<'_>]) -> Result<Vec<[i64; N]>, Failure> {
        self.read(query, values, &mut String::new())
    }

    /// The same of one row, or none.
    pub(super) fn optional<const N: usize>(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
    ) -> Result<Option<[i64; N]>, Failure> {
        let rows = self.rows(query, values)?;
        match rows.as_slice() {
            [] => Ok(None),
            [row] => Ok(Some(*row)),
            _ => Err(Failure::Wrong(format!("{query:?} gave {} rows instead of one", rows.len()))),
        }
    }

    /// The same of the one row there has to be.
    pub(super) fn one<const N: usize>(&self, query: Query, values: &[ValueRef<'_>]) -> Result<[i64; N], Failure> {
        self.optional(query, values)?.ok_or_else(|| Failure::Wrong(format!("{query:?} gave no row of {values:?}")))
    }

    /// The same, and the first text of that row.
    pub(super) fn one_with_text<const N: usize>(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
    ) -> Result<([i64; N], String), Failure> {
        let mut text = String::new();
        let rows = self.read(query, values, &mut text)?;
        match rows.as_slice() {
            [row] => Ok((*row, text)),
            _ => Err(Failure::Wrong(format!("{query:?} gave {} rows of {values:?} instead of one", rows.len()))),
        }
    }

    fn read<const N: usize>(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
        first: &mut String,
    ) -> Result<Vec<[i64; N]>, Failure> {
        let (mut rows, mut digest) = (Vec::<[i64; N]>::new(), self.digest.get());
        self.engine.query(query, values, &mut |column, cell| {
            if column == 0 {
                rows.push([0; N]);
            }
            match cell {
                ValueRef::BigInt(number) => {
                    digest = digest.wrapping_add(number);
                    if let Some(slot) = rows.last_mut().and_then(|row| row.get_mut(column)) {
                        *slot = number;
                    }
                }
                ValueRef::Text(text) => {
                    digest = digest.wrapping_add(text.bytes().map(i64::from).sum());
                    if first.is_empty() {
                        first.push_str(text);
                    }
                }
                _ => {}
            }
        })?;
        self.digest.set(digest);
        Ok(rows)
    }
}
