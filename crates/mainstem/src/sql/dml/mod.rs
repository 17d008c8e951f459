//! INSERT, UPDATE and DELETE, and the SELECTs that each is planned as (contract 6).
//!
//! An UPDATE becomes `SELECT _row_ref, <value of every column> FROM <target>, ... WHERE ...`, a DELETE `SELECT _row_ref
//! FROM <target>, ... WHERE ...`, the update arm of ON CONFLICT one over the row that is there and the row that was to
//! come. The target stands under [`TARGET_SCHEMA`], where it shows its row references; everywhere else, the same table
//! in a subquery included, it has none. RETURNING becomes a SELECT over the same tables, whose rows the write puts in
//! their place.

mod assignments;
mod delete;
mod insert;
mod lock;
mod select;
mod target;
mod update;
mod values;

use datafusion::sql::sqlparser::ast::Ident;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

pub(super) use delete::delete;
pub(super) use insert::insert;
pub(super) use lock::lock;
pub(crate) use select::{any_row_of, query_of, select_of, select_over};
pub(super) use update::update;

pub(crate) use assignments::Assignments;
pub(crate) use delete::Delete;
pub(crate) use insert::{ConflictAction, ConflictTarget, DefaultCells, Insert, OnConflict, Overriding};
pub(crate) use lock::Lock;
pub(crate) use target::Target;
pub(crate) use update::Update;

/// Name of the schema that shows the target of the running write, with its row references, to the write's own SELECT.
pub(crate) const TARGET_SCHEMA: &str = "write_target";
/// Name of the column of row references.
pub(crate) const ROW_REF: &str = "_row_ref";
/// Name under which ON CONFLICT shows the row that was to be inserted.
pub(crate) const EXCLUDED: &str = "excluded";

fn check_once(columns: &[String]) -> Result<()> {
    for (at, name) in columns.iter().enumerate() {
        if columns.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" is named twice")));
        }
    }
    Ok(())
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
