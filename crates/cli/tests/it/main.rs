//! Drives the built `mainstem` program as a user does: arguments and pipes in; output, errors and exit status out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod check;
mod commands;
mod demo;
mod dump;
mod formats;
mod load;
mod program;
mod scripts;
mod shell;
#[cfg(target_os = "linux")]
mod terminal;
