//! Mainstem: an embedded column store with SQL.
pub mod sql;
mod rules;
mod provider;
mod error;
mod plan;
mod session;
