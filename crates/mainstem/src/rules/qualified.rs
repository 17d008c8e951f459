//! Columns named with schema and table, `s.t.a`: DataFusion takes them for a column of any `t` that was named without a schema.
//!
//! Comes in: a statement's tree, and what tables without a schema mean. Goes out: the same tree, in which every table of the catalog
//! has its full name if any column is named so; then `s.t.a` means no other table. What has no schema, an alias or a query of a
//! WITH, may still be taken for it: such a statement is refused. It does not own: the search path (`provider::names`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, Statement, TableFactor, Visit, Visitor,
};
use mainstem_storage::schema::RelationName;
use mainstem_storage::{Error, Result};

use crate::sql::{TableName, fold, qualify, table_name};

/// See the module.
///
/// # Errors
/// 0A000 for a column that could be one of several tables of the same name.
pub(crate) fn tell_tables_apart(
    statement: &mut Statement,
    resolve: &dyn Fn(&TableName) -> Option<RelationName>,
) -> Result<()> {
    let mut full = FullColumns::default();
    let _: ControlFlow<()> = Visit::visit(statement, &mut full);
    if full.tables.is_empty() {
        return Ok(());
    }
    qualify(statement, resolve);
    let mut named = Named::default();
    let _: ControlFlow<()> = Visit::visit(statement, &mut named);
    for (schema, table) in &full.tables {
        if let Some(of_name) = named.of_name.get(table)
            && of_name.bare > 0
            && of_name.bare + of_name.full > 1
        {
            return Err(Error::unsupported(format_args!(
                "a column of \"{schema}.{table}\" beside another \"{table}\" (give the table an alias, and name the column by it)"
            )));
        }
    }
    Ok(())
}

/// Schemas and tables of columns that are named with both.
#[derive(Default)]
struct FullColumns {
    tables: BTreeSet<(String, String)>,
}

impl Visitor for FullColumns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(idents) = expr
            && let [.., schema, table, _] = idents.as_slice()
        {
            self.tables.insert((fold(schema), fold(table)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &datafusion::sql::sqlparser::ast::Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Ok(TableName { schema: Some(schema), name }) = table_name(name)
            {
                self.tables.insert((schema, name));
            }
        }
        ControlFlow::Continue(())
    }
}

/// What columns may be qualified with, by the name of the table or alias.
#[derive(Default)]
struct Named {
    of_name: BTreeMap<String, Count>,
}

#[derive(Default)]
struct Count {
    bare: usize,
    full: usize,
}

impl Named {
    fn bare(&mut self, name: String) {
        self.of_name.entry(name).or_default().bare += 1;
    }

    fn relation(&mut self, name: &ObjectName) {
        match table_name(name) {
            Ok(TableName { schema: None, name }) => self.bare(name),
            Ok(TableName { schema: Some(_), name }) => self.of_name.entry(name).or_default().full += 1,
            // A system table, whose name is full.
            Err(_) => {}
        }
    }
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => self.bare(fold(&alias.name)),
            TableFactor::Table { name, alias: None, .. } => self.relation(name),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
