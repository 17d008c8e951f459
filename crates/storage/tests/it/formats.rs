//! Databases of older format versions: each is opened, read, written and merged.

use std::sync::Arc;

use mainstem_storage::database::Database;
use mainstem_storage::disk::MemDisk;
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
    // What is written from now on is of this version, beside segments of the old one, which go when they are merged.
    for merge in [false, true] {
        let db = Database::open_on(Arc::new(disk.clone()), options()).unwrap();
        assert_eq!([rows(&db, "t"), rows(&db, "u")], before);
        if merge {
            let tables: Vec<_> = begin(&db).catalog().tables().map(|table| table.id).collect();
            tables.into_iter().for_each(|table| db.merge(table).unwrap());
        }
        db.checkpoint().unwrap();
        assert_eq!([rows(&db, "t"), rows(&db, "u")], before);
        assert!(db.verify().is_empty());
        db.close().unwrap();
        assert_eq!(disk.get("MANIFEST").unwrap()[8], 5);
    }
}
