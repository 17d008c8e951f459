//! Where a curve of times over selectivities has cliffs.
//!
//! Comes in: the time of each selectivity, ascending. Goes out: the worst step between neighbours, and the one down to
//! all rows, as ratios that a smooth curve has below 2.
//!
//! 1. **Up.** A time is held against the geometric mean of its two neighbours: where time grows as the rows do, it is
//!    0.8 to 1.6 x that, and less where there is a fixed part. So a step to four times the time, flat before and behind
//!    it, is a cliff. Where the right neighbour is faster than the left one, a time is held against the left one.
//! 2. The last time has one neighbour: the one before it, grown in proportion to the rows.
//! 3. **Down.** A time is held against its right neighbour's: fewer rows may take no more than twice the time of more
//!    rows.
//! 4. The step **down to all rows** is a figure of its own: zone maps tell that all qualify, so that nothing is
//!    selected. Where it goes down, steps are looked for among the others, which it would hide.

/// A selectivity in percent, and the time it took.
pub(super) type Point = (f64, f64);

/// The worst of the steps of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cliff {
    /// The selectivity that takes too long.
    pub percent: f64,
    /// How many times what it should take.
    pub times: f64,
}

/// How many times the time of all rows the selectivity before them takes; none where all rows are missing.
pub(super) fn down_to_all(curve: &[Point]) -> Option<Cliff> {
    match curve {
        [.., before, all] if all.0 == 100.0 => Some(Cliff { percent: before.0, times: before.1 / all.1 }),
        _ => None,
    }
}

/// The worst step of `curve` but the one down to all rows; none of less than two points.
pub(super) fn worst(curve: &[Point]) -> Option<Cliff> {
    let curve = match curve {
        [rest @ .., before, all] if all.0 == 100.0 && all.1 < before.1 => curve.get(..=rest.len())?,
        _ => curve,
    };
    let ups = curve.iter().enumerate().skip(1).map(|(at, point)| (point, expected(curve, at)));
    let downs = curve.windows(2).filter_map(|pair| Some((pair.first()?, Some(pair.last()?.1))));
    ups.chain(downs)
        .filter_map(|(point, expected)| Some(Cliff { percent: point.0, times: point.1 / expected? }))
        .max_by(|a, b| a.times.total_cmp(&b.times))
}

/// What the point at `at` should take, as those beside it say.
fn expected(curve: &[Point], at: usize) -> Option<f64> {
    let (&(s0, t0), &(s1, _)) = (curve.get(at.checked_sub(1)?)?, curve.get(at)?);
    Some(match curve.get(at + 1) {
        None => t0 * s1 / s0,
        Some(&(_, t2)) => (t0 * t2.max(t0)).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENTS: [f64; 10] = [0.001, 0.01, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 90.0, 100.0];

    fn worst_of(time: impl Fn(f64) -> f64) -> Cliff {
        worst(&PERCENTS.map(|percent| (percent, time(percent)))).unwrap()
    }

    #[test]
    fn smooth_curves_have_no_cliff() {
        for (start, each) in [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.01, 1.0), (100.0, 1.0)] {
            assert!(worst_of(|percent| start + each * percent).times < 1.6);
        }
        // Every vector of 1,024 rows is decoded once there is a row of it.
        let vectors = |percent: f64| 1.0 - (1.0 - percent / 100.0).powf(1_024.0);
        assert!(worst_of(|percent| 0.2 + vectors(percent) + percent / 100.0).times < 2.0);
        assert_eq!(worst(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn the_step_down_to_all_rows_is_one_of_its_own() {
        let curve = PERCENTS.map(|percent| (percent, if percent < 100.0 { 10.0 + percent } else { 20.0 }));
        assert!(worst(&curve).is_some_and(|cliff| cliff.times < 1.6));
        assert_eq!(down_to_all(&curve), Some(Cliff { percent: 90.0, times: 5.0 }));
        assert_eq!(down_to_all(&curve[..9]), None);
    }

    #[test]
    fn steps_and_spikes_are_found() {
        let step = worst_of(|percent| if percent < 5.0 { 1.0 } else { 5.0 });
        assert_eq!((step.percent, step.times > 2.0), (5.0, true), "{step:?}");
        let spike = worst_of(|percent| if percent == 25.0 { 3.0 } else { 1.0 });
        assert_eq!((spike.percent, spike.times), (25.0, 3.0));
        let fall = worst_of(|percent| if percent < 50.0 { 5.0 } else { 1.0 });
        assert_eq!((fall.percent, fall.times), (25.0, 5.0));
        let end = worst_of(|percent| if percent < 100.0 { 1.0 } else { 4.0 });
        assert_eq!((end.percent, end.times > 3.0), (100.0, true), "{end:?}");
        let start = worst_of(|percent| if percent < 0.01 { 4.0 } else { 1.0 });
        assert_eq!((start.percent, start.times), (0.001, 4.0));
    }
}
