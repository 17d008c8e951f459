//! Experiment `load/unload`, very small.

use mainstem_bench::load::unload::{Plan, run};

use crate::tiny::{has, run as run_tiny};

#[test]
fn rows_are_there_after_each_way() {
    let report = run_tiny("load/unload", &[], false, |settings, report| run(Plan::tiny(), settings, report));
    has(
        &report,
        &[
            ("CSV out", "time"),
            ("Parquet out", "time"),
            ("Parquet in", "time"),
            ("UNLOAD, none", "time"),
            ("LOAD, none", "time"),
            ("UNLOAD, lz4", "time"),
            ("LOAD, lz4", "time"),
        ],
    );
}
