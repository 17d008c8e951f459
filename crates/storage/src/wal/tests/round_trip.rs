use std::sync::Arc;

use proptest::prelude::*;

use super::{START, new_log, payload, put, read};
use crate::disk::{Disk, MemDisk, RealDisk};
use crate::ids::{CommitTs, LogPosition, SchemaVersion};
use crate::limits::{WAL_BLOCK_BYTES, WAL_FILE_BYTES, WAL_RECORD_BYTES_MAX};
use crate::settings::Synchronous::{Full, Normal, Off};
use crate::wal::{Log, RecordKind};

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let block = WAL_BLOCK_BYTES;
    let size = prop_oneof![
        4 => 0..200usize,
        2 => (block - 120)..(block + 20),
        1 => 0..4 * block,
    ];
    prop::collection::vec(size, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_of_any_size_come_back(sizes in sizes(), from in any::<prop::sample::Index>()) {
        let disk = MemDisk::new();
        let log = new_log(&disk);
        let mut positions = Vec::new();
        for (ts, size) in (11..).zip(&sizes) {
            positions.push(put(&log, ts, Full, &payload(ts, *size)).unwrap());
        }
        log.sync_all().unwrap();
        let skipped = from.index(sizes.len());
        let (records, tail) = read(&disk, positions[skipped]).unwrap();
        prop_assert_eq!(records.len(), sizes.len() - skipped);
        for (i, record) in (skipped..).zip(&records) {
            let ts = 11 + i as u64;
            prop_assert_eq!(record.ts, CommitTs(ts));
            prop_assert_eq!(record.position, positions[i]);
            prop_assert_eq!(record.schema_version, SchemaVersion(ts / 7));
            prop_assert_eq!(record.kind == RecordKind::Install, ts.is_multiple_of(5));
            prop_assert!(record.payload == payload(ts, sizes[i]));
            prop_assert!(record.wall_clock > 1_700_000_000_000_000);
        }
        prop_assert_eq!(tail.valid_end, log.position_of_next());
        prop_assert_eq!(tail.last_ts, Some(log.visible()));
        prop_assert_eq!(tail.torn_bytes, 0);
        let (none, _) = read(&disk, tail.valid_end).unwrap();
        prop_assert!(none.is_empty());
    }
}

#[test]
fn a_new_log_is_empty() {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    assert_eq!((log.visible(), log.applied(), log.fsynced()), (CommitTs(10), CommitTs(10), CommitTs(10)));
    let (records, tail) = read(&disk, START.position).unwrap();
    assert!(records.is_empty());
    assert_eq!((tail.valid_end, tail.file_number, tail.last_ts), (log.position_of_next(), 1, None));
}

/// Records over several files, on a real directory, with old files dropped and the log reopened now and then.
#[test]
fn files_follow_one_another_and_old_ones_go() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(dir.path(), true).unwrap());
    let mut log = Log::create(Arc::clone(&disk) as Arc<dyn Disk>, START).unwrap();
    let bytes = 3 << 20;
    let mut expected = Vec::new();
    let mut ts = 11;
    for round in 0..4u64 {
        for _ in 0..8 {
            let level = [Full, Normal, Off][ts as usize % 3];
            expected.push((ts, put(&log, ts, level, &payload(ts, bytes)).unwrap()));
            log.wait_visible(CommitTs(ts)).unwrap();
            ts += 1;
        }
        log.sync_all().unwrap();
        let status = log.status();
        assert!(status.files >= 2 && status.fsynced_position == status.position && status.poisoned.is_none());
        let (records, tail) = read(&*disk, expected[0].1).unwrap();
        let found: Vec<(u64, LogPosition)> = records.iter().map(|r| (r.ts.0, r.position)).collect();
        assert_eq!(found, expected);
        assert!(records.iter().all(|r| r.payload == payload(r.ts.0, bytes)));
        assert_eq!((tail.valid_end, tail.torn_bytes), (log.position_of_next(), 0));

        // A checkpoint that needs the last two records only.
        expected.drain(..expected.len() - 2);
        log.drop_before(expected[0].1).unwrap();
        let left = log.status();
        assert!(left.files <= 2 && left.bytes <= 2 * (WAL_FILE_BYTES + 2 * bytes as u64), "{left:?}");
        assert_eq!(disk.list("wal").unwrap().len() as u64, left.files);

        // Closed and opened again: another incarnation, another log id.
        let start = tail.next_start(round, tail.last_ts.unwrap());
        log = Log::create(Arc::clone(&disk) as Arc<dyn Disk>, start).unwrap();
        assert_eq!(log.visible(), CommitTs(ts - 1));
    }
}

#[test]
fn a_log_in_memory_shows_what_is_applied() {
    let log = Log::disabled();
    put(&log, 1, Full, b"x").unwrap();
    assert_eq!((log.visible(), log.fsynced()), (CommitTs(1), CommitTs(1)));
    log.wait_visible(CommitTs(1)).unwrap();
    log.sync_all().unwrap();
    log.flush(Off).unwrap();
    log.drop_before(LogPosition(5)).unwrap();
    assert!(put(&log, 1, Full, b"x").is_err(), "timestamps grow");
}

#[test]
fn wrong_calls_are_refused_and_change_nothing() {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    put(&log, 11, Full, b"x").unwrap();
    let before = log.position_of_next();
    assert!(put(&log, 11, Full, b"x").is_err());
    assert!(log.reserve(WAL_RECORD_BYTES_MAX + 1).is_err());
    let small = log.reserve(10).unwrap();
    let record = crate::wal::NewRecord {
        ts: CommitTs(12),
        kind: RecordKind::Commit,
        schema_version: SchemaVersion(0),
        level: Full,
        payload: &[0; 1_000],
    };
    assert!(log.append(small, record).is_err());
    assert!(log.wait_visible(CommitTs(12)).is_err());
    assert_eq!(log.position_of_next(), before);
    log.wait_visible(CommitTs(11)).unwrap();
    assert_eq!(read(&disk, START.position).unwrap().0.len(), 1);
}
