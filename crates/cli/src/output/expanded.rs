//! Rows one below the other, each column on a line of its own, for people: tables that are wider than the screen.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::boxed::{Drawn, cell, visible};
use super::values::Cells;
use super::{Rows, Stopped};

/// Writes the rows, up to the bound of tables, and says how many there are.
pub fn write(schema: &SchemaRef, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    let names: Vec<String> = schema.fields().iter().map(|field| visible(field.name())).collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut drawn = Drawn::default();
    for batch in rows {
        let batch = batch?;
        let first = drawn.rows();
        let shown = drawn.count(batch.num_rows());
        if shown == 0 {
            continue;
        }
        let cells = Cells::new(&batch)?;
        for row in 0..shown {
            let values: Vec<String> = (0..cells.columns()).map(|column| cell(&cells, column, row)).collect();
            out.write_all(record(first + row + 1, &names, width, &values).as_bytes())?;
        }
    }
    Ok(writeln!(out, "{drawn}")?)
}

/// A row, whose values have `names`, which are `width` wide at most.
fn record(number: usize, names: &[String], width: usize, values: &[String]) -> String {
    let title = format!("─[ RECORD {number} ]");
    let of_values = values.iter().map(|value| value.width()).max().unwrap_or(0);
    // The title may be wider than the names.
    let left = (width + 2).max(title.width());
    let mut text = format!("{title}{}┬{}\n", "─".repeat(left - title.width()), "─".repeat(of_values + 2));
    for (name, value) in names.iter().zip(values) {
        let pad = " ".repeat(left.saturating_sub(name.width() + 1));
        text.extend([" ", name, &pad, "│ ", value, "\n"]);
    }
    text
}
