//! The mix's statements on a connection of ours.

use mainstem::{Connection, Statement, Value, ValueRef};

use super::engine::Engine;
use super::schema::{Query, TABLES};
use crate::experiment::Failure;

/// A connection and its prepared statements.
pub(super) struct Ours<'a> {
    connection: &'a Connection,
    statements: Vec<Statement<'a>>,
}

impl<'a> Ours<'a> {
    /// Makes the tables and prepares the statements.
    pub(super) fn new(connection: &'a Connection) -> Result<Self, Failure> {
        TABLES.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
        let statements = Query::ALL.iter().map(|query| connection.prepare(query.sql())).collect::<Result<_, _>>()?;
        Ok(Self { connection, statements })
    }

    fn statement(&self, query: Query) -> Result<&Statement<'a>, Failure> {
        self.statements.get(query as usize).ok_or_else(|| Failure::Broken(format!("{query:?} is not prepared")))
    }
}

impl Engine for Ours<'_> {
    fn execute(&self, query: Query, values: &[ValueRef<'_>]) -> Result<u64, Failure> {
        Ok(self.statement(query)?.execute(values)?)
    }

    fn query(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
        cell: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), Failure> {
        for row in self.statement(query)?.query(values)? {
            for (column, value) in row?.values().iter().enumerate() {
                cell(
                    column,
                    match value {
                        Value::Int(number) => ValueRef::BigInt(*number),
                        Value::Text(text) => ValueRef::Text(text),
                        _ => ValueRef::Null,
                    },
                );
            }
        }
        Ok(())
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
        let transaction = self.connection.transaction()?;
        match work()? {
            true => transaction.commit()?,
            false => transaction.rollback(),
        }
        Ok(())
    }
}
