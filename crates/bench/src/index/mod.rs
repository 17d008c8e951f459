//! Experiment `load/index`: indexes in memory that several threads build and merge (Instant Loading, section 5.3,
//! figure 10). Issue "Instant Loading", section Figures.
//!
//! Comes in: the scale. Goes out: keys a second of the adaptive radix tree and of the chained hash table, their
//! speed-up with two threads, and how much of the time is merging.
//!
//! 1. Keys of 4 bytes are made: ordered dense (1 to n), the same in random order, and sparse ones, each bit of which is
//!    as likely 0 as 1 (`keys_of`).
//! 2. Each thread builds an index over its part of the keys, and the indexes are merged: key by key as the paper does,
//!    and a chunk at once. Or keys are classified first, and threads build parts of one index (`contest`).
//! 3. *Union* is a merge of two indexes that have a third of all keys in common, all of which have to be told.
//! 4. After each round all keys are looked up, and those of the tree are gone through in order.
//!
//! Invariants: both indexes get the same keys in the same calls, in turn. It does not own: what a load does with an
//! index.

mod contest;

use std::fmt;

use crate::experiment::{Experiment, Failure, Part, Scale, Settings, run_parts};
use crate::keys::{Random, Scatter};
use crate::report::Report;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/index",
    about: "indexes built by several threads and merged: radix tree and hash table, figure 10 of Instant Loading",
    parts: &[
        ("dense", "keys from 1 to n, in order"),
        ("unordered", "the same in random order"),
        ("sparse", "keys of random bits"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Keys of an index.
    pub keys: u32,
    /// Rounds of each case.
    pub rounds: u32,
    /// Threads beside one.
    pub threads: usize,
}

impl Plan {
    /// The plan of that scale; those of the paper are 10 M keys and 4 threads.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { keys: 1_000_000, rounds: 3, threads: 2 },
            Scale::Full => Self { keys: 10_000_000, rounds: 5, threads: 2 },
            Scale::Paper => Self { keys: 10_000_000, rounds: 5, threads: 4 },
        }
    }

    /// Just enough to see each case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { keys: 20_000, rounds: 1, threads: 2 }
    }
}

/// Which keys, and in what order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Dense,
    Unordered,
    Sparse,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dense => "ordered dense",
            Self::Unordered => "unordered dense",
            Self::Sparse => "sparse",
        })
    }
}

const PARTS: [(&str, Part<Plan>); 3] = [
    ("dense", |plan, _, report| contest::run(Order::Dense, plan, report)),
    ("unordered", |plan, _, report| contest::run(Order::Unordered, plan, report)),
    ("sparse", |plan, _, report| contest::run(Order::Sparse, plan, report)),
];

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When an index refuses a key; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    run_parts(&PARTS, plan, settings, report)
}

/// `count` different keys.
fn keys_of(order: Order, count: u32) -> Vec<u32> {
    let scatter = Scatter::new(u64::from(count), 1);
    let shuffled = move |keys: Vec<u32>| (0..count).map(|at| keys[scatter.at(u64::from(at)) as usize]).collect();
    match order {
        Order::Dense => (1..=count).collect(),
        Order::Unordered => shuffled((1..=count).collect()),
        Order::Sparse => {
            let mut random = Random::new(1);
            let mut keys: Vec<u32> = Vec::new();
            while keys.len() < count as usize {
                keys.extend((keys.len()..count as usize).map(|_| (random.draw() >> 32) as u32));
                keys.sort_unstable();
                keys.dedup();
            }
            shuffled(keys)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_different_and_in_the_order_they_should_be() {
        let kinds = [Order::Dense, Order::Unordered, Order::Sparse].map(|order| keys_of(order, 10_000));
        for keys in &kinds {
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 10_000);
        }
        assert!(kinds[0].is_sorted() && !kinds[1].is_sorted() && !kinds[2].is_sorted());
        assert_eq!(kinds[1].iter().max(), Some(&10_000));
        let ones: u32 = kinds[2].iter().map(|key| key.count_ones()).sum();
        assert!(ones.abs_diff(160_000) < 2_000, "{ones}");
    }
}
