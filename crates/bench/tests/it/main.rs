//! The experiments run small, so that they cannot rot, and the program's own behaviour.

mod program;

#[cfg(feature = "sql")]
mod hybrid;
