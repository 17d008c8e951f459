//! Connections.

use std::sync::Arc;

use arrow::array::RecordBatch;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::{Appender, QueryResult, StatementOutcome, Transaction};
use crate::session::{Interrupts, Session, Shared, TransactionStatus};
use crate::sql::{self, Script, Statement};

/// A connection: a session with its own transaction and settings. It may be used from any thread; statements run one after
/// the other.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    session: Mutex<Session>,
    interrupts: Interrupts,
}

/// Cancels what a connection runs, from any thread.
#[derive(Clone, Debug)]
pub struct InterruptHandle(Interrupts);

impl InterruptHandle {
    /// Cancels the running statement and results still being read: they fail with 57014. Later statements are not affected.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, session: Session, interrupts: Interrupts) -> Self {
        Self { shared, session: Mutex::new(session), interrupts }
    }

    /// Runs the statements of `sql`, separated by semicolons, and returns how many rows they wrote. Outside a transaction each
    /// statement is one of its own. Rows that queries give are read and forgotten.
    ///
    /// # Errors
    /// That of the first statement that fails; those before it stay done. Nothing runs if `sql` cannot be parsed.
    pub fn execute(&self, sql: &str) -> Result<u64> {
        let mut written = 0;
        for outcome in self.run(sql)? {
            let outcome = outcome?;
            written += outcome.rows_affected.unwrap_or(0);
            if let Some(rows) = outcome.rows {
                rows.count_rows()?;
            }
        }
        Ok(written)
    }

    /// Runs one statement that gives rows.
    ///
    /// # Errors
    /// Those of planning here, those of running with the rows; 42601 when `sql` is not one statement that gives rows.
    pub fn query(&self, sql: &str) -> Result<QueryResult> {
        let mut script = sql::parse(sql)?;
        let gives_rows =
            |s: &Statement| matches!(s, Statement::Query(_) | Statement::Explain { .. } | Statement::Setting(_));
        if !script.only().is_some_and(gives_rows) {
            return Err(Error::invalid(
                sqlstate::SYNTAX,
                "a query is one statement that gives rows; use execute or run",
            ));
        }
        let outcome = self.run_next(&mut script).transpose()?;
        outcome
            .and_then(|outcome| outcome.rows)
            .ok_or_else(|| Error::invalid(sqlstate::SYNTAX, "the statement gives no rows; use execute"))
    }

    /// Parses `sql`, then runs its statements one at a time as the iterator is advanced.
    ///
    /// # Errors
    /// 42601 and others when `sql` cannot be parsed; nothing has run then.
    pub fn run(&self, sql: &str) -> Result<Statements<'_>> {
        Ok(Statements { connection: self, script: sql::parse(sql)? })
    }

    /// Runs the next statement of `script`.
    fn run_next(&self, script: &mut Script) -> Option<Result<StatementOutcome>> {
        let outcome = script.with_stack(|script| Some(self.session.lock().run(script.next()?)))?;
        Some(outcome.map(|outcome| StatementOutcome::new(outcome, &self.shared)))
    }

    /// Begins a transaction. Statements of the connection belong to it until it is committed or rolled back; dropping the
    /// guard rolls it back.
    ///
    /// # Errors
    /// 25001 when one is open already, Closed.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        if self.status() != TransactionStatus::Idle {
            return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, "there is already a transaction in progress"));
        }
        self.execute("BEGIN")?;
        Ok(Transaction::new(self))
    }

    /// Where the connection stands.
    #[must_use]
    pub fn status(&self) -> TransactionStatus {
        self.session.lock().status()
    }

    /// A handle that cancels what this connection runs.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.interrupts.clone())
    }

    /// An appender to table `table` (without a schema; as SQL folds it: lower case unless it was quoted).
    ///
    /// # Errors
    /// 42P01.
    pub fn appender(&self, table: &str) -> Result<Appender<'_>> {
        let schema = self.session.lock().table(table)?;
        Ok(Appender::new(self, schema))
    }

    pub(super) fn append(&self, table: &str, batches: &[RecordBatch]) -> Result<u64> {
        self.session.lock().append(table, batches)
    }

    pub(super) fn rollback(&self) {
        // Rolling back what has ended already leaves nothing to do.
        let _ = self.session.lock().rollback();
    }

    /// The definition of table `table`, as the next statement would see it.
    ///
    /// # Errors
    /// 42P01.
    pub fn table(&self, table: &str) -> Result<Arc<TableSchema>> {
        self.session.lock().table(table)
    }
}

/// Runs statements as it is advanced. After an error it goes on with the next statement if it is advanced again.
#[derive(Debug)]
pub struct Statements<'a> {
    connection: &'a Connection,
    script: Script,
}

impl Iterator for Statements<'_> {
    type Item = Result<StatementOutcome>;

    fn next(&mut self) -> Option<Self::Item> {
        self.connection.run_next(&mut self.script)
    }
}
