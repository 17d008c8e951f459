//! Numbers in random order without a list of them, and random numbers that are the same in every run.

use std::ops::RangeInclusive;

/// The numbers below `n` in an order that looks random, each once: a Feistel network over the next power of four,
/// walked until it falls below `n`.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    half_bits: u32,
    seed: u64,
}

const ROUNDS: u64 = 4;
/// The golden section of 64 bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Scatter {
    /// An order of the numbers below `n`; other seeds are other orders.
    ///
    /// # Panics
    /// When `n` is 0.
    #[must_use]
    pub fn new(n: u64, seed: u64) -> Self {
        assert!(n > 0, "there is no number below 0");
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(2);
        Self { n, half_bits: bits.div_ceil(2), seed: mix(seed) }
    }

    /// The number at position `at`, which counts modulo `n`.
    #[must_use]
    pub fn at(self, at: u64) -> u64 {
        let mut number = at % self.n;
        loop {
            number = self.permute(number);
            if number < self.n {
                return number;
            }
        }
    }

    fn permute(self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mix(right ^ self.seed.rotate_left(round as u32 * 16)) & mask));
        }
        left << self.half_bits | right
    }
}

/// A bijection of 64-bit numbers that leaves no pattern (the finalizer of SplitMix64).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random numbers; the same seed gives the same ones (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Those of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next number of 64 bits.
    pub fn draw(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }

    /// A number below `n`, and 0 when there is none.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> u64::BITS) as u64
    }

    /// A number of `range`, which is not empty.
    pub fn within(&mut self, range: RangeInclusive<i64>) -> i64 {
        range.start() + self.below(range.start().abs_diff(*range.end()).saturating_add(1)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for n in [1, 2, 3, 4, 5, 100, 1_000, 4_096, 4_097] {
            let mut seen: Vec<u64> = (0..n).map(|at| Scatter::new(n, 7).at(at)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>(), "below {n}");
        }
    }

    #[test]
    fn positions_wrap_around() {
        let order = Scatter::new(1_000, 1);
        assert_eq!(order.at(1_234), order.at(234));
    }

    #[test]
    fn the_order_is_scattered() {
        let n = 100_000_u64;
        let order = Scatter::new(n, 1);
        let rises = (1..n).filter(|&at| order.at(at) > order.at(at - 1)).count() as u64;
        assert!(rises.abs_diff(n / 2) < n / 50, "{rises} rises");
        // Neighbours are a third of the range apart on the average, as random numbers are.
        let apart = (1..n).map(|at| order.at(at).abs_diff(order.at(at - 1))).sum::<u64>() / n;
        assert!(apart.abs_diff(n / 3) < n / 50, "{apart} apart");
        assert_ne!(Scatter::new(n, 2).at(0), order.at(0));
    }

    #[test]
    fn random_numbers_repeat_and_spread() {
        let draws = |seed| {
            (0..10_000).map({
                let mut random = Random::new(seed);
                move |_| random.below(10)
            })
        };
        assert!(draws(1).eq(draws(1)) && draws(1).ne(draws(2)));
        for number in 0..10 {
            let times = draws(1).filter(|drawn| *drawn == number).count();
            assert!(times.abs_diff(1_000) < 150, "{number} came {times} times");
        }
        let mut random = Random::new(1);
        let seen: std::collections::BTreeSet<i64> = (0..1_000).map(|_| random.within(-2..=2)).collect();
        assert!(seen.into_iter().eq(-2..=2));
        assert_eq!((random.below(0), random.within(5..=5)), (0, 5));
    }
}
