//! Columns that ALTER TABLE adds to a table beside those of its shape, and takes away again.
//!
//! The history keeps a row as it was written: a value at the number of each column that the table had ever had by then.
//! What a snapshot shows of it follows from the columns of the snapshot: a row without a column shows its missing
//! value, a dropped one is passed over.

use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;
use rand::Rng;
use rand::rngs::StdRng;

use super::rows::{Row, random_added};
use super::shape::COLUMNS;

/// One version of a table's added columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Added {
    /// The next number: none is used twice.
    next: usize,
    /// Number and missing value of each, in the order of the table.
    standing: Vec<(usize, Value)>,
}

impl Default for Added {
    fn default() -> Self {
        Self { next: COLUMNS, standing: Vec::new() }
    }
}

impl Added {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.standing.len()
    }

    /// What a snapshot with these columns shows of `stored`.
    pub fn shown(&self, stored: &Row) -> Row {
        let added = self.standing.iter().map(|(number, missing)| stored.get(*number).unwrap_or(missing).clone());
        stored.iter().take(COLUMNS).cloned().chain(added).collect()
    }

    /// How the history keeps `shown`, a row that is written under these columns.
    pub fn stored(&self, shown: &Row) -> Row {
        let mut stored = shown.clone();
        stored.truncate(COLUMNS);
        stored.resize(self.next, Value::Null);
        for ((number, _), value) in self.standing.iter().zip(shown.iter().skip(COLUMNS)) {
            stored[*number] = value.clone();
        }
        stored
    }

    /// A random statement: the columns after it, and its changes.
    pub fn random_changes(&self, rng: &mut StdRng) -> (Self, Vec<TableChange>) {
        let (mut next, mut changes) = (self.clone(), Vec::new());
        for _ in 0..rng.random_range(1..4) {
            if next.standing.is_empty() || rng.random_ratio(3, 5) {
                let missing_value = if rng.random_ratio(1, 3) { Value::Null } else { random_added(rng) };
                let column = ColumnDefinition::new(format!("added{}", next.next), DataType::Integer, true);
                next.standing.push((next.next, missing_value.clone()));
                next.next += 1;
                changes.push(TableChange::AddColumn { column, missing_value });
            } else if rng.random_ratio(2, 3) {
                let (number, _) = next.standing.remove(rng.random_range(0..next.standing.len()));
                changes.push(TableChange::DropColumn(id(number)));
            } else {
                let (number, _) = next.standing[rng.random_range(0..next.standing.len())];
                changes.push(TableChange::RenameColumn(id(number), format!("renamed{number}")));
            }
        }
        (next, changes)
    }
}

fn id(number: usize) -> ColumnId {
    ColumnId(number as u32)
}
