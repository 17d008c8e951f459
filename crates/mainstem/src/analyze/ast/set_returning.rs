//! Functions that give rows, in select items: `generate_series(1, 3) + 1` is `unnest(generate_series(1, 3)) + 1`.
//!
//! In FROM, where their arguments are columns of other tables: `FROM t, generate_series(1, t.n) g` is `FROM t, LATERAL
//! (SELECT unnest(generate_series(1, t.n)) AS g) g`. DataFusion's functions in FROM take constants.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Visitor,
};

use super::expr::{call, called};
use crate::sql::{fold, stored_query};
use crate::walk::walk;

/// The function whose rows are the values of the array that a function of this name gives.
const SERIES: &str = "generate_series";

/// The column of `unnest` in FROM is called like the table that it is, and that like the function unless it has an
/// alias.
pub(crate) fn unnest_table(table: &mut TableFactor) {
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

/// Makes rows of the calls within `expr`, a select item; not within its subqueries, nor where rows cannot stand (CASE).
pub(crate) fn unnest(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => unnest(inner),
        Expr::BinaryOp { left, right, .. } => {
            unnest(left);
            unnest(right);
        }
        Expr::Function(function) if called_name(&function.name).as_deref() != Some("unnest") => {
            let is_series = called_name(&function.name).as_deref() == Some(SERIES);
            if let FunctionArguments::List(list) = &mut function.args {
                for argument in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                        unnest(argument);
                    }
                }
            }
            if is_series && called(expr).is_some() {
                *expr = call("unnest", vec![expr.clone()]);
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

/// Makes LATERAL queries of the functions in FROM of `select` whose arguments are columns.
pub(crate) fn lateral(select: &mut Select) {
    for (at, from) in select.from.iter_mut().enumerate() {
        factor(&mut from.relation, at > 0);
        from.joins.iter_mut().for_each(|join| factor(&mut join.relation, true));
    }
}

/// As [`lateral`], of one table, behind others or not: then its columns are those of an outer query.
fn factor(table: &mut TableFactor, behind: bool) {
    let (array, said, alias) = match table {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality: false, .. } if args.settings.is_none() => {
            let Some(array) = array_of(name, &args.args) else { return };
            (array, called_name(name), alias)
        }
        TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
            let Some(array) = array_of(name, args) else { return };
            (array, called_name(name), alias)
        }
        TableFactor::UNNEST { array_exprs, alias, with_offset: false, with_ordinality: false, .. } => {
            let [array] = array_exprs.as_slice() else { return };
            (array.clone(), None, alias)
        }
        TableFactor::NestedJoin { table_with_joins, .. } => {
            factor(&mut table_with_joins.relation, behind);
            table_with_joins.joins.iter_mut().for_each(|join| factor(&mut join.relation, true));
            return;
        }
        _ => return,
    };
    if !reads_columns(&array) {
        return;
    }
    let said = said.unwrap_or_else(|| "unnest".to_owned());
    let (name, column) = match alias {
        Some(TableAlias { name, columns, .. }) => {
            (name.clone(), columns.first().map_or_else(|| name.clone(), |column| column.name.clone()))
        }
        None => (Ident::new(said.clone()), Ident::new(said)),
    };
    let Ok(mut subquery) = stored_query("SELECT 1") else { return };
    let SetExpr::Select(select) = &mut *subquery.body else { return };
    let rows = call("unnest", vec![array]);
    select.projection = vec![SelectItem::ExprWithAlias { expr: rows, alias: column }];
    let alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    *table = TableFactor::Derived { lateral: behind, subquery, alias, sample: None };
}

/// The array of the rows that a function of this name gives.
fn array_of(name: &ObjectName, args: &[FunctionArg]) -> Option<Expr> {
    let name = called_name(name)?;
    match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] if name == "unnest" => Some(array.clone()),
        args => (name == SERIES).then(|| call_of(SERIES, args.to_vec())),
    }
}

fn call_of(name: &str, args: Vec<FunctionArg>) -> Expr {
    let mut call = call(name, Vec::new());
    if let Expr::Function(Function { args: FunctionArguments::List(FunctionArgumentList { args: own, .. }), .. }) =
        &mut call
    {
        *own = args;
    }
    call
}

/// Whether a column stands in `expr`.
pub(crate) fn reads_columns(expr: &Expr) -> bool {
    struct Columns;
    impl Visitor for Columns {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expr, &mut Columns).is_break()
}
