//! What the writer committed, counted apart from the database, so that the database can be held to it.
//!
//! Money and quantities are hundredths, as the DECIMAL(15, 2) columns hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, AddAssign, Neg};

/// Counts and sums over orders and line items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Orders.
    pub orders: i64,
    /// Sum of o_totalprice, in cents.
    pub cents: i64,
    /// Line items.
    pub lines: i64,
    /// Sum of l_quantity, in hundredths.
    pub quantity: i64,
}

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            orders: self.orders + other.orders,
            cents: self.cents + other.cents,
            lines: self.lines + other.lines,
            quantity: self.quantity + other.quantity,
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Neg for Totals {
    type Output = Self;

    fn neg(self) -> Self {
        Self { orders: -self.orders, cents: -self.cents, lines: -self.lines, quantity: -self.quantity }
    }
}

/// An order the writer made, as it is now. All its lines have the same discount and no tax, and prices are whole
/// dollars, so that o_totalprice is the exact sum of l_extendedprice * (1 - l_discount).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeOrder {
    /// Its key.
    pub key: i64,
    /// Its line items; o_shippriority says so too, which is 0 in all orders of TPC-H.
    pub lines: i64,
    /// Per cent off each line.
    pub discount: i64,
    /// o_totalprice, in cents.
    pub cents: i64,
    /// Sum of l_quantity, in hundredths.
    pub quantity: i64,
}

impl MadeOrder {
    fn totals(self) -> Totals {
        Totals { orders: 1, cents: self.cents, lines: self.lines, quantity: self.quantity }
    }
}

/// What a transaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new order with its lines.
    Inserted(MadeOrder),
    /// An order of the writer's, as it is now.
    UpdatedMade(MadeOrder),
    /// An order of TPC-H: what it has more than before.
    UpdatedBase(Totals),
    /// The order of the writer's with this key is gone.
    DeletedMade(i64),
    /// The order of TPC-H with this key is gone, and all this with it.
    DeletedBase(i64, Totals),
}

/// Everything the writer committed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    totals: Totals,
    made: BTreeMap<i64, MadeOrder>,
    deleted: BTreeSet<i64>,
    /// Transactions that made an order.
    pub inserts: u64,
    /// Transactions that changed one.
    pub updates: u64,
    /// Transactions that deleted one.
    pub deletes: u64,
    /// Line items those transactions inserted, updated or deleted.
    pub lines_written: u64,
}

impl Ledger {
    /// Enters what a committed transaction did.
    pub fn enter(&mut self, change: Change) {
        let before = match change {
            Change::Inserted(order) | Change::UpdatedMade(order) => self.made.insert(order.key, order),
            Change::DeletedMade(key) => self.made.remove(&key),
            Change::UpdatedBase(_) | Change::DeletedBase(..) => None,
        };
        let before = before.map_or_else(Totals::default, MadeOrder::totals);
        let (difference, lines) = match change {
            Change::Inserted(order) => (order.totals() + -before, order.lines),
            Change::UpdatedMade(order) => (order.totals() + -before, order.lines),
            // Each line of it got one more.
            Change::UpdatedBase(more) => (more, more.quantity / 100),
            Change::DeletedMade(_) => (-before, before.lines),
            Change::DeletedBase(key, gone) => {
                self.deleted.insert(key);
                (-gone, gone.lines)
            }
        };
        match change {
            Change::Inserted(_) => self.inserts += 1,
            Change::UpdatedMade(_) | Change::UpdatedBase(_) => self.updates += 1,
            Change::DeletedMade(_) | Change::DeletedBase(..) => self.deletes += 1,
        }
        self.totals += difference;
        self.lines_written += lines.unsigned_abs();
    }

    /// What the database has more than before the writer began.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Transactions committed.
    pub fn commits(&self) -> u64 {
        self.inserts + self.updates + self.deletes
    }

    /// The writer's orders that are there.
    pub fn made(&self) -> &BTreeMap<i64, MadeOrder> {
        &self.made
    }

    /// Keys of orders of TPC-H that are gone.
    pub fn deleted(&self) -> &BTreeSet<i64> {
        &self.deleted
    }
}
