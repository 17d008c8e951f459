//! Expressions that DataFusion may give one name, though SQL tells them apart.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DateTimeField, Expr, Ident, ObjectNamePart, TrimWhereField, UnaryOperator, Value,
    VisitorMut,
};
use mainstem_postgres::registry::own_name;

use crate::sql::fold;
use crate::walk::walk_mut;

/// The text of `expr` in which what DataFusion may give one name is the same. So are casts and what is cast, numbers
/// and texts of their digits, names in and without quotes, with and without the table's name. So are functions by each
/// of their names, operators that are functions, operands that may change places, what stands in parentheses, queries.
pub(super) fn plain(expr: &Expr) -> String {
    struct Plain;
    impl VisitorMut for Plain {
        type Break = Infallible;

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
            match expr {
                Expr::Identifier(ident) => *ident = Ident::with_quote('"', fold(ident)),
                Expr::CompoundIdentifier(idents) => {
                    if let Some(last) = idents.last() {
                        *expr = Expr::Identifier(Ident::with_quote('"', fold(last)));
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }

        // DataFusion names a cast by what is cast, and every query `<subquery>`.
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
            match expr {
                Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => *expr = (**inner).clone(),
                // It is no part of a plan.
                Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => *expr = (**inner).clone(),
                Expr::TypedString(typed) => *expr = text(typed.value.value.clone()),
                Expr::Value(value) => *expr = text(value.value.clone()),
                Expr::Subquery(_) => *expr = Expr::Identifier(Ident::new("<subquery>")),
                Expr::Function(function) => {
                    for part in &mut function.name.0 {
                        if let ObjectNamePart::Identifier(name) = part {
                            let said = fold(name);
                            let known = match own_name(&said) {
                                Some("date_part") => "extract",
                                known => known.unwrap_or(&said),
                            };
                            *name = Ident::with_quote('"', known);
                        }
                    }
                }
                _ => {}
            }
            if let Some(called) = as_call(expr) {
                *expr = Expr::Identifier(Ident::new(called));
            }
            ControlFlow::Continue(())
        }
    }
    /// A text beside a number becomes one.
    fn text(value: Value) -> Expr {
        match value {
            Value::SingleQuotedString(text) => Expr::Identifier(Ident::new(text)),
            Value::Number(digits, _) => Expr::Identifier(Ident::new(digits)),
            // Any two may be NULL.
            Value::Placeholder(_) => Expr::value(Value::Null),
            other => Expr::value(other),
        }
    }
    let mut expr = expr.clone();
    let ControlFlow::Continue(()) = walk_mut(&mut expr, &mut Plain);
    expr.to_string()
}

/// The text of `expr`, whose parts are [`plain`], as that of a call, or of a sum or product whose operands stand in
/// order.
fn as_call(expr: &Expr) -> Option<String> {
    let call = |name: &str, args: &[Option<&Expr>]| {
        let args: Vec<String> = args.iter().flatten().map(ToString::to_string).collect();
        Some(format!("\"{name}\"({})", args.join(", ")))
    };
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::PGExp | BinaryOperator::BitwiseXor, right } => {
            call("power", &[Some(left), Some(right)])
        }
        Expr::BinaryOp { left, op: op @ (BinaryOperator::Plus | BinaryOperator::Multiply), right } => {
            let mut operands = [left.to_string(), right.to_string()];
            operands.sort();
            Some(operands.join(&format!(" {op} ")))
        }
        Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
            call("ceil", &[Some(expr)])
        }
        Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
            call("floor", &[Some(expr)])
        }
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            call("substr", &[Some(expr), substring_from.as_deref(), substring_for.as_deref()])
        }
        Expr::Position { expr, r#in } => call("strpos", &[Some(r#in), Some(expr)]),
        Expr::Trim { expr, trim_where, trim_what, trim_characters: None } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "ltrim",
                Some(TrimWhereField::Trailing) => "rtrim",
                Some(TrimWhereField::Both) | None => "btrim",
            };
            call(name, &[Some(expr), trim_what.as_deref()])
        }
        _ => None,
    }
}
