//! Numbers of IDENTITY columns beside a snapshot: what is unloaded from it goes on behind the numbers of its rows,
//! whatever others have begun anew, altered or dropped since. And those of a table that takes the place of another.

use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::disk::MemDisk;
use mainstem_storage::schema::{DataType, Identity, TableSchema};
use mainstem_storage::unload::Compression;

use super::*;

const ID: ColumnId = ColumnId(0);

fn counted() -> TableDefinition {
    let identity = Some(Identity { always: false, start: 1, increment: 1 });
    let column = ColumnDefinition { identity, ..ColumnDefinition::new("id", DataType::BigInt, false) };
    TableDefinition::new("t", vec![column, ColumnDefinition::new("v", DataType::BigInt, true)])
}

/// Commits `n` rows with the next numbers.
fn fill(stage: &Stage, n: usize) {
    stage.commit(|txn| fill_in(txn, stage.t, n)).unwrap();
}

fn fill_in(txn: &mut Transaction, table: TableId, n: usize) -> Result<()> {
    let drawn = txn.next_identity_values(table, ID, n)?;
    put_blindly(txn, table, &drawn.iter().map(|id| vec![int(*id), int(1)]).collect::<Vec<_>>())
}

/// The rows that `old` sees come back with the number behind them.
fn next_of_copy(old: &Transaction) -> (usize, i64) {
    let disk = MemDisk::new();
    old.unload_all(&disk, Compression::None, |_| false, &|| Ok(())).unwrap();
    let copy = memory();
    let mut txn = begin(&copy);
    txn.reload_all(&disk, &|| Ok(())).unwrap();
    txn.commit().unwrap();
    let table = copy.catalog().table_named("t").unwrap().id;
    let rows = rows_of(&begin(&copy), table);
    let next = begin(&copy).next_identity_values(table, ID, 1).unwrap()[0];
    assert!(rows.last_key_value().is_none_or(|(last, _)| *last < next), "{next} again");
    (rows.len(), next)
}

/// As a new key makes it: the table's definition, in its place.
fn replace(txn: &mut Transaction, table: TableId) -> TableId {
    let schema = TableSchema::clone(txn.catalog().table(table).unwrap());
    txn.replace_table(table, schema).unwrap().id
}

#[test]
fn what_ends_the_counting_elsewhere_is_not_told_of_an_older_snapshot() {
    let changes: [fn(&mut Transaction, TableId); 6] = [
        |txn, t| txn.truncate(t, true).unwrap(),
        |txn, t| {
            txn.truncate(t, true).unwrap();
            fill_in(txn, t, 2).unwrap();
        },
        |txn, t| txn.drop_table(t).unwrap(),
        |txn, t| drop(txn.alter_table(t, &[TableChange::DropColumn(ID)]).unwrap()),
        |txn, t| _ = replace(txn, t),
        |txn, t| {
            let new = replace(txn, t);
            txn.truncate(new, true).unwrap();
            fill_in(txn, new, 1).unwrap();
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        for rows in [5, 40] {
            let stage = Stage::new(counted(), Placement::Delta);
            fill(&stage, rows);
            let old = stage.begin();
            stage
                .commit(|txn| {
                    change(txn, stage.t);
                    Ok(())
                })
                .unwrap();
            stage.check();
            // Whatever is forgotten meanwhile is not what `old` needs.
            stage.db.checkpoint().unwrap();
            let (found, next) = next_of_copy(&old);
            // What was reserved of a table whose place another has taken is lost, or handed on.
            let is_replaced = at >= 4;
            assert!(found == rows && (next == rows as i64 + 1 || is_replaced && next <= 65), "change {at}: {next}");
        }
    }
}

/// Blocks of other eras end at the same marks.
#[test]
fn each_snapshot_has_the_numbers_of_its_own_era() {
    let stage = Stage::new(counted(), Placement::Delta);
    let mut snapshots = vec![(stage.begin(), 0)];
    for rows in [20, 3, 31, 0, 1, 32, 7] {
        stage.commit(|txn| txn.truncate(stage.t, true)).unwrap();
        snapshots.push((stage.begin(), 0));
        fill(&stage, rows);
        snapshots.push((stage.begin(), rows));
    }
    for (old, rows) in &snapshots {
        let (found, next) = next_of_copy(old);
        assert!(found == *rows && next > found as i64, "{next} after {rows} rows");
        // What others drew behind an older snapshot is lost to it.
        assert!(*rows == 0 || next == *rows as i64 + 1, "{next} after {rows} rows");
    }
    // Later ones keep theirs when earlier ones go.
    snapshots.drain(..6);
    stage.db.checkpoint().unwrap();
    stage.commit(|txn| txn.truncate(stage.t, true)).unwrap();
    for (old, rows) in &snapshots {
        assert_eq!(next_of_copy(old).0, *rows);
    }
}

/// A restart of counting that is taken back has never been.
#[test]
fn numbers_of_a_savepoint_that_is_undone_are_not_those_of_the_table() {
    let stage = Stage::new(counted(), Placement::Delta);
    fill(&stage, 9);
    let mut txn = stage.begin();
    let mark = txn.savepoint();
    txn.truncate(stage.t, true).unwrap();
    fill_in(&mut txn, stage.t, 2).unwrap();
    txn.rollback_to(&mark).unwrap();
    assert_eq!(txn.numbers_taken().unwrap(), [((stage.t, ID), 9)].into());
    assert_eq!(next_of_copy(&txn), (9, 10));
}

#[test]
fn numbers_drawn_for_a_table_in_the_place_of_another_are_drawn_once() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(counted(), placement);
        let draw = |txn: &Transaction, t| txn.next_identity_values(t, ID, 2).unwrap();
        assert_eq!(draw(&stage.begin(), stage.t), [1, 2]);
        let mut undone = stage.begin();
        let first = replace(&mut undone, stage.t);
        assert_eq!(draw(&undone, first), [3, 4]);
        let mark = undone.savepoint();
        let second = replace(&mut undone, first);
        assert_eq!(draw(&undone, second), [5, 6]);
        undone.rollback_to(&mark).unwrap();
        assert_eq!(draw(&undone, first), [7, 8]);
        assert_eq!(draw(&stage.begin(), stage.t), [9, 10], "others draw beside it");
        undone.rollback();
        let mut txn = stage.begin();
        assert_eq!(draw(&txn, stage.t), [11, 12]);
        let first = replace(&mut txn, stage.t);
        let second = replace(&mut txn, first);
        txn.advance_numbers(second, ID, 20).unwrap();
        assert_eq!(draw(&txn, second), [21, 22]);
        assert_eq!(draw(&stage.begin(), stage.t), [23, 24], "and before its commit");
        // Counting that begins anew in the same transaction, and is undone.
        let mark = txn.savepoint();
        txn.truncate(second, true).unwrap();
        assert_eq!(draw(&txn, second), [1, 2]);
        txn.rollback_to(&mark).unwrap();
        assert_eq!(draw(&txn, second), [25, 26]);
        txn.commit().unwrap();
        stage.t = second;
        stage.place();
        assert_eq!(draw(&stage.begin(), second), [27, 28], "{placement:?}");
        // Where it counts by itself it goes on so.
        let mut txn = stage.begin();
        txn.truncate(second, true).unwrap();
        assert_eq!(draw(&txn, second), [1, 2]);
        let third = replace(&mut txn, second);
        assert_eq!(draw(&txn, third), [3, 4]);
        txn.commit().unwrap();
        stage.t = third;
        stage.place();
        assert_eq!(draw(&stage.begin(), third), [5, 6], "{placement:?}");
    }
}
