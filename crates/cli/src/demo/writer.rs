//! The writer: transactions that insert, update and delete orders with their line items, in the spirit of TPC-H's
//! refresh functions.
//!
//! 1. An [`Operation`] is drawn: a new order in a gap of the key range, an update or a delete of one of its own orders
//!    or one of TPC-H's.
//! 2. It runs as BEGIN, its statements, COMMIT; after 40001 it runs again.
//! 3. What COMMIT acknowledged is entered into the [`Ledger`], nothing else.
//!
//! A statement that meets other rows than the ledger knows is a wrong answer, and ends the demo at once.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use mainstem::Connection;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tpchgen::generators::{CustomerGenerator, OrderGenerator, PartGenerator, SupplierGenerator};

use super::latencies::Latencies;
use super::ledger::{Change, Ledger, MadeOrder, Totals};
use super::{Cancel, Outcome, Trouble, verify};

/// The same orders in every demo.
const SEED: u64 = 20_170_512;
/// Out of 10 transactions, these many insert an order.
const INSERTS_IN_10: u32 = 4;
/// And these many update one; the rest delete one.
const UPDATES_IN_10: u32 = 4;
/// SQLSTATE serialization_failure: run it again.
const CONFLICT: &str = "40001";
/// Orders of TPC-H in a block of 32 keys; the others are gaps.
const KEYS_USED: i64 = 8;
/// Gaps of 8 keys in such a block.
const GAPS: i64 = 3;

/// How much of TPC-H there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    orders: i64,
    customers: i64,
    parts: i64,
    suppliers: i64,
}

impl Size {
    /// At scale factor `sf`.
    pub fn of(sf: f64) -> Self {
        Self {
            orders: OrderGenerator::calculate_row_count(sf, 1, 1),
            customers: CustomerGenerator::calculate_row_count(sf, 1, 1),
            parts: PartGenerator::calculate_row_count(sf, 1, 1),
            suppliers: SupplierGenerator::calculate_row_count(sf, 1, 1),
        }
    }
}

/// What the writer did.
#[derive(Debug)]
pub struct Written {
    /// What it committed.
    pub ledger: Ledger,
    /// From before BEGIN until COMMIT returned, 40001 and running again included.
    pub transactions: Latencies,
    /// From before COMMIT until it returned.
    pub commits: Latencies,
    /// Transactions that had to run again.
    pub retries: u64,
}

/// A line item to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    part: i64,
    supplier: i64,
    quantity: i64,
    dollars: i64,
}

/// A transaction to run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    Insert { key: i64, customer: i64, discount: i64, year: i64, month: i64, day: i64, lines: Vec<Line> },
    UpdateMade(MadeOrder),
    UpdateBase { key: i64, cents: i64 },
    DeleteMade(MadeOrder),
    DeleteBase { key: i64 },
}

/// Writes until `done`, and until an order stands that it has made: there is something to verify, however slow the
/// machine is.
///
/// # Errors
/// A failed statement other than 40001; a write that met other rows than the ledger knows; Ctrl-C.
pub fn write(connection: &Connection, size: Size, done: &AtomicBool, cancel: &Cancel) -> Outcome<Written> {
    let mut written = Written {
        ledger: Ledger::default(),
        transactions: Latencies::default(),
        commits: Latencies::default(),
        retries: 0,
    };
    let mut draw = Draw { random: StdRng::seed_from_u64(SEED), size, drawn: 0 };
    while !done.load(Ordering::SeqCst) || written.ledger.made().is_empty() {
        cancel.check()?;
        let operation = draw.operation(&written.ledger);
        let start = Instant::now();
        let change = loop {
            match transaction(connection, &operation, &mut written.commits) {
                Ok(change) => break change,
                Err(trouble) => {
                    // The session is the caller's to leave usable; it has failed already if this does too.
                    let _ = connection.execute("ROLLBACK");
                    match trouble {
                        Trouble::Failed(error) if error.sqlstate() == CONFLICT => written.retries += 1,
                        trouble => return Err(trouble),
                    }
                    cancel.check()?;
                }
            }
        };
        written.transactions.push(start.elapsed());
        written.ledger.enter(change);
    }
    Ok(written)
}

/// Runs `operation` as one transaction; returns what it did, once that is committed.
fn transaction(connection: &Connection, operation: &Operation, commits: &mut Latencies) -> Outcome<Change> {
    connection.execute("BEGIN")?;
    let change = apply(connection, operation)?;
    let start = Instant::now();
    connection.execute("COMMIT")?;
    commits.push(start.elapsed());
    Ok(change)
}

fn apply(connection: &Connection, operation: &Operation) -> Outcome<Change> {
    match operation {
        Operation::Insert { key, customer, discount, year, month, day, lines } => {
            let order = made_order(*key, *discount, lines);
            let date = format!("{year}-{month:02}-{day:02}");
            expect(connection, &insert_order(&order, *customer, &date), 1)?;
            expect(connection, &insert_lines(&order, lines, (*year, *month, *day)), order.lines)?;
            Ok(Change::Inserted(order))
        }
        Operation::UpdateMade(order) => {
            // One more of each line, at a hundred dollars.
            let cents = order.lines * 100 * (100 - order.discount);
            let now = MadeOrder { cents: order.cents + cents, quantity: order.quantity + 100 * order.lines, ..*order };
            expect(connection, &update_order(order.key, cents), 1)?;
            expect(connection, &update_lines(order.key, 100), order.lines)?;
            Ok(Change::UpdatedMade(now))
        }
        Operation::UpdateBase { key, cents } => {
            expect(connection, &update_order(*key, *cents), 1)?;
            let lines = connection.execute(&update_lines(*key, 0))?;
            let quantity = 100 * i64::try_from(lines).unwrap_or(i64::MAX / 100);
            Ok(Change::UpdatedBase(Totals { cents: *cents, quantity, ..Totals::default() }))
        }
        Operation::DeleteMade(order) => {
            expect(connection, &format!("DELETE FROM lineitem WHERE l_orderkey = {}", order.key), order.lines)?;
            expect(connection, &format!("DELETE FROM orders WHERE o_orderkey = {}", order.key), 1)?;
            Ok(Change::DeletedMade(order.key))
        }
        Operation::DeleteBase { key } => {
            let gone = verify::totals_of_order(connection, *key)?;
            expect(connection, &format!("DELETE FROM lineitem WHERE l_orderkey = {key}"), gone.lines)?;
            expect(connection, &format!("DELETE FROM orders WHERE o_orderkey = {key}"), gone.orders)?;
            Ok(Change::DeletedBase(*key, gone))
        }
    }
}

/// Runs a write that must meet `rows` rows.
fn expect(connection: &Connection, sql: &str, rows: i64) -> Outcome<()> {
    let met = connection.execute(sql)?;
    if i64::try_from(met) == Ok(rows) {
        return Ok(());
    }
    Err(Trouble::Wrong(format!("the writer met {met} rows where its ledger says {rows}: {sql}")))
}

fn made_order(key: i64, discount: i64, lines: &[Line]) -> MadeOrder {
    MadeOrder {
        key,
        lines: lines.len() as i64,
        discount,
        cents: lines.iter().map(|line| line.dollars * (100 - discount)).sum(),
        quantity: lines.iter().map(|line| 100 * line.quantity).sum(),
    }
}

fn insert_order(order: &MadeOrder, customer: i64, date: &str) -> String {
    format!(
        "INSERT INTO orders VALUES ({}, {customer}, 'O', {}, DATE '{date}', '3-MEDIUM', 'Clerk#000000001', {}, \
         'made by the demo')",
        order.key,
        decimal(order.cents),
        order.lines,
    )
}

fn insert_lines(order: &MadeOrder, lines: &[Line], (year, month, day): (i64, i64, i64)) -> String {
    let mut sql = String::from("INSERT INTO lineitem VALUES ");
    for (number, line) in (1..).zip(lines) {
        // Writing to a String does not fail.
        let _ = write!(
            sql,
            "{}({}, {}, {}, {number}, {}, {}, {}, 0.00, 'N', 'O', DATE '{year}-{:02}-{day:02}', \
             DATE '{year}-{:02}-{day:02}', DATE '{year}-{:02}-{day:02}', 'NONE', 'MAIL', 'made by the demo')",
            if number == 1 { "" } else { ", " },
            order.key,
            line.part,
            line.supplier,
            line.quantity,
            line.dollars,
            decimal(order.discount),
            month + 1,
            month + 1,
            month + 2,
        );
    }
    sql
}

fn update_order(key: i64, cents: i64) -> String {
    let more = decimal(cents);
    format!("UPDATE orders SET o_totalprice = o_totalprice + {more}, o_orderstatus = 'P' WHERE o_orderkey = {key}")
}

fn update_lines(key: i64, dollars: i64) -> String {
    format!(
        "UPDATE lineitem SET l_quantity = l_quantity + 1, l_extendedprice = l_extendedprice + {dollars} \
         WHERE l_orderkey = {key}"
    )
}

/// Hundredths, none below zero, as SQL.
fn decimal(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Draws operations.
struct Draw {
    random: StdRng,
    size: Size,
    /// New orders drawn so far.
    drawn: i64,
}

impl Draw {
    fn operation(&mut self, ledger: &Ledger) -> Operation {
        let which = self.random.random_range(0..10);
        if which < INSERTS_IN_10 {
            return self.insert();
        }
        let update = which < INSERTS_IN_10 + UPDATES_IN_10;
        let made = if self.random.random_bool(0.5) { self.made(ledger) } else { None };
        match (made, self.base(ledger)) {
            (Some(order), _) if update => Operation::UpdateMade(order),
            (Some(order), _) => Operation::DeleteMade(order),
            (None, Some(key)) if update => Operation::UpdateBase { key, cents: self.random.random_range(1..100_000) },
            (None, Some(key)) => Operation::DeleteBase { key },
            (None, None) => self.insert(),
        }
    }

    fn insert(&mut self) -> Operation {
        let key = new_key(self.drawn, self.size.orders);
        self.drawn += 1;
        let count = self.random.random_range(1..=7);
        let lines = (0..count).map(|_| self.line()).collect();
        Operation::Insert {
            key,
            customer: self.random.random_range(1..=self.size.customers),
            discount: self.random.random_range(0..=10),
            year: self.random.random_range(1992..=1997),
            month: self.random.random_range(1..=10),
            day: self.random.random_range(1..=28),
            lines,
        }
    }

    fn line(&mut self) -> Line {
        let part = self.random.random_range(1..=self.size.parts);
        let quantity = self.random.random_range(1..=50);
        let supplier = self.random.random_range(1..=self.size.suppliers);
        Line { part, supplier, quantity, dollars: quantity * (900 + part % 1_000) }
    }

    /// One of the writer's orders.
    fn made(&mut self, ledger: &Ledger) -> Option<MadeOrder> {
        let (first, _) = ledger.made().first_key_value()?;
        let (last, _) = ledger.made().last_key_value()?;
        let from = self.random.random_range(*first..=*last);
        ledger.made().range(from..).next().map(|(_, order)| *order)
    }

    /// The key of one of TPC-H's orders that is still there; none if several guesses hit deleted ones.
    fn base(&mut self, ledger: &Ledger) -> Option<i64> {
        let mut guesses =
            (0..8).map(|_| OrderGenerator::make_order_key(self.random.random_range(1..=self.size.orders)));
        guesses.find(|key| !ledger.deleted().contains(key))
    }
}

/// The key of new order `number`: in the gaps that TPC-H leaves, scattered over the whole range; above it when all are
/// taken.
pub fn new_key(number: i64, orders: i64) -> i64 {
    let (round, number) = (number / orders, number % orders);
    // A step near the golden section, made to share no divisor with `orders`, visits each index once in scattered
    // order.
    let mut step = (orders as f64 * 0.618) as i64;
    while gcd(step, orders) > 1 {
        step += 1;
    }
    let index = (i128::from(number) * i128::from(step) % i128::from(orders)) as i64 + 1;
    if round < GAPS {
        OrderGenerator::make_order_key(index) + KEYS_USED * (round + 1)
    } else {
        OrderGenerator::make_order_key(orders * (round - GAPS + 1) + index)
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
