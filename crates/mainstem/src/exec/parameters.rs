//! What the parameters of the running statement stand for, and how their values get into its plan.
//!
//! Comes in: values, or types of them, bound by `plan::parameters`, which decides which types they have. Goes out: the
//! statement's tree with types declared, and the plan with the values in it; literals where the planner takes nothing
//! else.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{self, BinaryExpr, LogicalPlan, Operator};
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Query, Select, SetExpr,
    Statement as Ast, TableFactor, Value, ValueWithSpan, VisitorMut,
};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use crate::analyze::cast;
use crate::error::from_datafusion;
use crate::sql::ast_type;
use crate::walk::walk_mut;

/// What the parameters of the running statement stand for.
#[derive(Debug, Default)]
pub(crate) struct Parameters(pub(crate) Vec<Parameter>);

/// One of them.
#[derive(Debug)]
pub(crate) enum Parameter {
    Null,
    /// No value yet: for a plan that is only looked at.
    Typed(DataType),
    Bound(DataType, ScalarValue),
}

impl Parameters {
    /// Of these types, without values; text where the context tells none.
    pub(crate) fn typed(types: &[Option<DataType>]) -> Self {
        let text = DataType::Text { max_chars: None };
        Self(types.iter().map(|t| Parameter::Typed(t.unwrap_or(text))).collect())
    }

    /// The same without values, for a plan that is kept; NULLs stay, for they fit everywhere.
    pub(crate) fn without_values(&self) -> Self {
        let without = |parameter: &Parameter| match parameter {
            Parameter::Null => Parameter::Null,
            Parameter::Typed(data_type) | Parameter::Bound(data_type, _) => Parameter::Typed(*data_type),
        };
        Self(self.0.iter().map(without).collect())
    }

    /// The types of the values; none of NULLs.
    pub(crate) fn types(&self) -> Vec<Option<DataType>> {
        let of = |parameter: &Parameter| match parameter {
            Parameter::Null => None,
            Parameter::Typed(data_type) | Parameter::Bound(data_type, _) => Some(*data_type),
        };
        self.0.iter().map(of).collect()
    }

    /// Whether the statement has none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes bound values where DataFusion takes nothing but literals: arguments of functions in FROM, texts that
    /// spell arrays, and SELECTs with grouping sets.
    pub(crate) fn inline(&self, statement: &mut Ast) {
        if !self.0.is_empty() {
            let _: ControlFlow<()> = walk_mut(statement, &mut Inlined(self));
        }
    }

    /// `statement`, with NULLs in their places and types for the other parameters.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn declare(&self, mut statement: Ast) -> Result<Ast> {
        if self.0.is_empty() {
            return Ok(statement);
        }
        // A NULL in the text fits everywhere; one with a type does not.
        let _: ControlFlow<()> = walk_mut(&mut statement, &mut Nulls(self));
        let type_of = |parameter: &Parameter| match parameter {
            Parameter::Null => DataType::Text { max_chars: None },
            Parameter::Typed(data_type) | Parameter::Bound(data_type, _) => *data_type,
        };
        let data_types =
            self.0.iter().map(type_of).map(|t| {
                ast_type(t).ok_or_else(|| Error::internal(format!("the type {t} of a parameter has no name")))
            });
        let data_types = data_types.collect::<Result<_>>()?;
        Ok(Ast::Prepare { name: Ident::new("running"), data_types, statement: Box::new(statement) })
    }

    /// The plan of what [`Parameters::declare`] gave, with the values in it.
    ///
    /// # Errors
    /// Those of a type that does not fit after all.
    pub(crate) fn fill(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Statement(logical_expr::Statement::Prepare(prepare)) = plan else { return Ok(plan) };
        let plan = Arc::unwrap_or_clone(prepare.input);
        let value = |parameter: &Parameter| match parameter {
            Parameter::Null => Some(ScalarValue::Null),
            Parameter::Typed(_) => None,
            Parameter::Bound(_, scalar) => Some(scalar.clone()),
        };
        let values = self.0.iter().map(|p| value(p).map(ScalarAndMetadata::from)).collect::<Option<Vec<_>>>();
        match values {
            Some(values) => {
                let plan = plan.replace_params_with_values(&ParamValues::List(values));
                let has_pattern =
                    self.0.iter().any(|p| matches!(p, Parameter::Bound(_, scalar) if is_any_text(scalar)));
                let plan = if has_pattern { plan.and_then(with_other_pattern) } else { plan };
                plan.map_err(|e| from_datafusion(&e))
            }
            None => Ok(plan),
        }
    }
}

/// The pattern that the optimizer takes for none: `s ~ '.*'` becomes `s IS NOT NULL`, which is false of a NULL.
const ANY_TEXT: &str = ".*";

fn is_any_text(scalar: &ScalarValue) -> bool {
    scalar.try_as_str().flatten() == Some(ANY_TEXT)
}

fn is_regex(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch)
}

/// `plan` with a pattern that means the same in the place of [`ANY_TEXT`], as `analyze` writes it into texts.
fn with_other_pattern(plan: LogicalPlan) -> datafusion::common::Result<LogicalPlan> {
    let other = |expr: logical_expr::Expr| {
        Ok(match expr {
            logical_expr::Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_regex(op) && matches!(&*right, logical_expr::Expr::Literal(text, _) if is_any_text(text)) =>
            {
                let right = Box::new(logical_expr::lit(format!("({ANY_TEXT})")));
                Transformed::yes(logical_expr::Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            other => Transformed::no(other),
        })
    };
    let changed = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(other)?.update_data(|expr| name.restore(expr)))
        })
    });
    changed.map(|plan| plan.data)
}

struct Nulls<'a>(&'a Parameters);

impl VisitorMut for Nulls<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Some(at) = position(&value.value)
            && matches!(self.0.0.get(at), Some(Parameter::Null))
        {
            value.value = Value::Null;
        }
        ControlFlow::Continue(())
    }
}

struct Inlined<'a>(&'a Parameters);

impl Inlined<'_> {
    /// The value of the parameter `expr` as a literal, if it is bound to one that has a plain form.
    fn literal(&self, expr: &Expr) -> Option<Expr> {
        let value = match self.0.0.get(parameter_of(expr)?)? {
            Parameter::Null => Value::Null,
            Parameter::Typed(_) => return None,
            Parameter::Bound(_, scalar) => match scalar {
                ScalarValue::Int16(Some(v)) => Value::Number(v.to_string(), false),
                ScalarValue::Int32(Some(v)) => Value::Number(v.to_string(), false),
                ScalarValue::Int64(Some(v)) => Value::Number(v.to_string(), false),
                ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                    Value::SingleQuotedString(text.clone())
                }
                _ => return None,
            },
        };
        Some(Expr::Value(value.into()))
    }
}

/// As [`Inlined`], everywhere, and values without a plain form as casts of their text.
struct InlinedWithin<'a>(Inlined<'a>);

impl InlinedWithin<'_> {
    /// The value of the parameter `expr` as a cast of its text, if it is bound to one that has one.
    fn cast(&self, expr: &Expr) -> Option<Expr> {
        match self.0.0.0.get(parameter_of(expr)?)? {
            Parameter::Bound(data_type, scalar) => {
                Some(cast(Expr::value(Value::SingleQuotedString(text_of(scalar)?)), ast_type(*data_type)?))
            }
            _ => None,
        }
    }
}

impl VisitorMut for InlinedWithin<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(literal) = self.0.literal(expr).or_else(|| self.cast(expr)) {
            *expr = literal;
        }
        ControlFlow::Continue(())
    }
}

/// As [`InlinedWithin`], with a type for whatever has one: a plain number would be the place of a column.
struct InlinedWithTypes<'a>(InlinedWithin<'a>);

impl VisitorMut for InlinedWithTypes<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(literal) = self.0.cast(expr).or_else(|| self.0.0.literal(expr)) {
            *expr = literal;
        }
        ControlFlow::Continue(())
    }
}

/// The text of `scalar`, if it is no NULL and has one.
fn text_of(scalar: &ScalarValue) -> Option<String> {
    match scalar.cast_to(&arrow::datatypes::DataType::Utf8).ok()? {
        ScalarValue::Utf8(text) => text,
        _ => None,
    }
}

impl VisitorMut for Inlined<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let SetExpr::Select(select) = &*query.body
            && has_grouping_sets(&select.group_by)
        {
            let _: ControlFlow<()> =
                walk_mut(&mut query.order_by, &mut InlinedWithTypes(InlinedWithin(Inlined(self.0))));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if has_grouping_sets(&select.group_by) {
            let _: ControlFlow<()> = walk_mut(select, &mut InlinedWithTypes(InlinedWithin(Inlined(self.0))));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { args: Some(list), .. } = table {
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                    let _: ControlFlow<()> = walk_mut(expr, &mut InlinedWithin(Inlined(self.0)));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: inner, data_type: SqlType::Array(_), .. } = expr
            && let Some(literal) = self.literal(inner)
        {
            **inner = literal;
        }
        ControlFlow::Continue(())
    }
}

/// Whether there are grouping sets: DataFusion names their expressions with the parameters in them, and does not find
/// them with the values.
fn has_grouping_sets(group_by: &GroupByExpr) -> bool {
    let GroupByExpr::Expressions(expressions, modifiers) = group_by else { return false };
    let is_sets = |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_));
    !modifiers.is_empty() || expressions.iter().any(is_sets)
}

/// Which parameter, from 0, a value in the text is.
fn position(value: &Value) -> Option<usize> {
    let Value::Placeholder(text) = value else { return None };
    text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

pub(crate) fn parameter_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => position(&value.value),
        Expr::Nested(inner) => parameter_of(inner),
        _ => None,
    }
}

/// Which parameter, from 0, a placeholder is.
pub(super) fn position_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}
