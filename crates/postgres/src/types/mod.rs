//! PostgreSQL's types: values, their text forms, and the names of types.

mod byte_size;
mod datetime;
mod float;
mod interop;
mod interval;
mod names;
mod numeric;
mod text_form;
mod uuid;

pub use byte_size::{byte_size_text, parse_byte_size, split_number};
pub(crate) use datetime::micros_of_fraction;
pub use datetime::{Date, Time, Timestamp, TimestampTz, civil_from_days, days_from_civil, interval_text};
pub use float::{OneForm, has_floats, in_one_form, scalar_in_one_form, value_in_one_form};
pub use interval::{Field as IntervalField, Fields as IntervalFields, interval_of};
pub use names::{common_datetime, field_type, is_datetime, sql_name, sql_type, sql_words};
pub(crate) use numeric::of_float;
pub use numeric::{Decimal, without_exponent};
pub use text_form::{from_text, has_own_text, to_text};
pub use uuid::Uuid;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

/// The type of UUIDs in plans: nothing else has it.
pub const UUID: DataType = DataType::FixedSizeBinary(16);
/// The type of TIME in plans.
pub const TIME: DataType = DataType::Time64(TimeUnit::Microsecond);
/// The type of TIMESTAMP in plans.
pub const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// The type of INTERVAL in plans.
pub const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Microseconds of a day.
pub const MICROS_OF_DAY: i64 = 86_400_000_000;
/// Seconds of a day.
pub const SECONDS_OF_DAY: i64 = 86_400;
