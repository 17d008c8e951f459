//! Marks, roots and pins; what versions become.

use std::sync::{Arc, Weak};

use super::*;
use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, ContainerId, RunId};
use crate::row::Value;
use crate::run_writer::testing::{run, table, target};
use crate::schema::DataType;

fn root(at: u64) -> Arc<Root> {
    Arc::new(Root { valid_from: CommitTs(at), ..Root::default() })
}

/// Applies commits up to `to`; those in `roots` make a root.
fn apply(timeline: &Arc<Timeline>, to: u64, roots: &[u64]) -> Vec<Weak<Root>> {
    let mut made = Vec::new();
    while timeline.applied() < CommitTs(to) {
        let ts = timeline.applied().next();
        let new = roots.contains(&ts.0).then(|| root(ts.0));
        made.extend(new.as_ref().map(Arc::downgrade));
        timeline.apply(ts, new);
    }
    made
}

#[test]
fn snapshots_stand_at_the_mark_asked_for_with_its_root() {
    let timeline = Timeline::new(root(5), CommitTs(5));
    apply(&timeline, 9, &[7, 9]);
    let of = |base| {
        let snapshot = timeline.snapshot(base, false);
        (snapshot.ts().0, snapshot.root().valid_from.0)
    };
    assert_eq!((of(Base::Visible), of(Base::Applied)), ((5, 5), (9, 9)));
    timeline.advance_visible(CommitTs(6));
    assert_eq!(of(Base::Visible), (6, 5));
    timeline.advance_visible(CommitTs(8));
    assert_eq!(of(Base::Visible), (8, 7));
    timeline.advance_visible(CommitTs(3));
    assert_eq!(timeline.visible(), CommitTs(8), "visible never goes back");
    timeline.advance_visible(CommitTs(100));
    assert_eq!((timeline.visible(), of(Base::Visible)), (CommitTs(9), (9, 9)), "nor beyond applied");
}

#[test]
fn a_root_dies_when_visible_has_passed_it_and_nobody_stands_on_it() {
    let timeline = Timeline::new(root(0), CommitTs::ZERO);
    let roots = apply(&timeline, 6, &[2, 4, 6]);
    let alive = || roots.iter().map(|root| root.strong_count() > 0).collect::<Vec<_>>();
    timeline.advance_visible(CommitTs(2));
    let reader = timeline.snapshot(Base::Visible, false);
    assert_eq!(alive(), [true, true, true], "what is above visible is still to come");
    timeline.advance_visible(CommitTs(6));
    assert_eq!(alive(), [true, false, true], "nobody stood in the interval of the second");
    drop(reader);
    assert_eq!(alive(), [false, false, true]);
}

#[test]
fn a_freeze_changes_the_newest_root_only() {
    let timeline = Timeline::new(root(0), CommitTs::ZERO);
    apply(&timeline, 3, &[3]);
    let old = timeline.snapshot(Base::Applied, false);
    let fresh = root(3);
    timeline.replace_newest(fresh.clone());
    assert!(!Arc::ptr_eq(old.root(), &fresh));
    assert!(Arc::ptr_eq(timeline.snapshot(Base::Applied, false).root(), &fresh));
    assert_eq!(timeline.snapshot(Base::Visible, false).root().valid_from, CommitTs::ZERO);
}

#[test]
fn pins_say_what_folds_must_keep_apart() {
    let timeline = Timeline::new(root(0), CommitTs::ZERO);
    let at = |ts: u64| {
        apply(&timeline, ts, &[]);
        timeline.advance_visible(CommitTs(ts));
        timeline.snapshot(Base::Visible, false)
    };
    let (two, also_two, five) = (at(2), at(2), at(5));
    apply(&timeline, 9, &[]);
    let above = timeline.snapshot(Base::Applied, true);
    timeline.advance_visible(CommitTs(7));
    let needed = || timeline.needed().iter().map(|ts| ts.0).collect::<Vec<_>>();
    assert_eq!(needed(), [2, 5, 7], "what ends above visible is not folded at all");
    drop(two);
    assert_eq!(needed(), [2, 5, 7]);
    drop(also_two);
    assert_eq!(needed(), [5, 7]);
    drop((five, above));
    assert_eq!(needed(), [7]);
    assert_eq!(timeline.oldest_snapshot(), None);
}

/// A writer may begin at visible at any moment, also when none stands now: forwarding of an install above must be kept.
#[test]
fn the_oldest_writer_may_be_one_that_is_yet_to_begin() {
    let timeline = Timeline::new(root(0), CommitTs::ZERO);
    apply(&timeline, 4, &[]);
    assert_eq!(timeline.oldest_writer(), CommitTs::ZERO);
    let above = timeline.snapshot(Base::Applied, true);
    assert_eq!(timeline.oldest_writer(), CommitTs::ZERO, "one begun above does not hide those to come below");
    let reader = timeline.snapshot(Base::Visible, false);
    timeline.advance_visible(CommitTs(4));
    assert_eq!(timeline.oldest_writer(), CommitTs(4), "readers need no forwarding");
    apply(&timeline, 6, &[]);
    timeline.advance_visible(CommitTs(6));
    assert_eq!(timeline.oldest_writer(), CommitTs(4));
    drop((above, reader));
    assert_eq!(timeline.oldest_writer(), CommitTs(6));
}

#[test]
fn versions_keep_runs_in_order_of_age() {
    let schema = table(&[(DataType::BigInt, false)], 1, true, 4);
    let target = target();
    let new_run = |from: i64| {
        let rows: Vec<_> = (from..from + 3).map(|v| vec![Value::Int(v)]).collect();
        run(&schema, &target, &rows, 4).unwrap()
    };
    let delta = |id| Arc::new(DeltaGeneration::new(ContainerId(id), schema.clone()));
    let runs: Vec<_> = [0, 10, 20, 30].map(new_run).into();
    let version = TableVersion::new(schema.clone(), CommitTs(1), delta(101));
    let loaded = version.with_load(CommitTs(2), &runs);
    assert!(!loaded.has_rows_placed_as(&version) && loaded.valid_from == CommitTs(2));
    let frozen = loaded.with_freeze(delta(102)).with_freeze(delta(103));
    assert!(frozen.has_rows_placed_as(&loaded) && frozen.valid_from == CommitTs(2), "a freeze moves no row");
    let ids = |version: &TableVersion| version.runs.iter().map(|run| run.id()).collect::<Vec<RunId>>();
    let output = new_run(40);
    let gone = [runs[1].id(), runs[2].id()];
    let merged = frozen.with_merge(CommitTs(7), &[ContainerId(101)], &gone, Some(output.clone()));
    assert_eq!(ids(&merged), [runs[0].id(), output.id(), runs[3].id()]);
    assert_eq!(merged.deltas.iter().map(|d| d.id().0).collect::<Vec<_>>(), [102, 103]);
    assert!(!merged.has_rows_placed_as(&frozen) && merged.valid_from == CommitTs(7));
    let flushed = frozen.with_merge(CommitTs(8), &[ContainerId(101)], &[], Some(output.clone()));
    assert_eq!(ids(&flushed).last(), Some(&output.id()), "a flush alone is the newest run");
    let emptied = frozen.with_merge(CommitTs(9), &[], &[runs[0].id()], None);
    assert_eq!(ids(&emptied), [runs[1].id(), runs[2].id(), runs[3].id()]);
    let there = |id: ContainerId| merged.container(id).is_some();
    assert!(there(ContainerId(102)) && !there(ContainerId(101)));
    assert!(there(output.segments()[0].segment.id()) && !there(runs[1].segments()[0].segment.id()));
}

/// Threads take snapshots while commits, with roots and without, come in and become visible: each snapshot stands on
/// the root of its timestamp, and whoever asks what is needed learns of all that stand below the mark he is told.
#[test]
fn snapshots_are_taken_and_registered_in_one_step() {
    const COMMITS: u64 = 100_000;
    let timeline = Timeline::new(root(0), CommitTs::ZERO);
    let told = parking_lot::Mutex::new(vec![CommitTs::ZERO]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (timeline, told, done) = (&timeline, &told, &done);
            scope.spawn(move || {
                // Held for a while: who is asked what is needed meanwhile must know of them.
                let mut held = std::collections::VecDeque::new();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let base = if reader == 0 { Base::Applied } else { Base::Visible };
                    let snapshot = timeline.snapshot(base, reader == 0);
                    assert_eq!(snapshot.root().valid_from.0, snapshot.ts().0 / 3 * 3);
                    assert!(reader > 0 || timeline.oldest_writer() <= snapshot.ts());
                    held.push_back(snapshot);
                    let needed = told.lock().clone();
                    for ts in held.iter().map(|snapshot| snapshot.ts()) {
                        assert!(needed.last() <= Some(&ts) || needed.contains(&ts), "{ts:?} is missing in {needed:?}");
                    }
                    if held.len() > 20 {
                        held.pop_front();
                    }
                }
            });
        }
        let (timeline, told, done) = (&timeline, &told, &done);
        scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                *told.lock() = timeline.needed();
            }
        });
        for ts in 1..=COMMITS {
            timeline.apply(CommitTs(ts), (ts % 3 == 0).then(|| root(ts)));
            if ts % 9 == 0 {
                timeline.replace_newest(root(ts));
            }
            timeline.advance_visible(CommitTs(ts - ts % 2));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!((timeline.oldest_snapshot(), timeline.needed()), (None, vec![CommitTs(COMMITS)]));
}
