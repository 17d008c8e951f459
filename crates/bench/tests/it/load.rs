//! Experiment `load`, very small.

use mainstem_bench::load::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn rows_are_there_after_each_load() {
    let report = run_tiny("load", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("lineitem, in memory", "time"), ("lineitem, durable, primary key", "time")]);
}
