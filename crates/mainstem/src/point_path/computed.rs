//! Expressions for which short statements have no node of their own: compiled by the planner, once, and evaluated over
//! one row.
//!
//! Comes in: the tree of an expression. Goes out: what a plan would evaluate in its place, and its value for a row.
//!
//! 1. A SELECT of the expression, from the table as the statement calls it, is planned, and analyzed by the same rules
//!    as every query ([`super::Planning`]). Its columns are those of the row that is there, then those of the row that
//!    was to come, then the parameters.
//! 2. The row's values become arrays of one row, as many as the expression reads.
//!
//! Invariants: nothing is compiled that has another value, or another type, when a parameter is a literal, or at
//! another time. An error of evaluation is the plan's to tell: it has a statement around it that may never come to
//! evaluate the expression.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::sql::sqlparser::ast::SelectItem;
use mainstem_postgres::cast::{assign, check_assignment};
use mainstem_postgres::types::field_type;
use mainstem_storage::row::{Value, array_of, value_of};
use mainstem_storage::schema::{self, DataType};

use super::planning::Compiler;
use super::values::{Scope, value_of_parameter};
use crate::exec::PlannedExpression;
use crate::sql::{EXCLUDED, has_query, select_over};
use crate::value::{ValueRef, stored_array};

/// See the module.
#[derive(Clone)]
pub(super) struct Computed {
    field: FieldRef,
    expression: Arc<dyn PhysicalExpr>,
    is_volatile: bool,
    /// What it reads, and where that comes from.
    input: SchemaRef,
    sources: Arc<[Source]>,
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Computed({})", self.expression)
    }
}

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.expression, &other.expression)
    }
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The column at this position of the row that is there.
    There(usize, DataType),
    /// The column at this position of the row that was to come.
    Coming(usize, DataType),
    Parameter(usize, DataType),
}

impl Compiler<'_> {
    /// The one expression `item`, over the row that is there and, in the update arm, the one that was to come; without
    /// `of_row` over none.
    pub(super) fn computed(&self, item: SelectItem, of_row: bool) -> Option<Computed> {
        // Planned in vain, often at some length.
        if has_query(&item) {
            return None;
        }
        let aliases: &[&str] = match (of_row, self.in_arm) {
            (false, _) => &[],
            (true, false) => &[self.qualifier],
            (true, true) => &[self.qualifier, EXCLUDED],
        };
        let query = select_over(vec![item], self.schema, aliases).ok()?;
        let [planned] = <[_; 1]>::try_from(self.planning.expressions(query, self.parameters)?).ok()?;
        Computed::new(planned, self.schema, aliases.len(), self.parameters)
    }
}

impl Computed {
    fn new(
        planned: PlannedExpression,
        table: &schema::TableSchema,
        rows: usize,
        parameters: &[Option<DataType>],
    ) -> Option<Self> {
        let PlannedExpression { field, expression, is_volatile, columns } = planned;
        let width = table.columns.len();
        if columns != rows * width {
            return None;
        }
        let (mut fields, mut sources) = (Vec::new(), Vec::new());
        let mut places: Vec<usize> = Vec::new();
        let compact = expression.transform(|expression| {
            let Some(column) = expression.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expression));
            };
            let at = column.index();
            let place = places.iter().position(|known| *known == at).unwrap_or_else(|| {
                places.push(at);
                places.len() - 1
            });
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
        });
        let expression = compact.ok()?.data;
        for at in places {
            let (source, data_type) = match (at / width.max(1), at % width.max(1)) {
                (0, at) if rows > 0 => {
                    let data_type = table.columns.get(at)?.data_type;
                    (Source::There(at, data_type), data_type)
                }
                (1, at) if rows > 1 => {
                    let data_type = table.columns.get(at)?.data_type;
                    (Source::Coming(at, data_type), data_type)
                }
                _ => {
                    let at = at.checked_sub(rows * width)?;
                    let data_type = (*parameters.get(at)?)?;
                    (Source::Parameter(at, data_type), data_type)
                }
            };
            fields.push(data_type.field(at.to_string(), true));
            sources.push(source);
        }
        let input = Arc::new(Schema::new(fields));
        Some(Self { field, expression, is_volatile, input, sources: sources.into() })
    }

    /// Its name and type in a result.
    pub(super) fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Whether its value is known without a row, and always the same.
    pub(super) fn is_constant(&self) -> bool {
        self.sources.is_empty() && !self.is_volatile
    }

    /// Whether it has another value each time.
    pub(super) fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// Whether it reads a parameter that is NULL: a plan knows no type of that one.
    fn reads_null(&self, scope: Scope<'_>) -> bool {
        let is_null = |at: usize| matches!(scope.parameters.get(at), Some(ValueRef::Null));
        self.sources.iter().any(|source| matches!(source, Source::Parameter(at, _) if is_null(*at)))
    }

    /// Whether a plan would assign it to `column`, being no string literal.
    pub(super) fn is_assignable(&self, column: &schema::Column) -> bool {
        check_assignment(self.field.data_type(), false, column).is_ok()
    }

    fn evaluate(&self, scope: Scope<'_>) -> Option<ArrayRef> {
        let value = |source: &Source| match *source {
            Source::There(at, data_type) => array_of(std::iter::once(scope.row.get(at)?), data_type).ok(),
            Source::Coming(at, data_type) => {
                let value = scope.coming?.value(at);
                array_of(std::iter::once(&value), data_type).ok()
            }
            Source::Parameter(at, data_type) => {
                let value = value_of_parameter(*scope.parameters.get(at)?, data_type)?;
                array_of(std::iter::once(&value), data_type).ok()
            }
        };
        let arrays = self.sources.iter().map(value).collect::<Option<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(self.input.clone(), arrays, &options).ok()?;
        self.expression.evaluate(&row).and_then(|value| value.into_array(1)).ok()
    }

    /// Its value as one of `column`; `None` where only a plan knows.
    pub(super) fn assigned(&self, scope: Scope<'_>, column: &schema::Column) -> Option<Value> {
        if self.reads_null(scope) {
            return None;
        }
        let array = assign(&self.evaluate(scope)?, column).ok()?;
        value_of(array.as_ref(), column.data_type, 0).ok()
    }

    /// Its value in a result, where its type is `data_type`; `None` where only a plan knows.
    pub(super) fn value(&self, scope: Scope<'_>, data_type: DataType) -> Option<Value> {
        if self.reads_null(scope) {
            return None;
        }
        let array = stored_array(&self.evaluate(scope)?, data_type).ok()?;
        value_of(array.as_ref(), data_type, 0).ok()
    }

    /// Its type in a result; `None` for types that no column has, or has in another form.
    pub(super) fn data_type(&self) -> Option<DataType> {
        field_type(&self.field).filter(|data_type| data_type.arrow() == *self.field.data_type())
    }
}
