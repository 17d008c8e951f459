//! The intervals that texts spell: read as PostgreSQL reads them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, Signature, Volatility};

use crate::error::external;
use crate::evaluate::simple::Simple;
use crate::types::{INTERVAL, interval_of};

/// The intervals that texts spell.
pub fn interval_from_text(texts: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    Simple::new("interval_of", signature, INTERVAL, |arrays, _| read(arrays)).udf().call(vec![texts])
}

fn read(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [texts] = arrays else { return Err(DataFusionError::Internal("interval_of without a text".into())) };
    let texts = cast(texts, &DataType::Utf8View)?;
    let spans = texts.as_string_view().iter();
    let spans = spans.map(|text| text.map(|text| interval_of(text, None).map_err(external)).transpose());
    Ok(Arc::new(spans.collect::<Result<IntervalMonthDayNanoArray>>()?))
}
