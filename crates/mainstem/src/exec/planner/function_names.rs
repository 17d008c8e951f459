//! What stands beside the arguments of a call that only aggregates and window functions have.
//!
//! DataFusion reads FILTER, OVER, DISTINCT and the like past without a word where the function is a plain one.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, ObjectNamePart, Statement,
};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, Result};

use crate::names::{did_you_mean, similar};
use crate::sql::fold;
use crate::walk::walk_expressions;

/// Refuses what `statement` puts beside the arguments of plain functions.
///
/// # Errors
/// 42809 that names it.
pub(super) fn check_calls(statement: &Statement, state: &SessionState) -> Result<()> {
    let checked = walk_expressions(statement, |expr| {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return ControlFlow::Continue(()) };
        let name = fold(name);
        let is_plain = state.scalar_functions().contains_key(&name)
            && !state.aggregate_functions().contains_key(&name)
            && !state.window_functions().contains_key(&name);
        let Some(what) = beside_arguments(call).filter(|_| is_plain) else { return ControlFlow::Continue(()) };
        let kind = match what {
            "OVER" => "neither a window function nor an aggregate function",
            _ => "not an aggregate function",
        };
        let message = format!("{what} specified, but {name} is {kind}");
        ControlFlow::Break(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, message))
    });
    checked.break_value().map_or(Ok(()), Err)
}

/// `error`, with the functions that are called nearly so if it is about a name that no function has.
pub(super) fn with_similar_functions(error: Error, state: &SessionState) -> Error {
    let Some(NamedObject { kind: ObjectKind::Function, name, .. }) = error.object() else { return error };
    let [name] = name.as_slice() else { return error };
    let is_known = state.scalar_functions().contains_key(name)
        || state.aggregate_functions().contains_key(name)
        || state.window_functions().contains_key(name);
    if is_known {
        return error;
    }
    let scalar = state.scalar_functions().keys();
    let known = scalar.chain(state.aggregate_functions().keys()).chain(state.window_functions().keys());
    // Ours, which statements are reworded into, have names that nobody can write.
    let can_be_written = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let mut known: Vec<&str> = known.map(String::as_str).filter(can_be_written).collect();
    known.sort_unstable();
    let message = format!("{}{}", error.message(), did_you_mean(&similar(name, known)));
    error.with_message(message)
}

/// The first of what only aggregates and window functions have.
fn beside_arguments(call: &Function) -> Option<&'static str> {
    let Function { args, filter, null_treatment, over, within_group, .. } = call;
    let in_list = match args {
        FunctionArguments::List(list) => match list.clauses.first() {
            _ if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) => Some("DISTINCT"),
            Some(FunctionArgumentClause::OrderBy(_)) => Some("ORDER BY"),
            Some(FunctionArgumentClause::IgnoreOrRespectNulls(_)) => Some("IGNORE NULLS"),
            Some(FunctionArgumentClause::Limit(_)) => Some("LIMIT"),
            Some(FunctionArgumentClause::Having(_)) => Some("HAVING"),
            Some(FunctionArgumentClause::Separator(_)) => Some("SEPARATOR"),
            _ => None,
        },
        _ => None,
    };
    in_list
        .or(filter.as_ref().map(|_| "FILTER"))
        .or((!within_group.is_empty()).then_some("WITHIN GROUP"))
        .or(null_treatment.map(|_| "IGNORE NULLS"))
        .or(over.as_ref().map(|_| "OVER"))
}
