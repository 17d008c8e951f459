//! From a query's tree to a running plan, over the tables of one transaction.

mod expression;
mod files;
mod function_names;
mod kept;
mod memory;
mod naming;
mod parsed_views;
mod recursive_query;
mod size;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, SchemaRef};
use datafusion::catalog::view::ViewTable;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, TableReference};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as PlannerStatement;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_postgres::registry::takes_columns;
use mainstem_storage::catalog::Relation;
use mainstem_storage::database::Database;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{DataType, View};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;
use mainstem_storage::{Error, Result};

pub(crate) use self::expression::PlannedExpression;
use self::files::StatementFiles;
use self::function_names::{check_calls, with_similar_functions};
pub(crate) use self::kept::KeptPlan;
use self::memory::WithinMemory;
use self::naming::{NAMINGS, is_refused, with_tables};
use self::parsed_views::ParsedViews;
use self::size::{Size, is_in_file_order, size_of};
use super::cancel::{Interruption, cancelable_joins};
use super::derived_properties::DerivedProperties;
use super::dynamic_filters::MinRows;
use super::merge_joins::MergeMinRows;
use super::parameters::{Parameters, position_of};
use super::pg_sleep;
use super::plan_cache::PlanCache;
use super::runtime::{Batches, Cancel, Runtime};
use super::settings::Settings;
use super::spilling::QueryBytes;
use super::system_tables;
use super::triggers::{self, PlanKinds};
use crate::analyze::{BesideStar, Naming, OutputNames, check_rows, resolve_types, rewrite, with_settings};
use crate::error::from_datafusion;
use crate::optimize::{
    computed_keys_as_columns, narrowed_patterns, ordered_joins, safely_analysed, short_circuit_expression,
    short_circuit_plan, simplified, sort_keys_once,
};
use crate::provider::{
    CATALOG, ExternalTables, FileCache, Progress, StatementCatalog, StatementTables, SystemTables, Wanted,
    undefined_schema, undefined_table,
};
use crate::sql::{FILES_SCHEMA, INFORMATION, RELATIONS_MAX, SYSTEM, TARGET_SCHEMA, TableName, state, with_stored};
use mainstem_postgres::function::{Carried, SessionSearchPath};

/// Views over one another: each level makes plans deeper, which are walked by recursion.
const VIEWS_DEEP_MAX: usize = 32;

/// What views are planned with.
#[derive(Clone, Copy, Debug)]
struct Views {
    naming: Naming,
    /// Views around.
    depth: usize,
}

/// Plans the statements of one connection.
#[derive(Debug)]
pub(crate) struct Planner {
    state: SessionState,
    catalog: Arc<StatementCatalog>,
    interruption: Interruption,
    dynamic_filters: MinRows,
    merge_joins: MergeMinRows,
    derived_properties: DerivedProperties,
    kinds: PlanKinds,
    query_bytes: QueryBytes,
    views: ParsedViews,
    /// Scans of kept plans whose rows were found by key.
    scans_by_key: u64,
    /// Those that the running statement reads.
    files: StatementFiles,
    /// Tables of the program.
    externals: ExternalTables,
}

/// What a statement is planned against.
pub(crate) struct Source<'a> {
    pub(crate) storage: &'a Database,
    /// What connections keep of texts.
    pub(crate) plans: &'a PlanCache,
    /// What is remembered of files.
    pub(crate) file_cache: &'a FileCache,
    pub(crate) progress: &'a Progress,
    pub(crate) settings: &'a Settings,
    pub(crate) parameters: &'a Parameters,
    pub(crate) transaction: &'a Transaction,
    /// The table that a write's own SELECT reads with row references.
    pub(crate) target: Option<Arc<TableView>>,
}

/// A planned query that has been started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Batches,
}

impl Planner {
    /// A planner for a new connection.
    pub(crate) fn new(template: &SessionState) -> Self {
        let mut state = template.clone();
        let catalog = Arc::new(StatementCatalog::default());
        state.register_catalog_list(catalog.clone());
        let interruption = Interruption::default();
        let extensions = &mut state.config_mut().options_mut().extensions;
        extensions.insert(Carried(interruption.clone()));
        let dynamic_filters = MinRows::default();
        extensions.insert(Carried(dynamic_filters.clone()));
        let merge_joins = MergeMinRows::default();
        extensions.insert(Carried(merge_joins.clone()));
        let derived_properties = DerivedProperties::default();
        extensions.insert(Carried(derived_properties.clone()));
        let kinds = PlanKinds::default();
        extensions.insert(Carried(kinds.clone()));
        let query_bytes = QueryBytes::default();
        extensions.insert(Carried(query_bytes.clone()));
        extensions.insert(Carried(SessionSearchPath(catalog.clone())));
        Self {
            state,
            catalog,
            interruption,
            dynamic_filters,
            merge_joins,
            derived_properties,
            kinds,
            query_bytes,
            views: ParsedViews::default(),
            scans_by_key: 0,
            files: StatementFiles::default(),
            externals: ExternalTables::default(),
        }
    }

    /// How many scans of kept plans had their rows found by key.
    pub(crate) fn scans_by_key(&self) -> u64 {
        self.scans_by_key
    }

    /// The tables of the program.
    pub(crate) fn externals(&mut self) -> &mut ExternalTables {
        &mut self.externals
    }

    /// Plans `statement`, a query or an EXPLAIN of one.
    ///
    /// # Errors
    /// Whatever is wrong with it: 42P01, 42703, 42601 and so on.
    pub(crate) fn plan(
        &mut self,
        runtime: &Runtime,
        mut statement: Ast,
        source: &Source<'_>,
        cancel: &Cancel,
    ) -> Result<LogicalPlan> {
        cancel.check()?;
        self.state.mark_start_execution();
        self.dynamic_filters.set(source.settings.dynamic_filter_min_rows());
        self.merge_joins.set(source.settings.merge_join_min_rows());
        self.derived_properties.set(source.settings.derived_properties());
        check_calls(&statement, &self.state)?;
        check_rows(&statement)?;
        let names_of_items = OutputNames::of(&statement);
        source.parameters.inline(&mut statement);
        self.files.open(&mut statement, source, cancel)?;
        let plan = self.plan_named(runtime, statement, source)?;
        names_of_items.name(plan).map_err(|e| from_datafusion(&e))
    }

    /// Plans `statement`, with as many internal names as DataFusion asks for.
    fn plan_named(&mut self, runtime: &Runtime, statement: Ast, source: &Source<'_>) -> Result<LogicalPlan> {
        let mut guessed = false;
        let mut attempts = NAMINGS.into_iter().peekable();
        while let Some((beside, naming)) = attempts.next() {
            let mut worded = statement.clone();
            guessed |= rewrite(&mut worded, beside);
            let is_last = attempts.peek().is_none_or(|(beside, _)| *beside == BesideStar::Mentioned && !guessed);
            match self.plan_worded(runtime, worded, source, naming) {
                Err(error) if !is_last && is_refused(&error) => {}
                plan => return plan,
            }
        }
        Err(Error::internal("a statement that was not planned"))
    }

    /// Plans a statement in syntax that DataFusion reads.
    fn plan_worded(
        &mut self,
        runtime: &Runtime,
        mut statement: Ast,
        source: &Source<'_>,
        naming: Naming,
    ) -> Result<LogicalPlan> {
        with_settings(&mut statement, &|name| source.settings.show(name))?;
        with_tables(&mut statement, source, (&self.files, &self.externals), naming)?;
        let statement = PlannerStatement::Statement(Box::new(source.parameters.declare(statement)?));
        let tables = self.tables(runtime, &statement, source, Views { naming, depth: 0 })?;
        let has_views = !tables.queries.is_empty();
        self.catalog.set(tables);
        let plan = self.planned(runtime, statement)?;
        if has_views {
            check_size(&plan)?;
        }
        resolve_types(source.parameters.fill(plan)?).map_err(|e| from_datafusion(&e))
    }

    /// The plan of `statement`, whose tables are known.
    fn planned(&self, runtime: &Runtime, statement: PlannerStatement) -> Result<LogicalPlan> {
        let plan = |statement: PlannerStatement| {
            let plan = runtime.block_on(self.state.statement_to_plan(statement))?;
            plan.map_err(|e| with_similar_functions(from_datafusion(&e), &self.state))
        };
        match statement {
            PlannerStatement::Statement(statement) => {
                recursive_query::planned(*statement, |statement| plan(PlannerStatement::Statement(Box::new(statement))))
            }
            other => plan(other),
        }
    }

    /// The tables that `statement` names.
    fn tables(
        &self,
        runtime: &Runtime,
        statement: &PlannerStatement,
        source: &Source<'_>,
        above: Views,
    ) -> Result<StatementTables> {
        let catalog = source.transaction.catalog();
        let names = source.settings.names();
        let mut views = HashMap::new();
        let mut queries = HashMap::new();
        let mut system = SystemTables::default();
        let references = self.state.resolve_table_references(statement).map_err(|e| from_datafusion(&e))?;
        let no_table = |statement: &PlannerStatement, name: &TableName| {
            let with = resolve_table_references(statement, true).map_or_else(|_| Vec::new(), |(_, with)| with);
            let with = with.iter().map(|query| query.table().to_owned());
            let with: Vec<String> = with.chain(self.state.table_functions().keys().cloned()).collect();
            undefined_table(names, &catalog, name, Wanted::Table, &with)
        };
        for reference in references {
            if reference.catalog().is_some_and(|name| name != CATALOG) {
                return Err(Error::unsupported(format_args!("the table {reference} of another database")));
            }
            let name = TableName { schema: reference.schema().map(str::to_owned), name: reference.table().to_owned() };
            match name.schema.as_deref() {
                Some(SYSTEM) => match SystemTables::names(SYSTEM).into_iter().find(|known| *known == name.name) {
                    Some(name) => {
                        let query_bytes = self.state.runtime_env().memory_pool.reserved() as u64;
                        let rows = match name {
                            "plans" => system_tables::plans(source.plans, &catalog),
                            _ => system_tables::rows(name, source.storage, &catalog, source.settings, query_bytes),
                        };
                        system.fill(SYSTEM, name, &rows).map_err(|e| from_datafusion(&e))?;
                    }
                    None => return Err(no_table(statement, &name)),
                },
                Some(INFORMATION) => {
                    let found = SystemTables::names(INFORMATION).into_iter().find(|known| *known == name.name);
                    let table = found.ok_or_else(|| no_table(statement, &name))?;
                    let mut views = Vec::new();
                    for view in catalog.views().filter(|_| table == "columns") {
                        let query = self.query_of_view(runtime, view, source, above)?;
                        views.push((view.name.clone(), query.logical_plan().schema().inner().clone()));
                    }
                    let rows = system_tables::information(table, &catalog, names, &views)?;
                    system.fill(INFORMATION, table, &rows).map_err(|e| from_datafusion(&e))?;
                }
                Some(FILES_SCHEMA) => {}
                Some(TARGET_SCHEMA) if source.target.is_some() => {}
                schema => match names.find(&catalog, &name) {
                    Some((_, Relation::Table(table))) => {
                        views.insert(table.id, source.transaction.view(table.id)?);
                    }
                    Some((full, Relation::View(view))) => {
                        queries.insert(full, self.query_of_view(runtime, &view, source, above)?);
                    }
                    None if schema.is_none() && self.state.table_functions().contains_key(&name.name) => {}
                    // Views are the same whoever reads them.
                    None if schema.is_none() && above.depth == 0 && self.externals.find(&name.name)?.is_some() => {}
                    None => {
                        return Err(match schema.filter(|schema| !catalog.has_namespace(schema)) {
                            Some(schema) => undefined_schema(&catalog, schema),
                            None => no_table(statement, &name),
                        });
                    }
                },
            }
        }
        let (names, target) = (names.clone(), source.target.clone());
        let (files, externals) = (self.files.tables(), self.externals.of_statement());
        Ok(StatementTables { catalog, names, views, queries, target, files, externals, system })
    }

    /// A view as DataFusion puts it into the queries that name it.
    fn query_of_view(
        &self,
        runtime: &Runtime,
        view: &View,
        source: &Source<'_>,
        above: Views,
    ) -> Result<Arc<ViewTable>> {
        let Views { naming, depth } = above;
        if depth == VIEWS_DEEP_MAX {
            let message = format!("view \"{}\" stands below {VIEWS_DEEP_MAX} others", view.name);
            return Err(Error::invalid(state::TOO_COMPLEX, message));
        }
        with_stored(view.query.len(), || {
            let mut statement = self.views.statement(&view.query)?;
            with_settings(&mut statement, &|name| source.settings.show(name))?;
            with_tables(&mut statement, source, (&self.files, &ExternalTables::default()), naming)?;
            let statement = PlannerStatement::Statement(Box::new(statement));
            let tables = self.tables(runtime, &statement, source, Views { naming, depth: depth + 1 })?;
            self.catalog.set(tables);
            let plan = self.planned(runtime, statement)?;
            check_size(&plan)?;
            if plan.schema().fields().len() != view.columns.len() {
                return Err(Error::internal(format!("view \"{}\" has lost a column", view.name)));
            }
            let columns = plan.schema().columns().into_iter().zip(&view.columns);
            let columns = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect::<Vec<_>>();
            let plan = LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build);
            let plan = plan.and_then(resolve_types).map_err(|e| from_datafusion(&e))?;
            Ok(Arc::new(ViewTable::new(plan, Some(view.query.clone()))))
        })
    }

    /// The expressions of `plan`, a projection, to be evaluated over rows of its input.
    ///
    /// # Errors
    /// Whatever the rules find wrong with them; Internal for another plan.
    pub(crate) fn expressions(&self, plan: LogicalPlan) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let (expressions, _) = self.compiled(plan, &[]).map_err(|e| from_datafusion(&e))?;
        Ok(expressions)
    }

    /// As [`Planner::expressions`], with parameters of the types `parameters` as columns behind those of the input; see
    /// [`crate::plan::row_expressions`].
    pub(crate) fn row_expressions(
        &self,
        plan: LogicalPlan,
        parameters: &[Option<DataType>],
    ) -> Option<Vec<PlannedExpression>> {
        let LogicalPlan::Projection(before) = &plan else { return None };
        let fields = before.schema.fields().clone();
        let volatile = before.expr.iter().map(|expr| is_volatile(expr, parameters)).collect::<Option<Vec<_>>>()?;
        let (expressions, columns) = self.compiled(plan, parameters).ok()?;
        let planned = expressions.into_iter().zip(fields.iter()).zip(volatile);
        let planned = planned.map(|((expression, field), is_volatile)| PlannedExpression {
            field: field.clone(),
            expression,
            is_volatile,
            columns,
        });
        Some(planned.collect())
    }

    /// The expressions of `plan`, a projection, over rows of its input with parameters of the types `parameters` behind
    /// them, and how many columns the input has.
    fn compiled(
        &self,
        plan: LogicalPlan,
        parameters: &[Option<DataType>],
    ) -> datafusion::common::Result<(Vec<Arc<dyn PhysicalExpr>>, usize)> {
        let plan = self.state.analyzer().execute_and_check(plan, self.state.config_options(), |_, _| {})?;
        let LogicalPlan::Projection(projection) = plan else {
            return internal_err!("expressions without a projection");
        };
        let behind = parameters.iter().enumerate().map(|(at, data_type)| {
            let data_type = data_type.map_or(ArrowType::Null, DataType::arrow);
            (Some(TableReference::bare(PARAMETERS)), Arc::new(Field::new(at.to_string(), data_type, true)))
        });
        let input = projection.input.schema();
        let schema = Arc::new(input.join(&DFSchema::new_with_metadata(behind.collect(), HashMap::new())?)?);
        let context = SimplifyContext::builder()
            .with_schema(schema.clone())
            .with_config_options(self.state.config_options().clone())
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let one = |expr: &Expr| {
            let expr = expr.clone().unalias().transform(|expr| {
                let position = match &expr {
                    Expr::Placeholder(placeholder) => position_of(&placeholder.id).filter(|at| *at < parameters.len()),
                    _ => None,
                };
                Ok(match position {
                    Some(at) => {
                        let column = Column::new(Some(TableReference::bare(PARAMETERS)), at.to_string());
                        Transformed::yes(Expr::Column(column))
                    }
                    None => Transformed::no(expr),
                })
            })?;
            // What is constant is computed now, as the optimizer does it; `now()` is known only here.
            self.state
                .create_physical_expr(short_circuit_expression(simplified(&simplifier, expr.data)?, &schema)?, &schema)
        };
        let expressions = projection.expr.iter().map(one).collect::<datafusion::common::Result<Vec<_>>>()?;
        Ok((expressions, input.fields().len()))
    }

    fn optimized(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let mut optimized = triggers::optimized(plan, &mut self.state);
        if DerivedProperties::are_used(self.state.config_options()) {
            optimized = optimized.and_then(|plan| ordered_joins(plan, &self.state));
        }
        let optimized = optimized
            .and_then(computed_keys_as_columns)
            .and_then(sort_keys_once)
            .and_then(narrowed_patterns)
            .and_then(short_circuit_plan);
        optimized.map_err(|e| unplanned(&e))
    }

    /// Optimises `plan` and starts it, in about so many partitions.
    ///
    /// # Errors
    /// As [`Planner::plan`]; errors of running come with the batches.
    pub(crate) fn start(
        &mut self,
        runtime: &Runtime,
        plan: &LogicalPlan,
        partitions: usize,
        cancel: Cancel,
    ) -> Result<Running> {
        self.interruption.watch(&cancel);
        let optimized = self.optimized(plan)?;
        self.start_optimized(runtime, &optimized, partitions, cancel)
    }

    /// What operators run with. Functions are in the plan already: their names, some hundreds, are left out.
    fn task_context(&self) -> Arc<TaskContext> {
        let (config, environment) = (self.state.config().clone(), self.state.runtime_env().clone());
        let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let session = self.state.session_id().to_owned();
        Arc::new(TaskContext::new(None, session, config, none.0, none.1, none.2, none.3, environment))
    }

    /// Starts an optimised plan.
    fn start_optimized(
        &mut self,
        runtime: &Runtime,
        optimized: &LogicalPlan,
        partitions: usize,
        cancel: Cancel,
    ) -> Result<Running> {
        let size = size_of(optimized).map_err(|e| from_datafusion(&e))?;
        let in_order = is_in_file_order(optimized).map_err(|e| from_datafusion(&e))?;
        let is_cut = size == Size::Large && !in_order && DerivedProperties::are_used(self.state.config_options());
        self.set_partitions(if is_cut { partitions } else { 1 });
        let plan = self.physical(runtime, optimized)?;
        cancel.check()?;
        let plan = cancelable_joins(plan, &cancel).map_err(|e| from_datafusion(&e))?;
        let schema = plan.schema();
        let batches = match size {
            Size::Tiny => runtime.execute_here(plan, self.task_context(), cancel, ())?.0,
            Size::Small | Size::Large => runtime.execute(plan, self.task_context(), cancel)?,
        };
        Ok(Running { schema, batches })
    }

    /// The physical plan of `optimized`.
    fn physical(&self, runtime: &Runtime, optimized: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = self.state.query_planner().clone();
        let partitions = self.state.config_options().execution.target_partitions;
        self.kinds.set(optimized, partitions).map_err(|e| from_datafusion(&e))?;
        let safe = safely_analysed(optimized).map_err(|e| unplanned(&e))?;
        let planned = planner.create_physical_plan(safe.as_ref().unwrap_or(optimized), &self.state);
        runtime.block_on(planned)?.map_err(|e| unplanned(&e))
    }

    /// Plans are made and run for at most `partitions` from now on, with the memory there is.
    fn set_partitions(&mut self, partitions: usize) {
        let limit = self.state.runtime_env().memory_pool.memory_limit();
        WithinMemory::of(&limit, partitions).set(&mut self.state);
        self.query_bytes.set(match limit {
            MemoryLimit::Finite(bytes) => bytes as u64,
            _ => u64::MAX,
        });
    }

    /// Room in the memory of queries, for `consumer`; none yet.
    pub(crate) fn reservation(&self, consumer: &str) -> MemoryReservation {
        MemoryConsumer::new(consumer).register(&self.state.runtime_env().memory_pool)
    }

    /// The files that the running statement reads.
    pub(crate) fn files(&mut self) -> &mut StatementFiles {
        &mut self.files
    }

    /// Lets go of the last statement's snapshot, and of its files.
    pub(crate) fn forget(&mut self) {
        self.files.clear();
        self.externals.clear();
        self.catalog.clear();
    }
}

/// What is wrong with a plan whose names all mean something: one that is not found any more, or found twice, is of an
/// outer query.
fn unplanned(error: &DataFusionError) -> Error {
    let error = from_datafusion(error);
    if [sqlstate::UNDEFINED_COLUMN, state::AMBIGUOUS_COLUMN].contains(&error.sqlstate()) {
        return Error::unsupported(
            "a LATERAL or correlated query that refers to the tables around it by anything but = (use a join)",
        );
    }
    error
}

/// The table that parameters are columns of where an expression is compiled for all values of them.
const PARAMETERS: &str = "parameters of the statement";

/// Whether `expr` has another value each time; `None` if it reads more than its row, or depends on when it is planned
/// or on a parameter being a literal.
fn is_volatile(expr: &Expr, parameters: &[Option<DataType>]) -> Option<bool> {
    let (mut is_volatile, mut is_of_row) = (false, true);
    // A decimal has the digits of its value, which types of results follow; CHAR(n) loses its blanks on the way.
    let is_plain = |placeholder: &Placeholder| {
        let data_type = position_of(&placeholder.id).and_then(|at| parameters.get(at).copied().flatten());
        let known = placeholder.field.as_ref().map(|field| field.data_type());
        data_type.is_some_and(|t| {
            !matches!(t, DataType::Decimal { .. } | DataType::Char { .. }) && known == Some(&t.arrow())
        })
    };
    let looked = expr.apply(|expr| {
        match expr {
            Expr::ScalarFunction(call) => {
                match call.func.signature().volatility {
                    Volatility::Immutable => {}
                    Volatility::Stable => is_of_row = false,
                    // The point path neither waits nor has it canceled.
                    Volatility::Volatile if call.name() == pg_sleep::NAME => is_of_row = false,
                    Volatility::Volatile => is_volatile = true,
                }
                for (at, argument) in call.args.iter().enumerate() {
                    is_of_row &= takes_columns(&call.func, at)
                        || !argument.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))))?;
                }
            }
            Expr::Placeholder(placeholder) => is_of_row &= is_plain(placeholder),
            Expr::Alias(_)
            | Expr::Column(_)
            | Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => {}
            _ => is_of_row = false,
        }
        Ok(if is_of_row { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    (looked.is_ok() && is_of_row).then_some(is_volatile)
}

/// Refuses a plan that views, each of them small, have made too large: it doubles with each that names another one
/// twice.
fn check_size(plan: &LogicalPlan) -> Result<()> {
    let mut scans = 0;
    let counted = plan.apply_with_subqueries(|plan| {
        scans += usize::from(matches!(plan, LogicalPlan::TableScan(_)));
        Ok(if scans > RELATIONS_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    counted.map_err(|e| from_datafusion(&e))?;
    if scans > RELATIONS_MAX {
        let message = format!("the statement reads more than {RELATIONS_MAX} tables, with those of its views");
        return Err(Error::invalid(state::TOO_COMPLEX, message));
    }
    Ok(())
}
