//! What is known of a view without reading rows (contract 5).
//!
//! Row counts come from prefixes and delete logs, so they are exact for the snapshot with the transaction's own writes.
//! Bounds are exact only from whole segments without a delete, with nothing in a delta, and never when shortened.

use crate::ids::ColumnId;
use crate::main_store::ColumnBounds;
use crate::predicate::ValueRange;
use crate::row::Value;
use crate::schema::DataType;
use crate::segment::{ColumnMeta, DistinctSketch};
use crate::version::TableView;

/// Statistics of one view.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatistics {
    /// Live rows; exact.
    pub rows: u64,
    /// Bytes of the encoded segments and delta rows; an estimate of the work a scan is.
    pub bytes: u64,
    /// One per column that was asked for.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// The column.
    pub id: ColumnId,
    /// Bounds of its values where known.
    pub range: Option<ValueRange>,
    /// Whether `range` holds for exactly the live rows, rather than being wider.
    pub exact: bool,
    /// Bounds of the rows in runs: others may lie outside. For estimates, not for answers.
    pub in_runs: Option<ValueRange>,
    /// About how many values it has, as encodings, bounds and keys tell. For estimates, not for answers.
    pub distinct: Option<u64>,
}

impl TableView {
    /// What is known without reading rows, of all columns.
    #[must_use]
    pub fn statistics(&self) -> TableStatistics {
        self.statistics_of(&self.schema().column_ids())
    }

    /// What is known without reading rows, of `columns`. O(segments) for the deletes to count, and for each column;
    /// bounds are kept with each run.
    #[must_use]
    pub fn statistics_of(&self, columns: &[ColumnId]) -> TableStatistics {
        let mut rows = 0;
        let mut bytes = 0;
        let mut elsewhere = self.own().is_some();
        for delta in &self.version().deltas {
            let here = self.delta_rows(delta);
            rows += u64::from(here) - delta.deletes().count_at(self.ts());
            bytes += delta.bytes_of_rows();
            elsewhere |= here > 0;
        }
        let mut untouched = !elsewhere;
        for part in self.version().runs.iter().flat_map(|run| run.segments()) {
            let dead = part.deleted_at(self.ts());
            rows += u64::from(part.rows()) - dead.min(u64::from(part.rows()));
            bytes += part.segment.meta().bytes();
            untouched &= dead == 0;
        }
        if let Some(own) = self.own() {
            let own_runs: u64 = own.runs().iter().map(|run| run.rows()).sum();
            rows = (rows + own.rows().len() as u64 + own_runs).saturating_sub(own.deletes().rows());
        }
        let columns = columns
            .iter()
            .map(|&id| {
                let bounds = self.bounds(id);
                let exact = untouched && bounds.as_ref().is_some_and(|bounds| bounds.exact);
                let in_runs = bounds.and_then(|bounds| bounds.range);
                let distinct = self.distinct(id, rows, in_runs.as_ref());
                // Bounds say nothing of rows that stand elsewhere.
                let range = in_runs.clone().filter(|_| !elsewhere);
                ColumnStatistics { id, range, exact, in_runs, distinct }
            })
            .collect();
        TableStatistics { rows, bytes, columns }
    }

    /// Bounds of a column over all runs; `None` when one has none, or there is no run.
    fn bounds(&self, column: ColumnId) -> Option<ColumnBounds> {
        let mut all: Option<ColumnBounds> = None;
        for run in &self.version().runs {
            let here = run.bounds(column);
            let range = here.range?;
            all = Some(match all {
                None => ColumnBounds { range: Some(range), exact: here.exact },
                Some(all) => {
                    ColumnBounds { range: all.range.map(|before| before.merge(range)), exact: all.exact && here.exact }
                }
            });
        }
        all
    }

    /// About how many values `column` has in `rows` rows, whose bounds are `range`.
    fn distinct(&self, column: ColumnId, rows: u64, range: Option<&ValueRange>) -> Option<u64> {
        let most = self.distinct_at_most(column, rows, range)?;
        Some(self.within_key(column, most, rows).unwrap_or(most))
    }

    /// As many as keys, bounds and encodings allow.
    fn distinct_at_most(&self, column: ColumnId, rows: u64, range: Option<&ValueRange>) -> Option<u64> {
        let schema = self.schema();
        if schema.keys().any(|(_, columns)| *columns == [column]) {
            return Some(rows);
        }
        let width = match schema.column(column)?.data_type {
            DataType::Boolean => Some(2),
            _ => range.and_then(width),
        };
        let segments = self.version().runs.iter().flat_map(|run| run.segments());
        let counted = distinct_of(segments.map(|part| part.segment.meta().column(column)));
        let most = match (counted, width) {
            (Some(counted), Some(width)) => counted.min(width),
            (counted, width) => counted.or(width)?,
        };
        Some(most.min(rows))
    }

    /// The first column of a key, which may have a value for every row as far as bounds tell: half way, in orders of
    /// magnitude, to what the other columns of the key leave for it.
    fn within_key(&self, column: ColumnId, most: u64, rows: u64) -> Option<u64> {
        if most.saturating_mul(2) < rows {
            return None;
        }
        let is_first = |columns: &[ColumnId]| columns.len() > 1 && columns.first() == Some(&column);
        let (_, key) = self.schema().keys().find(|(_, columns)| is_first(columns))?;
        let mut least = rows as f64;
        for other in key.iter().skip(1) {
            let range = self.bounds(*other).and_then(|bounds| bounds.range);
            least /= self.distinct_at_most(*other, rows, range.as_ref())?.max(1) as f64;
        }
        Some(((least.max(1.0) * most as f64).sqrt() as u64).min(most))
    }
}

/// How many values lie within `range`, where they are counted: integers, days, microseconds, unscaled decimals.
fn width(range: &ValueRange) -> Option<u64> {
    let width = match (&range.min, &range.max) {
        (Value::Int(min), Value::Int(max)) => i128::from(*max) - i128::from(*min),
        (Value::Decimal(min), Value::Decimal(max)) => max.checked_sub(*min)?,
        _ => return None,
    };
    Some(u64::try_from(width).unwrap_or(u64::MAX).saturating_add(1))
}

/// About how many values the segments together have, if each of them knows: what their sketches together say. Where
/// some have counted instead: as many as the one with the most, and more where a segment begins behind the last one's
/// end, as in a clustered column.
fn distinct_of<'a>(segments: impl Iterator<Item = Option<&'a ColumnMeta>>) -> Option<u64> {
    let mut columns = segments.collect::<Option<Vec<_>>>()?;
    columns.retain(|column| !column.zone.min.is_null());
    let mut sketch = DistinctSketch::default();
    columns.iter().filter_map(|column| column.sketch.as_ref()).for_each(|here| sketch.merge(here));
    let mut all = sketch.estimate();
    if columns.iter().any(|column| column.sketch.is_none()) {
        all = all.max(counted_of(&columns)?);
    }
    Some(all).filter(|distinct| *distinct > 0)
}

/// The same, from what each segment says alone.
fn counted_of(columns: &[&ColumnMeta]) -> Option<u64> {
    let mut all = 0u64;
    let (mut here, mut end) = (0u64, None::<&Value>);
    for column in columns {
        let of_sketch = || column.sketch.as_ref().map(DistinctSketch::estimate);
        let distinct = column.distinct.map(u64::from).or_else(of_sketch)?;
        if end.is_some_and(|end| column.zone.min > *end) {
            all = here.saturating_add(all);
            here = 0;
        }
        here = here.max(distinct);
        end = end.max(Some(&column.zone.max));
    }
    Some(here.saturating_add(all))
}

#[cfg(test)]
mod tests {
    use mainstem_kernels::hash::hash_u64;

    use super::*;
    use crate::segment::{Encoding, ZoneMap};

    /// A segment's column with so many values from `min` to `max`.
    fn column(distinct: Option<u32>, min: i64, max: i64) -> ColumnMeta {
        let zone = ZoneMap { min: Value::Int(min), max: Value::Int(max), min_exact: true, max_exact: true };
        let encoding = Encoding::Plain { length_width: 0 };
        let data_type = DataType::BigInt;
        let (block, sum, sketch) = (None, None, None);
        ColumnMeta { id: ColumnId(0), data_type, encoding, block, null_count: 0, zone, distinct, sum, sketch }
    }

    #[test]
    fn distinct_values_add_up_only_where_segments_lie_apart() {
        let cases: [(&[ColumnMeta], Option<u64>); 5] = [
            (&[], None),
            (&[column(Some(3), 1, 9), column(None, 1, 9)], None),
            (&[column(Some(3), 1, 9), column(Some(5), 2, 8), column(Some(4), 9, 20)], Some(5)),
            (&[column(Some(3), 1, 3), column(Some(5), 4, 8), column(Some(1), 9, 9)], Some(9)),
            (&[column(Some(3), 1, 3), column(Some(5), 4, 8), column(Some(2), 1, 9)], Some(8)),
        ];
        for (segments, expected) in cases {
            assert_eq!(distinct_of(segments.iter().map(Some)), expected, "{segments:?}");
        }
        assert_eq!(distinct_of([Some(&column(Some(1), 1, 1)), None].into_iter()), None, "written before the column");
    }

    /// A segment's column with so many values from `from` on, which nobody counted.
    fn sketched(from: i64, count: i64) -> ColumnMeta {
        let hashes = (from..from + count).map(|value| hash_u64(value.cast_unsigned()));
        ColumnMeta { sketch: Some(DistinctSketch::of(hashes)), ..column(None, from, from + count - 1) }
    }

    #[test]
    fn sketches_tell_what_segments_have_in_common() {
        let near = |segments: &[ColumnMeta], expected: u64| {
            let found = distinct_of(segments.iter().map(Some)).unwrap();
            assert!(found.abs_diff(expected) <= expected / 5, "{found} for {expected}");
        };
        near(&[sketched(0, 5_000), sketched(0, 5_000), sketched(0, 5_000)], 5_000);
        near(&[sketched(0, 5_000), sketched(2_000, 5_000), sketched(4_000, 5_000)], 9_000);
        near(&[sketched(0, 5_000), column(Some(3), 0, 10)], 5_000);
        near(&[column(Some(300), 0, 9_999), sketched(10_000, 1_000)], 1_300);
        let null = ColumnMeta { sketch: None, ..column(None, 1, 9) };
        assert_eq!(distinct_of([Some(&sketched(0, 9)), Some(&null)].into_iter()), None, "of format version 1");
    }

    #[test]
    fn whole_numbers_have_a_width() {
        let range = |min, max| ValueRange { min, max, has_nulls: false, all_null: false };
        assert_eq!(width(&range(Value::Int(-2), Value::Int(7))), Some(10));
        assert_eq!(width(&range(Value::Int(i64::MIN), Value::Int(i64::MAX))), Some(u64::MAX));
        assert_eq!(width(&range(Value::Decimal(100), Value::Decimal(100))), Some(1));
        assert_eq!(width(&range(Value::Double(1.0), Value::Double(2.0))), None);
        assert_eq!(width(&range(Value::Null, Value::Null)), None);
    }
}
