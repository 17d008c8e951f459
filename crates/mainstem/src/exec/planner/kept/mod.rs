//! Plans that are kept, to be run again and again.
//!
//! Comes in: a query whose parameters have types, and later, for each run, values and snapshots. Goes out: running
//! queries. Steps: [`parameters`] says which parameters may stand in a plan; [`logical`] keeps what the optimizer made
//! of it, and puts values and snapshots in; [`reads`] says what its scans read in a run; [`physical`] keeps what runs
//! of few rows need no more than to be bound to, whose parameters are [`slot`]s.
//!
//! It does not own: what else must be as it was when a plan was made (`session::kept_plans`).

mod bytes;
mod logical;
mod parameters;
mod physical;
mod reads;
mod slot;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::common::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use mainstem_storage::Result;
use mainstem_storage::ids::TableId;
use mainstem_storage::memory::{Charge, MemoryBudget, MemoryKind};
use mainstem_storage::version::TableView;
use parking_lot::Mutex;

use self::physical::{Bound, PhysicalPlan, Run};
use self::reads::{KeptScan, Read, Reads, reads};
use super::size::{Keeps, keeps};
use super::{Planner, Running, Source};
use crate::error::from_datafusion;
use crate::exec::cancel::cancelable_joins;
use crate::exec::runtime::{Cancel, Runtime};
use crate::optimize::ordered_joins;

/// Runs whose values a physical plan cannot have slots for, before that is given up.
const TRIES_MAX: u32 = 4;

/// A plan that is kept.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    /// What copies of it share.
    common: Arc<Common>,
    physical: Mutex<Physical>,
    large: LargeRuns,
}

#[derive(Debug)]
struct Common {
    logical: LogicalPlan,
    /// Its scans, in the order of [`LogicalPlan::transform_up_with_subqueries`].
    scans: Vec<KeptScan>,
    /// What it takes.
    memory: Charge,
}

/// Runs one after the other that were found to read much: the next ones are not looked at, the more of them the longer.
#[derive(Debug, Default)]
struct LargeRuns {
    runs: AtomicU32,
    /// How many more are not looked at.
    left_out: AtomicU32,
}

impl LargeRuns {
    /// Runs that are left out at most.
    const LEFT_OUT_MAX: u32 = 62;

    /// Whether the run that begins is one that is not looked at.
    fn leaves_out(&self) -> bool {
        self.left_out.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Counts one that reads much, or ends the series.
    fn count(&self, is_large: bool) {
        let runs = if is_large { self.runs.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.runs.store(runs, Ordering::Relaxed);
        let left_out = 2_u32.saturating_pow(runs).saturating_sub(2).min(Self::LEFT_OUT_MAX);
        self.left_out.store(if runs == 0 { 0 } else { left_out }, Ordering::Relaxed);
    }
}

/// What is kept of a physical plan. Its runs take turns; whoever comes in the middle of another runs by the logical
/// one.
#[derive(Debug)]
enum Physical {
    /// None was made in so many tries.
    Unmade(u32),
    /// With what it takes.
    Made(PhysicalPlan, Charge),
    /// None is to be kept.
    Unfit,
}

impl KeptPlan {
    /// How many columns its rows have.
    pub(crate) fn columns(&self) -> usize {
        self.common.logical.schema().fields().len()
    }

    /// About how many bytes it takes, what copies share included; without its physical plan while that runs.
    pub(crate) fn bytes(&self) -> u64 {
        let physical = match self.physical.try_lock().as_deref() {
            Some(Physical::Made(_, memory)) => memory.bytes(),
            _ => 0,
        };
        self.common.memory.bytes() + physical
    }

    /// The same plan, whose runs do not take turns with those of this one.
    pub(crate) fn with_own_runs(&self) -> Self {
        Self::new(self.common.clone())
    }

    fn new(common: Arc<Common>) -> Self {
        Self { common, physical: Mutex::new(Physical::Unmade(0)), large: LargeRuns::default() }
    }
}

impl Planner {
    /// Whether a plan may be kept: it has the same answer whenever it is optimised.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn may_be_kept(plan: &LogicalPlan) -> Result<bool> {
        logical::may_be_kept(plan, false).map_err(|e| from_datafusion(&e))
    }

    /// `plan` optimised, to be kept and counted in `memory`, if its answers do not depend on when that is done. What
    /// its rows have is for a result, or `assigned` to columns.
    ///
    /// # Errors
    /// As [`Planner::start`].
    pub(crate) fn kept(
        &mut self,
        plan: &LogicalPlan,
        cancel: &Cancel,
        memory: &Arc<MemoryBudget>,
        assigned: bool,
    ) -> Result<Option<KeptPlan>> {
        if !logical::may_be_kept(plan, assigned).map_err(|e| from_datafusion(&e))? {
            return Ok(None);
        }
        self.interruption.watch(cancel);
        let kept = reads::without_views(self.optimized(plan)?).map_err(|e| from_datafusion(&e))?;
        Ok(kept.map(|(logical, scans)| {
            let memory = memory.charge(MemoryKind::Plans, bytes::of_logical(&logical));
            KeptPlan::new(Arc::new(Common { logical, scans, memory }))
        }))
    }

    /// Starts `kept`, which [`Planner::kept`] gave, over what `transaction` sees, with the values of `parameters`.
    ///
    /// # Errors
    /// As [`Planner::start`].
    pub(crate) fn start_kept(
        &mut self,
        runtime: &Runtime,
        kept: &KeptPlan,
        source: &Source<'_>,
        cancel: Cancel,
    ) -> Result<Running> {
        self.interruption.watch(&cancel);
        self.dynamic_filters.set(source.settings.dynamic_filter_min_rows());
        self.merge_joins.set(source.settings.merge_join_min_rows());
        self.derived_properties.set(source.settings.derived_properties());
        if let Some(mut physical) = kept.physical.try_lock()
            && let Some(run) = self.physical_run(runtime, kept, &mut physical, source, &cancel)?
        {
            let plan = cancelable_joins(run.plan(), &cancel).map_err(|e| from_datafusion(&e))?;
            let schema = plan.schema();
            let (batches, is_unfinished) = runtime.execute_here(plan, self.task_context(), cancel, run)?;
            if is_unfinished {
                // The reader has it now, and may take its time.
                *physical = Physical::Unmade(0);
            }
            return Ok(Running { schema, batches });
        }
        let views = |table| view_of(source, table);
        let options = self.state.config_options();
        // Tables have other sizes by now, and parameters values.
        let plan = logical::bound(&kept.common.logical, source.parameters, &views, options)
            .and_then(|plan| ordered_joins(plan, &self.state));
        self.start_optimized(runtime, &plan.map_err(|e| from_datafusion(&e))?, source.settings.threads(), cancel)
    }

    /// The physical plan of `kept` bound to this run, if it has one that fits, or can be given one.
    fn physical_run(
        &mut self,
        runtime: &Runtime,
        kept: &KeptPlan,
        physical: &mut Physical,
        source: &Source<'_>,
        cancel: &Cancel,
    ) -> Result<Option<Run>> {
        if matches!(physical, Physical::Unfit) || physical::has_typed_null(source.parameters) || kept.large.leaves_out()
        {
            return Ok(None);
        }
        let (views, options) = (|table| view_of(source, table), self.state.config_options());
        let read = reads(&kept.common.scans, source.parameters, &views, options).map_err(|e| from_datafusion(&e))?;
        kept.large.count(matches!(read, Reads::Many));
        let run = self.run_of_reads(runtime, kept, physical, source, (read, cancel))?;
        if let Some(run) = &run {
            self.scans_by_key += run.scans_by_key();
        }
        Ok(run)
    }

    /// The physical plan of `kept` bound to a run that reads what `read` says, as [`Planner::physical_run`].
    fn run_of_reads(
        &mut self,
        runtime: &Runtime,
        kept: &KeptPlan,
        physical: &mut Physical,
        source: &Source<'_>,
        (read, cancel): (Reads, &Cancel),
    ) -> Result<Option<Run>> {
        let mut reads = match read {
            Reads::Few(reads) => reads,
            Reads::Many => return Ok(None),
            Reads::Unfit => {
                give_up_by_and_by(physical);
                return Ok(None);
            }
        };
        if let Physical::Made(plan, _) = physical {
            match plan.bind(source.parameters, reads).map_err(|e| from_datafusion(&e))? {
                Bound::Run(run) => {
                    self.set_partitions(1);
                    return Ok(Some(run));
                }
                Bound::Unfit => return Ok(None),
                Bound::Outgrown(unbound) => {
                    reads = unbound;
                    *physical = Physical::Unmade(0);
                }
            }
        }
        self.make_physical(runtime, kept, physical, source, (reads, cancel))
    }

    /// Makes a physical plan for `kept`, and binds it to this run.
    fn make_physical(
        &mut self,
        runtime: &Runtime,
        kept: &KeptPlan,
        physical: &mut Physical,
        source: &Source<'_>,
        (reads, cancel): (Vec<Read>, &Cancel),
    ) -> Result<Option<Run>> {
        let slotted = physical::slotted(&kept.common.logical, source.parameters, reads);
        let Some(slotted) = slotted.map_err(|e| from_datafusion(&e))? else {
            give_up_by_and_by(physical);
            return Ok(None);
        };
        let tries = match physical {
            Physical::Unmade(tries) => *tries,
            Physical::Made(..) | Physical::Unfit => TRIES_MAX,
        };
        // Until it is known to be fit.
        *physical = Physical::Unfit;
        let keeps = keeps(&slotted.plan).map_err(|e| from_datafusion(&e))?;
        if keeps == Keeps::Nothing {
            return Ok(None);
        }
        self.set_partitions(1);
        let plan = self.physical(runtime, &slotted.plan);
        cancel.check().inspect_err(|_| *physical = Physical::Unmade(tries))?;
        let Ok(plan) = plan else {
            // What is wrong with it is told by the plan of its values; memory may be there another time.
            if tries < TRIES_MAX {
                *physical = Physical::Unmade(tries + 1);
            }
            return Ok(None);
        };
        if keeps == Keeps::JoinsByKey && physical::combines_all_rows(&plan) {
            return Ok(None);
        }
        let memory = kept.common.memory.alike(bytes::of_physical(&plan));
        let kept = slotted.kept(plan).map_err(|e| from_datafusion(&e))?;
        Ok(kept.map(|(plan, run)| {
            *physical = Physical::Made(plan, memory);
            run
        }))
    }
}

/// Counts a run that no physical plan could be made for; after a few of them that is given up. One that is made for
/// other values stays.
fn give_up_by_and_by(physical: &mut Physical) {
    *physical = match std::mem::replace(physical, Physical::Unfit) {
        Physical::Unmade(tries) if tries < TRIES_MAX => Physical::Unmade(tries + 1),
        made @ Physical::Made(..) => made,
        Physical::Unmade(_) | Physical::Unfit => Physical::Unfit,
    };
}

/// The snapshot of a table that a run reads.
fn view_of(source: &Source<'_>, table: TableId) -> datafusion::common::Result<Arc<TableView>> {
    source.transaction.view(table).map_err(|e| DataFusionError::External(Box::new(e)))
}
