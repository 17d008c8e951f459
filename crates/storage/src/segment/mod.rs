//! Segments: the form in which rows rest. Each column is a block of encoded values with a checksum; metadata knows
//! bounds and places of all of them (MemSQL section II.A, HYRISE section 3; byte tables in `docs/formats/segment.md`).
//!
//! Comes in: arrays in the order of the table's sort key, or metadata from the manifest or a log record. Goes out:
//! Arrow arrays, selection bitmaps, rows found by key.
//!
//! 1. [`write_segment`] encodes each column the way that takes the fewest bytes, unless a test says how
//!    ([`crate::settings::Encodings`]), and writes one file; [`create_segment`] keeps it open.
//! 2. [`SegmentMeta`] travels in records; [`Segment::open`] makes a container of it without reading.
//! 3. Pruning asks the zone maps ([`Segment::prune`]), selecting works on codes ([`Segment::select`]), reading decodes
//!    ranges ([`Segment::read`]) or lists of rows ([`Segment::gather`]).
//! 4. A key is probed in the filter ([`Segment::may_contain_key`]) and searched ([`Segment::find_key`]).
//! 5. [`BlockCache`] keeps open blocks within a bound; the files behind them go with their last user.
//! 6. A single row of a segment whose blocks are not open is read from a few pages of them (`pages`): a table much
//!    larger than memory answers a look-up by key without reading blocks.
//!
//! Invariants:
//! - Segments are immutable; only the delete log beside the rows grows.
//! - Bytes are believed only after checksum and structure were proved: damage is a Corrupt error, never a panic.
//! - Metadata keeps each block as (file, range): a segment may consist of blocks of several files.
//!
//! It does not own: which segments form a run (`main_store`), which rows are visible (`deletes`, `version`), when
//! segments are made (`load`, `merge`).

mod encoding;
mod format;
mod zone;
mod sketch;
mod writer;
mod file;
mod cache;
mod block;
mod kept;
mod reader;
mod probe;
mod rows;
mod pages;
mod verify;

#[cfg(test)]
pub(crate) mod tests;

pub use cache::{BlockCache, CacheStats};
pub use encoding::{Encoding, Form, SymbolTables, is_narrow};
pub(crate) use encoding::{EntrySelection, short_text_codes, sum_of_array};
pub use file::{container_of, parse_segment_name, segment_path};
pub use format::{BlockRef, ColumnMeta, KeyBounds, SegmentMeta, ZoneMap};
pub(crate) use kept::{Kept, is_dense};
pub use probe::OpenKeyFilter;
pub use reader::Segment;
pub use sketch::DistinctSketch;
pub use writer::{PackedSegment, SegmentPlace, create_segment, encoded_at_once, rows_that_fit, write_segment};
