//! The text of one value, the same in every format that writes text.
//!
//! Numbers with all their digits, floats with the fewest that read back the same; dates and times as PostgreSQL writes
//! them, times with a zone in their zone; bytes as `\x` and hexadecimal digits. Arrays and rows are texts already, but
//! in JSON, which has them.

use std::fmt::Write;
use std::ops::RangeInclusive;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, TimestampMicrosecondType};
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use mainstem::{Date, Error, Result, Timestamp, TimestampTz, Uuid};

/// From 0001-01-01 to 9999-12-31, since 1970-01-01.
const NEAR_DAYS: RangeInclusive<i64> = -719_162..=2_932_896;
const MICROS_OF_DAY: i64 = 86_400_000_000;

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_duration_format(DurationFormat::Pretty);

/// As PostgreSQL writes moments in JSON.
const JSON_OPTIONS: FormatOptions<'static> = OPTIONS
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%dT%H:%M:%S%.f"));

/// The values of a batch.
pub struct Cells<'a> {
    columns: Vec<Column<'a>>,
    zone: Zone,
}

/// How a zone of whole hours is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// `+00`
    Short,
    /// `+00:00`
    Whole,
}

struct Column<'a> {
    array: &'a dyn Array,
    formatter: ArrayFormatter<'a>,
    kind: Kind,
}

/// What is left to do to Arrow's text.
#[derive(Clone, Copy)]
enum Kind {
    AsItIs,
    Float,
    Time,
    Bytes,
    Uuid,
}

impl<'a> Cells<'a> {
    /// The values of `batch`.
    ///
    /// # Errors
    /// A type that has no text.
    pub fn new(batch: &'a RecordBatch) -> Result<Self> {
        Self::with(batch, &OPTIONS, Zone::Short)
    }

    /// The values of `batch` in JSON, dates and times among them.
    ///
    /// # Errors
    /// A type that has no text.
    pub fn of_json(batch: &'a RecordBatch) -> Result<Self> {
        Self::with(batch, &JSON_OPTIONS, Zone::Whole)
    }

    fn with(batch: &'a RecordBatch, options: &'a FormatOptions<'a>, zone: Zone) -> Result<Self> {
        let columns = batch
            .columns()
            .iter()
            .map(|column| {
                let array = column.as_ref();
                let formatter = ArrayFormatter::try_new(array, options).map_err(Error::from)?;
                Ok(Column { array, formatter, kind: kind_of(array.data_type()) })
            })
            .collect::<Result<_>>()?;
        Ok(Self { columns, zone })
    }

    /// Columns of the batch.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Appends the text at `row` of `column` to `text`; false, and nothing appended, for NULL.
    pub fn append(&self, column: usize, row: usize, text: &mut String) -> bool {
        // An array of the type of NULL has no bits that say so.
        let is_valid = |column: &&Column<'_>| column.array.is_valid(row) && *column.array.data_type() != DataType::Null;
        let Some(column) = self.columns.get(column).filter(is_valid) else {
            return false;
        };
        let start = text.len();
        if matches!(column.kind, Kind::Bytes) {
            text.push_str("\\x");
        }
        if let (Kind::Uuid, Some(uuids)) = (column.kind, column.array.as_fixed_size_binary_opt()) {
            text.push_str(&uuid_text(uuids.value(row)));
            return true;
        }
        if let Some(far) = far_datetime(column.array, row) {
            let far = if self.zone == Zone::Whole { far.replacen(' ', "T", 1).replace("+00", "+00:00") } else { far };
            text.push_str(&far);
            return true;
        }
        // Writing to a String does not fail; a value that cannot be shown says so itself.
        let _ = write!(text, "{}", column.formatter.value(row));
        match column.kind {
            Kind::AsItIs | Kind::Bytes | Kind::Uuid => {}
            Kind::Float => spell_infinity(text, start),
            Kind::Time => shorten_time(text, start, self.zone),
        }
        true
    }
}

/// The text of the day or timestamp at `row`, if its year has not four digits: Arrow writes signs, and knows a year 0.
fn far_datetime(array: &dyn Array, row: usize) -> Option<String> {
    if let Some(days) = array.as_primitive_opt::<Date32Type>() {
        let day = days.value(row);
        return (!NEAR_DAYS.contains(&day.into())).then(|| Date::from_days(day).to_string());
    }
    let micros = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
    if NEAR_DAYS.contains(&micros.div_euclid(MICROS_OF_DAY)) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Timestamp(_, Some(_)) => TimestampTz::from_micros(micros).to_string(),
        _ => Timestamp::from_micros(micros).to_string(),
    })
}

/// The text of the UUID of these bytes.
fn uuid_text(bytes: &[u8]) -> String {
    <[u8; 16]>::try_from(bytes).map(|bytes| Uuid::from(bytes).to_string()).unwrap_or_default()
}

fn kind_of(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Kind::Float,
        DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
        DataType::FixedSizeBinary(16) => Kind::Uuid,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Kind::Bytes,
        _ => Kind::AsItIs,
    }
}

fn spell_infinity(text: &mut String, start: usize) {
    let spelled = match text.get(start..) {
        Some("inf") => "Infinity",
        Some("-inf") => "-Infinity",
        Some("-0.0") => "0.0",
        _ => return,
    };
    text.truncate(start);
    text.push_str(spelled);
}

/// Drops the zeros that end a fraction of a second, and the minutes of a zone of whole hours if it is to be short.
fn shorten_time(text: &mut String, start: usize, zone_form: Zone) {
    let Some(written) = text.get(start..) else { return };
    let zone = written.rfind(':').and_then(|colon| {
        let sign = colon.checked_sub(3)?;
        matches!(written.as_bytes().get(sign), Some(b'+' | b'-')).then_some(sign)
    });
    let (time, zone) = written.split_at(zone.unwrap_or(written.len()));
    let time = if time.contains('.') { time.trim_end_matches('0').trim_end_matches('.') } else { time };
    let zone = zone.strip_suffix(":00").filter(|_| zone_form == Zone::Short).unwrap_or(zone);
    let short = format!("{time}{zone}");
    text.truncate(start);
    text.push_str(&short);
}
