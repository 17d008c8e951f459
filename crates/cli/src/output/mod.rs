//! Results as text.
//!
//! Comes in: outcomes of statements. Goes out: a table, CSV, TSV, JSON or JSON lines on standard output; errors and notices on
//! standard error. CSV, TSV and JSON lines stream; a box and a JSON array need the whole result.

mod boxed;
mod delimited;
mod json;

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use clap::ValueEnum;
use mainstem::{Connection, Error, StatementOutcome};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table drawn with lines.
    Box,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Tab-separated values with a header.
    Tsv,
    /// Nothing: statements run, results are read and dropped.
    None,
}

/// Runs the statements of `text`, writing their results. Returns whether all succeeded; stops at the first that did not.
pub fn run_text(connection: &Connection, text: &str, format: Format, out: &mut dyn Write) -> bool {
    for outcome in connection.run(text) {
        let written = outcome.and_then(|outcome| write_outcome(outcome, format, out));
        if let Err(e) = written {
            let _ = out.flush();
            report(&e);
            return false;
        }
    }
    true
}

/// Writes one statement's rows, if it has any; notices go to standard error.
fn write_outcome(outcome: StatementOutcome, format: Format, out: &mut dyn Write) -> mainstem::Result<()> {
    for notice in &outcome.notices {
        eprintln!("{notice}");
    }
    let Some(rows) = outcome.rows else {
        if format == Format::Box {
            writeln!(out, "{}", outcome.tag).map_err(write_error)?;
        }
        return Ok(());
    };
    let schema = rows.schema();
    match format {
        Format::Box => boxed::write(&schema, rows, out),
        Format::Csv => delimited::write(&schema, rows, ',', out),
        Format::Tsv => delimited::write(&schema, rows, '\t', out),
        Format::Json => json::write(rows, true, out),
        Format::Jsonl => json::write(rows, false, out),
        Format::None => rows.map(|batch| batch.map(|_| ())).collect(),
    }
}

/// Says what went wrong, on standard error.
pub fn report(error: &Error) {
    eprintln!("ERROR {}: {}", error.sqlstate(), error.message());
}

/// Ctrl-C cancels the running statement.
pub fn cancel_on_ctrl_c(connection: &Connection) {
    let handle = connection.interrupt_handle();
    if let Err(e) = ctrlc::set_handler(move || handle.interrupt()) {
        eprintln!("Ctrl-C will end the program: {e}");
    }
}

/// The text of every value of a batch, column by column; `None` is NULL.
struct Cells<'a> {
    formatters: Vec<(ArrayFormatter<'a>, &'a dyn arrow::array::Array)>,
}

/// How values are written as text.
fn format_options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_duration_format(DurationFormat::Pretty)
}

impl<'a> Cells<'a> {
    fn new(batch: &'a RecordBatch, options: &'a FormatOptions<'a>) -> mainstem::Result<Self> {
        let formatters = batch
            .columns()
            .iter()
            .map(|column| {
                let formatter = ArrayFormatter::try_new(column.as_ref(), options).map_err(Error::from)?;
                Ok((formatter, column.as_ref()))
            })
            .collect::<mainstem::Result<_>>()?;
        Ok(Self { formatters })
    }

    /// The text at `row` of `column`, or `None` for NULL.
    fn text(&self, column: usize, row: usize) -> Option<String> {
        let (formatter, array) = self.formatters.get(column)?;
        array.is_valid(row).then(|| formatter.value(row).to_string())
    }
}

/// Names of the columns.
fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// A failed write to standard output.
fn write_error(error: std::io::Error) -> Error {
    Error::io(format!("could not write the result: {error}"))
}
