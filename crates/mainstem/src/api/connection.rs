//! Connections.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::pending::{Pending, Statements};
use super::{QueryResult, StatementOutcome};
use crate::exec::{Interrupts, Shared};
use crate::plan::Description;
use crate::provider::Progress;
use crate::session::{Kept, Prepared, Runs, Session, ShortOutcome, TransactionStatus};
use crate::sql::{self, TableName, Template};
use crate::value::ValueRef;

/// How often a wait looks whether it was canceled.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A connection: a session with its own transaction and settings. It may be used from any thread; statements run one
/// after the other.
#[derive(Debug)]
pub struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Mutex<Session>,
    interrupts: Interrupts,
    progress: Progress,
}

/// Cancels what a connection runs, from any thread.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// let handle = connection.interrupt_handle();
/// let endless = "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x % 7 <
/// y"; let running = connection.query(endless)?; std::thread::spawn(move || handle.interrupt()).join().unwrap(); let
/// error = running.into_iter().find_map(Result::err).unwrap(); assert_eq!(error.sqlstate(), "57014");
/// assert_eq!(connection.query_row("SELECT 1", ())?.get::<i64>(0)?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InterruptHandle(Interrupts);

impl InterruptHandle {
    /// Cancels the running statement and results still being read: they fail with 57014. Later statements are not
    /// affected.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, session: Session, interrupts: Interrupts) -> Self {
        let progress = session.progress().clone();
        Self { shared, session: Mutex::new(session), interrupts, progress }
    }

    /// Runs the statements of `sql`, separated by semicolons, and returns how many rows they wrote. Outside a
    /// transaction each statement is one of its own. Rows that queries give are read and forgotten.
    ///
    /// # Errors
    /// That of the first statement that fails; those before it stay done. Nothing runs if `sql` cannot be parsed.
    pub fn execute(&self, sql: &str) -> Result<u64> {
        let mut written = 0;
        for outcome in self.run(sql)? {
            written += outcome?.finish()?;
        }
        Ok(written)
    }

    /// Runs a script: the statements of `sql`, separated by semicolons, as [`Connection::execute`] does.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")?;
    /// assert_eq!(connection.query_row("SELECT count(*) FROM t", ())?.get::<i64>(0)?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        self.execute(sql).map(|_| ())
    }

    /// The statement `sql`, which is prepared if its text was not seen before, and else shows what is wrong with it
    /// when it runs.
    pub(super) fn kept_or_prepared(&self, sql: &str) -> Result<Arc<Mutex<Prepared>>> {
        let kept = self.session.lock().kept(sql);
        if let Some(Kept::Prepared(prepared)) = kept {
            return Ok(prepared);
        }
        let prepared = self.prepare_template(Arc::new(sql::parse_template(sql)?))?;
        Ok(self.session.lock().keep(sql, prepared))
    }

    pub(super) fn prepare_template(&self, template: Arc<Template>) -> Result<Prepared> {
        self.session.lock().prepare(template.clone()).map_err(|e| template.with_position(e))
    }

    /// Writes the whole database as SQL to `output`, as of one moment, beside all that others write: what makes it
    /// again, and its rows as COPY FROM stdin with their data. A script runner reads it back. Returns how many rows
    /// there are.
    ///
    /// # Errors
    /// Those of `output`, and of reading.
    pub fn dump(&self, mut output: impl Write) -> Result<u64> {
        self.session.lock().dump(&mut output)
    }

    /// Runs `sql`, a COPY FROM STDIN, with the data that `input` gives; returns how many rows were read. The data ends
    /// where the input does, or at a line `\.`.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER)")?;
    /// let data = "Ulm,128928\nJena,\n";
    /// assert_eq!(connection.copy_in("COPY city FROM STDIN (FORMAT csv)", data.as_bytes())?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 22P04 for malformed data, 22P02 and others for a value, with the line; those of the table and of the input;
    /// 42601 when `sql` is another statement. Nothing was inserted then.
    pub fn copy_in(&self, sql: &str, mut input: impl Read) -> Result<u64> {
        let mut script = sql::parse(sql)?;
        let outcome = script.with_stack(|script| self.session.lock().copy_in(script, &mut input));
        let outcome = outcome.map_err(|e| script.with_position(e))?;
        Ok(outcome.affected.unwrap_or(0))
    }

    /// Runs `sql`, a COPY TO STDOUT, and writes the data to `output`; returns how many rows were written.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let mut data = Vec::new();
    /// connection.copy_out("COPY (SELECT 1, 'a b', NULL) TO STDOUT", &mut data)?;
    /// assert_eq!(data, b"1\ta b\t\\N\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query and of the output, which may have got some of the data then; 42601 when `sql` is another
    /// statement.
    pub fn copy_out(&self, sql: &str, mut output: impl Write) -> Result<u64> {
        let mut script = sql::parse(sql)?;
        let outcome = script.with_stack(|script| self.session.lock().copy_out(script, &mut output));
        let outcome = outcome.map_err(|e| script.with_position(e))?;
        Ok(outcome.affected.unwrap_or(0))
    }

    pub(super) fn run_prepared(&self, prepared: &mut Prepared, values: &[ValueRef<'_>]) -> Result<StatementOutcome> {
        let outcome = self.session.lock().run_prepared(prepared, values);
        let outcome = outcome.map_err(|e| prepared.with_position(e))?;
        Ok(StatementOutcome::new(outcome, &self.shared))
    }

    pub(super) fn run_short(
        &self,
        prepared: &mut Prepared,
        values: &[ValueRef<'_>],
        runs: Runs,
    ) -> Result<Option<ShortOutcome>> {
        self.session.lock().run_short(prepared, values, runs).map_err(|e| prepared.with_position(e))
    }

    pub(super) fn gives_rows(&self, prepared: &Prepared) -> bool {
        self.session.lock().prepared_gives_rows(prepared)
    }

    pub(super) fn describe(&self, prepared: &mut Prepared) -> Result<Arc<Description>> {
        self.session.lock().describe(prepared).map_err(|e| prepared.with_position(e))
    }

    /// Runs one statement that gives rows.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")?;
    /// connection.execute("INSERT INTO t VALUES (1), (2), (3)")?;
    /// let mut rows = 0;
    /// for batch in connection.query("SELECT k FROM t WHERE k > 1")? {
    ///     rows += batch?.num_rows(); // an Arrow RecordBatch
    /// }
    /// assert_eq!(rows, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of planning here, those of running with the rows; 42601 when `sql` is not one statement that gives rows.
    pub fn query(&self, sql: &str) -> Result<QueryResult> {
        let mut script = match self.pending(sql)? {
            Pending::Kept { parameterized, prepared, .. } => {
                // A write without RETURNING is refused below.
                let gives_rows = self.gives_rows(&prepared.lock());
                if let Some(outcome) = gives_rows.then(|| self.run_kept(parameterized.as_ref(), &prepared)).flatten() {
                    return outcome?.into_rows();
                }
                sql::parse(sql)?
            }
            Pending::Script(script) => script,
            Pending::Several { .. } | Pending::Nothing => sql::parse("")?,
        };
        let session = self.session.lock();
        let gives_rows = script.only().is_some_and(|statement| session.gives_rows(statement));
        drop(session);
        if !gives_rows {
            return Err(Error::invalid(
                sqlstate::SYNTAX,
                "a query is one statement that gives rows; use execute or run",
            ));
        }
        match self.run_next(&mut script).transpose()? {
            Some(outcome) => outcome.into_rows(),
            None => Err(Error::internal("a script lost its statement")),
        }
    }

    /// Parses `sql`, then runs its statements one at a time as the iterator is advanced.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let script = "CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)";
    /// let outcomes: Vec<_> = connection.run(script)?.collect();
    /// assert!(outcomes[1].is_ok());
    /// assert_eq!(outcomes[2].as_ref().unwrap_err().sqlstate(), "23505");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 42601 and others when `sql` cannot be parsed; nothing has run then.
    pub fn run(&self, sql: &str) -> Result<Statements<'_>> {
        Statements::new(self, sql)
    }

    /// Runs a statement that gives no rows and needs no parser.
    pub(super) fn run_parsed(&self, statement: sql::Statement) -> Result<()> {
        self.session.lock().run(statement).map(|_| ())
    }

    /// Where the connection stands.
    #[must_use]
    pub fn status(&self) -> TransactionStatus {
        self.session.lock().status()
    }

    /// Whether a conflict has ended the open transaction.
    pub(super) fn has_conflict(&self) -> bool {
        self.session.lock().has_conflict()
    }

    /// Waits, unless it is interrupted. No statement runs meanwhile, so `statement_timeout` does not count.
    pub(super) fn wait(&self, delay: Duration) -> Result<()> {
        let cancel = self.session.lock().cancel_of_wait();
        let end = Instant::now() + delay;
        loop {
            cancel.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_AGAIN));
        }
    }

    /// How many statements of this connection ran without being planned (those on a whole key, mostly), errors
    /// included: whether a statement takes this way shows in the difference.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE city (id SERIAL PRIMARY KEY, name TEXT)")?;
    /// let before = connection.short_statements();
    /// connection.query_row("INSERT INTO city (name) VALUES ('Ulm') RETURNING id", ())?;
    /// assert_eq!(connection.short_statements() - before, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn short_statements(&self) -> u64 {
        self.session.lock().short_statements()
    }

    /// How many queries of this connection ran by an optimised plan that it keeps (the setting `plan_cache_mode`).
    #[must_use]
    pub fn kept_plan_runs(&self) -> u64 {
        self.session.lock().kept_runs()
    }

    /// How many tables those plans have read by looking up a short range of a key, instead of scanning them.
    #[must_use]
    pub fn kept_plan_key_reads(&self) -> u64 {
        self.session.lock().scans_by_key()
    }

    /// A handle that tells how far this connection's statements come with their files.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// A handle that cancels what this connection runs.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.interrupts.clone())
    }

    /// How often the connection was interrupted.
    pub(super) fn interrupt_count(&self) -> u64 {
        self.interrupts.count()
    }

    /// Runs `work`, whose statements are canceled by every interrupt behind the first `since` ones, also by those that
    /// came before they started.
    pub(super) fn counting_interrupts_from<T>(&self, since: u64, work: impl FnOnce(&Self) -> T) -> T {
        self.session.lock().count_interrupts_from(Some(since));
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.session.lock().count_interrupts_from(None);
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `work` on a thread of the database that may block.
    pub(super) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        self.shared.runtime.spawn_blocking(work)
    }

    /// Runs `work` on the threads of the database.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.shared.runtime.spawn(work)
    }

    pub(super) fn append(&self, table: &TableSchema, named: &[String], batches: &[RecordBatch]) -> Result<u64> {
        let name = TableName { schema: Some(table.namespace.clone()), name: table.name.clone() };
        self.session.lock().append(&name, named, batches)
    }

    pub(super) fn rollback(&self) {
        // Rolling back what has ended already leaves nothing to do.
        let _ = self.session.lock().rollback();
    }

    /// The definition of table `table`, as the next statement would see it: `name`, which the search path finds, or
    /// `schema.name`; as SQL folds it, lower case unless it was quoted.
    ///
    /// # Errors
    /// 42P01.
    pub fn table(&self, table: &str) -> Result<Arc<TableSchema>> {
        let session = self.session.lock();
        match (session.table(&TableName::bare(table)), table.split_once('.')) {
            (Err(e), Some((schema, name))) if e.kind() == ErrorKind::NotFound => {
                session.table(&TableName { schema: Some(schema.into()), name: name.into() })
            }
            (found, _) => found,
        }
    }
}
