//! The writing side of the log: space, records, marks.
//!
//! Comes in: reservations and records (from the holder of the commit lock). Goes out: bytes in memory, which
//! `group_commit` carries to the disk. Invariant: the target file has at least `outstanding` bytes of disk space set
//! aside behind its end, and those of its own end and of the next one's beginning, so an append never lacks space, nor
//! does an opening. A new file becomes the target in [`Log::reserve`], never in [`Log::append`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::format::{FileHeader, ROOM_BEHIND_BYTES, RecordHeader, RecordKind, frame, framed_bytes_max};
use super::state::{Log, Mark, Shared, State};
use crate::error::{Error, Result};
use crate::ids::{CommitTs, LogPosition, SchemaVersion};
use crate::limits::{WAL_BUFFER_BYTES, WAL_FILE_BYTES, WAL_RECORD_BYTES_MAX};
use crate::settings::Synchronous;

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Above the timestamps of all records before.
    pub ts: CommitTs,
    /// What it is about.
    pub kind: RecordKind,
    /// Version of the schemas it was made under.
    pub schema_version: SchemaVersion,
    /// When it counts as durable.
    pub level: Synchronous,
    /// Its content, at most [`WAL_RECORD_BYTES_MAX`] bytes.
    pub payload: &'a [u8],
}

/// Disk space set aside for one record; given back when dropped unused.
#[derive(Debug)]
pub struct Reservation {
    log: Arc<Shared>,
    bytes: u64,
    /// When it was made: the clock is not asked under the commit lock.
    wall_clock: i64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.log.state.lock().outstanding -= self.bytes;
        }
    }
}

impl Log {
    /// The log of an in-memory database: accepts records, writes nothing; a record is visible, and counts as fsynced,
    /// once applied.
    #[must_use]
    pub fn disabled() -> Self {
        let start = Mark { ts: CommitTs::ZERO, position: LogPosition(0) };
        Self(Arc::new(Shared::new(None, 0, State::new(start))))
    }

    /// Whether this is the log of an in-memory database.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.0.disk.is_none()
    }

    /// Sets disk space aside for one record with `payload_bytes` bytes of payload. May do I/O and wait for the disk: to
    /// be called without the commit lock.
    ///
    /// # Errors
    /// Full (53100) or Io: nothing has changed. Closed after a failed write. Invalid for more than
    /// [`WAL_RECORD_BYTES_MAX`] bytes.
    pub fn reserve(&self, payload_bytes: usize) -> Result<Reservation> {
        let space = self.reserve_below(payload_bytes, LogPosition(u64::MAX))?;
        space.ok_or_else(|| Error::internal("the log has no position left"))
    }

    /// As [`Log::reserve`], unless records, reserved ones counted, already reach up to `end_max`: then nothing is
    /// reserved.
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve_below(&self, payload_bytes: usize, end_max: LogPosition) -> Result<Option<Reservation>> {
        if payload_bytes > WAL_RECORD_BYTES_MAX {
            let message = format!("a log record of {payload_bytes} bytes; at most {WAL_RECORD_BYTES_MAX} are possible");
            return Err(Error::internal(message));
        }
        let bytes = framed_bytes_max(payload_bytes);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_clock = now.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX));
        loop {
            let mut state = self.0.state.lock();
            if self.0.disk.is_none() {
                state.refuse_if_poisoned()?;
                return Ok(Some(Reservation { log: Arc::clone(&self.0), bytes: 0, wall_clock }));
            }
            while state.pending_bytes > WAL_BUFFER_BYTES && state.poisoned.is_none() {
                if state.writing {
                    self.0.progress.wait(&mut state);
                } else {
                    self.0.write_pending(&mut state);
                }
            }
            state.refuse_if_poisoned()?;
            if state.appended.position.0.saturating_add(state.outstanding) >= end_max.0 {
                return Ok(None);
            }
            let needed = state.target_end + state.outstanding + bytes + ROOM_BEHIND_BYTES;
            if state.target_end < WAL_FILE_BYTES && needed <= state.target_reserved {
                state.outstanding += bytes;
                return Ok(Some(Reservation { log: Arc::clone(&self.0), bytes, wall_clock }));
            }
            drop(state);
            self.0.grow(bytes)?;
        }
    }

    /// Appends a record in memory and returns its position: no I/O, no waiting. To be called under the commit lock,
    /// which keeps records in timestamp order. Afterwards the record cannot be taken back.
    ///
    /// # Errors
    /// Closed after a failed write; Internal for a wrong timestamp or a reservation that is too small. Nothing is
    /// appended.
    pub fn append(&self, mut reservation: Reservation, record: NewRecord<'_>) -> Result<LogPosition> {
        let mut guard = self.0.state.lock();
        let state = &mut *guard;
        state.refuse_if_poisoned()?;
        if record.ts <= state.appended.ts {
            let message = format!("log record {} appended after record {}", record.ts, state.appended.ts);
            return Err(Error::internal(message));
        }
        let Some(target) = state.target.clone() else {
            state.appended.ts = record.ts;
            state.counters.record(record.kind);
            return Ok(state.appended.position);
        };
        if reservation.bytes < framed_bytes_max(record.payload.len()) {
            let message = format!("a log record of {} bytes is larger than its reservation", record.payload.len());
            return Err(Error::internal(message));
        }
        let header = RecordHeader {
            kind: record.kind as u8,
            ts: record.ts,
            payload_bytes: record.payload.len() as u32,
            wall_clock: reservation.wall_clock,
            schema_version: record.schema_version,
            fsynced: state.fsynced.position,
        };
        let file = FileHeader { log_id: self.0.log_id, number: target.number, first: target.first };
        let offset = state.target_end;
        let buffer = state.pending_for(&target);
        let before = buffer.len();
        let begun = frame(buffer, &file, offset, &header, record.payload);
        let framed = buffer.len() - before;
        state.pending_bytes += framed;
        state.target_end += framed as u64;
        state.appended = Mark { ts: record.ts, position: LogPosition(target.first.0 + state.target_end) };
        state.push_run(record.ts, record.level);
        state.counters.record(record.kind);
        state.outstanding -= std::mem::take(&mut reservation.bytes);
        Ok(LogPosition(target.first.0 + begun))
    }

    /// Says that the record of `ts`, and all before, are applied to the stores in memory: no I/O, no waiting. To be
    /// called under the commit lock, after [`Log::append`]: until then `visible` does not pass the record.
    pub fn mark_applied(&self, ts: CommitTs) {
        let mut state = self.0.state.lock();
        state.applied = state.applied.max(ts.min(state.appended.ts));
        self.0.applied.store(state.applied.0, Ordering::Release);
        if self.0.disk.is_none() && state.poisoned.is_none() {
            state.visible = state.applied;
            state.fsynced.ts = state.applied;
        }
        self.0.publish(&mut state);
    }

    /// The last record applied in memory.
    #[must_use]
    pub fn applied(&self) -> CommitTs {
        CommitTs(self.0.applied.load(Ordering::Acquire))
    }

    /// The last record that is applied and durable under its own mode, with all before it.
    #[must_use]
    pub fn visible(&self) -> CommitTs {
        CommitTs(self.0.visible.load(Ordering::Acquire))
    }

    /// The last record that is fsynced, with all before it.
    #[must_use]
    pub fn fsynced(&self) -> CommitTs {
        CommitTs(self.0.fsynced.load(Ordering::Acquire))
    }

    /// The position below which everything is fsynced.
    #[must_use]
    pub fn fsynced_position(&self) -> LogPosition {
        self.0.state.lock().fsynced.position
    }

    /// Bytes that the operating system has and that are not fsynced.
    #[must_use]
    pub fn unsynced_bytes(&self) -> u64 {
        let state = self.0.state.lock();
        state.written.position.0.saturating_sub(state.fsynced.position.0)
    }

    /// The position behind the last appended record: where a replay that needs nothing of the log so far may start.
    #[must_use]
    pub fn position_of_next(&self) -> LogPosition {
        self.0.state.lock().appended.position
    }

    /// Bytes of log a replay from `position` would read.
    #[must_use]
    pub fn tail_bytes_from(&self, position: LogPosition) -> u64 {
        self.position_of_next().0.saturating_sub(position.0)
    }
}
