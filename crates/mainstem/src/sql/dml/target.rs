//! What the three writes have in common: the table they write, what stands beside it, and RETURNING.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Query, SelectItem, TableAlias, TableFactor, TableWithJoins, With,
};
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, Result};

use super::super::{TableName, check_query, check_tables, fold, state, table_name};
use super::select::{SelectOf, compound, item, stored_table, target_table};
use super::{ROW_REF, quoted};

/// The table a statement writes, and the other clauses that any write may have.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The table.
    pub(crate) table: TableName,
    alias: Option<Ident>,
    with: Option<With>,
    /// The tables of FROM or USING.
    others: Vec<TableWithJoins>,
    /// One of them has the name of this one, in another schema: what means either says which.
    has_namesake: bool,
    returning: Option<Vec<SelectItem>>,
}

impl Target {
    /// Whether there is nothing beside the table but RETURNING: no WITH, no other tables.
    pub(crate) fn is_plain(&self) -> bool {
        self.with.is_none() && self.others.is_empty()
    }

    /// The items of RETURNING, if the statement has it.
    pub(crate) fn returned_items(&self) -> Option<&[SelectItem]> {
        self.returning.as_deref()
    }

    /// Puts the clauses together.
    pub(super) fn new(
        table: TableName,
        alias: Option<Ident>,
        with: Option<With>,
        others: Vec<TableWithJoins>,
        returning: Option<Vec<SelectItem>>,
    ) -> Result<Self> {
        check_tables(&others)?;
        check_query(&others)?;
        if let Some(with) = &with {
            check_query(with)?;
        }
        if let Some(items) = &returning {
            check_query(items)?;
        }
        let mut target = Self { table, alias, with, others, has_namesake: false, returning };
        let own = target.alias.is_none().then(|| target.table.clone());
        let mut names = vec![(target.qualifier_name(), own)];
        for table in &target.others {
            let factors = std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation));
            for (name, factor) in factors.filter_map(|factor| Some((name_of(factor)?, factor))) {
                let full = full_name(factor);
                // Tables without aliases may be of two schemas; planning knows.
                let is_same = |(other, its): &(String, Option<TableName>)| {
                    *other == name && its.as_ref().zip(full.as_ref()).is_none_or(|(its, full)| its == full)
                };
                if names.iter().any(is_same) {
                    return Err(named_twice(&name));
                }
                target.has_namesake |= name == target.qualifier_name();
                names.push((name, full));
            }
        }
        if target.has_namesake && target.returning.is_some() {
            return Err(Error::unsupported(format_args!(
                "RETURNING beside another table called \"{}\" (give one of them an alias)",
                target.table.name
            )));
        }
        Ok(target)
    }

    /// Whether the statement gives rows.
    pub(crate) fn gives_rows(&self) -> bool {
        self.returning.is_some()
    }

    /// Whether other tables take part: a row of the table may then be found several times.
    pub(crate) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// The queries in front of the statement.
    pub(super) fn with(&self) -> Option<&With> {
        self.with.as_ref()
    }

    /// What the table's columns are qualified with.
    pub(super) fn qualifier(&self) -> Ident {
        self.alias.as_ref().map_or_else(|| quoted(&self.table.name), |alias| quoted(&fold(alias)))
    }

    /// As text.
    pub(crate) fn qualifier_name(&self) -> String {
        self.qualifier().value
    }

    /// The item that names the rows of the table.
    pub(super) fn row_ref(&self) -> SelectItem {
        item(if self.has_namesake { Expr::Identifier(quoted(ROW_REF)) } else { self.column(ROW_REF) }, ROW_REF)
    }

    fn column(&self, name: &str) -> Expr {
        compound(&self.qualifier(), name)
    }

    /// The column `name` of `schema`, which is the table's.
    pub(super) fn column_of(&self, schema: &TableSchema, name: &str) -> Expr {
        match self.has_namesake {
            true => Expr::CompoundIdentifier([&*schema.namespace, &*schema.name, name].map(quoted).into()),
            false => self.column(name),
        }
    }

    /// The table, with row references, and the others.
    pub(super) fn from(&self) -> Result<Vec<TableWithJoins>> {
        let qualifier = self.qualifier();
        let mut from = vec![target_table(&self.table.name, Some(&qualifier).filter(|_| !self.has_namesake))?];
        from.extend(self.others.iter().cloned());
        Ok(from)
    }

    /// RETURNING as a SELECT from `table`, the statement's, without row references, and the others.
    ///
    /// # Errors
    /// Internal only.
    pub(crate) fn returning(&self, table: &TableSchema) -> Result<Option<Query>> {
        let Some(items) = self.returning.clone() else { return Ok(None) };
        let mut from = vec![stored_table(table, &self.qualifier())?];
        from.extend(self.others.iter().cloned());
        SelectOf { with: self.with.clone(), items, from, selection: None, sorted: false }.query().map(Some)
    }
}

/// What the columns of a table in FROM are qualified with.
pub(super) fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Some(fold(ident)),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a table in FROM that has no alias.
fn full_name(factor: &TableFactor) -> Option<TableName> {
    match factor {
        TableFactor::Table { name, alias: None, args: None, .. } => table_name(name).ok(),
        _ => None,
    }
}

/// 42712.
pub(super) fn named_twice(name: &str) -> Error {
    Error::invalid(state::DUPLICATE_ALIAS, format!("table name \"{name}\" is used more than once; give it an alias"))
}

/// Items for expressions that a write's SELECT carries along.
pub(super) fn carried(more: Vec<Expr>) -> impl Iterator<Item = SelectItem> {
    more.into_iter().enumerate().map(|(at, expr)| item(expr, &format!("carried_{at}")))
}

/// Name and alias of the one table that a statement writes.
pub(super) fn one_table(table: &TableWithJoins, statement: &str) -> Result<(TableName, Option<Ident>)> {
    let TableWithJoins { relation, joins } = table;
    check_query(relation)?;
    match relation {
        TableFactor::Table { name, alias, args: None, .. } if joins.is_empty() => {
            let alias = match alias {
                None => None,
                Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => Some(name.clone()),
                Some(alias) => return Err(Error::unsupported(format_args!("the alias \"{alias}\""))),
            };
            Ok((table_name(name)?, alias))
        }
        _ => Err(Error::unsupported(format_args!("{statement} of anything but one table"))),
    }
}
