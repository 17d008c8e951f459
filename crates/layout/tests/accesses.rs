//! The formulas of the model against a column of blocks whose accesses are counted as the paper says (sections 3 and
//! 4.4): what each operation reads and writes, at random and one block after the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use mainstem_layout::{AccessCosts, Blocks, FrequencyModel, Operation, Partitioning, Terms};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Accesses to blocks.
#[derive(Default)]
struct Counted {
    random_reads: u64,
    random_writes: u64,
    sequential_reads: u64,
}

impl Counted {
    fn cost(&self, costs: &AccessCosts) -> f64 {
        self.random_reads as f64 * costs.random_read
            + self.random_writes as f64 * costs.random_write
            + self.sequential_reads as f64 * costs.sequential_read
    }

    /// A partition is read whole: its first block at random, the others after it.
    fn read_partition(&mut self, (first, last): (usize, usize)) {
        self.random_reads += 1;
        self.sequential_reads += (last - first) as u64;
    }

    /// A slot moves into or out of a block: it is read and written.
    fn move_slot(&mut self) {
        self.random_reads += 1;
        self.random_writes += 1;
    }

    fn run(&mut self, operation: Operation<i64>, blocks: &Blocks<i64>, partitions: &[(usize, usize)]) {
        let of = |block: usize| partitions.iter().position(|(_, last)| block <= *last).unwrap();
        match operation {
            Operation::Point(key) => self.read_partition(partitions[of(blocks.of(key))]),
            Operation::Range(low, high) => {
                // From the first partition that may have a value on, block by block.
                let (first, last) = (of(blocks.of(low)), of(blocks.of(high)));
                self.read_partition((partitions[first].0, partitions[last].1));
            }
            Operation::Insert(key) => {
                // The free slot after the last partition comes forward, a block of each partition, and the last
                // partition is touched where its slot comes from, and where it ends.
                self.move_slot();
                (of(blocks.of(key))..partitions.len()).for_each(|_| self.move_slot());
            }
            Operation::Delete(key) => {
                let partition = of(blocks.of(key));
                self.read_partition(partitions[partition]);
                // The block was read: the hole is written, and filled from the end of each partition.
                self.random_writes += 1;
                (partition..partitions.len()).for_each(|_| self.move_slot());
            }
            Operation::Update(from, to) => {
                let (source, target) = (of(blocks.of(from)), of(blocks.of(to)));
                self.read_partition(partitions[source]);
                // The hole moves to the edge of its partition, then a block of each partition up to the target.
                self.random_writes += 1;
                self.move_slot();
                (source.min(target)..source.max(target)).for_each(|_| self.move_slot());
            }
        }
    }
}

#[test]
fn the_model_counts_what_is_accessed() {
    let mut random = StdRng::seed_from_u64(5);
    let costs = AccessCosts { random_read: 7.0, random_write: 11.0, sequential_read: 2.0, sequential_write: 0.0 };
    for round in 0..2_000 {
        let count = random.random_range(1..=40_usize);
        let keys: Vec<i64> = (0..count as i64 * 4).map(|at| at * 10).collect();
        let blocks = Blocks::of_sorted(&keys, 4);
        let inner = (0..count - 1).filter(|_| random.random_bool(0.3)).collect::<Vec<_>>();
        let partitioning = Partitioning::new(inner.into_iter().chain([count - 1]).collect()).unwrap();
        let partitions: Vec<_> = partitioning.ranges().collect();
        let mut key = || random.random_range(0..count as i64 * 4) * 10;
        let workload: Vec<_> = (0..20)
            .map(|at| match at % 5 {
                0 => Operation::Point(key()),
                1 => {
                    let (one, other) = (key(), key());
                    Operation::Range(one.min(other), one.max(other))
                }
                2 => Operation::Insert(key()),
                3 => Operation::Delete(key()),
                _ => Operation::Update(key(), key()),
            })
            .collect();
        for operation in &workload {
            let mut counted = Counted::default();
            counted.run(*operation, &blocks, &partitions);
            let model = FrequencyModel::of_workload(&blocks, [*operation]);
            let cost = Terms::of(&model, &costs).cost(&partitioning);
            assert_eq!(cost, counted.cost(&costs), "round {round}: {operation:?} over {partitions:?}");
        }
        let model = FrequencyModel::of_workload(&blocks, workload.iter().copied());
        let mut counted = Counted::default();
        workload.iter().for_each(|operation| counted.run(*operation, &blocks, &partitions));
        assert_eq!(Terms::of(&model, &costs).cost(&partitioning), counted.cost(&costs), "round {round}");
    }
}
