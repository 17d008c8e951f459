//! `+`, `-`, `*` and unary minus on integers as functions that fail on overflow.
//!
//! A rewrite of the logical plan, after type coercion has made both sides one type and before any constant is folded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::walk::rewrite_plan;

/// The rule.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic {
    add: Arc<ScalarUDF>,
    subtract: Arc<ScalarUDF>,
    multiply: Arc<ScalarUDF>,
    negate: Arc<ScalarUDF>,
}

impl CheckedArithmetic {
    pub(crate) fn new() -> Self {
        let function = |op| Arc::new(ScalarUDF::new_from_impl(CheckedFunction::new(op)));
        Self {
            add: function(Op::Add),
            subtract: function(Op::Subtract),
            multiply: function(Op::Multiply),
            negate: function(Op::Negate),
        }
    }

    /// The type of `expr`. A function of ours has that of its first argument: a long sum would be walked once a level.
    fn type_of(&self, mut expr: &Expr, schema: &dyn ExprSchema) -> Result<DataType> {
        let ours = [&self.add, &self.subtract, &self.multiply, &self.negate];
        while let Expr::ScalarFunction(call) = expr {
            match call.args.first() {
                Some(first) if ours.iter().any(|f| Arc::ptr_eq(f, &call.func)) => expr = first,
                _ => break,
            }
        }
        expr.get_type(schema)
    }

    fn rewrite_expr(&self, expr: Expr, schema: &dyn ExprSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let function = match op {
                    Operator::Plus => &self.add,
                    Operator::Minus => &self.subtract,
                    Operator::Multiply => &self.multiply,
                    _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
                };
                let left_type = self.type_of(&left, schema)?;
                if !(left_type.is_integer() && left_type == self.type_of(&right, schema)?) {
                    return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
                }
                let call = ScalarFunction::new_udf(function.clone(), vec![*left, *right]);
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            Expr::Negative(inner) if inner.get_type(schema)?.is_signed_integer() => {
                let call = ScalarFunction::new_udf(self.negate.clone(), vec![*inner]);
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
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
enum Op {
    Add,
    Subtract,
    Multiply,
    Negate,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedFunction {
    op: Op,
    signature: Signature,
}

impl CheckedFunction {
    fn new(op: Op) -> Self {
        let arguments = if op == Op::Negate { 1 } else { 2 };
        Self { op, signature: Signature::any(arguments, Volatility::Immutable) }
    }

    fn symbol(&self) -> &'static str {
        match self.op {
            Op::Add => "+",
            Op::Subtract | Op::Negate => "-",
            Op::Multiply => "*",
        }
    }
}

impl ScalarUDFImpl for CheckedFunction {
    fn name(&self) -> &str {
        match self.op {
            Op::Add => "checked_add",
            Op::Subtract => "checked_subtract",
            Op::Multiply => "checked_multiply",
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
        arg_types
            .first()
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
            (Op::Add, [left, right]) => numeric::add(left, right)?,
            (Op::Subtract, [left, right]) => numeric::sub(left, right)?,
            (Op::Multiply, [left, right]) => numeric::mul(left, right)?,
            (Op::Negate, [inner]) => numeric::neg(&inner.array)?,
            _ => return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), operands.len()))),
        };
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// An array, or one value that stands for many.
struct Operand {
    array: ArrayRef,
    scalar: bool,
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}
