//! Rows of one layout, one behind the other.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result, sqlstate};
use crate::limits;

use super::check;
use super::layout::{RowLayout, damaged, eight, is_wide, null_bit};
use super::{RowView, Value};

/// Rows of one layout. Every row in it is valid; a failed push leaves it as it was.
#[derive(Clone)]
pub struct RowBuffer {
    pub(super) layout: Arc<RowLayout>,
    pub(super) data: Vec<u8>,
    /// End of each row in `data`; empty when all rows have the same size.
    pub(super) ends: Vec<usize>,
    pub(super) len: usize,
}

impl RowBuffer {
    /// An empty buffer.
    #[must_use]
    pub fn new(layout: Arc<RowLayout>) -> Self {
        Self { layout, data: Vec::new(), ends: Vec::new(), len: 0 }
    }

    /// The layout of its rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes it holds: the rows and where they end. A log record takes about as many.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.len() + self.ends.len() * size_of::<usize>()
    }

    /// Row `i`. Panics if `i` is not below [`RowBuffer::len`].
    #[inline]
    #[must_use]
    pub fn row(&self, i: usize) -> RowView<'_> {
        RowView::new(&self.layout, self.row_bytes(i))
    }

    /// The rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowView<'_>> {
        (0..self.len).map(|i| self.row(i))
    }

    #[inline]
    pub(super) fn row_bytes(&self, i: usize) -> &[u8] {
        assert!(i < self.len, "row {i} of {}", self.len);
        &self.data[self.start(i)..self.start(i + 1)]
    }

    /// First byte of row `i`, or the end of the data for `i == len`.
    #[inline]
    pub(super) fn start(&self, i: usize) -> usize {
        match i.checked_sub(1) {
            None => 0,
            Some(before) if self.layout.has_variable() => self.ends[before],
            Some(_) => i * self.layout.fixed_bytes(),
        }
    }

    /// First byte of each row, by its number, which is below [`RowBuffer::len`].
    #[inline]
    fn starts(&self) -> impl Fn(u32) -> usize + '_ {
        let (fixed_bytes, ends) = (self.layout.fixed_bytes(), self.ends.as_slice());
        move |row| match (row as usize).checked_sub(1) {
            _ if ends.is_empty() => row as usize * fixed_bytes,
            None => 0,
            Some(before) => ends[before],
        }
    }

    /// What [`RowView::get_i64`] gives for the column at `position`, row by row: for many rows of one column.
    #[inline]
    pub fn numbers_of(&self, position: usize) -> impl Fn(u32) -> i64 + '_ {
        let (starts, at) = (self.starts(), self.layout.slots()[position].at);
        move |row| i64::from_le_bytes(eight(&self.data, starts(row) + at))
    }

    /// What [`RowView::is_null`] says of the column at `position`, row by row: for many rows of one column.
    #[inline]
    pub fn nulls_of(&self, position: usize) -> impl Fn(u32) -> bool + '_ {
        let starts = self.starts();
        move |row| self.data.get(starts(row)..).is_some_and(|row| null_bit(row, position))
    }

    /// Which of the first 64 columns are NULL in some row of `rows`: a bit each.
    #[must_use]
    pub fn null_columns(&self, rows: Range<u32>) -> u64 {
        let starts = self.starts();
        rows.fold(0, |all, row| all | u64::from_le_bytes(eight(&self.data, starts(row))))
    }

    /// Bytes of the rows `rows`, one behind the other.
    #[must_use]
    pub fn bytes_of(&self, rows: Range<usize>) -> usize {
        self.start(rows.end) - self.start(rows.start)
    }

    /// Counts the bytes from the last row on as one more row.
    fn close_row(&mut self) {
        if self.layout.has_variable() {
            self.ends.push(self.data.len());
        }
        self.len += 1;
    }

    /// Appends a row of values in column order. Checks number and types of values (42804), NOT NULL (23502), lengths
    /// (22001), ranges (22003) and the row's size (54000).
    pub fn push_values(&mut self, values: &[Value]) -> Result<()> {
        let start = self.data.len();
        let result = encode_values(&self.layout, values, &mut self.data);
        match result {
            Ok(()) => self.close_row(),
            Err(_) => self.data.truncate(start),
        }
        result
    }

    /// As [`RowBuffer::push_values`], of values that are asked for one by one, by position: `whole` is asked first and
    /// knows whole numbers only, most values of most tables; `value` knows all others. False, and there is no row, when
    /// it has none for a column.
    ///
    /// # Errors
    /// As [`RowBuffer::push_values`].
    pub fn push_row_of(
        &mut self,
        whole: impl Fn(usize) -> Option<i64>,
        value: impl Fn(usize) -> Option<Value>,
    ) -> Result<bool> {
        let start = self.data.len();
        let layout = &*self.layout;
        self.data.resize(start + layout.fixed_bytes(), 0);
        for (position, slot) in layout.slots().iter().enumerate() {
            if let Some(v) = whole(position)
                && slot.takes(v)
            {
                put(&mut self.data, start + slot.at, v.to_le_bytes());
                continue;
            }
            let encoded = match value(position) {
                Some(value) => encode_value(layout, position, &value, start, &mut self.data),
                None => {
                    self.data.truncate(start);
                    return Ok(false);
                }
            };
            if let Err(e) = encoded {
                self.data.truncate(start);
                return Err(e);
            }
        }
        self.close_row();
        Ok(true)
    }

    /// Appends a row of another buffer of the same schema version. Panics if the versions differ.
    pub fn push_row(&mut self, row: RowView<'_>) {
        assert!(self.layout.same_rows(row.layout()), "{:?} takes no rows of {:?}", self.layout, row.layout());
        self.data.extend_from_slice(row.as_bytes());
        self.close_row();
    }

    /// Appends all rows of another buffer of the same schema version. Panics if the versions differ.
    pub fn push_rows(&mut self, rows: &Self) {
        assert!(self.layout.same_rows(&rows.layout), "{:?} takes no rows of {:?}", self.layout, rows.layout);
        let start = self.data.len();
        self.data.extend_from_slice(&rows.data);
        self.ends.extend(rows.ends.iter().map(|end| start + end));
        self.len += rows.len;
    }

    /// Appends a row from bytes that came from a file: they are checked as a whole, so that damage is a Corrupt error
    /// and never a panic later.
    pub fn push_encoded(&mut self, bytes: &[u8]) -> Result<()> {
        self.layout.validate(bytes)?;
        self.data.extend_from_slice(bytes);
        self.close_row();
        Ok(())
    }

    /// Removes all rows; keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps the first `len` rows.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.data.truncate(self.start(len));
            self.ends.truncate(len);
            self.len = len;
        }
    }

    /// Bytes that [`RowBuffer::write_to`] appends.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        4 + self.len * 4 + self.data.len()
    }

    /// Appends all rows to a log record: u32 count, then for each row its u32 length and its bytes.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.written_bytes());
        out.extend_from_slice(&(self.len as u32).to_le_bytes());
        for i in 0..self.len {
            let row = self.row_bytes(i);
            out.extend_from_slice(&(row.len() as u32).to_le_bytes());
            out.extend_from_slice(row);
        }
    }

    /// Reads what [`RowBuffer::write_to`] wrote; `bytes` must hold nothing else. Damage is a Corrupt error.
    pub fn read_from(layout: Arc<RowLayout>, bytes: &[u8]) -> Result<Self> {
        let (buffer, used) = Self::read_prefix(layout, bytes)?;
        if used != bytes.len() {
            return Err(damaged(format_args!("{} bytes follow the last row", bytes.len() - used)));
        }
        Ok(buffer)
    }

    /// As [`RowBuffer::read_from`], for rows that stand in front of something else: also gives the bytes they took.
    pub fn read_prefix(layout: Arc<RowLayout>, bytes: &[u8]) -> Result<(Self, usize)> {
        let mut rest = bytes;
        let count = read_u32(&mut rest)?;
        let mut buffer = Self::new(layout);
        for _ in 0..count {
            let length = read_u32(&mut rest)? as usize;
            let Some((row, after)) = rest.split_at_checked(length) else {
                return Err(damaged(format_args!("a row of {length} bytes where {} are left", rest.len())));
            };
            buffer.push_encoded(row)?;
            rest = after;
        }
        Ok((buffer, bytes.len() - rest.len()))
    }
}

impl fmt::Debug for RowBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowBuffer({:?}, {} rows, {} bytes)", self.layout, self.len, self.data.len())
    }
}

fn read_u32(rest: &mut &[u8]) -> Result<u32> {
    let Some((head, after)) = rest.split_first_chunk() else {
        return Err(damaged("it ends early"));
    };
    *rest = after;
    Ok(u32::from_le_bytes(*head))
}

/// Appends one row to `out`; on an error `out` may hold a part of it.
fn encode_values(layout: &RowLayout, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
    if values.len() != layout.slots().len() {
        return Err(check::wrong_column_count(layout.schema(), values.len()));
    }
    let start = out.len();
    out.resize(start + layout.fixed_bytes(), 0);
    for (position, value) in values.iter().enumerate() {
        encode_value(layout, position, value, start, out)?;
    }
    Ok(())
}

/// Writes `value` into the row that begins at `start` and ends `out`.
#[inline]
fn encode_value(layout: &RowLayout, position: usize, value: &Value, start: usize, out: &mut Vec<u8>) -> Result<()> {
    let slot = &layout.slots()[position];
    let at = start + slot.at;
    // Most values of most tables.
    if let Value::Int(v) = value
        && slot.takes(*v)
    {
        put(out, at, v.to_le_bytes());
        return Ok(());
    }
    encode_other(layout, position, value, start, out)
}

/// Writes `bytes` at `at`, which lies in a row.
#[inline]
fn put<const W: usize>(out: &mut [u8], at: usize, bytes: [u8; W]) {
    let cell = out.get_mut(at..).and_then(|cells| cells.first_chunk_mut());
    debug_assert!(cell.is_some(), "a slot behind the end of its row");
    if let Some(cell) = cell {
        *cell = bytes;
    }
}

/// As [`encode_value`], for whatever takes more than a look.
fn encode_other(layout: &RowLayout, position: usize, value: &Value, start: usize, out: &mut Vec<u8>) -> Result<()> {
    let (schema, slot) = (layout.schema(), &layout.slots()[position]);
    let column = &schema.columns[position];
    let at = start + slot.at;
    let fixed = match value {
        Value::Null if slot.nullable => {
            out[start + position / 8] |= 1 << (position % 8);
            return Ok(());
        }
        Value::Decimal(v) if is_wide(slot.data_type) => {
            check::decimal(schema, column, *v)?;
            out[at..at + 16].copy_from_slice(&v.to_le_bytes());
            return Ok(());
        }
        Value::Uuid(v) => {
            check::uuid(schema, column)?;
            out[at..at + 16].copy_from_slice(&v.to_be_bytes());
            return Ok(());
        }
        Value::Text(_) | Value::Bytes(_) => {
            let bytes = check::variable(schema, column, value)?;
            let offset = out.len() - start;
            row_size(schema, offset + bytes.len())?;
            out.extend_from_slice(bytes);
            offset as u64 | (bytes.len() as u64) << 32
        }
        other => check::fixed(schema, column, other)?,
    };
    out[at..at + 8].copy_from_slice(&fixed.to_le_bytes());
    Ok(())
}

/// Refuses rows larger than [`limits::ROW_BYTES_MAX`].
pub(super) fn row_size(schema: &crate::schema::TableSchema, bytes: usize) -> Result<()> {
    if bytes > limits::ROW_BYTES_MAX {
        return Err(Error::invalid(
            sqlstate::LIMIT_EXCEEDED,
            format!("a row of relation \"{}\" has {bytes} bytes; at most {} fit", schema.name, limits::ROW_BYTES_MAX),
        ));
    }
    Ok(())
}
