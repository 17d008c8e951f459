//! One immutable picture of all stores: which containers make up each table at a moment.
//!
//! Comes in: edits (freeze, install, large commit, DDL) as new values. Goes out: [`Snapshot`]s and [`TableView`]s.
//!
//! 1. A [`TableVersion`] lists the deltas and runs of a table, valid from its timestamp.
//! 2. A [`Root`] holds the versions and the catalog of one moment.
//! 3. The [`Timeline`] keeps the newest roots and the two marks *applied* and *visible* (contract 2), and hands out
//!    registered snapshots. Its [`Activity`] knows who is at work for users.
//!
//! Invariants: versions and roots never change; a snapshot's root is the newest whose `valid_from` is at or below the
//! snapshot; taking a snapshot and registering it is one step under one lock, so nothing it needs can be dropped
//! between. It does not own: rows, delete logs, when anything becomes current.

mod activity;
mod forwarding;
mod root;
mod short_readers;
mod timeline;
mod verify;
mod view;

pub use activity::{Activity, AtWork, Paused, Work};
pub use forwarding::{Forward, ForwardedInput, ForwardingBuilder, ForwardingTable, Forwardings, Survivors};
pub use root::{Container, Root, TableVersion};
pub use short_readers::ShortReaders;
pub use timeline::{Base, Snapshot, Timeline};
pub use view::TableView;

#[cfg(test)]
mod tests;
