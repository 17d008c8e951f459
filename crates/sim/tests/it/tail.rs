//! The log's tail has a bound: small commits over several tables never pass it, and a disk too full to shorten it fails
//! them cleanly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mainstem_sim::SimDisk;
use mainstem_storage::Result;
use mainstem_storage::catalog::TableDefinition;
use mainstem_storage::database::Database;
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::TableOptions;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;

use crate::stress::{definition, read, write};

const BOUND: u64 = 128 << 10;
/// More than a commit here takes in the log.
const RECORD: u64 = 512;

fn options() -> OpenOptions {
    OpenOptions::new().log_tail_bytes_max(BOUND)
}

/// A table whose deltas nobody freezes but for the log, and whose installs list few segments.
fn create(db: &Database, name: &str, keyed: bool) -> TableId {
    let options = TableOptions { segment_rows: 4_096, delta_rows: 8_192 };
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn.create_table(TableDefinition { options, ..definition(name, keyed) }).unwrap();
    txn.commit().unwrap();
    id
}

fn insert(db: &Database, table: TableId, rows: impl Iterator<Item = i64>) -> Result<()> {
    let mut txn = db.begin(TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() })?;
    write(&mut txn, table, &[], &rows.map(|id| (id, -id)).collect::<Vec<_>>())?;
    txn.commit().map(|_| ())
}

fn count(db: &Database, table: TableId) -> usize {
    read(&db.begin(TransactionMode::default()).unwrap(), table, None).unwrap().len()
}

#[test]
fn small_commits_never_pass_the_bound() {
    const WRITERS: i64 = 3;
    const COMMITS: i64 = 2_500;
    let disk = SimDisk::new();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let idle: Vec<TableId> = (0..4).map(|n| create(&db, &format!("idle{n}"), n % 2 == 0)).collect();
    let busy: Vec<TableId> = (0..3).map(|n| create(&db, &format!("busy{n}"), n % 2 == 0)).collect();
    idle.iter().skip(1).for_each(|table| insert(&db, *table, 0..1).unwrap());
    // Nothing of it is in the log, and nobody waits for it.
    let mut open = db.begin(TransactionMode::default()).unwrap();
    write(&mut open, busy[0], &[], &[(-1, 1)]).unwrap();
    let (done, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = db.log_status().position.0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                longest.fetch_max(db.log_tail_bytes(), Ordering::AcqRel);
                std::thread::yield_now();
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, busy, idle, longest) = (&db, &busy, &idle, &longest);
                scope.spawn(move || {
                    for commit in 0..COMMITS {
                        let first = (writer * COMMITS + commit) * 8;
                        // Each table rests for a while.
                        let table = busy[(commit / 100 + writer) as usize % busy.len()];
                        insert(db, table, first..first + 8).unwrap();
                        longest.fetch_max(db.log_tail_bytes(), Ordering::AcqRel);
                        if commit == COMMITS / 2 {
                            insert(db, idle[writer as usize], first..first + 1).unwrap();
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Release);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    let (written, longest) = (db.log_status().position.0 - begun, longest.load(Ordering::Acquire));
    assert!(written > 4 * BOUND, "{written} bytes of log are too few for this test");
    assert!(longest <= BOUND + RECORD, "{longest} bytes of tail");
    assert!(longest > BOUND / 8, "{longest} bytes of tail");
    open.commit().unwrap();

    // A killed process leaves no more to replay.
    let found = disk.process_kill();
    let db = Database::open_on(Arc::new(found), options()).unwrap();
    assert!(db.log_tail_bytes() <= BOUND + RECORD);
    assert_eq!(busy.iter().map(|table| count(&db, *table)).sum::<usize>() as i64, WRITERS * COMMITS * 8 + 1);
    assert_eq!(idle.iter().map(|table| count(&db, *table)).collect::<Vec<_>>(), [1, 2, 2, 1]);
}

#[test]
fn a_full_disk_ends_the_wait_for_a_shorter_tail() {
    let disk = SimDisk::new();
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let (table, other) = (create(&db, "t", true), create(&db, "other", false));
    insert(&db, other, 0..1).unwrap();
    let mut told = 0;
    for round in 0..3 {
        disk.limit_capacity(disk.used_bytes());
        let refused = loop {
            match insert(&db, table, told..told + 4) {
                Ok(()) => told += 4,
                Err(e) => break e,
            }
            assert!(db.log_tail_bytes() <= BOUND + RECORD, "round {round}");
        };
        assert_eq!(refused.sqlstate(), "53100", "{refused}");
        assert!(refused.message().contains(&format!("log_tail_bytes_max, {BOUND}")), "{refused}");
        assert!(refused.message().contains("make room on the disk"), "{refused}");
        // What the background gave back in the meantime is gone, too.
        disk.limit_capacity(disk.used_bytes());
        assert_eq!(insert(&db, other, 1..2).unwrap_err().sqlstate(), "53100");
        assert_eq!((count(&db, table) as i64, count(&db, other)), (told, 1), "reads go on");
        // With room again the next commit waits for the tail, and is let through.
        disk.repair();
        insert(&db, table, told..told + 4).unwrap();
        told += 4;
        assert!(db.log_tail_bytes() <= BOUND, "round {round}");
    }
    db.close().unwrap();
    drop(db);
    let db = Database::open_on(Arc::new(disk), options()).unwrap();
    assert_eq!((count(&db, table) as i64, count(&db, other)), (told, 1));
}

/// A session that wrote nothing has nothing to mark: a full disk does not fail its close.
#[test]
fn a_full_disk_fails_only_closes_that_have_something_to_mark() {
    let open = |disk: &SimDisk| Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = create(&db, "t", true);
    insert(&db, table, 0..4).unwrap();
    db.close().unwrap();
    drop(db);
    for _ in 0..3 {
        let db = open(&disk);
        disk.limit_capacity(disk.used_bytes());
        assert_eq!(count(&db, table), 4);
        db.close().unwrap();
        disk.repair();
    }
    let db = open(&disk);
    insert(&db, table, 4..6).unwrap();
    disk.limit_capacity(disk.used_bytes());
    for _ in 0..2 {
        let error = db.close().unwrap_err();
        assert_eq!(error.sqlstate(), "53100", "{error}");
        assert!(error.message().contains("LOG_END"), "{error}");
        assert_eq!(db.begin(TransactionMode::default()).unwrap_err().sqlstate(), "57P01", "it is closed all the same");
    }
    // With room again it can be tried again.
    disk.repair();
    db.close().unwrap();
    db.close().unwrap();
    let closed = disk.process_kill();
    closed.damage("wal/0000000002.log", |bytes| bytes.truncate(bytes.len() - 1)).unwrap();
    let error = Database::open_on(Arc::new(closed), options()).unwrap_err();
    assert!(error.message().contains("LOG_END"), "{error}");
}
