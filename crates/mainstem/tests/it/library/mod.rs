//! What the library has for programs: options, helpers and conversions.

mod check;
mod external_tables;
mod interop;
mod long_rows;
mod many_rows;
mod memory_limit;
mod named;
mod options;
mod outcomes;
mod retry;
mod temporary_files;
