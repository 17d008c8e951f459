//! A disk in memory that fails or dawdles when told to, and remembers what was synced; and what the log does on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::{START, payload, put, read};
use crate::disk::{Disk, DiskFile, DiskLock, MemDisk};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::CommitTs;
use crate::settings::Synchronous::{self, Full, Normal, Off};
use crate::wal::Log;
use crate::wal::format::WAL_DIR;

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub append: AtomicBool,
    pub reserve: AtomicBool,
    pub sync: AtomicBool,
    pub create: AtomicBool,
    /// Calls that `create` has failed.
    pub created: AtomicU64,
    pub sync_micros: AtomicU64,
    /// A sync ends when so many commits have been appended.
    pub sync_ends_at: AtomicU64,
    /// Counted by the test.
    pub appended: AtomicU64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct FaultyDisk {
    pub live: MemDisk,
    pub faults: Arc<Faults>,
    /// A copy made at the last sync.
    pub synced: Arc<Mutex<MemDisk>>,
    /// Whether to make it: large tests do not look.
    pub keep_synced: bool,
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn DiskFile>,
    disk: FaultyDisk,
}

fn fail(fault: &AtomicBool, kind: std::io::ErrorKind) -> Result<()> {
    if fault.load(SeqCst) { Err(Error::io("do something to", "a file", kind.into())) } else { Ok(()) }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        fail(&self.faults.create, std::io::ErrorKind::StorageFull).inspect_err(|_| {
            self.faults.created.fetch_add(1, SeqCst);
        })?;
        Ok(Arc::new(FaultyFile { file: self.live.create(path)?, disk: self.clone() }))
    }
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.live.open(path)
    }
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(FaultyFile { file: self.live.open_to_append(path)?, disk: self.clone() }))
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.live.rename(from, to)
    }
    fn remove(&self, path: &str) -> Result<()> {
        self.live.remove(path)
    }
    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.live.truncate(path, len)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.live.list(dir)
    }
    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.live.list_others(dir)
    }
    fn create_dir(&self, dir: &str) -> Result<()> {
        self.live.create_dir(dir)
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.live.sync_dir(dir)
    }
    fn exists(&self, path: &str) -> Result<bool> {
        self.live.exists(path)
    }
    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.live.lock(exclusive)
    }
}

impl DiskFile for FaultyFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        fail(&self.disk.faults.append, std::io::ErrorKind::Other).inspect_err(|_| {
            self.file.append(&bytes[..bytes.len() / 2]).unwrap();
        })?;
        self.file.append(bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn cut(&self, len: u64) -> Result<()> {
        self.file.cut(len)
    }
    fn reserve(&self, len: u64) -> Result<()> {
        fail(&self.disk.faults.reserve, std::io::ErrorKind::StorageFull)?;
        self.file.reserve(len)
    }
    fn sync(&self) -> Result<()> {
        std::thread::sleep(Duration::from_micros(self.disk.faults.sync_micros.load(SeqCst)));
        while self.disk.faults.appended.load(SeqCst) < self.disk.faults.sync_ends_at.load(SeqCst) {
            std::thread::yield_now();
        }
        fail(&self.disk.faults.sync, std::io::ErrorKind::Other)?;
        if self.disk.keep_synced {
            *self.disk.synced.lock() = self.disk.live.copy();
        }
        Ok(())
    }
}

pub(super) fn faulty_log() -> (FaultyDisk, Log) {
    let disk = FaultyDisk { keep_synced: true, ..FaultyDisk::default() };
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    (disk, log)
}

fn last_ts(disk: &MemDisk) -> u64 {
    read(disk, START.position).unwrap().1.last_ts.map_or(START.ts.0, |ts| ts.0)
}

/// Every failure of a write or sync: `visible` stays, those who wait learn that nothing is known, nothing is written
/// again.
#[test]
fn a_failed_write_or_sync_ends_writing() {
    for (name, level) in [("append", Full), ("append", Normal), ("sync", Full)] {
        let (disk, log) = faulty_log();
        put(&log, 11, Full, b"safe").unwrap();
        log.wait_visible(CommitTs(11)).unwrap();
        let unused = log.reserve(10).unwrap();
        put(&log, 12, level, &payload(12, 100)).unwrap();
        let fault = if name == "append" { &disk.faults.append } else { &disk.faults.sync };
        fault.store(true, SeqCst);
        let error = log.wait_visible(CommitTs(12)).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Closed, sqlstate::OUTCOME_UNKNOWN), "{error}");
        fault.store(false, SeqCst);

        assert!(log.is_poisoned() && log.status().poisoned.is_some());
        assert_eq!((log.visible(), log.applied(), log.fsynced()), (CommitTs(11), CommitTs(12), CommitTs(11)));
        log.wait_visible(CommitTs(11)).unwrap();
        assert_eq!(log.wait_visible(CommitTs(12)).unwrap_err().sqlstate(), sqlstate::OUTCOME_UNKNOWN);
        for error in [
            log.reserve(1).unwrap_err(),
            log.flush(Off).unwrap_err(),
            log.flush(Normal).unwrap_err(),
            log.sync_all().unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Closed, sqlstate::CLOSED));
        }
        let record = crate::wal::NewRecord {
            ts: CommitTs(13),
            kind: crate::wal::RecordKind::Commit,
            schema_version: crate::ids::SchemaVersion(0),
            level,
            payload: b"late",
        };
        assert!(log.append(unused, record).is_err());
        // A failed write is cut off; after a failed sync the bytes are there, and recovery takes them whole.
        assert_eq!(last_ts(&disk.live), if name == "append" { 11 } else { 12 }, "{name}");
        assert_eq!(last_ts(&disk.synced.lock()), 11);
    }
}

#[test]
fn without_space_nothing_changes_and_later_all_goes_on() {
    let (disk, log) = faulty_log();
    disk.faults.reserve.store(true, SeqCst);
    let before = (log.position_of_next(), log.applied());
    let error = put(&log, 11, Full, b"x").unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::DISK_FULL));
    assert_eq!((log.position_of_next(), log.applied()), before);
    disk.faults.reserve.store(false, SeqCst);
    put(&log, 11, Full, b"x").unwrap();
    // Enough is set aside for a while.
    disk.faults.reserve.store(true, SeqCst);
    put(&log, 12, Full, &payload(12, 100_000)).unwrap();
    log.wait_visible(CommitTs(12)).unwrap();
    put(&log, 13, Full, &payload(13, 2_000_000)).unwrap_err();
    assert!(!log.is_poisoned());
    assert_eq!(last_ts(&disk.synced.lock()), 12);
}

#[test]
fn without_space_for_a_new_file_nothing_changes() {
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    let big = payload(1, 6 << 20);
    for ts in 11..14 {
        put(&log, ts, Off, &big).unwrap();
    }
    for fault in [&disk.faults.create, &disk.faults.reserve] {
        fault.store(true, SeqCst);
        assert_eq!(put(&log, 14, Full, b"x").unwrap_err().kind(), ErrorKind::Full);
        fault.store(false, SeqCst);
    }
    put(&log, 14, Full, b"x").unwrap();
    log.wait_visible(CommitTs(14)).unwrap();
    assert_eq!(log.status().files, 2);
    assert_eq!(last_ts(&disk.live), 14);
}

/// A second file whose first bytes cannot follow, because the first one cannot be fsynced: they must not be written.
#[test]
fn a_file_begins_only_behind_a_fsynced_one() {
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    for ts in 11..14 {
        put(&log, ts, Off, &payload(ts, 6 << 20)).unwrap();
    }
    put(&log, 14, Normal, b"in the second file").unwrap();
    disk.faults.sync.store(true, SeqCst);
    log.wait_visible(CommitTs(14)).unwrap_err();
    assert_eq!(disk.live.open("wal/0000000002.log").unwrap().len().unwrap(), 0);
    assert_eq!(last_ts(&disk.live), 13);
}

#[derive(Debug, Clone)]
enum Step {
    Put(Synchronous, u16),
    /// Reserved, then given back.
    Reserve(u16),
    Wait(prop::sample::Index),
    Flush(Synchronous),
    SyncAll,
}

fn level() -> impl Strategy<Value = Synchronous> {
    prop_oneof![Just(Off), Just(Normal), Just(Full)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (level(), 0..2_000u16).prop_map(|(l, n)| Step::Put(l, n)),
        1 => any::<u16>().prop_map(Step::Reserve),
        3 => any::<prop::sample::Index>().prop_map(Step::Wait),
        2 => level().prop_map(Step::Flush),
        1 => Just(Step::SyncAll),
    ]
}

/// The last record such that it and all before have met their own mode, given how far the disk has come.
fn prefix_durable(levels: &[Synchronous], written: u64, synced: u64) -> u64 {
    let met = |(ts, level): &(u64, &Synchronous)| match level {
        Off => true,
        Normal => *ts <= written,
        Full => *ts <= synced,
    };
    (START.ts.0 + 1..).zip(levels).take_while(met).last().map_or(START.ts.0, |(ts, _)| ts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With modes mixed at will, `visible` is the longest prefix of records that are durable in their own mode.
    #[test]
    fn visible_is_a_prefix_whatever_the_modes(steps in prop::collection::vec(step(), 1..40)) {
        let (disk, log) = faulty_log();
        let told = Arc::new(AtomicU64::new(START.ts.0));
        let tell = Arc::clone(&told);
        log.on_visible(Box::new(move |ts| assert!(tell.swap(ts.0, SeqCst) < ts.0))).unwrap();
        let mut levels = Vec::new();
        let next = |levels: &Vec<Synchronous>| START.ts.0 + 1 + levels.len() as u64;
        for step in steps {
            match step {
                Step::Put(level, bytes) => {
                    let ts = next(&levels);
                    put(&log, ts, level, &payload(ts, bytes.into())).unwrap();
                    levels.push(level);
                }
                Step::Reserve(bytes) => drop(log.reserve(bytes.into()).unwrap()),
                Step::Wait(_) if levels.is_empty() => {}
                Step::Wait(index) => {
                    let ts = START.ts.0 + 1 + index.index(levels.len()) as u64;
                    log.wait_visible(CommitTs(ts)).unwrap();
                    prop_assert!(log.visible().0 >= ts && told.load(SeqCst) >= ts);
                }
                Step::Flush(level) => {
                    log.flush(level).unwrap();
                    prop_assert_eq!(last_ts(&disk.live), next(&levels) - 1);
                }
                Step::SyncAll => {
                    log.sync_all().unwrap();
                    prop_assert_eq!(log.visible(), log.applied());
                    prop_assert_eq!(log.fsynced(), log.applied());
                    prop_assert_eq!(log.fsynced_position(), log.position_of_next());
                }
            }
            let (written, synced) = (last_ts(&disk.live), last_ts(&disk.synced.lock()));
            prop_assert_eq!(log.visible().0, prefix_durable(&levels, written, synced));
            prop_assert_eq!(log.fsynced().0, synced);
            prop_assert_eq!(log.applied().0, next(&levels) - 1);
        }
    }
}

/// The next file is there before it is needed: whoever writes then needs nothing of the disk that could fail, or take
/// long.
#[test]
fn the_next_file_is_made_ahead_of_its_time() {
    let (disk, log) = faulty_log();
    let names = || disk.live.list(WAL_DIR).unwrap().len();
    let big = payload(1, 1 << 20);
    log.prepare_next().unwrap();
    assert_eq!(names(), 1, "not yet");
    let mut ts = START.ts.0;
    let write = |ts: &mut u64| {
        *ts += 1;
        put(&log, *ts, Off, &big).unwrap();
        log.flush(Off).unwrap();
    };
    (0..9).for_each(|_| write(&mut ts));
    disk.faults.create.store(true, SeqCst);
    log.prepare_next().unwrap_err();
    assert_eq!(names(), 1);
    disk.faults.create.store(false, SeqCst);
    (0..2).for_each(|_| log.prepare_next().unwrap());
    assert_eq!(names(), 2);
    assert_eq!(last_ts(&disk.live), ts, "to a replay it is not there");
    disk.faults.create.store(true, SeqCst);
    (0..12).for_each(|_| write(&mut ts));
    assert_eq!((last_ts(&disk.live), log.status().files, names()), (ts, 2, 2));
    // The one after it was not made.
    while put(&log, ts + 1, Off, &big).is_ok() {
        ts += 1;
        log.flush(Off).unwrap();
    }
    assert_eq!(log.reserve(1 << 20).unwrap_err().kind(), ErrorKind::Full);
    disk.faults.create.store(false, SeqCst);
    write(&mut ts);
    assert_eq!((last_ts(&disk.live), log.status().files), (ts, 3));
}

/// A disk that is full stays so for a while: it is asked less and less often, at last each second, and by writers
/// whenever they need it.
#[test]
fn a_full_disk_is_not_asked_for_the_next_file_all_the_time() {
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    put(&log, 11, Off, &payload(11, 9 << 20)).unwrap();
    let failed = |calls: usize| {
        let before = disk.faults.created.load(SeqCst);
        let errors = (0..calls).filter(|_| log.prepare_next().is_err()).count();
        assert_eq!(disk.faults.created.load(SeqCst) - before, errors as u64);
        errors
    };
    disk.faults.create.store(true, SeqCst);
    assert_eq!(failed(1), 1, "at once");
    // After 1, 2, 4 and up to 64 calls.
    assert_eq!(failed(134), 7);
    assert_eq!((failed(100), failed(1)), (0, 1));
    assert_eq!(failed(10 * 101), 10, "each second");
    // The writer that fills the file is not told to wait.
    put(&log, 12, Off, &payload(12, 8 << 20)).unwrap();
    assert_eq!(put(&log, 13, Off, b"x").unwrap_err().kind(), ErrorKind::Full);
    disk.faults.create.store(false, SeqCst);
    put(&log, 13, Off, &payload(13, 9 << 20)).unwrap();
    assert_eq!(log.status().files, 2);
    // There was room, so the one after it is made at once.
    log.prepare_next().unwrap();
    assert_eq!(disk.live.list(WAL_DIR).unwrap().len(), 3);
}

/// Whoever makes the next file beside a writer never makes one that is written to already.
#[test]
fn files_made_ahead_of_their_time_hold_what_was_written() {
    let disk = FaultyDisk::default();
    let log = Log::create(Arc::new(disk.clone()), START).unwrap();
    let done = AtomicBool::new(false);
    let mut ts = START.ts.0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(SeqCst) {
                log.prepare_next().unwrap();
            }
        });
        let big = payload(2, 4 << 20);
        for _ in 0..60 {
            ts += 1;
            put(&log, ts, Off, &big).unwrap();
            log.flush(Off).unwrap();
        }
        done.store(true, SeqCst);
    });
    log.sync_all().unwrap();
    assert!(log.status().files >= 15);
    assert_eq!(last_ts(&disk.live), ts);
}
