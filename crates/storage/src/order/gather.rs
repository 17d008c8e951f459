//! Picks to arrays: one column at a time, so that only one column of the inputs is decoded at once.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_select::interleave::interleave;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::schema::Column;

use super::cursor::Pick;
use super::part::{Part, PartRows};

/// Where the values of some picks come from.
#[derive(Debug)]
pub struct Gather {
    sources: Vec<Source>,
    /// For each pick, its source and its row in the source's array.
    indices: Vec<(usize, usize)>,
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
    pub fn new(parts: &[Part], picks: &[Pick]) -> Result<Self> {
        let mut sources: Vec<Source> = Vec::new();
        let mut by_part: HashMap<u32, usize> = HashMap::new();
        let mut last = (u32::MAX, 0);
        let mut indices = Vec::with_capacity(picks.len());
        for pick in picks {
            if last.0 != pick.part {
                let source = *by_part.entry(pick.part).or_insert(sources.len());
                if source == sources.len() {
                    sources.push(Source { part: pick.part, rows: first_rows(parts, *pick)? });
                }
                last = (pick.part, source);
            }
            let row = sources.get_mut(last.1).map_or(0, |source| source.add(pick.offset));
            indices.push((last.1, row));
        }
        // Segment rows were numbered by offset; now that the first is known, they count from there.
        for (source, row) in &mut indices {
            if let Some(Source { rows: Rows::Range(range), .. }) = sources.get(*source) {
                *row -= range.start as usize;
            }
        }
        Ok(Self { sources, indices })
    }

    /// The values of `column`, in the order of the picks.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn column(&self, parts: &[Part], column: &Column) -> Result<ArrayRef> {
        if self.indices.is_empty() {
            return Ok(new_empty_array(&column.data_type.arrow()));
        }
        let arrays = self.sources.iter().map(|source| source.read(parts, column)).collect::<Result<Vec<_>>>()?;
        if let [only] = arrays.as_slice()
            && only.len() == self.indices.len()
            && self.indices.iter().enumerate().all(|(at, (_, row))| at == *row)
        {
            return Ok(only.clone());
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        Ok(interleave(&arrays, &self.indices)?)
    }
}

fn no_part(part: u32) -> Error {
    Error::internal(format!("a pick names part {part}, which is not there"))
}

fn first_rows(parts: &[Part], pick: Pick) -> Result<Rows> {
    Ok(match &parts.get(pick.part as usize).ok_or_else(|| no_part(pick.part))?.rows {
        PartRows::Segment(..) => Rows::Range(pick.offset..pick.offset),
        PartRows::Delta(..) => Rows::Offsets(Vec::new()),
    })
}

impl Source {
    /// Counts row `offset` in. Returns its place: the offset itself for a segment.
    fn add(&mut self, offset: u32) -> usize {
        match &mut self.rows {
            Rows::Range(range) => {
                range.start = range.start.min(offset);
                range.end = range.end.max(offset + 1);
                offset as usize
            }
            Rows::Offsets(offsets) => {
                offsets.push(offset);
                offsets.len() - 1
            }
        }
    }

    fn read(&self, parts: &[Part], column: &Column) -> Result<ArrayRef> {
        let part = parts.get(self.part as usize).ok_or_else(|| no_part(self.part))?;
        match (&self.rows, &part.rows) {
            (Rows::Offsets(offsets), PartRows::Delta(delta, _)) => delta.gather(column, offsets),
            (Rows::Range(range), _) => part.read(column, range.clone()),
            (Rows::Offsets(_), PartRows::Segment(..)) => Err(no_part(self.part)),
        }
    }
}
