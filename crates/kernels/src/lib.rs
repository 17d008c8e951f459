//! The kernels of Mainstem: every loop that runs per value, and every line of `unsafe` in the project.
//!
//! In: slices of values, packed bytes, bitmaps. Out: the same. Nothing here knows a table, a column or a file.
//!
//! 1. [`bitpack`] packs integers to a fixed width and unpacks them, frame of reference included.
//! 2. [`compare`] evaluates predicates on packed codes and on plain slices; the answer is a selection bitmap.
//! 3. [`bitmap`] combines, counts and walks selection bitmaps, with rank and select.
//! 4. [`gather`] fetches what a selection or an index list names.
//! 5. [`mod@filter`] and [`hash`] serve key probes: a blocked Bloom filter and the mixer that feeds it.
//! 6. [`append_buffer`] holds recent rows: one writer, many readers, a published prefix.
//! 7. [`cast`] reinterprets plain numbers as bytes and back.
//! 8. [`sum`] adds integers, exactly; [`extremes`] finds the least and the greatest, and the longest text.
//! 9. [`sort`] orders rows by words, digit by digit.
//! 10. [`fsst`] decodes texts that are codes of symbols; [`alp`] makes integers of decimal floats, and back.
//! 11. [`csv`] finds fields in delimited text, and reads numbers and dates of them; [`to_text`] writes them.
//! 12. [`recent_texts`] finds codes of texts of which there are few.
//! 13. [`memory`] tells processor and system which memory will be used, and how.
//!
//! Invariants:
//! - Each kernel with a fast twin has a scalar one, `pub` under its module's `scalar`; both give the same answer for
//!   every input. The fast one is chosen at run time (see `dispatch`), so one binary runs anywhere.
//! - No kernel reads or writes outside the slices it was given. Lengths that do not fit are a panic with a clear
//!   message: callers check data from outside before they come here.
//! - Byte layouts are little-endian on every machine.
//!
//! Beyond the tests: `cargo +nightly miri test -p mainstem-kernels --lib -- without_padding packed_rows append_buffer
//! fsst` looks for reads outside a slice and for races, with `RUSTFLAGS="-Ctarget-feature=+avx2,+bmi1,+bmi2,+popcnt"`
//! in the fast twins. Times: `cargo run --release -p mainstem-kernels --example kernels`.
//!
//! It does not own: formats, checksums, types, nulls.

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod bitpack;
pub mod compare;
pub mod bitmap;
pub mod gather;
pub mod filter;
pub mod hash;
pub mod append_buffer;
pub mod cast;
pub mod sum;
pub mod extremes;
pub mod sort;
pub mod fsst;
pub mod alp;
pub mod csv;
pub mod memory;
pub mod recent_texts;
pub mod to_text;

mod dispatch;
