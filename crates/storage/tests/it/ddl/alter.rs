//! ALTER TABLE.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mainstem_storage::catalog::{ColumnDefinition, TableChange};
use mainstem_storage::point;
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::row::key::TableKey;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::{Check, DataType};

use super::*;
use crate::held_disk::HeldDisk;

fn add(name: &str, missing_value: Value) -> TableChange {
    TableChange::AddColumn { column: ColumnDefinition::new(name, DataType::Integer, true), missing_value }
}

/// Ids of the rows with `column = value`, evaluated by the store, at any time.
fn ids_where(stage: &Stage, column: &str, value: i64) -> Vec<i64> {
    let view = stage.begin().view(stage.t).unwrap();
    let column = view.schema().column_named(column).unwrap().id;
    let predicates = vec![Predicate::Compare { column, op: CompareOp::Eq, value: int(value) }];
    let scan = view.scan(&ScanRequest { predicates, ..ScanRequest::all(vec![ColumnId(0)]) }).unwrap();
    let ids = scan
        .worker()
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<arrow_array::types::Int64Type>().values().to_vec());
    let mut ids: Vec<i64> = ids.collect();
    ids.sort_unstable();
    ids
}

fn check_keys(stage: &Stage, rows: &Rows) {
    let view = stage.begin().view(stage.t).unwrap();
    if !view.schema().has_keys() {
        return;
    }
    let table_key = TableKey::of(view.schema(), id_key(view.schema())).unwrap();
    for id in 0..60 {
        let mut key = Vec::new();
        table_key.codec().encode_values(&[int(id)], &mut key).unwrap();
        assert_eq!(
            point::find(&view, table_key.id(), &key, |_| true).unwrap().is_some(),
            rows.contains_key(&id),
            "{id}"
        );
    }
}

#[test]
fn columns_come_and_go_and_no_row_is_rewritten() {
    for definition in definitions() {
        for placement in PLACEMENTS {
            let mut stage = Stage::new(definition.clone(), placement);
            let t = stage.t;
            stage.commit(|txn| put(txn, t, &[], &simple(0..20))).unwrap();
            stage.place();
            let old = stage.begin();
            let before = rows_of(&old, t);
            let containers = stage.db.containers().iter().filter(|c| c.rows > 0).map(|c| c.id).collect::<Vec<_>>();
            let free =
                if definition.sort_key.as_ref().is_some_and(|key| key.contains(&"v".to_owned())) { "s" } else { "v" };
            let gone = stage.column(free);
            let at = if free == "v" { 1 } else { 2 };
            stage
                .commit(|txn| {
                    let changes = [add("c", int(7)), TableChange::DropColumn(gone), add(free, Value::Null)];
                    let schema = txn.alter_table(t, &changes)?;
                    assert_eq!((schema.version.0, schema.next_column.0), (2, 5));
                    Ok(())
                })
                .unwrap();
            let still: Vec<_> = stage.db.containers().iter().filter(|c| c.rows > 0).map(|c| c.id).collect();
            assert_eq!(containers, still, "{placement:?}");
            let shape = |mut row: Vec<Value>, c: i64| {
                row.remove(at);
                row.extend([int(c), Value::Null]);
                row
            };
            let mut expected: Rows = before.iter().map(|(id, row)| (*id, shape(row.clone(), 7))).collect();
            assert_eq!(stage.rows(), expected, "{placement:?}");
            assert_eq!(rows_of(&old, t), before, "an older snapshot keeps its columns");
            drop(old);
            stage.place();
            assert_eq!(stage.rows(), expected, "{placement:?}");
            // New rows, and new versions of old ones, beside those from before.
            let mut new: Vec<_> = simple(20..30).into_iter().map(|row| shape(row, 1)).collect();
            new.extend(simple([3, 4]).into_iter().map(|row| shape(row, 5)));
            stage.commit(|txn| put(txn, t, &[3, 4, 5], &new)).unwrap();
            expected.remove(&5);
            expected.extend(expect(&new));
            for _ in 0..2 {
                assert_eq!(stage.rows(), expected, "{placement:?}");
                assert_eq!(ids_where(&stage, "c", 7).len(), 17);
                assert_eq!(ids_where(&stage, "c", 5), [3, 4]);
                assert_eq!(ids_where(&stage, "c", 9), [] as [i64; 0]);
                check_keys(&stage, &expected);
                stage.place();
            }
            stage.db.merge(t).unwrap();
            stage.check();
            assert_eq!(stage.rows(), expected, "{placement:?}");
            stage.crash();
            assert_eq!(stage.rows(), expected, "{placement:?}");
        }
    }
}

#[test]
fn names_defaults_and_constraints_change_without_a_row() {
    let mut stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let (t, v, s) = (stage.t, stage.column("v"), stage.column("s"));
    stage.commit(|txn| put(txn, t, &[], &simple(1..4))).unwrap();
    let check = |text: &str| Check { name: "positive".into(), expression: text.into() };
    stage
        .commit(|txn| {
            txn.alter_table(
                t,
                &[
                    TableChange::AddCheck(check("v > 0")),
                    TableChange::RenameColumn(v, "w".into()),
                    TableChange::ReplaceCheck(check("w > 0")),
                    TableChange::Rename("u".into()),
                    TableChange::SetDefault(s, Some("'x'".into())),
                    TableChange::SetNullable(v, false),
                ],
            )
            .map(drop)
        })
        .unwrap();
    for _ in 0..2 {
        let catalog = stage.begin().catalog();
        assert!(catalog.table_named("t").is_none());
        let schema = catalog.table_named("u").unwrap();
        assert_eq!((schema.id, schema.checks.as_slice()), (t, &[check("w > 0")][..]));
        let w = schema.column_named("w").unwrap();
        assert!((w.id, w.nullable) == (v, false) && schema.column_named("v").is_none());
        assert_eq!(schema.column(s).unwrap().default.as_deref(), Some("'x'"));
        assert_eq!(stage.rows(), expect(&simple(1..4)));
        stage.crash();
    }
    let null = stage.commit(|txn| {
        let schema = txn.catalog().table(t).unwrap().clone();
        let mut rows = RowBuffer::new(RowLayout::new(&schema));
        rows.push_values(&[int(9), Value::Null, Value::Null])
    });
    assert_eq!(state(null), "23502");
    stage.commit(|txn| txn.alter_table(t, &[TableChange::DropConstraint("positive".into())]).map(drop)).unwrap();
    assert!(stage.begin().catalog().table(t).unwrap().checks.is_empty());
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let by_s = keyed_definitions("t", 7).remove(1);
    let stage = Stage::new(by_s, Placement::Delta);
    let (t, id, v, s) = (stage.t, stage.column("id"), stage.column("v"), stage.column("s"));
    create(&stage.db, "taken", true, 7);
    let before = stage.begin().catalog().table(t).unwrap().clone();
    let check = || Check { name: "c".into(), expression: "true".into() };
    let long = TableChange::AddColumn {
        column: ColumnDefinition::new("c", DataType::Text { max_chars: Some(2) }, true),
        missing_value: text("abc"),
    };
    let cases: Vec<(Vec<TableChange>, &str)> = vec![
        (vec![add("v", Value::Null)], "42701"),
        (vec![add("c", Value::Null), add("c", Value::Null)], "42701"),
        (vec![add("c", text("no number"))], "42804"),
        (vec![add("c", int(1 << 40))], "22003"),
        (vec![long], "22001"),
        (vec![TableChange::RenameColumn(v, "s".into())], "42701"),
        (vec![TableChange::DropColumn(ColumnId(99))], "42703"),
        (vec![TableChange::DropColumn(v), TableChange::SetNullable(v, false)], "42703"),
        (vec![TableChange::DropColumn(id)], "0A000"),
        (vec![TableChange::DropColumn(s)], "0A000"),
        (vec![TableChange::SetNullable(id, true)], "42P16"),
        (vec![TableChange::SetNullable(s, false)], "0A000"),
        (vec![TableChange::AddCheck(check()), TableChange::AddCheck(check())], "42710"),
        (vec![TableChange::DropConstraint("c".into())], "42704"),
        (vec![TableChange::ReplaceCheck(check())], "42704"),
        (vec![TableChange::DropConstraint("t_pkey".into())], "0A000"),
        (vec![TableChange::Rename("taken".into())], "42P07"),
        (vec![TableChange::SetNamespace("nowhere".into())], "3F000"),
    ];
    for (changes, expected) in cases {
        let mut txn = stage.begin();
        assert_eq!(state(txn.alter_table(t, &changes)), expected, "{changes:?}");
        assert!(!txn.has_writes());
        assert_eq!(txn.catalog().table(t), Some(&before));
    }
    assert_eq!(state(stage.begin().alter_table(TableId(99), &[])), "42P01");
    let one = Stage::new(
        TableDefinition::new("one", vec![ColumnDefinition::new("a", DataType::BigInt, true)]),
        Placement::Delta,
    );
    let last = TableChange::DropColumn(one.column("a"));
    assert_eq!(state(one.begin().alter_table(one.t, &[last])), "0A000");
}

/// INSERT, ALTER, INSERT, with deletes of both and savepoints around them.
#[test]
fn a_transaction_goes_on_with_its_own_rows() {
    for definition in definitions() {
        for placement in PLACEMENTS {
            let mut stage = Stage::new(definition.clone(), placement);
            let t = stage.t;
            stage.commit(|txn| put(txn, t, &[], &simple(0..10))).unwrap();
            stage.place();
            let with = |rows: Vec<Vec<Value>>, c: i64| -> Vec<Vec<Value>> {
                rows.into_iter().map(|row| [row, vec![int(c)]].concat()).collect()
            };
            let mut txn = stage.begin();
            put(&mut txn, t, &[2], &simple(10..15)).unwrap();
            put(&mut txn, t, &[12], &simple([2])).unwrap();
            let first = txn.savepoint();
            let at_first = rows_of(&txn, t);
            txn.alter_table(t, &[add("c", int(7))]).unwrap();
            let mut expected = expect(&with(simple((0..15).filter(|id| *id != 12)), 7));
            assert_eq!(rows_of(&txn, t), expected);
            put(&mut txn, t, &[1, 11], &with(simple([11, 16]), 1)).unwrap();
            expected.remove(&1);
            expected.extend(expect(&with(simple([11, 16]), 1)));
            let second = txn.savepoint();
            txn.alter_table(t, &[TableChange::DropColumn(column(&txn, t, "c")), add("d", int(8))]).unwrap();
            put(&mut txn, t, &[16, 3], &with(simple([17]), 2)).unwrap();
            assert_eq!(rows_of(&txn, t)[&11], with(simple([11]), 8)[0]);
            txn.rollback_to(&second).unwrap();
            assert_eq!(rows_of(&txn, t), expected);
            txn.rollback_to(&first).unwrap();
            assert_eq!((rows_of(&txn, t), txn.catalog().table(t).unwrap().version.0), (at_first, 1));
            // Once more, to stay.
            txn.alter_table(t, &[add("c", int(7))]).unwrap();
            put(&mut txn, t, &[1, 11], &with(simple([11, 16]), 1)).unwrap();
            txn.alter_table(t, &[add("d", int(9))]).unwrap();
            if !definition.primary_key.is_empty() || !definition.unique_keys.is_empty() {
                let taken = put(&mut txn, t, &[], &with(with(simple([16]), 1), 1));
                assert_eq!(state(taken), "23505");
            }
            put(&mut txn, t, &[16], &with(with(simple([18]), 3), 4)).unwrap();
            expected.remove(&16);
            expected.extend(expect(&with(simple([18]), 3)));
            let expected = expect(&with(expected.into_values().collect(), 9))
                .into_iter()
                .map(|(id, row)| if id == 18 { (id, with(with(simple([18]), 3), 4).remove(0)) } else { (id, row) })
                .collect::<Rows>();
            assert_eq!(rows_of(&txn, t), expected);
            txn.commit().unwrap();
            for _ in 0..2 {
                assert_eq!(stage.rows(), expected, "{placement:?}");
                stage.place();
            }
            stage.crash();
            assert_eq!(stage.rows(), expected, "{placement:?}");
            check_keys(&stage, &expected);
        }
    }
}

/// What was written aside before the ALTER stays as it is, and is committed under the next version.
#[test]
fn a_transaction_goes_on_with_rows_that_went_aside() {
    for definition in definitions() {
        for aside_first in [true, false] {
            let mut stage = Stage::new(definition.clone(), Placement::Run);
            let t = stage.t;
            stage.commit(|txn| put(txn, t, &[], &simple(0..10))).unwrap();
            stage.place();
            let many = || simple(100..3_000);
            let mut txn = stage.begin();
            if aside_first {
                put(&mut txn, t, &[5], &many()).unwrap();
            }
            let mark = txn.savepoint();
            txn.alter_table(t, &[add("c", int(7))]).unwrap();
            let with = |rows: Vec<Vec<Value>>, c: i64| -> Vec<Vec<Value>> {
                rows.into_iter().map(|row| [row, vec![int(c)]].concat()).collect()
            };
            if !aside_first {
                put(&mut txn, t, &[5], &with(many(), 7)).unwrap();
            }
            let mut expected = expect(&with(simple((0..10).filter(|id| *id != 5)), 7));
            expected.extend(expect(&with(many(), 7)));
            put(&mut txn, t, &[200, 3], &with(simple([5]), 1)).unwrap();
            expected.remove(&200);
            expected.remove(&3);
            expected.extend(expect(&with(simple([5]), 1)));
            assert_eq!(rows_of(&txn, t), expected);
            if aside_first {
                txn.rollback_to(&mark).unwrap();
                assert_eq!(rows_of(&txn, t).len(), 9 + 2_900);
                txn.alter_table(t, &[add("c", int(7))]).unwrap();
                put(&mut txn, t, &[200, 3], &with(simple([5]), 1)).unwrap();
            }
            txn.commit().unwrap();
            assert_eq!(stage.rows(), expected);
            stage.crash();
            assert_eq!(stage.rows(), expected);
            stage.place();
            assert_eq!(stage.rows(), expected);
            check_keys(&stage, &(0..60).filter_map(|id| Some((id, expected.get(&id)?.clone()))).collect());
        }
    }
}

#[test]
fn a_table_that_this_transaction_makes_can_be_altered() {
    for placement in PLACEMENTS {
        let mut stage = Stage::new(definition("other", true, 7), placement);
        let mut txn = stage.begin();
        let t = txn.create_table(definition("t", true, 7)).unwrap();
        put(&mut txn, t, &[], &simple(0..5)).unwrap();
        txn.alter_table(t, &[add("c", int(7)), TableChange::Rename("u".into())]).unwrap();
        let again = txn.create_table(definition("t", true, 7)).unwrap();
        txn.drop_table(again).unwrap();
        txn.commit().unwrap();
        stage.t = t;
        for _ in 0..2 {
            assert_eq!(stage.rows().len(), 5);
            assert_eq!(stage.rows()[&3].last(), Some(&int(7)));
            stage.place();
        }
        let catalog = stage.begin().catalog();
        assert_eq!(catalog.table_named("u").map(|table| table.id), Some(t));
        assert!(catalog.table_named("t").is_none());
    }
}

#[test]
fn writes_under_another_version_are_a_conflict() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let t = stage.t;
    stage.commit(|txn| put(txn, t, &[], &simple(0..5))).unwrap();
    let (mut inserter, mut deleter, mut late, mut rival) = (stage.begin(), stage.begin(), stage.begin(), stage.begin());
    put(&mut inserter, t, &[], &simple([10])).unwrap();
    put(&mut deleter, t, &[1], &[]).unwrap();
    rival.alter_table(t, &[add("d", int(1))]).unwrap();
    stage.commit(|txn| txn.alter_table(t, &[add("c", int(1))]).map(drop)).unwrap();
    assert_eq!(state(put(&mut late, t, &[1], &[])), "40001", "a statement sees it early");
    assert_eq!(state(put(&mut late, t, &[], &simple([11]))), "40001", "also without a row of others");
    for txn in [inserter, deleter, rival] {
        assert_eq!(state(txn.commit()), "40001");
    }
    assert_eq!(stage.rows().len(), 5);
}

#[test]
fn alone_it_takes_the_rows_as_they_are() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let t = stage.t;
    let write = |id: i64, columns: usize| {
        stage
            .commit(|txn| {
                let row = [simple([id]).remove(0), vec![int(1); columns - 3]].concat();
                put(txn, t, &[], &[row])
            })
            .unwrap();
    };
    write(0, 3);
    // Writers come in between, and it commits; after a look at rows it does not.
    let (mut alone, mut looked, mut asked) = (stage.begin(), stage.begin(), stage.begin());
    alone.alter_table(t, &[add("c", int(7))]).unwrap();
    rows_of(&looked, t);
    looked.alter_table(t, &[add("c", int(7))]).unwrap();
    asked.alter_table(t, &[TableChange::SetNullable(stage.column("v"), false)]).unwrap();
    write(1, 3);
    assert_eq!(state(looked.commit()), "40001");
    assert_eq!(state(asked.commit()), "40001", "somebody had to look at the rows");
    alone.commit().unwrap();
    assert_eq!(stage.rows().len(), 2);
    assert_eq!(stage.rows()[&1].last(), Some(&int(7)));
    let (mut alone, mut wrote) = (stage.begin(), stage.begin());
    alone.drop_table(t).unwrap();
    put_blindly(&mut wrote, t, &[[simple([5]).remove(0), vec![int(1)]].concat()]).unwrap();
    wrote.drop_table(t).unwrap();
    write(2, 4);
    assert_eq!(state(wrote.commit()), "40001", "its statement looked for keys that are taken");
    alone.commit().unwrap();
    assert!(stage.begin().catalog().table(t).is_none());
}

/// Contract 1: a merge that was planned under the old version installs, whatever came since.
#[test]
fn a_merge_planned_before_installs() {
    for definition in definitions() {
        let disk = HeldDisk::default();
        let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
        let t = create_as(&db, definition.clone());
        let mut txn = begin(&db);
        put(&mut txn, t, &[], &simple(0..20)).unwrap();
        txn.commit().unwrap();
        disk.hold("data/");
        let with = |row: Vec<Value>| [row, vec![int(1)]].concat();
        std::thread::scope(|scope| {
            let merge = scope.spawn(|| db.flush(t));
            disk.wait_for_sync("data/");
            let mut txn = begin(&db);
            let free =
                if definition.sort_key.as_ref().is_some_and(|key| key.contains(&"v".to_owned())) { "s" } else { "v" };
            let gone = column(&txn, t, free);
            txn.alter_table(t, &[TableChange::DropColumn(gone), add("c", int(7))]).unwrap();
            txn.commit().unwrap();
            let mut txn = begin(&db);
            let mut new = with(simple([3]).remove(0));
            new.remove(if free == "v" { 1 } else { 2 });
            put(&mut txn, t, &[3, 4], &[new]).unwrap();
            txn.commit().unwrap();
            disk.release("data/");
            merge.join().unwrap().unwrap();
        });
        assert!(db.containers().iter().any(|container| container.kind == "segment"), "it was installed");
        let check = |db: &Database| {
            let rows = rows_of(&begin(db), t);
            assert_eq!(rows.len(), 19);
            assert!(rows.iter().all(|(id, row)| row.len() == 3 && row[2] == int(if *id == 3 { 1 } else { 7 })));
            assert!(db.verify().is_empty());
        };
        check(&db);
        db.merge(t).unwrap();
        check(&db);
        check(&Database::open_on(Arc::new(disk.live.copy()), options()).unwrap());
    }
}

/// Contract 2: alone, it is not run again and again beside a stream of writers, which have to be.
#[test]
fn a_stream_of_writers_keeps_nobody_from_it() {
    let stage = Stage::new(definition("t", true, 7), Placement::Delta);
    let t = stage.t;
    let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                let mut txn = begin_applied(&stage.db);
                let columns = txn.catalog().table(t).unwrap().columns.len();
                let row = [simple([written]).remove(0), vec![int(1); columns - 3]].concat();
                match put_blindly(&mut txn, t, &[row]).and_then(|()| txn.commit()) {
                    Ok(_) => {
                        written += 1;
                        committed.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(e) => assert_eq!(e.sqlstate(), "40001"),
                }
            }
            written
        });
        for turn in 0..60 {
            let mut txn = begin_applied(&stage.db);
            match turn % 3 {
                0 => drop(txn.alter_table(t, &[add("c", int(7))]).unwrap()),
                1 => txn.truncate(t, false).unwrap(),
                _ => drop(txn.alter_table(t, &[TableChange::DropColumn(column(&txn, t, "c"))]).unwrap()),
            }
            // Whatever was committed meanwhile, and something was.
            let before = committed.load(Ordering::Relaxed);
            while committed.load(Ordering::Relaxed) < before + 2 && !writer.is_finished() {
                std::thread::yield_now();
            }
            let outcome = txn.commit();
            stop.store(outcome.is_err(), Ordering::Relaxed);
            outcome.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(written >= 120, "{written} rows beside 60 changes");
    assert!(stage.rows().len() < written as usize);
    stage.check();
}

/// What was done under the lock for a commit that came to nothing is no obstacle to the next one.
#[test]
fn an_alter_that_loses_leaves_the_table_usable() {
    for rows in [0, 5] {
        let stage = Stage::new(definition("t", true, 7), Placement::Delta);
        let (t, other) = (stage.t, create(&stage.db, "other", true, 7));
        stage.commit(|txn| put(txn, t, &[], &simple(0..rows))).unwrap();
        let mut loser = stage.begin();
        loser.alter_table(t, &[add("c", int(7))]).unwrap();
        loser.alter_table(other, &[add("c", int(7))]).unwrap();
        stage.commit(|txn| txn.alter_table(other, &[add("d", int(7))]).map(drop)).unwrap();
        assert_eq!(state(loser.commit()), "40001");
        for id in 10..13 {
            stage.commit(|txn| put(txn, t, &[], &simple([id]))).unwrap();
        }
        assert_eq!(stage.rows(), expect(&simple((0..rows).chain(10..13))));
        stage.check();
    }
}
