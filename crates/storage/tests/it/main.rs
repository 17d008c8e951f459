//! Whole databases through the storage engine's public door.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod aside;
mod ddl;
mod formats;
mod gates;
mod held_disk;
mod isolation;
mod keys;
mod live_check;
mod merges;
mod restart;
mod support;
mod transactions;
mod types;
mod under_lock;
mod unload;
