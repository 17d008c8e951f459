use std::sync::Arc;

use super::DeltaGeneration;
use crate::ids::{ColumnId, CommitTs, ContainerId, SchemaVersion, TableId};
use crate::row::{RowBuffer, RowLayout, Value};
use crate::schema::{Column, DataType, Layout, TableOptions, TableSchema};

fn schema() -> Arc<TableSchema> {
    let column = |id, name: &str, data_type, nullable| Column {
        id: ColumnId(id),
        name: name.into(),
        data_type,
        nullable,
        missing_value: Value::Null,
    };
    Arc::new(TableSchema {
        id: TableId(1),
        version: SchemaVersion(1),
        name: "t".into(),
        columns: vec![
            column(0, "id", DataType::BigInt, false),
            column(1, "note", DataType::Text { max_chars: None }, true),
        ],
        next_column: ColumnId(2),
        primary_key: vec![ColumnId(0)],
        sort_key: vec![ColumnId(0)],
        layout: Layout::Sorted,
        options: TableOptions::default(),
    })
}

#[test]
fn a_row_is_found_by_its_key() {
    let schema = schema();
    let delta = DeltaGeneration::new(ContainerId(1), schema.clone());
    let mut rows = RowBuffer::new(RowLayout::new(&schema));
    rows.push_values(&[Value::Int(7), Value::Text("a string longer than twelve".into())]).unwrap();
    assert_eq!(delta.append(&rows, CommitTs(3)).unwrap(), 0..1);
    let mut key = Vec::new();
    delta.key_of(0, &mut key).unwrap();
    assert_eq!(delta.lookup(&key, CommitTs(3)), Some(0));
    assert_eq!(delta.lookup(&key, CommitTs(2)), None);
    assert_eq!(delta.value(&schema.columns[1], 0).unwrap(), rows.row(0).value(1));
}
