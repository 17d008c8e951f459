//! `+`, `-`, `*`, `/` and unary minus as functions that fail on overflow (22003), and `/` by zero (22012): on integers, on decimals
//! (`decimals`), on floats, which overflow where finite operands have an infinite result, or a product or quotient that is not zero would
//! become zero.
//!
//! A rewrite of the logical plan, after type coercion has made both sides one type and before any constant is folded. Division of integers
//! and of decimals is not here (DataFusion's; `division`).

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::super::walk::rewrite_plan;
use super::decimals::decimals;

/// The rule.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic {
    add: Arc<ScalarUDF>,
    subtract: Arc<ScalarUDF>,
    multiply: Arc<ScalarUDF>,
    divide: Arc<ScalarUDF>,
    negate: Arc<ScalarUDF>,
}

impl CheckedArithmetic {
    pub(crate) fn new() -> Self {
        let function = |op| Arc::new(ScalarUDF::new_from_impl(CheckedFunction::new(op, None)));
        Self {
            add: function(Op::Add),
            subtract: function(Op::Subtract),
            multiply: function(Op::Multiply),
            divide: function(Op::Divide),
            negate: function(Op::Negate),
        }
    }

    /// The type of `expr`. A function of ours knows its type, or has that of its first argument: a long sum would be walked once a level.
    fn type_of(mut expr: &Expr, schema: &dyn ExprSchema) -> Result<DataType> {
        while let Expr::ScalarFunction(call) = expr {
            let function: &dyn Any = call.func.inner().as_ref();
            match (function.downcast_ref::<CheckedFunction>(), call.args.first()) {
                (Some(CheckedFunction { result: Some(result), .. }), _) => return Ok(result.clone()),
                (Some(_), Some(first)) => expr = first,
                _ => break,
            }
        }
        expr.get_type(schema)
    }

    fn rewrite_expr(&self, expr: Expr, schema: &dyn ExprSchema) -> Result<Transformed<Expr>> {
        let call = |function: &Arc<ScalarUDF>, args| {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), args)))
        };
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (kind, function) = match op {
                    Operator::Plus => (Op::Add, &self.add),
                    Operator::Minus => (Op::Subtract, &self.subtract),
                    Operator::Multiply => (Op::Multiply, &self.multiply),
                    Operator::Divide => (Op::Divide, &self.divide),
                    _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
                };
                let types = (Self::type_of(&left, schema)?, Self::type_of(&right, schema)?);
                Ok(match types {
                    (of_left, of_right)
                        if of_left == of_right
                            && (of_left.is_integer() && kind != Op::Divide || is_float(&of_left)) =>
                    {
                        call(function, vec![*left, *right])
                    }
                    (of_left @ DataType::Decimal128(..), of_right @ DataType::Decimal128(..)) if kind != Op::Divide => {
                        let result = BinaryTypeCoercer::new(&of_left, &op, &of_right).get_result_type()?;
                        let function = ScalarUDF::new_from_impl(CheckedFunction::new(kind, Some(result)));
                        call(&Arc::new(function), vec![*left, *right])
                    }
                    _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
                })
            }
            Expr::Negative(inner) if inner.get_type(schema)?.is_signed_integer() => {
                Ok(call(&self.negate, vec![*inner]))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, &|expr, schema| self.rewrite_expr(expr, schema))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedFunction {
    op: Op,
    /// The type of results, if it is not that of the first argument.
    result: Option<DataType>,
    signature: Signature,
}

impl CheckedFunction {
    fn new(op: Op, result: Option<DataType>) -> Self {
        let arguments = if op == Op::Negate { 1 } else { 2 };
        Self { op, result, signature: Signature::any(arguments, Volatility::Immutable) }
    }

    fn symbol(&self) -> &'static str {
        match self.op {
            Op::Add => "+",
            Op::Subtract | Op::Negate => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
        }
    }
}

impl ScalarUDFImpl for CheckedFunction {
    fn name(&self) -> &str {
        match self.op {
            Op::Add => "checked_add",
            Op::Subtract => "checked_subtract",
            Op::Multiply => "checked_multiply",
            Op::Divide => "checked_divide",
            Op::Negate => "checked_negate",
        }
    }

    /// The name the operator's column would have had.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{} {} {}", left.schema_name(), self.symbol(), right.schema_name()),
            [inner] => format!("(- {})", inner.schema_name()),
            _ => self.name().to_string(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.result
            .as_ref()
            .or(arg_types.first())
            .cloned()
            .ok_or_else(|| DataFusionError::Internal(format!("{} without arguments", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = Vec::with_capacity(2);
        for arg in &args.args {
            operands.push(match arg {
                ColumnarValue::Array(array) => Operand { array: array.clone(), scalar: false },
                ColumnarValue::Scalar(value) => Operand { array: value.to_array()?, scalar: true },
            });
        }
        let all_scalar = operands.iter().all(|o| o.scalar);
        let result = match (self.op, operands.as_slice()) {
            (op, [left, right]) if self.result.is_some() => decimals(op, left, right, self.result.as_ref())?,
            (Op::Add, [left, right]) => numeric::add(left, right)?,
            (Op::Subtract, [left, right]) => numeric::sub(left, right)?,
            (Op::Multiply, [left, right]) => numeric::mul(left, right)?,
            (Op::Divide, [left, right]) => numeric::div(left, right)?,
            (Op::Negate, [inner]) => numeric::neg(&inner.array)?,
            _ => return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), operands.len()))),
        };
        match (operands.as_slice(), result.data_type()) {
            ([left, right], DataType::Float64) => check_floats::<Float64Type>(self.op, left, right, &result)?,
            ([left, right], DataType::Float32) => check_floats::<Float32Type>(self.op, left, right, &result)?,
            _ => {}
        }
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// An array, or one value that stands for many.
pub(super) struct Operand {
    pub array: ArrayRef,
    pub scalar: bool,
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

impl Operand {
    /// The value beside row `row` of the result.
    fn value<T: ArrowPrimitiveType>(&self, row: usize) -> Option<T::Native> {
        let row = if self.scalar { 0 } else { row };
        self.array.as_primitive_opt::<T>().filter(|values| values.is_valid(row)).map(|values| values.value(row))
    }
}

/// Fails for results that PostgreSQL refuses.
fn check_floats<T: ArrowPrimitiveType<Native: Float>>(
    op: Op,
    left: &Operand,
    right: &Operand,
    result: &ArrayRef,
) -> std::result::Result<(), ArrowError> {
    let results = result.as_primitive::<T>();
    let can_vanish = matches!(op, Op::Multiply | Op::Divide);
    let suspect = |value: T::Native| !value.is_finite() || (can_vanish && value.is_zero());
    if !results.values().iter().any(|value| suspect(*value)) {
        return Ok(());
    }
    for (row, value) in results.iter().enumerate() {
        let (Some(value), Some(left), Some(right)) = (value, left.value::<T>(row), right.value::<T>(row)) else {
            continue;
        };
        if op == Op::Divide && right.is_zero() && !left.is_nan() {
            return Err(ArrowError::DivideByZero);
        }
        let is_infinite = |value: T::Native| !value.is_finite() && !value.is_nan();
        if is_infinite(value) && !is_infinite(left) && !is_infinite(right) {
            return Err(ArrowError::ArithmeticOverflow("value is too large for a floating-point number".into()));
        }
        if can_vanish
            && value.is_zero()
            && !left.is_zero()
            && (op == Op::Multiply && !right.is_zero() || op == Op::Divide && !is_infinite(right))
        {
            return Err(ArrowError::ArithmeticOverflow("value is too small for a floating-point number".into()));
        }
    }
    Ok(())
}

/// What the check asks of REAL and DOUBLE PRECISION alike.
trait Float: Copy {
    fn is_finite(self) -> bool;
    fn is_nan(self) -> bool;
    fn is_zero(self) -> bool;
}

macro_rules! float {
    ($($t:ty)*) => {$(
        impl Float for $t {
            fn is_finite(self) -> bool {
                self.is_finite()
            }

            fn is_nan(self) -> bool {
                self.is_nan()
            }

            fn is_zero(self) -> bool {
                self == 0.0
            }
        }
    )*};
}
float!(f32 f64);
