//! `~`: an integer with all its bits the other way round, of the type that it had.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int16Type, Int32Type, Int64Type};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};

use crate::evaluate::simple::Simple;

/// The function that `~` becomes.
pub const BITWISE_NOT: &str = "bitwise_not";

/// The function.
pub(crate) fn bitwise_not(name: &'static str) -> ScalarUDF {
    let coerce = move |types: &[DataType]| match types {
        [integer @ (DataType::Int16 | DataType::Int32 | DataType::Int64)] => Ok(vec![integer.clone()]),
        [DataType::Null] => Ok(vec![DataType::Int64]),
        _ => plan_err!("No function matches the given name and argument types '{name}'"),
    };
    let result = |types: &[DataType]| Ok(types.first().cloned().unwrap_or(DataType::Int64));
    let signature = Signature::any(1, Volatility::Immutable);
    Simple::new(name, signature, DataType::Int64, |arrays, _| not(arrays)).coerced(coerce).giving(result).udf()
}

fn not(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [bits] = arrays else { return Err(DataFusionError::Internal("~ of other than one".into())) };
    match bits.data_type() {
        DataType::Int16 => flipped::<Int16Type>(bits),
        DataType::Int32 => flipped::<Int32Type>(bits),
        DataType::Int64 => flipped::<Int64Type>(bits),
        other => Err(DataFusionError::Internal(format!("~ of {other}"))),
    }
}

fn flipped<T: ArrowPrimitiveType<Native: std::ops::Not<Output = T::Native>>>(bits: &ArrayRef) -> Result<ArrayRef> {
    let flipped: PrimitiveArray<T> = bits.as_primitive::<T>().unary(|bits| !bits);
    Ok(Arc::new(flipped))
}
