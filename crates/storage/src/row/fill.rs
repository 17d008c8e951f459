//! Columns to rows: `RowBuffer::push_batch`.
//!
//! 1. The size of each new row is the fixed part plus its texts; all rows are laid out at once, zeroed.
//! 2. Column by column, values are written at each row's slot; texts go to each row's own cursor, so that they stand in
//!    column order.

use arrow_array::{Array, RecordBatch};
use arrow_buffer::NullBuffer;

use crate::error::{Error, Result};
use crate::schema::DataType;

use super::arrays::uuid_at;
use super::buffer::row_size;
use super::check;
use super::layout::is_wide;
use super::{RowBuffer, TypedValues};

impl RowBuffer {
    /// Appends the rows of a batch that [`super::check_batch`] has passed: columns in schema order, of Arrow types
    /// [`DataType::arrow`]. Other types are an Internal error.
    pub fn push_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let before = self.len;
        let result = self.append_columns(batch);
        if result.is_err() {
            self.truncate_all(before);
        }
        result
    }

    fn append_columns(&mut self, batch: &RecordBatch) -> Result<()> {
        let layout = self.layout.clone();
        if batch.num_columns() != layout.slots().len() {
            return Err(check::wrong_column_count(layout.schema(), batch.num_columns()));
        }
        let columns = layout
            .slots()
            .iter()
            .zip(batch.columns())
            .map(|(slot, array)| TypedValues::of(array.as_ref(), slot.data_type))
            .collect::<Result<Vec<_>>>()?;
        let starts = self.lay_out(&columns, batch)?;
        let mut cursors = vec![layout.fixed_bytes(); if layout.has_variable() { starts.len() } else { 0 }];
        for (position, values) in columns.iter().enumerate() {
            let slot = &layout.slots()[position];
            let nulls = batch.column(position).nulls().filter(|n| n.null_count() > 0);
            if let (Some(nulls), false) = (nulls, slot.nullable) {
                return Err(Error::internal(format!(
                    "{} NULLs in {:?}, which is NOT NULL",
                    nulls.null_count(),
                    slot.id
                )));
            }
            let mut target = Target { data: &mut self.data, starts: &starts, position, at: slot.at, nulls };
            target.put(values, slot.data_type, &mut cursors)?;
        }
        self.len += starts.len();
        Ok(())
    }

    /// Makes room for the batch's rows; gives the first byte of each.
    fn lay_out(&mut self, columns: &[TypedValues<'_>], batch: &RecordBatch) -> Result<Vec<usize>> {
        let rows = batch.num_rows();
        let fixed = self.layout.fixed_bytes();
        let first = self.data.len();
        if !self.layout.has_variable() {
            self.data.resize(first + rows * fixed, 0);
            return Ok((0..rows).map(|row| first + row * fixed).collect());
        }
        let mut sizes = vec![fixed; rows];
        for (values, array) in columns.iter().zip(batch.columns()) {
            values.add_lengths(array.nulls(), &mut sizes);
        }
        let mut starts = Vec::with_capacity(rows);
        let mut at = first;
        for size in sizes {
            row_size(self.layout.schema(), size)?;
            starts.push(at);
            at += size;
            self.ends.push(at);
        }
        self.data.resize(at, 0);
        Ok(starts)
    }

    /// Drops everything behind row `len`, half-written rows too.
    fn truncate_all(&mut self, len: usize) {
        self.data.truncate(self.start(len));
        self.ends.truncate(len);
        self.len = len;
    }
}

/// One column of the rows being written.
struct Target<'a> {
    data: &'a mut [u8],
    starts: &'a [usize],
    position: usize,
    at: usize,
    nulls: Option<&'a NullBuffer>,
}

impl Target<'_> {
    fn put(&mut self, values: &TypedValues<'_>, data_type: DataType, cursors: &mut [usize]) -> Result<()> {
        match values {
            TypedValues::Boolean(v) => self.put_fixed(|row| u64::from(v.value(row)).to_le_bytes()),
            TypedValues::Int16(v) => self.put_fixed(|row| i64::from(v[row]).to_le_bytes()),
            TypedValues::Int32(v) => self.put_fixed(|row| i64::from(v[row]).to_le_bytes()),
            TypedValues::Int64(v) => self.put_fixed(|row| v[row].to_le_bytes()),
            TypedValues::Real(v) => self.put_fixed(|row| u64::from(v[row].to_bits()).to_le_bytes()),
            TypedValues::Double(v) => self.put_fixed(|row| v[row].to_le_bytes()),
            TypedValues::Decimal(v) if is_wide(data_type) => self.put_fixed(|row| v[row].to_le_bytes()),
            TypedValues::Decimal(v) => {
                let fits = |row: usize| i64::try_from(v[row]).is_ok() || self.nulls.is_some_and(|n| n.is_null(row));
                if !(0..v.len()).all(fits) {
                    return Err(Error::internal("a decimal of an unchecked batch exceeds its precision"));
                }
                self.put_fixed(|row| (v[row] as i64).to_le_bytes());
            }
            TypedValues::Text(v) => self.put_variable(cursors, |row| v.value(row).as_bytes()),
            TypedValues::Bytes(v) => self.put_variable(cursors, |row| v.value(row)),
            TypedValues::Uuid(v) => self.put_fixed(|row| uuid_at(v, row).to_be_bytes()),
        }
        Ok(())
    }

    fn put_fixed<const W: usize>(&mut self, value: impl Fn(usize) -> [u8; W]) {
        for (row, &start) in self.starts.iter().enumerate() {
            if self.nulls.is_some_and(|n| n.is_null(row)) {
                self.data[start + self.position / 8] |= 1 << (self.position % 8);
            } else {
                let at = start + self.at;
                self.data[at..at + W].copy_from_slice(&value(row));
            }
        }
    }

    fn put_variable<'v>(&mut self, cursors: &mut [usize], value: impl Fn(usize) -> &'v [u8]) {
        for (row, (&start, cursor)) in self.starts.iter().zip(cursors).enumerate() {
            if self.nulls.is_some_and(|n| n.is_null(row)) {
                self.data[start + self.position / 8] |= 1 << (self.position % 8);
                continue;
            }
            let bytes = value(row);
            let slot = *cursor as u64 | (bytes.len() as u64) << 32;
            self.data[start + self.at..start + self.at + 8].copy_from_slice(&slot.to_le_bytes());
            self.data[start + *cursor..start + *cursor + bytes.len()].copy_from_slice(bytes);
            *cursor += bytes.len();
        }
    }
}
