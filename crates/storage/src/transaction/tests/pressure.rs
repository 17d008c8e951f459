//! Merges of a transaction's own runs beside those of others, and loads beside loads that stand still.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;

use super::*;
use crate::error::Error;
use crate::schema::Layout;

fn runs_of(txn: &Transaction, t: &Table) -> usize {
    txn.view(t.id).unwrap().own().map_or(0, |own| own.runs().len())
}

/// Writes statements of 1,000 rows from `next` on until the transaction has more than `runs` runs, or `statements` are
/// written.
fn spill(t: &Table, txn: &mut Transaction, next: &mut i64, runs: usize, statements: usize) {
    for _ in 0..statements {
        if runs_of(txn, t) > runs {
            return;
        }
        // Of each statement some rows stand before all others: no run goes behind another.
        t.insert_in(txn, (*next..*next + 1_000).flat_map(|id| [id, -1 - id]));
        *next += 1_000;
    }
}

fn written(next: i64) -> Vec<i64> {
    (-next..next).collect()
}

fn files(t: &Table) -> usize {
    t.db.engine().disk.list(crate::disk::DATA_DIR).unwrap().len()
}

/// Nobody waits for the one that merges: look-ups ask some more runs until it has ended.
#[test]
fn one_transaction_at_a_time_merges_runs_of_its_own() {
    let t = cramped();
    let (mut txn, mut next) = (t.begin(), 0);
    let other = t.db.engine().own_merges.lock();
    spill(&t, &mut txn, &mut next, limits::OWN_RUNS_MAX + 2, 100);
    assert!(runs_of(&txn, &t) > limits::OWN_RUNS_MAX + 2);
    assert_eq!(ids(&t, &txn), written(next));
    drop(other);
    t.write_in(&mut txn, &[], &[(next, None)]).unwrap();
    assert!(runs_of(&txn, &t) <= limits::OWN_RUNS_MAX, "{}", runs_of(&txn, &t));
    t.write_in(&mut txn, &[next], &[]).unwrap();
    txn.commit().unwrap();
    assert_eq!(ids(&t, &t.begin()), written(next));
}

/// It asks between batches, is counted as long as it lasts, and leaves nothing when it is canceled.
#[test]
fn a_merge_of_own_runs_can_be_canceled_and_is_counted() {
    let t = cramped();
    let (mut txn, mut next) = (t.begin(), 0);
    let other = t.db.engine().own_merges.lock();
    spill(&t, &mut txn, &mut next, limits::OWN_RUNS_MAX + 2, 100);
    drop(other);
    let memory = t.db.engine().memory.clone();
    let before = (runs_of(&txn, &t), files(&t), memory.used(MemoryKind::Reserve));
    assert_eq!(before.2, 0);
    for asked_max in [0, 1, 5] {
        let (asked, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        txn.wait_as(Waiting::While({
            let (asked, most, memory) = (asked.clone(), most.clone(), memory.clone());
            Arc::new(move || {
                most.fetch_max(memory.used(MemoryKind::Reserve), Ordering::Relaxed);
                if asked.fetch_add(1, Ordering::Relaxed) < asked_max { Ok(()) } else { Err(Error::internal("enough")) }
            })
        }));
        t.write_in(&mut txn, &[], &[(next, None)]).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), asked_max + 1, "it stops at once");
        assert!(most.load(Ordering::Relaxed) > 4_000, "blocks of more than eight runs");
        assert_eq!((runs_of(&txn, &t), files(&t), memory.used(MemoryKind::Reserve)), before);
        t.write_in(&mut txn, &[next], &[]).unwrap();
    }
    // Others wait for who holds a gate.
    txn.wait_as(Waiting::Never);
    t.write_in(&mut txn, &[], &[(next, None)]).unwrap();
    assert_eq!(runs_of(&txn, &t), before.0);
    txn.wait_as(Waiting::Uncancelled);
    t.write_in(&mut txn, &[next], &[]).unwrap();
    assert!(runs_of(&txn, &t) <= limits::OWN_RUNS_MAX);
    assert_eq!(ids(&t, &txn), written(next));
}

/// Rows with equal sort keys stay in the order in which they came, whichever runs were merged on the way.
#[test]
fn a_merged_run_stands_where_its_inputs_stood() {
    let db = Database::in_memory(testing::options().memory_limit(512 << 10)).unwrap();
    let mut definition = definition("t");
    definition.options.segment_rows = 500;
    (definition.primary_key, definition.sort_key) = (Vec::new(), Some(vec!["v".to_owned()]));
    definition.layout = Some(Layout::Sorted);
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    let t = Table { db, id };
    let (mut txn, mut merges) = (t.begin(), 0);
    for next in (0..30_000).step_by(250) {
        let before = runs_of(&txn, &t);
        t.write_in(&mut txn, &[], &(next..next + 250).map(|id| (id, Some(id % 3))).collect::<Vec<_>>()).unwrap();
        merges += usize::from(runs_of(&txn, &t) < before);
    }
    assert!(merges > 2, "{merges}");
    txn.commit().unwrap();
    t.db.merge(t.id).unwrap();
    let rows = rows_of(&t.view());
    assert_eq!(rows.len(), 30_000);
    for value in 0..3 {
        assert!(rows.iter().filter(|row| row.2 == Some(value)).is_sorted_by_key(|row| row.1), "{value}");
    }
}

/// An id that was given out after a savepoint is not given out again when the transaction has gone back: a reference to
/// rows that are undone names nothing.
#[test]
fn containers_of_own_rows_do_not_come_back() {
    let t = cramped();
    let (mut txn, mut next) = (t.begin(), 0);
    let id = |txn: &Transaction| txn.view(t.id).unwrap().own().unwrap().rows().id();
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..4 {
        let mark = txn.savepoint();
        let mut void = Vec::new();
        for _ in 0..2 {
            next = insert_until_spilled(&t, &mut txn, next);
            t.insert_in(&mut txn, next..next + 10);
            next += 10;
            assert!(seen.insert(id(&txn)), "{} in round {round}", id(&txn));
            void = rows_of(&txn.view(t.id).unwrap()).into_iter().filter(|row| row.1 >= next - 10).collect();
        }
        assert!(void.iter().all(|row| row.0.container() == id(&txn)));
        txn.rollback_to(&mark).unwrap();
        assert!(ids(&t, &txn).is_empty());
        // As many rows, which were others.
        next = insert_until_spilled(&t, &mut txn, next);
        t.insert_in(&mut txn, next..next + 10);
        next += 10;
        assert!(seen.insert(id(&txn)));
        let schema = txn.catalog().table(t.id).unwrap().clone();
        let mut statement = txn.statement();
        statement.delete(&schema, &void.iter().map(|row| row.0).collect::<Vec<_>>()).unwrap();
        assert_eq!(txn.apply(statement).unwrap_err().kind(), ErrorKind::Internal);
        txn.rollback_to(&mark).unwrap();
    }
}

/// (id, v) in the order of v, so that the key has an index beside, or in the order of id.
fn loaded(memory_limit: u64, indexed: bool) -> Table {
    let db = Database::in_memory(testing::options().memory_limit(memory_limit)).unwrap();
    let mut definition = definition("t");
    definition.options.segment_rows = 1_000;
    if indexed {
        (definition.sort_key, definition.layout) = (Some(vec!["v".to_owned()]), Some(Layout::Sorted));
    }
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    Table { db, id }
}

/// Rows of one of several loads, in no order.
fn part(load: i64, rows: std::ops::Range<i64>) -> RecordBatch {
    batch(&rows.map(|id| ((id * 7_919) % 1_000_003 + load * 2_000_000, Some(-id * 31 % 10_007))).collect::<Vec<_>>())
}

/// Clients that stand still keep what their loads have collected; other loads go on with what is left.
#[test]
fn loads_go_on_beside_others_that_stand_still() {
    for indexed in [false, true] {
        let t = loaded(32 << 20, indexed);
        let (_, limit) = bytes_of(&t, MemoryKind::Loads);
        let schema = t.begin().catalog().table(t.id).unwrap().clone();
        let mut still = Vec::new();
        // Half of the share; then nearly all that is left, if it may, until it sorts.
        for (load, enough) in [limit / 2, limit / 16 * 15].into_iter().enumerate() {
            let txn = t.begin();
            let mut statement = txn.statement();
            let (mut before, mut now, mut at) = (0, 0, 0);
            while now >= before && now < enough {
                statement.insert(&schema, &part(load as i64, at..at + 1_000)).unwrap();
                at += 1_000;
                (before, now) = (now, bytes_of(&t, MemoryKind::Loads).0);
                assert!(now <= limit, "{now} of {limit}");
            }
            still.push((txn, statement));
        }
        let mut txn = t.begin();
        // Nobody lets go of anything, so that whoever waits at all waits until it is refused.
        let start = std::time::Instant::now();
        let go_on = move || if start.elapsed().as_secs() < 300 { Ok(()) } else { Err(Error::internal("it waits")) };
        txn.wait_as(Waiting::While(Arc::new(go_on)));
        let mut statement = txn.statement();
        for at in (0..60_000).step_by(5_000) {
            statement.insert(&schema, &part(2, at..at + 5_000)).unwrap();
            assert!(bytes_of(&t, MemoryKind::Loads).0 <= limit);
        }
        txn.apply(statement).unwrap();
        txn.commit().unwrap();
        assert_eq!(ids(&t, &t.begin()).len(), 60_000);
        for (mut txn, statement) in still {
            txn.apply(statement).unwrap();
            txn.rollback();
        }
        assert_eq!(bytes_of(&t, MemoryKind::Loads).0, 0);
    }
}

/// 16 bytes a row and key, from when a row is written until its run has ended.
#[test]
fn entries_of_key_indexes_count_as_rows_of_their_load() {
    let t = loaded(64 << 20, true);
    let schema = t.begin().catalog().table(t.id).unwrap().clone();
    let mut txn = t.begin();
    let mut statement = txn.statement();
    let (limit, sort_entries) = (bytes_of(&t, MemoryKind::Loads).1, t.db.engine().load_target().sort_entries as i64);
    // In the order of v: one run, written segment by segment.
    for at in (0..400_000_i64).step_by(2_000) {
        let rows: Vec<_> = (at..at + 2_000).map(|v| ((v * 7_919) % 1_000_003, Some(v))).collect();
        statement.insert(&schema, &batch(&rows)).unwrap();
        let now = bytes_of(&t, MemoryKind::Loads).0;
        // What is left are entries, as many as are sorted at once, half of what there is room for, and the rows of a
        // segment and of a batch.
        let rows = |rows: i64| rows.clamp(0, sort_entries / 2) as u64;
        // Behind the first sort there may be none.
        let held = if at + 4_000 < sort_entries / 2 { rows(at - 3_000) } else { 0 };
        let (least, most) = (16 * held, 32 * rows(at + 2_000) + limit / 8 + 3_000 * 100);
        assert!(least <= now && now <= most, "{now} bytes for {at} rows");
    }
    // Or more of them than are sorted at once would never have been there.
    assert!(sort_entries / 2 < 400_000, "{sort_entries}");
    txn.apply(statement).unwrap();
    assert_eq!(bytes_of(&t, MemoryKind::Loads).0, 0);
    txn.commit().unwrap();
    assert!(t.db.verify().is_empty());
}

/// Whoever waits has put its entries aside, and can be canceled; whoever holds a gate does not wait.
#[test]
fn a_load_waits_holding_nothing_while_it_is_to_go_on_or_not_at_all() {
    let t = loaded(16 << 20, true);
    let (_, limit) = bytes_of(&t, MemoryKind::Loads);
    let memory = t.db.engine().memory.clone();
    let schema = t.begin().catalog().table(t.id).unwrap().clone();
    let mut txn = t.begin();
    let least = Arc::new(AtomicU64::new(u64::MAX));
    let others = Arc::new(AtomicU64::new(0));
    txn.wait_as(Waiting::While({
        let (least, others, memory) = (least.clone(), others.clone(), memory.clone());
        Arc::new(move || match others.load(Ordering::Relaxed) {
            0 => Ok(()),
            others => {
                least.fetch_min(memory.used(MemoryKind::Loads) - others, Ordering::Relaxed);
                Err(Error::internal("enough"))
            }
        })
    }));
    let mut statement = txn.statement();
    for at in (0..100_000).step_by(5_000) {
        statement.insert(&schema, &part(0, at..at + 5_000)).unwrap();
    }
    // From now on others have all of it.
    let held = memory.charge(MemoryKind::Loads, limit as usize);
    others.store(limit, Ordering::Relaxed);
    let mut failed = None;
    for at in (100_000..200_000).step_by(5_000) {
        failed = statement.insert(&schema, &part(0, at..at + 5_000)).err();
        if failed.is_some() {
            break;
        }
    }
    assert_eq!(failed.unwrap().message(), "enough");
    assert_eq!(least.load(Ordering::Relaxed), 0, "it waits holding nothing");
    drop(statement);

    txn.wait_as(Waiting::Never);
    let mut statement = txn.statement();
    let mut most = 0;
    for at in (0..50_000).step_by(5_000) {
        statement.insert(&schema, &part(0, at..at + 5_000)).unwrap();
        most = most.max(memory.used(MemoryKind::Reserve));
        assert_eq!(memory.used(MemoryKind::Loads), limit, "nothing of the share");
    }
    let (_, reserve) = bytes_of(&t, MemoryKind::Reserve);
    assert!(most > 0 && most <= reserve / 2, "{most} of {reserve}");
    txn.apply(statement).unwrap();
    drop(held);
    txn.commit().unwrap();
    assert_eq!((memory.used(MemoryKind::Loads), memory.used(MemoryKind::Reserve)), (0, 0));
    assert_eq!(ids(&t, &t.begin()).len(), 50_000);
    assert!(t.db.verify().is_empty());
}
