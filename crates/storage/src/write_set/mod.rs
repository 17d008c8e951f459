//! What a transaction wants to write: data only, private until it commits (contract 2).
//!
//! Comes in: rows, runs and deletes of one statement after the other. Goes out: views of them as of any statement, and
//! in the end what `commit` makes true.
//!
//! 1. Inserted rows are buffered ([`OwnRows`]); large statements, and what outgrows memory, are runs written aside.
//!    When there are more than a few runs they are merged ([`TableWrites::merged`]), for every look-up asks each of
//!    them.
//! 2. Deleted rows are named by reference ([`RowLayers`]), wherever they live; so are rows that are read FOR UPDATE or
//!    FOR SHARE ([`LockedRows`]), for which nothing is written.
//! 3. Keys of buffered rows are in a hash of their own ([`OwnKeys`]); those of runs in the runs.
//! 4. Schema changes are a list ([`DdlChange`]). Rows of the same transaction that were buffered before an ALTER are
//!    written anew under the next version ([`TableWrites::altered`]); runs stay as they are, for containers keep their
//!    schema.
//!
//! Invariants: what a view or savepoint holds never changes, and keeping it costs a later statement nothing but its own
//! size; all bytes are counted as write sets (`memory`). So rows that a savepoint or an open cursor still shows stay in
//! memory, and count, though a spill has written them aside: their references are offsets of the buffer, and a run has
//! its rows in another order, later ones among them. There are never more than the share of write sets; a savepoint
//! made under pressure writes buffered rows aside first, and so keeps none. It does not own: key checks
//! (`transaction`), spilling (`transaction`), what is committed.

mod ddl;
mod locked_rows;
mod own_keys;
mod own_rows;
mod row_layers;
mod table_writes;

#[cfg(test)]
mod tests;

pub use ddl::{DdlChange, Standing};
pub use locked_rows::LockedRows;
pub use own_keys::OwnKeys;
pub use own_rows::{OwnChunk, OwnContainers, OwnRows};
pub use row_layers::{RowLayers, RowSets};
pub use table_writes::{TableWrites, WriteSet};
