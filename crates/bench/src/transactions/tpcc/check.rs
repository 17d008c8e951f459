//! Conditions 1 to 3 of TPC-C's consistency.

use super::engine::{Session, numbers};
use super::inputs::{DISTRICTS, WAREHOUSE};
use super::schema::Query;
use crate::experiment::Failure;

/// Holds the database to the conditions.
///
/// 1. What the warehouse has taken is what its districts have;
/// 2. the next order of a district follows its last one, which is the last new one, too, if there is any;
/// 3. the new orders of a district are numbered without a gap.
pub(super) fn check(session: &Session<'_>) -> Result<(), Failure> {
    let [warehouse] = session.one(Query::WarehouseYear, &numbers([WAREHOUSE]))?;
    let [districts] = session.one(Query::DistrictsYear, &numbers([WAREHOUSE]))?;
    expect(warehouse == districts, || format!("the warehouse has {warehouse}, its districts {districts}"))?;
    for district in 1..=DISTRICTS {
        let key = numbers([WAREHOUSE, district]);
        let [_, next] = session.one(Query::DistrictNext, &key)?;
        let [last] = session.one(Query::OrdersLast, &key)?;
        let [count, new_first, new_last] = session.one(Query::NewOrders, &key)?;
        expect(next - 1 == last, || format!("district {district} has order {last}, and {next} is to be the next"))?;
        if count > 0 {
            expect(new_last == last, || format!("district {district} has order {last}, new ones up to {new_last}"))?;
            expect(new_last - new_first + 1 == count, || {
                format!("district {district} has {count} new orders from {new_first} to {new_last}")
            })?;
        }
    }
    session.take_digest();
    Ok(())
}

fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Wrong(what())) }
}
