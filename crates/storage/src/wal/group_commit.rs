//! From memory to the disk: the first thread that needs it writes and fsyncs for all.
//!
//! 1. A thread whose record is not visible looks what it lacks: a write, an fsync, or only to be applied.
//! 2. If a thread is at it already, it waits, and looks again; else it leads: takes all appended bytes, lets go of the
//!    lock, writes them in one call, fsyncs if need be, and moves the marks.
//! 3. Writes go on while an fsync runs, so `normal` and `off` never wait for the disk's cache, except at the end of a
//!    file.
//!
//! Invariants: one writer and one fsync at a time; a file is fsynced whole before the next one's first byte is written,
//! and a header before the first record behind it; after a failure no mark moves again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::format::FILE_HEADER_BYTES;
use super::state::{Log, LogFile, Mark, Observer, Pending, Shared, State};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::CommitTs;
use crate::settings::Synchronous;

/// What a record lacks to be visible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    /// It, or one before it, is not applied yet: its committer is about to.
    Applied,
    Written,
    Fsynced,
}

impl State {
    fn lack(&self, ts: CommitTs) -> Lack {
        let runs = self.runs.iter().take_while(|run| run.first <= ts);
        let lacks = runs.map(|run| match run.level {
            Synchronous::Normal if self.written.ts < ts.min(run.last) => Lack::Written,
            Synchronous::Full if self.fsynced.ts < ts.min(run.last) => Lack::Fsynced,
            _ => Lack::Applied,
        });
        lacks.max().unwrap_or(Lack::Applied)
    }
}

fn outcome_unknown(cause: &Error) -> Error {
    let message = format!(
        "it is unknown whether the transaction was committed, because the log could not be written ({}); \
         reopen the database and look",
        cause.message()
    );
    Error::new(ErrorKind::Closed, sqlstate::OUTCOME_UNKNOWN, message)
}

impl Log {
    /// Waits until `visible` has reached `ts`, leading a write and fsync when nobody does, and until the observer has
    /// been told. To be called without the commit lock.
    ///
    /// # Errors
    /// 08007 (outcome unknown) when the log failed before; Internal when no such record was appended.
    pub fn wait_visible(&self, ts: CommitTs) -> Result<()> {
        let shared = &*self.0;
        if shared.announced.load(Ordering::Acquire) >= ts.0 {
            return Ok(());
        }
        if shared.visible.load(Ordering::Acquire) >= ts.0 {
            shared.announce();
            return Ok(());
        }
        let mut state = shared.state.lock();
        while state.visible < ts {
            if ts > state.appended.ts {
                return Err(Error::internal(format!("waiting for log record {ts}, which was never appended")));
            }
            if let Some(cause) = &state.poisoned {
                return Err(outcome_unknown(cause));
            }
            match state.lack(ts) {
                Lack::Written if !state.writing => shared.write_pending(&mut state),
                Lack::Fsynced if !state.syncing => shared.sync_written(&mut state),
                _ => shared.progress.wait(&mut state),
            }
        }
        drop(state);
        shared.announce();
        Ok(())
    }

    /// Does what records of mode `level` still lack: for `off` hands them to the operating system, else fsyncs too. For
    /// the background thread; cheap when there is nothing to do.
    ///
    /// # Errors
    /// Closed when the log failed, now or before.
    pub fn flush(&self, level: Synchronous) -> Result<()> {
        if level != Synchronous::Off {
            return self.sync_all();
        }
        let shared = &*self.0;
        let mut state = shared.state.lock();
        if !state.writing && state.poisoned.is_none() {
            shared.write_pending(&mut state);
        }
        let result = state.refuse_if_poisoned();
        drop(state);
        shared.announce();
        result
    }

    /// Writes and fsyncs all that was appended before the call.
    ///
    /// # Errors
    /// Closed when the log failed, now or before.
    pub fn sync_all(&self) -> Result<()> {
        let shared = &*self.0;
        let mut state = shared.state.lock();
        let goal = state.appended.position;
        while shared.disk.is_some() && state.fsynced.position < goal && state.poisoned.is_none() {
            if state.syncing {
                shared.progress.wait(&mut state);
            } else {
                shared.sync_written(&mut state);
            }
        }
        let result = state.refuse_if_poisoned();
        drop(state);
        shared.announce();
        result
    }

    /// Sets, once, what is told whenever `visible` has advanced: always growing, one call at a time, on the thread that
    /// waited or flushed, without any lock that appending needs. [`Log::wait_visible`] returns after the call for its
    /// timestamp. The observer must not wait on the log itself.
    ///
    /// # Errors
    /// Internal when there is one already.
    pub fn on_visible(&self, observer: Box<dyn Fn(CommitTs) + Send + Sync>) -> Result<()> {
        let set: Result<(), Observer> = self.0.observer.set(observer);
        set.map_err(|_| Error::internal("the log has an observer already"))
    }

    /// Ends writing until the database is reopened, for instance after a panic under the commit lock. Those who wait
    /// get 08007.
    pub fn poison(&self, cause: Error) {
        self.0.poison(&mut self.0.state.lock(), cause);
    }

    /// Refuses work once writing has ended.
    ///
    /// # Errors
    /// Closed, with the cause.
    pub fn check_sound(&self) -> Result<()> {
        // Each statement asks, and the lock is for those who append.
        if !self.is_poisoned() {
            return Ok(());
        }
        self.0.state.lock().refuse_if_poisoned()
    }

    /// Whether writing has ended.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.0.failed.load(Ordering::Acquire)
    }
}

/// Appends to a log file; what cannot be written whole is cut off.
fn append(file: &LogFile, bytes: &[u8]) -> Result<()> {
    let end = file.file.len()?;
    file.file.append(bytes).inspect_err(|_| {
        // Nothing of it was acknowledged; if it cannot be cut off, recovery takes each record whole or not at all.
        let _ = file.file.cut(end);
    })
}

impl Shared {
    fn poison(&self, state: &mut State, cause: Error) {
        if state.poisoned.is_none() {
            tracing::error!(cause = %cause, "the log failed: writing ends until the database is reopened");
            state.poisoned = Some(cause);
            self.failed.store(true, Ordering::Release);
        }
        self.progress.notify_all();
    }

    /// Tells the observer how far `visible` has come.
    fn announce(&self) {
        if self.announced.load(Ordering::Acquire) >= self.visible.load(Ordering::Acquire) {
            return;
        }
        let _one_at_a_time = self.announcing.lock();
        let visible = self.visible.load(Ordering::Acquire);
        if self.announced.load(Ordering::Acquire) < visible {
            if let Some(observer) = self.observer.get() {
                observer(CommitTs(visible));
            }
            self.announced.store(visible, Ordering::Release);
        }
    }

    /// Hands all appended bytes to the operating system. To be called when nobody else does, on a sound log; lets go of
    /// the lock meanwhile.
    pub(super) fn write_pending(&self, state: &mut MutexGuard<'_, State>) {
        debug_assert!(!state.writing && state.poisoned.is_none());
        if state.pending.is_empty() {
            return;
        }
        state.writing = true;
        let mut chunks = std::mem::take(&mut state.pending);
        state.pending_bytes = 0;
        let goal = state.appended;
        let before = state.written_file.clone();
        let written = MutexGuard::unlocked(state, || self.write_chunks(chunks.make_contiguous(), before.as_ref()));
        state.writing = false;
        state.counters.writes += chunks.len() as u64;
        match written {
            Err(cause) => self.poison(state, cause),
            Ok(_) if state.poisoned.is_some() => {}
            Ok(closed) => {
                state.written = goal;
                state.fsynced = closed.map_or(state.fsynced, |closed| state.fsynced.max(closed));
            }
        }
        if let Some(last) = chunks.pop_back() {
            state.written_file = Some(last.file);
            state.spare = last.bytes;
            state.spare.clear();
        }
        self.publish(state);
    }

    /// Writes the chunks in order; returns the end of the last file that was closed, and thereby fsynced.
    fn write_chunks(&self, chunks: &[Pending], before: Option<&Arc<LogFile>>) -> Result<Option<Mark>> {
        let mut last = before;
        let mut closed = None;
        for chunk in chunks {
            let mut bytes = chunk.bytes.as_slice();
            if let (Some(end), Some(last)) = (chunk.begins_file_after, last) {
                self.sync_file(last)?;
                closed = Some(end);
                // The header alone, durably: then a bad header with bytes behind it is damage, never a torn tail.
                let (header, records) = bytes.split_at(bytes.len().min(FILE_HEADER_BYTES));
                append(&chunk.file, header)?;
                self.sync_file(&chunk.file)?;
                bytes = records;
            }
            append(&chunk.file, bytes)?;
            last = Some(&chunk.file);
        }
        Ok(closed)
    }

    /// Writes what is appended and fsyncs it. To be called when nobody else fsyncs, on a sound log; lets go of the lock
    /// meanwhile.
    fn sync_written(&self, state: &mut MutexGuard<'_, State>) {
        debug_assert!(!state.syncing);
        state.syncing = true;
        while state.writing {
            self.progress.wait(state);
        }
        if state.poisoned.is_none() {
            self.write_pending(state);
        }
        let goal = state.written;
        let file = state.written_file.clone();
        let needed = state.poisoned.is_none() && goal.position > state.fsynced.position;
        if let (true, Some(file)) = (needed, file) {
            let synced = MutexGuard::unlocked(state, || self.sync_file(&file));
            if synced.is_ok() && state.poisoned.is_none() {
                state.fsynced = state.fsynced.max(goal);
            }
        }
        state.syncing = false;
        self.publish(state);
    }

    /// Fsyncs one file; a failure poisons the log before anyone else can try, for the system reports it only once.
    fn sync_file(&self, file: &LogFile) -> Result<()> {
        let _one_at_a_time = self.sync_turn.lock();
        if let Some(cause) = &self.state.lock().poisoned {
            return Err(cause.clone());
        }
        let synced = file.file.sync();
        let mut state = self.state.lock();
        state.counters.syncs += 1;
        if let Err(cause) = &synced {
            self.poison(&mut state, cause.clone());
        }
        synced
    }
}
