//! Rows by reference.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_select::interleave::interleave;

use crate::delta_store::DeltaGeneration;
use crate::error::{Error, Result};
use crate::ids::{ColumnId, RowRef};
use crate::row::RowBuffer;
use crate::schema::Column;
use crate::segment::Segment;
use crate::version::TableView;

/// Where rows are.
enum Holder<'a> {
    Delta(&'a DeltaGeneration),
    Segment(&'a Arc<Segment>),
    /// The transaction's own: those that were asked for, in the order of their offsets.
    Own(RowBuffer),
}

impl TableView {
    /// The values of `columns` in `rows`, in the order of `rows`. The rows were named by a scan or probe of this view.
    ///
    /// # Errors
    /// Internal for a column or row that the view has not; Io or Corrupt when blocks cannot be read.
    pub fn fetch(&self, columns: &[ColumnId], rows: &[RowRef]) -> Result<Vec<ArrayRef>> {
        let mut named = rows.to_vec();
        named.sort_unstable_by_key(|row| row.to_bits());
        named.dedup();
        let parts: Vec<&[RowRef]> = named.chunk_by(|a, b| a.container() == b.container()).collect();
        let holders = parts.iter().map(|part| self.holder(part)).collect::<Result<Vec<_>>>()?;
        let offsets: Vec<Vec<u32>> = parts.iter().map(|part| part.iter().map(|row| row.offset()).collect()).collect();
        let places = rows.iter().map(|row| place(&parts, *row)).collect::<Result<Vec<_>>>()?;
        let mut arrays = Vec::with_capacity(columns.len());
        for id in columns {
            let column = self.schema().column(*id);
            let column = column.ok_or_else(|| Error::internal(format!("fetch of unknown column {id}")))?;
            let found = holders
                .iter()
                .zip(&offsets)
                .map(|(holder, offsets)| gather(holder, column, offsets))
                .collect::<Result<Vec<_>>>()?;
            let found: Vec<_> = found.iter().map(|array| array.as_ref()).collect();
            arrays.push(match found.as_slice() {
                [] => arrow_array::new_empty_array(&column.data_type.arrow()),
                found => interleave(found, &places)?,
            });
        }
        Ok(arrays)
    }

    fn holder(&self, part: &[RowRef]) -> Result<Holder<'_>> {
        let Some(id) = part.first().map(|row| row.container()) else {
            return Err(Error::internal("no rows of no container"));
        };
        if let Some(own) = self.own().filter(|own| own.rows().id() == id) {
            let mut rows = RowBuffer::new(own.rows().layout().clone());
            for reference in part {
                let row = own.rows().row(reference.offset());
                rows.push_row(row.ok_or_else(|| Error::internal(format!("own row {reference:?} is not there")))?);
            }
            return Ok(Holder::Own(rows));
        }
        if let Some(delta) = self.version().deltas.iter().find(|delta| delta.id() == id) {
            return Ok(Holder::Delta(delta));
        }
        let own_runs = self.own().into_iter().flat_map(|own| own.runs().iter());
        let mut runs = self.version().runs.iter().chain(own_runs);
        let part = runs.find_map(|run| run.segment(id));
        part.map(|part| Holder::Segment(&part.segment))
            .ok_or_else(|| Error::internal(format!("a row of {id:?}, which the view does not have")))
    }
}

/// Values of `column` in the rows of `holder` at `offsets`.
fn gather(holder: &Holder<'_>, column: &Column, offsets: &[u32]) -> Result<ArrayRef> {
    match holder {
        Holder::Delta(delta) => delta.gather(column, offsets),
        Holder::Segment(segment) => segment.gather(column, offsets),
        Holder::Own(rows) => {
            let array = rows.to_arrays(&[column.id], 0..rows.len())?.into_iter().next();
            array.ok_or_else(|| Error::internal("own rows without a column"))
        }
    }
}

/// Part and position of `row`.
fn place(parts: &[&[RowRef]], row: RowRef) -> Result<(usize, usize)> {
    let lost = || Error::internal("a row went missing");
    let part = parts.partition_point(|part| part.last().is_some_and(|last| last.to_bits() < row.to_bits()));
    let rows = parts.get(part).ok_or_else(lost)?;
    let at = rows.binary_search_by_key(&row.to_bits(), |row| row.to_bits()).map_err(|_| lost())?;
    Ok((part, at))
}
