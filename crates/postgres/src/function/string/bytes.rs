//! `length`, `octet_length` and `bit_length` of BYTEA count bytes: DataFusion's make text of them first.

use std::sync::Arc;

use arrow::array::{AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};

use crate::function::adapter::{Change, adapt};

/// `function`, one of those, for BYTEA too.
pub(crate) fn lengths(function: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    let per_byte = if function.name() == "bit_length" { 8 } else { 1 };
    adapt(function, OfBytes { per_byte, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug)]
struct OfBytes {
    /// What a byte counts.
    per_byte: i32,
    signature: Signature,
}

impl Change for OfBytes {
    fn signature<'a>(&'a self, _: &'a ScalarUDF) -> &'a Signature {
        &self.signature
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        if let [data_type] = types
            && data_type.is_binary()
        {
            return Ok(vec![data_type.clone()]);
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, function)?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, function: &ScalarUDF, types: &[DataType]) -> Result<DataType> {
        match types {
            [data_type] if data_type.is_binary() => Ok(DataType::Int32),
            _ => function.inner().return_type(types),
        }
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [field] if field.data_type().is_binary() => {
                Ok(Arc::new(Field::new(function.name(), DataType::Int32, field.is_nullable())))
            }
            _ => function.inner().return_field_from_args(args),
        }
    }

    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else { return function.inner().invoke_with_args(args) };
        if !value.data_type().is_binary() {
            return function.inner().invoke_with_args(args);
        }
        let rows = if matches!(value, ColumnarValue::Scalar(_)) { 1 } else { args.number_rows };
        let bytes = cast(&value.to_array(rows)?, &DataType::BinaryView)?;
        let length = |bytes: &[u8]| i32::try_from(bytes.len()).unwrap_or(i32::MAX).saturating_mul(self.per_byte);
        let lengths: Int32Array = bytes.as_binary_view().iter().map(|bytes| bytes.map(length)).collect();
        if matches!(value, ColumnarValue::Scalar(_)) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(lengths)))
    }
}
