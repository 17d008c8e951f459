//! What DataFusion's optimizer may know of a table, and of a scan with predicates.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::predicate::Predicate;
use mainstem_storage::row::Value;
use mainstem_storage::scan::TableStatistics;
use mainstem_storage::schema::TableSchema;

use super::estimate::{Estimates, column_bytes};
use super::values::to_scalar;

/// Statistics of `columns` of a table where `predicates` hold; `row_refs` adds the column of row references. Exact only
/// without predicates, where storage says so.
pub(super) fn statistics(
    schema: &TableSchema,
    known: &TableStatistics,
    columns: &[ColumnId],
    predicates: &[Predicate],
    row_refs: bool,
) -> Statistics {
    let estimates = Estimates::of(schema, known, predicates);
    let rows = if predicates.is_empty() {
        usize::try_from(known.rows).map_or(Precision::Absent, Precision::Exact)
    } else {
        Precision::Inexact(whole(estimates.rows))
    };
    let (mut row_bytes, mut of_columns) = (0, Vec::with_capacity(columns.len() + 1));
    for id in columns {
        row_bytes += schema.column(*id).map_or(0, |column| column_bytes(column.data_type));
        // Without their bytes: joins would hand them on as they are here, whatever rows are left.
        of_columns.push(column_statistics(schema, known, *id, &estimates));
    }
    if row_refs {
        row_bytes += size_of::<u64>();
        of_columns.push(ColumnStatistics::new_unknown());
    }
    Statistics {
        num_rows: rows,
        // A scan without columns is compared with others, too.
        total_byte_size: Precision::Inexact(whole(estimates.rows).saturating_mul(row_bytes.max(1))),
        column_statistics: of_columns,
    }
}

/// Statistics of a scan that finds at most `rows` rows, of `columns` columns.
pub(super) fn some_rows(rows: usize, columns: usize) -> Statistics {
    Statistics {
        num_rows: Precision::Inexact(rows),
        total_byte_size: Precision::Absent,
        column_statistics: vec![ColumnStatistics::new_unknown(); columns],
    }
}

/// `statistics` without what holds for this snapshot and these predicates only: for a plan that others run with, too.
/// DataFusion may take a column for a constant by its bounds.
pub(super) fn of_any_run(statistics: Statistics) -> Statistics {
    let mut statistics = statistics.to_inexact();
    for column in &mut statistics.column_statistics {
        column.min_value = Precision::Absent;
        column.max_value = Precision::Absent;
    }
    statistics
}

fn whole(rows: f64) -> usize {
    rows.round() as usize
}

fn column_statistics(
    schema: &TableSchema,
    known: &TableStatistics,
    id: ColumnId,
    estimates: &Estimates,
) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let (Some(column), Some(of)) = (schema.column(id), known.columns.iter().find(|c| c.id == id)) else {
        return statistics;
    };
    if !column.nullable {
        statistics.null_count = Precision::Exact(0);
    }
    let estimate = estimates.column(id);
    if let Some(distinct) = estimate.and_then(|estimate| estimate.distinct) {
        statistics.distinct_count = Precision::Inexact(whole(distinct.min(estimates.rows)));
    }
    let Some(range) = &of.range else { return statistics };
    // Whatever is narrowed is not shown to occur.
    let (mut min, mut max, mut exact) = (&range.min, &range.max, of.exact);
    if let Some((low, high)) = estimate.map(|estimate| (&estimate.low, &estimate.high)) {
        let low = low.as_ref().filter(|low| may_narrow(low) && *low > min).unwrap_or(min);
        let high = high.as_ref().filter(|high| may_narrow(high) && *high < max).unwrap_or(max);
        // Of no rows nothing is told.
        if low <= high {
            exact &= (low, high) == (min, max);
            (min, max) = (low, high);
        }
    }
    let precision = |scalar: ScalarValue| if exact { Precision::Exact(scalar) } else { Precision::Inexact(scalar) };
    if let (Some(min), Some(max)) = (to_scalar(min, column.data_type), to_scalar(max, column.data_type)) {
        statistics.min_value = precision(min);
        statistics.max_value = precision(max);
    }
    statistics
}

/// Whether a constant of a predicate may be a bound: floats have values beside the order of numbers.
fn may_narrow(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Decimal(_))
}
