#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::logical_expr::{cast, col, lit, not};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::ids::{ColumnId, TableId};

use super::*;

/// `i` INTEGER, `t` TEXT, `b` BOOLEAN, `f` DOUBLE PRECISION, `d` DATE.
fn schema() -> TableSchema {
    let column = |name: &str, data_type| ColumnDefinition::new(name, data_type, true);
    TableDefinition::new(
        "t",
        vec![
            column("i", DataType::Integer),
            column("t", DataType::Text { max_chars: None }),
            column("b", DataType::Boolean),
            column("f", DataType::Double),
            column("d", DataType::Date),
        ],
    )
    .into_schema(TableId(1))
    .unwrap()
}

fn compare(column: u32, op: CompareOp, value: Value) -> Predicate {
    Predicate::Compare { column: ColumnId(column), op, value }
}

#[test]
fn equivalent_filters_are_translated() {
    let int = |n| Value::Int(n);
    for (expr, expected) in [
        (col("i").gt(lit(3_i32)), vec![compare(0, CompareOp::Gt, int(3))]),
        (lit(3_i32).gt(col("i")), vec![compare(0, CompareOp::Lt, int(3))]),
        (lit(3_i32).lt(col("i")), vec![compare(0, CompareOp::Gt, int(3))]),
        (lit(3_i32).lt_eq(col("i")), vec![compare(0, CompareOp::GtEq, int(3))]),
        (lit(3_i32).gt_eq(col("i")), vec![compare(0, CompareOp::LtEq, int(3))]),
        (
            col("i").between(lit(1_i32), lit(2_i32)),
            vec![compare(0, CompareOp::GtEq, int(1)), compare(0, CompareOp::LtEq, int(2))],
        ),
        (
            col("i").eq(lit(1_i32)).or(col("i").eq(lit(2_i32))).or(col("i").eq(lit(3_i32))),
            vec![Predicate::In { column: ColumnId(0), values: vec![int(1), int(2), int(3)] }],
        ),
        (
            col("i").in_list(vec![lit(1_i32), lit(ScalarValue::Int32(None))], false),
            vec![Predicate::In { column: ColumnId(0), values: vec![int(1)] }],
        ),
        (
            col("i").eq(lit(1_i32)).or(lit(ScalarValue::Boolean(None))).or(col("i").eq(lit(3_i32))),
            vec![Predicate::In { column: ColumnId(0), values: vec![int(1), int(3)] }],
        ),
        (
            col("i").in_list(vec![lit(1_i32), lit(2_i32)], true),
            vec![compare(0, CompareOp::NotEq, int(1)), compare(0, CompareOp::NotEq, int(2))],
        ),
        (col("t").is_null(), vec![Predicate::IsNull { column: ColumnId(1) }]),
        (col("t").is_not_null(), vec![Predicate::IsNotNull { column: ColumnId(1) }]),
        (col("b"), vec![compare(2, CompareOp::Eq, Value::Boolean(true))]),
        (not(col("b")), vec![compare(2, CompareOp::Eq, Value::Boolean(false))]),
        (
            col("t").like(lit("ab%")),
            vec![
                compare(1, CompareOp::GtEq, Value::Text("ab".into())),
                compare(1, CompareOp::Lt, Value::Text("ac".into())),
            ],
        ),
        (
            col("t").like(lit("\u{D7FF}%")),
            vec![
                compare(1, CompareOp::GtEq, Value::Text("\u{D7FF}".into())),
                compare(1, CompareOp::Lt, Value::Text("\u{E000}".into())),
            ],
        ),
        (col("f").eq(lit(-0.0_f64)), vec![compare(3, CompareOp::Eq, Value::Double(0.0))]),
    ] {
        assert_eq!(translate(&expr, &schema()), Some(expected), "{expr}");
    }
}

#[test]
fn what_does_not_is_left() {
    for expr in [
        col("i").gt(lit(3_i64)),
        col("i").gt(col("f")),
        col("i").eq(lit(ScalarValue::Int32(None))),
        col("i").eq(lit(1_i32)).or(col("f").eq(lit(1.0_f64))),
        col("i").eq(lit(1_i32)).or(col("i").gt(lit(5_i32))),
        col("i").in_list(vec![lit(1_i32), lit(ScalarValue::Int32(None))], true),
        col("i").in_list(vec![lit(1_i32), col("i")], false),
        col("t").like(lit("a_b%")),
        col("t").like(lit("%ab")),
        col("t").like(lit("a%b%")),
        col("t").not_like(lit("ab%")),
        col("t").ilike(lit("ab%")),
        col("t").like(lit("\u{10FFFF}%")),
        col("i"),
        col("elsewhere").gt(lit(1_i32)),
        (col("i") + lit(1_i32)).gt(lit(1_i32)),
        col("i").between(lit(1_i32), lit(2_i64)),
    ] {
        assert_eq!(translate(&expr, &schema()), None, "{expr}");
    }
}

#[test]
fn a_date_beside_a_timestamp_is_compared_with_a_day() {
    const DAY: i64 = 86_400_000_000;
    let micros = |unit| ArrowType::Timestamp(unit, None);
    let day = || cast(col("d"), micros(TimeUnit::Microsecond));
    let datetime = |micros: i64| lit(ScalarValue::TimestampMicrosecond(Some(micros), None));
    let is = |op, day| Some(vec![compare(4, op, Value::Int(day))]);
    let never = Some(vec![Predicate::In { column: ColumnId(4), values: Vec::new() }]);
    let known = Some(vec![Predicate::IsNotNull { column: ColumnId(4) }]);
    for (at, floor) in [(0, 0), (2 * DAY, 2), (-2 * DAY, -2)] {
        assert_eq!(translate(&day().lt(datetime(at)), &schema()), is(CompareOp::Lt, floor));
        assert_eq!(translate(&day().lt_eq(datetime(at)), &schema()), is(CompareOp::LtEq, floor));
        assert_eq!(translate(&day().gt(datetime(at)), &schema()), is(CompareOp::Gt, floor));
        assert_eq!(translate(&day().gt_eq(datetime(at)), &schema()), is(CompareOp::GtEq, floor));
        assert_eq!(translate(&day().eq(datetime(at)), &schema()), is(CompareOp::Eq, floor));
        assert_eq!(translate(&day().not_eq(datetime(at)), &schema()), is(CompareOp::NotEq, floor));
        assert_eq!(translate(&datetime(at).lt(day()), &schema()), is(CompareOp::Gt, floor));
    }
    for (at, floor) in [(1, 0), (DAY - 1, 0), (-1, -1), (-DAY - 1, -2)] {
        assert_eq!(translate(&day().lt(datetime(at)), &schema()), is(CompareOp::LtEq, floor));
        assert_eq!(translate(&day().lt_eq(datetime(at)), &schema()), is(CompareOp::LtEq, floor));
        assert_eq!(translate(&day().gt(datetime(at)), &schema()), is(CompareOp::Gt, floor));
        assert_eq!(translate(&day().gt_eq(datetime(at)), &schema()), is(CompareOp::Gt, floor));
        assert_eq!(translate(&day().eq(datetime(at)), &schema()), never);
        assert_eq!(translate(&day().not_eq(datetime(at)), &schema()), known);
        assert_eq!(translate(&datetime(at).gt_eq(day()), &schema()), is(CompareOp::LtEq, floor));
    }
    assert_eq!(
        translate(&day().between(datetime(1), datetime(DAY)), &schema()),
        Some(vec![compare(4, CompareOp::Gt, Value::Int(0)), compare(4, CompareOp::LtEq, Value::Int(1))])
    );
    for expr in [
        cast(col("d"), micros(TimeUnit::Second)).lt(datetime(0)),
        cast(col("d"), ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))).lt(datetime(0)),
        cast(col("i"), micros(TimeUnit::Microsecond)).lt(datetime(0)),
        day().lt(lit(ScalarValue::TimestampMicrosecond(None, None))),
        day().lt(day()),
    ] {
        assert_eq!(translate(&expr, &schema()), None, "{expr}");
    }
}
