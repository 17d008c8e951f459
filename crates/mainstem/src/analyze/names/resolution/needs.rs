//! Which statements need the columns of their tables: most do not.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByKind, Query, Select, SetExpr, TableAlias, TableFactor, Visitor,
};

use super::join_columns::merges_itself;
use super::select_items::excludes;
use super::tables::{full_name, names_of_several};
use crate::analyze::ast::expr::alias;
use crate::analyze::names::column_names::mentioned;
use crate::analyze::names::duplicate_names::beside_star;
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

impl Visitor for Needs {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        self.any |= query.with.iter().flat_map(|with| &with.cte_tables).any(|cte| names_some(Some(&cte.alias)));
        if let (SetExpr::Select(select), Some(order_by)) = (&*query.body, &query.order_by)
            && let OrderByKind::Expressions(keys) = &order_by.kind
        {
            let aliases: HashSet<String> = select.projection.iter().filter_map(alias).collect();
            let is_distinct = select.distinct == Some(Distinct::Distinct);
            let hides = |key: &Expr| {
                !matches!(key, Expr::Identifier(_)) && (is_distinct || !mentioned(key).is_disjoint(&aliases))
            };
            self.any |= !aliases.is_empty() && keys.iter().any(|key| hides(&key.expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.any |=
            select.from.iter().any(merges_itself) || beside_star(&select.projection) || excludes(&select.projection);
        // Names that are ambiguous outside (`duplicate_names`).
        self.any |= select.projection.iter().filter_map(alias).any(|alias| alias.ends_with(MARK));
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
            TableFactor::Table { alias, args: None, .. } | TableFactor::Derived { alias, .. } => {
                names_some(alias.as_ref())
            }
            _ => false,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.several.extend(full_name(expr));
        ControlFlow::Continue(())
    }
}
