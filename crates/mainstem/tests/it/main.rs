//! Tests of Mainstem through its public API.

mod basics;
mod support;
