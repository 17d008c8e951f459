//! Bad luck on demand, for tests only: a disk that fails, fills and loses power at any call.
//!
//! `disk` stands in for [`mainstem_storage::disk::Disk`]: it knows what a power cut leaves, and can be told to fail at
//! any call. Invariant: the same calls and the same seed leave the same bytes. `model` is what the engine is compared
//! with.

#![forbid(unsafe_code)]

pub mod disk;
pub mod model;

pub use disk::{FaultKind, SimDisk};
