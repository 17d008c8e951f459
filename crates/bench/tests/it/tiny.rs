//! Runs of experiments with very few rows.

use std::path::PathBuf;

use mainstem_bench::experiment::{Failure, Scale, Settings};
use mainstem_bench::report::Report;

/// Runs `parts` of `experiment`, whose answers have to be right; it may leave nothing behind. Peers, if wanted, are
/// those in this process: there is no folder with others.
pub fn run(
    experiment: &'static str,
    parts: &[&str],
    peers: bool,
    run: impl FnOnce(&Settings, &mut Report) -> Result<(), Failure>,
) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        scale: Scale::Quick,
        directory: directory.path().to_path_buf(),
        peers: peers.then(|| PathBuf::from("no such folder")),
        parts: parts.iter().map(ToString::to_string).collect(),
        program: PathBuf::from(env!("CARGO_BIN_EXE_mainstem-bench")),
    };
    let mut report = Report::new(experiment, "tiny", None);
    run(&settings, &mut report).unwrap();
    assert_eq!(report.wrong_answers(), [""; 0], "{}", report.text());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was left behind");
    report
}

/// Case and metric of each figure.
pub fn figures(report: &Report) -> Vec<(&str, &str)> {
    report.figures().iter().map(|f| (f.case.as_str(), f.metric)).collect()
}

/// The figures `wanted` are there.
pub fn has(report: &Report, wanted: &[(&str, &str)]) {
    let found = figures(report);
    for wanted in wanted {
        assert!(found.contains(wanted), "{wanted:?} is missing:\n{}", report.text());
    }
}
