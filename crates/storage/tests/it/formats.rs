//! Databases of older format versions: each is opened, read, written and merged.

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::point::{PointTable, RangeRequest, rows_between};
use mainstem_storage::row::{Value, compare_values, value_of};
use mainstem_storage::scan::ScanRequest;

use crate::support::{begin, options};

/// Format version 4, with two segments: the manifest names the one of table `t`, a log record the one of table `u`.
const VERSION_4: [(&str, &[u8]); 6] = [
    ("LOCK", include_bytes!("../../../../compat/4/LOCK")),
    ("LOG_END", include_bytes!("../../../../compat/4/LOG_END")),
    ("MANIFEST", include_bytes!("../../../../compat/4/MANIFEST")),
    ("data/0000000001.seg", include_bytes!("../../../../compat/4/data/0000000001.seg")),
    ("data/0000000002.seg", include_bytes!("../../../../compat/4/data/0000000002.seg")),
    ("wal/0000000002.log", include_bytes!("../../../../compat/4/wal/0000000002.log")),
];

/// Format version 5 with segments of version 2: table `a`, whose UNIQUE key has NULLs, and `b`, whose PRIMARY KEY is
/// not its order, each with a key index in the order of hashes.
const VERSION_5: [(&str, &[u8]); 7] = [
    ("LOCK", include_bytes!("../../../../compat/5/LOCK")),
    ("MANIFEST", include_bytes!("../../../../compat/5/MANIFEST")),
    ("data/0000000001.seg", include_bytes!("../../../../compat/5/data/0000000001.seg")),
    ("data/0000000002.seg", include_bytes!("../../../../compat/5/data/0000000002.seg")),
    ("data/0000000003.seg", include_bytes!("../../../../compat/5/data/0000000003.seg")),
    ("data/0000000004.seg", include_bytes!("../../../../compat/5/data/0000000004.seg")),
    ("wal/0000000002.log", include_bytes!("../../../../compat/5/wal/0000000002.log")),
];

/// All rows of table `name`, as text, sorted.
fn rows(db: &Database, name: &str) -> Vec<String> {
    let txn = begin(db);
    let table = txn.catalog().tables().find(|table| table.name == name).unwrap().id;
    let view = txn.view(table).unwrap();
    let schema = view.schema().clone();
    let scan = view.scan(&ScanRequest::all(schema.column_ids())).unwrap();
    let mut all = Vec::new();
    for batch in scan.worker() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter().zip(&schema.columns);
            let values: Vec<Value> =
                columns.map(|(array, column)| value_of(array.as_ref(), column.data_type, row).unwrap()).collect();
            all.push(format!("{values:?}"));
        }
    }
    all.sort();
    all
}

#[test]
fn a_database_of_version_4_is_opened_and_written() {
    let disk = MemDisk::new();
    ["data", "wal"].into_iter().for_each(|folder| disk.create_dir(folder).unwrap());
    for (path, bytes) in VERSION_4 {
        disk.put(path, bytes.to_vec());
    }
    assert_eq!(disk.get("MANIFEST").unwrap()[8], 4);
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let before = [rows(&db, "t"), rows(&db, "u")];
    assert_eq!(before.each_ref().map(Vec::len), [100, 5_000]);
    assert!(before[0].iter().any(|row| row.contains("\"text 7\"") && row.contains("Int(7000)")), "{:?}", before[0]);
    assert!(before[1].iter().any(|row| row.contains("\"z0\"") && row.contains("Null")), "{:?}", before[1][0]);
    assert!(db.verify().is_empty());
    db.close().unwrap();
    drop(db);
    // What is written from now on is of this version, beside segments of the old one, which merges rewrite.
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    db.checkpoint().unwrap();
    assert_eq!([rows(&db, "t"), rows(&db, "u")], before);
    assert_eq!(disk.get("MANIFEST").unwrap()[8], 5);
    assert_eq!(segment_versions(&disk), [1, 1]);
    let after = ["t", "u"].map(|name| {
        db.merge(delete_one(&db, name)).unwrap();
        rows(&db, name)
    });
    assert_eq!(after.each_ref().map(Vec::len), [99, 4_999]);
    assert!(after.iter().zip(&before).all(|(after, before)| after.iter().all(|row| before.contains(row))));
    db.checkpoint().unwrap();
    db.close().unwrap();
    drop(db);
    assert_eq!(segment_versions(&disk), [3, 3]);
    let db = Database::open_on(Arc::new(disk), options()).unwrap();
    assert_eq!([rows(&db, "t"), rows(&db, "u")], after);
    assert!(db.verify().is_empty());
}

/// The format versions of all segments that there are.
fn segment_versions(disk: &MemDisk) -> Vec<u8> {
    let mut paths: Vec<String> = disk.list("data").unwrap().into_iter().map(|name| format!("data/{name}")).collect();
    paths.sort();
    paths.iter().map(|path| disk.get(path).unwrap()[8]).collect()
}

/// Deletes a row of table `name`, so that a merge has work.
fn delete_one(db: &Database, name: &str) -> TableId {
    let mut txn = begin(db);
    let schema = txn.catalog().tables().find(|table| table.name == name).unwrap().clone();
    let view = txn.view(schema.id).unwrap();
    let scan = view.scan(&ScanRequest { row_refs: true, ..ScanRequest::all(Vec::new()) }).unwrap();
    let batch = scan.worker().next().unwrap().unwrap();
    let row = RowRef::from_bits(batch.column(0).as_primitive::<UInt64Type>().value(0));
    let mut statement = txn.statement();
    statement.delete(&schema, &[row]).unwrap();
    txn.apply(statement).unwrap();
    txn.commit().unwrap();
    schema.id
}

/// The rows of table `name` with the first column of its last key below `upto`, in the order of that, found through
/// its key index; `None` where that is by hash.
fn range(db: &Database, name: &str, upto: Value) -> Option<Vec<Value>> {
    let txn = begin(db);
    let schema = txn.catalog().tables().find(|table| table.name == name).unwrap().clone();
    let (id, columns) = schema.keys().last().unwrap();
    let at = schema.position(columns[0]).unwrap();
    let table = PointTable::by(&schema, id).unwrap();
    let view = txn.view(schema.id).unwrap();
    let range = table.range(Vec::new(), Bound::Unbounded, Bound::Excluded(upto)).unwrap();
    let request = RangeRequest { id, range: &range, backwards: false, limit: usize::MAX, steps_max: usize::MAX };
    let value = |row| {
        let mut values = Vec::new();
        view.read_row(row, &[at], &mut values)?;
        Ok(values.pop())
    };
    rows_between(&view, request, value).unwrap()
}

/// Keys are found through indexes in the order of hashes, and their ranges once a merge has written indexes anew.
#[test]
fn key_indexes_of_version_5_find_keys_and_no_ranges() {
    let disk = MemDisk::new();
    ["data", "wal"].into_iter().for_each(|folder| disk.create_dir(folder).unwrap());
    for (path, bytes) in VERSION_5 {
        disk.put(path, bytes.to_vec());
    }
    assert_eq!(segment_versions(&disk), [2; 4]);
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    let before = [rows(&db, "a"), rows(&db, "b")];
    assert_eq!(before.each_ref().map(Vec::len), [400, 500]);
    assert!(db.verify().is_empty(), "{:?}", db.verify());
    let user = |number: i64| Value::Text(format!("user {number:04}").into());
    let find = |db: &Database, name: &str, value: Value| {
        let txn = begin(db);
        let schema = txn.catalog().tables().find(|table| table.name == name).unwrap().clone();
        let id = schema.keys().last().unwrap().0;
        let mut key = Vec::new();
        PointTable::by(&schema, id).unwrap().encode(&[value], &mut key).unwrap();
        txn.find_key(&txn.view(schema.id).unwrap(), id, &key).unwrap().is_some()
    };
    let number = |x: i64| x * 7_919 % 1_009;
    let check = |db: &Database| {
        assert!((1..=400).all(|x| find(db, "a", user(number(x))) == (x % 5 > 0)));
        assert!((1..=500).all(|x| find(db, "b", Value::Int(number(x)))));
        assert!(!find(db, "a", user(5_000)) && !find(db, "b", Value::Int(-1)));
    };
    check(&db);
    assert_eq!((range(&db, "a", user(100)), range(&db, "b", Value::Int(100))), (None, None));
    // What is written beside it has an index in the order of keys, and both are told apart.
    let merged = ["a", "b"].map(|name| delete_one(&db, name));
    db.flush(merged[0]).unwrap();
    db.checkpoint().unwrap();
    merged.into_iter().for_each(|table| db.merge(table).unwrap());
    db.close().unwrap();
    drop(db);
    let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
    assert!(db.verify().is_empty(), "{:?}", db.verify());
    assert_eq!(segment_versions(&disk), [3; 4]);
    let after = [rows(&db, "a"), rows(&db, "b")];
    assert_eq!(after.each_ref().map(Vec::len), [399, 499]);
    let below =
        |name: &str, upto: i64| (1..=400).map(number).filter(|n| *n < upto && find(&db, name, user(*n))).count();
    let users = range(&db, "a", user(100)).unwrap();
    assert_eq!(users.len(), below("a", 100));
    assert!(users.len() > 20 && users.is_sorted_by(|a, b| compare_values(a, b).is_lt()), "{users:?}");
    let numbers = range(&db, "b", Value::Int(100)).unwrap();
    assert!(numbers.len() > 40 && numbers.is_sorted_by(|a, b| compare_values(a, b).is_lt()), "{numbers:?}");
    // A key that is taken is still refused.
    let mut txn = begin(&db);
    let schema = txn.catalog().tables().find(|table| table.name == "b").unwrap().clone();
    let mut again = PointTable::new(&schema).unwrap().new_rows();
    again.push_values(&[numbers[7].clone(), Value::Int(1), Value::Null]).unwrap();
    let mut statement = txn.statement();
    statement.insert_rows(&PointTable::new(&schema).unwrap(), again).unwrap();
    assert_eq!(txn.apply(statement).unwrap_err().sqlstate(), "23505");
}
