//! TRUNCATE.

use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::disk::Disk;
use mainstem_storage::schema::DataType;

use super::*;
use crate::held_disk::HeldDisk;

#[test]
fn every_row_goes_and_older_snapshots_keep_them() {
    for definition in definitions() {
        for placement in PLACEMENTS {
            let mut stage = Stage::new(definition.clone(), placement);
            let t = stage.t;
            stage.commit(|txn| put(txn, t, &[], &simple(0..20))).unwrap();
            stage.place();
            stage.commit(|txn| put(txn, t, &[3, 4], &simple(20..25))).unwrap();
            let old = stage.begin();
            let before = rows_of(&old, t);
            let mut writer = stage.begin();
            put(&mut writer, t, &[7], &simple([7])).unwrap();
            stage.commit(|txn| txn.truncate(t, false)).unwrap();
            assert_eq!(stage.rows(), Rows::new(), "{placement:?}");
            assert_eq!(rows_of(&old, t), before);
            assert_eq!(state(writer.commit()), "40001", "the row it changed is gone");
            drop(old);
            stage.place();
            assert_eq!(stage.rows(), Rows::new(), "{placement:?}");
            stage.commit(|txn| put(txn, t, &[], &simple(3..9))).unwrap();
            for _ in 0..2 {
                assert_eq!(stage.rows(), expect(&simple(3..9)), "{placement:?}");
                stage.place();
            }
            stage.crash();
            assert_eq!(stage.rows(), expect(&simple(3..9)), "{placement:?}");
            stage.db.merge(t).unwrap();
            stage.check();
        }
    }
}

#[test]
fn files_go_with_the_rows() {
    let stage = Stage::new(definition("t", true, 7), Placement::Run);
    let t = stage.t;
    stage.commit(|txn| put(txn, t, &[], &simple(0..50))).unwrap();
    stage.db.merge(t).unwrap();
    let files = || stage.disk.list("data").unwrap().len();
    assert!(files() >= 7);
    let old = stage.begin();
    stage.commit(|txn| txn.truncate(t, false)).unwrap();
    stage.db.checkpoint().unwrap();
    assert!(files() >= 7 && rows_of(&old, t).len() == 50);
    drop(old);
    stage.commit(|txn| put(txn, t, &[], &simple(0..1))).unwrap();
    stage.db.checkpoint().unwrap();
    assert_eq!(files(), 1);
}

/// Before and after its own writes, with savepoints around it.
#[test]
fn a_transaction_goes_on_behind_it() {
    for definition in definitions() {
        for placement in PLACEMENTS {
            let mut stage = Stage::new(definition.clone(), placement);
            let t = stage.t;
            stage.commit(|txn| put(txn, t, &[], &simple(0..10))).unwrap();
            stage.place();
            let mut txn = stage.begin();
            put(&mut txn, t, &[2], &simple(10..15)).unwrap();
            let mark = txn.savepoint();
            let at_mark = rows_of(&txn, t);
            txn.truncate(t, false).unwrap();
            assert_eq!(rows_of(&txn, t), Rows::new());
            put(&mut txn, t, &[], &simple([1, 12, 30])).unwrap();
            txn.rollback_to(&mark).unwrap();
            assert_eq!(rows_of(&txn, t), at_mark);
            if !definition.primary_key.is_empty() || !definition.unique_keys.is_empty() {
                assert_eq!(state(put(&mut txn, t, &[], &simple([12]))), "23505");
            }
            txn.truncate(t, false).unwrap();
            let inside = txn.savepoint();
            put(&mut txn, t, &[], &simple([1, 12, 30])).unwrap();
            txn.rollback_to(&inside).unwrap();
            assert_eq!(rows_of(&txn, t), Rows::new());
            put(&mut txn, t, &[], &simple([1, 12, 31])).unwrap();
            put(&mut txn, t, &[12], &simple([13])).unwrap();
            let c = ColumnDefinition::new("c", DataType::Integer, true);
            txn.alter_table(t, &[TableChange::AddColumn { column: c, missing_value: int(7) }]).unwrap();
            let with = |ids: &[i64], c| -> Vec<Vec<Value>> {
                simple(ids.iter().copied()).into_iter().map(|row| [row, vec![int(c)]].concat()).collect()
            };
            put(&mut txn, t, &[], &with(&[2], 1)).unwrap();
            let expected = expect(&[with(&[1, 13, 31], 7), with(&[2], 1)].concat());
            assert_eq!(rows_of(&txn, t), expected);
            txn.commit().unwrap();
            for _ in 0..2 {
                assert_eq!(stage.rows(), expected, "{placement:?}");
                stage.place();
            }
            stage.crash();
            assert_eq!(stage.rows(), expected, "{placement:?}");
        }
    }
}

/// Rows that went aside before it are nowhere; those after it are committed.
#[test]
fn rows_that_went_aside_go_too() {
    let mut stage = Stage::new(definition("t", true, 7), Placement::Run);
    let t = stage.t;
    let mut txn = stage.begin();
    put(&mut txn, t, &[], &simple(0..3_000)).unwrap();
    txn.truncate(t, false).unwrap();
    put(&mut txn, t, &[], &simple(1_000..3_500)).unwrap();
    put(&mut txn, t, &[1_200], &simple([5])).unwrap();
    let expected = expect(&simple((1_000..3_500).filter(|id| *id != 1_200).chain([5])));
    assert_eq!(rows_of(&txn, t), expected);
    txn.commit().unwrap();
    assert_eq!(stage.rows(), expected);
    stage.crash();
    assert_eq!(stage.rows(), expected);
    stage.check();
}

#[test]
fn alone_it_takes_every_row_there_is() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let t = stage.t;
    stage.commit(|txn| put(txn, t, &[], &simple(0..5))).unwrap();
    let (mut alone, mut looked, mut wrote) = (stage.begin(), stage.begin(), stage.begin());
    alone.truncate(t, false).unwrap();
    rows_of(&looked, t);
    looked.truncate(t, false).unwrap();
    wrote.truncate(t, false).unwrap();
    put_blindly(&mut wrote, t, &simple([50])).unwrap();
    stage.commit(|txn| put(txn, t, &[], &simple(5..9))).unwrap();
    assert_eq!(state(looked.commit()), "40001");
    assert_eq!(state(wrote.commit()), "40001");
    alone.commit().unwrap();
    assert_eq!(stage.rows(), Rows::new(), "what came since the snapshot too");
    // Two of them are not in each other's way, and an ALTER in between is not either.
    let (mut first, mut second) = (stage.begin(), stage.begin());
    first.truncate(t, false).unwrap();
    second.truncate(t, false).unwrap();
    first.commit().unwrap();
    stage.commit(|txn| txn.alter_table(t, &[TableChange::DropColumn(column(txn, t, "v"))]).map(drop)).unwrap();
    second.commit().unwrap();
    assert_eq!(stage.begin().catalog().table(t).unwrap().columns.len(), 2);
}

/// Contract 3: what left the table while a merge ran, the merge does not bring back.
#[test]
fn a_merge_at_work_brings_nothing_back() {
    for rows_after in [0, 5] {
        let disk = HeldDisk::default();
        let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
        let t = create(&db, "t", true, 7);
        insert_and_commit(&db, t, 0..20);
        db.flush(t).unwrap();
        insert_and_commit(&db, t, 20..40);
        let mut old = begin(&db);
        disk.hold("data/");
        std::thread::scope(|scope| {
            let merge = scope.spawn(|| db.merge(t));
            disk.wait_for_sync("data/");
            let mut txn = begin(&db);
            txn.truncate(t, false).unwrap();
            txn.commit().unwrap();
            insert_and_commit(&db, t, 0..rows_after);
            disk.release("data/");
            merge.join().unwrap().unwrap();
        });
        assert_eq!(contents(&db, t), rows(0..rows_after));
        assert_eq!(state(update(&mut old, t, &[7], |r| r.1 = 1)), "40001");
        assert!(db.verify().is_empty());
        db.merge(t).unwrap();
        assert_eq!(contents(&db, t), rows(0..rows_after));
        let again = Database::open_on(Arc::new(disk.live.copy()), options()).unwrap();
        assert_eq!(contents(&again, t), rows(0..rows_after));
    }
}
