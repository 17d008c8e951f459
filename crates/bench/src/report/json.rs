//! One JSON line a figure, with what it takes to compare it with the figure of another day.

use std::io::Write;
use std::process::Command;

use serde::Serialize;

use super::Figure;

/// What all figures of a run share.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    scale: &'static str,
    profile: &'static str,
    cores: usize,
    commit: Option<String>,
}

impl Settings {
    pub(super) fn of(scale: &'static str) -> Self {
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { scale, profile, cores, commit: commit() }
    }

    pub(super) fn is_release(&self) -> bool {
        self.profile == "release"
    }

    /// As the head of a table.
    pub(super) fn text(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        format!("{}, {} build, {} cores, commit {commit}", self.scale, self.profile, self.cores)
    }
}

/// The commit of the checkout around the current directory, if git knows.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_string()).filter(|commit| output.status.success() && !commit.is_empty())
}

#[derive(Serialize)]
struct Line<'a> {
    experiment: &'a str,
    case: &'a str,
    metric: &'a str,
    value: f64,
    unit: &'a str,
    yardstick: Option<&'a str>,
    yardstick_value: Option<f64>,
    reach: Option<f64>,
    met: Option<bool>,
    low: f64,
    high: f64,
    #[serde(flatten)]
    settings: &'a Settings,
}

pub(super) fn write(
    out: &mut dyn Write,
    experiment: &str,
    settings: &Settings,
    figure: &Figure,
) -> std::io::Result<()> {
    let line = Line {
        experiment,
        case: &figure.case,
        metric: figure.metric,
        value: figure.value,
        unit: figure.unit.name(),
        yardstick: figure.yardstick.as_ref().map(|y| y.name.as_str()),
        yardstick_value: figure.yardstick.as_ref().map(|y| y.value),
        reach: figure.bound(),
        met: figure.met(),
        low: figure.spread.0,
        high: figure.spread.1,
        settings,
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)?;
    out.flush()
}
