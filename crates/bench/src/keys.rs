//! Numbers in random order without a list of them.

/// The numbers below `n` in an order that looks random, each once: a Feistel network over the next power of four,
/// walked until it falls below `n`.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    half_bits: u32,
    seed: u64,
}

const ROUNDS: u64 = 4;

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
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
}
