//! Aggregates of a source's rows from metadata and on codes, and the source of the others.

use datafusion::common::{DataFusionError, Result};
use mainstem_storage::scan::{AggregateScan, ZoneAggregate, ZoneAggregates};
use mainstem_storage::schema::DataType as ColumnType;

use super::{Snapshot, StoreSource};

impl StoreSource {
    /// The type of the column of the aggregate that was asked for at `at`.
    pub(crate) fn asked_type(&self, at: usize) -> Option<ColumnType> {
        let (id, _) = self.request.zone_aggregates.as_ref()?.get(at)?;
        Some(self.table.column(*id)?.data_type)
    }

    /// The same without the rows for which metadata tells all of `asked`, each of an output column, or codes do:
    /// [`StoreSource::zone_aggregates`] and [`StoreSource::aggregate_scan`] have these. None where rows are not all
    /// those of a snapshot that satisfy the predicates.
    pub(crate) fn without_known(&self, asked: &[(usize, ZoneAggregate)]) -> Option<Self> {
        let has_filters = !self.filters.is_empty() || !self.row_filters.is_empty();
        let is_plain = self.order.is_none() && self.request.limit.is_none() && !has_filters;
        if !is_plain
            || !self.request.forms.is_empty()
            || self.request.row_refs
            || self.request.zone_aggregates.is_some()
        {
            return None;
        }
        let asked = asked.iter().map(|(at, aggregate)| Some((self.column_at(*at)?, *aggregate)));
        let mut source = self.clone();
        source.request.zone_aggregates = Some(asked.collect::<Option<_>>()?);
        Some(source)
    }

    /// What metadata tells of the rows that the source leaves out. Of a run that has found its rows by key: nothing.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn zone_aggregates(&self) -> Result<ZoneAggregates> {
        if self.has_found() {
            let asked = self.request.zone_aggregates.as_ref().map_or(0, Vec::len);
            return Ok(ZoneAggregates { values: vec![Vec::new(); asked], ..ZoneAggregates::default() });
        }
        let (view, request) = self.reads()?;
        view.zone_aggregates(&request).map_err(|e| DataFusionError::External(Box::new(e)))
    }

    /// What adds up the codes of the rows that the source leaves out and metadata does not tell of; `None` in a run
    /// that has found its rows by key.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn aggregate_scan(&self) -> Result<Option<AggregateScan>> {
        if self.has_found() {
            return Ok(None);
        }
        let (view, request) = self.reads()?;
        view.aggregate_scan(&request).map(Some).map_err(|e| DataFusionError::External(Box::new(e)))
    }

    /// Whether it is that of a plan that is kept, which has one partition.
    pub(crate) fn is_of_kept_plan(&self) -> bool {
        self.snapshot.is_slot()
    }

    fn has_found(&self) -> bool {
        matches!(&self.snapshot, Snapshot::Slot(slot) if slot.found().is_some())
    }
}
