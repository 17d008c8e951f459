//! What the library has for programs: options, helpers and conversions.

mod check;
mod interop;
mod memory_limit;
mod named;
mod options;
mod retry;
mod temporary_files;
