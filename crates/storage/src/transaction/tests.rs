//! Statements that fail, and what is left of the transaction.

use std::collections::BTreeMap;

use super::*;
use crate::database::Database;
use crate::database::testing::{self, Table, batch, definition, key, rows_of, table};
use crate::ids::{ContainerId, KeyId, RowRef};
use crate::limits;
use crate::memory::MemoryKind;

mod pressure;

fn ids(t: &Table, txn: &Transaction) -> Vec<i64> {
    let mut ids: Vec<i64> = rows_of(&txn.view(t.id).unwrap()).into_iter().map(|row| row.1).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_failed_statement_leaves_its_transaction_as_it_was() {
    let t = table(7);
    t.insert(0..10);
    let mut txn = t.begin();
    t.write_in(&mut txn, &[1], &[(50, None)]).unwrap();
    let before = ids(&t, &txn);
    let many: Vec<_> = (100..6_000).map(|id| (id, None)).chain([(5, None)]).collect();
    for (gone, rows) in [(vec![2, 50], vec![(60, None), (5, None)]), (vec![3], vec![(50, None)]), (vec![4], many)] {
        let error = t.write_in(&mut txn, &gone, &rows).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::UNIQUE);
        assert_eq!(ids(&t, &txn), before);
    }
    txn.commit().unwrap();
    assert_eq!(ids(&t, &t.begin()), before);
}

#[test]
fn large_and_small_statements_know_each_others_keys() {
    let t = table(1_000);
    t.insert([7_000]);
    let mut txn = t.begin();
    let large = |from: i64| (from..from + 5_000).map(|id| (id, None)).collect::<Vec<_>>();
    t.insert_in(&mut txn, [3]);
    assert_eq!(t.write_in(&mut txn, &[], &large(0)).unwrap_err().sqlstate(), sqlstate::UNIQUE, "an own row");
    t.write_in(&mut txn, &[3], &large(0)).unwrap();
    assert_eq!(t.write_in(&mut txn, &[], &large(4_999)).unwrap_err().sqlstate(), sqlstate::UNIQUE, "an own run");
    assert_eq!(t.write_in(&mut txn, &[], &large(6_000)).unwrap_err().sqlstate(), sqlstate::UNIQUE, "the store");
    assert_eq!(t.write_in(&mut txn, &[], &[(4_000, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE, "the other way");
    t.write_in(&mut txn, &[4_000, 7_000], &[]).unwrap();
    t.write_in(&mut txn, &[], &[(4_000, Some(1))]).unwrap();
    t.write_in(&mut txn, &[], &large(5_000)).unwrap();
    txn.commit().unwrap();
    assert_eq!(ids(&t, &t.begin()), (0..10_000).collect::<Vec<_>>());
}

/// A database with room for some thousand rows in write sets.
fn cramped() -> Table {
    let options = testing::options().memory_limit(2 << 20);
    testing::on(Database::in_memory(options).unwrap(), 1_000)
}

fn write_set_bytes(t: &Table) -> (u64, u64) {
    bytes_of(t, MemoryKind::WriteSets)
}

fn bytes_of(t: &Table, kind: MemoryKind) -> (u64, u64) {
    let all = t.db.memory();
    let of = all.iter().find(|m| m.kind == kind).unwrap();
    (of.bytes, of.limit)
}

/// Contract 8: write sets spill. Many more rows than fit, one a statement, some deleted and written again.
#[test]
fn a_transaction_of_many_small_statements_takes_bounded_memory() {
    const ROWS: i64 = 20_000;
    let t = cramped();
    t.insert([-1]);
    let mut txn = t.begin();
    let (mut most, mut rows) = (0, BTreeMap::from([(-1, Some(-10))]));
    for id in 0..ROWS {
        let schema = txn.catalog().table(t.id).unwrap().clone();
        let mut statement = txn.statement();
        statement.insert(&schema, &batch(&[(id, Some(id))])).unwrap();
        txn.apply(statement).unwrap();
        rows.insert(id, Some(id));
        if id % 2_500 == 1_234 {
            let gone = [id - 1_000, id - 1];
            t.write_in(&mut txn, &gone, &[(gone[0], None), (-id, Some(1))]).unwrap();
            rows.insert(gone[0], None);
            rows.remove(&gone[1]);
            rows.insert(-id, Some(1));
            for taken in [gone[0], -id, id, 0] {
                let error = t.write_in(&mut txn, &[], &[(taken, None)]).unwrap_err();
                assert_eq!(error.sqlstate(), sqlstate::UNIQUE, "{taken}, wherever it is by now");
            }
        }
        most = most.max(write_set_bytes(&t).0);
    }
    let (_, limit) = write_set_bytes(&t);
    assert!(most <= limit && most >= limit / 4, "{most} of {limit}");
    let own = txn.view(t.id).unwrap().own().unwrap().clone();
    let spills = own.rows().id();
    assert!(spills >= ContainerId::own_rows(5) && own.rows().len() < ROWS as usize / 2, "{spills}");
    drop(own);
    let expected: Vec<_> = rows.into_iter().collect();
    assert_eq!(pairs(&txn, &t), expected);
    assert_eq!(txn.view(t.id).unwrap().statistics().rows, expected.len() as u64);
    txn.commit().unwrap();
    assert_eq!(pairs(&t.begin(), &t), expected);
    assert_eq!(write_set_bytes(&t).0, 0, "nothing is left");
}

fn pairs(txn: &Transaction, t: &Table) -> Vec<(i64, Option<i64>)> {
    let mut all: Vec<_> = rows_of(&txn.view(t.id).unwrap()).into_iter().map(|row| (row.1, row.2)).collect();
    all.sort_unstable();
    all
}

/// Inserts rows of 1,000 each until the table's buffered rows go aside.
fn insert_until_spilled(t: &Table, txn: &mut Transaction, from: i64) -> i64 {
    let runs = |txn: &Transaction| txn.view(t.id).unwrap().own().map_or(0, |own| own.runs().len());
    let (before, mut next) = (runs(txn), from);
    while runs(txn) == before {
        t.insert_in(txn, next..next + 1_000);
        next += 1_000;
        assert!(next < from + 100_000);
    }
    next
}

#[test]
fn views_from_before_a_spill_stay_and_their_references_are_void() {
    let t = cramped();
    let mut txn = t.begin();
    t.insert_in(&mut txn, 0..100);
    t.write_in(&mut txn, &[7], &[]).unwrap();
    let old = txn.view(t.id).unwrap();
    let (named, rows) = (rows_of(&old)[0].0, rows_of(&old).len());
    insert_until_spilled(&t, &mut txn, 100);
    assert_eq!(rows_of(&old).len(), rows);
    assert_eq!(old.statistics().rows, 99);
    let mut statement = txn.statement();
    statement.delete(old.schema(), &[named]).unwrap();
    assert_eq!(txn.apply(statement).unwrap_err().kind(), ErrorKind::Internal);
    // By a reference of now it goes.
    t.write_in(&mut txn, &[0], &[]).unwrap();
    assert!(rows_of(&txn.view(t.id).unwrap()).iter().all(|row| row.1 != 0 && row.1 != 7));
}

#[test]
fn a_spill_that_fails_undoes_its_statement_only() {
    let t = cramped();
    let mut txn = t.begin();
    t.insert_in(&mut txn, 0..10);
    let before = pairs(&txn, &t);
    // A key twice, which only the sort finds: the check before it is left out.
    let schema = txn.catalog().table(t.id).unwrap().clone();
    let mut statement = txn.statement();
    statement.insert(&schema, &batch(&[(3, None)])).unwrap();
    let writes = statement.finish().unwrap().unwrap();
    assert_eq!(txn.take_over_aside(writes).unwrap_err().sqlstate(), sqlstate::UNIQUE);
    assert_eq!(pairs(&txn, &t), before);
    assert_eq!(
        t.write_in(&mut txn, &[], &[(9, None)]).unwrap_err().sqlstate(),
        sqlstate::UNIQUE,
        "keys are known still"
    );
    t.write_in(&mut txn, &[3], &[(3, Some(1))]).unwrap();
    txn.commit().unwrap();
}

#[test]
fn write_sets_that_cannot_go_aside_fail_cleanly() {
    let t = cramped();
    let mut txn = t.begin();
    let (_, limit) = write_set_bytes(&t);
    let held = txn.engine.memory.charge(MemoryKind::WriteSets, limit as usize);
    let error = t.write_in(&mut txn, &[], &[(1, None)]).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::OUT_OF_MEMORY));
    drop(held);
    t.write_in(&mut txn, &[], &[(1, None)]).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_savepoint_brings_back_rows_deletes_keys_and_tables() {
    let t = cramped();
    t.insert(0..10);
    let mut txn = t.begin();
    t.write_in(&mut txn, &[1], &[(100, Some(1)), (101, Some(2)), (102, None)]).unwrap();
    let outer = txn.savepoint();
    let at_outer = pairs(&txn, &t);
    t.write_in(&mut txn, &[2, 100], &[(1, Some(11)), (103, None)]).unwrap();
    let inner = txn.savepoint();
    let at_inner = pairs(&txn, &t);
    t.write_in(&mut txn, &[103, 101], &[(100, Some(3)), (104, None)]).unwrap();
    let made = txn.create_table(definition("u")).unwrap();
    txn.drop_table(t.id).unwrap();
    assert!(txn.view(t.id).is_err());

    txn.rollback_to(&inner).unwrap();
    assert_eq!(pairs(&txn, &t), at_inner);
    assert!(txn.view(made).is_err() && txn.catalog().table_named("u").is_none());
    // Keys are those of then: 100 and 104 are free again, 101, 103 and 1 taken.
    for taken in [1, 101, 102, 103, 3] {
        assert_eq!(t.write_in(&mut txn, &[], &[(taken, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE, "{taken}");
    }
    t.write_in(&mut txn, &[], &[(100, None), (104, None), (2, None)]).unwrap();
    txn.rollback_to(&inner).unwrap();
    assert_eq!(pairs(&txn, &t), at_inner);

    txn.rollback_to(&outer).unwrap();
    assert_eq!(pairs(&txn, &t), at_outer);
    assert_eq!(txn.rollback_to(&inner).unwrap_err().kind(), ErrorKind::Internal, "it was made later");
    assert_eq!(t.write_in(&mut txn, &[], &[(100, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE);
    t.write_in(&mut txn, &[], &[(103, None), (1, None)]).unwrap();
    let third = txn.savepoint();
    txn.release(outer).unwrap();
    assert_eq!(txn.rollback_to(&third).unwrap_err().kind(), ErrorKind::Internal, "it went with the one around it");
    let expected = pairs(&txn, &t);
    txn.commit().unwrap();
    assert_eq!(pairs(&t.begin(), &t), expected);
}

/// Rows from before the savepoint went aside meanwhile, and come back.
#[test]
fn a_savepoint_outlives_a_spill() {
    let t = cramped();
    let mut txn = t.begin();
    t.insert_in(&mut txn, 0..50);
    t.write_in(&mut txn, &[20], &[]).unwrap();
    let mark = txn.savepoint();
    let expected = pairs(&txn, &t);
    let mut next = 50;
    for _ in 0..2 {
        next = insert_until_spilled(&t, &mut txn, next);
        t.write_in(&mut txn, &[5, next - 1], &[(20, Some(0))]).unwrap();
        txn.rollback_to(&mark).unwrap();
        assert_eq!(pairs(&txn, &t), expected);
        assert_eq!(t.write_in(&mut txn, &[], &[(5, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE);
    }
    t.write_in(&mut txn, &[], &[(20, None), (next, None)]).unwrap();
    txn.commit().unwrap();
    assert_eq!(pairs(&t.begin(), &t).len(), 51);
}

#[test]
fn a_statement_writes_to_one_table_and_deletes_a_row_once() {
    let t = table(7);
    t.insert(0..3);
    let mut txn = t.begin();
    let view = txn.view(t.id).unwrap();
    let row = rows_of(&view)[1].0;
    let mut statement = txn.statement();
    statement.delete(view.schema(), &[row, row]).unwrap();
    statement.delete(view.schema(), &[row]).unwrap();
    assert_eq!((statement.deleted(), statement.has_deleted(row)), (1, true));
    let mut other = TableSchema::clone(view.schema());
    other.id = TableId(99);
    assert_eq!(statement.insert(&Arc::new(other), &batch(&[(9, None)])).unwrap_err().kind(), ErrorKind::Invalid);
    txn.apply(statement).unwrap();
    assert!(txn.has_writes());
    assert_eq!(ids(&t, &txn), [0, 2]);
}

#[test]
fn a_read_only_transaction_refuses_every_write() {
    let t = table(7);
    t.insert(0..3);
    let mode = TransactionMode { read_only: true, ..TransactionMode::default() };
    let mut txn = t.db.begin(mode).unwrap();
    assert_eq!(t.write_in(&mut txn, &[1], &[]).unwrap_err().sqlstate(), sqlstate::READ_ONLY);
    assert_eq!(txn.drop_table(t.id).unwrap_err().sqlstate(), sqlstate::READ_ONLY);
    let ts = txn.read_ts();
    assert_eq!(txn.commit().unwrap(), ts, "nothing written, no timestamp drawn");
}

/// Rows and deletes of a statement that runs, and its sort, are somebody's memory too.
#[test]
fn what_a_running_statement_holds_is_counted() {
    let t = testing::on(Database::in_memory(testing::options().memory_limit(128 << 20)).unwrap(), 1_000);
    t.insert(0..20_000);
    let used = || write_set_bytes(&t).0;
    let mut txn = t.begin();
    let view = txn.view(t.id).unwrap();
    let rows =
        |count: i64| batch(&(0..count).map(|id| ((id * 7_919) % 1_000_003 + 1_000_000, Some(id))).collect::<Vec<_>>());
    let mut statement = txn.statement();
    let found: Vec<_> = testing::rows_of(&view).into_iter().step_by(3).map(|row| row.0).collect();
    statement.delete(view.schema(), &found).unwrap();
    let deletes = used();
    assert!(deletes > found.len() as u64, "{deletes} bytes for {} deletes", found.len());
    statement.insert(view.schema(), &rows(4_000)).unwrap();
    let small = used();
    assert!(small > deletes + 4_000 * 16, "{small}");
    // More than goes through the delta: collected for a sort.
    statement.insert(view.schema(), &rows(100_000).slice(4_000, 90_000)).unwrap();
    assert!(bytes_of(&t, MemoryKind::Loads).0 >= 94_000 * 16);
    assert_eq!(used(), deletes, "the rows are the load's now");
    drop(statement);
    assert_eq!((used(), bytes_of(&t, MemoryKind::Loads).0), (0, 0));
    let mut statement = txn.statement();
    statement.insert(view.schema(), &rows(100_000)).unwrap();
    txn.apply(statement).unwrap();
    assert_eq!((used(), bytes_of(&t, MemoryKind::Loads).0), (0, 0), "all of it is in segments");
    txn.commit().unwrap();
}

/// Where others hold memory, a load sorts what it has instead of collecting more.
#[test]
fn a_load_beside_others_takes_smaller_sorts() {
    let t = testing::on(Database::in_memory(testing::options().memory_limit(32 << 20)).unwrap(), 1_000);
    let limit = bytes_of(&t, MemoryKind::Loads).1;
    let load = |others: u64| {
        let txn = t.begin();
        let held = txn.engine.memory.charge(MemoryKind::Loads, others as usize);
        let schema = txn.catalog().table(t.id).unwrap().clone();
        let mut statement = txn.statement();
        let mut most = 0;
        for part in 0..100_i64 {
            let rows: Vec<_> = (0..2_000).map(|id| ((id * 100 + 100 - part) * 7, Some(id))).collect();
            statement.insert(&schema, &batch(&rows)).unwrap();
            most = most.max(bytes_of(&t, MemoryKind::Loads).0 - others);
        }
        drop(held);
        most
    };
    let (alone, beside) = (load(0), load(limit / 4 * 3));
    assert!(alone >= limit / 3 && beside <= limit / 4, "{alone} bytes alone, {beside} beside others, of {limit}");
}

/// Many loads at once, of more rows than their share has room for: all come to their end, and together never hold more.
#[test]
fn many_loads_share_their_memory() {
    const LOADS: i64 = 12;
    let options = testing::options().memory_limit(4 << 20);
    let t = testing::on(Database::in_memory(options).unwrap(), 1_000);
    let limit = bytes_of(&t, MemoryKind::Loads).1;
    let most = std::thread::scope(|scope| {
        let load = |load: i64| {
            let t = &t;
            scope.spawn(move || {
                let (mut txn, mut most) = (t.begin(), 0);
                let schema = txn.catalog().table(t.id).unwrap().clone();
                let mut statement = txn.statement();
                for part in 0..10 {
                    let rows: Vec<_> = (0..3_000).map(|id| ((id * 10 + 10 - part) * LOADS + load, Some(id))).collect();
                    statement.insert(&schema, &batch(&rows)).unwrap();
                    most = most.max(t.db.engine().memory.used(MemoryKind::Loads));
                }
                txn.apply(statement).unwrap();
                txn.commit().unwrap();
                most
            })
        };
        let loads: Vec<_> = (0..LOADS).map(load).collect();
        loads.into_iter().map(|load| load.join().unwrap()).max().unwrap()
    });
    assert!(most > limit / 8 && most <= limit, "{most} of {limit}");
    assert_eq!(ids(&t, &t.begin()).len() as i64, LOADS * 30_000);
    assert_eq!(bytes_of(&t, MemoryKind::Loads).0, 0);
}

#[test]
fn rows_that_a_savepoint_keeps_are_counted_until_it_goes() {
    let t = cramped();
    let mut txn = t.begin();
    t.write_in(&mut txn, &[], &(0..500).map(|id| (id, Some(id))).collect::<Vec<_>>()).unwrap();
    let mark = txn.savepoint();
    let kept = txn.view(t.id).unwrap().own().unwrap().rows().bytes() as u64;
    assert!(kept > 0, "not worth a run");
    for part in 1..20 {
        t.write_in(&mut txn, &[], &(part * 1_000..(part + 1) * 1_000).map(|id| (id, None)).collect::<Vec<_>>())
            .unwrap();
    }
    let spilled = |txn: &Transaction| {
        let own = txn.view(t.id).unwrap().own().unwrap().clone();
        (own.runs().len(), own.rows().bytes() as u64)
    };
    let (runs, now) = spilled(&txn);
    assert!(runs > 0 && write_set_bytes(&t).0 >= now + kept, "the savepoint still has its rows");
    let before = write_set_bytes(&t).0;
    txn.release(mark).unwrap();
    assert!(write_set_bytes(&t).0 <= before - kept);
}

/// Writes `statements` statements of 200 rows each from `next` on, of which it deletes some and writes some anew, into
/// `write_set` and `model`; never are there more runs than a few. Returns how often rows went aside.
fn write_much(
    t: &Table,
    txn: &mut Transaction,
    model: &mut BTreeMap<i64, Option<i64>>,
    statements: i64,
    step: i64,
) -> usize {
    let mut spills = std::collections::BTreeSet::new();
    for _ in 0..statements {
        let next = model.len() as i64 * step;
        let gone: Vec<i64> = model.keys().copied().filter(|id| id % 97 == next % 97).take(3).collect();
        let mut rows: Vec<_> = (1..=200)
            .map(|id| next + id * step)
            .filter(|id| !model.contains_key(id))
            .map(|id| (id, Some(id)))
            .collect();
        rows.extend(gone.first().map(|id| (*id, Some(-next))));
        t.write_in(txn, &gone, &rows).unwrap();
        model.retain(|id, _| !gone.contains(id));
        model.extend(rows);
        let own = txn.view(t.id).unwrap().own().unwrap().clone();
        assert!(own.runs().len() <= limits::OWN_RUNS_MAX, "{} runs", own.runs().len());
        spills.insert(own.rows().id());
    }
    spills.len()
}

/// Each key is found where it is now, or refused; those that are gone are free.
fn check_keys(t: &Table, txn: &mut Transaction, model: &BTreeMap<i64, Option<i64>>) {
    let view = txn.view(t.id).unwrap();
    let rows: BTreeMap<_, _> = rows_of(&view).into_iter().map(|row| (row.1, row.0)).collect();
    for id in (-50..1_000).chain(model.keys().copied().step_by(89)) {
        let found = txn.find_key(&view, KeyId::PRIMARY, &key(&view, id)).unwrap();
        assert_eq!(found, rows.get(&id).copied(), "{id}");
        assert_eq!(found.is_some(), model.contains_key(&id), "{id}");
    }
    for taken in model.keys().copied().step_by(997) {
        assert_eq!(t.write_in(txn, &[], &[(taken, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE, "{taken}");
    }
}

fn in_order(model: &BTreeMap<i64, Option<i64>>) -> Vec<(i64, Option<i64>)> {
    model.iter().map(|(id, value)| (*id, *value)).collect()
}

/// A transaction that goes aside dozens of times: its runs are merged, so that look-ups ask few, and its savepoints
/// from before bring back what they showed.
#[test]
fn runs_of_a_transaction_stay_few_whatever_it_writes() {
    let options = testing::options().memory_limit(512 << 10);
    let t = testing::on(Database::in_memory(options).unwrap(), 500);
    t.insert([-1]);
    let mut txn = t.begin();
    let mut model = BTreeMap::from([(-1, Some(-10))]);
    let mut spills = write_much(&t, &mut txn, &mut model, 40, 1);
    let (mark, then) = (txn.savepoint(), model.clone());
    let (old, shown) = (txn.view(t.id).unwrap(), in_order(&model));
    let runs = old.own().unwrap().runs();
    assert!(!runs.is_empty());
    let is_of_run = |row: &RowRef| runs.iter().any(|run| run.segment(row.container()).is_some());
    let named: Vec<_> = rows_of(&old).into_iter().map(|row| row.0).filter(is_of_run).collect();

    spills += write_much(&t, &mut txn, &mut model, 80, 3);
    assert!(spills > 24, "{spills}");
    check_keys(&t, &mut txn, &model);
    assert_eq!(pairs(&txn, &t), in_order(&model));
    let mut before: Vec<_> = rows_of(&old).into_iter().map(|row| (row.1, row.2)).collect();
    before.sort_unstable();
    assert_eq!(before, shown, "a view from before stays");
    let own = txn.view(t.id).unwrap().own().unwrap().clone();
    let moved = named.iter().find(|row| own.has_moved(row.container())).expect("a run was merged");
    let mut statement = txn.statement();
    statement.delete(old.schema(), &[*moved]).unwrap();
    assert_eq!(txn.apply(statement).unwrap_err().kind(), ErrorKind::Internal, "void");

    txn.rollback_to(&mark).unwrap();
    assert_eq!(pairs(&txn, &t), shown, "from before the merges");
    model = then;
    check_keys(&t, &mut txn, &model);
    write_much(&t, &mut txn, &mut model, 30, 2);
    check_keys(&t, &mut txn, &model);
    assert_eq!(txn.view(t.id).unwrap().statistics().rows, model.len() as u64);
    drop((old, own, mark));
    txn.commit().unwrap();
    assert_eq!(pairs(&t.begin(), &t), in_order(&model));
    assert_eq!(write_set_bytes(&t).0, 0);
    assert!(t.db.verify().is_empty());
}

/// What a savepoint shows stays in memory: under pressure rows go aside before it is made, so that any number of them
/// fits.
#[test]
fn savepoints_under_pressure_keep_little_in_memory() {
    let t = cramped();
    let (_, limit) = write_set_bytes(&t);
    let mut txn = t.begin();
    let mut marks = Vec::new();
    for next in (0..30_000).step_by(300) {
        t.insert_in(&mut txn, next..next + 300);
        marks.push((txn.savepoint(), next + 300));
        assert!(write_set_bytes(&t).0 <= limit * 3 / 4, "{} of {limit}", write_set_bytes(&t).0);
    }
    let held = write_set_bytes(&t).0;
    assert!(held > limit / 4 && held <= limit * 3 / 4, "{held} of {limit}");
    for (mark, rows) in marks.iter().rev().step_by(31) {
        txn.rollback_to(mark).unwrap();
        assert_eq!(ids(&t, &txn), (0..*rows).collect::<Vec<_>>());
        assert_eq!(t.write_in(&mut txn, &[], &[(rows - 1, None)]).unwrap_err().sqlstate(), sqlstate::UNIQUE);
    }
}
