//! Expressions that a scan evaluates itself, row filters of the store: what is no predicate of the store's.
//!
//! Comes in: the condition of a filter over a scan. Goes out: its conjuncts as filters on columns of the table. All
//! that may fail are one filter, in their order, which is asked last; what guards them is a filter of its own, too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction, split_conjunction};
use mainstem_postgres::registry::{Fails, fails};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::scan::RowFilter;

use crate::error::from_datafusion;

/// See the module.
#[derive(Debug)]
pub(super) struct ExpressionFilter {
    expr: Arc<dyn PhysicalExpr>,
    columns: Vec<ColumnId>,
    /// Of the columns.
    schema: SchemaRef,
    is_total: bool,
}

impl ExpressionFilter {
    /// The filters whose conjunction is `condition`, an expression over rows of `schema`, whose column `at` is the
    /// table's column `column_at(at)`; `None` where it needs another one, or an expression that is not evaluated from a
    /// row alone.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn conjuncts(
        condition: &Arc<dyn PhysicalExpr>,
        schema: &Schema,
        column_at: impl Fn(usize) -> Option<ColumnId>,
    ) -> Result<Option<Vec<Self>>> {
        if !is_of_row(condition) {
            return Ok(None);
        }
        let is_total = |expr: &&Arc<dyn PhysicalExpr>| {
            let is_boolean = expr.data_type(schema).is_ok_and(|data_type| data_type == DataType::Boolean);
            is_boolean && is_total(expr, schema)
        };
        let (mut total, failing): (Vec<_>, Vec<_>) = split_conjunction(condition).into_iter().partition(is_total);
        // What guards an expression that may fail has to be true, too.
        let guards = failing.iter().filter_map(|expr| guard(expr)).flat_map(split_conjunction);
        total.extend(guards.filter(is_total));
        let failing = (!failing.is_empty()).then(|| conjunction(failing.into_iter().cloned()));
        let filters = total.into_iter().cloned().map(|expr| (expr, true));
        let filters = filters.chain(failing.map(|expr| (expr, false)));
        filters.map(|(expr, is_total)| Self::new(expr, is_total, schema, &column_at)).collect()
    }

    fn new(
        expr: Arc<dyn PhysicalExpr>,
        is_total: bool,
        schema: &Schema,
        column_at: impl Fn(usize) -> Option<ColumnId>,
    ) -> Result<Option<Self>> {
        let mut used: Vec<usize> = collect_columns(&expr).iter().map(Column::index).collect();
        used.sort_unstable();
        used.dedup();
        let Some(columns) = used.iter().map(|at| column_at(*at)).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let expr = expr.transform(|expr| {
            let at = expr.downcast_ref::<Column>().and_then(|column| used.binary_search(&column.index()).ok());
            Ok(match (expr.downcast_ref::<Column>(), at) {
                (Some(column), Some(at)) => Transformed::yes(Arc::new(Column::new(column.name(), at)) as _),
                _ => Transformed::no(expr),
            })
        });
        // Among the entries of a column is NULL, whether a row has it or not.
        let schema = schema.project(&used)?;
        let fields = schema.fields.iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Some(Self { expr: expr.data()?, columns, schema, is_total }))
    }

    fn evaluate(&self, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let answer = self.expr.evaluate(&batch)?.into_array(rows)?;
        let answer = as_boolean_array(&answer)?;
        Ok(match answer.nulls() {
            Some(nulls) if nulls.null_count() > 0 => answer.values() & nulls.inner(),
            _ => answer.values().clone(),
        })
    }
}

impl RowFilter for ExpressionFilter {
    fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    fn is_total(&self) -> bool {
        self.is_total
    }

    fn select(&self, rows: usize, columns: Vec<ArrayRef>) -> mainstem_storage::Result<BooleanBuffer> {
        self.evaluate(rows, columns).map_err(|e| from_datafusion(&e))
    }
}

/// The condition that `expr` asks before another one: `CASE WHEN guard THEN other ELSE false END`, as
/// `optimize::short_circuit` writes AND.
fn guard(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    let case = expr.downcast_ref::<CaseExpr>().filter(|case| case.expr().is_none())?;
    let otherwise = case.else_expr()?.downcast_ref::<Literal>()?;
    let is_false = *otherwise.value() == ScalarValue::Boolean(Some(false));
    let [(guard, _)] = case.when_then_expr() else { return None };
    is_false.then_some(guard)
}

/// Whether `expr` is made of expressions that a row's values decide: not of subqueries, which somebody else fills in.
fn is_of_row(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_known = expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<BinaryExpr>()
        || expr.is::<LikeExpr>()
        || expr.is::<CastExpr>()
        || expr.is::<NegativeExpr>()
        || expr.is::<NotExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<CaseExpr>()
        || expr.is::<ScalarFunctionExpr>();
    is_known && expr.children().into_iter().all(is_of_row)
}

/// Whether `expr` has an answer for all values: what this does not know is taken to fail.
pub(crate) fn is_total(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let is_literal = |expr: &Arc<dyn PhysicalExpr>| expr.is::<Literal>();
    let is_known = if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        match binary.op() {
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
            | Operator::And
            | Operator::Or => true,
            Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch => {
                is_pattern(binary.right())
            }
            _ => false,
        }
    } else if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        is_literal(like.pattern())
    } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        cast.expr().data_type(schema).is_ok_and(|from| is_widening(&from, cast.cast_type()))
    } else if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        matches!(fails(call.fun()), Fails::Never)
    } else {
        expr.is::<Column>()
            || expr.is::<Literal>()
            || expr.is::<NotExpr>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsNotNullExpr>()
            || expr.is::<InListExpr>()
            || expr.is::<CaseExpr>()
    };
    is_known && expr.children().into_iter().all(|child| is_total(child, schema))
}

/// Whether `expr` is a regular expression that is one.
fn is_pattern(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = expr.downcast_ref::<Literal>();
    let pattern = literal.and_then(|literal| literal.value().try_as_str());
    pattern.is_some_and(|pattern| pattern.is_none_or(|pattern| regex::Regex::new(pattern).is_ok()))
}

/// Whether every value of type `from` is one of type `to`.
fn is_widening(from: &DataType, to: &DataType) -> bool {
    let is_text = |data_type: &DataType| data_type.is_string();
    (is_text(from) && is_text(to))
        || matches!(
            (from, to),
            (DataType::Int16, DataType::Int32 | DataType::Int64 | DataType::Float64)
                | (DataType::Int32, DataType::Int64 | DataType::Float64)
                | (DataType::Float32, DataType::Float64)
        )
}
