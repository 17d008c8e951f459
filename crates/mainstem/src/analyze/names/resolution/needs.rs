//! Which statements need the columns of their tables: most do not.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, Visitor,
};

use super::join_columns::merges_itself;
use super::select_items::excludes;
use super::tables::{full_name, names_of_several};
use crate::analyze::ast::expr::{alias, is_star};
use crate::analyze::names::column_names::mentioned;
use crate::analyze::names::duplicate_names::beside_star;
use crate::analyze::names::output_names::outermost;
use crate::names::MARK;

/// What needs the columns of a statement's tables.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) any: bool,
    /// Names of tables that may be several.
    pub(super) several: HashSet<String>,
}

pub(super) fn names_some(alias: Option<&TableAlias>) -> bool {
    alias.is_some_and(|alias| !alias.columns.is_empty())
}

/// Whether `query` may give several columns of one name, or one whose name is internal (`duplicate_names`).
fn repeats_names(query: &Query) -> bool {
    let Some(select) = outermost(query) else { return false };
    let of_tables = select.from.len() > 1 || select.from.iter().any(|from| !from.joins.is_empty());
    let is_internal = |item: &SelectItem| alias(item).is_some_and(|alias| alias.ends_with(MARK));
    select.projection.iter().any(|item| is_internal(item) || of_tables && is_star(item))
}

impl Visitor for Needs {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let mut with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.any |= with.any(|cte| names_some(Some(&cte.alias)) || repeats_names(&cte.query));
        if let (SetExpr::Select(select), Some(order_by)) = (&*query.body, &query.order_by)
            && let OrderByKind::Expressions(keys) = &order_by.kind
        {
            let aliases: HashSet<String> = select.projection.iter().filter_map(alias).collect();
            let is_distinct = select.distinct == Some(Distinct::Distinct);
            let hides = |key: &Expr| {
                !matches!(key, Expr::Identifier(_) | Expr::Value(_))
                    && (is_distinct || !mentioned(key).is_disjoint(&aliases))
            };
            self.any |= (is_distinct || !aliases.is_empty()) && keys.iter().any(|key| hides(&key.expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.any |=
            select.from.iter().any(merges_itself) || beside_star(&select.projection) || excludes(&select.projection);
        if let Some(having) = &select.having {
            let aliases: HashSet<String> = select.projection.iter().filter_map(alias).collect();
            self.any |= !mentioned(having).is_disjoint(&aliases);
        }
        self.several.extend(names_of_several(select));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Infallible> {
        self.any |= match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => merges_itself(table_with_joins),
            TableFactor::Table { alias, args: None, .. } => names_some(alias.as_ref()),
            TableFactor::Derived { alias, subquery, .. } => names_some(alias.as_ref()) || repeats_names(subquery),
            _ => false,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.several.extend(full_name(expr));
        ControlFlow::Continue(())
    }
}
