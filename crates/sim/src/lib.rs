//! Mainstem.
