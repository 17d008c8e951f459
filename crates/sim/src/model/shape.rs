//! The kinds of tables the model makes: sorted by their key, with a key beside another order, with several keys, sorted
//! without a key, in arrival order.

use mainstem_storage::catalog::{ColumnDefinition, TableDefinition, UniqueDefinition};
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

/// Which key of the table, and its values.
pub type NumberedKey = (usize, Vec<Value>);

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
    /// PRIMARY KEY (k), UNIQUE (t, v), with NULLs in it.
    Unique,
    /// UNIQUE (x), UNIQUE (k) NOT NULL, ORDER BY (k): no primary key, and main in the order of another one.
    UniqueOrder,
    /// PRIMARY KEY (k, t), UNIQUE (v), UNIQUE (k, x), in arrival order.
    UniqueArrival,
    /// ORDER BY (t, v), with NULLs and duplicates, no key.
    Sorted,
    /// ORDER BY (x), with NULLs, NaNs and duplicates, no key.
    Floats,
    /// Arrival order.
    Insertion,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::KeyInt,
        Self::KeyText,
        Self::KeyBeside,
        Self::KeyTextBeside,
        Self::KeyTurned,
        Self::KeyFloat,
        Self::KeyArrival,
        Self::KeyTextArrival,
        Self::Unique,
        Self::UniqueOrder,
        Self::UniqueArrival,
        Self::Sorted,
        Self::Floats,
        Self::Insertion,
    ];

    /// Positions of the primary key's columns.
    #[must_use]
    pub fn primary_key(self) -> &'static [usize] {
        match self {
            Self::KeyInt | Self::KeyBeside | Self::KeyArrival | Self::Unique => &[K],
            Self::KeyText | Self::KeyTextBeside => &[T, K],
            Self::KeyTurned | Self::UniqueArrival => &[K, T],
            Self::KeyFloat => &[B, X, K],
            Self::KeyTextArrival => &[T, V],
            Self::UniqueOrder | Self::Sorted | Self::Floats | Self::Insertion => &[],
        }
    }

    /// Positions of the columns of each UNIQUE key.
    fn unique_keys(self) -> &'static [&'static [usize]] {
        match self {
            Self::Unique => &[&[T, V]],
            Self::UniqueOrder => &[&[X], &[K]],
            Self::UniqueArrival => &[&[V], &[K, X]],
            _ => &[],
        }
    }

    /// Positions of the columns of each key, the primary key first.
    pub fn keys(self) -> impl Iterator<Item = &'static [usize]> {
        let primary = Some(self.primary_key()).filter(|key| !key.is_empty());
        primary.into_iter().chain(self.unique_keys().iter().copied())
    }

    fn sort_key(self) -> Option<&'static [usize]> {
        match self {
            Self::KeyBeside => Some(&[V]),
            Self::KeyTextBeside => Some(&[X, B]),
            Self::KeyTurned => Some(&[T, K]),
            Self::KeyFloat => Some(&[T]),
            Self::Sorted => Some(&[T, V]),
            Self::Floats => Some(&[X]),
            Self::UniqueOrder => Some(&[K]),
            Self::KeyInt
            | Self::KeyText
            | Self::KeyArrival
            | Self::KeyTextArrival
            | Self::Unique
            | Self::UniqueArrival
            | Self::Insertion => None,
        }
    }

    fn layout(self) -> Option<Layout> {
        matches!(self, Self::KeyArrival | Self::KeyTextArrival | Self::UniqueArrival).then_some(Layout::Insertion)
    }

    /// Whether rows are found by some key through a key index.
    #[must_use]
    pub fn has_key_index(self) -> bool {
        self.keys().next().is_some() && !matches!(self, Self::KeyInt | Self::KeyText)
    }

    /// Whether column `position` takes NULL.
    #[must_use]
    pub fn nullable(self, position: usize) -> bool {
        let in_order = self == Self::UniqueOrder && position == K;
        position != UID && !in_order && !self.primary_key().contains(&position)
    }

    /// The keys that `row` has, each with its number: none with NULL in it.
    pub fn keys_of(self, row: &[Value]) -> impl Iterator<Item = NumberedKey> {
        let key = |columns: &[usize]| columns.iter().filter_map(|at| row.get(*at).cloned()).collect::<Vec<_>>();
        let keys = self.keys().map(key).enumerate();
        keys.filter(|(_, key)| !key.iter().any(Value::is_null))
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
            unique_keys: self
                .unique_keys()
                .iter()
                .map(|key| UniqueDefinition {
                    name: format!("{name}_{}_key", names(key).join("_")),
                    columns: names(key),
                })
                .collect(),
            sort_key: self.sort_key().map(names),
            layout: self.layout(),
            options: TableOptions { segment_rows, delta_rows },
            ..TableDefinition::new(name, columns.collect())
        }
    }
}
