//! Statements that fail, and what is left of the transaction.

use super::*;
use crate::database::Database;
use crate::database::testing::{self, Table, batch, rows_of, table};
use crate::settings::OpenOptions;

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

#[test]
fn buffered_rows_beyond_their_share_of_memory_fail_the_statement_only() {
    let options = OpenOptions { memory_limit: 200_000, ..testing::options() };
    let t = testing::on(Database::in_memory(options).unwrap(), 1_000);
    let mut txn = t.begin();
    let mut inserted = 0;
    let error = loop {
        let rows: Vec<_> = (inserted..inserted + 100).map(|id| (id, Some(id))).collect();
        match t.write_in(&mut txn, &[], &rows) {
            Ok(()) => inserted += 100,
            Err(e) => break e,
        }
        assert!(inserted < 1_000_000);
    };
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::OUT_OF_MEMORY));
    assert!(inserted > 100);
    let large: Vec<_> = (inserted..inserted + 5_000).map(|id| (id, None)).collect();
    t.write_in(&mut txn, &[], &large).unwrap();
    txn.commit().unwrap();
    assert_eq!(ids(&t, &t.begin()), (0..inserted + 5_000).collect::<Vec<_>>());
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
