//! Plans of a prepared query, or of the query of a write, kept from one run to the next.
//!
//! Comes in: the statement, and the parameters of a run. Goes out: its outcome, by a plan that is kept, if it has one.
//! A plan is of one version of the schema, of what names mean in the session, and of the types of the values; what else
//! it depends on, `exec::planner` keeps out of it. The first run is planned as any other: a statement that is prepared
//! to be run once costs no more.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_storage::catalog::Catalog;
use mainstem_storage::schema::DataType;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::attempts::Targets;
use super::{Current, Outcome, Session};
use crate::exec::{Environment, KeptPlan, PlanCacheMode, Rows, is_of_run};
use crate::plan::{self, KeptQuery};
use crate::provider::Names;
use crate::sql::Statement;

/// Most plans of a statement, for values of different types.
const PLANS_MAX: usize = 4;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptPlans {
    /// Runs so far.
    runs: u64,
    /// Plans so far that took no other's place, those that are not to be kept included.
    made: u64,
    plans: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    catalog: Arc<Catalog>,
    names: Arc<Names>,
    types: Vec<Option<DataType>>,
    /// None: the query is planned at each run.
    plan: Option<Arc<KeptPlan>>,
}

impl KeptPlans {
    /// The plan for values of `types`, if one is kept; none inside if it is not to be kept.
    fn get(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &Arc<Names>,
        types: &[Option<DataType>],
    ) -> Option<Option<Arc<KeptPlan>>> {
        self.plans.retain(|kept| Arc::ptr_eq(&kept.catalog, catalog) && Arc::ptr_eq(&kept.names, names));
        self.plans.iter().find(|kept| kept.types == types).map(|kept| kept.plan.clone())
    }

    /// A copy for a connection with `names`.
    pub(super) fn copy_for(&self, names: &Arc<Names>) -> Self {
        let holds = |entry: &&Entry| names.mean_the_same(&entry.names, &entry.catalog);
        let copy = |entry: &Entry| Entry {
            names: names.clone(),
            plan: entry.plan.as_ref().map(|plan| Arc::new(plan.with_own_runs())),
            ..entry.clone()
        };
        Self { runs: self.runs, made: self.made, plans: self.plans.iter().filter(holds).map(copy).collect() }
    }

    /// How many have been made that took no other's place: more than before, others may want to know of it.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> u64 {
        self.plans.iter().filter_map(|kept| kept.plan.as_ref()).map(|plan| plan.bytes()).sum()
    }

    /// Whether one is kept; `None` if that is not known yet.
    pub(super) fn are_kept(&self) -> Option<bool> {
        (!self.plans.is_empty()).then(|| self.plans.iter().any(|kept| kept.plan.is_some()))
    }

    fn put(&mut self, kept: Entry) {
        if self.plans.len() >= PLANS_MAX {
            self.plans.remove(0);
        } else {
            self.made += 1;
        }
        self.plans.push(kept);
    }
}

impl KeptPlans {
    /// The plan of this run, if it has one that is kept; `make` makes it when it is time.
    ///
    /// # Errors
    /// Those of `make` that are of this run. What is wrong with the statement is told by its plan with values.
    fn of_run(
        &mut self,
        env: &mut Environment<'_>,
        transaction: &Transaction,
        make: impl FnOnce(&mut Environment<'_>) -> Result<Option<KeptPlan>>,
    ) -> Result<Option<Arc<KeptPlan>>> {
        let wanted = match env.settings.plan_cache_mode() {
            PlanCacheMode::ForceCustom => false,
            PlanCacheMode::ForceGeneric => true,
            PlanCacheMode::Auto => self.runs > 1,
        };
        if !wanted {
            return Ok(None);
        }
        let (catalog, names, types) = (transaction.catalog(), env.settings.names().clone(), env.parameters.types());
        if let Some(plan) = self.get(&catalog, &names, &types) {
            return Ok(plan);
        }
        let plan = match make(env) {
            Ok(plan) => plan.map(Arc::new),
            Err(error) if is_of_run(&error) => return Err(error),
            Err(_) => None,
        };
        self.put(Entry { catalog, names, types, plan: plan.clone() });
        Ok(plan)
    }
}

impl Session {
    /// Runs `query` with the parameters at hand by a plan that is kept; `None` if it has none, and nothing has happened
    /// then.
    pub(super) fn kept_query(&mut self, plans: &mut KeptPlans, query: &Query) -> Result<Option<Outcome>> {
        plans.runs += 1;
        if matches!(self.current, Current::Failed) {
            return Ok(None);
        }
        let running = self.read(|env, transaction| {
            let make = |env: &mut Environment<'_>| env.kept(transaction, Ast::Query(Box::new(query.clone())));
            match plans.of_run(env, transaction, make)? {
                Some(plan) => env.start_kept(transaction, &plan),
                None => Ok(None),
            }
        })?;
        self.kept_runs += u64::from(running.is_some());
        Ok(running.map(|running| Outcome::with_rows("SELECT", Rows::Running(running))))
    }

    /// Runs `statement`, a write that is not short, whose query may have a plan that is kept.
    pub(super) fn kept_write(&mut self, plans: &mut KeptPlans, statement: &Statement) -> Result<Option<Outcome>> {
        plans.runs += 1;
        let (target, tag) = match statement {
            Statement::Insert(insert) => (&insert.target, "INSERT 0"),
            Statement::Update(update) => (&update.target, "UPDATE"),
            Statement::Delete(delete) => (&delete.target, "DELETE"),
            _ => return Ok(None),
        };
        if matches!(self.current, Current::Failed) {
            return Ok(None);
        }
        let mut is_kept = false;
        let written = self.write(Targets::one(&target.table), &mut |env, transaction| {
            let make = |env: &mut Environment<'_>| plan::kept_write(env, transaction, statement);
            let kept = plans.of_run(env, transaction, make)?;
            let kept = kept.as_deref().map(KeptQuery::new);
            let written = match statement {
                Statement::Insert(insert) => plan::insert(env, transaction, insert, kept.as_ref()),
                Statement::Update(update) => plan::update(env, transaction, update, kept.as_ref()),
                Statement::Delete(delete) => plan::delete(env, transaction, delete, kept.as_ref()),
                _ => Err(Error::internal("a write of nothing")),
            };
            is_kept = kept.is_some_and(|kept| kept.has_run());
            written
        })?;
        self.kept_runs += u64::from(is_kept);
        Ok(Some(Outcome::written(tag, written)))
    }

    /// How many scans of kept plans had their rows found by key.
    pub(crate) fn scans_by_key(&self) -> u64 {
        self.planner.scans_by_key()
    }

    /// How many queries, of writes too, ran by a plan that was kept, or has been kept by that run.
    pub(crate) fn kept_runs(&self) -> u64 {
        self.kept_runs
    }
}
