//! Picks to arrays: one column at a time, so that only one column of the inputs is decoded at once. Rows that follow
//! one another are copied together: where few rows were changed, nearly all do.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, make_array, new_empty_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_select::interleave::interleave;

use crate::error::{Error, Result};
use crate::schema::Column;

use super::part::{Part, PartRows};
use super::picks::{self, Picks};

/// Stretches of this many rows on average are copied as such, shorter ones row by row.
const STRETCH_ROWS_MIN: usize = 8;

/// Where the values of some picks come from.
#[derive(Debug)]
pub struct Gather {
    sources: Vec<Source>,
    stretches: Vec<Stretch>,
    rows: usize,
}

/// Picks that follow one another in their source, too.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    source: usize,
    /// The first row in the source's array, and how many there are.
    first: usize,
    rows: usize,
}

#[derive(Debug)]
struct Source {
    part: u32,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    /// Segment rows, from the least to the greatest picked.
    Range(Range<u32>),
    /// Delta rows in the order of the picks.
    Offsets(Vec<u32>),
}

impl Gather {
    /// Prepares to read `picks` of `parts`.
    ///
    /// # Errors
    /// Internal when a pick names no part.
    pub fn new(parts: &[Part], picks: &Picks) -> Result<Self> {
        let mut sources: Vec<Source> = Vec::new();
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut last = (u32::MAX, 0);
        for picked in picks.stretches() {
            if last.0 != picked.part {
                // Hardly more than streams, of which the last ones are those at hand.
                let known = sources.iter().rposition(|source| source.part == picked.part);
                if known.is_none() {
                    sources.push(Source { part: picked.part, rows: first_rows(parts, *picked)? });
                }
                last = (picked.part, known.unwrap_or(sources.len() - 1));
            }
            let (source, rows) = (last.1, picked.rows as usize);
            let first = sources.get_mut(source).map_or(0, |source| source.add(*picked));
            match stretches.last_mut() {
                Some(stretch) if stretch.source == source && stretch.first + stretch.rows == first => {
                    stretch.rows += rows;
                }
                _ => stretches.push(Stretch { source, first, rows }),
            }
        }
        // Segment rows were numbered by offset; now that the first is known, they count from there.
        for stretch in &mut stretches {
            if let Some(Source { rows: Rows::Range(range), .. }) = sources.get(stretch.source) {
                stretch.first -= range.start as usize;
            }
        }
        Ok(Self { sources, stretches, rows: picks.len() })
    }

    /// How many of the picks are of parts that `is_counted`.
    #[must_use]
    pub fn count(&self, is_counted: impl Fn(u32) -> bool) -> usize {
        let counted: Vec<bool> = self.sources.iter().map(|source| is_counted(source.part)).collect();
        let of = |stretch: &Stretch| if counted[stretch.source] { stretch.rows } else { 0 };
        self.stretches.iter().map(of).sum()
    }

    /// The values of `column`, in the order of the picks.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn column(&self, parts: &[Part], column: &Column) -> Result<ArrayRef> {
        if self.rows == 0 {
            return Ok(new_empty_array(&column.data_type.arrow()));
        }
        let arrays = self.sources.iter().map(|source| source.read(parts, column)).collect::<Result<Vec<_>>>()?;
        if let ([only], [stretch]) = (arrays.as_slice(), self.stretches.as_slice()) {
            return Ok(only.slice(stretch.first, stretch.rows));
        }
        if let Some(numbers) = self.numbers(&arrays)? {
            return Ok(numbers);
        }
        if self.stretches.len() * STRETCH_ROWS_MIN <= self.rows {
            let arrays: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
            let mut copied = MutableArrayData::new(arrays.iter().collect(), false, self.rows);
            for stretch in &self.stretches {
                copied.try_extend(stretch.source, stretch.first, stretch.first + stretch.rows)?;
            }
            return Ok(make_array(copied.freeze()));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        let row = |stretch: &Stretch| {
            let source = stretch.source;
            (stretch.first..stretch.first + stretch.rows).map(move |row| (source, row))
        };
        let indices: Vec<(usize, usize)> = self.stretches.iter().flat_map(row).collect();
        Ok(interleave(&arrays, &indices)?)
    }

    /// Values of a fixed width, none of them NULL, stretch by stretch; None of others.
    fn numbers(&self, arrays: &[ArrayRef]) -> Result<Option<ArrayRef>> {
        let Some(data_type) = arrays.first().map(|array| array.data_type()) else { return Ok(None) };
        let Some(width) = data_type.primitive_width().filter(|_| arrays.iter().all(|a| a.null_count() == 0)) else {
            return Ok(None);
        };
        let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
        let bytes_of = |data: &ArrayData| data.buffers().first().map(|bytes| bytes.slice(data.offset() * width));
        let bytes: Vec<Buffer> = data.iter().filter_map(bytes_of).collect();
        let mut copied = MutableBuffer::with_capacity(self.rows * width);
        for stretch in &self.stretches {
            let rows = stretch.first * width..(stretch.first + stretch.rows) * width;
            let rows = bytes.get(stretch.source).and_then(|bytes| bytes.get(rows));
            copied.extend_from_slice(rows.ok_or_else(|| Error::internal("picks beyond the rows that were read"))?);
        }
        let numbers = ArrayData::try_new(data_type.clone(), self.rows, None, 0, vec![copied.into()], Vec::new())?;
        Ok(Some(make_array(numbers)))
    }
}

fn no_part(part: u32) -> Error {
    Error::internal(format!("a pick names part {part}, which is not there"))
}

fn first_rows(parts: &[Part], picked: picks::Stretch) -> Result<Rows> {
    Ok(match &parts.get(picked.part as usize).ok_or_else(|| no_part(picked.part))?.rows {
        PartRows::Segment(..) => Rows::Range(picked.first..picked.first),
        PartRows::Delta(..) | PartRows::DeltaRows(..) => Rows::Offsets(Vec::new()),
    })
}

impl Source {
    /// Counts rows in. Returns the place of the first: its offset for a segment.
    fn add(&mut self, picked: picks::Stretch) -> usize {
        match &mut self.rows {
            Rows::Range(range) => {
                range.start = range.start.min(picked.first);
                range.end = range.end.max(picked.offsets().end);
                picked.first as usize
            }
            Rows::Offsets(offsets) => {
                let first = offsets.len();
                offsets.extend(picked.offsets());
                first
            }
        }
    }

    fn read(&self, parts: &[Part], column: &Column) -> Result<ArrayRef> {
        let part = parts.get(self.part as usize).ok_or_else(|| no_part(self.part))?;
        match (&self.rows, &part.rows) {
            (Rows::Offsets(offsets), PartRows::Delta(delta, _) | PartRows::DeltaRows(delta, _)) => {
                delta.gather(column, offsets)
            }
            (Rows::Range(range), _) => part.read(column, range.clone()),
            (Rows::Offsets(_), PartRows::Segment(..)) => Err(no_part(self.part)),
        }
    }
}
