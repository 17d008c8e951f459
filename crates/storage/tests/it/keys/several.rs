//! Tables with several keys, in every order: the same statements give the same answers, whichever key they meet.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstem_storage::catalog::{TableChange, TableDefinition, UniqueDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::ids::{KeyId, TableId};
use mainstem_storage::limits;
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::schema::Layout;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::support::*;

/// More rows than go through the delta.
const MANY: i64 = 4_500;

/// A table and the columns of its keys, by position, in the order of `TableSchema::keys`.
#[derive(Clone, Debug)]
struct Case {
    definition: TableDefinition,
    keys: Vec<&'static [usize]>,
}

/// (id, v, s) with a primary key or without, UNIQUE keys with and without NULLs, in the order of any of them or of
/// none.
fn cases(segment_rows: u32) -> Vec<Case> {
    const NAMES: [&str; 3] = ["id", "v", "s"];
    let names = |columns: &[usize]| columns.iter().map(|&at| NAMES[at].to_owned()).collect::<Vec<_>>();
    let case = |primary: &'static [usize], unique: &[&'static [usize]], order: Option<&[usize]>| {
        let mut definition = definition("t", false, segment_rows);
        definition.columns[1].nullable = false;
        definition.primary_key = names(primary);
        for columns in unique {
            let name = format!("t_{}_key", names(columns).join("_"));
            definition.unique_keys.push(UniqueDefinition { name, columns: names(columns) });
        }
        definition.sort_key = order.filter(|order| !order.is_empty()).map(&names);
        definition.layout = order.filter(|order| order.is_empty()).map(|_| Layout::Insertion);
        let keys = Some(primary).filter(|key| !key.is_empty()).into_iter().chain(unique.iter().copied());
        Case { definition, keys: keys.collect() }
    };
    vec![
        case(&[0], &[&[2]], None),
        case(&[0], &[&[2]], Some(&[2])),
        case(&[0], &[&[1], &[2]], Some(&[1])),
        case(&[0], &[&[1], &[2, 1]], Some(&[])),
        case(&[], &[&[2], &[0]], Some(&[0])),
        case(&[], &[&[0], &[2, 0], &[1]], None),
    ]
}

fn field(row: &Row, at: usize) -> Value {
    match at {
        0 => Value::Int(row.0),
        1 => Value::Int(row.1.into()),
        _ => row.2.as_deref().map_or(Value::Null, |text| Value::Text(text.into())),
    }
}

fn values(row: &Row) -> Vec<Value> {
    (0..3).map(|at| field(row, at)).collect()
}

fn key_of(row: &Row, columns: &[usize]) -> Option<Vec<Value>> {
    let key: Vec<Value> = columns.iter().map(|&at| field(row, at)).collect();
    (!key.iter().any(Value::is_null)).then_some(key)
}

impl Case {
    /// Whether no two rows have a key in common.
    fn holds(&self, rows: &[Row]) -> bool {
        self.keys.iter().all(|columns| {
            let mut seen = BTreeSet::new();
            rows.iter().filter_map(|row| key_of(row, columns)).all(|key| seen.insert(key))
        })
    }
}

/// A row whose values few others have; one in four without a text.
fn row(n: i64, random: &mut StdRng) -> Row {
    (n, (n * 3) as i32, (random.random_range(0..4) > 0).then(|| format!("text {n}")))
}

/// Takes the rows that are `wanted` away and puts `new` in their place, in one statement.
fn replace(txn: &mut Transaction, table: TableId, wanted: impl Fn(&Row) -> bool, new: &[Row]) -> Result<()> {
    let schema = txn.catalog().table(table).unwrap().clone();
    let found = select(txn, table, wanted)?;
    let mut statement = txn.statement();
    statement.delete(&schema, &found.iter().map(|(at, _)| *at).collect::<Vec<_>>())?;
    for chunk in new.chunks(1_000) {
        statement.insert(&schema, &batch(chunk))?;
    }
    txn.apply(statement)
}

/// One statement that may fail with 23505, in `write_set` and in the model.
fn statement(case: &Case, txn: &mut Transaction, table: TableId, model: &mut Vec<Row>, random: &mut StdRng) {
    let mut wanted: BTreeSet<i64> = BTreeSet::new();
    let mut new: Vec<Row> = Vec::new();
    let next_id = model.last().map_or(0, |row| row.0) + random.random_range(1..9);
    let some = |model: &[Row], random: &mut StdRng, n: usize| -> Vec<Row> {
        let start = random.random_range(0..model.len().max(1));
        model.iter().skip(start).take(n).cloned().collect()
    };
    match random.random_range(0..7) {
        kind @ (0 | 1) => {
            let count = if kind == 0 { random.random_range(1..20) } else { MANY };
            new = (next_id..next_id + count).map(|n| row(n, random)).collect();
            new.shuffle(random);
            // One row in the way of another, by one of its values: of the statement, or of the table.
            let other = model.choose_one(random).filter(|_| random.random()).or_else(|| new.first().cloned());
            if let (Some(other), Some(last), true) = (other, new.last_mut(), random.random()) {
                match random.random_range(0..3) {
                    0 => last.0 = other.0,
                    1 => last.1 = other.1,
                    _ => last.2 = other.2,
                }
            }
        }
        2 => wanted = model.iter().map(|row| row.0).filter(|id| id % random.random_range(3..9) == 0).collect(),
        kind @ (3 | 4) => {
            // Values go round among the rows, some or all: each key is free again at the end.
            let count = if random.random_range(0..4) == 0 { model.len() } else { random.random_range(2..12) };
            let rows = some(model, random, count);
            wanted = rows.iter().map(|row| row.0).collect();
            for (at, row) in rows.iter().enumerate() {
                let other = &rows[(at + 1) % rows.len()];
                new.push(match kind {
                    3 => (row.0, other.1, row.2.clone()),
                    _ => (other.0, row.1, other.2.clone()),
                });
            }
        }
        5 => {
            // `SET id = id + 1, v = v + 3`, for all or for some.
            let count = if random.random() { model.len() } else { 5 };
            let rows = some(model, random, count);
            wanted = rows.iter().map(|row| row.0).collect();
            new = rows.into_iter().map(|row| (row.0 + 1, row.1 + 3, row.2)).collect();
        }
        _ => {
            // Texts that become NULL, or all the same one.
            let text = random.random::<bool>().then(|| format!("shared {}", random.random_range(0..3)));
            let rows = some(model, random, 3);
            wanted = rows.iter().map(|row| row.0).collect();
            new = rows.into_iter().map(|row| (row.0, row.1, text.clone())).collect();
        }
    }
    let mut next: Vec<Row> = model.iter().filter(|row| !wanted.contains(&row.0)).cloned().collect();
    next.extend(new.iter().cloned());
    next.sort();
    let holds = case.holds(&next);
    let done = replace(txn, table, |row| wanted.contains(&row.0), &new);
    assert_eq!(state(done), if holds { "ok" } else { "23505" });
    if holds {
        *model = next;
    }
}

trait Choose {
    fn choose_one(&self, random: &mut StdRng) -> Option<Row>;
}

impl Choose for Vec<Row> {
    fn choose_one(&self, random: &mut StdRng) -> Option<Row> {
        (!self.is_empty()).then(|| self[random.random_range(0..self.len())].clone())
    }
}

/// Each key finds the row that a scan finds, and none that is not there.
fn check_probes(case: &Case, txn: &Transaction, table: TableId, random: &mut StdRng) {
    let view = txn.view(table).unwrap();
    let ids: Vec<KeyId> = view.schema().keys().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), case.keys.len());
    let found = select(txn, table, |row| row.0 % 50 == 0 || row.0 < 40).unwrap();
    for (id, columns) in ids.into_iter().zip(&case.keys) {
        let keyed = PointTable::by(view.schema(), id).unwrap();
        let find = |key: &[Value]| {
            let mut bytes = Vec::new();
            keyed.encode(key, &mut bytes).unwrap();
            txn.find_key(&view, id, &bytes).unwrap()
        };
        for (at, row) in &found {
            match key_of(row, columns) {
                Some(key) => assert_eq!(find(&key), Some(*at), "{row:?} by {columns:?}"),
                None => {
                    let key: Vec<Value> = columns.iter().map(|&at| field(row, at)).collect();
                    assert_eq!(state(keyed.encode(&key, &mut Vec::new())), "23502", "no row has NULL as a key");
                }
            }
        }
        let absent = (-random.random_range(1..99), -5, Some("nobody's text".to_owned()));
        assert_eq!(find(&key_of(&absent, columns).unwrap()), None);
    }
}

fn checked(db: &Database) {
    let wrong = db.verify();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn equals_the_model(case: &Case, seed: u64) {
    let random = &mut StdRng::seed_from_u64(seed);
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut db = Database::open_on(disk.clone(), options()).unwrap();
    let table = create_as(&db, case.definition.clone());
    let mut model: Vec<Row> = Vec::new();
    for _ in 0..14 {
        let mut txn = begin(&db);
        let mut after = model.clone();
        for _ in 0..random.random_range(1..4) {
            statement(case, &mut txn, table, &mut after, random);
        }
        assert_eq!(all(&txn, table), after, "own writes, seed {seed}");
        check_probes(case, &txn, table, random);
        if random.random_range(0..5) > 0 {
            txn.commit().unwrap();
            model = after;
        } else {
            txn.rollback();
        }
        match random.random_range(0..6) {
            0 => db.flush(table).unwrap(),
            1 => db.merge(table).unwrap(),
            2 => db.checkpoint().unwrap(),
            3 => {
                db.close().unwrap();
                drop(db);
                db = Database::open_on(disk.clone(), options()).unwrap();
            }
            _ => {}
        }
        assert_eq!(contents(&db, table), model, "seed {seed}");
        check_probes(case, &begin(&db), table, random);
    }
    checked(&db);
    db.merge(table).unwrap();
    db.close().unwrap();
    drop(db);
    let db = Database::open_on(disk, options()).unwrap();
    checked(&db);
    check_probes(case, &begin(&db), table, random);
    assert_eq!(contents(&db, table), model, "seed {seed}");
}

#[test]
fn every_order_equals_the_model() {
    for (number, case) in cases(700).iter().enumerate() {
        for seed in 0..3 {
            equals_the_model(case, 100 + 10 * number as u64 + seed);
        }
    }
}

/// Inserts rows that differ in all keys but number `key`.
fn rivals(columns: &[usize], n: i64) -> (Vec<Row>, Vec<Row>) {
    let text = |n: i64| Some(format!("text {n}"));
    let mine: Vec<Row> = (0..n).map(|id| (id, id as i32, text(id))).collect();
    let theirs = mine.iter().map(|row| {
        let id = row.0 + 100_000;
        let mut row = (id, id as i32, text(id));
        if columns.contains(&0) {
            row.0 -= 100_000;
        }
        if columns.contains(&1) {
            row.1 -= 100_000;
        }
        if columns.contains(&2) {
            row.2 = text(row.0 % 100_000);
        }
        row
    });
    let theirs = theirs.collect();
    (mine, theirs)
}

#[test]
fn the_first_committer_of_each_key_wins() {
    for case in cases(500) {
        for (number, columns) in case.keys.iter().enumerate() {
            // Keys that lie in this one are in the way first.
            let others: Vec<_> = case.keys.iter().filter(|other| other.iter().all(|c| columns.contains(c))).collect();
            for (my_rows, their_rows) in [(MANY, MANY), (MANY, 1), (1, MANY), (1, 1)] {
                let (mine, theirs) = rivals(columns, my_rows.max(their_rows));
                let mine = &mine[..my_rows as usize];
                let theirs = &theirs[..their_rows as usize];
                let db = memory();
                let table = create_as(&db, case.definition.clone());
                let (mut one, mut other) = (begin(&db), begin(&db));
                insert(&mut one, table, mine).unwrap();
                insert(&mut other, table, theirs).unwrap();
                one.commit().unwrap();
                assert_eq!(state(other.commit()), "40001", "{} and {} rows", mine.len(), theirs.len());
                let error = insert(&mut begin(&db), table, theirs).unwrap_err();
                assert_eq!(error.sqlstate(), "23505");
                if others.len() == 1 {
                    let schema = begin(&db).catalog().table(table).unwrap().clone();
                    let (id, _) = schema.keys().nth(number).unwrap();
                    let named = format!("constraint \"{}\": Key (", schema.key_name(id));
                    assert!(error.message().contains(&named), "{error}");
                }
                db.merge(table).unwrap();
                assert_eq!(state(insert(&mut begin(&db), table, theirs)), "23505");
                assert_eq!(contents(&db, table), mine);
                checked(&db);
            }
        }
    }
}

#[test]
fn rows_without_a_key_never_meet() {
    for case in cases(500) {
        let db = memory();
        let table = create_as(&db, case.definition.clone());
        let without = |ids: std::ops::Range<i64>| ids.map(|id| (id, id as i32, None)).collect::<Vec<Row>>();
        // By themselves in a run, then beside others that have the key.
        for (first, large) in [(0, true), (10_000, false), (20_000, true)] {
            let mut txn = begin(&db);
            insert(&mut txn, table, &without(first..first + if large { MANY } else { 3 })).unwrap();
            insert(&mut txn, table, &without(first + 5_000..first + 5_002)).unwrap();
            txn.commit().unwrap();
            db.flush(table).unwrap();
            db.merge(table).unwrap();
            checked(&db);
        }
        let mut txn = begin(&db);
        insert(&mut txn, table, &[(-1, -1, Some("one".into())), (-2, -2, None)]).unwrap();
        // With a key it has one for others; without it again the key is free.
        replace(&mut txn, table, |row| row.0 == -2, &[(-2, -2, Some("two".into()))]).unwrap();
        let taken = replace(&mut txn, table, |row| row.0 == -2, &[(-2, -2, Some("one".into()))]);
        let single = case.keys.contains(&&[2][..]);
        assert_eq!(state(taken), if single { "23505" } else { "ok" });
        replace(&mut txn, table, |row| row.0 == -1, &[(-1, -1, None)]).unwrap();
        replace(&mut txn, table, |row| row.0 == -2, &[(-2, -2, Some("one".into()))]).unwrap();
        txn.commit().unwrap();
        db.merge(table).unwrap();
        checked(&db);
        assert_eq!(contents(&db, table).len() as i64, 2 * MANY + 3 + 6 + 2);
    }
}

#[test]
fn savepoints_bring_every_key_back() {
    for case in cases(500) {
        let db = memory();
        let table = create_as(&db, case.definition.clone());
        let a: Row = (1, 1, Some("a".into()));
        let b: Row = (2, 2, Some("b".into()));
        let mut txn = begin(&db);
        insert(&mut txn, table, std::slice::from_ref(&a)).unwrap();
        let mark = txn.savepoint();
        replace(&mut txn, table, |row| row.0 == 1, std::slice::from_ref(&b)).unwrap();
        insert(&mut txn, table, std::slice::from_ref(&a)).unwrap();
        txn.rollback_to(&mark).unwrap();
        assert_eq!(state(insert(&mut txn, table, &[(1, 1, Some("a".into()))])), "23505");
        for (number, columns) in case.keys.iter().enumerate() {
            let one_taken: Row = (
                if columns.contains(&0) { 1 } else { 7 + number as i64 },
                if columns.contains(&1) { 1 } else { 7 + number as i32 },
                Some(if columns.contains(&2) { "a".into() } else { format!("c{number}") }),
            );
            assert_eq!(state(insert(&mut txn, table, &[one_taken])), "23505", "{columns:?}");
        }
        insert(&mut txn, table, &[b]).unwrap();
        txn.commit().unwrap();
        checked(&db);
    }
}

/// Single rows found by any key of the table; the others are checked as well.
#[test]
fn one_row_by_any_key() {
    for case in cases(500) {
        for (number, columns) in case.keys.iter().enumerate() {
            let db = memory();
            let table = create_as(&db, case.definition.clone());
            let schema = begin(&db).catalog().table(table).unwrap().clone();
            let keyed = PointTable::by(&schema, schema.keys().nth(number).unwrap().0).unwrap();
            let row = |n: i64| (n, n as i32, Some(format!("text {n}")));
            let write = |txn: Transaction, old: Option<&Row>, new: Option<&Row>| -> Result<()> {
                let view = txn.view(table)?;
                let of = old.or(new).ok_or_else(|| Error::internal("no row"))?;
                let mut key = Vec::new();
                keyed.encode(&key_of(of, columns).unwrap(), &mut key)?;
                let found = if old.is_some() { txn.find_key(&view, keyed.found_by().unwrap(), &key)? } else { None };
                assert_eq!(found.is_some(), old.is_some());
                if old.is_none() {
                    txn.check_free(&keyed, &view, &key)?;
                }
                let mut rows = keyed.new_rows();
                new.map_or(Ok(()), |row| rows.push_values(&values(row)))?;
                txn.write_row(&keyed, &view, &key, found, rows).map(drop)
            };
            for n in 0..4 {
                write(begin(&db), None, Some(&row(n))).unwrap();
                if n == 1 {
                    db.merge(table).unwrap();
                }
            }
            for (other, taken) in case.keys.iter().enumerate() {
                // A new row, and a row changed, with one key of another row.
                let mut new = row(9);
                let from = row(1 + other as i64 % 2);
                taken.iter().for_each(|at| match at {
                    0 => new.0 = from.0,
                    1 => new.1 = from.1,
                    _ => new.2.clone_from(&from.2),
                });
                assert_eq!(state(write(begin(&db), None, Some(&new))), "23505", "insert, {taken:?}");
                // The key it is found by stays.
                columns.iter().for_each(|at| match at {
                    0 => new.0 = 3,
                    1 => new.1 = 3,
                    _ => new.2 = row(3).2,
                });
                if !taken.iter().any(|at| columns.contains(at)) {
                    assert_eq!(state(write(begin(&db), Some(&row(3)), Some(&new))), "23505", "update, {taken:?}");
                    // Taken since the snapshot: 40001.
                    let late = row(50 + other as i64);
                    let mut rival = row(60 + other as i64);
                    taken.iter().for_each(|at| match at {
                        0 => rival.0 = late.0,
                        1 => rival.1 = late.1,
                        _ => rival.2.clone_from(&late.2),
                    });
                    let txn = begin(&db);
                    write(begin(&db), None, Some(&rival)).unwrap();
                    assert_eq!(state(write(txn, None, Some(&late))), "40001", "{taken:?}");
                }
            }
            // In its own place a row keeps all its keys.
            write(begin(&db), Some(&row(3)), Some(&row(3))).unwrap();
            write(begin(&db), Some(&row(2)), None).unwrap();
            write(begin(&db), None, Some(&row(2))).unwrap();
            checked(&db);
        }
    }
}

#[test]
fn files_of_all_key_indexes_live_and_go_with_their_runs() {
    for case in cases(500) {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let db = Database::open_on(disk.clone(), options()).unwrap();
        let files = || disk.list("data").unwrap().len();
        let table = create_as(&db, case.definition.clone());
        let random = &mut StdRng::seed_from_u64(9);
        for round in 0..3 {
            let mut txn = begin(&db);
            let rows: Vec<Row> = (round * MANY..(round + 1) * MANY).map(|n| row(n, random)).collect();
            insert(&mut txn, table, &rows).unwrap();
            txn.commit().unwrap();
        }
        db.merge(table).unwrap();
        db.checkpoint().unwrap();
        db.merge(table).unwrap();
        let in_runs = |kind: &str| db.containers().iter().filter(|c| c.run.is_some() && c.kind == kind).count();
        let (segments, indexes) = (in_runs("segment"), in_runs("key index"));
        assert_eq!(files(), segments + indexes, "what merges replaced is gone");
        let schema = begin(&db).catalog().table(table).unwrap().clone();
        let (indexed, ordered) = (schema.indexed_keys().count(), schema.ordered_key().is_some());
        assert_eq!(indexed + usize::from(ordered), case.keys.len());
        assert!(indexes >= indexed * (segments / 2), "{indexes} of {indexed} indexes for {segments}");
        db.close().unwrap();
        drop(db);
        disk.create("data/9999999999.seg").unwrap();
        let db = Database::open_on(disk.clone(), options()).unwrap();
        assert_eq!(files(), segments + indexes, "orphans go, indexes stay");
        checked(&db);
        let mut txn = begin(&db);
        txn.drop_table(table).unwrap();
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        db.close().unwrap();
        drop(db);
        drop(Database::open_on(disk.clone(), options()).unwrap());
        assert_eq!(files(), 0);
    }
}

/// ALTER with `change`, in a transaction of its own.
fn alter(db: &Database, table: TableId, change: TableChange) -> Result<()> {
    let mut txn = begin(db);
    txn.alter_table(table, &[change])?;
    txn.commit().map(drop)
}

/// Rows in a run, a frozen delta and the active one.
fn spread_out(db: &Database, table: TableId) {
    for (number, first) in [0, 10_000, 20_000].into_iter().enumerate() {
        let rows: Vec<Row> = (first..first + 20).map(|n| (n, n as i32, Some(format!("text {n}")))).collect();
        let mut txn = begin(db);
        insert(&mut txn, table, &rows).unwrap();
        txn.commit().unwrap();
        match number {
            0 => db.merge(table).unwrap(),
            1 => db.flush(table).unwrap(),
            _ => {}
        }
    }
}

#[test]
fn a_key_that_is_dropped_is_in_nobodys_way() {
    for case in cases(500) {
        let schema = case.definition.clone().into_schema(TableId(1)).unwrap();
        for unique in &schema.unique_keys {
            let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
            let db = Database::open_on(disk.clone(), options()).unwrap();
            let table = create_as(&db, case.definition.clone());
            spread_out(&db, table);
            let columns: Vec<usize> = unique.columns.iter().map(|id| id.0 as usize).collect();
            let others: Vec<&[usize]> = case.keys.iter().copied().filter(|key| *key != columns.as_slice()).collect();
            let (_, rivals) = rivals(&columns, 3);
            alter(&db, table, TableChange::DropConstraint(unique.name.clone())).unwrap();
            // Rows that are in the way by another key too still are.
            let nested = others.iter().any(|other| other.iter().all(|column| columns.contains(column)));
            let inserted = |db: &Database| {
                let mut txn = begin(db);
                let done = insert(&mut txn, table, &rivals);
                assert_eq!(state(done), if nested { "23505" } else { "ok" }, "{columns:?} of {:?}", case.keys);
                txn
            };
            inserted(&db).rollback();
            let txn = inserted(&db);
            txn.commit().unwrap();
            for other in others {
                let taken = (7, 7, Some("text 7".to_owned()));
                let new = (
                    if other.contains(&0) { taken.0 } else { 900 },
                    if other.contains(&1) { taken.1 } else { 900 },
                    if other.contains(&2) { taken.2 } else { Some("text 900".to_owned()) },
                );
                assert_eq!(state(insert(&mut begin(&db), table, &[new])), "23505", "{other:?}");
            }
            let before = contents(&db, table);
            checked(&db);
            db.checkpoint().unwrap();
            db.close().unwrap();
            drop(db);
            let db = Database::open_on(disk.clone(), options()).unwrap();
            checked(&db);
            db.flush(table).unwrap();
            db.merge(table).unwrap();
            checked(&db);
            assert_eq!(contents(&db, table), before);
            let indexes = db.containers().iter().filter(|container| container.kind == "key index").count();
            let left = begin(&db).catalog().table(table).unwrap().indexed_keys().count();
            assert_eq!(indexes, left, "one segment each");
            db.checkpoint().unwrap();
            db.merge(table).unwrap();
            assert_eq!(disk.list("data").unwrap().len(), left + 1);
        }
    }
}

#[test]
fn hashes_stay_true_when_a_column_takes_null_or_no_longer() {
    for case in cases(500).into_iter().filter(|case| case.definition.sort_key.as_deref() != Some(&["s".to_owned()])) {
        let db = memory();
        let table = create_as(&db, case.definition.clone());
        spread_out(&db, table);
        let s = begin(&db).catalog().table(table).unwrap().column_named("s").unwrap().id;
        let columns = *case.keys.iter().find(|key| key.contains(&2)).unwrap();
        for nullable in [false, true, false] {
            alter(&db, table, TableChange::SetNullable(s, nullable)).unwrap();
            let random = &mut StdRng::seed_from_u64(1);
            check_probes(&case, &begin(&db), table, random);
            for n in [3, 10_003, 20_003] {
                let taken = (
                    if columns.contains(&0) { n } else { 900 },
                    if columns.contains(&1) { n as i32 } else { 900 },
                    Some(format!("text {n}")),
                );
                assert_eq!(state(insert(&mut begin(&db), table, &[taken])), "23505", "{columns:?}");
            }
            let without = insert(&mut begin(&db), table, &[(901, 901, None), (902, 902, None)]);
            assert_eq!(state(without), if nullable { "ok" } else { "23502" });
            checked(&db);
        }
        db.flush(table).unwrap();
        db.merge(table).unwrap();
        checked(&db);
        check_probes(&case, &begin(&db), table, &mut StdRng::seed_from_u64(1));
    }
}

/// Each row is put into the hash of each key under the commit lock: with more keys there may be fewer.
#[test]
fn what_goes_through_a_delta_is_bounded_by_rows_and_keys_together() {
    for case in cases(500) {
        let most = (limits::COMMIT_ROWS_MAX / case.keys.len()) as i64;
        let row = |n: i64| (n, n as i32, Some(format!("text {n}")));
        for (statements, rows, kind) in [(1, most, "delta"), (1, most + 1, "segment"), (2, most + 1, "segment")] {
            let db = memory();
            let table = create_as(&db, case.definition.clone());
            let mut txn = begin(&db);
            let rows: Vec<Row> = (0..rows).map(row).collect();
            for part in rows.chunks(rows.len().div_ceil(statements)) {
                insert(&mut txn, table, part).unwrap();
            }
            txn.commit().unwrap();
            let of_kind = db.containers().into_iter().filter(|container| container.kind == kind);
            let found: u64 = of_kind.map(|container| container.rows).sum();
            assert_eq!(found, rows.len() as u64, "{kind}, {} keys, {statements} statements", case.keys.len());
        }
    }
}
