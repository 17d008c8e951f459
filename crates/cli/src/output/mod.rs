//! Results as text.
//!
//! Comes in: SQL and a connection. Goes out: a table, CSV, TSV, JSON or JSON lines on the writer given; errors and
//! notices on standard error. CSV, TSV and JSON stream; a table needs its rows at once, so it draws only the first few
//! thousand.
//!
//! 1. [`run_text`] runs statement by statement, and stops at the first that fails ([`Stopped`]).
//! 2. Each outcome goes to the writer of its [`Style`]; `values` makes the text of one value, the same in all of them.
//! 3. [`report_stop`] says why it stopped; `place` shows where in the text that is.
//!
//! It does not own: where SQL comes from (`script`, `shell`), what Ctrl-C does (`interrupt`).

mod boxed;
mod delimited;
mod expanded;
mod json;
mod place;
mod plan;
mod values;

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::ValueEnum;
use mainstem::{Connection, CopyStream, Error, StatementOutcome};

use crate::interrupt;
use crate::messages::{report, say};

pub use boxed::draw;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table drawn with lines.
    Box,
    /// Comma-separated values with a header; NULL is an empty field, an empty text is "".
    Csv,
    /// A JSON array of objects for each query.
    Json,
    /// A JSON object for each row, on a line of its own.
    Jsonl,
    /// As csv, with tabs.
    Tsv,
    /// Nothing: statements run, results are read and dropped.
    None,
}

/// How results look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub format: Format,
    /// Whether format box has a line for each column instead of each row.
    pub expanded: bool,
}

/// Why running stopped before the end.
#[derive(Debug)]
pub enum Stopped {
    /// A statement or a command failed. If it is known where, the line with a caret below the place comes along.
    Statement { error: Error, caret: Option<String> },
    /// The result could not be written.
    Output(io::Error),
    /// Something that has been said already.
    Reported,
}

impl Stopped {
    /// The same, for a statement of `text`.
    fn in_text(self, text: &str) -> Self {
        match self {
            Self::Statement { error, caret: None } => {
                let caret = error.position().and_then(|position| place::caret(text, position));
                Self::Statement { error, caret }
            }
            other => other,
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Statement { error, caret: None }
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Batches of a result.
type Rows<'a> = &'a mut dyn Iterator<Item = mainstem::Result<RecordBatch>>;

/// Runs the statements of `text`, writing their results, and stops at the first that fails. COPY FROM STDIN reads
/// `data`, COPY TO STDOUT writes its data as a result.
///
/// # Errors
/// Whatever the statement or the writer failed with; what came before is written.
pub fn run_text(
    connection: &Connection,
    text: &str,
    style: Style,
    data: &mut dyn Read,
    out: &mut dyn Write,
) -> Result<(), Stopped> {
    let running = interrupt::running();
    let done = if has_stream(text) {
        statements_of(text).try_for_each(|statement| {
            let done = match mainstem::copy_stream(statement) {
                Some(stream) => run_copy(connection, statement, stream, style, data, out),
                None => run_statements(connection, statement, style, out),
            };
            done.map_err(|stopped| stopped.in_text(statement))
        })
    } else {
        run_statements(connection, text, style, out).map_err(|stopped| stopped.in_text(text))
    };
    drop(running);
    match done {
        Err(Stopped::Output(error)) => Err(Stopped::Output(error)),
        // What was written before the statement failed stands before its message.
        other => out.flush().map_err(Stopped::Output).and(other),
    }
}

fn statements_of(text: &str) -> impl Iterator<Item = &str> {
    let (done, rest) = mainstem::split_statements(text);
    done.into_iter().chain([rest])
}

/// Whether a statement of `text` is a COPY with STDIN or STDOUT.
fn has_stream(text: &str) -> bool {
    statements_of(text).any(|statement| mainstem::copy_stream(statement).is_some())
}

/// Whether a statement of `text` is a COPY FROM STDIN: its data follows.
pub fn wants_data(text: &str) -> bool {
    statements_of(text).any(|statement| mainstem::copy_stream(statement) == Some(CopyStream::Stdin))
}

fn run_statements(connection: &Connection, text: &str, style: Style, out: &mut dyn Write) -> Result<(), Stopped> {
    connection.run(text)?.try_for_each(|outcome| {
        write_outcome(outcome?, style, out)?;
        out.flush()?;
        Ok(())
    })
}

fn run_copy(
    connection: &Connection,
    statement: &str,
    stream: CopyStream,
    style: Style,
    data: &mut dyn Read,
    out: &mut dyn Write,
) -> Result<(), Stopped> {
    match stream {
        CopyStream::Stdin => {
            let rows = connection.copy_in(statement, data)?;
            if style.format == Format::Box {
                writeln!(out, "COPY {rows}")?;
            }
        }
        CopyStream::Stdout => {
            connection.copy_out(statement, &mut *out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Writes one statement's rows, if it has any; notices go to standard error.
fn write_outcome(outcome: StatementOutcome, style: Style, out: &mut dyn Write) -> Result<(), Stopped> {
    for notice in &outcome.notices {
        say(&format!("NOTICE {}: {}", notice.sqlstate, notice.message));
    }
    let Some(mut rows) = outcome.rows else {
        if style.format == Format::Box {
            writeln!(out, "{}", outcome.tag)?;
        }
        return Ok(());
    };
    if style.format == Format::Box && outcome.tag == EXPLAIN {
        return plan::write(&mut rows, out);
    }
    let schema = rows.schema();
    write_rows(&schema, &mut rows, style, out)
}

/// The tag of a statement whose rows are a plan.
const EXPLAIN: &str = "EXPLAIN";

fn write_rows(schema: &SchemaRef, rows: Rows<'_>, style: Style, out: &mut dyn Write) -> Result<(), Stopped> {
    let as_texts = |batch: mainstem::Result<RecordBatch>| batch.and_then(mainstem::with_composed_as_text);
    match style.format {
        Format::Box if style.expanded => expanded::write(schema, &mut rows.map(as_texts), out),
        Format::Box => boxed::write(schema, &mut rows.map(as_texts), out),
        Format::Csv => delimited::write(schema, &mut rows.map(as_texts), ',', out),
        Format::Tsv => delimited::write(schema, &mut rows.map(as_texts), '\t', out),
        Format::Json => json::write_array(rows, out),
        Format::Jsonl => json::write_lines(rows, out),
        Format::None => {
            for batch in rows {
                batch?;
            }
            Ok(())
        }
    }
}

/// Says on standard error why running stopped; `place` says where in which file. A reader that went away (`| head`)
/// wants to hear nothing.
pub fn report_stop(stopped: &Stopped, place: Option<&str>) {
    match stopped {
        Stopped::Statement { error, caret } => {
            report(error, place);
            if let Some(caret) = caret {
                say(caret);
            }
        }
        Stopped::Reported => {}
        Stopped::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Stopped::Output(error) => say(&format!("ERROR 58030: could not write the result: {error}")),
    }
}
