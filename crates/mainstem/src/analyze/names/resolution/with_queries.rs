//! WITH queries of one name: the inner one hides that of a outer query.
//!
//! DataFusion knows one query of a name at a time (42712). So where several WITHs of a statement have one, each of
//! these queries gets a name of its own, the same letters and characters that are not seen (`relation_names` takes them
//! off), and so does what means it: tables in the query that the WITH stands before, in later queries of the WITH, and
//! in a recursive one itself. There they keep their names as aliases. Twice in one WITH is left alone: that is the
//! mistake that 42712 tells of.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableFactor, Visitor, VisitorMut, With,
};

use crate::names::MARK;
use crate::sql::fold;
use crate::walk::{walk, walk_mut};

/// See the module.
pub(crate) fn rename_with_queries(statement: &mut Statement) {
    let mut found = Found::default();
    let ControlFlow::Continue(()) = walk(statement, &mut found);
    found.counts.retain(|_, count| *count > 1);
    if !found.counts.is_empty() {
        let ControlFlow::Continue(()) = walk_mut(statement, &mut Renamer { left: found.counts });
    }
}

/// In how many WITHs a name is one.
#[derive(Default)]
struct Found {
    counts: HashMap<String, usize>,
}

impl Visitor for Found {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let names: HashSet<String> = query.with.iter().flat_map(|with| &with.cte_tables).map(name_of).collect();
        for name in names {
            *self.counts.entry(name).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

fn name_of(cte: &Cte) -> String {
    fold(&cte.alias.name)
}

struct Renamer {
    /// How many WITHs have a name that are still to be seen.
    left: HashMap<String, usize>,
}

impl VisitorMut for Renamer {
    type Break = Infallible;

    // Innermost first: what still means the name by then means this one.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(mut with) = query.with.take() else { return ControlFlow::Continue(()) };
        for at in 0..with.cte_tables.len() {
            let Some(name) = with.cte_tables.get(at).map(name_of) else { break };
            let is_one = with.cte_tables.iter().filter(|cte| name_of(cte) == name).count() == 1;
            let Some(left) = self.left.get_mut(&name).filter(|_| is_one) else { continue };
            let mut own = name.clone();
            own.extend(std::iter::repeat_n(MARK, *left));
            *left = left.saturating_sub(1);
            rename(&mut with, at, &Renamed { name, own: Ident::with_quote('"', own) }, query);
        }
        query.with = Some(with);
        ControlFlow::Continue(())
    }
}

/// Renames the query at `at` of `with`, which stands before `query`, and what means it.
fn rename(with: &mut With, at: usize, renamed: &Renamed, query: &mut Query) {
    let is_recursive = with.recursive;
    for (place, cte) in with.cte_tables.iter_mut().enumerate() {
        if place == at {
            cte.alias.name = renamed.own.clone();
        }
        if place > at || is_recursive && place == at {
            let ControlFlow::Continue(()) = walk_mut(&mut cte.query, &mut renamed.clone());
        }
    }
    let ControlFlow::Continue(()) = walk_mut(query, &mut renamed.clone());
}

#[derive(Clone)]
struct Renamed {
    name: String,
    own: Ident,
}

impl VisitorMut for Renamed {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, alias, args: None, .. } = table
            && let [ObjectNamePart::Identifier(said)] = name.0.as_slice()
            && fold(said) == self.name
        {
            let said = said.clone();
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: said, columns: Vec::new(), at: None });
            *name = ObjectName::from(vec![self.own.clone()]);
        }
        ControlFlow::Continue(())
    }
}
