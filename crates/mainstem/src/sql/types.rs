//! SQL type names, in the two places they occur: column definitions and casts.
//!
//! Comes in: a type as sqlparser read it. Goes out: a column type of storage, or the Arrow type of a cast; and a
//! column type as a cast names it. A name that is not understood in full (a precision we do not keep, blank padding) is
//! refused, never rounded to something near.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType as Sql, ExactNumberInfo, ObjectName, ObjectNamePart, TimezoneInfo,
};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_postgres::types::sql_name;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::dialect::MainstemDialect;
use super::fold;

/// Whether `collation` orders texts by their bytes, as all texts are ordered here.
pub(crate) fn is_by_bytes(collation: &ObjectName) -> bool {
    let name = match collation.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => name,
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)] if fold(schema) == "pg_catalog" => name,
        _ => return false,
    };
    matches!(fold(name).as_str(), "C" | "POSIX" | "default" | "ucs_basic")
}

/// The column type that `sql` names.
///
/// # Errors
/// 0A000 for a type Mainstem has not got, 22023 for a precision, scale or length out of range.
pub(crate) fn column_type(sql: &Sql) -> Result<DataType> {
    Ok(match sql {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::SmallInt(None) | Sql::Int2(None) => DataType::SmallInt,
        Sql::Int(None) | Sql::Integer(None) | Sql::Int4(None) => DataType::Integer,
        Sql::BigInt(None) | Sql::Int8(None) => DataType::BigInt,
        Sql::Real | Sql::Float4 => DataType::Real,
        Sql::DoublePrecision | Sql::Float8 | Sql::Double(ExactNumberInfo::None) | Sql::Float(ExactNumberInfo::None) => {
            DataType::Double
        }
        Sql::Float(ExactNumberInfo::Precision(bits)) => match bits {
            1..=24 => DataType::Real,
            25..=53 => DataType::Double,
            _ => return Err(out_of_range(sql, "a float has 1 to 53 bits")),
        },
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => decimal(sql, info)?,
        Sql::Date => DataType::Date,
        Sql::Time(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time,
        Sql::Timestamp(None | Some(6), zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => DataType::Timestamp,
            TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => DataType::TimestampTz,
        },
        Sql::Text => DataType::Text { max_chars: None },
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => {
            DataType::Text { max_chars: text_length(sql, length.as_ref())? }
        }
        Sql::Char(length) | Sql::Character(length) => {
            DataType::Char { chars: text_length(sql, length.as_ref())?.unwrap_or(1) }
        }
        Sql::Bytea => DataType::Bytea,
        Sql::Uuid => DataType::Uuid,
        Sql::Custom(name, _) => return Err(unknown_type("column type", name)),
        _ => return Err(Error::unsupported(format_args!("the column type {sql}"))),
    })
}

fn decimal(sql: &Sql, info: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => {
            return Err(Error::unsupported(format_args!(
                "{sql} without a precision (write DECIMAL(p, s), p up to 38)"
            )));
        }
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s)) if s >= 0 && i64::from(p) >= i64::from(s) => {
            Ok(DataType::Decimal { precision: p, scale: s })
        }
        _ => Err(out_of_range(sql, "precision is 1 to 38, scale 0 to the precision")),
    }
}

fn text_length(sql: &Sql, length: Option<&CharacterLength>) -> Result<Option<u32>> {
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length, unit: None }) => match u32::try_from(*length) {
            Ok(n @ 1..=10_485_760) => Ok(Some(n)),
            _ => Err(out_of_range(sql, "a length is 1 to 10485760")),
        },
        Some(_) => Err(Error::unsupported(format_args!("the column type {sql}"))),
    }
}

/// 0A000 for a type that has no such name.
fn unknown_type(what: &str, name: &ObjectName) -> Error {
    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold);
    Error::unsupported(format_args!("the {what} {name}")).with_object(NamedObject::new(ObjectKind::Type, parts))
}

fn out_of_range(sql: &Sql, rule: &str) -> Error {
    Error::invalid(sqlstate::INVALID_PARAMETER, format!("{sql}: {rule}"))
}

/// Gives casts the same types as columns: microsecond timestamps (nanoseconds end in 2262), views for text.
#[derive(Debug)]
pub(crate) struct CastTypes;

impl TypePlanner for CastTypes {
    fn plan_type_field(&self, sql: &Sql) -> DfResult<Option<FieldRef>> {
        match column_type(sql) {
            // Casts to VARCHAR(n) have become calls before (`analyze`); casting without cutting would be a wrong
            // answer.
            Ok(DataType::Text { max_chars: Some(_) }) => {
                Err(DataFusionError::NotImplemented(format!("a cast to {sql} (use substr)")))
            }
            Ok(data_type) => Ok(Some(Arc::new(data_type.field("", true)))),
            Err(e) if e.sqlstate() == sqlstate::INVALID_PARAMETER => Err(DataFusionError::External(Box::new(e))),
            // These it takes for something near.
            Err(e) if matches!(sql, Sql::Time(..) | Sql::Timestamp(..) | Sql::Char(_) | Sql::Character(_)) => {
                Err(DataFusionError::External(Box::new(e)))
            }
            Err(_) if let Sql::Custom(name, _) = sql => {
                Err(DataFusionError::External(Box::new(unknown_type("type", name))))
            }
            // DataFusion knows more types (INTERVAL, arrays) than can be stored.
            Err(_) => Ok(None),
        }
    }
}

/// A column type for a cast. Text has no length there: it is checked when it is stored.
pub(crate) fn ast_type(data_type: DataType) -> Option<Sql> {
    match data_type {
        DataType::Text { .. } | DataType::Char { .. } => Some(Sql::Text),
        other => Parser::new(&MainstemDialect::new(0)).try_with_sql(&sql_name(other)).ok()?.parse_data_type().ok(),
    }
}
