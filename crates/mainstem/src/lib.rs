//! Mainstem: an embedded column store with SQL.
pub mod sql;
