//! Compares what a transaction reads with the history at its snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::point;
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::row::key::TableKey;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::version::TableView;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::driver::{Driver, Mismatch};
use super::history::{History, Pending};
use super::rows::{Row, random_value, read_batch};
use super::shape::{NumberedKey, Shape, UID};

/// What a full scan found.
pub(super) struct Read {
    rows: Vec<(Row, RowRef)>,
    counted: u64,
}

/// Scans `table`, with row references.
pub(super) fn read_table(txn: &Transaction, table: u64) -> mainstem_storage::Result<Read> {
    let view = txn.view(TableId(table))?;
    let scan = view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(view.schema().column_ids()) })?;
    let columns = view.schema().columns.len();
    let mut rows = Vec::new();
    for batch in scan.worker() {
        let batch = batch?;
        let refs = batch.column(columns).as_primitive::<UInt64Type>().values();
        rows.extend(read_batch(&batch, columns).into_iter().zip(refs.iter().map(|bits| RowRef::from_bits(*bits))));
    }
    Ok(Read { rows, counted: view.statistics().rows })
}

impl Read {
    /// Compares with `expected`; returns where each row stands.
    pub(super) fn check(&self, expected: &BTreeMap<i64, Row>, what: &str) -> Result<BTreeMap<i64, RowRef>, Mismatch> {
        let mut refs = BTreeMap::new();
        for (row, at) in &self.rows {
            let Value::Int(uid) = row[UID] else { return Err(Mismatch(format!("{what}: a row without a number"))) };
            if expected.get(&uid) != Some(row) {
                let wanted = expected.get(&uid).map_or_else(|| "no such row".to_owned(), brief);
                return Err(Mismatch(format!("{what}: read {} at {at:?}, expected {wanted}", brief(row))));
            }
            if let Some(other) = refs.insert(uid, *at) {
                return Err(Mismatch(format!("{what}: row {uid} was read at {other:?} and {at:?}")));
            }
        }
        if let Some((uid, row)) = expected.iter().find(|(uid, _)| !refs.contains_key(uid)) {
            return Err(Mismatch(format!("{what}: row {uid} is missing: {}", brief(row))));
        }
        if self.counted != expected.len() as u64 {
            return Err(Mismatch(format!("{what}: statistics count {} rows of {}", self.counted, expected.len())));
        }
        Ok(refs)
    }
}

fn brief(row: &Row) -> String {
    let mut text = format!("{row:?}");
    if text.len() > 300 {
        let end = (0..=300).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// A reason why a comparison ended: the engine failed, or it differs.
pub(super) enum Trouble {
    Failed(mainstem_storage::Error),
    Differs(Mismatch),
}

impl From<mainstem_storage::Error> for Trouble {
    fn from(e: mainstem_storage::Error) -> Self {
        Self::Failed(e)
    }
}

impl From<Mismatch> for Trouble {
    fn from(e: Mismatch) -> Self {
        Self::Differs(e)
    }
}

/// Compares all that `write_set` sees with the history. Returns how many keys were found through a key index.
pub(super) fn compare(history: &History, txn: &Transaction, pending: &Pending, seed: u64) -> Result<u64, Trouble> {
    let mut indexed_rows = 0;
    let mut found: Vec<(u64, String)> = txn.catalog().tables().map(|t| (t.id.0, t.name.clone())).collect();
    found.sort();
    let mut tables = history.tables(pending);
    tables.sort_by_key(|table| table.0);
    if !found.iter().map(|t| (t.0, &t.1)).eq(tables.iter().map(|t| (t.0, &t.1))) {
        return Err(Mismatch(format!("tables at {}: {found:?}, expected {tables:?}", pending.ts)).into());
    }
    let mut rng = StdRng::seed_from_u64(seed);
    for (id, name, shape) in tables {
        let what = format!("table {id} ({name}, {shape:?}) at {}", pending.ts);
        let expected = history.rows(pending, id);
        let refs = read_table(txn, id)?.check(&expected, &what)?;
        let view = txn.view(TableId(id))?;
        for _ in 0..2 {
            compare_predicates(&mut rng, &view, &expected, &what)?;
            compare_order(&mut rng, &view, &expected, &what)?;
        }
        let stored = |uid: i64| refs.get(&uid).copied().filter(|_| !pending.has_inserted(id, uid));
        let found = compare_keys(&mut rng, &view, shape, &expected, stored, &what)?;
        indexed_rows += if shape.has_key_index() { found } else { 0 };
        compare_bounds(&view, &expected, &what)?;
    }
    Ok(indexed_rows)
}

fn random_predicate(rng: &mut StdRng, view: &TableView, expected: &BTreeMap<i64, Row>) -> (usize, Predicate) {
    let at = rng.random_range(0..view.schema().columns.len());
    let column = view.schema().columns[at].id;
    let mut value = || {
        let stored = expected.values().nth(rng.random_range(0..expected.len().max(1)));
        let stored = stored.filter(|_| rng.random()).map(|row| row[at].clone());
        stored.unwrap_or_else(|| random_value(rng, at, 40, true))
    };
    let (one, values) = (value(), (0..3).map(|_| value()).collect());
    let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
    let predicate = match rng.random_range(0..10) {
        0 => Predicate::IsNull { column },
        1 => Predicate::IsNotNull { column },
        2 => Predicate::In { column, values },
        _ => Predicate::Compare { column, op: ops[rng.random_range(0..ops.len())], value: one },
    };
    (at, predicate)
}

/// A scan with one or two random predicates, and with a limit.
fn compare_predicates(
    rng: &mut StdRng,
    view: &Arc<TableView>,
    expected: &BTreeMap<i64, Row>,
    what: &str,
) -> Result<(), Trouble> {
    let predicates: Vec<_> = (0..rng.random_range(1..3)).map(|_| random_predicate(rng, view, expected)).collect();
    let limit = rng.random_ratio(1, 4).then(|| rng.random_range(0..10));
    let columns = vec![view.schema().columns[UID].id];
    let request = ScanRequest {
        predicates: predicates.iter().map(|(_, p)| p.clone()).collect(),
        limit,
        batch_rows: [0, 3][rng.random_range(0..2)],
        ..ScanRequest::all(columns)
    };
    let found = select_uids(view, &request)?;
    let holds = |row: &Row| predicates.iter().all(|(at, p)| p.matches(&row[*at]));
    let wanted: Vec<i64> = expected.iter().filter(|(_, row)| holds(row)).map(|(uid, _)| *uid).collect();
    let same = match limit {
        None => found == wanted,
        Some(limit) => found.len() == wanted.len().min(limit) && found.iter().all(|uid| wanted.contains(uid)),
    };
    if same {
        return Ok(());
    }
    let text = format!("{predicates:?}");
    Err(Mismatch(format!("{what}: where {text:.300} limit {limit:?} selects {found:?}, expected {wanted:?}")).into())
}

/// A scan in key order, with up to one random predicate, and with a limit.
fn compare_order(
    rng: &mut StdRng,
    view: &Arc<TableView>,
    expected: &BTreeMap<i64, Row>,
    what: &str,
) -> Result<(), Trouble> {
    let schema = view.schema();
    let predicate = (!expected.is_empty() && rng.random()).then(|| random_predicate(rng, view, expected));
    let limit = rng.random_ratio(1, 2).then(|| rng.random_range(0..10));
    let request = ScanRequest {
        predicates: predicate.iter().map(|(_, p)| p.clone()).collect(),
        limit,
        row_refs: rng.random(),
        batch_rows: [0, 3][rng.random_range(0..2)],
        ..ScanRequest::all(schema.column_ids())
    };
    let Some(scan) = view.scan_in_order(&request)? else {
        let unordered = schema.sort_key.is_empty() || view.own().is_some_and(|own| !own.rows().is_empty());
        return if unordered { Ok(()) } else { Err(Mismatch(format!("{what}: no scan in key order")).into()) };
    };
    let mut found = Vec::new();
    for batch in scan {
        let batch = batch?;
        found.extend(read_batch(&batch, schema.columns.len()));
    }
    let positions: Vec<usize> = schema.sort_key.iter().filter_map(|id| schema.position(*id)).collect();
    let key = |row: &Row| positions.iter().map(|at| row[*at].clone()).collect::<Vec<_>>();
    let holds = |row: &Row| predicate.iter().all(|(at, p)| p.matches(&row[*at]));
    let mut wanted: Vec<&Row> = expected.values().filter(|row| holds(row)).collect();
    wanted.sort_by_key(|row| key(row));
    wanted.truncate(limit.unwrap_or(usize::MAX));
    let keys_agree = found.iter().map(&key).eq(wanted.iter().map(|row| key(row)));
    let uids = |rows: &mut dyn Iterator<Item = &Row>| rows.map(|row| row[UID].clone()).collect::<BTreeSet<_>>();
    let found_uids = uids(&mut found.iter());
    // Of rows with equal keys a limit may cut off any.
    let rows_agree = limit.is_some() || found_uids == uids(&mut wanted.iter().copied());
    let all_hold = found.iter().all(|row| holds(row) && expected.values().any(|other| other == row));
    if keys_agree && rows_agree && all_hold && found_uids.len() == found.len() {
        return Ok(());
    }
    let (found, wanted): (Vec<_>, Vec<_>) =
        (found.iter().map(&key).collect(), wanted.iter().map(|row| key(row)).collect());
    let text = format!("{predicate:?}");
    Err(Mismatch(format!("{what}: in order, where {text:.300} limit {limit:?}: {found:?}, expected {wanted:?}")).into())
}

/// Looks up keys that are there and some that are not, by key and by scans; returns how many the store has. `stored`
/// says where a row stands unless the transaction inserted it: those rows are not the store's to find, but a scan's.
fn compare_keys(
    rng: &mut StdRng,
    view: &Arc<TableView>,
    shape: Shape,
    expected: &BTreeMap<i64, Row>,
    stored: impl Fn(i64) -> Option<RowRef>,
    what: &str,
) -> Result<u64, Trouble> {
    let table_keys = TableKey::all(view.schema());
    let columns: Vec<&[usize]> = shape.keys().collect();
    let of_row = |(uid, row): (&i64, &Row)| shape.keys_of(row).map(|key| (key, Some(*uid))).collect::<Vec<_>>();
    let mut wanted: Vec<(NumberedKey, Option<i64>)> =
        expected.iter().filter(|_| rng.random_ratio(1, 4)).flat_map(of_row).collect();
    for (number, columns) in columns.iter().enumerate() {
        for _ in 0..4 {
            let key = (number, columns.iter().map(|at| random_value(rng, *at, 300, false)).collect());
            let there = expected.iter().find(|(_, row)| shape.keys_of(row).any(|other| other == key));
            wanted.push((key, there.map(|(uid, _)| *uid)));
        }
    }
    let mut hits = 0;
    for ((number, key), uid) in wanted {
        let mut bytes = Vec::new();
        let (Some(table_key), Some(columns)) = (table_keys.get(number), columns.get(number)) else {
            return Err(Mismatch(format!("{what}: it has {} keys", table_keys.len())).into());
        };
        table_key.codec().encode_values(&key, &mut bytes)?;
        let found = point::find(view, table_key.id(), &bytes, |_| true)?;
        let at = uid.and_then(&stored);
        if found != at {
            let key = format!("{key:?}");
            return Err(Mismatch(format!("{what}: key {key:.200} found at {found:?}, expected {at:?}")).into());
        }
        hits += u64::from(found.is_some());
        if rng.random_ratio(1, 8) {
            compare_key_scan(view, columns, &key, uid, what)?;
        }
    }
    Ok(hits)
}

/// A scan for one key finds the one row that has it.
fn compare_key_scan(
    view: &Arc<TableView>,
    key_columns: &[usize],
    key: &[Value],
    uid: Option<i64>,
    what: &str,
) -> Result<(), Trouble> {
    let columns = &view.schema().columns;
    let equal = |(at, value): (&usize, &Value)| {
        let value = value.clone();
        Predicate::Compare { column: columns[*at].id, op: CompareOp::Eq, value }
    };
    let predicates = key_columns.iter().zip(key).map(equal).collect();
    let found = select_uids(view, &ScanRequest { predicates, ..ScanRequest::all(vec![columns[UID].id]) })?;
    if found == Vec::from_iter(uid) {
        return Ok(());
    }
    let key = format!("{key:?}");
    Err(Mismatch(format!("{what}: a scan for key {key:.200} selects {found:?}, expected {uid:?}")).into())
}

/// Numbers of the rows that a scan of that column selects, in order.
fn select_uids(view: &Arc<TableView>, request: &ScanRequest) -> mainstem_storage::Result<Vec<i64>> {
    let mut found = Vec::new();
    for batch in view.scan(request)?.worker() {
        found.extend_from_slice(batch?.column(0).as_primitive::<Int64Type>().values());
    }
    found.sort_unstable();
    Ok(found)
}

/// Exact bounds are those of the live rows; others are no narrower.
fn compare_bounds(view: &TableView, expected: &BTreeMap<i64, Row>, what: &str) -> Result<(), Trouble> {
    for (at, column) in view.statistics().columns.iter().enumerate() {
        let Some(range) = &column.range else { continue };
        let values = || expected.values().map(|row| &row[at]).filter(|v| !v.is_null());
        let (Some(min), Some(max)) = (values().min(), values().max()) else { continue };
        let known = !range.min.is_null() && !range.max.is_null();
        let same = &range.min == min && &range.max == max;
        let wide = &range.min <= min && &range.max >= max;
        if known && !(if column.exact { same } else { wide }) {
            let text = format!("{range:?}");
            let message = format!("{what}: column {at} has bounds {text:.200} (exact: {})", column.exact);
            return Err(Mismatch(message).into());
        }
    }
    Ok(())
}

impl Driver {
    fn judge(&mut self, what: &str, result: Result<u64, Trouble>) -> Result<(), Mismatch> {
        match result {
            Ok(indexed_rows) => {
                self.seen.indexed_rows += indexed_rows;
                Ok(())
            }
            Err(Trouble::Failed(e)) => self.refused(what, &e),
            Err(Trouble::Differs(e)) => Err(e),
        }
    }

    /// Compares what the transaction in `slot` sees.
    pub(super) fn check_session(&mut self, slot: usize, seed: u64) -> Result<(), Mismatch> {
        let Some(session) = &mut self.sessions[slot] else { return Ok(()) };
        session.pending.looked |= !self.history.tables(&session.pending).is_empty();
        let compared = compare(&self.history, &session.txn, &session.pending, seed);
        self.judge(&format!("reading in slot {slot}"), compared)
    }

    /// Compares what a new transaction sees.
    pub(super) fn check_fresh(&mut self) -> Result<(), Mismatch> {
        let Some(db) = self.db.clone() else { return Ok(()) };
        let txn = match db.begin(TransactionMode { read_only: true, ..TransactionMode::default() }) {
            Ok(txn) => txn,
            Err(e) => return self.refused("begin", &e),
        };
        let pending = Pending::new(txn.read_ts().0);
        let last = self.acknowledged.iter().copied().max().unwrap_or(0);
        if pending.ts < last {
            return Err(Mismatch(format!("a snapshot at {} after commit {last} was told", pending.ts)));
        }
        let compared = compare(&self.history, &txn, &pending, pending.ts);
        self.judge("reading in a new transaction", compared)
    }

    /// Compares every open snapshot, and a new one.
    ///
    /// # Errors
    /// What differs.
    pub fn check_all(&mut self) -> Result<(), Mismatch> {
        for slot in 0..self.sessions.len() {
            self.check_session(slot, slot as u64)?;
        }
        self.check_fresh()
    }
}
