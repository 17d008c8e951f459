//! How many rows predicates leave: estimates, for the choice among plans only.
//!
//! Comes in: what storage knows of a table, and predicates. Goes out: rows, and for each column how many values it has.
//! Predicates on several columns are taken to be independent; those on one column make one interval, whose share of the
//! column's bounds counts. Bounds of the rows in runs do, as nothing is answered from them.

use mainstem_storage::ids::ColumnId;
use mainstem_storage::predicate::{CompareOp, Predicate, ValueRange};
use mainstem_storage::row::Value;
use mainstem_storage::scan::TableStatistics;
use mainstem_storage::schema::{DataType, TableSchema};

/// Share of rows that equal a constant, of a column of which nothing is known.
const EQUAL: f64 = 0.05;
/// Share of rows beyond a constant, of a column without known bounds.
const BEYOND: f64 = 0.3;
/// Share of rows between two constants, of a column without known bounds.
const BETWEEN: f64 = 0.05;
const NULLS: f64 = 0.05;

/// What predicates leave of a table.
#[derive(Debug)]
pub(crate) struct Estimates {
    /// Rows of the table.
    pub(crate) table_rows: f64,
    /// Rows that are left, at least one.
    pub(crate) rows: f64,
    columns: Vec<ColumnEstimate>,
}

/// What is estimated of one column.
#[derive(Debug)]
pub(crate) struct ColumnEstimate {
    id: ColumnId,
    /// Distinct values of the table.
    pub(crate) table_distinct: Option<f64>,
    /// Those that the predicates on this column leave.
    pub(crate) distinct: Option<f64>,
    /// Whether no two rows are equal in it.
    pub(crate) is_key: bool,
    /// No value that is left is below.
    pub(super) low: Option<Value>,
    /// No value that is left is above.
    pub(super) high: Option<Value>,
}

impl Estimates {
    /// What `predicates` leave of a table of which `known` is known: of the columns asked for, and of those of the
    /// predicates.
    pub(super) fn of(schema: &TableSchema, known: &TableStatistics, predicates: &[Predicate]) -> Self {
        let table_rows = known.rows as f64;
        let mut share = 1.0;
        let columns = known.columns.iter().map(|of| {
            let column = schema.column(of.id);
            let mut about = About {
                distinct: of.distinct.map(|distinct| (distinct as f64).max(1.0)),
                range: of.in_runs.as_ref(),
                nullable: column.is_none_or(|column| column.nullable),
                ..About::default()
            };
            let table_distinct = about.distinct;
            predicates.iter().filter(|predicate| predicate.column() == of.id).for_each(|p| about.add(p));
            share *= about.share();
            let distinct = about.distinct_left();
            let About { low, high, .. } = about;
            let is_key = schema.keys().any(|(_, columns)| *columns == [of.id]);
            ColumnEstimate { id: of.id, table_distinct, distinct, is_key, low: low.cloned(), high: high.cloned() }
        });
        let columns = columns.collect();
        let rows = if predicates.is_empty() { table_rows } else { (table_rows * share).max(1.0) };
        Self { table_rows, rows, columns }
    }

    /// What is estimated of `column`, if it was asked for.
    pub(crate) fn column(&self, column: ColumnId) -> Option<&ColumnEstimate> {
        self.columns.iter().find(|estimate| estimate.id == column)
    }
}

/// What the predicates on one column say together.
#[derive(Default)]
struct About<'a> {
    distinct: Option<f64>,
    range: Option<&'a ValueRange>,
    nullable: bool,
    /// Values that it may equal, the fewest of all predicates.
    equals: Option<f64>,
    low: Option<&'a Value>,
    high: Option<&'a Value>,
    /// Whether the bounds themselves are left out.
    beyond_low: bool,
    beyond_high: bool,
    /// Values that it must not equal.
    others: i32,
    is_null: bool,
}

impl<'a> About<'a> {
    fn add(&mut self, predicate: &'a Predicate) {
        match predicate {
            Predicate::Compare { op, value, .. } => match op {
                CompareOp::Eq => {
                    self.at_least(value, false);
                    self.at_most(value, false);
                    self.equal(1.0);
                }
                CompareOp::NotEq => self.others += 1,
                CompareOp::Lt | CompareOp::LtEq => self.at_most(value, *op == CompareOp::Lt),
                CompareOp::Gt | CompareOp::GtEq => self.at_least(value, *op == CompareOp::Gt),
            },
            Predicate::In { values, .. } => self.equal(values.len() as f64),
            Predicate::IsNull { .. } => self.is_null = true,
            Predicate::IsNotNull { .. } => {}
        }
    }

    fn equal(&mut self, values: f64) {
        self.equals = Some(self.equals.map_or(values, |before| before.min(values)));
    }

    fn at_least(&mut self, value: &'a Value, beyond: bool) {
        if self.low.is_none_or(|low| value > low || (value == low && beyond)) {
            (self.low, self.beyond_low) = (Some(value), beyond);
        }
    }

    fn at_most(&mut self, value: &'a Value, beyond: bool) {
        if self.high.is_none_or(|high| value < high || (value == high && beyond)) {
            (self.high, self.beyond_high) = (Some(value), beyond);
        }
    }

    /// The share of the table's rows that are left.
    fn share(&self) -> f64 {
        if self.is_null {
            return if self.nullable { NULLS } else { 0.0 };
        }
        let one = self.distinct.map_or(EQUAL, |distinct| 1.0 / distinct);
        let chosen = match self.equals {
            Some(values) => (values * one).min(1.0),
            None => self.interval_share(),
        };
        chosen * (1.0 - one.min(0.9)).powi(self.others)
    }

    /// The share of the interval in the column's bounds.
    fn interval_share(&self) -> f64 {
        let unknown = match (self.low, self.high) {
            (None, None) => return 1.0,
            (Some(_), Some(_)) => BETWEEN,
            _ => BEYOND,
        };
        let Some(range) = self.range else { return unknown };
        let (Some((min, step)), Some((max, _))) = (number(&range.min), number(&range.max)) else { return unknown };
        let bound = |bound: Option<&Value>, otherwise| bound.map_or(Some((otherwise, 0.0)), number).map(|(at, _)| at);
        let (Some(low), Some(high)) = (bound(self.low, min), bound(self.high, max)) else { return unknown };
        // Of whole numbers a bound that is left out is the one before.
        let low = (low + if self.beyond_low { step } else { 0.0 }).max(min);
        let high = (high - if self.beyond_high { step } else { 0.0 }).min(max);
        let (width, of) = (high - low + step, max - min + step);
        match of > 0.0 {
            true => (width / of).clamp(0.0, 1.0),
            false => f64::from(u8::from(width >= 0.0)),
        }
    }

    /// How many values are left.
    fn distinct_left(&self) -> Option<f64> {
        let left = match self.equals {
            Some(values) => Some(self.distinct.map_or(values, |distinct| distinct.min(values))),
            None => self.distinct.map(|distinct| distinct * self.interval_share()),
        };
        left.map(|left| left.max(1.0))
    }
}

/// `value` as a number, and how far the next one is; `None` for what cannot be measured.
fn number(value: &Value) -> Option<(f64, f64)> {
    let (number, step) = match value {
        Value::Boolean(v) => (f64::from(u8::from(*v)), 1.0),
        Value::Int(v) => (*v as f64, 1.0),
        Value::Decimal(v) => (*v as f64, 1.0),
        Value::Real(v) => (f64::from(*v), 0.0),
        Value::Double(v) => (*v, 0.0),
        Value::Null | Value::Text(_) | Value::Bytes(_) | Value::Uuid(_) => return None,
    };
    number.is_finite().then_some((number, step))
}

/// About how many bytes a value takes in a batch. A view holds up to 12 bytes itself.
pub(super) fn column_bytes(data_type: DataType) -> usize {
    const VIEW: usize = 16;
    const INLINE: u32 = 12;
    let behind = |chars: u32| if chars <= INLINE { 0 } else { chars.min(64) as usize / 2 };
    match data_type {
        DataType::Boolean => 1,
        DataType::SmallInt => 2,
        DataType::Integer | DataType::Real | DataType::Date => 4,
        DataType::BigInt | DataType::Double | DataType::Time | DataType::Timestamp | DataType::TimestampTz => 8,
        DataType::Decimal { .. } | DataType::Uuid => 16,
        DataType::Text { max_chars } => VIEW + behind(max_chars.unwrap_or(32)),
        DataType::Char { chars } => VIEW + behind(chars),
        DataType::Bytea => VIEW + behind(32),
    }
}

#[cfg(test)]
mod tests {
    use mainstem_storage::ids::TableId;
    use mainstem_storage::scan::ColumnStatistics;
    use mainstem_storage::schema::Column;

    use super::*;

    const DAY: ColumnId = ColumnId(1);
    const NAME: ColumnId = ColumnId(2);
    const PRICE: ColumnId = ColumnId(3);

    /// 1000 rows: 100 days from 1 to 100, 20 names, unknown prices.
    fn estimates(predicates: &[Predicate]) -> Estimates {
        let column = |id, name: &str, data_type, nullable| Column::new(id, name, data_type, nullable);
        let columns = vec![
            column(DAY, "day", DataType::Date, false),
            column(NAME, "name", DataType::Text { max_chars: None }, true),
            column(PRICE, "price", DataType::Double, true),
        ];
        let schema = TableSchema::new(TableId(1), "t", columns);
        let range = ValueRange { min: Value::Int(1), max: Value::Int(100), has_nulls: false, all_null: false };
        let of = |id, in_runs, distinct| ColumnStatistics { id, range: None, exact: false, in_runs, distinct };
        let columns = vec![of(DAY, Some(range), Some(100)), of(NAME, None, Some(20)), of(PRICE, None, None)];
        Estimates::of(&schema, &TableStatistics { rows: 1000, bytes: 0, columns }, predicates)
    }

    fn compare(column: ColumnId, op: CompareOp, value: Value) -> Predicate {
        Predicate::Compare { column, op, value }
    }

    #[test]
    fn predicates_leave_their_share() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let day = |op, at| compare(DAY, op, Value::Int(at));
        let name = |op, text: &str| compare(NAME, op, Value::Text(text.into()));
        let within = |column, n| Predicate::In { column, values: vec![Value::Null; n] };
        let cases: Vec<(Vec<Predicate>, f64)> = vec![
            (vec![], 1000.0),
            (vec![day(Eq, 7)], 10.0),
            (vec![day(NotEq, 7)], 990.0),
            (vec![day(Gt, 90)], 100.0),
            (vec![day(GtEq, 91)], 100.0),
            (vec![day(Lt, 11)], 100.0),
            (vec![day(LtEq, 10)], 100.0),
            // Two bounds are one interval, and its ends those of the column.
            (vec![day(Gt, 40), day(LtEq, 60)], 200.0),
            (vec![day(GtEq, -50), day(Lt, 51)], 500.0),
            (vec![day(Gt, 60), day(Lt, 40)], 1.0),
            (vec![day(Gt, 500)], 1.0),
            (vec![within(DAY, 5)], 50.0),
            (vec![within(NAME, 50)], 1000.0),
            (vec![within(NAME, 0)], 1.0),
            (vec![name(Eq, "a"), day(LtEq, 50)], 25.0),
            (vec![name(Gt, "a")], 300.0),
            (vec![name(GtEq, "a"), name(Lt, "b")], 50.0),
            (vec![compare(PRICE, Eq, Value::Double(1.0))], 50.0),
            (vec![Predicate::IsNull { column: NAME }], 50.0),
            (vec![Predicate::IsNull { column: DAY }], 1.0),
            (vec![Predicate::IsNotNull { column: NAME }], 1000.0),
        ];
        for (predicates, expected) in cases {
            let rows = estimates(&predicates).rows;
            assert!((rows - expected).abs() < 1e-6, "{predicates:?}: {rows} instead of {expected}");
        }
    }

    #[test]
    fn distinct_values_follow_the_predicates_on_their_column() {
        let estimates = estimates(&[
            compare(DAY, CompareOp::Gt, Value::Int(75)),
            compare(NAME, CompareOp::Eq, Value::Text("a".into())),
        ]);
        let of = |column| estimates.column(column).map(|of| (of.table_distinct, of.distinct));
        assert_eq!(of(DAY), Some((Some(100.0), Some(25.0))));
        assert_eq!(of(NAME), Some((Some(20.0), Some(1.0))));
        assert_eq!(of(PRICE), Some((None, None)));
    }

    #[test]
    fn intervals_of_floats_have_no_steps() {
        let range = ValueRange { min: Value::Double(0.0), max: Value::Double(8.0), has_nulls: false, all_null: false };
        let (two, four) = (Value::Double(2.0), Value::Double(4.0));
        let about = |low, high| About { range: Some(&range), low, high, beyond_low: true, ..About::default() };
        assert_eq!(about(Some(&two), Some(&four)).share(), 0.25);
        assert_eq!(about(Some(&four), None).share(), 0.5);
        assert_eq!(about(Some(&Value::Double(f64::NAN)), None).share(), BEYOND);
    }
}
