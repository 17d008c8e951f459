//! Short statements in a session: when a statement runs without a plan (`crate::point_path`).
//!
//! 1. A prepared statement is compiled once for each version of the schema; most are not short, and it is remembered
//!    that they are not.
//! 2. A SELECT runs at the open transaction's snapshot, or at *visible*. A write runs in the open transaction, or in
//!    one of its own that begins at *applied*: keys that others are writing would be in its way at *visible*. Its
//!    answer is then held until *visible* has reached what it read (contract 2).
//!
//! Whatever a short statement has no answer for goes the way of all others.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::Query;
use mainstem_storage::catalog::Catalog;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;
use mainstem_storage::transaction::{Transaction, Waiting};
use mainstem_storage::{Error, Result};

use super::attempts::{Run, short_in_own_transaction};
use super::prepared::{Compiled, Prepared, schemas_of};
use super::{Current, Outcome, Session};
use crate::exec::{Environment, PlannedExpression, Rows};
use crate::plan::{self, Written};
use crate::point_path::{Answer, Planning, Short, Unplanned};
use crate::sql::Statement;
use crate::value::{ResultColumn, ValueRef};

/// What a short statement gave a caller.
#[derive(Debug)]
pub(crate) struct ShortOutcome {
    pub(crate) answer: Answer,
    /// Columns of the row.
    pub(crate) columns: Arc<[ResultColumn]>,
    /// The same as fields of a batch, if it gives rows.
    pub(crate) schema: Option<SchemaRef>,
    /// Its command tag, without the count of a write.
    pub(crate) tag: &'static str,
}

/// Which statements a caller has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Those that give rows.
    Queries,
    /// Those that write.
    Writes,
    /// Any.
    All,
}

impl Runs {
    /// Queries, if a caller takes `rows`, or else writes.
    pub(crate) fn giving(rows: bool) -> Self {
        if rows { Self::Queries } else { Self::Writes }
    }

    /// Asking a write for rows that it does not give must not run it.
    fn take(self, short: &Short) -> bool {
        match self {
            Self::Queries => short.gives_rows(),
            Self::Writes => short.writes(),
            Self::All => true,
        }
    }
}

impl Session {
    /// Runs `prepared` with `values` if it is short and one of those that `runs` says. `None` if it has to be planned:
    /// nothing has happened then.
    pub(crate) fn run_short(
        &mut self,
        prepared: &mut Prepared,
        values: &[ValueRef<'_>],
        runs: Runs,
    ) -> Result<Option<ShortOutcome>> {
        if !self.is_short() || !prepared.takes(values) {
            return Ok(None);
        }
        self.guarded(|session| {
            // Twice, for the schema may change between the two looks at it.
            for _ in 0..2 {
                if prepared.compiled.is_none() {
                    session.compile(prepared)?;
                }
                let Some(compiled) = prepared.compiled.clone() else { return Ok(None) };
                let Compiled { catalog, names, short, columns, schema } = &*compiled;
                if !Arc::ptr_eq(names, session.settings.names()) {
                    prepared.compiled = None;
                    continue;
                }
                let Some(short) = short else {
                    if session.is_current(catalog)? {
                        return Ok(None);
                    }
                    prepared.compiled = None;
                    continue;
                };
                if !runs.take(short) {
                    return Ok(None);
                }
                match session.ran(short, catalog, values)? {
                    Ran::Answer(Answer::NotShort) => return Ok(None),
                    Ran::Answer(answer) => {
                        prepared.count_run();
                        let (columns, schema) = (columns.clone(), schema.clone());
                        return Ok(Some(ShortOutcome { answer, columns, schema, tag: short.tag() }));
                    }
                    Ran::OldSchema => prepared.compiled = None,
                }
            }
            Ok(None)
        })
    }

    /// Runs a statement without parameters, if it is short.
    pub(super) fn run_short_once(&mut self, statement: &Statement) -> Result<Option<Outcome>> {
        if !self.is_short() {
            return Ok(None);
        }
        let Some(tables) = Short::tables_of(statement) else { return Ok(None) };
        let unplanned = Unplanned::default();
        let mut catalog = match &self.current {
            Current::Open { transaction, .. } => transaction.catalog(),
            _ => self.shared.storage.catalog(),
        };
        let Some(schemas) = schemas_of(self.settings.names(), &catalog, &tables) else { return Ok(None) };
        let mut short = Short::compile(statement, &schemas, &[], &unplanned);
        // Only where it helps: a planner needs a transaction, and time.
        if short.is_none() && unplanned.was_asked() && self.parameters.is_empty() {
            short = self.read(|env, transaction| {
                catalog = transaction.catalog();
                let Some(schemas) = schemas_of(env.settings.names(), &catalog, &tables) else { return Ok(None) };
                Ok(Short::compile(statement, &schemas, &[], &ByPlanner { env: RefCell::new(env), transaction }))
            })?;
        }
        let Some(short) = short else { return Ok(None) };
        match self.ran(&short, &catalog, &[])? {
            Ran::OldSchema => Ok(None),
            Ran::Answer(answer) => outcome_of(&short, answer),
        }
    }

    /// Runs `prepared`, a statement whose literals `values` are, if it is short. `None` if it is not: nothing has
    /// happened then.
    pub(crate) fn run_parameterized(
        &mut self,
        prepared: &mut Prepared,
        values: &[ValueRef<'_>],
    ) -> Result<Option<Outcome>> {
        let runs = Runs::giving(self.prepared_gives_rows(prepared));
        let Some(ShortOutcome { answer, .. }) = self.run_short(prepared, values, runs)? else { return Ok(None) };
        match prepared.compiled.as_ref().and_then(|compiled| compiled.short.as_ref()) {
            Some(short) => outcome_of(short, answer),
            None => Err(Error::internal("a short statement that is none any more")),
        }
    }

    /// Whether statements may be short at the moment.
    fn is_short(&self) -> bool {
        self.settings.point_path() && !matches!(self.current, Current::Failed)
    }

    fn is_current(&self, catalog: &Arc<Catalog>) -> Result<bool> {
        Ok(match &self.current {
            Current::Open { transaction, .. } => Arc::ptr_eq(&transaction.catalog(), catalog),
            _ => Arc::ptr_eq(&self.shared.storage.catalog(), catalog),
        })
    }

    fn compile(&mut self, prepared: &mut Prepared) -> Result<()> {
        // Planned in vain otherwise.
        if prepared.template().with_statement(|statement| Ok(Short::tables_of(statement)))?.is_none() {
            let (catalog, names) = self.read(|env, view| Ok((view.catalog(), env.settings.names().clone())))?;
            prepared.compiled =
                Some(Arc::new(Compiled { catalog, names, short: None, columns: Arc::from([]), schema: None }));
            return Ok(());
        }
        // A statement that is wrong by now says so when it is planned.
        let Ok(description) = self.description(prepared) else { return Ok(()) };
        let columns = description.columns.as_deref().map_or_else(|| Arc::from([]), ResultColumn::of);
        let compiled = self.read(|env, transaction| {
            let catalog = transaction.catalog();
            let names = env.settings.names().clone();
            let planner = ByPlanner { env: RefCell::new(env), transaction };
            let compile = |statement: &Statement| {
                let schemas = schemas_of(&names, &catalog, &Short::tables_of(statement)?)?;
                Short::compile(statement, &schemas, &description.types, &planner)
            };
            let short = prepared.template().with_statement(|statement| Ok(compile(statement)))?;
            let schema = short.as_ref().and_then(Short::rows_schema);
            Ok(Compiled { short: short.map(Arc::new), catalog, names, columns, schema })
        })?;
        prepared.compiled = Some(Arc::new(compiled));
        self.share(prepared);
        Ok(())
    }

    /// How many statements ran without a plan, those that ended in an error included.
    pub(crate) fn short_statements(&self) -> u64 {
        self.short_statements
    }

    fn ran(&mut self, short: &Short, catalog: &Arc<Catalog>, values: &[ValueRef<'_>]) -> Result<Ran> {
        // What a lock keeps others from ends with the transaction.
        let locks = short.locks() && matches!(self.current, Current::Open { .. });
        let ran = if short.writes() || locks {
            self.write_short(short, catalog, values)
        } else {
            self.read_short(short, catalog, values)
        };
        let is_planned = matches!(ran, Ok(Ran::OldSchema | Ran::Answer(Answer::NotShort)));
        self.short_statements += u64::from(!is_planned);
        ran
    }

    fn read_short(&mut self, short: &Short, catalog: &Arc<Catalog>, values: &[ValueRef<'_>]) -> Result<Ran> {
        if let Current::Open { transaction, .. } = &self.current {
            if !Arc::ptr_eq(&transaction.catalog(), catalog) {
                return Ok(Ran::OldSchema);
            }
            return short.read(transaction, values).map(Ran::Answer);
        }
        let snapshot = self.shared.storage.snapshot()?;
        if !Arc::ptr_eq(&snapshot.root().catalog, catalog) {
            return Ok(Ran::OldSchema);
        }
        short.read_at(&snapshot, values).map(Ran::Answer)
    }

    fn write_short(&mut self, short: &Short, catalog: &Arc<Catalog>, values: &[ValueRef<'_>]) -> Result<Ran> {
        let table = short.table().schema();
        let read_only = self.shared.storage.options().read_only;
        match &mut self.current {
            Current::Open { read_only: true, .. } | Current::Failed => Ok(Ran::Answer(Answer::NotShort)),
            _ if read_only => Ok(Ran::Answer(Answer::NotShort)),
            Current::None if self.temporary.acts_on(table.id) => Ok(Ran::Answer(Answer::NotShort)),
            Current::None => {
                let write = |mut transaction: Transaction, run| {
                    let read_ts = transaction.read_ts();
                    if !Arc::ptr_eq(&transaction.catalog(), catalog) {
                        return Ok((Ran::OldSchema, read_ts));
                    }
                    if run == Run::Open && short.may_load() {
                        transaction.wait_as(self.interrupts.watch(self.settings.statement_timeout()).waiting());
                    }
                    let (answer, committed) = match run {
                        Run::Open => (short.run_alone(transaction, values)?, read_ts),
                        Run::BehindGate => short.run_applied(transaction, values)?,
                    };
                    Ok((Ran::Answer(answer), committed))
                };
                let watch = || self.interrupts.watch(self.settings.statement_timeout());
                short_in_own_transaction(&self.shared.storage, self.settings.synchronous(), table.id, watch, write)
            }
            Current::Open { transaction, .. } => {
                if !Arc::ptr_eq(&transaction.catalog(), catalog) {
                    return Ok(Ran::OldSchema);
                }
                let mut cancel = None;
                transaction.pass_gate(table.id, || {
                    let watch = || self.interrupts.watch(self.settings.statement_timeout());
                    cancel.get_or_insert_with(watch).check()
                })?;
                transaction.make_room();
                // Only then may it merge them, or load.
                if !transaction.has_runs(table.id) && !short.may_load() {
                    return short.run(transaction, values).map(Ran::Answer);
                }
                transaction.wait_as(self.interrupts.watch(self.settings.statement_timeout()).waiting());
                let ran = short.run(transaction, values).map(Ran::Answer);
                transaction.wait_as(Waiting::default());
                ran
            }
        }
    }
}

/// The outcome of a SELECT of `rows`.
fn selected(short: &Short, rows: &[Vec<Value>]) -> Result<Outcome> {
    let (schema, batch) = short.batch_of(rows)?;
    Ok(Outcome::with_rows("SELECT", Rows::Ready { schema, batches: vec![batch], memory: None }))
}

/// What `answer` of `short` is; `None` if it has none.
fn outcome_of(short: &Short, answer: Answer) -> Result<Option<Outcome>> {
    Ok(match answer {
        Answer::NotShort => None,
        Answer::Written { rows, .. } if !short.gives_rows() => Some(Outcome::wrote(short.tag(), rows)),
        Answer::Written { rows, returned } => {
            let (schema, batch) = short.batch_of(&returned)?;
            let returned = Some(Rows::Ready { schema, batches: vec![batch], memory: None });
            Some(Outcome::written(short.tag(), Written { rows, returned }))
        }
        Answer::Row(row) => Some(selected(short, row.as_slice())?),
        Answer::Rows(rows) => Some(selected(short, &rows)?),
    })
}

/// Expressions compiled by a session's planner, over what a transaction sees.
pub(super) struct ByPlanner<'a, 'e> {
    pub(super) env: RefCell<&'a mut Environment<'e>>,
    pub(super) transaction: &'a Transaction,
}

impl Planning for ByPlanner<'_, '_> {
    fn expressions(&self, query: Query, parameters: &[Option<DataType>]) -> Option<Vec<PlannedExpression>> {
        plan::row_expressions(&mut self.env.borrow_mut(), self.transaction, query, parameters)
    }
}

/// What came of a run.
#[derive(Debug)]
enum Ran {
    Answer(Answer),
    /// It was compiled for another version of the schema.
    OldSchema,
}
