//! A vector of a scan: rows of one piece that go through filters together and become a batch.
//!
//! Comes in: rows of a piece that are selected. Goes out: the columns of a batch.
//!
//! 1. Filters take the columns that they need ([`Vector::column`]) and drop rows ([`Vector::keep`]).
//! 2. What is left is read for the output. A column that a filter has read already is not read again.
//!
//! Invariant: all columns that are held have the rows that are left, in their order.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use mainstem_kernels::bitmap;

use super::piece::Piece;
use crate::error::Result;
use crate::ids::ColumnId;
use crate::schema::Column;
use crate::segment::{Form, Kept, is_dense};

/// See the module.
pub(super) struct Vector<'p> {
    piece: &'p Piece,
    rows: Rows,
    held: Vec<(ColumnId, ArrayRef)>,
}

/// Which rows of the container.
enum Rows {
    Whole(Range<u32>),
    /// Of a range that is read as a whole: those that are kept.
    Dense(Range<u32>, Kept),
    Sparse(Vec<u32>),
}

impl Rows {
    /// Those at `offsets`, ascending.
    fn at(offsets: Vec<u32>) -> Self {
        match dense(&offsets) {
            Some((range, kept)) => Self::Dense(range, kept),
            None => Self::Sparse(offsets),
        }
    }
}

impl<'p> Vector<'p> {
    /// All rows of `range`.
    pub(super) fn whole(piece: &'p Piece, range: Range<u32>) -> Self {
        Self { piece, rows: Rows::Whole(range), held: Vec::new() }
    }

    /// Those of `range` whose bits are set in `words`, `count` of them.
    pub(super) fn dense(piece: &'p Piece, range: Range<u32>, words: Vec<u64>, count: usize) -> Self {
        let kept = Kept::counted(words, range.len(), count);
        Self { piece, rows: Rows::Dense(range, kept), held: Vec::new() }
    }

    /// The rows at `offsets`, ascending.
    pub(super) fn of(piece: &'p Piece, offsets: Vec<u32>) -> Self {
        Self { piece, rows: Rows::at(offsets), held: Vec::new() }
    }

    /// How many rows are left.
    pub(super) fn len(&self) -> usize {
        match &self.rows {
            Rows::Whole(range) => range.len(),
            Rows::Dense(_, kept) => kept.count(),
            Rows::Sparse(offsets) => offsets.len(),
        }
    }

    /// The values of `column` in the rows that are left, held for whoever asks again.
    pub(super) fn column(&mut self, column: &Column) -> Result<ArrayRef> {
        if let Some(values) = self.held(column) {
            return Ok(values);
        }
        let values = self.read(Form::Values, column)?;
        self.held.push((column.id, values.clone()));
        Ok(values)
    }

    /// The values of `column` in the rows that are left, in `form`, for the output.
    pub(super) fn output(&self, form: Form, column: &Column) -> Result<ArrayRef> {
        match self.held(column) {
            Some(values) if form != Form::Codes => form.of(values, column.data_type),
            _ => self.read(form, column),
        }
    }

    fn held(&self, column: &Column) -> Option<ArrayRef> {
        self.held.iter().find(|(id, _)| *id == column.id).map(|(_, values)| values.clone())
    }

    fn read(&self, form: Form, column: &Column) -> Result<ArrayRef> {
        match &self.rows {
            Rows::Whole(range) => self.piece.read(form, column, range.clone()),
            Rows::Dense(range, kept) => {
                match self.piece.read_selected(form, column, range.clone(), kept.words(), kept.count())? {
                    Some(values) => Ok(values),
                    None => kept.filter(&self.piece.read(form, column, range.clone())?),
                }
            }
            Rows::Sparse(offsets) => self.piece.gather(form, column, offsets),
        }
    }

    /// Keeps those of the rows that `selected` has, and of the columns those that are `needed` later.
    pub(super) fn keep(&mut self, selected: &BooleanBuffer, needed: impl Fn(ColumnId) -> bool) -> Result<()> {
        let before = self.len();
        if selected.count_set_bits() == before {
            return Ok(());
        }
        let offsets: Vec<u32> = match &self.rows {
            Rows::Whole(range) => selected.set_indices_u32().map(|at| range.start + at).collect(),
            Rows::Dense(range, kept) => {
                let mut offsets = kept.offsets(range);
                let mut is_kept = selected.iter();
                offsets.retain(|_| is_kept.next().unwrap_or(false));
                offsets
            }
            Rows::Sparse(offsets) => selected.set_indices().filter_map(|at| offsets.get(at).copied()).collect(),
        };
        self.held.retain(|(id, _)| needed(*id));
        if !self.held.is_empty() {
            let mut words = bitmap::full(before);
            words.iter_mut().zip(selected.bit_chunks().iter_padded()).for_each(|(word, bits)| *word = bits);
            let kept = Kept::new(words, before);
            for (_, values) in &mut self.held {
                *values = kept.filter(values)?;
            }
        }
        self.rows = Rows::at(offsets);
        Ok(())
    }

    /// Leaves the first `count` rows.
    pub(super) fn truncate(&mut self, count: usize) {
        if count >= self.len() {
            return;
        }
        if let Rows::Whole(range) = &mut self.rows {
            range.end = range.start + count as u32;
        } else {
            let mut offsets = self.offsets();
            offsets.truncate(count);
            self.rows = Rows::at(offsets);
        }
        for (_, values) in &mut self.held {
            *values = values.slice(0, count);
        }
    }

    fn offsets(&self) -> Vec<u32> {
        match &self.rows {
            Rows::Whole(range) => range.clone().collect(),
            Rows::Dense(range, kept) => kept.offsets(range),
            Rows::Sparse(offsets) => offsets.clone(),
        }
    }

    /// References of the rows.
    pub(super) fn row_refs(&self) -> ArrayRef {
        match &self.rows {
            Rows::Whole(range) => self.piece.row_refs(range.clone()),
            Rows::Dense(..) | Rows::Sparse(_) => self.piece.row_refs(self.offsets().into_iter()),
        }
    }
}

/// The range that `offsets`, ascending, lie in, and which of its rows they are, where they are so many of them that
/// reading all and leaving some out costs less than going from one to the next.
fn dense(offsets: &[u32]) -> Option<(Range<u32>, Kept)> {
    let range = *offsets.first()?..offsets.last()?.checked_add(1)?;
    if !is_dense(offsets.len(), range.len()) {
        return None;
    }
    let mut words = vec![0; bitmap::words(range.len())];
    offsets.iter().for_each(|offset| bitmap::set(&mut words, (offset - range.start) as usize));
    let kept = Kept::counted(words, range.len(), offsets.len());
    Some((range, kept))
}
