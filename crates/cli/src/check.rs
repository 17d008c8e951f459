//! `mainstem check`: verifies every checksum and invariant of a database's files.

use std::path::Path;
use std::process::ExitCode;

use mainstem::{Database, OpenOptions};

/// Opens `path` read-only, which reads the manifest and replays the log, then reads every block.
pub fn run(path: &Path) -> ExitCode {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let database = match Database::open_with(path, options) {
        Ok(database) => database,
        Err(e) => return crate::fail(&e),
    };
    let containers = database.storage().containers();
    let wrong = database.storage().verify();
    for error in &wrong {
        eprintln!("ERROR {}: {error}", error.sqlstate());
    }
    let segments = containers.iter().filter(|c| c.kind == "segment").count();
    let rows: u64 = containers.iter().map(|c| c.rows - c.deleted).sum();
    if wrong.is_empty() {
        println!("{}: manifest, log, {segments} segments and {rows} rows are sound", path.display());
        ExitCode::SUCCESS
    } else {
        eprintln!("{}: {} of {segments} segments or runs are damaged", path.display(), wrong.len());
        ExitCode::FAILURE
    }
}
