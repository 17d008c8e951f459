//! Prepared statements.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};
use parking_lot::Mutex;

use super::{Connection, QueryResult, Row, Rows, StatementOutcome};
use crate::point_path::Answer;
use crate::session::{InsertOfParameters, Prepared, Runs, ShortOutcome};
use crate::sql::{self, Template};
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
        let statement = self.prepare_kept(sql)?;
        statement.check()?;
        Ok(statement)
    }

    /// The statement `sql`, which is prepared if its text was not seen lately, and else shows what is wrong with it
    /// when it runs: for who has texts in hand, and not statements.
    ///
    /// # Errors
    /// As [`Connection::prepare`].
    pub fn prepare_kept(&self, sql: &str) -> Result<Statement<'_>> {
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
        self.prepare_kept(sql)?.execute(params)
    }

    /// Runs one statement with values for its parameters, whatever it is: see [`Statement::run`].
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::run`].
    pub fn run_with(&self, sql: &str, params: impl Params) -> Result<StatementOutcome> {
        self.prepare_kept(sql)?.run(params)
    }

    /// What a short statement gave; `None` if it has to be planned.
    fn outcome_of(&self, short: ShortOutcome) -> Option<StatementOutcome> {
        let ShortOutcome { answer, columns, schema, tag } = short;
        let (written, rows) = match answer {
            Answer::NotShort => return None,
            Answer::Row(row) => (None, row.into_iter().collect()),
            Answer::Rows(rows) => (None, rows),
            Answer::Written { rows, returned } => (Some(rows), returned),
        };
        let result = |schema| QueryResult::of_values(schema, columns, rows, self.shared.clone());
        Some(StatementOutcome {
            tag: written.map_or_else(|| tag.to_owned(), |rows| format!("{tag} {rows}")),
            rows_affected: written,
            rows: schema.map(result),
            notices: Vec::new(),
        })
    }

    /// Runs one statement with values for its parameters and gives its rows.
    ///
    /// # Errors
    /// As [`Connection::prepare`] and [`Statement::query`].
    pub fn query_with(&self, sql: &str, params: impl Params) -> Result<Rows> {
        self.prepare_kept(sql)?.query(params)
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
        self.prepare_kept(sql)?.query_row(params)
    }
}

/// A [`Statement`] that owns its connection: for a program that keeps both in one value, or hands it to other threads.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = std::sync::Arc::new(mainstem::Database::in_memory()?.connect()?);
/// let double = connection.prepare_owned("SELECT $1 * 2")?;
/// drop(connection);
/// let running = std::thread::spawn(move || double.statement().query_row([21])?.get::<i64>(0));
/// assert_eq!(running.join().unwrap()?, 42);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OwnedStatement {
    connection: Arc<Connection>,
    prepared: Arc<Mutex<Prepared>>,
}

impl OwnedStatement {
    /// The statement, to be run.
    #[must_use]
    pub fn statement(&self) -> Statement<'_> {
        self.connection.statement(&self.prepared)
    }

    /// Its connection.
    #[must_use]
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Connection {
    /// As [`Connection::prepare`], with a statement that owns the connection.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_owned(self: &Arc<Self>, sql: &str) -> Result<OwnedStatement> {
        let prepared = self.prepare(sql)?.prepared.clone();
        Ok(OwnedStatement { connection: self.clone(), prepared })
    }

    /// As [`Connection::prepare_kept`], with a statement that owns the connection.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_kept_owned(self: &Arc<Self>, sql: &str) -> Result<OwnedStatement> {
        Ok(OwnedStatement { connection: self.clone(), prepared: self.kept_or_prepared(sql)? })
    }

    /// As [`Connection::prepare`], where the first parameters have the types `types`, whatever their context: a value
    /// is converted to its parameter's type as INSERT converts it to a column's. As `PREPARE name (types)` in SQL.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// use mainstem::DataType;
    ///
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let statement = connection.prepare_with_types("SELECT $1 AS day", &[DataType::Date])?;
    /// assert_eq!(statement.columns()?[0].data_type(), DataType::Date);
    /// assert_eq!(statement.query_row(["2026-11-28"])?.get::<mainstem::Date>(0)?.to_string(), "2026-11-28");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn prepare_with_types(&self, sql: &str, types: &[DataType]) -> Result<Statement<'_>> {
        let prepared = self.prepare_declared(Arc::new(sql::parse_template(sql)?), types)?;
        Ok(Statement::new(self, Arc::new(Mutex::new(prepared))))
    }
}

impl Connection {
    /// `statement` of this connection, where the first parameters have the types `types`: see
    /// [`Connection::prepare_with_types`].
    ///
    /// # Errors
    /// As there.
    pub fn retype_owned(self: &Arc<Self>, statement: &OwnedStatement, types: &[DataType]) -> Result<OwnedStatement> {
        let template = statement.prepared.lock().template().clone();
        let prepared = self.prepare_declared(template, types)?;
        Ok(OwnedStatement { connection: self.clone(), prepared: Arc::new(Mutex::new(prepared)) })
    }

    fn prepare_declared(&self, template: Arc<Template>, types: &[DataType]) -> Result<Prepared> {
        let prepared = self.session.lock().prepare_declared(template.clone(), types.to_vec());
        prepared.map_err(|e| template.with_position(e))
    }
}

impl<'a> Statement<'a> {
    fn new(connection: &'a Connection, prepared: Arc<Mutex<Prepared>>) -> Self {
        let names = prepared.lock().names().clone();
        Self { connection, prepared, names }
    }

    /// Calls `work` with the values of `params` in the order of the parameters.
    pub(super) fn with_values<R>(
        &self,
        params: &impl Params,
        work: impl FnOnce(&[ValueRef<'_>]) -> Result<R>,
    ) -> Result<R> {
        with_bound(params, self.names.iter().map(|name| &**name), work)
    }

    /// What is wrong with it under the schema as it is now, whatever its values.
    fn check(&self) -> Result<()> {
        self.describe().map(|_| ())
    }

    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// Which columns its parameters are stored into, if it is an INSERT that does nothing else.
    pub(super) fn insert_of_parameters(&self) -> Result<Option<InsertOfParameters>> {
        self.connection.session.lock().insert_of_parameters(&mut self.prepared.lock())
    }

    fn run_planned(&self, values: &[ValueRef<'_>]) -> Result<StatementOutcome> {
        self.connection.run_prepared(&mut self.prepared.lock(), values)
    }

    /// Runs it without a plan, if it is a short statement and one of those that `runs` says.
    fn run_short(&self, values: &[ValueRef<'_>], runs: Runs) -> Result<Option<ShortOutcome>> {
        self.connection.run_short(&mut self.prepared.lock(), values, runs)
    }

    /// Runs it if it is short: if no plan has to be made for it, as for one on a whole key. `None` if it is not; then
    /// nothing has happened. Who has to look after other things while a statement runs can do without for these.
    ///
    /// # Errors
    /// As [`Statement::execute`].
    pub fn run_if_short(&self, params: impl Params) -> Result<Option<StatementOutcome>> {
        self.with_values(&params, |values: &[ValueRef<'_>]| {
            Ok(self.run_short(values, Runs::All)?.and_then(|short| self.connection.outcome_of(short)))
        })
    }

    /// Runs it, whatever it is.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")?;
    /// let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)")?;
    /// let outcome = insert.run((1, "one"))?;
    /// assert_eq!((&*outcome.tag, outcome.rows_affected), ("INSERT 0 1", Some(1)));
    /// let outcome = connection.run_with("SELECT v FROM t WHERE k = $1", [1])?;
    /// assert_eq!(outcome.rows.unwrap().rows().next().unwrap()?.get::<&str>(0)?, "one");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Statement::execute`].
    pub fn run(&self, params: impl Params) -> Result<StatementOutcome> {
        self.with_values(&params, |values: &[ValueRef<'_>]| {
            match self.run_short(values, Runs::All)?.and_then(|short| self.connection.outcome_of(short)) {
                Some(outcome) => Ok(outcome),
                None => self.run_planned(values),
            }
        })
    }

    /// Runs it; returns how many rows it wrote. Rows that it gives are read and forgotten.
    ///
    /// # Errors
    /// Those of the statement; 08P01 when the number of values is not that of the parameters, or a name has none; 42P02
    /// for a name that no parameter has; 42804, 22P02 and 22003 for a value that its parameter does not take.
    pub fn execute(&self, params: impl Params) -> Result<u64> {
        self.with_values(&params, |values: &[ValueRef<'_>]| match self.run_short(values, Runs::Writes)? {
            Some(ShortOutcome { answer: Answer::Written { rows, .. }, .. }) => Ok(rows),
            _ => self.run_planned(values)?.finish(),
        })
    }

    /// Runs it and gives its rows.
    ///
    /// # Errors
    /// As [`Statement::execute`]; 42601 when the statement gives no rows, it has not run then.
    pub fn query(&self, params: impl Params) -> Result<Rows> {
        self.with_values(&params, |values: &[ValueRef<'_>]| match self.run_short(values, Runs::Queries)? {
            Some(ShortOutcome { answer: Answer::Row(row), columns, .. }) => Ok(Rows::found(columns, row)),
            Some(ShortOutcome {
                answer: Answer::Rows(rows) | Answer::Written { returned: rows, .. }, columns, ..
            }) => Ok(Rows::of_values(columns, rows)),
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
        self.run_planned(values)?.into_rows()
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

    /// Whether it is an INSERT, UPDATE or DELETE.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.prepared.lock().writes()
    }

    /// The schema of the batches it gives, which it does not run for; none for statements without rows.
    ///
    /// # Errors
    /// As [`Statement::parameter_types`].
    pub fn schema(&self) -> Result<Option<SchemaRef>> {
        Ok(self.describe()?.columns.clone())
    }

    fn describe(&self) -> Result<Arc<crate::plan::Description>> {
        self.connection.describe(&mut self.prepared.lock())
    }
}
