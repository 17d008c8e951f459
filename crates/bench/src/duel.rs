//! What the rounds of one case gave, ours and others'; and loops that make such a round.

use std::time::{Duration, Instant};

use crate::latency::Recorder;

/// One round of one engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Operations, or rows, a second.
    pub rate: f64,
    /// Duration that 99 of 100 operations do not exceed, in microseconds.
    pub p99_us: f64,
    /// The longest operation, in milliseconds.
    pub worst_ms: f64,
}

impl Sample {
    /// Of `operations` in `seconds`, with their durations.
    #[must_use]
    pub fn of(operations: u64, seconds: f64, latency: &Recorder) -> Self {
        Self {
            rate: operations as f64 / seconds.max(1e-9),
            p99_us: latency.quantile(0.99).as_secs_f64() * 1e6,
            worst_ms: latency.max().as_secs_f64() * 1e3,
        }
    }

    /// Of operations that one thread runs until they took `time`, one at least. What `make` does before each is not
    /// counted.
    ///
    /// # Errors
    /// The first of `work`.
    pub fn timed<I, E>(
        time: Duration,
        mut make: impl FnMut() -> I,
        mut work: impl FnMut(I) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (mut latency, mut spent) = (Recorder::default(), Duration::ZERO);
        while spent < time || latency.count() == 0 {
            let operation = make();
            let start = Instant::now();
            work(operation)?;
            let elapsed = start.elapsed();
            latency.record(elapsed);
            spent += elapsed;
        }
        Ok(Self::of(latency.count(), spent.as_secs_f64(), &latency))
    }

    /// Of threads that worked at once: the durations of each one's operations, and how long it ran.
    #[must_use]
    pub fn of_threads<'a>(threads: impl IntoIterator<Item = (&'a Recorder, Duration)>) -> Self {
        let (mut latency, mut longest) = (Recorder::default(), Duration::ZERO);
        for (its, elapsed) in threads {
            latency.merge(its);
            longest = longest.max(elapsed);
        }
        Self::of(latency.count(), longest.as_secs_f64(), &latency)
    }
}

/// The same figure of each round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<f64>);

impl Series {
    /// Adds the figure of a round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The same figures in another unit, of which one is `factor` new ones.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        self.0.iter_mut().for_each(|value| *value *= factor);
        self
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The figure in the middle; of an even number of rounds the mean of the two. None without rounds.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let upper = *sorted.get(sorted.len() / 2)?;
        match sorted.len() % 2 {
            0 => sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0),
            _ => Some(upper),
        }
    }

    /// The smallest and the largest.
    #[must_use]
    pub fn spread(&self) -> Option<(f64, f64)> {
        let sorted = self.sorted();
        Some((*sorted.first()?, *sorted.last()?))
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// All rounds of one case: ours, and those of whoever ran beside us.
#[derive(Clone, Debug, Default)]
pub struct Duel {
    ours: Vec<Sample>,
    others: Vec<(String, Vec<Sample>)>,
}

impl Duel {
    /// Adds a round of ours.
    pub fn ours(&mut self, sample: Sample) {
        self.ours.push(sample);
    }

    /// Adds a round of `who`.
    pub fn other(&mut self, who: &str, sample: Sample) {
        match self.others.iter_mut().find(|(name, _)| name == who) {
            Some((_, samples)) => samples.push(sample),
            None => self.others.push((who.to_string(), vec![sample])),
        }
    }

    /// One figure of our rounds.
    #[must_use]
    pub fn series(&self, figure: fn(&Sample) -> f64) -> Series {
        self.ours.iter().map(figure).collect()
    }

    /// The same figure of each other's rounds: median.
    #[must_use]
    pub fn yardsticks(&self, figure: fn(&Sample) -> f64) -> Vec<(String, f64)> {
        let median = |samples: &Vec<Sample>| samples.iter().map(figure).collect::<Series>().median();
        self.others.iter().filter_map(|(name, samples)| Some((name.clone(), median(samples)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        let series = |values: &[f64]| values.iter().copied().collect::<Series>();
        assert_eq!(series(&[]).median(), None);
        assert_eq!(series(&[3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(series(&[4.0, 1.0, 2.0, 3.0]).median(), Some(2.5));
        assert_eq!(series(&[3.0, 1.0, 2.0]).spread(), Some((1.0, 3.0)));
        assert_eq!(series(&[3.0, 1.0, 2.0]).scaled(10.0), series(&[30.0, 10.0, 20.0]));
    }

    #[test]
    fn a_timed_loop_counts_its_work_alone() {
        let ms = Duration::from_millis;
        let mut made = 0;
        let make = || {
            std::thread::sleep(ms(5));
            made += 1;
            made
        };
        let sample = Sample::timed(ms(4), make, |_| {
            std::thread::sleep(ms(1));
            Ok::<_, ()>(())
        });
        assert!(sample.is_ok_and(|s| s.rate > 200.0 && s.rate <= 1_000.0), "{sample:?}");
        assert!(Sample::timed(Duration::ZERO, || (), |()| Ok::<_, ()>(())).is_ok_and(|s| s.rate > 0.0));
        assert_eq!(Sample::timed(ms(1), || (), |()| Err("failed")), Err("failed"));
    }

    #[test]
    fn threads_count_together() {
        let (mut one, mut two) = (Recorder::default(), Recorder::default());
        (0..30).for_each(|_| one.record(Duration::from_millis(1)));
        (0..10).for_each(|_| two.record(Duration::from_millis(2)));
        let sample = Sample::of_threads([(&one, Duration::from_secs(1)), (&two, Duration::from_secs(2))]);
        assert_eq!((sample.rate, sample.worst_ms), (20.0, 2.0));
    }

    #[test]
    fn each_engine_keeps_its_rounds() {
        let sample = |rate| Sample { rate, p99_us: rate / 10.0, worst_ms: 0.0 };
        let mut duel = Duel::default();
        for round in [10.0, 30.0, 20.0] {
            duel.ours(sample(round));
            duel.other("a", sample(round + 1.0));
            duel.other("b", sample(round + 2.0));
        }
        assert_eq!(duel.series(|s| s.p99_us).median(), Some(2.0));
        assert_eq!(duel.yardsticks(|s| s.rate), [("a".to_string(), 21.0), ("b".to_string(), 22.0)]);
    }
}
