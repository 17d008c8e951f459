//! `mainstem check`: verifies every checksum and invariant of a database's files.
//!
//! 1. Opening it read-only reads the manifest and replays the log; damage there is the end of it.
//! 2. Every block of every segment and file aside is read and checked; each damage is a line on standard error.
//! 3. Standard output says what was read; the exit status is 0 only if all of it is sound.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use mainstem::OpenOptions;

use crate::{fail, output};

/// Checks the database in directory `path`.
pub fn run(path: &Path) -> ExitCode {
    let options = OpenOptions { read_only: true, create: false, ..OpenOptions::default() };
    let database = match crate::open(path, options) {
        Ok(database) => database,
        Err(e) => return fail(&e),
    };
    let containers = database.storage().containers();
    let (asides, aside_bytes) = match database.storage().files_aside() {
        Ok(files) => files,
        Err(e) => return fail(&e),
    };
    let wrong = database.storage().verify();
    for error in &wrong {
        output::report(error, None);
    }
    // Entries of a key index stand for rows that are counted already; its segments are files like others.
    let in_files = || containers.iter().filter(|c| c.kind == "segment" || c.kind == "key index");
    let segments = in_files().count();
    let bytes: u64 = in_files().map(|c| c.bytes).sum();
    let rows: u64 = containers.iter().filter(|c| c.kind != "key index").map(|c| c.rows.saturating_sub(c.deleted)).sum();
    if !wrong.is_empty() {
        let among = format!("{segments} segments and {asides} files aside");
        output::say(&format!("{}: {} of {among} are damaged", path.display(), wrong.len()));
        return ExitCode::FAILURE;
    }
    let bytes = bytes + aside_bytes;
    let files = format!("{segments} segments and {asides} files aside ({bytes} bytes)");
    let read = format!("manifest, log, {files} with {rows} rows in all");
    match writeln!(std::io::stdout().lock(), "{}: {read} are sound", path.display()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            output::report_stop(&e.into(), None);
            ExitCode::FAILURE
        }
    }
}
