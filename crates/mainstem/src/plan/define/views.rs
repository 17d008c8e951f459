//! CREATE VIEW, and what becomes of views when a table that they read changes.
//!
//! A view is kept as the text of its query with full names and without `*`, and with the names of all its columns: it
//! stays what it was when columns are added. When a table changes, the views over it must still be right and have the
//! same columns.

use std::collections::BTreeSet;

use arrow::datatypes::DataType as ArrowType;
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};
use mainstem_postgres::types::sql_type;
use mainstem_storage::catalog::Relation;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{RelationName, View};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::all_or_nothing;
use super::schemas::{dependents, drop_relations};
use crate::exec::{Environment, Notice};
use crate::names::without_mark;
use crate::sql::{
    CreateView, TableName, expand_wildcards, item_names, qualify, query_text, read_by, refuse_files, state,
    stored_query, with_stored,
};

/// Names and types of a view's columns.
type Shape = Vec<(String, ArrowType)>;

/// Makes a view, or puts one in the place of another.
///
/// # Errors
/// Those of the query; 42P07 when the name is taken, 42809 by a table; 42P16 when the new columns do not begin with the
/// old ones; 42P17 for a view over itself; 42701 for two columns of one name.
pub(crate) fn create_view(env: &mut Environment<'_>, transaction: &mut Transaction, create: &CreateView) -> Result<()> {
    refuse_files(&create.query, "a view")?;
    let catalog = transaction.catalog();
    let name = env.settings.names().new_relation(&catalog, &create.name)?;
    if env.settings.names().is_temporary(&name.namespace) {
        return Err(Error::unsupported("a temporary view"));
    }
    let there = catalog.relation(&name).cloned();
    match &there {
        Some(Relation::View(_)) if create.or_replace => {}
        Some(Relation::Table(_)) if create.or_replace => {
            return Err(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a view")));
        }
        Some(_) => {
            return Err(Error::invalid(sqlstate::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
        }
        None => {}
    }
    let query = resolved(env, transaction, &create.query)?;
    let mut shape = shape_of(env, transaction, query.clone())?;
    if create.columns.len() > shape.len() {
        return Err(Error::invalid(sqlstate::SYNTAX, "CREATE VIEW specifies more column names than columns"));
    }
    for (column, name) in shape.iter_mut().zip(item_names(&query)) {
        if let Some(name) = name {
            column.0 = name;
        }
    }
    for (column, name) in shape.iter_mut().zip(&create.columns) {
        column.0.clone_from(name);
    }
    check_names(&shape)?;
    if read_by(&query_text(&query)?)?.iter().any(|read| env.settings.names().is_temporary(&read.namespace)) {
        return Err(Error::unsupported("a view over a temporary table"));
    }
    let text = query_text(&query)?;
    let view = View { name: name.clone(), columns: shape.iter().map(|(name, _)| name.clone()).collect(), query: text };
    if there.is_none() {
        return all_or_nothing(transaction, |transaction| put(env, transaction, view, &shape));
    }
    let before = shape_of_view(env, transaction, &name)?;
    check_extends(&before, &shape)?;
    let reads = read_by(&view.query)?;
    let over = dependents(&catalog, &BTreeSet::from([name.clone()]))?;
    if reads.contains(&name) || over.iter().any(|other| reads.contains(other)) {
        return Err(Error::invalid("42P17", format!("view \"{name}\" would read itself")));
    }
    all_or_nothing(transaction, |transaction| {
        transaction.drop_view(&name)?;
        put(env, transaction, view, &shape)
    })
}

/// Makes `view`, which must give what its query gave.
fn put(env: &mut Environment<'_>, transaction: &mut Transaction, view: View, shape: &Shape) -> Result<()> {
    let name = view.name.clone();
    transaction.create_view(view)?;
    if shape_of_view(env, transaction, &name)? == *shape {
        return Ok(());
    }
    Err(Error::unsupported(format_args!("this query as that of view \"{name}\"")))
}

/// `query` with full names and without `*` where it gives the columns.
fn resolved(env: &mut Environment<'_>, transaction: &Transaction, query: &Query) -> Result<Box<Query>> {
    let catalog = transaction.catalog();
    let names = env.settings.names().clone();
    let mut query = Box::new(query.clone());
    qualify(&mut query, &|name: &TableName| names.find(&catalog, name).map(|(full, _)| full));
    let written = shape_of(env, transaction, query.clone())?;
    expand_wildcards(&mut query, &mut |query| {
        let plan = env.plan(transaction, Ast::Query(Box::new(query)), None)?;
        let columns = plan.schema().iter();
        Ok(columns
            .map(|(table, field)| (table.map(|t| without_mark(t.table()).to_owned()), field.name().clone()))
            .collect())
    })?;
    // Names of columns that occur twice are made different on the way: the types tell whether it is still the same.
    let expanded = match shape_of(env, transaction, query.clone()) {
        // Nobody can say which of them is meant.
        Err(error) if error.sqlstate() == state::AMBIGUOUS_COLUMN => Vec::new(),
        expanded => expanded?,
    };
    if !written.iter().map(|(_, t)| t).eq(expanded.iter().map(|(_, t)| t)) {
        return Err(Error::unsupported("\"*\" in this query of a view (name the columns)"));
    }
    Ok(query)
}

fn shape_of(env: &mut Environment<'_>, transaction: &Transaction, query: Box<Query>) -> Result<Shape> {
    let plan = env.plan(transaction, Ast::Query(query), None)?;
    Ok(plan.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect())
}

/// What a view, which is there, gives.
fn shape_of_view(env: &mut Environment<'_>, transaction: &Transaction, name: &RelationName) -> Result<Shape> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let text = format!("SELECT * FROM {}.{}", quoted(&name.namespace), quoted(&name.name));
    with_stored(usize::MAX, || shape_of(env, transaction, stored_query(&text)?))
}

fn check_names(shape: &Shape) -> Result<()> {
    for (at, (name, data_type)) in shape.iter().enumerate() {
        if shape.iter().take(at).any(|(before, _)| before == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
        }
        if *data_type == ArrowType::Null {
            return Err(Error::unsupported(format_args!("column \"{name}\" of a view without a type (use CAST)")));
        }
    }
    Ok(())
}

/// A view that is replaced keeps its columns, and may get more.
fn check_extends(before: &Shape, after: &Shape) -> Result<()> {
    let refused = |message: String| Err(Error::invalid(sqlstate::INVALID_TABLE, message));
    for (at, (name, data_type)) in before.iter().enumerate() {
        match after.get(at) {
            None => return refused("cannot drop columns from view".to_owned()),
            Some((new, _)) if new != name => {
                return refused(format!("cannot change name of view column \"{name}\" to \"{new}\""));
            }
            // Texts have several forms inside.
            Some((_, new)) if new != data_type && sql_type(new) != sql_type(data_type) => {
                return refused(format!("cannot change data type of view column \"{name}\""));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The views over a table, and what they give.
#[derive(Debug)]
pub(super) struct Over(Vec<(RelationName, Shape)>);

impl Over {
    /// Those over `table`, before it changes.
    pub(super) fn table(env: &mut Environment<'_>, transaction: &Transaction, table: &RelationName) -> Result<Self> {
        let mut views = Vec::new();
        for name in dependents(&transaction.catalog(), &BTreeSet::from([table.clone()]))? {
            let shape = shape_of_view(env, transaction, &name)?;
            views.push((name, shape));
        }
        Ok(Self(views))
    }

    /// Whether they are what they were, after the change. With `cascade` those that are not are dropped.
    ///
    /// # Errors
    /// 2BP01.
    pub(super) fn check(
        self,
        env: &mut Environment<'_>,
        transaction: &mut Transaction,
        cascade: bool,
    ) -> Result<Vec<Notice>> {
        let mut broken = BTreeSet::new();
        let mut notices = Vec::new();
        for (name, shape) in self.0 {
            if shape_of_view(env, transaction, &name).is_ok_and(|now| now == shape) {
                continue;
            }
            if !cascade {
                let message = format!("cannot change the table: view {name} reads what the change takes away");
                return Err(Error::invalid(sqlstate::DEPENDENT_OBJECTS, message));
            }
            notices.push(Notice::new("00000", format!("drop cascades to view {name}")));
            broken.insert(name);
        }
        drop_relations(transaction, &broken)?;
        Ok(notices)
    }
}
