//! Mainstem's storage engine: one flow from a write to a scan, without SQL, without async, without `unsafe`.
//!
//! ```text
//!  bulk rows ──► load ───────────────────────────────────────────┐
//!                                                                ▼
//!  write set ──► commit ──► delta_store ──────► merge ──► main_store (runs of segments)
//!                  │ wal        │                            │
//!  key probe ◄── point ◄────────┴────────────────────────────┤
//!  batches   ◄── scan  ◄────────┴────────────────────────────┘
//!                        (one snapshot over all stores)
//! ```
//!
//! The module lines below stand in flow order: what every stage stands on, the stages, what they share, and what makes
//! a change true. `docs/ARCHITECTURE.md` has the long version, `docs/GLOSSARY.md` the words.

#![forbid(unsafe_code)]

// Base: words every stage uses.
pub mod ids;
pub mod limits;
pub mod error;
pub mod shared_map;
pub mod threads;
pub mod schema;
pub mod settings;
pub mod memory;
pub mod row;
pub mod predicate;
pub mod codec;

// What a change is made of, and where bytes go.
pub mod disk;
pub mod deletes;
pub mod catalog;

// What the stages share.
pub mod segment;
pub mod index;
pub mod wal;
pub mod manifest;

// Stages that hold rows.
pub mod delta_store;
pub mod main_store;

// What a transaction wants to write.
pub mod write_set;

// One immutable picture of all of them.
pub mod version;

// Stages that read rows.
pub mod point;
pub mod order;
pub mod scan;

// How rows in order become runs.
pub mod run_writer;

// Stages that move rows.
pub mod commit;
pub mod load;
pub mod merge;
pub mod unload;
pub mod recover;
pub mod background;

// The doors.
pub mod transaction;
pub mod database;

pub use error::{Error, ErrorKind, Result};
