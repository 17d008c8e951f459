//! Plans of a prepared query, kept from one run to the next.
//!
//! Comes in: the query, and the parameters of a run. Goes out: its outcome, by a plan that is kept, if it has one. A
//! plan is of one version of the schema, of what names mean in the session, and of the types of the values; what else
//! it depends on, `exec::planner` keeps out of it. The first run is planned as any other: a statement that is prepared
//! to be run once costs no more.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_storage::catalog::Catalog;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, ErrorKind, Result};

use super::{Current, Outcome, Session};
use crate::exec::{KeptPlan, PlanCacheMode, Rows};
use crate::provider::Names;

/// Most plans of a statement, for values of different types.
const PLANS_MAX: usize = 4;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptPlans {
    /// Runs so far.
    runs: u64,
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

    fn put(&mut self, kept: Entry) {
        if self.plans.len() >= PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push(kept);
    }
}

impl Session {
    /// Runs `query` with the parameters at hand by a plan that is kept; `None` if it has none, and nothing has happened
    /// then.
    pub(super) fn kept_query(&mut self, plans: &mut KeptPlans, query: &Query) -> Result<Option<Outcome>> {
        plans.runs += 1;
        let wanted = match self.settings.plan_cache_mode() {
            PlanCacheMode::ForceCustom => false,
            PlanCacheMode::ForceGeneric => true,
            PlanCacheMode::Auto => plans.runs > 1,
        };
        if !wanted || matches!(self.current, Current::Failed) {
            return Ok(None);
        }
        let running = self.read(|env, transaction| {
            let (catalog, names, types) = (transaction.catalog(), env.settings.names().clone(), env.parameters.types());
            let plan = match plans.get(&catalog, &names, &types) {
                Some(plan) => plan,
                None => {
                    let plan = match env.kept(transaction, Ast::Query(Box::new(query.clone()))) {
                        Ok(plan) => plan.map(Arc::new),
                        Err(error) if is_of_run(&error) => return Err(error),
                        // What is wrong with it is told with its values, as below.
                        Err(_) => None,
                    };
                    plans.put(Entry { catalog, names, types, plan: plan.clone() });
                    plan
                }
            };
            let Some(plan) = plan else { return Ok(None) };
            match env.start_kept(transaction, &plan) {
                Err(error) if !is_of_run(&error) => Ok(None),
                running => running.map(Some),
            }
        })?;
        self.kept_runs += u64::from(running.is_some());
        Ok(running.map(|running| Outcome::with_rows("SELECT", Rows::Running(running))))
    }

    /// How many queries ran by a plan that was kept, or has been kept by that run.
    pub(crate) fn kept_runs(&self) -> u64 {
        self.kept_runs
    }
}

/// Whether `error` is of this run, and not of the query: it was interrupted, or memory or files failed it.
fn is_of_run(error: &Error) -> bool {
    let of_machine = [ErrorKind::Corrupt, ErrorKind::Io, ErrorKind::Full, ErrorKind::Closed];
    error.sqlstate() == sqlstate::CANCELED || of_machine.contains(&error.kind())
}
