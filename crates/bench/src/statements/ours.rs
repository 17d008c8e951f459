//! A statement of ours as it is handed over.

use mainstem::{Connection, Statement, Value as Cell, ValueRef};

use super::cases::Case;
use super::inputs::Operation;
use crate::experiment::Failure;
use crate::peers::{Answer, Call};

/// A statement, ready to be run.
pub(super) struct Ours<'a> {
    connection: &'a Connection,
    case: Case,
    prepared: Option<Statement<'a>>,
}

impl<'a> Ours<'a> {
    /// The statement of `case`.
    pub(super) fn new(connection: &'a Connection, case: Case) -> Result<Self, Failure> {
        let prepared = match case.call {
            Call::Prepared => Some(connection.prepare(case.sql)?),
            Call::OneShot | Call::Text | Call::Arrow => None,
        };
        Ok(Self { connection, case, prepared })
    }

    /// Runs it and reads all of its result.
    pub(super) fn run(&self, operation: &Operation) -> Result<Answer, Failure> {
        let value = operation.parameter.map(ValueRef::BigInt);
        let (text, values) = (operation.text.as_ref(), value.as_slice());
        let is_query = self.case.is_query();
        if !is_query {
            let rows = match (&self.prepared, self.case.call) {
                (Some(statement), _) => statement.execute(values)?,
                (None, Call::Text) => self.connection.execute(text)?,
                (None, _) => self.connection.execute_with(text, values)?,
            };
            return Ok(Answer { rows, sum: 0 });
        }
        let rows = match (&self.prepared, self.case.call) {
            (Some(statement), _) => statement.query(values)?,
            (None, Call::Text) => self.connection.query(text)?.rows(),
            (None, _) => self.connection.query_with(text, values)?,
        };
        let mut answer = Answer::default();
        for row in rows {
            answer.rows += 1;
            answer.sum = answer.sum.wrapping_add(row?.values().iter().map(number).sum::<i64>());
        }
        Ok(answer)
    }
}

/// The whole number of a cell, 0 of others.
fn number(cell: &Cell) -> i64 {
    match cell {
        Cell::Int(number) => *number,
        Cell::Boolean(flag) => i64::from(*flag),
        _ => 0,
    }
}
