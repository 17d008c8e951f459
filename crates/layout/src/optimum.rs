//! The partitioning that costs least (section 5 of the paper), exactly.
//!
//! Comes in: the terms of the blocks, and limits. Goes out: the best partitioning that keeps them.
//!
//! 1. The cost is a sum over partitions. One of the blocks `a` to `b` costs `w(a, b)`, the sum of
//!    `backward[i] (i - a) + forward[i] (b - i)` over its blocks; its boundary costs the sum of `partitions[i]` over
//!    all `i <= b`. So the best cost of the first blocks is the least over where their last partition begins: a
//!    shortest path.
//! 2. `w(a, c) + w(b, d) <= w(a, d) + w(b, c)` for `a <= b <= c <= d`, for backward and forward terms are not negative
//!    (the quadrangle inequality). So the best beginning only moves on as the end does, and a queue of candidates finds
//!    all of them in O(N log N) (Galil and Park 1992). A greatest size of partitions, and blocks after which none may
//!    end, leave the inequality true: partitions that are not allowed cost infinitely much.
//! 3. The least cost of `k` partitions is convex in `k` for the same reason. So a price for each partition, found by
//!    halving, gives the best of at most `k`; where the paths of that price jump over `k`, two of them are joined
//!    (Aggarwal, Schieber and Tokuyama 1994).
//!
//! Invariant: terms become whole numbers first, so that sums and comparisons are exact. The paper hands a program of
//! N^2 variables to a solver (equation 20); this one has the same solutions (`tests/optimum.rs`).

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;

use crate::{Partitioning, Terms};

/// Bits that the greatest of the terms takes as a whole number: sums over 2^30 blocks, times their distance, fit.
const TERM_BITS: i32 = 44;

/// What a partitioning has to keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Blocks of a partition: the limit for reads (equation 21, MPS).
    pub partition_blocks_max: Option<usize>,
    /// Partitions: the limit for updates (equation 21).
    pub partitions_max: Option<usize>,
    /// Whether a partition may end after each block; after all of them unless told. The last block always ends one.
    pub cuts: Option<Vec<bool>>,
}

/// The best partitioning.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// Where its partitions end.
    pub partitioning: Partitioning,
    /// What the workload costs over it.
    pub cost: f64,
}

/// No partitioning keeps the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfulfillable {
    /// The least size that partitions may be limited to.
    pub partition_blocks_least: usize,
    /// The least number of partitions with the limit on their size.
    pub partitions_least: usize,
}

impl fmt::Display for Unfulfillable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no partitioning keeps the limits: partitions have to take {} blocks at least, and {} are needed at least",
            self.partition_blocks_least, self.partitions_least
        )
    }
}

impl std::error::Error for Unfulfillable {}

/// The partitioning over which the workload costs least, of those that keep `limits`. Of several the one with the
/// fewest partitions, unless their number is limited.
///
/// # Errors
/// [`Unfulfillable`] when none keeps them.
pub fn optimum(terms: &Terms, limits: &Limits) -> Result<Optimum, Unfulfillable> {
    let problem = Problem::new(terms, limits);
    let partitioning = problem.solve(limits)?;
    let cost = terms.cost(&partitioning);
    Ok(Optimum { partitioning, cost })
}

/// The terms as whole numbers, summed up in front of each place where a partition may begin or end.
struct Problem {
    /// Blocks in front of which partitions may begin, from 0 to the number of blocks.
    places: Vec<usize>,
    /// Of the blocks in front of each place: terms, and terms times the number of their block.
    backward: Vec<(i128, i128)>,
    forward: Vec<(i128, i128)>,
    partitions: Vec<i128>,
    partition_blocks_max: usize,
}

/// A way to a place: its cost, and how many partitions it has, which decides between equal costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    cost: i128,
    /// Negative where many are wanted.
    partitions: i64,
}

/// The shortest way to the last place.
struct Path {
    /// Where each partition begins, and where the last one ends.
    places: Vec<usize>,
}

impl Problem {
    fn new(terms: &Terms, limits: &Limits) -> Self {
        let blocks = terms.len();
        let all = [&terms.backward, &terms.forward, &terms.partitions];
        let greatest = all.into_iter().flatten().fold(0.0_f64, |greatest, term| greatest.max(term.abs()));
        let scale = if greatest > 0.0 && greatest.is_finite() { (f64::from(TERM_BITS)).exp2() / greatest } else { 0.0 };
        #[allow(clippy::cast_possible_truncation, reason = "at most 2^44")]
        let whole = |terms: &[f64], block: usize| terms.get(block).map_or(0, |term| (term * scale).round() as i128);
        let is_cut = |block: usize| {
            block + 1 == blocks || limits.cuts.as_ref().is_none_or(|cuts| cuts.get(block).copied().unwrap_or(true))
        };
        let mut problem = Self {
            places: vec![0],
            backward: vec![(0, 0)],
            forward: vec![(0, 0)],
            partitions: vec![0],
            partition_blocks_max: limits.partition_blocks_max.unwrap_or(usize::MAX),
        };
        let (mut backward, mut forward, mut partitions) = ((0, 0), (0, 0), 0);
        for block in 0..blocks {
            let add = |sums: &mut (i128, i128), term: i128| {
                sums.0 += term;
                sums.1 += term * block as i128;
            };
            // Terms that are negative would be no accesses.
            add(&mut backward, whole(&terms.backward, block).max(0));
            add(&mut forward, whole(&terms.forward, block).max(0));
            partitions += whole(&terms.partitions, block);
            if is_cut(block) {
                problem.places.push(block + 1);
                problem.backward.push(backward);
                problem.forward.push(forward);
                problem.partitions.push(partitions);
            }
        }
        problem
    }

    fn last(&self) -> usize {
        self.places.len() - 1
    }

    /// What the partition between the places `from` and `to` costs; none if it is larger than one may be.
    #[allow(clippy::indexing_slicing, reason = "places are in range, and this is the innermost step")]
    fn partition(&self, from: usize, to: usize) -> Option<i128> {
        let (begin, end) = (self.places[from], self.places[to]);
        if end - begin > self.partition_blocks_max {
            return None;
        }
        let (before, after) = (self.backward[from], self.backward[to]);
        let backward = (after.1 - before.1) - begin as i128 * (after.0 - before.0);
        let (before, after) = (self.forward[from], self.forward[to]);
        let forward = (end as i128 - 1) * (after.0 - before.0) - (after.1 - before.1);
        Some(backward + forward + self.partitions[to])
    }

    fn solve(&self, limits: &Limits) -> Result<Partitioning, Unfulfillable> {
        if self.last() == 0 {
            return Ok(Partitioning(Vec::new()));
        }
        let gaps = self.places.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
        let partition_blocks_least = gaps.max().unwrap_or(1);
        let partitions_least =
            if partition_blocks_least <= self.partition_blocks_max { self.fewest_partitions() } else { usize::MAX };
        let partitions_max = limits.partitions_max.unwrap_or(usize::MAX);
        if partitions_least > partitions_max.min(self.places.len()) {
            return Err(Unfulfillable { partition_blocks_least, partitions_least });
        }
        let free = self.shortest(0, 1);
        let path = if free.partitions() <= partitions_max { free } else { self.of_exactly(partitions_max) };
        Ok(Partitioning(path.places.iter().skip(1).filter_map(|place| Some(self.places.get(*place)? - 1)).collect()))
    }

    /// How many partitions are needed for each to be as large as it may be.
    fn fewest_partitions(&self) -> usize {
        let (mut begin, mut count) = (0, 0);
        let mut before = 0;
        for place in self.places.iter().skip(1) {
            if place - begin > self.partition_blocks_max {
                (begin, count) = (before, count + 1);
            }
            before = *place;
        }
        count + 1
    }

    /// The shortest path where each partition costs `price` more. Of several the one with the fewest partitions for a
    /// `sign` of 1, with the most for -1.
    #[allow(clippy::indexing_slicing, reason = "places are in range, and this is the innermost loop")]
    fn shortest(&self, price: i128, sign: i64) -> Path {
        let last = self.last();
        let mut best = vec![Way { cost: 0, partitions: 0 }; last + 1];
        let mut from = vec![0; last + 1];
        let way = |best: &[Way], begin: usize, end: usize| {
            let partition = self.partition(begin, end)?;
            let Way { cost, partitions } = best[begin];
            Some(Way { cost: cost + partition + price, partitions: partitions + sign })
        };
        // A candidate that is later wins against one before, once it wins: infinite ways lose.
        let wins = |best: &[Way], later: usize, before: usize, end: usize| match (
            way(best, later, end),
            way(best, before, end),
        ) {
            (Some(later), Some(before)) => later.cmp(&before) != Ordering::Greater,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        // Beginnings, each with the end from which on it is the best of those so far.
        let mut candidates = VecDeque::from([(0, 1)]);
        for end in 1..=last {
            while candidates.get(1).is_some_and(|(_, since)| *since <= end) {
                candidates.pop_front();
            }
            let begin = candidates.front().map_or(0, |(begin, _)| *begin);
            // The queue holds a way to each place: the largest gap is allowed.
            best[end] = way(&best, begin, end).unwrap_or(Way { cost: i128::MAX / 2, partitions: 0 });
            from[end] = begin;
            if end == last {
                break;
            }
            while let Some((before, since)) = candidates.back().copied() {
                if since > end && wins(&best, end, before, since) {
                    candidates.pop_back();
                } else {
                    break;
                }
            }
            match candidates.back().copied() {
                None => candidates.push_back((end, end + 1)),
                Some((before, since)) => {
                    // The first end at which the new one wins lies in between.
                    let (mut low, mut high) = (since.max(end + 1), last + 1);
                    while low < high {
                        let middle = usize::midpoint(low, high);
                        if wins(&best, end, before, middle) { high = middle } else { low = middle + 1 }
                    }
                    if low <= last {
                        candidates.push_back((end, low));
                    }
                }
            }
        }
        let mut places = vec![last];
        let mut at = last;
        while at > 0 {
            at = from[at];
            places.push(at);
        }
        places.reverse();
        Path { places }
    }

    /// The shortest path of exactly `partitions` partitions, of which there is one, and fewer than a free path has.
    fn of_exactly(&self, partitions: usize) -> Path {
        // The least price at which a shortest path has no more than them. Most often one has as many on the way there.
        let (mut low, mut high) = (0_i128, 1_i128);
        let mut few = self.shortest(high, 1);
        while few.partitions() > partitions {
            (low, high) = (high, high * 16);
            few = self.shortest(high, 1);
        }
        while few.partitions() != partitions && high - low > 1 {
            // Prices have many orders of magnitude: halve these first.
            let middle = if high > 4 * low.max(1) { (low.max(1) * high).isqrt() } else { low + (high - low) / 2 };
            let path = self.shortest(middle, 1);
            if path.partitions() > partitions {
                low = middle;
            } else {
                (high, few) = (middle, path);
            }
        }
        if few.partitions() == partitions {
            return few;
        }
        few.joined(&self.shortest(high, -1), partitions)
    }
}

impl Path {
    fn partitions(&self) -> usize {
        self.places.len() - 1
    }

    /// A path of `partitions` partitions that costs as much as this one, which has fewer, and `many`, which has more.
    /// By the quadrangle inequality: where a partition of one lies inside a partition of the other, both paths may
    /// change over, and neither costs more then.
    fn joined(&self, many: &Self, partitions: usize) -> Self {
        let ahead = partitions - self.partitions();
        for (at, ends) in self.places.windows(2).enumerate() {
            let (Some(&outer_begin), Some(&outer_end)) = (ends.first(), ends.get(1)) else { continue };
            let inner = (many.places.get(at + ahead), many.places.get(at + ahead + 1));
            let (Some(&inner_begin), Some(&inner_end)) = inner else { break };
            if outer_begin <= inner_begin && inner_end <= outer_end {
                let head = many.places.iter().take(at + ahead + 1);
                return Self { places: head.chain(self.places.iter().skip(at + 1)).copied().collect() };
            }
        }
        // There always is such a partition; a path of fewer keeps the limit, too.
        Self { places: self.places.clone() }
    }
}
