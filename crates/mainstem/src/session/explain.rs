//! EXPLAIN: the plans of a statement, and how it is executed.
//!
//! Comes in: a statement. Goes out: DataFusion's plans, and behind them a row `execution`: `compiled` with its access
//! paths (`crate::point_path`), which is what runs, whatever the plans say; `kept plan`, of the query or of the query
//! of a write, made when the statement has come before, prepared or as a text, and kept; or `planned`, at each run.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{DescribeAlias, Query, Statement as Ast};
use mainstem_storage::Result;
use mainstem_storage::transaction::Transaction;

use super::prepared::schemas_of;
use super::short::ByPlanner;
use super::{Outcome, Session};
use crate::analyze::rows_without_marks;
use crate::exec::{Environment, PlanCacheMode, Planner, Rows};
use crate::plan;
use crate::point_path::Short;
use crate::sql::Statement;

impl Session {
    pub(super) fn explain(&mut self, statement: &Statement, analyze: bool, verbose: bool) -> Result<Outcome> {
        let (running, execution) = self.read(|env, transaction| {
            if analyze {
                env.need_certain_files();
            }
            let (query, target) = plan::explained(env.settings.names(), transaction, statement)?;
            let target = target.map(|table| transaction.view(table.id)).transpose()?;
            let plan = env.plan(transaction, explain_of(query, analyze, verbose), target)?;
            let execution = (!analyze).then(|| execution(env, transaction, statement, &plan));
            Ok((env.start(&plan)?, execution))
        })?;
        let mut batches = Vec::new();
        for batch in running.batches {
            batches.push(rows_without_marks(batch?));
        }
        if let Some(execution) = execution {
            let row = ["execution", execution.as_str()].map(|text| Arc::new(StringArray::from(vec![text])) as ArrayRef);
            batches.push(RecordBatch::try_new(running.schema.clone(), row.into())?);
        }
        Ok(Outcome::with_rows("EXPLAIN", Rows::Ready { schema: running.schema, batches, memory: None }))
    }
}

/// How `statement`, of whose explanation `plan` is the plan, is executed, with parameters of the types of the ones at
/// hand.
fn execution(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    statement: &Statement,
    plan: &LogicalPlan,
) -> String {
    let types = env.parameters.types();
    if env.settings.point_path()
        && let Some(tables) = Short::tables_of(statement)
        && let Some(schemas) = schemas_of(env.settings.names(), &transaction.catalog(), &tables)
        && let Some(short) =
            Short::compile(statement, &schemas, &types, &ByPlanner { env: RefCell::new(env), transaction })
    {
        return format!("compiled: {}", short.description());
    }
    if env.settings.plan_cache_mode() == PlanCacheMode::ForceCustom {
        return "planned".to_owned();
    }
    let told = match statement {
        Statement::Query(query) => {
            let may_be_kept = match plan {
                // The plan of the query itself. With parameters it has their values in it.
                LogicalPlan::Explain(of) if env.parameters.is_empty() => Planner::may_be_kept(&of.plan),
                _ => env.may_be_kept(transaction, Ast::Query(query.clone())),
            };
            if may_be_kept.unwrap_or_default() { "kept plan" } else { "planned" }
        }
        write if plan::kept_write(env, transaction, write).is_ok_and(|kept| kept.is_some()) => "kept plan",
        _ => "planned",
    };
    told.to_owned()
}

fn explain_of(query: Box<Query>, analyze: bool, verbose: bool) -> Ast {
    Ast::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        verbose,
        query_plan: false,
        estimate: false,
        statement: Box::new(Ast::Query(query)),
        format: None,
        options: None,
    }
}
