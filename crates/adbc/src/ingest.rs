//! Rows that are bound, into a table: bulk ingestion.
//!
//! The stream is a table of the program for one statement: `INSERT INTO ... SELECT`, or `CREATE TABLE ... AS SELECT`.
//! So values are checked and converted as in any query, and all of the rows go in or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adbc_core::error::{Result, Status};
use adbc_core::options::{IngestMode, OptionStatement, OptionValue};
use mainstem::arrow::array::{RecordBatch, RecordBatchReader};
use mainstem::arrow::datatypes::SchemaRef;
use mainstem::{Connection, Error, ErrorKind, ExternalBatches, ExternalTable};
use parking_lot::{Condvar, Mutex};

use crate::errors::{adbc, misuse};
use crate::options;
use crate::results::Reader;
use crate::session::{CATALOG, Session, quoted};

/// The table that rows go into, and how.
#[derive(Debug, Default)]
pub(crate) struct Ingest {
    table: Option<String>,
    schema: Option<String>,
    catalog: Option<String>,
    mode: Option<IngestMode>,
    is_temporary: bool,
}

impl Ingest {
    /// Whether there is a table to fill.
    pub(crate) fn is_wanted(&self) -> bool {
        self.table.is_some()
    }

    /// Sets an option of ingestion.
    pub(crate) fn set(&mut self, key: &OptionStatement, value: OptionValue) -> Result<()> {
        let name = key.as_ref();
        // An empty text takes the option back.
        let named = |value| -> Result<_> { Ok(Some(options::text(name, value)?).filter(|text| !text.is_empty())) };
        match key {
            OptionStatement::TargetTable => self.table = named(value)?,
            OptionStatement::TargetDbSchema => self.schema = named(value)?,
            OptionStatement::TargetCatalog => self.catalog = named(value)?,
            OptionStatement::IngestMode => self.mode = Some(options::text(name, value)?.parse()?),
            OptionStatement::Temporary => self.is_temporary = options::truth(name, value)?,
            _ => return Err(options::unknown(name)),
        }
        Ok(())
    }

    /// What an option of ingestion is.
    pub(crate) fn get(&self, key: &OptionStatement) -> Option<String> {
        match key {
            OptionStatement::TargetTable => self.table.clone(),
            OptionStatement::TargetDbSchema => self.schema.clone(),
            OptionStatement::TargetCatalog => self.catalog.clone(),
            OptionStatement::IngestMode => self.mode.map(Into::into),
            OptionStatement::Temporary => Some(options::shown(self.is_temporary)),
            _ => None,
        }
    }

    /// The table's name as SQL has it, and whether there is such a table, if it is a temporary one. A name alone means
    /// a temporary table before any other.
    fn target(&self, connection: &Connection) -> Result<(String, Option<bool>)> {
        let name = self.table.as_deref().unwrap_or_default();
        let table = quoted(name);
        if self.catalog.as_deref().is_some_and(|catalog| catalog != CATALOG) {
            let message = format!("there is no catalog {}", self.catalog.as_deref().unwrap_or_default());
            return Err(misuse(Status::NotFound, message));
        }
        if self.is_temporary && (self.schema.is_some() || self.catalog.is_some()) {
            return Err(misuse(Status::InvalidState, "a temporary table stands in no schema that can be named"));
        }
        match &self.schema {
            Some(schema) => Ok((format!("{}.{table}", quoted(schema)), None)),
            None => {
                let sql = "SELECT current_schema(), EXISTS (SELECT 1 FROM information_schema.tables \
                           WHERE table_name = $1 AND table_type = 'LOCAL TEMPORARY')";
                let row = connection.query_row(sql, [name]).map_err(|error| adbc(&error))?;
                let schema = row.get::<String>(0).map_err(|error| adbc(&error))?;
                let is_there = row.get::<bool>(1).map_err(|error| adbc(&error))?;
                // What is made stands in the current schema, and so does what it replaces.
                let is_made =
                    matches!(self.mode.unwrap_or(IngestMode::Create), IngestMode::Create | IngestMode::Replace);
                Ok(match (self.is_temporary, is_there || is_made) {
                    (true, _) => (table, Some(is_there)),
                    (false, true) => (format!("{}.{table}", quoted(&schema)), None),
                    (false, false) => (table, None),
                })
            }
        }
    }

    /// Puts the rows of `bound` into the table; how many there were.
    pub(crate) fn run(&self, session: &Session, bound: Option<Reader>) -> Result<u64> {
        let Some(bound) = bound else {
            return Err(misuse(Status::InvalidState, "no rows are bound for the table"));
        };
        session.begin_implicitly("INSERT")?;
        let (target, is_there) = self.target(&session.connection)?;
        let source = Source::register(&session.connection, bound)?;
        self.write(&session.connection, &target, is_there, &source).map_err(|error| adbc(&error))
    }

    /// Writes the rows of `source`. `is_there` tells it of a temporary table.
    fn write(
        &self,
        connection: &Connection,
        target: &str,
        is_there: Option<bool>,
        source: &Source<'_>,
    ) -> mainstem::Result<u64> {
        let create = || {
            let temporary = if self.is_temporary { "TEMPORARY " } else { "" };
            connection.execute(&format!("CREATE {temporary}TABLE {target} AS SELECT * FROM {}", quoted(&source.name)))
        };
        let append = || {
            if is_there == Some(false) {
                return Err(Error::new(ErrorKind::NotFound, "42P01", format!("there is no temporary table {target}")));
            }
            let columns = source.columns();
            let from = quoted(&source.name);
            connection.execute(&format!("INSERT INTO {target} ({columns}) SELECT {columns} FROM {from}"))
        };
        match self.mode.unwrap_or(IngestMode::Create) {
            IngestMode::Create => create(),
            IngestMode::Append => append(),
            IngestMode::Replace => {
                let scope = connection.scope()?;
                if is_there != Some(false) {
                    connection.execute(&format!("DROP TABLE IF EXISTS {target}"))?;
                }
                let rows = create()?;
                scope.end()?;
                Ok(rows)
            }
            IngestMode::CreateAppend if is_there == Some(false) => create(),
            IngestMode::CreateAppend => match connection.prepare(&format!("SELECT 1 FROM {target}")) {
                Ok(_) => append(),
                Err(error) if error.sqlstate() == "42P01" => create(),
                Err(error) => Err(error),
            },
        }
    }
}

/// A stream as a table of the program, as long as this lives.
struct Source<'c> {
    connection: &'c Connection,
    name: String,
    schema: SchemaRef,
    lent: Arc<Lent>,
}

/// Whether a thread of the engine has the stream.
#[derive(Default)]
struct Lent {
    is_lent: Mutex<bool>,
    returned: Condvar,
}

impl<'c> Source<'c> {
    fn register(connection: &'c Connection, bound: Reader) -> Result<Self> {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        let schema = bound.schema();
        let name = format!("rows bound {}", NAMES.fetch_add(1, Ordering::Relaxed));
        let lent = Arc::<Lent>::default();
        let stream = Stream { schema: schema.clone(), batches: Mutex::new(Some(bound)), lent: lent.clone() };
        connection.register(&name, Arc::new(stream)).map_err(|error| adbc(&error))?;
        Ok(Self { connection, name, schema, lent })
    }

    /// Its columns as a list of SQL.
    fn columns(&self) -> String {
        let names: Vec<_> = self.schema.fields().iter().map(|field| quoted(field.name())).collect();
        names.join(", ")
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        self.connection.unregister(&self.name);
        // A thread may be in the middle of a batch still after the statement has failed; the stream is the program's.
        let mut is_lent = self.lent.is_lent.lock();
        while *is_lent {
            self.lent.returned.wait(&mut is_lent);
        }
    }
}

/// The stream, while the engine has it.
struct Batches {
    batches: Option<Reader>,
    columns: Vec<usize>,
    lent: Arc<Lent>,
}

impl Iterator for Batches {
    type Item = mainstem::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.as_mut()?.next()?.and_then(|batch| batch.project(&self.columns));
        Some(batch.map_err(|error| {
            Error::new(ErrorKind::Invalid, "38000", format!("the stream that is bound has failed: {error}"))
        }))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        drop(self.batches.take());
        *self.lent.is_lent.lock() = false;
        self.lent.returned.notify_all();
    }
}

/// A stream that is read once.
struct Stream {
    schema: SchemaRef,
    batches: Mutex<Option<Reader>>,
    lent: Arc<Lent>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl ExternalTable for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn scan(&self, columns: &[usize]) -> mainstem::Result<ExternalBatches> {
        let Some(batches) = self.batches.lock().take() else {
            return Err(Error::new(ErrorKind::Invalid, "55000", "the stream that is bound was read already"));
        };
        *self.lent.is_lent.lock() = true;
        Ok(Box::new(Batches { batches: Some(batches), columns: columns.to_vec(), lent: self.lent.clone() }))
    }
}
