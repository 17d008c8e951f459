//! The table, its keys, and what stands in its rows: the same formula as in `bench/peers/rows.py`.

use mainstem::{Value, ValueRef};

use crate::keys::Scatter;
use crate::suite::numbers;

/// Integers of a row, beside its key.
pub(crate) const COLUMNS: usize = 16;
/// A loaded key is a multiple of this; the keys in between are fresh.
const SPACING: u64 = 16;
/// Values lie below it: it fits into INTEGER.
const PRIME: u64 = 1_000_000_007;
/// Bytes of a row's values: a BIGINT and the integers.
pub(super) const ROW_BYTES: u64 = 8 + 4 * COLUMNS as u64;
/// Threads that may write at once: their keys are disjoint because the number of rows is a multiple of it.
pub(super) const THREADS_MAX: u64 = 16;

/// Statement that makes the table `name` with a key and `columns` integers.
pub(crate) fn create_table(name: &str, columns: usize) -> String {
    let integers: Vec<String> = (1..=columns).map(|column| format!("c{column} INTEGER")).collect();
    format!("CREATE TABLE {name} (k BIGINT PRIMARY KEY, {})", integers.join(", "))
}

/// An INSERT of all loaded rows into table `name` of `columns` integers, in an order of keys that looks random. It
/// makes the same rows in any engine: the multiplier is a prime above all numbers of rows, so each key comes once.
pub(crate) fn load_statement(name: &str, columns: usize, keys: Keys) -> String {
    let values = (1..=columns).map(|column| format!("(k * {} + {column}) % {PRIME}", multiplier(column as u64)));
    let rows = keys.rows;
    format!(
        "INSERT INTO {name} SELECT k, {} FROM (SELECT x * 2654435761 % {rows} * {SPACING} AS k FROM {}) AS keys",
        values.collect::<Vec<_>>().join(", "),
        numbers(rows)
    )
}

/// An INSERT of `rows` rows of `columns` integers, whose values are parameters.
pub(crate) fn insert_statement(rows: usize, columns: usize) -> String {
    let width = columns + 1;
    let row = |row: usize| {
        let places: Vec<String> = (1..=width).map(|place| format!("${}", row * width + place)).collect();
        format!("({})", places.join(", "))
    };
    format!("INSERT INTO t VALUES {}", (0..rows).map(row).collect::<Vec<_>>().join(", "))
}

/// The value of integer `column` (from 1) in the row with `key`, as it is loaded and inserted.
pub(crate) fn value(key: i64, column: usize) -> i32 {
    let column = column as u64;
    ((key as u64 * multiplier(column) + column) % PRIME) as i32
}

fn multiplier(column: u64) -> u64 {
    100_003 + 20_000_006 * column
}

/// The row with `key` as parameters; `c1` stands in its first integer.
pub(crate) fn parameters(key: i64, c1: i32) -> [ValueRef<'static>; COLUMNS + 1] {
    std::array::from_fn(|column| match column {
        0 => ValueRef::BigInt(key),
        1 => ValueRef::Integer(c1),
        _ => ValueRef::Integer(value(key, column)),
    })
}

/// The same for the appender.
pub(super) fn stored(key: i64, c1: i32) -> [Value; COLUMNS + 1] {
    std::array::from_fn(|column| match column {
        0 => Value::Int(key),
        1 => Value::Int(c1.into()),
        _ => Value::Int(value(key, column).into()),
    })
}

/// Which keys there are, in random orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    rows: u64,
    loaded: Scatter,
    fresh: Scatter,
}

impl Keys {
    /// Keys of a table with `rows` loaded rows, rounded up so that threads can share them evenly.
    pub(crate) fn new(rows: u64) -> Self {
        let rows = rows.next_multiple_of(THREADS_MAX);
        Self { rows, loaded: Scatter::new(rows, 1), fresh: Scatter::new(rows * (SPACING - 1), 2) }
    }

    /// How many are loaded.
    pub(crate) fn rows(self) -> u64 {
        self.rows
    }

    /// How many fresh keys there are.
    pub(super) fn fresh_count(self) -> u64 {
        self.rows * (SPACING - 1)
    }

    /// The loaded key of rank `rank`.
    pub(crate) fn at_rank(rank: u64) -> i64 {
        (rank * SPACING) as i64
    }

    /// The rank of a loaded key; none for a fresh one.
    pub(super) fn rank(key: i64) -> Option<usize> {
        let key = key as u64;
        key.is_multiple_of(SPACING).then_some((key / SPACING) as usize)
    }

    /// The loaded key at `position` of a random order, in which each comes once before it begins again.
    pub(crate) fn loaded(self, position: u64) -> i64 {
        Self::at_rank(self.loaded.at(position))
    }

    /// The fresh key at `position` of a random order, in which each comes once before it begins again.
    pub(crate) fn fresh(self, position: u64) -> i64 {
        let at = self.fresh.at(position);
        (at / (SPACING - 1) * SPACING + 1 + at % (SPACING - 1)) as i64
    }

    /// Above all keys.
    pub(super) fn end(self) -> i64 {
        Self::at_rank(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn loaded_and_fresh_keys_are_disjoint_and_complete() {
        let keys = Keys::new(30);
        assert_eq!(keys.rows(), 32);
        let loaded: HashSet<i64> = (0..keys.rows()).map(|at| keys.loaded(at)).collect();
        let fresh: HashSet<i64> = (0..keys.fresh_count()).map(|at| keys.fresh(at)).collect();
        assert_eq!((loaded.len(), fresh.len()), (32, 480));
        assert!(loaded.is_disjoint(&fresh));
        assert_eq!(loaded.union(&fresh).copied().max(), Some(keys.end() - 1));
        assert!(loaded.iter().all(|&key| Keys::rank(key).map(|rank| Keys::at_rank(rank as u64)) == Some(key)));
        assert!(fresh.iter().all(|&key| Keys::rank(key).is_none()));
    }

    #[test]
    fn values_fit_into_an_integer_and_differ() {
        let key = Keys::new(5_000_000).end();
        let values: HashSet<i32> = (1..=COLUMNS).map(|column| value(key, column)).collect();
        assert_eq!(values.len(), COLUMNS);
        assert!(values.iter().all(|v| (0..PRIME as i32).contains(v)));
        // What the formula in bench/peers/rows.py gives.
        assert_eq!((value(16, 1), value(79_999_984, 16)), (321_600_145, 619_142_418));
    }

    #[test]
    fn statements_have_a_place_for_each_value() {
        assert!(
            insert_statement(2, COLUMNS).ends_with(
                "$17), ($18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)"
            )
        );
        assert_eq!(parameters(5, 9)[..2], [ValueRef::BigInt(5), ValueRef::Integer(9)]);
        assert_eq!(stored(5, 9)[16], Value::Int(value(5, 16).into()));
    }
}
