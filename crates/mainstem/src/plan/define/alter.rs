//! ALTER TABLE and TRUNCATE.
//!
//! 1. Each action becomes changes of the definition, against the definition that those before it have made.
//! 2. What rows must be for them is looked up before the change where the old definition can say it, else behind it.
//! 3. All changes make one new version of the table; its expressions and the views over it must be right under it.
//!
//! Rows that are there already read as the value that DEFAULT of a new column has now, computed once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::sql::sqlparser::ast::{Expr, Statement as Ast, UnaryOperator};
use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::ids::TableId;
use mainstem_storage::row::{Value, check_batch, value_of};
use mainstem_storage::schema::{Check, Column, TableSchema};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, ErrorKind, Result};

use super::super::columns::nullable_schema;
use super::super::expressions::default_now;
use super::rebuild::add_keys;
use super::views::Over;
use super::{all_or_nothing, validate};
use crate::exec::{Environment, Notice};
use crate::sql::{
    AlterAction, AlterTable, Draws, NO_OWNERS, NewColumn, ROW_REF, TableName, Truncate, any_row_of, columns_in,
    existing_column, expression_of, renamed_in, state,
};

/// The changes of one statement, as far as they are read.
struct Changes {
    /// What they make of the table.
    schema: TableSchema,
    changes: Vec<TableChange>,
    /// Columns that were there before and must have no NULL, by their names then.
    not_null: Vec<String>,
    /// Checks that all rows must fulfil.
    checks: Vec<Check>,
    cascade: bool,
    notices: Vec<Notice>,
}

/// Changes a table.
///
/// # Errors
/// 42P01, 42703, 42701, 42704, 42710 for names; 23502, 23514 for rows that the new definition does not take; 2BP01 for
/// a view that needs what goes; 0A000 for what is part of a key.
pub(crate) fn alter_table(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    alter: &AlterTable,
) -> Result<Vec<Notice>> {
    // Dumps say it of views and sequences, too.
    if env.settings.restores_dump() && alter.actions.iter().all(|action| matches!(action, AlterAction::OwnerTo)) {
        return Ok(vec![Notice::new("00000", NO_OWNERS)]);
    }
    let table = match env.settings.names().table(&transaction.catalog(), &alter.name) {
        Err(e) if alter.if_exists && e.kind() == ErrorKind::NotFound => {
            let message = format!("relation \"{}\" does not exist, skipping", alter.name);
            return Ok(vec![Notice::new("00000", message)]);
        }
        table => table?,
    };
    if let [AlterAction::AddConstraint(constraints)] = alter.actions.as_slice()
        && constraints.has_keys()
    {
        return add_keys(env, transaction, &table, constraints);
    }
    let mut changes = Changes {
        schema: TableSchema::clone(&table),
        changes: Vec::new(),
        not_null: Vec::new(),
        checks: Vec::new(),
        cascade: false,
        notices: Vec::new(),
    };
    for action in &alter.actions {
        changes.read(env, transaction, &table, action)?;
    }
    let Changes { changes, not_null, checks, cascade, mut notices, schema: _ } = changes;
    if changes.is_empty() {
        return Ok(notices);
    }
    for column in &not_null {
        any_null(env, transaction, &table, column)?;
    }
    let over = Over::table(env, transaction, &table.relation_name())?;
    let more = all_or_nothing(transaction, |transaction| {
        let next = transaction.alter_table(table.id, &changes)?;
        validate(env, transaction, table.id)?;
        for check in &checks {
            let condition = Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(Expr::Nested(Box::new(expression_of(&check.expression)?))),
            };
            if any_row(env, transaction, &next, Some(condition))? {
                let message = format!(
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    check.name, table.name
                );
                return Err(Error::constraint(sqlstate::CHECK, message));
            }
        }
        over.check(env, transaction, cascade)
    })?;
    notices.extend(more);
    Ok(notices)
}

/// # Errors
/// 23502 when a row of `table` has NULL in `column`.
pub(super) fn any_null(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    table: &TableSchema,
    column: &str,
) -> Result<()> {
    let condition = Expr::IsNull(Box::new(expression_of(&quoted(column))?));
    if any_row(env, transaction, table, Some(condition))? { Err(contains_null(column, table)) } else { Ok(()) }
}

/// The names of the constraints of `table`.
pub(super) fn constraint_names(table: &TableSchema) -> Vec<String> {
    let checks = table.checks.iter().map(|check| check.name.clone());
    checks.chain(table.keys().map(|(key, _)| table.key_name(key).into_owned())).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether there is a row of `table`, for which `condition` is true.
fn any_row(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    table: &TableSchema,
    condition: Option<Expr>,
) -> Result<bool> {
    let plan = env.plan(transaction, Ast::Query(Box::new(any_row_of(table, condition)?)), None)?;
    for batch in env.start(&plan)?.batches {
        if batch?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_null(column: &str, table: &TableSchema) -> Error {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    Error::constraint(sqlstate::NOT_NULL, message)
}

impl Changes {
    fn push(&mut self, change: TableChange) -> Result<()> {
        self.schema = self.schema.with_changes(std::slice::from_ref(&change))?;
        self.changes.push(change);
        Ok(())
    }

    fn read(
        &mut self,
        env: &mut Environment<'_>,
        transaction: &Transaction,
        table: &Arc<TableSchema>,
        action: &AlterAction,
    ) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, constraints, if_not_exists } => {
                if self.schema.column_named(&column.name).is_some() {
                    return self.is_there(&column.name, *if_not_exists);
                }
                self.add_column(env, transaction, table, column)?;
                self.add_checks(constraints.clone().into_checks(&self.schema.name, &mut self.names())?)
            }
            AlterAction::DropColumn { name, if_exists, cascade } => {
                self.cascade |= *cascade;
                self.drop_column(name, *if_exists)
            }
            AlterAction::RenameColumn { old, new } => {
                let id = self.column(old)?.id;
                refuse_name(new)?;
                self.push(TableChange::RenameColumn(id, new.clone()))?;
                for check in self.schema.checks.clone() {
                    let expression = renamed_in(&check.expression, old, new)?;
                    if expression != check.expression {
                        self.push(TableChange::ReplaceCheck(Check { expression, ..check }))?;
                    }
                }
                Ok(())
            }
            AlterAction::RenameTo(name) => self.push(TableChange::Rename(name.clone())),
            AlterAction::SetDefault { column, default } => {
                let column = self.column(column)?;
                if column.identity.is_some() {
                    let message = format!("column \"{}\" is an identity column", column.name);
                    return Err(Error::invalid(sqlstate::SYNTAX, message));
                }
                let change = TableChange::SetDefault(column.id, default.as_deref().map(Arc::from));
                self.push(change)
            }
            AlterAction::AddIdentity { column, identity } => {
                let id = self.column(column)?.id;
                let identity = match identity {
                    Draws::Identity(identity) => *identity,
                    Draws::Sequence(name) => env.settings.sequence(name)?,
                };
                self.push(TableChange::AddIdentity(id, identity))
            }
            AlterAction::AddForeignKey(key) => self.pass_over(env, key),
            AlterAction::OwnerTo => Err(Error::unsupported("ALTER TABLE ... OWNER TO")),
            AlterAction::SetNullable { column, nullable } => {
                let Column { id, .. } = *self.column(column)?;
                if let Some(before) = table.column(id)
                    && !nullable
                    && before.nullable
                {
                    self.not_null.push(before.name.clone());
                }
                self.push(TableChange::SetNullable(id, *nullable))
            }
            AlterAction::AddConstraint(constraints) => {
                self.add_checks(constraints.clone().into_checks(&self.schema.name, &mut self.names())?)
            }
            AlterAction::DropConstraint { name, if_exists } => self.drop_constraint(name, *if_exists),
        }
    }

    /// What ADD COLUMN says of a column that is there.
    fn is_there(&mut self, column: &str, if_not_exists: bool) -> Result<()> {
        let message = format!("column \"{column}\" of relation \"{}\" already exists", self.schema.name);
        if !if_not_exists {
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
        }
        self.notices.push(Notice::new(sqlstate::DUPLICATE_COLUMN, format!("{message}, skipping")));
        Ok(())
    }

    /// A foreign key, in words: a dump may say it.
    fn pass_over(&mut self, env: &Environment<'_>, key: &str) -> Result<()> {
        if !env.settings.restores_dump() {
            return Err(Error::unsupported(format_args!("the constraint {key}")));
        }
        let message = format!("{key}: foreign keys are not enforced, and not kept");
        self.notices.push(Notice::new("01000", message));
        Ok(())
    }

    fn drop_column(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let id = match self.column(name) {
            Ok(column) => column.id,
            Err(error) if if_exists => {
                self.notices.push(Notice::new("00000", format!("{}, skipping", error.message())));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for check in self.schema.checks.clone() {
            if columns_in(&expression_of(&check.expression)?).iter().any(|column| column == name) {
                self.push(TableChange::DropConstraint(check.name))?;
            }
        }
        self.push(TableChange::DropColumn(id))
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let unique = self.schema.unique_keys.iter().any(|key| key.name == name);
        if unique || self.schema.checks.iter().any(|check| check.name == name) {
            return self.push(TableChange::DropConstraint(name.to_owned()));
        }
        if self.names().iter().any(|known| known == name) {
            return Err(Error::unsupported(format_args!("dropping the PRIMARY KEY \"{name}\"")));
        }
        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.schema.name);
        if if_exists {
            self.notices.push(Notice::new("00000", format!("{message}, skipping")));
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, state::UNDEFINED_OBJECT, message)
            .with_object(NamedObject::new(ObjectKind::Other, [name])))
    }

    fn column(&self, name: &str) -> Result<&Column> {
        existing_column(&self.schema, name)
    }

    /// The names of the table's constraints.
    fn names(&self) -> Vec<String> {
        constraint_names(&self.schema)
    }

    fn add_checks(&mut self, checks: Vec<Check>) -> Result<()> {
        for check in checks {
            self.checks.push(check.clone());
            self.push(TableChange::AddCheck(check))?;
        }
        Ok(())
    }

    fn add_column(
        &mut self,
        env: &mut Environment<'_>,
        transaction: &Transaction,
        table: &Arc<TableSchema>,
        new: &NewColumn,
    ) -> Result<()> {
        if new.identity.is_some() {
            return Err(Error::unsupported("adding an identity column to a table that is there already"));
        }
        let definition = ColumnDefinition {
            default: new.default.as_deref().map(Arc::from),
            ..ColumnDefinition::new(new.name.clone(), new.data_type, new.nullable)
        };
        let column = Column {
            default: definition.default.clone(),
            ..Column::new(self.schema.next_column, &new.name, new.data_type, true)
        };
        let missing_value = match default_now(env, transaction, &column)? {
            Some(array) => stored_value(&self.schema, &column, array)?,
            None => Value::Null,
        };
        if missing_value.is_null() && !new.nullable && any_row(env, transaction, table, None)? {
            return Err(contains_null(&new.name, table));
        }
        self.push(TableChange::AddColumn { column: definition, missing_value })
    }
}

/// The one value of `array`, as a column of table `table` stores it.
fn stored_value(table: &TableSchema, column: &Column, array: ArrayRef) -> Result<Value> {
    if array.is_null(0) {
        return Ok(Value::Null);
    }
    let alone = TableSchema::new(TableId(0), &table.name, vec![column.clone()]);
    let batch = check_batch(&alone, &RecordBatch::try_new(nullable_schema(&alone), vec![array])?)?;
    value_of(batch.column(0).as_ref(), column.data_type, 0)
}

fn refuse_name(name: &str) -> Result<()> {
    if name.starts_with(ROW_REF) {
        return Err(Error::unsupported(format_args!("the column name \"{name}\", which the engine uses itself,")));
    }
    Ok(())
}

/// Empties tables, all or none.
///
/// # Errors
/// 42P01, 42809.
pub(crate) fn truncate(env: &Environment<'_>, transaction: &mut Transaction, truncate: &Truncate) -> Result<()> {
    let catalog = transaction.catalog();
    let table = |name: &TableName| env.settings.names().table(&catalog, name);
    let tables = truncate.names.iter().map(table).collect::<Result<Vec<_>>>()?;
    all_or_nothing(transaction, |transaction| {
        tables.iter().try_for_each(|table| transaction.truncate(table.id, truncate.restart_identity))
    })
}
