//! Integration tests of the whole workspace that need no SQL.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod loads;
mod log;
mod corrupt;
mod crash;
mod faults;
mod kill;
mod model;
mod numbers;
mod stress;
mod tail;
mod tidy;
mod unload;
