//! Running a short statement in a transaction.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use mainstem_storage::ids::{CommitTs, RowRef};
use mainstem_storage::point;
use mainstem_storage::row::{RowBuffer, RowView, Value, array_of};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::{Snapshot, TableView};
use mainstem_storage::{Error, Result};

use super::condition::NeedsPlan;
use super::conflict::assign;
use super::expression::{Expression, Scope};
use super::{Action, Answer, Key, Output, Short, Values};
use crate::plan;
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
            Action::Select { key } => self.select(transaction, key, parameters),
            Action::Insert { values, conflict: None } => self.insert(transaction, values, parameters),
            Action::Insert { values, conflict: Some(conflict) } => {
                self.upsert(transaction, values, conflict, parameters)
            }
            Action::Update { key, assignments } => self.update(transaction, key, assignments, parameters),
            Action::Delete { key } => self.delete(transaction, key, parameters),
        }
    }

    /// As [`Short::run`], for a SELECT outside a transaction.
    pub(crate) fn read_at(&self, snapshot: &Arc<Snapshot>, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let Action::Select { key } = &self.action else { return Ok(Answer::NotShort) };
        let key = match self.sought(key, parameters)? {
            Sought::Key(key) => key,
            Sought::Nothing => return Ok(Answer::Row(None)),
            Sought::NotShort => return Ok(Answer::NotShort),
        };
        // Only a plan has the message.
        let Some(view) = TableView::at(snapshot, self.table.schema().id) else { return Ok(Answer::NotShort) };
        match point::find(&view, self.table.key(), &key, |_| true)? {
            Some(row) => self.output_of(&view, row).map(Answer::Row),
            None => Ok(Answer::Row(None)),
        }
    }

    /// As [`Short::run`], for a SELECT, which changes nothing.
    pub(crate) fn read(&self, transaction: &Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Select { key } => self.select(transaction, key, parameters),
            _ => Ok(Answer::NotShort),
        }
    }

    /// Rows of a SELECT or of RETURNING as an Arrow batch.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn batch_of(&self, rows: &[Vec<Value>]) -> Result<(SchemaRef, RecordBatch)> {
        let Some(output) = &self.output else { return Err(Error::internal("a batch of a statement without rows")) };
        let of_table = &self.table.schema().columns;
        let mut fields = Vec::with_capacity(output.columns.len());
        let mut arrays = Vec::with_capacity(output.columns.len());
        for (at, (position, name)) in output.columns.iter().zip(&output.names).enumerate() {
            let column = of_table.get(*position).ok_or_else(|| Error::internal("a column that is not there"))?;
            // RETURNING promises nothing of its columns.
            fields.push(column.data_type.field(name, column.nullable || self.writes()));
            arrays.push(array_of(rows.iter().filter_map(|values| values.get(at)), column.data_type)?);
        }
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
        Ok((schema, batch))
    }

    /// What is told of `rows`, which were written.
    pub(super) fn written(&self, rows: &RowBuffer) -> Answer {
        let returned = match &self.output {
            None => Vec::new(),
            Some(output) => {
                let columns = |row: RowView<'_>| output.shown(output.columns.iter().map(|at| row.value(*at)).collect());
                rows.rows().map(columns).collect()
            }
        };
        Answer::Written { rows: rows.len() as u64, returned }
    }

    /// Whether `rows` fulfil the checks; false if only a plan knows.
    ///
    /// # Errors
    /// 23514 for the first check of the first row that has a false one.
    pub(super) fn passes(&self, rows: &RowBuffer) -> Result<bool> {
        if self.checks.is_empty() {
            return Ok(true);
        }
        let mut broken = None;
        for (number, row) in rows.rows().enumerate() {
            let values: Vec<Value> = self.columns.iter().map(|at| row.value(*at)).collect();
            let scope = Scope { row: &values, ..Scope::default() };
            for (name, check) in &self.checks {
                match check.evaluate(scope) {
                    // Unknown is fulfilled.
                    Ok(Some(true) | None) => {}
                    // An error of another row or check would come first.
                    Ok(Some(false)) => _ = broken.get_or_insert((number, name)),
                    Err(NeedsPlan) => return Ok(false),
                }
            }
        }
        let Some((row, name)) = broken else { return Ok(true) };
        let schema = self.table.schema();
        let columns: Vec<_> = schema.columns.iter().map(|column| column.id).collect();
        let arrays = rows.to_arrays(&columns, 0..rows.len())?;
        Err(plan::violation(schema, name, &RecordBatch::try_new(schema.arrow(), arrays)?, row))
    }

    fn sought(&self, key: &Key, parameters: &[ValueRef<'_>]) -> Result<Sought> {
        let mut values = Vec::with_capacity(key.len());
        for part in key {
            match part.evaluate(Scope { parameters, ..Scope::default() }) {
                None => return Ok(Sought::NotShort),
                Some(Value::Null) => return Ok(Sought::Nothing),
                Some(value) => values.push(value),
            }
        }
        let mut encoded = Vec::with_capacity(16);
        self.table.encode(&values, &mut encoded)?;
        Ok(Sought::Key(encoded))
    }

    pub(super) fn view(&self, transaction: &Transaction) -> Result<Arc<TableView>> {
        transaction.view(self.table.schema().id)
    }

    fn select(&self, transaction: &Transaction, key: &Key, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let key = match self.sought(key, parameters)? {
            Sought::Key(key) => key,
            Sought::Nothing => return Ok(Answer::Row(None)),
            Sought::NotShort => return Ok(Answer::NotShort),
        };
        let view = self.view(transaction)?;
        let Some(row) = transaction.find_key(&view, self.table.key(), &key)? else { return Ok(Answer::Row(None)) };
        self.output_of(&view, row).map(Answer::Row)
    }

    /// What the statement gives of `row`, which is there.
    fn output_of(&self, view: &TableView, row: RowRef) -> Result<Option<Vec<Value>>> {
        let Some(output) = &self.output else { return Ok(None) };
        let mut values = Vec::with_capacity(output.columns.len());
        view.read_row(row, &output.columns, &mut values)?;
        Ok(Some(output.shown(values)))
    }

    fn insert(&self, transaction: &mut Transaction, values: &Values, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let Some(new) = self.coming(transaction, values, parameters)? else { return Ok(Answer::NotShort) };
        let answer = self.written(&new);
        let mut writes = transaction.statement();
        writes.insert_rows(&self.table, new)?;
        transaction.apply(writes)?;
        Ok(answer)
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
        let Some(new) = self.new_row(&found, assignments, parameters)? else { return Ok(Answer::NotShort) };
        let answer = self.written(&new);
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        writes.insert_rows(&self.table, new)?;
        transaction.apply(writes)?;
        Ok(answer)
    }

    fn delete(&self, transaction: &mut Transaction, key: &Key, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let found = match self.look_up(transaction, key, parameters)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        let returned = self.output_of(&found.view, found.row)?;
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        transaction.apply(writes)?;
        Ok(Answer::Written { rows: 1, returned: Vec::from_iter(returned) })
    }

    /// Runs a write that is a transaction of its own, and commits it: at its end `transaction`, which has written nothing, is no more.
    ///
    /// # Errors
    /// As [`Short::run`], and those of a commit; 40001 means that it is to be run again.
    pub(crate) fn run_alone(&self, mut transaction: Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Insert { values, conflict } => match (values.rows.len(), conflict) {
                (1, None) => self.insert_alone(transaction, values, parameters),
                (1, Some(conflict)) => self.upsert_alone(transaction, values, conflict, parameters),
                _ => {
                    let answer = self.run(&mut transaction, parameters)?;
                    transaction.commit()?;
                    Ok(answer)
                }
            },
            Action::Update { key, assignments } => {
                let found = match self.look_up(&transaction, key, parameters)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                let Some(new) = self.new_row(&found, assignments, parameters)? else { return Ok(Answer::NotShort) };
                let answer = self.written(&new);
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), new)?;
                Ok(answer)
            }
            Action::Delete { key } => {
                let found = match self.look_up(&transaction, key, parameters)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                let returned = self.output_of(&found.view, found.row)?;
                let nothing = self.table.new_rows();
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), nothing)?;
                Ok(Answer::Written { rows: 1, returned: Vec::from_iter(returned) })
            }
            Action::Select { .. } => self.run(&mut transaction, parameters),
        }
    }

    /// As [`Short::run_alone`], as a statement of any size would: no merge is in its way. The caller waits for the timestamp to be
    /// visible before it tells anybody.
    ///
    /// # Errors
    /// As [`Short::run_alone`].
    pub(crate) fn run_applied(
        &self,
        mut transaction: Transaction,
        parameters: &[ValueRef<'_>],
    ) -> Result<(Answer, CommitTs)> {
        let read_ts = transaction.read_ts();
        match self.run(&mut transaction, parameters)? {
            // Nothing is written.
            Answer::NotShort => Ok((Answer::NotShort, read_ts)),
            answer => Ok((answer, transaction.commit_applied()?)),
        }
    }

    fn insert_alone(&self, transaction: Transaction, values: &Values, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let Some(new) = self.coming(&transaction, values, parameters)? else { return Ok(Answer::NotShort) };
        let mut key = Vec::with_capacity(16);
        if let Some(row) = new.rows().next() {
            self.table.encode_key_of(row, &mut key);
        }
        let view = self.view(&transaction)?;
        transaction.check_free(&self.table, &view, &key)?;
        let answer = self.written(&new);
        transaction.write_row(&self.table, &view, &key, None, new)?;
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
            Sought::Nothing => return Ok(Err(Answer::Written { rows: 0, returned: Vec::new() })),
            Sought::NotShort => return Ok(Err(Answer::NotShort)),
        };
        let view = self.view(transaction)?;
        Ok(match transaction.find_key(&view, self.table.key(), &key)? {
            Some(row) => Ok(Found { view, key, row }),
            None => Err(Answer::Written { rows: 0, returned: Vec::new() }),
        })
    }

    /// The row with `assignments` made; `None` where only a plan knows.
    fn new_row(
        &self,
        found: &Found,
        assignments: &[(usize, Expression)],
        parameters: &[ValueRef<'_>],
    ) -> Result<Option<RowBuffer>> {
        let mut old = Vec::with_capacity(self.columns.len());
        found.view.read_row(found.row, &self.columns, &mut old)?;
        let Some(values) = assign(assignments, old, None, parameters) else { return Ok(None) };
        let mut new = self.table.new_rows();
        new.push_values(&values)?;
        Ok(self.passes(&new)?.then_some(new))
    }
}

impl Output {
    /// `values` of its columns as they are shown.
    fn shown(&self, mut values: Vec<Value>) -> Vec<Value> {
        for (at, chars) in &self.padded {
            if let Some(Value::Text(text)) = values.get_mut(*at) {
                let missing = (*chars as usize).saturating_sub(text.chars().count());
                *text = text.chars().chain(std::iter::repeat_n(' ', missing)).collect();
            }
        }
        values
    }
}

/// The row that a key names.
struct Found {
    view: Arc<TableView>,
    key: Vec<u8>,
    row: RowRef,
}
