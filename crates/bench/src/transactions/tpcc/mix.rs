//! The five transactions, written once for every engine.
//!
//! Left out of TPC-C: think times, terminals, a second warehouse (so no remote stock and payments), and the queue of
//! deliveries, which run at once.

use mainstem::ValueRef;

use super::engine::{Session, numbers};
use super::inputs::{DISTRICTS, Input, Kind, Line, WAREHOUSE, Who};
use super::schema::Query;
use crate::experiment::Failure;

/// Characters that are kept of what is told of a customer with bad credit.
const DATA_MAX: usize = 500;
/// Orders of a district whose items the stock level looks at.
const RECENT_ORDERS: i64 = 20;

/// Runs `input` as one transaction.
pub(super) fn run(session: &Session<'_>, input: &Input) -> Result<(), Failure> {
    session.transaction(|| match input.kind {
        Kind::NewOrder => new_order(session, input),
        Kind::Payment => payment(session, input).map(|()| true),
        Kind::OrderStatus => order_status(session, input).map(|()| true),
        Kind::Delivery => (1..=DISTRICTS).try_for_each(|district| delivery(session, input, district)).map(|()| true),
        Kind::StockLevel => stock_level(session, input).map(|()| true),
    })
}

/// Whether it is to be committed: an item that is not there rolls it back.
fn new_order(session: &Session<'_>, input: &Input) -> Result<bool, Failure> {
    let district = numbers([WAREHOUSE, input.district]);
    let [w_tax] = session.one(Query::WarehouseTax, &numbers([WAREHOUSE]))?;
    let [d_tax, order] = session.one(Query::DistrictNext, &district)?;
    session.write(Query::DistrictAdvance, &district)?;
    let customer = customer(session, input)?;
    let [discount] = session.one(Query::CustomerDiscount, &numbers([WAREHOUSE, input.district, customer]))?;
    let head = [WAREHOUSE, input.district, order];
    let count = input.lines.len() as i64;
    let [w, d, o] = numbers(head);
    let [c, time, lines, local] = numbers([customer, input.time, count, 1]);
    session.write(Query::InsertOrder, &[w, d, o, c, time, ValueRef::Null, lines, local])?;
    session.write(Query::InsertCustomerOrder, &[w, d, c, o])?;
    session.write(Query::InsertNewOrder, &numbers(head))?;
    let mut total = 0;
    for (number, line) in (1..).zip(&input.lines) {
        match order_line(session, head, number, *line)? {
            Some(amount) => total += amount,
            None => return Ok(false),
        }
    }
    // What the terminal would show.
    std::hint::black_box(total * (10_000 - discount) * (10_000 + w_tax + d_tax));
    Ok(true)
}

/// Orders one item; its amount, or none when there is no such item.
fn order_line(session: &Session<'_>, head: [i64; 3], number: i64, line: Line) -> Result<Option<i64>, Failure> {
    let Some([price]) = session.optional(Query::ItemPrice, &numbers([line.item]))? else { return Ok(None) };
    let ([quantity], info) = session.one_with_text(Query::StockOf, &numbers([WAREHOUSE, line.item]))?;
    let refill = if quantity - line.quantity >= 10 { 0 } else { 91 };
    let left = quantity - line.quantity + refill;
    session.write(Query::StockTaken, &numbers([WAREHOUSE, line.item, left, line.quantity]))?;
    let amount = line.quantity * price;
    let ([w, d, o], [number, item]) = (numbers(head), numbers([number, line.item]));
    let [quantity, cents] = numbers([line.quantity, amount]);
    let values = [w, d, o, number, item, w, ValueRef::Null, quantity, cents, ValueRef::Text(&info)];
    session.write(Query::InsertLine, &values)?;
    Ok(Some(amount))
}

fn payment(session: &Session<'_>, input: &Input) -> Result<(), Failure> {
    let Input { district, amount, time, .. } = *input;
    session.write(Query::WarehousePaid, &numbers([WAREHOUSE, amount]))?;
    let ([], warehouse) = session.one_with_text(Query::WarehouseAddress, &numbers([WAREHOUSE]))?;
    session.write(Query::DistrictPaid, &numbers([WAREHOUSE, district, amount]))?;
    let ([], place) = session.one_with_text(Query::DistrictAddress, &numbers([WAREHOUSE, district]))?;
    let id = customer(session, input)?;
    let key = numbers([WAREHOUSE, district, id]);
    let [_, is_bad] = session.one(Query::CustomerAll, &key)?;
    let [w, d, c] = key;
    let [cents, time] = numbers([amount, time]);
    if is_bad == 1 {
        let ([], data) = session.one_with_text(Query::CustomerData, &key)?;
        let mut told = format!("{id} {district} {WAREHOUSE} {district} {WAREHOUSE} {amount} {data}");
        told.truncate(DATA_MAX);
        session.write(Query::CustomerPaidBad, &[w, d, c, cents, ValueRef::Text(&told)])?;
    } else {
        session.write(Query::CustomerPaid, &[w, d, c, cents])?;
    }
    let data = format!("{warehouse}    {place}");
    session.write(Query::InsertHistory, &[c, d, w, d, w, time, cents, ValueRef::Text(&data)])
}

fn order_status(session: &Session<'_>, input: &Input) -> Result<(), Failure> {
    let key = numbers([WAREHOUSE, input.district, customer(session, input)?]);
    session.one::<1>(Query::CustomerBalance, &key)?;
    let Some([order]) = session.optional(Query::LastOrder, &key)? else { return Ok(()) };
    let order = numbers([WAREHOUSE, input.district, order]);
    let [.., wanted] = session.one::<4>(Query::OrderOf, &order)?;
    let lines = session.rows::<1>(Query::LinesOf, &order)?.len() as i64;
    match lines == wanted {
        true => Ok(()),
        false => Err(Failure::Wrong(format!("an order has {lines} lines instead of {wanted}"))),
    }
}

/// Delivers the oldest new order of a district, if there is one.
fn delivery(session: &Session<'_>, input: &Input, district: i64) -> Result<(), Failure> {
    let Some([order]) = session.optional(Query::OldestNew, &numbers([WAREHOUSE, district]))? else { return Ok(()) };
    let key = [WAREHOUSE, district, order];
    session.write(Query::DeleteNew, &numbers(key))?;
    let [customer, _, _, lines] = session.one(Query::OrderOf, &numbers(key))?;
    session.write(Query::OrderCarried, &numbers([WAREHOUSE, district, order, input.carrier]))?;
    let written = session.write_any(Query::LinesDelivered, &numbers([WAREHOUSE, district, order, input.time]))?;
    if written as i64 != lines {
        return Err(Failure::Wrong(format!("{written} lines were delivered instead of {lines}")));
    }
    let [amount] = session.one(Query::LinesAmount, &numbers(key))?;
    session.write(Query::CustomerDelivered, &numbers([WAREHOUSE, district, customer, amount]))
}

fn stock_level(session: &Session<'_>, input: &Input) -> Result<(), Failure> {
    let [_, next] = session.one(Query::DistrictNext, &numbers([WAREHOUSE, input.district]))?;
    let values = [WAREHOUSE, input.district, next - RECENT_ORDERS, next, input.threshold];
    session.one::<1>(Query::StockLow, &numbers(values)).map(drop)
}

/// The id of the customer that `input` names.
fn customer(session: &Session<'_>, input: &Input) -> Result<i64, Failure> {
    let name = match &input.who {
        Who::Id(id) => return Ok(*id),
        Who::LastName(name) => name,
    };
    let [w, d] = numbers([WAREHOUSE, input.district]);
    let ids: Vec<[i64; 1]> = session.rows(Query::CustomersOfName, &[w, d, ValueRef::Text(name)])?;
    match ids.get(ids.len().saturating_sub(1) / 2) {
        Some([id]) => Ok(*id),
        None => Err(Failure::Wrong(format!("nobody is named {name} in district {}", input.district))),
    }
}
