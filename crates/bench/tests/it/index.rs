//! Experiment `load/index`, very small.

use mainstem_bench::index::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn both_indexes_are_measured_over_all_orders() {
    let report = run_tiny("load/index", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    for order in ["ordered dense", "unordered dense", "sparse"] {
        for index in ["ART", "hash"] {
            for fill in ["key by key", "a chunk at once", "partitioned"] {
                let case = format!("{order}, {index}, {fill}");
                has(&report, &[(&case, "rate"), (&case, "speed-up")]);
                if fill != "partitioned" {
                    has(&report, &[(&case, "merge, of all")]);
                }
            }
            has(&report, &[(&format!("{order}, {index}, union"), "rate")]);
        }
    }
}
