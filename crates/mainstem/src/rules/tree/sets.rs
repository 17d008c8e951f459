//! Functions that give rows, in select items: `generate_series(1, 3) + 1` is `unnest(generate_series(1, 3)) + 1`,
//! and `string_to_table` and `regexp_split_to_table` the rows of `string_to_array` and `regexp_split_to_array`, in FROM too.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, TableAlias,
    TableAliasColumnDef, TableFactor,
};

use super::{call, called};
use crate::sql::fold;

/// Functions whose rows are the values of an array, with those that give it.
const SETS: [(&str, &str); 3] = [
    ("generate_series", "generate_series"),
    ("string_to_table", "string_to_array"),
    ("regexp_split_to_table", "regexp_split_to_array"),
];

/// A call of `string_to_table` or `regexp_split_to_table` in FROM as `unnest` of the array. The column of a function is called like the table
/// that it is, and that like the function unless it has an alias.
pub(super) fn unnest_table(table: &mut TableFactor) {
    if let Some(other) = called_in_from(table) {
        *table = other;
    }
    let TableFactor::UNNEST { alias, array_exprs, with_ordinality: false, .. } = table else { return };
    if array_exprs.len() != 1 {
        return;
    }
    let named = || TableAlias { explicit: true, name: Ident::new("unnest"), columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(named);
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

fn called_in_from(table: &mut TableFactor) -> Option<TableFactor> {
    let TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } = table else { return None };
    let name = called_name(name)?;
    let (said, array) = SETS.iter().find(|(said, array)| *said == name && said != array)?;
    let given = args.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let given = given.collect::<Option<Vec<_>>>()?;
    let named = || TableAlias { explicit: true, name: Ident::new(*said), columns: Vec::new(), at: None };
    Some(TableFactor::UNNEST {
        alias: Some(alias.take().unwrap_or_else(named)),
        array_exprs: vec![call(array, given)],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    })
}

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
