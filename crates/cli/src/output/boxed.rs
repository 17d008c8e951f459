//! A table drawn with lines, for people.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use mainstem::QueryResult;

use super::{Cells, format_options, names, write_error};

/// Most rows drawn; the rest is counted.
const ROWS_MAX: usize = 2_000;

/// Draws all rows, up to a bound.
pub fn write(schema: &SchemaRef, rows: QueryResult, out: &mut dyn Write) -> mainstem::Result<()> {
    let header = names(schema);
    let numeric: Vec<bool> = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
    let options = format_options();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        let cells = Cells::new(&batch, &options)?;
        for row in 0..batch.num_rows() {
            count += 1;
            if lines.len() < ROWS_MAX {
                let text = |column| cells.text(column, row).unwrap_or_else(|| "NULL".into()).replace('\n', "⏎");
                lines.push((0..batch.num_columns()).map(text).collect());
            }
        }
    }
    let table = draw(&header, &numeric, &lines);
    let more = if count > lines.len() { format!(", the first {} shown", lines.len()) } else { String::new() };
    let unit = if count == 1 { "row" } else { "rows" };
    writeln!(out, "{table}({count} {unit}{more})").map_err(write_error)
}

/// The table as text, each line ended.
pub fn draw(header: &[String], numeric: &[bool], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.chain(header.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let rule = |left: &str, middle: &str, right: &str| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}\n", parts.join(middle))
    };
    let row = |cells: &[String]| {
        let mut text = String::from("│");
        for ((cell, width), numeric) in cells.iter().zip(&widths).zip(numeric) {
            let pad = " ".repeat(width - cell.chars().count());
            let cell = if *numeric { format!(" {pad}{cell} │") } else { format!(" {cell}{pad} │") };
            text.push_str(&cell);
        }
        text.push('\n');
        text
    };
    let mut table = rule("┌", "┬", "┐") + &row(header) + &rule("├", "┼", "┤");
    lines.iter().for_each(|line| table.push_str(&row(line)));
    table + &rule("└", "┴", "┘")
}
