//! Running a short statement in a transaction.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use mainstem_storage::ids::RowRef;
use mainstem_storage::row::{Value, array_of};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;
use mainstem_storage::{Error, Result};

use super::expression::Expression;
use super::{Action, Answer, Key, Short};
use crate::value::ValueRef;

/// The encoded key.
enum Sought {
    Key(Vec<u8>),
    /// A part of it is NULL: no row has it.
    Nothing,
    /// Only a plan knows.
    NotShort,
}

impl Short {
    /// Runs it in `transaction` with `parameters`. A write is a statement of the transaction, and ends as one.
    ///
    /// # Errors
    /// Those of storage: 23505, 23502, 22001, 40001, Io, Corrupt, and so on. Nothing is written then.
    pub(crate) fn run(&self, transaction: &mut Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Select { key, columns, .. } => self.select(transaction, key, columns, parameters),
            Action::Insert { rows } => self.insert(transaction, rows, parameters),
            Action::Update { key, assignments } => self.update(transaction, key, assignments, parameters),
            Action::Delete { key } => self.delete(transaction, key, parameters),
        }
    }

    /// As [`Short::run`], for a SELECT, which changes nothing.
    pub(crate) fn read(&self, transaction: &Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Select { key, columns, .. } => self.select(transaction, key, columns, parameters),
            _ => Ok(Answer::NotShort),
        }
    }

    /// The row of a SELECT as an Arrow batch.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn batch_of(&self, row: Option<Vec<Value>>) -> Result<(SchemaRef, RecordBatch)> {
        let Action::Select { columns, names, .. } = &self.action else {
            return Err(Error::internal("a batch of a statement without rows"));
        };
        let of_table = &self.table.schema().columns;
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for (at, (position, name)) in columns.iter().zip(names).enumerate() {
            let column = of_table.get(*position).ok_or_else(|| Error::internal("a column that is not there"))?;
            fields.push(Field::new(name, column.data_type.arrow(), column.nullable));
            arrays.push(array_of(row.iter().filter_map(|values| values.get(at)), column.data_type)?);
        }
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(usize::from(row.is_some())));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
        Ok((schema, batch))
    }

    fn sought(&self, key: &Key, parameters: &[ValueRef<'_>]) -> Result<Sought> {
        let mut values = Vec::with_capacity(key.len());
        for part in key {
            match part.evaluate(&[], parameters) {
                None => return Ok(Sought::NotShort),
                Some(Value::Null) => return Ok(Sought::Nothing),
                Some(value) => values.push(value),
            }
        }
        let mut encoded = Vec::with_capacity(16);
        self.table.encode(&values, &mut encoded)?;
        Ok(Sought::Key(encoded))
    }

    fn view(&self, transaction: &Transaction) -> Result<Arc<TableView>> {
        transaction.view(self.table.schema().id)
    }

    fn select(
        &self,
        transaction: &Transaction,
        key: &Key,
        columns: &[usize],
        parameters: &[ValueRef<'_>],
    ) -> Result<Answer> {
        let key = match self.sought(key, parameters)? {
            Sought::Key(key) => key,
            Sought::Nothing => return Ok(Answer::Row(None)),
            Sought::NotShort => return Ok(Answer::NotShort),
        };
        let view = self.view(transaction)?;
        let Some(row) = transaction.find_key(&view, self.table.key(), &key)? else { return Ok(Answer::Row(None)) };
        let mut values = Vec::with_capacity(columns.len());
        view.read_row(row, columns, &mut values)?;
        Ok(Answer::Row(Some(values)))
    }

    fn insert(
        &self,
        transaction: &mut Transaction,
        rows: &[Vec<Expression>],
        parameters: &[ValueRef<'_>],
    ) -> Result<Answer> {
        let mut writes = transaction.statement();
        for row in rows {
            let Some(values) = evaluate(row, parameters) else { return Ok(Answer::NotShort) };
            writes.insert_values(&self.table, &values)?;
        }
        transaction.apply(writes)?;
        Ok(Answer::Written(rows.len() as u64))
    }

    fn update(
        &self,
        transaction: &mut Transaction,
        key: &Key,
        assignments: &[(usize, Expression)],
        parameters: &[ValueRef<'_>],
    ) -> Result<Answer> {
        let found = match self.look_up(transaction, key, parameters)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        let Some(new) = self.new_values(&found, assignments, parameters)? else { return Ok(Answer::NotShort) };
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        writes.insert_values(&self.table, &new)?;
        transaction.apply(writes)?;
        Ok(Answer::Written(1))
    }

    fn delete(&self, transaction: &mut Transaction, key: &Key, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let found = match self.look_up(transaction, key, parameters)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        transaction.apply(writes)?;
        Ok(Answer::Written(1))
    }

    /// Runs a write that is a transaction of its own, and commits it: at its end `transaction`, which has written nothing, is no more.
    ///
    /// # Errors
    /// As [`Short::run`], and those of a commit; 40001 means that it is to be run again.
    pub(crate) fn run_alone(&self, mut transaction: Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Insert { rows } if rows.len() == 1 => {
                let Some(values) = rows.first().and_then(|row| evaluate(row, parameters)) else {
                    return Ok(Answer::NotShort);
                };
                let mut key = Vec::with_capacity(16);
                if !self.table.encode_key_of(&values, &mut key) {
                    // NULL in the key: the checks of a statement have the message.
                    return self.run_and_commit(transaction, parameters);
                }
                let view = self.view(&transaction)?;
                transaction.write_row(&self.table, &view, &key, None, Some(&values))?;
                Ok(Answer::Written(1))
            }
            Action::Update { key, assignments } => {
                let found = match self.look_up(&transaction, key, parameters)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                let Some(new) = self.new_values(&found, assignments, parameters)? else {
                    return Ok(Answer::NotShort);
                };
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), Some(&new))?;
                Ok(Answer::Written(1))
            }
            Action::Delete { key } => {
                let found = match self.look_up(&transaction, key, parameters)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), None)?;
                Ok(Answer::Written(1))
            }
            Action::Insert { .. } => self.run_and_commit(transaction, parameters),
            Action::Select { .. } => self.run(&mut transaction, parameters),
        }
    }

    fn run_and_commit(&self, mut transaction: Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let answer = self.run(&mut transaction, parameters)?;
        transaction.commit()?;
        Ok(answer)
    }

    /// The row that a write's key names, or the answer if there is none.
    fn look_up(
        &self,
        transaction: &Transaction,
        key: &Key,
        parameters: &[ValueRef<'_>],
    ) -> Result<std::result::Result<Found, Answer>> {
        let key = match self.sought(key, parameters)? {
            Sought::Key(key) => key,
            Sought::Nothing => return Ok(Err(Answer::Written(0))),
            Sought::NotShort => return Ok(Err(Answer::NotShort)),
        };
        let view = self.view(transaction)?;
        Ok(match transaction.find_key(&view, self.table.key(), &key)? {
            Some(row) => Ok(Found { view, key, row }),
            None => Err(Answer::Written(0)),
        })
    }

    /// The row's values with `assignments` made; `None` where only a plan knows.
    fn new_values(
        &self,
        found: &Found,
        assignments: &[(usize, Expression)],
        parameters: &[ValueRef<'_>],
    ) -> Result<Option<Vec<Value>>> {
        let mut old = Vec::with_capacity(self.columns.len());
        found.view.read_row(found.row, &self.columns, &mut old)?;
        let mut computed = Vec::with_capacity(assignments.len());
        for (at, expression) in assignments {
            let Some(value) = expression.evaluate(&old, parameters) else { return Ok(None) };
            computed.push((*at, value));
        }
        for (at, value) in computed {
            if let Some(slot) = old.get_mut(at) {
                *slot = value;
            }
        }
        Ok(Some(old))
    }
}

/// The row that a key names.
struct Found {
    view: Arc<TableView>,
    key: Vec<u8>,
    row: RowRef,
}

/// The values of a row of VALUES; `None` where only a plan knows.
fn evaluate(row: &[Expression], parameters: &[ValueRef<'_>]) -> Option<Vec<Value>> {
    row.iter().map(|expression| expression.evaluate(&[], parameters)).collect()
}
