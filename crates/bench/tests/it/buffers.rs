//! Experiment `load/buffers`, very small.

use mainstem_bench::load::buffers::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn each_way_of_merging_gives_the_rows() {
    let report = run_tiny("load/buffers", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("insert", "time"), ("copy", "beside chunk"), ("chunk", "time")]);
}
