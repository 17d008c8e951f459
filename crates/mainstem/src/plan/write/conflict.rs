//! INSERT ... ON CONFLICT: which rows are inserted, which update a row that is there, which are left out.
//!
//! Comes in: rows to insert, checked, batch by batch. Goes out: rows to write, in their order, and the rows they
//! replace.
//!
//! 1. The keys of each row are looked up in the table as the statement sees it (O(runs) each), and among the keys that
//!    the statement has inserted.
//! 2. DO NOTHING leaves a row out whose key is taken. DO UPDATE fetches the row that has it, puts both side by side,
//!    and runs the planned update arm over them.
//! 3. A row that the statement has inserted or updated is not updated again: 21000.
//!
//! A key taken later than the snapshot is seen at the end, by storage: 40001 or another run (contract 2).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::UInt64Type;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::ids::{ColumnId, KeyId, RowRef};
use mainstem_storage::point;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;
use mainstem_storage::{Error, ErrorKind, Result};

use super::assign::{assigned, check_assigned, counted_by};
use super::stand_in::StandIn;
use crate::error::from_datafusion;
use crate::exec::Environment;
use crate::names::without_mark;
use crate::plan::columns::nullable_schema;
use crate::sql::{ConflictTarget, EXCLUDED, Insert, OnConflict, ROW_REF, Target, existing_column, state};

/// A key of a table: no two rows have it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    id: KeyId,
    constraint: String,
    columns: Vec<ColumnId>,
}

/// The keys of `table`, in the order in which they are looked at.
fn keys_of(table: &TableSchema) -> Vec<Key> {
    let key = |(id, columns): (KeyId, &[ColumnId])| Key {
        id,
        constraint: table.key_name(id).into_owned(),
        columns: columns.to_vec(),
    };
    table.keys().map(key).collect()
}

/// The keys that ON CONFLICT looks at.
fn arbiters(table: &TableSchema, target: &ConflictTarget) -> Result<Vec<Key>> {
    let keys = keys_of(table);
    match target {
        ConflictTarget::Any => Ok(keys),
        ConflictTarget::Columns(names) => {
            let mut columns = Vec::with_capacity(names.len());
            for name in names {
                columns.push(existing_column(table, name)?.id);
            }
            let same = |key: &Key| {
                key.columns.iter().all(|c| columns.contains(c)) && columns.iter().all(|c| key.columns.contains(c))
            };
            let found = keys.into_iter().find(same);
            found.map(|key| vec![key]).ok_or_else(|| {
                Error::invalid(
                    state::NO_SUCH_KEY,
                    format!(
                        "there is no key of table \"{}\" on ({}), which ON CONFLICT names",
                        table.name,
                        names.join(", ")
                    ),
                )
            })
        }
        ConflictTarget::Constraint(name) => {
            let found = keys.into_iter().find(|key| key.constraint == *name);
            found.map(|key| vec![key]).ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    state::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
                )
                .with_object(NamedObject::new(ObjectKind::Other, [name]))
            })
        }
    }
}

/// Where a value of the update arm comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Of the row that is there.
    There(ColumnId),
    /// Of the row that was to come: position in the table.
    Coming(usize),
    /// The pair's number, which stands for the reference.
    Pair,
}

/// The update arm.
#[derive(Debug)]
struct Arm {
    plan: LogicalPlan,
    stand_in: StandIn,
    origins: Vec<Origin>,
}

/// A row that was to come, by its place in the batch, and the row that has its key.
#[derive(Clone, Copy, Debug)]
struct Pair {
    coming: u32,
    there: RowRef,
}

/// ON CONFLICT of a running INSERT.
#[derive(Debug)]
pub(super) struct Conflicts {
    table: Arc<TableSchema>,
    view: Arc<TableView>,
    arbiters: Vec<Key>,
    arm: Option<Arm>,
    /// For each arbiter, keys inserted by this statement.
    inserted: Vec<HashSet<Box<[u8]>>>,
    /// Rows replaced by this statement.
    replaced: HashSet<RowRef>,
    memory: MemoryReservation,
}

/// A key of a row that was to come.
struct KeyOfRow {
    /// Which of the arbiters, by number and by id.
    arbiter: usize,
    id: KeyId,
    bytes: Box<[u8]>,
}

/// What became of a batch.
pub(super) struct Settled {
    /// Rows to write, in the order in which they came.
    pub(super) rows: RecordBatch,
    /// The rows they replace.
    pub(super) replaced: Vec<RowRef>,
}

/// What is to be done with one row.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Insert,
    Update(RowRef),
    LeaveOut,
}

impl Conflicts {
    /// Plans ON CONFLICT, if the INSERT has it.
    ///
    /// # Errors
    /// 42P10 and others for a key that is none, and whatever is wrong with the update arm.
    pub(super) fn plan(
        env: &mut Environment<'_>,
        transaction: &Transaction,
        insert: &Insert,
        table: &Arc<TableSchema>,
    ) -> Result<Option<Self>> {
        let Some(OnConflict { target, action: _ }) = &insert.conflict else { return Ok(None) };
        let arbiters = arbiters(table, target)?;
        let view = transaction.view(table.id)?;
        let arm = match insert.update_arm(table)? {
            None => None,
            Some(select) => {
                let assignments = insert.conflict_assignments();
                if assignments.map(|a| counted_by(a, table)).transpose()?.is_some_and(|counted| !counted.is_empty()) {
                    return Err(Error::unsupported("DEFAULT of an identity column in ON CONFLICT"));
                }
                let plan = env.plan(transaction, Ast::Query(Box::new(select)), Some(view.clone()))?;
                Some(Arm::new(plan, &insert.target, table)?)
            }
        };
        let memory = env.reservation("ON CONFLICT");
        let (inserted, replaced) = (vec![HashSet::new(); arbiters.len()], HashSet::new());
        Ok(Some(Self { table: table.clone(), view, arbiters, arm, inserted, replaced, memory }))
    }

    /// Settles what happens to the rows of `batch`, which were checked.
    ///
    /// # Errors
    /// 21000 for a row that would be written twice, those of the update arm, 53200.
    pub(super) fn settle(
        &mut self,
        env: &mut Environment<'_>,
        transaction: &Transaction,
        batch: RecordBatch,
    ) -> Result<Settled> {
        let fates = self.fates(transaction, &batch)?;
        let pairs: Vec<Pair> = (0_u32..)
            .zip(&fates)
            .filter_map(|(coming, fate)| match fate {
                Fate::Update(there) => Some(Pair { coming, there: *there }),
                _ => None,
            })
            .collect();
        let updates = match &self.arm {
            Some(arm) if !pairs.is_empty() => arm.run(env, &self.table, &self.view, &batch, &pairs)?,
            _ => Vec::new(),
        };
        let replaced = self.replace(&pairs, &updates)?;
        let columns = put_together(&batch, &fates, &updates)?;
        Ok(Settled { rows: RecordBatch::try_new(nullable_schema(&self.table), columns)?, replaced })
    }

    /// What is to be done with each row of `batch`, the condition of the update arm aside.
    fn fates(&mut self, transaction: &Transaction, batch: &RecordBatch) -> Result<Vec<Fate>> {
        let mut keys = Vec::with_capacity(self.arbiters.len());
        for key in &self.arbiters {
            keys.push(point::keys_of(&self.view, key.id, batch)?);
        }
        let mut fates = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let mut of_row = Vec::with_capacity(self.arbiters.len());
            for (arbiter, (key, keys)) in self.arbiters.iter().zip(&keys).enumerate() {
                // A row without a key conflicts with none.
                let bytes = keys.get(row).cloned().flatten();
                of_row.extend(bytes.map(|bytes| KeyOfRow { arbiter, id: key.id, bytes }));
            }
            fates.push(self.fate(transaction, of_row)?);
        }
        Ok(fates)
    }

    fn fate(&mut self, transaction: &Transaction, keys: Vec<KeyOfRow>) -> Result<Fate> {
        for key in &keys {
            if self.inserted.get(key.arbiter).is_some_and(|inserted| inserted.contains(&key.bytes)) {
                return if self.arm.is_some() { Err(twice()) } else { Ok(Fate::LeaveOut) };
            }
            if let Some(there) = transaction.find_key(&self.view, key.id, &key.bytes)? {
                return Ok(if self.arm.is_some() { Fate::Update(there) } else { Fate::LeaveOut });
            }
        }
        for key in keys {
            self.memory.try_grow(key.bytes.len() + SEEN_BYTES).map_err(|e| from_datafusion(&e))?;
            self.inserted.get_mut(key.arbiter).map(|inserted| inserted.insert(key.bytes));
        }
        Ok(Fate::Insert)
    }

    /// Notes which rows are replaced. Once a row is, no later one may find it, not even one that would then leave it
    /// alone.
    fn replace(&mut self, pairs: &[Pair], updates: &[Option<Updated>]) -> Result<Vec<RowRef>> {
        let mut replaced = Vec::new();
        for (number, pair) in pairs.iter().enumerate() {
            if self.replaced.contains(&pair.there) {
                return Err(twice());
            }
            if updates.get(number).is_some_and(Option::is_some) {
                self.memory.try_grow(SEEN_BYTES).map_err(|e| from_datafusion(&e))?;
                self.replaced.insert(pair.there);
                replaced.push(pair.there);
            }
        }
        Ok(replaced)
    }
}

/// What an entry of a set takes besides its key.
const SEEN_BYTES: usize = 48;

fn twice() -> Error {
    Error::invalid(
        sqlstate::ROW_TWICE,
        "ON CONFLICT DO UPDATE would write a row twice: two rows of the INSERT have the same key",
    )
}

/// New values of a pair's row: columns of the table, and the row of them.
#[derive(Clone, Debug)]
struct Updated {
    values: Arc<Vec<ArrayRef>>,
    row: usize,
}

impl Arm {
    fn new(plan: LogicalPlan, target: &Target, table: &TableSchema) -> Result<Self> {
        check_assigned(&plan, table)?;
        let stand_in = StandIn::of(&plan, "ON CONFLICT DO UPDATE")?;
        let there = target.qualifier_name();
        let mut origins = Vec::with_capacity(stand_in.columns().len());
        for column in stand_in.columns() {
            let relation = column.relation.as_ref().map_or("", |relation| without_mark(relation.table()));
            let position = table.columns.iter().position(|c| c.name == column.name);
            let id = position.and_then(|at| table.columns.get(at)).map(|c| c.id);
            origins.push(match (position, id) {
                (Some(position), _) if relation == EXCLUDED && relation != there => Origin::Coming(position),
                (_, Some(id)) => Origin::There(id),
                _ if column.name == ROW_REF => Origin::Pair,
                _ => return Err(Error::internal("a column of ON CONFLICT is lost")),
            });
        }
        Ok(Self { plan, stand_in, origins })
    }

    /// New values for each pair, if the condition holds for it.
    fn run(
        &self,
        env: &mut Environment<'_>,
        table: &TableSchema,
        view: &TableView,
        batch: &RecordBatch,
        pairs: &[Pair],
    ) -> Result<Vec<Option<Updated>>> {
        let there: Vec<RowRef> = pairs.iter().map(|pair| pair.there).collect();
        let coming: UInt32Array = pairs.iter().map(|pair| pair.coming).collect();
        let ids: Vec<ColumnId> = self
            .origins
            .iter()
            .filter_map(|origin| match origin {
                Origin::There(id) => Some(*id),
                _ => None,
            })
            .collect();
        let mut fetched = view.fetch(&ids, &there)?.into_iter();
        let mut values: Vec<ArrayRef> = Vec::with_capacity(self.origins.len());
        for origin in &self.origins {
            values.push(match origin {
                Origin::There(_) => fetched.next().ok_or_else(|| Error::internal("a column was not fetched"))?,
                Origin::Coming(at) => take(batch.column(*at), &coming, None)?,
                Origin::Pair => Arc::new(UInt64Array::from_iter_values(0..pairs.len() as u64)),
            });
        }
        let rows = self.stand_in.batch(values, pairs.len())?;
        let plan = self.stand_in.plan(&self.plan, vec![rows])?;
        let mut updates = vec![None; pairs.len()];
        for answer in env.start(&plan)?.batches {
            let answer = answer?;
            let values = Arc::new(assigned(table, &answer)?);
            let numbers = answer.columns().first().and_then(|c| c.as_primitive_opt::<UInt64Type>());
            let numbers = numbers.ok_or_else(|| Error::internal("the update arm lost its pairs"))?;
            for (row, number) in numbers.values().iter().enumerate() {
                if let Some(update) = usize::try_from(*number).ok().and_then(|number| updates.get_mut(number)) {
                    *update = Some(Updated { values: values.clone(), row });
                }
            }
        }
        Ok(updates)
    }
}

/// Inserted and updated rows in the order of the rows they came from.
fn put_together(batch: &RecordBatch, fates: &[Fate], updates: &[Option<Updated>]) -> Result<Vec<ArrayRef>> {
    let mut sources: Vec<&[ArrayRef]> = vec![batch.columns()];
    let mut source_of: HashMap<*const Vec<ArrayRef>, usize> = HashMap::new();
    let mut updates_in_order = updates.iter();
    let mut places = Vec::with_capacity(fates.len());
    for (row, fate) in fates.iter().enumerate() {
        match fate {
            Fate::Insert => places.push((0, row)),
            Fate::LeaveOut => {}
            Fate::Update(_) => {
                let Some(Some(update)) = updates_in_order.next() else { continue };
                let source = *source_of.entry(Arc::as_ptr(&update.values)).or_insert_with(|| {
                    sources.push(update.values.as_slice());
                    sources.len() - 1
                });
                places.push((source, update.row));
            }
        }
    }
    let mut columns = Vec::with_capacity(batch.num_columns());
    for at in 0..batch.num_columns() {
        let arrays: Option<Vec<_>> = sources.iter().map(|source| source.get(at).map(AsRef::as_ref)).collect();
        let arrays = arrays.ok_or_else(|| Error::internal("the update arm lost a column"))?;
        columns.push(interleave(&arrays, &places)?);
    }
    Ok(columns)
}
