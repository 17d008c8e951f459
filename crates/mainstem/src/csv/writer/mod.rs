//! Batches to the bytes of lines.
//!
//! Comes in: a batch of any types. Goes out: its rows, a line each, appended to a buffer: CSV or FORMAT text. Values
//! are written from the arrays that they stand in (`fields`), without texts in between, where the type allows.
//! Invariants: batches are independent, so that any number of threads may write some; the bytes are those of the
//! text that `cast::inside` gives each value.

mod fields;

#[cfg(test)]
mod tests;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use mainstem_storage::Result;

use super::text::escape;
use crate::sql::{CsvOptions, TextOptions};
use fields::Field;

/// How rows are written.
#[derive(Clone, Debug)]
pub(crate) enum LineFormat {
    Csv(CsvOptions),
    Text(TextOptions),
}

impl LineFormat {
    fn has_header(&self) -> bool {
        match self {
            Self::Csv(CsvOptions { header, .. }) | Self::Text(TextOptions { header, .. }) => *header,
        }
    }

    fn delimiter(&self) -> u8 {
        match self {
            Self::Csv(CsvOptions { delimiter, .. }) | Self::Text(TextOptions { delimiter, .. }) => *delimiter,
        }
    }

    fn null(&self) -> &str {
        match self {
            Self::Csv(CsvOptions { null, .. }) | Self::Text(TextOptions { null, .. }) => null,
        }
    }

    /// Appends the line of names, if there is to be one.
    pub(crate) fn header(&self, schema: &Schema, out: &mut Vec<u8>) {
        if !self.has_header() {
            return;
        }
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                out.push(self.delimiter());
            }
            self.text(field.name(), out);
        }
        out.push(b'\n');
    }

    /// Appends the rows of `batch`.
    ///
    /// # Errors
    /// 0A000 for a type that has no text.
    pub(crate) fn rows(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let fields = batch.columns().iter().map(|column| Field::new(column, self)).collect::<Result<Vec<_>>>()?;
        let (delimiter, null) = (self.delimiter(), self.null().as_bytes());
        for row in 0..batch.num_rows() {
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(delimiter);
                }
                if field.is_null(row) {
                    out.extend_from_slice(null);
                } else {
                    field.push(row, self, out);
                }
            }
            out.push(b'\n');
        }
        Ok(())
    }

    /// Appends one field.
    #[inline]
    fn text(&self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Csv(options) => quote(text, options, out),
            Self::Text(options) => escape(text, options, out),
        }
    }
}

/// Appends a field of CSV, quoted if it has to be.
#[inline]
fn quote(text: &str, options: &CsvOptions, out: &mut Vec<u8>) {
    let CsvOptions { delimiter, quote, escape, .. } = *options;
    let special = [delimiter, quote, escape, b'\n', b'\r'];
    // A lone `\.` ends the data for older readers.
    let quoted = text == options.null
        || text == "\\."
        || text.starts_with('\u{feff}')
        || mainstem_kernels::to_text::has_any(text.as_bytes(), &special);
    if !quoted {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(quote);
    for byte in text.bytes() {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}
