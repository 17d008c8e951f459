//! CSV and FORMAT text as PostgreSQL's COPY reads and writes them, streamed.
//!
//! Comes in: bytes of a file, or Arrow batches. Goes out: batches of text columns with the line each row began on, or
//! of the columns of a table ([`parallel`]), or bytes. Quoting decides about NULL (`,,` is NULL, `,"",` is the empty
//! text), which is why the csv crates, who forget the quotes, do not serve. It does not own: what the text of a field
//! means (`assign`), files and their names.

mod reader;
mod convert;
pub(crate) mod parallel;
mod unordered;
pub(crate) mod detect;
mod latin1;
mod text;
mod writer;

pub(crate) use convert::{Conversion, Reject};
pub(crate) use latin1::Latin1;
pub(crate) use reader::{CsvReader, TextBatch};
pub(crate) use text::TextReader;
pub(crate) use unordered::SharedRows;
pub(crate) use writer::LineFormat;

#[cfg(test)]
mod tests;
