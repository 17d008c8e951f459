use mainstem_bench::recovery::{self, Plan};

use super::tiny;

#[test]
fn what_was_killed_and_what_was_closed_is_opened() {
    let report = tiny::run("recovery", &[], false, |settings, report| recovery::run(Plan::tiny(), settings, report));
    tiny::has(
        &report,
        &[
            ("killed, 17 columns", "transactions in it"),
            ("killed, 2 columns", "open and first query"),
            ("5000 rows, row by key", "open"),
            ("5000 rows, sum of all rows", "first query"),
        ],
    );
    assert!(report.figures().iter().all(|f| f.value.is_finite() && f.value > 0.0), "{}", report.text());
    #[cfg(target_os = "linux")]
    tiny::has(&report, &[("killed, 2 columns", "peak memory")]);
}
