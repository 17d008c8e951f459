//! Mainstem.
fn main() {}
