//! The commit of a short statement of its own: one row, found by one key, in the three phases of any commit, without a
//! write set.
//!
//! Comes in: a key, the row that has it at a snapshot, if there is one, and the row that is to have it. Goes out: a
//! timestamp, or 40001 when anything has come in between that is not looked into here: the statement is then run again.
//!
//! 1. Outside the lock: the record is encoded, log space reserved.
//! 2. Under the lock: the row that goes must still be there and live; no commit since the snapshot may have taken the
//!    key; then log, delta and delete log as in `apply`.
//! 3. Outside: the wait for *visible*.

use std::sync::Arc;

use crate::commit::Engine;
use crate::commit::apply::{Deletes, TableChange};
use crate::commit::conflict::{key_conflict, row_conflict, table_conflict};
use crate::commit::record::RowEncoder;
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, KeyId, RowRef};
use crate::point::KeyedTable;
use crate::row::RowBuffer;
use crate::row::key::{HashedKey, KeyHashes};
use crate::settings::Synchronous;
use crate::version::{Snapshot, TableVersion};
use crate::wal::{NewRecord, RecordKind};

/// What a short statement does with one key.
pub struct RowWrite<'a> {
    /// The table.
    pub table: &'a KeyedTable,
    /// The key that the table's rows are found by, encoded.
    pub key: &'a [u8],
    /// The row that has the key at the snapshot, and goes.
    pub deleted: Option<RowRef>,
    /// The row, one, that has the key from now on.
    pub inserted: RowBuffer,
    /// The other keys of that row.
    pub others: &'a [(KeyId, Box<[u8]>)],
}

/// The keys of the row that comes, with their hashes.
struct NewKeys<'a> {
    /// That which the table's rows are found by.
    first: (KeyId, HashedKey<'a>),
    others: Vec<(KeyId, HashedKey<'a>)>,
}

impl<'a> NewKeys<'a> {
    fn of(write: &'a RowWrite<'_>) -> Self {
        let others = write.others.iter().map(|(id, key)| (*id, HashedKey::of(key)));
        Self { first: (write.table.key(), HashedKey::of(write.key)), others: others.collect() }
    }

    fn iter(&self) -> impl Iterator<Item = (KeyId, HashedKey<'a>)> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    fn hashes(&self, id: KeyId) -> KeyHashes<'static> {
        KeyHashes::One(self.iter().find(|(other, _)| *other == id).map(|(_, key)| key.hash()))
    }
}

impl Engine {
    /// Commits `write`, made at `snapshot`, and returns when *visible* has reached the commit.
    ///
    /// # Errors
    /// As [`Engine::commit`]; 40001 also where a write set would have been validated again.
    pub fn commit_row(&self, snapshot: &Snapshot, write: &RowWrite<'_>, synchronous: Synchronous) -> Result<CommitTs> {
        self.check_writable()?;
        self.wait_for_room()?;
        self.turns.pass(&[write.table.schema().id]);
        let schema = write.table.schema();
        let mut record = RowEncoder::new(schema, &write.inserted, write.deleted);
        let keys = NewKeys::of(write);
        let space = self.reserve_log(record.bytes(), || {})?;
        let mut lock = self.lock()?;
        self.check_writable()?;
        let (applied, present) = self.timeline.present();
        let then = snapshot.root().tables.get(&schema.id).ok_or_else(|| table_conflict(schema))?;
        let version = present.tables.get(&schema.id).ok_or_else(|| table_conflict(schema))?;
        // So is a TRUNCATE since, which may have begun the numbers of IDENTITY columns anew.
        if version.schema.version != schema.version || !version.has_rows_placed_as(then) {
            return Err(table_conflict(schema));
        }
        if applied != snapshot.ts() {
            validate(write, &keys, version)?;
        }
        let ts = applied.next();
        let (version, edited) = self.make_room(version.clone(), &[], write.inserted.len(), write.inserted.bytes(), ts);
        let delta = version.active_delta().ok_or_else(|| Error::internal("a table without a delta"))?;
        record.place(delta.id(), delta.rows());
        let new = NewRecord {
            ts,
            kind: RecordKind::Commit,
            schema_version: schema.version,
            level: synchronous,
            payload: record.payload(),
        };
        let position = self.log.append(space, new)?;
        // From here on nothing may fail: the record is in the log.
        if edited {
            self.seal(&version);
        }
        let deletes = match write.deleted {
            Some(row) => Deletes::One(row.container(), DeleteSet::One(row.offset())),
            None => Deletes::None,
        };
        let hashes = |id| Some(keys.hashes(id));
        let change = TableChange { version: &version, delta, rows: &write.inserted, hashes: &hashes, deletes };
        let defect = self.change_table(&mut lock, &change, (ts, position)).err();
        self.publish(ts, defect, edited.then(|| Arc::new(present.with_table_version(version))))?;
        drop(lock);
        self.wait_visible(ts)?;
        Ok(ts)
    }
}

/// Looks at what was committed after the snapshot: rows are where they were, so it stands in delete logs and deltas.
fn validate(write: &RowWrite<'_>, keys: &NewKeys<'_>, version: &TableVersion) -> Result<()> {
    let schema = write.table.schema();
    if let Some(row) = write.deleted {
        let live = version.container(row.container()).is_some_and(|c| !c.deletes().is_deleted_now(row.offset()));
        if !live {
            return Err(row_conflict(schema));
        }
    }
    // Free at the snapshot but for the row that goes; one look at the newest row of the key tells, however many came
    // before it.
    for (id, key) in keys.iter().filter(|_| !write.inserted.is_empty()) {
        let taken = |delta: &Arc<DeltaGeneration>| {
            let newest = delta.lookup_hashed(id, key, CommitTs::INFINITY);
            newest.is_some_and(|offset| write.deleted != Some(RowRef::new(delta.id(), offset)))
        };
        if version.deltas.iter().any(taken) {
            return Err(key_conflict(schema));
        }
    }
    Ok(())
}
