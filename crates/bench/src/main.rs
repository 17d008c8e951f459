//! `mainstem-bench`: lists experiments and runs them.
//!
//! Exit status: 0 when all answers were right, whatever the figures; 1 when an answer was wrong; 2 when it could not be
//! run.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use mainstem_bench::experiment::{Experiment, Failure, Scale, Settings};
use mainstem_bench::experiments;
use mainstem_bench::report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures what Mainstem promises, beside other engines in the same call.
#[derive(Parser)]
#[command(name = "mainstem-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Names the experiments and their parts.
    List,
    /// Runs experiments and prints their tables. Fails when an answer is wrong, not when a figure is missed.
    Run(Run),
    /// Works for an experiment in a process of its own, which the experiment ends when it likes.
    #[command(hide = true)]
    Child {
        /// What to do, as the experiment says it.
        arguments: Vec<String>,
    },
}

#[derive(Args)]
struct Run {
    /// Experiments, as `list` names them.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Small and short: to see that it works.
    #[arg(long, conflicts_with = "paper")]
    quick: bool,
    /// The sizes of the paper, for experiments that repeat one.
    #[arg(long)]
    paper: bool,
    /// Writes a JSON line a figure to this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs only this part; may be given several times.
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<String>,
    /// Leaves the peers out.
    #[arg(long)]
    no_peers: bool,
    /// Where databases are made for the time of the run; the system's folder for temporary files unless given.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::List => {
            list();
            ExitCode::SUCCESS
        }
        Command::Run(run) => ended(run_all(&run)),
        Command::Child { arguments } => ended(child(&arguments).map(|()| true)),
    }
}

/// The exit status of a run, which tells whether all answers were right.
fn ended(run: Result<bool, Failure>) -> ExitCode {
    match run {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("mainstem-bench: {failure}");
            ExitCode::from(2)
        }
    }
}

#[cfg(feature = "sql")]
fn child(arguments: &[String]) -> Result<(), Failure> {
    mainstem_bench::recovery::child(arguments)
}

#[cfg(not(feature = "sql"))]
fn child(_: &[String]) -> Result<(), Failure> {
    Err(Failure::Broken("this build is without the feature `sql`".into()))
}

fn list() {
    for experiment in experiments::all() {
        println!("{}: {}", experiment.name, experiment.about);
        for (part, about) in experiment.parts {
            println!("    {part:<10} {about}");
        }
    }
    if experiments::all().is_empty() {
        println!("none: this build is without the feature `sql`");
    }
}

/// Whether all answers were right.
fn run_all(run: &Run) -> Result<bool, Failure> {
    let experiments: Vec<&Experiment> = run.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    for part in &run.parts {
        if !experiments.iter().any(|e| e.parts.iter().any(|(name, _)| name == part)) {
            return Err(Failure::Broken(format!("no part is named \"{part}\"; `mainstem-bench list` names them")));
        }
    }
    let scale = match (run.quick, run.paper) {
        (true, _) => Scale::Quick,
        (_, true) => Scale::Paper,
        _ => Scale::Full,
    };
    let settings = Settings {
        scale,
        directory: run.directory.clone().unwrap_or_else(std::env::temp_dir),
        peers: (!run.no_peers).then(peers_folder),
        parts: run.parts.clone(),
        program: std::env::current_exe()?,
    };
    let json = run.json.as_ref().map(File::create).transpose()?;
    let mut right = true;
    for experiment in experiments {
        let out = json.as_ref().map(File::try_clone).transpose()?.map(|file| Box::new(file) as Box<dyn Write>);
        let mut report = Report::new(experiment.name, scale.name(), out);
        let outcome = (experiment.run)(&settings, &mut report);
        // What was measured before it broke is shown in any case.
        println!("{}", report.text());
        outcome?;
        right &= report.wrong_answers().is_empty();
    }
    Ok(right)
}

fn find(name: &str) -> Result<&'static Experiment, Failure> {
    experiments::named(name)
        .ok_or_else(|| Failure::Broken(format!("no experiment is named \"{name}\"; `mainstem-bench list` names them")))
}

/// The scripts in the checkout. Cargo tells at run time which one it is: several may share one build.
fn peers_folder() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR"))).join("../../bench/peers")
}
