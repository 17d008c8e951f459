use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};

use crate::catalog::{ColumnDefinition, TableDefinition};
use crate::database::Database;
use crate::database::testing::{DoneOnDrop, Table, definition, on, options, pairs, rows_of, table, with_unique_values};
use crate::disk::MemDisk;
use crate::error::ErrorKind;
use crate::ids::ColumnId;
use crate::limits;
use crate::memory::MemoryKind;
use crate::scan::ScanRequest;
use crate::schema::{DataType, Identity, TableSchema};
use crate::transaction::TransactionMode;

thread_local! {
    /// Whether this thread's next commit panics once its record is in the log's buffer.
    static PANIC: Cell<bool> = const { Cell::new(false) };
    /// What this thread's commits do between validation and lock.
    static BEFORE_LOCK: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
    /// What this thread's next commit does under the lock, once it is validated.
    static UNDER_LOCK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    /// Whether this thread's next commit finds no log space at first.
    static NO_LOG_SPACE: Cell<bool> = const { Cell::new(false) };
    /// What it does while it waits for some.
    static WAITING_FOR_LOG_SPACE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

pub(super) fn has_no_log_space() -> bool {
    NO_LOG_SPACE.take()
}

pub(super) fn while_waiting_for_log_space() {
    if let Some(work) = WAITING_FOR_LOG_SPACE.take() {
        work();
    }
}

pub(super) fn before_lock() {
    if let Some(mut work) = BEFORE_LOCK.take() {
        work();
        BEFORE_LOCK.set(Some(work));
    }
}

/// Has this thread's next commit do `work` under the lock, once it is validated.
pub(crate) fn once_under_lock(work: impl FnOnce() + 'static) {
    UNDER_LOCK.set(Some(Box::new(work)));
}

pub(super) fn under_lock() {
    if let Some(work) = UNDER_LOCK.take() {
        work();
    }
}

pub(super) fn panic_if_wanted() {
    if PANIC.take() {
        panic!("wanted by a test");
    }
}

/// Only something that waits for ever takes longer.
const LONG: Duration = Duration::from_secs(60);

fn ids(table: &Table) -> Vec<i64> {
    let view = table.view();
    let scan = view.scan(&ScanRequest::all(view.schema().column_ids())).unwrap();
    pairs(&scan).into_iter().map(|(id, _)| id).collect()
}

/// Contract 2: a panic under the commit lock ends writing until the database is reopened; reads go on.
#[test]
fn a_panic_under_the_commit_lock_ends_writing() {
    let disk = Arc::new(MemDisk::new());
    let table = on(Database::open_on(disk.clone(), options()).unwrap(), 100);
    table.insert(0..3);
    let mut open = table.begin();
    table.insert_in(&mut open, [7]);
    PANIC.set(true);
    catch_unwind(AssertUnwindSafe(|| table.insert([3]))).unwrap_err();
    assert!(!PANIC.get());

    let refused = open.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed, "{refused:?}");
    let mut txn = table.begin();
    let refused = table.write_in(&mut txn, &[], &[(8, None)]).unwrap_err();
    assert!(refused.message().contains("a defect") && refused.message().contains("reopened"), "{refused}");
    for refused in
        [table.db.freeze(table.id), table.db.flush(table.id), table.db.merge(table.id), table.db.checkpoint()]
    {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(ids(&table), [0, 1, 2], "what was interrupted is not seen");
    let Table { db, id } = table;
    drop(txn);
    let _ = db.close();
    drop(db);
    let table = Table { db: Database::open_on(disk, options()).unwrap(), id };
    let found = ids(&table);
    assert!(found == [0, 1, 2] || found == [0, 1, 2, 3], "whole or not at all: {found:?}");
    table.insert([9]);
}

#[test]
fn a_dropped_table_leaves_no_forwarding() {
    let table = table(10);
    let forwardings = || table.db.engine().forwardings.len();
    let old = table.begin();
    table.insert(0..50);
    table.flush();
    assert_eq!(forwardings(), 1, "the old transaction may still write");
    let mut txn = table.begin();
    txn.drop_table(table.id).unwrap();
    assert_eq!(forwardings(), 1);
    txn.commit().unwrap();
    assert_eq!((forwardings(), table.db.engine().forwardings.memory_bytes()), (0, 0));
    drop(old);
}

/// Whoever writes to its table overtakes a commit whenever it is about to take the lock. After two open rounds it has
/// its turn: they wait until it is done, those who write to other tables do not.
#[test]
fn a_commit_that_is_overtaken_takes_its_turn() {
    const LOAD: i64 = 5_000;
    /// What overtakes, and the round in which it is held up first.
    type Overtaker = (fn(&Table, i64), i64);
    let overtakers: [Overtaker; 2] = [
        (|table, round| table.insert(1_000_000 + round * LOAD..1_000_000 + (round + 1) * LOAD), 3),
        (
            |table, round| {
                table.insert([round]);
                table.db.flush(table.id).unwrap();
            },
            2,
        ),
    ];
    for (overtake, held_up) in overtakers {
        let table = table(10_000);
        let mut create = table.begin();
        let other = create.create_table(definition("other")).unwrap();
        create.commit().unwrap();
        let other = Table { db: table.db.clone(), id: other };
        let (tell, told) = mpsc::channel();
        let mut rounds = 0;
        let mut txn = table.begin();
        table.insert_in(&mut txn, 100_000..100_000 + LOAD);
        let db = table.db.clone();
        let id = table.id;
        BEFORE_LOCK.set(Some(Box::new(move || {
            rounds += 1;
            other.insert([rounds]);
            let (done, ended) = mpsc::channel();
            let table = Table { db: db.clone(), id };
            let thread = std::thread::spawn(move || {
                overtake(&table, rounds);
                let _ = done.send(());
            });
            // In its turn nobody comes through.
            let waits =
                ended.recv_timeout(Duration::from_millis(if rounds < held_up { 120_000 } else { 300 })).is_err();
            tell.send((waits, thread)).unwrap();
        })));
        txn.commit().unwrap();
        drop(BEFORE_LOCK.take());
        let (waited, threads): (Vec<bool>, Vec<_>) = told.iter().unzip();
        assert_eq!(waited, (1..=held_up).map(|round| round == held_up).collect::<Vec<_>>());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(i64::from(table.db.take_commit_rounds_max()), held_up);
        assert_eq!(ids(&table).iter().filter(|id| (100_000..100_000 + LOAD).contains(id)).count() as i64, LOAD);
    }
}

/// A load that makes the last run and its key index longer, between a commit's validation and its lock: its keys are
/// seen.
#[test]
fn keys_of_a_run_that_was_extended_are_taken() {
    const LOAD: i64 = limits::COMMIT_ROWS_MAX as i64 + 1;
    let plain = || table(1_000);
    let with_index = || with_unique_values(Database::in_memory(options()).unwrap(), 1_000);
    for (table, (id, value), is_free) in [
        (plain(), (LOAD + 7, -1), false),
        (plain(), (3 * LOAD, -1), true),
        (with_index(), (LOAD + 7, -1), false),
        (with_index(), (-1, 10 * (LOAD + 7)), false),
        (with_index(), (-1, 10 * LOAD + 1), true),
    ] {
        table.insert(0..LOAD);
        let mut txn = table.begin();
        table.write_in(&mut txn, &[], &[(id, Some(value))]).unwrap();
        let other = Table { db: table.db.clone(), id: table.id };
        let mut done = false;
        BEFORE_LOCK.set(Some(Box::new(move || {
            if !std::mem::replace(&mut done, true) {
                other.insert(LOAD..2 * LOAD);
            }
        })));
        let committed = txn.commit();
        drop(BEFORE_LOCK.take());
        assert_eq!(table.view().version().runs.len(), 1);
        match committed {
            Ok(_) => assert!(is_free, "({id}, {value})"),
            Err(error) => assert!(!is_free && error.kind() == ErrorKind::Conflict, "({id}, {value}): {error}"),
        }
        assert_eq!(ids(&table).len() as i64, 2 * LOAD + i64::from(is_free));
    }
}

/// A merge that begins to read the last run, between the decision to make that longer and the lock: it is left alone.
#[test]
fn a_run_that_a_merge_has_claimed_meanwhile_is_not_extended() {
    const LOAD: i64 = limits::COMMIT_ROWS_MAX as i64 + 1;
    let table = table(1_000);
    table.insert(0..LOAD);
    let run = table.view().version().runs[0].id();
    let mut txn = table.begin();
    table.insert_in(&mut txn, LOAD..2 * LOAD);
    let db = table.db.clone();
    let mut done = false;
    BEFORE_LOCK.set(Some(Box::new(move || {
        if !std::mem::replace(&mut done, true) {
            db.engine().begin_merging(&[run]).unwrap();
        }
    })));
    txn.commit().unwrap();
    drop(BEFORE_LOCK.take());
    let rows = |table: &Table| table.view().version().runs.iter().map(|run| run.rows() as i64).collect::<Vec<_>>();
    assert_eq!(rows(&table), [LOAD; 2]);
    table.db.engine().end_merging(&[run]);
    table.insert(2 * LOAD..3 * LOAD);
    assert_eq!(rows(&table), [LOAD, 2 * LOAD]);
    assert_eq!(ids(&table).len() as i64, 3 * LOAD);
}

/// Somebody draws numbers of a table whose counting a commit hands on, after it has looked how far that came.
#[test]
fn numbers_drawn_while_another_table_takes_over_the_counting_are_not_drawn_again() {
    let identity = Some(Identity { always: false, start: 1, increment: 1 });
    let column = ColumnDefinition { identity, ..ColumnDefinition::new("n", DataType::BigInt, false) };
    for drawn_between in [false, true] {
        let table = table(10);
        let (mut txn, n) = (table.begin(), ColumnId(0));
        let old = txn.create_table(TableDefinition::new("counted", vec![column.clone()])).unwrap();
        txn.commit().unwrap();
        let db = table.db.clone();
        let draw = move |of| db.begin(TransactionMode::default()).unwrap().next_identity_values(of, n, 1).unwrap()[0];
        let last = draw(old);
        let mut txn = table.begin();
        let schema = TableSchema::clone(txn.catalog().table(old).unwrap());
        let new = txn.replace_table(old, schema).unwrap().id;
        let between = draw.clone();
        BEFORE_LOCK.set(Some(Box::new(move || {
            if drawn_between {
                assert!(between(old) > last);
            }
        })));
        let committed = txn.commit();
        drop(BEFORE_LOCK.take());
        if drawn_between {
            assert_eq!(committed.unwrap_err().kind(), ErrorKind::Conflict);
            assert!(draw(old) > last + 1);
        } else {
            committed.unwrap();
            assert_eq!(draw(new), last + 1);
        }
    }
}

/// Containers of the table in which a commit's intents stand.
fn intended(table: &Table) -> usize {
    let (_, root) = table.db.engine().timeline.present();
    let version = root.tables.get(&table.id).unwrap();
    let segments = version.runs.iter().flat_map(|run| run.all_segments());
    let in_segments = segments.filter(|part| part.segment.deletes().has_intents()).count();
    in_segments + version.deltas.iter().filter(|delta| delta.deletes().has_intents()).count()
}

/// An overtaken commit waits for its turn, or for log space: readers of the containers that it deletes from meet no
/// intents then.
#[test]
fn no_intents_stand_while_a_commit_waits() {
    const ROWS: i64 = 4 * limits::COMMIT_DELETE_CONTAINERS_MAX as i64;
    let table = table(2);
    table.insert(0..ROWS);
    table.flush();
    let mut txn = table.begin();
    table.write_in(&mut txn, &(0..ROWS).step_by(2).collect::<Vec<_>>(), &[]).unwrap();
    let (db, id) = (table.db.clone(), table.id);
    let (report, reported) = mpsc::channel();
    let mut done = false;
    BEFORE_LOCK.set(Some(Box::new(move || {
        if std::mem::replace(&mut done, true) {
            return;
        }
        let other = Table { db: db.clone(), id };
        report.send(intended(&other)).unwrap();
        other.insert([ROWS]);
        other.flush();
        let (taken, has_turn) = mpsc::channel();
        let report = report.clone();
        std::thread::spawn(move || {
            let turns = &other.db.engine().turns;
            let turn = turns.enter(vec![id]);
            turn.take_turn();
            taken.send(()).unwrap();
            while turns.entered() < 2 {
                std::thread::yield_now();
            }
            report.send(intended(&other)).unwrap();
            drop(turn);
        });
        has_turn.recv().unwrap();
    })));
    txn.commit().unwrap();
    drop(BEFORE_LOCK.take());
    assert_eq!(reported.recv_timeout(LONG), Ok(ROWS as usize / 2), "right before the lock");
    assert_eq!(reported.recv_timeout(LONG), Ok(0), "while it waits");
    assert_eq!(ids(&table), (0..ROWS).filter(|id| id % 2 == 1).chain([ROWS]).collect::<Vec<_>>());
}

/// What it waits for then may be an install that would wait for it, or a commit.
#[test]
fn a_commit_that_waits_for_log_space_has_nobody_wait() {
    const LOAD: i64 = 5_000;
    let table = table(10_000);
    let mut txn = table.begin();
    table.insert_in(&mut txn, 100_000..100_000 + LOAD);
    let other = Table { db: table.db.clone(), id: table.id };
    let (tell, told) = mpsc::channel();
    let mut round = 0;
    BEFORE_LOCK.set(Some(Box::new(move || {
        round += 1;
        if round > 2 {
            return;
        }
        other.insert(1_000_000 + round * LOAD..1_000_000 + (round + 1) * LOAD);
        if round == 2 {
            let (db, tell) = (other.db.clone(), tell.clone());
            tell.send(db.engine().turns.entered()).unwrap();
            NO_LOG_SPACE.set(true);
            WAITING_FOR_LOG_SPACE.set(Some(Box::new(move || tell.send(db.engine().turns.entered()).unwrap())));
        }
    })));
    txn.commit().unwrap();
    drop(BEFORE_LOCK.take());
    assert_eq!(told.iter().collect::<Vec<_>>(), [1, 0], "entered before, and while it waits");
    assert_eq!(table.db.take_commit_rounds_max(), 3);
    assert_eq!(table.db.engine().turns.entered(), 0);
}

/// A delete in more containers than there is time for under the lock takes effect in all of them at once, wherever a
/// merge has put the rows in the last moment; one that fails leaves nothing behind.
#[test]
fn deletes_in_many_containers_are_made_at_once() {
    const ROWS: i64 = 4 * limits::COMMIT_DELETE_CONTAINERS_MAX as i64;
    /// Rows that the commit deletes: one in each segment of two.
    fn gone() -> Vec<i64> {
        (0..ROWS).step_by(2).collect()
    }
    type Between = fn(&Table);
    let cases: [(Between, bool); 4] = [
        (|_| {}, true),
        // Not the same row, in a segment that this commit deletes from as well.
        (|table| table.delete(&[1]), true),
        (|table| table.delete(&[ROWS / 2]), false),
        (
            |table| {
                table.insert(ROWS..ROWS + 10);
                table.flush();
                table.db.merge(table.id).unwrap();
            },
            true,
        ),
    ];
    for (between, succeeds) in cases {
        let table = table(2);
        table.insert(0..ROWS);
        table.flush();
        let before = table.view();
        let mut txn = table.begin();
        table.write_in(&mut txn, &gone(), &[]).unwrap();
        let other = Table { db: table.db.clone(), id: table.id };
        let mut done = false;
        BEFORE_LOCK.set(Some(Box::new(move || {
            if !std::mem::replace(&mut done, true) {
                let hook = BEFORE_LOCK.take();
                let counted = ids(&other).len() as i64;
                assert_eq!(counted, ROWS, "nobody sees what is only intended");
                between(&other);
                BEFORE_LOCK.set(hook);
            }
        })));
        let committed = txn.commit();
        drop(BEFORE_LOCK.take());
        assert_eq!(intended(&table), 0, "nothing is left behind");
        let left = ids(&table);
        if succeeds {
            committed.unwrap();
            assert!(gone().iter().all(|id| left.binary_search(id).is_err()), "all are gone");
        } else {
            assert_eq!(committed.unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(left.len() as i64, ROWS - 1, "none is");
            table.delete(&gone().into_iter().filter(|id| *id != ROWS / 2).collect::<Vec<_>>());
        }
        assert_eq!(ids(&table).iter().filter(|id| **id % 2 == 0 && **id < ROWS).count(), 0);
        assert_eq!(rows_of(&before).len() as i64, ROWS, "an older snapshot has them still");
    }
}

/// Under the commit lock each value of a row is put into its column: of wide rows there may be fewer.
#[test]
fn what_goes_through_a_delta_is_bounded_by_its_values() {
    const COLUMNS: usize = 64;
    let most = limits::COMMIT_CELLS_MAX / COLUMNS;
    for (rows, kind) in [(most, "delta"), (most + 1, "segment")] {
        let db = Database::in_memory(options()).unwrap();
        let mut wide = definition("wide");
        let more = (2..COLUMNS).map(|at| ColumnDefinition::new(format!("c{at}"), DataType::BigInt, true));
        wide.columns.extend(more);
        let mut txn = db.begin(TransactionMode::default()).unwrap();
        let id = txn.create_table(wide).unwrap();
        let schema = txn.view(id).unwrap().schema().clone();
        txn.commit().unwrap();
        let mut txn = db.begin(TransactionMode::default()).unwrap();
        let mut statement = txn.statement();
        let column: ArrayRef = Arc::new((0..rows as i64).collect::<Int64Array>());
        let batch = RecordBatch::try_new(schema.arrow(), vec![column; COLUMNS]).unwrap();
        statement.insert(&schema, &batch).unwrap();
        txn.apply(statement).unwrap();
        txn.commit().unwrap();
        let of_kind = db.containers().into_iter().filter(|container| container.kind == kind);
        assert_eq!(of_kind.map(|container| container.rows).sum::<u64>(), rows as u64, "{kind}");
    }
}

/// Frozen deltas are what writers wait for; those that a merge has replaced, or that went with their table, are not.
#[test]
fn deltas_are_counted_by_who_can_let_go_of_them() {
    let table = table(100);
    let counted = || {
        table.db.engine().measure_memory();
        [MemoryKind::ActiveDeltas, MemoryKind::FrozenDeltas, MemoryKind::OldDeltas]
            .map(|kind| table.db.engine().memory.used(kind))
    };
    table.insert(0..1_000);
    let [active, 0, 0] = counted() else { panic!("{:?}", counted()) };
    table.db.freeze(table.id).unwrap();
    let [fresh, frozen, 0] = counted() else { panic!("{:?}", counted()) };
    assert!(fresh < active && frozen == active);
    table.delete(&(0..900).collect::<Vec<_>>());
    let [_, grown, 0] = counted() else { panic!("{:?}", counted()) };
    assert!(grown > frozen, "its delete log too: {grown}");

    let (old, mut drops) = (table.view(), table.begin());
    table.flush();
    let [_, 0, replaced] = counted() else { panic!("{:?}", counted()) };
    assert!(replaced >= grown, "a snapshot reads it still");
    drops.drop_table(table.id).unwrap();
    drops.commit().unwrap();
    assert_eq!(counted(), [0, 0, replaced + fresh]);
    assert_eq!(rows_of(&old).len(), 100);
    drop(old);
    assert_eq!(counted(), [0, 0, 0]);
}

/// What queries leave is lent to the block cache, and free again as soon as they want it.
#[test]
fn the_cache_borrows_what_queries_leave() {
    let table = table(100);
    let engine = table.db.engine();
    let share = engine.memory.share(MemoryKind::Queries);
    let both = share + engine.memory.share(MemoryKind::BlockCache);
    engine.measure_memory();
    assert_eq!(engine.cache.bytes_max(), both);
    for bytes in [1 << 20, share, share + 5, 7] {
        engine.query_memory().note(|| bytes);
        let bound = engine.cache.bytes_max();
        assert!(bound + bytes.min(share) <= both, "{bound} while queries take {bytes}");
        engine.measure_memory();
        assert_eq!(engine.cache.bytes_max(), both - bytes.min(share));
    }
}

/// What the cache is lent while queries take more is never what they left before: not when their noting returns.
#[test]
fn nothing_is_lent_that_queries_have_taken_meanwhile() {
    let table = table(100);
    let engine = table.db.engine();
    let share = engine.memory.share(MemoryKind::Queries);
    let both = share + engine.memory.share(MemoryKind::BlockCache);
    let taken = AtomicU64::new(0);
    let queries = engine.query_memory();
    let (lent, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _done = DoneOnDrop(&done);
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    engine.lend_to_cache();
                    lent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // What the pool of queries has reserved is told by whoever took some of it last, or some time ago.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                queries.note(|| taken.load(Ordering::Relaxed));
            }
        });
        for round in (0..).take_while(|round| *round < 500 || lent.load(Ordering::Relaxed) < 200_000) {
            taken.store(round % 5 * (share / 5), Ordering::Relaxed);
            queries.note(|| taken.load(Ordering::Relaxed));
            for _ in 0..round % 50 {
                let (bound, bytes) = (engine.cache.bytes_max(), taken.load(Ordering::Relaxed));
                assert!(bound + bytes <= both, "{bound} while queries take {bytes}");
            }
        }
    });

    // An answer is noted before anybody else is asked.
    let asked = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            queries.note(|| {
                asked.wait();
                std::thread::sleep(Duration::from_millis(50));
                0
            });
        });
        asked.wait();
        queries.note(|| share);
    });
    assert_eq!((engine.memory.used(MemoryKind::Queries), engine.cache.bytes_max()), (share, both - share));
}

#[test]
fn the_oldest_rows_of_the_log_are_those_of_a_delta_that_is_there() {
    let disk = Arc::new(MemDisk::new());
    let mut tables = vec![on(Database::open_on(disk.clone(), options()).unwrap(), 100)];
    for name in ["b", "c", "d"] {
        let mut create = tables[0].begin();
        let id = create.create_table(definition(name)).unwrap();
        create.commit().unwrap();
        tables.push(Table { db: tables[0].db.clone(), id });
    }
    let oldest = |tables: &[Table]| tables[0].db.engine().table_with_oldest_rows().unwrap().map(|(table, _)| table);
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| tables[at].id);
    assert_eq!(oldest(&tables), None);
    // The order of the log is not that of the tables, nor that of their deltas.
    for at in [2, 0, 3, 1, 2, 0] {
        tables[at].insert([10 * at as i64 + table_rows(&tables[at])]);
    }
    assert_eq!(oldest(&tables), Some(c));
    tables[0].flush();
    tables[2].flush();
    assert_eq!(oldest(&tables), Some(d));
    tables[2].insert([7]);
    let mut drops = tables[3].begin();
    drops.drop_table(d).unwrap();
    drops.commit().unwrap();
    assert_eq!(oldest(&tables), Some(b));
    tables[0].db.checkpoint_now().unwrap();
    let tail = tables[0].db.engine().log_tail_bytes();
    let Table { db, .. } = tables.swap_remove(0);
    db.close().unwrap();
    drop((tables, db));

    let db = Database::open_on(disk, options()).unwrap();
    let engine = db.engine();
    assert_eq!(engine.table_with_oldest_rows().unwrap().map(|(table, _)| table), Some(b), "replayed");
    assert!(engine.log_tail_bytes() >= tail);
    let reopened = |id| Table { db: db.clone(), id };
    reopened(b).flush();
    assert_eq!(engine.table_with_oldest_rows().unwrap().map(|(table, _)| table), Some(c));
    reopened(c).flush();
    assert_eq!(engine.lock().unwrap().state.delta_starts.len(), 0, "nothing is left for a checkpoint to forget");
    assert_eq!(engine.table_with_oldest_rows().unwrap(), None);
    engine.checkpoint().unwrap();
    assert_eq!((engine.log_tail_bytes(), engine.lock().unwrap().state.delta_starts.len()), (0, 0));
    assert_eq!(ids(&reopened(a)).len(), 2);
}

fn table_rows(table: &Table) -> i64 {
    ids(table).len() as i64
}
