//! Drives the built `mainstem` program as a user does: arguments and pipes in; output, errors and exit status out.

mod check;
mod demo;
mod formats;
mod program;
mod scripts;
