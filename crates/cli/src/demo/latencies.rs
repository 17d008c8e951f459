//! Times of what runs again and again.

use std::time::Duration;

/// How long each run took.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds a run.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Runs.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that the given share of the runs did not exceed; `None` without a run.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        // The smallest value with at least that share at or below it.
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// The median.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The longest.
    pub fn max(&self) -> Option<Duration> {
        self.0.iter().max().copied()
    }
}
