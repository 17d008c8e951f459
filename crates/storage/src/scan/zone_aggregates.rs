//! COUNT, MIN, MAX and SUM from the metadata of segments (contract 5) or on their codes, without rows.
//!
//! Comes in: a view, and a request that names [`ZoneAggregate`]s. Goes out: what the segments say of which metadata
//! tells all of them exactly ([`ZoneAggregates`]), and counts and sums of the others and of deltas once their values
//! are added up ([`AggregateScan`]). A scan of the same request leaves all of these rows out.
//!
//! 1. The candidates are those of a scan: what the sort key leaves of each run.
//! 2. Metadata answers for a segment if zone maps say that all of its rows satisfy the predicates. Counts hold for the
//!    rows of its run less the deleted ones. Bounds and sums, and NULLs among the counted, are known of whole segments
//!    without deleted rows only. A shortened bound is none.
//! 3. All other rows are added up, if only counts and sums of few digits are asked for ([`can_add_up`]).
//!
//! Invariant: what answers for a segment follows from the view and the request alone, which never change: whoever asks
//! here and whoever scans agree, however often and in whatever order they do. It does not own: what becomes of the
//! values (the layer of SQL).

mod on_codes;

use std::slice::from_ref;

use super::{ScanRequest, column, key_prefix, resolve};
use crate::error::Result;
use crate::ids::ColumnId;
use crate::main_store::RunSegment;
use crate::predicate::{Predicate, Prune};
use crate::row::Value;
use crate::schema::Column;
use crate::version::TableView;

pub use on_codes::AggregateScan;

/// What metadata may tell of a column of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAggregate {
    /// How many values are not NULL.
    Count,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum of integers or decimals.
    Sum,
}

/// What a segment says of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneValue {
    /// Values that are not NULL.
    pub count: u64,
    /// The bound, NULL of no values; or the sum as an unscaled decimal. NULL where values are only counted.
    pub value: Value,
}

/// What metadata, or values that were added up, say of rows that a scan of the same request leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZoneAggregates {
    /// How many they are.
    pub segments: usize,
    /// Their live rows.
    pub rows: u64,
    /// For each aggregate of the request what each of them says.
    pub values: Vec<Vec<ZoneValue>>,
}

impl TableView {
    /// The aggregates of `request`, over the segments that metadata answers for; without aggregates there are none.
    /// What else a scan of it leaves out is added up by [`TableView::aggregate_scan`].
    ///
    /// # Errors
    /// Internal when the request names a column the table does not have.
    pub fn zone_aggregates(&self, request: &ScanRequest) -> Result<ZoneAggregates> {
        let Some(asked) = columns_asked(self, request)? else { return Ok(ZoneAggregates::default()) };
        let (_, predicates, _) = resolve(self, request)?;
        let prefix = key_prefix(self.schema(), &request.predicates);
        let mut all = ZoneAggregates { values: vec![Vec::new(); asked.len()], ..ZoneAggregates::default() };
        let own_runs = self.own().into_iter().flat_map(|own| own.runs());
        for run in self.version().runs.iter().chain(own_runs) {
            let parts = if prefix.is_empty() { run.segments() } else { run.find_prefix(&prefix) };
            for part in parts {
                let Answer::Metadata(rows, values) = answer(self, part, &predicates, &asked) else { continue };
                all.segments += 1;
                all.rows += rows;
                all.values.iter_mut().zip(values).for_each(|(all, value)| all.push(value));
            }
        }
        Ok(all)
    }
}

/// The aggregates of `request` with their columns; `None` if it has none, not even of rows.
pub(super) fn columns_asked(view: &TableView, request: &ScanRequest) -> Result<Option<Vec<(Column, ZoneAggregate)>>> {
    let resolved = |asked: &Vec<(ColumnId, ZoneAggregate)>| {
        asked.iter().map(|(id, aggregate)| Ok((column(view, *id)?, *aggregate))).collect()
    };
    request.zone_aggregates.as_ref().map(resolved).transpose()
}

/// Where the aggregates of a part of a run come from.
pub(super) enum Answer {
    /// Its live rows, and what metadata says of them.
    Metadata(u64, Vec<ZoneValue>),
    /// The codes have to be looked at.
    Codes,
    /// Its rows have to be read.
    Rows,
}

/// Where the aggregates `asked` of the rows of `part` that satisfy `predicates` come from.
pub(super) fn answer(
    view: &TableView,
    part: &RunSegment,
    predicates: &[(Predicate, Column)],
    asked: &[(Column, ZoneAggregate)],
) -> Answer {
    if let Some((rows, values)) = from_metadata(view, part, predicates, asked) {
        return Answer::Metadata(rows, values);
    }
    if can_add_up(asked) { Answer::Codes } else { Answer::Rows }
}

/// Whether all of `asked` follow from adding up values, in 128 bits.
pub(super) fn can_add_up(asked: &[(Column, ZoneAggregate)]) -> bool {
    asked.iter().all(|(column, aggregate)| match aggregate {
        ZoneAggregate::Count => true,
        ZoneAggregate::Sum => column.data_type.has_small_sums(),
        ZoneAggregate::Min | ZoneAggregate::Max => false,
    })
}

/// The live rows of `part` and what metadata says of `asked`, if it knows.
fn from_metadata(
    view: &TableView,
    part: &RunSegment,
    predicates: &[(Predicate, Column)],
    asked: &[(Column, ZoneAggregate)],
) -> Option<(u64, Vec<ZoneValue>)> {
    let segment = &part.segment;
    let is_enclosed = predicates.iter().all(|(predicate, column)| {
        if segment.has_column(column.id) {
            segment.prune(from_ref(predicate)) == Prune::All
        } else {
            predicate.matches(&column.missing_value)
        }
    });
    let own_deletes = || view.own().map_or(0, |own| own.deletes().count_of(segment.id()));
    if !is_enclosed || own_deletes() > 0 {
        return None;
    }
    let rows = u64::from(part.rows()).checked_sub(part.deleted_at(view.ts()))?;
    let values = asked.iter().map(|(column, aggregate)| value(part, rows, column, *aggregate));
    Some((rows, values.collect::<Option<Vec<_>>>()?))
}

/// What `part`, of which `rows` live, says of `column`, if it knows.
fn value(part: &RunSegment, rows: u64, column: &Column, aggregate: ZoneAggregate) -> Option<ZoneValue> {
    use ZoneAggregate as A;
    let Some(meta) = part.segment.meta().column(column.id) else {
        let missing = &column.missing_value;
        let count = if missing.is_null() { 0 } else { rows };
        let value = match aggregate {
            A::Count => Value::Null,
            A::Min | A::Max if rows == 0 => Value::Null,
            A::Min | A::Max => missing.clone(),
            A::Sum => Value::Decimal(number(missing)?.checked_mul(i128::from(rows))?),
        };
        return Some(ZoneValue { count, value });
    };
    if meta.data_type.arrow() != column.data_type.arrow() {
        return None;
    }
    let (all, nulls) = (u64::from(part.segment.rows()), u64::from(meta.null_count));
    if rows != all {
        // Which rows are gone is not known without reading, nor is which of the values are.
        let count = if nulls == all { 0 } else { rows };
        let is_counted = aggregate == A::Count && (nulls == 0 || nulls == all);
        return is_counted.then_some(ZoneValue { count, value: Value::Null });
    }
    let zone = &meta.zone;
    let value = match aggregate {
        A::Count => Value::Null,
        A::Min => zone.min_exact.then(|| zone.min.clone())?,
        A::Max => zone.max_exact.then(|| zone.max.clone())?,
        A::Sum if nulls == all => Value::Decimal(0),
        A::Sum => Value::Decimal(meta.sum?),
    };
    Some(ZoneValue { count: all - nulls, value })
}

/// `value` as a summand: an integer, or an unscaled decimal.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Null => Some(0),
        Value::Int(value) => Some(i128::from(*value)),
        Value::Decimal(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
