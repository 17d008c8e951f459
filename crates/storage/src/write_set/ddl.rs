//! Schema changes of a transaction: what its commit does to the catalog, in statement order.

use std::sync::Arc;

use crate::ids::{ColumnId, SchemaVersion, TableId};
use crate::schema::{RelationName, TableSchema, View};

/// A schema change of a transaction.
#[derive(Clone, Debug)]
pub enum DdlChange {
    /// CREATE TABLE.
    Create(Arc<TableSchema>),
    /// DROP TABLE.
    Drop(Arc<TableSchema>),
    /// ALTER TABLE: one version of the definition takes the place of the one before.
    Alter {
        /// The version that was changed.
        before: Arc<TableSchema>,
        /// What became of it.
        after: Arc<TableSchema>,
        /// Whether rows were looked at for it
        /// ([`TableChange::looks_at_rows`](crate::catalog::TableChange::looks_at_rows)).
        looked_at_rows: bool,
    },
    /// TRUNCATE of a table that stands already: every row that its containers hold at the commit.
    Truncate {
        /// The table.
        schema: Arc<TableSchema>,
        /// RESTART IDENTITY.
        restart_identity: bool,
    },
    /// CREATE VIEW.
    CreateView(Arc<View>),
    /// DROP VIEW.
    DropView(RelationName),
    /// CREATE SCHEMA.
    CreateNamespace(String),
    /// DROP SCHEMA.
    DropNamespace(String),
    /// So many numbers of an IDENTITY column are taken from here on, whatever was taken before.
    TakeNumbers {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
        /// Numbers from the first one on.
        taken: u64,
    },
}

impl DdlChange {
    /// The table it changes, if it is one.
    #[must_use]
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Create(schema) | Self::Drop(schema) | Self::Truncate { schema, .. } => Some(schema.id),
            Self::Alter { after, .. } => Some(after.id),
            Self::TakeNumbers { table, .. } => Some(*table),
            Self::CreateView(_) | Self::DropView(_) | Self::CreateNamespace(_) | Self::DropNamespace(_) => None,
        }
    }
}

/// What `changes` make of one table's rows in the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are what they were; the table has this version of its definition until the changes are made.
    Kept(SchemaVersion),
    /// There are none: the table is made, or emptied.
    None,
}

impl Standing {
    /// What `changes`, in order, make of the table that now has `schema`.
    #[must_use]
    pub fn of(changes: &[DdlChange], schema: &TableSchema) -> Self {
        let mut first = None;
        for change in changes.iter().filter(|change| change.table() == Some(schema.id)) {
            match change {
                DdlChange::Create(_) | DdlChange::Truncate { .. } => return Self::None,
                DdlChange::Alter { before, .. } => first = first.or(Some(before.version)),
                _ => {}
            }
        }
        Self::Kept(first.unwrap_or(schema.version))
    }
}
