//! CREATE SCHEMA; DROP of tables, views and schemas, and of what depends on them.
//!
//! Only views depend on anything: on the tables and views that their text names. A DROP without CASCADE is refused
//! while one is left that would read what is gone.

use std::collections::BTreeSet;

use mainstem_storage::catalog::{Catalog, Relation};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{PUBLIC, RelationName};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::all_or_nothing;
use crate::exec::{Environment, Notice};
use crate::provider::{Names, TEMPORARY, Wanted, undefined_schema, undefined_table};
use crate::sql::{CreateSchema, Drop, Dropped, INFORMATION, SYSTEM, TARGET_SCHEMA, TableName, read_by};

/// Makes a schema.
///
/// # Errors
/// 42P06 when there is one, 42939 for a name of our own.
pub(crate) fn create_schema(transaction: &mut Transaction, create: &CreateSchema) -> Result<Vec<Notice>> {
    let name = create.name.as_str();
    if name.starts_with("pg_") || name == TARGET_SCHEMA {
        return Err(Error::invalid("42939", format!("schema name \"{name}\" is reserved")));
    }
    if transaction.catalog().has_namespace(name) || is_ours(name) {
        let message = format!("schema \"{name}\" already exists");
        if create.if_not_exists {
            return Ok(vec![Notice::new(sqlstate::DUPLICATE_SCHEMA, format!("{message}, skipping"))]);
        }
        return Err(Error::invalid(sqlstate::DUPLICATE_SCHEMA, message));
    }
    transaction.create_namespace(name)?;
    Ok(Vec::new())
}

fn is_ours(name: &str) -> bool {
    name == SYSTEM || name == INFORMATION
}

/// What is to be dropped.
#[derive(Debug, Default)]
struct Doomed {
    relations: BTreeSet<RelationName>,
    schemas: Vec<String>,
    notices: Vec<Notice>,
}

/// Drops what a statement names, all or nothing.
///
/// # Errors
/// 42P01, 3F000, 42809 for a name of something else, 2BP01 for what is needed.
pub(crate) fn drop_objects(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    drop: &Drop,
) -> Result<Vec<Notice>> {
    let catalog = transaction.catalog();
    let names = env.settings.names();
    let mut doomed = match &drop.what {
        Dropped::Tables(tables) => doomed_relations(names, &catalog, tables, true, drop.if_exists)?,
        Dropped::Views(views) => doomed_relations(names, &catalog, views, false, drop.if_exists)?,
        Dropped::Schemas(schemas) => doomed_schemas(&catalog, schemas, drop)?,
    };
    for dependent in dependents(&catalog, &doomed.relations)? {
        if !drop.cascade {
            return Err(still_needed(drop, &dependent));
        }
        doomed.notices.push(Notice::new("00000", format!("drop cascades to view {dependent}")));
        doomed.relations.insert(dependent);
    }
    all_or_nothing(transaction, |transaction| {
        drop_relations(transaction, &doomed.relations)?;
        doomed.schemas.iter().try_for_each(|schema| transaction.drop_namespace(schema))
    })?;
    Ok(doomed.notices)
}

/// Drops tables and views.
pub(super) fn drop_relations(transaction: &mut Transaction, relations: &BTreeSet<RelationName>) -> Result<()> {
    let catalog = transaction.catalog();
    for name in relations {
        match catalog.relation(name) {
            Some(Relation::Table(table)) => transaction.drop_table(table.id)?,
            Some(Relation::View(_)) => transaction.drop_view(name)?,
            None => return Err(Error::internal("something to drop is not there")),
        }
    }
    Ok(())
}

fn doomed_relations(
    names: &Names,
    catalog: &Catalog,
    named: &[TableName],
    tables: bool,
    if_exists: bool,
) -> Result<Doomed> {
    let (kind, other) = if tables { ("table", "view") } else { ("view", "table") };
    let mut doomed = Doomed::default();
    for name in named {
        match names.find(catalog, name) {
            Some((full, relation)) if matches!(relation, Relation::Table(_)) == tables => {
                doomed.relations.insert(full);
            }
            Some(_) => {
                let message =
                    format!("\"{name}\" is not a {kind}; use DROP {} to remove a {other}", other.to_uppercase());
                return Err(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, message));
            }
            None if if_exists => {
                doomed.notices.push(Notice::new("00000", format!("{kind} \"{name}\" does not exist, skipping")));
            }
            None => {
                let wanted = if tables { Wanted::Table } else { Wanted::View };
                return Err(undefined_table(names, catalog, name, wanted, &[]));
            }
        }
    }
    Ok(doomed)
}

fn doomed_schemas(catalog: &Catalog, schemas: &[String], drop: &Drop) -> Result<Doomed> {
    let mut doomed = Doomed::default();
    for name in schemas {
        if name == PUBLIC || is_ours(name) {
            let message = format!("cannot drop schema \"{name}\", which the database itself needs");
            return Err(Error::invalid(sqlstate::DEPENDENT_OBJECTS, message));
        }
        if !catalog.has_namespace(name) || name.starts_with(TEMPORARY) {
            if drop.if_exists {
                doomed.notices.push(Notice::new("00000", format!("schema \"{name}\" does not exist, skipping")));
                continue;
            }
            return Err(undefined_schema(catalog, name));
        }
        if doomed.schemas.contains(name) {
            continue;
        }
        let tables = catalog.tables().map(|table| table.relation_name());
        for inside in tables.chain(catalog.views().map(|view| view.name.clone())).filter(|r| r.namespace == *name) {
            if !drop.cascade {
                let message = format!(
                    "cannot drop schema \"{name}\": \"{inside}\" stands in it; drop that first, or use CASCADE"
                );
                return Err(Error::invalid(sqlstate::DEPENDENT_OBJECTS, message));
            }
            doomed.notices.push(Notice::new("00000", format!("drop cascades to {inside}")));
            doomed.relations.insert(inside);
        }
        doomed.schemas.push(name.clone());
    }
    Ok(doomed)
}

/// The views that read something of `relations`, or another one that does, and are not among them.
pub(super) fn dependents(catalog: &Catalog, relations: &BTreeSet<RelationName>) -> Result<Vec<RelationName>> {
    let mut reads = Vec::new();
    for view in catalog.views() {
        reads.push((view.name.clone(), read_by(&view.query)?));
    }
    let mut known = relations.clone();
    let mut found = Vec::new();
    loop {
        let next = reads.iter().find(|(name, read)| !known.contains(name) && !read.is_disjoint(&known));
        let Some((name, _)) = next else { return Ok(found) };
        known.insert(name.clone());
        found.push(name.clone());
    }
}

fn still_needed(drop: &Drop, dependent: &RelationName) -> Error {
    let what = match &drop.what {
        Dropped::Tables(names) | Dropped::Views(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        Dropped::Schemas(names) => names.clone(),
    };
    let message =
        format!("cannot drop {}: view {dependent} reads it; drop that first, or use CASCADE", what.join(", "));
    Error::invalid(sqlstate::DEPENDENT_OBJECTS, message)
}
