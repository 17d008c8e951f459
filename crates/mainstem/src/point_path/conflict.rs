//! INSERT of VALUES with ON CONFLICT, without a plan: the same rules as `plan::write::conflict`.
//!
//! 1. The rows are made, and thereby checked; the key of each is looked up in the table as the statement sees it, and
//!    among the keys that the statement has inserted.
//! 2. A row whose key is free is inserted. DO NOTHING leaves out the others; DO UPDATE computes new values from the row
//!    that is there and the one that was to come, if its condition holds. It assigns to no column of the key.
//! 3. What would be an error (a value that the table does not take, a row written twice) is told by the plan.

use std::collections::HashSet;

use mainstem_storage::ids::{KeyId, RowRef};
use mainstem_storage::row::{RowBuffer, RowView, Value};
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;
use mainstem_storage::{Error, ErrorKind, Result};

use super::expression::{Expression, Node};
use super::planning::Compiler;
use super::values::Given;
use super::{Answer, Arm, Conflict, Short, Values};
use crate::sql::{ConflictAction, ConflictTarget, Insert, OnConflict};

/// What becomes of a row that was to come.
pub(super) enum Fate {
    Insert,
    /// The row that is there gives way to one with these values.
    Replace(RowRef, Vec<Value>),
    LeaveOut,
    /// Only a plan knows.
    NotShort,
}

impl Compiler<'_> {
    /// ON CONFLICT of `insert`. None of both if only a plan can do it.
    pub(super) fn conflict(&self, insert: &Insert) -> Option<Option<Conflict>> {
        let Some(OnConflict { target, action }) = &insert.conflict else { return Some(None) };
        let any = *target == ConflictTarget::Any && self.schema.keys().count() > 1;
        let arm = match action {
            ConflictAction::Nothing => None,
            ConflictAction::Update { assignments, selection } => {
                let compiler = Self { in_arm: true, ..*self };
                let condition = match selection {
                    Some(expr) => Some(compiler.condition(expr)?),
                    None => None,
                };
                Some(Arm { assignments: compiler.assignments(assignments)?, condition })
            }
        };
        Some(Some(Conflict { any, arm }))
    }
}

/// The key that rows of `insert` are found by: the one that ON CONFLICT names, or the first. `None` if there is none,
/// or none that is named so.
pub(super) fn key_of(insert: &Insert, schema: &TableSchema) -> Option<KeyId> {
    let mut keys = schema.keys();
    let found = match insert.conflict.as_ref().map(|conflict| &conflict.target) {
        None | Some(ConflictTarget::Any) => keys.next(),
        Some(ConflictTarget::Columns(names)) => {
            let named = names.iter().map(|name| schema.column_named(name).map(|column| column.id));
            let named = named.collect::<Option<HashSet<_>>>()?;
            keys.find(|(_, columns)| columns.len() == named.len() && columns.iter().all(|id| named.contains(id)))
        }
        Some(ConflictTarget::Constraint(name)) => keys.find(|(key, _)| schema.key_name(*key) == *name),
    };
    found.map(|(key, _)| key)
}

impl Conflict {
    /// Whether the values of parameters that DO UPDATE stores fit their columns: they are wrong whether or not a row is
    /// updated.
    fn fits(&self, given: Given<'_>) -> bool {
        let assignments = self.arm.as_ref().map_or(&[][..], |arm| arm.assignments.as_slice());
        assignments.iter().all(|(_, value)| match value.node {
            Node::Stored(..) => value.evaluate(given.scope()).is_some(),
            _ => true,
        })
    }

    /// What becomes of `coming`, whose key `there`, a row of `view`, has.
    fn settle(
        &self,
        columns: &[usize],
        view: &TableView,
        there: RowRef,
        coming: RowView<'_>,
        given: Given<'_>,
    ) -> Result<Fate> {
        let Some(arm) = &self.arm else { return Ok(Fate::LeaveOut) };
        let mut row = Vec::with_capacity(columns.len());
        view.read_row(there, columns, &mut row)?;
        let scope = given.over(&row, Some(coming));
        let holds = arm.condition.as_ref().map_or(Ok(Some(true)), |condition| condition.evaluate(scope));
        match holds {
            Err(_) => return Ok(Fate::NotShort),
            Ok(Some(true)) => {}
            Ok(_) => return Ok(Fate::LeaveOut),
        }
        Ok(match assign(&arm.assignments, row, Some(coming), given) {
            Some(new) => Fate::Replace(there, new),
            None => Fate::NotShort,
        })
    }
}

/// `row` with `assignments` made; `None` where only a plan knows.
pub(super) fn assign(
    assignments: &[(usize, Expression)],
    mut row: Vec<Value>,
    coming: Option<RowView<'_>>,
    given: Given<'_>,
) -> Option<Vec<Value>> {
    let scope = given.over(&row, coming);
    if let [(at, expression)] = assignments {
        let value = expression.evaluate(scope)?;
        *row.get_mut(*at)? = value;
        return Some(row);
    }
    // All of them read the row as it was.
    let values = assignments.iter().map(|(_, expression)| expression.evaluate(scope)).collect::<Option<Vec<_>>>()?;
    for ((at, _), value) in assignments.iter().zip(values) {
        *row.get_mut(*at)? = value;
    }
    Some(row)
}

/// What a short statement cannot do is told by the plan, all errors that are not about other transactions or the
/// machine included.
pub(super) fn or_planned<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::Constraint) => Ok(None),
        result => result.map(Some),
    }
}

impl Short {
    /// Runs an upsert of any number of rows as a statement of `transaction`.
    pub(super) fn upsert(
        &self,
        transaction: &mut Transaction,
        values: &Values,
        conflict: &Conflict,
        given: Given<'_>,
    ) -> Result<Answer> {
        if !conflict.fits(given) {
            return Ok(Answer::NotShort);
        }
        let Some(coming) = self.coming(transaction, values, given)? else { return Ok(Answer::NotShort) };
        let view = self.view(transaction)?;
        let (mut written, mut replaced) = (self.table.new_rows(), Vec::new());
        let mut seen = Seen::default();
        for (at, row) in coming.rows().enumerate() {
            let keys = self.arbiters(conflict, row);
            let is_taken = keys.iter().any(|key| seen.inserted.contains(key));
            let there = if is_taken { None } else { self.find(transaction, &view, &keys)? };
            let fate = match there {
                _ if is_taken && conflict.arm.is_some() => Fate::NotShort,
                _ if is_taken => Fate::LeaveOut,
                None => Fate::Insert,
                Some(there) if seen.replaced.contains(&there) => Fate::NotShort,
                Some(there) => conflict.settle(&self.columns, &view, there, row, given)?,
            };
            match fate {
                Fate::Insert => {
                    written.push_row(row);
                    if at + 1 < coming.len() {
                        seen.inserted.extend(keys);
                    }
                }
                Fate::Replace(there, new) => {
                    if or_planned(written.push_values(&new))?.is_none() {
                        return Ok(Answer::NotShort);
                    }
                    seen.replaced.insert(there);
                    replaced.push(there);
                }
                Fate::LeaveOut => {}
                Fate::NotShort => return Ok(Answer::NotShort),
            }
        }
        if !self.passes(&written)? {
            return Ok(Answer::NotShort);
        }
        let Some(answer) = self.written(&written, given) else { return Ok(Answer::NotShort) };
        drop(view);
        let mut writes = transaction.statement();
        writes.delete(self.table.schema(), &replaced)?;
        writes.insert_rows(&self.table, written)?;
        match or_planned(transaction.apply(writes))? {
            Some(()) => Ok(answer),
            None => Ok(Answer::NotShort),
        }
    }

    /// Runs an upsert of one row that is a transaction of its own, and commits it.
    pub(super) fn upsert_alone(
        &self,
        transaction: Transaction,
        values: &Values,
        conflict: &Conflict,
        given: Given<'_>,
    ) -> Result<Answer> {
        if !conflict.fits(given) {
            return Ok(Answer::NotShort);
        }
        let Some(coming) = self.coming(&transaction, values, given)? else { return Ok(Answer::NotShort) };
        let view = self.view(&transaction)?;
        let row = coming.rows().next().ok_or_else(|| Error::internal("no row to insert"))?;
        let keys = self.arbiters(conflict, row);
        let found = self.find(&transaction, &view, &keys)?;
        let Some((_, key)) = keys.into_iter().next().filter(|(id, _)| self.table.key() == Some(*id)) else {
            // Without the key that it would be found by: one of the rows of a statement.
            return self.insert_of(transaction, coming, found.is_none(), given);
        };
        let (there, new) = match found {
            None => (None, coming),
            Some(there) => match conflict.settle(&self.columns, &view, there, row, given)? {
                Fate::Insert => return Err(Error::internal("a row is inserted beside one that has its key")),
                Fate::Replace(there, values) => {
                    let mut new = self.table.new_rows();
                    if or_planned(new.push_values(&values))?.is_none() {
                        return Ok(Answer::NotShort);
                    }
                    if !self.passes(&new)? {
                        return Ok(Answer::NotShort);
                    }
                    (Some(there), new)
                }
                Fate::LeaveOut => return Ok(Answer::Written { rows: 0, returned: Vec::new() }),
                Fate::NotShort => return Ok(Answer::NotShort),
            },
        };
        let Some(answer) = self.written(&new, given) else { return Ok(Answer::NotShort) };
        // Another key may be taken.
        let written = or_planned(transaction.write_row(&self.table, &view, &key, there, new))?;
        Ok(if written.is_some() { answer } else { Answer::NotShort })
    }
}

impl Short {
    /// The keys of `row` that ON CONFLICT looks at, as far as it has them; the one that rows are found by comes first.
    fn arbiters(&self, conflict: &Conflict, row: RowView<'_>) -> Vec<(KeyId, Vec<u8>)> {
        let mut key = Vec::with_capacity(16);
        let mut keys = Vec::with_capacity(1);
        if let Some(id) = self.table.key()
            && self.table.encode_key_of(row, &mut key)
        {
            keys.push((id, key));
        }
        if conflict.any {
            keys.extend(self.table.other_keys(row).into_iter().map(|(id, key)| (id, key.into_vec())));
        }
        keys
    }

    /// A row that has one of `keys`.
    fn find(&self, transaction: &Transaction, view: &TableView, keys: &[(KeyId, Vec<u8>)]) -> Result<Option<RowRef>> {
        for (id, key) in keys {
            if let Some(there) = transaction.find_key(view, *id, key)? {
                return Ok(Some(there));
            }
        }
        Ok(None)
    }

    /// Ends `transaction` by inserting `rows`, or without them if they are not `wanted`.
    pub(super) fn insert_of(
        &self,
        mut transaction: Transaction,
        rows: RowBuffer,
        wanted: bool,
        given: Given<'_>,
    ) -> Result<Answer> {
        if !wanted {
            return Ok(Answer::Written { rows: 0, returned: Vec::new() });
        }
        let Some(answer) = self.written(&rows, given) else { return Ok(Answer::NotShort) };
        let mut writes = transaction.statement();
        writes.insert_rows(&self.table, rows)?;
        transaction.apply(writes)?;
        transaction.commit()?;
        Ok(answer)
    }
}

/// What a statement has written to.
#[derive(Default)]
struct Seen {
    inserted: HashSet<(KeyId, Vec<u8>)>,
    replaced: HashSet<RowRef>,
}
