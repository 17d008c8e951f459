//! The kinds of tables the model makes: sorted by their key, with a key beside another order, sorted without a key, in arrival
//! order.

use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, Layout, TableOptions};

/// Columns of every table, by position: a number no other row version has, then columns of every kind of storage.
pub(super) const UID: usize = 0;
pub(super) const K: usize = 1;
pub(super) const T: usize = 2;
pub(super) const V: usize = 3;
pub(super) const X: usize = 4;
pub(super) const B: usize = 5;
pub(super) const COLUMNS: usize = 6;

const NAMES: [&str; COLUMNS] = ["uid", "k", "t", "v", "x", "b"];
const TYPES: [DataType; COLUMNS] = [
    DataType::BigInt,
    DataType::BigInt,
    DataType::Text { max_chars: None },
    DataType::Integer,
    DataType::Double,
    DataType::Boolean,
];

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// PRIMARY KEY (k).
    KeyInt,
    /// PRIMARY KEY (t, k).
    KeyText,
    /// PRIMARY KEY (k) ORDER BY (v), with NULLs and duplicates in the order.
    KeyBeside,
    /// PRIMARY KEY (t, k) ORDER BY (x, b), with NULLs, NaNs and duplicates in the order.
    KeyTextBeside,
    /// PRIMARY KEY (k, t) ORDER BY (t, k): the same columns the other way round.
    KeyTurned,
    /// PRIMARY KEY (b, x, k) ORDER BY (t): a key of numbers with several spellings.
    KeyFloat,
    /// PRIMARY KEY (k) in arrival order.
    KeyArrival,
    /// PRIMARY KEY (t, v) in arrival order.
    KeyTextArrival,
    /// ORDER BY (t, v), with NULLs and duplicates, no key.
    Sorted,
    /// ORDER BY (x), with NULLs, NaNs and duplicates, no key.
    Floats,
    /// Arrival order.
    Insertion,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::KeyInt,
        Self::KeyText,
        Self::KeyBeside,
        Self::KeyTextBeside,
        Self::KeyTurned,
        Self::KeyFloat,
        Self::KeyArrival,
        Self::KeyTextArrival,
        Self::Sorted,
        Self::Floats,
        Self::Insertion,
    ];

    /// Positions of the primary key's columns.
    #[must_use]
    pub fn primary_key(self) -> &'static [usize] {
        match self {
            Self::KeyInt | Self::KeyBeside | Self::KeyArrival => &[K],
            Self::KeyText | Self::KeyTextBeside => &[T, K],
            Self::KeyTurned => &[K, T],
            Self::KeyFloat => &[B, X, K],
            Self::KeyTextArrival => &[T, V],
            Self::Sorted | Self::Floats | Self::Insertion => &[],
        }
    }

    fn sort_key(self) -> Option<&'static [usize]> {
        match self {
            Self::KeyBeside => Some(&[V]),
            Self::KeyTextBeside => Some(&[X, B]),
            Self::KeyTurned => Some(&[T, K]),
            Self::KeyFloat => Some(&[T]),
            Self::Sorted => Some(&[T, V]),
            Self::Floats => Some(&[X]),
            Self::KeyInt | Self::KeyText | Self::KeyArrival | Self::KeyTextArrival | Self::Insertion => None,
        }
    }

    fn layout(self) -> Option<Layout> {
        matches!(self, Self::KeyArrival | Self::KeyTextArrival).then_some(Layout::Insertion)
    }

    /// Whether rows are found by key through a key index.
    #[must_use]
    pub fn has_key_index(self) -> bool {
        !self.primary_key().is_empty() && !matches!(self, Self::KeyInt | Self::KeyText)
    }

    /// Whether column `position` takes NULL.
    #[must_use]
    pub fn nullable(self, position: usize) -> bool {
        position != UID && !self.primary_key().contains(&position)
    }

    /// The key of `row`, if there is one.
    #[must_use]
    pub fn key_of(self, row: &[Value]) -> Option<Vec<Value>> {
        let key = self.primary_key();
        (!key.is_empty()).then(|| key.iter().filter_map(|at| row.get(*at).cloned()).collect())
    }

    /// CREATE TABLE.
    #[must_use]
    pub fn definition(self, name: &str, segment_rows: u32, delta_rows: u32) -> TableDefinition {
        let names = |positions: &[usize]| positions.iter().map(|at| NAMES[*at].to_owned()).collect::<Vec<_>>();
        let columns = NAMES
            .iter()
            .zip(TYPES)
            .enumerate()
            .map(|(at, (name, data_type))| ColumnDefinition::new(*name, data_type, self.nullable(at)));
        TableDefinition {
            primary_key: names(self.primary_key()),
            sort_key: self.sort_key().map(names),
            layout: self.layout(),
            options: TableOptions { segment_rows, delta_rows },
            ..TableDefinition::new(name, columns.collect())
        }
    }
}
