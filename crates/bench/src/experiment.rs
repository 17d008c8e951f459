//! What an experiment is, and what one is told.

use std::fmt;
use std::path::PathBuf;

use crate::report::Report;

/// How large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Small and short: a minute at most.
    Quick,
    /// As promised: the sizes and times that the figures to reach are for.
    #[default]
    Full,
    /// The sizes of the paper, for experiments that repeat one; the others run in full.
    Paper,
}

impl Scale {
    /// As the reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Paper => "paper",
        }
    }
}

/// What an experiment is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How large.
    pub scale: Scale,
    /// Where databases are made. What is made there is removed at the end.
    pub directory: PathBuf,
    /// The folder of the peers' scripts; none leaves the peers out.
    pub peers: Option<PathBuf>,
    /// Parts of the experiment to run; all when empty.
    pub parts: Vec<String>,
    /// This program, for what has to run in a process of its own.
    pub program: PathBuf,
}

impl Settings {
    /// Whether `part` is to be run.
    #[must_use]
    pub fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|name| name == part)
    }

    /// A folder for databases, which is removed when it is dropped.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn scratch(&self) -> std::io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("mainstem-bench-").tempdir_in(&self.directory)
    }
}

/// A part of an experiment.
pub type Part<P> = fn(P, &Settings, &mut Report) -> Result<(), Failure>;

/// Runs those of `parts` that `settings` name, as `plan` says. A wrong answer, or a refusal, ends a part alone, and
/// stands in the report.
///
/// # Errors
/// Others that end a part.
pub fn run_parts<P: Copy>(
    parts: &[(&str, Part<P>)],
    plan: P,
    settings: &Settings,
    report: &mut Report,
) -> Result<(), Failure> {
    for (name, part) in parts.iter().filter(|(name, _)| settings.wants(name)) {
        let outcome = part(plan, settings, report);
        note(name, outcome, report)?;
    }
    Ok(())
}

/// Puts down what ended `case` alone.
///
/// # Errors
/// What ends more than that.
pub fn note(case: &str, outcome: Result<(), Failure>, report: &mut Report) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Wrong(what)) => report.wrong(format!("{case}: {what}")),
        Err(Failure::Refused(why)) => report.note(format!("{case}: refused, not measured: {why}")),
        other => other?,
    }
    Ok(())
}

/// Why an experiment, or a part of one, ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An answer was wrong, or an error stood in its place.
    Wrong(String),
    /// The engine refuses a statement as not supported (0A000): nothing can be measured.
    Refused(String),
    /// The bench itself could not go on: files, processes, arguments.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) | Self::Refused(what) | Self::Broken(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

#[cfg(feature = "sql")]
impl From<mainstem::Error> for Failure {
    fn from(error: mainstem::Error) -> Self {
        let text = format!("{}: {error}", error.sqlstate());
        match (error.kind(), error.sqlstate()) {
            (mainstem::ErrorKind::Io, _) => Self::Broken(text),
            (_, mainstem::sqlstate::FEATURE_NOT_SUPPORTED) => Self::Refused(text),
            _ => Self::Wrong(text),
        }
    }
}

#[cfg(feature = "sql")]
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(format!("SQLite: {error}"))
    }
}

/// An experiment.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// Its parts, which can be run alone, with what each measures.
    pub parts: &'static [(&'static str, &'static str)],
    /// Runs it. What is wrong with single parts stands in the report.
    pub run: fn(&Settings, &mut Report) -> Result<(), Failure>,
}
