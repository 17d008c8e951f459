//! What the transactions are given: drawn from random numbers as TPC-C says, the same for each engine.

use crate::keys::Random;

/// The only warehouse.
pub(super) const WAREHOUSE: i64 = 1;
/// Its districts.
pub(super) const DISTRICTS: i64 = 10;

/// How large the warehouse is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Customers of a district, and its orders at the beginning.
    pub customers: i64,
    /// Items, and rows of its stock.
    pub items: i64,
}

impl Size {
    /// Names there are: the numbers of the last names of customers lie below.
    pub(super) fn names(self) -> i64 {
        self.customers.min(1_000)
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    /// All, each with its share of 100 transactions.
    pub(super) const MIX: [(Self, u64); 5] =
        [(Self::NewOrder, 45), (Self::Payment, 43), (Self::OrderStatus, 4), (Self::Delivery, 4), (Self::StockLevel, 4)];

    /// As the report names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new order",
            Self::Payment => "payment",
            Self::OrderStatus => "order status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock level",
        }
    }
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Id(i64),
    /// The one in the middle of all with this last name.
    LastName(String),
}

/// What is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: i64,
    pub(super) quantity: i64,
}

/// A transaction to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) kind: Kind,
    pub(super) district: i64,
    pub(super) who: Who,
    /// Of a new order. The item of the last one is not there in 1 of 100.
    pub(super) lines: Vec<Line>,
    /// Cents of a payment.
    pub(super) amount: i64,
    /// Of a delivery.
    pub(super) carrier: i64,
    /// Stock below it is low.
    pub(super) threshold: i64,
    /// The number of the transaction, for a time.
    pub(super) time: i64,
}

/// Draws transactions.
pub(super) struct Inputs {
    random: Random,
    size: Size,
    drawn: i64,
}

impl Inputs {
    /// Those of `seed`.
    pub(super) fn new(size: Size, seed: u64) -> Self {
        Self { random: Random::new(seed), size, drawn: 0 }
    }

    /// The next transaction.
    pub(super) fn draw(&mut self) -> Input {
        self.drawn += 1;
        let kind = self.kind();
        let by_name = matches!(kind, Kind::Payment | Kind::OrderStatus) && self.random.below(100) < 60;
        let who = match by_name {
            true => Who::LastName(last_name(skewed(&mut self.random, 255, 0, self.size.names() - 1))),
            false => Who::Id(skewed(&mut self.random, 1_023, 1, self.size.customers)),
        };
        Input {
            kind,
            district: self.random.within(1..=DISTRICTS),
            who,
            lines: if kind == Kind::NewOrder { self.lines() } else { Vec::new() },
            amount: self.random.within(100..=500_000),
            carrier: self.random.within(1..=10),
            threshold: self.random.within(10..=20),
            time: self.drawn,
        }
    }

    fn kind(&mut self) -> Kind {
        let mut left = self.random.below(100);
        for (kind, share) in Kind::MIX {
            match left.checked_sub(share) {
                Some(further) => left = further,
                None => return kind,
            }
        }
        Kind::StockLevel
    }

    fn lines(&mut self) -> Vec<Line> {
        let count = self.random.within(5..=15);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: skewed(&mut self.random, 8_191, 1, self.size.items),
                quantity: self.random.within(1..=10),
            })
            .collect();
        if let (0, Some(last)) = (self.random.below(100), lines.last_mut()) {
            last.item = self.size.items + 1;
        }
        lines
    }
}

/// TPC-C's NURand: some numbers from `low` to `high` come more often.
fn skewed(random: &mut Random, a: i64, low: i64, high: i64) -> i64 {
    /// TPC-C's constant C.
    const SHIFT: i64 = 123;
    ((random.within(0..=a) | random.within(low..=high)) + SHIFT) % (high - low + 1) + low
}

/// TPC-C's last name of a number below 1,000: a syllable a digit.
pub(super) fn last_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digit = |unit: i64| SYLLABLES.get((number / unit % 10) as usize).copied().unwrap_or_default();
    [digit(100), digit(10), digit(1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { customers: 300, items: 1_000 };

    #[test]
    fn last_names_are_those_of_the_standard() {
        assert_eq!((last_name(0), last_name(371)), ("BARBARBAR".into(), "PRICALLYOUGHT".into()));
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| {
            std::iter::repeat_with({
                let mut inputs = Inputs::new(SIZE, seed);
                move || inputs.draw()
            })
        };
        assert!(draw(1).take(100).eq(draw(1).take(100)) && draw(1).take(100).ne(draw(2).take(100)));
    }

    #[test]
    fn what_is_drawn_is_there_and_in_its_share() {
        let mut inputs = Inputs::new(SIZE, 1);
        let all: Vec<Input> = (0..10_000).map(|_| inputs.draw()).collect();
        for (kind, share) in Kind::MIX {
            let count = all.iter().filter(|input| input.kind == kind).count() as u64;
            assert!(count.abs_diff(share * 100) < 300, "{}: {count}", kind.name());
        }
        let names: Vec<String> = (0..SIZE.names()).map(last_name).collect();
        assert!(all.iter().all(|input| match &input.who {
            Who::Id(id) => (1..=SIZE.customers).contains(id),
            Who::LastName(name) => names.contains(name),
        }));
        let orders: Vec<&Input> = all.iter().filter(|input| input.kind == Kind::NewOrder).collect();
        assert!(orders.iter().all(|input| (5..=15).contains(&input.lines.len())));
        let missing = orders.iter().filter(|input| input.lines.iter().any(|line| line.item > SIZE.items)).count();
        assert!((20..80).contains(&missing), "{missing} of {} orders name an item that is not there", orders.len());
    }
}
