//! What the library has for programs: options, helpers and conversions.

mod check;
mod interop;
mod long_rows;
mod memory_limit;
mod named;
mod options;
mod retry;
mod temporary_files;
