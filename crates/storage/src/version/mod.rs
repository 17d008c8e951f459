//! One immutable picture of all stores: which containers make up each table at a moment.

mod forwarding;

pub use forwarding::{Forward, ForwardedInput, ForwardingBuilder, ForwardingTable, Forwardings, Survivors};
