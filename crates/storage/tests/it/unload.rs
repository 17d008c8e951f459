//! Load-work-unload: what is unloaded is what a snapshot saw, and comes back as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstem_storage::catalog::{ColumnDefinition, TableChange, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk, RealDisk};
use mainstem_storage::ids::TableId;
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, Identity, RelationName, View};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::unload::{Compression, UnloadSummary, Unloaded};

use super::support::*;

const GO_ON: &(dyn Fn() -> mainstem_storage::Result<()> + Sync) = &|| Ok(());

fn unload(db: &Database, compression: Compression) -> (MemDisk, UnloadSummary) {
    let disk = MemDisk::new();
    let summary = begin(db).unload_all(&disk, compression, |_| false, GO_ON).unwrap();
    (disk, summary)
}

fn reload(db: &Database, disk: &dyn Disk) -> u64 {
    let mut txn = begin(db);
    let rows = txn.reload_all(disk, GO_ON).unwrap();
    txn.commit().unwrap();
    rows
}

fn table(db: &Database, name: &str) -> TableId {
    db.catalog().table_named(name).unwrap().id
}

fn sound(db: &Database) {
    let wrong = db.verify();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Rows in every place they can be in: runs, some with deletes, a frozen delta, the active one.
fn spread(db: &Database, table: TableId) {
    insert_and_commit(db, table, 0..300);
    db.merge(table).unwrap();
    insert_and_commit(db, table, 300..450);
    db.flush(table).unwrap();
    // In one segment of some.
    let mut txn = begin(db);
    delete(&mut txn, table, &[7, 8, 333]).unwrap();
    txn.commit().unwrap();
    insert_and_commit(db, table, 450..500);
    db.freeze(table).unwrap();
    insert_and_commit(db, table, 500..520);
    let mut txn = begin(db);
    delete(&mut txn, table, &[460, 501]).unwrap();
    update(&mut txn, table, &[9, 470, 510], |row| row.1 += 1_000).unwrap();
    txn.commit().unwrap();
}

#[test]
fn rows_of_every_place_and_order_come_back() {
    for compression in [Compression::None, Compression::Lz4] {
        for definition in keyed_definitions("t", 64).into_iter().chain([definition("t", false, 64)]) {
            let db = memory();
            let id = create_as(&db, definition.clone());
            spread(&db, id);
            let before = contents(&db, id);
            let (disk, summary) = unload(&db, compression);
            assert_eq!(summary.rows, before.len() as u64);
            assert!(summary.copied > 0 && summary.written > 0, "{summary:?}");
            // The database is not touched by it.
            assert_eq!(contents(&db, id), before);
            sound(&db);
            let copy = memory();
            assert_eq!(reload(&copy, &disk), before.len() as u64);
            let there = table(&copy, "t");
            assert_eq!(contents(&copy, there), before, "{definition:?}");
            sound(&copy);
            let (old, new) = (db.catalog(), copy.catalog());
            let (old, new) = (old.table(id).unwrap(), new.table(there).unwrap());
            assert_eq!(
                (&old.columns, &old.primary_key, &old.sort_key),
                (&new.columns, &new.primary_key, &new.sort_key)
            );
            assert_eq!((&old.unique_keys, old.layout, old.options), (&new.unique_keys, new.layout, new.options));
            // It is a table like others: keys are enforced, rows change, all of it is merged.
            let mut txn = begin(&copy);
            if !definition.primary_key.is_empty() || !definition.unique_keys.is_empty() {
                let taken = insert(&mut txn, there, &[(10, 70, Some("text number 70".into()))]);
                assert_eq!(state(taken), "23505", "{definition:?}");
            }
            delete(&mut txn, there, &[10, 505]).unwrap();
            insert(&mut txn, there, &rows([10, 9_000])).unwrap();
            txn.commit().unwrap();
            copy.merge(there).unwrap();
            sound(&copy);
            assert_eq!(contents(&copy, there).len(), before.len());
        }
    }
}

#[test]
fn what_was_loaded_survives_a_restart() {
    let db = memory();
    let id = create(&db, "t", true, 64);
    spread(&db, id);
    let (disk, _) = unload(&db, Compression::Lz4);
    let folder = tempfile::tempdir().unwrap();
    let copy = Database::open(folder.path(), options()).unwrap();
    reload(&copy, &disk);
    copy.close().unwrap();
    drop(copy);
    let copy = Database::open(folder.path(), options()).unwrap();
    assert_eq!(contents(&copy, table(&copy, "t")), contents(&db, id));
    sound(&copy);
    // One that is not committed leaves no files.
    let files = |folder: &std::path::Path| std::fs::read_dir(folder.join("data")).unwrap().count();
    let before = files(folder.path());
    let one = MemDisk::new();
    begin(&db).unload_table(id, &one, Compression::None, GO_ON).unwrap();
    let mut txn = begin(&copy);
    txn.reload_table(&RelationName::public("u"), &one, GO_ON).unwrap();
    assert!(files(folder.path()) > before);
    txn.rollback();
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_schema_that_was_altered_comes_back_with_its_views_and_numbers() {
    let db = memory();
    let id = create(&db, "t", true, 64);
    insert_and_commit(&db, id, 0..200);
    db.merge(id).unwrap();
    let mut txn = begin(&db);
    let column = ColumnDefinition::new("late", DataType::Integer, true);
    txn.alter_table(id, &[TableChange::AddColumn { column, missing_value: Value::Int(42) }]).unwrap();
    let v = txn.catalog().table(id).unwrap().column_named("v").unwrap().id;
    txn.alter_table(id, &[TableChange::DropColumn(v)]).unwrap();
    txn.create_namespace("other").unwrap();
    txn.create_view(View {
        name: RelationName::new("other", "w"),
        columns: vec!["x".into()],
        query: "SELECT id FROM public.t".into(),
    })
    .unwrap();
    let counting = ColumnDefinition {
        identity: Some(Identity { always: false, start: 5, increment: 10 }),
        ..ColumnDefinition::new("n", DataType::BigInt, false)
    };
    let counted = txn
        .create_table(TableDefinition {
            name: RelationName::new("other", "c"),
            ..TableDefinition::new("c", vec![counting])
        })
        .unwrap();
    txn.commit().unwrap();
    let n = db.catalog().table(counted).unwrap().columns[0].id;
    let txn = begin(&db);
    assert_eq!(txn.next_identity_values(counted, n, 3).unwrap(), [5, 15, 25]);
    txn.commit().unwrap();
    let (disk, summary) = unload(&db, Compression::None);
    assert_eq!((summary.rows, summary.copied), (200, 0), "a segment without a column is written with it");
    let copy = memory();
    assert_eq!(reload(&copy, &disk), 200);
    let catalog = copy.catalog();
    assert_eq!(catalog.view_called(&RelationName::new("other", "w")).unwrap().query, "SELECT id FROM public.t");
    let schema = catalog.table_named("t").unwrap().clone();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "s", "late"]);
    let late = schema.columns[2].id;
    let view = begin(&copy).view(schema.id).unwrap();
    let statistics = view.statistics_of(&[late]);
    assert_eq!(statistics.rows, 200);
    let counted = catalog.table_called(&RelationName::new("other", "c")).unwrap().id;
    let txn = begin(&copy);
    assert_eq!(txn.next_identity_values(counted, n, 1).unwrap(), [35], "numbers go on");
    // A column that is added later has an id of its own.
    drop(txn);
    let mut txn = begin(&copy);
    let column = ColumnDefinition::new("later", DataType::Integer, true);
    txn.alter_table(schema.id, &[TableChange::AddColumn { column, missing_value: Value::Null }]).unwrap();
    txn.commit().unwrap();
    sound(&copy);
}

/// Writers move amounts between rows, add pairs and take pairs away, merges run: each unload has what its own snapshot
/// saw, to the row.
#[test]
fn an_unload_beside_writers_has_exactly_its_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), OpenOptions::new()).unwrap();
    let mut definition = definition("t", true, 64);
    definition.options.delta_rows = 128;
    let id = create_as(&db, definition);
    insert_and_commit(&db, id, 0..2_000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2_i64 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let mut next = 10_000 + writer * 1_000_000;
                let mut step = writer;
                while !done.load(Ordering::Relaxed) {
                    step += 1;
                    let mut txn = begin_applied(db);
                    let (a, b) = (step * 37 % 2_000, step * 61 % 2_000);
                    let moved = update(&mut txn, id, &[a], |row| row.1 += 5)
                        .and_then(|_| update(&mut txn, id, &[b], |row| row.1 -= 5))
                        .and_then(|_| insert(&mut txn, id, &[row(next, 7), row(next + 1, -7)]))
                        .and_then(|()| {
                            if step % 3 == 0 { delete(&mut txn, id, &[next, next + 1]).map(drop) } else { Ok(()) }
                        });
                    next += 2;
                    // What another has taken is tried no more.
                    if moved.is_ok() {
                        let _ = txn.commit();
                    }
                }
            });
        }
        let done = DoneOnDrop(&done);
        let start: i64 = rows(0..2_000).iter().map(|row| i64::from(row.1)).sum();
        for round in 0..6 {
            let disk = MemDisk::new();
            let txn = begin(&db);
            let expected = all(&txn, id);
            let compression = if round % 2 == 0 { Compression::None } else { Compression::Lz4 };
            let summary = txn.unload_all(&disk, compression, |_| false, GO_ON).unwrap();
            assert_eq!(summary.rows, expected.len() as u64);
            assert_eq!(expected.iter().map(|row| i64::from(row.1)).sum::<i64>(), start, "nothing is half there");
            drop(txn);
            let copy = memory();
            reload(&copy, &disk);
            assert!(contents(&copy, table(&copy, "t")) == expected, "round {round}");
            sound(&copy);
        }
        drop(done);
    });
    sound(&db);
}

struct DoneOnDrop<'a>(&'a AtomicBool);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn one_table_goes_where_it_fits() {
    let db = memory();
    let id = create(&db, "t", true, 64);
    create(&db, "other", true, 64);
    spread(&db, id);
    let disk = MemDisk::new();
    let rows_before = contents(&db, id);
    begin(&db).unload_table(id, &disk, Compression::Lz4, GO_ON).unwrap();
    assert_eq!(Unloaded::open(&disk).unwrap().manifest().tables.len(), 1);
    // Under another name, and beside what is there.
    let mut txn = begin(&db);
    let loaded = txn.reload_table(&RelationName::public("u"), &disk, GO_ON).unwrap();
    assert_eq!(loaded, rows_before.len() as u64);
    txn.commit().unwrap();
    assert_eq!(contents(&db, table(&db, "u")), rows_before);
    let mut txn = begin(&db);
    let taken = txn.reload_table(&RelationName::public("t"), &disk, GO_ON);
    assert_eq!(state(taken), "23505", "its keys are there");
    drop(txn);
    let mut txn = begin(&db);
    txn.reload_table(&RelationName::public("other"), &disk, GO_ON).unwrap();
    // Once more within the transaction: the keys are its own.
    assert_eq!(state(txn.reload_table(&RelationName::public("other"), &disk, GO_ON)), "23505");
    txn.commit().unwrap();
    assert_eq!(contents(&db, table(&db, "other")), rows_before);
    create(&db, "unkeyed", false, 64);
    let mut txn = begin(&db);
    assert_eq!(state(txn.reload_table(&RelationName::public("unkeyed"), &disk, GO_ON)), "42P16");
    assert_eq!(state(txn.reload_all(&disk, GO_ON)), "42P07");
    assert_eq!(state(txn.reload_all(&MemDisk::new(), GO_ON)), "58P01");
    drop(txn);
    let (whole, _) = unload(&db, Compression::None);
    let mut txn = begin(&db);
    assert_eq!(state(txn.reload_table(&RelationName::public("nowhere"), &whole, GO_ON)), "42P01");
    // Only what is committed is unloaded.
    insert(&mut txn, id, &rows([90_000])).unwrap();
    assert_eq!(state(txn.unload_table(id, &MemDisk::new(), Compression::None, GO_ON)), "25001");
    sound(&db);
}

/// Each byte of a folder, one at a time and in some: an error that names the file, never a wrong row.
#[test]
fn damage_is_told_with_the_name_of_the_file() {
    let db = memory();
    let id = create(&db, "t", true, 16);
    insert_and_commit(&db, id, 0..40);
    db.merge(id).unwrap();
    insert_and_commit(&db, id, 40..50);
    for compression in [Compression::None, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(folder.path(), true).unwrap();
        begin(&db).unload_all(&disk, compression, |_| false, GO_ON).unwrap();
        let mut files = vec!["UNLOAD".to_owned()];
        files.extend(disk.list("rows").unwrap().into_iter().map(|name| format!("rows/{name}")));
        assert!(files.len() > 3, "{files:?}");
        let load = |what: &str, name: &str| {
            let copy = memory();
            let mut txn = begin(&copy);
            let error = txn.reload_all(&disk, GO_ON).expect_err(what);
            assert!(["XX001", "0A000", "58P01"].contains(&error.sqlstate()), "{what}: {error}");
            assert!(error.message().contains(name), "{what}: {error}");
        };
        for name in &files {
            let path = folder.path().join(name);
            let sound = std::fs::read(&path).unwrap();
            let step = (sound.len() / 150).max(1);
            for at in (0..sound.len()).step_by(step).chain(sound.len().saturating_sub(20)..sound.len()) {
                let mut damaged = sound.clone();
                damaged[at] ^= 1 << (at % 8);
                std::fs::write(&path, &damaged).unwrap();
                load(&format!("bit of byte {at} of {name}"), name);
            }
            for cut in [0, 1, sound.len() / 2, sound.len() - 1] {
                std::fs::write(&path, &sound[..cut]).unwrap();
                load(&format!("{name} of {cut} bytes"), name);
            }
            std::fs::write(&path, [sound.as_slice(), b"x"].concat()).unwrap();
            load(&format!("{name} with a byte more"), name);
            std::fs::remove_file(&path).unwrap();
            load(&format!("{name} removed"), name);
            std::fs::write(&path, &sound).unwrap();
        }
        // Files of one folder are not taken for one another.
        let [one, two] = [&files[1], &files[2]].map(|name| folder.path().join(name));
        let sound = std::fs::read(&one).unwrap();
        std::fs::copy(&two, &one).unwrap();
        load("another file", &files[1]);
        std::fs::write(&one, &sound).unwrap();
        assert_eq!(reload(&memory(), &disk), 50);
    }
}

/// An unload that is told to stop leaves a folder that is none.
#[test]
fn an_unload_that_ends_early_cannot_be_loaded() {
    let db = memory();
    let id = create(&db, "t", true, 16);
    insert_and_commit(&db, id, 0..200);
    db.merge(id).unwrap();
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    for limit in 0..20 {
        calls.store(0, Ordering::Relaxed);
        let go_on = || match calls.fetch_add(1, Ordering::Relaxed) {
            n if n >= limit => Err(mainstem_storage::Error::closed("told to stop")),
            _ => Ok(()),
        };
        let disk = MemDisk::new();
        let stopped = begin(&db).unload_all(&disk, Compression::None, |_| false, &go_on);
        let mut txn = begin(&db);
        match stopped {
            Ok(_) => return assert!(limit > 5),
            Err(_) => assert_eq!(state(txn.reload_all(&disk, GO_ON)), "58P01"),
        }
    }
    panic!("it never ended by itself");
}
