//! Python values as parameters of statements.
//!
//! Types are told apart by what they are exactly, the most frequent first; others by what they can be asked. What
//! cannot be held exactly is an error, never cut: whole numbers and decimals beyond 38 digits (22003), times finer than
//! a microsecond (22008), a text with surrogates (22021). A naive datetime is a TIMESTAMP, an aware one a TIMESTAMPTZ.

use mainstem::{Date, Decimal, Params, Time, Timestamp, TimestampTz, Uuid, ValueRef};
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::errors;

/// Lists in one another, as PostgreSQL has dimensions of arrays.
const DEPTH_MAX: usize = 6;
const MICROS_OF_SECOND: i64 = 1_000_000;
const MICROS_OF_DAY: i64 = 86_400 * MICROS_OF_SECOND;

/// One parameter's value. It borrows from the object it was made of.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Plain(ValueRef<'a>),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value<'_> {
    fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => ValueRef::Text(text),
            Self::Bytes(bytes) => ValueRef::Bytes(bytes),
        }
    }
}

/// Values of a statement's parameters, in their order.
pub(crate) struct Values<'v, 'a>(pub(crate) &'v [Value<'a>]);

impl Params for Values<'_, '_> {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        // On the stack, as far as rows usually go.
        let mut few = [ValueRef::Null; 8];
        if let Some(few) = few.get_mut(..self.0.len()) {
            few.iter_mut().zip(self.0).for_each(|(slot, value)| *slot = value.as_ref());
            return work(few);
        }
        work(&self.0.iter().map(Value::as_ref).collect::<Vec<_>>())
    }
}

/// Values that have names.
pub(crate) struct Named<'v, 'a>(pub(crate) &'v [String], pub(crate) &'v [Value<'a>]);

impl Params for Named<'_, '_> {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        Values(self.1).with_values(work)
    }

    fn names(&self) -> Option<Vec<&str>> {
        Some(self.0.iter().map(String::as_str).collect())
    }
}

/// The objects of a row of values, which are held as long as values borrow from them.
pub(crate) struct Row<'py> {
    names: Option<Vec<String>>,
    objects: Vec<Bound<'py, PyAny>>,
}

impl<'py> Row<'py> {
    /// The values that `given` has: a tuple, a list or another sequence, or a mapping of names.
    pub(crate) fn of(given: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        if let Ok(tuple) = given.cast::<PyTuple>() {
            return Ok(Self { names: None, objects: tuple.iter().collect() });
        }
        if let Ok(list) = given.cast::<PyList>() {
            return Ok(Self { names: None, objects: list.iter().collect() });
        }
        if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            let message = "parameters are a sequence or a mapping; a single value needs a comma behind it: (value,)";
            return Err(errors::misuse(py, "ProgrammingError", "08P01", message));
        }
        if let Ok(mapping) = given.cast::<PyMapping>() {
            let items = mapping.items()?;
            let (mut names, mut objects) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
            for item in items {
                let (name, value): (String, Bound<'py, PyAny>) = item.extract()?;
                names.push(name);
                objects.push(value);
            }
            return Ok(Self { names: Some(names), objects });
        }
        let items = given.try_iter().map_err(|_| {
            let message = format!("parameters are a sequence or a mapping, not {}", name_of(given));
            errors::misuse(py, "ProgrammingError", "08P01", &message)
        })?;
        Ok(Self { names: None, objects: items.collect::<PyResult<_>>()? })
    }

    /// The values.
    pub(crate) fn values(&self) -> PyResult<Vec<Value<'_>>> {
        self.objects.iter().map(value).collect()
    }

    pub(crate) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
}

fn name_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

/// The value that `object` is.
fn value<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    if object.is_none() {
        return Ok(Value::Plain(ValueRef::Null));
    }
    if object.is_exact_instance_of::<PyInt>() {
        return whole_number(object);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(Value::Plain(ValueRef::Text(text))),
            Err(_) => Err(errors::data_error(object.py(), "22021", "a text has surrogates, which are no characters")),
        };
    }
    if object.is_exact_instance_of::<PyFloat>() {
        return Ok(Value::Plain(ValueRef::Double(object.extract()?)));
    }
    if object.is_exact_instance_of::<PyBool>() {
        return Ok(Value::Plain(ValueRef::Boolean(object.extract()?)));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Plain(ValueRef::Bytes(bytes.as_bytes())));
    }
    other_value(object)
}

fn whole_number<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    match object.extract::<i64>() {
        Ok(number) => Ok(Value::Plain(ValueRef::BigInt(number))),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            decimal(object.py(), &object.str()?.to_cow()?)
        }
        Err(error) => Err(error),
    }
}

fn decimal<'a>(py: Python<'_>, text: &str) -> PyResult<Value<'a>> {
    match text.parse::<Decimal>() {
        Ok(number) => Ok(Value::Plain(ValueRef::Decimal(number))),
        Err(error) => {
            let message = format!("{text} is no number that a DECIMAL of 38 digits has: {}", error.message());
            Err(errors::data_error(py, "22003", &message))
        }
    }
}

/// The value of an object that is not of Python's plain types.
fn other_value<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    let py = object.py();
    let class = object.get_type();
    let (module, name) = (class.module()?.to_string(), class.name()?.to_string());
    match (module.as_str(), name.as_str()) {
        ("datetime", "datetime") => return datetime(object),
        ("datetime", "date") => return date(object),
        ("datetime", "time") => return time(object),
        ("datetime", "timedelta") => return interval(object),
        ("decimal", "Decimal") => return decimal(py, &fixed(object)?),
        ("uuid", "UUID") => {
            let bytes: [u8; 16] = object.getattr(intern!(py, "bytes"))?.extract()?;
            return Ok(Value::Plain(ValueRef::Uuid(Uuid::from(bytes))));
        }
        (_, "NAType" | "NaTType") if module.starts_with("pandas.") => return Ok(Value::Plain(ValueRef::Null)),
        ("mainstem", "Interval") | ("mainstem.types", "Interval") => {
            return Ok(Value::Text(object.str()?.to_string()));
        }
        _ => {}
    }
    if module == "numpy" {
        return numpy_value(object);
    }
    if object.is_instance(&py.import("enum")?.getattr("Enum")?)? {
        // Its value, also of one that is a number or a text as well.
        let inner = object.getattr(intern!(py, "value"))?;
        return owned(&inner);
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Plain(ValueRef::Boolean(object.extract()?)));
    }
    if object.is_instance_of::<PyInt>() {
        return whole_number(object);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Value::Plain(ValueRef::Double(object.extract()?)));
    }
    if object.hasattr(intern!(py, "nanosecond"))? {
        // pandas.Timestamp and its like.
        let nanoseconds: i64 = object.getattr(intern!(py, "nanosecond"))?.extract()?;
        if nanoseconds != 0 {
            return Err(too_fine(py));
        }
        return datetime(object);
    }
    if object.is_instance_of::<PyByteArray>() || name == "memoryview" {
        let bytes = py.get_type::<PyBytes>().call1((object,))?;
        return Ok(Value::Bytes(bytes.extract()?));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(Value::Text(array_text(object, 0)?));
    }
    if object.is_instance_of::<PyDict>() {
        let text = py.import("json")?.call_method1("dumps", (object,))?;
        return Ok(Value::Text(text.extract()?));
    }
    for (base, convert) in
        [("datetime", datetime as fn(&Bound<'_, PyAny>) -> PyResult<Value<'a>>), ("date", date), ("time", time)]
    {
        if object.is_instance(&py.import("datetime")?.getattr(base)?)? {
            return convert(object);
        }
    }
    let message = format!("a value of type {} cannot be a parameter; give a plain value or its text", name_of(object));
    Err(errors::misuse(py, "ProgrammingError", "42804", &message))
}

/// The value of `object`, which does not live long enough to borrow from.
fn owned<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    Ok(match value(object)? {
        Value::Plain(ValueRef::Text(text)) => Value::Text(text.to_owned()),
        Value::Plain(ValueRef::Bytes(bytes)) => Value::Bytes(bytes.to_owned()),
        Value::Plain(ValueRef::Null) => Value::Plain(ValueRef::Null),
        Value::Plain(ValueRef::Boolean(v)) => Value::Plain(ValueRef::Boolean(v)),
        Value::Plain(ValueRef::BigInt(v)) => Value::Plain(ValueRef::BigInt(v)),
        Value::Plain(ValueRef::Double(v)) => Value::Plain(ValueRef::Double(v)),
        Value::Plain(ValueRef::Decimal(v)) => Value::Plain(ValueRef::Decimal(v)),
        Value::Plain(ValueRef::Date(v)) => Value::Plain(ValueRef::Date(v)),
        Value::Plain(ValueRef::Time(v)) => Value::Plain(ValueRef::Time(v)),
        Value::Plain(ValueRef::Timestamp(v)) => Value::Plain(ValueRef::Timestamp(v)),
        Value::Plain(ValueRef::TimestampTz(v)) => Value::Plain(ValueRef::TimestampTz(v)),
        Value::Plain(ValueRef::Uuid(v)) => Value::Plain(ValueRef::Uuid(v)),
        Value::Plain(other) => Value::Text(format!("{other:?}")),
        Value::Text(text) => Value::Text(text),
        Value::Bytes(bytes) => Value::Bytes(bytes),
    })
}

fn too_fine(py: Python<'_>) -> PyErr {
    errors::data_error(py, "22008", "a time finer than a microsecond; round it first")
}

/// The digits of a Decimal without an exponent.
fn fixed(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = object.py();
    if !object.call_method0(intern!(py, "is_finite"))?.extract::<bool>()? {
        let message = format!("{object} is no value of a DECIMAL");
        return Err(errors::data_error(py, "22003", &message));
    }
    object.call_method1(intern!(py, "__format__"), ("f",))?.extract()
}

fn part(object: &Bound<'_, PyAny>, name: &Bound<'_, pyo3::types::PyString>) -> PyResult<i64> {
    object.getattr(name)?.extract()
}

fn days(object: &Bound<'_, PyAny>) -> PyResult<i32> {
    let py = object.py();
    let (year, month, day) =
        (part(object, intern!(py, "year"))?, part(object, intern!(py, "month"))?, part(object, intern!(py, "day"))?);
    let date = Date::new(year as i32, month as u32, day as u32).map_err(|e| errors::exception(py, &e))?;
    Ok(date.days())
}

fn micros(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = object.py();
    let hours = part(object, intern!(py, "hour"))?;
    let minutes = hours * 60 + part(object, intern!(py, "minute"))?;
    let seconds = minutes * 60 + part(object, intern!(py, "second"))?;
    Ok(seconds * MICROS_OF_SECOND + part(object, intern!(py, "microsecond"))?)
}

fn date<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    Ok(Value::Plain(ValueRef::Date(Date::from_days(days(object)?))))
}

fn time<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    let py = object.py();
    if !object.getattr(intern!(py, "tzinfo"))?.is_none() {
        return Err(errors::data_error(py, "0A000", "times of a day have no time zone here; take it off"));
    }
    let time = Time::from_micros(micros(object)?).map_err(|e| errors::exception(py, &e))?;
    Ok(Value::Plain(ValueRef::Time(time)))
}

fn datetime<'a>(object: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    let py = object.py();
    let local = i64::from(days(object)?) * MICROS_OF_DAY + micros(object)?;
    let offset = object.call_method0(intern!(py, "utcoffset"))?;
    if offset.is_none() {
        return Ok(Value::Plain(ValueRef::Timestamp(Timestamp::from_micros(local))));
    }
    Ok(Value::Plain(ValueRef::TimestampTz(TimestampTz::from_micros(local - span(&offset)?))))
}

/// The microseconds of a timedelta.
fn span(delta: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = delta.py();
    let seconds = part(delta, intern!(py, "days"))? * 86_400 + part(delta, intern!(py, "seconds"))?;
    Ok(seconds * MICROS_OF_SECOND + part(delta, intern!(py, "microseconds"))?)
}

fn interval<'a>(delta: &Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    let py = delta.py();
    let days = part(delta, intern!(py, "days"))?;
    let micros = part(delta, intern!(py, "seconds"))? * MICROS_OF_SECOND + part(delta, intern!(py, "microseconds"))?;
    Ok(Value::Text(format!("{days} days {}.{:06} seconds", micros / MICROS_OF_SECOND, micros % MICROS_OF_SECOND)))
}

fn numpy_value<'a, 'py>(object: &Bound<'py, PyAny>) -> PyResult<Value<'a>> {
    let py = object.py();
    if !object.hasattr(intern!(py, "dtype"))? {
        return Err(errors::misuse(py, "ProgrammingError", "42804", "a type of NumPy cannot be a parameter"));
    }
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    if object.getattr("ndim")?.extract::<usize>()? > 0 {
        return Ok(Value::Text(array_text(&object.call_method0("tolist")?, 0)?));
    }
    if kind == "M" || kind == "m" {
        if py.import("numpy")?.call_method1("isnat", (object,))?.extract()? {
            return Ok(Value::Plain(ValueRef::Null));
        }
        let (fine, coarse) =
            if kind == "M" { ("datetime64[us]", "datetime64[Y]") } else { ("timedelta64[us]", "timedelta64[W]") };
        let out_of_range = || errors::data_error(py, "22008", "the time is out of range");
        // Newer versions of NumPy refuse what microseconds do not reach; older ones take it for another time.
        let whole = object
            .call_method1("astype", (fine,))
            .map_err(|error| if error.is_instance_of::<PyOverflowError>(py) { out_of_range() } else { error })?;
        let years = |value: &Bound<'py, PyAny>| value.call_method1("astype", (coarse,));
        if !years(&whole)?.eq(years(object)?)? {
            return Err(out_of_range());
        }
        if !whole.eq(object)? {
            return Err(too_fine(py));
        }
        return owned(&whole.call_method0("item")?);
    }
    if kind == "f" {
        return Ok(Value::Plain(ValueRef::Double(object.extract()?)));
    }
    let item = object.call_method0("item")?;
    if item.get_type().is(object.get_type()) {
        let message = format!("a value of type {} cannot be a parameter", name_of(object));
        return Err(errors::misuse(py, "ProgrammingError", "42804", &message));
    }
    owned(&item)
}

/// A list as SQL writes an array: `{1,2,NULL,"a b"}`.
fn array_text(list: &Bound<'_, PyAny>, depth: usize) -> PyResult<String> {
    if depth > DEPTH_MAX {
        let message = "a list in more lists than an array has dimensions";
        return Err(errors::misuse(list.py(), "ProgrammingError", "42804", message));
    }
    let mut text = String::from("{");
    for (at, item) in list.try_iter()?.enumerate() {
        let item = item?;
        if at > 0 {
            text.push(',');
        }
        if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
            text.push_str(&array_text(&item, depth + 1)?);
            continue;
        }
        match value(&item)? {
            Value::Plain(ValueRef::Null) => text.push_str("NULL"),
            Value::Plain(ValueRef::Text(part)) => quote(&mut text, part),
            Value::Text(part) => quote(&mut text, &part),
            Value::Plain(ValueRef::Boolean(flag)) => text.push_str(if flag { "true" } else { "false" }),
            Value::Plain(ValueRef::BigInt(number)) => text.push_str(&number.to_string()),
            _ => quote(&mut text, &item.str()?.to_cow()?),
        }
    }
    text.push('}');
    Ok(text)
}

fn quote(text: &mut String, part: &str) {
    text.push('"');
    for char in part.chars() {
        if matches!(char, '"' | '\\') {
            text.push('\\');
        }
        text.push(char);
    }
    text.push('"');
}
