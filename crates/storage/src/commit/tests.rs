use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::database::Database;
use crate::database::testing::{Table, on, options, pairs, table};
use crate::disk::MemDisk;
use crate::error::ErrorKind;
use crate::scan::ScanRequest;

thread_local! {
    /// Whether this thread's next commit panics once its record is in the log's buffer.
    static PANIC: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn panic_if_wanted() {
    if PANIC.take() {
        panic!("wanted by a test");
    }
}

fn ids(table: &Table) -> Vec<i64> {
    let view = table.view();
    let scan = view.scan(&ScanRequest::all(view.schema().column_ids())).unwrap();
    pairs(&scan).into_iter().map(|(id, _)| id).collect()
}

/// Contract 2: a panic under the commit lock ends writing until the database is reopened; reads go on.
#[test]
fn a_panic_under_the_commit_lock_ends_writing() {
    let disk = Arc::new(MemDisk::new());
    let table = on(Database::open_on(disk.clone(), options()).unwrap(), 100);
    table.insert(0..3);
    let mut open = table.begin();
    table.insert_in(&mut open, [7]);
    PANIC.set(true);
    catch_unwind(AssertUnwindSafe(|| table.insert([3]))).unwrap_err();
    assert!(!PANIC.get());

    let refused = open.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed, "{refused:?}");
    let mut txn = table.begin();
    let refused = table.write_in(&mut txn, &[], &[(8, None)]).unwrap_err();
    assert!(refused.message().contains("a defect") && refused.message().contains("reopened"), "{refused}");
    for refused in
        [table.db.freeze(table.id), table.db.flush(table.id), table.db.merge(table.id), table.db.checkpoint()]
    {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(ids(&table), [0, 1, 2], "what was interrupted is not seen");
    let Table { db, id } = table;
    drop(txn);
    let _ = db.close();
    drop(db);
    let table = Table { db: Database::open_on(disk, options()).unwrap(), id };
    let found = ids(&table);
    assert!(found == [0, 1, 2] || found == [0, 1, 2, 3], "whole or not at all: {found:?}");
    table.insert([9]);
}

#[test]
fn a_dropped_table_leaves_no_forwarding() {
    let table = table(10);
    let forwardings = || table.db.engine().forwardings.len();
    let old = table.begin();
    table.insert(0..50);
    table.flush();
    assert_eq!(forwardings(), 1, "the old transaction may still write");
    let mut txn = table.begin();
    txn.drop_table(table.id).unwrap();
    assert_eq!(forwardings(), 1);
    txn.commit().unwrap();
    assert_eq!((forwardings(), table.db.engine().forwardings.memory_bytes()), (0, 0));
    drop(old);
}
