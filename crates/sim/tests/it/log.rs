//! The log on a disk that loses power or fails at every call: what was acknowledged is there, what is there was
//! appended, and a recovery interrupted anywhere comes to the same.

use std::sync::Arc;

use mainstem_sim::{FaultKind, SimDisk};
use mainstem_storage::disk::Disk;
use mainstem_storage::ids::{CommitTs, LogPosition, SchemaVersion};
use mainstem_storage::settings::Synchronous::{self, Full, Normal, Off};
use mainstem_storage::wal::{Log, LogReader, LogStart, NewRecord, RecordKind, TailState};
use mainstem_storage::{ErrorKind, Result};

const START: LogStart = LogStart { log_id: 77, file_number: 1, position: LogPosition(0), ts: CommitTs(0) };

/// What the user of the log knows for certain.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The log was made.
    created: bool,
    /// Appended; nothing later may be found.
    appended: u64,
    /// Acknowledged in mode `full`, or fsynced: survive a power cut.
    durable: u64,
    /// Acknowledged in mode `normal`: survive a killed process.
    written: u64,
    /// Where a checkpoint lets replay start, and the last record below it.
    from: (LogPosition, u64),
}

impl Known {
    fn nothing() -> Self {
        Self { created: false, appended: 0, durable: 0, written: 0, from: (START.position, 0) }
    }
}

fn payload(ts: u64, bytes: usize) -> Vec<u8> {
    // 251 is prime: the bytes differ from block to block.
    let pattern: Vec<u8> = (0..251).map(|i: u64| i.wrapping_mul(ts * 2 + 1) as u8).collect();
    let mut payload = pattern.repeat(bytes / 251 + 1);
    payload.truncate(bytes);
    payload
}

fn put(log: &Log, ts: u64, level: Synchronous, bytes: usize) -> Result<()> {
    let reservation = log.reserve(bytes)?;
    let (kind, schema_version) = (RecordKind::Commit, SchemaVersion(1));
    let payload = payload(ts, bytes);
    log.append(reservation, NewRecord { ts: CommitTs(ts), kind, schema_version, level, payload: &payload })?;
    log.mark_applied(CommitTs(ts));
    Ok(())
}

/// Appends `records` records whose sizes come from `bytes_of`, in mixed modes, until the first error.
fn work(disk: &SimDisk, records: u64, bytes_of: fn(u64) -> usize, known: &mut Known) -> Result<()> {
    let log = Log::create(Arc::new(disk.clone()), START)?;
    known.created = true;
    let learn = |log: &Log, known: &mut Known| {
        known.durable = known.durable.max(log.fsynced().0);
        known.written = known.written.max(log.fsynced().0);
    };
    for ts in 1..=records {
        let level = [Full, Off, Normal, Normal, Off, Full, Off][ts as usize % 7];
        let appended = put(&log, ts, level, bytes_of(ts));
        known.appended = log.applied().0;
        appended?;
        if ts % 3 != 0 {
            log.wait_visible(CommitTs(ts))?;
            match level {
                Full => known.durable = ts,
                Normal => known.written = ts,
                Off => {}
            }
        }
        learn(&log, known);
        match ts % 11 {
            4 => log.flush(Off)?,
            8 => log.flush(Normal)?,
            10 => {
                log.sync_all()?;
                learn(&log, known);
                known.from = (log.position_of_next(), ts);
                log.drop_before(known.from.0)?;
            }
            _ => {}
        }
        learn(&log, known);
    }
    Ok(())
}

/// Reads the log and compares it with what was appended.
fn check(disk: &SimDisk, bytes_of: fn(u64) -> usize, known: &Known, at_least: u64) -> TailState {
    let mut reader = LogReader::open(disk, known.from.0).unwrap();
    let mut expected = known.from.1;
    for record in reader.by_ref() {
        let record = record.unwrap();
        expected += 1;
        assert_eq!(record.ts, CommitTs(expected));
        assert!(record.payload == payload(expected, bytes_of(expected)));
    }
    assert!(expected >= at_least, "record {expected} is the last one, {at_least} was acknowledged: {known:?}");
    assert!(expected <= known.appended, "record {expected} was never appended");
    reader.finish().unwrap()
}

/// Recovers with the power going at each sync of the recovery in turn, then writes on.
fn recover(mut disk: SimDisk, bytes_of: fn(u64) -> usize, known: &Known, seed: u64) {
    let before = check(&disk, bytes_of, known, known.durable);
    let last = before.last_ts.map_or(known.from.1, |ts| ts.0);
    for sync in 1..10 {
        let tail = check(&disk, bytes_of, known, last);
        assert_eq!(tail.last_ts.map_or(known.from.1, |ts| ts.0), last, "an interrupted recovery changed something");
        disk.cut_at_sync(disk.syncs() + sync);
        match Log::create(Arc::new(disk.clone()), tail.next_start(1_000 + sync, CommitTs(last))) {
            Err(_) => disk = disk.power_cut(seed + sync),
            Ok(log) => {
                disk.repair();
                put(&log, last + 1, Full, bytes_of(last + 1)).unwrap();
                log.wait_visible(CommitTs(last + 1)).unwrap();
                let known = Known { appended: last + 1, ..*known };
                check(&disk.power_cut(seed), bytes_of, &known, last + 1);
                return;
            }
        }
    }
    panic!("the recovery took ten syncs");
}

fn small(ts: u64) -> usize {
    if ts.is_multiple_of(17) { 50_000 } else { 29 * (ts as usize % 23) }
}

/// A file holds four of these.
fn large(ts: u64) -> usize {
    if ts.is_multiple_of(2) { 5 << 20 } else { 100 }
}

/// Cuts the power at every sync that `records` records make, `seeds` times each.
fn crash_at_every_sync(records: u64, bytes_of: fn(u64) -> usize, seeds: u64) {
    let disk = SimDisk::new();
    work(&disk, records, bytes_of, &mut Known::nothing()).unwrap();
    let syncs = disk.syncs();
    assert!(syncs > 5);
    for sync in 1..=syncs {
        let disk = SimDisk::new();
        disk.cut_at_sync(sync);
        let mut known = Known::nothing();
        work(&disk, records, bytes_of, &mut known).unwrap_err();
        for seed in 0..seeds {
            let found = disk.power_cut(sync * 1_000 + seed);
            if known.created {
                recover(found, bytes_of, &known, seed);
            } else {
                // Nobody was told that there is a log: it is made again.
                Log::create(Arc::new(found.clone()), START).unwrap();
                check(&found.power_cut(seed), bytes_of, &known, 0);
            }
        }
    }
}

#[test]
fn the_power_goes_at_every_sync() {
    crash_at_every_sync(80, small, 12);
}

#[test]
fn the_power_goes_at_every_sync_while_files_change() {
    crash_at_every_sync(12, large, 6);
}

/// The power goes between syncs, with everything from nothing to all of the unsynced bytes on the disk, in any state.
#[test]
fn the_power_goes_after_any_record() {
    for records in (1..120).step_by(3) {
        for seed in 0..6 {
            let disk = SimDisk::new();
            let mut known = Known::nothing();
            work(&disk, records, small, &mut known).unwrap();
            recover(disk.power_cut(seed * 977 + records), small, &known, seed);
        }
    }
}

#[test]
fn a_killed_process_loses_only_what_was_never_handed_on() {
    for records in 1..60 {
        let disk = SimDisk::new();
        let mut known = Known::nothing();
        work(&disk, records, small, &mut known).unwrap();
        let found = disk.process_kill();
        check(&found, small, &known, known.written);
        // Opened again, and then the power goes: what the new process found and built on is durable.
        let tail = check(&found, small, &known, known.written);
        let last = tail.last_ts.map_or(known.from.1, |ts| ts.0);
        Log::create(Arc::new(found.clone()), tail.next_start(5, CommitTs(last))).unwrap();
        check(&found.power_cut(records), small, &known, last);
    }
}

/// Every call fails once, or it and all after it do: the log says so, keeps what it acknowledged, and on a full disk
/// that was noticed in time goes on.
#[test]
fn every_call_fails() {
    let disk = SimDisk::new();
    work(&disk, 40, small, &mut Known::nothing()).unwrap();
    for call in 1..=disk.calls() {
        for (kind, for_ever) in
            [(FaultKind::Io, false), (FaultKind::Io, true), (FaultKind::Full, false), (FaultKind::Full, true)]
        {
            let disk = SimDisk::new();
            if for_ever {
                disk.fail_all_from(call, kind)
            } else {
                disk.fail_at(call, kind)
            }
            let mut known = Known::nothing();
            let worked = work(&disk, 40, small, &mut known);
            if let Err(error) = worked {
                let expected = [ErrorKind::Io, ErrorKind::Full, ErrorKind::Closed];
                assert!(expected.contains(&error.kind()), "{error:?} after {:?}", disk.recent_calls());
            }
            disk.repair();
            if known.created {
                let killed = disk.process_kill();
                check(&killed, small, &known, known.written);
                recover(killed.power_cut(call), small, &known, call);
            }
        }
    }
}

/// A disk that fills up: each commit succeeds whole or fails with Full and changes nothing; with space again, it goes
/// on.
#[test]
fn a_full_disk_refuses_commits_and_loses_nothing() {
    let disk = SimDisk::new();
    disk.limit_capacity(5 << 20);
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    let mut last = 0;
    let error = loop {
        match put(&log, last + 1, Full, 300_000) {
            Ok(()) => last += 1,
            Err(error) => break error,
        }
        log.wait_visible(CommitTs(last)).unwrap();
    };
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(last > 10 && !log.is_poisoned() && log.applied() == CommitTs(last));
    put(&log, last + 1, Full, 300_000).unwrap_err();
    disk.limit_capacity(50 << 20);
    put(&log, last + 1, Full, 300_000).unwrap();
    log.wait_visible(CommitTs(last + 1)).unwrap();
    let known = Known { appended: last + 1, created: true, ..Known::nothing() };
    check(&disk.power_cut(1), |_| 300_000, &known, last + 1);
}

/// A checkpoint's files below its start are gone, the rest is readable without them.
#[test]
fn dropped_files_are_gone() {
    let disk = SimDisk::new();
    let mut known = Known::nothing();
    work(&disk, 24, large, &mut known).unwrap();
    assert!(known.from.1 >= 20);
    let files = disk.list("wal").unwrap();
    assert!(files.len() <= 2 && !files.contains(&"0000000001.log".to_owned()), "{files:?}");
}

/// A new file was made but nothing written to it: the one before it stays, though a checkpoint needs none of its
/// records.
#[test]
fn a_file_stays_until_the_next_one_is_begun() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    for ts in 1..=4 {
        put(&log, ts, Full, 5 << 20).unwrap();
    }
    log.sync_all().unwrap();
    let from = log.position_of_next();
    let _space = log.reserve(1).unwrap();
    assert_eq!(log.status().files, 2);
    log.drop_before(from).unwrap();
    let known = Known { created: true, appended: 4, durable: 4, written: 4, from: (from, 4) };
    for seed in 0..10 {
        recover(disk.process_kill().power_cut(seed), |_| 0, &known, seed);
    }
}

/// Records that use up what is set aside for a file at first, and then little by little.
fn filling(ts: u64) -> usize {
    if ts <= 58 { 17_500 } else { 1 }
}

/// A killed process left this, and not a byte of the disk is free but what the log's files have set aside.
struct Left {
    disk: SimDisk,
    capacity_bytes: u64,
    known: Known,
}

impl Left {
    /// What is there after `records` records, or as many as there is room for, with space for one more set aside, or
    /// not; then opened again, and killed at once.
    fn new(records: u64, bytes_of: fn(u64) -> usize, reserved: bool, opened_again: bool) -> Self {
        let disk = SimDisk::new();
        let log = Log::create(Arc::new(disk.clone()), START).unwrap();
        let mut records = records;
        for ts in 1..=records {
            if ts == 2 && records == u64::MAX {
                disk.limit_capacity(disk.used_bytes());
            }
            if put(&log, ts, Full, bytes_of(ts)).is_err() {
                records = ts - 1;
                break;
            }
            log.wait_visible(CommitTs(ts)).unwrap();
            log.prepare_next().unwrap();
        }
        if reserved {
            drop(log.reserve(1).unwrap());
        }
        let known = Known { created: true, appended: records, durable: records, written: records, ..Known::nothing() };
        let disk = disk.process_kill();
        if opened_again {
            let log = Self::open(&disk, bytes_of, &known, 78).unwrap();
            if reserved {
                drop(log.reserve(1).unwrap());
            }
        }
        Self { capacity_bytes: disk.used_bytes(), disk, known }
    }

    /// The disk as it was left, full.
    fn disk(&self) -> SimDisk {
        let disk = self.disk.process_kill();
        disk.limit_capacity(self.capacity_bytes);
        disk
    }

    fn open(disk: &SimDisk, bytes_of: fn(u64) -> usize, known: &Known, log_id: u64) -> Result<Log> {
        let tail = check(disk, bytes_of, known, known.durable);
        assert_eq!(tail.last_ts.map_or(0, |ts| ts.0), known.durable);
        Log::create(Arc::new(disk.clone()), tail.next_start(log_id, CommitTs(known.durable)))
    }

    /// Opens what is on `disk`, full as it is, and writes to it when there is room again; then nothing is lost, least
    /// of all unseen.
    fn opens(&self, disk: &SimDisk, bytes_of: fn(u64) -> usize) {
        let log =
            Self::open(disk, bytes_of, &self.known, 79).unwrap_or_else(|e| panic!("{e}: {:?}", disk.recent_calls()));
        disk.repair();
        let next = self.known.durable + 1;
        put(&log, next, Full, bytes_of(next)).unwrap();
        log.wait_visible(CommitTs(next)).unwrap();
        let known = Known { appended: next, durable: next, written: next, ..self.known };
        check(&disk.power_cut(next), bytes_of, &known, next);
        let names = disk.process_kill().list("wal").unwrap();
        if let [.., _, last] = names.as_slice() {
            let lost = disk.process_kill();
            lost.remove(&format!("wal/{last}")).unwrap();
            let found = LogReader::open(&lost, START.position).and_then(|reader| reader.finish());
            let error = found.expect_err("the last file's loss goes unseen");
            assert!(error.kind() == ErrorKind::Corrupt && error.message().contains(last), "{error}");
        }
        Self::open(&disk.process_kill(), bytes_of, &known, 80).unwrap();
    }
}

/// However little is free: opened, begun anew in its place, with the power going at every sync of it and faults at
/// every call.
#[test]
fn a_full_disk_keeps_no_log_closed() {
    /// How many records there are, of what size, and whether they are few.
    type Case = (u64, fn(u64) -> usize, bool);
    let cases: [Case; 5] =
        [(0, small, true), (1, small, true), (30, small, true), (5, large, false), (u64::MAX, filling, false)];
    for (records, bytes_of, few) in cases {
        for (reserved, opened_again) in [(false, false), (true, false), (false, true), (true, true)] {
            let left = Left::new(records, bytes_of, reserved, opened_again);
            left.opens(&left.disk(), bytes_of);
            if !few {
                break;
            }
            for sync in 1.. {
                let disk = left.disk();
                disk.cut_at_sync(disk.syncs() + sync);
                if Left::open(&disk, bytes_of, &left.known, 81).is_ok() {
                    assert!(sync > 2);
                    break;
                }
                for seed in 0..2 {
                    let found = disk.power_cut(sync * 100 + seed);
                    found.limit_capacity(left.capacity_bytes);
                    left.opens(&found, bytes_of);
                }
            }
            let disk = left.disk();
            let records = left.known.durable;
            let tail = check(&disk, bytes_of, &left.known, records);
            let first = disk.calls();
            drop(Log::create(Arc::new(disk.clone()), tail.next_start(82, CommitTs(records))).unwrap());
            for call in 1..=disk.calls() - first {
                let disk = left.disk();
                let tail = check(&disk, bytes_of, &left.known, records);
                let first = disk.calls();
                disk.fail_at(first + call, FaultKind::Io);
                let opened = Log::create(Arc::new(disk.clone()), tail.next_start(83, CommitTs(records)));
                assert!(opened.is_err() || call > 1, "{:?}", disk.recent_calls());
                let found = disk.process_kill();
                // What a failed fsync has forgotten only a copy brings back, for which there has to be room.
                let failed = format!("{}: sync wal/", first + call);
                if !disk.recent_calls().iter().any(|call| call.starts_with(&failed)) {
                    found.limit_capacity(left.capacity_bytes);
                }
                left.opens(&found, bytes_of);
            }
        }
    }
}
