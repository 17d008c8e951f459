//! Arrow batches as tuples of Python objects.
//!
//! Comes in: a batch, and which of its rows are wanted. Goes out: a tuple for each. Columns are turned into objects one
//! after the other, so that the type of a column is looked at once, then tuples are made of them.

use arrow::array::{Array, ArrayRef, AsArray, GenericByteArray, ListArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ByteArrayType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mainstem::arrow;
use mainstem::{Date, Decimal, ResultColumn, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::errors;
use crate::values::{self, Classes};

type Object<'py> = Bound<'py, PyAny>;

/// Rows `from` to `from + rows` of `batch` as tuples.
pub(crate) fn tuples<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    from: usize,
    rows: usize,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let classes = Classes::get(py)?;
    let mut columns = Vec::with_capacity(batch.num_columns());
    for array in batch.columns() {
        columns.push(objects(py, classes, &array.slice(from, rows))?.into_iter());
    }
    (0..rows).map(|_| PyTuple::new(py, columns.iter_mut().map(|column| column.next()).collect::<Vec<_>>())).collect()
}

/// A row of values in storage form as a tuple.
pub(crate) fn tuple<'py>(py: Python<'py>, columns: &[ResultColumn], row: &[Value]) -> PyResult<Bound<'py, PyTuple>> {
    let classes = Classes::get(py)?;
    let objects = row.iter().zip(columns).map(|(value, column)| values::object(py, classes, column.value_of(value)));
    PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// The values of `array`, one object each; None for NULL.
fn objects<'py>(py: Python<'py>, classes: &Classes, array: &ArrayRef) -> PyResult<Vec<Object<'py>>> {
    macro_rules! numbers {
        ($type:ty, $make:expr) => {{
            let values = array.as_primitive::<$type>();
            each(py, array, |row| $make(values.value(row)))
        }};
    }
    match array.data_type() {
        ArrowType::Null => each(py, array, |_| Ok(py.None().into_bound(py))),
        ArrowType::Boolean => {
            let values = array.as_boolean();
            each(py, array, |row| Ok(PyBool::new(py, values.value(row)).to_owned().into_any()))
        }
        ArrowType::Int8 => numbers!(Int8Type, |v: i8| values::int(py, v.into())),
        ArrowType::Int16 => numbers!(Int16Type, |v: i16| values::int(py, v.into())),
        ArrowType::Int32 => numbers!(Int32Type, |v: i32| values::int(py, v.into())),
        ArrowType::Int64 => numbers!(Int64Type, |v: i64| values::int(py, v)),
        ArrowType::UInt8 => numbers!(UInt8Type, |v: u8| values::int(py, v.into())),
        ArrowType::UInt16 => numbers!(UInt16Type, |v: u16| values::int(py, v.into())),
        ArrowType::UInt32 => numbers!(UInt32Type, |v: u32| values::int(py, v.into())),
        ArrowType::UInt64 => numbers!(UInt64Type, |v: u64| Ok(v.into_pyobject(py)?.into_any())),
        ArrowType::Float32 => numbers!(Float32Type, |v: f32| Ok(PyFloat::new(py, v.into()).into_any())),
        ArrowType::Float64 => numbers!(Float64Type, |v: f64| Ok(PyFloat::new(py, v).into_any())),
        ArrowType::Decimal128(_, scale) => {
            numbers!(Decimal128Type, |v: i128| values::decimal(py, classes, Decimal::stored(v, *scale)))
        }
        ArrowType::Date32 => numbers!(Date32Type, |v: i32| values::date(py, classes, Date::from_days(v))),
        ArrowType::Time64(TimeUnit::Microsecond) => {
            numbers!(Time64MicrosecondType, |v: i64| values::time(py, classes, v))
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            numbers!(TimestampMicrosecondType, |v: i64| values::timestamp(py, classes, v, zone.is_some()))
        }
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            each(py, array, |row| {
                let span = values.value(row);
                values::interval(py, classes, (span.months, span.days, span.nanoseconds))
            })
        }
        ArrowType::Utf8View => {
            let values = array.as_string_view();
            each(py, array, |row| Ok(PyString::new(py, values.value(row)).into_any()))
        }
        ArrowType::Utf8 => texts(py, array.as_string::<i32>()),
        ArrowType::LargeUtf8 => texts(py, array.as_string::<i64>()),
        ArrowType::BinaryView => {
            let values = array.as_binary_view();
            each(py, array, |row| Ok(PyBytes::new(py, values.value(row)).into_any()))
        }
        ArrowType::FixedSizeBinary(16) => {
            let values = array.as_fixed_size_binary();
            each(py, array, |row| values::uuid(py, classes, values.value(row)))
        }
        _ => composed(py, classes, array),
    }
}

/// Lists, records and codes; types that Python has nothing for, as Arrow writes them.
fn composed<'py>(py: Python<'py>, classes: &Classes, array: &ArrayRef) -> PyResult<Vec<Object<'py>>> {
    match array.data_type() {
        ArrowType::List(_) => {
            let values: &ListArray = array.as_list();
            each(py, array, |row| Ok(PyList::new(py, objects(py, classes, &values.value(row))?)?.into_any()))
        }
        ArrowType::Struct(fields) => {
            let values: &StructArray = array.as_struct();
            let columns = values.columns().iter().map(|column| objects(py, classes, column));
            let columns = columns.collect::<PyResult<Vec<_>>>()?;
            each(py, array, |row| {
                let record = PyDict::new(py);
                for (field, column) in fields.iter().zip(&columns) {
                    record.set_item(field.name(), column.get(row))?;
                }
                Ok(record.into_any())
            })
        }
        ArrowType::Dictionary(_, value) => {
            let plain = cast(array, value).map_err(|e| errors::exception(py, &e.into()))?;
            objects(py, classes, &plain)
        }
        _ => as_texts(py, array),
    }
}

fn each<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    object: impl Fn(usize) -> PyResult<Object<'py>>,
) -> PyResult<Vec<Object<'py>>> {
    if array.null_count() == 0 {
        return (0..array.len()).map(object).collect();
    }
    (0..array.len()).map(|row| if array.is_null(row) { Ok(py.None().into_bound(py)) } else { object(row) }).collect()
}

fn texts<'py, T: ByteArrayType<Native = str>>(
    py: Python<'py>,
    values: &GenericByteArray<T>,
) -> PyResult<Vec<Object<'py>>> {
    let text = |value: Option<&str>| match value {
        Some(text) => PyString::new(py, text).into_any(),
        None => py.None().into_bound(py),
    };
    Ok(values.iter().map(text).collect())
}

/// Values of types that Python has nothing for, as Arrow writes them.
fn as_texts<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Object<'py>>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(|e| errors::exception(py, &e.into()))?;
    each(py, array, |row| Ok(PyString::new(py, &formatter.value(row).to_string()).into_any()))
}
