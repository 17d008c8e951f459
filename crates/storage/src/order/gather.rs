//! Picks to arrays: one column at a time, so that only one column of the inputs is decoded at once.
//!
//! 1. What is picked of each part is read without the rows between: one array a part.
//! 2. Those arrays are copied together, rows that follow one another at once. Where few rows were changed, nearly all
//!    do; where updated rows came in the place of what they were, one array is all, and they are written over it.
//!
//! Invariant: rows of a segment are picked in the order in which they stand.

use arrow_array::{Array, ArrayRef, make_array, new_empty_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_select::interleave::interleave;
use mainstem_kernels::bitmap;

use crate::error::{Error, Result};
use crate::schema::Column;
use crate::segment::{Form, Kept, is_dense};

use super::part::{Part, PartRows};
use super::picks::{self, Picks};

/// Stretches of this many rows on average are copied as such, shorter ones row by row.
const STRETCH_ROWS_MIN: usize = 8;

/// Where the values of some picks come from.
#[derive(Debug)]
pub struct Gather {
    sources: Vec<Source>,
    stretches: Vec<Stretch>,
    /// Rows among those that are others', ascending.
    replaced: Vec<Replaced>,
    rows: usize,
}

/// A row that is read from another place than the stretch that it is in.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    /// Its number among the picks.
    row: usize,
    source: usize,
    /// Its row in the source's array.
    at: usize,
}

/// Picks that follow one another in the array of their source, too.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    source: usize,
    /// The first row in the source's array, and how many there are.
    first: usize,
    rows: usize,
}

/// What is picked of one part, in the order of the picks.
#[derive(Debug)]
struct Source {
    part: u32,
    /// How many rows were picked.
    count: usize,
    picked: Picked,
    /// Replacements in the rows picked so far.
    replaced: usize,
}

#[derive(Debug)]
enum Picked {
    /// Rows of a segment, ascending: their stretches, and once all are there how they are read.
    Segment(Vec<picks::Stretch>, Way),
    /// Offsets of rows of a delta.
    Delta(Vec<u32>),
}

/// How rows of a segment are read.
#[derive(Debug)]
enum Way {
    All,
    /// All of a range but some.
    Most(Kept),
    Some(Vec<u32>),
}

impl Gather {
    /// Prepares to read `picks` of `parts`.
    ///
    /// # Errors
    /// Internal when a pick names no part, or rows of a segment are not in their order.
    pub fn new(parts: &[Part], picks: &Picks) -> Result<Self> {
        let mut sources: Vec<Source> = Vec::new();
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut replaced: Vec<Replaced> = Vec::new();
        let (mut last, mut row) = ((u32::MAX, 0), 0);
        for picked in picks.stretches() {
            let part = part_of(parts, picked.part)?;
            if last.0 != picked.part {
                last = (picked.part, source_of(&mut sources, parts, *picked)?);
            }
            let (at, rows) = (last.1, picked.rows as usize);
            let Some(source) = sources.get_mut(at) else { continue };
            let first = source.add(*picked)?;
            let replacements;
            (replacements, source.replaced) = part.replacements.of(picked.offsets(), source.replaced);
            for replacement in replacements {
                let updated = picks::Stretch { part: replacement.part, first: replacement.row, rows: 1 };
                let source = source_of(&mut sources, parts, updated)?;
                let at = sources.get_mut(source).map_or(Ok(0), |source| source.add(updated))?;
                replaced.push(Replaced { row: row + (replacement.offset - picked.first) as usize, source, at });
            }
            row += rows;
            match stretches.last_mut() {
                Some(stretch) if stretch.source == at && stretch.first + stretch.rows == first => stretch.rows += rows,
                _ => stretches.push(Stretch { source: at, first, rows }),
            }
        }
        sources.iter_mut().for_each(Source::finish);
        Ok(Self { sources, stretches, replaced, rows: picks.len() })
    }

    /// How many of the picks are read from parts that `is_counted`.
    #[must_use]
    pub fn count(&self, is_counted: impl Fn(u32) -> bool) -> usize {
        let counted: Vec<bool> = self.sources.iter().map(|source| is_counted(source.part)).collect();
        let rows = |stretch: Stretch| if counted[stretch.source] { stretch.rows } else { 0 };
        self.cut_at_replaced().into_iter().map(rows).sum()
    }

    /// The index of the part that each of the picks is read from.
    pub fn parts_of_rows(&self) -> impl Iterator<Item = u32> + '_ {
        let rows = |stretch: Stretch| {
            let part = self.sources.get(stretch.source).map_or(u32::MAX, |source| source.part);
            std::iter::repeat_n(part, stretch.rows)
        };
        self.cut_at_replaced().into_iter().flat_map(rows)
    }

    /// The stretches, cut where rows are replaced.
    fn cut_at_replaced(&self) -> Vec<Stretch> {
        let mut cut = Vec::with_capacity(self.stretches.len() + 2 * self.replaced.len());
        let (mut replaced, mut begin) = (self.replaced.iter().peekable(), 0);
        for stretch in &self.stretches {
            let (source, end) = (stretch.source, begin + stretch.rows);
            let mut from = begin;
            let rest =
                |from: usize, to: usize| Stretch { source, first: stretch.first + from - begin, rows: to - from };
            while let Some(Replaced { row, source, at }) = replaced.next_if(|replaced| replaced.row < end) {
                if from < *row {
                    cut.push(rest(from, *row));
                }
                cut.push(Stretch { source: *source, first: *at, rows: 1 });
                from = row + 1;
            }
            if from < end {
                cut.push(rest(from, end));
            }
            begin = end;
        }
        cut
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
        if let ([only], true) = (arrays.as_slice(), self.stretches.len() == 1) {
            return Ok(only.clone());
        }
        let arrays = match self.numbers(arrays)? {
            Numbers::All(numbers) => return Ok(numbers),
            Numbers::None(arrays) => arrays,
        };
        let stretches = self.cut_at_replaced();
        if stretches.len() * STRETCH_ROWS_MIN <= self.rows {
            let arrays: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
            let mut copied = MutableArrayData::new(arrays.iter().collect(), false, self.rows);
            for stretch in &stretches {
                copied.try_extend(stretch.source, stretch.first, stretch.first + stretch.rows)?;
            }
            return Ok(make_array(copied.freeze()));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        let row = |stretch: &Stretch| {
            let source = stretch.source;
            (stretch.first..stretch.first + stretch.rows).map(move |row| (source, row))
        };
        let indices: Vec<(usize, usize)> = stretches.iter().flat_map(row).collect();
        Ok(interleave(&arrays, &indices)?)
    }

    /// Values of a fixed width, none of them NULL, stretch by stretch; others come back as they are.
    fn numbers(&self, arrays: Vec<ArrayRef>) -> Result<Numbers> {
        let Some(data_type) = arrays.first().map(|array| array.data_type().clone()) else {
            return Ok(Numbers::None(arrays));
        };
        let Some(width) = data_type.primitive_width().filter(|_| arrays.iter().all(|a| a.null_count() == 0)) else {
            return Ok(Numbers::None(arrays));
        };
        let bytes_of = |array: ArrayRef| {
            let rows = array.len();
            // A buffer that nobody else has can be written over.
            let data = array.to_data();
            drop(array);
            let offset = data.offset() * width;
            let bytes = data.into_parts().4.into_iter().next().unwrap_or_default();
            if offset == 0 && bytes.len() == rows * width {
                bytes
            } else {
                bytes.slice_with_length(offset, rows * width)
            }
        };
        let mut bytes: Vec<Buffer> = arrays.into_iter().map(bytes_of).collect();
        let beyond = || Error::internal("picks beyond the rows that were read");
        let mut copied = match self.stretches.as_slice() {
            [only] if only.first == 0 => {
                let bytes = bytes.get_mut(only.source).map(std::mem::take).ok_or_else(beyond)?;
                bytes.into_mutable().unwrap_or_else(|shared| {
                    let mut copied = MutableBuffer::with_capacity(shared.len());
                    copied.extend_from_slice(&shared);
                    copied
                })
            }
            stretches => {
                let mut copied = MutableBuffer::with_capacity(self.rows * width);
                for stretch in stretches {
                    let rows = stretch.first * width..(stretch.first + stretch.rows) * width;
                    let rows = bytes.get(stretch.source).and_then(|bytes| bytes.get(rows));
                    copied.extend_from_slice(rows.ok_or_else(beyond)?);
                }
                copied
            }
        };
        for Replaced { row, source, at } in &self.replaced {
            let value = bytes.get(*source).and_then(|bytes| bytes.get(at * width..(at + 1) * width));
            let place = copied.get_mut(row * width..(row + 1) * width);
            place.ok_or_else(beyond)?.copy_from_slice(value.ok_or_else(beyond)?);
        }
        let numbers = ArrayData::try_new(data_type, self.rows, None, 0, vec![copied.into()], Vec::new())?;
        Ok(Numbers::All(make_array(numbers)))
    }
}

/// What [`Gather::numbers`] makes.
enum Numbers {
    /// All values in one array.
    All(ArrayRef),
    /// The arrays were no numbers.
    None(Vec<ArrayRef>),
}

fn part_of(parts: &[Part], part: u32) -> Result<&Part> {
    let none = || Error::internal(format!("a pick names part {part}, which is not there"));
    parts.get(part as usize).ok_or_else(none)
}

/// The place of the source of `picked`'s part, which is new if none of its rows was picked before.
fn source_of(sources: &mut Vec<Source>, parts: &[Part], picked: picks::Stretch) -> Result<usize> {
    // Hardly more than streams, of which the last ones are those at hand.
    if let Some(known) = sources.iter().rposition(|source| source.part == picked.part) {
        return Ok(known);
    }
    let of_part = match &part_of(parts, picked.part)?.rows {
        PartRows::Segment(..) => Picked::Segment(Vec::new(), Way::All),
        PartRows::Delta(..) | PartRows::DeltaRows(..) => Picked::Delta(Vec::new()),
    };
    sources.push(Source { part: picked.part, count: 0, picked: of_part, replaced: 0 });
    Ok(sources.len() - 1)
}

impl Source {
    /// Counts rows in. Returns the place of the first in the array that will be read.
    fn add(&mut self, picked: picks::Stretch) -> Result<usize> {
        match &mut self.picked {
            Picked::Segment(stretches, _) => {
                if stretches.last().is_some_and(|last| picked.first < last.offsets().end) {
                    return Err(Error::internal("rows of a segment were not picked in their order"));
                }
                stretches.push(picked);
            }
            Picked::Delta(offsets) => offsets.extend(picked.offsets()),
        }
        let first = self.count;
        self.count += picked.rows as usize;
        Ok(first)
    }

    /// Decides how rows are read, now that all are there.
    fn finish(&mut self) {
        let Picked::Segment(stretches, way) = &mut self.picked else { return };
        let [first, .., last] = stretches.as_slice() else { return };
        let (first, rows) = (first.first, (last.offsets().end - first.first) as usize);
        *way = if self.count == rows {
            Way::All
        } else if is_dense(self.count, rows) {
            let mut words = vec![0; bitmap::words(rows)];
            for stretch in stretches.iter() {
                let from = (stretch.first - first) as usize;
                bitmap::set_range(&mut words, from..from + stretch.rows as usize);
            }
            Way::Most(Kept::counted(words, rows, self.count))
        } else {
            Way::Some(stretches.iter().flat_map(|stretch| stretch.offsets()).collect())
        };
    }

    /// The rows picked.
    fn read(&self, parts: &[Part], column: &Column) -> Result<ArrayRef> {
        let part = part_of(parts, self.part)?;
        match (&self.picked, &part.rows) {
            (Picked::Delta(offsets), PartRows::Delta(delta, _) | PartRows::DeltaRows(delta, _)) => {
                delta.gather(column, offsets)
            }
            (Picked::Segment(stretches, way), PartRows::Segment(segment, _)) => {
                let [first, ..] = stretches.as_slice() else { return Ok(new_empty_array(&column.data_type.arrow())) };
                let end = stretches.last().map_or(first.first, |last| last.offsets().end);
                let range = first.first..end;
                match way {
                    Way::All => segment.read(column, range),
                    Way::Most(kept) => {
                        match segment.read_selected(Form::Values, column, range.clone(), kept.words(), kept.count())? {
                            Some(values) => Ok(values),
                            None => kept.filter(&segment.read(column, range)?),
                        }
                    }
                    Way::Some(offsets) => segment.gather(column, offsets),
                }
            }
            _ => Err(Error::internal(format!("part {} is of another kind than what was picked of it", self.part))),
        }
    }
}
