//! CSV and TSV: streamed, with a header. NULL is an empty field, an empty text is `""`.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use mainstem::QueryResult;

use super::{Cells, format_options, names, write_error};

/// Writes all rows.
pub fn write(schema: &SchemaRef, rows: QueryResult, delimiter: char, out: &mut dyn Write) -> mainstem::Result<()> {
    let header: Vec<String> = names(schema).iter().map(|name| quoted(name, delimiter)).collect();
    line(out, &header, delimiter)?;
    let options = format_options();
    for batch in rows {
        let batch = batch?;
        let cells = Cells::new(&batch, &options)?;
        for row in 0..batch.num_rows() {
            let fields: Vec<String> = (0..batch.num_columns())
                .map(|column| cells.text(column, row).map_or_else(String::new, |text| quoted(&text, delimiter)))
                .collect();
            line(out, &fields, delimiter)?;
        }
    }
    Ok(())
}

fn line(out: &mut dyn Write, fields: &[String], delimiter: char) -> mainstem::Result<()> {
    let mut text = fields.join(&delimiter.to_string());
    text.push('\n');
    out.write_all(text.as_bytes()).map_err(write_error)
}

/// Quotes what a reader would take for something else.
fn quoted(text: &str, delimiter: char) -> String {
    let special = |c: char| c == delimiter || c == '"' || c == '\n' || c == '\r';
    if text.is_empty() || text.contains(special) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
