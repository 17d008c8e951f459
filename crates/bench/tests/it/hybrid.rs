use mainstem_bench::experiment::{Scale, Settings};
use mainstem_bench::hybrid::{self, Plan};
use mainstem_bench::report::Report;

/// Runs the parts with very few rows, without peers.
fn run(parts: &[&str]) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        scale: Scale::Quick,
        directory: directory.path().to_path_buf(),
        peers: None,
        parts: parts.iter().map(ToString::to_string).collect(),
    };
    let mut report = Report::new("hybrid", "tiny", None);
    hybrid::run(Plan::tiny(), &settings, &mut report).unwrap();
    assert_eq!(report.wrong_answers(), [""; 0], "{}", report.text());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was left behind");
    report
}

/// Case and metric of each figure.
fn figures(report: &Report) -> Vec<(&str, &str)> {
    report.figures().iter().map(|f| (f.case.as_str(), f.metric)).collect()
}

#[test]
fn every_part_gives_right_answers() {
    let report = run(&[]);
    let found = figures(&report);
    for wanted in [
        ("SELECT by key", "p99"),
        ("INSERT, sync off", "rate"),
        ("UPDATE, sync off", "p99"),
        ("DELETE, sync off", "worst stall"),
        ("DELETE, sync full, 1 thread", "rate"),
        ("INSERT, sync full, 16 threads", "commits per fsync"),
        ("upsert, half hits", "rate"),
        ("SELECT by key, two threads", "rate"),
        ("DELETE, two threads", "rate"),
        ("rows in transactions of 100 INSERTs", "rate"),
        ("rows in INSERTs of 100 rows", "rate"),
        ("rows by the appender", "rate"),
        ("delta, full", "bytes a raw byte"),
        ("rows scanned, all columns", "rate"),
        ("rows scanned beside a writer", "rate"),
    ] {
        assert!(found.contains(&wanted), "{wanted:?} is missing:\n{}", report.text());
    }
    assert!(report.figures().iter().all(|f| f.value.is_finite() && f.value > 0.0), "{}", report.text());
    assert!(report.text().contains("run without peers"), "{}", report.text());
}

#[test]
fn one_part_runs_alone() {
    let report = run(&["memory"]);
    assert_eq!(figures(&report), [("delta, a tenth full", "bytes a raw byte"), ("delta, full", "bytes a raw byte")]);
}
