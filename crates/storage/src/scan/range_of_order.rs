//! A range of the leading column of a sort key: which rows of a segment, and of a delta, it has.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::ColumnId;
use crate::order::{KeyReader, Part, PartRows};
use crate::predicate::{CompareOp, Predicate, Prune};
use crate::row::Value;
use crate::schema::TableSchema;
use crate::segment::Segment;

/// Values of the leading column at or above one bound and below the other.
#[derive(Debug)]
pub(super) struct Between {
    reader: KeyReader,
    /// The same bounds for zone maps.
    bounds: Vec<Predicate>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Between {
    /// Values from `from` on that are below `to`. Internal where the column is no integer, or may be NULL.
    pub(super) fn new(schema: &TableSchema, from: Option<i64>, to: Option<i64>) -> Result<Self> {
        let leading = schema.sort_key.first().and_then(|id| schema.column(*id));
        let leading = leading.filter(|column| column.data_type.is_whole() && !column.nullable);
        let reader = leading.and_then(|_| KeyReader::of_leading_column(schema));
        let (Some(leading), Some(reader)) = (leading, reader) else {
            return Err(Error::internal("a range of a sort key that no integer leads"));
        };
        let (from, to) = (from.map(Value::Int), to.map(Value::Int));
        let bound = |op, bound: &Option<Value>| compare(leading.id, op, bound.clone()?);
        let bounds = bound(CompareOp::GtEq, &from).into_iter().chain(bound(CompareOp::Lt, &to)).collect();
        let key = |bound: Option<Value>| bound.map(|value| encoded(&reader, value)).transpose();
        let (from, to) = (key(from)?, key(to)?);
        Ok(Self { reader, bounds, from, to })
    }

    /// Reads the keys that the range is one of.
    pub(super) fn reader(&self) -> &KeyReader {
        &self.reader
    }

    /// Those of `rows` of `segment` that are in the range. Reads keys only where a bound is within the segment.
    pub(super) fn of_segment(&self, segment: &Arc<Segment>, rows: &Range<u32>) -> Result<Range<u32>> {
        match segment.prune(&self.bounds) {
            Prune::None => Ok(rows.end..rows.end),
            Prune::All => Ok(rows.clone()),
            Prune::Some => {
                let places = self.places(&Part::segment(segment.clone(), rows.clone()))?;
                Ok(rows.start + places.start..rows.start + places.end)
            }
        }
    }

    /// Those rows of `delta` that are in the range, in their order; `None` if there are none.
    pub(super) fn of_delta(&self, delta: &Part) -> Result<Option<Part>> {
        let PartRows::Delta(generation, rows) = &delta.rows else { return Ok(Some(delta.clone())) };
        let places = self.places(delta)?;
        let sorted = generation.sorted_offsets(*rows)?;
        let within = sorted.get(places.start as usize..places.end as usize).filter(|within| !within.is_empty());
        Ok(within.map(|within| Part::delta_rows(generation.clone(), within.into())))
    }

    fn places(&self, part: &Part) -> Result<Range<u32>> {
        self.reader.places_between(part, self.from.as_deref(), self.to.as_deref())
    }
}

fn compare(column: ColumnId, op: CompareOp, value: Value) -> Option<Predicate> {
    Some(Predicate::Compare { column, op, value })
}

/// The key of one value of the reader's column.
fn encoded(reader: &KeyReader, value: Value) -> Result<Vec<u8>> {
    let codec = reader.codec().ok_or_else(|| Error::internal("keys without columns"))?;
    let mut key = Vec::new();
    codec.encode_prefix(&[value], &mut key)?;
    Ok(key)
}
