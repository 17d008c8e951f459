//! What EXPLAIN says, for people: the lines of the plan as they are.

use std::io::Write;

use super::boxed::visible;
use super::values::Cells;
use super::{Rows, Stopped};

/// Writes each plan: a line that says which one it is, and its lines below.
pub fn write(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), Stopped> {
    for batch in rows {
        let batch = batch?;
        let cells = Cells::new(&batch)?;
        for row in 0..batch.num_rows() {
            for column in 0..cells.columns() {
                let mut text = String::new();
                cells.append(column, row, &mut text);
                // The last column is the plan, those before it say which one.
                let indent = if column > 0 && column + 1 == cells.columns() { "  " } else { "" };
                for line in text.lines() {
                    writeln!(out, "{indent}{}", visible(line))?;
                }
            }
        }
    }
    Ok(())
}
