//! `pg_sleep`: waits, for each row, until the time is over or the statement is canceled.
//!
//! It holds a thread of the query's as long; others go on. The snapshot of its statement stays, as with any long
//! statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::cancel;

/// How often it asks whether the statement was canceled.
const SLICE: Duration = Duration::from_millis(10);
/// Longest wait for a row: longer than any statement lives.
const SECONDS_MAX: f64 = 1e9;

/// Its name.
pub(super) const NAME: &str = "pg_sleep";

/// The function.
pub(super) fn pg_sleep() -> ScalarUDF {
    ScalarUDF::new_from_impl(Sleep { signature: Signature::exact(vec![DataType::Float64], Volatility::Volatile) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8View, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [seconds] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("pg_sleep without its argument".into()));
        };
        let seconds = seconds.to_array(args.number_rows)?;
        let seconds = seconds.as_primitive_opt::<Float64Type>();
        let seconds = seconds.ok_or_else(|| DataFusionError::Internal("pg_sleep of no number".into()))?;
        let mut nothing = arrow::array::StringViewBuilder::with_capacity(seconds.len());
        for seconds in seconds {
            // NaN is no time.
            if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
                let end = Instant::now() + Duration::from_secs_f64(seconds.min(SECONDS_MAX));
                while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                    cancel::check(&args.config_options)?;
                    std::thread::sleep(left.min(SLICE));
                }
            }
            nothing.append_option(seconds.map(|_| ""));
        }
        let nothing = nothing.finish();
        if nothing.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&nothing, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(nothing)))
    }
}
