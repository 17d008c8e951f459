//! Which parameters may stand in a kept plan: those whose values mean there what literals in their places would.
//!
//! Comes in: an expression over rows of a schema, in a plan that is not optimised yet. Goes out: whether something in
//! it depends on when it is optimised, or on a parameter being a literal.
//!
//! - Functions may want a literal ([`takes_columns`]), and so do windows and the later arguments of aggregates.
//! - A text literal is read as a value of the type that it stands beside, and not as a text: a parameter of type text
//!   stays where all that it stands beside is text, too, and no CHAR(n); or where UPDATE assigns it to a column: its
//!   type is that of the column then.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, WindowFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Volatility};
use mainstem_postgres::registry::takes_columns;
use mainstem_postgres::types::field_type;
use mainstem_storage::schema::DataType;

/// Functions whose arguments have one type.
const OF_ONE_TYPE: &[&str] = &["coalesce", "greatest", "least", "nullif", "nvl", "nvl2"];

/// Whether an expression of `node` depends on when it is optimised, or on a parameter being a literal. `assigns` says
/// that each is assigned to a column.
///
/// # Errors
/// Internal.
pub(super) fn depends(node: &LogicalPlan, assigns: bool) -> Result<bool> {
    let (mut depends, schema) = (false, merge_schema(&node.inputs()));
    let is_right = |expr: &Expr| assigns && type_of_parameter(expr).is_some_and(is_text);
    node.apply_expressions(|expr| {
        depends |=
            (is_text_parameter(expr) && !is_right(expr)) || expr.exists(|expr| Ok(depends_itself(expr, &schema)))?;
        Ok(if depends { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(depends)
}

/// The same of `expr`, apart from what is in it.
fn depends_itself(expr: &Expr, schema: &DFSchema) -> bool {
    let wants_literals = match expr {
        Expr::Placeholder(placeholder) => placeholder.field.is_none(),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            func.signature().volatility != Volatility::Immutable
                || args.iter().enumerate().any(|(at, arg)| has_parameter(arg) && !takes_columns(func, at))
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            // Where DISTINCT has an ORDER BY, the two are compared with one another.
            let is_compared = params.distinct && !params.order_by.is_empty();
            let taken = usize::from(!func.supports_within_group_clause() && !is_compared);
            params.args.iter().skip(taken).any(has_parameter)
        }
        Expr::WindowFunction(window) => {
            let WindowFunction { params, .. } = &**window;
            params.args.iter().any(has_parameter)
        }
        // Its expressions have names with the parameters in them, which a run does not find.
        Expr::GroupingSet(_) => has_parameter(expr),
        _ => false,
    };
    wants_literals || reads_text_otherwise(expr, schema)
}

/// Whether a parameter stands in `expr`.
pub(super) fn has_parameter(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).unwrap_or(true)
}

/// Whether a text literal in the place of a parameter of type text that stands right in `expr` may be no text.
fn reads_text_otherwise(expr: &Expr, schema: &DFSchema) -> bool {
    let mut operands = Vec::new();
    let listed = expr.apply_children(|child| {
        operands.push(child);
        Ok(TreeNodeRecursion::Continue)
    });
    if listed.is_err() || !operands.iter().any(|operand| is_text_parameter(operand)) {
        return listed.is_err();
    }
    let all = |fits: fn(DataType) -> bool| {
        operands.iter().all(|operand| {
            let field = operand.to_field(schema);
            field.is_ok_and(|(_, field)| field.data_type().is_null() || field_type(&field).is_some_and(fits))
        })
    };
    match expr {
        Expr::BinaryExpr(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::InList(_) | Expr::Between(_) => !all(is_text),
        // What the array stands beside says what its texts are.
        Expr::ScalarFunction(call) if call.name() == "make_array" => true,
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.name()) => !all(is_text),
        Expr::ScalarFunction(_) => !all(|data_type| {
            use DataType::{BigInt, Integer, SmallInt, Text};
            matches!(data_type, Text { .. } | SmallInt | Integer | BigInt)
        }),
        Expr::Cast(cast) => field_type(&cast.field) != Some(DataType::Text { max_chars: None }),
        Expr::IsNull(_) | Expr::IsNotNull(_) => false,
        _ => true,
    }
}

/// Whether `expr` is a parameter of type text, perhaps with a name of its own.
fn is_text_parameter(expr: &Expr) -> bool {
    type_of_parameter(expr).is_some_and(DataType::is_text)
}

/// The type of `expr`, if it is a parameter, perhaps with a name of its own.
fn type_of_parameter(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Placeholder(placeholder) => placeholder.field.as_ref().and_then(|field| field_type(field)),
        Expr::Alias(alias) => type_of_parameter(&alias.expr),
        _ => None,
    }
}

/// Whether it is text without blanks that do not count.
fn is_text(data_type: DataType) -> bool {
    matches!(data_type, DataType::Text { .. })
}
