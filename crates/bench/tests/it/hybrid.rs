use mainstem_bench::hybrid::{self, Plan};
use mainstem_bench::report::Report;

use super::tiny;

fn run(parts: &[&str]) -> Report {
    tiny::run("hybrid", parts, false, |settings, report| hybrid::run(Plan::tiny(), settings, report))
}

#[test]
fn every_part_gives_right_answers() {
    let report = run(&[]);
    tiny::has(
        &report,
        &[
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
        ],
    );
    assert!(report.figures().iter().all(|f| f.value.is_finite() && f.value > 0.0), "{}", report.text());
    assert!(report.text().contains("run without peers"), "{}", report.text());
}

#[test]
fn one_part_runs_alone() {
    let report = run(&["memory"]);
    assert_eq!(
        tiny::figures(&report),
        [("delta, a tenth full", "bytes a raw byte"), ("delta, full", "bytes a raw byte")]
    );
}
