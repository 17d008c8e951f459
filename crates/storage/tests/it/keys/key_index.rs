//! Tables with a key in every order they can have: the same statements give the same answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mainstem_storage::Result;
use mainstem_storage::catalog::TableDefinition;
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::Transaction;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::support::*;

/// More rows than go through the delta.
const MANY: i64 = 6_000;

/// One updating statement over all rows that are `wanted`; 23505 when two rows would have one key.
fn update_where(
    txn: &mut Transaction,
    table: TableId,
    wanted: impl Fn(&Row) -> bool,
    change: impl Fn(&mut Row),
) -> Result<()> {
    let schema = txn.catalog().table(table).unwrap().clone();
    let found = select(txn, table, wanted)?;
    let mut statement = txn.statement();
    statement.delete(&schema, &found.iter().map(|(at, _)| *at).collect::<Vec<_>>())?;
    let mut changed: Vec<Row> = found.into_iter().map(|(_, row)| row).collect();
    changed.iter_mut().for_each(change);
    for chunk in changed.chunks(1_000) {
        statement.insert(&schema, &batch(chunk))?;
    }
    txn.apply(statement)
}

fn delete_where(txn: &mut Transaction, table: TableId, wanted: impl Fn(&Row) -> bool) -> Result<()> {
    let schema = txn.catalog().table(table).unwrap().clone();
    let found = select(txn, table, wanted)?;
    let mut statement = txn.statement();
    statement.delete(&schema, &found.iter().map(|(at, _)| *at).collect::<Vec<_>>())?;
    txn.apply(statement)
}

fn checked(db: &Database) {
    let wrong = db.verify();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn shuffled(ids: impl IntoIterator<Item = i64>, random: &mut StdRng) -> Vec<Row> {
    let mut rows = rows(ids);
    rows.shuffle(random);
    rows
}

/// What the table should hold.
type Model = BTreeMap<i64, Row>;

/// The model after inserting `new`, unless a key is taken.
fn with_rows(model: &Model, new: &[Row]) -> Option<Model> {
    let mut next = model.clone();
    new.iter().all(|row| next.insert(row.0, row.clone()).is_none()).then_some(next)
}

/// The model after moving the keys of the rows that are `wanted`, unless two rows would have one.
fn with_keys_moved(model: &Model, wanted: impl Fn(&Row) -> bool, by: i64) -> Option<Model> {
    let (moved, mut next): (Vec<Row>, Model) = (
        model.values().filter(|row| wanted(row)).cloned().collect(),
        model.iter().filter(|(_, row)| !wanted(row)).map(|(id, row)| (*id, row.clone())).collect(),
    );
    moved.into_iter().all(|row| next.insert(row.0 + by, (row.0 + by, row.1, row.2)).is_none()).then_some(next)
}

/// One statement that may fail with 23505, in `write_set` and in the model.
fn statement(txn: &mut Transaction, table: TableId, model: &mut Model, random: &mut StdRng) {
    let (done, next) = match random.random_range(0..6) {
        0 => {
            let new = rows((0..random.random_range(1..30)).map(|_| random.random_range(0..20_000)));
            (insert(txn, table, &new), with_rows(model, &new))
        }
        1 => {
            let first = random.random_range(0..20_000);
            let mut new = shuffled(first..first + MANY, random);
            if random.random() {
                new.push(new[random.random_range(0..new.len())].clone());
            }
            (insert(txn, table, &new), with_rows(model, &new))
        }
        2 => {
            let modulus = random.random_range(2..9);
            let wanted = |row: &Row| row.0 % modulus == 0;
            let next = model.iter().filter(|(_, row)| !wanted(row)).map(|(id, row)| (*id, row.clone())).collect();
            (delete_where(txn, table, wanted), Some(next))
        }
        3 => {
            // A few, or many: those are written aside. Shifting all keys is legal, shifting some may meet others.
            let (modulus, by) = (random.random_range(1..4), random.random_range(1..4));
            let wanted = move |row: &Row| row.0 % modulus == 0;
            (update_where(txn, table, wanted, |row| row.0 += by), with_keys_moved(model, wanted, by))
        }
        4 => {
            let first = random.random_range(0..20_000);
            let wanted = move |row: &Row| (first..first + 50).contains(&row.0);
            (update_where(txn, table, wanted, |row| row.0 += 1), with_keys_moved(model, wanted, 1))
        }
        _ => {
            // Moves rows in the sort order, and leaves keys as they are.
            let change = |row: &mut Row| row.1 = 99 - row.1;
            let mut next = model.clone();
            next.values_mut().for_each(change);
            (update_where(txn, table, |_| true, change), Some(next))
        }
    };
    assert_eq!(state(done), if next.is_some() { "ok" } else { "23505" });
    *model = next.unwrap_or_else(|| std::mem::take(model));
}

fn equals_the_model(definition: TableDefinition, seed: u64) {
    let random = &mut StdRng::seed_from_u64(seed);
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut db = Database::open_on(disk.clone(), options()).unwrap();
    let table = create_as(&db, definition);
    let mut model = Model::new();
    for _ in 0..12 {
        let mut txn = begin(&db);
        let mut after = model.clone();
        for _ in 0..random.random_range(1..3) {
            statement(&mut txn, table, &mut after, random);
        }
        assert_eq!(all(&txn, table), after.values().cloned().collect::<Vec<_>>(), "own writes, seed {seed}");
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
        assert_eq!(contents(&db, table), model.values().cloned().collect::<Vec<_>>(), "seed {seed}");
    }
    checked(&db);
    db.merge(table).unwrap();
    db.close().unwrap();
    drop(db);
    let db = Database::open_on(disk, options()).unwrap();
    checked(&db);
    assert_eq!(contents(&db, table), model.into_values().collect::<Vec<_>>(), "seed {seed}");
}

#[test]
fn every_order_equals_the_model() {
    for (number, definition) in keyed_definitions("t", 700).into_iter().enumerate() {
        for seed in 0..3 {
            equals_the_model(definition.clone(), 10 * number as u64 + seed);
        }
    }
}

#[test]
fn a_large_load_with_a_key_twice_fails_whole() {
    for definition in keyed_definitions("t", 500) {
        let db = memory();
        let table = create_as(&db, definition);
        let random = &mut StdRng::seed_from_u64(4);
        let mut twice = shuffled(0..MANY, random);
        twice.push(row(77, 1));
        let mut txn = begin(&db);
        let error = insert(&mut txn, table, &twice).unwrap_err();
        assert!(error.message().contains("Key (id)=(77) already exists"), "{error}");
        twice.pop();
        insert(&mut txn, table, &twice).unwrap();
        assert_eq!(state(insert(&mut txn, table, &rows([5]))), "23505", "a small statement after a large one");
        assert_eq!(state(insert(&mut txn, table, &rows(MANY - 1..2 * MANY))), "23505", "two large ones");
        insert(&mut txn, table, &rows(MANY..2 * MANY)).unwrap();
        txn.commit().unwrap();
        assert_eq!(state(insert(&mut begin(&db), table, &rows(-MANY..1))), "23505", "taken in a segment");
        let mut txn = begin(&db);
        insert(&mut txn, table, &rows([-1])).unwrap();
        txn.commit().unwrap();
        assert_eq!(state(insert(&mut begin(&db), table, &rows(-MANY..0))), "23505", "taken in a delta");
        assert_eq!(contents(&db, table), rows(-1..2 * MANY));
        checked(&db);
    }
}

#[test]
fn the_first_committer_of_a_key_wins() {
    for definition in keyed_definitions("t", 500) {
        let large = |first: i64| rows(first..first + MANY);
        let small = |first: i64| rows([first]);
        let shapes = [(large(0), large(MANY - 1)), (large(0), small(3)), (small(3), large(0)), (small(3), small(3))];
        for (mine, theirs) in shapes {
            let db = memory();
            let table = create_as(&db, definition.clone());
            let (mut one, mut other) = (begin(&db), begin(&db));
            insert(&mut one, table, &mine).unwrap();
            insert(&mut other, table, &theirs).unwrap();
            one.commit().unwrap();
            assert_eq!(state(other.commit()), "40001", "{} and {} rows", mine.len(), theirs.len());
            db.merge(table).unwrap();
            assert_eq!(contents(&db, table), mine);
            checked(&db);
        }
    }
}

#[test]
fn writers_and_merges_at_once_keep_keys_unique() {
    for definition in keyed_definitions("t", 900) {
        let db = memory();
        let table = create_as(&db, definition);
        let committed = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (db, committed) = (&db, &committed);
                scope.spawn(move || {
                    let random = &mut StdRng::seed_from_u64(thread);
                    for _ in 0..12 {
                        let first = random.random_range(0..40_000);
                        let len = if random.random() { 4_500 } else { random.random_range(1..40) };
                        let mut txn = begin_applied(db);
                        let inserted = insert(&mut txn, table, &shuffled(first..first + len, random));
                        match inserted.and_then(|()| txn.commit()) {
                            Ok(_) => _ = committed.fetch_add(len, Ordering::Relaxed),
                            Err(e) => assert!(["23505", "40001"].contains(&e.sqlstate()), "{e}"),
                        }
                        if random.random_range(0..4) == 0 {
                            db.flush(table).unwrap();
                        }
                    }
                });
            }
        });
        let ids: Vec<i64> = contents(&db, table).iter().map(|row| row.0).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "a key is there twice");
        assert_eq!(ids.len() as i64, committed.into_inner());
        checked(&db);
    }
}

#[test]
fn files_of_key_indexes_live_and_go_with_their_runs() {
    for definition in keyed_definitions("t", 500) {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let db = Database::open_on(disk.clone(), options()).unwrap();
        let files = || disk.list("data").unwrap().len();
        let table = create_as(&db, definition.clone());
        for round in 0..3 {
            let mut txn = begin(&db);
            insert(&mut txn, table, &rows(round * MANY..(round + 1) * MANY)).unwrap();
            txn.commit().unwrap();
        }
        let mut open = begin(&db);
        insert(&mut open, table, &rows(10 * MANY..11 * MANY)).unwrap();
        let with_open = files();
        open.rollback();
        assert!(files() < with_open, "a load that is rolled back leaves no file");
        db.merge(table).unwrap();
        db.checkpoint().unwrap();
        db.merge(table).unwrap();
        let listed = db.containers().iter().filter(|container| container.run.is_some()).count();
        assert_eq!(files(), listed, "what merges replaced is gone");
        let indexed = db.containers().iter().any(|container| container.kind == "key index");
        let schema = begin(&db).catalog().table(table).unwrap().clone();
        assert_eq!(indexed, schema.indexed_keys().next().is_some());
        db.close().unwrap();
        drop(db);

        disk.create("data/9999999999.seg").unwrap();
        let db = Database::open_on(disk.clone(), options()).unwrap();
        assert_eq!(files(), listed, "orphans go, indexes stay");
        checked(&db);
        let mut txn = begin(&db);
        assert_eq!(state(insert(&mut txn, table, &rows([7]))), "23505");
        txn.drop_table(table).unwrap();
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        db.close().unwrap();
        drop(db);
        drop(Database::open_on(disk.clone(), options()).unwrap());
        assert_eq!(files(), 0);
    }
}
