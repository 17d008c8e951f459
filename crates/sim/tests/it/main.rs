//! Integration tests of the whole workspace that need no SQL.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod log;
mod tidy;
