//! One writing statement on both sides.

use std::collections::{BTreeMap, BTreeSet};

use mainstem_storage::Error;
use mainstem_storage::database::Database;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::transaction::Transaction;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::check::read_table;
use super::driver::{Driver, Mismatch};
use super::history::History;
use super::op::{Flaw, Write};
use super::rows::{Row, random_row, random_value, to_batch};
use super::shape::{COLUMNS, K, NumberedKey, Shape, T, UID};

/// Rows of a batch of a statement: several go into one.
const BATCH: usize = 8;
/// Bytes of a long text, and rows with it that are more than a commit takes under the lock.
const BULKY_TEXT: usize = 40 << 10;
const BULKY_ROWS: u16 = 40;
/// Key values used: few, so that they collide.
const KEYS: i64 = 48;

/// What a table is made of.
#[derive(Clone, Copy)]
struct Made {
    shape: Shape,
    /// Columns that ALTER added.
    added: usize,
}

/// A statement's net effect.
#[derive(Default)]
struct Effect {
    deletes: BTreeSet<i64>,
    inserts: Vec<Row>,
    /// Keys that the statement looks up before it writes, and who has them.
    probes: Vec<(NumberedKey, Option<i64>)>,
}

impl Driver {
    pub(super) fn write(
        &mut self,
        db: &Database,
        slot: u8,
        table: u8,
        seed: u64,
        write: Write,
    ) -> Result<(), Mismatch> {
        if !self.ensure_session(db, slot)? {
            return Ok(());
        }
        let Some(mut session) = self.sessions[usize::from(slot)].take() else { return Ok(()) };
        let tables = self.history.tables(&session.pending);
        if tables.is_empty() {
            self.sessions[usize::from(slot)] = Some(session);
            return Ok(());
        }
        let (id, _, shape) = tables[usize::from(table) % tables.len()].clone();
        let added = self.history.columns(&session.pending, id);
        let before = self.history.rows(&session.pending, id);
        let made = Made { shape, added: added.count() };
        let effect = effect(&mut StdRng::seed_from_u64(seed), &mut self.history, made, &before, write);
        if !effect.deletes.is_empty() || !effect.inserts.is_empty() {
            session.pending.looked = true;
            let expected = match expected(shape, &before, &effect) {
                // What others changed shows at once, before anything is inserted.
                _ if !session.read_only && self.history.is_lost(&session.pending, id, &effect.deletes) => {
                    sqlstate::CONFLICT
                }
                // A row is looked at before the end of the statement, a key and the transaction's mode then.
                state if session.read_only && state != sqlstate::NOT_NULL => sqlstate::READ_ONLY,
                state => state,
            };
            let found = effect.probes.iter().filter(|(_, uid)| uid.is_some()).count() as u64;
            let answer = match read_table(&session.txn, id) {
                Ok(read) => {
                    let refs = read.check(&before, &format!("{write:?} on table {id} in slot {slot}"))?;
                    execute(&mut session.txn, id, &refs, &effect, write)
                }
                Err(e) => Err(e),
            };
            let what = format!("{write:?} on table {id} in slot {slot}");
            let done = self.compare(&what, answer, expected)?;
            if !done && expected == sqlstate::UNIQUE {
                let seen = &mut self.seen;
                *if shape.has_key_index() { &mut seen.indexed_duplicates } else { &mut seen.duplicates } += 1;
            }
            self.seen.upserted += if done { found } else { 0 };
            if done && matches!(write, Write::Lock) {
                session.pending.lock(id, effect.deletes);
            } else if done {
                let writes = session.pending.writes(id);
                for uid in effect.deletes {
                    if writes.inserted.remove(&uid).is_none() {
                        writes.deleted.insert(uid);
                    }
                }
                let rows = effect.inserts.iter().filter_map(|row| Some((uid_of(row)?, added.stored(row))));
                writes.inserted.extend(rows);
            }
        }
        self.sessions[usize::from(slot)] = Some(session);
        Ok(())
    }
}

/// Does the statement on the engine.
fn execute(
    txn: &mut Transaction,
    table: u64,
    refs: &BTreeMap<i64, RowRef>,
    effect: &Effect,
    write: Write,
) -> mainstem_storage::Result<()> {
    let view = txn.view(TableId(table))?;
    let schema = view.schema().clone();
    let rows: Vec<RowRef> = effect.deletes.iter().filter_map(|uid| refs.get(uid).copied()).collect();
    if let Write::Lock = write {
        return txn.lock_rows(&schema, &rows);
    }
    for ((number, key), uid) in &effect.probes {
        let id = schema.keys().nth(*number).map(|(id, _)| id);
        let keyed = id.and_then(|id| PointTable::by(&schema, id)).ok_or_else(|| Error::internal("a key is missing"))?;
        let mut encoded = Vec::new();
        keyed.encode(key, &mut encoded)?;
        let found = txn.find_key(&view, keyed.found_by()?, &encoded)?;
        let wanted = uid.and_then(|uid| refs.get(&uid).copied());
        if found != wanted {
            return Err(Error::internal(format!("key {number} {key:?} was found at {found:?}, not at {wanted:?}")));
        }
    }
    let mut statement = txn.statement();
    statement.delete(&schema, &rows)?;
    for rows in effect.inserts.chunks(BATCH) {
        statement.insert(&schema, &to_batch(&schema, rows)?)?;
    }
    txn.apply(statement)
}

/// The SQLSTATE a statement must end with.
fn expected(shape: Shape, before: &BTreeMap<i64, Row>, effect: &Effect) -> &'static str {
    let null = |row: &Row| (0..COLUMNS).any(|at| row[at].is_null() && !shape.nullable(at));
    if effect.inserts.iter().any(null) {
        return sqlstate::NOT_NULL;
    }
    let kept = before.iter().filter(|(uid, _)| !effect.deletes.contains(uid)).map(|(_, row)| row);
    let mut keys: BTreeSet<NumberedKey> = kept.flat_map(|row| shape.keys_of(row)).collect();
    let mut new = effect.inserts.iter().flat_map(|row| shape.keys_of(row));
    if new.any(|key| !keys.insert(key)) { sqlstate::UNIQUE } else { "ok" }
}

fn uid_of(row: &Row) -> Option<i64> {
    match row.get(UID) {
        Some(Value::Int(uid)) => Some(*uid),
        _ => None,
    }
}

fn effect(rng: &mut StdRng, history: &mut History, made: Made, before: &BTreeMap<i64, Row>, write: Write) -> Effect {
    let shape = made.shape;
    match write {
        Write::Insert(rows, flaw) => {
            Effect { inserts: inserts(rng, history, made, before, rows, flaw), ..Effect::default() }
        }
        Write::Upsert(rows) => upserts(rng, history, made, before, rows),
        Write::Delete | Write::Lock => Effect { deletes: some_of(rng, before), ..Effect::default() },
        Write::Update => {
            let deletes = some_of(rng, before);
            let columns: Vec<usize> = (1..COLUMNS + made.added).filter(|_| rng.random_ratio(1, 3)).collect();
            let change = |uid: &i64| {
                let mut row = before.get(uid)?.clone();
                for &at in &columns {
                    row[at] = random_value(rng, at, KEYS * 2, shape.nullable(at));
                }
                row[UID] = Value::Int(history.new_uid());
                Some(row)
            };
            let inserts = deletes.iter().filter_map(change).collect();
            Effect { deletes, inserts, ..Effect::default() }
        }
        Write::Permute => {
            let deletes = some_of(rng, before);
            let rows: Vec<&Row> = deletes.iter().filter_map(|uid| before.get(uid)).collect();
            let keys: Vec<&[usize]> = shape.keys().collect();
            let permuted = match keys.as_slice() {
                [] => &[K, T][..],
                [key] => key,
                keys => keys[rng.random_range(0..keys.len())],
            };
            let next = |at: usize| {
                let (mut row, other) = (rows[at].clone(), rows[(at + 1) % rows.len()]);
                for &at in permuted {
                    row[at] = other[at].clone();
                }
                row[UID] = Value::Int(history.new_uid());
                row
            };
            let inserts = (0..rows.len()).map(next).collect();
            Effect { deletes, inserts, ..Effect::default() }
        }
    }
}

fn inserts(
    rng: &mut StdRng,
    history: &mut History,
    made: Made,
    before: &BTreeMap<i64, Row>,
    rows: u16,
    flaw: Flaw,
) -> Vec<Row> {
    let shape = made.shape;
    let rows = if flaw == Flaw::Bulky { rows + BULKY_ROWS } else { rows };
    let mut taken: BTreeSet<NumberedKey> = before.values().flat_map(|row| shape.keys_of(row)).collect();
    let mut all: Vec<Row> = Vec::new();
    for _ in 0..rows {
        // A collision with the snapshot now and then; else a statement of many rows would never succeed. With other
        // sessions they come by themselves, for there are few keys.
        let keys = match shape.primary_key().len() {
            _ if flaw == Flaw::Bulky => 1 << 40,
            0 | 1 => KEYS * 2,
            _ => KEYS / 8,
        };
        let mut row = random_row(rng, shape, made.added, history.new_uid(), keys);
        if flaw == Flaw::Bulky && !shape.primary_key().contains(&T) {
            row[T] = Value::Text(format!("{}{}", "bulk ".repeat(BULKY_TEXT / 5), rng.random_range(0..99)).into());
        } else if flaw == Flaw::Bulky {
            let text = format!("{}{}", rng.random_range(0..9), "bulk ".repeat(BULKY_TEXT / 5));
            row[T] = Value::Text(text.into());
        }
        let keys: Vec<NumberedKey> = shape.keys_of(&row).collect();
        let fresh = !keys.iter().any(|key| taken.contains(key));
        taken.extend(keys);
        if fresh || rng.random_ratio(1, 40) {
            all.push(row);
        }
    }
    match (flaw, all.last().cloned()) {
        (Flaw::Null, Some(_)) => {
            let at = rng.random_range(0..all.len());
            let columns: Vec<usize> = (1..COLUMNS).filter(|c| !shape.nullable(*c)).collect();
            if let Some(column) = columns.first() {
                all[at][*column] = Value::Null;
            }
        }
        (Flaw::Duplicate, Some(last)) => {
            let mut row = before.values().next().filter(|_| rng.random()).cloned().unwrap_or(last);
            row[UID] = Value::Int(history.new_uid());
            all.push(row);
        }
        _ => {}
    }
    all
}

/// INSERT ... ON CONFLICT by one of the keys, of rows with different ones. Who has the key of a row gets some of its
/// other values, or stays as it is.
fn upserts(rng: &mut StdRng, history: &mut History, made: Made, before: &BTreeMap<i64, Row>, rows: u16) -> Effect {
    let keys: Vec<&[usize]> = made.shape.keys().collect();
    if keys.is_empty() {
        return Effect { inserts: inserts(rng, history, made, before, rows, Flaw::None), ..Effect::default() };
    }
    let number = rng.random_range(0..keys.len());
    let key_of = |row: &Row| made.shape.keys_of(row).find(|(of, _)| *of == number);
    let owners: BTreeMap<NumberedKey, i64> =
        before.iter().filter_map(|(uid, row)| Some((key_of(row)?, *uid))).collect();
    let mut effect = Effect::default();
    let mut met = BTreeSet::new();
    for _ in 0..rows {
        let mut row = random_row(rng, made.shape, made.added, history.new_uid(), KEYS);
        // Of keys of several columns few would be met.
        if let Some(there) = before.values().nth(rng.random_range(0..before.len().max(1))).filter(|_| rng.random()) {
            for &at in keys[number] {
                row[at] = there[at].clone();
            }
        }
        let Some(key) = key_of(&row) else {
            effect.inserts.push(row);
            continue;
        };
        if !met.insert(key.clone()) {
            continue;
        }
        let owner = owners.get(&key).copied();
        effect.probes.push((key, owner));
        let Some((uid, old)) = owner.and_then(|uid| Some((uid, before.get(&uid)?))) else {
            effect.inserts.push(row);
            continue;
        };
        if rng.random_ratio(1, 4) {
            continue;
        }
        for at in (1..old.len()).filter(|at| keys[number].contains(at) || rng.random()) {
            row[at] = old[at].clone();
        }
        effect.deletes.insert(uid);
        effect.inserts.push(row);
    }
    effect
}

/// Numbers of some of the rows: one, a few neighbours in a column's order, a share, or all.
fn some_of(rng: &mut StdRng, before: &BTreeMap<i64, Row>) -> BTreeSet<i64> {
    if before.is_empty() {
        return BTreeSet::new();
    }
    let column = rng.random_range(0..COLUMNS);
    let mut order: Vec<(&Value, i64)> = before.iter().map(|(uid, row)| (&row[column], *uid)).collect();
    order.sort();
    let start = rng.random_range(0..order.len());
    let count = match rng.random_range(0..10) {
        0..5 => 1,
        5..8 => rng.random_range(1..10),
        8 => order.len() / 2 + 1,
        _ => return order.into_iter().filter(|_| rng.random_ratio(1, 3)).map(|(_, uid)| uid).collect(),
    };
    order.into_iter().skip(start).take(count).map(|(_, uid)| uid).collect()
}
