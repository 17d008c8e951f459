//! Both indexes over the same keys, in turn: key by key, a chunk at once, partitioned, and as a
//! union.

use std::time::Instant;

use mainstem_storage::index::{ChainedHash, Duplicate, IndexSpace, RadixTree, U32Keys};

use super::{Order, Plan, keys_of};
use crate::duel::Series;
use crate::experiment::Failure;
use crate::report::{Figure, Reach, Report, Unit};

/// What figure 10 and the text beside it say of 10 M keys: the rates of both indexes with 4 threads, how many times one
/// thread's they are, and what of the time is merging.
const PAPER_TREE_RATE: f64 = 130e6;
const PAPER_HASH_RATE: f64 = 27e6;
const PAPER_TREE_SPEED_UP: f64 = 2.2;
const PAPER_HASH_SPEED_UP: f64 = 2.6;
/// What the issue asks for.
const SPEED_UP_MIN: f64 = 1.7;
const MERGE_SHARE_MAX: f64 = 0.35;

type Tree = RadixTree<U32Keys, u32>;
type Table = ChainedHash<U32Keys, u32>;

/// How an index is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    KeyByKey,
    AtOnce,
    /// All chunks by all threads, each of which builds parts of the index.
    Partitioned,
}

impl Fill {
    fn name(self) -> &'static str {
        match self {
            Self::KeyByKey => "key by key",
            Self::AtOnce => "a chunk at once",
            Self::Partitioned => "partitioned",
        }
    }
}

/// What is asked of both.
trait Index: Sized + Send {
    const NAME: &'static str;

    /// An index over `keys`, the first one in row `first`, of `total` keys in all.
    fn of(space: &IndexSpace, keys: &[u32], first: u32, total: usize, fill: Fill) -> Result<Self, Failure>;

    /// An index over all of `chunks`, whose keys all differ.
    fn of_parts(space: &IndexSpace, chunks: &[Vec<(u32, u32)>], threads: usize) -> Result<Self, Failure>;

    fn merge(indexes: Vec<Self>, threads: usize) -> Result<(Self, Vec<Duplicate<u32>>), Failure>;

    fn find(&self, key: u32) -> Option<u32>;

    /// How many keys it has, as it goes through them; those of a tree come in order.
    fn count(&self) -> Result<usize, Failure>;

    fn memory(&self) -> usize;
}

fn entries(keys: &[u32], first: u32) -> Vec<(u32, u32)> {
    keys.iter().copied().zip(first..).collect()
}

fn told_none(told: &[Duplicate<u32>]) -> Result<(), Failure> {
    match told.first() {
        Some(pair) => Err(Failure::Wrong(format!("{pair:?} of keys that differ"))),
        None => Ok(()),
    }
}

fn broken(error: mainstem_storage::Error) -> Failure {
    Failure::Wrong(error.to_string())
}

impl Index for Tree {
    const NAME: &'static str = "ART";

    fn of(space: &IndexSpace, keys: &[u32], first: u32, _total: usize, fill: Fill) -> Result<Self, Failure> {
        match fill {
            Fill::KeyByKey => {
                let mut tree = Self::new(space);
                for (key, row) in keys.iter().zip(first..) {
                    if let Some(other) = tree.insert(*key, row).map_err(broken)? {
                        return Err(Failure::Wrong(format!("key {key} is that of row {other}, too")));
                    }
                }
                Ok(tree)
            }
            Fill::AtOnce | Fill::Partitioned => {
                let (tree, told) = Self::build(space, &mut entries(keys, first)).map_err(broken)?;
                told_none(&told)?;
                Ok(tree)
            }
        }
    }

    fn of_parts(space: &IndexSpace, chunks: &[Vec<(u32, u32)>], threads: usize) -> Result<Self, Failure> {
        let (tree, told) = Self::build_parallel(space, chunks, threads).map_err(broken)?;
        told_none(&told)?;
        Ok(tree)
    }

    fn merge(indexes: Vec<Self>, threads: usize) -> Result<(Self, Vec<Duplicate<u32>>), Failure> {
        let merged = RadixTree::merge(indexes, threads).map_err(broken)?;
        merged.ok_or_else(|| Failure::Broken("nothing was merged".into()))
    }

    fn find(&self, key: u32) -> Option<u32> {
        self.get(key)
    }

    fn count(&self) -> Result<usize, Failure> {
        let (mut count, mut before) = (0, None);
        for (key, _) in self.iter() {
            if before >= Some(key) {
                return Err(Failure::Wrong(format!("{key} comes behind {before:?}")));
            }
            before = Some(key);
            count += 1;
        }
        Ok(count)
    }

    fn memory(&self) -> usize {
        self.bytes()
    }
}

impl Index for Table {
    const NAME: &'static str = "hash";

    fn of(space: &IndexSpace, keys: &[u32], first: u32, total: usize, fill: Fill) -> Result<Self, Failure> {
        let mut table = Self::new(space, Self::directory_bits(total));
        match fill {
            Fill::KeyByKey => {
                for (key, row) in keys.iter().zip(first..) {
                    if let Some(other) = table.insert(*key, row).map_err(broken)? {
                        return Err(Failure::Wrong(format!("key {key} is that of row {other}, too")));
                    }
                }
            }
            Fill::AtOnce | Fill::Partitioned => told_none(&table.extend(&entries(keys, first)).map_err(broken)?)?,
        }
        Ok(table)
    }

    fn of_parts(space: &IndexSpace, chunks: &[Vec<(u32, u32)>], threads: usize) -> Result<Self, Failure> {
        let total = chunks.iter().map(Vec::len).sum();
        let (table, told) =
            Self::build_parallel(space, Self::directory_bits(total), chunks, threads).map_err(broken)?;
        told_none(&told)?;
        Ok(table)
    }

    fn merge(indexes: Vec<Self>, threads: usize) -> Result<(Self, Vec<Duplicate<u32>>), Failure> {
        let merged = ChainedHash::merge(indexes, threads).map_err(broken)?;
        merged.ok_or_else(|| Failure::Broken("nothing was merged".into()))
    }

    fn find(&self, key: u32) -> Option<u32> {
        self.get(key)
    }

    fn count(&self) -> Result<usize, Failure> {
        Ok(self.iter().count())
    }

    fn memory(&self) -> usize {
        self.bytes()
    }
}

/// The rounds of one index that is filled in one way.
#[derive(Default)]
struct Rounds {
    /// Keys a second: of one thread, and of several.
    alone: Series,
    together: Series,
    speed_up: Series,
    merge_share: Series,
    bytes_per_key: f64,
}

impl Rounds {
    /// A round with one thread, and one with `threads`.
    fn add<I: Index>(&mut self, keys: &[u32], threads: usize, fill: Fill) -> Result<(), Failure> {
        let alone = build::<I>(keys, 1, fill)?;
        let together = build::<I>(keys, threads, fill)?;
        self.alone.push(alone.rate);
        self.together.push(together.rate);
        self.speed_up.push(together.rate / alone.rate);
        together.merge_share.into_iter().for_each(|share| self.merge_share.push(share));
        self.bytes_per_key = together.bytes as f64 / keys.len() as f64;
        Ok(())
    }
}

/// What building and merging once took.
struct Built {
    rate: f64,
    /// None where nothing is merged.
    merge_share: Option<f64>,
    bytes: usize,
}

/// What `work` makes of `keys` in as many chunks as there are threads, each of which makes one; with the row of the
/// first key.
fn of_chunks<T: Send>(
    keys: &[u32],
    threads: usize,
    work: impl Fn(&[u32], u32) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let chunk = keys.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let work = &work;
        let part = |(at, part)| scope.spawn(move || work(part, (at * chunk) as u32));
        let threads: Vec<_> = keys.chunks(chunk).enumerate().map(part).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

fn build<I: Index>(keys: &[u32], threads: usize, fill: Fill) -> Result<Built, Failure> {
    let space = IndexSpace::new();
    let start = Instant::now();
    let (index, merging) = if fill == Fill::Partitioned {
        let chunks = of_chunks(keys, threads, |keys, first| Ok(entries(keys, first)))?;
        (I::of_parts(&space, &chunks, threads)?, None)
    } else {
        let parts = of_chunks(keys, threads, |part, first| I::of(&space, part, first, keys.len(), fill))?;
        let built = Instant::now();
        let (index, told) = I::merge(parts, threads)?;
        told_none(&told)?;
        (index, Some(built.elapsed()))
    };
    let all = start.elapsed();
    check(&index, keys)?;
    Ok(Built {
        rate: keys.len() as f64 / all.as_secs_f64().max(1e-9),
        merge_share: merging.map(|merging| merging.as_secs_f64() / all.as_secs_f64().max(1e-9)),
        bytes: index.memory(),
    })
}

/// Every key is there with its row, and none besides.
fn check<I: Index>(index: &I, keys: &[u32]) -> Result<(), Failure> {
    let count = index.count()?;
    if count != keys.len() {
        return Err(Failure::Wrong(format!("{} has {count} of {} keys", I::NAME, keys.len())));
    }
    match keys.iter().zip(0..).find(|(key, row)| index.find(**key) != Some(*row)) {
        Some((key, row)) => Err(Failure::Wrong(format!("{} does not find key {key} of row {row}", I::NAME))),
        None => Ok(()),
    }
}

/// Keys a second that go into a merge of two indexes with a third of all keys in common.
fn union<I: Index>(keys: &[u32], threads: usize) -> Result<f64, Failure> {
    let (third, space) = (keys.len() / 3, IndexSpace::new());
    let left = I::of(&space, &keys[..2 * third], 0, keys.len(), Fill::AtOnce)?;
    let right = I::of(&space, &keys[third..], third as u32, keys.len(), Fill::AtOnce)?;
    let start = Instant::now();
    let (index, told) = I::merge(vec![left, right], threads)?;
    let seconds = start.elapsed().as_secs_f64();
    // A key has the same row in both: each row of the third is told once, as its own duplicate.
    let mut rows: Vec<u32> = told.iter().filter(|pair| pair.kept == pair.left_out).map(|pair| pair.kept).collect();
    rows.sort_unstable();
    if told.len() != rows.len() || !rows.iter().copied().eq(third as u32..2 * third as u32) {
        return Err(Failure::Wrong(format!("{} tells {} duplicates of {third}", I::NAME, told.len())));
    }
    check(&index, keys)?;
    Ok((keys.len() + third) as f64 / seconds.max(1e-9))
}

/// Measures both indexes over keys of `order`.
///
/// # Errors
/// Wrong when one of them answers wrongly.
pub(super) fn run(order: Order, plan: Plan, report: &mut Report) -> Result<(), Failure> {
    let keys = keys_of(order, plan.keys);
    let fills = [Fill::KeyByKey, Fill::AtOnce, Fill::Partitioned];
    let (mut trees, mut tables) = (fills.map(|_| Rounds::default()), fills.map(|_| Rounds::default()));
    let (mut tree_unions, mut table_unions) = (Series::default(), Series::default());
    for round in 0..plan.rounds {
        report.progress(format_args!("{order}: round {}", round + 1));
        for (fill, (tree, table)) in fills.into_iter().zip(trees.iter_mut().zip(&mut tables)) {
            tree.add::<Tree>(&keys, plan.threads, fill)?;
            table.add::<Table>(&keys, plan.threads, fill)?;
        }
        tree_unions.push(union::<Tree>(&keys, plan.threads)?);
        table_unions.push(union::<Table>(&keys, plan.threads)?);
    }
    for (fill, (tree, table)) in fills.into_iter().zip(trees.iter().zip(&tables)) {
        add_rounds(&format!("{order}, {}", Table::NAME), fill, table, of_hash(order), report)?;
        let told = of_tree(order, fill, table.together.median());
        add_rounds(&format!("{order}, {}", Tree::NAME), fill, tree, told, report)?;
    }
    for (name, unions) in [(Tree::NAME, &tree_unions), (Table::NAME, &table_unions)] {
        let case = format!("{order}, {name}, union");
        if let Some(figure) = Figure::of(&case, "rate", Unit::PerSecond, unions) {
            report.add(figure)?;
        }
    }
    Ok(())
}

/// What the figures of an index are compared with, and what they have to reach.
struct Compared {
    rate: Option<(&'static str, f64)>,
    rate_reach: Option<Reach>,
    speed_up: f64,
    /// What of the paper's time is merging.
    merge_share: Option<f64>,
    merge_reach: Option<Reach>,
}

fn of_hash(order: Order) -> Compared {
    Compared {
        // The paper's table does not depend on the order.
        rate: Some(("paper, 4 threads", PAPER_HASH_RATE)),
        rate_reach: None,
        speed_up: PAPER_HASH_SPEED_UP,
        merge_share: None,
        merge_reach: (order == Order::Sparse).then_some(Reach::AtMost(MERGE_SHARE_MAX)),
    }
}

fn of_tree(order: Order, fill: Fill, table: Option<f64>) -> Compared {
    let merge_share = match order {
        Order::Dense => 0.01,
        Order::Unordered => 0.16,
        Order::Sparse => 0.33,
    };
    let (rate, rate_reach) = match (order, fill) {
        (Order::Dense, Fill::KeyByKey) => {
            (Some(("paper, 4 threads", PAPER_TREE_RATE)), Some(Reach::AtLeast(PAPER_TREE_RATE)))
        }
        (Order::Dense, Fill::AtOnce | Fill::Partitioned) => (Some(("paper, 4 threads", PAPER_TREE_RATE)), None),
        _ => (table.map(|rate| ("our hash table", rate)), Some(Reach::OfYardstick(1.0))),
    };
    Compared {
        rate,
        rate_reach,
        speed_up: PAPER_TREE_SPEED_UP,
        merge_share: Some(merge_share),
        merge_reach: (order == Order::Sparse).then_some(Reach::AtMost(MERGE_SHARE_MAX)),
    }
}

fn add_rounds(index: &str, fill: Fill, rounds: &Rounds, with: Compared, report: &mut Report) -> Result<(), Failure> {
    let case = format!("{index}, {}", fill.name());
    let compared = |figure: Figure, yardstick: Option<(&str, f64)>, reach: Option<Reach>| {
        let figure = match yardstick {
            Some((name, value)) => figure.beside(name, value),
            None => figure,
        };
        match reach {
            Some(reach) => figure.to_reach(reach),
            None => figure,
        }
    };
    if let Some(figure) = Figure::of(&case, "rate", Unit::PerSecond, &rounds.together) {
        report.add(compared(figure, with.rate, with.rate_reach))?;
    }
    if let Some(figure) = Figure::of(&case, "rate, 1 thread", Unit::PerSecond, &rounds.alone) {
        report.add(figure)?;
    }
    if let Some(figure) = Figure::of(&case, "speed-up", Unit::Times, &rounds.speed_up) {
        let paper = Some(("paper, 4 threads", with.speed_up));
        report.add(compared(figure, paper, Some(Reach::AtLeast(SPEED_UP_MIN))))?;
    }
    if let Some(figure) = Figure::of(&case, "merge, of all", Unit::Times, &rounds.merge_share) {
        let paper = with.merge_share.map(|share| ("paper, 4 threads", share));
        report.add(compared(figure, paper, with.merge_reach))?;
    }
    report.note(format!("{case}: {:.1} bytes a key", rounds.bytes_per_key));
    Ok(())
}
