//! Many threads commit at once: one write and fsync serves all who wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;

use super::faulty_disk::{FaultyDisk, faulty_log};
use super::{START, payload, put, read};
use crate::error::sqlstate;
use crate::ids::{CommitTs, SchemaVersion};
use crate::settings::Synchronous::{self, Full, Normal, Off};
use crate::wal::{Log, NewRecord, RecordKind};

/// A commit as `commit` does it: space, then under the lock timestamp, append, apply; then the wait.
fn commit(log: &Log, lock: &Mutex<u64>, level: Synchronous, bytes: usize) -> crate::Result<u64> {
    commit_and_tell(log, lock, level, bytes, || ())
}

/// As [`commit`], which calls `appended` before it waits.
fn commit_and_tell(
    log: &Log,
    lock: &Mutex<u64>,
    level: Synchronous,
    bytes: usize,
    appended: impl FnOnce(),
) -> crate::Result<u64> {
    let reservation = log.reserve(bytes)?;
    let ts = {
        let mut clock = lock.lock();
        let ts = *clock + 1;
        let payload = payload(ts, bytes);
        let schema_version = SchemaVersion(0);
        let record = NewRecord { ts: CommitTs(ts), kind: RecordKind::Commit, schema_version, level, payload: &payload };
        log.append(reservation, record)?;
        *clock = ts;
        log.mark_applied(CommitTs(ts));
        ts
    };
    appended();
    log.wait_visible(CommitTs(ts))?;
    assert!(log.visible().0 >= ts);
    Ok(ts)
}

/// All who come while an fsync is under way share the next one.
#[test]
fn one_fsync_serves_many_commits() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 50;
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    let lock = Mutex::new(START.ts.0);
    let before = log.status().syncs;
    for round in 1..=ROUNDS {
        disk.faults.sync_ends_at.store(round * THREADS, SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let appended = || _ = disk.faults.appended.fetch_add(1, SeqCst);
                    commit_and_tell(&log, &lock, Full, 40, appended).unwrap();
                });
            }
        });
    }
    let syncs = log.status().syncs - before;
    assert_eq!(log.visible().0, START.ts.0 + ROUNDS * THREADS);
    assert!(syncs <= 2 * ROUNDS, "{syncs} syncs for {ROUNDS} rounds");
}

#[test]
fn commits_of_all_levels_become_visible_in_order() {
    let disk = FaultyDisk::default();
    disk.faults.sync_micros.store(300, SeqCst);
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    let lock = Mutex::new(START.ts.0);
    let told = Arc::new(AtomicU64::new(0));
    let tell = Arc::clone(&told);
    log.on_visible(Box::new(move |ts| assert!(tell.swap(ts.0, SeqCst) < ts.0, "always growing"))).unwrap();
    let (threads, each) = (8, 100);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (log, lock, told) = (&log, &lock, &told);
            scope.spawn(move || {
                for i in 0..each {
                    let level = [Full, Full, Normal, Off][(thread + i) % 4];
                    let ts = commit(log, lock, level, 40 + i * thread).unwrap();
                    assert!(told.load(SeqCst) >= ts, "the observer knows before the committer");
                }
            });
        }
        // The background thread.
        scope.spawn(|| {
            while log.visible().0 < START.ts.0 + (threads * each) as u64 {
                log.flush(Off).unwrap();
                std::thread::yield_now();
            }
        });
    });
    log.sync_all().unwrap();
    let status = log.status();
    let commits = (threads * each) as u64;
    assert_eq!((status.commits, status.visible.0), (commits, START.ts.0 + commits));
    let (records, _) = read(&disk.live, START.position).unwrap();
    assert_eq!(records.len() as u64, commits);
    assert!(records.windows(2).all(|two| two[0].ts.next() == two[1].ts));
}

#[test]
fn a_failure_is_told_to_all_who_wait() {
    for append in [true, false] {
        let (disk, log) = faulty_log();
        disk.faults.sync_micros.store(100, SeqCst);
        let lock = Mutex::new(START.ts.0);
        let acknowledged = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let error = loop {
                        match commit(&log, &lock, Full, 100) {
                            Ok(ts) => acknowledged.fetch_max(ts, SeqCst),
                            Err(error) => break error,
                        };
                    };
                    let expected = [sqlstate::OUTCOME_UNKNOWN, sqlstate::CLOSED];
                    assert!(expected.contains(&error.sqlstate()), "{error}");
                });
            }
            while acknowledged.load(SeqCst) < START.ts.0 + 20 {
                std::thread::yield_now();
            }
            if append { disk.faults.append.store(true, SeqCst) } else { disk.faults.sync.store(true, SeqCst) }
        });
        let acknowledged = acknowledged.load(SeqCst);
        assert_eq!(log.visible().0, acknowledged, "visible stays where it was");
        let durable = read(&*disk.synced.lock(), START.position).unwrap().1.last_ts.unwrap();
        assert!(durable.0 >= acknowledged);
    }
}

/// A record that is written and fsynced, but not yet applied, is not visible: a reader would miss it.
#[test]
fn visible_waits_for_the_change_to_be_applied() {
    let (_, log) = faulty_log();
    let reservation = log.reserve(4).unwrap();
    let schema_version = SchemaVersion(0);
    let record = NewRecord { ts: CommitTs(11), kind: RecordKind::Commit, schema_version, level: Off, payload: b"late" };
    log.append(reservation, record).unwrap();
    log.sync_all().unwrap();
    assert_eq!((log.fsynced(), log.visible()), (CommitTs(11), CommitTs(10)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait_visible(CommitTs(11)));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(!waiting.is_finished());
        log.mark_applied(CommitTs(11));
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(log.visible(), CommitTs(11));

    put(&log, 12, Full, b"x").unwrap();
    log.poison(crate::Error::internal("a panic under the commit lock"));
    let error = log.wait_visible(CommitTs(12)).unwrap_err();
    assert!(error.message().contains("panic under the commit lock"), "{error}");
}

/// `off` outruns the disk by a bounded amount even if nobody flushes.
#[test]
fn appended_bytes_do_not_pile_up() {
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    for ts in 11..50 {
        put(&log, ts, Off, &payload(ts, 1 << 20)).unwrap();
        let status = log.status();
        assert!(status.position.0 - status.written_position.0 <= (10 << 20), "{status:?}");
    }
    assert_eq!(log.visible(), CommitTs(49));
}
