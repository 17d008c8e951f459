//! `pg_typeof`: the name of a value's type, as PostgreSQL has it.

use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use mainstem_storage::schema;

use crate::types::field_type;

/// The function.
pub(crate) fn pg_typeof() -> ScalarUDF {
    ScalarUDF::new_from_impl(PgTypeof { signature: Signature::any(1, Volatility::Stable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PgTypeof {
    signature: Signature,
}

impl ScalarUDFImpl for PgTypeof {
    fn name(&self) -> &str {
        "pg_typeof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [field] = args.arg_fields.as_slice() else {
            return Err(DataFusionError::Internal("pg_typeof without its argument".into()));
        };
        let name = match (field.data_type(), field_type(field)) {
            (DataType::Null, _) => "unknown".to_owned(),
            (_, Some(schema::DataType::Decimal { .. })) => "numeric".to_owned(),
            (_, Some(known)) => {
                // Lengths are the column's, not the type's.
                let name = known.to_string();
                name.split('(').next().unwrap_or_default().to_owned()
            }
            (DataType::Interval(_) | DataType::Duration(_), None) => "interval".to_owned(),
            (DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..), None) => "anyarray".to_owned(),
            (DataType::Struct(_), None) => "record".to_owned(),
            (other, None) => other.to_string().to_lowercase(),
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(name))))
    }
}
