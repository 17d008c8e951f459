//! Clauses of queries that DataFusion's planner reads past without a word. Each is refused here, so that nothing a user
//! wrote is ignored.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectFlavor, SetExpr, TableAlias, TableFactor, Visit, Visitor,
};
use mainstem_storage::{Error, Result};

use super::state;

/// Tables and SELECTs of one statement. Planning walks them by recursion, in time that grows with the square.
pub(crate) const RELATIONS_MAX: usize = 1_000;

/// Looks through `query` and everything in it.
///
/// # Errors
/// 0A000 that names the clause; 54001 for too many tables.
pub(crate) fn check_query<T: Visit>(query: &T) -> Result<()> {
    if let ControlFlow::Break(what) = query.visit(&mut Refusals) {
        return Err(Error::unsupported(what));
    }
    match query.visit(&mut Relations(0)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::invalid(
            state::TOO_COMPLEX,
            format!("the statement has more than {RELATIONS_MAX} tables and SELECTs"),
        )),
    }
}

/// Counts them.
struct Relations(usize);

impl Relations {
    fn one_more(&mut self) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 > RELATIONS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Visitor for Relations {
    type Break = ();

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.one_more()
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.one_more()
    }
}

struct Refusals;

fn refuse_if(condition: bool, what: &'static str) -> ControlFlow<&'static str> {
    if condition { ControlFlow::Break(what) } else { ControlFlow::Continue(()) }
}

impl Visitor for Refusals {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        let Query {
            with: _,
            body,
            order_by: _,
            limit_clause: _,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        refuse_if(!locks.is_empty(), "FOR UPDATE, FOR SHARE")?;
        refuse_if(fetch.is_some(), "FETCH FIRST (use LIMIT)")?;
        refuse_if(for_clause.is_some(), "a FOR clause")?;
        refuse_if(settings.is_some(), "a SETTINGS clause")?;
        refuse_if(format_clause.is_some(), "a FORMAT clause")?;
        refuse_if(!pipe_operators.is_empty(), "a pipe operator")?;
        refuse_if(
            matches!(**body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)),
            "a write inside a query",
        )
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
        refuse_if(select.into.is_some(), "SELECT INTO (use CREATE TABLE and INSERT)")?;
        refuse_if(select.top.is_some(), "TOP (use LIMIT)")?;
        refuse_if(select.prewhere.is_some(), "PREWHERE")?;
        refuse_if(!select.connect_by.is_empty(), "CONNECT BY")?;
        refuse_if(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        refuse_if(!select.cluster_by.is_empty(), "CLUSTER BY")?;
        refuse_if(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        refuse_if(!select.sort_by.is_empty(), "SORT BY")?;
        refuse_if(select.value_table_mode.is_some(), "SELECT AS VALUE, AS STRUCT")?;
        refuse_if(select.select_modifiers.is_some(), "this modifier of SELECT")?;
        refuse_if(select.exclude.is_some(), "EXCLUDE")?;
        refuse_if(select.flavor != SelectFlavor::Standard, "FROM before SELECT")
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        match expr {
            Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } => refuse_if(
                matches!(&*query.body, SetExpr::Select(select) if select.projection.is_empty()),
                "a subquery without columns as an expression",
            ),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
        match table {
            TableFactor::Table {
                name: _,
                alias,
                args: _,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                check_alias(alias.as_ref())?;
                refuse_if(!with_hints.is_empty() || !index_hints.is_empty(), "a hint on a table")?;
                refuse_if(version.is_some(), "a version of a table")?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")?;
                refuse_if(!partitions.is_empty(), "PARTITION of a table")?;
                refuse_if(json_path.is_some(), "a JSON path on a table")?;
                refuse_if(sample.is_some(), "TABLESAMPLE")
            }
            TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
                check_alias(alias.as_ref())?;
                refuse_if(sample.is_some(), "TABLESAMPLE")
            }
            TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias } => {
                check_alias(alias.as_ref())?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn check_alias(alias: Option<&TableAlias>) -> ControlFlow<&'static str> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return ControlFlow::Continue(()) };
    refuse_if(at.is_some(), "AT behind a table alias")?;
    refuse_if(columns.iter().any(|c| c.data_type.is_some()), "types of columns in a table alias")
}
