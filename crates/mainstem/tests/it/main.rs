//! Tests of Mainstem through its public API.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod api;
mod asynchronous;
mod basics;
mod chunked_files;
mod code_aggregates;
mod concurrency;
mod copy;
mod copy_to;
mod dynamic_filters;
mod errors;
mod files;
mod first_rows;
mod hermitage;
mod join_orders;
mod kept_texts;
mod library;
mod mangled;
mod metadata_aggregates;
mod merge_joins;
mod names;
mod narrow_decimals;
mod paths;
mod physical_plans;
mod rankings;
mod plan_cache;
mod plan_memory;
mod plan_values;
mod positions;
mod prepared;
mod printing;
mod refusals;
mod scan_filters;
mod sessions;
mod point_path;
mod settings;
mod slt;
mod stage;
mod statements;
mod streaming_aggregates;
mod streaming_windows;
mod support;
mod tpch;
mod transfer;
mod types;
