//! A small table of a database in memory, for unit tests of the stages that read one: (id BIGINT PRIMARY KEY, v
//! BIGINT).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch};

use super::Database;
use crate::catalog::{ColumnDefinition, TableDefinition, UniqueDefinition};
use crate::ids::{ColumnId, RowRef, TableId};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::scan::{Scan, ScanRequest};
use crate::schema::DataType;
use crate::settings::OpenOptions;
use crate::transaction::{Transaction, TransactionMode};
use crate::version::TableView;

pub(crate) const ID: ColumnId = ColumnId(0);
pub(crate) const V: ColumnId = ColumnId(1);

/// Says that all is done when it goes, whatever makes it go: threads that work until then end with who watches them.
pub(crate) struct DoneOnDrop<'a>(pub &'a AtomicBool);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The table of a database whose rows stay where the test puts them.
pub(crate) struct Table {
    pub db: Database,
    pub id: TableId,
}

/// An empty table with segments of `segment_rows` rows.
pub(crate) fn table(segment_rows: u32) -> Table {
    on(Database::in_memory(options()).unwrap(), segment_rows)
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions::new().background(false)
}

pub(crate) fn on(db: Database, segment_rows: u32) -> Table {
    defined(db, definition("t"), segment_rows)
}

/// The same table whose values are a key, too.
pub(crate) fn with_unique_values(db: Database, segment_rows: u32) -> Table {
    let unique_keys = vec![UniqueDefinition { name: "u".into(), columns: vec!["v".into()] }];
    defined(db, TableDefinition { unique_keys, ..definition("t") }, segment_rows)
}

fn defined(db: Database, mut definition: TableDefinition, segment_rows: u32) -> Table {
    definition.options.segment_rows = segment_rows;
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    Table { db, id }
}

/// The table's columns and key, under another name.
pub(crate) fn definition(name: &str) -> TableDefinition {
    let column = |name: &str, nullable| ColumnDefinition::new(name, DataType::BigInt, nullable);
    TableDefinition {
        primary_key: vec!["id".into()],
        ..TableDefinition::new(name, vec![column("id", false), column("v", true)])
    }
}

pub(crate) fn batch(rows: &[(i64, Option<i64>)]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|row| row.0).collect();
    let values: Int64Array = rows.iter().map(|row| row.1).collect();
    RecordBatch::try_from_iter_with_nullable([("id", Arc::new(ids) as _, false), ("v", Arc::new(values) as _, true)])
        .unwrap()
}

/// The encoded key of `id`.
pub(crate) fn key(view: &TableView, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    KeyCodec::new(view.schema(), &view.schema().primary_key).encode_values(&[Value::Int(id)], &mut key).unwrap();
    key
}

impl Table {
    pub fn begin(&self) -> Transaction {
        self.db.begin(TransactionMode::default()).unwrap()
    }

    pub fn view(&self) -> Arc<TableView> {
        self.begin().view(self.id).unwrap()
    }

    /// Commits rows (id, 10 * id).
    pub fn insert(&self, ids: impl IntoIterator<Item = i64>) {
        let mut txn = self.begin();
        self.insert_in(&mut txn, ids);
        txn.commit().unwrap();
    }

    pub fn insert_in(&self, txn: &mut Transaction, ids: impl IntoIterator<Item = i64>) {
        let rows: Vec<_> = ids.into_iter().map(|id| (id, Some(10 * id))).collect();
        self.write_in(txn, &[], &rows).unwrap();
    }

    /// One statement that deletes `gone` and inserts `rows`.
    pub fn write_in(&self, txn: &mut Transaction, gone: &[i64], rows: &[(i64, Option<i64>)]) -> crate::Result<()> {
        let view = txn.view(self.id)?;
        let found: Vec<RowRef> =
            rows_of(&view).into_iter().filter(|row| gone.contains(&row.1)).map(|row| row.0).collect();
        assert_eq!(found.len(), gone.len());
        let mut statement = txn.statement();
        statement.delete(view.schema(), &found)?;
        statement.insert(view.schema(), &batch(rows))?;
        txn.apply(statement)
    }

    pub fn delete(&self, ids: &[i64]) {
        let mut txn = self.begin();
        self.write_in(&mut txn, ids, &[]).unwrap();
        txn.commit().unwrap();
    }

    /// Commits new values of one row.
    pub fn update(&self, id: i64, value: i64) {
        let mut txn = self.begin();
        self.write_in(&mut txn, &[id], &[(id, Some(value))]).unwrap();
        txn.commit().unwrap();
    }

    pub fn flush(&self) {
        self.db.flush(self.id).unwrap();
    }
}

/// (id, value) of what `scan` returns, in order of id.
pub(crate) fn pairs(scan: &Arc<Scan>) -> Vec<(i64, Option<i64>)> {
    let mut all = Vec::new();
    for batch in scan.worker() {
        let batch = batch.unwrap();
        let (ids, values) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        all.extend((0..batch.num_rows()).map(|i| (ids.value(i), values.is_valid(i).then(|| values.value(i)))));
    }
    all.sort_unstable();
    all
}

/// (reference, id, value) of all rows of `view`.
pub(crate) fn rows_of(view: &Arc<TableView>) -> Vec<(RowRef, i64, Option<i64>)> {
    let scan = view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(vec![ID, V]) }).unwrap();
    let mut all = Vec::new();
    for batch in scan.worker() {
        let batch = batch.unwrap();
        let (ids, values) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let refs = batch.column(2).as_primitive::<arrow_array::types::UInt64Type>();
        all.extend(
            (0..batch.num_rows())
                .map(|i| (RowRef::from_bits(refs.value(i)), ids.value(i), values.is_valid(i).then(|| values.value(i)))),
        );
    }
    all
}

impl Database {
    pub(crate) fn engine(&self) -> &crate::commit::Engine {
        &self.0.engine
    }

    pub(crate) fn background(&self) -> &crate::background::Background {
        &self.0.background
    }

    /// A checkpoint of the present as it is: deltas stay in the log.
    pub(crate) fn checkpoint_now(&self) -> crate::Result<()> {
        self.0.engine.checkpoint()
    }
}
