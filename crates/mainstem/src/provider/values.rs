//! Storage values and DataFusion's scalars, where they are the same thing.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

/// `scalar` as a value of a column of type `data_type`; None if it is NULL or of another type.
pub(super) fn to_value(scalar: &ScalarValue, data_type: DataType) -> Option<Value> {
    use ScalarValue as S;
    Some(match (data_type, scalar) {
        (DataType::Boolean, S::Boolean(Some(v))) => Value::Boolean(*v),
        (DataType::SmallInt, S::Int16(Some(v))) => Value::Int(i64::from(*v)),
        (DataType::Integer, S::Int32(Some(v))) | (DataType::Date, S::Date32(Some(v))) => Value::Int(i64::from(*v)),
        (DataType::BigInt, S::Int64(Some(v)))
        | (DataType::Time, S::Time64Microsecond(Some(v)))
        | (DataType::Timestamp, S::TimestampMicrosecond(Some(v), None))
        | (DataType::TimestampTz, S::TimestampMicrosecond(Some(v), Some(_))) => Value::Int(*v),
        (DataType::Real, S::Float32(Some(v))) => Value::Real(if v.is_nan() { f32::NAN } else { *v + 0.0 }),
        (DataType::Double, S::Float64(Some(v))) => Value::Double(if v.is_nan() { f64::NAN } else { *v + 0.0 }),
        (DataType::Decimal { scale, .. }, S::Decimal128(Some(v), _, s)) if *s == scale => Value::Decimal(*v),
        (DataType::Uuid, S::FixedSizeBinary(16, Some(v))) => {
            Value::Uuid(u128::from_be_bytes(v.as_slice().try_into().ok()?))
        }
        (
            DataType::Text { .. } | DataType::Char { .. },
            S::Utf8(Some(v)) | S::LargeUtf8(Some(v)) | S::Utf8View(Some(v)),
        ) => Value::Text(v.as_str().into()),
        (DataType::Bytea, S::Binary(Some(v)) | S::LargeBinary(Some(v)) | S::BinaryView(Some(v))) => {
            Value::Bytes(v.as_slice().into())
        }
        _ => return None,
    })
}

/// `value` of a column of type `data_type` as a scalar of the column's Arrow type; None if it is NULL or does not fit.
pub(crate) fn to_scalar(value: &Value, data_type: DataType) -> Option<ScalarValue> {
    use ScalarValue as S;
    Some(match (data_type, value) {
        (DataType::Boolean, Value::Boolean(v)) => S::Boolean(Some(*v)),
        (DataType::SmallInt, Value::Int(v)) => S::Int16(Some(i16::try_from(*v).ok()?)),
        (DataType::Integer, Value::Int(v)) => S::Int32(Some(i32::try_from(*v).ok()?)),
        (DataType::BigInt, Value::Int(v)) => S::Int64(Some(*v)),
        (DataType::Date, Value::Int(v)) => S::Date32(Some(i32::try_from(*v).ok()?)),
        (DataType::Time, Value::Int(v)) => S::Time64Microsecond(Some(*v)),
        (DataType::Timestamp, Value::Int(v)) => S::TimestampMicrosecond(Some(*v), None),
        (DataType::TimestampTz, Value::Int(v)) => S::TimestampMicrosecond(Some(*v), Some(Arc::from("+00:00"))),
        (DataType::Real, Value::Real(v)) => S::Float32(Some(*v)),
        (DataType::Double, Value::Double(v)) => S::Float64(Some(*v)),
        (DataType::Decimal { precision, scale }, Value::Decimal(v)) => S::Decimal128(Some(*v), precision, scale),
        (DataType::Uuid, Value::Uuid(v)) => S::FixedSizeBinary(16, Some(v.to_be_bytes().to_vec())),
        (DataType::Text { .. } | DataType::Char { .. }, Value::Text(v)) => S::Utf8View(Some(v.to_string())),
        (DataType::Bytea, Value::Bytes(v)) => S::BinaryView(Some(v.to_vec())),
        _ => return None,
    })
}
