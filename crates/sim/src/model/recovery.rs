//! Which state may be found after an end that was not clean.

use std::sync::Arc;

use mainstem_storage::Error;
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::error::sqlstate;
use mainstem_storage::transaction::TransactionMode;

use super::check::{Trouble, compare};
use super::driver::{Driver, Durable, Mismatch, Seen};
use super::history::Pending;

/// What stands on a disk whose bytes were changed.
#[derive(Clone, Debug)]
pub enum Found {
    /// All rows.
    Whole,
    /// The commits up to this one.
    Prefix(u64),
    /// An error that says what is damaged.
    Named(Error),
}

fn names_damage(e: &Error) -> bool {
    let newer = e.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED && e.message().contains("format version");
    newer || (e.sqlstate() == sqlstate::CORRUPT && e.message().contains("damaged at byte"))
}

impl Driver {
    /// The last commit acknowledged.
    #[must_use]
    pub fn last_commit(&self) -> u64 {
        self.acknowledged.iter().copied().max().unwrap_or(0)
    }

    /// Opens a damaged `disk` and reads everything: right rows up to a commit, or an error that names the damage.
    ///
    /// # Errors
    /// Wrong rows, or an error that names no damage.
    pub fn inspect(&self, disk: Arc<dyn Disk>) -> Result<Found, Mismatch> {
        let named = |e: Error| {
            if names_damage(&e) { Ok(Found::Named(e)) } else { Err(Mismatch(format!("damage not named: {e:?}"))) }
        };
        let db = match Database::open_on(disk, self.options(false)) {
            Ok(db) => db,
            Err(e) => return named(e),
        };
        let txn = match db.begin(TransactionMode::default()) {
            Ok(txn) => txn,
            Err(e) => return named(e),
        };
        let found = txn.read_ts().0;
        let mut history = self.history.clone();
        history.truncate(found);
        match compare(&history, &txn, &Pending::new(found), found) {
            Err(Trouble::Differs(e)) => return Err(e),
            Err(Trouble::Failed(e)) => return named(e),
            Ok(_) => {}
        }
        if let Some(e) = db.verify().into_iter().next() {
            return named(e);
        }
        Ok(if found < self.last_commit() { Found::Prefix(found) } else { Found::Whole })
    }

    /// Lets go of the engine without closing it. Sessions end.
    pub fn abandon(&mut self) {
        self.sessions.iter_mut().for_each(|session| drop(session.take()));
        self.db = None;
    }

    /// What the model knows now, without an engine: one end can be found in several ways, and each is judged by itself.
    #[must_use]
    pub fn knowledge(&self) -> Self {
        Self {
            disk: self.disk.clone(),
            settings: self.settings,
            db: None,
            history: self.history.clone(),
            sessions: self.sessions.iter().map(|_| None).collect(),
            acknowledged: self.acknowledged,
            unknown: self.unknown.clone(),
            refusals: self.refusals,
            seen: Seen::default(),
            steps: self.steps,
        }
    }

    /// The disk can be trusted again: from now on every error is a mismatch.
    pub fn trust(&mut self) {
        self.settings.faults = false;
    }

    /// Opens the database on `disk`, found after the end of the last use. Its state is the present if it is a prefix of
    /// the commits that has all of those that must be there, and each commit whole or not at all.
    ///
    /// # Errors
    /// What differs.
    pub fn recover(&mut self, disk: Arc<dyn Disk>, durable: Durable, background: bool) -> Result<(), Mismatch> {
        self.abandon();
        self.disk = disk;
        self.open(background)?;
        let Some(db) = self.db.clone() else { return Ok(()) };
        let txn = match db.begin(TransactionMode::default()) {
            Ok(txn) => txn,
            Err(e) => {
                drop(db);
                self.abandon();
                return self.refused("begin", &e);
            }
        };
        let found = txn.read_ts().0;
        let [full, normal, off] = self.acknowledged;
        let least = match durable {
            Durable::Synced => full,
            Durable::Written => full.max(normal),
            Durable::Everything => full.max(normal).max(off),
        };
        if found < least {
            return Err(Mismatch(format!("found commits up to {found}, but {least} was acknowledged ({durable:?})")));
        }
        let mut history = self.history.clone();
        history.truncate(found);
        let mut compared = compare(&history, &txn, &Pending::new(found), found);
        if let (Err(Trouble::Differs(without)), Some(unknown)) = (&compared, &self.unknown) {
            let mut with = history.clone();
            with.commit(unknown, found);
            let again = compare(&with, &txn, &Pending::new(found), found);
            if let Err(Trouble::Differs(e)) = &again {
                let message =
                    format!("after recovery neither without the commit in doubt ({without}) nor with it: {e}");
                return Err(Mismatch(message));
            }
            history = with;
            compared = again;
        }
        match compared {
            Err(Trouble::Differs(e)) => return Err(Mismatch(format!("after recovery ({durable:?}): {e}"))),
            Err(Trouble::Failed(e)) => {
                // What it holds is not known: only another opening can tell.
                self.refused("reading after recovery", &e)?;
                drop((txn, db));
                self.abandon();
                return Ok(());
            }
            Ok(_) => {}
        }
        self.history = history;
        self.unknown = None;
        self.acknowledged.iter_mut().for_each(|ts| *ts = (*ts).min(found));
        drop(txn);
        self.check_files(background)
    }

    /// Every block of every file is sound, no file is left that nothing lists but those set aside, and their ids are
    /// nobody else's.
    fn check_files(&mut self, background: bool) -> Result<(), Mismatch> {
        let Some(db) = self.db.clone() else { return Ok(()) };
        for e in db.verify() {
            self.refused("verify", &e)?;
        }
        if background || self.settings.faults {
            return Ok(());
        }
        // Those of key indexes too.
        let segments = db.containers().iter().filter(|container| container.run.is_some()).count();
        let files = match self.disk.list("data") {
            Ok(files) => files.len(),
            Err(e) => return self.refused("list", &e),
        };
        let lost = match db.lost_files() {
            Ok(lost) => lost,
            Err(e) => return self.refused("lost files", &e),
        };
        for (file, _) in &lost {
            if db.containers().iter().any(|container| Some(container.id) == file.container) {
                return Err(Mismatch(format!("the container of {} is there again", file.path())));
            }
        }
        self.seen.lost_files += lost.len() as u64;
        let (asides, _) = db.files_aside().map_err(|e| Mismatch(format!("files aside: {e:?}")))?;
        // A segment of constants has no file.
        if files > segments + asides + lost.len() {
            let message =
                format!("{files} files of {segments} segments, {asides} files aside and {lost:?} after opening");
            return Err(Mismatch(message));
        }
        Ok(())
    }
}
