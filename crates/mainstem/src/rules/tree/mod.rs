//! What SQL says and DataFusion's planner reads otherwise, or not at all: said in words that it reads, in a statement's tree.
//!
//! Comes in: a statement's tree, and what is known of its tables. Goes out: the same statement in other words. In this order, the first
//! in the whole statement, the others in each query:
//!
//! 0. WITH queries that hide one another get names of their own ([`scopes`]).
//! 1. Select items that other parts of the statement can mean get PostgreSQL's names ([`columns`]).
//! 2. ORDER BY the position of an expression: the select item gets a name ([`positions`]). DataFusion takes a position for the column
//!    of that text, and finds it again in GROUP BY only under a name of its own. A position in grouping sets is the item's expression.
//! 3. `generate_series` and other functions that give rows, in select items: DataFusion's give one list; and in FROM, over columns ([`sets`]).
//! 4. LIMIT and OFFSET of texts, and of numbers that are not whole ([`limits`]).
//! 5. SIMILAR TO, and `substring` by a pattern, become regular expressions; LIKE with ESCAPE becomes LIKE ([`patterns`]).
//! 6. Defaults of `lag` and `lead` become a CASE ([`offsets`]).
//! 7. Comparisons of rows become comparisons of their parts ([`rows`]).
//! 8. Literals of arrays, and functions that DataFusion has under another name ([`words`]).
//!
//! Then, with the catalog, names that DataFusion takes for others say what they mean ([`scopes`]), GROUP BY of a key gets the columns that the key determines ([`grouped`]), and tables that columns are called like
//! get names of their own ([`relations`]).
//!
//! Beside it, [`ItemNames`] gives a result's columns the names that PostgreSQL gives them.
//!
//! It does not own: what the parser reads otherwise (`sql::parse`), names of items that repeat (`twins`).

mod columns;
mod grouped;
mod limits;
mod names;
mod offsets;
mod patterns;
mod positions;
mod relations;
mod rows;
mod scopes;
mod sets;
mod words;

pub(crate) use columns::BesideStar;
pub(crate) use grouped::group_by_keys;
pub(crate) use limits::check_limits;
pub(crate) use names::ItemNames;
pub(super) use names::title;
pub(super) use relations::MARK;
pub(crate) use relations::{as_said, relations_first, rows_without_marks, without_marks};
pub(crate) use rows::check_rows;
pub(crate) use scopes::spell_names;
pub(super) use sets::reads_columns;

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, Statement, TableFactor, VisitMut, VisitorMut,
};
use mainstem_storage::catalog::Relation;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::DataType;

use crate::sql::fold;

/// What the catalog says of a table or a view.
#[derive(Debug)]
pub(crate) struct KnownTable {
    /// The schema it stands in.
    pub(crate) schema: String,
    /// The names of its columns.
    pub(crate) columns: Vec<String>,
    /// The types of these, where they are known.
    pub(crate) types: Vec<Option<DataType>>,
    /// Those of its PRIMARY KEY; empty without one.
    pub(crate) key: Vec<String>,
}

impl KnownTable {
    /// That of `relation`, which stands in `schema`.
    pub(crate) fn of(schema: &str, relation: Relation) -> Self {
        match relation {
            Relation::Table(table) => {
                let column = |id: &ColumnId| table.column(*id).map(|column| column.name.clone());
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                let types = table.columns.iter().map(|column| Some(column.data_type)).collect();
                Self {
                    schema: schema.to_owned(),
                    columns,
                    types,
                    key: table.primary_key.iter().filter_map(column).collect(),
                }
            }
            Relation::View(view) => Self::of_columns(schema, view.columns.clone()),
        }
    }

    /// A table of `columns` in `schema`, of which nothing else is known.
    pub(crate) fn of_columns(schema: &str, columns: Vec<String>) -> Self {
        let types = columns.iter().map(|_| None).collect();
        Self { schema: schema.to_owned(), columns, types, key: Vec::new() }
    }
}

/// See the module. Whether columns were named that may have the name of one that is not known here; [`BesideStar::Mentioned`] leaves them.
pub(crate) fn reword(statement: &mut Statement, beside: BesideStar) -> bool {
    scopes::tell_with_queries(statement);
    let guessed = columns::name_columns(statement, beside);
    let ControlFlow::Continue(()) = statement.visit(&mut Reworded);
    guessed
}

struct Reworded;

impl VisitorMut for Reworded {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        positions::name_ordered(query);
        limits::read(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                sets::unnest(expr);
            }
        }
        sets::lateral(select);
        positions::in_sets(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        sets::unnest_table(table);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        patterns::as_regex(expr);
        rows::by_parts(expr);
        offsets::default_beside(expr);
        words::reword(expr);
        ControlFlow::Continue(())
    }
}

/// `name(args)`.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The name of the function that `expr` calls, with its arguments: if it does nothing else.
fn called(expr: &Expr) -> Option<(String, Vec<&Expr>)> {
    let Expr::Function(function) = expr else { return None };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_plain = list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && matches!(function.parameters, FunctionArguments::None);
    let argument = |arg: &'_ FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_)));
    if !is_plain || !list.args.iter().all(argument) {
        return None;
    }
    let args = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some((fold(name), args.collect()))
}

/// `expr` without the parentheses around it.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        _ => expr,
    }
}
