//! What the table has to hold: kept beside it, so that every case can check its answers.
//!
//! Loaded rows differ from the formula in their first integer only, fresh rows in nothing. Timed loops tell what they
//! did afterwards, so that keeping the books costs them nothing.

use mainstem::Connection;

use super::rows::{self, COLUMNS, Keys};
use crate::experiment::Failure;
use crate::keys::Scatter;

/// The rows that must be there.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// First integer of each loaded row, by rank; it stays when the row is deleted.
    c1: Vec<i32>,
    /// Loaded keys that were deleted.
    missing: Vec<i64>,
    /// Fresh keys that were inserted.
    fresh: Vec<i64>,
    sums: Sums,
}

/// Row count and sums of three columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    rows: i64,
    keys: i64,
    first: i64,
    last: i64,
}

impl Sums {
    fn add(&mut self, sign: i64, key: i64, c1: i32) {
        self.rows += sign;
        self.keys += sign * key;
        self.first += sign * i64::from(c1);
        self.last += sign * i64::from(rows::value(key, COLUMNS));
    }
}

impl Model {
    /// The table as it was loaded.
    pub(super) fn loaded(keys: Keys) -> Self {
        let mut sums = Sums::default();
        let c1 = (0..keys.rows())
            .map(|rank| {
                let key = Keys::at_rank(rank);
                let c1 = rows::value(key, 1);
                sums.add(1, key, c1);
                c1
            })
            .collect();
        Self { c1, missing: vec![], fresh: vec![], sums }
    }

    /// The first integer of a row that is there, or was.
    pub(super) fn c1(&self, key: i64) -> i32 {
        let loaded = Keys::rank(key).and_then(|rank| self.c1.get(rank));
        loaded.copied().unwrap_or_else(|| rows::value(key, 1))
    }

    /// The sum of all values of a row: what a SELECT of it adds up.
    pub(super) fn row_sum(&self, key: i64) -> i64 {
        let others: i64 = (2..=COLUMNS).map(|column| i64::from(rows::value(key, column))).sum();
        key + i64::from(self.c1(key)) + others
    }

    /// A fresh row was inserted.
    pub(super) fn inserted(&mut self, key: i64) {
        self.sums.add(1, key, rows::value(key, 1));
        self.fresh.push(key);
    }

    /// The first integer of a loaded row was set.
    pub(super) fn updated(&mut self, key: i64, c1: i32) {
        if let Some(old) = Keys::rank(key).and_then(|rank| self.c1.get_mut(rank)) {
            self.sums.first += i64::from(c1) - i64::from(*old);
            *old = c1;
        }
    }

    /// Those of `victims` were deleted for which `gone` says so, by their position. They were made by
    /// [`Model::victims`].
    pub(super) fn deleted(&mut self, victims: &[i64], gone: impl Fn(usize) -> bool) {
        let mut left = vec![];
        for (at, &key) in victims.iter().enumerate() {
            let is_loaded = Keys::rank(key).is_some();
            if gone(at) {
                let c1 = self.c1(key);
                self.sums.add(-1, key, c1);
                if is_loaded {
                    self.missing.push(key);
                }
            } else if !is_loaded {
                left.push(key);
            }
        }
        self.fresh = left;
    }

    /// All keys that are there, in an order to delete them: fresh ones first, so that the table keeps its size as long
    /// as may be.
    pub(super) fn victims(&self, keys: Keys) -> Vec<i64> {
        let count = self.fresh.len() as u64;
        let order = Scatter::new(count.max(1), 3);
        let shuffled = (0..count).filter_map(|at| self.fresh.get(order.at(at) as usize).copied());
        let missing: std::collections::HashSet<i64> = self.missing.iter().copied().collect();
        let loaded = (0..keys.rows()).map(|at| keys.loaded(at)).filter(|key| !missing.contains(key));
        shuffled.chain(loaded).collect()
    }

    /// The fresh keys that are there are forgotten; how many there were.
    pub(super) fn take_fresh(&mut self) -> u64 {
        for &key in &self.fresh {
            self.sums.add(-1, key, rows::value(key, 1));
        }
        std::mem::take(&mut self.fresh).len() as u64
    }

    /// The loaded rows that are missing are back.
    pub(super) fn take_missing(&mut self) -> Vec<i64> {
        let missing = std::mem::take(&mut self.missing);
        for &key in &missing {
            let c1 = self.c1(key);
            self.sums.add(1, key, c1);
        }
        missing
    }

    /// How many fresh rows are there.
    pub(super) fn fresh_rows(&self) -> u64 {
        self.fresh.len() as u64
    }

    /// Holds the table to it: row count and sums.
    pub(super) fn check(&self, connection: &Connection) -> Result<(), Failure> {
        let row = connection.query_row(
            "SELECT count(*), CAST(sum(k) AS BIGINT), CAST(sum(c1) AS BIGINT), CAST(sum(c16) AS BIGINT) FROM t",
            (),
        )?;
        let sum = |column: usize| row.get::<Option<i64>>(column).map(Option::unwrap_or_default);
        let found = Sums { rows: sum(0)?, keys: sum(1)?, first: sum(2)?, last: sum(3)? };
        if found == self.sums {
            return Ok(());
        }
        Err(Failure::Wrong(format!("the table has {found:?} instead of {:?}", self.sums)))
    }

    /// Reads single rows back, whole: some loaded ones and the newest fresh ones.
    pub(super) fn check_rows(&self, connection: &Connection, keys: Keys, count: u64) -> Result<(), Failure> {
        let select = connection.prepare("SELECT * FROM t WHERE k = $1")?;
        let missing: std::collections::HashSet<i64> = self.missing.iter().copied().collect();
        let loaded = (0..count).map(|at| keys.loaded(at)).filter(|key| !missing.contains(key));
        let fresh = self.fresh.iter().rev().take(count as usize).copied();
        for key in loaded.chain(fresh) {
            let row = select.query_row([key])?;
            let wanted = rows::stored(key, self.c1(key));
            if row.values() != wanted {
                return Err(Failure::Wrong(format!("key {key} has {:?} instead of {wanted:?}", row.values())));
            }
        }
        Ok(())
    }
}
