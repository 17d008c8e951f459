use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use proptest::prelude::*;

use super::{Decision, DeleteLog, DeleteSet, Lookups};
use crate::codec::{Decoder, Encoder};
use crate::error::ErrorKind;
use crate::ids::{CommitTs, RowRef};
use crate::limits;

mod file;

const ROWS: u32 = 700;

fn offsets_of(bits: Option<Arc<[u64]>>) -> Vec<u32> {
    let mut out = Vec::new();
    bits.inspect(|bits| mainstem_kernels::bitmap::indices(bits, &mut out));
    out
}

/// Ends by row, nothing folded.
#[derive(Default)]
struct Naive(BTreeMap<u32, u64>);

impl Naive {
    fn at(&self, at: u64) -> Vec<u32> {
        self.0.iter().filter(|&(_, &end)| end <= at).map(|(&offset, _)| offset).collect()
    }
}

fn delete_by_intent(log: &DeleteLog, ts: CommitTs, set: &DeleteSet) {
    let decision = Decision::default();
    log.intend(&decision, set);
    decision.make(ts);
}

/// Everything a reader at `at` can ask.
fn check_at(log: &DeleteLog, naive: &Naive, at: u64) {
    let expected = naive.at(at);
    let ts = CommitTs(at);
    let bits = log.bitmap_at(ts);
    assert_eq!(bits.is_none(), expected.is_empty());
    assert!(bits.as_ref().is_none_or(|b| b.len() >= ROWS as usize / 64));
    assert_eq!(offsets_of(bits), expected, "bitmap at {at}");
    assert_eq!(log.count_at(ts), expected.len() as u64);
    assert_eq!(log.set_at(ts).iter().collect::<Vec<_>>(), expected);
    for offset in 0..ROWS {
        assert_eq!(log.is_deleted(offset, ts), expected.binary_search(&offset).is_ok(), "row {offset} at {at}");
    }
}

fn check_since(log: &DeleteLog, naive: &Naive, after: u64, now: u64, probe: &DeleteSet) {
    let carried = log.between(CommitTs(after), CommitTs(now));
    assert!(carried.is_sorted_by_key(|(ts, _)| *ts));
    let mut offsets: Vec<u32> = carried.iter().flat_map(|(_, set)| set.iter()).collect();
    offsets.sort_unstable();
    let expected: Vec<u32> = naive.0.iter().filter(|(_, end)| **end > after && **end <= now).map(|(o, _)| *o).collect();
    assert_eq!(offsets, expected, "deletes after {after} up to {now}");
    let hits: Vec<u32> = probe.iter().filter(|o| expected.contains(o)).collect();
    match log.first_deleted_after(probe, CommitTs(after)) {
        Some(hit) => assert!(hits.contains(&hit)),
        None => assert_eq!(hits, [0; 0]),
    }
    let bounded = log.find_deleted_after(probe, CommitTs(after), &mut Lookups(1 << 20));
    assert_eq!(bounded.map(|hit| hit.is_some()), Some(!hits.is_empty()));
}

#[derive(Clone, Debug)]
enum Step {
    Delete(Vec<u32>),
    DeleteRange(u32, u32),
    Intend(Vec<u32>),
    /// Of an intent, by its number: if its rows are live, else it is withdrawn.
    Decide(usize),
    Withdraw(usize),
    Pour,
    Pin,
    Unpin(usize),
    Fold,
    Read,
    ReadPinned(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(0..ROWS, 1..6).prop_map(Step::Delete),
        1 => prop::collection::vec(0..ROWS, 250..400).prop_map(Step::Delete),
        1 => (0..ROWS, 0..ROWS).prop_map(|(a, b)| Step::DeleteRange(a.min(b), a.max(b))),
        3 => prop::collection::vec(0..ROWS, 1..400).prop_map(Step::Intend),
        2 => any::<usize>().prop_map(Step::Decide),
        1 => any::<usize>().prop_map(Step::Withdraw),
        1 => Just(Step::Pour),
        2 => Just(Step::Pin),
        1 => any::<usize>().prop_map(Step::Unpin),
        2 => Just(Step::Fold),
        2 => Just(Step::Read),
        2 => any::<usize>().prop_map(Step::ReadPinned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_list_of_ends(steps in prop::collection::vec(step(), 1..60), start in prop::collection::vec(0..ROWS, 0..9)) {
        let log = DeleteLog::new(ROWS);
        let mut naive = Naive::default();
        let mut now = 5;
        log.restore(CommitTs(now), &start.iter().copied().collect());
        naive.0.extend(start.iter().map(|&offset| (offset, now)));
        let mut pins: Vec<u64> = Vec::new();
        let mut intents: Vec<(Decision, DeleteSet)> = Vec::new();
        for step in steps {
            match step {
                Step::Delete(offsets) => {
                    now += 2;
                    // Rows deleted before keep their end.
                    log.record(CommitTs(now), &offsets.iter().copied().collect());
                    offsets.iter().for_each(|&offset| { naive.0.entry(offset).or_insert(now); });
                }
                Step::DeleteRange(from, to) => {
                    now += 2;
                    log.record(CommitTs(now), &DeleteSet::range(from..to));
                    (from..to).for_each(|offset| { naive.0.entry(offset).or_insert(now); });
                }
                Step::Intend(offsets) => {
                    let live: DeleteSet = offsets.iter().copied().filter(|offset| !naive.0.contains_key(offset)).collect();
                    let decision = Decision::default();
                    log.intend(&decision, &live);
                    intents.push((decision, live));
                }
                Step::Decide(i) => {
                    if !intents.is_empty() {
                        let (decision, set) = intents.remove(i % intents.len());
                        if set.iter().any(|offset| naive.0.contains_key(&offset)) {
                            log.withdraw(&decision);
                        } else {
                            now += 2;
                            decision.make(CommitTs(now));
                            set.iter().for_each(|offset| { naive.0.insert(offset, now); });
                        }
                    }
                }
                Step::Withdraw(i) => {
                    if !intents.is_empty() {
                        log.withdraw(&intents.remove(i % intents.len()).0);
                    }
                }
                Step::Pour => log.pour(),
                Step::Pin => pins.push(now),
                Step::Unpin(i) => { if !pins.is_empty() { pins.remove(i % pins.len()); } }
                Step::Fold => {
                    let needed: Vec<CommitTs> = pins.iter().copied().chain([now]).map(CommitTs).collect();
                    log.fold(&needed);
                }
                Step::Read => check_at(&log, &naive, now + 1),
                Step::ReadPinned(i) => { if !pins.is_empty() { check_at(&log, &naive, pins[i % pins.len()]); } }
            }
        }
        pins.push(now);
        let probe: DeleteSet = (0..ROWS).step_by(7).collect();
        for &pin in &pins {
            check_at(&log, &naive, pin);
            check_since(&log, &naive, pin, now, &probe);
            for offset in 0..ROWS {
                let end = naive.0.get(&offset).copied().unwrap_or(u64::MAX);
                let told = log.end_of(offset).0;
                prop_assert_eq!(told <= pin, end <= pin, "row {} ended {}, told {}", offset, end, told);
            }
        }
        for offset in 0..ROWS {
            prop_assert_eq!(log.is_deleted_now(offset), naive.0.contains_key(&offset));
        }
        prop_assert_eq!(log.count_now(), naive.0.len() as u64);
        prop_assert_eq!(log.first_deleted(&probe), probe.iter().find(|o| naive.0.contains_key(o)));
    }

    #[test]
    fn sets_agree_with_sorted_vectors(mut offsets in prop::collection::vec(0..2_000u32, 0..900)) {
        let set: DeleteSet = offsets.iter().copied().collect();
        offsets.sort_unstable();
        offsets.dedup();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), offsets.clone());
        prop_assert_eq!(set.len(), offsets.len());
        prop_assert_eq!(set.max(), offsets.last().copied());
        let mut words = vec![0u64; 2_000 / 64 + 1];
        offsets.iter().for_each(|&o| mainstem_kernels::bitmap::set(&mut words, o as usize));
        prop_assert_eq!(&DeleteSet::from_words(&words), &set);
        let (left, right) = offsets.split_at(offsets.len() / 3);
        let parts = [DeleteSet::from_sorted(left), DeleteSet::from_sorted(right)];
        prop_assert_eq!(parts[0].first_common(&parts[1]), None);
        prop_assert_eq!(set.first_common(&parts[1]).is_some(), !right.is_empty());
        prop_assert_eq!(&DeleteSet::union(&parts), &set);
        let mut out = Encoder::new();
        set.encode(&mut out);
        let bytes = out.finish();
        let mut input = Decoder::new(&bytes, "sets", 0);
        prop_assert_eq!(&DeleteSet::decode(&mut input).unwrap(), &set);
        prop_assert_eq!(input.remaining(), 0);
        for cut in 0..bytes.len() {
            prop_assert!(DeleteSet::decode(&mut Decoder::new(&bytes[..cut], "sets", 0)).is_err());
        }
        for offset in 0..2_000 {
            prop_assert_eq!(set.contains(offset), offsets.binary_search(&offset).is_ok());
        }
    }
}

#[test]
fn forms_follow_from_the_size() {
    assert!(matches!(DeleteSet::range(3..4), DeleteSet::One(3)));
    assert!(matches!(DeleteSet::range(0..limits::DELETE_SET_FEW_MAX as u32), DeleteSet::Few(_)));
    let many = DeleteSet::range(5..9_000);
    assert!(matches!(many, DeleteSet::Bitmap(_)));
    assert_eq!(many, (5..9_000).collect());
    assert_eq!(many.as_long_range(), Some(5..9_000));
    assert!(DeleteSet::empty().is_empty() && DeleteSet::range(7..7).is_empty());
}

#[test]
fn readers_of_one_moment_share_a_bitmap() {
    let log = DeleteLog::new(ROWS);
    log.record(CommitTs(3), &DeleteSet::One(1));
    log.record(CommitTs(9), &DeleteSet::One(2));
    let first = log.bitmap_at(CommitTs(4)).unwrap();
    assert!(Arc::ptr_eq(&first, &log.bitmap_at(CommitTs(8)).unwrap()), "no delete lies between 4 and 8");
    log.fold(&[CommitTs(9)]);
    let folded = log.bitmap_at(CommitTs(9)).unwrap();
    assert!(Arc::ptr_eq(&folded, &log.bitmap_at(CommitTs(20)).unwrap()));
    assert_eq!(offsets_of(Some(first)), [1], "a bitmap handed out never changes");
}

#[test]
fn folding_gives_memory_back() {
    let log = DeleteLog::new(100_000);
    for i in 0..2_000 {
        log.record(CommitTs(u64::from(i) + 1), &DeleteSet::One(i * 7));
    }
    assert!(log.wants_fold());
    let before = log.memory_bytes();
    log.fold(&[CommitTs(100), CommitTs(2_000)]);
    assert!(!log.wants_fold());
    assert_eq!(log.between(CommitTs(100), CommitTs(2_000)).len(), 1);
    assert_eq!((log.count_at(CommitTs(100)), log.count_at(CommitTs(2_000))), (100, 2_000));
    log.fold(&[CommitTs(2_000)]);
    assert_eq!(log.between(CommitTs(2_000), CommitTs::INFINITY), []);
    assert!(log.memory_bytes() < before);
}

#[test]
fn a_growing_container_gets_bitmaps_over_its_rows() {
    let log = DeleteLog::growing(1 << 24);
    log.cover(10);
    log.record(CommitTs(1), &DeleteSet::One(3));
    assert!(!log.bitmap_at(CommitTs(1)).unwrap().is_empty());
    log.cover(100_000);
    let bits = log.bitmap_at(CommitTs(1)).unwrap();
    assert!(bits.len() >= 100_000 / 64);
    assert_eq!(offsets_of(Some(bits)), [3]);
}

#[test]
fn offsets_that_no_row_has_are_corrupt() {
    for offsets in [vec![RowRef::OFFSETS], (RowRef::OFFSETS - 10..RowRef::OFFSETS + 900).collect()] {
        let mut out = Encoder::new();
        DeleteSet::from_sorted(&offsets).encode(&mut out);
        let error = DeleteSet::decode(&mut Decoder::new(out.as_slice(), "sets", 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn damaged_sets_are_errors_or_other_sets() {
    for set in [DeleteSet::One(7), (0..200).map(|i| i * 3).collect(), (0..4_000).map(|i| i * 5).collect()] {
        let mut out = Encoder::new();
        set.encode(&mut out);
        for at in 0..out.len().min(400) {
            let mut bytes = out.as_slice().to_vec();
            bytes[at] ^= 0x5a;
            if let Ok(other) = DeleteSet::decode(&mut Decoder::new(&bytes, "sets", 0)) {
                assert!(other.iter().is_sorted_by(|a, b| a < b));
                assert!(other.max().is_none_or(|max| max < RowRef::OFFSETS));
            }
        }
    }
}

/// Commit `t` deletes rows 2t and 2t + 1, so a reader at `t` must count 2t rows, whatever is recorded or folded
/// meanwhile.
#[test]
fn readers_see_their_moment_while_commits_and_folds_go_on() {
    const COMMITS: u64 = 4_000;
    let log = DeleteLog::new(2 * COMMITS as u32);
    let applied = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    // Where the readers stand, who register in one step with looking where the writer is.
    let standing = Mutex::new([0_u64; 2]);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (log, applied, done, standing) = (&log, &applied, &done, &standing);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let at = {
                        let mut standing = standing.lock();
                        standing[reader] = applied.load(Ordering::Acquire);
                        standing[reader]
                    };
                    let ts = CommitTs(at);
                    assert_eq!(log.count_at(ts), 2 * at);
                    assert_eq!(offsets_of(log.bitmap_at(ts)), (0..2 * at as u32).collect::<Vec<_>>());
                    assert!(at == 0 || log.is_deleted(2 * at as u32 - 1, ts));
                    assert!(!log.is_deleted(2 * at as u32, ts));
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut needed = {
                    let standing = standing.lock();
                    [standing[0], standing[1], applied.load(Ordering::Acquire)].map(CommitTs)
                };
                needed.sort_unstable();
                log.fold(&needed);
            }
        });
        for t in 0..COMMITS {
            log.record(CommitTs(t + 1), &DeleteSet::range(2 * t as u32..2 * t as u32 + 2));
            applied.store(t + 1, Ordering::Release);
            if t % 64 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(log.count_now(), 2 * COMMITS);
}

#[test]
fn looking_for_deletes_stops_when_it_costs_too_much() {
    let log = DeleteLog::new(200_000);
    let scattered = |from: u32| (from..200_000).step_by(3).collect::<DeleteSet>();
    (0..10).for_each(|t| log.record(CommitTs(t + 1), &DeleteSet::One(3 * t as u32)));
    delete_by_intent(&log, CommitTs(20), &scattered(1));
    let probe = scattered(2);
    let mut left = Lookups(100);
    assert_eq!(log.find_deleted_after(&probe, CommitTs::ZERO, &mut left), Some(None));
    assert!(left.0 < 100 - 10, "{left:?}");
    assert_eq!(log.find_deleted_after(&probe, CommitTs::ZERO, &mut Lookups(20)), None);
    assert_eq!(log.find_deleted_after(&probe, CommitTs(20), &mut Lookups(4)), None, "to come to the log costs, too");
    assert_eq!(log.find_deleted_after(&scattered(1), CommitTs(10), &mut Lookups(100)), Some(Some(1)));
}

/// Commit `t` deletes, by intent, every `COMMITS`-th row from `t - 1` on, so a reader at `t` must see `t` of each
/// `COMMITS` rows deleted, whether they have been poured or not.
#[test]
fn readers_see_intents_that_are_decided_while_they_are_poured() {
    const COMMITS: u32 = 300;
    const EACH: u32 = 700;
    let log = DeleteLog::new(COMMITS * EACH);
    let applied = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (log, applied, done) = (&log, &applied, &done);
            scope.spawn(move || {
                let mut row = seed * 7_919;
                while !done.load(Ordering::Relaxed) {
                    let at = applied.load(Ordering::Acquire);
                    for _ in 0..200 {
                        row = (row + 104_729) % (COMMITS * EACH);
                        let deleted = u64::from(row % COMMITS) < at;
                        assert_eq!(log.is_deleted(row, CommitTs(at)), deleted, "row {row} at {at}");
                        assert!(!deleted || log.is_deleted_now(row));
                    }
                    assert_eq!(log.count_at(CommitTs(at)), at * u64::from(EACH));
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                log.pour();
            }
        });
        for t in 0..COMMITS {
            let set = (t..COMMITS * EACH).step_by(COMMITS as usize).collect();
            delete_by_intent(&log, CommitTs(u64::from(t) + 1), &set);
            applied.store(u64::from(t) + 1, Ordering::Release);
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(log.count_now(), u64::from(COMMITS * EACH));
}

/// Two commits with intents in one log: whoever looks at it finds the earlier one wherever it finds the later one,
/// though it may have looked at the earlier decision before that was made.
#[test]
fn decisions_come_to_the_log_in_commit_order() {
    for _ in 0..300 {
        let log = DeleteLog::new(64);
        let decisions: Vec<Decision> = (0..8).map(|_| Decision::default()).collect();
        for (row, decision) in (0..).zip(&decisions) {
            log.intend(decision, &DeleteSet::One(row));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| (1..).zip(&decisions).for_each(|(ts, decision)| decision.make(CommitTs(ts))));
            let mut seen = 0;
            while seen < 8 {
                let now = log.count_now();
                assert!(now >= seen);
                seen = now;
                assert_eq!(log.between(CommitTs::ZERO, CommitTs(seen)).len() as u64, seen);
                assert!((0..64).all(|row| log.is_deleted(row, CommitTs(seen)) == (u64::from(row) < seen)));
            }
        });
    }
}
