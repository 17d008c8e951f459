//! `mainstem demo`: the main job in one command, with figures and a verdict.
//!
//! 1. `place`: a directory of our own, temporary unless one is named.
//! 2. `generate`: TPC-H data as CSV files.
//! 3. `load`: tables with keys, COPY FROM those files.
//! 4. `queries`: analytical queries alone, then in a loop while `writer` inserts, updates and deletes orders with their
//!    line items in transactions and keeps its own `ledger` of what it committed.
//! 5. `verify`: before closing and after reopening, base plus ledger must equal what the database holds, exactly.
//! 6. `report`: a table a person understands.
//!
//! Results go to standard output, progress to standard error if that is a terminal. The exit status is 0 only if
//! everything ran and the verification agreed.

mod place;
mod generate;
mod load;
mod queries;
mod writer;
mod latencies;
mod ledger;
mod verify;
mod report;
mod progress;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use mainstem::{Connection, Database, Error, InterruptHandle, OpenOptions};

use crate::interrupt::{self, Idle};
use crate::{messages, output};
use place::Place;
use report::Report;

/// Arguments of `mainstem demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Directory for the CSV files and the database, empty or from an earlier demo; a temporary one when absent.
    dir: Option<PathBuf>,
    /// Size of the data: 1 is 8.7 million rows, 1 GB of CSV.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, value_parser = scale_factor)]
    scale_factor: f64,
    /// How long queries and the writer run side by side.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// When a commit returns: fsynced, handed to the operating system, or at once.
    #[arg(long, value_enum, default_value_t = SynchronousArg::Full)]
    synchronous: SynchronousArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SynchronousArg {
    Full,
    Normal,
    Off,
}

impl From<SynchronousArg> for mainstem::Synchronous {
    fn from(argument: SynchronousArg) -> Self {
        match argument {
            SynchronousArg::Full => Self::Full,
            SynchronousArg::Normal => Self::Normal,
            SynchronousArg::Off => Self::Off,
        }
    }
}

/// Smallest scale factor: every table has rows.
const SCALE_FACTOR_MIN: f64 = 0.001;
/// Largest scale factor: keys, and sums in hundredths, fit 64 bits with room.
const SCALE_FACTOR_MAX: f64 = 1_000.0;
/// Longest time of queries and writer together: a day.
const SECONDS_MAX: f64 = 86_400.0;

fn scale_factor(text: &str) -> Result<f64, String> {
    number(text, SCALE_FACTOR_MIN, SCALE_FACTOR_MAX)
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text, 0.1, SECONDS_MAX)
}

fn number(text: &str, min: f64, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (min..=max).contains(&number) { Ok(number) } else { Err(format!("it must be from {min} to {max}")) }
}

/// Why the demo ended early.
#[derive(Debug)]
enum Trouble {
    /// A statement or a file operation failed.
    Failed(Error),
    /// The database said something that cannot be.
    Wrong(String),
    /// Ctrl-C.
    Cancelled,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Outcome<T> = Result<T, Trouble>;

/// Whether Ctrl-C came, and whom to tell.
#[derive(Clone, Debug, Default)]
struct Cancel {
    asked: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<InterruptHandle>>>,
}

impl Cancel {
    /// A connection whose statements Ctrl-C ends.
    fn connect(&self, database: &Database) -> Outcome<Connection> {
        let connection = database.connect()?;
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.push(connection.interrupt_handle());
        Ok(connection)
    }

    /// Asks all to end.
    fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        for connection in self.connections.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            connection.interrupt();
        }
    }

    /// # Errors
    /// Cancelled, if it was asked for.
    fn check(&self) -> Outcome<()> {
        if self.asked.load(Ordering::SeqCst) { Err(Trouble::Cancelled) } else { Ok(()) }
    }
}

/// Runs the demo.
pub fn run(args: &DemoArgs) -> ExitCode {
    let cancel = Cancel::default();
    let to_ask = cancel.clone();
    // All the while: it is asked to stop, and closes what it has opened.
    let _running = interrupt::running();
    interrupt::on_ctrl_c(Idle::Stay, move || to_ask.ask());
    let trouble = match demo(args, &cancel) {
        Ok(report) => {
            let verified = report.wrong.is_empty();
            if let Err(e) = std::io::stdout().lock().write_all(report.render().as_bytes()) {
                output::report_stop(&e.into(), None);
                return ExitCode::FAILURE;
            }
            return if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        // A statement that Ctrl-C ended says so itself.
        Err(trouble) => {
            if cancel.check().is_err() {
                Trouble::Cancelled
            } else {
                trouble
            }
        }
    };
    match trouble {
        Trouble::Failed(error) => messages::report(&error, None),
        Trouble::Wrong(what) => messages::say(&format!("ERROR XX000: {what}")),
        Trouble::Cancelled => messages::say("ERROR 57014: the demo was cancelled"),
    }
    ExitCode::FAILURE
}

fn demo(args: &DemoArgs, cancel: &Cancel) -> Outcome<Report> {
    let place = Place::new(args.dir.as_deref())?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let tables = generate::generate(place.csv(), args.scale_factor, threads, cancel)?;
    let generated = start.elapsed();

    let options = OpenOptions::new().synchronous(args.synchronous.into());
    let database = Database::open_with(place.database(), options.clone())?;
    let connection = cancel.connect(&database)?;
    let loaded = load::load(&connection, &tables, cancel)?;
    let base = verify::totals(&connection)?;
    let mut wrong = verify::loaded(&base, &tables);

    let alone = queries::alone(&connection, cancel)?;
    let size = writer::Size::of(args.scale_factor);
    let together = queries::beside_writer(&database, size, Duration::from_secs_f64(args.seconds), cancel)?;
    wrong.extend(together.wrong.iter().cloned());
    wrong.extend(verify::verify(&connection, base, &together.written.ledger, "before closing")?);

    drop(connection);
    let start = Instant::now();
    database.close()?;
    drop(database);
    let closed = start.elapsed();
    let bytes = place.database_bytes()?;

    let start = Instant::now();
    let database = Database::open_with(place.database(), options)?;
    let reopened = start.elapsed();
    let connection = cancel.connect(&database)?;
    wrong.extend(verify::verify(&connection, base, &together.written.ledger, "after reopening")?);
    let now = verify::totals(&connection)?;
    drop(connection);
    database.close()?;
    Ok(Report {
        scale_factor: args.scale_factor,
        synchronous: options_name(args.synchronous),
        threads,
        generated,
        loaded,
        alone,
        together,
        closed,
        reopened,
        bytes,
        now,
        wrong,
        kept: place.kept(),
    })
}

fn options_name(argument: SynchronousArg) -> String {
    mainstem::Synchronous::from(argument).to_string()
}
