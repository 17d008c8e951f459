//! Running a short statement in a transaction.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use mainstem_storage::ids::{ColumnId, CommitTs, RowRef};
use mainstem_storage::point;
use mainstem_storage::row::{RowBuffer, RowView, Value};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::{Snapshot, TableView};
use mainstem_storage::{Error, Result};

use super::access::{Access, Key, Rows, Sought, Taken, Wanted, each, sought};
use super::condition::{Condition, NeedsPlan, holds};
use super::conflict::{assign, or_planned};
use super::expression::Expression;
use super::select::{Gives, Selection};
use super::values::Given;
use super::{Action, Answer, Output, Short, Values};
use crate::plan;
use crate::value::{ResultColumn, ValueRef, batch_of};

impl Short {
    /// Runs it in `transaction` with `parameters`. A write is a statement of the transaction, and ends as one.
    ///
    /// # Errors
    /// Those of storage: 23505, 23502, 22001, 40001, Io, Corrupt, and so on. Nothing is written then.
    pub(crate) fn run(&self, transaction: &mut Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        self.run_given(transaction, self.given(parameters))
    }

    fn run_given(&self, transaction: &mut Transaction, given: Given<'_>) -> Result<Answer> {
        match &self.action {
            Action::Select(selection) if selection.locks => self.select_locked(transaction, selection, given),
            Action::Select(selection) => self.select(transaction, selection, given),
            Action::Join(join) => self.join(transaction, join, given),
            Action::Insert { values, conflict: None } => self.insert(transaction, values, given),
            Action::Insert { values, conflict: Some(conflict) } => self.upsert(transaction, values, conflict, given),
            Action::Update { access, assignments } => match access.key() {
                Some(key) => self.update(transaction, key, access.beside.as_ref(), assignments, given),
                None => {
                    let updates = self.updates(transaction, access, assignments, given)?;
                    self.make(transaction, updates)
                }
            },
            Action::Delete { access } => match access.key() {
                Some(key) => self.delete(transaction, key, access.beside.as_ref(), given),
                None => {
                    let deletes = self.deletes(transaction, access, given)?;
                    self.make(transaction, deletes)
                }
            },
        }
    }

    /// As [`Short::run`], for a SELECT outside a transaction.
    pub(crate) fn read_at(&self, snapshot: &Arc<Snapshot>, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let selection = match &self.action {
            Action::Select(selection) => selection,
            Action::Join(join) => return self.join_at(snapshot, join, self.given(parameters)),
            _ => return Ok(Answer::NotShort),
        };
        // Only a plan has the message.
        let Some(view) = TableView::at(snapshot, self.table.schema().id) else { return Ok(Answer::NotShort) };
        let find = |key: &[u8]| point::find(&view, self.table.found_by()?, key, |_| true);
        self.found(&view, selection, self.given(parameters), find)
    }

    /// As [`Short::run`], for a SELECT, which changes nothing.
    pub(crate) fn read(&self, transaction: &Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        match &self.action {
            Action::Select(selection) => self.select(transaction, selection, self.given(parameters)),
            Action::Join(join) => self.join(transaction, join, self.given(parameters)),
            _ => Ok(Answer::NotShort),
        }
    }

    fn given<'a>(&self, parameters: &'a [ValueRef<'a>]) -> Given<'a> {
        let clock = if self.reads_clock {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        } else {
            0
        };
        Given { parameters, clock }
    }

    /// Rows of a SELECT or of RETURNING as an Arrow batch.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn batch_of(&self, rows: &[Vec<Value>]) -> Result<(SchemaRef, RecordBatch)> {
        let Some(schema) = self.rows_schema() else {
            return Err(Error::internal("a batch of a statement without rows"));
        };
        let columns = ResultColumn::of(&schema);
        let batch = batch_of(&schema, &columns, rows)?;
        Ok((schema, batch))
    }

    /// The columns of the rows that it gives, if it gives any.
    pub(crate) fn rows_schema(&self) -> Option<SchemaRef> {
        let output = self.output.as_ref()?;
        // RETURNING promises nothing of its columns.
        let fields =
            output.fields.iter().map(|(name, data_type, nullable)| data_type.field(name, *nullable || self.writes()));
        Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    /// What is told of `rows`, which are to be written; `None` where only a plan knows.
    pub(super) fn written(&self, rows: &RowBuffer, given: Given<'_>) -> Option<Answer> {
        let of_row = |output: &Output, row: RowView<'_>| {
            if output.computed.is_empty() {
                return Some(output.padded(output.columns.iter().map(|at| row.value(*at)).collect()));
            }
            let values: Vec<Value> = self.columns.iter().map(|at| row.value(*at)).collect();
            output.of(&values, given)
        };
        let returned = match &self.output {
            None => Vec::new(),
            Some(output) => rows.rows().map(|row| of_row(output, row)).collect::<Option<_>>()?,
        };
        Some(Answer::Written { rows: rows.len() as u64, returned })
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
            let scope = Given { parameters: &[], clock: 0 }.over(&values, None);
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

    pub(super) fn view(&self, transaction: &Transaction) -> Result<Arc<TableView>> {
        transaction.view(self.table.schema().id)
    }

    fn select(&self, transaction: &Transaction, selection: &Selection, given: Given<'_>) -> Result<Answer> {
        let view = self.view(transaction)?;
        let find = |key: &[u8]| transaction.find_key(&view, self.table.found_by()?, key);
        self.found(&view, selection, given, find)
    }

    /// What a SELECT gives of the rows of `view`; `find` finds one by its key.
    fn found(
        &self,
        view: &TableView,
        selection: &Selection,
        given: Given<'_>,
        find: impl Fn(&[u8]) -> Result<Option<RowRef>>,
    ) -> Result<Answer> {
        let beside = selection.access.beside.as_ref();
        if let (Some(key), Gives::Rows, None) = (selection.access.key(), selection.gives, &selection.limit) {
            return match sought(&self.table, key, given.scope())? {
                Sought::NotShort => Ok(Answer::NotShort),
                Sought::Nothing => Ok(self.without_row(Answer::Row(None), beside, &[], given)),
                Sought::Key(key) => Ok(match find(&key)? {
                    Some(row) => match self.selected(view, row, beside, given)? {
                        Ok(None) => self.without_row(Answer::Row(None), None, &[], given),
                        selected => selected.map_or(Answer::NotShort, Answer::Row),
                    },
                    None => self.without_row(Answer::Row(None), beside, &[], given),
                }),
            };
        }
        let Some(wanted) = selection.wanted(given) else { return Ok(Answer::NotShort) };
        let rows = Rows { table: &self.table, view, path: &selection.access.path, wanted };
        if selection.gives == Gives::Rows {
            let found = each(rows, given.scope(), find, |row| self.selected(view, row, beside, given))?;
            return Ok(match found {
                None => Answer::NotShort,
                Some(rows) if rows.is_empty() => self.without_row(Answer::Rows(rows), beside, &[], given),
                Some(rows) => Answer::Rows(rows),
            });
        }
        if selection.gives == Gives::Aggregates {
            return self.aggregated(view, selection, rows, given, find);
        }
        let found = each(rows, given.scope(), find, |row| {
            let Some(condition) = beside else { return Ok(Ok(Some(()))) };
            Ok(holds(Some(condition), &self.row_of(view, row)?, given).map(|holds| holds.then_some(())))
        })?;
        let Some(found) = found else { return Ok(Answer::NotShort) };
        let value = match selection.gives {
            Gives::Exists => Value::Boolean(!found.is_empty()),
            _ => Value::Int(found.len() as i64),
        };
        let answer = Answer::Row(Some(vec![value]));
        Ok(if found.is_empty() { self.without_row(answer, beside, &[], given) } else { answer })
    }

    /// `answer`, which no row was evaluated for, unless a plan may have an error in its place: what is wrong with a
    /// literal or a value of a parameter is wrong whether or not there is a row. For a row of NULLs, errors that are of
    /// rows mostly do not come up.
    pub(super) fn without_row(
        &self,
        answer: Answer,
        beside: Option<&Condition>,
        assignments: &[(usize, Expression)],
        given: Given<'_>,
    ) -> Answer {
        let computed = self.output.as_ref().map_or(&[][..], |output| output.computed.as_slice());
        if beside.is_none() && assignments.is_empty() && computed.is_empty() {
            return answer;
        }
        let nulls = vec![Value::Null; self.columns.len()];
        let scope = given.over(&nulls, None);
        let is_right = holds(beside, &nulls, given).is_ok()
            && assignments.iter().all(|(_, value)| value.evaluate(scope).is_some())
            && computed.iter().all(|(_, data_type, computed)| computed.value(scope, *data_type).is_some());
        if is_right { answer } else { Answer::NotShort }
    }

    /// A SELECT that keeps others from changing the rows that it gives.
    fn select_locked(&self, transaction: &mut Transaction, selection: &Selection, given: Given<'_>) -> Result<Answer> {
        let view = self.view(transaction)?;
        let Some(wanted) = selection.wanted(given) else { return Ok(Answer::NotShort) };
        let rows = Rows { table: &self.table, view: &view, path: &selection.access.path, wanted };
        let find = |key: &[u8]| transaction.find_key(&view, self.table.found_by()?, key);
        let beside = selection.access.beside.as_ref();
        let shown =
            |row| Ok(self.selected(&view, row, beside, given)?.map(|values| values.map(|values| (row, values))));
        let Some(found) = each(rows, given.scope(), find, shown)? else { return Ok(Answer::NotShort) };
        if found.is_empty() {
            return Ok(self.without_row(Answer::Rows(Vec::new()), beside, &[], given));
        }
        let (mut locked, shown): (Vec<RowRef>, Vec<_>) = found.into_iter().unzip();
        locked.sort_unstable_by_key(|row| row.to_bits());
        transaction.lock_rows(self.table.schema(), &locked)?;
        Ok(Answer::Rows(shown))
    }

    /// What a SELECT gives of `row`, if it fulfils what stands beside its key.
    fn selected(
        &self,
        view: &TableView,
        row: RowRef,
        beside: Option<&Condition>,
        given: Given<'_>,
    ) -> Result<Taken<Vec<Value>>> {
        let Some(output) = &self.output else { return Err(Error::internal("a SELECT of nothing")) };
        if beside.is_none() && output.computed.is_empty() {
            let mut values = Vec::with_capacity(output.columns.len());
            view.read_row(row, &output.columns, &mut values)?;
            return Ok(Ok(Some(output.padded(values))));
        }
        let values = self.row_of(view, row)?;
        Ok(match holds(beside, &values, given) {
            Err(NeedsPlan) => Err(NeedsPlan),
            Ok(false) => Ok(None),
            Ok(true) => output.of(&values, given).map(Some).ok_or(NeedsPlan),
        })
    }

    /// The values of all columns in `row`.
    pub(super) fn row_of(&self, view: &TableView, row: RowRef) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.columns.len());
        view.read_row(row, &self.columns, &mut values)?;
        Ok(values)
    }

    fn insert(&self, transaction: &mut Transaction, values: &Values, given: Given<'_>) -> Result<Answer> {
        let Some(new) = self.coming(transaction, values, given)? else { return Ok(Answer::NotShort) };
        let Some(answer) = self.written(&new, given) else { return Ok(Answer::NotShort) };
        let mut writes = transaction.statement();
        writes.insert_rows(&self.table, new)?;
        transaction.apply(writes)?;
        Ok(answer)
    }

    fn update(
        &self,
        transaction: &mut Transaction,
        key: &Key,
        beside: Option<&Condition>,
        assignments: &[(usize, Expression)],
        given: Given<'_>,
    ) -> Result<Answer> {
        let mut found = match self.look_up(transaction, key, beside, assignments, given)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        let Some((new, answer)) = self.new_row(&mut found, assignments, given)? else { return Ok(Answer::NotShort) };
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        writes.insert_rows(&self.table, new)?;
        transaction.apply(writes)?;
        Ok(answer)
    }

    /// The rows of `access`, with the values of all columns; `None` where only a plan knows.
    fn located(&self, transaction: &Transaction, access: &Access, given: Given<'_>) -> Result<Located> {
        let view = self.view(transaction)?;
        let find = |key: &[u8]| transaction.find_key(&view, self.table.found_by()?, key);
        let rows = Rows { table: &self.table, view: &view, path: &access.path, wanted: Wanted::ALL };
        each(rows, given.scope(), find, |row| {
            let values = self.row_of(&view, row)?;
            Ok(holds(access.beside.as_ref(), &values, given).map(|holds| holds.then_some((row, values))))
        })
    }

    /// The rows of `access` with `assignments` made to them; the answer if there are none, or only a plan knows.
    fn updates(
        &self,
        transaction: &Transaction,
        access: &Access,
        assignments: &[(usize, Expression)],
        given: Given<'_>,
    ) -> Result<std::result::Result<Changes, Answer>> {
        let Some(found) = self.located(transaction, access, given)? else { return Ok(Err(Answer::NotShort)) };
        if found.is_empty() {
            let nothing = Answer::Written { rows: 0, returned: Vec::new() };
            return Ok(Err(self.without_row(nothing, access.beside.as_ref(), assignments, given)));
        }
        let (mut rows, mut new) = (Vec::with_capacity(found.len()), self.table.new_rows());
        for (row, old) in found {
            let Some(values) = assign(assignments, old, None, given) else { return Ok(Err(Answer::NotShort)) };
            if or_planned(new.push_values(&values))?.is_none() {
                return Ok(Err(Answer::NotShort));
            }
            rows.push(row);
        }
        // Which of several rows is the one to tell of is a plan's to say.
        if !(if new.len() > 1 { self.passes(&new).unwrap_or(false) } else { self.passes(&new)? }) {
            return Ok(Err(Answer::NotShort));
        }
        let answer = self.written(&new, given);
        Ok(answer.map(|answer| Changes { rows, new, answer }).ok_or(Answer::NotShort))
    }

    /// The rows of `access`, which go; the answer if there are none, or only a plan knows.
    fn deletes(
        &self,
        transaction: &Transaction,
        access: &Access,
        given: Given<'_>,
    ) -> Result<std::result::Result<Changes, Answer>> {
        let Some(found) = self.located(transaction, access, given)? else { return Ok(Err(Answer::NotShort)) };
        if found.is_empty() {
            let nothing = Answer::Written { rows: 0, returned: Vec::new() };
            return Ok(Err(self.without_row(nothing, access.beside.as_ref(), &[], given)));
        }
        let (rows, values): (Vec<RowRef>, Vec<Vec<Value>>) = found.into_iter().unzip();
        let returned = self.output.as_ref().map(|output| values.iter().map(|row| output.of(row, given)).collect());
        let Some(returned) = returned.unwrap_or_else(|| Some(Vec::new())) else { return Ok(Err(Answer::NotShort)) };
        let answer = Answer::Written { rows: rows.len() as u64, returned };
        Ok(Ok(Changes { rows, new: self.table.new_rows(), answer }))
    }

    /// Makes `changes` as a statement of `transaction`.
    fn make(&self, transaction: &mut Transaction, changes: std::result::Result<Changes, Answer>) -> Result<Answer> {
        let Changes { rows, new, answer } = match changes {
            Ok(changes) => changes,
            Err(answer) => return Ok(answer),
        };
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &rows)?;
        writes.insert_rows(&self.table, new)?;
        Ok(or_planned(transaction.apply(writes))?.map_or(Answer::NotShort, |()| answer))
    }

    /// Makes `changes`, which leave all keys as they are, and commits them.
    fn make_alone(&self, transaction: Transaction, changes: std::result::Result<Changes, Answer>) -> Result<Answer> {
        match changes {
            Ok(Changes { rows, new, answer }) => transaction.update_rows(&self.table, &rows, new).map(|_| answer),
            Err(answer) => Ok(answer),
        }
    }

    /// Whether `assignments` leave all keys of the table as they are.
    fn keeps_keys(&self, assignments: &[(usize, Expression)]) -> bool {
        let schema = self.table.schema();
        let in_key = |column: &ColumnId| schema.keys().any(|(_, columns)| columns.contains(column));
        !assignments.iter().any(|(at, _)| schema.columns.get(*at).is_none_or(|column| in_key(&column.id)))
    }

    fn delete(
        &self,
        transaction: &mut Transaction,
        key: &Key,
        beside: Option<&Condition>,
        given: Given<'_>,
    ) -> Result<Answer> {
        let mut found = match self.look_up(transaction, key, beside, &[], given)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        let Some(answer) = self.deleted(&mut found, given)? else { return Ok(Answer::NotShort) };
        drop(found.view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &[found.row])?;
        transaction.apply(writes)?;
        Ok(answer)
    }

    /// Runs a write that is a transaction of its own, and commits it: at its end `transaction`, which has written
    /// nothing, is no more.
    ///
    /// # Errors
    /// As [`Short::run`], and those of a commit; 40001 means that it is to be run again.
    pub(crate) fn run_alone(&self, mut transaction: Transaction, parameters: &[ValueRef<'_>]) -> Result<Answer> {
        let given = self.given(parameters);
        match &self.action {
            Action::Insert { values, conflict } => match (values.rows.len(), conflict) {
                (1, None) => self.insert_alone(transaction, values, given),
                (1, Some(conflict)) => self.upsert_alone(transaction, values, conflict, given),
                (_, None) => self.insert_rows_alone(transaction, values, given),
                _ => self.run_rows_alone(transaction, given),
            },
            Action::Update { access, assignments } => {
                let Some(key) = access.key() else {
                    if !self.keeps_keys(assignments) {
                        return self.run_rows_alone(transaction, given);
                    }
                    let updates = self.updates(&transaction, access, assignments, given)?;
                    return self.make_alone(transaction, updates);
                };
                let mut found = match self.look_up(&transaction, key, access.beside.as_ref(), assignments, given)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                let Some((new, answer)) = self.new_row(&mut found, assignments, given)? else {
                    return Ok(Answer::NotShort);
                };
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), new)?;
                Ok(answer)
            }
            Action::Delete { access } => {
                let Some(key) = access.key() else {
                    let deletes = self.deletes(&transaction, access, given)?;
                    return self.make_alone(transaction, deletes);
                };
                let mut found = match self.look_up(&transaction, key, access.beside.as_ref(), &[], given)? {
                    Ok(found) => found,
                    Err(answer) => return Ok(answer),
                };
                let Some(answer) = self.deleted(&mut found, given)? else { return Ok(Answer::NotShort) };
                let nothing = self.table.new_rows();
                transaction.write_row(&self.table, &found.view, &found.key, Some(found.row), nothing)?;
                Ok(answer)
            }
            Action::Select(_) | Action::Join(_) => self.run_given(&mut transaction, given),
        }
    }

    /// As [`Short::run_alone`], for several rows.
    fn run_rows_alone(&self, mut transaction: Transaction, given: Given<'_>) -> Result<Answer> {
        let answer = self.run_given(&mut transaction, given)?;
        transaction.commit()?;
        Ok(answer)
    }

    /// As [`Short::run_alone`], as a statement of any size would: no merge is in its way. The caller waits for the
    /// timestamp to be visible before it tells anybody.
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

    /// The row that a write names and makes `assignments` to, or the answer if there is none.
    fn look_up(
        &self,
        transaction: &Transaction,
        key: &Key,
        beside: Option<&Condition>,
        assignments: &[(usize, Expression)],
        given: Given<'_>,
    ) -> Result<std::result::Result<Found, Answer>> {
        const NOTHING: Answer = Answer::Written { rows: 0, returned: Vec::new() };
        let key = match sought(&self.table, key, given.scope())? {
            Sought::Key(key) => key,
            Sought::Nothing => return Ok(Err(self.without_row(NOTHING, beside, assignments, given))),
            Sought::NotShort => return Ok(Err(Answer::NotShort)),
        };
        let view = self.view(transaction)?;
        let Some(row) = transaction.find_key(&view, self.table.found_by()?, &key)? else {
            return Ok(Err(self.without_row(NOTHING, beside, assignments, given)));
        };
        let mut values = None;
        if beside.is_some() {
            let read = self.row_of(&view, row)?;
            match holds(beside, &read, given) {
                Err(NeedsPlan) => return Ok(Err(Answer::NotShort)),
                Ok(false) => return Ok(Err(self.without_row(NOTHING, None, assignments, given))),
                Ok(true) => values = Some(read),
            }
        }
        Ok(Ok(Found { view, key, row, values }))
    }

    /// The row with `assignments` made, and what is told of it; `None` where only a plan knows.
    fn new_row(
        &self,
        found: &mut Found,
        assignments: &[(usize, Expression)],
        given: Given<'_>,
    ) -> Result<Option<(RowBuffer, Answer)>> {
        let old = match found.values.take() {
            Some(values) => values,
            None => self.row_of(&found.view, found.row)?,
        };
        let Some(values) = assign(assignments, old, None, given) else { return Ok(None) };
        let mut new = self.table.new_rows();
        new.push_values(&values)?;
        if !self.passes(&new)? {
            return Ok(None);
        }
        Ok(self.written(&new, given).map(|answer| (new, answer)))
    }

    /// What is told of the row, which goes; `None` where only a plan knows.
    fn deleted(&self, found: &mut Found, given: Given<'_>) -> Result<Option<Answer>> {
        let returned = match &self.output {
            None => Vec::new(),
            Some(output) => {
                let values = match found.values.take() {
                    Some(values) => values,
                    None => self.row_of(&found.view, found.row)?,
                };
                let Some(values) = output.of(&values, given) else { return Ok(None) };
                vec![values]
            }
        };
        Ok(Some(Answer::Written { rows: 1, returned }))
    }
}

impl Output {
    /// What it shows of a row with `values`; `None` where only a plan knows.
    pub(super) fn of(&self, values: &[Value], given: Given<'_>) -> Option<Vec<Value>> {
        let mut shown = Vec::with_capacity(self.fields.len());
        shown.extend(self.columns.iter().filter_map(|at| values.get(*at)).cloned());
        for (place, data_type, computed) in &self.computed {
            shown.insert((*place).min(shown.len()), computed.value(given.over(values, None), *data_type)?);
        }
        Some(self.padded(shown))
    }

    /// `values` with the blanks of CHAR(n).
    fn padded(&self, mut values: Vec<Value>) -> Vec<Value> {
        for (at, chars) in &self.padded {
            if let Some(Value::Text(text)) = values.get_mut(*at) {
                let missing = (*chars as usize).saturating_sub(text.chars().count());
                *text = text.chars().chain(std::iter::repeat_n(' ', missing)).collect();
            }
        }
        values
    }
}

/// Rows, with the values of all columns; `None` where only a plan knows.
type Located = Option<Vec<(RowRef, Vec<Value>)>>;

/// Rows that go, those that come in their place, and what is told of them.
struct Changes {
    rows: Vec<RowRef>,
    new: RowBuffer,
    answer: Answer,
}

/// The row that a key names.
struct Found {
    view: Arc<TableView>,
    key: Vec<u8>,
    row: RowRef,
    /// Of all columns, if they were read.
    values: Option<Vec<Value>>,
}
