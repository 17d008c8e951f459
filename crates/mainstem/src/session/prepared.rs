//! Prepared statements: those of the library, and those of SQL's PREPARE, which a session keeps by name.
//!
//! A prepared statement is parsed once. Its description, which types its parameters have and which columns its rows,
//! belongs to one version of the schema: it is made anew when that is another one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, Query, SelectItem, SetExpr, Statement as Ast, UnaryOperator, Value as Literal,
};
use mainstem_storage::catalog::Catalog;
use mainstem_storage::error::sqlstate;
use mainstem_storage::memory::{Charge, MemoryBudget, MemoryKind};
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::{Error, Result};

use super::kept_plans::KeptPlans;
use super::utility::columns;
use super::{Outcome, Session};
use crate::exec::{Parameters, RunCount, SharedStatement, parameter_of};
use crate::plan::{self, Description};
use crate::point_path::{Short, Unplanned};
use crate::provider::Names;
use crate::sql::{PreparedStatement, SettingStatement, Statement, TableName, Template, state};
use crate::value::{ResultColumn, ValueRef, only_row};

/// A statement that is run again and again.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    template: Arc<Template>,
    /// Types of the first parameters, as PREPARE declares them.
    declared: Vec<DataType>,
    /// What the statement was under a version of the schema.
    described: Option<(Arc<Catalog>, Arc<Names>, Arc<Description>)>,
    /// Whether it is short, under a version of the schema.
    pub(super) compiled: Option<Arc<Compiled>>,
    /// Its plans, by the types of values.
    plans: KeptPlans,
    /// The text that other connections may take it over by.
    text: Option<Arc<str>>,
    /// Its runs, if it has such a text.
    runs: Option<Arc<RunCount>>,
    /// What tree, description and short statement take, together with its copies.
    memory: Option<Arc<Charge>>,
}

/// Bytes that a tree takes for each byte of its text, with what is found out about it.
const BYTES_PER_TEXT_BYTE: usize = 64;
/// Bytes of the rest of a prepared statement.
const BYTES_BESIDE: usize = 2_048;

impl Prepared {
    fn new(template: Arc<Template>, declared: Vec<DataType>) -> Self {
        Self {
            template,
            declared,
            described: None,
            compiled: None,
            plans: KeptPlans::default(),
            text: None,
            runs: None,
            memory: None,
        }
    }

    /// The query or write of `template`, which has no parameters, unless it is none, or too deep to be kept. What is
    /// wrong with it shows when it runs.
    pub(crate) fn of_text(template: Template) -> Option<Self> {
        let has_query = |statement: &Statement| {
            matches!(
                statement,
                Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
            )
        };
        let has_query = template.with_statement(|statement| Ok(has_query(statement))).ok()?;
        let fits = has_query && !template.is_deep() && template.parameters() == 0;
        fits.then(|| Self::new(Arc::new(template), Vec::new()))
    }

    /// Whether it is known that no plan of it is kept.
    pub(crate) fn keeps_no_plan(&self) -> bool {
        self.plans.are_kept() == Some(false)
    }

    /// Whether it writes: it gives rows by RETURNING alone.
    pub(crate) fn writes(&self) -> bool {
        let writes = |statement: &Statement| {
            Ok(matches!(statement, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)))
        };
        self.template.with_statement(writes).unwrap_or(false)
    }

    /// Whether it changes rows that are there, or deletes them.
    pub(crate) fn changes_rows(&self) -> bool {
        let changes = |statement: &Statement| Ok(matches!(statement, Statement::Update(_) | Statement::Delete(_)));
        self.template.with_statement(changes).unwrap_or(false)
    }

    /// It is what all connections make of `text`.
    pub(super) fn share_as(&mut self, text: &str) {
        self.text = Some(text.into());
        self.runs = Some(Arc::new(RunCount::default().for_copy()));
    }

    /// Counts in `budget` what it takes, besides its plans, unless that is counted.
    pub(super) fn count_memory(&mut self, budget: &Arc<MemoryBudget>) {
        let bytes = BYTES_BESIDE + self.template.text_bytes() * BYTES_PER_TEXT_BYTE;
        self.memory.get_or_insert_with(|| Arc::new(budget.charge(MemoryKind::Plans, bytes)));
    }

    /// Counts a run.
    pub(super) fn count_run(&self) {
        if let Some(runs) = &self.runs {
            runs.count();
        }
    }

    /// The text that it is shared by.
    pub(super) fn shared_as(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether what it is was found under `catalog`, and not under another version of the schema.
    pub(super) fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        let described = self.described.iter().map(|(of, ..)| of);
        let mut versions = described.chain(self.compiled.iter().map(|compiled| &compiled.catalog));
        versions.all(|of| Arc::ptr_eq(of, catalog))
    }

    /// A copy for a connection with `names`, whose plans run apart from these: what belongs to other names is left out.
    pub(super) fn copy_for(&self, names: &Arc<Names>) -> Self {
        let holds = |catalog: &Catalog, of: &Names| names.mean_the_same(of, catalog);
        let described = self.described.as_ref().filter(|(catalog, of, _)| holds(catalog, of));
        let compiled = self.compiled.as_ref().filter(|compiled| holds(&compiled.catalog, &compiled.names));
        Self {
            template: self.template.clone(),
            declared: self.declared.clone(),
            described: described.map(|(catalog, _, of)| (catalog.clone(), names.clone(), of.clone())),
            compiled: compiled.map(|of| Arc::new(Compiled { names: names.clone(), ..Compiled::clone(of) })),
            plans: self.plans.copy_for(names),
            text: self.text.clone(),
            runs: self.runs.as_ref().map(|runs| Arc::new(runs.for_copy())),
            memory: self.memory.clone(),
        }
    }

    pub(crate) fn template(&self) -> &Arc<Template> {
        &self.template
    }

    /// Whether `values` are as many as it takes, and as the library gives them: PREPARE may have declared other types.
    pub(super) fn takes(&self, values: &[ValueRef<'_>]) -> bool {
        self.declared.is_empty() && values.len() == self.template.parameters()
    }

    /// An error of the statement with its position in its text if that can be told.
    pub(crate) fn with_position(&self, error: Error) -> Error {
        self.template.with_position(error)
    }

    /// Names of its parameters in their order; none if they have numbers.
    pub(crate) fn names(&self) -> &Arc<[Box<str>]> {
        self.template.names()
    }

    /// Whether it is known to be planned, whatever its values, under the schema that was the last.
    pub(crate) fn is_planned(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_planned())
    }

    /// Whether it is known to draw numbers of identity columns, without a plan.
    pub(crate) fn draws_numbers(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.draws_numbers())
    }

    /// How many values it takes.
    pub(crate) fn parameters(&self) -> usize {
        self.template.parameters().max(self.declared.len())
    }
}

impl SharedStatement for Prepared {
    fn parameters(&self) -> usize {
        Self::parameters(self)
    }

    fn execution(&self) -> Option<&'static str> {
        match &self.compiled {
            Some(compiled) if !compiled.is_planned() => Some("compiled"),
            compiled => match self.plans.are_kept() {
                Some(true) => Some("kept plan"),
                Some(false) => Some("planned"),
                None => compiled.as_ref().map(|_| "planned"),
            },
        }
    }

    fn runs(&self) -> u64 {
        self.runs.as_ref().map_or(0, |runs| runs.all())
    }

    fn bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.bytes()) + self.plans.bytes()
    }
}

/// What `statement`, which has `count` parameters, is, if it is short and tells their types plainly: found without a
/// plan.
fn described_short(names: &Names, catalog: &Catalog, statement: &Statement, count: usize) -> Option<Description> {
    let schemas = schemas_of(names, catalog, &Short::tables_of(statement)?)?;
    let columns: Vec<&TableSchema> = schemas.iter().map(|schema| &**schema).collect();
    let types = Short::parameter_types(statement, &columns, count)?;
    let short = Short::compile(statement, &schemas, &types, &Unplanned::default())?;
    Some(Description { types, columns: short.rows_schema() })
}

/// The schemas of `tables`, if all of them are tables.
pub(super) fn schemas_of(names: &Names, catalog: &Catalog, tables: &[TableName]) -> Option<Vec<Arc<TableSchema>>> {
    tables.iter().map(|table| names.table(catalog, table).ok()).collect()
}

/// What a statement is under one version of the schema: short, or not.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) catalog: Arc<Catalog>,
    pub(super) names: Arc<Names>,
    pub(super) short: Option<Arc<Short>>,
    pub(super) columns: Arc<[ResultColumn]>,
    pub(super) schema: Option<SchemaRef>,
}

impl Compiled {
    /// Whether it is not short.
    pub(super) fn is_planned(&self) -> bool {
        self.short.is_none()
    }

    /// Whether it draws numbers of identity columns.
    pub(super) fn draws_numbers(&self) -> bool {
        self.short.as_ref().is_some_and(|short| short.draws_numbers())
    }
}

/// An INSERT that stores each of its parameters into a column, and does nothing else.
#[derive(Debug)]
pub(crate) struct InsertOfParameters {
    pub(crate) table: Arc<TableSchema>,
    /// The columns that it names, or all that are given.
    pub(crate) columns: Vec<String>,
    /// The parameter that each of them takes.
    pub(crate) parameters: Vec<usize>,
    /// Its type.
    pub(crate) types: Vec<DataType>,
}

impl InsertOfParameters {
    /// `statement`, whose parameters have the types `types`, over what `names` mean in `catalog`.
    fn of(statement: &Statement, names: &Names, catalog: &Catalog, types: &[Option<DataType>]) -> Option<Self> {
        let Statement::Insert(insert) = statement else { return None };
        let plain = insert.conflict.is_none() && insert.overriding.is_none() && insert.defaults.is_empty();
        let rows = insert.plain_values().filter(|_| plain && !insert.target.gives_rows())?;
        let [row] = rows.as_slice() else { return None };
        let table = names.table(catalog, &insert.target.table).ok()?;
        let columns = match insert.columns.as_slice() {
            [] => table.columns.iter().take(row.len()).map(|column| column.name.clone()).collect(),
            named => named.to_vec(),
        };
        // What cannot be given says so as a statement.
        let can_be_given = |name: &String| {
            table.column_named(name).is_some_and(|column| column.identity.is_none_or(|identity| !identity.always))
        };
        if columns.len() != row.len() || !columns.iter().all(can_be_given) {
            return None;
        }
        let parameters: Vec<usize> = row.iter().map(parameter_of).collect::<Option<_>>()?;
        if !(0..types.len()).all(|at| parameters.contains(&at)) {
            return None;
        }
        let types = parameters.iter().map(|at| types.get(*at).copied().flatten()).collect::<Option<_>>()?;
        Some(Self { table, columns, parameters, types })
    }
}

/// # Errors
/// 08P01 where `given` values are not as many as the parameters.
pub(crate) fn check_parameter_count(parameters: usize, given: usize) -> Result<()> {
    if given == parameters {
        return Ok(());
    }
    let message = format!("the statement has {parameters} parameters, but {given} values were given");
    Err(Error::invalid(state::PARAMETER_COUNT, message))
}

/// The statements that SQL prepared, by name.
pub(super) type ByName = HashMap<String, Prepared>;

impl Session {
    /// Prepares a statement: what is wrong with it, whatever the values, shows here.
    pub(crate) fn prepare(&mut self, template: Arc<Template>) -> Result<Prepared> {
        self.prepare_declared(template, Vec::new())
    }

    /// The same of one whose first parameters have the types `declared`.
    pub(crate) fn prepare_declared(&mut self, template: Arc<Template>, declared: Vec<DataType>) -> Result<Prepared> {
        let mut prepared = Prepared::new(template, declared);
        self.count_memory(&mut prepared);
        self.guarded(|session| session.description(&mut prepared))?;
        Ok(prepared)
    }

    /// What `prepared` is under the schema that its next run sees.
    pub(crate) fn describe(&mut self, prepared: &mut Prepared) -> Result<Arc<Description>> {
        self.guarded(|session| session.description(prepared))
    }

    /// Which columns the parameters of `prepared` are stored into, if it is an INSERT that does nothing else.
    pub(crate) fn insert_of_parameters(&mut self, prepared: &mut Prepared) -> Result<Option<InsertOfParameters>> {
        if !prepared.declared.is_empty() {
            return Ok(None);
        }
        let description = self.describe(prepared)?;
        self.read(|env, transaction| {
            let (names, catalog) = (env.settings.names(), transaction.catalog());
            prepared
                .template
                .with_statement(|statement| Ok(InsertOfParameters::of(statement, names, &catalog, &description.types)))
        })
    }

    /// Runs a prepared statement with `values` for its parameters.
    pub(crate) fn run_prepared(&mut self, prepared: &mut Prepared, values: &[ValueRef<'_>]) -> Result<Outcome> {
        self.guarded(|session| {
            check_parameter_count(prepared.parameters(), values.len())?;
            session.execute_prepared(prepared, values)
        })
    }

    fn execute_prepared(&mut self, prepared: &mut Prepared, values: &[ValueRef<'_>]) -> Result<Outcome> {
        let (parameters, has_types) = if values.is_empty() {
            (Parameters::default(), true)
        } else {
            let description = self.description(prepared)?;
            let bound = plan::bind(values, &description.types, prepared.declared.len(), prepared.template.names())?;
            let has_types = bound.types().into_iter().zip(&description.types).all(|(of, wanted)| match (of, *wanted) {
                (None, _) => true,
                (Some(DataType::Decimal { .. }), Some(DataType::Decimal { .. })) => true,
                (Some(of), wanted) => wanted == Some(of),
            });
            (bound, has_types)
        };
        prepared.count_run();
        self.texts.give_way();
        let template = prepared.template.clone();
        template.with_statement(|statement| {
            self.parameters = parameters;
            let outcome = match statement {
                // A value of a type that its context does not give means what a literal in its place would.
                _ if !has_types || template.is_deep() => Ok(None),
                statement => {
                    let made = prepared.plans.made();
                    let outcome = match statement {
                        Statement::Query(query) => self.kept_query(&mut prepared.plans, query),
                        statement => self.kept_write(&mut prepared.plans, statement),
                    };
                    if prepared.plans.made() != made {
                        self.share(prepared);
                    }
                    outcome
                }
            };
            let outcome = match outcome {
                Ok(Some(outcome)) => Ok(outcome),
                Ok(None) => self.dispatch(statement.clone()),
                Err(error) => Err(error),
            };
            self.parameters = Parameters::default();
            outcome
        })
    }

    pub(super) fn description(&mut self, prepared: &mut Prepared) -> Result<Arc<Description>> {
        let Prepared { template, declared, described, .. } = prepared;
        let parameters = template.parameters();
        template.with_statement(|statement| match statement {
            Statement::Query(_)
            | Statement::Lock(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Explain { .. } => self.read(|env, transaction| {
                let catalog = transaction.catalog();
                let names = env.settings.names();
                if let Some((of, under, description)) = described
                    && Arc::ptr_eq(of, &catalog)
                    && Arc::ptr_eq(under, names)
                {
                    return Ok(description.clone());
                }
                let is_plain = declared.is_empty() && env.settings.point_path();
                let short = is_plain.then(|| described_short(names, &catalog, statement, parameters)).flatten();
                let mut description = match short {
                    Some(description) => description,
                    None => plan::describe(env, transaction, statement, declared, parameters)?,
                };
                if matches!(statement, Statement::Explain { .. }) {
                    description.columns = Some(texts(&["plan_type", "plan"]));
                }
                let description = Arc::new(description);
                // Files, and tables of the program, may be others by the next time.
                if !env.planner.files().are_any() && !env.planner.externals().are_any() {
                    *described = Some((catalog, env.settings.names().clone(), description.clone()));
                }
                Ok(description)
            }),
            Statement::Describe(describe) => Ok(Arc::new(rows_of(columns(describe.summarizes)))),
            Statement::Setting(SettingStatement::Show { name }) => Ok(Arc::new(rows_of(texts(&[name])))),
            Statement::Setting(SettingStatement::Config { column, .. }) => Ok(Arc::new(rows_of(texts(&[column])))),
            Statement::SetPosition(_) => Ok(Arc::new(rows_of(texts(&["setval"])))),
            Statement::Setting(SettingStatement::ShowAll) => {
                Ok(Arc::new(rows_of(texts(&["name", "setting", "description"]))))
            }
            Statement::Prepared(PreparedStatement::Execute { name, .. }) => {
                let columns = self.with_named(name, |session, prepared| {
                    session.description(prepared).map(|description| description.columns.clone())
                })?;
                Ok(Arc::new(Description { types: Vec::new(), columns }))
            }
            _ => Ok(Arc::default()),
        })
    }

    /// Whether `statement` gives rows.
    pub(crate) fn gives_rows(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Query(_) | Statement::Lock(_) | Statement::Explain { .. } => true,
            Statement::Describe(_) | Statement::SetPosition(_) => true,
            Statement::Insert(insert) => insert.target.gives_rows(),
            Statement::Update(update) => update.target.gives_rows(),
            Statement::Delete(delete) => delete.target.gives_rows(),
            Statement::Setting(setting) => {
                matches!(
                    setting,
                    SettingStatement::Show { .. } | SettingStatement::ShowAll | SettingStatement::Config { .. }
                )
            }
            Statement::Prepared(PreparedStatement::Execute { name, .. }) => {
                self.prepared.get(name).is_none_or(|prepared| self.prepared_gives_rows(prepared))
            }
            _ => false,
        }
    }

    /// Whether a prepared statement gives rows.
    pub(crate) fn prepared_gives_rows(&self, prepared: &Prepared) -> bool {
        prepared.template.with_statement(|statement| Ok(self.gives_rows(statement))).unwrap_or(false)
    }

    /// Runs PREPARE, EXECUTE or DEALLOCATE.
    pub(super) fn prepared_statement(&mut self, statement: PreparedStatement) -> Result<Outcome> {
        match statement {
            PreparedStatement::Prepare { name, types, template } => {
                if self.prepared.contains_key(&name) {
                    return Err(Error::invalid(
                        state::DUPLICATE_STATEMENT,
                        format!("prepared statement \"{name}\" already exists; DEALLOCATE it first"),
                    ));
                }
                let mut prepared = Prepared::new(template, types);
                self.count_memory(&mut prepared);
                self.description(&mut prepared)?;
                self.prepared.insert(name, prepared);
                Ok(Outcome::done("PREPARE"))
            }
            PreparedStatement::Execute { name, arguments } => self.with_named(&name, |session, prepared| {
                let values = match arguments {
                    None => Vec::new(),
                    Some(query) => match literals_of(&query) {
                        Some(values) => values,
                        None => session.values_of(query)?,
                    },
                };
                let wanted = prepared.parameters();
                if values.len() != wanted {
                    return Err(Error::invalid(
                        sqlstate::SYNTAX,
                        format!(
                            "prepared statement \"{name}\" has {wanted} parameters, but {} were given",
                            values.len()
                        ),
                    ));
                }
                let values: Vec<ValueRef<'_>> =
                    values.iter().map(|(value, data_type)| ValueRef::stored(value, *data_type)).collect();
                match session.run_parameterized(prepared, &values)? {
                    Some(outcome) => Ok(outcome),
                    None => session.execute_prepared(prepared, &values),
                }
            }),
            PreparedStatement::Deallocate { name: Some(name) } => match self.prepared.remove(&name) {
                Some(_) => Ok(Outcome::done("DEALLOCATE")),
                None => Err(undefined(&name)),
            },
            PreparedStatement::Deallocate { name: None } => {
                self.prepared.clear();
                Ok(Outcome::done("DEALLOCATE ALL"))
            }
        }
    }

    /// Runs `work` with the statement that SQL prepared as `name`.
    fn with_named<T>(&mut self, name: &str, work: impl FnOnce(&mut Self, &mut Prepared) -> Result<T>) -> Result<T> {
        let mut prepared = self.prepared.get(name).cloned().ok_or_else(|| undefined(name))?;
        let outcome = work(self, &mut prepared);
        self.prepared.insert(name.to_string(), prepared);
        outcome
    }

    /// The values of a SELECT without FROM.
    fn values_of(&mut self, query: Box<Query>) -> Result<Vec<(Value, DataType)>> {
        let running = self.read(|env, transaction| {
            env.need_certain_files();
            let plan = env.plan(transaction, Ast::Query(query), None)?;
            env.start(&plan)
        })?;
        let mut values = Vec::new();
        for batch in running.batches {
            values.extend(only_row(&batch?)?);
        }
        Ok(values)
    }
}

/// The values of a SELECT of whole numbers, texts and truth values, as a plan would give them.
fn literals_of(query: &Query) -> Option<Vec<(Value, DataType)>> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let value = |item: &SelectItem| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return None };
        let (digits, sign) = match expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (&**expr, "-"),
            expr => (expr, ""),
        };
        let Expr::Value(value) = digits else { return None };
        match &value.value {
            Literal::Number(digits, false) => {
                format!("{sign}{digits}").parse().ok().map(|number| (Value::Int(number), DataType::BigInt))
            }
            Literal::SingleQuotedString(text) if sign.is_empty() => {
                Some((Value::Text(text.as_str().into()), DataType::Text { max_chars: None }))
            }
            Literal::Boolean(flag) if sign.is_empty() => Some((Value::Boolean(*flag), DataType::Boolean)),
            _ => None,
        }
    };
    select.projection.iter().map(value).collect()
}

fn undefined(name: &str) -> Error {
    Error::invalid(state::UNDEFINED_STATEMENT, format!("prepared statement \"{name}\" does not exist"))
}

/// Columns of text.
fn texts(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, ArrowType::Utf8View, false)).collect::<Vec<_>>()))
}

fn rows_of(columns: SchemaRef) -> Description {
    Description { types: Vec::new(), columns: Some(columns) }
}
