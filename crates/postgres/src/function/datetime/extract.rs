//! `extract(part FROM datetime)`, which is NUMERIC, and `date_part(part, datetime)`, which is DOUBLE PRECISION, of
//! dates, timestamps, times and intervals, as PostgreSQL computes them (`timestamp.c`, `date.c`).
//!
//! A result of `extract` has as many digits behind the point as PostgreSQL shows: seconds and epochs 6, milliseconds 3,
//! all others none. The zone of a TIMESTAMPTZ is UTC, which is the session's.
//!
//! 1. While SQL becomes a plan `extract` becomes a function of ours; `date_part` is called by name.
//! 2. The part is read, and refused where the type of the datetime has none: 22023 for words that are no part, 0A000
//!    for parts of other types, and for what is no constant.
//! 3. A year that is compared with a constant is a range of datetimes, which the optimizer asks for (`preimage`), so
//!    that it is pruned by.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, PrimitiveArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::preimage::PreimageResult;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::over_one;
use crate::sqlstate;
use crate::types::{
    INTERVAL, MICROS_OF_DAY, SECONDS_OF_DAY, TIME, TIMESTAMP, civil_from_days, days_from_civil, sql_type,
};

pub(super) const MICROS_OF_SECOND: i64 = 1_000_000;
pub(super) const MICROS_OF_MINUTE: i64 = 60 * MICROS_OF_SECOND;
pub(super) const MICROS_OF_HOUR: i64 = 60 * MICROS_OF_MINUTE;
/// 365.25 days.
const SECONDS_OF_YEAR: i64 = 31_557_600;
/// Letters of a part's name that count, as in PostgreSQL.
const LETTERS: usize = 10;
/// Years whose range of datetimes is asked for: those that dates and timestamps are written with.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9_998;

/// `extract`, which gives numbers.
#[must_use]
pub fn extract() -> ScalarUDF {
    ScalarUDF::new_from_impl(Parts::new(Gives::Numeric))
}

/// `date_part`.
pub fn date_part() -> ScalarUDF {
    ScalarUDF::new_from_impl(Parts::new(Gives::Double))
}

/// What a part is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    IsoYear,
    WeekDay,
    IsoWeekDay,
    DayOfYear,
    Epoch,
    /// One that PostgreSQL has, and we have not.
    Unread,
}

/// PostgreSQL's names of parts, of which [`LETTERS`] count.
const NAMES: &[(Part, &[&str])] = &[
    (Part::Microsecond, &["microsecon", "us", "usec", "usecs", "usecond", "useconds"]),
    (Part::Millisecond, &["millisecon", "ms", "msec", "msecs", "msecond", "mseconds"]),
    (Part::Second, &["second", "seconds", "s", "sec", "secs"]),
    (Part::Minute, &["minute", "minutes", "m", "min", "mins"]),
    (Part::Hour, &["hour", "hours", "h", "hr", "hrs"]),
    (Part::Day, &["day", "days", "d"]),
    (Part::Week, &["week", "weeks", "w"]),
    (Part::Month, &["month", "months", "mon", "mons"]),
    (Part::Quarter, &["quarter", "qtr"]),
    (Part::Year, &["year", "years", "y", "yr", "yrs"]),
    (Part::IsoYear, &["isoyear"]),
    (Part::WeekDay, &["dow"]),
    (Part::IsoWeekDay, &["isodow"]),
    (Part::DayOfYear, &["doy"]),
    (Part::Epoch, &["epoch"]),
    (Part::Unread, &["decade", "decades", "dec", "decs", "century", "centuries", "c", "cent"]),
    (Part::Unread, &["millennium", "millennia", "mil", "mils", "julian", "jd", "j"]),
    (Part::Unread, &["timezone", "timezone_h", "timezone_m"]),
];

/// What a part is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Day,
    Timestamp,
    TimestampTz,
    Time,
    Interval,
}

impl Of {
    pub(super) fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Date32 | DataType::Date64 => Self::Day,
            // Of no type: it is NULL.
            DataType::Timestamp(_, None) | DataType::Null => Self::Timestamp,
            DataType::Timestamp(..) => Self::TimestampTz,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Day => "date",
            Self::Timestamp => "timestamp without time zone",
            Self::TimestampTz => "timestamp with time zone",
            Self::Time => "time without time zone",
            Self::Interval => "interval",
        }
    }

    /// The type in which its values are read.
    pub(super) fn arrow(self) -> DataType {
        match self {
            Self::Day => DataType::Date32,
            Self::Timestamp => TIMESTAMP,
            Self::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Time => TIME,
            Self::Interval => INTERVAL,
        }
    }

    fn has(self, part: Part) -> bool {
        use Part::{
            Day, DayOfYear, Epoch, Hour, IsoWeekDay, IsoYear, Microsecond, Millisecond, Minute, Month, Quarter, Second,
            Unread, Week, WeekDay, Year,
        };
        match part {
            Epoch => true,
            Microsecond | Millisecond | Second | Minute | Hour => self != Self::Day,
            Day | Month | Quarter | Year => self != Self::Time,
            Week | IsoYear | WeekDay | IsoWeekDay | DayOfYear => !matches!(self, Self::Time | Self::Interval),
            Unread => false,
        }
    }
}

impl Part {
    /// The part that `word` names.
    pub(super) fn named(word: &str) -> Option<Self> {
        let letters: String = word.chars().take(LETTERS).collect::<String>().to_ascii_lowercase();
        NAMES.iter().find(|(_, names)| names.contains(&letters.as_str())).map(|(part, _)| *part)
    }

    /// The part that `word` names, of a datetime of type `of`.
    ///
    /// # Errors
    /// 22023, 0A000.
    fn read(word: &str, of: Of) -> Result<Self> {
        let word = word.trim_matches(['\'', '"']).to_ascii_lowercase();
        match Self::named(&word) {
            Some(part) if of.has(part) => Ok(part),
            Some(_) => {
                let message = format!("unit \"{word}\" not supported for type {}", of.name());
                Err(external(Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message)))
            }
            None => {
                let message = format!("unit \"{word}\" not recognized for type {}", of.name());
                Err(external(Error::invalid(sqlstate::INVALID_PARAMETER, message)))
            }
        }
    }

    /// Digits of the part of a datetime of type `of`, and how many of them stand behind the point.
    fn digits(self, of: Of) -> (u8, i8) {
        match (self, of) {
            (Self::Second, _) => (8, 6),
            (Self::Millisecond, _) => (8, 3),
            (Self::Microsecond, _) => (8, 0),
            (Self::Epoch, Of::Day) => (15, 0),
            (Self::Epoch, Of::Interval) => (25, 6),
            (Self::Epoch, _) => (19, 6),
            (Self::Minute | Self::Month | Self::Quarter | Self::Week | Self::WeekDay | Self::IsoWeekDay, _) => (2, 0),
            (Self::Hour | Self::Day, of) if of != Of::Interval => (2, 0),
            (Self::DayOfYear, _) => (3, 0),
            (Self::Year | Self::IsoYear, of) if of != Of::Interval => (7, 0),
            _ => (10, 0),
        }
    }

    fn data_type(self, of: Of) -> DataType {
        let (digits, behind) = self.digits(of);
        DataType::Decimal128(digits, behind)
    }

    /// The parts of `datetimes`, of type `of`, as they are counted: digits without the point.
    fn of_all(self, datetimes: &ArrayRef, of: Of) -> Result<Decimal128Array> {
        let datetimes = cast(datetimes, &of.arrow())?;
        let parts = match of {
            Of::Day => self.of_datetimes(datetimes.as_primitive::<Date32Type>(), |day| (i64::from(day), 0)),
            Of::Timestamp | Of::TimestampTz => self
                .of_datetimes(datetimes.as_primitive::<TimestampMicrosecondType>(), |micros| {
                    (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY))
                }),
            Of::Time => self.of_datetimes(datetimes.as_primitive::<Time64MicrosecondType>(), |micros| (0, micros)),
            Of::Interval => self.of_spans(datetimes.as_primitive::<IntervalMonthDayNanoType>()),
        };
        Ok(parts.with_data_type(self.data_type(of)))
    }

    /// Of datetimes that `split` makes days since 1970-01-01 and microseconds of.
    fn of_datetimes<T: ArrowPrimitiveType>(
        self,
        datetimes: &PrimitiveArray<T>,
        split: impl Fn(T::Native) -> (i64, i64) + Copy,
    ) -> Decimal128Array {
        let of_days = |part: fn(i64) -> i64| -> Decimal128Array {
            datetimes.unary(|datetime| i128::from(part(split(datetime).0)))
        };
        let of_time = |unit: i64, most: i64| -> Decimal128Array {
            datetimes.unary(|datetime| i128::from(split(datetime).1 / unit % most))
        };
        match self {
            // They are all counted in microseconds, and differ in where the point is.
            Self::Microsecond | Self::Millisecond | Self::Second => of_time(1, MICROS_OF_MINUTE),
            Self::Minute => of_time(MICROS_OF_MINUTE, 60),
            Self::Hour => of_time(MICROS_OF_HOUR, 24),
            // A loop for each of these: they are what queries group by.
            Self::Day => datetimes.unary(|datetime| i128::from(civil_from_days(split(datetime).0).2)),
            Self::Month => datetimes.unary(|datetime| i128::from(civil_from_days(split(datetime).0).1)),
            Self::Year => datetimes.unary(|datetime| i128::from(year_of(split(datetime).0))),
            Self::Quarter => of_days(|days| i64::from((civil_from_days(days).1 - 1) / 3 + 1)),
            Self::Week => of_days(|days| (days - first_of_iso_year(iso_year(days))) / 7 + 1),
            Self::IsoYear => of_days(|days| shown(iso_year(days))),
            Self::WeekDay => of_days(|days| (days + 4).rem_euclid(7)),
            Self::IsoWeekDay => of_days(|days| (days + 3).rem_euclid(7) + 1),
            Self::DayOfYear => of_days(|days| days - days_from_civil(civil_from_days(days).0, 1, 1) + 1),
            Self::Epoch if T::DATA_TYPE == DataType::Date32 => of_days(|days| days * SECONDS_OF_DAY),
            Self::Epoch => datetimes.unary(|datetime| {
                let (days, micros) = split(datetime);
                i128::from(days) * i128::from(MICROS_OF_DAY) + i128::from(micros)
            }),
            // No datetime has it.
            Self::Unread => datetimes.unary(|_| 0),
        }
    }

    fn of_spans(self, spans: &PrimitiveArray<IntervalMonthDayNanoType>) -> Decimal128Array {
        let each = |part: fn(IntervalMonthDayNano, i64) -> i64| -> Decimal128Array {
            spans.unary(|span| i128::from(part(span, span.nanoseconds / 1_000)))
        };
        match self {
            Self::Microsecond | Self::Second | Self::Millisecond => each(|_, micros| micros % MICROS_OF_MINUTE),
            Self::Minute => each(|_, micros| micros / MICROS_OF_MINUTE % 60),
            Self::Hour => each(|_, micros| micros / MICROS_OF_HOUR),
            Self::Day => each(|span, _| i64::from(span.days)),
            Self::Month => each(|span, _| i64::from(span.months % 12)),
            Self::Quarter => each(|span, _| i64::from(span.months % 12 / 3 + 1)),
            Self::Year => each(|span, _| i64::from(span.months / 12)),
            Self::Epoch => spans.unary(|span| {
                let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
                let seconds = years * SECONDS_OF_YEAR + (months * 30 + i64::from(span.days)) * SECONDS_OF_DAY;
                i128::from(seconds) * i128::from(MICROS_OF_SECOND) + i128::from(span.nanoseconds / 1_000)
            }),
            // An interval has no others.
            _ => spans.unary(|_| 0),
        }
    }

    /// The same as a double.
    fn as_doubles(self, datetimes: &ArrayRef, of: Of) -> Result<Float64Array> {
        let parts = self.of_all(datetimes, of)?;
        let scale = 10_f64.powi(self.digits(of).1.into());
        Ok(parts.unary(|digits| digits as f64 / scale))
    }
}

/// A year as it is shown: there is none between 1 BC and 1 AD.
fn shown(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

fn year_of(days: i64) -> i64 {
    shown(civil_from_days(days).0)
}

/// ISO 8601's year: that of the Thursday of the week.
fn iso_year(days: i64) -> i64 {
    civil_from_days(days - (days + 3).rem_euclid(7) + 3).0
}

/// The Monday with which ISO 8601's year begins: that of the week of 4 January.
fn first_of_iso_year(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

/// Which of the two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gives {
    Numeric,
    Double,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Parts {
    gives: Gives,
    signature: Signature,
}

impl Parts {
    fn new(gives: Gives) -> Self {
        Self { gives, signature: Signature::any(2, Volatility::Immutable) }
    }

    /// What a datetime of type `data_type` is to the function.
    fn of(&self, data_type: &DataType) -> Result<Of> {
        match Of::new(data_type) {
            // There is no `date_part` of dates alone.
            Some(Of::Day) if self.gives == Gives::Double => Ok(Of::Timestamp),
            Some(of) => Ok(of),
            None => {
                let given = sql_type(data_type).map_or_else(|| data_type.to_string(), |known| known.to_string());
                let name = match self.gives {
                    Gives::Numeric => "pg_catalog.extract(unknown",
                    Gives::Double => "date_part(unknown",
                };
                let message =
                    format!("function {name}, {given}) does not exist; cast it to a date, timestamp, time or interval");
                Err(external(Error::invalid(sqlstate::UNDEFINED_FUNCTION, message)))
            }
        }
    }

    fn compute(&self, part: Part, datetimes: &ArrayRef, of: Of) -> Result<ArrayRef> {
        Ok(match self.gives {
            Gives::Numeric => Arc::new(part.of_all(datetimes, of)?),
            Gives::Double => Arc::new(part.as_doubles(datetimes, of)?),
        })
    }
}

/// The text that `scalar` is; `None` for NULL.
pub(super) fn text(scalar: &ScalarValue) -> Option<&str> {
    scalar.try_as_str().flatten()
}

/// Refuses a unit that is a column.
pub(super) fn no_constant(function: &str) -> DataFusionError {
    external(Error::unsupported(format_args!("{function} with a unit that is no constant")))
}

impl ScalarUDFImpl for Parts {
    fn name(&self) -> &str {
        match self.gives {
            Gives::Numeric => "extract",
            Gives::Double => "date_part",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} follows from its part", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let ([unit, datetime], [word, _]) = (args.arg_fields, args.scalar_arguments) else {
            return Err(DataFusionError::Internal(format!("{} without its arguments", self.name())));
        };
        let of = self.of(datetime.data_type())?;
        let part = word.and_then(text).map(|word| Part::read(word, of)).transpose()?;
        let data_type = match (self.gives, part) {
            (Gives::Double, _) => DataType::Float64,
            (Gives::Numeric, Some(part)) => part.data_type(of),
            (Gives::Numeric, None) => return Err(DataFusionError::Internal("extract without a part".into())),
        };
        let nullable = datetime.is_nullable() || unit.is_nullable() || part.is_none();
        Ok(Arc::new(Field::new(self.name(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [unit, datetime] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{} without its arguments", self.name())));
        };
        let of = self.of(&datetime.data_type())?;
        let ColumnarValue::Scalar(word) = unit else { return Err(no_constant(self.name())) };
        let part = text(word).map(|word| Part::read(word, of)).transpose()?;
        over_one(datetime, |datetimes| match part {
            Some(part) => self.compute(part, datetimes, of),
            None => Ok(new_null_array(args.return_field.data_type(), datetimes.len())),
        })
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        let [Expr::Literal(word, _), datetime] = args else { return Ok(PreimageResult::None) };
        let data_type = info.get_data_type(datetime)?;
        let is_year = matches!(Of::new(&data_type), Some(Of::Day | Of::Timestamp | Of::TimestampTz))
            && text(word).is_some_and(|word| matches!(Part::read(word, Of::Timestamp), Ok(Part::Year)));
        let year = match literal {
            Expr::Literal(value, _) if is_year => whole(value).filter(|year| YEARS.contains(year)),
            _ => None,
        };
        let Some(year) = year else { return Ok(PreimageResult::None) };
        let begin = |year: i64| {
            let days = days_from_civil(year, 1, 1);
            Ok::<_, DataFusionError>(match &data_type {
                DataType::Date32 => ScalarValue::Date32(i32::try_from(days).ok()),
                DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                    ScalarValue::TimestampMicrosecond(Some(days * MICROS_OF_DAY), zone.clone())
                }
                _ => ScalarValue::Null,
            })
        };
        let (from, to) = (begin(year)?, begin(year + 1)?);
        if from.is_null() || to.is_null() {
            return Ok(PreimageResult::None);
        }
        let interval = Box::new(Interval::try_new(from, to)?);
        Ok(PreimageResult::Range { expr: datetime.clone(), interval })
    }
}

/// The whole number that `value`, as results of the functions are compared with, is.
fn whole(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Decimal128(Some(digits), _, scale) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            (digits % unit == 0).then_some(digits / unit).and_then(|whole| i64::try_from(whole).ok())
        }
        ScalarValue::Float64(Some(number)) if number.trunc() == *number && number.abs() < 1e9 => Some(*number as i64),
        _ => None,
    }
}
