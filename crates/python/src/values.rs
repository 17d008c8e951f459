//! SQL values as Python objects.
//!
//! A DECIMAL is a Decimal with the digits of its type, a TIMESTAMP a naive datetime, a TIMESTAMPTZ an aware one in UTC,
//! an INTERVAL a timedelta where it has no months, else a `mainstem.Interval`. NULL is None; NaN stays NaN. What
//! Python's types do not reach (years before 1 or after 9999) is an error that says so (22008), for nothing is cut.

use mainstem::{Date, Decimal, ValueRef};
use pyo3::IntoPyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::errors;

const MICROS_OF_SECOND: i64 = 1_000_000;
const MICROS_OF_DAY: i64 = 86_400 * MICROS_OF_SECOND;

type Object<'py> = Bound<'py, PyAny>;

/// Classes that objects are made of, looked up once.
pub(crate) struct Classes {
    decimal: Py<PyAny>,
    date: Py<PyAny>,
    time: Py<PyAny>,
    datetime: Py<PyAny>,
    timedelta: Py<PyAny>,
    utc: Py<PyAny>,
    uuid: Py<PyAny>,
    interval: Py<PyAny>,
}

impl Classes {
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let datetime = py.import("datetime")?;
            let of = |name: &str| Ok::<_, PyErr>(datetime.getattr(name)?.unbind());
            Ok(Self {
                decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
                date: of("date")?,
                time: of("time")?,
                datetime: of("datetime")?,
                timedelta: of("timedelta")?,
                utc: datetime.getattr("timezone")?.getattr("utc")?.unbind(),
                uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
                interval: py.import("mainstem.types")?.getattr("Interval")?.unbind(),
            })
        })
    }
}

/// The object of a value.
pub(crate) fn object<'py>(py: Python<'py>, classes: &Classes, value: ValueRef<'_>) -> PyResult<Object<'py>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Boolean(v) => PyBool::new(py, v).to_owned().into_any(),
        ValueRef::SmallInt(v) => int(py, v.into())?,
        ValueRef::Integer(v) => int(py, v.into())?,
        ValueRef::BigInt(v) => int(py, v)?,
        ValueRef::Real(v) => PyFloat::new(py, v.into()).into_any(),
        ValueRef::Double(v) => PyFloat::new(py, v).into_any(),
        ValueRef::Decimal(v) => decimal(py, classes, v)?,
        ValueRef::Date(v) => date(py, classes, v)?,
        ValueRef::Time(v) => time(py, classes, v.micros())?,
        ValueRef::Timestamp(v) => timestamp(py, classes, v.micros(), false)?,
        ValueRef::TimestampTz(v) => timestamp(py, classes, v.micros(), true)?,
        ValueRef::Text(v) => PyString::new(py, v).into_any(),
        ValueRef::Bytes(v) => PyBytes::new(py, v).into_any(),
        ValueRef::Uuid(v) => uuid(py, classes, v.as_bytes())?,
    })
}

pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Object<'_>> {
    let number: Bound<'_, PyInt> = value.into_pyobject(py)?;
    Ok(number.into_any())
}

pub(crate) fn decimal<'py>(py: Python<'py>, classes: &Classes, value: Decimal) -> PyResult<Object<'py>> {
    classes.decimal.bind(py).call1((value.to_string(),))
}

pub(crate) fn date<'py>(py: Python<'py>, classes: &Classes, value: Date) -> PyResult<Object<'py>> {
    let (year, month, day) = value.ymd();
    check_year(py, year)?;
    classes.date.bind(py).call1((year, month, day))
}

pub(crate) fn time<'py>(py: Python<'py>, classes: &Classes, micros: i64) -> PyResult<Object<'py>> {
    // Python has no 24:00:00.
    if micros == MICROS_OF_DAY {
        return Err(errors::data_error(py, "22008", "Python has no time 24:00:00; select it as text"));
    }
    let (hour, minute, second, micros) = of_day(micros);
    classes.time.bind(py).call1((hour, minute, second, micros))
}

pub(crate) fn timestamp<'py>(py: Python<'py>, classes: &Classes, micros: i64, is_aware: bool) -> PyResult<Object<'py>> {
    let days = micros.div_euclid(MICROS_OF_DAY);
    let day = i32::try_from(days).map(Date::from_days);
    let (year, month, day) = day.map_or((i64::MAX, 1, 1), Date::ymd);
    check_year(py, year)?;
    let (hour, minute, second, micros) = of_day(micros.rem_euclid(MICROS_OF_DAY));
    let class = classes.datetime.bind(py);
    if is_aware {
        return class.call1((year, month, day, hour, minute, second, micros, classes.utc.bind(py)));
    }
    class.call1((year, month, day, hour, minute, second, micros))
}

pub(crate) fn uuid<'py>(py: Python<'py>, classes: &Classes, bytes: &[u8]) -> PyResult<Object<'py>> {
    // UUID(hex=None, bytes=bytes)
    classes.uuid.bind(py).call1((py.None(), PyBytes::new(py, bytes)))
}

pub(crate) fn interval<'py>(
    py: Python<'py>,
    classes: &Classes,
    (months, days, nanos): (i32, i32, i64),
) -> PyResult<Object<'py>> {
    if months != 0 {
        return classes.interval.bind(py).call1((months, days, nanos / 1_000));
    }
    let micros = nanos / 1_000;
    classes.timedelta.bind(py).call1((days, micros / MICROS_OF_SECOND, micros % MICROS_OF_SECOND))
}

fn of_day(micros: i64) -> (i64, i64, i64, i64) {
    let seconds = micros / MICROS_OF_SECOND;
    (seconds / 3_600, seconds / 60 % 60, seconds % 60, micros % MICROS_OF_SECOND)
}

fn check_year(py: Python<'_>, year: i64) -> PyResult<()> {
    if (1..=9_999).contains(&year) {
        return Ok(());
    }
    let message = "Python has no dates before year 1 and after year 9999; select it as text";
    Err(errors::data_error(py, "22008", message))
}
