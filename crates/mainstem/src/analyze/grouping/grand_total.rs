//! One group of all rows: `HAVING` without GROUP BY, and `GROUP BY ()`.
//!
//! DataFusion's planner aggregates without groups only where there is an aggregate, and knows no `GROUP BY ()`. So
//! HAVING gets a condition with an aggregate, which is always true.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Select, Value};

use crate::analyze::ast::expr::{bare, call};

/// See the module.
pub(in crate::analyze) fn grand_total(select: &mut Select) {
    let GroupByExpr::Expressions(by, modifiers) = &mut select.group_by else { return };
    let is_empty_set = |expr: &Expr| matches!(bare(expr), Expr::Tuple(members) if members.is_empty());
    if !modifiers.is_empty() || !by.iter().all(is_empty_set) || by.is_empty() && select.having.is_none() {
        return;
    }
    by.clear();
    let count = call("count", vec![Expr::Value(Value::Number("1".to_owned(), false).into())]);
    let holds = Expr::IsNotNull(Box::new(count));
    select.having = Some(match select.having.take() {
        None => holds,
        Some(having) => Expr::BinaryOp {
            left: Box::new(holds),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(having))),
        },
    });
}
