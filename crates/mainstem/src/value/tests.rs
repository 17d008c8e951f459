//! Values from Rust, to Rust, and as text.

use std::time::{Duration, SystemTime};

use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use super::{Date, Decimal, FromValue, Params, Timestamp, TimestampTz, ToValue, ValueRef};

fn shown(values: &[ValueRef<'_>]) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}

#[test]
fn rust_types_have_sql_types() {
    let decimal = Decimal::new(-1250, 2).unwrap();
    let params = (true, 1_i16, 2_i32, 3_i64, 1.5_f32, 2.5_f64, decimal, "text", String::from("s"), vec![1_u8, 2]);
    params.with_values(|values| {
        let types: Vec<String> = values.iter().map(|v| v.data_type().unwrap().to_string()).collect();
        assert_eq!(
            types,
            [
                "boolean",
                "smallint",
                "integer",
                "bigint",
                "real",
                "double precision",
                "numeric(4,2)",
                "text",
                "text",
                "bytea"
            ]
        );
    });
    (Date::from_days(1), Timestamp::from_micros(2), TimestampTz::from_micros(3), None::<i32>, Some("x"), u32::MAX)
        .with_values(|values| {
            assert_eq!(values[0].data_type(), Some(DataType::Date));
            assert_eq!(values[1].data_type(), Some(DataType::Timestamp));
            assert_eq!(values[2].data_type(), Some(DataType::TimestampTz));
            assert_eq!(values[3].data_type(), None);
            assert_eq!(values[4], ValueRef::Text("x"));
            assert_eq!(values[5], ValueRef::BigInt(4_294_967_295));
        });
}

#[test]
fn parameters_come_in_many_shapes() {
    let one_by_one = ["Integer(1)", "Integer(2)"];
    assert_eq!((1, 2).with_values(shown), one_by_one);
    assert_eq!([1, 2].with_values(shown), one_by_one);
    fn by_reference(params: impl Params) -> Vec<String> {
        params.with_values(shown)
    }
    assert_eq!(by_reference(&[1, 2][..]), one_by_one);
    assert_eq!(vec![1, 2].with_values(shown), one_by_one);
    assert_eq!([1, 2][..].with_values(shown), one_by_one);
    let mixed: [&dyn ToValue; 3] = [&1, &"a", &None::<f64>];
    assert_eq!(mixed.with_values(shown), ["Integer(1)", "Text(\"a\")", "Null"]);
    let wide = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "last");
    assert_eq!(wide.with_values(|values| (values.len(), shown(values)[15].clone())), (16, "Text(\"last\")".into()));
    assert!(().with_values(shown).is_empty());
}

fn code<'a, T: FromValue<'a>>(value: ValueRef<'a>) -> &'static str {
    T::from_value(value).map(|_| ()).unwrap_err().sqlstate()
}

#[test]
fn values_are_read_as_what_they_are_or_not_at_all() {
    assert_eq!(i64::from_value(ValueRef::SmallInt(7)).unwrap(), 7);
    assert_eq!(i16::from_value(ValueRef::BigInt(-32_768)).unwrap(), i16::MIN);
    assert_eq!(code::<i16>(ValueRef::BigInt(32_768)), "22003");
    assert_eq!(code::<u32>(ValueRef::Integer(-1)), "22003");
    assert_eq!(code::<i32>(ValueRef::Text("1")), "42804");
    assert_eq!(code::<i32>(ValueRef::Null), "22004");
    assert_eq!(Option::<i32>::from_value(ValueRef::Null).unwrap(), None);
    assert_eq!(Option::<i32>::from_value(ValueRef::Integer(5)).unwrap(), Some(5));
    assert_eq!(code::<Option<i32>>(ValueRef::Boolean(true)), "42804");
    assert_eq!(f64::from_value(ValueRef::Real(0.5)).unwrap(), 0.5);
    assert_eq!(code::<f32>(ValueRef::Double(0.5)), "42804");
    assert_eq!(code::<f64>(ValueRef::Integer(1)), "42804");
    assert_eq!(<&str>::from_value(ValueRef::Text("borrowed")).unwrap(), "borrowed");
    assert_eq!(Vec::<u8>::from_value(ValueRef::Bytes(b"ab")).unwrap(), b"ab");
    assert_eq!(Decimal::from_value(ValueRef::Integer(3)).unwrap(), Decimal::from_integer(3));
    assert_eq!(
        i128::from_value(ValueRef::Decimal(Decimal::new(10_i128.pow(37), 0).unwrap())).unwrap(),
        10_i128.pow(37)
    );
    assert_eq!(code::<i128>(ValueRef::Decimal(Decimal::new(150, 2).unwrap())), "22003");
    assert_eq!(code::<Timestamp>(ValueRef::TimestampTz(TimestampTz::from_micros(0))), "42804");
    assert_eq!(Value::from_value(ValueRef::Date(Date::from_days(3))).unwrap(), Value::Int(3));
    let message = i32::from_value(ValueRef::Text("1")).unwrap_err().to_string();
    assert_eq!(message, "a value of type text cannot be read as i32");
}

#[test]
fn stored_values_keep_the_type_of_their_column() {
    let int = Value::Int(5);
    assert_eq!(ValueRef::stored(&int, DataType::Integer), ValueRef::Integer(5));
    assert_eq!(ValueRef::stored(&int, DataType::Date), ValueRef::Date(Date::from_days(5)));
    assert_eq!(ValueRef::stored(&int, DataType::TimestampTz), ValueRef::TimestampTz(TimestampTz::from_micros(5)));
    let decimal = Value::Decimal(12_345);
    let ValueRef::Decimal(read) = ValueRef::stored(&decimal, DataType::Decimal { precision: 9, scale: 3 }) else {
        panic!("a decimal became something else")
    };
    assert_eq!(read.to_string(), "12.345");
    assert_eq!(ValueRef::Double(-0.0).to_stored(), Value::Double(0.0));
}

#[test]
fn decimals_are_written_and_read() {
    for text in
        ["0", "-0.5", "12.345", "-99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001"]
    {
        assert_eq!(text.parse::<Decimal>().unwrap().to_string(), text);
    }
    assert_eq!("+7.".parse::<Decimal>().unwrap().to_string(), "7");
    assert_eq!(".5".parse::<Decimal>().unwrap().to_string(), "0.5");
    for (text, code) in
        [("", "22P02"), (".", "22P02"), ("1e5", "22P02"), ("1.2.3", "22P02"), ("--1", "22P02"), (" 1", "22P02")]
    {
        assert_eq!(text.parse::<Decimal>().unwrap_err().sqlstate(), code, "{text}");
    }
    assert_eq!("1".repeat(39).parse::<Decimal>().unwrap_err().sqlstate(), "22003");
    assert_eq!(format!("0.{}", "1".repeat(300)).parse::<Decimal>().unwrap_err().sqlstate(), "22003");
    assert_eq!(Decimal::new(1, 39).unwrap_err().sqlstate(), "22003");
    assert_eq!(Decimal::new(i128::MIN, 0).unwrap_err().sqlstate(), "22003");
    for (unscaled, scale, precision) in [(0, 0, 1), (9, 0, 1), (10, 0, 2), (5, 3, 3), (-12_345, 2, 5)] {
        assert_eq!(Decimal::new(unscaled, scale).unwrap().precision(), precision, "{unscaled} {scale}");
    }
}

#[test]
fn days_and_instants_are_written_as_people_write_them() {
    for (days, text) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (11_016, "2000-02-29"),
        (-25_509, "1900-02-28"),
        (-25_508, "1900-03-01"),
        (-719_162, "0001-01-01"),
        (-719_163, "0001-12-31 BC"),
        (2_932_896, "9999-12-31"),
    ] {
        assert_eq!(Date::from_days(days).to_string(), text);
        let (year, month, day) = Date::from_days(days).ymd();
        assert_eq!(Date::new(year.try_into().unwrap(), month, day).unwrap().days(), days);
    }
    // Every day of 400 years follows the one before.
    let mut before = Date::from_days(-1).ymd();
    for days in 0..146_097 {
        let (year, month, day) = Date::from_days(days).ymd();
        let follows = match (before.2 + 1 == day, day) {
            (true, _) => (before.0, before.1) == (year, month),
            (false, 1) => before.1 % 12 + 1 == month && before.0 + i64::from(month == 1) == year,
            _ => false,
        };
        assert!(follows, "{before:?} then {year}-{month}-{day}");
        before = (year, month, day);
    }
    for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2024, 13, 1), (2024, 0, 1), (2024, 4, 31), (2024, 1, 0)] {
        assert_eq!(Date::new(year, month, day).unwrap_err().sqlstate(), "22008", "{year}-{month}-{day}");
    }
    assert_eq!(Timestamp::from_micros(-1).to_string(), "1969-12-31 23:59:59.999999");
    let last_before_christ = -719_162 * 86_400_000_000 - 1;
    assert_eq!(Timestamp::from_micros(last_before_christ).to_string(), "0001-12-31 23:59:59.999999 BC");
    assert_eq!(TimestampTz::from_micros(last_before_christ).to_string(), "0001-12-31 23:59:59.999999+00 BC");
    assert_eq!(Timestamp::from_micros(1_709_209_845_120_000).to_string(), "2024-02-29 12:30:45.12");
    for offset in [Duration::ZERO, Duration::from_micros(1), Duration::from_secs(1_700_000_000)] {
        for time in [SystemTime::UNIX_EPOCH + offset, SystemTime::UNIX_EPOCH - offset] {
            assert_eq!(SystemTime::from(TimestampTz::from(time)), time);
        }
    }
}
