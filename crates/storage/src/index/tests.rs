//! One battery for all indexes, against a map: what they hold, what they tell, in whatever order they become one.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::*;
use crate::error::{ErrorKind, Result};
use crate::limits::INDEX_DEPTH_MAX;

/// Keys that a test owns.
pub(super) trait TestKeys: KeyKind<Stored: Send + Sync, Heap: Send + Sync> {
    type Owned: Clone + Ord + Debug;

    fn key(owned: &Self::Owned) -> Self::Key<'_>;

    fn owned(key: Self::Key<'_>) -> Self::Owned;

    /// A key made of `bytes`.
    fn of(bytes: &[u8]) -> Self::Owned;
}

macro_rules! test_numbers {
    ($kind:ident, $number:ty) => {
        impl TestKeys for $kind {
            type Owned = $number;

            fn key(owned: &$number) -> $number {
                *owned
            }

            fn owned(key: $number) -> $number {
                key
            }

            fn of(bytes: &[u8]) -> $number {
                let mut number = [0; size_of::<$number>()];
                number.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                <$number>::from_be_bytes(number)
            }
        }
    };
}

test_numbers!(U32Keys, u32);
test_numbers!(U64Keys, u64);

impl TestKeys for ByteKeys {
    type Owned = Vec<u8>;

    fn key(owned: &Vec<u8>) -> &[u8] {
        owned
    }

    fn owned(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }

    fn of(bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }
}

/// How an index is filled.
#[derive(Clone, Copy, Debug)]
enum Fill {
    KeyByKey,
    Ahead,
    AtOnce,
    InParallel,
}

/// What the battery asks of an index.
trait Index<K: TestKeys>: Sized {
    fn filled(space: &IndexSpace, entries: &[(K::Owned, u64)], fill: Fill) -> (Self, Vec<Duplicate<u64>>);
    fn merged(indexes: Vec<Self>, threads: usize) -> Result<Option<(Self, Vec<Duplicate<u64>>)>>;
    fn add(&mut self, key: &K::Owned, value: u64) -> Option<u64>;
    fn find(&self, key: &K::Owned) -> Option<u64>;
    fn count(&self) -> usize;
    fn memory(&self) -> usize;
    /// In key order, whatever order the index has.
    fn entries(&self) -> Vec<(K::Owned, u64)>;
}

fn borrowed<K: TestKeys>(entries: &[(K::Owned, u64)]) -> Vec<(K::Key<'_>, u64)> {
    entries.iter().map(|(key, value)| (K::key(key), *value)).collect()
}

/// The entries as chunks, one of which is empty.
fn in_chunks<K: TestKeys>(entries: &[(K::Owned, u64)]) -> [Vec<(K::Key<'_>, u64)>; 4] {
    let (first, rest) = entries.split_at(entries.len() / 5);
    let (second, last) = rest.split_at(rest.len() / 2);
    [first, &[], second, last].map(borrowed::<K>)
}

fn one_by_one<K: TestKeys, I: Index<K>>(index: &mut I, entries: &[(K::Owned, u64)]) -> Vec<Duplicate<u64>> {
    let add = |(key, value): &(K::Owned, u64)| index.add(key, *value).map(|kept| Duplicate { kept, left_out: *value });
    entries.iter().filter_map(add).collect()
}

impl<K: TestKeys> Index<K> for RadixTree<K, u64> {
    fn filled(space: &IndexSpace, entries: &[(K::Owned, u64)], fill: Fill) -> (Self, Vec<Duplicate<u64>>) {
        let mut tree = Self::new(space);
        let duplicates = match fill {
            Fill::KeyByKey => one_by_one::<K, Self>(&mut tree, entries),
            Fill::Ahead => tree.extend(&borrowed::<K>(entries)).unwrap(),
            Fill::AtOnce => return Self::build(space, &mut borrowed::<K>(entries)).unwrap(),
            Fill::InParallel => return Self::build_parallel(space, &in_chunks::<K>(entries), 2).unwrap(),
        };
        (tree, duplicates)
    }

    fn merged(indexes: Vec<Self>, threads: usize) -> Result<Option<(Self, Vec<Duplicate<u64>>)>> {
        Self::merge(indexes, threads)
    }

    fn add(&mut self, key: &K::Owned, value: u64) -> Option<u64> {
        self.insert(K::key(key), value).unwrap()
    }

    fn find(&self, key: &K::Owned) -> Option<u64> {
        self.get(K::key(key))
    }

    fn count(&self) -> usize {
        assert_eq!(self.is_empty(), self.iter().next().is_none());
        self.len()
    }

    fn memory(&self) -> usize {
        self.bytes()
    }

    fn entries(&self) -> Vec<(K::Owned, u64)> {
        let entries: Vec<_> = self.iter().map(|(key, value)| (K::owned(key), value)).collect();
        assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "out of order: {entries:?}");
        entries
    }
}

impl<K: TestKeys> Index<K> for ChainedHash<K, u64> {
    fn filled(space: &IndexSpace, entries: &[(K::Owned, u64)], fill: Fill) -> (Self, Vec<Duplicate<u64>>) {
        // So few places that lists are long.
        let mut table = Self::new(space, 6);
        let duplicates = match fill {
            Fill::KeyByKey => one_by_one::<K, Self>(&mut table, entries),
            Fill::Ahead | Fill::AtOnce => table.extend(&borrowed::<K>(entries)).unwrap(),
            Fill::InParallel => return Self::build_parallel(space, 6, &in_chunks::<K>(entries), 2).unwrap(),
        };
        (table, duplicates)
    }

    fn merged(indexes: Vec<Self>, threads: usize) -> Result<Option<(Self, Vec<Duplicate<u64>>)>> {
        Self::merge(indexes, threads)
    }

    fn add(&mut self, key: &K::Owned, value: u64) -> Option<u64> {
        self.insert(K::key(key), value).unwrap()
    }

    fn find(&self, key: &K::Owned) -> Option<u64> {
        self.get(K::key(key))
    }

    fn count(&self) -> usize {
        assert_eq!(self.is_empty(), self.iter().next().is_none());
        self.len()
    }

    fn memory(&self) -> usize {
        self.bytes()
    }

    fn entries(&self) -> Vec<(K::Owned, u64)> {
        let mut entries: Vec<_> = self.iter().map(|(key, value)| (K::owned(key), value)).collect();
        entries.sort();
        entries
    }
}

type Model<K> = BTreeMap<<K as TestKeys>::Owned, u64>;

/// The naive answer: the first one stays.
fn add_all<K: TestKeys>(
    model: &mut Model<K>,
    entries: impl IntoIterator<Item = (K::Owned, u64)>,
) -> Vec<Duplicate<u64>> {
    let mut duplicates = Vec::new();
    for (key, value) in entries {
        match model.get(&key) {
            Some(kept) => duplicates.push(Duplicate { kept: *kept, left_out: value }),
            None => {
                model.insert(key, value);
            }
        }
    }
    duplicates
}

fn sorted(mut duplicates: Vec<Duplicate<u64>>) -> Vec<Duplicate<u64>> {
    duplicates.sort();
    duplicates
}

/// Holds `index` to `model`: every key, keys that are not there, the number, the order.
fn compare<K: TestKeys, I: Index<K>>(index: &I, model: &Model<K>, others: &[K::Owned]) {
    assert_eq!(index.count(), model.len());
    assert!(index.entries().iter().map(|(key, value)| (key, value)).eq(model));
    for key in others {
        assert_eq!(index.find(key), model.get(key).copied(), "{key:?}");
    }
}

/// Fills an index for each of `chunks`, merges them in an order that `seed` tells, a few at a time by a few threads,
/// and adds a key now and then.
fn battery<K: TestKeys, I: Index<K>>(chunks: &[Vec<K::Owned>], seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let space = IndexSpace::new();
    let all: Vec<K::Owned> = chunks.iter().flatten().cloned().collect();
    let mut row = 0;
    let mut parts: Vec<(I, Model<K>)> = Vec::new();
    for chunk in chunks {
        let mut number = |key: &K::Owned| {
            row += 1;
            (key.clone(), row)
        };
        let entries: Vec<_> = chunk.iter().map(&mut number).collect();
        let fill = *[Fill::KeyByKey, Fill::Ahead, Fill::AtOnce, Fill::InParallel].choose(&mut random).unwrap();
        let (index, told) = I::filled(&space, &entries, fill);
        let mut model = Model::<K>::new();
        assert_eq!(sorted(told), sorted(add_all::<K>(&mut model, entries)), "{fill:?}");
        compare(&index, &model, &all);
        parts.push((index, model));
    }
    while parts.len() > 1 {
        let count = random.random_range(2..=parts.len().min(4));
        parts.shuffle(&mut random);
        let (indexes, models): (Vec<I>, Vec<Model<K>>) = parts.drain(parts.len() - count..).unzip();
        let (mut index, told) = I::merged(indexes, random.random_range(1..=3)).unwrap().unwrap();
        let mut models = models.into_iter();
        let mut model = models.next().unwrap();
        let expected = models.flat_map(|other| add_all::<K>(&mut model, other)).collect();
        assert_eq!(sorted(told), sorted(expected));
        compare(&index, &model, &all);
        for key in all.choose_multiple(&mut random, 5) {
            row += 1;
            assert_eq!(index.add(key, row), model.get(key).copied());
            model.entry(key.clone()).or_insert(row);
        }
        compare(&index, &model, &all);
        parts.push((index, model));
    }
}

fn both<K: TestKeys>(chunks: &[Vec<K::Owned>], seed: u64) {
    battery::<K, RadixTree<K, u64>>(chunks, seed);
    battery::<K, ChainedHash<K, u64>>(chunks, seed);
}

/// Bytes of a key: few letters, so that one begins with another; long beginnings in common; a byte of any value at
/// some place, so that nodes of all sizes are there; none at all.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, 255]), 0..7),
        (0..3_usize, 0..40_usize, prop::collection::vec(any::<u8>(), 0..3)).prop_map(|(which, len, tail)| {
            let beginning = [[7_u8; 40], [0; 40], std::array::from_fn(|at| at as u8)][which];
            [&beginning[..len], &tail].concat()
        }),
        (0..4_usize, any::<u8>()).prop_map(|(at, byte)| {
            let mut key = vec![9; 4];
            key[at] = byte;
            key
        }),
    ]
}

fn chunks() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    prop::collection::vec(prop::collection::vec(bytes(), 0..120), 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn byte_keys_of_any_shape(chunks in chunks(), seed: u64) {
        both::<ByteKeys>(&chunks, seed);
    }

    #[test]
    fn numbers_of_any_shape(chunks in chunks(), seed: u64) {
        let numbers = |chunk: &Vec<Vec<u8>>| chunk.iter().map(|key| U32Keys::of(key)).collect();
        both::<U32Keys>(&chunks.iter().map(numbers).collect::<Vec<_>>(), seed);
        let numbers = |chunk: &Vec<Vec<u8>>| chunk.iter().map(|key| U64Keys::of(key)).collect();
        both::<U64Keys>(&chunks.iter().map(numbers).collect::<Vec<_>>(), seed);
    }
}

/// Chunks of an order that is dense, as it comes and shuffled, and of numbers far apart.
#[test]
fn many_numbers() {
    const ROWS: u32 = 6_000;
    let mut random = StdRng::seed_from_u64(1);
    let dense: Vec<u32> = (1..=ROWS).collect();
    let mut shuffled = dense.clone();
    shuffled.shuffle(&mut random);
    let sparse: Vec<u32> = (0..ROWS).map(|_| random.random()).collect();
    for (seed, keys) in [dense, shuffled, sparse].into_iter().enumerate() {
        for parts in [1, 2, 5] {
            let chunks: Vec<Vec<u32>> = keys.chunks(keys.len().div_ceil(parts)).map(<[u32]>::to_vec).collect();
            both::<U32Keys>(&chunks, seed as u64);
            let wide = |chunk: &Vec<u32>| chunk.iter().map(|key| u64::from(*key) << 17).collect();
            both::<U64Keys>(&chunks.iter().map(wide).collect::<Vec<_>>(), seed as u64);
        }
    }
}

/// A node of each size meets one of each size, with children in common and without.
#[test]
fn nodes_of_all_sizes_meet() {
    const SIZES: [usize; 10] = [1, 2, 4, 5, 16, 17, 48, 49, 255, 256];
    let mut random = StdRng::seed_from_u64(2);
    for (left, right) in SIZES.into_iter().flat_map(|left| SIZES.map(|right| (left, right))) {
        let mut some = |count| {
            let mut bytes: Vec<u8> = (0..=255).collect();
            bytes.shuffle(&mut random);
            bytes[..count].iter().map(|byte| vec![3, 3, *byte, 3]).collect::<Vec<_>>()
        };
        let chunks = [some(left), some(right)];
        both::<ByteKeys>(&chunks, left as u64);
        both::<U32Keys>(&chunks.map(|chunk| chunk.iter().map(|key| U32Keys::of(key)).collect()), right as u64);
    }
}

/// Each key is the beginning of the next one: as many nodes below one another, more than recursion goes down.
#[test]
fn keys_that_begin_with_one_another() {
    const LEN: usize = 5 * INDEX_DEPTH_MAX;
    let keys: Vec<Vec<u8>> = (0..LEN).map(|len| vec![1; len]).collect();
    let mut shuffled = keys.clone();
    shuffled.shuffle(&mut StdRng::seed_from_u64(3));
    let others: Vec<Vec<u8>> = (0..LEN).map(|len| [vec![1; len], vec![2]].concat()).collect();
    for seed in 0..6 {
        both::<ByteKeys>(&[keys.clone(), shuffled.clone(), others.clone(), keys[7..].to_vec()], seed);
    }
}

/// More keys than are chained, most of them several times, some the beginnings of others.
#[test]
fn equal_keys_among_many() {
    let mut random = StdRng::seed_from_u64(5);
    let short: Vec<Vec<u8>> = (0..700_u32).map(|at| at.to_be_bytes()[(at % 4) as usize..].to_vec()).collect();
    let nested: Vec<Vec<u8>> = (0..700).map(|len| vec![1; len]).collect();
    for seed in 0..8 {
        let mut some = |keys: &[Vec<u8>]| (0..2_000).filter_map(|_| keys.choose(&mut random).cloned()).collect();
        let chunks: Vec<Vec<Vec<u8>>> = vec![some(&short), some(&nested), some(&short)];
        both::<ByteKeys>(&chunks, seed);
    }
    // With several places a part.
    let entries: Vec<(u32, u64)> = (0..5_000).map(|row| (random.random_range(0..3_000), row)).collect();
    let (table, told) =
        ChainedHash::<U32Keys, u64>::build_parallel(&IndexSpace::new(), 12, &in_chunks::<U32Keys>(&entries), 3)
            .unwrap();
    let mut model = Model::<U32Keys>::new();
    assert_eq!(sorted(told), sorted(add_all::<U32Keys>(&mut model, entries)));
    compare::<U32Keys, _>(&table, &model, &(0..3_000).collect::<Vec<_>>());
}

/// Long keys, some longer than a page of them.
#[test]
fn keys_longer_than_a_page() {
    let long = |byte: u8, len: usize| [vec![5; len], vec![byte]].concat();
    let keys: Vec<Vec<u8>> = (0..40).map(|at| long(at % 7, usize::from(at) * 4_000)).collect();
    both::<ByteKeys>(&[keys.clone(), keys[20..].to_vec(), keys[..5].to_vec()], 4);
}

#[test]
fn nothing_and_one_key() {
    for chunks in [vec![vec![]], vec![vec![], vec![]], vec![vec![], vec![5], vec![]], vec![vec![5], vec![5], vec![5]]] {
        both::<U32Keys>(&chunks, 0);
        let bytes = |chunk: &Vec<u32>| chunk.iter().map(|_| Vec::new()).collect();
        both::<ByteKeys>(&chunks.iter().map(bytes).collect::<Vec<_>>(), 0);
    }
    assert!(RadixTree::<U32Keys, u64>::merge(Vec::new(), 2).unwrap().is_none());
    assert!(ChainedHash::<U32Keys, u64>::merge(Vec::new(), 2).unwrap().is_none());
}

/// The order in which threads come changes nothing that is told.
#[test]
fn what_is_told_does_not_depend_on_threads() {
    let told = |threads| {
        let space = IndexSpace::new();
        let chunk = |start: u32| (start..start + 40_000).map(|key| (key.wrapping_mul(2_654_435_769), key)).collect();
        let chunks: [Vec<(u32, u32)>; 3] = [chunk(0), chunk(30_000), chunk(60_000)];
        let tree = |chunk: &Vec<(u32, u32)>| RadixTree::<U32Keys, u32>::build(&space, &mut chunk.clone()).unwrap().0;
        let trees = chunks.iter().map(tree).collect();
        let (tree, of_tree) = RadixTree::merge(trees, threads).unwrap().unwrap();
        let space = IndexSpace::new();
        let table = |chunk: &Vec<(u32, u32)>| {
            let mut table = ChainedHash::<U32Keys, u32>::new(&space, 12);
            assert!(table.extend(chunk).unwrap().is_empty());
            table
        };
        let (table, of_table) = ChainedHash::merge(chunks.iter().map(table).collect(), threads).unwrap().unwrap();
        assert_eq!((tree.len(), table.len()), (100_000, 100_000));
        (of_tree, of_table)
    };
    let first = told(1);
    assert_eq!((first.0.len(), first.1.len()), (20_000, 20_000));
    assert!((2..5).all(|threads| told(threads) == first));
}

#[test]
fn indexes_of_several_spaces_are_refused() {
    let tree = || RadixTree::<U32Keys, u64>::new(&IndexSpace::new());
    assert_eq!(RadixTree::merge(vec![tree(), tree()], 1).unwrap_err().kind(), ErrorKind::Internal);
    let table = |bits| ChainedHash::<U32Keys, u64>::new(&IndexSpace::new(), bits);
    assert_eq!(ChainedHash::merge(vec![table(4), table(4)], 1).unwrap_err().kind(), ErrorKind::Internal);
    let space = IndexSpace::new();
    let tables = vec![ChainedHash::<U32Keys, u64>::new(&space, 4), ChainedHash::new(&space, 5)];
    assert_eq!(ChainedHash::merge(tables, 1).unwrap_err().kind(), ErrorKind::Internal);
}

/// Memory is counted: what a key takes at least, and not much more; a merge gives back the nodes it has no use for.
#[test]
fn memory_is_counted() {
    const ROWS: u32 = 200_000;
    let entries = |step: u32, start: u32| -> Vec<(u32, u64)> {
        (0..ROWS / 2).map(|row| ((2 * row + start).wrapping_mul(step), u64::from(row))).collect()
    };
    // Of numbers in a dense order a key takes 16 bytes and 4 of its node; of others there are nodes of few children.
    for (step, node_bytes) in [(1, 4.5), (2_654_435_769, 40.0)] {
        let space = IndexSpace::new();
        let fill =
            |start, fill| <RadixTree<U32Keys, u64> as Index<U32Keys>>::filled(&space, &entries(step, start), fill).0;
        let (left, right) = (fill(0, Fill::KeyByKey), fill(1, Fill::AtOnce));
        let parts = left.memory() + right.memory();
        let merged = RadixTree::merge(vec![left, right], 2).unwrap().unwrap().0;
        let (least, bytes) = (f64::from(ROWS) * 16.0, merged.bytes() as f64);
        // Pages are not full: that may be most of them, for they are few.
        let not_full = (5 * 5) as f64 * f64::from(1 << 20);
        assert!(bytes > least && bytes < least + f64::from(ROWS) * node_bytes + not_full, "{bytes}");
        assert!(merged.bytes() < 2 * parts, "{} of {parts}", merged.bytes());
    }
    let space = IndexSpace::new();
    let table = <ChainedHash<U32Keys, u64> as Index<U32Keys>>::filled(&space, &entries(1, 0), Fill::Ahead).0;
    assert!(table.memory() >= (ROWS / 2 * 16) as usize + 64);
    let mut long = ChainedHash::<ByteKeys, u64>::new(&space, 4);
    let before = long.bytes();
    long.insert(&[1; 100_000], 1).unwrap();
    assert!(long.bytes() >= before + 100_000);
}
