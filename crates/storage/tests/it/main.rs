//! Whole databases through the storage engine's public door.

mod isolation;
mod restart;
mod support;
mod transactions;
