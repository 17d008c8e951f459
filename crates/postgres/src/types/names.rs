//! Names of types: of Arrow's types in SQL, and which column type holds which Arrow type.

use arrow::datatypes::{DataType as ArrowType, Field};
use mainstem_storage::schema::DataType;

/// How a column type is written in SQL.
#[must_use]
pub fn sql_name(data_type: DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::SmallInt => "smallint".into(),
        DataType::Integer => "integer".into(),
        DataType::BigInt => "bigint".into(),
        DataType::Real => "real".into(),
        DataType::Double => "double precision".into(),
        DataType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        DataType::Date => "date".into(),
        DataType::Time => "time".into(),
        DataType::Timestamp => "timestamp".into(),
        DataType::TimestampTz => "timestamptz".into(),
        DataType::Text { max_chars: None } => "text".into(),
        DataType::Text { max_chars: Some(n) } => format!("varchar({n})"),
        DataType::Char { chars } => format!("char({chars})"),
        DataType::Bytea => "bytea".into(),
        DataType::Uuid => "uuid".into(),
    }
}

/// The type of columns that hold all values of `field`; as [`sql_type`].
#[must_use]
pub fn field_type(field: &Field) -> Option<DataType> {
    match DataType::chars_of(field) {
        Some(chars) => Some(DataType::Char { chars }),
        None => sql_type(field.data_type()),
    }
}

/// The type of columns that hold all values of an Arrow type; none for intervals, lists and the like, and for NULLs
/// without a type.
#[must_use]
pub fn sql_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => DataType::SmallInt,
        ArrowType::UInt16 | ArrowType::Int32 => DataType::Integer,
        ArrowType::UInt32 | ArrowType::Int64 => DataType::BigInt,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => DataType::Real,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale)
            if *precision <= 38 && *scale >= 0 =>
        {
            DataType::Decimal { precision: *precision, scale: *scale }
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::Text { max_chars: None },
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Bytea
        }
        ArrowType::Dictionary(_, value) => return sql_type(value),
        _ => return None,
    })
}

/// Whether `data_type` is DATE, TIMESTAMP or TIMESTAMPTZ.
#[must_use]
pub fn is_datetime(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Date32 | ArrowType::Timestamp(..))
}

/// The type of values of the types `given`, if they are dates and timestamps, texts that spell them and NULLs: a
/// TIMESTAMPTZ beside others, a TIMESTAMP beside dates, a DATE beside texts.
#[must_use]
pub fn common_datetime<'t>(given: impl Iterator<Item = &'t ArrowType>) -> Option<ArrowType> {
    let mut found = None;
    for data_type in given {
        let rank = match data_type {
            ArrowType::Date32 => DataType::Date,
            ArrowType::Timestamp(_, None) if found != Some(DataType::TimestampTz) => DataType::Timestamp,
            ArrowType::Timestamp(..) => DataType::TimestampTz,
            other if other.is_string() || other.is_null() => continue,
            _ => return None,
        };
        if found.is_none() || rank != DataType::Date {
            found = Some(rank);
        }
    }
    found.map(DataType::arrow)
}

/// `message` with the names of Arrow's types as SQL has them.
#[must_use]
pub fn sql_words(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(start);
        text.push_str(before);
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        rest = behind;
        let mut parameters = || {
            let inside = behind.strip_prefix('(').and_then(|inside| inside.split_once(')'));
            inside.map(|(inside, behind)| {
                rest = behind;
                inside
            })
        };
        // A literal: `Int64(1)`, `Utf8("a")`.
        let is_literal = match word {
            "Int8" | "Int16" | "Int32" | "Int64" | "UInt64" | "Float32" | "Float64" | "Boolean" => {
                behind.starts_with('(') && !behind.starts_with("()")
            }
            "Utf8" | "Utf8View" | "LargeUtf8" => behind.starts_with("(\""),
            _ => false,
        };
        if is_literal && let Some(value) = parameters() {
            text.push_str(&value.replace('"', "'"));
            continue;
        }
        text.push_str(match word {
            "Int8" | "Int16" => "smallint",
            "Int32" => "integer",
            "Int64" => "bigint",
            "UInt8" | "UInt16" | "UInt32" | "UInt64" => "bigint",
            "Float32" => "real",
            "Float64" => "double precision",
            "Utf8" | "Utf8View" | "LargeUtf8" => "text",
            "Binary" if behind.starts_with(" operator") => word,
            "Binary" | "BinaryView" | "LargeBinary" => "bytea",
            "Date32" | "Date64" => "date",
            "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => "decimal",
            "FixedSizeBinary" => {
                let _ = parameters();
                "uuid"
            }
            "Timestamp" => match parameters() {
                Some(zoned) if zoned.contains("Some(") => {
                    // The parenthesis of the zone came first.
                    rest = rest.strip_prefix(')').unwrap_or(rest);
                    "timestamp with time zone"
                }
                Some(zoned) if zoned.contains('"') => "timestamp with time zone",
                Some(_) => "timestamp",
                None => word,
            },
            "Time32" | "Time64" => parameters().map_or(word, |_| "time"),
            "Interval" => parameters().map_or(word, |_| "interval"),
            "Duration" => parameters().map_or(word, |_| "interval"),
            "Boolean" => "boolean",
            word => word,
        });
    }
    text.push_str(rest);
    text
}
