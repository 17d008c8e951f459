//! JSON: an array of objects, or an object a line. NULL is `null`; decimals are numbers with all their digits.

use std::io::{self, Write};

use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer};
use mainstem::Error;

use super::{Rows, Stopped};

/// Writes all rows as one array, a row a line.
pub fn write_array(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    write::<JsonArray>(rows, out)?;
    Ok(writeln!(out)?)
}

/// Writes all rows as objects, each on its line.
pub fn write_lines(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    write::<LineDelimited>(rows, out)
}

fn write<F: JsonFormat>(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer: Writer<_, F> = builder.build(out);
    for batch in rows {
        writer.write(&batch?).map_err(stopped)?;
    }
    writer.finish().map_err(stopped)
}

/// Arrow wraps what the writer failed with.
fn stopped(error: ArrowError) -> Stopped {
    match error {
        ArrowError::IoError(_, error) => Stopped::Output(error),
        ArrowError::ExternalError(error) => match error.downcast::<io::Error>() {
            Ok(error) => Stopped::Output(*error),
            Err(error) => Error::from(ArrowError::ExternalError(error)).into(),
        },
        error => Error::from(error).into(),
    }
}
