//! Scans of several tables in the order of their keys, cut at the same keys, for joins that merge them.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::{Snapshot, StoreSource};

impl StoreSource {
    /// The same in the order of output columns `ats`, each partition with values of the first one that no other has: it
    /// leads the sort key, is an integer and never NULL, and the others follow it there. None where rows have no order,
    /// or all are to come from one partition.
    pub(crate) fn in_disjoint_ranges(&self, ats: &[usize]) -> Option<Self> {
        if self.partitions == 1 {
            return None;
        }
        let cuts = self.cuts_by(*ats.first()?, self.partitions)?;
        let is_quick = self.order_by(ats).is_some_and(|order| self.has_order(&order));
        if is_quick && cuts.len() + 1 == self.partitions { self.in_ranges(ats, &cuts) } else { None }
    }

    /// Where all but the first of at most `parts` partitions of its rows begin, by the values of output column `at`.
    /// None where rows cannot be read in the order of that column.
    pub(crate) fn cuts_by(&self, at: usize, parts: usize) -> Option<Vec<i64>> {
        let Snapshot::Of(view) = &self.snapshot else { return None };
        self.order_by(&[at])?;
        Some(view.cuts_of_sort_key(parts))
    }

    /// The same in the order of output columns `ats`, cut into partitions at `cuts` of the first one, which ascend.
    pub(crate) fn in_ranges(&self, ats: &[usize], cuts: &[i64]) -> Option<Self> {
        let order = Some(self.order_by(ats)?);
        Some(Self { order, cuts: Some(cuts.to_vec()), partitions: cuts.len() + 1, ..self.clone() })
    }

    /// Whether rows can be read in the order of output column `at`.
    pub(crate) fn is_led_by(&self, at: usize) -> bool {
        self.order_by(&[at]).is_some()
    }

    /// About how many rows it reads, and in how many partitions.
    pub(crate) fn size(&self) -> (u64, usize) {
        (self.statistics.num_rows.get_value().map_or(0, |rows| *rows as u64), self.partitions)
    }

    /// Whether a scan in the order of the sort key costs about as much as one without order.
    pub(crate) fn stands_in_order(&self) -> bool {
        matches!(&self.snapshot, Snapshot::Of(view) if view.stands_in_order())
    }

    /// Whether conditions are evaluated before the order of rows is known.
    pub(crate) fn evaluates_early(&self, at: usize) -> bool {
        self.order_by(&[at]).is_some_and(|order| self.has_order(&order))
    }

    /// The order of output columns `ats`, if rows can be read in it: see [`StoreSource::in_disjoint_ranges`].
    fn order_by(&self, ats: &[usize]) -> Option<Vec<PhysicalSortExpr>> {
        let has_filters = !self.filters.is_empty() || !self.row_filters.is_empty();
        let is_told = !self.request.forms.is_empty() || self.request.zone_aggregates.is_some();
        let is_plain = self.order.is_none() && self.request.limit.is_none() && !has_filters && !is_told;
        let leading = self.column_at(*ats.first()?).filter(|id| is_plain && self.table.sort_key.first() == Some(id))?;
        self.table.column(leading).filter(|column| column.data_type.is_whole() && !column.nullable)?;
        let by_column = |at: &usize| {
            let column = Arc::new(Column::new(self.schema.fields().get(*at)?.name(), *at)) as Arc<dyn PhysicalExpr>;
            Some(PhysicalSortExpr::new(column, SortOptions { descending: false, nulls_first: false }))
        };
        let order = ats.iter().map(by_column).collect::<Option<Vec<_>>>()?;
        let is_of_view = matches!(self.snapshot, Snapshot::Of(_));
        (is_of_view && self.is_in_order() && self.key_begins_with(&order)).then_some(order)
    }
}
