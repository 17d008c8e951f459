//! Single SQL values between a program and the engine: typed, borrowed where they are large.
//!
//! Comes in: values of Rust types (parameters, appended rows), or stored values with the type of their column. Goes
//! out: the same as [`ValueRef`], from which either side takes what it needs. Nothing is converted silently: an integer
//! that does not fit is 22003, another type is 42804. It does not own: what a parameter's type is (`plan`), how columns
//! of values become those of another type (`mainstem_postgres::cast`), or the columns themselves (Arrow).

mod batch;
mod builder;
mod foreign;
mod from;
mod interop;
mod into;
mod primitive;

#[cfg(test)]
mod tests;

pub(crate) use batch::{BatchRows, only_row, stored_array};
pub use batch::{ResultColumn, ValueRows, batch_of};
pub(crate) use builder::ColumnBuilder;
pub use foreign::values_of;
pub(crate) use foreign::{own_batch, own_schema};
pub use from::FromValue;
pub(crate) use into::with_bound;
pub use into::{Params, ToValue};
pub use mainstem_postgres::cast::with_composed_as_text;
pub use mainstem_postgres::types::{Date, Decimal, Time, Timestamp, TimestampTz, Uuid};

use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

/// One SQL value with its type, borrowed from whoever has it. NULL has no type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL, of any type.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE PRECISION.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// TIMESTAMP.
    Timestamp(Timestamp),
    /// TIMESTAMP WITH TIME ZONE.
    TimestampTz(TimestampTz),
    /// TEXT. As a parameter it may spell a value of any type, as a string literal does.
    Text(&'a str),
    /// BYTEA.
    Bytes(&'a [u8]),
    /// UUID.
    Uuid(Uuid),
}

impl<'a> ValueRef<'a> {
    /// `value` of a column of type `data_type`. A value that the type does not have, which storage never gives, is
    /// NULL.
    pub(crate) fn stored(value: &'a Value, data_type: DataType) -> Self {
        match (value, data_type) {
            (Value::Boolean(v), _) => Self::Boolean(*v),
            (Value::Int(v), DataType::SmallInt) => i16::try_from(*v).map_or(Self::BigInt(*v), Self::SmallInt),
            (Value::Int(v), DataType::Integer) => i32::try_from(*v).map_or(Self::BigInt(*v), Self::Integer),
            (Value::Int(v), DataType::Date) => {
                i32::try_from(*v).map_or(Self::BigInt(*v), |days| Self::Date(Date::from_days(days)))
            }
            (Value::Int(v), DataType::Time) => Time::from_micros(*v).map_or(Self::BigInt(*v), Self::Time),
            (Value::Int(v), DataType::Timestamp) => Self::Timestamp(Timestamp::from_micros(*v)),
            (Value::Int(v), DataType::TimestampTz) => Self::TimestampTz(TimestampTz::from_micros(*v)),
            (Value::Int(v), _) => Self::BigInt(*v),
            (Value::Decimal(v), DataType::Decimal { scale, .. }) => Self::Decimal(Decimal::stored(*v, scale)),
            (Value::Decimal(v), _) => Self::Decimal(Decimal::stored(*v, 0)),
            (Value::Real(v), _) => Self::Real(*v),
            (Value::Double(v), _) => Self::Double(*v),
            (Value::Text(v), _) => Self::Text(v),
            (Value::Bytes(v), _) => Self::Bytes(v),
            (Value::Uuid(v), _) => Self::Uuid(Uuid::from(*v)),
            (Value::Null, _) => Self::Null,
        }
    }

    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// Its SQL type; none for NULL.
    #[must_use]
    pub fn data_type(self) -> Option<DataType> {
        Some(match self {
            Self::Null => return None,
            Self::Boolean(_) => DataType::Boolean,
            Self::SmallInt(_) => DataType::SmallInt,
            Self::Integer(_) => DataType::Integer,
            Self::BigInt(_) => DataType::BigInt,
            Self::Real(_) => DataType::Real,
            Self::Double(_) => DataType::Double,
            Self::Decimal(v) => DataType::Decimal { precision: v.precision(), scale: v.stored_scale() },
            Self::Date(_) => DataType::Date,
            Self::Time(_) => DataType::Time,
            Self::Timestamp(_) => DataType::Timestamp,
            Self::TimestampTz(_) => DataType::TimestampTz,
            Self::Text(_) => DataType::Text { max_chars: None },
            Self::Bytes(_) => DataType::Bytea,
            Self::Uuid(_) => DataType::Uuid,
        })
    }

    /// The value in storage form. A decimal keeps its own scale.
    #[must_use]
    pub fn to_stored(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(v) => Value::Boolean(v),
            Self::SmallInt(v) => Value::Int(v.into()),
            Self::Integer(v) => Value::Int(v.into()),
            Self::BigInt(v) => Value::Int(v),
            Self::Real(v) => Value::Real(if v.is_nan() { f32::NAN } else { v + 0.0 }),
            Self::Double(v) => Value::Double(if v.is_nan() { f64::NAN } else { v + 0.0 }),
            Self::Decimal(v) => Value::Decimal(v.unscaled()),
            Self::Date(v) => Value::Int(v.days().into()),
            Self::Time(v) => Value::Int(v.micros()),
            Self::Timestamp(v) => Value::Int(v.micros()),
            Self::TimestampTz(v) => Value::Int(v.micros()),
            Self::Text(v) => Value::Text(v.into()),
            Self::Bytes(v) => Value::Bytes(v.into()),
            Self::Uuid(v) => Value::Uuid(v.into()),
        }
    }
}
