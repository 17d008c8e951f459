//! ALTER TABLE: a pure function from a table's definition and the changes of one statement to the next version of it.
//!
//! Comes in: a [`TableSchema`] and [`TableChange`]s, in the order of the statement. Goes out: the next version, or what
//! is wrong with a change. No row is touched: a container keeps the schema it was written under, and column ids connect
//! the two (contract 1).
//!
//! Invariants: ids of dropped columns and keys are never given out again; columns of the primary key and of the sort
//! key stay, and keep whether they may be NULL, for that is part of how sort keys are encoded. It does not own:
//! expressions, which are SQL here (who renames or drops a column changes the constraints that name it in the same
//! statement), nor whether rows fulfil what is asked of them.

use std::sync::Arc;

use super::ColumnDefinition;
use crate::error::{Error, Result, sqlstate};
use crate::ids::{ColumnId, KeyId, SchemaVersion, TableId};
use crate::row::{RowBuffer, RowLayout, Value};
use crate::schema::{Check, Column, Identity, TableSchema};

/// One change of a table's definition.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// ADD COLUMN.
    AddColumn {
        /// The column.
        column: ColumnDefinition,
        /// What rows that are there already read as.
        missing_value: Value,
    },
    /// DROP COLUMN. UNIQUE constraints over it go with it; CHECK constraints that name it by changes of their own.
    DropColumn(ColumnId),
    /// RENAME COLUMN. CHECK constraints that name it change by [`TableChange::ReplaceCheck`].
    RenameColumn(ColumnId, String),
    /// RENAME TO.
    Rename(String),
    /// SET SCHEMA.
    SetNamespace(String),
    /// SET DEFAULT, or DROP DEFAULT.
    SetDefault(ColumnId, Option<Arc<str>>),
    /// ADD GENERATED ... AS IDENTITY: it counts from its start, whatever values are there.
    AddIdentity(ColumnId, Identity),
    /// DROP NOT NULL (true), SET NOT NULL (false).
    SetNullable(ColumnId, bool),
    /// ADD CONSTRAINT ... CHECK.
    AddCheck(Check),
    /// The CHECK constraint of that name says the same in other words.
    ReplaceCheck(Check),
    /// DROP CONSTRAINT: of a CHECK or UNIQUE.
    DropConstraint(String),
}

impl TableChange {
    /// Whether it is right only for rows that somebody has looked at: its transaction must then not have missed any, so
    /// that a commit to the table since the snapshot is a conflict, whatever else the transaction does (contract 2).
    #[must_use]
    pub fn looks_at_rows(&self) -> bool {
        match self {
            Self::SetNullable(_, false) | Self::AddCheck(_) => true,
            Self::AddColumn { column, missing_value } => !column.nullable && missing_value.is_null(),
            _ => false,
        }
    }
}

impl TableSchema {
    /// The next version of this definition, with all `changes`, which are the actions of one statement.
    ///
    /// # Errors
    /// Invalid: a column that exists already (42701) or does not (42703), a constraint that does (42710) or does not
    /// (42704), a missing value that is none of the column's (42804, 22001, 22003); 0A000 for what keys and order do
    /// not allow.
    pub fn with_changes(&self, changes: &[TableChange]) -> Result<Self> {
        let mut next = Self { version: SchemaVersion(self.version.0 + 1), ..self.clone() };
        for change in changes {
            next.change(change)?;
        }
        Ok(next)
    }

    fn change(&mut self, change: &TableChange) -> Result<()> {
        match change {
            TableChange::AddColumn { column, missing_value } => self.add_column(column, missing_value),
            TableChange::DropColumn(id) => self.drop_column(*id),
            TableChange::RenameColumn(id, name) => {
                self.check_free(name, Some(*id))?;
                self.column_mut(*id)?.name.clone_from(name);
                Ok(())
            }
            TableChange::Rename(name) => {
                self.name.clone_from(name);
                Ok(())
            }
            TableChange::SetNamespace(namespace) => {
                self.namespace.clone_from(namespace);
                Ok(())
            }
            TableChange::SetDefault(id, default) => {
                self.column_mut(*id)?.default.clone_from(default);
                Ok(())
            }
            TableChange::AddIdentity(id, identity) => self.add_identity(*id, *identity),
            TableChange::SetNullable(id, nullable) => self.set_nullable(*id, *nullable),
            TableChange::AddCheck(check) => {
                self.check_constraint_free(&check.name)?;
                self.checks.push(check.clone());
                Ok(())
            }
            TableChange::ReplaceCheck(check) => {
                let missing = no_constraint(self, &check.name);
                let known = self.checks.iter_mut().find(|known| known.name == check.name);
                known.ok_or(missing)?.expression.clone_from(&check.expression);
                Ok(())
            }
            TableChange::DropConstraint(name) => self.drop_constraint(name),
        }
    }

    fn add_column(&mut self, definition: &ColumnDefinition, missing_value: &Value) -> Result<()> {
        self.check_free(&definition.name, None)?;
        let mut column = Column {
            default: definition.default.clone(),
            identity: definition.identity,
            ..Column::new(self.next_column, &definition.name, definition.data_type, definition.nullable)
        };
        column.missing_value = value_of(self, &column, missing_value)?;
        self.columns.push(column);
        self.next_column = ColumnId(self.next_column.0 + 1);
        Ok(())
    }

    fn add_identity(&mut self, id: ColumnId, identity: Identity) -> Result<()> {
        let table = self.name.clone();
        let column = self.column_mut(id)?;
        let refused = |what: &str| {
            let message = format!("column \"{}\" of relation \"{table}\" {what}", column.name);
            Error::invalid(sqlstate::INVALID_TABLE, message)
        };
        if column.identity.is_some() {
            return Err(refused("is already an identity column"));
        }
        if column.nullable {
            return Err(refused("must be declared NOT NULL before identity can be added"));
        }
        if column.default.is_some() {
            return Err(refused("already has a default value"));
        }
        column.identity = Some(identity);
        Ok(())
    }

    fn drop_column(&mut self, id: ColumnId) -> Result<()> {
        let name = self.column_mut(id)?.name.clone();
        if let Some(what) = self.need_of(id) {
            let message = format!("dropping column \"{name}\" of table \"{}\", which is part of {what},", self.name);
            return Err(Error::unsupported(message));
        }
        if self.columns.len() == 1 {
            return Err(Error::unsupported(format!("dropping the last column of table \"{}\"", self.name)));
        }
        self.columns.retain(|column| column.id != id);
        self.unique_keys.retain(|key| !key.columns.contains(&id));
        Ok(())
    }

    fn set_nullable(&mut self, id: ColumnId, nullable: bool) -> Result<()> {
        let column = self.column_mut(id)?;
        if column.nullable == nullable {
            return Ok(());
        }
        let name = column.name.clone();
        if self.primary_key.contains(&id) {
            let message = format!("column \"{name}\" is in a primary key");
            return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
        }
        if let Some(what) = self.need_of(id) {
            let message = format!("NOT NULL of column \"{name}\", which is part of {what}, once the table is made,");
            return Err(Error::unsupported(message));
        }
        self.column_mut(id)?.nullable = nullable;
        Ok(())
    }

    fn drop_constraint(&mut self, name: &str) -> Result<()> {
        if let Some(at) = self.checks.iter().position(|check| check.name == name) {
            self.checks.remove(at);
            return Ok(());
        }
        if let Some(at) = self.unique_keys.iter().position(|key| key.name == name) {
            // Runs keep their indexes for it until they are merged; nobody looks at them.
            self.unique_keys.remove(at);
            return Ok(());
        }
        if self.has_constraint(name) {
            return Err(Error::unsupported(format!("dropping the key \"{name}\"")));
        }
        Err(no_constraint(self, name))
    }

    /// What column `id` is part of that stays as it is: the primary key or the order.
    fn need_of(&self, id: ColumnId) -> Option<String> {
        if self.primary_key.contains(&id) {
            return Some("its primary key".to_owned());
        }
        self.sort_key.contains(&id).then(|| "its ORDER BY".to_owned())
    }

    fn column_mut(&mut self, id: ColumnId) -> Result<&mut Column> {
        let missing = || {
            Error::invalid(
                sqlstate::UNDEFINED_COLUMN,
                format!("column {id} of relation \"{}\" does not exist", self.name),
            )
        };
        match self.columns.iter().position(|column| column.id == id) {
            Some(at) => Ok(&mut self.columns[at]),
            None => Err(missing()),
        }
    }

    /// Refuses a column name that another column than `but` has.
    fn check_free(&self, name: &str, but: Option<ColumnId>) -> Result<()> {
        if self.columns.iter().any(|column| column.name == name && Some(column.id) != but) {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", self.name);
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
        }
        Ok(())
    }

    fn check_constraint_free(&self, name: &str) -> Result<()> {
        if self.has_constraint(name) {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", self.name);
            return Err(Error::invalid(sqlstate::DUPLICATE_OBJECT, message));
        }
        Ok(())
    }

    /// Whether a constraint is called `name`: a CHECK, a UNIQUE, or the PRIMARY KEY.
    fn has_constraint(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
            || self.unique_keys.iter().any(|key| key.name == name)
            || (self.has_key() && self.key_name(KeyId::PRIMARY) == name)
    }
}

fn no_constraint(schema: &TableSchema, name: &str) -> Error {
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", schema.name);
    Error::invalid(sqlstate::UNDEFINED_OBJECT, message)
}

/// `value` as `column` would store it. NULL is what a column reads as that no row has yet, NOT NULL or not.
fn value_of(schema: &TableSchema, column: &Column, value: &Value) -> Result<Value> {
    let alone = Column { nullable: true, ..column.clone() };
    let mut row = RowBuffer::new(RowLayout::new(&Arc::new(TableSchema::new(TableId(0), &schema.name, vec![alone]))));
    row.push_values(std::slice::from_ref(value))?;
    Ok(row.row(0).value(0))
}
