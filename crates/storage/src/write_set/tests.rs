//! Own rows, deletes and keys against plain lists, with views of every state held.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::catalog::{ColumnDefinition, TableDefinition};
use crate::ids::{ContainerId, KeyId, RowRef, TableId};
use crate::memory::{MemoryBudget, MemoryKind};
use crate::row::key::{HashedKey, TableKey};
use crate::row::{RowBuffer, RowLayout, Value};
use crate::schema::{DataType, TableSchema};

fn schema() -> Arc<TableSchema> {
    let column = |name: &str, data_type| ColumnDefinition::new(name, data_type, false);
    let definition = TableDefinition {
        primary_key: vec!["id".into()],
        ..TableDefinition::new(
            "t",
            vec![column("id", DataType::BigInt), column("s", DataType::Text { max_chars: None })],
        )
    };
    Arc::new(definition.into_schema(TableId(1)).unwrap())
}

fn rows(schema: &Arc<TableSchema>, ids: impl IntoIterator<Item = i64>) -> RowBuffer {
    let mut rows = RowBuffer::new(RowLayout::new(schema));
    for id in ids {
        let text = "x".repeat(id.unsigned_abs() as usize % 5);
        rows.push_values(&[Value::Int(id), Value::Text(text.into())]).unwrap();
    }
    rows
}

fn id_of(row: crate::row::RowView<'_>) -> i64 {
    match row.value(0) {
        Value::Int(id) => id,
        other => panic!("{other:?}"),
    }
}

fn live(writes: &TableWrites) -> Vec<i64> {
    writes.live_rows_from(0).map(|(_, row)| id_of(row)).collect()
}

/// What a view of one state must show, whatever comes later.
struct Held {
    writes: TableWrites,
    ids: Vec<i64>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_state_stays_as_it_was(steps in prop::collection::vec((0_usize..400, 0_usize..20, any::<bool>()), 1..60)) {
        let (schema, budget) = (schema(), MemoryBudget::new(u64::MAX));
        let mut writes = TableWrites::new(schema.clone(), &budget, ContainerId::own_rows(0));
        let mut model: Vec<(i64, bool)> = Vec::new();
        let mut held: Vec<Held> = Vec::new();
        for (count, stride, hold) in steps {
            let first = model.len() as i64;
            writes.insert(rows(&schema, first..first + count as i64), Vec::new());
            model.extend((first..first + count as i64).map(|id| (id, true)));
            if stride > 0 {
                let dead: Vec<u32> = (0..model.len() as u32).step_by(stride * 7).collect();
                writes.delete([(writes.rows().id(), dead.iter().copied().collect())].into());
                dead.iter().for_each(|at| model[*at as usize].1 = false);
            }
            let ids: Vec<i64> = model.iter().filter(|row| row.1).map(|row| row.0).collect();
            prop_assert_eq!(writes.live_rows(), ids.len() as u64);
            if hold {
                held.push(Held { writes: writes.clone(), ids });
            }
        }
        for (at, (id, alive)) in model.iter().enumerate() {
            let row = writes.rows().row(at as u32).map(id_of);
            prop_assert_eq!(row, Some(*id));
            prop_assert_eq!(writes.is_deleted(RowRef::new(writes.rows().id(), at as u32)), !alive);
        }
        prop_assert_eq!(writes.rows().row(model.len() as u32).map(id_of), None);
        for held in &held {
            prop_assert_eq!(&live(&held.writes), &held.ids);
        }
        drop(held);
        // Nobody else holds anything: what is counted is what there is.
        let rows: usize = writes.rows().chunks().map(|chunk| chunk.rows().bytes()).sum();
        prop_assert_eq!(rows, writes.rows().bytes());
        prop_assert_eq!(budget.used(MemoryKind::WriteSets), (rows + writes.deletes().bytes()) as u64);
        drop(writes);
        prop_assert_eq!(budget.used(MemoryKind::WriteSets), 0);
    }
}

/// One row a statement, a view of each statement held: chunks and layers stay few, and copies too.
#[test]
fn a_statement_costs_its_own_size_whoever_looks_on() {
    const STATEMENTS: i64 = 20_000;
    let (schema, budget) = (schema(), MemoryBudget::new(u64::MAX));
    for hold_every in [1, 2, 7] {
        let mut writes = TableWrites::new(schema.clone(), &budget, ContainerId::own_rows(0));
        let mut views = Vec::new();
        for id in 0..STATEMENTS {
            if id % hold_every == 0 {
                views.push(writes.clone());
            }
            writes.insert(rows(&schema, [id]), Vec::new());
            writes.delete([(ContainerId(1 + id as u64 % 3), [id as u32].into_iter().collect())].into());
        }
        let chunks = writes.rows().chunks().count();
        assert!(chunks <= 2 * STATEMENTS as usize / crate::limits::OWN_CHUNK_ROWS + 16, "{chunks} chunks");
        assert!(writes.deletes().layers() <= 16, "{} layers", writes.deletes().layers());
        // All copies that the views hold: each row as often as chunks double.
        let distinct: BTreeSet<_> = views
            .iter()
            .chain([&writes])
            .flat_map(|w| w.rows().chunks())
            .map(|c| (Arc::as_ptr(c), c.rows().len()))
            .collect();
        let copies: usize = distinct.iter().map(|(_, rows)| rows).sum();
        assert!(copies <= 16 * STATEMENTS as usize, "{copies} rows in all chunks");
    }
}

#[test]
fn keys_are_found_by_value_and_removed_by_row() {
    let (schema, budget) = (schema(), MemoryBudget::new(u64::MAX));
    let mut writes = TableWrites::new(schema.clone(), &budget, ContainerId::own_rows(0));
    let table_key = TableKey::of(&schema, KeyId::PRIMARY).unwrap();
    let mut keys = OwnKeys::new(table_key.clone(), &budget);
    writes.insert(rows(&schema, (0..1_000).chain([5])), Vec::new());
    let key = |id: i64| {
        let mut key = Vec::new();
        table_key.codec().encode_values(&[Value::Int(id)], &mut key).unwrap();
        key
    };
    let before = budget.used(MemoryKind::WriteSets);
    writes.rows().rows_from(0).take(1_000).for_each(|(offset, row)| keys.insert(offset, row));
    assert_eq!(budget.used(MemoryKind::WriteSets) - before, keys.bytes());
    assert!(keys.bytes() >= 16_000);
    assert_eq!(keys.find(HashedKey::of(&key(5)), writes.rows()), Some(5));
    keys.remove(1_000, writes.rows().row(1_000).unwrap());
    assert_eq!(keys.find(HashedKey::of(&key(5)), writes.rows()), Some(5), "another row with that key is not its row");
    keys.remove(5, writes.rows().row(5).unwrap());
    assert_eq!((keys.find(HashedKey::of(&key(5)), writes.rows()), keys.len()), (None, 999));
    keys.insert(1_000, writes.rows().row(1_000).unwrap());
    assert_eq!(keys.find(HashedKey::of(&key(5)), writes.rows()), Some(1_000));
}

#[test]
fn deletes_are_counted_once_and_forgotten_with_their_container() {
    let budget = MemoryBudget::new(u64::MAX);
    let mut deletes = RowLayers::new(budget.clone());
    let (a, own) = (ContainerId(7), ContainerId::own_rows(0));
    deletes.add([(a, (0..100).collect()), (own, (0..5).collect())].into());
    deletes.add([(a, (50..120).collect())].into());
    deletes.add([(a, (0..120).collect())].into());
    assert_eq!((deletes.rows(), deletes.count_of(a), deletes.count_of(own)), (125, 120, 5));
    assert_eq!(deletes.collect(|id| !id.is_own_rows()).keys().copied().collect::<Vec<_>>(), [a]);
    deletes.forget(|id| id == own);
    assert_eq!(
        (deletes.rows(), deletes.contains(RowRef::new(own, 1)), deletes.contains(RowRef::new(a, 119))),
        (120, false, true)
    );
    assert_eq!(budget.used(MemoryKind::WriteSets), deletes.bytes() as u64);
}
