//! Databases of older format versions: each is opened, read, written and merged.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use mainstem_storage::database::Database;
use mainstem_storage::disk::{Disk, MemDisk};
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::row::{Value, value_of};
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
    assert_eq!(segment_versions(&disk), [2, 2]);
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
