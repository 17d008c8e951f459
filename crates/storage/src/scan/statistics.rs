//! What is known of a view without reading rows (contract 5).
//!
//! Row counts come from prefixes and delete logs, so they are exact for the snapshot with the transaction's own writes.
//! Bounds are exact only from whole segments without a delete, with nothing in a delta, and never when shortened.

use crate::ids::ColumnId;
use crate::main_store::ColumnBounds;
use crate::predicate::ValueRange;
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
}

impl TableView {
    /// What is known without reading rows, of all columns.
    #[must_use]
    pub fn statistics(&self) -> TableStatistics {
        self.statistics_of(&self.schema().column_ids())
    }

    /// What is known without reading rows, of `columns`. O(segments) for the deletes to count; bounds are kept with
    /// each run.
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
            let dead = part.segment.deletes().count_at(self.ts());
            rows += part.range.len() as u64 - dead.min(part.range.len() as u64);
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
                // Bounds say nothing of rows that stand elsewhere.
                let bounds = if elsewhere { None } else { self.bounds(id) };
                let exact = untouched && bounds.as_ref().is_some_and(|bounds| bounds.exact);
                ColumnStatistics { id, range: bounds.and_then(|bounds| bounds.range), exact }
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
}
