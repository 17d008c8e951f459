//! Columns in other forms than their own: texts as codes, decimals in 64 bits.
//!
//! Comes in: which output columns are to come so. Goes out: the same source with another schema. Scans in key order and
//! those of kept plans have no other forms, nor have scans that leave out what metadata answers for.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::ColumnStatistics;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::segment::{Form, is_narrow};

use super::StoreSource;

impl StoreSource {
    /// The same, whose output columns `texts` come as Arrow dictionaries; `None` where they cannot.
    pub(crate) fn with_codes(&self, texts: &[usize]) -> Option<Self> {
        let ids = texts.iter().map(|at| self.column_at(*at)).collect::<Option<Vec<_>>>()?;
        // A column that stands twice comes as a dictionary twice.
        let stands_elsewhere = (0..self.schema.fields().len())
            .any(|at| !texts.contains(&at) && self.column_at(at).is_some_and(|id| ids.contains(&id)));
        if stands_elsewhere { None } else { self.in_form(Form::Codes, &ids) }
    }

    /// The same, whose decimals of up to 18 digits come in 64 bits, of the output columns that `may_be_narrow`; `None`
    /// where none can.
    pub(crate) fn with_narrow_decimals(&self, may_be_narrow: &[bool]) -> Option<Self> {
        let may_be_narrow = |at: usize| may_be_narrow.get(at).copied().unwrap_or(false);
        let columns = || (0..self.schema.fields().len()).filter_map(|at| Some((at, self.column_at(at)?)));
        let is_wide = |id: ColumnId| columns().any(|(at, of)| of == id && !may_be_narrow(at));
        let is_decimal = |id: ColumnId| self.table.column(id).is_some_and(|column| is_narrow(column.data_type));
        let mut ids: Vec<ColumnId> =
            columns().map(|(_, id)| id).filter(|id| is_decimal(*id) && !is_wide(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() { None } else { self.in_form(Form::Narrow, &ids) }
    }

    /// The same, whose columns `ids` come in `form`.
    fn in_form(&self, form: Form, ids: &[ColumnId]) -> Option<Self> {
        if self.snapshot.is_slot() || self.order.is_some() || self.request.zone_aggregates.is_some() {
            return None;
        }
        let known = &self.request.forms;
        if known.iter().any(|(id, of)| *of == form || ids.contains(id)) {
            return None;
        }
        let mut source = self.clone();
        source.request.forms.extend(ids.iter().map(|id| (*id, form)));
        let mut fields: Vec<Arc<Field>> = self.schema.fields().iter().cloned().collect();
        let mut statistics = self.statistics.as_ref().clone();
        for (at, field) in fields.iter_mut().enumerate() {
            let Some(id) = self.column_at(at).filter(|id| ids.contains(id)) else { continue };
            let column = self.table.column(id)?;
            *field = Arc::new(field.as_ref().clone().with_data_type(form.arrow(column.data_type)));
            // Bounds are of the type that the column had.
            if let Some(known) = statistics.column_statistics.get_mut(at) {
                let (null_count, distinct_count) = (known.null_count, known.distinct_count);
                *known = ColumnStatistics { null_count, distinct_count, ..ColumnStatistics::new_unknown() };
            }
        }
        source.schema = Arc::new(Schema::new(fields));
        source.statistics = Arc::new(statistics);
        Some(source)
    }
}
