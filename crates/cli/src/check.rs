//! `mainstem check`: verifies every checksum and invariant of a database's files.
//!
//! 1. Opening it read-only reads the manifest and replays the log; damage there is the end of it. A torn tail, which a
//!    crash leaves, is a warning.
//! 2. Every block of every segment and file aside is read and checked; each damage is a line on standard error.
//! 3. Beside a process that writes, what a later look at the files does not find wrong again is not wrong.
//! 4. Standard output says what was read, and which files recovery has set aside; the exit status is 0 only if all that
//!    belongs to the database is sound.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use mainstem::{CheckReport, Database, OpenOptions};

use crate::{fail, messages, output};

/// Checks the database in directory `path`.
pub fn run(path: &Path) -> ExitCode {
    let report = match Database::check(path, OpenOptions::new()) {
        Ok(report) => report,
        Err(e) => return fail(&crate::named(e, path)),
    };
    crate::warn(&report.notices);
    let CheckReport { containers, wrong, files_aside: (asides, aside_bytes), .. } = &report;
    for error in wrong.iter().chain(&report.unsettled) {
        messages::report(error, None);
    }
    // Entries of a key index stand for rows that are counted already; its segments are files like others.
    let in_files = || containers.iter().filter(|c| c.kind == "segment" || c.kind == "key index");
    let segments = in_files().count();
    let bytes: u64 = in_files().map(|c| c.bytes).sum();
    let rows: u64 = containers.iter().filter(|c| c.kind != "key index").map(|c| c.rows.saturating_sub(c.deleted)).sum();
    if !wrong.is_empty() {
        let among = format!("{segments} segments and {asides} files aside");
        messages::say(&format!("{}: {} of {among} are damaged", path.display(), wrong.len()));
        return ExitCode::FAILURE;
    }
    if !report.unsettled.is_empty() {
        let files = format!("{} files were replaced again and again while they were read", report.unsettled.len());
        messages::say(&format!("{}: {files}: check it when less is written to it", path.display()));
        return ExitCode::FAILURE;
    }
    let bytes = bytes + *aside_bytes;
    let files = format!("{segments} segments and {asides} files aside ({bytes} bytes)");
    let read = format!("manifest, log, {files} with {rows} rows in all");
    let beside = if report.is_live { ", beside a process that has it open" } else { "" };
    let lines = std::iter::once(format!("{read} are sound{beside}")).chain(files_set_aside(&report));
    let mut out = std::io::stdout().lock();
    match lines.into_iter().try_for_each(|line| writeln!(out, "{}: {line}", path.display())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            output::report_stop(&e.into(), None);
            ExitCode::FAILURE
        }
    }
}

/// What there is to say of files that recovery has set aside, a line each, and how much space they take.
fn files_set_aside(report: &CheckReport) -> Vec<String> {
    let line = |file: String, bytes: u64, log_file: u64| {
        format!("{file} ({bytes} bytes) was set aside when the tail of log file {log_file} was cut; nothing reads it")
    };
    let files = &report.lost_files;
    let mut lines: Vec<String> = files.iter().map(|(file, bytes)| line(file.path(), *bytes, file.log_file)).collect();
    if !lines.is_empty() {
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        lines.push(format!("files set aside: {}, {bytes} bytes; remove them if no rows are missed", files.len()));
    }
    lines
}
