//! `mainstem load`: files into a table.
//!
//! 1. What the files look like is found in them. A table that is not there is made, with their columns; one that is
//!    there gives the types, and a header tells which of its columns a file has.
//! 2. All files are one transaction: loaded as a whole or not at all.
//! 3. A bar on a terminal tells how far it has come; Ctrl-C cancels, and the database is as it was.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use mainstem::{Connection, Database, OpenOptions, Progress, sqlstate};

use crate::interrupt::{self, Idle};
use crate::{fail, messages};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Loading files.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Directory of the database; it is made if it is not there.
    database: PathBuf,
    /// The table, perhaps with its schema; it is made if it is not there.
    table: String,
    /// CSV and Parquet files; .csv.gz and .csv.zst, too.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Memory for buffers and queries: a number of bytes, or one with a unit, such as 512MB or 2GiB.
    #[arg(long, value_name = "SIZE", value_parser = crate::memory_limit)]
    memory_limit: Option<u64>,
}

/// Loads the files of `args`.
pub fn run(args: &LoadArgs) -> ExitCode {
    let mut options = OpenOptions::new();
    options.memory_limit = args.memory_limit.unwrap_or(options.memory_limit);
    let database = match crate::open(&args.database, options) {
        Ok(database) => database,
        Err(e) => return fail(&e),
    };
    crate::warn(database.notices());
    let loaded = load(&database, args);
    let closed = database.close();
    match loaded.and(closed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

fn load(database: &Database, args: &LoadArgs) -> mainstem::Result<()> {
    let connection = database.connect()?;
    // Between two statements there is nothing to cancel: it is asked for again and again.
    let (handle, wanted) = (connection.interrupt_handle(), Arc::new(AtomicBool::new(false)));
    let asked = wanted.clone();
    interrupt::on_ctrl_c(Idle::Stay, move || asked.store(true, Ordering::Release));
    let _running = interrupt::running();
    let cancel = move || {
        if wanted.load(Ordering::Acquire) {
            handle.interrupt();
        }
    };
    let table = quoted(&args.table);
    let is_there = is_there(&connection, &table)?;
    let begun = Instant::now();
    let bytes: u64 = args.files.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum();
    let rows = with_bar(&connection.progress(), bytes, &cancel, |done| {
        if is_there { append(&connection, &table, &args.files, done) } else { make(&connection, &table, &args.files) }
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let rate = bytes as f64 / 1e6 / seconds.max(1e-9);
    let what = if is_there { "into" } else { "into the new table" };
    messages::say(&format!(
        "{} rows {what} {table}: {} in {seconds:.2} s, {rate:.0} MB/s",
        HumanCount(rows),
        HumanBytes(bytes)
    ));
    Ok(())
}

/// Whether there is a table `table`.
fn is_there(connection: &Connection, table: &str) -> mainstem::Result<bool> {
    match connection.execute(&format!("SELECT 1 FROM {table} LIMIT 0")) {
        Ok(_) => Ok(true),
        Err(e) if e.sqlstate() == sqlstate::UNDEFINED_TABLE => Ok(false),
        Err(e) => Err(e),
    }
}

/// Makes a table of all files.
fn make(connection: &Connection, table: &str, files: &[PathBuf]) -> mainstem::Result<u64> {
    let files: Vec<String> = files.iter().map(|file| literal(file)).collect();
    run_one(connection, &format!("CREATE TABLE {table} AS SELECT * FROM read_file(ARRAY[{}])", files.join(", ")))
}

/// Appends the rows of all files, one after the other; `done` is told of each.
fn append(connection: &Connection, table: &str, files: &[PathBuf], done: &dyn Fn()) -> mainstem::Result<u64> {
    connection.execute("BEGIN")?;
    let mut rows = 0;
    for file in files {
        let is_parquet = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
        let options = if is_parquet { "FORMAT parquet" } else { "FORMAT csv, AUTO_DETECT" };
        match run_one(connection, &format!("COPY {table} FROM {} ({options})", literal(file))) {
            Ok(more) => rows += more,
            Err(e) => {
                connection.execute("ROLLBACK")?;
                return Err(e);
            }
        }
        done();
    }
    connection.execute("COMMIT")?;
    Ok(rows)
}

/// Runs a statement, and says what it has to tell.
fn run_one(connection: &Connection, sql: &str) -> mainstem::Result<u64> {
    let mut rows = 0;
    for outcome in connection.run(sql)? {
        let outcome = outcome?;
        outcome.notices.iter().for_each(|notice| messages::say(&format!("NOTICE: {}", notice.message)));
        rows += outcome.rows_affected.unwrap_or(0);
    }
    Ok(rows)
}

/// Runs `work` beside a bar of `bytes`, which calls `tick` as it moves; `work` calls what it is given when a file is
/// done.
fn with_bar<T>(
    progress: &Progress,
    bytes: u64,
    tick: &(dyn Fn() + Sync),
    work: impl FnOnce(&dyn Fn()) -> mainstem::Result<T>,
) -> mainstem::Result<T> {
    let bar = ProgressBar::new(bytes);
    let template = "{wide_bar} {bytes} of {total_bytes}  {msg} rows  {bytes_per_sec}  {eta} left";
    // Without its style a bar only looks plainer.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let is_done = AtomicBool::new(false);
    // Of the files before the one that is read.
    let (bytes_before, rows_before) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let watch = || {
            while !is_done.load(Ordering::Acquire) {
                tick();
                bar.set_position(bytes_before.load(Ordering::Relaxed) + progress.bytes());
                bar.set_message(HumanCount(rows_before.load(Ordering::Relaxed) + progress.rows()).to_string());
                std::thread::park_timeout(TICK);
            }
        };
        // What cannot be watched is loaded all the same.
        let watcher = std::thread::Builder::new().name("progress".into()).spawn_scoped(scope, watch);
        let done = work(&|| {
            bytes_before.fetch_add(progress.bytes(), Ordering::Relaxed);
            rows_before.fetch_add(progress.rows(), Ordering::Relaxed);
        });
        is_done.store(true, Ordering::Release);
        if let Ok(watcher) = &watcher {
            watcher.thread().unpark();
        }
        bar.finish_and_clear();
        done
    })
}

/// A path as a text of SQL.
fn literal(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

/// The name of a table, each part in quotes if it has to be.
fn quoted(name: &str) -> String {
    let part = |part: &str| {
        let is_plain = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_plain { part.to_owned() } else { format!("\"{}\"", part.trim_matches('"').replace('"', "\"\"")) }
    };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}
