//! The order of the rewrites of a statement's tree.
//!
//! Comes in: a statement's tree, and what is known of its tables. Goes out: the same statement in another form. In this
//! order, the first in the whole statement, the others in each query:
//!
//! 0. WITH queries that hide one another get names of their own (`names::resolution::with_queries`).
//! 1. Select items that other parts of the statement can mean get PostgreSQL's names (`names::column_names`).
//! 2. ORDER BY the position of an expression: the select item gets a name (`positions`). DataFusion takes a position
//!    for the column of that text, and finds it again in GROUP BY only under a name of its own. Keys of DISTINCT ON
//!    come in the order of ORDER BY, once each (`sort_keys`). GROUP BY and HAVING get groups that DataFusion knows
//!    (`grouping`): the expressions of positions in grouping sets, members once each, one group of all rows.
//! 3. `generate_series` and other functions that give rows, in select items: DataFusion's give one list; and in FROM,
//!    over columns (`set_returning`).
//! 4. SIMILAR TO, and `substring` by a pattern, become regular expressions; LIKE with ESCAPE becomes LIKE
//!    (`patterns`).
//! 5. Defaults of `lag` and `lead` become a CASE (`lag_lead`).
//! 6. Comparisons of rows become comparisons of their parts (`row_comparisons`).
//! 7. Literals of arrays, and functions that DataFusion has under another name (`normalize`).
//!
//! Then, with the catalog, names that DataFusion takes for others are qualified (`names::resolution`). GROUP BY of a
//! key gets the columns that the key determines (`names::functional_dependencies`). Tables that columns are called like
//! get names of their own (`names::relation_names`).
//!
//! Beside it, `names::OutputNames` gives a result's columns the names that PostgreSQL gives them.
//!
//! It does not own: what the parser reads otherwise (`sql::parse`), names of items that repeat (`duplicate_names`).

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Distinct, Expr, Query, Select, SelectItem, Statement, TableFactor, VisitorMut};

use super::ast::{lag_lead, normalize, patterns, positions, row_comparisons, set_returning, sort_keys};
use super::grouping;
use super::names::resolution::with_queries;
use super::names::{BesideStar, column_names};
use crate::walk::walk_mut;

/// See the module. Whether columns were named that may have the name of one that is not known here;
/// [`BesideStar::Mentioned`] leaves them.
pub(crate) fn rewrite(statement: &mut Statement, beside: BesideStar) -> bool {
    with_queries::rename_with_queries(statement);
    let guessed = column_names::name_columns(statement, beside);
    let ControlFlow::Continue(()) = walk_mut(statement, &mut Rewriter);
    guessed
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        sort_keys::match_distinct_on(query);
        positions::name_ordered(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        // ALL is what is meant without it.
        if select.distinct == Some(Distinct::All) {
            select.distinct = None;
        }
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                set_returning::unnest(expr);
            }
        }
        set_returning::lateral(select);
        grouping::normalize_members(select);
        grouping::grand_total(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        set_returning::unnest_table(table);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        patterns::as_regex(expr);
        row_comparisons::compare_by_fields(expr);
        lag_lead::default_beside(expr);
        sort_keys::once_in_aggregate(expr);
        normalize::normalize(expr);
        ControlFlow::Continue(())
    }
}
