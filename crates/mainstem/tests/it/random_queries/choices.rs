//! Choices of a generator: drawn from a seed, noted, and taken again from a list, which can be made shorter.
//!
//! The first alternative of every choice is the simplest. A list that ends early goes on with first alternatives, so
//! that every list of numbers makes a valid query.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// What a range of choices made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Relation,
    Expression,
    Item,
}

/// A range of choices that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub kind: Kind,
    pub from: usize,
    pub to: usize,
}

/// Where choices come from, and what was chosen.
pub struct Choices {
    given: Vec<u32>,
    /// None: what is not given is the first alternative.
    rng: Option<StdRng>,
    pub taken: Vec<u32>,
    pub spans: Vec<Span>,
}

impl Choices {
    pub fn seeded(seed: u64) -> Self {
        Self { given: Vec::new(), rng: Some(StdRng::seed_from_u64(seed)), taken: Vec::new(), spans: Vec::new() }
    }

    pub fn given(given: Vec<u32>) -> Self {
        Self { given, rng: None, taken: Vec::new(), spans: Vec::new() }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u32::try_from(n.max(1)).unwrap();
        let drawn = match (self.given.get(self.taken.len()), &mut self.rng) {
            (Some(&given), _) => given.min(n - 1),
            (None, Some(rng)) => rng.random_range(0..n),
            (None, None) => 0,
        };
        self.taken.push(drawn);
        drawn as usize
    }

    /// True in `p` of `n` cases.
    pub fn chance(&mut self, p: usize, n: usize) -> bool {
        self.below(n) >= n - p
    }

    /// The position of one of `weights`, drawn by them.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, &weight) in weights.iter().enumerate() {
            if left < weight {
                return at;
            }
            left -= weight;
        }
        0
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.below(list.len());
        &list[at]
    }

    /// Notes that what was chosen since `from` (a former `taken.len()`) is one thing.
    pub fn end(&mut self, kind: Kind, from: usize) {
        self.spans.push(Span { kind, from, to: self.taken.len() });
    }
}
