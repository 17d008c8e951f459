//! Loads whose keys lie above those of the last run make that run longer; restarts find it so.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::database::testing::with_unique_values;
use crate::limits::COMMIT_ROWS_MAX;
use crate::merge::{MergeChoice, MergeJob, MergePlan, MergeReason};

/// More than go through a delta.
const LOAD: i64 = COMMIT_ROWS_MAX as i64 + 904;

fn load(t: &Table, number: i64) {
    t.insert(number * LOAD..(number + 1) * LOAD);
}

/// Rows of each run, oldest first.
fn runs(t: &Table) -> Vec<u64> {
    t.view().version().runs.iter().map(|run| run.rows()).collect()
}

fn ids_of(t: &Table) -> Vec<crate::ids::RunId> {
    t.view().version().runs.iter().map(|run| run.id()).collect()
}

fn all(loads: i64) -> Vec<i64> {
    (0..loads * LOAD).collect()
}

#[test]
fn ascending_loads_leave_one_run_across_restarts() {
    for named_aside in [false, true] {
        let disk = MemDisk::new();
        let options = testing::options().inline_run_bytes(if named_aside { 0 } else { 64 << 10 });
        let mut t = testing::on(Database::open_on(Arc::new(disk.clone()), options).unwrap(), 1_000);
        let mut disk = disk;
        for number in 0..8 {
            let before = t.view();
            load(&t, number);
            assert_eq!(runs(&t), [(number + 1) as u64 * LOAD as u64], "aside: {named_aside}");
            // Whoever has begun before sees what was there.
            assert_eq!(rows_of(&before).len() as i64, number * LOAD);
            t.update(number * LOAD + 5, -1);
            match number % 4 {
                1 => t.db.checkpoint_now().unwrap(),
                3 => continue,
                _ => {}
            }
            (t, disk) = crashed(&t, &disk);
            assert_eq!(ids(&t), all(number + 1));
            assert!(t.db.verify().is_empty(), "{:?}", t.db.verify());
            assert_eq!(runs(&t), [(number + 1) as u64 * LOAD as u64], "aside: {named_aside}");
        }
        // Neither below nor within, and no key twice.
        t.insert(-LOAD..0);
        assert_eq!(runs(&t), [8 * LOAD as u64, LOAD as u64]);
        let mut txn = t.begin();
        let again: Vec<_> = (8 * LOAD - 1..9 * LOAD).map(|id| (id, None)).collect();
        let refused = t.write_in(&mut txn, &[], &again).and_then(|()| txn.commit().map(drop)).unwrap_err();
        assert_eq!(refused.sqlstate(), sqlstate::UNIQUE, "{refused}");
        t.db.merge(t.id).unwrap();
        assert_eq!(runs(&t), [9 * LOAD as u64]);
        let (t, _) = crashed(&t, &disk);
        assert_eq!(ids(&t), (-LOAD..8 * LOAD).collect::<Vec<_>>());
        assert!(t.db.verify().is_empty());
    }
}

/// Tries to commit `rows`.
fn commit(t: &Table, rows: &[(i64, Option<i64>)]) -> crate::Result<()> {
    let mut txn = t.begin();
    t.write_in(&mut txn, &[], rows)?;
    txn.commit().map(drop)
}

/// Entries of the key index of each run.
fn entries(t: &Table) -> Vec<u64> {
    t.view().version().runs.iter().map(|run| run.indexes()[0].entries().rows()).collect()
}

/// Key indexes of a run are extended with it where their keys ascend, too.
#[test]
fn ascending_loads_extend_key_indexes() {
    for named_aside in [false, true] {
        let disk = MemDisk::new();
        let options = testing::options().inline_run_bytes(if named_aside { 0 } else { 64 << 10 });
        let mut t = with_unique_values(Database::open_on(Arc::new(disk.clone()), options).unwrap(), 1_000);
        let mut disk = disk;
        for number in 0..6 {
            let before = t.view();
            let first = number * LOAD;
            // One load has no values at all, so that its index is empty, and the first one neither.
            let value = |id| (number % 3 != 0).then_some(10 * id);
            let rows: Vec<_> = (first..first + LOAD).map(|id| (id, value(id))).collect();
            commit(&t, &rows).unwrap();
            assert_eq!(runs(&t), [(number + 1) as u64 * LOAD as u64], "aside: {named_aside}");
            assert_eq!(rows_of(&before).len() as i64, number * LOAD);
            // A value of each load so far is taken, and one between them is not.
            for earlier in (0..=number).filter(|earlier| earlier % 3 != 0) {
                let refused = commit(&t, &[(-1, Some(10 * (earlier * LOAD + 7)))]).unwrap_err();
                assert_eq!(refused.sqlstate(), sqlstate::UNIQUE, "{refused}");
            }
            commit(&t, &[(-1, Some(71))]).unwrap();
            t.delete(&[-1]);
            if number == 2 {
                t.db.checkpoint_now().unwrap();
            }
            if number % 2 == 1 {
                (t, disk) = crashed(&t, &disk);
                assert_eq!(runs(&t), [(number + 1) as u64 * LOAD as u64], "aside: {named_aside}");
            }
            assert!(t.db.verify().is_empty(), "{:?}", t.db.verify());
        }
        assert_eq!(entries(&t), [4 * LOAD as u64]);
        assert_eq!(ids(&t), all(6));
        t.db.merge(t.id).unwrap();
        assert_eq!(entries(&t), [4 * LOAD as u64]);
        assert!(t.db.verify().is_empty(), "{:?}", t.db.verify());
    }
}

/// A load whose other keys lie among those of the last run makes a run of its own. A merge makes one of both, and
/// writes none of the rows again.
#[test]
fn runs_whose_other_keys_do_not_ascend_stay_as_they_are() {
    let t = with_unique_values(Database::in_memory(testing::options()).unwrap(), 1_000);
    for number in 0..3 {
        let rows: Vec<_> = (number * LOAD..(number + 1) * LOAD).map(|id| (id, Some(-id))).collect();
        commit(&t, &rows).unwrap();
    }
    assert_eq!(runs(&t), [LOAD as u64; 3]);
    let segments = |t: &Table| -> BTreeSet<_> {
        let version = t.view();
        let runs = version.version().runs.iter();
        runs.flat_map(|run| run.segments()).map(|part| part.segment.id()).collect()
    };
    let before = segments(&t);
    t.db.merge(t.id).unwrap();
    assert_eq!(entries(&t), [3 * LOAD as u64]);
    assert!(segments(&t).intersection(&before).count() > before.len() / 2, "{:?} of {before:?}", segments(&t));
    assert!(t.db.verify().is_empty());
}

/// Many small ends of loads would make a run of small segments, which no merge looks at.
#[test]
fn segments_of_a_run_are_half_full_on_average() {
    let t = testing::table(100_000);
    (0..40).for_each(|number| load(&t, number));
    for run in &t.view().version().runs {
        let segments = run.segments().len() as u64;
        assert!(segments * 100_000 <= 2 * run.rows() + 200_000, "{segments} segments of {} rows", run.rows());
    }
    assert!(runs(&t).len() > 1, "{:?}", runs(&t));
    assert_eq!(ids(&t), all(40));
}

/// A merge that reads the run is neither disturbed nor wrong.
#[test]
fn a_run_that_is_merged_is_left_alone() {
    let disk = MemDisk::new();
    let t = testing::on(open_at(&disk).unwrap(), 1_000);
    load(&t, 0);
    t.delete(&[3]);
    let engine = t.db.engine();
    let outcome = || {
        let snapshot = engine.timeline.snapshot(crate::version::Base::Applied, false);
        let version = snapshot.root().tables.get(&t.id).unwrap().clone();
        let runs = version.runs.iter().map(|run| run.id()).collect();
        let choice = MergeChoice { deltas: Vec::new(), runs, reason: MergeReason::DeadRows };
        let plan = MergePlan::new(&version, choice, snapshot.ts()).unwrap();
        MergeJob::new(plan, engine.load_target(), Arc::default()).unwrap().run().unwrap()
    };
    // Where nobody knows of the merge it has been for nothing.
    let merged = outcome();
    load(&t, 1);
    assert_eq!(engine.install(t.id, merged).unwrap(), None);
    assert_eq!(runs(&t), [2 * LOAD as u64]);
    // Where it is known the load makes a run of its own.
    let merging = ids_of(&t);
    engine.begin_merging(&merging).unwrap();
    let merged = outcome();
    load(&t, 2);
    assert_eq!(runs(&t), [2 * LOAD as u64, LOAD as u64]);
    assert!(engine.install(t.id, merged).unwrap().is_some());
    engine.end_merging(&merging);
    // Another run in its place, whether or not it has kept segments with dead rows.
    assert!(runs(&t).len() == 2 && runs(&t)[1] == LOAD as u64 && ids_of(&t)[0] != merging[0], "{:?}", runs(&t));
    load(&t, 3);
    assert!(runs(&t).len() == 2 && runs(&t)[1] == 2 * LOAD as u64, "{:?}", runs(&t));
    let expected: Vec<i64> = all(4).into_iter().filter(|id| *id != 3).collect();
    assert_eq!(ids(&t), expected);
    let (again, _) = crashed(&t, &disk);
    assert_eq!(ids(&again), expected);
    assert!(again.db.verify().is_empty());
    let used: BTreeSet<_> = ids_of(&again).into_iter().collect();
    assert_eq!(used.len(), 2);
}

/// Three times, however many segments there are: the files, their names, the log. What names more of them than a record
/// holds is a file of its own, with a name.
#[test]
fn a_load_has_one_phase_of_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let t = testing::on(Database::open(dir.path(), testing::options()).unwrap(), 1_000);
    let one_by_one = !crate::disk::syncs_together(dir.path());
    let before = t.db.syncs();
    t.insert(0..60_000);
    let syncs = t.db.syncs() - before;
    assert!(syncs >= 3 && (one_by_one || syncs <= 3), "{syncs} of a load of 60 segments");
    // Four phases, for so many files may be open; and the file of the run.
    let before = t.db.syncs();
    t.insert(60_000..260_000);
    let syncs = t.db.syncs() - before;
    assert!(one_by_one || syncs <= 8, "{syncs} of a load of 200 segments");
    let Table { db, id } = t;
    db.close().unwrap();
    let again = Table { db: Database::open(dir.path(), testing::options()).unwrap(), id };
    assert_eq!(ids(&again), (0..260_000).collect::<Vec<_>>());
}
