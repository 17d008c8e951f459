//! Where to cut a column into partitions so that a workload costs least: *Optimal Column Layout for Hybrid Workloads*
//! (Athanassoulis, Bøgh, Idreos; PVLDB 2019), called the paper here.
//!
//! Comes in: how often each block of a column is read and written in which way, and what accesses cost. Goes out: the
//! blocks after which a partition ends. Nothing here reads data, files or clocks.
//!
//! 1. Operations over blocks are counted in ten histograms (`frequency`, sections 4.2 and 4.3 of the paper).
//! 2. With the costs of four kinds of accesses they become four terms a block (`cost`, section 4.4, equations 2 to 17).
//! 3. The partitioning that costs least is found exactly, under limits on the size and the number of partitions
//!    (`optimum`, section 5, equations 19 to 21).
//!
//! It does not own: how partitions are kept and searched, or where the workload comes from.

mod frequency;
mod cost;
mod optimum;

pub use cost::{AccessCosts, Partitioning, Terms};
pub use frequency::{Blocks, FrequencyModel, Operation};
pub use optimum::{Limits, Optimum, Unfulfillable, optimum};
