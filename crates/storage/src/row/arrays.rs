//! Between single values and Arrow arrays, and the one place where arrays are told apart by type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, StringViewArray,
    UInt32Array, new_null_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{Field, Schema};

use crate::error::{Error, Result, sqlstate};
use crate::schema::DataType;

use super::Value;
use super::value::{normal_f32, normal_f64};

/// The values of an array of some [`DataType`], without its NULLs: type dispatch happens once, outside the loop.
#[derive(Clone, Copy)]
pub(crate) enum TypedValues<'a> {
    /// Boolean.
    Boolean(&'a BooleanArray),
    /// SmallInt.
    Int16(&'a [i16]),
    /// Integer and Date.
    Int32(&'a [i32]),
    /// BigInt, Time, Timestamp and TimestampTz.
    Int64(&'a [i64]),
    /// Real.
    Real(&'a [f32]),
    /// Double.
    Double(&'a [f64]),
    /// Decimal of any precision.
    Decimal(&'a [i128]),
    /// Text and Char.
    Text(&'a StringViewArray),
    /// Bytea.
    Bytes(&'a BinaryViewArray),
    /// Uuid.
    Uuid(&'a FixedSizeBinaryArray),
}

/// Bytes of the values of `array`, however long the buffers behind them are.
pub(crate) fn bytes_of_array(array: &ArrayRef) -> usize {
    let texts = |views: &[u128]| views.iter().map(|view| 16 + (*view as u32) as usize).sum();
    match array.data_type() {
        arrow_schema::DataType::Utf8View => texts(array.as_string_view().views()),
        arrow_schema::DataType::BinaryView => texts(array.as_binary_view().views()),
        arrow_schema::DataType::Utf8 => {
            let ends = array.as_string::<i32>().value_offsets();
            let first_and_last = ends.first().zip(ends.last());
            16 * array.len() + first_and_last.map_or(0, |(first, last)| (last - first).unsigned_abs() as usize)
        }
        // A chunk's texts are few beside its rows.
        arrow_schema::DataType::Dictionary(codes, _) => {
            let texts = array.as_any_dictionary_opt().map_or(0, |coded| bytes_of_array(coded.values()));
            array.len() * codes.primitive_width().unwrap_or(1) + texts
        }
        arrow_schema::DataType::FixedSizeBinary(width) => array.len() * width.unsigned_abs() as usize,
        other => array.len() * other.primitive_width().unwrap_or(1),
    }
}

/// `columns` as a batch of their own types, whatever the table's are.
pub(crate) fn batch_of(columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let field = |column: &ArrayRef| Field::new("", column.data_type().clone(), true);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())), columns)?)
}

/// `array` with buffers of its own: views may share theirs with much else.
pub(crate) fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        arrow_schema::DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        arrow_schema::DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// The UUID at `row` of an array of them, as [`Value::Uuid`] has it.
#[inline]
pub(crate) fn uuid_at(array: &FixedSizeBinaryArray, row: usize) -> u128 {
    // Arrays are of width 16: their type was looked at.
    array.value(row).first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

/// An array of UUIDs.
pub(crate) fn uuid_array(values: impl ExactSizeIterator<Item = u128>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let mut bytes = Vec::with_capacity(values.len() * 16);
    values.for_each(|v| bytes.extend_from_slice(&v.to_be_bytes()));
    Ok(Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(bytes), nulls)?))
}

fn slice<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&[T::Native]> {
    array.as_primitive_opt::<T>().map(|a| &a.values()[..])
}

impl<'a> TypedValues<'a> {
    /// The values of `array`, whose type must be `data_type.arrow()` (decimals: any precision and scale; timestamps:
    /// any zone); an Internal error otherwise.
    pub(crate) fn of(array: &'a dyn Array, data_type: DataType) -> Result<Self> {
        match data_type {
            DataType::Boolean => array.as_boolean_opt().map(Self::Boolean),
            DataType::SmallInt => slice::<Int16Type>(array).map(Self::Int16),
            DataType::Integer => slice::<Int32Type>(array).map(Self::Int32),
            DataType::BigInt => slice::<Int64Type>(array).map(Self::Int64),
            DataType::Real => slice::<Float32Type>(array).map(Self::Real),
            DataType::Double => slice::<Float64Type>(array).map(Self::Double),
            DataType::Decimal { .. } => slice::<Decimal128Type>(array).map(Self::Decimal),
            DataType::Date => slice::<Date32Type>(array).map(Self::Int32),
            DataType::Time => slice::<Time64MicrosecondType>(array).map(Self::Int64),
            DataType::Timestamp | DataType::TimestampTz => slice::<TimestampMicrosecondType>(array).map(Self::Int64),
            DataType::Uuid => array.as_fixed_size_binary_opt().filter(|a| a.value_length() == 16).map(Self::Uuid),
            DataType::Text { .. } | DataType::Char { .. } => array.as_string_view_opt().map(Self::Text),
            DataType::Bytea => array.as_binary_view_opt().map(Self::Bytes),
        }
        .ok_or_else(|| Error::internal(format!("an array of {} where {data_type} was due", array.data_type())))
    }

    /// The value of row `row`, taken as not NULL.
    pub(crate) fn value(&self, row: usize) -> Value {
        match self {
            Self::Boolean(v) => Value::Boolean(v.value(row)),
            Self::Int16(v) => Value::Int(v[row].into()),
            Self::Int32(v) => Value::Int(v[row].into()),
            Self::Int64(v) => Value::Int(v[row]),
            Self::Real(v) => Value::Real(normal_f32(v[row])),
            Self::Double(v) => Value::Double(normal_f64(v[row])),
            Self::Decimal(v) => Value::Decimal(v[row]),
            Self::Text(v) => Value::Text(v.value(row).into()),
            Self::Bytes(v) => Value::Bytes(v.value(row).into()),
            Self::Uuid(v) => Value::Uuid(uuid_at(v, row)),
        }
    }

    /// Adds the bytes that each text or bytea takes to `sizes`; a NULL takes none, nor does a value of another type.
    pub(super) fn add_lengths(&self, nulls: Option<&NullBuffer>, sizes: &mut [usize]) {
        // The low half of a view is the length of its value.
        let views = match self {
            Self::Text(v) => v.views(),
            Self::Bytes(v) => v.views(),
            _ => return,
        };
        for (row, (size, view)) in sizes.iter_mut().zip(views.iter()).enumerate() {
            if nulls.is_none_or(|n| n.is_valid(row)) {
                *size += *view as u32 as usize;
            }
        }
    }
}

/// Row `row` of `array`, which has type `data_type.arrow()`; another type or a row outside is an Internal error.
pub fn value_of(array: &dyn Array, data_type: DataType, row: usize) -> Result<Value> {
    if row >= array.len() {
        return Err(Error::internal(format!("row {row} of an array of {}", array.len())));
    }
    let values = TypedValues::of(array, data_type)?;
    Ok(if array.is_null(row) { Value::Null } else { values.value(row) })
}

/// An array of type `data_type.arrow()` with the given values. A value of another type is 42804, an integer that does
/// not fit 22003.
pub fn array_of<'a>(values: impl Iterator<Item = &'a Value>, data_type: DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => {
            let values = options(values, data_type, |v| Ok(if let Value::Boolean(v) = v { Some(*v) } else { None }))?;
            Arc::new(BooleanArray::from(values))
        }
        DataType::SmallInt => Arc::new(ints::<Int16Type>(values, data_type)?),
        DataType::Integer => Arc::new(ints::<Int32Type>(values, data_type)?),
        DataType::BigInt => Arc::new(ints::<Int64Type>(values, data_type)?),
        DataType::Date => Arc::new(ints::<Date32Type>(values, data_type)?),
        DataType::Time => Arc::new(ints::<Time64MicrosecondType>(values, data_type)?),
        DataType::Timestamp => Arc::new(ints::<TimestampMicrosecondType>(values, data_type)?),
        DataType::TimestampTz => {
            Arc::new(ints::<TimestampMicrosecondType>(values, data_type)?.with_data_type(data_type.arrow()))
        }
        DataType::Real => {
            let values =
                options(values, data_type, |v| Ok(if let Value::Real(v) = v { Some(normal_f32(*v)) } else { None }))?;
            Arc::new(PrimitiveArray::<Float32Type>::from(values))
        }
        DataType::Double => {
            let values =
                options(values, data_type, |v| Ok(if let Value::Double(v) = v { Some(normal_f64(*v)) } else { None }))?;
            Arc::new(PrimitiveArray::<Float64Type>::from(values))
        }
        DataType::Decimal { precision, scale } => {
            let values = options(values, data_type, |v| Ok(if let Value::Decimal(v) = v { Some(*v) } else { None }))?;
            Arc::new(PrimitiveArray::<Decimal128Type>::from(values).with_precision_and_scale(precision, scale)?)
        }
        DataType::Text { .. } | DataType::Char { .. } => {
            let values = options(values, data_type, |v| Ok(if let Value::Text(v) = v { Some(&**v) } else { None }))?;
            Arc::new(StringViewArray::from_iter(values))
        }
        DataType::Bytea => {
            let values = options(values, data_type, |v| Ok(if let Value::Bytes(v) = v { Some(&**v) } else { None }))?;
            Arc::new(BinaryViewArray::from_iter(values))
        }
        DataType::Uuid => {
            let values = options(values, data_type, |v| Ok(if let Value::Uuid(v) = v { Some(*v) } else { None }))?;
            let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
            uuid_array(values.iter().map(|v| v.unwrap_or(0)), Some(nulls).filter(|n| n.null_count() > 0))?
        }
    })
}

/// The non-NULL values as `get` sees them; a value that it does not know is 42804.
fn options<'a, T>(
    values: impl Iterator<Item = &'a Value>,
    data_type: DataType,
    get: impl Fn(&'a Value) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let known = |value: &'a Value| match value {
        Value::Null => Ok(None),
        value => match get(value)? {
            Some(v) => Ok(Some(v)),
            None => Err(Error::invalid(sqlstate::TYPE_MISMATCH, format!("value {value:?} is not of type {data_type}"))),
        },
    };
    values.map(known).collect()
}

fn ints<'a, T: ArrowPrimitiveType>(
    values: impl Iterator<Item = &'a Value>,
    data_type: DataType,
) -> Result<PrimitiveArray<T>>
where
    T::Native: TryFrom<i64>,
{
    let get = |value: &Value| match value {
        Value::Int(v) => T::Native::try_from(*v).map(Some).map_err(|_| {
            Error::invalid(sqlstate::OUT_OF_RANGE, format!("value {v} is out of range for type {data_type}"))
        }),
        _ => Ok(None),
    };
    Ok(options(values, data_type, get)?.into_iter().collect())
}

/// An array of `len` times `value`, of type `data_type.arrow()`. Errors as [`array_of`].
pub fn constant_array(value: &Value, data_type: DataType, len: usize) -> Result<ArrayRef> {
    if value.is_null() {
        return Ok(new_null_array(&data_type.arrow(), len));
    }
    let one = array_of(std::iter::once(value), data_type)?;
    // Taking row 0 again and again repeats a view, not its text.
    Ok(arrow_select::take::take(&one, &UInt32Array::from_value(0, len), None)?)
}
