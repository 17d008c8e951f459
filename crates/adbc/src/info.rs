//! What the driver tells of itself.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants::ADBC_VERSION_1_1_0;
use adbc_core::error::{Result, Status};
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use mainstem::arrow::ARROW_VERSION;
use mainstem::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray, new_empty_array,
};
use mainstem::arrow::datatypes::DataType;

use crate::errors::misuse;
use crate::results::{Reader, Ready};

enum Value {
    Text(&'static str),
    Truth(bool),
    Number(i64),
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All that it tells.
const ALL: [(InfoCode, Value); 9] = [
    (InfoCode::VendorName, Value::Text("Mainstem")),
    (InfoCode::VendorVersion, Value::Text(VERSION)),
    (InfoCode::VendorArrowVersion, Value::Text(ARROW_VERSION)),
    (InfoCode::VendorSql, Value::Truth(true)),
    (InfoCode::VendorSubstrait, Value::Truth(false)),
    (InfoCode::DriverName, Value::Text("ADBC Mainstem Driver")),
    (InfoCode::DriverVersion, Value::Text(VERSION)),
    (InfoCode::DriverArrowVersion, Value::Text(ARROW_VERSION)),
    (InfoCode::DriverAdbcVersion, Value::Number(ADBC_VERSION_1_1_0 as i64)),
];

/// The table of `AdbcConnectionGetInfo`, of the codes wanted. A code that is not known is left out.
pub(crate) fn get(wanted: Option<&HashSet<InfoCode>>) -> Result<Reader> {
    let told = ALL.iter().filter(|(code, _)| wanted.is_none_or(|wanted| wanted.contains(code)));
    let (mut codes, mut types, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let (mut texts, mut truths, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in told {
        codes.push(u32::from(code));
        let (of_type, before) = match value {
            Value::Text(text) => (0, push(&mut texts, *text)),
            Value::Truth(truth) => (1, push(&mut truths, *truth)),
            Value::Number(number) => (2, push(&mut numbers, *number)),
        };
        types.push(of_type);
        offsets.push(before);
    }
    let schema = GET_INFO_SCHEMA.clone();
    let DataType::Union(fields, _) = schema.field(1).data_type() else {
        return Err(misuse(Status::Internal, "information is no union"));
    };
    let children = fields.iter().map(|(of_type, field)| -> ArrayRef {
        match of_type {
            0 => Arc::new(StringArray::from(std::mem::take(&mut texts))),
            1 => Arc::new(BooleanArray::from(std::mem::take(&mut truths))),
            2 => Arc::new(Int64Array::from(std::mem::take(&mut numbers))),
            _ => new_empty_array(field.data_type()),
        }
    });
    let children = children.collect();
    let batch = UnionArray::try_new(fields.clone(), types.into(), Some(offsets.into()), children)
        .and_then(|values| {
            RecordBatch::try_new(schema.clone(), vec![Arc::new(UInt32Array::from(codes)), Arc::new(values)])
        })
        .map_err(|error| misuse(Status::Internal, error.to_string()))?;
    Ok(Box::new(Ready::new(schema, vec![batch])))
}

/// Appends `value`; where it stands.
fn push<T>(values: &mut Vec<T>, value: T) -> i32 {
    values.push(value);
    i32::try_from(values.len() - 1).unwrap_or(i32::MAX)
}
