use mainstem_bench::report::Report;
use mainstem_bench::statements::{self, Plan};

use super::tiny;

fn run(parts: &[&str], peers: bool) -> Report {
    tiny::run("plan", parts, peers, |settings, report| statements::run(Plan::tiny(), settings, report))
}

#[test]
fn every_statement_answers_as_sqlite_does() {
    let report = run(&[], true);
    tiny::has(
        &report,
        &[
            ("key", "rate"),
            ("two rows", "rate"),
            ("text INSERT", "rate"),
            ("window", "rate"),
            ("window, prepared", "rate"),
            ("EXPLAIN join", "rate"),
            ("first call", "p99"),
        ],
    );
    assert_eq!(tiny::figures(&report).iter().filter(|(_, metric)| *metric == "rate").count(), 45, "{}", report.text());
    let rates = report.figures().iter().filter(|figure| figure.metric == "rate");
    for figure in rates {
        assert!(figure.value > 0.0 && figure.yardstick.is_some(), "{}", figure.case);
        let promised = !is_small(&figure.case);
        assert_eq!(figure.reach.is_some(), promised, "{}", figure.case);
    }
    assert!(!report.text().contains("refused"), "{}", report.text());
    assert!(report.text().contains("no peers, their columns are empty"), "{}", report.text());
}

/// Whether DuckDB's rate is what a case is held to, by eye.
fn is_small(case: &str) -> bool {
    let small =
        ["SELECT 1", "filter", "group", "small join", "top", "distinct", "aggregates", "having", "window", "subquery"];
    case.starts_with("medium") || small.contains(&case.trim_end_matches(", prepared"))
}

#[test]
fn one_part_runs_alone_and_without_peers() {
    let report = run(&["planning"], false);
    assert_eq!(report.figures().len(), 4 * 3, "{}", report.text());
    assert!(report.figures().iter().all(|figure| figure.yardstick.is_none()), "{}", report.text());
}
