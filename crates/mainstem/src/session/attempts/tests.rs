#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use mainstem_sim::SimDisk;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::ids::RowRef;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::OpenOptions;

use super::super::Session;
use super::*;
use crate::exec::{Interrupts, PlanCache, Runtime, Shared, template};
use crate::provider::FileCache;

const ROWS: i64 = 4;

/// A database with the rows 0..ROWS of t (k BIGINT PRIMARY KEY, n BIGINT), where nothing moves by itself.
fn stage() -> (Arc<Shared>, TableId) {
    stage_on(Database::in_memory(options()).unwrap())
}

fn options() -> OpenOptions {
    OpenOptions::new().background(false)
}

/// As [`stage`], in an empty database.
fn stage_on(storage: Database) -> (Arc<Shared>, TableId) {
    let template = template(&storage, 1).unwrap();
    let runtime = Runtime::start(1, storage.activity()).unwrap();
    let mut transaction = storage.begin(TransactionMode::default()).unwrap();
    let column = |name: &str, nullable| ColumnDefinition::new(name, DataType::BigInt, nullable);
    let definition = TableDefinition {
        primary_key: vec!["k".into()],
        ..TableDefinition::new("t", vec![column("k", false), column("n", true)])
    };
    let table = transaction.create_table(definition).unwrap();
    let schema = transaction.catalog().table(table).unwrap().clone();
    let mut writes = transaction.statement();
    writes.insert(&schema, &batch((0..ROWS).map(|k| (k, 0)))).unwrap();
    transaction.apply(writes).unwrap();
    transaction.commit().unwrap();
    let plans = PlanCache::new(storage.memory_budget().clone());
    (
        Arc::new(Shared {
            storage,
            runtime,
            template,
            sessions: AtomicU64::new(0),
            plans,
            files: FileCache::default(),
        }),
        table,
    )
}

fn batch(rows: impl Iterator<Item = (i64, i64)>) -> RecordBatch {
    let (k, n): (Vec<i64>, Vec<i64>) = rows.unzip();
    let columns: [(&str, ArrayRef, bool); 2] =
        [("k", Arc::new(Int64Array::from(k)), false), ("n", Arc::new(Int64Array::from(n)), true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The rows that `transaction` sees, each with its name.
fn seen(transaction: &Transaction, table: TableId) -> Vec<(RowRef, i64, i64)> {
    let view = transaction.view(table).unwrap();
    let request = ScanRequest { row_refs: true, ..ScanRequest::all(view.schema().column_ids()) };
    let mut rows = Vec::new();
    for batch in view.scan(&request).unwrap().worker() {
        let batch = batch.unwrap();
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().to_vec();
        let refs = batch.column(2).as_primitive::<UInt64Type>().values().iter().map(|bits| RowRef::from_bits(*bits));
        rows.extend(refs.zip(column(0)).zip(column(1)).map(|((at, k), n)| (at, k, n)));
    }
    rows
}

/// UPDATE t SET n = n + 1 WHERE k BETWEEN ...
fn count(transaction: &mut Transaction, table: TableId, keys: std::ops::Range<i64>) -> Result<()> {
    let schema = transaction.catalog().table(table).unwrap().clone();
    let found: Vec<_> = seen(transaction, table).into_iter().filter(|(_, k, _)| keys.contains(k)).collect();
    let mut writes = transaction.statement();
    writes.delete(&schema, &found.iter().map(|(at, ..)| *at).collect::<Vec<_>>())?;
    writes.insert(&schema, &batch(found.iter().map(|(_, k, n)| (*k, n + 1))))?;
    transaction.apply(writes)
}

/// What others do while a statement runs: in its first two runs somebody new commits to a row of it; then newcomers
/// have to wait, and those who had written before may commit, one in each run; merges move the rows all the time.
struct Others<'a> {
    storage: &'a Database,
    table: TableId,
    open: Vec<Transaction>,
    runs: usize,
}

impl Others<'_> {
    fn go_on(&mut self) {
        self.runs += 1;
        let wait = || Err(Error::internal("the gate is closed"));
        let newcomer = self.storage.begin_behind_gate(TransactionMode::default(), |_| Some(self.table), wait);
        if self.runs < 3 {
            let mut newcomer = newcomer.unwrap();
            count(&mut newcomer, self.table, ROWS - 1..ROWS).unwrap();
            newcomer.commit().unwrap();
        } else {
            assert_eq!(newcomer.unwrap_err().message(), "the gate is closed");
            if let Some(open) = self.open.pop() {
                open.commit().unwrap();
            }
        }
        self.storage.flush(self.table).unwrap();
        self.storage.merge(self.table).unwrap();
    }
}

/// Contract 2, and `docs/design/0005-last-attempt.md`: twice before the gate closes, once behind it, and once more for
/// each transaction that was past the gate when it closed.
#[test]
fn a_statement_runs_once_more_for_each_transaction_that_was_past_the_gate() {
    for open in 0..ROWS - 1 {
        for short in [true, false] {
            let (shared, table) = stage();
            let storage = &shared.storage;
            let begin = |row: i64| {
                let mut transaction = storage.begin(TransactionMode::default()).unwrap();
                count(&mut transaction, table, row..row + 1).unwrap();
                transaction
            };
            let mut others = Others { storage, table, open: (0..open).map(begin).collect(), runs: 0 };
            if short {
                let interrupts = Interrupts::default();
                let write = |mut transaction: Transaction, run| {
                    count(&mut transaction, table, 0..ROWS)?;
                    others.go_on();
                    assert_eq!(run == Run::BehindGate, others.runs >= 3);
                    Ok(((), transaction.commit_applied()?))
                };
                let watch = || interrupts.watch(None);
                short_in_own_transaction(storage, Synchronous::Full, table, watch, write).unwrap();
            } else {
                let mut session = Session::new(shared.clone(), Interrupts::default());
                let name = TableName::bare("t");
                let write: Write<'_, ()> = &mut |_, transaction| {
                    count(transaction, table, 0..ROWS)?;
                    others.go_on();
                    Ok(())
                };
                session.write(Targets::one(&name), write).unwrap();
            }
            let expected = 3 + open as usize;
            assert_eq!((others.runs, storage.take_statement_runs_max() as usize), (expected, expected));
            let reader = storage.begin_behind_gate(TransactionMode::default(), |_| Some(table), || Ok(())).unwrap();
            let mut rows: Vec<_> = seen(&reader, table).into_iter().map(|(_, k, n)| (k, n)).collect();
            rows.sort_unstable();
            let of_others = |k| {
                if k < open {
                    1
                } else if k == ROWS - 1 {
                    2
                } else {
                    0
                }
            };
            assert_eq!(rows, (0..ROWS).map(|k| (k, 1 + of_others(k))).collect::<Vec<_>>());
        }
    }
}

/// Lets syncs go on, also when the test fails.
struct Released(SimDisk);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.release_syncs();
    }
}

/// Another commit to the row is applied, but not durable: the statement meets it at *applied*, not again and again at
/// *visible*, and tells nobody what came of it, be it an error, before that commit is durable.
#[test]
fn what_a_run_at_applied_has_seen_is_told_when_it_is_durable() {
    for (short, fails) in [(true, false), (true, true), (false, false), (false, true)] {
        let disk = SimDisk::new();
        let (shared, table) = stage_on(Database::open_on(Arc::new(disk.clone()), options()).unwrap());
        let storage = &shared.storage;
        let applied = || storage.log_status().applied;
        let eventually = |what: &str, holds: &dyn Fn() -> bool| {
            let start = Instant::now();
            while !holds() {
                assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let runs = std::sync::atomic::AtomicU64::new(0);
        let refuses = |transaction: &mut Transaction| {
            count(transaction, table, 0..1)?;
            runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if fails { Err(Error::internal("refused")) } else { Ok(()) }
        };
        let others = applied().next();
        disk.hold_syncs("wal");
        std::thread::scope(|scope| {
            let _released = Released(disk.clone());
            scope.spawn(|| {
                let mut other = storage.begin(TransactionMode::default()).unwrap();
                count(&mut other, table, 0..1).unwrap();
                other.commit().unwrap();
            });
            eventually("the other one is applied", &|| applied() == others);
            let statement = scope.spawn(|| {
                let ended = if short {
                    let interrupts = Interrupts::default();
                    let write = |mut transaction: Transaction, _| {
                        refuses(&mut transaction)?;
                        Ok(((), transaction.commit_applied()?))
                    };
                    short_in_own_transaction(storage, Synchronous::Full, table, || interrupts.watch(None), write)
                } else {
                    let mut session = Session::new(shared.clone(), Interrupts::default());
                    let name = TableName::bare("t");
                    let write: Write<'_, ()> = &mut |_, transaction| refuses(transaction);
                    session.write(Targets::one(&name), write)
                };
                assert_eq!(ended.is_err(), fails);
                let visible = storage.log_status().visible;
                let least = if fails { others } else { others.next() };
                assert!(visible >= least, "told at {visible}, {least} was not durable");
            });
            let done = || if fails { runs.load(std::sync::atomic::Ordering::Relaxed) > 0 } else { applied() > others };
            eventually("the statement is done", &done);
            // Long enough for one that does not wait to be seen.
            std::thread::sleep(Duration::from_millis(50));
            disk.release_syncs();
            statement.join().unwrap();
        });
        let expected = if short { 1 } else { 2 };
        assert_eq!(storage.take_statement_runs_max(), expected, "short: {short}, fails: {fails}");
    }
}

/// TRUNCATE of two tables closes both gates, whichever it names first.
#[test]
fn a_statement_for_several_tables_closes_all_their_gates() {
    let (shared, first) = stage();
    let mut transaction = shared.storage.begin(TransactionMode::default()).unwrap();
    let definition = TableDefinition::new("u", vec![ColumnDefinition::new("a", DataType::BigInt, true)]);
    let second = transaction.create_table(definition).unwrap();
    transaction.commit().unwrap();
    let names = ["u", "nothing", "t", "u"].map(TableName::bare);
    let mut session = Session::new(shared.clone(), Interrupts::default());
    let mut runs = 0;
    let write: Write<'_, ()> = &mut |env, transaction| {
        runs += 1;
        assert_eq!(Targets::Tables(&names).ids(env.settings.names(), transaction), [first, second]);
        for table in [first, second] {
            let wait = || Err(Error::internal("the gate is closed"));
            let newcomer = shared.storage.begin_behind_gate(TransactionMode::default(), |_| [table], wait);
            assert_eq!(newcomer.is_err(), runs >= 3);
        }
        if runs < 3 { Err(Error::conflict("not yet")) } else { Ok(()) }
    };
    session.write(Targets::Tables(&names), write).unwrap();
    assert_eq!(runs, 3);
    shared.storage.begin_behind_gate(TransactionMode::default(), |_| [first, second], || unreachable!("open")).unwrap();
}

/// Updates of one row, through plans and on the point path, do not wait for one another's fsync: all are applied while
/// the first one's is under way, nobody is told before it has ended, and one more serves all who came meanwhile.
#[test]
fn updates_of_one_row_share_fsyncs() {
    const THREADS: i64 = 8;
    let disk = SimDisk::new();
    let (shared, table) = stage_on(Database::open_on(Arc::new(disk.clone()), options()).unwrap());
    let before = shared.storage.log_status();
    disk.hold_syncs("wal");
    std::thread::scope(|scope| {
        let _released = Released(disk.clone());
        let update = |thread| {
            let shared = shared.clone();
            scope.spawn(move || {
                if thread % 2 == 0 {
                    let write = |mut transaction: Transaction, _| {
                        count(&mut transaction, table, 0..1)?;
                        Ok(((), transaction.commit_applied()?))
                    };
                    let interrupts = Interrupts::default();
                    let watch = || interrupts.watch(None);
                    short_in_own_transaction(&shared.storage, Synchronous::Full, table, watch, write)
                } else {
                    let write: Write<'_, ()> = &mut |_, transaction| count(transaction, table, 0..1);
                    Session::new(shared, Interrupts::default()).write(Targets::one(&TableName::bare("t")), write)
                }
            })
        };
        let updates: Vec<_> = (0..THREADS).map(update).collect();
        let begun = Instant::now();
        let applied = || shared.storage.log_status().commits - before.commits;
        // Only what waits for ever takes so long.
        while applied() < THREADS as u64 && begun.elapsed().as_secs() < 120 {
            std::thread::yield_now();
        }
        let (applied, told) = (applied(), updates.iter().any(|update| update.is_finished()));
        disk.release_syncs();
        updates.into_iter().for_each(|update| update.join().unwrap().unwrap());
        assert_eq!((applied, told), (THREADS as u64, false));
    });
    let syncs = shared.storage.log_status().syncs - before.syncs;
    assert!(syncs <= 2, "{syncs} fsyncs");
    let reader = shared.storage.begin(TransactionMode::default()).unwrap();
    assert!(seen(&reader, table).iter().any(|(_, k, n)| (*k, *n) == (0, THREADS)));
}
