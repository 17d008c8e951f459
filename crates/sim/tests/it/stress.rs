//! Threads that write and read while merges, freezes and checkpoints go on; run on a real directory, whose fsyncs take
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mainstem_sim::SimDisk;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::{DataType, TableOptions};
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::{Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ACCOUNTS: i64 = 48;
const BALANCE: i64 = 1_000;
const THREADS: u64 = 4;

fn seconds() -> Duration {
    Duration::from_secs(crate::model::number("MAINSTEM_SIM_STRESS_SECONDS", 4))
}

/// Nothing takes longer that is not stuck, on any machine.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn definition(name: &str, keyed: bool) -> TableDefinition {
    let column = |name: &str| ColumnDefinition::new(name, DataType::BigInt, false);
    TableDefinition {
        primary_key: if keyed { vec!["id".into()] } else { vec![] },
        options: TableOptions { segment_rows: 16, delta_rows: 24 },
        ..TableDefinition::new(name, vec![column("id"), column("amount")])
    }
}

fn create(db: &Database, name: &str, keyed: bool) -> TableId {
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn.create_table(definition(name, keyed)).unwrap();
    txn.commit().unwrap();
    id
}

fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>())),
        ("amount", Arc::new(rows.iter().map(|r| r.1).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

pub(crate) fn read(txn: &Transaction, table: TableId, only: Option<i64>) -> Result<Vec<(i64, i64, RowRef)>> {
    let view = txn.view(table)?;
    let id = view.schema().columns[0].id;
    let predicates =
        only.map(|key| Predicate::Compare { column: id, op: CompareOp::Eq, value: Value::Int(key) }).into_iter();
    let request = ScanRequest {
        row_refs: true,
        predicates: predicates.collect(),
        ..ScanRequest::all(view.schema().column_ids())
    };
    let mut rows = Vec::new();
    for batch in view.scan(&request)?.worker() {
        let batch = batch?;
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().to_vec();
        let refs = batch.column(2).as_primitive::<UInt64Type>();
        let refs = refs.values().iter().map(|bits| RowRef::from_bits(*bits));
        rows.extend(column(0).into_iter().zip(column(1)).zip(refs).map(|((id, amount), at)| (id, amount, at)));
    }
    if only.is_none() {
        assert_eq!(view.statistics().rows, rows.len() as u64, "the count of table {table} at {}", txn.read_ts());
    }
    Ok(rows)
}

pub(crate) fn write(txn: &mut Transaction, table: TableId, deletes: &[RowRef], rows: &[(i64, i64)]) -> Result<()> {
    let schema = txn.catalog().table(table).cloned().ok_or_else(|| Error::internal("no table"))?;
    let mut statement = txn.statement();
    statement.delete(&schema, deletes)?;
    if !rows.is_empty() {
        statement.insert(&schema, &batch(rows))?;
    }
    txn.apply(statement)
}

fn one(txn: &Transaction, table: TableId, key: i64) -> (i64, RowRef) {
    let rows = read(txn, table, Some(key)).unwrap();
    assert_eq!(rows.len(), 1, "row {key} at {}: {rows:?}", txn.read_ts());
    (rows[0].1, rows[0].2)
}

fn mode(rng: &mut StdRng) -> TransactionMode {
    let modes = [Synchronous::Full, Synchronous::Normal, Synchronous::Off];
    TransactionMode { synchronous: modes[rng.random_range(0..3)], ..TransactionMode::default() }
}

/// Moves an amount from one account to another and notes it. Returns whether it was the first to commit.
fn transfer(db: &Database, accounts: TableId, notes: TableId, rng: &mut StdRng, note: i64) -> bool {
    let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
    if from == to {
        return false;
    }
    let mut txn = db.begin(mode(rng)).unwrap();
    let amount = rng.random_range(1..50);
    let ((a, at_a), (b, at_b)) = (one(&txn, accounts, from), one(&txn, accounts, to));
    let written = if rng.random() {
        write(&mut txn, accounts, &[at_a, at_b], &[(from, a - amount), (to, b + amount)])
    } else {
        write(&mut txn, accounts, &[at_a], &[(from, a - amount)]).and_then(|()| {
            let (b, at_b) = one(&txn, accounts, to);
            write(&mut txn, accounts, &[at_b], &[(to, b + amount)])
        })
    };
    let written = written.and_then(|()| write(&mut txn, notes, &[], &[(note, amount)]));
    match written.and_then(|()| txn.commit()) {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.sqlstate(), "40001", "{e:?}");
            false
        }
    }
}

/// Every snapshot has the same total. Holds two snapshots at once, the older of them long.
fn watch(db: &Database, accounts: TableId, notes: TableId, done: &AtomicBool) -> u64 {
    let mut looked = 0;
    let read_only = TransactionMode { read_only: true, ..TransactionMode::default() };
    let mut old = db.begin(read_only).unwrap();
    let mut old_notes = read(&old, notes, None).unwrap().len();
    while !done.load(Ordering::Relaxed) {
        let txn = db.begin(read_only).unwrap();
        for txn in [&txn, &old] {
            let rows = read(txn, accounts, None).unwrap();
            assert_eq!(rows.len() as i64, ACCOUNTS, "accounts at {}", txn.read_ts());
            assert_eq!(rows.iter().map(|r| r.1).sum::<i64>(), ACCOUNTS * BALANCE, "total at {}", txn.read_ts());
        }
        assert_eq!(read(&old, notes, None).unwrap().len(), old_notes, "an old snapshot changed");
        looked += 1;
        if looked % 16 == 0 {
            old_notes = read(&txn, notes, None).unwrap().len();
            old = txn;
        }
    }
    looked
}

/// Freezes, flushes, merges and checkpoints, and makes and drops tables with rows.
fn disturb(db: &Database, tables: &[TableId], done: &AtomicBool) {
    let mut rng = StdRng::seed_from_u64(99);
    let mut made: Vec<TableId> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let table = *tables.iter().chain(&made).nth(rng.random_range(0..tables.len() + made.len())).unwrap();
        match rng.random_range(0..12) {
            0..4 => db.freeze(table).unwrap(),
            4..7 => db.flush(table).unwrap(),
            7 => db.merge(table).unwrap(),
            8 => db.checkpoint().unwrap(),
            9 => {
                let table = create(db, &format!("made{}", rng.random::<u32>()), true);
                let mut txn = db.begin(TransactionMode::default()).unwrap();
                let rows: Vec<(i64, i64)> = (0..rng.random_range(1..60)).map(|id| (id, 0)).collect();
                write(&mut txn, table, &[], &rows).unwrap();
                txn.commit().unwrap();
                made.push(table);
            }
            10 if !made.is_empty() => {
                let table = made.swap_remove(rng.random_range(0..made.len()));
                let mut txn = db.begin(TransactionMode::default()).unwrap();
                txn.drop_table(table).unwrap();
                txn.commit().unwrap();
            }
            _ => std::thread::sleep(Duration::from_millis(rng.random_range(0..5))),
        }
    }
}

#[test]
fn transfers_keep_the_total() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions::new().checkpoint_bytes(64 << 10).inline_delete_bytes(60).inline_run_bytes(600);
    let db = Database::open(dir.path(), options.clone()).unwrap();
    let (accounts, notes) = (create(&db, "accounts", true), create(&db, "notes", false));
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let rows: Vec<(i64, i64)> = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    write(&mut txn, accounts, &[], &rows).unwrap();
    txn.commit().unwrap();

    let (done, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&db, accounts, notes, &done));
        let disturber = scope.spawn(|| disturb(&db, &[accounts, notes], &done));
        let end = Instant::now() + seconds();
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (db, committed) = (&db, &committed);
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(thread);
                    let mut note = (thread as i64) << 40;
                    while Instant::now() < end {
                        note += 1;
                        if transfer(db, accounts, notes, &mut rng, note) {
                            committed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        let looked = watcher.join().unwrap();
        disturber.join().unwrap();
        ended.into_iter().for_each(|ended| ended.unwrap());
        println!("{} transfers, {looked} looks", committed.load(Ordering::Relaxed));
    });
    for _ in 0..2 {
        db.close().unwrap();
    }
    drop(db);
    let db = Database::open(dir.path(), options).unwrap();
    let txn = db.begin(TransactionMode::default()).unwrap();
    let rows = read(&txn, accounts, None).unwrap();
    assert_eq!((rows.len() as i64, rows.iter().map(|r| r.1).sum::<i64>()), (ACCOUNTS, ACCOUNTS * BALANCE));
    assert_eq!(read(&txn, notes, None).unwrap().len() as u64, committed.load(Ordering::Relaxed));
    assert!(db.verify().is_empty(), "{:?}", db.verify());
}

/// Each thread has rows of its own, so the only thing that could make a commit fail is a merge. A transaction begins at
/// *visible*, which may be before an install that moved its rows, though that install is already applied: the log's
/// fsyncs are slow here, so that it often is.
#[test]
fn merges_never_make_a_commit_fail() {
    let disk = SimDisk::new();
    disk.slow_syncs("wal/", Duration::from_millis(3));
    let db = Database::open_on(Arc::new(disk), OpenOptions::default()).unwrap();
    let table = create(&db, "t", true);
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    write(&mut txn, table, &[], &(0..ACCOUNTS).map(|id| (id, 0)).collect::<Vec<_>>()).unwrap();
    txn.commit().unwrap();
    let done = AtomicBool::new(false);
    // However slow the machine is, some merges stand beside the commits.
    let (begun, enough) = (Instant::now(), |db: &Database| db.merges().last().is_some_and(|merge| merge.number > 5));
    let goes_on = |db| begun.elapsed() < seconds() || begun.elapsed() < PATIENCE && !enough(db);
    let updates: i64 = std::thread::scope(|scope| {
        let disturber = scope.spawn(|| disturb(&db, &[table], &done));
        let own = ACCOUNTS / THREADS as i64;
        let writers: Vec<_> = (0..THREADS as i64)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(thread as u64);
                    let mut updates = 0;
                    while goes_on(db) {
                        let mut txn = db.begin(mode(&mut rng)).unwrap();
                        for _ in 0..rng.random_range(1..4) {
                            let key = thread * own + rng.random_range(0..own);
                            let (amount, at) = one(&txn, table, key);
                            write(&mut txn, table, &[at], &[(key, amount + 1)]).unwrap();
                            updates += 1;
                        }
                        if rng.random_ratio(1, 8) {
                            std::thread::sleep(Duration::from_millis(rng.random_range(0..30)));
                        }
                        txn.commit().unwrap();
                    }
                    updates
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        disturber.join().unwrap();
        ended.into_iter().map(|ended| ended.unwrap()).sum()
    });
    let txn = db.begin(TransactionMode::default()).unwrap();
    let rows = read(&txn, table, None).unwrap();
    assert_eq!((rows.len() as i64, rows.iter().map(|r| r.1).sum::<i64>()), (ACCOUNTS, updates));
    println!("{updates} updates, {:?}", db.merges().last());
    assert!(enough(&db));
}

/// Threads insert the same keys, a few at a time or many in one run of segments: each key is there once, from the one
/// commit that was told so.
#[test]
fn one_of_many_inserters_gets_a_key() {
    const KEYS: i64 = 400;
    const MANY: i64 = 5_000;
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
    let table = create(&db, "t", true);
    let done = AtomicBool::new(false);
    let told: Vec<(i64, i64)> = std::thread::scope(|scope| {
        let disturber = scope.spawn(|| disturb(&db, &[table], &done));
        let writers: Vec<_> = (0..THREADS as i64)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(thread as u64);
                    let mut told = Vec::new();
                    for start in 0..KEYS {
                        let many = start % 100 == 50 && thread < 2;
                        let keys = if many { start..start + MANY } else { start..start + rng.random_range(1..4) };
                        let rows: Vec<(i64, i64)> = keys.map(|key| (key, thread)).collect();
                        let mut txn = db.begin(mode(&mut rng)).unwrap();
                        let done = write(&mut txn, table, &[], &rows).and_then(|()| txn.commit());
                        match done {
                            Ok(_) => told.extend(rows),
                            Err(e) => assert!(["40001", "23505"].contains(&e.sqlstate()), "{e:?}"),
                        }
                    }
                    told
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        disturber.join().unwrap();
        ended.into_iter().flat_map(|ended| ended.unwrap()).collect()
    });
    let sorted = |mut rows: Vec<(i64, i64)>| {
        rows.sort_unstable();
        rows
    };
    let told = sorted(told);
    assert!(told.windows(2).all(|two| two[0].0 < two[1].0), "a key was told twice");
    let txn = db.begin(TransactionMode::default()).unwrap();
    assert_eq!(sorted(read(&txn, table, None).unwrap().iter().map(|r| (r.0, r.1)).collect()), told);
    drop(txn);
    db.close().unwrap();
    drop(db);
    let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
    let txn = db.begin(TransactionMode::default()).unwrap();
    assert_eq!(sorted(read(&txn, table, None).unwrap().iter().map(|r| (r.0, r.1)).collect()), told);
}

/// One row is deleted per commit while snapshots of many moments stand, so that delete logs are folded under them.
#[test]
fn old_snapshots_stay_while_delete_logs_are_folded() {
    const ROWS: i64 = 3_000;
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let mut definition = definition("t", true);
    definition.options = TableOptions { segment_rows: 1_000, delta_rows: 2_000 };
    let table = txn.create_table(definition).unwrap();
    write(&mut txn, table, &[], &(0..ROWS).map(|id| (id, id)).collect::<Vec<_>>()).unwrap();
    txn.commit().unwrap();
    let mut rng = StdRng::seed_from_u64(5);
    let mut held: Vec<(Transaction, i64)> = Vec::new();
    let check = |(txn, gone): &(Transaction, i64)| {
        let rows = read(txn, table, None).unwrap();
        assert_eq!(rows.len() as i64, ROWS - gone, "rows at {}", txn.read_ts());
        assert!(rows.iter().all(|row| row.1 != -1 && row.0 % ROWS >= *gone), "a row came back at {}", txn.read_ts());
    };
    let read_only = TransactionMode { read_only: true, ..TransactionMode::default() };
    let lazy = TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() };
    for gone in 0..1_500 {
        if rng.random_ratio(1, 20) {
            held.push((db.begin(read_only).unwrap(), gone));
        }
        if held.len() > 12 {
            let one = held.swap_remove(rng.random_range(0..held.len()));
            check(&one);
        }
        let mut txn = db.begin(lazy).unwrap();
        let (_, at) = one(&txn, table, gone);
        write(&mut txn, table, &[at], &[]).unwrap();
        txn.commit().unwrap();
        match gone {
            400 | 1_000 => db.flush(table).unwrap(),
            800 => db.merge(table).unwrap(),
            gone if gone % 100 == 0 => std::thread::sleep(Duration::from_millis(25)),
            _ => {}
        }
    }
    held.iter().for_each(check);
    drop(held);
    check(&(db.begin(read_only).unwrap(), 1_500));
}

/// A table with a few rows and no more writes does not hold the log back, nor does an old snapshot.
#[test]
fn the_log_tail_stays_short() {
    let dir = tempfile::tempdir().unwrap();
    let limit = 128 << 10;
    let db = Database::open(dir.path(), OpenOptions::new().checkpoint_bytes(limit)).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let idle = txn.create_table(definition("idle", true)).unwrap();
    // Segments large enough that their fsyncs take little time on a slow disk, too.
    let options = TableOptions { segment_rows: 1_000, delta_rows: 2_000 };
    let busy = txn.create_table(TableDefinition { options, ..definition("busy", false) }).unwrap();
    txn.commit().unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    write(&mut txn, idle, &[], &[(1, 1)]).unwrap();
    txn.commit().unwrap();
    let old = db.begin(TransactionMode::default()).unwrap();
    let lazy = TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() };
    for round in 0..100 {
        let mut txn = db.begin(lazy).unwrap();
        write(&mut txn, busy, &[], &(0..1_000).map(|id| (id, round)).collect::<Vec<_>>()).unwrap();
        txn.commit().unwrap();
    }
    let end = Instant::now() + PATIENCE;
    while db.log_tail_bytes() > limit && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(db.log_tail_bytes() <= limit, "{} bytes of tail", db.log_tail_bytes());
    assert_eq!(read(&old, idle, None).unwrap().len(), 1);
    assert_eq!(read(&old, busy, None).unwrap().len(), 0);
}

/// What outlives the database writes nothing any more: another process may have the directory.
#[test]
fn a_transaction_that_outlives_the_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
    let table = create(&db, "t", true);
    let mut late = db.begin(TransactionMode::default()).unwrap();
    write(&mut late, table, &[], &[(1, 1)]).unwrap();
    drop(db);
    let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
    assert_eq!(late.commit().unwrap_err().sqlstate(), "57P01");
    assert_eq!(read(&db.begin(TransactionMode::default()).unwrap(), table, None).unwrap().len(), 0);
}

/// Commits race with the end: each one told of is there, whatever came in between.
#[test]
fn commits_race_with_close() {
    let mut all = 0;
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), OpenOptions::default()).unwrap();
        let table = create(&db, "t", false);
        let committed = AtomicU64::new(0);
        let told: u64 = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|thread| {
                    let (db, committed) = (&db, &committed);
                    scope.spawn(move || {
                        let mut rng = StdRng::seed_from_u64(thread + round * 10);
                        for told in 0.. {
                            let done = db.begin(mode(&mut rng)).and_then(|mut txn| {
                                write(&mut txn, table, &[], &[(told, 0)])?;
                                txn.commit()
                            });
                            if let Err(e) = done {
                                assert_eq!(e.sqlstate(), "57P01", "{e:?}");
                                return told as u64;
                            }
                            committed.fetch_add(1, Ordering::Relaxed);
                        }
                        0
                    })
                })
                .collect();
            // In every other round whatever has come to pass by then, which may be nothing.
            while round % 2 == 0 && committed.load(Ordering::Relaxed) == 0 && !writers[0].is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(10 + round));
            db.close().unwrap();
            let again = Database::open(dir.path(), OpenOptions::default()).unwrap();
            let told = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            let rows = read(&again.begin(TransactionMode::default()).unwrap(), table, None).unwrap();
            assert_eq!(rows.len() as u64, told, "round {round}");
            told
        });
        all += told;
    }
    assert!(all > 0);
}
