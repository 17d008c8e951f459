//! LOCALTIMESTAMP and LOCALTIME: when the statement began, without a zone.
//!
//! As `now()` they are one value for the whole statement, known when it is planned. The session's zone is UTC.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::value::TIME;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let named = [("localtimestamp", false), ("localtime", true)];
    let function = |(name, of_day)| Local { name, of_day, signature: Signature::nullary(Volatility::Stable) };
    named.into_iter().map(|named| ScalarUDF::new_from_impl(function(named))).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Local {
    name: &'static str,
    /// The time of day alone.
    of_day: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Local {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.of_day { TIME } else { DataType::Timestamp(TimeUnit::Microsecond, None) })
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(began) = info.query_execution_start_time() else { return Ok(ExprSimplifyResult::Original(args)) };
        let micros = began.timestamp_micros();
        let value = if self.of_day {
            ScalarValue::Time64Microsecond(Some(micros.rem_euclid(MICROS_OF_DAY)))
        } else {
            ScalarValue::TimestampMicrosecond(Some(micros), None)
        };
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} was not computed when the statement was planned", self.name)))
    }
}
