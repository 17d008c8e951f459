//! `generate_series(start, stop, step)` of dates and timestamps, in FROM; that of whole numbers, of any width, is
//! DataFusion's.
//!
//! Values are timestamps, of the bounds' type; those of dates are TIMESTAMPTZ, as in PostgreSQL. They are made as they
//! are read, one batch after another. It does not own: the steps ([`TimestampSeries`]).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::{LazyBatchGenerator, LazyMemoryExec};
use mainstem_postgres::cast::convert;
use mainstem_postgres::error::external;
use mainstem_postgres::function::TimestampSeries;
use mainstem_postgres::sqlstate::UNDEFINED_FUNCTION;
use mainstem_postgres::types::{INTERVAL, TIMESTAMP, is_datetime};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;
use parking_lot::RwLock;

/// `theirs` with dates and timestamps.
#[derive(Debug)]
pub(crate) struct GenerateSeries {
    pub(crate) theirs: Arc<dyn TableFunctionImpl>,
}

impl TableFunctionImpl for GenerateSeries {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let exprs: Vec<Expr> = args.exprs().iter().map(known).collect();
        match exprs.as_slice() {
            [Expr::Literal(start, _), Expr::Literal(stop, _), Expr::Literal(step, _)]
                if is_datetime(&start.data_type()) || is_datetime(&stop.data_type()) =>
            {
                Ok(Arc::new(DateTimeSeries::new(start, stop, step)?))
            }
            exprs if exprs.iter().any(is_fraction) => {
                let message = "function generate_series does not exist for numbers that are not whole";
                Err(external(Error::invalid(UNDEFINED_FUNCTION, message)))
            }
            exprs => self.theirs.call_with_args(TableFunctionArgs::new(exprs, args.session())),
        }
    }
}

/// Whether `expr` is a number of a type that has digits behind the point.
fn is_fraction(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(number, _) if number.data_type().is_decimal() || number.data_type().is_floating())
}

/// `expr`, a whole number in 64 bits if it is one: DataFusion takes no other for a number, nor a NULL of a type. A
/// parameter of a statement that is only prepared is a NULL.
fn known(expr: &Expr) -> Expr {
    let literal = match expr {
        Expr::Literal(number, _) if number.data_type().is_signed_integer() && number.is_null() => {
            Some(ScalarValue::Null)
        }
        Expr::Literal(number, _) if number.data_type().is_signed_integer() => number.cast_to(&DataType::Int64).ok(),
        expr if expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_)))).unwrap_or(false) => {
            let of = expr.get_type(&DFSchema::empty()).ok().filter(is_datetime);
            of.map_or(Some(ScalarValue::Null), |of| ScalarValue::try_from(of).ok())
        }
        _ => None,
    };
    literal.map_or_else(|| expr.clone(), |literal| Expr::Literal(literal, None))
}

#[derive(Debug)]
struct DateTimeSeries {
    schema: SchemaRef,
    /// None if one of the arguments is NULL: there are no values.
    bounds: Option<TimestampSeries>,
}

impl DateTimeSeries {
    fn new(start: &ScalarValue, stop: &ScalarValue, step: &ScalarValue) -> Result<Self> {
        let (of_start, of_stop) = (start.data_type(), stop.data_type());
        let is_timestamp = |t: &DataType| matches!(t, DataType::Timestamp(_, None));
        let is_instant = |t: &DataType| matches!(t, DataType::Timestamp(_, Some(_)));
        let is_local =
            (is_timestamp(&of_start) || is_timestamp(&of_stop)) && !is_instant(&of_start) && !is_instant(&of_stop);
        let of_values = if is_local { SqlType::Timestamp } else { SqlType::TimestampTz };
        let micros = |bound: &ScalarValue| -> Result<Option<i64>> {
            let value = convert(&bound.to_array()?, of_values).map_err(external)?;
            match ScalarValue::try_from_array(&value, 0)?.cast_to(&TIMESTAMP)? {
                ScalarValue::TimestampMicrosecond(micros, _) => Ok(micros),
                _ => Ok(None),
            }
        };
        let step = match step.cast_to(&INTERVAL)? {
            ScalarValue::IntervalMonthDayNano(step) => step,
            _ => None,
        };
        let bounds = match (micros(start)?, micros(stop)?, step) {
            (Some(start), Some(stop), Some(step)) => Some(TimestampSeries::new(start, stop, step)?),
            _ => None,
        };
        let schema = Arc::new(Schema::new(vec![Field::new("value", of_values.arrow(), false)]));
        Ok(Self { schema, bounds })
    }
}

#[async_trait]
impl TableProvider for DateTimeSeries {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = state.config_options().execution.batch_size.get();
        let values = Values {
            schema: self.schema.clone(),
            bounds: self.bounds,
            next: self.bounds.and_then(|series| series.first()),
            rows,
        };
        let values: Arc<RwLock<dyn LazyBatchGenerator>> = Arc::new(RwLock::new(values));
        let plan = LazyMemoryExec::try_new(self.schema(), vec![values])?.with_projection(projection.cloned());
        Ok(Arc::new(plan))
    }
}

/// The values that are still to come.
#[derive(Clone, Debug)]
struct Values {
    schema: SchemaRef,
    bounds: Option<TimestampSeries>,
    next: Option<i64>,
    rows: usize,
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("generate_series")
    }
}

impl LazyBatchGenerator for Values {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn generate_next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(bounds) = self.bounds else { return Ok(None) };
        let mut values = Vec::new();
        while values.len() < self.rows
            && let Some(value) = self.next
        {
            values.push(value);
            self.next = bounds.after(value)?;
        }
        if values.is_empty() {
            return Ok(None);
        }
        let zone = match self.schema.field(0).data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, zone) => zone.clone(),
            _ => None,
        };
        let values = TimestampMicrosecondArray::from(values).with_timezone_opt(zone);
        Ok(Some(RecordBatch::try_new(self.schema.clone(), vec![Arc::new(values)])?))
    }

    fn reset_state(&self) -> Arc<RwLock<dyn LazyBatchGenerator>> {
        Arc::new(RwLock::new(Self { next: self.bounds.and_then(|series| series.first()), ..self.clone() }))
    }
}
