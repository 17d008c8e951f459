//! Every row version with its begin and end, and what a transaction may do to them.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::Added;
use super::rows::Row;
use super::shape::{NumberedKey, Shape};

/// A row version.
#[derive(Clone, Debug)]
struct Version {
    row: Row,
    begin: u64,
    end: u64,
}

/// A table with all its versions.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: String,
    pub shape: Shape,
    created: u64,
    dropped: u64,
    rows: BTreeMap<i64, Version>,
    /// Timestamps of commits that wrote to it, ALTER and TRUNCATE among them.
    writes: Vec<u64>,
    /// The columns that ALTER has made, each version with the commit it is from.
    columns: Vec<(u64, Added)>,
}

/// All tables, by id, with their past.
#[derive(Clone, Debug, Default)]
pub struct History {
    tables: BTreeMap<u64, Table>,
    next_uid: i64,
}

/// What an open transaction has written to one table.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    pub inserted: BTreeMap<i64, Row>,
    pub deleted: BTreeSet<i64>,
}

/// A transaction that is not committed.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its snapshot.
    pub ts: u64,
    writes: BTreeMap<u64, Writes>,
    created: BTreeMap<u64, (String, Shape)>,
    dropped: BTreeSet<u64>,
    altered: BTreeMap<u64, Added>,
    truncated: BTreeSet<u64>,
    /// Rows of others that it has read FOR UPDATE.
    locked: BTreeMap<u64, BTreeSet<i64>>,
    /// Whether it may have seen rows: else its schema changes take the state at their commit.
    pub looked: bool,
}

/// What a conflict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A table was dropped or written to, or its name is taken.
    Table,
    /// A row was deleted or updated.
    Row,
    /// A row was, which was read FOR UPDATE.
    LockedRow,
    /// A key was taken, where it is the sort key.
    Key,
    /// A key was taken, where it is another.
    IndexedKey,
}

/// What a commit must answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to commit.
    Empty,
    /// 40001, and why.
    Conflict(Cause, String),
    /// It commits.
    Commits,
}

impl Pending {
    /// A transaction with a snapshot at `ts`.
    #[must_use]
    pub fn new(ts: u64) -> Self {
        Self {
            ts,
            writes: BTreeMap::new(),
            created: BTreeMap::new(),
            dropped: BTreeSet::new(),
            altered: BTreeMap::new(),
            truncated: BTreeSet::new(),
            locked: BTreeMap::new(),
            looked: false,
        }
    }

    pub(super) fn writes(&mut self, table: u64) -> &mut Writes {
        self.writes.entry(table).or_default()
    }

    /// Reads rows FOR UPDATE; its own need it not.
    pub(super) fn lock(&mut self, table: u64, rows: BTreeSet<i64>) {
        let rows = rows.into_iter().filter(|uid| !self.has_inserted(table, *uid)).collect::<Vec<_>>();
        self.locked.entry(table).or_default().extend(rows);
    }

    /// Whether the row with number `uid` is one it inserted.
    pub(super) fn has_inserted(&self, table: u64, uid: i64) -> bool {
        self.writes.get(&table).is_some_and(|writes| writes.inserted.contains_key(&uid))
    }

    pub(super) fn create(&mut self, table: u64, name: &str, shape: Shape) {
        self.created.insert(table, (name.to_owned(), shape));
    }

    pub(super) fn drop_table(&mut self, table: u64) {
        self.writes.remove(&table);
        self.locked.remove(&table);
        if self.created.remove(&table).is_none() {
            self.dropped.insert(table);
        } else {
            self.altered.remove(&table);
        }
    }

    pub(super) fn alter(&mut self, table: u64, columns: Added) {
        self.altered.insert(table, columns);
    }

    pub(super) fn truncate(&mut self, table: u64) {
        self.writes.remove(&table);
        self.locked.remove(&table);
        if !self.created.contains_key(&table) {
            self.truncated.insert(table);
        }
    }

    /// Tables standing before it that it drops, alters or empties.
    fn changed(&self) -> BTreeSet<u64> {
        let altered = self.altered.keys().filter(|id| !self.created.contains_key(id));
        self.dropped.iter().chain(&self.truncated).chain(altered).copied().collect()
    }

    /// Whether schema changes are the whole of it.
    fn is_alone(&self) -> bool {
        !self.looked && self.writes.is_empty()
    }
}

impl History {
    /// A number for a new row version.
    pub(super) fn new_uid(&mut self) -> i64 {
        self.next_uid += 1;
        self.next_uid
    }

    /// Tables `pending` sees: id, name and shape.
    #[must_use]
    pub(super) fn tables(&self, pending: &Pending) -> Vec<(u64, String, Shape)> {
        let standing = self.tables.iter().filter(|(id, table)| {
            table.created <= pending.ts && pending.ts < table.dropped && !pending.dropped.contains(id)
        });
        let standing = standing.map(|(id, table)| (*id, table.name.clone(), table.shape));
        let own = pending.created.iter().map(|(id, (name, shape))| (*id, name.clone(), *shape));
        standing.chain(own).collect()
    }

    /// The columns that ALTER has made of `table`, as `pending` sees them.
    pub(super) fn columns(&self, pending: &Pending, table: u64) -> Added {
        let standing = || self.tables.get(&table)?.columns.iter().rev().find(|(ts, _)| *ts <= pending.ts);
        pending.altered.get(&table).or_else(|| standing().map(|(_, columns)| columns)).cloned().unwrap_or_default()
    }

    /// Whether `pending` changes a table as the whole of its transaction, while others have written to it since its
    /// snapshot.
    #[must_use]
    pub(super) fn is_beside_writers(&self, pending: &Pending) -> bool {
        let written =
            |id: &u64| self.tables.get(id).is_some_and(|table| table.writes.iter().any(|ts| *ts > pending.ts));
        pending.is_alone() && pending.changed().iter().any(written)
    }

    /// The rows of `table` that `pending` sees, by number.
    #[must_use]
    pub(super) fn rows(&self, pending: &Pending, table: u64) -> BTreeMap<i64, Row> {
        let (own, columns) = (pending.writes.get(&table), self.columns(pending, table));
        let deleted = |uid: &i64| own.is_some_and(|own| own.deleted.contains(uid));
        let emptied = pending.truncated.contains(&table);
        let stored = self.tables.get(&table).filter(|_| !emptied).into_iter().flat_map(|table| &table.rows);
        let mut rows: BTreeMap<i64, Row> = stored
            .filter(|(uid, row)| row.begin <= pending.ts && pending.ts < row.end && !deleted(uid))
            .map(|(uid, row)| (*uid, columns.shown(&row.row)))
            .collect();
        let inserted = own.into_iter().flat_map(|own| &own.inserted);
        rows.extend(inserted.map(|(uid, row)| (*uid, columns.shown(row))));
        rows
    }

    /// What committing `pending` now must answer: first committer wins, per row, per key, per table.
    #[must_use]
    pub fn outcome(&self, pending: &Pending) -> Outcome {
        let standing = |id: &u64| self.tables.get(id).filter(|table| table.dropped == u64::MAX);
        for (id, rows) in &pending.locked {
            if pending.created.contains_key(id) || pending.truncated.contains(id) {
                continue;
            }
            let Some(table) = standing(id).filter(|table| !table.is_altered_since(pending.ts)) else {
                return Outcome::Conflict(Cause::Table, format!("table {id}, read FOR UPDATE, is gone or altered"));
            };
            let live = |uid: &&i64| table.rows.get(uid).is_some_and(|row| row.end == u64::MAX);
            if let Some(uid) = rows.iter().find(|uid| !live(uid)) {
                let why = format!("table {id}: row {uid}, read FOR UPDATE, was deleted");
                return Outcome::Conflict(Cause::LockedRow, why);
            }
        }
        if pending.writes.is_empty() && pending.created.is_empty() && pending.changed().is_empty() {
            return Outcome::Empty;
        }
        for id in &pending.changed() {
            match standing(id) {
                None => return Outcome::Conflict(Cause::Table, format!("table {id} is gone")),
                Some(table) if !pending.is_alone() && table.writes.iter().any(|ts| *ts > pending.ts) => {
                    return Outcome::Conflict(Cause::Table, format!("table {id}, to be changed, was written to"));
                }
                Some(table) if pending.altered.contains_key(id) && table.is_altered_since(pending.ts) => {
                    return Outcome::Conflict(Cause::Table, format!("table {id}, to be altered, was altered"));
                }
                Some(_) => {}
            }
        }
        for (name, _) in pending.created.values() {
            let taken = self
                .tables
                .iter()
                .any(|(id, table)| &table.name == name && table.dropped == u64::MAX && !pending.dropped.contains(id));
            if taken {
                return Outcome::Conflict(Cause::Table, format!("name {name} is taken"));
            }
        }
        for (id, writes) in &pending.writes {
            if pending.created.contains_key(id) {
                continue;
            }
            let Some(table) = standing(id) else {
                return Outcome::Conflict(Cause::Table, format!("table {id} is gone"));
            };
            if pending.truncated.contains(id) {
                continue;
            }
            if table.is_altered_since(pending.ts) {
                return Outcome::Conflict(Cause::Table, format!("table {id} was altered"));
            }
            if let Some((cause, why)) = table.conflict(writes) {
                return Outcome::Conflict(cause, format!("table {id}: {why}"));
            }
        }
        Outcome::Commits
    }

    /// Whether a statement of `pending` that deletes `rows` of `table` must fail early: the table is gone or altered,
    /// or one of the rows is no longer what the snapshot shows.
    #[must_use]
    pub(super) fn is_lost(&self, pending: &Pending, table: u64, rows: &BTreeSet<i64>) -> bool {
        if pending.created.contains_key(&table) {
            return false;
        }
        let Some(table) = self.tables.get(&table).filter(|table| table.dropped == u64::MAX) else { return true };
        table.is_altered_since(pending.ts)
            || rows.iter().any(|uid| table.rows.get(uid).is_some_and(|row| row.end != u64::MAX))
    }

    /// Makes `pending` true at `ts`.
    pub fn commit(&mut self, pending: &Pending, ts: u64) {
        for id in &pending.dropped {
            if let Some(table) = self.tables.get_mut(id) {
                table.dropped = ts;
            }
        }
        for (id, (name, shape)) in &pending.created {
            let table = Table {
                name: name.clone(),
                shape: *shape,
                created: ts,
                dropped: u64::MAX,
                rows: BTreeMap::new(),
                writes: Vec::new(),
                columns: vec![(ts, Added::default())],
            };
            self.tables.insert(*id, table);
        }
        for (id, columns) in &pending.altered {
            let Some(table) = self.tables.get_mut(id) else { continue };
            table.columns.push((ts, columns.clone()));
            table.writes.push(ts);
        }
        for id in &pending.truncated {
            let Some(table) = self.tables.get_mut(id) else { continue };
            table.rows.values_mut().filter(|row| row.end == u64::MAX).for_each(|row| row.end = ts);
            table.writes.push(ts);
        }
        for (id, writes) in &pending.writes {
            let Some(table) = self.tables.get_mut(id) else { continue };
            table.writes.push(ts);
            for uid in &writes.deleted {
                if let Some(version) = table.rows.get_mut(uid) {
                    version.end = ts;
                }
            }
            let versions =
                writes.inserted.iter().map(|(uid, row)| (*uid, Version { row: row.clone(), begin: ts, end: u64::MAX }));
            table.rows.extend(versions);
        }
    }

    /// Forgets what happened after `ts`: it was lost.
    pub fn truncate(&mut self, ts: u64) {
        self.tables.retain(|_, table| table.created <= ts);
        for table in self.tables.values_mut() {
            if table.dropped > ts {
                table.dropped = u64::MAX;
            }
            table.rows.retain(|_, row| row.begin <= ts);
            table.rows.values_mut().filter(|row| row.end > ts).for_each(|row| row.end = u64::MAX);
            table.writes.retain(|written| *written <= ts);
            table.columns.retain(|(altered, _)| *altered <= ts);
        }
    }
}

impl Table {
    fn is_altered_since(&self, ts: u64) -> bool {
        // The first version is that of CREATE TABLE.
        self.columns.iter().skip(1).any(|(altered, _)| *altered > ts)
    }

    fn conflict(&self, writes: &Writes) -> Option<(Cause, String)> {
        let live = |version: &&Version| version.end == u64::MAX;
        let gone = writes.deleted.iter().find(|uid| self.rows.get(uid).filter(live).is_none());
        if let Some(uid) = gone {
            return Some((Cause::Row, format!("row {uid} was deleted")));
        }
        let present = self.rows.iter().filter(|(uid, version)| live(version) && !writes.deleted.contains(uid));
        let taken: BTreeSet<NumberedKey> = present.flat_map(|(_, v)| self.shape.keys_of(&v.row)).collect();
        let mut keys = writes.inserted.values().flat_map(|row| self.shape.keys_of(row));
        let cause = if self.shape.has_key_index() { Cause::IndexedKey } else { Cause::Key };
        keys.find(|key| taken.contains(key)).map(|key| (cause, format!("key {key:?} was taken")))
    }
}
