//! Casts and subqueries within calls and groups that DataFusion gives one name: `sum(i)` beside `sum(i::bigint)`,
//! `GROUP BY i, i::text`.
//!
//! DataFusion names a cast by what is cast and a subquery by its column, and takes no two aggregates, windows or groups
//! of one name. Comes in: a SELECT that DataFusion has refused ([`super::duplicate_names::Naming`]), or whose groups it
//! would mix up ([`super::functional_dependencies`]). Goes out: the same one, in which each cast and each subquery is
//! an argument of [`CAST_LABEL`], beside the name of its type or a number. [`without_label`] removes these calls once
//! there is a plan, before any other rule looks at it; the names stay.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    self, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, OrderBy, Query, Select, TypedString, UnaryOperator, Value, VisitorMut,
};

use crate::analyze::ast::expr::{bare, call};
use crate::walk::walk_mut;

/// The function, `"cast to"(value, 'TYPE')`: its value.
const CAST_LABEL: &str = "cast to";

/// See the module.
pub(super) fn label_casts(select: &mut Select, order_by: &mut Option<OrderBy>) {
    let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_));
    let has_sets = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.iter().any(is_set));
    let mut label = CastLabel { has_sets, ..CastLabel::default() };
    let ControlFlow::Continue(()) = walk_mut(&mut select.distinct, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.projection, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.group_by, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.having, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.qualify, &mut label);
    let ControlFlow::Continue(()) = walk_mut(&mut select.named_window, &mut label);
    let ControlFlow::Continue(()) = walk_mut(order_by, &mut label);
}

#[derive(Default)]
struct CastLabel {
    /// Whether there are grouping sets: in these `a` and `+ a` are two groups, one of which may be left out.
    has_sets: bool,
    /// Queries around what is looked at: these label their own casts.
    queries: usize,
    /// The texts of subqueries: those of one text have one number.
    subqueries: Vec<String>,
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
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        let label = match &*expr {
            Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => data_type.to_string(),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr }
                if self.has_sets && !matches!(bare(expr), Expr::Value(_)) =>
            {
                "+".to_owned()
            }
            Expr::Subquery(query) => {
                let text = query.to_string();
                let known = self.subqueries.iter().position(|known| *known == text);
                let number = known.unwrap_or_else(|| {
                    self.subqueries.push(text);
                    self.subqueries.len() - 1
                });
                number.to_string()
            }
            _ => return ControlFlow::Continue(()),
        };
        let label = Expr::Value(Value::SingleQuotedString(label).into());
        *expr = call(CAST_LABEL, vec![expr.clone(), label]);
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
