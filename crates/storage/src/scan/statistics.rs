//! What is known of a view without reading rows (contract 5).
//!
//! Row counts come from prefixes and delete logs, so they are exact for the snapshot with the transaction's own writes.
//! Bounds are exact only from whole segments without a delete, with nothing in a delta, and never when shortened.

use crate::ids::ColumnId;
use crate::predicate::ValueRange;
use crate::version::TableView;

/// Statistics of one view.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatistics {
    /// Live rows; exact.
    pub rows: u64,
    /// Bytes of the encoded segments and delta rows; an estimate of the work a scan is.
    pub bytes: u64,
    /// One per column of the schema.
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
    /// What is known without reading rows.
    #[must_use]
    pub fn statistics(&self) -> TableStatistics {
        let mut rows = 0;
        let mut bytes = 0;
        let mut untouched = true;
        for delta in &self.version().deltas {
            let here = self.delta_rows(delta);
            rows += u64::from(here) - delta.deletes().count_at(self.ts());
            bytes += delta.bytes_of_rows();
            untouched &= here == 0;
        }
        for part in self.version().runs.iter().flat_map(|run| run.segments()) {
            let dead = part.segment.deletes().count_at(self.ts());
            rows += part.range.len() as u64 - dead.min(part.range.len() as u64);
            bytes += part.segment.meta().bytes();
            untouched &= dead == 0 && part.range.len() as u32 == part.segment.rows();
        }
        if let Some(own) = self.own() {
            let own_runs: u64 = own.runs.iter().map(|run| run.rows()).sum();
            let deleted: u64 = own.deletes.values().map(roaring::RoaringBitmap::len).sum();
            rows = (rows + own.rows.len() as u64 + own_runs).saturating_sub(own.dead_rows.len() + deleted);
            untouched = false;
        }
        let columns = self
            .schema()
            .columns
            .iter()
            .map(|column| {
                let range = self.column_range(column.id);
                let exact = untouched && range.is_some() && self.bounds_occur(column.id);
                ColumnStatistics { id: column.id, range, exact }
            })
            .collect();
        TableStatistics { rows, bytes, columns }
    }

    /// Bounds of a column over all segments; `None` when one has none, or rows stand elsewhere.
    fn column_range(&self, column: ColumnId) -> Option<ValueRange> {
        let elsewhere = self.own().is_some() || self.version().deltas.iter().any(|delta| self.delta_rows(delta) > 0);
        if elsewhere {
            return None;
        }
        let mut all: Option<ValueRange> = None;
        for part in self.version().runs.iter().flat_map(|run| run.segments()) {
            let here = part.segment.zone_map(column)?;
            all = Some(match all {
                None => here,
                Some(all) => all.merge(here),
            });
        }
        all
    }

    /// Whether every segment's bounds of a column are values of it, rather than shortened ones.
    fn bounds_occur(&self, column: ColumnId) -> bool {
        let mut parts = self.version().runs.iter().flat_map(|run| run.segments());
        parts.all(|part| {
            part.segment.meta().column(column).is_some_and(|meta| meta.zone.min_exact && meta.zone.max_exact)
        })
    }
}
