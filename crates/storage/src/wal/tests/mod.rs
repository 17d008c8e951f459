//! Tests of the log, and what they share: short ways to write and read records.

mod damage;
mod end_mark;
mod faulty_disk;
mod group_commit;
mod round_trip;

use std::sync::Arc;

use crate::disk::{Disk, MemDisk};
use crate::error::Result;
use crate::ids::{CommitTs, LogPosition, SchemaVersion};
use crate::settings::Synchronous;
use crate::wal::{Log, LogReader, LogRecord, LogStart, NewRecord, RecordKind, TailState};

/// Where a new database's log starts; not at 0, so that positions and file offsets differ.
pub(super) const START: LogStart =
    LogStart { log_id: 0x1234_5678_9abc_def0, file_number: 1, position: LogPosition(1_000), ts: CommitTs(10) };

pub(super) fn new_log(disk: &MemDisk) -> Log {
    Log::create(Arc::new(disk.clone()), START).unwrap()
}

/// Reserves, appends and applies a record; does not wait.
pub(super) fn put(log: &Log, ts: u64, level: Synchronous, payload: &[u8]) -> Result<LogPosition> {
    let reservation = log.reserve(payload.len())?;
    let record = NewRecord {
        ts: CommitTs(ts),
        kind: if ts.is_multiple_of(5) { RecordKind::Install } else { RecordKind::Commit },
        schema_version: SchemaVersion(ts / 7),
        level,
        payload,
    };
    let position = log.append(reservation, record)?;
    log.mark_applied(CommitTs(ts));
    Ok(position)
}

/// Bytes that are different for each record and place.
pub(super) fn payload(ts: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (i.wrapping_mul(31) ^ i >> 8 ^ ts.wrapping_mul(101)) as u8).collect()
}

pub(super) fn read(disk: &dyn Disk, from: LogPosition) -> Result<(Vec<LogRecord>, TailState)> {
    let mut reader = LogReader::open(disk, from)?;
    let records = reader.by_ref().collect::<Result<Vec<_>>>()?;
    Ok((records, reader.finish()?))
}
