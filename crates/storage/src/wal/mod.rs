//! The log.

pub mod codec;
