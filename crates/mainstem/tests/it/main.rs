//! Tests of Mainstem through its public API.

mod api;
mod basics;
mod concurrency;
mod errors;
mod hermitage;
mod mangled;
mod printing;
mod sessions;
mod slt;
mod stage;
mod support;
mod tpch;
