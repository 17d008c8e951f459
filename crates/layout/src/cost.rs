//! What a workload costs over a partitioning (section 4.4 of the paper).
//!
//! The formulas have lost characters in the text of the paper that we have. They were derived anew from what is said
//! of each operation: `tests/accesses.rs` counts the accesses of a column of blocks and compares.

use crate::FrequencyModel;

/// What an access to a block costs, in one unit for all four.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessCosts {
    /// A random read: RR.
    pub random_read: f64,
    /// A random write: RW.
    pub random_write: f64,
    /// A sequential read: SR.
    pub sequential_read: f64,
    /// A sequential write: SW. No operation of the paper has one.
    pub sequential_write: f64,
}

impl Default for AccessCosts {
    /// Those of the paper's machine in nanoseconds (section 4.5): 100 for random accesses, a fourteenth for
    /// sequential ones.
    fn default() -> Self {
        Self { random_read: 100.0, random_write: 100.0, sequential_read: 100.0 / 14.0, sequential_write: 100.0 / 14.0 }
    }
}

/// The last block of each partition, in order: a set of boundaries. The last of them is the last block of the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitioning(pub(crate) Vec<usize>);

impl Partitioning {
    /// The partitioning with these last blocks; `None` unless they ascend.
    #[must_use]
    pub fn new(last_blocks: Vec<usize>) -> Option<Self> {
        last_blocks.is_sorted_by(|one, next| one < next).then_some(Self(last_blocks))
    }

    /// `blocks` blocks in `partitions` partitions of one size, as nearly as can be.
    #[must_use]
    pub fn equi_width(blocks: usize, partitions: usize) -> Self {
        let partitions = partitions.clamp(1, blocks.max(1));
        Self((1..=partitions).map(|at| at * blocks / partitions).filter(|end| *end > 0).map(|end| end - 1).collect())
    }

    /// The last block of each partition.
    #[must_use]
    pub fn last_blocks(&self) -> &[usize] {
        &self.0
    }

    /// How many partitions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// First and last block of each partition.
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let starts = std::iter::once(0).chain(self.0.iter().map(|last| last + 1));
        starts.zip(self.0.iter().copied())
    }
}

/// The four terms of equation 16, by block: what the cost of a workload is but for the partitioning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// Whatever the partitioning.
    pub fixed: Vec<f64>,
    /// For each block of its partition before it.
    pub backward: Vec<f64>,
    /// For each block of its partition after it.
    pub forward: Vec<f64>,
    /// For each partition from its own to the last one. It may be negative: an update that comes in from in front ends
    /// its ripple here.
    pub partitions: Vec<f64>,
}

impl Terms {
    /// Equation 17.
    #[must_use]
    pub fn of(model: &FrequencyModel, costs: &AccessCosts) -> Self {
        let &AccessCosts { random_read: rr, random_write: rw, sequential_read: sr, .. } = costs;
        let mut terms = Self::default();
        for at in 0..model.len() {
            let of = |histogram: &[f64]| histogram.get(at).copied().unwrap_or(0.0);
            let (pq, rs, re, sc, de, ins) =
                (of(&model.pq), of(&model.rs), of(&model.re), of(&model.sc), of(&model.de), of(&model.ins));
            let (udf, udb, utf, utb) = (of(&model.udf), of(&model.udb), of(&model.utf), of(&model.utb));
            terms.fixed.push(
                rr * (rs + pq + ins + de + 2.0 * (udf + udb)) + sr * (re + sc) + rw * (ins + de + 2.0 * (udf + udb)),
            );
            terms.backward.push(sr * (rs + pq + de + udf + udb));
            terms.forward.push(sr * (re + pq + de + udf + udb));
            terms.partitions.push((rr + rw) * (ins + de + udf - utf - udb + utb));
        }
        terms
    }

    /// How many blocks they are of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.backward.len()
    }

    /// Whether they are of no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.backward.is_empty()
    }

    /// What the workload costs over `partitioning`: equation 16.
    #[must_use]
    pub fn cost(&self, partitioning: &Partitioning) -> f64 {
        let at = |terms: &[f64], block: usize| terms.get(block).copied().unwrap_or(0.0);
        let mut cost: f64 = self.fixed.iter().sum();
        // Each boundary is paid by all blocks in front of it.
        let mut paying = 0.0;
        for (first, last) in partitioning.ranges() {
            for block in first..=last {
                cost += at(&self.backward, block) * (block - first) as f64;
                cost += at(&self.forward, block) * (last - block) as f64;
                paying += at(&self.partitions, block);
            }
            cost += paying;
        }
        cost
    }
}
