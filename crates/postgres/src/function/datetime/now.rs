//! When the statement began: `now()`, which is CURRENT_TIMESTAMP, and without a zone LOCALTIMESTAMP and LOCALTIME.
//!
//! Each is one value for the whole statement, known when it is planned, in microseconds: DataFusion's `now()` has
//! nanoseconds, which no column takes. The session's zone is UTC.

use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use mainstem_storage::schema::DataType as SqlType;

use crate::types::MICROS_OF_DAY;

/// The function `name`: `now`, `localtimestamp` or `localtime`.
pub(crate) fn beginning(name: &'static str) -> ScalarUDF {
    let of = match name {
        "localtimestamp" => SqlType::Timestamp,
        "localtime" => SqlType::Time,
        _ => SqlType::TimestampTz,
    };
    ScalarUDF::new_from_impl(Beginning { name, of, signature: Signature::nullary(Volatility::Stable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Beginning {
    name: &'static str,
    of: SqlType,
    signature: Signature,
}

impl ScalarUDFImpl for Beginning {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.of.arrow())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(began) = info.query_execution_start_time() else { return Ok(ExprSimplifyResult::Original(args)) };
        let micros = began.timestamp_micros();
        let value = match self.of.arrow() {
            DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(micros), zone),
            _ => ScalarValue::Time64Microsecond(Some(micros.rem_euclid(MICROS_OF_DAY))),
        };
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} was not computed when the statement was planned", self.name)))
    }
}
