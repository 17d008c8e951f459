//! What statements do to a transaction.
//!
//! Comes in: a parsed statement and a transaction. Goes out: a running query, or a finished write and its row count.
//! Steps of a write (contract 6): its rows come from a SELECT (row references and new values), are cast to the columns
//! as assignment does, go to private writes of the statement, and are applied at its end, where keys are checked. A
//! failed write leaves the transaction as it was. It does not own: which transaction that is, its commit, and running
//! it again.

mod columns;
mod row_wise;
mod expressions;
mod write;
mod duplicate_lines;
mod aside;
mod copy;
mod copy_from;
mod copy_to;
mod rejects;
mod transfer;
mod define;
mod parameters;

use datafusion::logical_expr::LogicalPlan;
use mainstem_storage::Result;

pub(crate) use columns::nullable_schema;
pub(crate) use copy::{copy_from, pipe_of};
pub(crate) use copy_to::copy_to;
pub(crate) use define::{
    Created, alter_table, create_schema, create_table, create_table_as, create_view, drop_objects, truncate,
};
pub(crate) use expressions::{row_expressions, violation};
pub(crate) use parameters::{Description, assign_value, bind, describe, parsed_value, stored_value};
pub(crate) use transfer::{dump, export, import_place, import_texts, load, set_position, unload};
pub(crate) use write::{
    KeptQuery, Written, append, delete, explained, insert, kept_write, lock, table_of, unlocked, update,
};

/// `plan` as its rows are shown: CHAR(n) with its blanks.
///
/// # Errors
/// Internal.
pub(crate) fn shown(plan: LogicalPlan) -> Result<LogicalPlan> {
    crate::analyze::padded(plan).map_err(|e| crate::error::from_datafusion(&e))
}
