//! The join of rows of one side with all those of the other side that may have their keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use arrow::compute::{filter, filter_record_batch, prep_null_mask_filter, take};
use arrow::datatypes::SchemaRef;
use datafusion::common::{JoinSide, JoinType, Result, internal_datafusion_err};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use mainstem_storage::limits::BATCH_ROWS;

use super::groups::{Groups, NOBODY, PairCursor, Pairs, Seekers, found};

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It comes with each of its partners.
    Inner,
    /// It comes with each of its partners, or with NULLs where it has none.
    Outer,
    /// It comes if it has a partner.
    Semi,
    /// It comes if it has none.
    Anti,
}

/// What is joined, and what comes of it.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) kind: Kind,
    /// The side whose rows give the order. All of its rows come in an outer, semi or anti join.
    pub(super) first: JoinSide,
    /// What else holds for partners; never of an outer join.
    pub(super) filter: Option<JoinFilter>,
    /// Where the columns of the output come from.
    pub(super) columns: Vec<ColumnIndex>,
    pub(super) schema: SchemaRef,
}

impl Terms {
    /// The kind and the first side of joins of type `join_type`; of an inner join that is `larger`. None for others.
    pub(super) fn of(join_type: JoinType, larger: JoinSide) -> Option<(Kind, JoinSide)> {
        Some(match join_type {
            JoinType::Inner => (Kind::Inner, larger),
            JoinType::Left => (Kind::Outer, JoinSide::Left),
            JoinType::Right => (Kind::Outer, JoinSide::Right),
            JoinType::LeftSemi => (Kind::Semi, JoinSide::Left),
            JoinType::RightSemi => (Kind::Semi, JoinSide::Right),
            JoinType::LeftAnti => (Kind::Anti, JoinSide::Left),
            JoinType::RightAnti => (Kind::Anti, JoinSide::Right),
            JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return None,
        })
    }

    /// Whether it is enough to know the keys of the other side.
    pub(super) fn asks_for_keys_alone(&self) -> bool {
        self.filter.is_none() && matches!(self.kind, Kind::Semi | Kind::Anti)
    }
}

/// Rows with their keys.
#[derive(Clone, Debug)]
pub(super) struct Keyed {
    pub(super) batch: RecordBatch,
    pub(super) keys: ScalarBuffer<i64>,
}

impl Keyed {
    pub(super) fn slice(&self, from: usize, len: usize) -> Self {
        Self { batch: self.batch.slice(from, len), keys: self.keys.slice(from, len) }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Window {
    rows: RecordBatch,
    others: RecordBatch,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Which rows come.
    Found(BooleanBuffer),
    Sought(Groups),
    /// Each row has one partner.
    Single(Vec<u32>),
    Pairs(PairCursor),
    Done,
}

impl Window {
    /// All partners of `rows` are among `others`.
    pub(super) fn new(rows: Keyed, others: Keyed, terms: &Terms) -> Self {
        let state = if terms.asks_for_keys_alone() {
            State::Found(found(&rows.keys, &others.keys))
        } else {
            let groups = Groups::new(&rows.keys, &others.keys);
            match terms.kind {
                Kind::Semi | Kind::Anti => State::Sought(groups),
                Kind::Inner | Kind::Outer if groups.are_single() => State::Single(groups.starts),
                Kind::Inner => State::Pairs(PairCursor::new(groups, false)),
                Kind::Outer => State::Pairs(PairCursor::new(groups, true)),
            }
        };
        Self { rows: rows.batch, others: others.batch, state }
    }

    /// The next rows; None at the end.
    pub(super) fn next(&mut self, terms: &Terms) -> Result<Option<RecordBatch>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => Ok(None),
            State::Found(found) => self.those_of(found, terms).map(Some),
            State::Sought(groups) => self.those_of(self.sought(groups, terms)?, terms).map(Some),
            State::Single(others) => {
                let pairs = Picked { rows: None, others: UInt32Array::from(others) };
                self.joined(pairs, terms).map(Some)
            }
            State::Pairs(mut cursor) => {
                let pairs = cursor.next(BATCH_ROWS);
                if pairs.rows.is_empty() {
                    return Ok(None);
                }
                self.state = State::Pairs(cursor);
                self.joined(Picked::of(pairs), terms).map(Some)
            }
        }
    }

    /// Which rows have a partner that the filter holds for.
    fn sought(&self, groups: Groups, terms: &Terms) -> Result<BooleanBuffer> {
        let mut is_found = vec![false; groups.starts.len()];
        let mut seekers = Seekers::new(groups);
        loop {
            let pairs = seekers.next(BATCH_ROWS);
            if pairs.rows.is_empty() {
                return Ok(BooleanBuffer::from(is_found));
            }
            let pairs = Picked::of(pairs);
            let holds = self.holds(&pairs, terms)?;
            let rows = pairs.rows.iter().flat_map(|rows| rows.values().iter());
            for (row, holds) in rows.zip(&holds) {
                if let Some(is_found) = is_found.get_mut(*row as usize) {
                    *is_found |= holds;
                }
            }
            seekers.drop_found(|row| is_found.get(row as usize).copied().unwrap_or_default());
        }
    }

    /// The rows that `found` says so of, or of an anti join the others.
    fn those_of(&self, found: BooleanBuffer, terms: &Terms) -> Result<RecordBatch> {
        let kept = if terms.kind == Kind::Anti { !&found } else { found };
        let columns = terms.columns.iter().map(|column| column_of(&self.rows, column.index).cloned());
        let rows = batch(&terms.schema, columns.collect::<Result<_>>()?, self.rows.num_rows())?;
        match kept.count_set_bits() {
            all if all == rows.num_rows() => Ok(rows),
            0 => Ok(rows.slice(0, 0)),
            _ => Ok(filter_record_batch(&rows, &BooleanArray::new(kept, None))?),
        }
    }

    /// The rows of the pairs that the filter holds for.
    fn joined(&self, mut pairs: Picked, terms: &Terms) -> Result<RecordBatch> {
        if terms.filter.is_some() {
            let holds = self.holds(&pairs, terms)?;
            if holds.count_set_bits() < holds.len() {
                pairs = pairs.those(BooleanArray::new(holds, None))?;
            }
        }
        let columns = terms.columns.iter().map(|column| self.column(column, &pairs, terms));
        batch(&terms.schema, columns.collect::<Result<_>>()?, pairs.others.len())
    }

    /// For which pairs the filter holds.
    fn holds(&self, pairs: &Picked, terms: &Terms) -> Result<BooleanBuffer> {
        let Some(filter) = &terms.filter else { return Ok(BooleanBuffer::new_set(pairs.others.len())) };
        let columns = filter.column_indices().iter().map(|column| self.column(column, pairs, terms));
        let rows = batch(filter.schema(), columns.collect::<Result<_>>()?, pairs.others.len())?;
        let holds = filter.expression().evaluate(&rows)?.into_array(rows.num_rows())?;
        let holds = holds.as_any().downcast_ref::<BooleanArray>();
        let holds = holds.ok_or_else(|| internal_datafusion_err!("a condition of a join is not boolean"))?;
        Ok(if holds.null_count() == 0 { holds.values().clone() } else { prep_null_mask_filter(holds).values().clone() })
    }

    /// A column of either side, for the pairs.
    fn column(&self, column: &ColumnIndex, pairs: &Picked, terms: &Terms) -> Result<ArrayRef> {
        if column.side == terms.first {
            let values = column_of(&self.rows, column.index)?;
            return Ok(match &pairs.rows {
                None => values.clone(),
                Some(rows) => take(values, rows, None)?,
            });
        }
        let values = column_of(&self.others, column.index)?;
        if values.is_empty() {
            return Ok(new_null_array(values.data_type(), pairs.others.len()));
        }
        Ok(match pairs.stretch() {
            Some(from) => values.slice(from, pairs.others.len()),
            None => take(values, &pairs.others, None)?,
        })
    }
}

/// Pairs as arrays.
#[derive(Debug)]
struct Picked {
    /// None: each row once.
    rows: Option<UInt32Array>,
    others: UInt32Array,
}

impl Picked {
    fn of(pairs: Pairs) -> Self {
        let others = if pairs.others.contains(&NOBODY) {
            pairs.others.into_iter().map(|other| Some(other).filter(|other| *other != NOBODY)).collect()
        } else {
            UInt32Array::from(pairs.others)
        };
        Self { rows: Some(pairs.rows.into()), others }
    }

    fn those(self, holds: BooleanArray) -> Result<Self> {
        let rows = match self.rows {
            Some(rows) => rows,
            None => (0..self.others.len() as u32).collect(),
        };
        let numbers =
            |array: &UInt32Array| -> Result<UInt32Array> { Ok(UInt32Array::from(filter(array, &holds)?.to_data())) };
        Ok(Self { rows: Some(numbers(&rows)?), others: numbers(&self.others)? })
    }

    /// Where the rows of the other side begin, if they follow one another.
    fn stretch(&self) -> Option<usize> {
        let others = self.others.values();
        let first = *others.first()?;
        let follow = self.others.null_count() == 0 && others.iter().zip(first..).all(|(other, next)| *other == next);
        follow.then_some(first as usize)
    }
}

fn column_of(batch: &RecordBatch, at: usize) -> Result<&ArrayRef> {
    batch.columns().get(at).ok_or_else(|| internal_datafusion_err!("a join lacks column {at}"))
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
