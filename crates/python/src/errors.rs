//! Errors of the engine as exceptions, whose classes `mainstem.errors` has.

use mainstem::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception of an error of the engine.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let object = error.object().map(|object| object.name.join("."));
    let arguments = (error.sqlstate(), kind(error.kind()), error.message(), error.position(), object);
    let made = of_engine(py).and_then(|make| make.bind(py).call1(arguments));
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// An exception for wrong use of the module itself: the class `name` of `mainstem.errors`.
pub(crate) fn misuse(py: Python<'_>, name: &str, sqlstate: &str, message: &str) -> PyErr {
    let made = py
        .import("mainstem.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| Ok(class.cast_into::<PyType>()?))
        .and_then(|class| class.call1((message, sqlstate)));
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// An error that tells what a value of the program is wrong for.
pub(crate) fn data_error(py: Python<'_>, sqlstate: &str, message: &str) -> PyErr {
    misuse(py, "DataError", sqlstate, message)
}

fn of_engine(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.get_or_try_init(py, || py.import("mainstem.errors")?.getattr("_of_engine").map(Bound::unbind))?;
    Ok(make)
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Constraint => "constraint",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Io => "io",
        ErrorKind::Full => "full",
        ErrorKind::Closed => "closed",
        ErrorKind::Internal => "internal",
        _ => "other",
    }
}
