//! Rows as bytes and values: what a write set, a log record, the delta and the point path pass to one another.
//!
//! Comes in: Arrow batches or values. Goes out: [`RowBuffer`] (fixed-slot rows) and order-preserving keys. Steps: a batch
//! is checked against its table (types, NOT NULL, lengths, ranges), laid out as rows, and later laid out as columns again.
//! It does not own: where rows live, or which of them are visible.

mod value;

pub use value::Value;
