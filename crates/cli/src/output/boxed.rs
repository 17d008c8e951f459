//! A table drawn with lines, for people.

use std::fmt;
use std::io::Write;

use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::values::Cells;
use super::{Rows, Stopped};

/// Most rows drawn; the rest is counted. What is drawn stands in memory, and nobody reads more than this.
const ROWS_MAX: usize = 2_000;

/// Draws the rows, up to a bound, and says how many there are.
pub fn write(schema: &SchemaRef, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    let header: Vec<String> = schema.fields().iter().map(|field| visible(field.name())).collect();
    let numeric: Vec<bool> = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut drawn = Drawn::default();
    for batch in rows {
        let batch = batch?;
        let shown = drawn.count(batch.num_rows());
        if shown > 0 {
            let cells = Cells::new(&batch)?;
            lines.extend((0..shown).map(|row| (0..cells.columns()).map(|column| cell(&cells, column, row)).collect()));
        }
    }
    let table = draw(&header, &numeric, &lines);
    Ok(writeln!(out, "{table}{drawn}")?)
}

/// How many rows there were; shown as the line below them.
#[derive(Debug, Default)]
pub struct Drawn {
    rows: usize,
}

impl Drawn {
    /// Counts `rows` more; returns how many of them are to be drawn.
    pub fn count(&mut self, rows: usize) -> usize {
        let room = ROWS_MAX.saturating_sub(self.rows);
        self.rows += rows;
        rows.min(room)
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.rows == 1 { "row" } else { "rows" };
        write!(f, "({} {unit}", self.rows)?;
        if self.rows > ROWS_MAX {
            write!(f, ", the first {ROWS_MAX} shown")?;
        }
        f.write_str(")")
    }
}

/// The text of a value, on one line.
pub fn cell(cells: &Cells<'_>, column: usize, row: usize) -> String {
    let mut text = String::new();
    if cells.append(column, row, &mut text) { visible(&text) } else { "NULL".into() }
}

/// Control characters would break the lines, or do worse to the terminal.
pub fn visible(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            visible.extend(c.escape_default());
        } else {
            visible.push(c);
        }
    }
    visible
}

/// The table as text, each line ended. `numeric` columns stand to the right.
pub fn draw(header: &[String], numeric: &[bool], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.chain(header.get(column)).map(|text| text.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let rule = |left: &str, middle: &str, right: &str| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}\n", parts.join(middle))
    };
    let row = |cells: &[String]| {
        let mut text = String::from("│");
        for ((cell, width), numeric) in cells.iter().zip(&widths).zip(numeric) {
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            let (before, after) = if *numeric { (pad.as_str(), "") } else { ("", pad.as_str()) };
            text.extend([" ", before, cell, after, " │"]);
        }
        text.push('\n');
        text
    };
    let mut table = rule("┌", "┬", "┐") + &row(header) + &rule("├", "┼", "┤");
    lines.iter().for_each(|line| table.push_str(&row(line)));
    table + &rule("└", "┴", "┘")
}
