//! The experiments run small, so that they cannot rot, and the program's own behaviour.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod index;
mod program;

#[cfg(feature = "sql")]
mod buffers;
#[cfg(feature = "sql")]
mod hybrid;
#[cfg(feature = "sql")]
mod load;
#[cfg(feature = "sql")]
mod online;
#[cfg(feature = "sql")]
mod parse;
#[cfg(feature = "sql")]
mod recovery;
#[cfg(feature = "sql")]
mod scan;
#[cfg(feature = "sql")]
mod sizes;
#[cfg(feature = "sql")]
mod statements;
mod tiny;
#[cfg(feature = "sql")]
mod tpch;
#[cfg(feature = "sql")]
mod transactions;
#[cfg(feature = "sql")]
mod unload;
