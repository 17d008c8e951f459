//! The names of a statement before DataFusion plans it.
//!
//! Comes in: a statement's tree, and the tables it names. Goes out: the same tree in names that DataFusion takes for
//! what SQL means by them, and how many of them are internal. It does not own: the rewrites (`analyze`).

use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_postgres::types::field_type;
use mainstem_storage::catalog::Relation;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::Source;
use super::files::StatementFiles;
use crate::analyze::{
    BesideStar, KnownTable, Naming, add_dependent_columns, balance, mark_relations, name_duplicates, resolve_names,
    type_literals,
};
use crate::provider::{ExternalTables, SEARCHED, SystemTables};
use crate::sql::{FILES_SCHEMA, INFORMATION, SYSTEM, TARGET_SCHEMA, TableName, state};

/// How a statement is named, the next one where DataFusion finds two things of one name.
pub(super) const NAMINGS: [(BesideStar, Naming); 4] = [
    (BesideStar::All, Naming::Repeated),
    (BesideStar::All, Naming::Items),
    (BesideStar::All, Naming::Expressions),
    (BesideStar::Mentioned, Naming::Expressions),
];

/// Whether `error` may be of two things that have one name to DataFusion.
pub(super) fn is_refused(error: &Error) -> bool {
    [sqlstate::DUPLICATE_COLUMN, state::AMBIGUOUS_COLUMN].contains(&error.sqlstate())
}

/// Says `statement` in words that depend on the tables it names.
///
/// # Errors
/// Those of the rewrites.
pub(super) fn with_tables(
    statement: &mut Ast,
    source: &Source<'_>,
    (files, externals): (&StatementFiles, &ExternalTables),
    naming: Naming,
) -> Result<()> {
    let (catalog, names) = (source.transaction.catalog(), source.settings.names());
    let table = |name: &TableName| match name.schema.as_deref() {
        Some(schema @ (SYSTEM | INFORMATION)) => {
            let columns = SystemTables::columns(schema, &name.name);
            let columns = columns.fields().iter().map(|field| field.name().clone());
            Some(KnownTable::of_columns(schema, columns.collect())).filter(|table| !table.columns.is_empty())
        }
        Some(FILES_SCHEMA) => files.known(&name.name),
        Some(TARGET_SCHEMA) => {
            let target = source.target.as_ref()?;
            let table = target.schema().clone();
            Some(KnownTable::of(&table.namespace, Relation::Table(table.clone())))
        }
        _ => match names.find(&catalog, name) {
            Some((full, relation)) => Some(KnownTable::of(&full.namespace, relation)),
            None => known_external(externals, name),
        },
    };
    balance(statement);
    name_duplicates(statement, naming)?;
    resolve_names(statement, naming, &table)?;
    add_dependent_columns(statement, &table);
    type_literals(statement);
    mark_relations(statement, &table);
    Ok(())
}

/// What names need of a table of the program; what is wrong with it shows when it is planned.
fn known_external(externals: &ExternalTables, name: &TableName) -> Option<KnownTable> {
    let table = externals.find(&name.name).ok().flatten().filter(|_| name.schema.is_none())?;
    let fields = table.columns().fields();
    let columns = fields.iter().map(|field| field.name().clone()).collect();
    let types = fields.iter().map(|field| field_type(field)).collect();
    Some(KnownTable { types, ..KnownTable::of_columns(SEARCHED, columns) })
}
