//! Statements.
//!
//! Comes in: a text, or a table to fill; rows that are bound. Goes out: a stream, or how many rows were written.
//!
//! 1. A text without rows bound runs as it is: one statement or several, of which the last one's rows are given.
//! 2. With rows bound it runs once for each of them. A query gives the rows of all runs, one after the other, as they
//!    are read; a write is all or none.
//! 3. A table that is set takes the rows bound (`ingest`).
//!
//! Rows that are bound are used once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adbc_core::error::{Result, Status};
use adbc_core::options::{OptionStatement, OptionValue};
use adbc_core::{Optionable, PartitionedResult, Statement};
use mainstem::arrow::array::{RecordBatch, RecordBatchIterator};
use mainstem::arrow::datatypes::{DataType, Field, Schema};
use mainstem::{OwnedStatement, StatementOutcome, number_placeholders};
use parking_lot::Mutex;

use crate::bound::{BoundRows, Repeated};
use crate::errors::{adbc, misuse};
use crate::ingest::Ingest;
use crate::options::{self, VIEWS};
use crate::results::{Reader, Ready, Results, shown};
use crate::session::Session;

/// Set by driver managers for values that have names.
const BIND_BY_NAME: &str = "adbc.statement.bind_by_name";

/// A statement of a connection.
#[derive(Debug)]
pub struct MainstemStatement {
    session: Arc<Session>,
    keeps_views: AtomicBool,
    /// Whether bound values go by name, if the program has said so.
    binds_by_name: Option<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    text: Option<String>,
    prepared: Option<OwnedStatement>,
    ingest: Ingest,
    bound: Option<Reader>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("text", &self.text).field("ingest", &self.ingest).finish_non_exhaustive()
    }
}

impl State {
    fn text(&self) -> Result<&str> {
        self.text.as_deref().ok_or_else(|| misuse(Status::InvalidState, "the statement has no text yet"))
    }
}

impl MainstemStatement {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let keeps_views = AtomicBool::new(session.keeps_views.load(Ordering::Relaxed));
        Self { session, keeps_views, binds_by_name: None, state: Mutex::default() }
    }

    fn keeps_views(&self) -> bool {
        self.keeps_views.load(Ordering::Relaxed)
    }

    /// The statement of the text, prepared.
    fn prepared(&self, state: &State) -> Result<OwnedStatement> {
        if let Some(prepared) = &state.prepared {
            return Ok(prepared.clone());
        }
        let text = state.text()?;
        self.session.connection.prepare_owned(&number_placeholders(text)).map_err(|error| adbc(&error))
    }

    /// Runs the text without values; what the last of its statements gave.
    fn run(&self, state: &State) -> Result<Option<StatementOutcome>> {
        let text = state.text()?;
        if let Some(prepared) = &state.prepared {
            self.session.begin_implicitly(text)?;
            return prepared.statement().run(()).map(Some).map_err(|error| adbc(&error));
        }
        let run_all = || self.session.connection.run(text)?.run_to_last(text, self.session.autocommit());
        run_all().map_err(|error: mainstem::Error| {
            let mut told = adbc(&error);
            let has_marks = || number_placeholders(text) != text;
            if error.sqlstate() == "42P02" || (error.sqlstate() == "42601" && has_marks()) {
                told.status = Status::InvalidState;
                told.message.push_str("; its parameters have no values bound");
            }
            told
        })
    }

    /// Runs the text for each of `rows`, all or none; how many rows were written, and what RETURNING gives.
    fn run_many(&self, state: &State, rows: Reader) -> Result<(u64, Vec<RecordBatch>)> {
        let text = state.text()?;
        self.session.begin_implicitly(text)?;
        let prepared = self.prepared(state)?;
        BoundRows::new(rows, self.binds_by_name).write(&self.session, &prepared.statement(), self.keeps_views())
    }
}

impl Optionable for MainstemStatement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: Self::Option, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        match key {
            OptionStatement::IngestMode
            | OptionStatement::TargetTable
            | OptionStatement::TargetCatalog
            | OptionStatement::TargetDbSchema
            | OptionStatement::Temporary => self.state.get_mut().ingest.set(&key, value),
            _ if name == BIND_BY_NAME => {
                self.binds_by_name = Some(options::truth(&name, value)?);
                Ok(())
            }
            OptionStatement::Incremental if !options::truth(&name, value.clone())? => Ok(()),
            _ if name == VIEWS => {
                self.keeps_views.store(options::truth(&name, value)?, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(options::unknown(&name)),
        }
    }

    fn get_option_string(&self, key: Self::Option) -> Result<String> {
        let name = key.as_ref();
        match &key {
            OptionStatement::Incremental => Ok(options::shown(false)),
            _ if name == VIEWS => Ok(options::shown(self.keeps_views())),
            _ => self.state.lock().ingest.get(&key).ok_or_else(|| options::not_found(name)),
        }
    }

    /// Progress is in bytes of the files that the statement reads.
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    fn get_option_double(&self, key: Self::Option) -> Result<f64> {
        let progress = self.session.connection.progress();
        match key {
            OptionStatement::Progress => Ok(progress.bytes() as f64),
            OptionStatement::MaxProgress => Ok(progress.bytes_total() as f64),
            _ => Err(options::not_found(key.as_ref())),
        }
    }

    options::no_other_types!();
}

impl Statement for MainstemStatement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        let schema = batch.schema();
        self.bind_stream(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }

    fn bind_stream(&mut self, reader: Reader) -> Result<()> {
        self.state.get_mut().bound = Some(self.session.asked(reader));
        Ok(())
    }

    fn execute(&mut self) -> Result<Reader> {
        let _turn = self.session.turn()?;
        let mut state = self.state.lock();
        let bound = state.bound.take();
        if state.ingest.is_wanted() {
            state.ingest.run(&self.session, bound)?;
            return Ok(Box::new(Ready::nothing()));
        }
        let Some(bound) = bound else {
            let rows = self.run(&state)?.and_then(|outcome| outcome.rows);
            return Ok(match rows {
                Some(rows) => Box::new(Results::new(rows, self.keeps_views()).map_err(|error| adbc(&error))?),
                None => Box::new(Ready::nothing()),
            });
        };
        let prepared = self.prepared(&state)?;
        let schema = prepared.statement().schema().map_err(|error| adbc(&error))?;
        if schema.is_none() || prepared.statement().writes() {
            let (_, returned) = self.run_many(&state, bound)?;
            let given = returned.first().map(RecordBatch::schema);
            let schema = given.or_else(|| Some(shown(&schema?, self.keeps_views())));
            return Ok(Box::new(schema.map_or_else(Ready::nothing, |schema| Ready::new(schema, returned))));
        }
        self.session.begin_implicitly(state.text()?)?;
        let rows = BoundRows::new(bound, self.binds_by_name);
        Ok(Box::new(Repeated::new(&self.session, prepared, rows, self.keeps_views())?))
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        let _turn = self.session.turn()?;
        let mut state = self.state.lock();
        let bound = state.bound.take();
        if state.ingest.is_wanted() {
            return Ok(i64::try_from(state.ingest.run(&self.session, bound)?).ok());
        }
        if let Some(bound) = bound {
            return Ok(i64::try_from(self.run_many(&state, bound)?.0).ok());
        }
        let Some(outcome) = self.run(&state)? else { return Ok(None) };
        if let Some(rows) = outcome.rows {
            rows.count_rows().map_err(|error| adbc(&error))?;
        }
        Ok(outcome.rows_affected.and_then(|rows| i64::try_from(rows).ok()))
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        let _turn = self.session.turn()?;
        let prepared = self.prepared(&self.state.lock())?;
        let schema = prepared.statement().schema().map_err(|error| adbc(&error))?;
        Ok(schema.map_or_else(Schema::empty, |schema| Schema::clone(&shown(&schema, self.keeps_views()))))
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        Err(misuse(Status::NotImplemented, "results have no partitions"))
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        let state = self.state.lock();
        let Some(prepared) = &state.prepared else {
            return Err(misuse(Status::InvalidState, "the statement is not prepared"));
        };
        let statement = prepared.statement();
        let types = statement.parameter_types().map_err(|error| adbc(&error))?;
        let names = statement.parameter_names();
        let field = |(at, data_type): (usize, &Option<mainstem::DataType>)| {
            let name = names.get(at).map_or("", |name| &**name);
            Field::new(name, data_type.map_or(DataType::Null, mainstem::DataType::arrow), true)
        };
        let schema = Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>());
        Ok(Schema::clone(&shown(&Arc::new(schema), self.keeps_views())))
    }

    fn prepare(&mut self) -> Result<()> {
        let turn = self.session.turn()?;
        let prepared = self.prepared(&self.state.lock())?;
        drop(turn);
        self.state.get_mut().prepared = Some(prepared);
        Ok(())
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        *self.state.get_mut() = State { text: Some(query.as_ref().to_owned()), ..State::default() };
        Ok(())
    }

    fn set_substrait_plan(&mut self, _: impl AsRef<[u8]>) -> Result<()> {
        Err(misuse(Status::NotImplemented, "plans of Substrait are not run"))
    }

    /// Ends what the connection runs, and its results that are still read.
    fn cancel(&mut self) -> Result<()> {
        self.session.interrupt();
        Ok(())
    }
}
