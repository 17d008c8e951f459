use std::collections::BTreeSet;
use std::time::Duration;

use tpchgen::generators::OrderGenerator;

use super::Cancel;
use super::generate::{Table, generate};
use super::ledger::{Change, Ledger, MadeOrder, Totals};
use super::place::Place;
use super::queries::Latencies;
use super::report::grouped;

#[test]
fn each_change_is_counted_once_and_undone_by_its_opposite() {
    let order = MadeOrder { key: 9, lines: 2, discount: 10, cents: 18_000, quantity: 300 };
    let now = MadeOrder { cents: 36_000, quantity: 500, ..order };
    let mut ledger = Ledger::default();
    ledger.enter(Change::Inserted(order));
    assert_eq!(ledger.totals(), Totals { orders: 1, cents: 18_000, lines: 2, quantity: 300 });
    ledger.enter(Change::UpdatedMade(now));
    assert_eq!(ledger.totals(), Totals { orders: 1, cents: 36_000, lines: 2, quantity: 500 });
    assert_eq!(ledger.made().get(&9), Some(&now));
    ledger.enter(Change::UpdatedBase(Totals { cents: 5, quantity: 400, ..Totals::default() }));
    assert_eq!(ledger.totals(), Totals { orders: 1, cents: 36_005, lines: 2, quantity: 900 });
    ledger.enter(Change::DeletedMade(9));
    assert_eq!(ledger.totals(), Totals { cents: 5, quantity: 400, ..Totals::default() });
    ledger.enter(Change::DeletedBase(1, Totals { orders: 1, cents: 100, lines: 3, quantity: 700 }));
    assert_eq!(ledger.totals(), Totals { orders: -1, cents: -95, lines: -3, quantity: -300 });
    assert!(ledger.made().is_empty());
    assert!(ledger.deleted().contains(&1));
    assert_eq!((ledger.inserts, ledger.updates, ledger.deletes, ledger.commits()), (1, 2, 2, 5));
    assert_eq!(ledger.lines_written, 2 + 2 + 4 + 2 + 3);
}

#[test]
fn quantiles_are_values_that_were_measured() {
    let mut latencies = Latencies::default();
    assert_eq!(latencies.median(), None);
    (1..=100).rev().for_each(|ms| latencies.push(Duration::from_millis(ms)));
    assert_eq!(latencies.median(), Some(Duration::from_millis(50)));
    assert_eq!(latencies.quantile(0.99), Some(Duration::from_millis(99)));
    assert_eq!(latencies.max(), Some(Duration::from_millis(100)));
    assert_eq!(latencies.count(), 100);
}

#[test]
fn numbers_are_grouped_by_thousands() {
    let texts: Vec<String> = [0, 999, 1_000, 12_345, 1_234_567].into_iter().map(grouped).collect();
    assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
}

#[test]
fn files_have_the_rows_of_tpch_and_as_many_as_were_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tables = generate(dir.path(), 0.001, 3, &Cancel::default()).unwrap();
    let rows: Vec<u64> = tables.iter().map(|table| table.rows).collect();
    // With 10 suppliers, parts 31 to 40, 81 to 90 and so on would have one twice.
    assert_eq!(rows, [5, 25, 10, 200, 700, 150, 1_500, 6_005]);
    for table in &tables {
        let texts: Vec<String> = table.files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let lines: usize = texts.iter().map(|text| text.lines().count() - 1).sum();
        assert_eq!(lines as u64, table.rows, "{:?}", table.table);
        assert_eq!(texts.iter().map(String::len).sum::<usize>() as u64, table.bytes, "{:?}", table.table);
    }
    let region = tables.iter().find(|table| table.table == Table::Region).unwrap();
    let text = std::fs::read_to_string(&region.files[0]).unwrap();
    assert!(text.starts_with("r_regionkey,r_name,r_comment\n0,AFRICA,"), "{text}");
}

#[test]
fn generation_ends_when_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = Cancel::default();
    cancel.ask();
    assert!(generate(dir.path(), 0.01, 2, &cancel).is_err());
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.txt"), "mine").unwrap();
    let error = Place::new(Some(dir.path())).unwrap_err();
    assert_eq!(error.sqlstate(), "58P02");
    assert!(error.message().contains("name another directory"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_of_an_earlier_demo_is_cleared_but_not_while_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/demo");
    let place = Place::new(Some(&path)).unwrap();
    std::fs::write(place.csv().join("region.csv"), "r_regionkey").unwrap();
    assert_eq!(Place::new(Some(&path)).unwrap_err().sqlstate(), "55006");
    drop(place);
    let place = Place::new(Some(&path)).unwrap();
    assert_eq!(std::fs::read_dir(place.csv()).unwrap().count(), 0);
    assert_eq!(place.kept(), Some(path.join("database")));
    std::fs::create_dir_all(place.database().join("deep")).unwrap();
    std::fs::write(place.database().join("deep/file"), [0; 10]).unwrap();
    std::fs::write(place.database().join("file"), [0; 5]).unwrap();
    assert_eq!(place.database_bytes().unwrap(), 15);
}

#[test]
fn a_temporary_directory_is_gone_afterwards() {
    let place = Place::new(None).unwrap();
    let csv = place.csv().to_owned();
    assert!(csv.is_dir());
    assert_eq!(place.kept(), None);
    drop(place);
    assert!(!csv.exists());
}

#[test]
fn new_keys_lie_in_gaps_and_are_never_drawn_twice() {
    let orders = 1_500;
    let mut keys: BTreeSet<i64> = (1..=orders).map(OrderGenerator::make_order_key).collect();
    let base = keys.clone();
    for number in 0..5 * orders {
        let key = super::writer::new_key(number, orders);
        assert!(keys.insert(key), "key {key} of order {number} is taken");
        assert!(key > *base.last().unwrap() || number < 3 * orders + 24, "{key}");
    }
    assert_eq!(keys.len() as i64, 6 * orders);
}
