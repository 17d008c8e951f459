//! Planning, and joins, that can be canceled.
//!
//! Planning runs on the caller's thread and waits for nothing, so whoever cancels can only be asked. Every rule of the
//! analyzer and the optimizers is wrapped in one that asks first; the answer comes with the session's configuration,
//! which all rules are given. What runs is canceled where it yields; `joins` sees to it that joins do.

mod joins;

pub(super) use joins::cancelable_joins;

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use mainstem_postgres::function::{Carried, Named};
use parking_lot::Mutex;

use super::runtime::Cancel;
use crate::optimize::{answers_of_scans, partition_limits, pushes_by_name, safe_group_limits, window_limits};

/// The statement that a session plans at the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Interruption(Arc<Mutex<Option<Cancel>>>);

impl Interruption {
    /// What [`check`] looks at from now on.
    pub(super) fn watch(&self, cancel: &Cancel) {
        *self.0.lock() = Some(cancel.clone());
    }
}

impl Named for Interruption {
    const NAME: &'static str = "mainstem_interruption";
}

/// Fails once the statement that is planned was canceled.
pub(super) fn check(options: &ConfigOptions) -> Result<()> {
    let Some(Carried(Interruption(cancel))) = options.extensions.get() else { return Ok(()) };
    let canceled = cancel.lock().as_ref().map_or(Ok(()), Cancel::check);
    canceled.map_err(|e| DataFusionError::External(Box::new(e)))
}

/// `state` with all its rules wrapped.
pub(super) fn interruptible(state: SessionState) -> SessionState {
    let analyzer = state.analyzer().rules.iter().cloned().map(|rule| Arc::new(Asking(rule)) as _).collect();
    let optimizer = state.optimizers().iter().cloned().map(|rule| Arc::new(Asking(rule)) as _).collect();
    let physical = state.physical_optimizers().iter().filter(|rule| !pushes_by_name(&***rule)).cloned();
    let physical = physical.map(safe_group_limits).map(window_limits).map(partition_limits).map(answers_of_scans);
    let physical = physical.map(|rule| Arc::new(Asking(rule)) as _).collect();
    SessionStateBuilder::new_from_existing(state)
        .with_analyzer_rules(analyzer)
        .with_optimizer_rules(optimizer)
        .with_physical_optimizer_rules(physical)
        .build()
}

/// A rule that is not begun once the statement was canceled.
struct Asking<R: ?Sized>(Arc<R>);

impl<R: fmt::Debug + ?Sized> fmt::Debug for Asking<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AnalyzerRule for Asking<dyn AnalyzerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check(config)?;
        self.0.analyze(plan, config)
    }
}

impl OptimizerRule for Asking<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        check(&config.options())?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for Asking<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        check(config)?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check(context.config_options())?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

#[cfg(test)]
mod tests;
