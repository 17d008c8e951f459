//! Durations of single operations, counted in buckets.

use std::time::Duration;

/// Buckets per power of two: a quantile is at most 1.6 % too high.
const PER_OCTAVE_BITS: u32 = 6;
const PER_OCTAVE: usize = 1 << PER_OCTAVE_BITS;
const BUCKETS: usize = (u64::BITS - PER_OCTAVE_BITS + 1) as usize * PER_OCTAVE;

/// Counts durations. Memory does not grow with their number.
#[derive(Clone, Debug)]
pub struct Recorder {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, max_ns: 0 }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < PER_OCTAVE as u64 {
        return ns as usize;
    }
    let shift = ns.ilog2() - PER_OCTAVE_BITS;
    (shift as usize + 1) * PER_OCTAVE + ((ns >> shift) as usize - PER_OCTAVE)
}

/// The longest duration that falls into a bucket.
fn bucket_end(bucket: usize) -> u64 {
    let (octave, within) = (bucket / PER_OCTAVE, (bucket % PER_OCTAVE) as u128);
    match octave {
        0 => within as u64,
        octave => {
            let end = ((PER_OCTAVE as u128 + within + 1) << (octave - 1)) - 1;
            u64::try_from(end).unwrap_or(u64::MAX)
        }
    }
}

impl Recorder {
    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(ns)) {
            *count += 1;
        }
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts what `other` counted, too.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The duration that a share `quantile` of all does not exceed; zero when nothing was counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let rank = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut below = 0;
        for (at, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return Duration::from_nanos(bucket_end(at).min(self.max_ns));
            }
        }
        Duration::ZERO
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_without_gaps() {
        let mut last = 0;
        for ns in 0..100_000 {
            let at = bucket(ns);
            assert!(at == last || at == last + 1, "{ns} ns");
            assert!(bucket_end(at) >= ns && bucket_end(at) - ns <= ns / 64, "{ns} ns");
            last = at;
        }
        assert_eq!(bucket_end(bucket(u64::MAX)), u64::MAX);
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_of_what_is_known() {
        let mut recorder = Recorder::default();
        assert_eq!((recorder.quantile(0.99), recorder.max()), (Duration::ZERO, Duration::ZERO));
        for us in 1..=1_000 {
            recorder.record(Duration::from_micros(us));
        }
        let near = |quantile: f64, us: f64| {
            let found = recorder.quantile(quantile).as_secs_f64() * 1e6;
            assert!(found >= us && found <= us * 1.017, "{found} for {us}");
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        assert_eq!(recorder.quantile(1.0), Duration::from_micros(1_000));
        assert_eq!((recorder.max(), recorder.count()), (Duration::from_micros(1_000), 1_000));
    }

    #[test]
    fn one_stall_is_the_longest_and_no_quantile() {
        let (mut all, mut other) = (Recorder::default(), Recorder::default());
        (0..999).for_each(|_| all.record(Duration::from_nanos(50)));
        other.record(Duration::from_millis(40));
        all.merge(&other);
        assert_eq!(all.quantile(0.99), Duration::from_nanos(50));
        assert_eq!((all.max(), all.count()), (Duration::from_millis(40), 1_000));
    }
}
