//! DEFAULT and CHECK of a table, compiled once per statement and evaluated over the rows that it writes.
//!
//! Comes in: the table's definition; for each batch of a write, the values that were given. Goes out: values for the
//! columns that were given none, row by row, numbers for identity columns among them; an error for the first row that a
//! CHECK is false for.
//!
//! 1. The stored texts become one SELECT each for defaults and checks, which is planned and analyzed as any query, so
//!    that names, types and overflow follow the same rules.
//! 2. Its expressions are evaluated over the rows in hand. A constant is computed once, a volatile function for each
//!    row.
//!
//! Invariants: a check whose value is NULL is fulfilled; a default is assigned as INSERT assigns an expression. It does
//! not own: NOT NULL, lengths and keys (storage).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType as ArrowType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{Expr, Query, Statement as Ast};
use mainstem_postgres::cast::{assign, check_assignment};
use mainstem_postgres::types::sql_words;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::TableId;
use mainstem_storage::row::check_batch;
use mainstem_storage::schema::{Column, DataType, TableSchema};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::columns::{literal_columns, nullable_schema};
use super::row_wise::check_projection;
use crate::error::from_datafusion;
use crate::exec::{Environment, Parameters, PlannedExpression};
use crate::sql::{expression_of, select_of, with_stored};

/// Characters of one value in the message of a failed CHECK.
const SHOWN_CHARS_MAX: usize = 64;

/// Where the values of a column of a table come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// This column of what is given.
    Given(usize),
    /// This column of what is given, but for these rows of all rows, ascending: those take the default.
    GivenBut(usize, Vec<usize>),
    /// Its default, or NULL.
    Default,
}

impl Source {
    /// The column of what is given, if any.
    pub(crate) fn given(&self) -> Option<usize> {
        match self {
            Self::Given(at) | Self::GivenBut(at, _) => Some(*at),
            Self::Default => None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Expressions {
    table: Arc<TableSchema>,
    /// By position of the column.
    defaults: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// With their names.
    checks: Vec<(String, Arc<dyn PhysicalExpr>)>,
    /// Rows filled so far.
    rows: usize,
}

impl Expressions {
    /// Compiles what `table` has: its checks, and the defaults of the columns that `wanted` names by position.
    ///
    /// # Errors
    /// Whatever is wrong with them: 42703, 42804, 42803, 42P20, 0A000 and so on. A table in the catalog has right ones.
    pub(crate) fn compile(
        env: &mut Environment<'_>,
        transaction: &Transaction,
        table: &Arc<TableSchema>,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        let texts = table.checks.iter().map(|c| c.expression.len());
        let texts = texts.chain(table.columns.iter().filter_map(|c| c.default.as_ref()).map(|text| text.len()));
        with_stored(texts.max().unwrap_or(0), || {
            let defaults = compile_defaults(env, transaction, table, wanted)?;
            let checks = compile_checks(env, transaction, table)?;
            Ok(Self { table: table.clone(), defaults, checks, rows: 0 })
        })
    }

    /// Of `table`, for a statement that inserts nothing.
    pub(crate) fn none(table: &Arc<TableSchema>) -> Self {
        Self { table: table.clone(), defaults: Vec::new(), checks: Vec::new(), rows: 0 }
    }

    /// Whose they are.
    pub(crate) fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// Compiles everything that `table`, which is new or changed, has, and computes its constants: what is wrong shows
    /// here.
    ///
    /// # Errors
    /// As [`Expressions::compile`]; 22P02, 22003 and others for a constant that is no value of its column.
    pub(crate) fn validate(
        env: &mut Environment<'_>,
        transaction: &Transaction,
        table: &Arc<TableSchema>,
    ) -> Result<()> {
        let all = Self::compile(env, transaction, table, |_| true)?;
        for (at, column) in table.columns.iter().enumerate() {
            if let Some(Expr::Value(_)) = column.default.as_deref().map(expression_of).transpose()? {
                all.default(at, column, 1)?;
            }
        }
        Ok(())
    }

    /// The values of all columns for the next `rows` rows: those of `given` as `sources` says, assigned to their
    /// columns, and defaults for the others.
    ///
    /// # Errors
    /// Those of assignment and of evaluation.
    pub(crate) fn fill(
        &mut self,
        transaction: &Transaction,
        given: &[ArrayRef],
        sources: &[Source],
        rows: usize,
    ) -> Result<Vec<ArrayRef>> {
        let mut values = Vec::with_capacity(self.table.columns.len());
        for (at, (column, source)) in self.table.columns.iter().zip(sources).enumerate() {
            let array = source.given().and_then(|at| given.get(at)).map(|array| assign(array, column)).transpose()?;
            values.push(match (array, source) {
                (Some(array), Source::GivenBut(_, cells)) => {
                    let from = cells.partition_point(|row| *row < self.rows);
                    let to = cells.partition_point(|row| *row < self.rows + rows);
                    let mut mask = vec![false; rows];
                    for row in cells.get(from..to).unwrap_or_default() {
                        if let Some(slot) = mask.get_mut(row - self.rows) {
                            *slot = true;
                        }
                    }
                    if from == to {
                        array
                    } else {
                        let missing = match column.identity {
                            Some(_) => self.numbers_at(transaction, column, &mask)?,
                            None => self.default(at, column, rows)?,
                        };
                        zip(&BooleanArray::from(mask), &missing, &array)?
                    }
                }
                (Some(array), _) => array,
                (None, _) => self.missing(transaction, at, column, rows)?,
            });
        }
        self.rows += rows;
        Ok(values)
    }

    /// What the column at `at` has where nothing was given, for `rows` rows.
    fn missing(&self, transaction: &Transaction, at: usize, column: &Column, rows: usize) -> Result<ArrayRef> {
        match column.identity {
            Some(_) => self.numbers(transaction, column, rows),
            None => self.default(at, column, rows),
        }
    }

    /// The next numbers of an identity column.
    ///
    /// # Errors
    /// 2200H when there are no more.
    pub(crate) fn numbers(&self, transaction: &Transaction, column: &Column, rows: usize) -> Result<ArrayRef> {
        let numbers = transaction.next_identity_values(self.table.id, column.id, rows)?;
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        assign(&numbers, column)
    }

    /// The next numbers of an identity column for the rows of `mask`, and anything for the others.
    fn numbers_at(&self, transaction: &Transaction, column: &Column, mask: &[bool]) -> Result<ArrayRef> {
        let wanted = mask.iter().filter(|wanted| **wanted).count();
        let mut numbers = transaction.next_identity_values(self.table.id, column.id, wanted)?.into_iter();
        let numbers = mask.iter().map(|wanted| if *wanted { numbers.next() } else { None });
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(numbers));
        assign(&numbers, column)
    }

    /// The default of the column at `at`, for `rows` rows.
    fn default(&self, at: usize, column: &Column, rows: usize) -> Result<ArrayRef> {
        let Some(expression) = self.defaults.get(at).and_then(Option::as_ref) else {
            return Ok(new_null_array(&column.data_type.arrow(), rows));
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let nothing = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        assign(&evaluate(expression, &nothing)?, column)
    }

    /// `values` of all columns as rows that fulfil the checks.
    ///
    /// # Errors
    /// 23514 and those of evaluation; if there are checks, those of storage for types, NOT NULL and lengths too.
    pub(crate) fn checked(&self, values: Vec<ArrayRef>) -> Result<RecordBatch> {
        let batch = RecordBatch::try_new(nullable_schema(&self.table), values)?;
        if self.checks.is_empty() {
            return Ok(batch);
        }
        let batch = check_batch(&self.table, &batch)?;
        self.check(&batch)?;
        Ok(batch)
    }

    /// Whether there is nothing to be filled in or checked where each column has the values that `sources` says.
    pub(crate) fn take_all(&self, sources: &[Source]) -> bool {
        let is_given = |(at, source): (usize, &Source)| matches!(source, Source::Given(from) if *from == at);
        self.checks.is_empty() && sources.iter().enumerate().all(is_given)
    }

    /// Checks rows that storage has found right.
    ///
    /// # Errors
    /// 23514 for the first check of the first row that has a false one; those of evaluation.
    pub(crate) fn check(&self, batch: &RecordBatch) -> Result<()> {
        let mut first: Option<(usize, &str)> = None;
        for (name, expression) in &self.checks {
            let value = evaluate(expression, batch)?;
            let Some(fulfilled) = value.as_boolean_opt() else { continue };
            if fulfilled.false_count() + fulfilled.null_count() == 0 {
                continue;
            }
            let row = (0..fulfilled.len()).find(|row| fulfilled.is_valid(*row) && !fulfilled.value(*row));
            if let Some(row) = row
                && first.is_none_or(|(before, _)| row < before)
            {
                first = Some((row, name));
            }
        }
        match first {
            None => Ok(()),
            Some((row, name)) => Err(violation(&self.table, name, batch, row)),
        }
    }
}

/// 23514: a row of `batch`, rows of `table` as they would be stored, that does not fulfil check `name`.
pub(crate) fn violation(table: &TableSchema, name: &str, batch: &RecordBatch, row: usize) -> Error {
    Error::constraint(
        sqlstate::CHECK,
        format!(
            "new row for relation \"{}\" violates check constraint \"{name}\"; failing row contains ({})",
            table.name,
            shown(batch, row)
        ),
    )
}

/// A row as messages show it.
fn shown(batch: &RecordBatch, row: usize) -> String {
    let value = |array: &ArrayRef| {
        if array.is_null(row) {
            return "null".to_owned();
        }
        let options = FormatOptions::default();
        let text = ArrayFormatter::try_new(array.as_ref(), &options).map(|f| f.value(row).to_string());
        let text = text.unwrap_or_else(|_| "?".to_owned());
        match text.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text,
        }
    };
    batch.columns().iter().map(value).collect::<Vec<_>>().join(", ")
}

fn evaluate(expression: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<ArrayRef> {
    expression.evaluate(rows).and_then(|value| value.into_array(rows.num_rows())).map_err(|e| from_datafusion(&e))
}

/// The expressions of `query`, a SELECT that computes each of its rows from one row of its tables, or from nothing,
/// over the columns of the tables and, behind them, parameters of the types `parameters`. `None` for what is wrong, or
/// may have another value or type when a literal stands in a parameter's place, or at another time.
pub(crate) fn row_expressions(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    query: Query,
    parameters: &[Option<DataType>],
) -> Option<Vec<PlannedExpression>> {
    let typed = Parameters::typed(parameters);
    env.with_parameters(&typed, |env| {
        let plan = env.plan(transaction, Ast::Query(Box::new(query)), None).ok()?;
        check_projection(&plan, "").ok()?;
        env.row_expressions(plan, parameters)
    })
}

fn plan(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    exprs: Vec<Expr>,
    table: Option<&TableSchema>,
) -> Result<LogicalPlan> {
    env.plan(transaction, Ast::Query(Box::new(select_of(exprs, table)?)), None)
}

/// What the default of `column`, which need not be in a table yet, is now; none without one.
///
/// # Errors
/// As [`Expressions::compile`], and those of evaluation.
pub(super) fn default_now(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    column: &Column,
) -> Result<Option<ArrayRef>> {
    if column.default.is_none() {
        return Ok(None);
    }
    let alone = Arc::new(TableSchema::new(TableId(0), "", vec![column.clone()]));
    let defaults = compile_defaults(env, transaction, &alone, |_| true)?;
    let expressions = Expressions { defaults, ..Expressions::none(&alone) };
    expressions.default(0, column, 1).map(Some)
}

fn compile_defaults(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    table: &Arc<TableSchema>,
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Option<Arc<dyn PhysicalExpr>>>> {
    let mut compiled = vec![None; table.columns.len()];
    let (mut places, mut exprs) = (Vec::new(), Vec::new());
    for (at, column) in table.columns.iter().enumerate().filter(|(at, _)| wanted(*at)) {
        if let Some(text) = &column.default {
            places.push((at, column));
            exprs.push(expression_of(text)?);
        }
    }
    if places.is_empty() {
        return Ok(compiled);
    }
    let plan = plan(env, transaction, exprs, None)?;
    check_projection(&plan, "DEFAULT expressions")?;
    let literals = literal_columns(&plan);
    for (number, (_, column)) in places.iter().enumerate() {
        let literal = literals.get(number).copied().unwrap_or(false);
        check_assignment(plan.schema().field(number).data_type(), literal, column)?;
    }
    for ((at, _), expression) in places.iter().zip(env.expressions(plan)?) {
        if let Some(slot) = compiled.get_mut(*at) {
            *slot = Some(expression);
        }
    }
    Ok(compiled)
}

fn compile_checks(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    table: &Arc<TableSchema>,
) -> Result<Vec<(String, Arc<dyn PhysicalExpr>)>> {
    if table.checks.is_empty() {
        return Ok(Vec::new());
    }
    let exprs = table.checks.iter().map(|c| expression_of(&c.expression)).collect::<Result<_>>()?;
    let plan = plan(env, transaction, exprs, Some(table))?;
    check_projection(&plan, "check constraints")?;
    for (field, check) in plan.schema().fields().iter().zip(&table.checks) {
        if !matches!(field.data_type(), ArrowType::Boolean | ArrowType::Null) {
            return Err(Error::invalid(
                sqlstate::TYPE_MISMATCH,
                format!(
                    "argument of CHECK \"{}\" must be type boolean, not type {}",
                    check.name,
                    sql_words(&field.data_type().to_string()).to_lowercase()
                ),
            ));
        }
    }
    let names = table.checks.iter().map(|check| check.name.clone());
    Ok(names.zip(env.expressions(plan)?).collect())
}
