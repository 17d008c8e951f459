//! Which table or view a name means: the search path.
//!
//! A name with a schema means what stands in that; one without the first of its kind in the schemas of the search path,
//! the session's temporary one in front. A new relation goes to the first of them that exists.

use std::fmt;
use std::sync::Arc;

use mainstem_storage::catalog::{Catalog, Relation};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{PUBLIC, RelationName};
use mainstem_storage::{Error, Result};

use crate::sql::TableName;

/// Name that every session has for its temporary schema.
pub(crate) const TEMPORARY: &str = "pg_temp";

/// See the module. A session whose names change has another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(super) path: Vec<String>,
    /// The schema of the session's temporary tables, if it may have any. It is there once it has one.
    temporary: Option<Arc<str>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { path: vec![PUBLIC.to_owned()], temporary: None }
    }
}

/// As SHOW search_path spells it.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.path.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if plain {
                write!(f, "{separator}{name}")?;
            } else {
                write!(f, "{separator}\"{}\"", name.replace('"', "\"\""))?;
            }
        }
        Ok(())
    }
}

impl Names {
    /// The names of a session whose temporary schema is called `temporary`.
    pub(crate) fn of_session(temporary: Arc<str>) -> Self {
        Self { temporary: Some(temporary), ..Self::default() }
    }

    /// The schema of the session's temporary tables.
    pub(crate) fn temporary(&self) -> Option<&str> {
        self.temporary.as_deref()
    }

    /// Whether `schema` is that of the session's temporary tables.
    pub(crate) fn is_temporary(&self, schema: &str) -> bool {
        self.temporary.as_deref() == Some(schema)
    }

    /// Whether the session may know of `schema`: it is no other session's temporary one.
    pub(crate) fn sees(&self, schema: &str) -> bool {
        !schema.starts_with(TEMPORARY) || self.is_temporary(schema)
    }

    /// Whether all names mean the same by `other`, a session's with another temporary schema perhaps, under `catalog`.
    pub(crate) fn mean_the_same(&self, other: &Self, catalog: &Catalog) -> bool {
        let has_temporary = |names: &Self| names.temporary().is_some_and(|schema| catalog.has_namespace(schema));
        self.path == other.path && (self.temporary == other.temporary || !has_temporary(self) && !has_temporary(other))
    }

    /// Whether they are those that a session begins with, and it has no temporary tables.
    pub(crate) fn are_of_all(&self, catalog: &Catalog) -> bool {
        self.mean_the_same(&Self::default(), catalog)
    }

    /// The same with another search path.
    pub(crate) fn with_path(&self, path: Vec<String>) -> Self {
        Self { path, temporary: self.temporary.clone() }
    }

    /// The schemas that are searched, in order, whether they exist or not.
    fn searched(&self) -> impl Iterator<Item = &str> {
        let listed = self.path.iter().any(|name| name == TEMPORARY);
        let temporary = self.temporary.as_deref().filter(|_| !listed);
        temporary.into_iter().chain(self.path.iter().map(|name| self.real(name)))
    }

    /// The schemas of the search path that `catalog` has, in order; with `implicit`, the temporary one too where it is
    /// not named.
    pub(super) fn existing(&self, catalog: &Catalog, implicit: bool) -> Vec<String> {
        let listed = self.path.iter().any(|name| name == TEMPORARY);
        self.searched()
            .filter(|name| implicit || listed || !self.is_temporary(name))
            .filter(|name| catalog.has_namespace(name))
            .map(str::to_owned)
            .collect()
    }

    /// The schema that is called `name`.
    pub(super) fn real<'n>(&'n self, name: &'n str) -> &'n str {
        if name == TEMPORARY { self.temporary.as_deref().unwrap_or(TEMPORARY) } else { name }
    }

    /// The full name of what `name` means, and what it is.
    pub(crate) fn find(&self, catalog: &Catalog, name: &TableName) -> Option<(RelationName, Relation)> {
        let in_schema = |schema: &str| {
            if !self.sees(schema) {
                return None;
            }
            let full = RelationName::new(schema, &name.name);
            catalog.relation(&full).cloned().map(|relation| (full, relation))
        };
        match &name.schema {
            Some(schema) => in_schema(self.real(schema)),
            None => self.searched().find_map(in_schema),
        }
    }

    /// What a new temporary table called `name` is called in full.
    ///
    /// # Errors
    /// 42P16 for a name in another schema, 0A000 where there are no temporary tables.
    pub(crate) fn new_temporary(&self, name: &TableName) -> Result<RelationName> {
        let Some(temporary) = self.temporary() else { return Err(Error::unsupported("a temporary table here")) };
        match name.schema.as_deref().map(|schema| self.real(schema)) {
            None => {}
            Some(schema) if schema == temporary => {}
            Some(_) => {
                let message = "cannot create temporary relation in non-temporary schema";
                return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
            }
        }
        Ok(RelationName::new(temporary, &name.name))
    }

    /// Whether a new relation called `name` would be temporary, whatever the statement says of it.
    pub(crate) fn says_temporary(&self, name: &TableName) -> bool {
        name.schema.as_deref().is_some_and(|schema| self.is_temporary(self.real(schema)))
    }
}
