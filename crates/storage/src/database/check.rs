//! Checking a database's files, beside a process that writes them, too.
//!
//! Comes in: a directory. Goes out: what is there, and what is wrong with it.
//!
//! 1. Opening it read-only reads the manifest and replays the log; damage there is the end of it.
//! 2. All invariants of the state are checked, and every block of every file that it names.
//! 3. A process that writes goes on meanwhile: it may remove a file before it is read, and what it is just writing
//!    looks torn. So nothing counts as wrong that is gone when the state is read anew
//!    (`docs/design/0008-live-check.md`). Segments that were sound stay sound, for files never change, and only what is
//!    new is read then.
//!
//! Invariant: nothing is written, and a writer that has the database open is kept from nothing. What it has not handed
//! to the operating system yet is not seen.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{ContainerStatus, Database};
use crate::disk::{Disk, DiskLock, GuardedDisk, RealDisk};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ContainerId, SchemaVersion};
use crate::main_store::Run;
use crate::recover::{self, LostFile};
use crate::settings::OpenOptions;
use crate::version::Base;

/// Times that the state of a database that is written to is read, until nothing that was wrong is new.
const ROUNDS_MAX: usize = 20;
/// Times in a row that opening has to fail in the same way, beside a writer, and times that it is tried in all.
const SAME_FAILURES: usize = 4;
const ATTEMPTS_MAX: usize = 100;
/// Between these.
const PAUSE: Duration = Duration::from_millis(100);

/// What a check found.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// What the opening has to tell.
    pub notices: Vec<String>,
    /// Whether another process was writing meanwhile.
    pub is_live: bool,
    /// Files that recovery has set aside, and their bytes.
    pub lost_files: Vec<(LostFile, u64)>,
    /// What rows stand in.
    pub containers: Vec<ContainerStatus>,
    /// Files aside that a restart would read: how many, and their bytes.
    pub files_aside: (usize, u64),
    /// What is wrong.
    pub wrong: Vec<Error>,
    /// What looked wrong in the last state that was read, and in no other: files that are replaced faster than they
    /// are read. Checked when less is written, they may be sound.
    pub unsettled: Vec<Error>,
}

/// A run as it stood in some state: its segments, and the schema that it is read under.
type RunState = (u64, SchemaVersion, Vec<(ContainerId, Range<u32>)>);

/// What was found to be sound.
#[derive(Default)]
struct Sound {
    /// Segments, read under a version of a schema.
    segments: HashSet<(ContainerId, SchemaVersion)>,
    /// Runs with their key indexes.
    runs: HashSet<RunState>,
}

impl Database {
    /// Reads all of the database in directory `path`, and checks it. Another process may have it open, and write. Of
    /// `options` those of memory count.
    ///
    /// # Errors
    /// As [`Database::open`]: what keeps it from being opened.
    pub fn check(path: &Path, options: OpenOptions) -> Result<CheckReport> {
        let disk = RealDisk::open(path, false)?;
        Self::check_on(Arc::new(disk), options)
    }

    /// As [`Database::check`], of the database on `disk`.
    ///
    /// # Errors
    /// As [`Database::check`].
    pub fn check_on(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<CheckReport> {
        let options = options.read_only(true).create(false);
        recover::check_place(disk.as_ref(), &options)?;
        match disk.lock(false) {
            Ok(lock) => {
                let database = Self::read_state(&disk, &options, Some(lock))?;
                let wrong = database.verify();
                database.report(wrong, Vec::new(), false)
            }
            Err(e) if e.kind() == ErrorKind::Closed => Self::check_beside_writer(&disk, &options),
            Err(e) => Err(e),
        }
    }

    fn read_state(disk: &Arc<dyn Disk>, options: &OpenOptions, lock: Option<DiskLock>) -> Result<Self> {
        let disk = GuardedDisk::new(disk.clone());
        let engine = recover::open(disk.clone(), options.clone())?;
        Ok(Self::start(engine, lock.map(|lock| (disk, lock)), None))
    }

    fn check_beside_writer(disk: &Arc<dyn Disk>, options: &OpenOptions) -> Result<CheckReport> {
        let mut sound = Sound::default();
        let mut before: Vec<String> = Vec::new();
        let mut round = 1;
        loop {
            let database = Self::read_live_state(disk, options)?;
            let wrong = database.verify_unless(&mut sound);
            let messages: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            // What is wrong twice is wrong in a state that was read behind the one in which it was found.
            let (confirmed, new): (Vec<Error>, Vec<Error>) =
                wrong.into_iter().partition(|error| before.contains(&error.to_string()));
            if new.is_empty() || round == ROUNDS_MAX {
                return database.report(confirmed, new, true);
            }
            (before, round) = (messages, round + 1);
        }
    }

    /// The state as it is now, beside a process that writes: what fails once in a while is what that one is doing.
    fn read_live_state(disk: &Arc<dyn Disk>, options: &OpenOptions) -> Result<Self> {
        let (mut before, mut same, mut attempts) = (String::new(), 0, 0);
        loop {
            attempts += 1;
            let error = match Self::read_state(disk, options, None) {
                Ok(database) => return Ok(database),
                Err(e) => e,
            };
            let message = error.to_string();
            same = if message == before { same + 1 } else { 1 };
            if same == SAME_FAILURES || attempts == ATTEMPTS_MAX {
                return Err(error);
            }
            before = message;
            std::thread::sleep(PAUSE);
        }
    }

    fn report(&self, wrong: Vec<Error>, unsettled: Vec<Error>, is_live: bool) -> Result<CheckReport> {
        // The end of the log looks torn while somebody writes there.
        let notices = if is_live { Vec::new() } else { self.notices().to_vec() };
        Ok(CheckReport {
            notices,
            is_live,
            lost_files: self.lost_files()?,
            containers: self.containers(),
            files_aside: self.files_aside()?,
            wrong,
            unsettled,
        })
    }

    /// Reads every block of every file that is part of the present, or that a restart would read, and checks all
    /// invariants. Returns what is wrong, a line each.
    #[must_use]
    pub fn verify(&self) -> Vec<Error> {
        self.verify_unless(&mut Sound::default())
    }

    /// As [`Database::verify`], without what is known to be `sound`; adds what it finds to be.
    fn verify_unless(&self, sound: &mut Sound) -> Vec<Error> {
        let snapshot = self.0.engine.timeline.snapshot(Base::Applied, false);
        let mut wrong = snapshot.root().verify();
        wrong.extend(self.0.engine.verify_numbers(snapshot.root()).unwrap_or_else(|e| vec![e]));
        for version in snapshot.root().tables.values() {
            let schema = &version.schema;
            for run in &version.runs {
                let state = state_of(run, schema.version);
                if sound.runs.contains(&state) {
                    continue;
                }
                let of_run = run.verify_with(schema, |segment| {
                    let key = (segment.id(), schema.version);
                    if !sound.segments.contains(&key) {
                        segment.verify(schema)?;
                        sound.segments.insert(key);
                    }
                    Ok(())
                });
                if of_run.is_empty() {
                    sound.runs.insert(state);
                }
                let place = format!("table \"{}\", run {}", schema.name, run.id());
                wrong.extend(of_run.into_iter().map(|e| e.context(&place)));
            }
        }
        match self.0.engine.asides() {
            Ok(files) => wrong.extend(files.iter().filter_map(|file| file.verify().err())),
            Err(e) => wrong.push(e),
        }
        wrong
    }
}

fn state_of(run: &Run, schema_version: SchemaVersion) -> RunState {
    let segments = run.segments().iter().map(|part| (part.segment.id(), part.range.clone()));
    (run.id().0, schema_version, segments.collect())
}
