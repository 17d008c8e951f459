//! The intervals that texts spell: read as PostgreSQL reads them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::external;
use crate::evaluate::over_rows;
use crate::types::{INTERVAL, interval_of};

/// The intervals that texts spell.
pub fn interval_from_text(texts: Expr) -> Expr {
    let function = IntervalOf { signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![texts]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalOf {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalOf {
    fn name(&self) -> &'static str {
        "interval_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over_rows(&args, |arrays, _| {
            let [texts] = arrays else { return Err(DataFusionError::Internal("interval_of without a text".into())) };
            let texts = cast(texts, &DataType::Utf8View)?;
            let texts = texts.as_string_view();
            let spans = texts.iter().map(|text| text.map(|text| interval_of(text, None).map_err(external)).transpose());
            let spans: ArrayRef = Arc::new(spans.collect::<Result<IntervalMonthDayNanoArray>>()?);
            Ok(spans)
        })
    }
}
