//! Statements, own writes, keys, commits.

use std::collections::{BTreeMap, BTreeSet};

use mainstem_storage::database::Database;
use mainstem_storage::limits::OWN_RUNS_MAX;
use mainstem_storage::predicate::CompareOp;

use crate::support::*;

#[test]
fn committed_rows_are_seen_by_the_next_transaction_and_not_before() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut writer = begin(&db);
    insert(&mut writer, t, &rows(0..20)).unwrap();
    assert_eq!(contents(&db, t), vec![]);
    assert_eq!(all(&writer, t), rows(0..20), "own writes are seen");
    let before = begin(&db);
    writer.commit().unwrap();
    assert_eq!(contents(&db, t), rows(0..20));
    assert_eq!(all(&before, t), vec![], "an older snapshot stays");
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut writer = begin(&db);
    insert(&mut writer, t, &rows(0..20)).unwrap();
    writer.rollback();
    assert_eq!(contents(&db, t), vec![]);
}

#[test]
fn own_rows_can_be_updated_and_deleted_again() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..10)).unwrap();
    assert_eq!(delete(&mut txn, t, &[3, 4]).unwrap(), 2);
    update(&mut txn, t, &[5], |r| r.1 = 77).unwrap();
    insert(&mut txn, t, &[row(3, 33)]).unwrap();
    let expected = |db_rows: Vec<Row>| {
        let mut wanted = rows([0, 1, 2, 6, 7, 8, 9]);
        wanted.push(row(3, 33));
        wanted.push((5, 77, row(5, 35).2));
        wanted.sort();
        assert_eq!(db_rows, wanted);
    };
    expected(all(&txn, t));
    txn.commit().unwrap();
    expected(contents(&db, t));
}

#[test]
fn a_taken_key_fails_the_statement_and_nothing_else() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..3)).unwrap();
    txn.commit().unwrap();
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(10..12)).unwrap();
    assert_eq!(state(insert(&mut txn, t, &rows([20, 2]))), "23505", "taken in the store");
    assert_eq!(state(insert(&mut txn, t, &rows([21, 10]))), "23505", "taken by an own row");
    assert_eq!(state(insert(&mut txn, t, &rows([22, 22]))), "23505", "twice in one statement");
    assert_eq!(all(&txn, t), rows([0, 1, 2, 10, 11]));
    txn.commit().unwrap();
    assert_eq!(contents(&db, t), rows([0, 1, 2, 10, 11]));
}

#[test]
fn keys_are_checked_on_the_statements_net_effect() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..5)).unwrap();
    txn.commit().unwrap();
    let mut txn = begin(&db);
    update(&mut txn, t, &[0, 1, 2, 3, 4], |r| r.0 += 1).unwrap();
    txn.commit().unwrap();
    let ids: Vec<i64> = contents(&db, t).iter().map(|r| r.0).collect();
    assert_eq!(ids, vec![1, 2, 3, 4, 5]);
    let mut txn = begin(&db);
    assert_eq!(state(update(&mut txn, t, &[1], |r| r.0 = 2)), "23505");
}

#[test]
fn bad_rows_are_refused_whole() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let txn = begin(&db);
    let schema = txn.catalog().table(t).unwrap().clone();
    let mut statement = txn.statement();
    let wrong = batch(&rows(0..2)).project(&[0, 2, 1]).unwrap();
    assert_eq!(state(statement.insert(&schema, &wrong)), "42804");
    drop(statement);
    txn.commit().unwrap();
    assert_eq!(contents(&db, t), vec![]);
}

#[test]
fn ddl_is_part_of_its_transaction() {
    let db = memory();
    let mut txn = begin(&db);
    let t = txn.create_table(definition("t", true, 7)).unwrap();
    insert(&mut txn, t, &rows(0..3)).unwrap();
    assert_eq!(all(&txn, t), rows(0..3));
    assert!(begin(&db).catalog().table_named("t").is_none());
    assert_eq!(state(txn.create_table(definition("t", true, 7))), "42P07");
    txn.commit().unwrap();
    assert_eq!(contents(&db, t), rows(0..3));

    let mut dropper = begin(&db);
    dropper.drop_table(t).unwrap();
    assert!(dropper.catalog().table_named("t").is_none());
    dropper.rollback();
    assert_eq!(contents(&db, t), rows(0..3));

    let reader = begin(&db);
    let mut dropper = begin(&db);
    dropper.drop_table(t).unwrap();
    dropper.commit().unwrap();
    assert_eq!(all(&reader, t), rows(0..3), "an older snapshot keeps the table");
    assert_eq!(state(begin(&db).view(t)), "42P01");
}

#[test]
fn predicates_select_in_deltas_and_own_rows() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows(0..50)).unwrap();
    txn.commit().unwrap();
    for op in [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq] {
        let holds = |v: i32| op.holds(v.cmp(&42));
        let wanted: Vec<i64> = rows(0..50).iter().filter(|r| holds(r.1)).map(|r| r.0).collect();
        assert_eq!(ids_where(&db, t, op, 42), wanted, "{op:?}");
    }
}

#[test]
fn many_deletes_and_versions_of_one_key() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let mut old = Vec::new();
    for round in 0..50 {
        let mut txn = begin(&db);
        if round > 0 {
            update(&mut txn, t, &[1], |r| r.1 = round).unwrap();
        } else {
            insert(&mut txn, t, &[row(1, 0)]).unwrap();
        }
        txn.commit().unwrap();
        old.push((begin(&db), round));
    }
    for (txn, round) in old {
        assert_eq!(all(&txn, t).iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(), vec![(1, round)]);
    }
}

/// However the table is ordered and its keys are found: a transaction that goes aside dozens of times, and whose runs
/// are merged.
#[test]
fn what_went_aside_and_was_merged_is_as_it_was_written() {
    for definition in keyed_definitions("t", 200) {
        let db = Database::in_memory(options().memory_limit(512 << 10)).unwrap();
        let t = create_as(&db, definition.clone());
        insert_and_commit(&db, t, -20..0);
        let mut txn = begin(&db);
        let mut model: BTreeMap<i64, Row> = rows(-20..0).into_iter().map(|row| (row.0, row)).collect();
        let (mut spills, mut merges, mut mark) = (BTreeSet::new(), 0, None);
        let mut runs = 0;
        for step in 0..120_i64 {
            let new = rows((0..200).map(|at| step + 120 * at));
            insert(&mut txn, t, &new).unwrap();
            model.extend(new.into_iter().map(|row| (row.0, row)));
            if step % 10 == 9 {
                let ids = [step - 5, step + 120 * 7, -step / 10 - 1];
                update(&mut txn, t, &ids, |row| row.1 += 1_000).unwrap();
                ids.iter().for_each(|id| model.get_mut(id).unwrap().1 += 1_000);
                assert_eq!(delete(&mut txn, t, &[step - 4, step + 120 * 9]).unwrap(), 2);
                model.retain(|id, _| ![step - 4, step + 120 * 9].contains(id));
                for taken in ids {
                    assert_eq!(state(insert(&mut txn, t, &rows([taken]))), "23505", "{taken}, {definition:?}");
                }
            }
            let own = txn.view(t).unwrap().own().unwrap().clone();
            spills.insert(own.rows().id());
            merges += usize::from(own.runs().len() < runs);
            runs = own.runs().len();
            if step == 50 {
                mark = Some((txn.savepoint(), model.clone()));
            }
        }
        assert!(
            spills.len() > 24 && merges > 1 && runs <= OWN_RUNS_MAX,
            "{} spills, {merges} merges, {runs} runs",
            spills.len()
        );
        assert_eq!(all(&txn, t), model.values().cloned().collect::<Vec<_>>(), "{definition:?}");
        let (mark, then) = mark.unwrap();
        txn.rollback_to(&mark).unwrap();
        assert_eq!(all(&txn, t), then.values().cloned().collect::<Vec<_>>(), "{definition:?}");
        assert_eq!(state(insert(&mut txn, t, &rows([7]))), "23505");
        insert(&mut txn, t, &rows([60 + 120 * 3, 5_000_000])).unwrap();
        txn.commit().unwrap();
        assert_eq!(contents(&db, t).len(), then.len() + 2, "{definition:?}");
        assert!(db.verify().is_empty());
    }
}
