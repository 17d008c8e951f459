//! Schema changes, over every placement of the rows: rows are lists of values here, for tables change their columns.

mod alter;
mod catalog;
mod ended_numbers;
mod identity;
mod truncate;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use mainstem_storage::Result;
use mainstem_storage::catalog::TableDefinition;
use mainstem_storage::database::Database;
use mainstem_storage::disk::MemDisk;
use mainstem_storage::ids::{ColumnId, RowRef, TableId};
use mainstem_storage::row::{RowBuffer, RowLayout, Value, value_of};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::transaction::Transaction;

use crate::support::*;

/// Rows by their first column, a number.
pub type Rows = BTreeMap<i64, Vec<Value>>;

/// What stands where after a step of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the delta.
    Delta,
    /// In frozen deltas.
    Frozen,
    /// In a run for each step.
    Runs,
    /// In one run.
    Run,
    /// As a restart without a checkpoint finds it.
    Replayed,
    /// As a restart finds it in the manifest.
    Restored,
}

pub const PLACEMENTS: [Placement; 6] =
    [Placement::Delta, Placement::Frozen, Placement::Runs, Placement::Run, Placement::Replayed, Placement::Restored];

/// A database with one table, on a disk in memory.
pub struct Stage {
    pub disk: MemDisk,
    pub db: Database,
    pub t: TableId,
    pub placement: Placement,
}

impl Stage {
    pub fn new(definition: TableDefinition, placement: Placement) -> Self {
        let disk = MemDisk::new();
        let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
        let t = create_as(&db, definition);
        Self { disk, db, t, placement }
    }

    /// Moves the rows where the placement has them.
    pub fn place(&mut self) {
        match self.placement {
            Placement::Delta => {}
            Placement::Frozen => self.db.freeze(self.t).unwrap(),
            Placement::Runs => self.db.flush(self.t).unwrap(),
            Placement::Run => self.db.merge(self.t).unwrap(),
            Placement::Replayed => self.crash(),
            Placement::Restored => {
                self.db.checkpoint().unwrap();
                self.crash();
            }
        }
        self.check();
    }

    /// Goes on with the files as they are, without a close.
    pub fn crash(&mut self) {
        let copy = self.disk.copy();
        self.db = Database::open_on(Arc::new(copy.clone()), options()).unwrap();
        self.disk = copy;
    }

    pub fn check(&self) {
        let wrong = self.db.verify();
        assert!(wrong.is_empty(), "{:?}: {wrong:?}", self.placement);
    }

    pub fn begin(&self) -> Transaction {
        begin(&self.db)
    }

    /// What a new transaction sees; checks the exact row count on the way.
    pub fn rows(&self) -> Rows {
        rows_of(&self.begin(), self.t)
    }

    pub fn commit(&self, work: impl FnOnce(&mut Transaction) -> Result<()>) -> Result<()> {
        let mut txn = self.begin();
        work(&mut txn)?;
        txn.commit().map(drop)
    }

    pub fn column(&self, name: &str) -> ColumnId {
        column(&self.begin(), self.t, name)
    }
}

pub fn column(txn: &Transaction, table: TableId, name: &str) -> ColumnId {
    txn.catalog().table(table).unwrap().column_named(name).unwrap().id
}

pub fn int(value: i64) -> Value {
    Value::Int(value)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.into())
}

/// Rows with their references.
pub fn refs_of(txn: &Transaction, table: TableId) -> BTreeMap<i64, (RowRef, Vec<Value>)> {
    let view = txn.view(table).unwrap();
    let columns = view.schema().columns.clone();
    let request = ScanRequest { row_refs: true, ..ScanRequest::all(view.schema().column_ids()) };
    let mut found = BTreeMap::new();
    for batch in view.scan(&request).unwrap().worker() {
        let batch = batch.unwrap();
        let refs = batch.column(columns.len()).as_primitive::<UInt64Type>();
        for row in 0..batch.num_rows() {
            let at = |(column, array)| value_of(array, column, row).unwrap();
            let types = columns.iter().map(|column| column.data_type);
            let values: Vec<Value> = types.zip(batch.columns().iter().map(AsRef::as_ref)).map(at).collect();
            let Value::Int(id) = values[0] else { panic!("{values:?}") };
            assert!(found.insert(id, (RowRef::from_bits(refs.value(row)), values)).is_none(), "row {id} twice");
        }
    }
    assert_eq!(view.statistics().rows, found.len() as u64);
    // One row at a time, as short statements read.
    for (at, values) in found.values() {
        let mut alone = Vec::new();
        view.read_row(*at, &(0..columns.len()).collect::<Vec<_>>(), &mut alone).unwrap();
        assert_eq!(&alone, values);
    }
    found
}

pub fn rows_of(txn: &Transaction, table: TableId) -> Rows {
    refs_of(txn, table).into_iter().map(|(id, (_, values))| (id, values)).collect()
}

fn batch_of(txn: &Transaction, table: TableId, rows: &[Vec<Value>]) -> RecordBatch {
    let schema = txn.catalog().table(table).unwrap().clone();
    let mut buffer = RowBuffer::new(RowLayout::new(&schema));
    rows.iter().for_each(|row| buffer.push_values(row).unwrap());
    RecordBatch::try_new(schema.arrow(), buffer.to_arrays(&schema.column_ids(), 0..rows.len()).unwrap()).unwrap()
}

/// One statement that deletes the rows `gone` and inserts `rows`.
pub fn put(txn: &mut Transaction, table: TableId, gone: &[i64], rows: &[Vec<Value>]) -> Result<()> {
    let schema = txn.catalog().table(table).unwrap().clone();
    let found = refs_of(txn, table);
    let mut statement = txn.statement();
    let gone: Vec<RowRef> = gone.iter().map(|id| found[id].0).collect();
    statement.delete(&schema, &gone)?;
    statement.insert(&schema, &batch_of(txn, table, rows))?;
    txn.apply(statement)
}

/// One statement that inserts rows, without a look at the table.
pub fn put_blindly(txn: &mut Transaction, table: TableId, rows: &[Vec<Value>]) -> Result<()> {
    let schema = txn.catalog().table(table).unwrap().clone();
    let mut statement = txn.statement();
    statement.insert(&schema, &batch_of(txn, table, rows))?;
    txn.apply(statement)
}

/// Rows (id, v, s) of the table of `support`.
pub fn simple(ids: impl IntoIterator<Item = i64>) -> Vec<Vec<Value>> {
    ids.into_iter().map(|id| vec![int(id), int(id * 7 % 10), text(&format!("text {}", id % 3))]).collect()
}

pub fn expect(rows: &[Vec<Value>]) -> Rows {
    let id = |row: &Vec<Value>| if let Value::Int(id) = row[0] { id } else { panic!("{row:?}") };
    rows.iter().map(|row| (id(row), row.clone())).collect()
}

/// The table of `support` with a key, in every order, and without one.
pub fn definitions() -> Vec<TableDefinition> {
    let mut all = keyed_definitions("t", 7);
    all.push(definition("t", false, 7));
    all
}
