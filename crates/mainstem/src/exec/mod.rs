//! How queries are planned and run.
//!
//! Comes in: a statement's tree, the tables of a transaction, a session's settings. Goes out: a running query, whose
//! batches come as they are asked for. Steps: `planner` has the tree analyzed, decorrelated and optimized, in the order
//! of `pipeline`; `runtime` runs the physical plan on the threads of the database, and `cancel` ends it.
//!
//! It does not own: what statements do to a transaction (`plan`), a connection's state (`session`).

mod cancel;
mod code_aggregates;
mod derived_properties;
mod dynamic_filters;
mod eager_probes;
mod environment;
mod generate_series;
mod memory_pool;
mod metadata_aggregates;
mod merge_joins;
mod narrow_decimals;
mod parameters;
mod pg_sleep;
mod pipeline;
mod plan_cache;
mod planner;
mod recent_texts;
mod runtime;
mod scan_filters;
mod settings;
mod sort;
mod spilling;
mod spilling_aggregates;
mod spilling_joins;
mod streaming;
mod system_tables;
mod triggers;

pub use environment::Notice;
pub(crate) use environment::{Environment, Rows, Shared, is_of_run};
pub(crate) use parameters::{Parameter, Parameters, parameter_of};
pub(crate) use pipeline::template;
pub(crate) use plan_cache::{PlanCache, RunCount, SharedStatement};
pub(crate) use planner::{KeptPlan, PlannedExpression, Planner, Running};
pub(crate) use recent_texts::RecentTexts;
pub(crate) use runtime::{Batches, Cancel, Interrupts, Runtime, park_within};
pub(crate) use settings::{PlanCacheMode, Settings, SettingsState, cores};
pub(crate) use spilling::unnamed_file;
