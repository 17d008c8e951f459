//! Experiments `load/chunk-size` and `load/scale`, very small.

use mainstem_bench::load::{chunk_size, scale};

use crate::tiny::{has, run as run_tiny};

#[test]
fn each_size_of_a_chunk_gives_the_rows() {
    let plan = chunk_size::Plan::tiny();
    let report = run_tiny("load/chunk-size", &[], false, |settings, report| chunk_size::run(plan, settings, report));
    has(&report, &[("chosen by itself", "bytes"), ("64 KiB", "bytes"), ("32768 KiB", "bytes")]);
}

#[test]
fn each_scale_gives_the_rows() {
    let plan = scale::Plan::tiny();
    let report = run_tiny("load/scale", &[], false, |settings, report| scale::run(plan, settings, report));
    has(&report, &[("scale factor 0.001", "bytes"), ("scale factor 0.01", "bytes")]);
}
