//! `~`: an integer with all its bits the other way round, of the type that it had.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int16Type, Int32Type, Int64Type};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::evaluate::over_rows;

/// The function that `~` becomes.
pub const BITWISE_NOT: &str = "bitwise_not";

/// The function.
pub fn bitwise_not() -> ScalarUDF {
    ScalarUDF::new_from_impl(BitwiseNot { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BitwiseNot {
    signature: Signature,
}

impl ScalarUDFImpl for BitwiseNot {
    fn name(&self) -> &str {
        BITWISE_NOT
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [integer @ (DataType::Int16 | DataType::Int32 | DataType::Int64)] => Ok(vec![integer.clone()]),
            [DataType::Null] => Ok(vec![DataType::Int64]),
            _ => plan_err!("No function matches the given name and argument types '{BITWISE_NOT}'"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let integer = types.first().cloned();
        integer.ok_or_else(|| DataFusionError::Internal("~ of nothing".into()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over_rows(&args, |arrays, _| {
            let [bits] = arrays else { return Err(DataFusionError::Internal("~ of other than one".into())) };
            match bits.data_type() {
                DataType::Int16 => flipped::<Int16Type>(bits),
                DataType::Int32 => flipped::<Int32Type>(bits),
                DataType::Int64 => flipped::<Int64Type>(bits),
                other => Err(DataFusionError::Internal(format!("~ of {other}"))),
            }
        })
    }
}

fn flipped<T: ArrowPrimitiveType<Native: std::ops::Not<Output = T::Native>>>(bits: &ArrayRef) -> Result<ArrayRef> {
    let flipped: PrimitiveArray<T> = bits.as_primitive::<T>().unary(|bits| !bits);
    Ok(Arc::new(flipped))
}
