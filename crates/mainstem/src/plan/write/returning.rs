//! RETURNING: a SELECT over the rows a statement wrote.
//!
//! INSERT and UPDATE show the new row as it is stored, DELETE the old one, beside what FROM or USING found for it. The
//! rows are kept, within the query's memory, until the statement has come to its end: an error in RETURNING undoes all
//! of it.

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::Column;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr as AstExpr, Ident, Statement as Ast};
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::stand_in::StandIn;
use crate::error::from_datafusion;
use crate::exec::{Environment, Rows};
use crate::names::without_mark;
use crate::plan::shown;
use crate::sql::Target;

/// Where a column comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Of the row written: position in the table.
    Written(usize),
    /// Of what the statement's SELECT carries along: position there.
    Carried(usize),
}

/// RETURNING of a running statement.
#[derive(Debug)]
pub(super) struct Returning {
    plan: LogicalPlan,
    stand_in: StandIn,
    origins: Vec<Origin>,
    carried: Vec<Column>,
    rows: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl Returning {
    /// Plans it, if the statement has it. With `old` the values of the row are carried by the statement's SELECT as
    /// well.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub(super) fn plan(
        env: &mut Environment<'_>,
        transaction: &Transaction,
        target: &Target,
        table: &TableSchema,
        old: bool,
    ) -> Result<Option<Self>> {
        let Some(select) = target.returning(table)? else { return Ok(None) };
        let plan = env.plan(transaction, Ast::Query(Box::new(select)), None)?;
        let stand_in = StandIn::of(&plan, "RETURNING")?;
        let qualifier = target.qualifier_name();
        let mut carried: Vec<Column> = Vec::new();
        let mut origins = Vec::with_capacity(stand_in.columns().len());
        for column in stand_in.columns() {
            let of_target =
                column.relation.as_ref().is_some_and(|relation| without_mark(relation.table()) == qualifier);
            let position = table.columns.iter().position(|c| c.name == column.name);
            origins.push(match position {
                Some(position) if of_target && !old => Origin::Written(position),
                _ => {
                    carried.push(column.clone());
                    Origin::Carried(carried.len() - 1)
                }
            });
        }
        let memory = env.reservation("RETURNING");
        Ok(Some(Self { plan, stand_in, origins, carried, rows: Vec::new(), memory }))
    }

    /// What the statement's SELECT has to carry along.
    pub(super) fn carried(&self) -> Vec<AstExpr> {
        let ident = |name: &str| Ident::with_quote('"', name);
        let expr = |column: &Column| match &column.relation {
            Some(relation) => {
                AstExpr::CompoundIdentifier(vec![ident(without_mark(relation.table())), ident(&column.name)])
            }
            None => AstExpr::Identifier(ident(&column.name)),
        };
        self.carried.iter().map(expr).collect()
    }

    /// Keeps rows: `written` are the values of all columns of the table, `carried` those that were carried along.
    ///
    /// # Errors
    /// 53200.
    pub(super) fn keep(&mut self, written: &[ArrayRef], carried: &[ArrayRef], rows: usize) -> Result<()> {
        let value = |origin: &Origin| match origin {
            Origin::Written(at) => written.get(*at),
            Origin::Carried(at) => carried.get(*at),
        };
        let values = self.origins.iter().map(|origin| value(origin).cloned());
        let values =
            values.collect::<Option<Vec<_>>>().ok_or_else(|| Error::internal("a column of RETURNING is lost"))?;
        let batch = self.stand_in.batch(values, rows)?;
        self.memory.try_grow(batch.get_array_memory_size()).map_err(|e| from_datafusion(&e))?;
        self.rows.push(batch);
        Ok(())
    }

    /// The statement's rows.
    ///
    /// # Errors
    /// Those of its expressions, 53200.
    pub(super) fn finish(self, env: &mut Environment<'_>) -> Result<Rows> {
        let plan = shown(self.stand_in.plan(&self.plan, self.rows)?)?;
        let running = env.start_in_order(&plan)?;
        let schema = running.schema;
        let memory = env.reservation("RETURNING");
        let mut batches = Vec::new();
        for batch in running.batches {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size()).map_err(|e| from_datafusion(&e))?;
            batches.push(batch);
        }
        Ok(Rows::Ready { schema, batches, memory: Some(memory) })
    }
}
