//! Experiment `load/parse`, very small.

use mainstem_bench::load::parse::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn rows_and_values_are_those_that_were_written() {
    let report = run_tiny("load/parse", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("structure", "rate"), ("structure and values", "rate"), ("two threads beside one", "speed-up")]);
}
