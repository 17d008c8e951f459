//! What DataFusion's optimizer may know of a table.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::scan::TableStatistics;
use mainstem_storage::schema::TableSchema;

use super::values::to_scalar;

/// Statistics of `columns` of a table; `row_refs` adds the column of row references. Exact where storage says so; a
/// scan with predicates makes them inexact itself.
pub(super) fn statistics(
    schema: &TableSchema,
    known: &TableStatistics,
    columns: &[ColumnId],
    row_refs: bool,
) -> Statistics {
    let mut of_columns: Vec<ColumnStatistics> =
        columns.iter().map(|id| column_statistics(schema, known, *id)).collect();
    if row_refs {
        of_columns.push(ColumnStatistics::new_unknown());
    }
    Statistics {
        num_rows: usize::try_from(known.rows).map_or(Precision::Absent, Precision::Exact),
        total_byte_size: usize::try_from(known.bytes).map_or(Precision::Absent, Precision::Inexact),
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

fn column_statistics(schema: &TableSchema, known: &TableStatistics, id: ColumnId) -> ColumnStatistics {
    let mut unknown = ColumnStatistics::new_unknown();
    let (Some(column), Some(of)) = (schema.column(id), known.columns.iter().find(|c| c.id == id)) else {
        return unknown;
    };
    if !column.nullable {
        unknown.null_count = Precision::Exact(0);
    }
    let Some(range) = &of.range else { return unknown };
    let precision = |scalar| if of.exact { Precision::Exact(scalar) } else { Precision::Inexact(scalar) };
    if let (Some(min), Some(max)) = (to_scalar(&range.min, column.data_type), to_scalar(&range.max, column.data_type)) {
        unknown.min_value = precision(min);
        unknown.max_value = precision(max);
    }
    unknown
}
