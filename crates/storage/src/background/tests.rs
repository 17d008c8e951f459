use std::cell::Cell;
use std::ops::Bound;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::merger::{MergeState, Merger};
use super::pace::{Clock, Load, Pacer};
use super::watch::Watch;
use crate::commit::once_under_lock;
use crate::database::Database;
use crate::database::testing::*;
use crate::disk::{Disk, MemDisk};
use crate::ids::{KeyId, RowRef};
use crate::limits;
use crate::memory::MemoryKind;
use crate::merge::Lane;
use crate::point::{PointTable, RangeRequest, rows_between};
use crate::row::Value;
use crate::settings::{OpenOptions, Synchronous};
use crate::transaction::TransactionMode;

/// Active deltas may take 2 MiB, frozen ones 4 MiB.
const MEMORY: u64 = 32 << 20;
/// Rows of an insert here, some 300 KiB.
const ROWS: i64 = 4_000;

fn small(background: bool) -> Table {
    let options = OpenOptions::new().background(background).memory_limit(MEMORY);
    on(Database::in_memory(options).unwrap(), 1_000)
}

fn used(table: &Table, kind: MemoryKind) -> u64 {
    table.db.engine().memory.used(kind)
}

fn share(table: &Table, kind: MemoryKind) -> u64 {
    table.db.engine().memory.share(kind)
}

fn frozen_deltas(table: &Table) -> usize {
    table.db.containers().iter().filter(|container| container.kind == "frozen delta").count()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whatever holds up the flush thread, active deltas grow to their bound and no further, again and again.
#[test]
fn deltas_are_frozen_though_the_flush_thread_is_held_up() {
    let table = small(true);
    let lane = table.db.background().merger.lane(Lane::Short);
    let mut next = 0;
    for frozen in 1..=2 {
        while frozen_deltas(&table) < frozen {
            assert!(next < 100 * ROWS, "{} bytes are active", used(&table, MemoryKind::ActiveDeltas));
            table.insert(next..next + ROWS);
            next += ROWS;
            let tick = table.db.engine().timeline.applied();
            eventually("the watch has looked", || {
                table.db.engine().measure_memory();
                let fits = used(&table, MemoryKind::ActiveDeltas) <= share(&table, MemoryKind::ActiveDeltas);
                fits && table.db.engine().timeline.applied() == tick
            });
        }
    }
    assert!(table.db.engine().demand().is_urgent(), "a merge that rested there would hurry now");
    drop(lane);
    eventually("all is flushed", || frozen_deltas(&table) == 0);
    assert_eq!(rows_of(&table.view()).len() as i64, next);
}

/// The smallest id, as a queue is read; and how many rows are dead.
fn first(table: &Table) -> (i64, u64) {
    let view = table.view();
    let key = PointTable::new(view.schema()).unwrap();
    let range = key.range(Vec::new(), Bound::Unbounded, Bound::Unbounded).unwrap();
    let request = RangeRequest { id: KeyId::PRIMARY, range: &range, backwards: false, limit: 1, steps_max: 1 << 20 };
    let mut dead = 0;
    let read = |row: RowRef| {
        let mut values = Vec::new();
        view.read_row(row, &[0], &mut values)?;
        Ok(values.pop())
    };
    let ids = rows_between(&view, request, read).unwrap().unwrap();
    let Some(Value::Int(id)) = ids.first() else { panic!("{ids:?}") };
    let version = view.version();
    for part in version.runs.iter().flat_map(|run| run.segments()) {
        dead += part.segment.deletes().count_now();
    }
    for delta in &version.deltas {
        dead += delta.deletes().count_now();
    }
    (*id, dead)
}

/// Rows that are taken from the front are not stepped over for ever, wherever they stand.
#[test]
fn dead_rows_in_front_of_a_queue_are_merged_away() {
    // In segments that have few dead rows for their size.
    for (flushed, segment_rows) in [(true, 1_000), (true, 10_000), (false, 1_000)] {
        let options = OpenOptions::new().background(true);
        let table = on(Database::in_memory(options).unwrap(), segment_rows);
        table.insert(0..6_000);
        if flushed {
            table.flush();
        }
        let (mut most, mut fewer) = (0, false);
        eventually("a merge leaves them out", || {
            for _ in 0..20 {
                let (id, dead) = first(&table);
                fewer |= most > 100 && dead < most / 2;
                most = most.max(dead);
                table.delete(&[id]);
                table.insert([id + 6_000]);
            }
            fewer
        });
        assert!(most < 1_500, "{most} dead rows of {segment_rows}");
        let (first, _) = first(&table);
        let mut ids: Vec<i64> = rows_of(&table.view()).iter().map(|(_, id, _)| *id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (first..first + 6_000).collect::<Vec<_>>());
    }
}

/// A merge that has worked for an hour, and rests for three unless it has to hurry. While it rests a writer writes, and
/// the watch looks around.
struct LongRest<'a> {
    table: &'a Table,
    watch: std::cell::RefCell<Watch>,
    merger: &'a Merger,
    naps: Cell<i64>,
}

const HOUR: Duration = Duration::from_secs(3_600);

impl Clock for &LongRest<'_> {
    fn now(&self) -> Duration {
        let naps = Duration::from_millis(self.naps.get() as u64);
        if self.naps.get() < 0 { Duration::ZERO } else { HOUR + naps }
    }

    fn sleep(&self, _: Duration) {
        let nap = self.naps.get();
        self.naps.set(nap + 1);
        self.table.insert(nap * ROWS..(nap + 1) * ROWS);
        self.watch.borrow_mut().look(self.table.db.engine(), self.merger.seen()).unwrap();
    }
}

/// How often a merge of `lane` naps, at most `naps_max` times, while a writer writes.
fn naps_beside_a_writer(table: &Table, lane: Lane, naps_max: i64) -> i64 {
    let merger = Merger::default();
    let clock = LongRest { table, watch: Watch::default().into(), merger: &merger, naps: Cell::new(-1) };
    let urgent = || merger.is_urgent(table.db.engine(), lane);
    let pacer = Pacer::new(&clock, || Load { cores: 2, users: 2, merges: 1, urgent: urgent() });
    clock.naps.set(0);
    pacer.breathe(|| clock.naps.get() < naps_max);
    clock.naps.get()
}

#[test]
fn a_rest_ends_when_deltas_have_grown_to_their_bound_and_before_a_writer_waits() {
    let table = small(false);
    let naps = naps_beside_a_writer(&table, Lane::Short, 1_000);
    assert!(naps > 3 && naps < 100, "{naps}");
    let frozen = used(&table, MemoryKind::FrozenDeltas);
    assert!(frozen > 0 && !table.db.engine().demand().is_waited_for(), "{frozen}");
    assert!(used(&table, MemoryKind::ActiveDeltas) <= share(&table, MemoryKind::ActiveDeltas));
}

/// It is not what frees deltas, and the flush needs the core.
#[test]
fn a_long_merge_does_not_hurry_for_deltas() {
    let table = small(false);
    assert_eq!(naps_beside_a_writer(&table, Lane::Long, 30), 30);
    assert!(table.db.engine().demand().is_waited_for());
}

#[test]
fn a_long_merge_hurries_when_runs_pile_up() {
    let table = small(false);
    let merger = Merger::default();
    let look = |runs: i64| {
        table.insert(100 * runs..100 * runs + 100);
        table.flush();
        // One that has never looked: what is rare is not done at each look.
        Watch::default().look(table.db.engine(), merger.seen()).unwrap();
        merger.is_urgent(table.db.engine(), Lane::Long)
    };
    let urgent = (0..30).find(|runs| look(*runs)).unwrap();
    assert!(urgent > 4, "{urgent}");
    table.db.merge(table.id).unwrap();
    assert!(!look(urgent + 1), "it has looked again");
}

/// A load that has looked for merges, and is about to make a run longer, while a merge claims this run: the merge sees
/// what the load has done, and is not for nothing.
#[test]
fn a_merge_that_claims_a_run_sees_a_load_that_is_under_the_lock() {
    const LOAD: i64 = limits::COMMIT_ROWS_MAX as i64 + 1;
    let table = on(Database::in_memory(options()).unwrap(), 1_000);
    table.insert(0..LOAD);
    table.delete(&(0..LOAD / 2).collect::<Vec<_>>());
    let run = table.view().version().runs[0].id();
    let merger = Merger::default();
    let (under_lock, begin) = mpsc::channel();
    let engine = table.db.engine();
    std::thread::scope(|scope| {
        let (db, merger) = (table.db.clone(), &merger);
        let merge = scope.spawn(move || {
            begin.recv().unwrap();
            merger.step(engine, Lane::Long).unwrap()
        });
        once_under_lock(move || {
            under_lock.send(()).unwrap();
            eventually("the merge has claimed the run", || db.engine().is_merging(run));
            // Enough for one that does not wait for the lock to take its snapshot.
            std::thread::sleep(Duration::from_millis(200));
        });
        table.insert(LOAD..2 * LOAD);
        assert!(merge.join().unwrap());
    });
    let [merge] = &merger.history()[..] else { panic!("{:?}", merger.history()) };
    assert_eq!((&merge.state, merge.rows_in), (&MergeState::Installed, 2 * LOAD as u64));
    let ids: Vec<i64> = rows_of(&table.view()).iter().map(|(_, id, _)| *id).collect();
    assert_eq!(ids, (LOAD / 2..2 * LOAD).collect::<Vec<_>>());
    let runs = table.view().version().runs.clone();
    assert!(runs.len() == 1 && !engine.is_merging(run) && !engine.is_merging(runs[0].id()));
    assert!(table.db.verify().is_empty());
}

/// Writes until frozen deltas take all they may, with the flush thread held up.
fn fill(table: &Table) -> i64 {
    let mut next = 0;
    while !table.db.engine().demand().is_waited_for() {
        table.insert(next..next + ROWS);
        table.db.freeze(table.id).unwrap();
        next += ROWS;
    }
    next
}

/// A writer waits for flushes that succeed, and not for those that cannot: it is told why.
#[test]
fn a_writer_does_not_wait_for_flushes_that_fail() {
    let table = small(true);
    let lane = table.db.background().merger.lane(Lane::Short);
    let next = fill(&table);
    let engine = table.db.engine();
    let commit = |id| {
        let mut txn = table.begin();
        table.write_in(&mut txn, &[], &[(id, None)]).unwrap();
        txn.commit()
    };
    let failed = || crate::Error::new(crate::ErrorKind::Full, crate::error::sqlstate::DISK_FULL, "no space left");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| commit(next).map(drop));
        // Long before its time is up.
        eventually("it does not wait", || {
            engine.note_flush::<()>(&Err(failed()));
            waiting.is_finished()
        });
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (crate::ErrorKind::Full, crate::error::sqlstate::OUT_OF_MEMORY));
        assert!(error.message().contains("(no space left)"), "{error}");

        // One that succeeds among them is worth the wait.
        let waiting = scope.spawn(|| commit(next + 1).map(drop));
        for _ in 0..10 {
            engine.note_flush(&Ok(()));
            engine.note_flush::<()>(&Err(failed()));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!waiting.is_finished());
        drop(lane);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(rows_of(&table.view()).len() as i64, next + 1);
}

/// A database on a disk, nothing of which anybody but the log thread looks after.
fn quiet(disk: &MemDisk) -> Table {
    on(Database::open_on(Arc::new(disk.clone()), options()).unwrap(), 1_000)
}

fn insert_as(table: &Table, id: i64, synchronous: Synchronous) {
    let mode = TransactionMode { synchronous, ..TransactionMode::default() };
    let mut txn = table.db.begin(mode).unwrap();
    table.insert_in(&mut txn, [id]);
    txn.commit().unwrap();
}

#[test]
fn normal_commits_are_fsynced_by_themselves() {
    let table = quiet(&MemDisk::new());
    for id in 0..3 {
        insert_as(&table, id, Synchronous::Normal);
        let position = table.db.log_status().position;
        eventually("fsynced", || table.db.log_status().fsynced_position >= position);
    }
}

/// By a write of their own: the fsync, a hundred times rarer, would take them along too.
#[test]
fn off_commits_are_handed_to_the_system_by_themselves() {
    let disk = MemDisk::new();
    let table = quiet(&disk);
    let bytes =
        || disk.list("wal").unwrap().iter().map(|name| disk.get(&format!("wal/{name}")).unwrap().len()).sum::<usize>();
    let mut id = 0;
    eventually("handed on and not fsynced", || {
        let (before, syncs) = (bytes(), table.db.log_status().syncs);
        insert_as(&table, id, Synchronous::Off);
        id += 1;
        let position = table.db.log_status().position;
        eventually("handed on", || table.db.log_status().written_position >= position);
        assert!(bytes() > before, "the file has it");
        let status = table.db.log_status();
        status.syncs == syncs && status.fsynced_position < position
    });
}
