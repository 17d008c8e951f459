//! Batches to bytes.

use std::io::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use mainstem_postgres::cast::inside;
use mainstem_storage::{Error, Result};

use super::text::escape;
use crate::sql::{CsvOptions, TextOptions};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

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
}

/// Writes batches of one schema, a line a row.
pub(crate) struct LineWriter<W> {
    output: W,
    format: LineFormat,
    buffer: Vec<u8>,
}

impl<W: Write> LineWriter<W> {
    /// A writer to `output`; writes the header if the options say so.
    pub(crate) fn new(output: W, format: LineFormat, schema: &Schema) -> Result<Self> {
        let mut writer = Self { output, format, buffer: Vec::with_capacity(BUFFER_BYTES) };
        if writer.format.has_header() {
            for (at, field) in schema.fields().iter().enumerate() {
                writer.separate(at);
                writer.text(field.name());
            }
            writer.buffer.push(b'\n');
        }
        Ok(writer)
    }

    /// Writes the rows of `batch`.
    ///
    /// # Errors
    /// 0A000 for a type that has no text, Io, Full.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(inside).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (at, column) in columns.iter().enumerate() {
                self.separate(at);
                if column.is_null(row) {
                    self.buffer.extend_from_slice(self.format.null().as_bytes());
                } else {
                    self.text(column.value(row));
                }
            }
            self.buffer.push(b'\n');
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush_buffer()?;
            }
        }
        Ok(())
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.buffer.push(self.format.delimiter());
        }
    }

    /// Writes one field.
    fn text(&mut self, text: &str) {
        match &self.format {
            LineFormat::Csv(options) => quote(text, options, &mut self.buffer),
            LineFormat::Text(options) => escape(text, options, &mut self.buffer),
        }
    }

    fn flush_buffer(&mut self) -> Result<()> {
        self.output.write_all(&self.buffer).map_err(|e| Error::io("write", "the data", e))?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left and gives the output back.
    ///
    /// # Errors
    /// Io, Full.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.flush_buffer()?;
        Ok(self.output)
    }
}

/// Appends a field of CSV, quoted if it has to be.
fn quote(text: &str, options: &CsvOptions, out: &mut Vec<u8>) {
    let CsvOptions { delimiter, quote, escape, .. } = *options;
    let special = |b: u8| b == delimiter || b == quote || b == escape || b == b'\n' || b == b'\r';
    // A lone `\.` ends the data for older readers.
    let quoted = text == options.null || text == "\\." || text.starts_with('\u{feff}') || text.bytes().any(special);
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
