//! What a statement's tree is compiled with: the table, the types of parameters, and the planner for what is more than
//! simple.

use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::{DataType, TableSchema};

use crate::exec::PlannedExpression;

/// What a compiler knows: the table, how the statement calls it, and the types of its parameters.
#[derive(Clone, Copy)]
pub(super) struct Compiler<'a> {
    pub(super) schema: &'a TableSchema,
    /// The columns of the key that rows are found by.
    pub(super) key_columns: &'a [ColumnId],
    /// The alias, or the table's name.
    pub(super) qualifier: &'a str,
    /// What the statement calls the table whose columns stand behind the first ones, in a join, and how many those are.
    pub(super) inner: Option<(&'a str, usize)>,
    /// Columns whose values are known where rows are looked for: those of the outer side of a join, the first ones.
    pub(super) known: usize,
    pub(super) parameters: &'a [Option<DataType>],
    /// Compiles what is more than simple.
    pub(super) planning: &'a dyn Planning,
    /// Set when something asks for the time.
    pub(super) reads_clock: &'a Cell<bool>,
    /// In the update arm of ON CONFLICT, where the row that was to come stands beside the one that is there, so that
    /// names need a qualifier.
    pub(super) in_arm: bool,
}

/// Compiles expressions as plans do.
pub(crate) trait Planning {
    /// The expressions of `query`, a SELECT that reads the columns of its tables row by row, over those columns and
    /// behind them parameters of the types `parameters`; `None` for what is wrong, or depends on more than its row.
    fn expressions(&self, query: Query, parameters: &[Option<DataType>]) -> Option<Vec<PlannedExpression>>;
}

/// Compiles none, and says whether it was asked to.
#[derive(Debug, Default)]
pub(crate) struct Unplanned(Cell<bool>);

impl Unplanned {
    /// Whether an expression was to be compiled.
    pub(crate) fn was_asked(&self) -> bool {
        self.0.get()
    }
}

impl Planning for Unplanned {
    fn expressions(&self, _: Query, _: &[Option<DataType>]) -> Option<Vec<PlannedExpression>> {
        self.0.set(true);
        None
    }
}

/// The parts of `expr` that AND connects.
pub(super) fn conjuncts<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match unnested(expr) {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, out);
            conjuncts(right, out);
        }
        other => out.push(other),
    }
}

/// `expr` without the parentheses around it.
pub(super) fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}
