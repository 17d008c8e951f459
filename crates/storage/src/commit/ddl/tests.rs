//! Schema changes in records: round trip, damage. Numbers: what a source counts through.

use std::sync::Arc;

use super::record::{DdlRecord, decode_change, encode_change};
use crate::catalog::{ColumnDefinition, TableChange, TableDefinition};
use crate::codec::{Decoder, Encoder};
use crate::commit::record::{CommitEncoder, CommitRecord};
use crate::database::testing;
use crate::error::sqlstate;
use crate::ids::{ColumnId, TableId};
use crate::row::Value;
use crate::schema::{Check, DataType, RelationName, View};
use crate::write_set::DdlChange;

/// One of each kind, with what a record says of it.
fn changes() -> Vec<(DdlChange, DdlRecord)> {
    let definition = TableDefinition { name: RelationName::new("n", "t"), ..testing::definition("t") };
    let before = Arc::new(definition.into_schema(TableId(7)).unwrap());
    let added = TableChange::AddColumn {
        column: ColumnDefinition {
            default: Some("lower('X')".into()),
            ..ColumnDefinition::new("c", DataType::Text { max_chars: Some(9) }, true)
        },
        missing_value: Value::Text("gone".into()),
    };
    let check = TableChange::AddCheck(Check { name: "positive".into(), expression: "v > 0".into() });
    let after =
        Arc::new(before.with_changes(&[added, check, TableChange::RenameColumn(ColumnId(1), "w".into())]).unwrap());
    let view = Arc::new(View {
        name: RelationName::new("n", "v"),
        columns: vec!["a".into(), "b".into()],
        query: "SELECT 1, 2".into(),
    });
    let (table, column, taken) = (TableId(7), ColumnId(2), u64::MAX);
    vec![
        (DdlChange::Create(before.clone()), DdlRecord::Create(before.clone())),
        (DdlChange::Drop(before.clone()), DdlRecord::Drop(table)),
        (
            DdlChange::Alter { before: before.clone(), after: after.clone(), looked_at_rows: true },
            DdlRecord::Alter(after),
        ),
        (
            DdlChange::Truncate { schema: before, restart_identity: true },
            DdlRecord::Truncate { table, restart_identity: true },
        ),
        (DdlChange::CreateView(view.clone()), DdlRecord::CreateView(view.clone())),
        (DdlChange::DropView(view.name.clone()), DdlRecord::DropView(view.name.clone())),
        (DdlChange::CreateNamespace("n".into()), DdlRecord::CreateNamespace("n".into())),
        (DdlChange::DropNamespace("n".into()), DdlRecord::DropNamespace("n".into())),
        (DdlChange::TakeNumbers { table, column, taken }, DdlRecord::TakeNumbers { table, column, taken }),
    ]
}

#[test]
fn what_is_written_is_read() {
    for (change, record) in changes() {
        let mut out = Encoder::new();
        encode_change(&mut out, &change);
        let bytes = out.finish();
        let mut input = Decoder::new(&bytes, "log", 0);
        assert_eq!(decode_change(&mut input).unwrap(), record);
        input.finish().unwrap();
    }
    let all: Vec<DdlChange> = changes().into_iter().map(|(change, _)| change).collect();
    let record = CommitEncoder::new(&all, &[]).unwrap();
    let read = CommitRecord::decode(record.payload(), "log", 0).unwrap();
    assert_eq!(read.ddl, changes().into_iter().map(|(_, record)| record).collect::<Vec<_>>());
}

/// A checksum stands before it, so this is a second line: an error, never a panic.
#[test]
fn damage_is_an_error_and_no_panic() {
    for (change, _) in changes() {
        let record = CommitEncoder::new(&[change], &[]).unwrap();
        let good = record.payload();
        for len in 0..good.len() {
            let cut = CommitRecord::decode(&good[..len], "log", 0).err().map(|e| e.sqlstate());
            assert_eq!(cut, Some(sqlstate::CORRUPT), "{len} of {} bytes", good.len());
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.to_vec();
                bytes[at] ^= 1 << bit;
                if let Err(e) = CommitRecord::decode(&bytes, "log", 0) {
                    assert_eq!(e.sqlstate(), sqlstate::CORRUPT, "byte {at}, bit {bit}");
                }
            }
        }
    }
}
