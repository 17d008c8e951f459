//! Values that an expression is evaluated over, and what bound values and literals are as values of a type.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use mainstem_postgres::cast::assign;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::row::{RowView, Value, value_of, without_padding};
use mainstem_storage::schema::{Column, DataType};

use crate::plan;
use crate::value::{Time, Uuid, ValueRef};

/// What an expression is evaluated over.
#[derive(Clone, Copy, Default)]
pub(super) struct Scope<'a> {
    /// The values of the row that is there, if there is one.
    pub(super) row: &'a [Value],
    /// The row that was to come, in the update arm of ON CONFLICT.
    pub(super) coming: Option<RowView<'a>>,
    /// The values bound to the parameters.
    pub(super) parameters: &'a [ValueRef<'a>],
    /// When the statement began: microseconds since 1970.
    pub(super) clock: i64,
}

/// What a run of a statement is given.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// The values bound to the parameters.
    pub(super) parameters: &'a [ValueRef<'a>],
    /// When the statement began: microseconds since 1970; 0 if it does not ask.
    pub(super) clock: i64,
}

impl<'a> Given<'a> {
    /// No row.
    pub(super) fn scope(self) -> Scope<'a> {
        self.over(&[], None)
    }

    /// The values of a row that is there, and one that was to come.
    pub(super) fn over(self, row: &'a [Value], coming: Option<RowView<'a>>) -> Scope<'a> {
        Scope { row, coming, parameters: self.parameters, clock: self.clock }
    }
}

/// Whether the type is a whole number.
pub(super) fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

/// Whether `value` is a whole number that `data_type` has.
pub(super) fn in_range(value: i64, data_type: DataType) -> bool {
    match data_type {
        DataType::SmallInt => i16::try_from(value).is_ok(),
        DataType::Integer => i32::try_from(value).is_ok(),
        DataType::BigInt => true,
        _ => false,
    }
}

/// `value` as one of type `wanted`, if it is one, or an integer that fits.
pub(super) fn fit(value: ValueRef<'_>, wanted: DataType) -> Option<Value> {
    let whole = match value {
        ValueRef::SmallInt(v) => Some(i64::from(v)),
        ValueRef::Integer(v) => Some(i64::from(v)),
        ValueRef::BigInt(v) => Some(v),
        _ => None,
    };
    if let Some(v) = whole {
        return in_range(v, wanted).then_some(Value::Int(v));
    }
    let fits = match (value, wanted) {
        (ValueRef::Null, _) => return Some(Value::Null),
        (ValueRef::Boolean(_), DataType::Boolean)
        | (ValueRef::Real(_), DataType::Real)
        | (ValueRef::Double(_), DataType::Double)
        | (ValueRef::Date(_), DataType::Date)
        | (ValueRef::Time(_), DataType::Time)
        | (ValueRef::Uuid(_), DataType::Uuid)
        | (ValueRef::Timestamp(_), DataType::Timestamp)
        | (ValueRef::TimestampTz(_), DataType::TimestampTz)
        | (ValueRef::Text(_), DataType::Text { .. })
        | (ValueRef::Bytes(_), DataType::Bytea) => true,
        (ValueRef::Text(text), DataType::Char { .. }) => return Some(Value::Text(without_padding(text).into())),
        (ValueRef::Decimal(_), DataType::Decimal { precision, scale }) => match value.data_type() {
            Some(DataType::Decimal { precision: digits, scale: behind }) => behind == scale && digits <= precision,
            _ => false,
        },
        _ => false,
    };
    fits.then(|| value.to_stored())
}

/// `value`, bound to a parameter of type `wanted`, as one of that type, if it is one or spells one.
pub(super) fn value_of_parameter(value: ValueRef<'_>, wanted: DataType) -> Option<Value> {
    fit(value, wanted).or_else(|| plan::parsed_value(value, wanted))
}

/// Whether values of type `of` are fitted to type `wanted` by [`fit`].
pub(super) fn same_kind(of: DataType, wanted: DataType) -> bool {
    match (of, wanted) {
        // The other way round blanks are lost.
        (DataType::Text { .. }, DataType::Text { .. } | DataType::Char { .. }) => true,
        (DataType::Char { .. }, DataType::Char { .. }) => true,
        (of, wanted) => of == wanted,
    }
}

/// What a string literal beside a column of type `data_type` is there, as far as plans read it as an assignment would.
pub(super) fn parsed(text: &str, data_type: DataType) -> Option<Value> {
    match data_type {
        DataType::Text { .. } => Some(Value::Text(text.into())),
        DataType::Char { .. } => Some(Value::Text(without_padding(text).into())),
        DataType::Uuid => text.parse::<Uuid>().ok().map(|uuid| Value::Uuid(uuid.into())),
        DataType::Time => text.parse::<Time>().ok().map(|time| Value::Int(time.micros())),
        // Only in the plain form: a plan compares finer parts of seconds, and knows no years that are far away.
        DataType::Date | DataType::Timestamp | DataType::TimestampTz if is_plain_date(text, data_type) => {
            let column = Column::new(ColumnId(0), "", data_type, true);
            let array: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
            value_of(assign(&array, &column).ok()?.as_ref(), data_type, 0).ok()
        }
        _ => None,
    }
}

/// Whether `text` is a date of the years 1700 to 2199, for timestamps perhaps with hours, minutes and seconds behind
/// it.
fn is_plain_date(text: &str, data_type: DataType) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_plain = matches!(
        (shape.as_str(), data_type),
        ("0000-00-00", _) | ("0000-00-00 00:00:00", DataType::Timestamp | DataType::TimestampTz)
    );
    is_plain && ("17".."22").contains(&text.get(..2).unwrap_or(""))
}
