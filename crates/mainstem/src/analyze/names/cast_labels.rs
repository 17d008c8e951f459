//! Casts within calls and groups that DataFusion gives one name: `sum(i)` beside `sum(i::bigint)`, `GROUP BY i,
//! i::text`.
//!
//! DataFusion names a cast by what is cast, and takes no two aggregates, windows or groups of one name. Comes in: a
//! query's tree. Goes out: the same one, in whose SELECT, if it has such calls or groups, each cast stands in a call of
//! [`CAST_LABEL`] with the name of its type, which the names show. [`without_label`] takes these calls off when the
//! plan is there, before any other rule looks at it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    self, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Query, SetExpr, Value, Visitor, VisitorMut};

use super::same_name::plain;
use crate::analyze::ast::expr::{bare, call};
use crate::walk::{walk, walk_mut};

/// The function, `"cast to"(value, 'TYPE')`: its value.
const CAST_LABEL: &str = "cast to";

/// See the module.
pub(crate) fn label_casts(query: &mut Query) {
    let Query { body, order_by, .. } = query;
    let SetExpr::Select(select) = &mut **body else { return };
    let mut calls = Calls::default();
    let ControlFlow::Continue(()) = walk(&select.projection, &mut calls);
    let ControlFlow::Continue(()) = walk(&select.having, &mut calls);
    let ControlFlow::Continue(()) = walk(&select.qualify, &mut calls);
    let ControlFlow::Continue(()) = walk(&select.named_window, &mut calls);
    let ControlFlow::Continue(()) = walk(order_by, &mut calls);
    let mut groups = Calls::default();
    if let GroupByExpr::Expressions(exprs, _) = &select.group_by {
        exprs.iter().for_each(|expr| groups.add_groups(expr));
    }
    if !calls.has_twins && !groups.has_twins {
        return;
    }
    let mut label = CastLabel { queries: 0 };
    let ControlFlow::Continue(()) = walk_mut(&mut select.projection, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.group_by, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.having, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.qualify, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.named_window, &mut label);
    let ControlFlow::Continue(()) = walk_mut(order_by, &mut label);
}

/// Calls, or groups, by the text that [`plain`] has for them.
#[derive(Default)]
struct Calls {
    seen: HashMap<String, String>,
    has_twins: bool,
    /// Queries around what is looked at: these tell their own casts.
    queries: usize,
}

impl Calls {
    fn add(&mut self, expr: &Expr) {
        let text = expr.to_string();
        let first = self.seen.entry(plain(expr)).or_insert_with(|| text.clone());
        self.has_twins |= *first != text;
    }

    fn add_groups(&mut self, expr: &Expr) {
        match bare(expr) {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                sets.iter().flatten().for_each(|expr| self.add(bare(expr)));
            }
            Expr::Tuple(exprs) => exprs.iter().for_each(|expr| self.add(bare(expr))),
            expr => self.add(expr),
        }
    }
}

impl Visitor for Calls {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if self.queries == 0 && matches!(expr, Expr::Function(_)) {
            self.add(expr);
        }
        ControlFlow::Continue(())
    }
}

struct CastLabel {
    queries: usize,
}

impl VisitorMut for CastLabel {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let (Expr::Cast { data_type, .. }, 0) = (&*expr, self.queries) {
            let name = Expr::Value(Value::SingleQuotedString(data_type.to_string()).into());
            *expr = call(CAST_LABEL, vec![expr.clone(), name]);
        }
        ControlFlow::Continue(())
    }
}

/// What stands in `called`, if it is a call of the function.
///
/// # Errors
/// The call.
pub(crate) fn without_label(called: ScalarFunction) -> std::result::Result<logical_expr::Expr, ScalarFunction> {
    if called.name() != CAST_LABEL {
        return Err(called);
    }
    match <[_; 2]>::try_from(called.args) {
        Ok([value, _]) => Ok(value),
        Err(args) => Err(ScalarFunction { func: called.func, args }),
    }
}

/// The function.
pub(crate) fn cast_label() -> ScalarUDF {
    ScalarUDF::new_from_impl(LabeledCast { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LabeledCast {
    signature: Signature,
}

impl ScalarUDFImpl for LabeledCast {
    fn name(&self) -> &str {
        CAST_LABEL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("{CAST_LABEL} without its arguments"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [value, _] => Ok(Arc::new(Field::clone(value).with_name(CAST_LABEL))),
            _ => internal_err!("{CAST_LABEL} without its arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match <[ColumnarValue; 2]>::try_from(args.args) {
            Ok([value, _]) => Ok(value),
            Err(_) => internal_err!("{CAST_LABEL} without its arguments"),
        }
    }
}
