//! Bulk rows become runs of segments, aside: nothing lists them before a commit does.
//!
//! Comes in: checked batches (`row::check_batch`). Goes out: runs, their files durable.
//!
//! 1. [`Loader::push`] collects batches up to [`crate::limits::LOAD_SORT_ROWS`] rows, or as many as fit
//!    [`crate::limits::LOAD_SORT_BYTES`]; rows of a sort are a multiple of a segment's.
//! 2. The rows collected are sorted by the sort key, ties as they came (`sort`), and written as segments. While all
//!    rows come in their order there is nothing to sort, and each whole segment is written at once.
//! 3. They join the run before when they begin at or above its last key: sorted input becomes one run. When there is no
//!    room for more, and rows came in no order at all, they are put aside instead, and so are all that follow; at the
//!    end ranges of their keys become one run (`spill`).
//! 4. [`Loader::finish`] looks for keys that are twice in the load: within a sort they are neighbours, between runs one
//!    pass over the segments that overlap finds them (`duplicate` says which). For keys that are not the sort key one
//!    pass over their key indexes finds them.
//! 5. All files are made durable together, or as many as one phase takes (`disk::DeferredDisk`).
//! 6. Loads of a database take turns in collecting: together they hold no more than their share of memory, entries of
//!    key indexes and blocks that are kept from writing included (`turn`).
//! 7. Between two parts a load rests, if somebody writes row after row beside it (`pace`).
//!
//! Without a sort key rows stay as they come, in one run. Invariants: memory is bounded by one sort and one segment, or
//! one range; dropping a loader, or its runs before [`crate::segment::Segment::keep`], removes the files. It does not
//! own: keys the table has already (`commit`), what makes the rows true.

mod batches;
mod duplicate;
mod loader;
mod pace;
mod sort;
mod spill;
mod turn;

#[cfg(test)]
mod tests;

pub use crate::run_writer::{IdSource, SegmentTarget as LoadTarget};
pub use duplicate::duplicate_key;
pub use loader::Loader;
pub use pace::Pace;
pub use turn::{LoadMemory, LoadTurn, Waiting};
