//! Columns and operators of comparisons, as the store has them.

use datafusion::logical_expr::{Expr, Operator};
use mainstem_storage::predicate::CompareOp;
use mainstem_storage::schema::{Column, TableSchema};

/// The column of `schema` that `expr` is.
pub(super) fn column<'a>(expr: &Expr, schema: &'a TableSchema) -> Option<&'a Column> {
    match expr {
        Expr::Column(column) => schema.column_named(&column.name),
        _ => None,
    }
}

/// The operator that means the same with its operands exchanged.
pub(super) fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::LtEq => CompareOp::GtEq,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::GtEq => CompareOp::LtEq,
        CompareOp::Eq | CompareOp::NotEq => op,
    }
}

/// The store's operator for `op`.
pub(super) fn compare_op(op: Operator) -> Option<CompareOp> {
    Some(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::NotEq,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::LtEq,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}
