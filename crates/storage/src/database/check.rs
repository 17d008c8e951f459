//! Checking a database's files, beside a process that writes them, too.
//!
//! Comes in: a directory. Goes out: what is there, and what is wrong with it.
//!
//! 1. Opening it read-only reads the manifest and replays the log; damage there is the end of it.
//! 2. All invariants of the state are checked, and every block of every file that it names.
//! 3. A process that writes goes on meanwhile: it may remove a file before it is read, and what it is just writing looks
//!    torn. So nothing counts as wrong that is gone when the state is read anew. Runs that were sound stay sound, for
//!    files never change, and only what is new is read then.
//!
//! Invariant: nothing is written, and no lock keeps the writer from anything. What the writer has not handed to the
//! operating system yet is not seen.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{ContainerStatus, Database};
use crate::disk::{Disk, DiskLock, GuardedDisk, RealDisk};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{ContainerId, SchemaVersion};
use crate::main_store::Run;
use crate::recover::{self, LostFile};
use crate::settings::OpenOptions;
use crate::version::Base;

/// Times that the state of a database that is written to is read, until nothing that was wrong is new.
const ROUNDS_MAX: usize = 20;
/// Times in a row that opening has to fail in the same way, beside a writer.
const SAME_FAILURES: usize = 4;
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
}

/// A run as it stood in some state: its segments, and the schema that it is read under.
type RunState = (u64, SchemaVersion, Vec<(ContainerId, Range<u32>)>);

impl Database {
    /// Reads all of the database in directory `path`, and checks it. Another process may have it open, and write. Of
    /// `options` those of memory count.
    ///
    /// # Errors
    /// As [`Database::open`]: what keeps it from being opened.
    pub fn check(path: &Path, options: OpenOptions) -> Result<CheckReport> {
        let disk = RealDisk::open(path, false)?;
        Self::check_on(Arc::new(disk), options.read_only(true).create(false))
    }

    /// As [`Database::check`], of the database on `disk`.
    ///
    /// # Errors
    /// As [`Database::check`].
    pub fn check_on(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<CheckReport> {
        recover::check_place(disk.as_ref(), &options)?;
        match disk.lock(false) {
            Ok(lock) => {
                let database = Self::read_state(&disk, &options, Some(lock))?;
                let wrong = database.verify();
                database.report(wrong, false)
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
        let mut sound = HashSet::new();
        let mut before: Vec<String> = Vec::new();
        let mut round = 1;
        loop {
            let database = Self::read_live_state(disk, options)?;
            let wrong = database.verify_unless(&mut sound);
            let messages: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            // What is wrong twice is wrong in a state that was read behind the one in which it was found.
            let (mut confirmed, new): (Vec<Error>, Vec<Error>) =
                wrong.into_iter().partition(|error| before.contains(&error.to_string()));
            if new.is_empty() {
                return database.report(confirmed, true);
            }
            if round == ROUNDS_MAX {
                confirmed.push(unsettled(new.len()));
                return database.report(confirmed, true);
            }
            (before, round) = (messages, round + 1);
        }
    }

    /// The state as it is now, beside a process that writes: what fails once in a while is what that one is doing.
    fn read_live_state(disk: &Arc<dyn Disk>, options: &OpenOptions) -> Result<Self> {
        let (mut before, mut same) = (String::new(), 0);
        loop {
            let error = match Self::read_state(disk, options, None) {
                Ok(database) => return Ok(database),
                Err(e) => e,
            };
            let message = error.to_string();
            same = if message == before { same + 1 } else { 1 };
            if same == SAME_FAILURES {
                return Err(error);
            }
            before = message;
            std::thread::sleep(PAUSE);
        }
    }

    fn report(&self, wrong: Vec<Error>, is_live: bool) -> Result<CheckReport> {
        // The end of the log looks torn while somebody writes there.
        let notices = if is_live { Vec::new() } else { self.notices().to_vec() };
        Ok(CheckReport {
            notices,
            is_live,
            lost_files: self.lost_files()?,
            containers: self.containers(),
            files_aside: self.files_aside()?,
            wrong,
        })
    }

    /// Reads every block of every file that is part of the present, or that a restart would read, and checks all
    /// invariants. Returns what is wrong, a line each.
    #[must_use]
    pub fn verify(&self) -> Vec<Error> {
        self.verify_unless(&mut HashSet::new())
    }

    /// As [`Database::verify`], without the runs that are known to be `sound`; adds those that it finds to be.
    fn verify_unless(&self, sound: &mut HashSet<RunState>) -> Vec<Error> {
        let snapshot = self.0.engine.timeline.snapshot(Base::Applied, false);
        let mut wrong = snapshot.root().verify();
        wrong.extend(self.0.engine.verify_numbers(snapshot.root()).unwrap_or_else(|e| vec![e]));
        for version in snapshot.root().tables.values() {
            for run in &version.runs {
                let state = state_of(run, version.schema.version);
                if sound.contains(&state) {
                    continue;
                }
                let of_run = run.verify(&version.schema);
                if of_run.is_empty() {
                    sound.insert(state);
                }
                let place = format!("table \"{}\", run {}", version.schema.name, run.id());
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

/// The error of a check that never found the same twice.
fn unsettled(count: usize) -> Error {
    let message = format!(
        "{count} files were replaced while they were read, again and again: check the database when less is written to it"
    );
    Error::new(ErrorKind::Closed, sqlstate::LOCKED, message)
}

fn state_of(run: &Run, schema_version: SchemaVersion) -> RunState {
    let segments = run.segments().iter().map(|part| (part.segment.id(), part.range.clone()));
    (run.id().0, schema_version, segments.collect())
}
