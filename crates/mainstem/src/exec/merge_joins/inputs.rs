//! Which joins can be merged, and what of their inputs is read in order.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::{JoinSide, NullEquality, Result, internal_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column, lit};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::operator::{MergeJoin, Parts};
use super::window::{Kind, Terms};
use crate::provider::{StoreSource, is_total};

type Plan = Arc<dyn ExecutionPlan>;
type Keys = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// The tables that a join reads, each with its column that is the key.
pub(super) struct Tables<'a> {
    join: &'a HashJoinExec,
    /// The columns of the join that are its keys.
    on: (usize, usize),
    read: Vec<(&'a StoreSource, usize)>,
}

impl<'a> Tables<'a> {
    /// Those of `plan`, if it is a join that can be merged by one of its keys.
    pub(super) fn of(plan: &'a Plan) -> Option<Self> {
        let join = plan.downcast_ref::<HashJoinExec>()?;
        let kind = kind_of(join)?;
        // Other keys would be a filter.
        let keys = join.on().iter().filter(|_| kind.0 != Kind::Outer || join.on().len() == 1);
        keys.filter_map(|keys| columns_of(join, keys)).find_map(|on| {
            let mut read = Vec::new();
            add(join.left(), on.0, &mut read)?;
            add(join.right(), on.1, &mut read)?;
            Some(Self { join, on, read })
        })
    }

    /// Where the rows of all tables are cut, so that the largest is cut evenly, into no more partitions than the join
    /// has; None where one has less than `min_rows` rows, all would come from fewer threads, or a hash join is likely
    /// to be quicker.
    pub(super) fn cuts(&self, min_rows: u32) -> Option<Vec<i64>> {
        let (largest, at) = self.read.iter().max_by_key(|(source, _)| source.size())?;
        let cuts = largest.cuts_by(*at, self.join.properties().output_partitioning().partition_count())?;
        // Whoever wants every join merged wants those of few rows merged, too.
        let is_forced = min_rows <= 1;
        let is_large = self.read.iter().all(|(source, _)| source.size().0 >= min_rows.into());
        let is_cut_evenly = cuts.len() + 1 == largest.size().1;
        (is_large && (is_forced || (is_cut_evenly && self.is_quick()))).then_some(cuts)
    }

    /// Whether merging is likely to be quicker than the hash join. As measured: of tables whose rows stand in order it
    /// is, but for the rows of few keys, each with many partners, in an outer join. Where deltas are merged in it is if
    /// the join would send both of its sides from thread to thread, and if rows that a condition drops are not merged.
    fn is_quick(&self) -> bool {
        let has_exchanges = *self.join.partition_mode() == PartitionMode::Partitioned;
        if self.read.iter().all(|(source, _)| source.stands_in_order()) {
            let is_outer = kind_of(self.join).is_none_or(|(kind, _)| kind == Kind::Outer);
            return has_exchanges || !is_outer;
        }
        has_exchanges && self.read.iter().all(|(source, at)| source.evaluates_early(*at))
    }

    /// The join, merged, its tables cut at `cuts`; None where it cannot be.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn merged(&self, cuts: &[i64]) -> Result<Option<Plan>> {
        merged(self.join, self.on, cuts)
    }
}

/// Adds the tables that `plan` reads, whose column `at` is the key, to `read`; None where it does not lead their order.
fn add<'a>(plan: &'a Plan, at: usize, read: &mut Vec<(&'a StoreSource, usize)>) -> Option<()> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let on = keys_behind(join, at)?;
        add(join.left(), on.0, read)?;
        return add(join.right(), on.1, read);
    }
    if let Some(source) = source_of(plan) {
        read.push((source, at));
        return source.is_led_by(at).then_some(());
    }
    let (input, at) = step(plan, at)?;
    add(input, at, read)
}

/// About how many rows the largest table of `plan` has.
fn rows_of(plan: &Plan, at: usize) -> u64 {
    let mut read = Vec::new();
    add(plan, at, &mut read).and_then(|()| read.iter().map(|(source, _)| source.size().0).max()).unwrap_or(0)
}

fn merged(join: &HashJoinExec, on: (usize, usize), cuts: &[i64]) -> Result<Option<Plan>> {
    let Some(left) = in_ranges(join.left(), on.0, cuts)? else { return Ok(None) };
    let Some(right) = in_ranges(join.right(), on.1, cuts)? else { return Ok(None) };
    let is_left_larger = rows_of(join.left(), on.0) > rows_of(join.right(), on.1);
    let parts = Parts {
        left,
        right,
        on,
        join_type: *join.join_type(),
        larger: if is_left_larger { JoinSide::Left } else { JoinSide::Right },
        filter: filter_of(join, on)?,
        projection: join.projection.as_ref().map(|projection| projection.to_vec()),
        schema: join.schema(),
        statistics: StatisticsContext::new().compute(join, &StatisticsArgs::new())?,
    };
    Ok(Some(Arc::new(MergeJoin::new(parts)?)))
}

/// `plan` in the order of its column `at`, cut at `cuts`.
fn in_ranges(plan: &Plan, at: usize, cuts: &[i64]) -> Result<Option<Plan>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return keys_behind(join, at).map_or(Ok(None), |on| merged(join, on, cuts));
    }
    if let Some(source) = source_of(plan) {
        let cut = source.in_ranges(&[at], cuts);
        return Ok(cut.map(|source| DataSourceExec::from_data_source(source) as Plan));
    }
    let Some((input, at)) = step(plan, at) else { return Ok(None) };
    let Some(input) = in_ranges(input, at, cuts)? else { return Ok(None) };
    if plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() {
        // It would mix the ranges.
        return Ok(Some(input));
    }
    Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?))
}

fn source_of(plan: &Plan) -> Option<&StoreSource> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<StoreSource>()
}

/// The input of an operator that keeps or drops rows of one input, and its column that the operator's column `at` is.
fn step(plan: &Plan, at: usize) -> Option<(&Plan, usize)> {
    if plan.fetch().is_some() {
        return None;
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        Some((projection.input(), index_of(&projection.expr().get(at)?.expr)?))
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let at = filter.projection().as_ref().map_or(Some(at), |projection| projection.get(at).copied());
        Some((filter.input(), at?))
    } else if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
        Some((cooperative.input(), at))
    } else if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
        Some((exchange.input(), at))
    } else if let Some(exchange) = plan.downcast_ref::<CoalescePartitionsExec>() {
        Some((exchange.input(), at))
    } else {
        None
    }
}

/// What becomes of rows of `join`, and the side whose order they have, if it can be merged.
fn kind_of(join: &HashJoinExec) -> Option<(Kind, JoinSide)> {
    let is_plain = !join.null_aware && join.fetch().is_none();
    if !is_plain || join.null_equality() != NullEquality::NullEqualsNothing {
        return None;
    }
    let (kind, first) = Terms::of(*join.join_type(), JoinSide::Right)?;
    (kind != Kind::Outer || join.filter().is_none()).then_some((kind, first))
}

/// The columns that a pair of keys of `join` is, of the same type.
fn columns_of(join: &HashJoinExec, (left, right): &Keys) -> Option<(usize, usize)> {
    let (of_left, of_right) = (left.data_type(&join.left().schema()), right.data_type(&join.right().schema()));
    let are_alike = of_left.ok()? == of_right.ok()?;
    Some((index_of(left)?, index_of(right)?)).filter(|_| are_alike)
}

/// The columns of the keys of `join`, if it can be merged by them and then comes in the order of its column `at`.
fn keys_behind(join: &HashJoinExec, at: usize) -> Option<(usize, usize)> {
    let (kind, first) = kind_of(join)?;
    if kind == Kind::Outer && join.on().len() > 1 {
        return None;
    }
    let at = join.projection.as_ref().map_or(Some(at), |projection| projection.get(at).copied())?;
    let (_, columns) = build_join_schema(&join.left().schema(), &join.right().schema(), join.join_type());
    let column = columns.get(at).filter(|column| kind == Kind::Inner || column.side == first)?;
    let is_key = |on: &(usize, usize)| column.index == if column.side == JoinSide::Left { on.0 } else { on.1 };
    join.on().iter().filter_map(|keys| columns_of(join, keys)).find(is_key)
}

/// What holds for partners beside the key at `merged`: the filter of `join`, and its other keys.
fn filter_of(join: &HashJoinExec, merged: (usize, usize)) -> Result<Option<JoinFilter>> {
    let mut filter = join.filter().cloned();
    for (left, right) in join.on() {
        let (Some(left_at), Some(right_at)) = (index_of(left), index_of(right)) else {
            return internal_err!("a key of a join is no column");
        };
        if (left_at, right_at) != merged {
            filter = Some(also_equal(filter, (join.left().schema(), left_at), (join.right().schema(), right_at))?);
        }
    }
    Ok(filter)
}

/// `filter`, and that a column of the left side equals one of the right side.
fn also_equal(
    filter: Option<JoinFilter>,
    (left, left_at): (Arc<Schema>, usize),
    (right, right_at): (Arc<Schema>, usize),
) -> Result<JoinFilter> {
    let (mut fields, mut columns, before) = match &filter {
        Some(filter) => (
            filter.schema().fields().iter().map(|field| Field::clone(field)).collect(),
            filter.column_indices().to_vec(),
            Some(filter.expression().clone()),
        ),
        None => (Vec::new(), Vec::new(), None),
    };
    let mut column = |schema: &Schema, index: usize, side: JoinSide| {
        let field = schema.field(index).clone();
        let expr = Arc::new(Column::new(field.name(), fields.len())) as Arc<dyn PhysicalExpr>;
        fields.push(field);
        columns.push(ColumnIndex { index, side });
        expr
    };
    let left = column(&left, left_at, JoinSide::Left);
    let right = column(&right, right_at, JoinSide::Right);
    let equal = Arc::new(BinaryExpr::new(left, Operator::Eq, right)) as Arc<dyn PhysicalExpr>;
    let schema = Arc::new(Schema::new(fields));
    let both: Arc<dyn PhysicalExpr> = match before {
        Some(before) if is_total(&before, &schema) => Arc::new(BinaryExpr::new(equal, Operator::And, before)),
        // Of pairs whose keys differ nobody may ask it.
        Some(before) => Arc::new(CaseExpr::try_new(None, vec![(equal, before)], Some(lit(false)))?),
        None => equal,
    };
    Ok(JoinFilter::new(both, columns, schema))
}

fn index_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
