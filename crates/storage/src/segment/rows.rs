//! Single rows of a segment.
//!
//! Comes in: columns and a row. Goes out: values. What is open is held still for the whole row: between its columns
//! there is nothing but loads, so that the misses of one do not wait for those of another. Columns that are not open
//! are read from the pages where the row lies, one by one, until they are worth being opened ([`super::pages`]).

use arrow_array::ArrayRef;

use super::cache::Place;
use super::encoding::{Encoding, SingleRows};
use super::format::ColumnMeta;
use super::pages::PagedBlock;
use super::reader::Segment;
use crate::error::Result;
use crate::ids::SchemaVersion;
use crate::limits;
use crate::row::{Value, array_of};
use crate::schema::Column;

impl Segment {
    /// Appends the values of `columns` in row `offset` to `out`: columns of the table under schema version `version`,
    /// each with its position there.
    ///
    /// # Errors
    /// Corrupt, Io; Internal for a row that is not there or a column of another type.
    pub fn read_row<'c>(
        &self,
        version: SchemaVersion,
        columns: impl Iterator<Item = (usize, &'c Column)>,
        offset: u32,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let (base, of_segment) = (out.len(), &self.meta().columns);
        let mut unopened = Vec::new();
        let open = self.open_blocks().hold();
        // Mostly: its columns are those of the table, in their order.
        let is_same = self.schema_version() == version;
        for (number, (position, column)) in columns.enumerate() {
            let place = if is_same && position < of_segment.len() { Some(position) } else { self.column(column)? };
            debug_assert!(!is_same || place == self.column(column)?);
            let Some(at) = place else {
                out.push(column.missing_value.clone());
                continue;
            };
            match open.column(at) {
                Some(block) => out.push(match block.whole(offset as usize) {
                    Some(value) => Value::Int(value),
                    None => block.value(offset as usize)?,
                }),
                None => {
                    unopened.push((base + number, at));
                    out.push(Value::Null);
                }
            }
        }
        drop(open);
        let mut pages = Vec::new();
        for (number, at) in unopened {
            if let Some(value) = out.get_mut(number) {
                *value = self.value_unopened(at, offset, &mut pages)?;
            }
        }
        Ok(())
    }

    /// Row `offset` of the column at position `at`, which was not open; `pages` is for pages.
    pub(super) fn value_unopened(&self, at: usize, offset: u32, pages: &mut Vec<u8>) -> Result<Value> {
        let column = self.column_meta(at)?;
        let place = Place::Column(at);
        match (&column.block, &column.encoding) {
            (None, Encoding::Constant { value }) if offset < self.rows() => Ok(value.clone()),
            (Some(block), _) if !self.is_worth_opening(place, block) => {
                self.single_rows(column).value(&mut PagedBlock::new(self, place, block, pages), offset as usize)
            }
            _ => self.block(at)?.value(offset as usize),
        }
    }

    /// The rows at `offsets` of the column at position `at`, if they are so few, and the block is not open, that it is
    /// not opened for them.
    pub(super) fn gather_pages(&self, at: usize, offsets: &[u32]) -> Result<Option<ArrayRef>> {
        let column = self.column_meta(at)?;
        let Some(block) = &column.block else { return Ok(None) };
        // What is open is seen without a look at the cache, whose lock all readers share.
        if offsets.len() > limits::GATHER_PAGES_MAX
            || self.open_blocks().hold().column(at).is_some()
            || self.is_worth_opening(Place::Column(at), block)
        {
            return Ok(None);
        }
        let mut pages = Vec::new();
        let mut source = PagedBlock::new(self, Place::Column(at), block, &mut pages);
        let single = self.single_rows(column);
        let values = offsets.iter().map(|offset| single.value(&mut source, *offset as usize));
        let values = values.collect::<Result<Vec<_>>>()?;
        array_of(values.iter(), column.data_type).map(Some)
    }

    /// What there is to know of `column` for reading single rows of it.
    pub(super) fn single_rows<'a>(&self, column: &'a ColumnMeta) -> SingleRows<'a> {
        SingleRows::new(column.data_type, self.rows() as usize, column.null_count as usize, &column.encoding)
    }
}
