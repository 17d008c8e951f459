//! A small table and short words for what tests do with it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition, UniqueDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{KeyId, RowRef, TableId};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::{DataType, Layout, TableOptions, TableSchema};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::{Transaction, TransactionMode};
use mainstem_storage::version::Base;
use mainstem_storage::{Error, Result};

/// A row of the test table: (id BIGINT PRIMARY KEY, v INTEGER, s TEXT).
pub type Row = (i64, i32, Option<String>);

/// No background work, so that rows stay where the test puts them.
pub fn options() -> OpenOptions {
    OpenOptions::new().background(false)
}

pub fn memory() -> Database {
    Database::in_memory(options()).unwrap()
}

pub fn definition(name: &str, keyed: bool, segment_rows: u32) -> TableDefinition {
    let column = |name: &str, data_type, nullable| ColumnDefinition::new(name, data_type, nullable);
    TableDefinition {
        primary_key: if keyed { vec!["id".into()] } else { Vec::new() },
        options: TableOptions { segment_rows, ..TableOptions::default() },
        ..TableDefinition::new(
            name,
            vec![
                column("id", DataType::BigInt, false),
                column("v", DataType::Integer, true),
                column("s", DataType::Text { max_chars: None }, true),
            ],
        )
    }
}

pub fn create(db: &Database, name: &str, keyed: bool, segment_rows: u32) -> TableId {
    create_as(db, definition(name, keyed, segment_rows))
}

pub fn create_as(db: &Database, definition: TableDefinition) -> TableId {
    let mut txn = begin(db);
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    id
}

/// The test table in every order that one with a key over `id` can have: by the key, by another column, by both, as
/// rows come; with that key as a UNIQUE one, beside a primary key and alone.
pub fn keyed_definitions(name: &str, segment_rows: u32) -> Vec<TableDefinition> {
    let keyed = definition(name, true, segment_rows);
    let by = |columns: &[&str]| Some(columns.iter().map(|&c| c.to_owned()).collect());
    let unique = || vec![UniqueDefinition { name: format!("{name}_id_key"), columns: vec!["id".to_owned()] }];
    let mut beside = TableDefinition { unique_keys: unique(), ..keyed.clone() };
    beside.primary_key = vec!["v".to_owned(), "id".to_owned()];
    beside.sort_key = by(&["v", "id"]);
    vec![
        keyed.clone(),
        TableDefinition { sort_key: by(&["s"]), ..keyed.clone() },
        TableDefinition { sort_key: by(&["v", "id"]), ..keyed.clone() },
        TableDefinition { sort_key: by(&["id", "v"]), ..keyed.clone() },
        TableDefinition { layout: Some(Layout::Insertion), ..keyed },
        beside,
        TableDefinition { unique_keys: unique(), ..definition(name, false, segment_rows) },
    ]
}

/// The key over `id`.
pub fn id_key(schema: &TableSchema) -> KeyId {
    let id = schema.column_named("id").unwrap().id;
    schema.keys().find(|(_, columns)| *columns == [id]).unwrap().0
}

pub fn begin(db: &Database) -> Transaction {
    db.begin(TransactionMode::default()).unwrap()
}

pub fn begin_applied(db: &Database) -> Transaction {
    db.begin(TransactionMode { base: Base::Applied, ..TransactionMode::default() }).unwrap()
}

pub fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>())),
        ("v", Arc::new(rows.iter().map(|r| r.1).collect::<Int32Array>())),
        ("s", Arc::new(rows.iter().map(|r| r.2.as_deref()).collect::<StringViewArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, n != "id"))).unwrap()
}

pub fn row(id: i64, v: i32) -> Row {
    (id, v, (v % 3 != 0).then(|| format!("text number {v}")))
}

pub fn rows(ids: impl IntoIterator<Item = i64>) -> Vec<Row> {
    ids.into_iter().map(|id| row(id, (id * 7 % 100) as i32)).collect()
}

/// One inserting statement.
pub fn insert(txn: &mut Transaction, table: TableId, rows: &[Row]) -> Result<()> {
    let schema = txn.catalog().table(table).cloned().ok_or_else(|| Error::internal("no table"))?;
    let mut statement = txn.statement();
    for chunk in rows.chunks(1000) {
        statement.insert(&schema, &batch(chunk))?;
    }
    txn.apply(statement)
}

/// One transaction that inserts rows with these ids.
pub fn insert_and_commit(db: &Database, table: TableId, ids: impl IntoIterator<Item = i64>) {
    let mut txn = begin(db);
    insert(&mut txn, table, &rows(ids)).unwrap();
    txn.commit().unwrap();
}

/// One deleting statement: all rows with `id` in the set.
pub fn delete(txn: &mut Transaction, table: TableId, ids: &[i64]) -> Result<u64> {
    let schema = txn.catalog().table(table).cloned().ok_or_else(|| Error::internal("no table"))?;
    let found = select(txn, table, |r| ids.contains(&r.0))?;
    let mut statement = txn.statement();
    statement.delete(&schema, &found.iter().map(|(at, _)| *at).collect::<Vec<_>>())?;
    let deleted = statement.deleted();
    txn.apply(statement)?;
    Ok(deleted)
}

/// One updating statement: `change` on all rows with `id` in the set.
pub fn update(txn: &mut Transaction, table: TableId, ids: &[i64], change: impl Fn(&mut Row)) -> Result<u64> {
    let schema = txn.catalog().table(table).cloned().ok_or_else(|| Error::internal("no table"))?;
    let found = select(txn, table, |r| ids.contains(&r.0))?;
    let mut statement = txn.statement();
    statement.delete(&schema, &found.iter().map(|(at, _)| *at).collect::<Vec<_>>())?;
    let mut changed: Vec<Row> = found.into_iter().map(|(_, row)| row).collect();
    changed.iter_mut().for_each(change);
    statement.insert(&schema, &batch(&changed))?;
    txn.apply(statement)?;
    Ok(changed.len() as u64)
}

/// Rows with their references.
pub fn select(txn: &Transaction, table: TableId, wanted: impl Fn(&Row) -> bool) -> Result<Vec<(RowRef, Row)>> {
    let view = txn.view(table)?;
    let columns = view.schema().column_ids();
    let scan = view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(columns) })?;
    let mut all = Vec::new();
    for batch in scan.worker() {
        let batch = batch?;
        let refs = batch.column(3).as_primitive::<UInt64Type>();
        for (at, row) in refs.values().iter().zip(decode(&batch)) {
            if wanted(&row) {
                all.push((RowRef::from_bits(*at), row));
            }
        }
    }
    Ok(all)
}

fn decode(batch: &RecordBatch) -> Vec<Row> {
    let (id, v, s) = (
        batch.column(0).as_primitive::<Int64Type>(),
        batch.column(1).as_primitive::<Int32Type>(),
        batch.column(2).as_string_view(),
    );
    (0..batch.num_rows()).map(|i| (id.value(i), v.value(i), s.is_valid(i).then(|| s.value(i).to_owned()))).collect()
}

/// All rows, by id.
pub fn all(txn: &Transaction, table: TableId) -> Vec<Row> {
    let mut rows: Vec<Row> = select(txn, table, |_| true).unwrap().into_iter().map(|(_, row)| row).collect();
    rows.sort();
    rows
}

/// All rows a new transaction sees, by id. Checks the exact row count on the way.
pub fn contents(db: &Database, table: TableId) -> Vec<Row> {
    let txn = begin(db);
    let rows = all(&txn, table);
    assert_eq!(txn.view(table).unwrap().statistics().rows, rows.len() as u64);
    rows
}

/// Ids of the rows with `v op value`, evaluated by the store.
pub fn ids_where(db: &Database, table: TableId, op: CompareOp, value: i64) -> Vec<i64> {
    let txn = begin(db);
    let view = txn.view(table).unwrap();
    let schema = view.schema().clone();
    let v = schema.column_named("v").unwrap().id;
    let id = schema.column_named("id").unwrap().id;
    let predicate = Predicate::Compare { column: v, op, value: Value::Int(value) };
    let scan = view.scan(&ScanRequest { predicates: vec![predicate], ..ScanRequest::all(vec![id]) }).unwrap();
    let mut ids: Vec<i64> = scan
        .worker()
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    ids.sort_unstable();
    ids
}

pub fn state(result: Result<impl Sized>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(e) => e.sqlstate(),
    }
}
