//! Test data: types, values, tables and rows for proptest, with a taste for edges.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ids::{ColumnId, TableId};
use crate::schema::{Column, DataType, TableSchema};

use super::layout::{decimal_limit, int_limits};
use super::value::{normal_f32, normal_f64};
use super::{Value, array_of};

/// Any column type.
pub(crate) fn data_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::SmallInt),
        Just(DataType::Integer),
        Just(DataType::BigInt),
        Just(DataType::Real),
        Just(DataType::Double),
        (1..=38u8).prop_map(|precision| DataType::Decimal { precision, scale: (precision / 3) as i8 }),
        Just(DataType::Date),
        Just(DataType::Timestamp),
        Just(DataType::TimestampTz),
        Just(DataType::Text { max_chars: None }),
        Just(DataType::Text { max_chars: Some(20) }),
        Just(DataType::Bytea),
        Just(DataType::Time),
        Just(DataType::Uuid),
        Just(DataType::Char { chars: 20 }),
    ]
}

/// A value of the type, NULL if `nullable`; small and extreme ones often, so that equal ones meet.
pub(crate) fn value(data_type: DataType, nullable: bool) -> BoxedStrategy<Value> {
    let value = value_of_type(data_type);
    if nullable { prop_oneof![1 => Just(Value::Null), 4 => value].boxed() } else { value }
}

fn value_of_type(data_type: DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::Real => {
            let edges = vec![0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE];
            let any_bits = any::<u32>().prop_map(f32::from_bits);
            prop_oneof![proptest::sample::select(edges), any_bits].prop_map(|v| Value::Real(normal_f32(v))).boxed()
        }
        DataType::Double => {
            let edges = vec![0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE];
            let any_bits = any::<u64>().prop_map(f64::from_bits);
            prop_oneof![proptest::sample::select(edges), any_bits].prop_map(|v| Value::Double(normal_f64(v))).boxed()
        }
        DataType::Decimal { precision, .. } => {
            let limit = decimal_limit(precision);
            prop_oneof![-1..=1i128, Just(limit - 1), Just(1 - limit), 1 - limit..limit].prop_map(Value::Decimal).boxed()
        }
        DataType::Text { .. } => prop_oneof!["[ab]{0,3}", "[\0\u{1}\u{2}aé]{0,4}", "[a-c]{11,14}", "\\PC{0,20}"]
            .prop_map(|v| Value::Text(v.into()))
            .boxed(),
        DataType::Char { .. } => prop_oneof!["[ab]{0,3}", "[\0\u{1}\u{2}aé ]{0,4}", "\\PC{0,20}"]
            .prop_map(|v| Value::Text(v.trim_end_matches(' ').into()))
            .boxed(),
        DataType::Uuid => {
            prop_oneof![0..3u128, Just(u128::MAX), Just(1 << 127), any::<u128>()].prop_map(Value::Uuid).boxed()
        }
        DataType::Bytea => {
            prop_oneof![vec(0..3u8, 0..4), vec(any::<u8>(), 0..30)].prop_map(|v| Value::Bytes(v.into())).boxed()
        }
        _ => {
            let (lo, hi) = int_limits(data_type);
            let small = lo.max(-2)..=2i64;
            prop_oneof![small, Just(lo), Just(hi), lo..=hi].prop_map(Value::Int).boxed()
        }
    }
}

/// A table `t` with columns `c0`, `c1`, ...; their ids are 10, 20, ..., so that no test takes an id for a position.
pub(crate) fn table(columns: &[(DataType, bool)]) -> Arc<TableSchema> {
    let column = |(i, (data_type, nullable)): (usize, &(DataType, bool))| {
        Column::new(id(i), format!("c{i}"), *data_type, *nullable)
    };
    Arc::new(TableSchema::new(TableId(1), "t", columns.iter().enumerate().map(column).collect()))
}

/// Id of the column at `position` of a [`table`].
pub(crate) fn id(position: usize) -> ColumnId {
    ColumnId(position as u32 * 10 + 10)
}

/// A table of up to `columns` columns and up to `rows` rows for it.
pub(crate) fn table_and_rows(
    columns: usize,
    rows: usize,
) -> impl Strategy<Value = (Arc<TableSchema>, Vec<Vec<Value>>)> {
    vec((data_type(), any::<bool>()), 1..=columns).prop_flat_map(move |columns| {
        let row: Vec<_> = columns.iter().map(|(data_type, nullable)| value(*data_type, *nullable)).collect();
        (Just(table(&columns)), vec(row, 0..=rows))
    })
}

/// The rows as a batch of the table.
pub(crate) fn batch(schema: &TableSchema, rows: &[Vec<Value>]) -> RecordBatch {
    let column = |i: usize| array_of(rows.iter().map(|row| &row[i]), schema.columns[i].data_type).unwrap();
    let arrays: Vec<ArrayRef> = (0..schema.columns.len()).map(column).collect();
    RecordBatch::try_new(schema.arrow(), arrays).unwrap()
}
