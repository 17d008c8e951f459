//! Columns called like a table: `SELECT n FROM cust WHERE EXISTS (SELECT 1 FROM ord WHERE ord.cust = cust.id)`.
//!
//! DataFusion reads `cust.id` as a field of the column `ord.cust` before it looks at the tables of the outer query.
//! There are no columns with fields here, so what stands in front of a point is always a table. Where a column of any
//! table of the statement has that name, the table has another one for the time of planning, everywhere in the
//! statement: the same letters and a character that is not seen (`without_mark` takes it off).

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Statement, TableAlias, TableFactor, Visitor, VisitorMut,
};

use super::KnownTable;
use crate::names::{MARK, without_marks};
use crate::sql::{EXCLUDED, TableName, fold, table_name};
use crate::walk::{walk, walk_mut};

/// `batch`, whose texts have all names of tables as the statement says them.
pub(crate) fn rows_without_marks(batch: RecordBatch) -> RecordBatch {
    let plain = |array: &ArrayRef| -> ArrayRef {
        match array.as_string_opt::<i32>() {
            Some(texts) => Arc::new(texts.iter().map(|text| text.map(without_marks)).collect::<StringArray>()),
            None => array.clone(),
        }
    };
    let columns = batch.columns().iter().map(plain).collect();
    RecordBatch::try_new(batch.schema(), columns).unwrap_or(batch)
}

/// See the module.
pub(crate) fn mark_relations(statement: &mut Statement, known: &dyn Fn(&TableName) -> Option<KnownTable>) {
    let mut found = Found::default();
    let ControlFlow::Continue(()) = walk(statement, &mut found);
    if found.qualifiers.is_empty() {
        return;
    }
    for table in &found.tables {
        found.columns.extend(known(table).into_iter().flat_map(|table| table.columns));
    }
    let of_column = |name: &&String| found.columns.contains(*name) && *name != EXCLUDED;
    let names: HashSet<String> = found.qualifiers.iter().filter(of_column).cloned().collect();
    if !names.is_empty() {
        let ControlFlow::Continue(()) = walk_mut(statement, &mut Renamed { names });
    }
}

#[derive(Default)]
struct Found {
    tables: Vec<TableName>,
    /// What stands in front of a column's name.
    qualifiers: HashSet<String>,
    /// Names that the statement itself gives to columns.
    columns: HashSet<String>,
}

impl Visitor for Found {
    type Break = Infallible;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Infallible> {
        self.tables.extend(table_name(relation));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. } = table
        {
            self.columns.extend(alias.columns.iter().map(|column| fold(&column.name)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &datafusion::sql::sqlparser::ast::Query) -> ControlFlow<Infallible> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.columns.extend(tables.flat_map(|table| &table.alias.columns).map(|column| fold(&column.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.columns.insert(fold(alias));
                }
                SelectItem::UnnamedExpr(expr) => {
                    self.columns.extend(super::output_names::item_name(item).or_else(|| last_of(expr)))
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::CompoundIdentifier(idents) => {
                if let [table, _] = idents.as_slice() {
                    self.qualifiers.insert(fold(table));
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let (Expr::Identifier(table), Some(AccessExpr::Dot(_))) = (&**root, access_chain.first()) {
                    self.qualifiers.insert(fold(table));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn last_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(fold),
        _ => None,
    }
}

struct Renamed {
    names: HashSet<String>,
}

impl Renamed {
    fn rename(&self, ident: &mut Ident) {
        let name = fold(ident);
        if self.names.contains(&name) {
            *ident = Ident::with_quote('"', format!("{name}{MARK}"));
        }
    }
}

impl VisitorMut for Renamed {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => self.rename(&mut alias.name),
            TableFactor::Table { name, alias: alias @ None, .. } => {
                if let Some(ObjectNamePart::Identifier(ident)) = name.0.last() {
                    let mut renamed = ident.clone();
                    self.rename(&mut renamed);
                    if renamed != *ident {
                        *alias = Some(TableAlias { explicit: true, name: renamed, columns: Vec::new(), at: None });
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(table)] = name.0.as_mut_slice()
            {
                self.rename(table);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::CompoundIdentifier(idents) => {
                if let [table, _] = idents.as_mut_slice() {
                    self.rename(table);
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let (Expr::Identifier(table), Some(AccessExpr::Dot(_))) = (&mut **root, access_chain.first()) {
                    self.rename(table);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
