//! Whole databases through the storage engine's public door.

mod held_disk;
mod isolation;
mod merges;
mod restart;
mod support;
mod transactions;
