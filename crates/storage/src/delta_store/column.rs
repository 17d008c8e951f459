//! One column of one block: values in Arrow's widths, NULL bits, long strings.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use mainstem_kernels::append_buffer::{AppendBuffer, Full, OwnedWriter};
use mainstem_kernels::bitmap;
use mainstem_kernels::cast::Pod;

use super::heap::Heap;
use crate::error::{Error, Result};
use crate::limits;
use crate::row::{RowBuffer, RowView, Value};
use crate::schema::{Column, DataType};

/// Rows of a block.
pub(super) const BLOCK_ROWS: usize = limits::DELTA_BLOCK_ROWS as usize;

/// Values of one type, of which a prefix is published.
pub(super) type Cells<T> = Arc<AppendBuffer<T>>;

/// The values of a column, by their width in Arrow; Boolean has a byte each here. A NULL's cell is zero.
pub(super) enum Values {
    Boolean(Cells<u8>),
    Int16(Cells<i16>),
    Int32(Cells<i32>),
    Int64(Cells<i64>),
    Int128(Cells<i128>),
    Float32(Cells<f32>),
    Float64(Cells<f64>),
    Uuid(Cells<u128>),
    Views(Cells<u128>, Box<Heap>),
}

/// A type that [`Values`] has an arm for.
pub(super) trait Native: Pod {
    /// The cells of `values`, if they are of this type.
    fn cells(values: &Values) -> Option<&Cells<Self>>;
}

macro_rules! native {
    ($($native:ty => $arm:ident),*) => {$(
        impl Native for $native {
            #[inline]
            fn cells(values: &Values) -> Option<&Cells<Self>> {
                if let Values::$arm(cells) = values { Some(cells) } else { None }
            }
        }
    )*};
}
native!(u8 => Boolean, i16 => Int16, i32 => Int32, i64 => Int64, i128 => Int128, f32 => Float32, f64 => Float64, u128 => Uuid);

/// See the module.
pub(super) struct ColumnBlock {
    pub(super) data_type: DataType,
    nullable: bool,
    pub(super) values: Values,
    pub(super) nulls: Nulls,
    /// The whole column as an array, once the block is full.
    pub(super) sealed: OnceLock<ArrayRef>,
}

/// What appends to a column block: its one writer keeps it for as long as the block is open, and claims the cells but
/// once.
pub(super) enum CellWriter {
    Boolean(OwnedWriter<u8>),
    Int16(OwnedWriter<i16>),
    Int32(OwnedWriter<i32>),
    Int64(OwnedWriter<i64>),
    Int128(OwnedWriter<i128>),
    Float32(OwnedWriter<f32>),
    Float64(OwnedWriter<f64>),
    Uuid(OwnedWriter<u128>),
    Views(OwnedWriter<u128>),
}

fn cells<T: Pod>() -> Cells<T> {
    Arc::new(AppendBuffer::with_capacity(BLOCK_ROWS))
}

impl ColumnBlock {
    pub(super) fn new(column: &Column) -> Self {
        let (data_type, nullable) = (column.data_type, column.nullable);
        let values = match data_type {
            DataType::Boolean => Values::Boolean(cells()),
            DataType::SmallInt => Values::Int16(cells()),
            DataType::Integer | DataType::Date => Values::Int32(cells()),
            DataType::BigInt | DataType::Time | DataType::Timestamp | DataType::TimestampTz => Values::Int64(cells()),
            DataType::Decimal { .. } => Values::Int128(cells()),
            DataType::Real => Values::Float32(cells()),
            DataType::Double => Values::Float64(cells()),
            DataType::Uuid => Values::Uuid(cells()),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Bytea => {
                Values::Views(cells(), Box::new(Heap::new()))
            }
        };
        Self { data_type, nullable, values, nulls: Nulls::default(), sealed: OnceLock::new() }
    }

    /// What [`ColumnBlock::append`] writes by; `None` if somebody else has it.
    pub(super) fn writer(&self) -> Option<CellWriter> {
        Some(match &self.values {
            Values::Boolean(cells) => CellWriter::Boolean(cells.owned_writer()?),
            Values::Int16(cells) => CellWriter::Int16(cells.owned_writer()?),
            Values::Int32(cells) => CellWriter::Int32(cells.owned_writer()?),
            Values::Int64(cells) => CellWriter::Int64(cells.owned_writer()?),
            Values::Int128(cells) => CellWriter::Int128(cells.owned_writer()?),
            Values::Float32(cells) => CellWriter::Float32(cells.owned_writer()?),
            Values::Float64(cells) => CellWriter::Float64(cells.owned_writer()?),
            Values::Uuid(cells) => CellWriter::Uuid(cells.owned_writer()?),
            Values::Views(cells, _) => CellWriter::Views(cells.owned_writer()?),
        })
    }

    /// Appends the column at `position` of rows `part` of `rows`, by the block's `writer`; the first becomes row
    /// `first` of the block. Without `may_be_null` none of them is NULL. For the one writer; the caller has made sure
    /// that they fit.
    #[inline]
    pub(super) fn append(
        &self,
        writer: &mut CellWriter,
        rows: &RowBuffer,
        (position, may_be_null): (usize, bool),
        part: Range<u32>,
        first: usize,
    ) -> Result<()> {
        if self.nullable && may_be_null {
            let is_null = rows.nulls_of(position);
            part.clone().zip(first..).filter(|(row, _)| is_null(*row)).for_each(|(_, target)| self.nulls.set(target));
        }
        let row = |row: u32| rows.row(row as usize);
        let number = rows.numbers_of(position);
        let pushed = match writer {
            // The casts below lose nothing: a row holds a value of its column's type.
            CellWriter::Boolean(cells) => push_all(cells, part, |row| number(row) as u8),
            CellWriter::Int16(cells) => push_all(cells, part, |row| number(row) as i16),
            CellWriter::Int32(cells) => push_all(cells, part, |row| number(row) as i32),
            CellWriter::Int64(cells) => push_all(cells, part, number),
            CellWriter::Int128(cells) => push_all(cells, part, |at| row(at).get_i128(position)),
            CellWriter::Float32(cells) => push_all(cells, part, |at| row(at).get_f32(position)),
            CellWriter::Float64(cells) => push_all(cells, part, |at| row(at).get_f64(position)),
            CellWriter::Uuid(cells) => push_all(cells, part, |at| row(at).get_uuid(position)),
            CellWriter::Views(cells) => {
                let Values::Views(_, heap) = &self.values else {
                    return Err(Error::internal("the writer of another column of a delta block"));
                };
                let mut pushed = Ok(());
                for at in part {
                    let view = heap.view_of(row(at).get_bytes(position)).ok_or_else(no_heap_room)?;
                    pushed = pushed.and_then(|()| cells.push(view));
                }
                pushed
            }
        };
        pushed.map_err(|full| Error::internal(format!("a column of a delta block: {full}")))
    }

    /// As [`ColumnBlock::append`], of one row.
    #[inline]
    pub(super) fn append_one(
        &self,
        writer: &mut CellWriter,
        row: RowView<'_>,
        (position, is_null): (usize, bool),
        first: usize,
    ) -> Result<()> {
        if is_null {
            self.nulls.set(first);
        }
        let pushed = match writer {
            CellWriter::Boolean(cells) => cells.push(row.get_i64(position) as u8),
            CellWriter::Int16(cells) => cells.push(row.get_i64(position) as i16),
            CellWriter::Int32(cells) => cells.push(row.get_i64(position) as i32),
            CellWriter::Int64(cells) => cells.push(row.get_i64(position)),
            CellWriter::Int128(cells) => cells.push(row.get_i128(position)),
            CellWriter::Float32(cells) => cells.push(row.get_f32(position)),
            CellWriter::Float64(cells) => cells.push(row.get_f64(position)),
            CellWriter::Uuid(cells) => cells.push(row.get_uuid(position)),
            CellWriter::Views(cells) => {
                let Values::Views(_, heap) = &self.values else {
                    return Err(Error::internal("the writer of another column of a delta block"));
                };
                let view = heap.view_of(row.get_bytes(position)).ok_or_else(no_heap_room)?;
                cells.push(view)
            }
        };
        pushed.map_err(|full| Error::internal(format!("a column of a delta block: {full}")))
    }

    /// The value at `row`, if it is a [`Value::Int`] that takes no more than a look.
    #[inline]
    pub(super) fn whole(&self, row: usize) -> Option<i64> {
        let value = match &self.values {
            Values::Int16(cells) => cells.get(row)?.into(),
            Values::Int32(cells) => cells.get(row)?.into(),
            Values::Int64(cells) => cells.get(row)?,
            _ => return None,
        };
        (!self.nulls.get(row)).then_some(value)
    }

    /// The value at `row`; `None` if the row was not written.
    pub(super) fn value(&self, row: usize) -> Option<Value> {
        if self.nulls.get(row) {
            return Some(Value::Null);
        }
        Some(match &self.values {
            Values::Boolean(cells) => Value::Boolean(cells.get(row)? != 0),
            Values::Int16(cells) => Value::Int(cells.get(row)?.into()),
            Values::Int32(cells) => Value::Int(cells.get(row)?.into()),
            Values::Int64(cells) => Value::Int(cells.get(row)?),
            Values::Int128(cells) => Value::Decimal(cells.get(row)?),
            Values::Float32(cells) => Value::Real(cells.get(row)?),
            Values::Float64(cells) => Value::Double(cells.get(row)?),
            Values::Uuid(cells) => Value::Uuid(cells.get(row)?),
            Values::Views(cells, heap) => {
                let bytes = heap.value(cells.as_slice(), row)?;
                match self.data_type {
                    DataType::Bytea => Value::Bytes(bytes.into()),
                    // Checked before it became a row, so nothing is replaced here.
                    _ => Value::Text(String::from_utf8_lossy(bytes).into()),
                }
            }
        })
    }

    /// Whether the value at `row` is `value`, NULL being NULL's equal.
    pub(super) fn equals(&self, row: usize, value: &Value) -> bool {
        if self.nulls.get(row) {
            return value.is_null();
        }
        match (&self.values, value) {
            (Values::Int16(cells), Value::Int(v)) => cells.get(row).is_some_and(|c| i64::from(c) == *v),
            (Values::Int32(cells), Value::Int(v)) => cells.get(row).is_some_and(|c| i64::from(c) == *v),
            (Values::Int64(cells), Value::Int(v)) => cells.get(row) == Some(*v),
            (Values::Int128(cells), Value::Decimal(v)) => cells.get(row) == Some(*v),
            (Values::Uuid(cells), Value::Uuid(v)) => cells.get(row) == Some(*v),
            (Values::Views(cells, heap), Value::Text(v)) => heap.value(cells.as_slice(), row) == Some(v.as_bytes()),
            (Values::Views(cells, heap), Value::Bytes(v)) => heap.value(cells.as_slice(), row) == Some(v),
            _ => self.value(row).as_ref() == Some(value),
        }
    }

    /// As [`ColumnBlock::equals`], with the value at `position` of `other`.
    pub(super) fn equals_field(&self, row: usize, other: RowView<'_>, position: usize) -> bool {
        self.equals(row, &other.value(position))
    }

    /// Bytes of `rows` rows, and of all chunks and arrays behind them.
    pub(super) fn memory_bytes(&self, rows: usize) -> usize {
        let (width, heap) = match &self.values {
            Values::Boolean(_) => (1, 0),
            Values::Int16(_) => (2, 0),
            Values::Int32(_) | Values::Float32(_) => (4, 0),
            Values::Int64(_) | Values::Float64(_) => (8, 0),
            Values::Int128(_) | Values::Uuid(_) => (16, 0),
            Values::Views(_, heap) => (16, heap.memory_bytes()),
        };
        size_of::<Self>() + width * rows + heap + self.nulls.memory_bytes()
    }
}

fn no_heap_room() -> Error {
    Error::internal("the long strings of a delta block take too many chunks")
}

/// Appends `value` of each of `rows`.
#[inline]
fn push_all<T: Pod>(cells: &mut OwnedWriter<T>, rows: Range<u32>, value: impl Fn(u32) -> T) -> Result<(), Full> {
    /// Values that are appended at once.
    const STEP: usize = 64;
    let mut values = [T::default(); STEP];
    for start in rows.clone().step_by(STEP) {
        let part = start..rows.end.min(start + STEP as u32);
        let len = part.len();
        values.iter_mut().zip(part).for_each(|(to, row)| *to = value(row));
        cells.extend_from_slice(values.get(..len).unwrap_or_default())?;
    }
    Ok(())
}

/// Which rows of a column block are NULL. Bits of rows that are not published yet share words with others, so readers
/// mask.
#[derive(Default)]
pub(super) struct Nulls {
    /// Bit on: NULL. Made with the first NULL.
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Nulls {
    /// `row` is NULL. For the one writer, before the row is published.
    fn set(&self, row: usize) {
        let words = self.words.get_or_init(|| (0..bitmap::words(BLOCK_ROWS)).map(|_| AtomicU64::new(0)).collect());
        if let Some(word) = words.get(row / 64) {
            word.store(word.load(Ordering::Relaxed) | 1 << (row % 64), Ordering::Release);
        }
    }

    /// Whether `row` is NULL.
    #[inline]
    pub(super) fn get(&self, row: usize) -> bool {
        let word = self.words.get().and_then(|words| words.get(row / 64));
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (row % 64) & 1 == 1)
    }

    /// The validity of rows `start..start + len`; `None` if all are valid.
    pub(super) fn validity(&self, start: usize, len: usize) -> Option<NullBuffer> {
        let words = self.words.get()?.get(start / 64..bitmap::words(start + len))?;
        let valid: Vec<u64> = words.iter().map(|word| !word.load(Ordering::Acquire)).collect();
        let valid = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(valid), start % 64, len));
        (valid.null_count() > 0).then_some(valid)
    }

    fn memory_bytes(&self) -> usize {
        self.words.get().map_or(0, |words| size_of_val(words.as_ref()))
    }
}
