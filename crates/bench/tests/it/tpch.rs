//! Experiment `tpch`, very small.

use mainstem_bench::tpch::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn every_query_is_answered_as_by_datafusion() {
    let report = run_tiny("tpch", &["keys"], true, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("keys Q01", "time"), ("keys Q22", "time"), ("keys, all", "time")]);
}
