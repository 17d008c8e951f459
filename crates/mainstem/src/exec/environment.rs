//! What a statement works with: what all connections share, and what its own has.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_storage::database::Database;
use mainstem_storage::error::sqlstate;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;
use mainstem_storage::{Error, ErrorKind, Result};

use super::parameters::Parameters;
use super::plan_cache::PlanCache;
use super::planner::{KeptPlan, PlannedExpression, Planner, Running, Source};
use super::runtime::{Cancel, Runtime};
use super::settings::Settings;
use crate::analyze::padded;
use crate::error::from_datafusion;
use crate::provider::{FileCache, Progress};

/// What all connections of a database share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) storage: Database,
    pub(crate) runtime: Runtime,
    pub(crate) template: SessionState,
    /// Sessions so far.
    pub(crate) sessions: AtomicU64,
    /// What connections have made of texts.
    pub(crate) plans: PlanCache,
    /// What was found out about files.
    pub(crate) files: FileCache,
}

/// Something a user should know that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// SQLSTATE of the condition.
    pub sqlstate: &'static str,
    /// What happened.
    pub message: String,
}

impl Notice {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }
}

/// Rows of a statement.
#[derive(Debug)]
pub(crate) enum Rows {
    Running(Running),
    /// In memory, which is reserved while they are kept if there may be many.
    Ready {
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        memory: Option<MemoryReservation>,
    },
}

/// What a statement works with, besides its transaction.
pub(crate) struct Environment<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) planner: &'a mut Planner,
    pub(crate) settings: &'a Settings,
    pub(crate) parameters: &'a Parameters,
    pub(crate) cancel: Cancel,
    /// Of the connection's statements with their files.
    pub(crate) progress: &'a Progress,
}

impl Environment<'_> {
    /// Runs `work` with other values for the parameters of statements.
    pub(crate) fn with_parameters<T>(
        &mut self,
        parameters: &Parameters,
        work: impl FnOnce(&mut Environment<'_>) -> T,
    ) -> T {
        work(&mut Environment {
            shared: self.shared,
            planner: self.planner,
            settings: self.settings,
            parameters,
            cancel: self.cancel.clone(),
            progress: self.progress,
        })
    }

    /// Plans a query over the tables `transaction` sees.
    pub(crate) fn plan(
        &mut self,
        transaction: &Transaction,
        statement: Ast,
        target: Option<Arc<TableView>>,
    ) -> Result<LogicalPlan> {
        let source = Source {
            storage: &self.shared.storage,
            plans: &self.shared.plans,
            file_cache: &self.shared.files,
            progress: self.progress,
            settings: self.settings,
            parameters: self.parameters,
            transaction,
            target,
        };
        self.planner.plan(&self.shared.runtime, statement, &source, &self.cancel)
    }

    /// The expressions of a planned SELECT, to be evaluated over rows in hand.
    pub(crate) fn expressions(&self, plan: LogicalPlan) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        self.planner.expressions(plan)
    }

    /// Those of a planned SELECT over single rows with parameters behind them.
    pub(crate) fn row_expressions(
        &self,
        plan: LogicalPlan,
        parameters: &[Option<mainstem_storage::schema::DataType>],
    ) -> Option<Vec<PlannedExpression>> {
        self.planner.row_expressions(plan, parameters)
    }

    /// Plans `statement`, with parameters of the types of the ones at hand, to be run again and again; `None` if that
    /// would not give the same answers.
    pub(crate) fn kept(&mut self, transaction: &Transaction, statement: Ast) -> Result<Option<KeptPlan>> {
        let typed = self.parameters.without_values();
        let plan = self.with_parameters(&typed, |env| env.plan(transaction, statement, None))?;
        let shown = padded(plan).map_err(|e| from_datafusion(&e))?;
        self.planner.kept(&shown, &self.cancel, self.shared.storage.memory_budget(), false)
    }

    /// Whether [`Environment::kept`] would keep a plan of `statement`, as far as is known without optimising it.
    pub(crate) fn may_be_kept(&mut self, transaction: &Transaction, statement: Ast) -> Result<bool> {
        let typed = self.parameters.without_values();
        let plan = self.with_parameters(&typed, |env| env.plan(transaction, statement, None))?;
        Planner::may_be_kept(&plan)
    }

    /// As [`Environment::kept`], for the query of a write; `target` is the table that it reads with row references, and
    /// `assigns` says that its other columns are for columns of that. `check` says what is wrong with the plan.
    pub(crate) fn kept_for_write(
        &mut self,
        transaction: &Transaction,
        query: Box<Query>,
        (target, assigns): (Option<Arc<TableView>>, bool),
        check: impl FnOnce(&LogicalPlan) -> Result<()>,
    ) -> Result<Option<KeptPlan>> {
        let typed = self.parameters.without_values();
        let plan = self.with_parameters(&typed, |env| env.plan(transaction, Ast::Query(query), target))?;
        check(&plan)?;
        self.planner.kept(&plan, &self.cancel, self.shared.storage.memory_budget(), assigns)
    }

    /// Starts a kept plan; `None` if it is to be planned with its values instead, which tells what is wrong with them.
    pub(crate) fn start_kept(&mut self, transaction: &Transaction, plan: &KeptPlan) -> Result<Option<Running>> {
        let source = Source {
            storage: &self.shared.storage,
            plans: &self.shared.plans,
            file_cache: &self.shared.files,
            progress: self.progress,
            settings: self.settings,
            parameters: self.parameters,
            transaction,
            target: None,
        };
        match self.planner.start_kept(&self.shared.runtime, plan, &source, self.cancel.clone()) {
            Err(error) if !is_of_run(&error) => Ok(None),
            running => running.map(Some),
        }
    }

    /// From now on the statement reads no file whose types may turn out to be others: it cannot be run again.
    pub(crate) fn need_certain_files(&mut self) {
        self.planner.files().need_certain();
    }

    /// Looks at all values of the files of the statement that has failed for one that is not of the type its column
    /// seemed to have. Whether there were such files, and they have other types: then the statement is to be run again.
    ///
    /// # Errors
    /// Of the files, and 57014.
    pub(crate) fn has_found_types(&mut self) -> Result<bool> {
        self.progress.begin();
        self.planner.files().has_found_types(&self.shared.files, &self.cancel)
    }

    /// Starts a planned query.
    pub(crate) fn start(&mut self, plan: &LogicalPlan) -> Result<Running> {
        self.planner.start(&self.shared.runtime, plan, self.settings.threads(), self.cancel.clone())
    }

    /// Starts a planned query in one partition: rows that are but looked at stay in their order.
    pub(crate) fn start_in_order(&mut self, plan: &LogicalPlan) -> Result<Running> {
        self.planner.start(&self.shared.runtime, plan, 1, self.cancel.clone())
    }

    /// Room in the memory of queries, for `consumer`; none yet.
    pub(crate) fn reservation(&self, consumer: &str) -> MemoryReservation {
        self.planner.reservation(consumer)
    }
}

/// Whether `error` is of this run, and not of the statement: it was interrupted, or memory or files failed it.
pub(crate) fn is_of_run(error: &Error) -> bool {
    let of_machine = [ErrorKind::Corrupt, ErrorKind::Io, ErrorKind::Full, ErrorKind::Closed];
    error.sqlstate() == sqlstate::CANCELED || of_machine.contains(&error.kind())
}
