//! Experiments `tpch` and `shapes`, very small.

use mainstem_bench::tpch::{Plan, run, run_shapes};

use crate::tiny::{has, run as run_tiny};

#[test]
fn every_query_is_answered_as_by_datafusion() {
    let report = run_tiny("tpch", &["keys"], true, |settings, report| run(Plan::tiny(), settings, report));
    has(&report, &[("keys Q01", "time"), ("keys Q22", "time"), ("keys, all", "time")]);
}

#[test]
fn every_shape_is_answered_as_by_datafusion() {
    let report = run_tiny("shapes", &[], true, |settings, report| run_shapes(Plan::tiny(), settings, report));
    has(&report, &[("shapes text search", "time"), ("shapes, all", "time")]);
}
