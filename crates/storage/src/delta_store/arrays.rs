//! Arrow arrays of a column: laid over the published cells without a copy, or gathered row by row.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;

use super::column::{BLOCK_ROWS, Cells, ColumnBlock, Native, Values};
use crate::error::{Error, Result};
use crate::row::uuid_array;
use crate::schema::DataType;

impl ColumnBlock {
    /// Rows `rows` of the block as an array of type [`DataType::arrow`]; the caller has seen them published.
    pub(super) fn array(&self, rows: Range<usize>, block_is_full: bool) -> Result<ArrayRef> {
        if !block_is_full {
            return self.build(rows);
        }
        if self.sealed.get().is_none() {
            let whole = self.build(0..BLOCK_ROWS)?;
            // Another reader may have been faster; one of the two stays.
            drop(self.sealed.set(whole));
        }
        let sealed = self.sealed.get().ok_or_else(|| Error::internal("a sealed delta block without its array"))?;
        Ok(if rows.len() == BLOCK_ROWS { Arc::clone(sealed) } else { sealed.slice(rows.start, rows.len()) })
    }

    fn build(&self, rows: Range<usize>) -> Result<ArrayRef> {
        let nulls = self.nulls.validity(rows.start, rows.len());
        Ok(match &self.values {
            Values::Boolean(cells) => {
                let bytes = cells.as_slice().get(rows).ok_or_else(unpublished)?;
                Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0), nulls))
            }
            Values::Int16(cells) => primitive::<Int16Type>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Int32(cells) if self.data_type == DataType::Date => {
                primitive::<Date32Type>(over(cells, rows)?, nulls, self.data_type)?
            }
            Values::Int32(cells) => primitive::<Int32Type>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Int64(cells) if self.data_type == DataType::BigInt => {
                primitive::<Int64Type>(over(cells, rows)?, nulls, self.data_type)?
            }
            Values::Int64(cells) if self.data_type == DataType::Time => {
                primitive::<Time64MicrosecondType>(over(cells, rows)?, nulls, self.data_type)?
            }
            Values::Int64(cells) => primitive::<TimestampMicrosecondType>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Int128(cells) => primitive::<Decimal128Type>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Float32(cells) => primitive::<Float32Type>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Float64(cells) => primitive::<Float64Type>(over(cells, rows)?, nulls, self.data_type)?,
            Values::Uuid(cells) => {
                let values = cells.as_slice().get(rows).ok_or_else(unpublished)?;
                uuid_array(values.iter().copied(), nulls)?
            }
            Values::Views(cells, heap) => {
                // Buffers are listed after the views were published, so every view finds its chunk.
                let views = over(cells, rows)?;
                match self.data_type {
                    DataType::Bytea => Arc::new(BinaryViewArray::try_new(views, heap.buffers(), nulls)?),
                    _ => Arc::new(StringViewArray::try_new(views, heap.buffers(), nulls)?),
                }
            }
        })
    }
}

fn unpublished() -> Error {
    Error::internal("a read of delta rows that are not published")
}

/// The cells `rows` as a buffer that keeps them alive.
fn over<T>(cells: &Cells<T>, rows: Range<usize>) -> Result<ScalarBuffer<T>>
where
    T: mainstem_kernels::cast::Pod + arrow_buffer::ArrowNativeType,
{
    let published = cells.bytes();
    if rows.end > published.values().len() || rows.start > rows.end {
        return Err(unpublished());
    }
    Ok(ScalarBuffer::new(Buffer::from(Bytes::from_owner(published)), rows.start, rows.len()))
}

fn primitive<T: ArrowPrimitiveType>(
    values: ScalarBuffer<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: DataType,
) -> Result<ArrayRef> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls)?.with_data_type(data_type.arrow())))
}

/// One column over the blocks of a generation.
pub(super) struct Gather<'a, F> {
    /// The column's block number `n`.
    pub(super) block: F,
    /// The rows wanted, in this order; all published.
    pub(super) offsets: &'a [u32],
    pub(super) data_type: DataType,
    /// Whether the rows may hold NULL.
    pub(super) nullable: bool,
}

impl<'a, F: Fn(usize) -> Option<&'a ColumnBlock>> Gather<'a, F> {
    /// The array of the rows wanted.
    pub(super) fn array(&self) -> Result<ArrayRef> {
        match self.data_type {
            DataType::Boolean => {
                let bytes = self.cells::<u8>()?;
                let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0);
                Ok(Arc::new(BooleanArray::new(bits, self.nulls()?)))
            }
            DataType::SmallInt => self.primitive::<Int16Type>(),
            DataType::Integer => self.primitive::<Int32Type>(),
            DataType::Date => self.primitive::<Date32Type>(),
            DataType::BigInt => self.primitive::<Int64Type>(),
            DataType::Time => self.primitive::<Time64MicrosecondType>(),
            DataType::Uuid => uuid_array(self.cells::<u128>()?.into_iter(), self.nulls()?),
            DataType::Timestamp | DataType::TimestampTz => self.primitive::<TimestampMicrosecondType>(),
            DataType::Decimal { .. } => self.primitive::<Decimal128Type>(),
            DataType::Real => self.primitive::<Float32Type>(),
            DataType::Double => self.primitive::<Float64Type>(),
            DataType::Bytea => {
                let mut builder = BinaryViewBuilder::with_capacity(self.offsets.len());
                self.each_value(|bytes| {
                    builder.append_option(bytes);
                    Ok(())
                })?;
                Ok(Arc::new(builder.finish()))
            }
            DataType::Text { .. } | DataType::Char { .. } => {
                let mut builder = StringViewBuilder::with_capacity(self.offsets.len());
                let bad = |_| Error::internal("text of the delta is no UTF-8");
                self.each_value(|bytes| {
                    builder.append_option(bytes.map(std::str::from_utf8).transpose().map_err(bad)?);
                    Ok(())
                })?;
                Ok(Arc::new(builder.finish()))
            }
        }
    }

    fn primitive<T>(&self) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Native,
    {
        primitive::<T>(self.cells::<T::Native>()?.into(), self.nulls()?, self.data_type)
    }

    /// Calls `visit` with each wanted row's column block and row in it.
    fn each(&self, mut visit: impl FnMut(&'a ColumnBlock, usize) -> Result<()>) -> Result<()> {
        let mut current: Option<(usize, &ColumnBlock)> = None;
        for &offset in self.offsets {
            let (number, row) = (offset as usize / BLOCK_ROWS, offset as usize % BLOCK_ROWS);
            let block = match current {
                Some((same, block)) if same == number => block,
                _ => (self.block)(number).ok_or_else(unpublished)?,
            };
            current = Some((number, block));
            visit(block, row)?;
        }
        Ok(())
    }

    fn cells<T: Native>(&self) -> Result<Vec<T>> {
        let mut out = Vec::with_capacity(self.offsets.len());
        let mut current: Option<(usize, &[T])> = None;
        for &offset in self.offsets {
            let (number, row) = (offset as usize / BLOCK_ROWS, offset as usize % BLOCK_ROWS);
            let cells = match current {
                Some((same, cells)) if same == number => cells,
                _ => {
                    let block = (self.block)(number).ok_or_else(unpublished)?;
                    let cells = T::cells(&block.values);
                    cells.ok_or_else(|| Error::internal("a column of the delta has another type"))?.as_slice()
                }
            };
            current = Some((number, cells));
            out.push(*cells.get(row).ok_or_else(unpublished)?);
        }
        Ok(out)
    }

    fn nulls(&self) -> Result<Option<NullBuffer>> {
        if !self.nullable {
            return Ok(None);
        }
        let mut valid = Vec::with_capacity(self.offsets.len());
        self.each(|block, row| {
            valid.push(!block.nulls.get(row));
            Ok(())
        })?;
        Ok(valid.contains(&false).then(|| NullBuffer::from(valid)))
    }

    fn each_value(&self, mut visit: impl FnMut(Option<&'a [u8]>) -> Result<()>) -> Result<()> {
        self.each(|block, row| {
            if block.nulls.get(row) {
                return visit(None);
            }
            let Values::Views(cells, heap) = &block.values else {
                return Err(Error::internal("a column of the delta has another type"));
            };
            visit(Some(heap.value(cells.as_slice(), row).ok_or_else(unpublished)?))
        })
    }
}
