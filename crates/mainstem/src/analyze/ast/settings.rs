//! `current_setting('name')`: a call becomes one of `setting_value` with the setting's value.
//!
//! The names are read in the statement's tree, where the session's settings are at hand.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Statement,
    Value, ValueWithSpan,
};
use mainstem_postgres::function::{CURRENT_SETTING, SETTING_VALUE};
use mainstem_storage::{Error, Result};

use crate::sql::fold;
use crate::walk::walk_expressions_mut;

/// Writes the settings' values into the calls of `statement`. `show` gives them.
///
/// # Errors
/// Those of `show`; 0A000 for a name that is computed.
pub(crate) fn with_settings(statement: &mut Statement, show: &dyn Fn(&str) -> Result<String>) -> Result<()> {
    let read = walk_expressions_mut(statement, |expr| {
        let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        if fold(ident) != CURRENT_SETTING {
            return ControlFlow::Continue(());
        }
        let values: Vec<Option<&Value>> = list.args.iter().map(literal).collect();
        let (setting, missing_ok) = match values.as_slice() {
            [Some(Value::SingleQuotedString(setting))] => (setting, false),
            [Some(Value::SingleQuotedString(setting)), Some(Value::Boolean(missing_ok))] => (setting, *missing_ok),
            [_] | [_, _] => {
                return ControlFlow::Break(Error::unsupported("current_setting of anything but a literal"));
            }
            // The function tells what is wrong.
            _ => return ControlFlow::Continue(()),
        };
        let value = match show(&setting.to_lowercase()) {
            Ok(value) => Value::SingleQuotedString(value),
            Err(_) if missing_ok => Value::Null,
            Err(error) => return ControlFlow::Break(error),
        };
        *name = ObjectName::from(vec![Ident::new(SETTING_VALUE)]);
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value.into())))];
        ControlFlow::Continue(())
    });
    read.break_value().map_or(Ok(()), Err)
}

fn literal(argument: &FunctionArg) -> Option<&Value> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value, .. }))) => Some(value),
        _ => None,
    }
}
