//! The Frequency Model: how often each block is accessed, by ten kinds of accesses (section 4.2 of the paper).

/// The blocks of a column that is sorted by its key, as it stood when the workload began.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks<K> {
    /// The least key of each block.
    first: Vec<K>,
    /// The greatest key of each block.
    last: Vec<K>,
}

impl<K: Ord + Copy> Blocks<K> {
    /// Blocks of `rows` keys each of the sorted `keys`; the last one may have fewer.
    ///
    /// # Panics
    /// If `rows` is 0.
    #[must_use]
    pub fn of_sorted(keys: &[K], rows: usize) -> Self {
        let blocks = || keys.chunks(rows);
        let first = blocks().filter_map(|block| block.first().copied()).collect();
        Self { first, last: blocks().filter_map(|block| block.last().copied()).collect() }
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The block that has `key`, or would have it: the last one that begins at or below it.
    #[must_use]
    pub fn of(&self, key: K) -> usize {
        self.first.partition_point(|first| *first <= key).saturating_sub(1)
    }

    /// The first block that may have `key`: keys that are equal may stand in several.
    fn first_of(&self, key: K) -> usize {
        self.last.partition_point(|last| *last < key).min(self.len().saturating_sub(1))
    }

    /// After which blocks a partition may end: where the next block begins with another key. Equal keys stand in one
    /// partition.
    #[must_use]
    pub fn cuts(&self) -> Vec<bool> {
        let next = self.first.iter().skip(1).map(Some).chain([None]);
        self.last.iter().zip(next).map(|(last, next)| next != Some(last)).collect()
    }
}

/// An operation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<K> {
    /// Rows whose key is this.
    Point(K),
    /// Rows whose keys lie between these, both included.
    Range(K, K),
    /// A new row with this key.
    Insert(K),
    /// The row with this key goes.
    Delete(K),
    /// The row with the first key takes the second one.
    Update(K, K),
}

/// Ten histograms, a bin for each block: the names are the paper's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrequencyModel {
    /// Point queries.
    pub pq: Vec<f64>,
    /// Starts of ranges.
    pub rs: Vec<f64>,
    /// Ends of ranges.
    pub re: Vec<f64>,
    /// Blocks between the start and the end of a range.
    pub sc: Vec<f64>,
    /// Deletes.
    pub de: Vec<f64>,
    /// Inserts.
    pub ins: Vec<f64>,
    /// Updates from a block to one further on.
    pub udf: Vec<f64>,
    /// Updates from a block to one further back, or to itself.
    pub udb: Vec<f64>,
    /// Updates into a block from one further back.
    pub utf: Vec<f64>,
    /// Updates into a block from one further on, or from itself.
    pub utb: Vec<f64>,
}

impl FrequencyModel {
    /// A model of `blocks` blocks that nothing has accessed.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        let none = || vec![0.0; blocks];
        Self {
            pq: none(),
            rs: none(),
            re: none(),
            sc: none(),
            de: none(),
            ins: none(),
            udf: none(),
            udb: none(),
            utf: none(),
            utb: none(),
        }
    }

    /// The model of a sample of a workload, each operation as if it were the first one on the data.
    #[must_use]
    pub fn of_workload<K: Ord + Copy>(blocks: &Blocks<K>, workload: impl IntoIterator<Item = Operation<K>>) -> Self {
        let mut model = Self::new(blocks.len());
        if !blocks.is_empty() {
            workload.into_iter().for_each(|operation| model.count(blocks, operation, 1.0));
        }
        model
    }

    /// Counts `operation` `times` times. A range from above to below is empty and counts nothing.
    pub fn count<K: Ord + Copy>(&mut self, blocks: &Blocks<K>, operation: Operation<K>, times: f64) {
        let add = |histogram: &mut Vec<f64>, block: usize| {
            if let Some(bin) = histogram.get_mut(block) {
                *bin += times;
            }
        };
        match operation {
            Operation::Point(key) => add(&mut self.pq, blocks.of(key)),
            Operation::Insert(key) => add(&mut self.ins, blocks.of(key)),
            Operation::Delete(key) => add(&mut self.de, blocks.of(key)),
            Operation::Update(from, to) => {
                let is_forward = to > from;
                let (from, to) = (blocks.of(from), blocks.of(to));
                // Within a block it is the second kind by convention.
                if is_forward && from != to {
                    add(&mut self.udf, from);
                    add(&mut self.utf, to);
                } else {
                    add(&mut self.udb, from);
                    add(&mut self.utb, to);
                }
            }
            Operation::Range(low, high) if low <= high => {
                let (start, end) = (blocks.first_of(low), blocks.of(high));
                if start == end {
                    // A range of one block is read as a point is: its end needs no access of its own.
                    add(&mut self.pq, start);
                } else {
                    add(&mut self.rs, start);
                    (start + 1..end).for_each(|block| add(&mut self.sc, block));
                    add(&mut self.re, end);
                }
            }
            Operation::Range(..) => {}
        }
    }

    /// How many blocks it is of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pq.len()
    }

    /// Whether it is of no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pq.is_empty()
    }

    /// All histograms.
    fn histograms_mut(&mut self) -> [&mut Vec<f64>; 10] {
        let Self { pq, rs, re, sc, de, ins, udf, udb, utf, utb } = self;
        [pq, rs, re, sc, de, ins, udf, udb, utf, utb]
    }

    /// Multiplies all counts by `factor`: with one below 1 what was long ago counts less than what is new.
    pub fn decay(&mut self, factor: f64) {
        self.histograms_mut().into_iter().flatten().for_each(|count| *count *= factor);
    }

    /// The model whose bins are `blocks` bins of this one each; the last may be of fewer (section 6.3 of the paper).
    ///
    /// # Panics
    /// If `blocks` is 0.
    #[must_use]
    pub fn aggregated(&self, blocks: usize) -> Self {
        let mut model = self.clone();
        for histogram in model.histograms_mut() {
            *histogram = histogram.chunks(blocks).map(|bins| bins.iter().sum()).collect();
        }
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure_7() -> Blocks<i64> {
        // Eight blocks of two values each, as in the paper's figure 7.
        Blocks::of_sorted(&[1, 2, 3, 4, 7, 10, 15, 17, 18, 19, 23, 29, 32, 49, 55, 57], 2)
    }

    #[test]
    fn operations_are_counted_as_in_figure_7() {
        let blocks = figure_7();
        let model = FrequencyModel::of_workload(
            &blocks,
            [
                Operation::Point(4),
                Operation::Range(4, 19),
                Operation::Delete(32),
                Operation::Insert(16),
                Operation::Update(3, 16),
                Operation::Update(55, 17),
            ],
        );
        let at =
            |histogram: &[f64]| histogram.iter().enumerate().filter(|(_, n)| **n > 0.0).map(|(at, _)| at).collect();
        let expected: [(&[f64], Vec<usize>); 10] = [
            (&model.pq, vec![1]),
            (&model.rs, vec![1]),
            (&model.sc, vec![2, 3]),
            (&model.re, vec![4]),
            (&model.de, vec![6]),
            (&model.ins, vec![3]),
            (&model.udf, vec![1]),
            (&model.utf, vec![3]),
            (&model.udb, vec![7]),
            (&model.utb, vec![3]),
        ];
        for (histogram, blocks) in expected {
            assert_eq!(blocks, Vec::<usize>::from_iter::<Vec<usize>>(at(histogram)));
        }
    }

    #[test]
    fn keys_outside_belong_to_the_ends() {
        let blocks = figure_7();
        assert_eq!((blocks.of(-5), blocks.of(1), blocks.of(1_000)), (0, 0, 7));
        let model = FrequencyModel::of_workload(&blocks, [Operation::Range(-10, 1_000), Operation::Range(9, 3)]);
        assert_eq!((model.rs[0], model.re[7], model.sc.iter().sum::<f64>()), (1.0, 1.0, 6.0));
        let none = FrequencyModel::of_workload(&Blocks::of_sorted(&[] as &[i64], 4), [Operation::Point(1)]);
        assert!(none.is_empty());
    }

    #[test]
    fn equal_keys_are_not_cut() {
        let blocks = Blocks::of_sorted(&[1, 2, 2, 2, 2, 3, 4, 4], 2);
        assert_eq!(blocks.cuts(), [false, false, true, true]);
        // A range that begins with them begins with the first block that has one.
        let model = FrequencyModel::of_workload(&blocks, [Operation::Range(2, 2)]);
        assert_eq!(model.rs, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(model.re, [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn bins_are_aggregated_and_decay() {
        let mut model = FrequencyModel::of_workload(&figure_7(), [Operation::Point(4), Operation::Point(7)]);
        assert_eq!(model.aggregated(3).pq, [2.0, 0.0, 0.0]);
        model.decay(0.5);
        assert_eq!(model.pq[1], 0.5);
    }
}
