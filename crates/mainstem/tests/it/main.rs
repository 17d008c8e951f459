//! Tests of Mainstem through its public API.

mod basics;
mod concurrency;
mod hermitage;
mod printing;
mod slt;
mod stage;
mod support;
mod tpch;
