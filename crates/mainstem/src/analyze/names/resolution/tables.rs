//! Tables of one name: `SELECT s.t.a FROM s.t, u.t`.
//!
//! DataFusion takes `s.t.a` for a column of any `t` that was named without a schema, and knows no two tables of one
//! name in a FROM. So a table that could be another gets an alias that no other has, and what is named with it that
//! alias: the same letters and characters that are not seen (`relation_names` takes them off).
//!
//! `s.t.a` means the innermost table of FROM that is `s.t` and has no alias; `t.a` the innermost that is called `t`.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
    TableWithJoins,
};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::{Error, ErrorKind, Result};

use super::join_columns::{Columns, Table};
use super::select_items::quoted;
use crate::names::MARK;
use crate::provider::TEMPORARY;
use crate::sql::{fold, state};

/// The name of the table in `expr`, a column named with its schema.
pub(super) fn full_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(idents) => match idents.as_slice() {
            [.., _, table, _] => Some(fold(table)),
            _ => None,
        },
        _ => None,
    }
}

/// The names that `select` has in front of a `*` with a schema there or in FROM, which DataFusion takes for two tables,
/// and those that several tables of its FROM have.
pub(super) fn names_of_several(select: &Select) -> HashSet<String> {
    let mut names: HashSet<String> = HashSet::new();
    for item in &select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && (name.0.len() > 1 || in_schema(&select.from, name))
        {
            names.extend(last(name));
        }
    }
    let mut seen = HashSet::new();
    for name in select.from.iter().flat_map(named) {
        if !seen.insert(name.clone()) {
            names.insert(name);
        }
    }
    names
}

/// Whether FROM names a table `name` with its schema and without alias.
fn in_schema(from: &[TableWithJoins], name: &ObjectName) -> bool {
    let is_it = |factor: &TableFactor| match factor {
        TableFactor::Table { name: full, alias: None, args: None, .. } => full.0.len() > 1 && last(full) == last(name),
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            in_schema(std::slice::from_ref(table_with_joins), name)
        }
        _ => false,
    };
    from.iter().any(|from| is_it(&from.relation) || from.joins.iter().any(|join| is_it(&join.relation)))
}

/// The names of the tables of `from` that have no alias.
fn named(from: &TableWithJoins) -> Vec<String> {
    let of_factor = |factor: &TableFactor| match factor {
        TableFactor::Table { name, alias: None, args: None, .. } => last(name).into_iter().collect(),
        TableFactor::NestedJoin { table_with_joins, alias: None } => named(table_with_joins),
        _ => Vec::new(),
    };
    let factors = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
    factors.flat_map(of_factor).collect()
}

pub(super) fn last(name: &ObjectName) -> Option<String> {
    match name.0.last()? {
        ObjectNamePart::Identifier(ident) => Some(fold(ident)),
        ObjectNamePart::Function(_) => None,
    }
}

/// The `number`th name that looks like `name`.
pub(super) fn unseen(name: &str, number: usize) -> Ident {
    // One character is that of a table that columns are called like.
    quoted(&format!("{name}{}", MARK.to_string().repeat(number + 1)))
}

/// What the table is called that `name`, perhaps in `schema`, means in `scopes`, the innermost last: `None` if that is
/// its name.
///
/// # Errors
/// 42P01, 42P09.
pub(super) fn called(scopes: &[Columns], schema: Option<&str>, name: &str) -> Result<Option<Ident>> {
    let Some(schema) = schema else {
        for scope in scopes.iter().rev() {
            let found: Vec<&Table> = scope.tables.iter().filter(|table| table.name == name).collect();
            match found.as_slice() {
                [] => {}
                [table] => return Ok(table.called.clone()),
                _ => {
                    let message = format!("table reference \"{name}\" is ambiguous");
                    return Err(Error::invalid(state::AMBIGUOUS_ALIAS, message)
                        .with_object(NamedObject::new(ObjectKind::Qualifier, [name])));
                }
            }
        }
        return Ok(None);
    };
    let is_it = |table: &&Table| {
        table.name == name
            && table
                .schema
                .as_deref()
                .is_some_and(|of_table| of_table == schema || schema == TEMPORARY && of_table.starts_with(TEMPORARY))
    };
    for is_alias in [false, true] {
        let mut all = scopes.iter().rev().flat_map(|scope| &scope.tables).filter(|table| table.is_alias == is_alias);
        if let Some(table) = all.find(is_it) {
            return Ok(Some(table.called.clone().unwrap_or_else(|| quoted(name))));
        }
    }
    let message = format!("missing FROM-clause entry for table \"{name}\" of schema \"{schema}\"");
    Err(Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message)
        .with_object(NamedObject::new(ObjectKind::Qualifier, [schema, name])))
}

/// Fails for two of `tables`, those of one FROM, that go by one name: all but tables under their own, of different
/// schemas.
///
/// # Errors
/// 42712.
pub(super) fn check_once(tables: &[Table]) -> Result<()> {
    let own = |table: &Table| table.schema.clone().filter(|_| !table.is_alias);
    for (at, table) in tables.iter().enumerate() {
        let is_same = |other: &Table| {
            other.name == table.name && own(other).zip(own(table)).is_none_or(|(other, own)| other == own)
        };
        if tables.iter().take(at).any(is_same) {
            let message = format!("table name \"{}\" specified more than once", table.name);
            return Err(Error::invalid(state::DUPLICATE_ALIAS, message));
        }
    }
    Ok(())
}
