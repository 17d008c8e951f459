//! CSV and FORMAT text as PostgreSQL's COPY reads and writes them, streamed.
//!
//! Comes in: bytes of a file, or Arrow batches. Goes out: batches of text columns with the line each row began on, or
//! bytes. Quoting decides about NULL (`,,` is NULL, `,"",` is the empty text), which is why the csv crates, who forget
//! the quotes, do not serve. It does not own: what the text of a field means (`assign`), files and their names.

mod reader;
mod text;
mod writer;

pub(super) use reader::{CsvReader, TextBatch};
pub(super) use text::TextReader;
pub(super) use writer::{LineFormat, LineWriter};

#[cfg(test)]
mod tests;
