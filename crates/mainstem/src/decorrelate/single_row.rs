//! The value of a scalar subquery that may find several rows.
//!
//! Comes in: the first row's value, and how many rows there are. Goes out: the value, or 21000 where it is asked for
//! and there are several.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::Error;

/// cardinality_violation
const SEVERAL_ROWS: &str = "21000";

/// `value`, if it is that of the only one of `rows`.
pub(super) fn only_row(value: Expr, rows: Expr) -> Expr {
    let function = OnlyRow { signature: Signature::any(2, Volatility::Immutable) };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value, rows]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRow {
    fn name(&self) -> &str {
        "only_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        arg_types.first().cloned().ok_or_else(|| DataFusionError::Internal("only_row without a value".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("only_row without rows".into()));
        };
        let rows = rows.to_array(args.number_rows)?;
        let several = rows.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1);
        if several {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(DataFusionError::External(Box::new(Error::invalid(SEVERAL_ROWS, message))));
        }
        Ok(value.clone())
    }
}
