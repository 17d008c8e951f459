//! Test data: tables, runs and deltas on a disk in memory, and the naive order.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use arrow_array::RecordBatch;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{IdSource, RunWriter, SegmentTarget};
use crate::delta_store::DeltaGeneration;
use crate::disk::{DATA_DIR, Disk, MemDisk};
use crate::ids::{CommitTs, ContainerId, FileId, RunId};
use crate::main_store::Run;
use crate::memory::MemoryBudget;
use crate::predicate::compare_values;
use crate::row::{RowBuffer, RowLayout, Value, testing, value_of};
use crate::schema::{DataType, Layout, TableSchema};
use crate::segment::BlockCache;
use crate::settings::Encodings;

pub(crate) type Row = Vec<Value>;

/// Ids from 1 on.
#[derive(Debug, Default)]
struct Ids(AtomicU64);

impl Ids {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Memory::Relaxed) + 1
    }
}

impl IdSource for Ids {
    fn next_container(&self) -> ContainerId {
        ContainerId(self.next())
    }

    fn next_file(&self) -> FileId {
        FileId(self.next())
    }

    fn next_run(&self) -> RunId {
        RunId(self.next())
    }
}

/// A target on a fresh disk in memory.
pub(crate) fn target() -> SegmentTarget {
    target_on(Arc::new(MemDisk::new()))
}

/// A target on `disk`.
pub(crate) fn target_on(disk: Arc<dyn Disk>) -> SegmentTarget {
    disk.create_dir(DATA_DIR).unwrap();
    let memory = MemoryBudget::new(1 << 30);
    let (cache, ids) = (BlockCache::new(64 << 20), Arc::new(Ids::default()));
    SegmentTarget { disk, cache, encodings: Encodings::Smallest, ids, sort_entries: usize::MAX, memory }
}

/// Files that stand in the folder of segments.
pub(crate) fn files(target: &SegmentTarget) -> usize {
    target.disk.list(DATA_DIR).unwrap().len()
}

/// A table of `columns`, sorted by the first `key` of them; a primary key if `unique`.
pub(crate) fn table(columns: &[(DataType, bool)], key: usize, unique: bool, segment_rows: u32) -> Arc<TableSchema> {
    let mut schema = TableSchema::clone(&testing::table(columns));
    let key: Vec<_> = (0..key).map(testing::id).collect();
    schema.layout = if key.is_empty() { Layout::Insertion } else { Layout::Sorted };
    schema.primary_key = if unique { key.clone() } else { Vec::new() };
    schema.sort_key = key;
    schema.options.segment_rows = segment_rows;
    Arc::new(schema)
}

/// Tables of several shapes: no key, one or two key columns, numbers, text, NULLs; the last column is no key.
pub(crate) fn any_table() -> impl Strategy<Value = Arc<TableSchema>> {
    let text = DataType::Text { max_chars: None };
    let shapes = vec![
        (vec![(DataType::BigInt, false)], 1),
        (vec![(DataType::BigInt, false)], 0),
        (vec![(DataType::SmallInt, true)], 1),
        (vec![(text, false)], 1),
        (vec![(text, true), (DataType::Integer, true)], 2),
        (vec![(DataType::Double, false), (DataType::Decimal { precision: 30, scale: 2 }, false)], 2),
        (vec![(DataType::Integer, true), (DataType::Bytea, true)], 2),
        (vec![(DataType::Uuid, false)], 1),
        (vec![(DataType::Uuid, true), (DataType::Time, true), (DataType::Char { chars: 20 }, false)], 3),
    ];
    (proptest::sample::select(shapes), 1u32..12).prop_map(move |((mut columns, key), segment_rows)| {
        columns.push((text, true));
        table(&columns, key, false, segment_rows)
    })
}

/// Up to `max` rows of `schema`. Integers are small, so that keys meet.
pub(crate) fn rows(schema: &TableSchema, max: usize) -> impl Strategy<Value = Vec<Row>> + use<> {
    let value = |column: &crate::schema::Column| match column.data_type {
        DataType::BigInt | DataType::Integer | DataType::SmallInt => {
            let int = (-20..20i64).prop_map(Value::Int);
            if column.nullable { prop_oneof![1 => Just(Value::Null), 6 => int].boxed() } else { int.boxed() }
        }
        other => testing::value(other, column.nullable),
    };
    let row: Vec<_> = schema.columns.iter().map(value).collect();
    vec(row, 0..=max)
}

/// Sort-key order of rows.
pub(crate) fn compare(schema: &TableSchema, a: &Row, b: &Row) -> Ordering {
    let places = schema.sort_key.iter().map(|id| schema.position(*id).unwrap());
    places.map(|at| compare_values(&a[at], &b[at])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The rows in order, ties as they came.
pub(crate) fn sorted(schema: &TableSchema, rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| compare(schema, a, b));
    rows
}

pub(crate) fn batch(schema: &TableSchema, rows: &[Row]) -> RecordBatch {
    testing::batch(schema, rows)
}

/// The rows as a run of segments of `segment_rows`; `None` without rows.
pub(crate) fn run(
    schema: &Arc<TableSchema>,
    target: &SegmentTarget,
    rows: &[Row],
    segment_rows: usize,
) -> Option<Arc<Run>> {
    let mut writer = RunWriter::new(schema.clone(), target.clone());
    for chunk in sorted(schema, rows).chunks(segment_rows) {
        writer.write(batch(schema, chunk).columns()).unwrap();
    }
    writer.finish().unwrap().map(|written| written.run)
}

/// The rows as a delta, appended at `ts`.
pub(crate) fn delta(
    schema: &Arc<TableSchema>,
    target: &SegmentTarget,
    rows: &[Row],
    ts: CommitTs,
) -> Arc<DeltaGeneration> {
    let delta = DeltaGeneration::new(target.ids.next_container(), schema.clone());
    let mut buffer = RowBuffer::new(RowLayout::new(schema));
    rows.iter().for_each(|row| buffer.push_values(row).unwrap());
    if !rows.is_empty() {
        delta.append(&buffer, ts).unwrap();
    }
    Arc::new(delta)
}

/// All rows of `run`, deleted ones included, under `schema`.
pub(crate) fn rows_of_run(schema: &TableSchema, run: &Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for part in run.segments() {
        let read = |column| part.segment.read(column, part.range.clone()).unwrap();
        let arrays: Vec<_> = schema.columns.iter().map(read).collect();
        rows.extend((0..part.rows() as usize).map(|row| row_of(schema, &arrays, row)));
    }
    rows
}

/// Row `row` of arrays that stand for `schema`'s columns.
pub(crate) fn row_of(schema: &TableSchema, arrays: &[arrow_array::ArrayRef], row: usize) -> Row {
    let columns = schema.columns.iter().zip(arrays);
    columns.map(|(column, array)| value_of(array.as_ref(), column.data_type, row).unwrap()).collect()
}
