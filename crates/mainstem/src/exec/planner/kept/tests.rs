//! Runs that turn out large are left out for a while.

use super::LargeRuns;

/// How many runs are left out behind each of `sizes`, true for a large one.
fn left_out(large: &LargeRuns, sizes: &[bool]) -> Vec<u32> {
    let behind = |is_large: &bool| {
        large.count(*is_large);
        std::iter::repeat_with(|| large.leaves_out()).take_while(|left_out| *left_out).count() as u32
    };
    sizes.iter().map(behind).collect()
}

#[test]
fn the_more_large_runs_in_a_series_the_more_are_left_out() {
    let large = LargeRuns::default();
    assert!(!large.leaves_out());
    // One may be by chance. From then on it doubles, up to a bound.
    assert_eq!(left_out(&large, &[true; 9]), [0, 2, 6, 14, 30, 62, 62, 62, 62]);
    assert_eq!(LargeRuns::LEFT_OUT_MAX, 62);
}

#[test]
fn a_small_run_ends_the_series() {
    let large = LargeRuns::default();
    assert_eq!(left_out(&large, &[true, true, true, false, false, true, true]), [0, 2, 6, 0, 0, 0, 2]);
    // Also what was still to be left out.
    large.count(true);
    large.count(false);
    assert!(!large.leaves_out());
}

#[test]
fn a_long_series_does_not_overflow() {
    let large = LargeRuns::default();
    (0..100).for_each(|_| large.count(true));
    assert_eq!(left_out(&large, &[true]), [LargeRuns::LEFT_OUT_MAX]);
}
