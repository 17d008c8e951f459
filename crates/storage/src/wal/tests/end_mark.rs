//! The end mark: written once for each end, never in part, believed only when whole.

use std::sync::Arc;

use super::{new_log, payload, put};
use crate::disk::{Disk, MemDisk};
use crate::error::{Error, ErrorKind};
use crate::ids::{CommitTs, LogPosition};
use crate::settings::Synchronous::{Full, Off};
use crate::wal::{END_MARK_ASIDE, END_MARK_FILE, EndMark, Log};

const NOTHING: LogPosition = LogPosition(0);

fn written() -> (MemDisk, Log) {
    let disk = MemDisk::new();
    let log = new_log(&disk);
    put(&log, 11, Full, &payload(11, 100)).unwrap();
    log.sync_all().unwrap();
    (disk, log)
}

#[test]
fn the_end_is_marked_behind_the_last_record() {
    let (disk, log) = written();
    assert_eq!(EndMark::read(&disk).unwrap(), None);
    log.mark_end(NOTHING).unwrap();
    let position = log.position_of_next();
    assert_eq!(EndMark::read(&disk).unwrap(), Some(EndMark { position }));
    assert!(!disk.exists(END_MARK_ASIDE).unwrap());
    // Known from elsewhere: nothing is written.
    disk.remove(END_MARK_FILE).unwrap();
    log.mark_end(position).unwrap();
    assert_eq!(EndMark::read(&disk).unwrap(), None);
    put(&log, 12, Full, b"more").unwrap();
    log.sync_all().unwrap();
    log.mark_end(position).unwrap();
    assert_eq!(EndMark::read(&disk).unwrap(), Some(EndMark { position: log.position_of_next() }));
    Log::disabled().mark_end(NOTHING).unwrap();
}

#[test]
fn nothing_is_marked_that_may_not_be_durable() {
    let (disk, log) = written();
    let synced = log.position_of_next();
    put(&log, 12, Off, b"not synced").unwrap();
    log.mark_end(NOTHING).unwrap();
    assert_eq!(EndMark::read(&disk).unwrap(), Some(EndMark { position: synced }));
    disk.remove(END_MARK_FILE).unwrap();
    log.poison(Error::internal("broken"));
    assert_eq!(log.mark_end(NOTHING).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(EndMark::read(&disk).unwrap(), None);
}

#[test]
fn a_damaged_mark_is_named_with_what_to_do() {
    let (disk, log) = written();
    log.mark_end(NOTHING).unwrap();
    let sound = disk.get(END_MARK_FILE).unwrap();
    let damaged = |bytes: Vec<u8>| {
        disk.put(END_MARK_FILE, bytes);
        let error = EndMark::read(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().starts_with("file LOG_END is damaged at byte"), "{error}");
        assert!(error.message().contains("remove it if the log is known to be whole"), "{error}");
    };
    (0..sound.len()).for_each(|len| damaged(sound[..len].to_vec()));
    for bit in 0..8 * sound.len() {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged(bytes);
    }
    damaged([&sound[..], &[0]].concat());
    // A newer format is no damage.
    let mut newer = sound[..sound.len() - 4].to_vec();
    newer[8] += 1;
    newer.extend(crc32c::crc32c(&newer).to_le_bytes());
    disk.put(END_MARK_FILE, newer);
    let error = EndMark::read(&disk).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("format version 2"), "{error}");
}

/// What was marked once stays true whatever is written, opened and cut later.
#[test]
fn a_mark_is_true_for_ever() {
    let (disk, log) = written();
    log.mark_end(NOTHING).unwrap();
    let marked = EndMark::read(&disk).unwrap().unwrap().position;
    drop(log);
    for round in 0..4u64 {
        let mut reader = crate::wal::LogReader::open(&disk, super::START.position).unwrap();
        let records = reader.by_ref().count() as u64;
        let tail = reader.known_fsynced(marked, END_MARK_FILE).finish().unwrap();
        assert!(tail.valid_end >= marked);
        let ts = tail.last_ts.unwrap_or(CommitTs(10));
        let log = Log::create(Arc::new(disk.clone()), tail.next_start(round, ts)).unwrap();
        if round % 2 == 0 {
            put(&log, 12 + records, Off, &payload(round, 300)).unwrap();
            log.flush(Off).unwrap();
            // Torn, and cut off by the next opening.
            let path = format!("wal/{}", disk.list("wal").unwrap().pop().unwrap());
            let bytes = disk.get(&path).unwrap();
            disk.put(&path, bytes[..bytes.len() - 7].to_vec());
        }
    }
}
