//! Batches to bytes.

use std::fmt::Write as _;
use std::io::Write;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mainstem_storage::{Error, Result};

use crate::error::from_arrow;
use crate::sql::CsvOptions;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes batches of one schema.
pub(crate) struct CsvWriter<W> {
    output: W,
    options: CsvOptions,
    buffer: Vec<u8>,
}

/// How times look: as PostgreSQL prints them.
fn format_options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_display_error(false)
        .with_date_format(Some("%Y-%m-%d"))
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"))
}

impl<W: Write> CsvWriter<W> {
    /// A writer to `output`; writes the header if the options say so.
    pub(crate) fn new(output: W, options: CsvOptions, schema: &Schema) -> Result<Self> {
        let mut writer = Self { output, options, buffer: Vec::with_capacity(BUFFER_BYTES) };
        if writer.options.header {
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
        let options = format_options();
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).map_err(|e| from_arrow(&e)))
            .collect::<Result<Vec<_>>>()?;
        // A column of type NULL has no null bitmap of its own.
        let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (at, (column, (formatter, nulls))) in
                batch.columns().iter().zip(formatters.iter().zip(&nulls)).enumerate()
            {
                self.separate(at);
                if nulls.as_ref().is_some_and(|n| n.is_null(row)) {
                    self.buffer.extend_from_slice(self.options.null.as_bytes());
                    continue;
                }
                text.clear();
                match column.data_type() {
                    DataType::Boolean => text.push(if column.as_boolean().value(row) { 't' } else { 'f' }),
                    data_type => {
                        if matches!(
                            data_type,
                            DataType::Binary
                                | DataType::LargeBinary
                                | DataType::BinaryView
                                | DataType::FixedSizeBinary(_)
                        ) {
                            text.push_str("\\x");
                        }
                        write!(text, "{}", formatter.value(row))
                            .map_err(|_| Error::internal("a value could not be written as text"))?;
                    }
                }
                self.text(&text);
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
            self.buffer.push(self.options.delimiter);
        }
    }

    /// Writes one field, quoted if it has to be.
    fn text(&mut self, text: &str) {
        let CsvOptions { delimiter, quote, escape, .. } = self.options;
        let special = |b: u8| b == delimiter || b == quote || b == escape || b == b'\n' || b == b'\r';
        // A lone `\.` ends the data for older readers.
        let quoted = text == self.options.null || text == "\\." || text.bytes().any(special);
        if !quoted {
            self.buffer.extend_from_slice(text.as_bytes());
            return;
        }
        self.buffer.push(quote);
        for byte in text.bytes() {
            if byte == quote || byte == escape {
                self.buffer.push(escape);
            }
            self.buffer.push(byte);
        }
        self.buffer.push(quote);
    }

    fn flush_buffer(&mut self) -> Result<()> {
        self.output.write_all(&self.buffer).map_err(|e| Error::io("write", "the file", e))?;
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
