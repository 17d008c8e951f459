mod key_order;
mod model;
mod stress;

use std::sync::Arc;

use arrow_array::cast::AsArray;

use super::DeltaGeneration;
use crate::error::ErrorKind;
use crate::ids::{ColumnId, CommitTs, ContainerId, KeyId, RowRef, SchemaVersion, TableId};
use crate::limits;
use crate::row::key::KeyCodec;
use crate::row::{RowBuffer, RowLayout, Value};
use crate::schema::{Column, DataType, Layout, TableSchema};

/// A table over `columns`; names are c0, c1, ...
fn table(columns: &[(DataType, bool)], primary_key: &[u32], sort_key: &[u32]) -> Arc<TableSchema> {
    let column = |(id, &(data_type, nullable)): (usize, &(DataType, bool))| {
        Column::new(ColumnId(id as u32), format!("c{id}"), data_type, nullable)
    };
    Arc::new(TableSchema {
        primary_key: primary_key.iter().copied().map(ColumnId).collect(),
        sort_key: sort_key.iter().copied().map(ColumnId).collect(),
        layout: if sort_key.is_empty() { Layout::Insertion } else { Layout::Sorted },
        ..TableSchema::new(TableId(1), "t", columns.iter().enumerate().map(column).collect())
    })
}

/// (id BIGINT PRIMARY KEY, note TEXT).
fn notes() -> Arc<TableSchema> {
    table(&[(DataType::BigInt, false), (DataType::Text { max_chars: None }, true)], &[0], &[0])
}

fn delta(schema: &Arc<TableSchema>) -> DeltaGeneration {
    DeltaGeneration::new(ContainerId(1), schema.clone())
}

fn rows(schema: &Arc<TableSchema>, rows: &[Vec<Value>]) -> RowBuffer {
    let mut buffer = RowBuffer::new(RowLayout::new(schema));
    rows.iter().for_each(|row| buffer.push_values(row).unwrap());
    buffer
}

fn key(schema: &TableSchema, values: &[Value]) -> Vec<u8> {
    let mut key = Vec::new();
    KeyCodec::new(schema, &schema.primary_key).encode_values(values, &mut key).unwrap();
    key
}

fn note(id: i64, text: &str) -> Vec<Value> {
    vec![Value::Int(id), Value::Text(text.into())]
}

#[test]
fn a_row_is_found_by_its_key() {
    let schema = notes();
    let delta = delta(&schema);
    let new = rows(&schema, &[note(7, "a string longer than twelve"), note(8, "short")]);
    assert_eq!(delta.append(&new, CommitTs(3)).unwrap(), 0..2);
    let mut seven = Vec::new();
    delta.key_of(KeyId::PRIMARY, 0, &mut seven).unwrap();
    assert_eq!(seven, key(&schema, &[Value::Int(7)]));
    assert_eq!(delta.lookup(KeyId::PRIMARY, &seven, CommitTs(3)), Some(0));
    assert_eq!(delta.lookup(KeyId::PRIMARY, &seven, CommitTs(2)), None);
    assert_eq!(delta.lookup(KeyId::PRIMARY, &key(&schema, &[Value::Int(9)]), CommitTs(3)), None);
    assert_eq!(delta.lookup(KeyId::PRIMARY, b"no key at all", CommitTs(3)), None);
    assert_eq!(delta.value(&schema.columns[1], 0).unwrap(), new.row(0).value(1));
}

#[test]
fn versions_of_a_key_are_told_apart_by_time() {
    let schema = notes();
    let delta = delta(&schema);
    let one = key(&schema, &[Value::Int(1)]);
    delta.append(&rows(&schema, &[note(1, "first")]), CommitTs(2)).unwrap();
    delta.deletes().record(CommitTs(4), &crate::deletes::DeleteSet::One(0));
    delta.append(&rows(&schema, &[note(1, "second")]), CommitTs(4)).unwrap();
    delta.deletes().record(CommitTs(6), &crate::deletes::DeleteSet::One(1));
    let seen: Vec<Option<u32>> = (1..8).map(|at| delta.lookup(KeyId::PRIMARY, &one, CommitTs(at))).collect();
    assert_eq!(seen, [None, Some(0), Some(0), Some(1), Some(1), None, None]);
    assert_eq!(delta.lookup_live(KeyId::PRIMARY, &one), None);
    delta.append(&rows(&schema, &[note(1, "third")]), CommitTs(9)).unwrap();
    assert_eq!(delta.lookup_live(KeyId::PRIMARY, &one), Some(2));
    assert!(delta.is_visible(1, CommitTs(5)) && !delta.is_visible(1, CommitTs(3)) && !delta.is_visible(1, CommitTs(6)));
}

#[test]
fn prefixes_end_anywhere_in_a_block() {
    let schema = notes();
    let delta = delta(&schema);
    let last = 2 * u64::from(limits::DELTA_BLOCK_ROWS) + 3;
    for t in 1..=last {
        delta.append(&rows(&schema, &[note(t as i64, "x")]), CommitTs(2 * t)).unwrap();
    }
    for t in 0..=last {
        assert_eq!(u64::from(delta.rows_at(CommitTs(2 * t))), t);
        assert_eq!(u64::from(delta.rows_at(CommitTs(2 * t + 1))), t);
    }
    let ranges: Vec<_> = delta.block_ranges(u32::MAX).collect();
    assert_eq!(ranges, [0..4_096, 4_096..8_192, 8_192..8_195]);
    assert!(delta.block_ranges(5).eq(std::iter::once(0..5)));
}

#[test]
fn a_block_is_read_without_a_copy() {
    let schema = notes();
    let delta = delta(&schema);
    let many: Vec<Vec<Value>> = (0..100).map(|i| note(i, "quite a long string, not inline")).collect();
    delta.append(&rows(&schema, &many), CommitTs(1)).unwrap();
    let before = delta.read(&schema.columns[0], 0..100).unwrap();
    let text = delta.read(&schema.columns[1], 10..20).unwrap();
    delta.append(&rows(&schema, &[note(100, "x")]), CommitTs(2)).unwrap();
    let after = delta.read(&schema.columns[0], 50..101).unwrap();
    let first = |array: &arrow_array::ArrayRef| array.to_data().buffers()[0].as_ptr();
    assert_eq!(before.len(), 100);
    assert_eq!(first(&after), first(&before).wrapping_add(50 * 8), "two arrays over one buffer");
    assert_eq!(text.as_string_view().value(3), "quite a long string, not inline");
}

#[test]
fn columns_of_other_schema_versions() {
    let schema = notes();
    let delta = delta(&schema);
    delta.append(&rows(&schema, &[note(1, "a"), note(2, "b")]), CommitTs(1)).unwrap();
    let added = Column { id: ColumnId(9), missing_value: Value::Int(5), ..schema.columns[0].clone() };
    assert_eq!(delta.read(&added, 0..2).unwrap().as_primitive::<arrow_array::types::Int64Type>().values(), &[5, 5]);
    assert_eq!(delta.gather(&added, &[1]).unwrap().len(), 1);
    assert_eq!(delta.value(&added, 1).unwrap(), Value::Int(5));
    let newer = Arc::new(TableSchema { version: SchemaVersion(2), ..(*schema).clone() });
    let error = delta.append(&rows(&newer, &[note(3, "c")]), CommitTs(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(delta.rows(), 2);
}

#[test]
fn nulls_stand_where_they_were_in_wide_rows() {
    const COLUMNS: usize = 70;
    let schema = table(&[(DataType::Integer, true); COLUMNS], &[], &[]);
    let delta = delta(&schema);
    // Many at once, then one by one: NULL on both sides of the first 64 columns.
    let is_null = |row: usize, column: usize| (row + column).is_multiple_of(7) && matches!(column, 3 | 63 | 64 | 69);
    let value = |row: usize, column: usize| {
        if is_null(row, column) { Value::Null } else { Value::Int((row * COLUMNS + column) as i64) }
    };
    let row = |row: usize| (0..COLUMNS).map(|column| value(row, column)).collect::<Vec<_>>();
    delta.append(&rows(&schema, &(0..100).map(row).collect::<Vec<_>>()), CommitTs(1)).unwrap();
    for at in 100..110 {
        delta.append(&rows(&schema, &[row(at)]), CommitTs(2)).unwrap();
    }
    for at in 0..110 {
        let found: Vec<_> = schema.columns.iter().map(|column| delta.value(column, at as u32).unwrap()).collect();
        let mut at_once = Vec::new();
        delta.read_row(schema.columns.iter().enumerate(), at as u32, &mut at_once).unwrap();
        assert_eq!(at_once, found);
        assert_eq!(found, row(at), "row {at}");
    }
}

#[test]
fn hashes_of_every_key_are_wanted() {
    let schema = notes();
    let delta = delta(&schema);
    let new = rows(&schema, &[note(1, "a"), note(2, "b")]);
    let error = delta.append_hashed(&new, |_| None, CommitTs(1)).unwrap_err();
    assert_eq!((error.kind(), delta.rows()), (ErrorKind::Internal, 0));
    assert!(delta.append(&new, CommitTs(2)).is_err(), "columns without their keys are there");
}

#[test]
fn a_frozen_generation_takes_deletes_only() {
    let schema = notes();
    let delta = delta(&schema);
    delta.append(&rows(&schema, &[note(1, "a")]), CommitTs(1)).unwrap();
    assert!(delta.has_room(limits::COMMIT_ROWS_MAX, limits::COMMIT_BYTES_MAX));
    assert!(!delta.has_room(RowRef::OFFSETS as usize, 0));
    delta.freeze();
    assert!(delta.is_frozen() && !delta.has_room(1, 1));
    assert!(delta.append(&rows(&schema, &[note(2, "b")]), CommitTs(2)).is_err());
    delta.deletes().record(CommitTs(2), &crate::deletes::DeleteSet::One(0));
    assert_eq!((delta.lookup(KeyId::PRIMARY, &key(&schema, &[Value::Int(1)]), CommitTs(2)), delta.rows()), (None, 1));
}

#[test]
fn rows_that_are_not_published_are_refused() {
    let schema = notes();
    let delta = delta(&schema);
    delta.append(&rows(&schema, &[note(1, "a")]), CommitTs(1)).unwrap();
    assert!(delta.read(&schema.columns[0], 0..2).is_err());
    assert!(delta.gather(&schema.columns[0], &[1]).is_err());
    assert!(delta.value(&schema.columns[0], 1).is_err());
    assert!(delta.sorted_offsets(2).is_err());
    assert!(delta.append(&rows(&schema, &[note(1, "a")]), CommitTs(0)).is_err(), "out of commit order");
    assert_eq!(delta.begin_of(1), None);
}

#[test]
fn without_keys_rows_stand_in_arrival_order() {
    let schema = table(&[(DataType::Double, true)], &[], &[]);
    let delta = delta(&schema);
    delta.append(&rows(&schema, &[vec![Value::Double(2.0)], vec![Value::Null]]), CommitTs(1)).unwrap();
    assert_eq!(*delta.sorted_offsets(2).unwrap(), [0, 1]);
    assert_eq!(delta.lookup(KeyId::PRIMARY, b"", CommitTs(1)), None);
    assert!(delta.key_of(KeyId::PRIMARY, 0, &mut Vec::new()).is_err());
}

#[test]
fn bytes_are_counted() {
    let schema = notes();
    let delta = delta(&schema);
    assert_eq!((delta.bytes_of_rows(), delta.is_due()), (0, false));
    let long = "x".repeat(3 << 20);
    delta.append(&rows(&schema, &[note(1, &long), note(2, "b")]), CommitTs(1)).unwrap();
    assert!(delta.bytes_of_rows() > 3 << 20);
    assert!(delta.memory_bytes() > 3 << 20);
    assert_eq!(delta.value(&schema.columns[1], 0).unwrap(), Value::Text(long.into()));
    assert_eq!(delta.read(&schema.columns[1], 1..2).unwrap().as_string_view().value(0), "b");
}
