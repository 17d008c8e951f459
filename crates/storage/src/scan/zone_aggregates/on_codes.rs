//! Counts and sums of rows on the codes of segments, and on the values of deltas: pieces of a scan that become no
//! batches.
//!
//! Comes in: a view and a request, as for [`TableView::zone_aggregates`]. Goes out: totals, to which each piece is
//! added by whoever takes it ([`AggregateScan::add_next`]).
//!
//! 1. The pieces are those of the segments that metadata does not answer for, of deltas and of the transaction's
//!    buffer.
//! 2. Which of a piece's rows count is selected as in a scan: predicates on codes, deleted rows.
//! 3. Codes are unpacked into the first cache and added up under the selection. No row is moved.
//!
//! Invariant: each of these rows that lives and satisfies the predicates is added once.

use std::sync::Arc;

use mainstem_kernels::bitmap;

use super::super::piece::Piece;
use super::super::{EmittedRows, LiveFilters, Scan, ScanRequest};
use super::{ZoneAggregate, ZoneAggregates, ZoneValue};
use crate::error::{Error, Result};
use crate::ids::ColumnId;
use crate::row::Value;
use crate::schema::Column;
use crate::version::{TableView, Work};

/// A planned scan for aggregates, shared by whoever adds its pieces up.
#[derive(Debug)]
pub struct AggregateScan {
    scan: Scan,
    asked: Vec<(Column, ZoneAggregate)>,
}

impl TableView {
    /// Plans to add up the rows that a scan of `request` leaves out and metadata does not answer for.
    ///
    /// # Errors
    /// Internal when the request names a column the table does not have, or asks for no aggregates.
    pub fn aggregate_scan(self: &Arc<Self>, request: &ScanRequest) -> Result<AggregateScan> {
        let mut scan = Scan::unplanned(self, request, LiveFilters::default())?;
        let asked = scan.zone_aggregates.clone();
        let asked = asked.ok_or_else(|| Error::internal("a scan for aggregates that names none"))?;
        scan.plan_aggregates();
        Ok(AggregateScan { scan, asked })
    }
}

impl AggregateScan {
    /// Rows that are looked at, deleted ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.scan.pieces.iter().map(|piece| piece.rows().len() as u64).sum()
    }

    /// Totals of no rows.
    #[must_use]
    pub fn nothing(&self) -> ZoneAggregates {
        let value = |(_, aggregate): &(Column, ZoneAggregate)| match aggregate {
            ZoneAggregate::Sum => vec![ZoneValue { count: 0, value: Value::Decimal(0) }],
            _ => vec![ZoneValue { count: 0, value: Value::Null }],
        };
        ZoneAggregates { values: self.asked.iter().map(value).collect(), ..ZoneAggregates::default() }
    }

    /// Adds the next piece that nobody has taken to `totals`, which began as [`AggregateScan::nothing`], and its rows
    /// to `rows`; false when there is none.
    ///
    /// # Errors
    /// Corrupt, Io; Internal.
    pub fn add_next(&self, totals: &mut ZoneAggregates, rows: &mut EmittedRows) -> Result<bool> {
        let Some(piece) = self.scan.next_index().and_then(|index| self.scan.pieces.get(index)) else {
            return Ok(false);
        };
        let _at_work = self.scan.view.begin(Work::Thread);
        let selected = piece.select(&self.scan)?.selection;
        let selected = selected.unwrap_or_else(|| bitmap::full(piece.rows().len()));
        let count = bitmap::count_ones(&selected) as u64;
        if count > 0 {
            self.add(piece, &selected, totals)?;
            totals.rows += count;
            match piece {
                Piece::Segment { .. } => rows.main += count,
                Piece::Delta { .. } => rows.delta += count,
                Piece::Own { .. } => rows.own += count,
            }
        }
        Ok(true)
    }

    fn add(&self, piece: &Piece, selected: &[u64], totals: &mut ZoneAggregates) -> Result<()> {
        // A column that several aggregates are of is read once.
        let mut found: Vec<(ColumnId, u64, i128)> = Vec::with_capacity(self.asked.len());
        let sums = |id: ColumnId| self.asked.iter().any(|(c, a)| c.id == id && *a == ZoneAggregate::Sum);
        for ((column, _), total) in self.asked.iter().zip(&mut totals.values) {
            let (count, sum) = match found.iter().find(|(id, ..)| *id == column.id) {
                Some((_, count, sum)) => (*count, *sum),
                None => {
                    let (count, sum) = piece.sum(column, selected, sums(column.id))?;
                    found.push((column.id, count, sum));
                    (count, sum)
                }
            };
            let Some(total) = total.first_mut() else { return Err(Error::internal("totals of other aggregates")) };
            total.count += count;
            if let Value::Decimal(all) = &mut total.value {
                *all = all.wrapping_add(sum);
            }
        }
        Ok(())
    }
}
