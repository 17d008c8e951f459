//! How much an operator may have to hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use mainstem_postgres::function::{Carried, Named};

/// Of what queries may take, the share of what an operator holds that is estimated to fit for sure.
const SHARE: u64 = 16;
/// Bytes that DataFusion's hash tables take for a row, at most.
pub(in crate::exec) const TABLE_BYTES: u64 = 48;
/// Bytes that a value without a fixed width is taken to have.
const TEXT_BYTES: u64 = 24;

/// Bytes that the queries of a database may take.
#[derive(Clone, Debug, Default)]
pub(in crate::exec) struct QueryBytes(Arc<AtomicU64>);

impl QueryBytes {
    /// What the next plans go by.
    pub(in crate::exec) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// What plans go by.
    pub(in crate::exec) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Named for QueryBytes {
    const NAME: &'static str = "mainstem_query_bytes";
}

/// Up to so many estimated bytes an operator is DataFusion's, of so many that queries may take.
pub(in crate::exec) fn certain_bytes(query_bytes: u64) -> u64 {
    query_bytes / SHARE
}

/// With fewer bytes for queries tables are not read in key order by several threads: each holds keys of a segment of
/// each run that overlaps, about a megabyte, and nothing of that spills.
const KEY_ORDER_BYTES_MIN: u64 = 16 << 20;

/// Whether plans by `config` may read tables in key order, in ranges.
pub(in crate::exec) fn may_read_in_key_order(config: &ConfigOptions) -> bool {
    let bytes = config.extensions.get::<Carried<QueryBytes>>();
    bytes.is_none_or(|Carried(bytes)| bytes.get() >= KEY_ORDER_BYTES_MIN)
}

/// About how many bytes the rows of `plan` take; as many as those of what it reads, if nobody knows, and any number if
/// nobody knows those either.
pub(in crate::exec) fn estimated_bytes(plan: &dyn ExecutionPlan, statistics: &StatisticsContext) -> u64 {
    let known = statistics.compute(plan, &StatisticsArgs::new()).ok();
    let rows = known.as_ref().and_then(|known| known.num_rows.get_value().copied());
    let bytes = known.as_ref().and_then(|known| known.total_byte_size.get_value().copied()).unwrap_or(0) as u64;
    match rows {
        Some(rows) => (rows as u64)
            .saturating_mul(width_of(&plan.schema()))
            .max(bytes)
            .saturating_add((rows as u64).saturating_mul(TABLE_BYTES)),
        None => {
            let below = plan.children().into_iter().map(|child| estimated_bytes(&**child, statistics));
            below.max().unwrap_or(u64::MAX)
        }
    }
}

/// At most so many bytes groups with the columns of `schema` take that are made of the rows of `plan`: of its rows, or
/// of those of anything that it reads, the most, for nobody knows how many groups there are, or which rows a filter
/// keeps. None if nobody knows how many rows something has that it reads.
pub(in crate::exec) fn most_bytes(
    plan: &dyn ExecutionPlan,
    schema: &Schema,
    statistics: &StatisticsContext,
) -> Option<u64> {
    let rows = most_rows(plan, statistics)?;
    Some(rows.saturating_mul(width_of(schema) + TABLE_BYTES).max(estimated_bytes(plan, statistics)))
}

fn most_rows(plan: &dyn ExecutionPlan, statistics: &StatisticsContext) -> Option<u64> {
    let known = statistics.compute(plan, &StatisticsArgs::new()).ok();
    let rows = known.as_ref().and_then(|known| known.num_rows.get_value().copied()).map(|rows| rows as u64);
    let children = plan.children();
    if children.is_empty() {
        return rows;
    }
    let below = children.into_iter().map(|child| most_rows(&**child, statistics));
    let below = below.collect::<Option<Vec<_>>>()?;
    below.into_iter().chain(rows).max()
}

fn width_of(schema: &Schema) -> u64 {
    let width = |of: &DataType| of.primitive_width().map_or(TEXT_BYTES, |width| width as u64);
    schema.fields().iter().map(|field| width(field.data_type())).sum()
}
