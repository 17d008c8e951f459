//! Experiment `load/online`, very small.

use mainstem_bench::load::online::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn transactions_and_the_load_are_both_whole() {
    let report = run_tiny("load/online", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("transactions beside a load", "rate"), ("load beside transactions", "commit")]);
}
