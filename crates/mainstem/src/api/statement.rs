//! Prepared statements.

use std::sync::Arc;

use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::{Connection, QueryResult, Row, Rows, StatementOutcome};
use crate::point_path::Answer;
use crate::session::{Prepared, ShortOutcome};
use crate::value::{Params, ResultColumn, ValueRef, with_bound};

/// A statement that was parsed once and is run with values for its parameters `$1`, `$2`, ... any number of times. When
/// a table it names was changed in between, it goes by the new definition.
///
/// Parameters may have names instead, `:name`, which stand for one value wherever they stand. Values are given by name
/// (`[("name", value)]`, [`named_params!`](crate::named_params)), or in the order in which the names first appear.
/// Upper and lower case differ. Numbers and names in one statement are refused (42601).
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// connection.execute_batch("CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER)")?;
/// let insert = connection.prepare("INSERT INTO city VALUES ($1, $2)")?;
/// insert.execute(("Ulm", 128_928))?;
/// insert.execute(("Jena", None::<i32>))?;
/// let select = connection.prepare("SELECT people FROM city WHERE name = $1")?;
/// assert_eq!(select.query_row(["Ulm"])?.get::<i32>(0)?, 128_928);
/// assert_eq!(select.query_row(["Jena"])?.get::<Option<i32>>("people")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Statement<'a> {
    connection: &'a Connection,
    prepared: Arc<Mutex<Prepared>>,
    /// Of its parameters, if they have names.
    names: Arc<[Box<str>]>,
}

impl Connection {
    /// Prepares one statement, which may have parameters `$1`, `$2`, ...: see [`Statement`].
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")?;
    /// let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)")?;
    /// for k in 0..3 {
    ///     insert.execute((k, format!("row {k}")))?;
    /// }
    /// let by_key = connection.prepare("SELECT v FROM t WHERE k = $1")?;
    /// assert_eq!(by_key.query_row([2])?.get::<&str>("v")?, "row 2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Whatever is wrong with the statement apart from values: 42601, 42P01, 42703 and so on.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let statement = self.one_shot(sql)?;
        statement.check()?;
        Ok(statement)
    }

    fn one_shot(&self, sql: &str) -> Result<Statement<'_>> {
        Ok(Statement::new(self, self.kept_or_prepared(sql)?))
    }

    /// A statement that was prepared on this connection.
    pub(super) fn statement(&self, prepared: &Arc<Mutex<Prepared>>) -> Statement<'_> {
        Statement::new(self, prepared.clone())
    }

    /// Runs one statement with values for its parameters; returns how many rows it wrote. A statement that is run often
    /// is better prepared once.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")?;
    /// assert_eq!(connection.execute_with("INSERT INTO t VALUES ($1, $2), ($3, $2)", (1, "new", 2))?, 2);
    /// assert_eq!(connection.execute_with("DELETE FROM t WHERE k = $1", [1])?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::execute`].
    pub fn execute_with(&self, sql: &str, params: impl Params) -> Result<u64> {
        self.one_shot(sql)?.execute(params)
    }

    /// Runs one statement with values for its parameters and gives its rows.
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::query`].
    pub fn query_with(&self, sql: &str, params: impl Params) -> Result<Rows> {
        self.one_shot(sql)?.query(params)
    }

    /// Runs one statement with values for its parameters and gives its only row.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let row = connection.query_row("SELECT $1 * 2 AS twice", [21])?;
    /// assert_eq!(row.get::<i64>("twice")?, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::query_row`].
    pub fn query_row(&self, sql: &str, params: impl Params) -> Result<Row> {
        self.one_shot(sql)?.query_row(params)
    }
}

impl<'a> Statement<'a> {
    fn new(connection: &'a Connection, prepared: Arc<Mutex<Prepared>>) -> Self {
        let names = prepared.lock().names().clone();
        Self { connection, prepared, names }
    }

    /// Calls `work` with the values of `params` in the order of the parameters.
    fn with_values<R>(&self, params: &impl Params, work: impl FnOnce(&[ValueRef<'_>]) -> Result<R>) -> Result<R> {
        with_bound(params, self.names.iter().map(|name| &**name), work)
    }

    /// What is wrong with it under the schema as it is now, whatever its values.
    fn check(&self) -> Result<()> {
        self.describe().map(|_| ())
    }

    fn run(&self, values: &[ValueRef<'_>]) -> Result<StatementOutcome> {
        self.connection.run_prepared(&mut self.prepared.lock(), values)
    }

    /// Runs it without a plan, if it is a short statement that gives rows or none, as wanted.
    fn run_short(&self, values: &[ValueRef<'_>], gives_rows: bool) -> Result<Option<ShortOutcome>> {
        self.connection.run_short(&mut self.prepared.lock(), values, gives_rows)
    }

    /// Runs it; returns how many rows it wrote. Rows that it gives are read and forgotten.
    ///
    /// # Errors
    /// Those of the statement; 08P01 when the number of values is not that of the parameters, or a name has none; 42P02
    /// for a name that no parameter has; 42804, 22P02 and 22003 for a value that its parameter does not take.
    pub fn execute(&self, params: impl Params) -> Result<u64> {
        self.with_values(&params, |values: &[ValueRef<'_>]| match self.run_short(values, false)? {
            Some(ShortOutcome { answer: Answer::Written { rows, .. }, .. }) => Ok(rows),
            _ => self.run(values)?.finish(),
        })
    }

    /// Runs it and gives its rows.
    ///
    /// # Errors
    /// As [`Statement::execute`]; 42601 when the statement gives no rows, it has not run then.
    pub fn query(&self, params: impl Params) -> Result<Rows> {
        self.with_values(&params, |values: &[ValueRef<'_>]| match self.run_short(values, true)? {
            Some(ShortOutcome { answer: Answer::Row(row), columns }) => Ok(Rows::found(columns, row)),
            Some(ShortOutcome { answer: Answer::Rows(rows) | Answer::Written { returned: rows, .. }, columns }) => {
                Ok(Rows::returned(columns, rows))
            }
            _ => self.plan_batches(values).map(QueryResult::rows),
        })
    }

    /// Runs it and gives its rows as Arrow batches.
    ///
    /// # Errors
    /// As [`Statement::query`].
    pub fn query_batches(&self, params: impl Params) -> Result<QueryResult> {
        self.with_values(&params, |values: &[ValueRef<'_>]| self.plan_batches(values))
    }

    fn plan_batches(&self, values: &[ValueRef<'_>]) -> Result<QueryResult> {
        if !self.connection.gives_rows(&self.prepared.lock()) {
            return Err(Error::invalid(sqlstate::SYNTAX, "the statement gives no rows; use execute"));
        }
        self.run(values)?.into_rows()
    }

    /// Runs it and gives its only row.
    ///
    /// # Errors
    /// As [`Statement::query`]; NotFound (02000) when there is no row, 21000 when there is more than one.
    pub fn query_row(&self, params: impl Params) -> Result<Row> {
        self.query(params)?.exactly_one()
    }

    /// Runs it and gives its row, if there is one.
    ///
    /// # Errors
    /// As [`Statement::query`]; 21000 when there is more than one row.
    pub fn query_optional(&self, params: impl Params) -> Result<Option<Row>> {
        self.query(params)?.at_most_one()
    }

    /// How many values it takes: the highest number of a parameter, or how many names there are.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.prepared.lock().parameters()
    }

    /// The names of the parameters without their colons, in the order in which they first appear; none if they have
    /// numbers.
    #[must_use]
    pub fn parameter_names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The types that parameters have by their context. Values of other types are converted to it if that loses
    /// nothing. None where the context tells none: there the type of the value counts.
    ///
    /// # Errors
    /// Those of a table that was changed in between so that the statement is no longer right.
    pub fn parameter_types(&self) -> Result<Vec<Option<DataType>>> {
        Ok(self.describe()?.types.clone())
    }

    /// The columns of the rows it gives; none for statements without rows. Where a parameter decides, the types are
    /// those of TEXT parameters.
    ///
    /// # Errors
    /// As [`Statement::parameter_types`].
    pub fn columns(&self) -> Result<Arc<[ResultColumn]>> {
        Ok(self.describe()?.columns.as_deref().map_or_else(|| Arc::from([]), ResultColumn::of))
    }

    fn describe(&self) -> Result<Arc<crate::plan::Description>> {
        self.connection.describe(&mut self.prepared.lock())
    }
}
