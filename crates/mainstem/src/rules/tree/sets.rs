//! Functions that give rows, in select items: `generate_series(1, 3) + 1` is `unnest(generate_series(1, 3)) + 1`,
//! and `string_to_table` the rows of `string_to_array`.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
};

use super::{call, called};
use crate::sql::fold;

/// Functions whose rows are the values of an array, with those that give it.
const SETS: [(&str, &str); 2] = [("generate_series", "generate_series"), ("string_to_table", "string_to_array")];

/// Makes rows of the calls within `expr`, a select item; not within its subqueries, nor where rows cannot stand (CASE).
pub(super) fn unnest(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => unnest(inner),
        Expr::BinaryOp { left, right, .. } => {
            unnest(left);
            unnest(right);
        }
        Expr::Function(function) if called_name(&function.name).as_deref() != Some("unnest") => {
            let set = called_name(&function.name).and_then(|name| SETS.iter().find(|(said, _)| *said == name));
            if let FunctionArguments::List(list) = &mut function.args {
                for argument in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                        unnest(argument);
                    }
                }
            }
            if let Some((_, array)) = set {
                function.name = ObjectName::from(vec![Ident::new(*array)]);
                if called(expr).is_some() {
                    *expr = call("unnest", vec![expr.clone()]);
                }
            }
        }
        _ => {}
    }
}

fn called_name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(fold(name)),
        _ => None,
    }
}
