//! `length`, `octet_length` and `bit_length` of BYTEA count bytes: DataFusion's make text of them first.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// `function`, for BYTEA too, if it is one of those; others are returned as they are.
pub(crate) fn of_bytes(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let bits = match function.name() {
        "character_length" | "octet_length" => 1,
        "bit_length" => 8,
        _ => return function,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OfBytes { function, per_byte: bits, signature }))
}

#[derive(Debug)]
struct OfBytes {
    function: Arc<ScalarUDF>,
    /// What a byte counts.
    per_byte: i32,
    signature: Signature,
}

impl PartialEq for OfBytes {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for OfBytes {}

impl Hash for OfBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl ScalarUDFImpl for OfBytes {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        if let [data_type] = arg_types
            && data_type.is_binary()
        {
            return Ok(vec![data_type.clone()]);
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = arg_types.iter().map(field).collect();
        Ok(fields_with_udf(&fields, self.function.as_ref())?.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [data_type] if data_type.is_binary() => Ok(DataType::Int32),
            _ => self.function.inner().return_type(arg_types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [field] if field.data_type().is_binary() => {
                Ok(Arc::new(Field::new(self.name(), DataType::Int32, field.is_nullable())))
            }
            _ => self.function.inner().return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else { return self.function.inner().invoke_with_args(args) };
        if !value.data_type().is_binary() {
            return self.function.inner().invoke_with_args(args);
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

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
