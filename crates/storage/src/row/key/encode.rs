//! Keys of whole arrays, column by column.
//!
//! 1. The size of each key is fixed, or the sum of what each column takes.
//! 2. All keys are laid out at once; each column is written at the key's cursor, which moves on.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use crate::error::{Error, Result};
use crate::row::layout::is_wide;
use crate::row::{TypedValues, uuid_at};

use super::codec::{
    KeyCodec, NULL, Part, VALUE, flip_f32, flip_f64, flip_i16, flip_i32, flip_i64, flip_i128, text_width, write_text,
};
use super::keys::Keys;

impl KeyCodec {
    /// The keys of all rows. `arrays` are the key columns in key order, of Arrow types
    /// [`crate::schema::DataType::arrow`]; other types, or NULL in a column without NULLs, are an Internal error: a
    /// batch was checked before.
    pub fn encode_arrays(&self, arrays: &[ArrayRef]) -> Result<Keys> {
        let parts = self.parts();
        if arrays.len() != parts.len() || arrays.windows(2).any(|w| w[0].len() != w[1].len()) {
            return Err(Error::internal(format!("{} arrays for a key of {} columns", arrays.len(), parts.len())));
        }
        let rows = arrays.first().map_or(0, |a| a.len());
        let columns = parts.iter().zip(arrays).map(|(p, a)| Column::new(p, a)).collect::<Result<Vec<_>>>()?;
        if let [Column { part, values: TypedValues::Int64(values), .. }] = columns.as_slice()
            && part.is_plain_bigint
        {
            // Memory that is written once, without zeros first.
            let keys: Vec<[u8; 8]> = values.iter().map(|value| flip_i64(*value)).collect();
            return Ok(Keys::fixed(keys.into_flattened(), size_of::<i64>(), rows));
        }
        let mut target = match self.fixed_width() {
            Some(width) => Target { data: vec![0; rows * width], cursors: Cursors::Even { at: 0, width } },
            None => {
                let mut ends = vec![0; rows];
                columns.iter().for_each(|c| c.add_widths(&mut ends));
                let mut total = 0;
                let starts = ends.iter().map(|width| {
                    total += width;
                    total - width
                });
                let starts: Vec<usize> = starts.collect();
                Target { data: vec![0; total], cursors: Cursors::Each(starts) }
            }
        };
        for column in &columns {
            column.write(&mut target);
        }
        Ok(match target.cursors {
            Cursors::Even { width, .. } => Keys::fixed(target.data, width, rows),
            // Every cursor now stands at the end of its key.
            Cursors::Each(ends) => Keys::variable(target.data, ends),
        })
    }
}

/// Where the next column goes, for each key.
enum Cursors {
    /// `at` bytes into each key of `width` bytes.
    Even { at: usize, width: usize },
    /// At this byte of all keys.
    Each(Vec<usize>),
}

struct Target {
    data: Vec<u8>,
    cursors: Cursors,
}

impl Target {
    /// Writes `W` bytes, and `marker` bytes in front, at each cursor; NULLs get their marker and zeros.
    fn put<const W: usize>(&mut self, rows: usize, marker: usize, column: &Column<'_>, f: impl Fn(usize) -> [u8; W]) {
        if let Cursors::Even { at: at @ 0, width } = &mut self.cursors
            && (*width, marker) == (W, 0)
        {
            // The whole of each key, and none is NULL.
            self.data.as_chunks_mut::<W>().0.iter_mut().zip(0..rows).for_each(|(cell, row)| *cell = f(row));
            *at = W;
            return;
        }
        let mut put = |row: usize, at: usize| {
            let cell = &mut self.data[at..at + marker + W];
            if column.is_null(row) {
                cell[0] = NULL;
            } else {
                cell[marker..].copy_from_slice(&f(row));
            }
        };
        match &mut self.cursors {
            Cursors::Even { at, width } => {
                (0..rows).for_each(|row| put(row, row * *width + *at));
                *at += marker + W;
            }
            Cursors::Each(cursors) => {
                for (row, cursor) in cursors.iter_mut().enumerate() {
                    put(row, *cursor);
                    *cursor += marker + W;
                }
            }
        }
    }

    /// Writes a text at each cursor.
    fn put_text<'a>(&mut self, marker: usize, column: &Column<'_>, text: impl Fn(usize) -> &'a [u8]) {
        // Even cursors never meet a text: its width is not fixed.
        let Cursors::Each(cursors) = &mut self.cursors else { return };
        for (row, cursor) in cursors.iter_mut().enumerate() {
            if column.is_null(row) {
                self.data[*cursor] = NULL;
                *cursor += 1;
                continue;
            }
            let text = text(row);
            let end = *cursor + marker + text_width(text);
            write_text(text, &mut self.data[*cursor + marker..end]);
            *cursor = end;
        }
    }
}

/// One key column of the arrays.
struct Column<'a> {
    part: &'a Part,
    values: TypedValues<'a>,
    nulls: Option<&'a NullBuffer>,
    rows: usize,
}

const _: () = assert!(VALUE == 0, "zeroed keys already carry the marker of a value");

impl<'a> Column<'a> {
    fn new(part: &'a Part, array: &'a ArrayRef) -> Result<Self> {
        let nulls = array.nulls().filter(|n| n.null_count() > 0);
        if nulls.is_some() && !part.nullable {
            return Err(Error::internal("NULL in a key column that is NOT NULL"));
        }
        let values = TypedValues::of(array.as_ref(), part.data_type)?;
        let column = Self { part, values, nulls, rows: array.len() };
        if let TypedValues::Decimal(decimals) = values
            && !is_wide(part.data_type)
            && (0..decimals.len()).any(|row| i64::try_from(decimals[row]).is_err() && !column.is_null(row))
        {
            return Err(Error::internal("a decimal of an unchecked batch exceeds its precision"));
        }
        Ok(column)
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|n| n.is_null(row))
    }

    /// Adds what each row takes to `widths`.
    fn add_widths(&self, widths: &mut [usize]) {
        let marker = usize::from(self.part.nullable);
        match (self.part.value_width(), self.values) {
            (Some(width), _) => widths.iter_mut().for_each(|w| *w += marker + width),
            (None, TypedValues::Text(v)) => self.add_text_widths(widths, |row| v.value(row).as_bytes()),
            (None, TypedValues::Bytes(v)) => self.add_text_widths(widths, |row| v.value(row)),
            (None, _) => {}
        }
    }

    fn add_text_widths<'v>(&self, widths: &mut [usize], text: impl Fn(usize) -> &'v [u8]) {
        let marker = usize::from(self.part.nullable);
        for (row, width) in widths.iter_mut().enumerate() {
            *width += if self.is_null(row) { marker } else { marker + text_width(text(row)) };
        }
    }

    fn write(&self, target: &mut Target) {
        let (rows, marker) = (self.rows, usize::from(self.part.nullable));
        match self.values {
            TypedValues::Boolean(v) => target.put(rows, marker, self, |row| [u8::from(v.value(row))]),
            TypedValues::Int16(v) => target.put(rows, marker, self, |row| flip_i16(v[row])),
            TypedValues::Int32(v) => target.put(rows, marker, self, |row| flip_i32(v[row])),
            TypedValues::Int64(v) => target.put(rows, marker, self, |row| flip_i64(v[row])),
            TypedValues::Real(v) => target.put(rows, marker, self, |row| flip_f32(v[row])),
            TypedValues::Double(v) => target.put(rows, marker, self, |row| flip_f64(v[row])),
            TypedValues::Decimal(v) if is_wide(self.part.data_type) => {
                target.put(rows, marker, self, |row| flip_i128(v[row]));
            }
            TypedValues::Decimal(v) => target.put(rows, marker, self, |row| flip_i64(v[row] as i64)),
            TypedValues::Text(v) => target.put_text(marker, self, |row| v.value(row).as_bytes()),
            TypedValues::Bytes(v) => target.put_text(marker, self, |row| v.value(row)),
            TypedValues::Uuid(v) => target.put(rows, marker, self, |row| uuid_at(v, row).to_be_bytes()),
        }
    }
}
