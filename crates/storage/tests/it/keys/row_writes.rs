//! Commits of short statements, of one row by key and of several that keep their keys, against a plain map; in their
//! way: merges, and one another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem_storage::database::Database;
use mainstem_storage::ids::{CommitTs, TableId};
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{ErrorKind, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::*;

fn keyed(db: &Database, table: TableId) -> PointTable {
    let schema = begin(db).catalog().table(table).unwrap().clone();
    PointTable::by(&schema, id_key(&schema)).unwrap()
}

fn values((id, v, s): &Row) -> Vec<Value> {
    let text = s.as_deref().map_or(Value::Null, |s| Value::Text(s.into()));
    vec![Value::Int(*id), Value::Int((*v).into()), text]
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Insert,
    Update,
    Delete,
}

/// Does it in `write_set`, with `row`; `None` if there is no row to update or delete.
fn act(txn: Transaction, table: &PointTable, act: Act, row: &Row) -> Result<Option<CommitTs>> {
    let view = txn.view(table.schema().id)?;
    let mut key = Vec::new();
    table.encode(&[Value::Int(row.0)], &mut key)?;
    let mut new = table.new_rows();
    if act != Act::Delete {
        new.push_values(&values(row))?;
    }
    let found = match act {
        Act::Insert => {
            txn.check_free(table, &view, &key)?;
            None
        }
        Act::Update | Act::Delete => match txn.find_key(&view, table.found_by()?, &key)? {
            None => return Ok(None),
            found => found,
        },
    };
    txn.write_row(table, &view, &key, found, new).map(Some)
}

/// As a session does it: again while something comes in between.
fn act_until_done(db: &Database, table: &PointTable, what: Act, row: &Row) -> Result<Option<CommitTs>> {
    loop {
        match act(begin_applied(db), table, what, row) {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            done => return done,
        }
    }
}

/// Random writes, with freezes, flushes, merges, checkpoints and restarts between them, in tables of every order.
#[test]
fn rows_are_those_of_a_map() {
    for (number, definition) in keyed_definitions("t", 7).into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Database::open(dir.path(), options()).unwrap();
        let t = create_as(&db, definition);
        let mut table = keyed(&db, t);
        let mut rng = StdRng::seed_from_u64(number as u64);
        let mut expected: BTreeMap<i64, Row> = BTreeMap::new();
        for step in 0..600 {
            let row = row(rng.random_range(0..40), step);
            let what = [Act::Insert, Act::Update, Act::Delete][rng.random_range(0..3)];
            let answer = act_until_done(&db, &table, what, &row);
            match (what, expected.contains_key(&row.0)) {
                (Act::Insert, true) => assert_eq!(state(answer), "23505"),
                (Act::Insert, false) => {
                    assert!(answer.unwrap().is_some());
                    expected.insert(row.0, row);
                }
                (_, false) => assert_eq!(answer.unwrap(), None, "{what:?} of no row"),
                (Act::Update, true) => {
                    assert!(answer.unwrap().is_some());
                    expected.insert(row.0, row);
                }
                (Act::Delete, true) => {
                    assert!(answer.unwrap().is_some());
                    expected.remove(&row.0);
                }
            }
            match rng.random_range(0..60) {
                0 => db.freeze(t).unwrap(),
                1 => db.flush(t).unwrap(),
                2 => db.merge(t).unwrap(),
                3 => db.checkpoint().unwrap(),
                4 => {
                    db.close().unwrap();
                    drop(db);
                    db = Database::open(dir.path(), options()).unwrap();
                    table = keyed(&db, t);
                }
                _ => {}
            }
            if step % 20 == 0 {
                assert_eq!(contents(&db, t), expected.values().cloned().collect::<Vec<_>>(), "step {step}");
            }
        }
        assert!(db.verify().is_empty());
    }
}

/// Updates the rows with these `ids` as one commit, to `v`, or deletes them; how many there were.
fn act_on_rows(txn: Transaction, table: &PointTable, ids: &[i64], v: Option<i32>) -> Result<usize> {
    let view = txn.view(table.schema().id)?;
    let (mut found, mut new) = (Vec::new(), table.new_rows());
    for id in ids {
        let mut key = Vec::new();
        table.encode(&[Value::Int(*id)], &mut key)?;
        let Some(row_ref) = txn.find_key(&view, table.found_by()?, &key)? else { continue };
        found.push(row_ref);
        if let Some(v) = v {
            new.push_values(&values(&row(*id, v)))?;
        }
    }
    let rows = found.len();
    if rows > 0 {
        txn.update_rows(table, &found, new)?;
    }
    Ok(rows)
}

/// Inserts rows with these `ids`, which may repeat, as one commit.
fn insert_rows(txn: Transaction, table: &PointTable, ids: &[i64], v: i32) -> Result<CommitTs> {
    let view = txn.view(table.schema().id)?;
    let mut new = table.new_rows();
    for id in ids {
        new.push_values(&values(&row(*id, v)))?;
    }
    txn.insert_rows(table, &view, new)
}

#[test]
fn several_rows_are_inserted_where_all_keys_are_free() {
    for (number, definition) in keyed_definitions("t", 7).into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Database::open(dir.path(), options()).unwrap();
        let t = create_as(&db, definition);
        let mut table = keyed(&db, t);
        let mut rng = StdRng::seed_from_u64(number as u64);
        let mut expected: BTreeMap<i64, Row> = BTreeMap::new();
        for step in 0..300 {
            // Now and then more than go without a write set.
            let count = if step % 10 == 0 { 20 } else { rng.random_range(1..5) };
            let ids: Vec<i64> = (0..count).map(|_| rng.random_range(0..400)).collect();
            let mut distinct = ids.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let is_free = distinct.len() == ids.len() && !ids.iter().any(|id| expected.contains_key(id));
            let answer = insert_rows(begin_applied(&db), &table, &ids, step);
            assert_eq!(state(answer), if is_free { "ok" } else { "23505" }, "step {step}: {ids:?}");
            if is_free {
                expected.extend(ids.iter().map(|id| (*id, row(*id, step))));
            }
            let gone: Vec<i64> = expected.keys().copied().filter(|_| rng.random_range(0..20) == 0).collect();
            act_on_rows(begin_applied(&db), &table, &gone, None).unwrap();
            expected.retain(|id, _| !gone.contains(id));
            match rng.random_range(0..40) {
                0 => db.flush(t).unwrap(),
                1 => db.merge(t).unwrap(),
                2 => {
                    db.close().unwrap();
                    drop(db);
                    db = Database::open(dir.path(), options()).unwrap();
                    table = keyed(&db, t);
                }
                _ => {}
            }
            assert_eq!(contents(&db, t), expected.values().cloned().collect::<Vec<_>>(), "step {step}");
        }
        assert!(db.verify().is_empty());
    }
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    let (first, second, third) = (begin(&db), begin(&db), begin(&db));
    assert_eq!(state(insert_rows(first, &table, &[1, 2], 0)), "ok");
    assert_eq!(state(insert_rows(second, &table, &[3, 2], 0)), "40001", "a key that was taken since");
    assert_eq!(state(insert_rows(third, &table, &[4, 3], 0)), "ok");
    assert_eq!(contents(&db, t).len(), 4);
}

/// Random updates and deletes of several rows, with the same things between them.
#[test]
fn several_rows_are_those_of_a_map() {
    // In the last one `v` is part of a key, which must stay.
    let all = keyed_definitions("t", 7);
    let keeping = all.into_iter().filter(|definition| !definition.primary_key.contains(&"v".to_owned()));
    for (number, definition) in keeping.enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Database::open(dir.path(), options()).unwrap();
        let t = create_as(&db, definition);
        let mut table = keyed(&db, t);
        let mut rng = StdRng::seed_from_u64(number as u64);
        let mut expected: BTreeMap<i64, Row> = BTreeMap::new();
        for step in 0..400 {
            let mut ids: Vec<i64> = (0..rng.random_range(1..9)).map(|_| rng.random_range(0..40)).collect();
            ids.sort_unstable();
            ids.dedup();
            let there: Vec<i64> = ids.iter().copied().filter(|id| expected.contains_key(id)).collect();
            let v = (rng.random_range(0..3) > 0).then_some(step);
            assert_eq!(act_on_rows(begin_applied(&db), &table, &ids, v).unwrap(), there.len(), "step {step}");
            for id in there {
                match v {
                    Some(v) => expected.insert(id, row(id, v)),
                    None => expected.remove(&id),
                };
            }
            let new: Vec<i64> = (0..40).filter(|id| !expected.contains_key(id)).take(6).collect();
            insert_and_commit(&db, t, new.iter().copied());
            expected.extend(new.iter().map(|id| (*id, rows([*id]).remove(0))));
            match rng.random_range(0..40) {
                0 => db.freeze(t).unwrap(),
                1 => db.flush(t).unwrap(),
                2 => db.merge(t).unwrap(),
                3 => db.checkpoint().unwrap(),
                4 => {
                    db.close().unwrap();
                    drop(db);
                    db = Database::open(dir.path(), options()).unwrap();
                    table = keyed(&db, t);
                }
                _ => {}
            }
            assert_eq!(contents(&db, t), expected.values().cloned().collect::<Vec<_>>(), "step {step}");
        }
        assert!(db.verify().is_empty());
    }
}

#[test]
fn more_rows_than_go_without_a_write_set_are_written_all_the_same() {
    let db = memory();
    let t = create(&db, "t", true, 100);
    let table = keyed(&db, t);
    insert_and_commit(&db, t, 0..3_000);
    let ids: Vec<i64> = (500..2_500).collect();
    assert_eq!(act_on_rows(begin_applied(&db), &table, &ids, Some(7)).unwrap(), 2_000);
    assert_eq!(contents(&db, t).iter().filter(|row| row.1 == 7 && ids.contains(&row.0)).count(), 2_000);
    assert_eq!(act_on_rows(begin_applied(&db), &table, &ids, None).unwrap(), 2_000);
    assert_eq!(contents(&db, t).len(), 1_000);
    assert_eq!(act_on_rows(begin_applied(&db), &table, &ids, None).unwrap(), 0);
}

#[test]
fn whoever_commits_several_rows_first_wins() {
    for v in [Some(7), None] {
        for other in [&[3][..], &[1, 9], &[2, 3, 4]] {
            let db = memory();
            let t = create(&db, "t", true, 7);
            let table = keyed(&db, t);
            insert_and_commit(&db, t, 0..12);
            let slow = begin(&db);
            assert_eq!(act_on_rows(begin(&db), &table, other, Some(1)).unwrap(), other.len());
            let (before, conflicts) = (contents(&db, t), !other.contains(&1));
            let answer = act_on_rows(slow, &table, &[3, 4, 5], v);
            assert_eq!(state(answer), if conflicts { "40001" } else { "ok" }, "{other:?}");
            if conflicts {
                assert_eq!(contents(&db, t), before, "nothing of it was written");
            }
        }
    }
    // A merge that has moved the rows: the statement is run again.
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    insert_and_commit(&db, t, 0..12);
    let slow = begin(&db);
    db.flush(t).unwrap();
    assert_eq!(state(act_on_rows(slow, &table, &[3, 4, 5], Some(9))), "40001");
    assert_eq!(act_on_rows(begin_applied(&db), &table, &[3, 4, 5], Some(9)).unwrap(), 3);
}

#[test]
fn whoever_commits_first_wins() {
    for (what, other, first) in [
        (Act::Update, Act::Delete, "ok"),
        (Act::Update, Act::Update, "ok"),
        (Act::Delete, Act::Update, "ok"),
        (Act::Delete, Act::Delete, "ok"),
    ] {
        let db = memory();
        let t = create(&db, "t", true, 7);
        let table = keyed(&db, t);
        insert_and_commit(&db, t, 0..10);
        let slow = begin(&db);
        assert_eq!(state(act(begin(&db), &table, other, &row(3, 1))), first);
        assert_eq!(state(act(slow, &table, what, &row(3, 2))), "40001", "{what:?} after {other:?}");
    }
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    let slow = begin(&db);
    assert_eq!(state(act(begin(&db), &table, Act::Insert, &row(3, 1))), "ok");
    assert_eq!(state(act(slow, &table, Act::Insert, &row(3, 2))), "40001", "a key that was taken since");
    // Another row is in nobody's way.
    let slow = begin(&db);
    assert_eq!(state(act(begin(&db), &table, Act::Insert, &row(4, 1))), "ok");
    assert_eq!(state(act(slow, &table, Act::Update, &row(3, 2))), "ok");
    // A merge is: the rows have moved, and the statement is run again.
    let slow = begin(&db);
    db.flush(t).unwrap();
    assert_eq!(state(act(slow, &table, Act::Update, &row(3, 3))), "40001");
    // So is a key that a merge has taken along since.
    let slow = begin(&db);
    assert_eq!(state(act(begin(&db), &table, Act::Insert, &row(5, 1))), "ok");
    db.flush(t).unwrap();
    assert_eq!(state(act(slow, &table, Act::Insert, &row(5, 2))), "40001");
    assert_eq!(contents(&db, t), vec![row(3, 2), row(4, 1), row(5, 1)]);
}

/// A row of megabytes is no matter for the lock: it goes the way of large statements.
#[test]
fn large_rows_are_written_aside() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    for (what, mega) in [(Act::Insert, 3), (Act::Update, 80), (Act::Update, 2)] {
        let large = (1, 1, Some("x".repeat(mega << 20)));
        assert!(act(begin(&db), &table, what, &large).unwrap().is_some());
        assert_eq!(contents(&db, t), vec![large]);
    }
    assert_eq!(state(act(begin(&db), &table, Act::Insert, &row(1, 1))), "23505");
}

#[test]
fn one_row_is_written_behind_and_beside_no_other() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    let mut key = Vec::new();
    table.encode(&[Value::Int(1)], &mut key).unwrap();
    let mut new = table.new_rows();
    new.push_values(&values(&row(1, 1))).unwrap();
    let mut txn = begin(&db);
    insert(&mut txn, t, &rows([5])).unwrap();
    let view = txn.view(t).unwrap();
    assert_eq!(state(txn.write_row(&table, &view, &key, None, new.clone())), "XX000", "behind others");
    new.push_values(&values(&row(2, 1))).unwrap();
    assert_eq!(state(begin(&db).write_row(&table, &view, &key, None, new)), "XX000", "beside another");
    assert_eq!(contents(&db, t), vec![]);
}

/// Many rows in one statement go the way of all large ones.
#[test]
fn rows_of_a_statement_join_whatever_came_before() {
    let db = memory();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    let rows_from = |first: i64, count: i64| {
        let mut rows = table.new_rows();
        (first..first + count).for_each(|id| rows.push_values(&values(&row(id, 1))).unwrap());
        rows
    };
    for (first, parts) in [(0, vec![1, 3]), (100, vec![3_000, 3_000, 20]), (10_000, vec![9_000])] {
        let mut txn = begin(&db);
        let mut writes = txn.statement();
        let mut next = first;
        for part in &parts {
            writes.insert_rows(&table, rows_from(next, *part)).unwrap();
            next += part;
        }
        assert_eq!(writes.inserted(), parts.iter().sum::<i64>() as u64);
        txn.apply(writes).unwrap();
        txn.commit().unwrap();
        let there = contents(&db, t).into_iter().filter(|row| row.0 >= first).collect::<Vec<_>>();
        assert_eq!(there, (first..next).map(|id| row(id, 1)).collect::<Vec<_>>());
    }
    let mut twice = rows_from(50_000, 2);
    twice.push_values(&values(&row(50_001, 2))).unwrap();
    let mut txn = begin(&db);
    let mut writes = txn.statement();
    writes.insert_rows(&table, twice).unwrap();
    assert_eq!(state(txn.apply(writes)), "23505");
}

/// Threads count keys up while merges move the rows about: no count is lost, and an old snapshot stays as it is.
#[test]
fn counts_add_up_beside_merges() {
    let dir = tempfile::tempdir().unwrap();
    // Checkpoints all the time, with rows in deltas.
    let many = OpenOptions::new().delta_rows(50).checkpoint_bytes(4 << 10);
    let db = Database::open(dir.path(), many).unwrap();
    let t = create(&db, "t", true, 7);
    let table = keyed(&db, t);
    insert_and_commit(&db, t, 0..5);
    let zero = |id: i64| act_until_done(&db, &table, Act::Update, &(id, 0, None)).unwrap();
    (0..5).for_each(|id| assert!(zero(id).is_some()));
    let old = begin(&db);
    let before = all(&old, t);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    for round in 0..100_i64 {
                        let id = (round + worker) % 5;
                        loop {
                            let txn = begin_applied(db);
                            let now = select(&txn, t, |r| r.0 == id).unwrap();
                            let (_, (_, v, s)) = now.into_iter().next().unwrap();
                            match act(txn, table, Act::Update, &(id, v + 1, s)) {
                                Err(e) if e.kind() == ErrorKind::Conflict => {}
                                answer => break assert!(answer.unwrap().is_some()),
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                db.merge(t).unwrap();
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    assert_eq!(contents(&db, t).iter().map(|r| r.1).sum::<i32>(), 300);
    assert_eq!(all(&old, t), before);
    drop(old);
    db.close().unwrap();
    drop(db);
    let db = Database::open(dir.path(), options()).unwrap();
    assert_eq!(contents(&db, t).iter().map(|r| r.1).sum::<i32>(), 300);
}
