use mainstem_bench::report::Report;
use mainstem_bench::scan::{self, Plan};

use super::tiny;

fn run(parts: &[&str]) -> Report {
    tiny::run("scan", parts, false, |settings, report| scan::run(Plan::tiny(), settings, report))
}

#[test]
fn every_part_gives_right_answers() {
    let report = run(&[]);
    tiny::has(
        &report,
        &[
            ("filter keeps half, sum", "rows"),
            ("all columns, sums", "rows"),
            ("all columns, Arrow batches", "rows"),
            ("all columns, Arrow batches, after 320 unmerged writes", "time"),
            ("16 bits, SQL, 1 thread", "filter, sum"),
            ("24 bits, kernels", "filter"),
            ("constant, 1 column, 0.001 %", "time"),
            ("text, symbols, 17 columns, 100 %", "time"),
            ("text, symbols, 17 columns", "worst step"),
            ("text, symbols, 17 columns", "down to all rows"),
        ],
    );
    assert!(report.figures().iter().all(|f| f.value.is_finite() && f.value > 0.0), "{}", report.text());
    assert!(!report.text().contains("refused"), "{}", report.text());
}

#[test]
fn one_part_runs_alone() {
    let report = run(&["packed"]);
    assert_eq!(report.figures().len(), 3 + 3 * 3, "{}", report.text());
}
