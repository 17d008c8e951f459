#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::optimizer::OptimizerContext;
use datafusion::physical_plan::empty::EmptyExec;
use mainstem_storage::database::Database;
use mainstem_storage::settings::OpenOptions;

use super::*;
use crate::error::from_datafusion;
use crate::exec::{Interrupts, template};

fn code<T>(result: Result<T>) -> &'static str {
    result.map_or_else(|e| from_datafusion(&e).sqlstate(), |_| "no error")
}

#[test]
fn no_rule_is_begun_after_the_statement_was_canceled() {
    let mut state = template(&Database::in_memory(OpenOptions::default()).unwrap(), 1).unwrap();
    let (interruption, interrupts) = (Interruption::default(), Interrupts::default());
    state.config_mut().options_mut().extensions.insert(Carried(interruption.clone()));
    let plan = LogicalPlanBuilder::empty(true).project([lit(1)]).unwrap().build().unwrap();
    let physical: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(plan.schema().inner().clone()));
    let options = state.config().options().clone();
    let config = OptimizerContext::new_with_config_options(options.clone());
    let each = || {
        let mut codes = Vec::new();
        codes.extend(state.analyzer().rules.iter().map(|rule| code(rule.analyze(plan.clone(), &options))));
        codes.extend(state.optimizers().iter().map(|rule| code(rule.rewrite(plan.clone(), &config))));
        codes.extend(state.physical_optimizers().iter().map(|rule| code(rule.optimize(physical.clone(), &options))));
        codes
    };
    assert_eq!(code(state.optimize(&plan)), "no error");
    interruption.watch(&interrupts.watch(None));
    assert!(each().iter().all(|code| *code != "57014"));
    interrupts.interrupt();
    assert!(each().len() > 30 && each().iter().all(|code| *code == "57014"), "{:?}", each());
    assert_eq!(code(state.optimize(&plan)), "57014");
    interruption.watch(&interrupts.watch(None));
    assert_eq!(code(state.optimize(&plan)), "no error", "a later statement");
}
