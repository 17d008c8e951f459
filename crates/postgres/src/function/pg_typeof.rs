//! `pg_typeof`: the name of a value's type, as PostgreSQL has it.

use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use datafusion_expr::{ColumnarValue, ScalarUDF, Signature, Volatility};
use mainstem_storage::schema;

use crate::evaluate::simple::of_call;
use crate::types::field_type;

/// The function.
pub(crate) fn pg_typeof(name: &'static str) -> ScalarUDF {
    of_call(name, Signature::any(1, Volatility::Stable), DataType::Utf8View, |args| {
        let name = args.arg_fields.first().map(|field| type_of(field));
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(name)))
    })
}

fn type_of(field: &Field) -> String {
    match (field.data_type(), field_type(field)) {
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
    }
}
