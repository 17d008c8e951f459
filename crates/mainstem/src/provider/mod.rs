//! Tables as DataFusion sees them: one snapshot for each statement.
//!
//! Comes in: the views of one transaction. Goes out: a catalog with the schemas of users and `mainstem`, whose tables
//! scan through a [`DataSource`](datafusion::datasource::source::DataSource) that shares one storage scan among its
//! partitions. Steps: [`StatementCatalog`] holds the tables of the running statement; [`Names`] says which one a name
//! means; [`UserTable`] says which filters the store evaluates itself; `StoreSource` runs it; `system` builds the
//! tables of schema `mainstem`, `files` those of files, `external` those that the program has. Invariants: filters
//! are called exact only when the store's predicates mean the same; statistics are exact only when so for this very
//! view, others are estimates (`estimate`); no constraint is told, and the DML hooks stay closed (contract 6). It
//! does not own: snapshots.

mod catalog;
mod estimate;
mod external;
mod files;
mod filter;
mod missing;
mod names;
mod scan_slot;
mod source;
mod statistics;
mod system;
mod table;
mod values;

pub(crate) use catalog::{CATALOG, SEARCHED, StatementCatalog, StatementTables};
pub(crate) use external::ExternalTables;
pub use external::{ExternalBatches, ExternalTable, TableResolver};
pub use files::Progress;
pub(crate) use files::{FileCache, FileTable, ParquetFile, compression_of, expanded, is_compressed};
pub(crate) use missing::{Wanted, undefined_schema, undefined_table};
pub(crate) use names::{Names, TEMPORARY};
pub(crate) use scan_slot::{ScanInput, ScanSlot};
pub(crate) use source::{Executions, RuntimeFilter, StoreSource, is_total, yields_once};
pub(crate) use system::{Cell, SystemTables};
pub(crate) use table::UserTable;
pub(crate) use values::to_scalar;
