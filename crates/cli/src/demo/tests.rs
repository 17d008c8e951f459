use std::collections::BTreeSet;
use std::time::Duration;

use mainstem::{Connection, Database};
use tpchgen::generators::OrderGenerator;

use super::Cancel;
use super::generate::{Table, generate};
use super::latencies::Latencies;
use super::ledger::{Change, Ledger, MadeOrder, Totals};
use super::load::SCHEMA;
use super::place::Place;
use super::report::grouped;
use super::verify;

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

/// One order of TPC-H's with one line item, and one of the writer's with two, as the ledger that is returned has it.
fn small_database() -> (Database, Connection, Totals, Ledger) {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute(SCHEMA).unwrap();
    let order = |key: i64, total: &str, lines: i64| {
        let sql = format!("INSERT INTO orders VALUES ({key}, 1, 'O', {total}, DATE '1995-01-01', '', '', {lines}, '')");
        connection.execute(&sql).unwrap();
    };
    let line = |key: i64, number: i64, price: i64, discount: &str| {
        let sql = format!(
            "INSERT INTO lineitem VALUES ({key}, 1, 1, {number}, 3, {price}, {discount}, 0, '', '', DATE '1995-01-01', \
             DATE '1995-01-01', DATE '1995-01-01', '', '', '')"
        );
        connection.execute(&sql).unwrap();
    };
    order(1, "12.34", 0);
    line(1, 1, 99, "0.05");
    let base = verify::totals(&connection).unwrap();
    assert_eq!(base, Totals { orders: 1, cents: 1_234, lines: 1, quantity: 300 });
    assert_eq!(verify::totals_of_order(&connection, 1).unwrap(), base);
    order(9, "270.00", 2);
    line(9, 1, 100, "0.10");
    line(9, 2, 200, "0.10");
    let mut ledger = Ledger::default();
    ledger.enter(Change::Inserted(MadeOrder { key: 9, lines: 2, discount: 10, cents: 27_000, quantity: 600 }));
    (database, connection, base, ledger)
}

#[test]
fn a_database_that_holds_what_was_committed_is_verified() {
    let (database, connection, base, ledger) = small_database();
    assert_eq!(verify::verify(&connection, base, &ledger, "now").unwrap(), [""; 0]);
    drop(connection);
    database.close().unwrap();
}

#[test]
fn whatever_is_lost_or_changed_is_found() {
    for (damage, found) in [
        ("DELETE FROM lineitem WHERE l_orderkey = 9 AND l_linenumber = 2", "2 line items where the ledger says 3"),
        ("DELETE FROM lineitem WHERE l_orderkey = 9", "1 orders disagree with their line items at one snapshot"),
        ("DELETE FROM orders WHERE o_orderkey = 1", "1 line items have no order"),
        ("DELETE FROM orders WHERE o_orderkey = 9", "order 9, committed, is gone"),
        (
            "UPDATE orders SET o_orderkey = 10 WHERE o_orderkey = 9",
            "order 10 is there, and was never committed or was deleted",
        ),
        (
            "UPDATE orders SET o_totalprice = 12.35 WHERE o_orderkey = 1",
            "28235 cents of o_totalprice where the ledger says 28234",
        ),
        (
            "UPDATE orders SET o_totalprice = 269.99 WHERE o_orderkey = 9",
            "order 9 has (lines, cents) (2, 26999), not (2, 27000)",
        ),
        (
            "UPDATE lineitem SET l_quantity = 4 WHERE l_orderkey = 1",
            "1000 hundredths of l_quantity where the ledger says 900",
        ),
        ("UPDATE lineitem SET l_discount = 0 WHERE l_linenumber = 2", "1 orders disagree"),
    ] {
        let (_database, connection, base, ledger) = small_database();
        assert_eq!(connection.execute(damage).unwrap().min(1), 1, "{damage}");
        let wrong = verify::verify(&connection, base, &ledger, "now").unwrap();
        assert!(wrong.iter().any(|what| what.starts_with("now: ") && what.contains(found)), "{damage}: {wrong:#?}");
    }
}
