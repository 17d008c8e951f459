//! Mainstem for Python: what `import mainstem` loads.
//!
//! Comes in: SQL, Python values, tables of other libraries. Goes out: rows as tuples, Arrow streams, errors with
//! their SQLSTATE. The module lines stand from the top down: `connection` has what a program calls, `cursor` what it
//! gets back, `target` runs their statements; `rows` and `values` turn columns into objects, `parameters` objects
//! into values; `tables` lets queries read tables of the program; `waiting` lets Ctrl-C end what runs; `errors` makes
//! exceptions.
//!
//! Invariants: the interpreter's lock is never held while the engine works, and no lock of this module while Python
//! code runs; a connection that was carried over a fork is dead in the child, and its files are left alone. What can be
//! said in Python is said there (`python/mainstem`).

mod connection;
mod cursor;
mod target;
mod rows;
mod values;
mod parameters;
mod tables;
mod waiting;
mod session;
mod errors;

/// The entry points of the ADBC driver are symbols of this library, too.
pub use mainstem_adbc::{AdbcDriverInit, AdbcMainstemAdbcInit};
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native part of `mainstem`.
#[pymodule]
fn _mainstem(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_function(wrap_pyfunction!(session::forked, module)?)?;
    module.add_function(wrap_pyfunction!(tables::_schema_of_stream, module)?)?;
    module.add_function(wrap_pyfunction!(tables::ending, module)?)?;
    module.add_function(wrap_pyfunction!(shell, module)?)?;
    Ok(())
}

/// Runs the command line with `arguments`, the first of which is its name; returns the exit status.
#[pyfunction]
fn shell(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> i32 {
    let status = py.detach(|| mainstem_cli::run(arguments));
    i32::from(status != std::process::ExitCode::SUCCESS)
}
