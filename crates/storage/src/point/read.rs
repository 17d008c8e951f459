//! The values of one row of a view.

use crate::error::{Error, Result};
use crate::ids::RowRef;
use crate::row::Value;
use crate::version::TableView;

impl TableView {
    /// Appends the values of the columns at `positions` in `row`, which a probe or scan of this view named, to `out`.
    ///
    /// # Errors
    /// Io or Corrupt when blocks cannot be read; Internal for a row or column that the view has not.
    pub fn read_row(&self, row: RowRef, positions: &[usize], out: &mut Vec<Value>) -> Result<()> {
        let (id, offset) = (row.container(), row.offset());
        let columns = &self.schema().columns;
        if let Some(outside) = positions.iter().find(|at| **at >= columns.len()) {
            return Err(Error::internal(format!("no column {outside} in table {}", self.schema().name)));
        }
        let columns_at = || positions.iter().filter_map(|at| columns.get(*at).map(|column| (*at, column)));
        if id.is_own_rows() {
            let own = self.own().filter(|own| own.rows().id() == id).and_then(|own| own.rows().row(offset));
            let row = own.ok_or_else(|| Error::internal("an own row that the view has not"))?;
            for (at, column) in columns_at() {
                out.push(row.value(row.schema().position(column.id).unwrap_or(at)));
            }
            return Ok(());
        }
        if let Some(delta) = self.version().deltas.iter().rev().find(|delta| delta.id() == id) {
            return delta.read_row(columns_at(), offset, out);
        }
        let own_runs = self.own().into_iter().flat_map(|own| own.runs().iter());
        let mut runs = self.version().runs.iter().rev().chain(own_runs);
        let part = runs.find_map(|run| run.segment(id));
        let segment =
            &part.ok_or_else(|| Error::internal(format!("a row of container {id}, which the view has not")))?.segment;
        segment.read_row(self.schema().version, columns_at(), offset, out)
    }
}
