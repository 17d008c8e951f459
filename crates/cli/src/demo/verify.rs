//! Whether the database holds what it should: what was loaded, plus what the writer committed, to the cent.
//!
//! 1. Counts and sums of all orders and line items equal those before the writer plus its ledger's.
//! 2. Each order the writer made is there as its ledger has it, and no other.
//! 3. In one statement, so at one snapshot: each such order has as many line items as it says, worth what it says.
//! 4. No line item is without its order.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Int32Type, Int64Type};
use mainstem::Connection;

use super::generate::{Table, TableFiles};
use super::ledger::{Ledger, Totals};
use super::{Outcome, Trouble};

const ORDERS: &str = "SELECT count(*), sum(o_totalprice) FROM orders";
const LINES: &str = "SELECT count(*), sum(l_quantity) FROM lineitem";
const MADE: &str = "SELECT o_orderkey, o_shippriority, o_totalprice FROM orders WHERE o_shippriority > 0";
const DISAGREEING: &str = "\
SELECT count(*) FROM (
  SELECT o_orderkey, o_shippriority, o_totalprice, count(l_orderkey) AS lines, sum(l_extendedprice * (1 - l_discount)) AS price
  FROM orders LEFT JOIN lineitem ON l_orderkey = o_orderkey
  WHERE o_shippriority > 0
  GROUP BY o_orderkey, o_shippriority, o_totalprice
) AS made
WHERE lines <> o_shippriority OR price <> o_totalprice";
const ORPHANS: &str =
    "SELECT count(*) FROM lineitem WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_orderkey = l_orderkey)";

/// Differences shown one by one.
const SHOWN_MAX: usize = 5;

/// Counts and sums of all orders and line items now.
///
/// # Errors
/// A failed query.
pub fn totals(connection: &Connection) -> Outcome<Totals> {
    totals_where(connection, ORDERS, LINES)
}

/// Counts and sums of one order and its line items.
///
/// # Errors
/// A failed query.
pub fn totals_of_order(connection: &Connection, key: i64) -> Outcome<Totals> {
    let orders = format!("{ORDERS} WHERE o_orderkey = {key}");
    let lines = format!("{LINES} WHERE l_orderkey = {key}");
    totals_where(connection, &orders, &lines)
}

fn totals_where(connection: &Connection, orders: &str, lines: &str) -> Outcome<Totals> {
    let [orders, cents] = one_row(connection, orders)?;
    let [lines, quantity] = one_row(connection, lines)?;
    Ok(Totals { orders, cents, lines, quantity })
}

/// What differs between the tables and the files they were loaded from.
pub fn loaded(totals: &Totals, tables: &[TableFiles]) -> Vec<String> {
    let rows = |table| tables.iter().find(|files| files.table == table).map_or(0, |files| files.rows);
    let mut wrong = Vec::new();
    for (what, there, file) in
        [("orders", totals.orders, rows(Table::Orders)), ("line items", totals.lines, rows(Table::Lineitem))]
    {
        if u64::try_from(there) != Ok(file) {
            wrong.push(format!("after loading: {there} {what} where the files have {file}"));
        }
    }
    wrong
}

/// What differs between the database and `base` plus `ledger`; `when` says at which moment.
///
/// # Errors
/// A failed query.
pub fn verify(connection: &Connection, base: Totals, ledger: &Ledger, when: &str) -> Outcome<Vec<String>> {
    let mut wrong = differences(base + ledger.totals(), totals(connection)?);
    wrong.extend(made_differences(connection, ledger)?);
    wrong.extend(disagreeing(connection)?);
    let [orphans] = one_row(connection, ORPHANS)?;
    if orphans > 0 {
        wrong.push(format!("{orphans} line items have no order"));
    }
    Ok(wrong.into_iter().map(|what| format!("{when}: {what}")).collect())
}

fn differences(expected: Totals, there: Totals) -> Vec<String> {
    let compared = [
        ("orders", expected.orders, there.orders),
        ("cents of o_totalprice", expected.cents, there.cents),
        ("line items", expected.lines, there.lines),
        ("hundredths of l_quantity", expected.quantity, there.quantity),
    ];
    let differ = compared.into_iter().filter(|(_, expected, there)| expected != there);
    differ.map(|(what, expected, there)| format!("{there} {what} where the ledger says {expected}")).collect()
}

fn made_differences(connection: &Connection, ledger: &Ledger) -> Outcome<Vec<String>> {
    let mut wrong = Vec::new();
    let mut there = BTreeMap::new();
    for [key, lines, cents] in rows(connection, MADE)? {
        if there.insert(key, (lines, cents)).is_some() {
            wrong.push(format!("order {key} is there twice"));
        }
    }
    for (key, order) in ledger.made() {
        let expected = (order.lines, order.cents);
        match there.remove(key) {
            Some(found) if found == expected => {}
            Some(found) => wrong.push(format!("order {key} has (lines, cents) {found:?}, not {expected:?}")),
            None => wrong.push(format!("order {key}, committed, is gone")),
        }
    }
    wrong.extend(there.keys().map(|key| format!("order {key} is there, and was never committed or was deleted")));
    let more = wrong.len().saturating_sub(SHOWN_MAX);
    wrong.truncate(SHOWN_MAX);
    if more > 0 {
        wrong.push(format!("and {more} more orders"));
    }
    Ok(wrong)
}

/// Whether any order of the writer's disagrees with its line items, at one snapshot.
///
/// # Errors
/// A failed query.
pub fn disagreeing(connection: &Connection) -> Outcome<Option<String>> {
    let [orders] = one_row(connection, DISAGREEING)?;
    Ok((orders > 0).then(|| format!("{orders} orders disagree with their line items at one snapshot")))
}

fn one_row<const N: usize>(connection: &Connection, sql: &str) -> Outcome<[i64; N]> {
    let rows = rows(connection, sql)?;
    match rows.as_slice() {
        [row] => Ok(*row),
        _ => Err(Trouble::Wrong(format!("{} rows where one was asked for: {sql}", rows.len()))),
    }
}

/// The rows of a query of `N` numbers; decimals as hundredths, NULL as 0.
fn rows<const N: usize>(connection: &Connection, sql: &str) -> Outcome<Vec<[i64; N]>> {
    let mut all = Vec::new();
    for batch in connection.query(sql)? {
        let batch = batch?;
        let start = all.len();
        all.resize(start + batch.num_rows(), [0; N]);
        let columns = batch.columns();
        if columns.len() != N {
            return Err(Trouble::Wrong(format!("{} columns where {N} were asked for: {sql}", columns.len())));
        }
        for (at, column) in columns.iter().enumerate() {
            for (row, number) in all.iter_mut().skip(start).zip(numbers(column.as_ref(), sql)?) {
                if let Some(slot) = row.get_mut(at) {
                    *slot = number;
                }
            }
        }
    }
    Ok(all)
}

fn numbers(array: &dyn Array, sql: &str) -> Outcome<Vec<i64>> {
    let wrong = |what: &dyn std::fmt::Display| Trouble::Wrong(format!("unexpected {what}: {sql}"));
    match array.data_type() {
        DataType::Int64 => Ok(array.as_primitive::<Int64Type>().iter().map(Option::unwrap_or_default).collect()),
        DataType::Int32 => {
            Ok(array.as_primitive::<Int32Type>().iter().map(|number| i64::from(number.unwrap_or_default())).collect())
        }
        DataType::Decimal128(_, 2) => array
            .as_primitive::<Decimal128Type>()
            .iter()
            .map(|number| i64::try_from(number.unwrap_or_default()).map_err(|e| wrong(&e)))
            .collect(),
        other => Err(wrong(other)),
    }
}
