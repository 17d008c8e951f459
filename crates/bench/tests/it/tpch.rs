//! Experiments `tpch`, `shapes` and `tpch-large`, very small.

use mainstem_bench::tpch::{Plan, run, run_large, run_shapes};

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

#[test]
fn changes_and_their_merge_leave_answers_alone() {
    let report = run_tiny("tpch", &["changed"], false, |settings, report| run(Plan::tiny(), settings, report));
    let cases = ["before a merge", "after a merge", "beside 5,000 updates a second"];
    for case in cases {
        has(&report, &[(&format!("changed {case}, all"), "time"), (&format!("changed Q18 {case}"), "time")]);
    }
}

#[test]
fn every_query_is_answered_under_a_memory_limit() {
    let report = run_tiny("tpch-large", &[], false, |settings, report| run_large(Plan::tiny(), settings, report));
    has(&report, &[("large Q09", "time"), ("large, all", "time")]);
}
