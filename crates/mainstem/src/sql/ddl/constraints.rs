//! PRIMARY KEY, UNIQUE and CHECK of CREATE TABLE and ALTER TABLE, and the names of those that have none.
//!
//! Column constraints come as they are read, table constraints behind them; names are given at the end, when it is
//! known which are taken.

use datafusion::sql::sqlparser::ast::{
    CheckConstraint, Expr, Ident, IndexColumn, NullsDistinctOption, PrimaryKeyConstraint, TableConstraint,
    UniqueConstraint,
};
use mainstem_storage::catalog::UniqueDefinition;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{Check, primary_key_name};
use mainstem_storage::{Error, Result};

use super::super::fold;
use super::super::stored::{check_text, columns_in, constraint_name, constraint_twice};
use super::table::CreateTable;

/// What was read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constraints {
    primary_keys: Vec<(Option<String>, Vec<String>)>,
    unique_keys: Vec<(Option<String>, Vec<String>)>,
    checks: Vec<(Option<String>, Expr)>,
}

/// Keys of a table that is there already: names and columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewKeys {
    pub(crate) primary: Option<(String, Vec<String>)>,
    pub(crate) unique: Vec<(String, Vec<String>)>,
}

impl Constraints {
    /// PRIMARY KEY behind a column.
    pub(super) fn column_key(&mut self, key: &PrimaryKeyConstraint, name: Option<&Ident>, column: &str) -> Result<()> {
        let named = primary_columns(key)?;
        if !named.is_empty() {
            return Err(Error::unsupported(format_args!("\"{key}\" on column \"{column}\"")));
        }
        self.primary_keys.push((name.or(key.name.as_ref()).map(fold), vec![column.to_owned()]));
        Ok(())
    }

    /// UNIQUE behind a column.
    pub(super) fn column_unique(&mut self, key: &UniqueConstraint, name: Option<&Ident>, column: &str) -> Result<()> {
        let named = unique_columns(key)?;
        if !named.is_empty() {
            return Err(Error::unsupported(format_args!("\"{key}\" on column \"{column}\"")));
        }
        self.unique_keys.push((name.or(key.name.as_ref()).map(fold), vec![column.to_owned()]));
        Ok(())
    }

    /// CHECK.
    pub(super) fn check(&mut self, check: &CheckConstraint, name: Option<&Ident>) -> Result<()> {
        let CheckConstraint { name: own, expr, enforced: None } = check else {
            return Err(Error::unsupported(format_args!("the constraint {check}")));
        };
        self.checks.push((name.or(own.as_ref()).map(fold), (**expr).clone()));
        Ok(())
    }

    /// A table constraint.
    pub(in super::super) fn add(&mut self, constraint: TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                self.primary_keys.push((key.name.as_ref().map(fold), primary_columns(&key)?));
            }
            TableConstraint::Unique(key) => {
                self.unique_keys.push((key.name.as_ref().map(fold), unique_columns(&key)?));
            }
            TableConstraint::Check(check) => self.check(&check, None)?,
            other => return Err(Error::unsupported(format_args!("the constraint {other}"))),
        }
        Ok(())
    }

    /// Puts them into `new`, whose columns are known.
    pub(super) fn settle(self, new: &mut CreateTable) -> Result<()> {
        let mut keys = self.primary_keys.into_iter();
        let key = keys.next();
        if keys.next().is_some() {
            return Err(Error::invalid(
                sqlstate::INVALID_TABLE,
                format!("table \"{}\" can have only one primary key", new.name.name),
            ));
        }
        let mut taken: Vec<String> = Vec::new();
        let given = self.unique_keys.iter().map(|(name, _)| name);
        for name in
            given.chain(self.checks.iter().map(|(name, _)| name)).chain(key.iter().map(|(name, _)| name)).flatten()
        {
            if taken.contains(name) {
                return Err(constraint_twice(name, &new.name.name));
            }
            taken.push(name.clone());
        }
        let has_primary_key = key.is_some();
        let mut keys = without_repeated(key.into_iter().chain(self.unique_keys)).into_iter();
        if has_primary_key && let Some((name, columns)) = keys.next() {
            taken.extend(name.is_none().then(|| primary_key_name(&new.name.name)));
            (new.primary_key, new.primary_key_name) = (columns, name);
        }
        for (name, columns) in keys {
            let name = name.unwrap_or_else(|| constraint_name(&new.name.name, Some(&columns.join("_")), "key", &taken));
            taken.push(name.clone());
            new.unique_keys.push(UniqueDefinition { name, columns });
        }
        for (name, expr) in self.checks {
            let check = named_check(name, &expr, &new.name.name, &taken)?;
            taken.push(check.name.clone());
            new.checks.push(check);
        }
        Ok(())
    }

    /// Whether there is a key among them.
    pub(crate) fn has_keys(&self) -> bool {
        !(self.primary_keys.is_empty() && self.unique_keys.is_empty())
    }

    /// The keys, for a table that is there already and has constraints called `taken`; there is nothing else.
    ///
    /// # Errors
    /// 0A000 for checks beside them, 42P16 for two primary keys, 42710 for a name that is taken.
    pub(crate) fn into_keys(self, table: &str, taken: &mut Vec<String>) -> Result<NewKeys> {
        if !self.checks.is_empty() {
            return Err(Error::unsupported("a key and a CHECK in one action of ALTER TABLE"));
        }
        let mut named = |name: Option<String>, default: &dyn Fn(&[String]) -> String| {
            if let Some(name) = &name
                && taken.contains(name)
            {
                return Err(constraint_twice(name, table));
            }
            let name = name.unwrap_or_else(|| default(taken));
            taken.push(name.clone());
            Ok(name)
        };
        let mut keys = NewKeys::default();
        for (name, columns) in self.primary_keys {
            let name = named(name, &|_| primary_key_name(table))?;
            if keys.primary.replace((name, columns)).is_some() {
                let message = format!("multiple primary keys for table \"{table}\" are not allowed");
                return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
            }
        }
        for (name, columns) in self.unique_keys {
            let name = named(name, &|taken| constraint_name(table, Some(&columns.join("_")), "key", taken))?;
            keys.unique.push((name, columns));
        }
        Ok(keys)
    }

    /// The checks, for a table that is there already and has constraints called `taken`.
    ///
    /// # Errors
    /// 0A000 for keys, 42710 for a name that is taken.
    pub(crate) fn into_checks(self, table: &str, taken: &mut Vec<String>) -> Result<Vec<Check>> {
        if !(self.primary_keys.is_empty() && self.unique_keys.is_empty()) {
            return Err(Error::unsupported("a new PRIMARY KEY or UNIQUE beside other changes of a table"));
        }
        let mut checks = Vec::with_capacity(self.checks.len());
        for (name, expr) in self.checks {
            if let Some(name) = &name
                && taken.contains(name)
            {
                return Err(constraint_twice(name, table));
            }
            let check = named_check(name, &expr, table, taken)?;
            taken.push(check.name.clone());
            checks.push(check);
        }
        Ok(checks)
    }
}

/// The keys, of those with the same columns in the same order only the first, which takes the name of another if it has
/// none: as in `a INTEGER PRIMARY KEY UNIQUE`.
fn without_repeated(keys: impl Iterator<Item = (Option<String>, Vec<String>)>) -> Vec<(Option<String>, Vec<String>)> {
    let mut distinct: Vec<(Option<String>, Vec<String>)> = Vec::new();
    for (name, columns) in keys {
        match distinct.iter_mut().find(|(_, other)| *other == columns) {
            Some((taken, _)) => *taken = taken.take().or(name),
            None => distinct.push((name, columns)),
        }
    }
    distinct
}

fn named_check(name: Option<String>, expr: &Expr, table: &str, taken: &[String]) -> Result<Check> {
    let expression = check_text(expr, table)?;
    let columns = columns_in(expr);
    let only = columns.first().filter(|_| columns.len() == 1);
    let name = name.unwrap_or_else(|| constraint_name(table, only.map(String::as_str), "check", taken));
    Ok(Check { name, expression })
}

fn primary_columns(key: &PrimaryKeyConstraint) -> Result<Vec<String>> {
    match key {
        PrimaryKeyConstraint {
            name: _,
            index_name: None,
            index_type: None,
            columns,
            index_options,
            characteristics: None,
        } if index_options.is_empty() => columns.iter().map(|column| key_column(column, "a primary key")).collect(),
        _ => Err(Error::unsupported(format_args!("the constraint {key}"))),
    }
}

fn unique_columns(key: &UniqueConstraint) -> Result<Vec<String>> {
    match key {
        UniqueConstraint {
            name: _,
            index_name: None,
            index_type_display: _,
            index_type: None,
            columns,
            index_options,
            characteristics: None,
            nulls_distinct: NullsDistinctOption::None | NullsDistinctOption::Distinct,
        } if index_options.is_empty() => columns.iter().map(|column| key_column(column, "UNIQUE")).collect(),
        _ => Err(Error::unsupported(format_args!("the constraint {key}"))),
    }
}

fn key_column(column: &IndexColumn, place: &str) -> Result<String> {
    let IndexColumn { column, operator_class } = column;
    let plain = operator_class.is_none()
        && column.with_fill.is_none()
        && column.options.asc.is_none()
        && column.options.nulls_first.is_none();
    match &column.expr {
        Expr::Identifier(ident) if plain => Ok(fold(ident)),
        _ => Err(Error::unsupported(format_args!("\"{column}\" in {place}"))),
    }
}
