//! 40001, in all its wordings: what a transaction that committed first has taken from this one.

use crate::error::Error;
use crate::schema::TableSchema;

/// A row that the transaction wants to delete, or lock, is gone.
pub(super) fn row_conflict(schema: &TableSchema) -> Error {
    Error::conflict(format!(
        "could not serialize access due to concurrent update: a row of \"{}\" was changed by a transaction that committed first; run the transaction again",
        schema.name
    ))
}

/// A key of a row that comes is taken.
pub(super) fn key_conflict(schema: &TableSchema) -> Error {
    Error::conflict(format!(
        "could not serialize access due to concurrent insert: a key of \"{}\" was taken by a transaction that committed first; run the transaction again",
        schema.name
    ))
}

/// The table is another one than the transaction has seen, or gone.
pub(super) fn table_conflict(schema: &TableSchema) -> Error {
    Error::conflict(format!(
        "could not serialize access: table \"{}\" was changed or dropped by a transaction that committed first; run the transaction again",
        schema.name
    ))
}

/// Names are others than the transaction has seen.
pub(super) fn catalog_conflict() -> Error {
    Error::conflict(
        "could not serialize access: tables, views or schemas were changed by a transaction that committed first; run the transaction again",
    )
}

/// The statement was planned for an earlier definition of the table.
pub fn altered(schema: &TableSchema) -> Error {
    Error::conflict(format!(
        "could not serialize access: table \"{}\" was altered; run the statement again",
        schema.name
    ))
}
