//! `lag(a, n, d)` and `lead(a, n, d)` with a default that is computed: `CASE WHEN lag(true, n) THEN lag(a, n) WHEN n IS
//! NOT NULL THEN d END`, over the same window. With IGNORE NULLS it is `CASE WHEN n <> 0 THEN coalesce(lag(a, n), d)
//! ELSE lag(a, n) END`: what is found in another row is never NULL. Where n is NULL, so is the value.
//!
//! DataFusion takes literals alone, and makes them values of the type of `a`: a default with more digits would lose
//! them. Whole numbers, texts and NULL stay with it.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, NullTreatment, ObjectNamePart,
    Value, ValueWithSpan,
};

use super::expr::{bare, call as coalesce, case};
use crate::sql::fold;

/// See the module; other expressions stay.
pub(crate) fn default_beside(expr: &mut Expr) {
    if let Expr::Function(call) = expr
        && let Some(default) = computed_default(call)
    {
        let value = with_arguments(call, None);
        if call.null_treatment == Some(NullTreatment::IgnoreNulls) {
            let found = coalesce("coalesce", vec![value.clone(), default.value]);
            let is_elsewhere = Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(default.offset))),
                op: BinaryOperator::NotEq,
                right: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
            };
            *expr = case(vec![(is_elsewhere, found)], value);
            return;
        }
        let is_there = with_arguments(call, Some(Expr::Value(Value::Boolean(true).into())));
        let has_offset = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(default.offset))));
        *expr = case(vec![(is_there, value), (has_offset, default.value)], Expr::value(Value::Null));
    }
}

struct Default {
    offset: Expr,
    value: Expr,
}

/// The default of a call of `lag` or `lead`, if DataFusion does not do it.
fn computed_default(call: &Function) -> Option<Default> {
    let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(offset)), FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] =
        list.args.as_slice()
    else {
        return None;
    };
    let is_one = matches!(fold(name).as_str(), "lag" | "lead") && call.over.is_some();
    (is_one && !is_simple(value)).then(|| Default { offset: offset.clone(), value: value.clone() })
}

fn is_simple(default: &Expr) -> bool {
    match bare(default) {
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::Number(digits, _) => digits.bytes().all(|b| b.is_ascii_digit()),
            Value::SingleQuotedString(_) | Value::Null | Value::Boolean(_) | Value::Placeholder(_) => true,
            _ => false,
        },
        _ => false,
    }
}

/// `call` without its default, and with another value.
fn with_arguments(call: &Function, value: Option<Expr>) -> Expr {
    let mut call = call.clone();
    if let FunctionArguments::List(list) = &mut call.args {
        list.args.truncate(2);
        if let (Some(value), Some(first)) = (value, list.args.first_mut()) {
            *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
        }
    }
    Expr::Function(call)
}
