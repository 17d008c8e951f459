//! Types of columns, and few values of each, so that they meet.

use mainstem::{Date, Timestamp};

use super::choices::Choices;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer,
    BigInt,
    SmallInt,
    Text,
    /// NUMERIC(12, 2) in tables; with more digits where it is computed.
    Numeric,
    Double,
    Real,
    Boolean,
    Date,
    Timestamp,
}

use Type::{BigInt, Boolean, Double, Integer, Numeric, Real, SmallInt, Text};

/// The types of columns, the usual ones first and more than once.
pub const OF_COLUMNS: &[Type] = &[
    Integer,
    BigInt,
    Text,
    Integer,
    Numeric,
    Double,
    SmallInt,
    Type::Date,
    Type::Timestamp,
    Boolean,
    Real,
    Integer,
    Text,
    Double,
];

impl Type {
    /// As CREATE TABLE and CAST write it.
    pub fn name(self) -> &'static str {
        match self {
            Integer => "integer",
            BigInt => "bigint",
            SmallInt => "smallint",
            Text => "text",
            Numeric => "numeric(12, 2)",
            Double => "double precision",
            Real => "real",
            Boolean => "boolean",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Integer | BigInt | SmallInt)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Double | Real)
    }

    pub fn is_number(self) -> bool {
        self.is_integer() || self.is_float() || self == Numeric
    }

    /// Few values. The first ones are the usual ones.
    fn pool(self) -> &'static [&'static str] {
        match self {
            Integer | BigInt => &["1", "0", "2", "3", "5", "(-1)", "7", "100", "(-30)", "12"],
            SmallInt => &["1", "0", "2", "3", "(-1)", "9"],
            Text => &["'a'", "'b'", "'ab'", "''", "'B'", "'c d'", "'abc'", "'é'", "'10'"],
            Numeric => &["1.00", "0.00", "2.50", "(-0.30)", "1.50", "100.25", "(-7.75)"],
            Double | Real => &["1.5", "0.0", "2.0", "(-0.25)", "(-2.5)", "0.5", "100.0", "3.0", "(-0.0)"],
            Boolean => &["true", "false"],
            Type::Date => &["'2024-01-31'", "'2024-02-29'", "'1999-12-31'", "'2024-02-01'", "'1969-07-20'"],
            Type::Timestamp => &[
                "'2024-01-31 00:00:00'",
                "'2024-01-31 10:20:30.5'",
                "'2024-02-29 23:59:59.999999'",
                "'1969-07-20 20:17:40'",
                "'2024-02-01 00:00:00'",
            ],
        }
    }

    /// Values that few tables have.
    fn extremes(self) -> &'static [&'static str] {
        match self {
            Integer => &["2147483647", "(-2147483648)"],
            BigInt => &["9223372036854775807", "(-9223372036854775808)", "9999999999"],
            SmallInt => &["32767", "(-32768)"],
            Double | Real => &["'NaN'", "'Infinity'", "'-Infinity'"],
            Numeric => &["9999999999.99", "(-9999999999.99)"],
            Type::Date => &["'0001-01-01'", "'9999-12-31'"],
            Type::Timestamp => &["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"],
            Text => &["'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'", "' '"],
            Boolean => &[],
        }
    }

    /// A constant of this type, as an expression.
    pub fn literal(self, choices: &mut Choices) -> String {
        let extreme = if self.is_float() { choices.chance(1, 8) } else { choices.chance(1, 60) };
        let value = self.value_of(choices, extreme, usize::MAX);
        match self {
            Double | Real | Type::Date | Type::Timestamp => format!("CAST({value} AS {})", self.name()),
            _ => value.into(),
        }
    }

    /// One of at most `distinct` values, as INSERT takes it.
    pub fn value(self, choices: &mut Choices, extremes: bool, distinct: usize) -> &'static str {
        let extreme = extremes && choices.chance(1, 6);
        self.value_of(choices, extreme, distinct)
    }

    fn value_of(self, choices: &mut Choices, extreme: bool, distinct: usize) -> &'static str {
        let list = if extreme && !self.extremes().is_empty() { self.extremes() } else { self.pool() };
        let most = list.len().min(distinct);
        choices.pick::<&str>(&list[..most])
    }

    /// The value in place `index` of an ascending series.
    pub fn nth(self, index: i64) -> String {
        match self {
            Integer | BigInt | SmallInt => index.to_string(),
            Text => format!("'k{index:04}'"),
            Numeric => format!("{index}.50"),
            Double | Real => format!("{index}.25"),
            Boolean => "true".into(),
            Type::Date => format!("'{}'", Date::from_days(19_723 + i32::try_from(index).unwrap())),
            Type::Timestamp => {
                let micros = 1_704_067_200_000_000 + index * 3_600_500_000;
                format!("'{}'", Timestamp::from_micros(micros))
            }
        }
    }

    /// An expression of this type over an integer `g`.
    pub fn of_series(self, modulo: u32) -> String {
        match self {
            Integer | BigInt | SmallInt => format!("CAST(g % {modulo} AS {})", self.name()),
            Text => format!("'k' || CAST(g % {modulo} AS text)"),
            Numeric | Double | Real => format!("CAST(CAST(g % {modulo} AS integer) * 0.5 AS {})", self.name()),
            Boolean => format!("g % {modulo} = 0"),
            Type::Date => format!("DATE '2024-01-01' + CAST(g % {modulo} AS integer)"),
            Type::Timestamp => format!("CAST(DATE '2024-01-01' + CAST(g % {modulo} AS integer) AS timestamp)"),
        }
    }
}
