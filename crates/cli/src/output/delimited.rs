//! CSV and TSV: streamed, with a header. NULL is an empty field, an empty text is `""`.

use std::io::Write;

use arrow::datatypes::SchemaRef;

use super::values::Cells;
use super::{Rows, Stopped};

/// Writes all rows.
pub fn write(schema: &SchemaRef, rows: Rows<'_>, delimiter: char, out: &mut dyn Write) -> Result<(), Stopped> {
    // A query that fails at once leaves no header behind.
    let first = rows.next().transpose()?;
    let mut text = String::new();
    for (column, field) in schema.fields().iter().enumerate() {
        if column > 0 {
            text.push(delimiter);
        }
        let start = text.len();
        text.push_str(field.name());
        quote(&mut text, start, delimiter);
    }
    text.push('\n');
    out.write_all(text.as_bytes())?;
    for batch in first.map(Ok).into_iter().chain(rows) {
        let batch = batch?;
        let cells = Cells::new(&batch)?;
        for row in 0..batch.num_rows() {
            text.clear();
            for column in 0..cells.columns() {
                if column > 0 {
                    text.push(delimiter);
                }
                let start = text.len();
                if cells.append(column, row, &mut text) {
                    quote(&mut text, start, delimiter);
                }
            }
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Quotes the field that begins at `start`, if a reader would take it for something else.
fn quote(text: &mut String, start: usize, delimiter: char) {
    let field = text.get(start..).unwrap_or_default();
    let special = |c: char| c == delimiter || c == '"' || c == '\n' || c == '\r';
    if field.is_empty() || field.contains(special) {
        let quoted = format!("\"{}\"", field.replace('"', "\"\""));
        text.truncate(start);
        text.push_str(&quoted);
    }
}
