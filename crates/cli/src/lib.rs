//! The `mainstem` program, as a library, so that the module for Python has it, too: a shell, a script runner, the
//! demo, the loader, the checker, and dumps.
//!
//! Comes in: arguments, SQL from `-c`, `-f`, a pipe or a terminal. Goes out: results on standard output, errors with
//! their SQLSTATE on standard error, and an exit status that is 0 only if every statement succeeded.

// Where SQL comes from, and what else is typed.
mod script;
mod shell;
mod commands;
// What runs it.
mod client;
// Where results go.
mod output;
mod messages;
mod interrupt;
// Programs of their own.
mod demo;
mod check;
mod load;
mod dump;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use mainstem::{Database, OpenOptions};

use client::Client;
use output::Format;
use script::Source;

/// A column store that takes single-row writes and answers analytical SQL on the same rows.
#[derive(Debug, Parser)]
#[command(name = "mainstem", version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sql: SqlArgs,
}

/// Running SQL.
#[derive(Debug, Args)]
struct SqlArgs {
    /// Directory of the database; in memory when absent, or ":memory:".
    database: Option<PathBuf>,
    /// What stands behind it by mistake.
    #[arg(hide = true)]
    too_many: Vec<String>,
    /// Run this SQL, or a command such as "\d t", and exit; may be given several times, and beside -f: all of it runs
    /// in the order in which it is given.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// Run the SQL in this file and exit; may be given several times.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How results are written; box on a terminal and csv elsewhere, unless told.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Open the database read-only: any number of processes may, while none writes.
    #[arg(long, requires = "database")]
    read_only: bool,
    /// Memory for buffers and queries: a number of bytes, or one with a unit, such as 512MB or 2GiB (each 1024 of the
    /// one before).
    #[arg(long, value_name = "SIZE", value_parser = memory_limit)]
    memory_limit: Option<u64>,
}

impl SqlArgs {
    /// What `-c` and `-f` give, in the order of `matches`, which these arguments were made of.
    fn sources(&self, matches: &ArgMatches) -> Vec<Source<'_>> {
        let places = |id| matches.indices_of(id).into_iter().flatten();
        let commands = self.commands.iter().map(|text| Source::Text(text));
        let files = self.files.iter().map(|path| Source::File(path));
        let mut sources: Vec<_> = places("commands").zip(commands).chain(places("files").zip(files)).collect();
        sources.sort_unstable_by_key(|(place, _)| *place);
        sources.into_iter().map(|(_, source)| source).collect()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Generate TPC-H data, load it, query it while it changes, reopen it, and verify it.
    Demo(demo::DemoArgs),
    /// Load CSV and Parquet files into a table, which is made if it is not there.
    Load(load::LoadArgs),
    /// Verify every checksum and invariant of a database's files, beside a process that writes to it, too.
    Check {
        /// Directory of the database.
        database: PathBuf,
    },
    /// Write a whole database as SQL, which `mainstem DATABASE -f FILE` reads back.
    Dump {
        /// Directory of the database.
        database: PathBuf,
        /// Write to this file instead of standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Runs the program with `arguments`, the first of which is its own name. Wrong ones end the process, as does `--help`.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = Cli::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.format(&mut Cli::command()).exit());
    match cli.command {
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Load(args)) => load::run(&args),
        Some(Command::Check { database }) => check::run(&database),
        Some(Command::Dump { database, output }) => dump::run(&database, output.as_deref()),
        None => match cli.sql.too_many.first() {
            Some(extra) => {
                let message =
                    format!("there is one DATABASE: \"{extra}\" is too many (SQL stands behind -c or in -f FILE)");
                Cli::command().error(ErrorKind::TooManyValues, message).exit()
            }
            None => run_sql(&cli.sql, &cli.sql.sources(&matches)),
        },
    }
}

/// The bytes that `--memory-limit` says.
fn memory_limit(text: &str) -> Result<u64, String> {
    mainstem::parse_byte_size(text).map_err(|e| e.message().to_owned())
}

/// The name of no directory, as in other embedded databases.
const IN_MEMORY: &str = ":memory:";

fn run_sql(args: &SqlArgs, sources: &[Source<'_>]) -> ExitCode {
    let mut options = OpenOptions::new().read_only(args.read_only);
    options.memory_limit = args.memory_limit.unwrap_or(options.memory_limit);
    let opened = match &args.database {
        Some(path) if path.as_os_str() != IN_MEMORY => open(path, options),
        _ => Database::in_memory_with(options),
    };
    let database = match opened {
        Ok(database) => database,
        Err(e) => return fail(&e),
    };
    warn(database.notices());
    let connection = match database.connect() {
        Ok(connection) => connection,
        Err(e) => return fail(&e),
    };
    let interactive = sources.is_empty() && std::io::stdin().is_terminal();
    let format = args.format.unwrap_or(if std::io::stdout().is_terminal() { Format::Box } else { Format::Csv });
    let mut client = Client::new(Arc::new(connection), format);
    let status = if interactive { shell::run(&mut client) } else { script::run(&mut client, &database, sources) };
    drop(client);
    match database.close() {
        Ok(()) => status,
        Err(e) => fail(&e),
    }
}

/// Opens the database in directory `path`; errors name it.
fn open(path: &Path, options: OpenOptions) -> mainstem::Result<Database> {
    Database::open_with(path, options).map_err(|e| named(e, path))
}

/// `error`, which names the database in directory `path`.
fn named(error: mainstem::Error, path: &Path) -> mainstem::Error {
    let name = path.display().to_string();
    if error.message().contains(&name) { error } else { error.context(name) }
}

/// Passes on what the opening of a database has to tell.
fn warn(notices: &[String]) {
    notices.iter().for_each(|notice| messages::say(&format!("WARNING 01000: {notice}")));
}

/// Reports an error and makes the exit status of it.
fn fail(error: &mainstem::Error) -> ExitCode {
    messages::report(error, None);
    ExitCode::FAILURE
}
