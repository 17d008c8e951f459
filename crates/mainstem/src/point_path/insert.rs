//! INSERT of VALUES: what each column of each row takes, and the rows that come of it.
//!
//! Comes in: rows of expressions, DEFAULTs, OVERRIDING. Goes out: rows as the table stores them, or the error that the
//! plan would give for them.
//!
//! 1. A column that is given nothing takes its default, its next number, or NULL.
//! 2. Numbers are drawn when all other values are known, so that a statement that is planned after all mostly draws
//!    them once; one whose CHECK, RETURNING or update arm needs the plan leaves a gap.
//! 3. Rows that the table refuses are put into a batch, of which storage, and then the checks, say what is wrong, as
//!    they do of a plan's rows: which of several errors comes first is the same.

use arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast::{Expr, Value as Literal};
use mainstem_storage::row::{RowBuffer, Value, array_of, check_batch};
use mainstem_storage::schema::Identity;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::conflict::or_planned;
use super::expression::{Expression, Node};
use super::planning::{Compiler, Unplanned, unnested};
use super::values::Given;
use super::{Answer, Numbered, Short, Values};
use crate::plan;
use crate::sql::{DefaultCells, Insert, Overriding, expression_of};

/// Rows of a statement that is refused; more of them are for the plan, which takes them in batches.
const REFUSED_ROWS_MAX: usize = 1_000;

impl Compiler<'_> {
    /// The rows of `insert`, and the numbers that they take.
    pub(super) fn values(&self, insert: &Insert) -> Option<Values> {
        let selected = insert.plain_select();
        let given: Vec<Vec<&Expr>> = match &selected {
            Some(row) => vec![row.clone()],
            None => insert.plain_values()?.into_iter().map(|row| row.iter().collect()).collect(),
        };
        let width = given.first()?.len();
        let fits =
            if insert.columns.is_empty() { width <= self.schema.columns.len() } else { width == insert.columns.len() };
        if !fits || given.iter().any(|row| row.len() != width) {
            return None;
        }
        if !insert.columns.iter().all(|name| self.schema.column_named(name).is_some()) {
            return None;
        }
        // The types of one row of VALUES follow those of the others.
        let unplanned = Unplanned::default();
        let alone = if given.len() == 1 { *self } else { Compiler { planning: &unplanned, ..*self } };
        let mut rows = vec![Vec::with_capacity(self.schema.columns.len()); given.len()];
        let mut numbers = Vec::new();
        for (at, column) in self.schema.columns.iter().enumerate() {
            let source = match insert.columns.iter().position(|name| *name == column.name) {
                None if insert.columns.is_empty() => (at < width).then_some(at),
                named => named,
            };
            let cell = |number: usize| {
                let source = source.filter(|source| !is_default_cell(insert, *source, number))?;
                given.get(number).and_then(|row| row.get(source)).copied()
            };
            // A literal of a SELECT is a text, whatever it spells.
            if selected.is_some() && !column.data_type.is_text() && cell(0).is_some_and(is_text) {
                return None;
            }
            let is_ignored = match (column.identity, insert.overriding) {
                // What is given there is not even converted.
                (Some(_), Some(Overriding::User)) => {
                    if !(0..given.len()).filter_map(cell).all(is_literal) {
                        return None;
                    }
                    true
                }
                // An error, which the plan has.
                (Some(Identity { always: true, .. }), None) if (0..given.len()).any(|row| cell(row).is_some()) => {
                    return None;
                }
                _ => false,
            };
            // The default of a column that is always given may be anything.
            let all_given = (0..given.len()).all(|row| cell(row).is_some()) && !is_ignored;
            let missing = if all_given { self.null(at)? } else { self.missing(at)? };
            let mut numbered = Numbered { at, column: column.id, rows: 0 };
            for (number, row) in rows.iter_mut().enumerate() {
                row.push(match cell(number).filter(|_| !is_ignored) {
                    Some(expr) => alone.assigned(expr, at, false)?,
                    None => {
                        numbered.rows += usize::from(missing.node == Node::Number);
                        missing.clone()
                    }
                });
            }
            numbers.extend((numbered.rows > 0).then_some(numbered));
        }
        Some(Values { rows, numbers })
    }

    /// What the column at `at` takes where nothing is given for it.
    fn missing(&self, at: usize) -> Option<Expression> {
        let column = self.schema.columns.get(at)?;
        match (column.identity, &column.default) {
            (Some(_), _) => Some(Expression { node: Node::Number, data_type: column.data_type }),
            (None, Some(text)) => self.assigned(&expression_of(text).ok()?, at, false),
            (None, None) => self.null(at),
        }
    }

    fn null(&self, at: usize) -> Option<Expression> {
        let data_type = self.schema.columns.get(at)?.data_type;
        Some(Expression { node: Node::Literal(Value::Null), data_type })
    }
}

/// Whether column `source` of row `number` of VALUES is the keyword DEFAULT.
fn is_default_cell(insert: &Insert, source: usize, number: usize) -> bool {
    match &insert.defaults {
        DefaultCells::All => true,
        DefaultCells::Of(cells) => cells.get(&source).is_some_and(|rows| rows.binary_search(&number).is_ok()),
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(unnested(expr), Expr::Value(value) if matches!(value.value, Literal::SingleQuotedString(_)))
}

fn is_literal(expr: &Expr) -> bool {
    matches!(unnested(expr), Expr::Value(value) if !matches!(value.value, Literal::Placeholder(_)))
}

impl Short {
    /// Runs an INSERT of one row as a transaction of its own.
    pub(super) fn insert_alone(&self, transaction: Transaction, values: &Values, given: Given<'_>) -> Result<Answer> {
        let Some(new) = self.coming(&transaction, values, given)? else { return Ok(Answer::NotShort) };
        let mut key = Vec::with_capacity(16);
        let has_key = new.rows().next().is_some_and(|row| self.table.encode_key_of(row, &mut key));
        let Some(answer) = self.written(&new, given) else { return Ok(Answer::NotShort) };
        let view = self.view(&transaction)?;
        if !has_key {
            return transaction.insert_rows(&self.table, &view, new).map(|_| answer);
        }
        transaction.check_free(&self.table, &view, &key)?;
        transaction.write_row(&self.table, &view, &key, None, new)?;
        Ok(answer)
    }

    /// The same of several.
    pub(super) fn insert_rows_alone(
        &self,
        transaction: Transaction,
        values: &Values,
        given: Given<'_>,
    ) -> Result<Answer> {
        let Some(new) = self.coming(&transaction, values, given)? else { return Ok(Answer::NotShort) };
        let Some(answer) = self.written(&new, given) else { return Ok(Answer::NotShort) };
        let view = self.view(&transaction)?;
        transaction.insert_rows(&self.table, &view, new).map(|_| answer)
    }

    /// The rows of VALUES, which fulfil the checks; `None` where only a plan knows.
    ///
    /// # Errors
    /// Those that a plan would give for these rows.
    pub(super) fn coming(
        &self,
        transaction: &Transaction,
        values: &Values,
        given: Given<'_>,
    ) -> Result<Option<RowBuffer>> {
        let mut coming = self.table.new_rows();
        if values.numbers.is_empty() {
            for row in &values.rows {
                match or_planned(push(&mut coming, row, given))? {
                    Some(true) => {}
                    Some(false) => return Ok(None),
                    None => return self.refused(&evaluated(&values.rows, given)),
                }
            }
        } else {
            let Some(mut rows) = evaluated(&values.rows, given) else { return Ok(None) };
            self.draw(transaction, values, &mut rows)?;
            for row in &rows {
                if or_planned(coming.push_values(row))?.is_none() {
                    return self.refused(&Some(rows));
                }
            }
        }
        Ok(self.passes(&coming)?.then_some(coming))
    }

    /// Puts numbers where `values` says.
    fn draw(&self, transaction: &Transaction, values: &Values, rows: &mut [Vec<Value>]) -> Result<()> {
        for Numbered { at, column, rows: wanted } in &values.numbers {
            let mut drawn = transaction.next_identity_values(self.table.schema().id, *column, *wanted)?.into_iter();
            for (row, expressions) in rows.iter_mut().zip(&values.rows) {
                if expressions.get(*at).is_some_and(|expression| expression.node == Node::Number)
                    && let Some(slot) = row.get_mut(*at)
                {
                    let number = drawn.next().ok_or_else(|| Error::internal("too few numbers were drawn"))?;
                    *slot = Value::Int(number);
                }
            }
        }
        Ok(())
    }

    /// What is wrong with `rows`, values of the columns' types that a row cannot have; only a plan knows if storage
    /// takes them.
    fn refused(&self, rows: &Option<Vec<Vec<Value>>>) -> Result<Option<RowBuffer>> {
        let Some(rows) = rows.as_ref().filter(|rows| rows.len() <= REFUSED_ROWS_MAX) else { return Ok(None) };
        let schema = self.table.schema();
        let arrays = schema.columns.iter().enumerate();
        let arrays = arrays.map(|(at, column)| array_of(rows.iter().filter_map(|row| row.get(at)), column.data_type));
        let batch = RecordBatch::try_new(plan::nullable_schema(schema), arrays.collect::<Result<_>>()?)?;
        check_batch(schema, &batch).map(|_| None)
    }
}

/// The values of `rows`; NULL for numbers that are not drawn yet. `None` where only a plan knows.
fn evaluated(rows: &[Vec<Expression>], given: Given<'_>) -> Option<Vec<Vec<Value>>> {
    let scope = given.scope();
    let value = |expression: &Expression| match expression.node {
        Node::Number => Some(Value::Null),
        _ => expression.evaluate(scope),
    };
    rows.iter().map(|row| row.iter().map(value).collect()).collect()
}

/// Appends a row of VALUES to `rows`; false, and nothing is appended, where only a plan knows.
fn push(rows: &mut RowBuffer, row: &[Expression], given: Given<'_>) -> Result<bool> {
    let scope = given.scope();
    let whole = |position: usize| match &row.get(position)?.node {
        Node::Stored(at, stored_as) => stored_as.whole(*given.parameters.get(*at)?),
        _ => None,
    };
    let value = |position: usize| {
        let expression = row.get(position)?;
        match &expression.node {
            Node::Stored(at, stored_as) => stored_as.value(*given.parameters.get(*at)?),
            _ => expression.evaluate(scope),
        }
    };
    rows.push_row_of(whole, value)
}
