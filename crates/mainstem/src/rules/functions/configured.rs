//! `current_setting`: what SHOW shows, in a query.
//!
//! The names are read in the statement's tree, where the session's settings are at hand: a call becomes one of `setting_value` with the
//! setting's value, which that gives back. It is not immutable, so that nothing that outlives the statement keeps the value.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Statement,
    Value, ValueWithSpan, VisitMut, VisitorMut,
};
use mainstem_storage::{Error, Result};

use crate::sql::fold;

/// What SQL calls.
const NAME: &str = "current_setting";
/// What the call becomes.
const VALUE: &str = "setting_value";

/// The functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let named = |name, arguments| {
        let signature = Signature::new(arguments, Volatility::Stable);
        ScalarUDF::new_from_impl(CurrentSetting { name, signature })
    };
    let texts = |count| TypeSignature::Exact(vec![DataType::Utf8View; count]);
    let checked = TypeSignature::Exact(vec![DataType::Utf8View, DataType::Boolean]);
    [named(VALUE, texts(1)), named(NAME, TypeSignature::OneOf(vec![texts(1), checked]))]
}

/// Writes the settings' values into the calls of `statement`. `show` gives them.
///
/// # Errors
/// Those of `show`; 0A000 for a name that is computed.
pub(crate) fn with_settings(statement: &mut Statement, show: &dyn Fn(&str) -> Result<String>) -> Result<()> {
    match statement.visit(&mut Settings(show)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Settings<'a>(&'a dyn Fn(&str) -> Result<String>);

impl VisitorMut for Settings<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        if fold(ident) != NAME {
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
        let value = match (self.0)(&setting.to_lowercase()) {
            Ok(value) => Value::SingleQuotedString(value),
            Err(_) if missing_ok => Value::Null,
            Err(error) => return ControlFlow::Break(error),
        };
        *name = ObjectName::from(vec![Ident::new(VALUE)]);
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value.into())))];
        ControlFlow::Continue(())
    }
}

fn literal(argument: &FunctionArg) -> Option<&Value> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value, .. }))) => Some(value),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentSetting {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        if self.name == NAME {
            let error = Error::unsupported("current_setting in this place");
            return Err(DataFusionError::External(Box::new(error)));
        }
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("current_setting without its argument".into()))
    }
}
