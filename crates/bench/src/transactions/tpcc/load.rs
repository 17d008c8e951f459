//! Fills the tables as TPC-C says, with the same rows in each engine.

use std::ops::RangeInclusive;

use mainstem::ValueRef;

use super::engine::{Session, numbers};
use super::inputs::{DISTRICTS, Size, WAREHOUSE, last_name};
use super::schema::Query;
use crate::experiment::Failure;
use crate::keys::{Random, Scatter};

/// Numbers whose rows are written by one transaction.
const CHUNK: usize = 1_000;
/// Cents that a district has taken at the beginning.
const DISTRICT_YEAR: i64 = 3_000_000;

/// Loads all tables.
pub(super) fn load(session: &Session<'_>, size: Size) -> Result<(), Failure> {
    let mut random = Random::new(1);
    warehouse(session, &mut random)?;
    chunked(session, 1..=size.items, |item| item_and_stock(session, &mut random, item))?;
    for district in 1..=DISTRICTS {
        chunked(session, district..=district, |_| insert_district(session, &mut random, size, district))?;
        chunked(session, 1..=size.customers, |id| customer(session, &mut random, district, id))?;
        // Each customer has one order, in any order.
        let customers = Scatter::new(size.customers as u64, district as u64);
        chunked(session, 1..=size.customers, |order| {
            let customer = customers.at(order as u64) as i64 + 1;
            insert_order(session, &mut random, size, [district, order, customer])
        })?;
    }
    session.take_digest();
    Ok(())
}

/// Calls `row` for each number, in transactions.
fn chunked(
    session: &Session<'_>,
    all: RangeInclusive<i64>,
    mut row: impl FnMut(i64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut from, last) = all.into_inner();
    while from <= last {
        let to = last.min(from + CHUNK as i64 - 1);
        session.transaction(|| (from..=to).try_for_each(&mut row).map(|()| true))?;
        from = to + 1;
    }
    Ok(())
}

/// Letters, as many as `length` allows.
fn text(random: &mut Random, length: RangeInclusive<i64>) -> String {
    let length = random.within(length);
    (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Name, street, city, state and zip code.
fn address(random: &mut Random) -> [String; 5] {
    let zip = format!("{:04}11111", random.below(10_000));
    [text(random, 6..=10), text(random, 20..=40), text(random, 10..=20), text(random, 2..=2), zip]
}

/// Numbers, and texts behind them.
fn row<'a, const N: usize>(first: [i64; N], texts: &'a [String]) -> Vec<ValueRef<'a>> {
    numbers(first).into_iter().chain(texts.iter().map(|text| ValueRef::Text(text))).collect()
}

fn warehouse(session: &Session<'_>, random: &mut Random) -> Result<(), Failure> {
    let (tax, address) = (random.within(0..=2_000), address(random));
    let values = row([WAREHOUSE, tax, DISTRICT_YEAR * DISTRICTS], &address);
    session.transaction(|| session.write(Query::InsertWarehouse, &values).map(|()| true))
}

fn insert_district(session: &Session<'_>, random: &mut Random, size: Size, district: i64) -> Result<(), Failure> {
    let (tax, address) = (random.within(0..=2_000), address(random));
    let next = size.customers + 1;
    session.write(Query::InsertDistrict, &row([WAREHOUSE, district, tax, DISTRICT_YEAR, next], &address))
}

fn item_and_stock(session: &Session<'_>, random: &mut Random, item: i64) -> Result<(), Failure> {
    let [image, price] = [random.within(1..=10_000), random.within(100..=10_000)];
    let texts = [text(random, 14..=24), text(random, 26..=50)];
    session.write(Query::InsertItem, &row([item, image, price], &texts))?;
    let quantity = random.within(10..=100);
    let texts = [text(random, 24..=24), text(random, 26..=50)];
    session.write(Query::InsertStock, &row([WAREHOUSE, item, quantity, 0, 0, 0], &texts))
}

fn customer(session: &Session<'_>, random: &mut Random, district: i64, id: i64) -> Result<(), Failure> {
    // Every name is there: the first customers have one each.
    let last = last_name(if id <= 1_000 { id - 1 } else { random.within(0..=255) | random.within(0..=999) } % 1_000);
    let first = text(random, 8..=16);
    let [w, d, c] = numbers([WAREHOUSE, district, id]);
    session.write(Query::InsertCustomerName, &[w, d, ValueRef::Text(&last), ValueRef::Text(&first), c])?;
    let is_bad = i64::from(random.below(10) == 0);
    let discount = random.within(0..=5_000);
    let [_, street, city, state, zip] = address(random);
    let (phone, data) = (text(random, 16..=16), text(random, 300..=500));
    let texts = [first, "OE".to_owned(), last, street, city, state, zip, phone, data];
    // Balance, payments of the year, their count, deliveries, since when.
    let money = [-1_000, 1_000, 1, 0, 0];
    let head = row([WAREHOUSE, district, id, is_bad, 5_000_000, discount], &[]);
    session.write(Query::InsertCustomer, &[head, row(money, &texts)].concat())?;
    let history = [id, district, WAREHOUSE, district, WAREHOUSE, 0, 1_000];
    session.write(Query::InsertHistory, &row(history, &[text(random, 12..=24)]))
}

/// An order with its lines; those of the last 30 of 100 orders are not delivered.
fn insert_order(
    session: &Session<'_>,
    random: &mut Random,
    size: Size,
    [district, order, customer]: [i64; 3],
) -> Result<(), Failure> {
    let is_new = order > size.customers - size.customers * 3 / 10;
    let or_null = |number: i64| if is_new { ValueRef::Null } else { ValueRef::BigInt(number) };
    let [w, d, o] = numbers([WAREHOUSE, district, order]);
    let count = random.within(5..=15);
    let [c, zero, lines, one] = numbers([customer, 0, count, 1]);
    session.write(Query::InsertOrder, &[w, d, o, c, zero, or_null(random.within(1..=10)), lines, one])?;
    session.write(Query::InsertCustomerOrder, &[w, d, c, o])?;
    if is_new {
        session.write(Query::InsertNewOrder, &[w, d, o])?;
    }
    for number in 1..=count {
        let amount = if is_new { random.within(1..=999_999) } else { 0 };
        let info = text(random, 24..=24);
        let [number, item, quantity, cents] = numbers([number, random.within(1..=size.items), 5, amount]);
        let values = [w, d, o, number, item, w, or_null(0), quantity, cents, ValueRef::Text(&info)];
        session.write(Query::InsertLine, &values)?;
    }
    Ok(())
}
