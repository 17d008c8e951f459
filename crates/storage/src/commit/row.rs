//! The commit of a short statement of its own, in the three phases of any commit, without a write set: of one row,
//! found by one key; of some rows that keep all their keys; or of some new rows.
//!
//! Comes in: a key, the row that has it at a snapshot, if there is one, and the row that is to have it; or rows of a
//! snapshot, and as many new ones with their keys; or rows whose keys are free at a snapshot. Goes out: a timestamp, or
//! 40001 when anything has come in between that is not looked into here: the statement is then run again.
//!
//! 1. Outside the lock: the record is encoded, log space reserved.
//! 2. Under the lock: the rows that go must still be there and live; no commit since the snapshot may have taken the
//!    key; then log, delta and delete log as in `apply`. Whoever keeps the keys of rows that are live needs no look at
//!    keys: as long as those rows live nobody else can have them.
//! 3. Outside: the wait for *visible*.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::commit::Engine;
use crate::commit::apply::{Deletes, TableChange};
use crate::commit::conflict::{key_conflict, row_conflict, table_conflict};
use crate::commit::record::RowEncoder;
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, ContainerId, KeyId, RowRef};
use crate::point::PointTable;
use crate::row::RowBuffer;
use crate::row::key::{HashedKey, KeyHashes, RowKeys};
use crate::schema::TableSchema;
use crate::settings::Synchronous;
use crate::version::{Snapshot, TableVersion};
use crate::wal::{NewRecord, RecordKind};

/// What a short statement does with one key.
pub struct RowWrite<'a> {
    /// The table.
    pub table: &'a PointTable,
    /// The key that the table's rows are found by, encoded.
    pub key: &'a [u8],
    /// The row that has the key at the snapshot, and goes.
    pub deleted: Option<RowRef>,
    /// The row, one, that has the key from now on.
    pub inserted: RowBuffer,
    /// The other keys of that row.
    pub others: &'a [(KeyId, Box<[u8]>)],
}

/// What a short statement does with several rows.
pub struct RowsWrite<'a> {
    /// The table.
    pub table: &'a PointTable,
    /// The rows of the snapshot that go.
    pub deleted: BTreeMap<ContainerId, DeleteSet>,
    /// The rows that come: as many with the same keys, or none, or where none go, new ones.
    pub inserted: RowBuffer,
    /// Their keys, of each that the table has.
    pub keys: &'a [RowKeys],
}

/// A commit of a short statement, for its way through the lock.
struct ShortCommit<'a> {
    schema: &'a Arc<TableSchema>,
    rows: &'a RowBuffer,
    record: RowEncoder,
    deletes: Deletes<'a>,
    hashes: &'a dyn Fn(KeyId) -> Option<KeyHashes<'a>>,
    /// Looks at what was committed since the snapshot.
    validate: &'a dyn Fn(&TableVersion) -> Result<()>,
}

/// The keys of the row that comes, with their hashes.
struct NewKeys<'a> {
    /// That which the table's rows are found by.
    first: Option<(KeyId, HashedKey<'a>)>,
    others: Vec<(KeyId, HashedKey<'a>)>,
}

impl<'a> NewKeys<'a> {
    fn of(write: &'a RowWrite<'_>) -> Self {
        let others = write.others.iter().map(|(id, key)| (*id, HashedKey::of(key)));
        Self { first: write.table.key().map(|id| (id, HashedKey::of(write.key))), others: others.collect() }
    }

    fn iter(&self) -> impl Iterator<Item = (KeyId, HashedKey<'a>)> {
        self.first.into_iter().chain(self.others.iter().copied())
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
        let keys = NewKeys::of(write);
        let schema = write.table.schema();
        let deleted = write.deleted.map(|row| (row.container(), DeleteSet::One(row.offset())));
        let commit = ShortCommit {
            schema,
            rows: &write.inserted,
            record: RowEncoder::new(schema, &write.inserted, deleted.iter().cloned().collect()),
            deletes: deleted.map_or(Deletes::None, |(id, set)| Deletes::One(id, set)),
            hashes: &|id| Some(keys.hashes(id)),
            validate: &|version| validate(write, &keys, version),
        };
        self.commit_short(snapshot, commit, synchronous)
    }

    /// Commits `write`, made at `snapshot`, and returns when *visible* has reached the commit.
    ///
    /// # Errors
    /// As [`Engine::commit_row`].
    pub fn commit_rows(
        &self,
        snapshot: &Snapshot,
        write: &RowsWrite<'_>,
        synchronous: Synchronous,
    ) -> Result<CommitTs> {
        let RowsWrite { table, deleted, inserted, keys } = write;
        let gone = deleted.iter().map(|(id, set)| (*id, set.clone())).collect();
        let hashes = |id| keys.iter().find(|keys| keys.id() == id).map(KeyHashes::Of);
        let validate = |version: &TableVersion| validate_rows(write, version);
        let commit = ShortCommit {
            schema: table.schema(),
            rows: inserted,
            record: RowEncoder::new(table.schema(), inserted, gone),
            deletes: Deletes::Each(deleted),
            hashes: &hashes,
            validate: &validate,
        };
        self.commit_short(snapshot, commit, synchronous)
    }

    fn commit_short(&self, snapshot: &Snapshot, commit: ShortCommit<'_>, synchronous: Synchronous) -> Result<CommitTs> {
        let ShortCommit { schema, rows, mut record, deletes, hashes, validate } = commit;
        self.check_writable()?;
        self.wait_for_room()?;
        self.turns.pass(&[schema.id]);
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
            validate(version)?;
        }
        let ts = applied.next();
        let (version, edited) = self.make_room(version.clone(), &[], rows.len(), rows.bytes(), ts);
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
        let hashes = |id| hashes(id);
        let change = TableChange { version: &version, delta, rows, hashes: &hashes, deletes };
        let defect = self.change_table(&mut lock, &change, (ts, position)).err();
        self.publish(ts, defect, edited.then(|| Arc::new(present.with_table_version(version))))?;
        drop(lock);
        self.wait_visible(ts)?;
        Ok(ts)
    }
}

fn is_live(version: &TableVersion, row: RowRef) -> bool {
    version.container(row.container()).is_some_and(|c| !c.deletes().is_deleted_now(row.offset()))
}

/// As [`validate`]: rows that go are live, and with them their keys are; new ones have keys that are free as before.
fn validate_rows(write: &RowsWrite<'_>, version: &TableVersion) -> Result<()> {
    let schema = write.table.schema();
    let mut gone = write.deleted.iter().flat_map(|(id, set)| set.iter().map(|offset| RowRef::new(*id, offset)));
    if !gone.all(|row| is_live(version, row)) {
        return Err(row_conflict(schema));
    }
    let new = if write.deleted.is_empty() { write.keys } else { &[] };
    for (keys, (_, key)) in new.iter().flat_map(|keys| keys.iter().map(move |key| (keys, key))) {
        if version.deltas.iter().any(|delta| delta.lookup_hashed(keys.id(), key, CommitTs::INFINITY).is_some()) {
            return Err(key_conflict(schema));
        }
    }
    Ok(())
}

/// Looks at what was committed after the snapshot: rows are where they were, so it stands in delete logs and deltas.
fn validate(write: &RowWrite<'_>, keys: &NewKeys<'_>, version: &TableVersion) -> Result<()> {
    let schema = write.table.schema();
    if write.deleted.is_some_and(|row| !is_live(version, row)) {
        return Err(row_conflict(schema));
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
