//! Values to columns, one by one: what an appender fills.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, StringViewBuilder, Time64MicrosecondBuilder,
};
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use super::ValueRef;
use super::primitive::{
    Date32Builder, Decimal128Builder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    TimestampMicrosecondBuilder,
};

/// A column of a table being filled with values of its own type.
#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    /// With the scale of the column.
    Decimal(Decimal128Builder, i8),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampTz(TimestampMicrosecondBuilder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Uuid(FixedSizeBinaryBuilder),
}

impl ColumnBuilder {
    /// An empty column of type `data_type`.
    pub(crate) fn new(data_type: DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::SmallInt => Self::SmallInt(Int16Builder::new()),
            DataType::Integer => Self::Integer(Int32Builder::new()),
            DataType::BigInt => Self::BigInt(Int64Builder::new()),
            DataType::Real => Self::Real(Float32Builder::new()),
            DataType::Double => Self::Double(Float64Builder::new()),
            DataType::Decimal { scale, .. } => {
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type.arrow()), scale)
            }
            DataType::Date => Self::Date(Date32Builder::new()),
            DataType::Time => Self::Time(Time64MicrosecondBuilder::new()),
            DataType::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new()),
            DataType::TimestampTz => {
                Self::TimestampTz(TimestampMicrosecondBuilder::new().with_data_type(data_type.arrow()))
            }
            DataType::Text { .. } | DataType::Char { .. } => Self::Text(StringViewBuilder::new()),
            DataType::Bytea => Self::Bytes(BinaryViewBuilder::new()),
            DataType::Uuid => Self::Uuid(FixedSizeBinaryBuilder::new(16)),
        }
    }

    /// Appends `value` if it is of the column's type, NULL, or an integer of another width that fits; says whether it
    /// was.
    #[inline]
    pub(crate) fn append(&mut self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (column, ValueRef::Null) => column.append_null(),
            (Self::Boolean(column), ValueRef::Boolean(v)) => column.append_value(v),
            (Self::BigInt(column), ValueRef::BigInt(v)) => column.append_value(v),
            (Self::BigInt(column), ValueRef::Integer(v)) => column.append_value(v.into()),
            (Self::BigInt(column), ValueRef::SmallInt(v)) => column.append_value(v.into()),
            (Self::Integer(column), ValueRef::Integer(v)) => column.append_value(v),
            (Self::Integer(column), ValueRef::SmallInt(v)) => column.append_value(v.into()),
            (Self::Integer(column), ValueRef::BigInt(v)) => match i32::try_from(v) {
                Ok(v) => column.append_value(v),
                Err(_) => return false,
            },
            (Self::SmallInt(column), ValueRef::SmallInt(v)) => column.append_value(v),
            (Self::SmallInt(column), ValueRef::Integer(v)) => match i16::try_from(v) {
                Ok(v) => column.append_value(v),
                Err(_) => return false,
            },
            (Self::SmallInt(column), ValueRef::BigInt(v)) => match i16::try_from(v) {
                Ok(v) => column.append_value(v),
                Err(_) => return false,
            },
            (Self::Real(column), ValueRef::Real(v)) => column.append_value(v),
            // As assignment rounds it.
            (Self::Double(column), ValueRef::BigInt(v)) => column.append_value(v as f64),
            (Self::Double(column), ValueRef::Integer(v)) => column.append_value(v.into()),
            (Self::Double(column), ValueRef::Double(v)) => column.append_value(v),
            (Self::Double(column), ValueRef::Real(v)) => column.append_value(v.into()),
            (Self::Decimal(column, scale), ValueRef::Decimal(v)) if v.stored_scale() == *scale => {
                column.append_value(v.unscaled());
            }
            (Self::Date(column), ValueRef::Date(v)) => column.append_value(v.days()),
            (Self::Time(column), ValueRef::Time(v)) => column.append_value(v.micros()),
            (Self::Timestamp(column), ValueRef::Timestamp(v)) => column.append_value(v.micros()),
            (Self::TimestampTz(column), ValueRef::TimestampTz(v)) => column.append_value(v.micros()),
            (Self::Text(column), ValueRef::Text(v)) => return column.try_append_value(v).is_ok(),
            (Self::Bytes(column), ValueRef::Bytes(v)) => return column.try_append_value(v).is_ok(),
            (Self::Uuid(column), ValueRef::Uuid(v)) => return column.append_value(v.as_bytes()).is_ok(),
            _ => return false,
        }
        true
    }

    /// Appends `value`, in storage form, if it is a whole number of the column's type; says whether it was. Any other
    /// goes by [`ColumnBuilder::append`].
    #[inline]
    pub(crate) fn append_whole(&mut self, value: &Value) -> bool {
        let Value::Int(number) = value else { return false };
        match self {
            Self::BigInt(column) => column.append_value(*number),
            Self::Integer(column) => match i32::try_from(*number) {
                Ok(number) => column.append_value(number),
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }

    /// Appends a NULL.
    pub(crate) fn append_null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::SmallInt(column) => column.append_null(),
            Self::Integer(column) => column.append_null(),
            Self::BigInt(column) => column.append_null(),
            Self::Real(column) => column.append_null(),
            Self::Double(column) => column.append_null(),
            Self::Decimal(column, _) => column.append_null(),
            Self::Date(column) => column.append_null(),
            Self::Time(column) => column.append_null(),
            Self::Timestamp(column) | Self::TimestampTz(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::Uuid(column) => column.append_null(),
        }
    }

    /// The column; it is empty afterwards.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Boolean(column) => Arc::new(column.finish()),
            Self::SmallInt(column) => Arc::new(column.finish()),
            Self::Integer(column) => Arc::new(column.finish()),
            Self::BigInt(column) => Arc::new(column.finish()),
            Self::Real(column) => Arc::new(column.finish()),
            Self::Double(column) => Arc::new(column.finish()),
            Self::Decimal(column, _) => Arc::new(column.finish()),
            Self::Date(column) => Arc::new(column.finish()),
            Self::Time(column) => Arc::new(column.finish()),
            Self::Timestamp(column) | Self::TimestampTz(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Bytes(column) => Arc::new(column.finish()),
            Self::Uuid(column) => Arc::new(column.finish()),
        }
    }
}
