//! Values of chrono, uuid, rust_decimal and serde_json: into the database, and out of it.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use mainstem::{Connection, Database, Date, FromValue, Time, Timestamp, TimestampTz, ToValue, named_params};
use rust_decimal::Decimal;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::support::{code, quiet, rows};

/// A table with a column `v` of type `data_type`.
fn with_column(data_type: &str) -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute(&format!("CREATE TABLE t (k SERIAL PRIMARY KEY, v {data_type})")).unwrap();
    (database, connection)
}

/// `value` bound to a parameter, appended, and read again each time.
fn stored<T>(connection: &Connection, value: T) -> Vec<Option<T>>
where
    T: ToValue + for<'a> FromValue<'a> + Copy,
{
    connection.execute("DELETE FROM t").unwrap();
    connection.execute_with("INSERT INTO t (v) VALUES ($1)", [value]).unwrap();
    connection.execute_with("INSERT INTO t (v) SELECT :v FROM generate_series(1, 1)", [("v", value)]).unwrap();
    let mut appender = connection.appender_to_columns("t", &["v"]).unwrap();
    appender.append_row((value,)).unwrap();
    appender.finish().unwrap();
    let read = connection.query_with("SELECT v FROM t ORDER BY k", ()).unwrap();
    read.map(|row| row.unwrap().get::<Option<T>>(0).unwrap()).collect()
}

/// What reading `sql` as a `T` fails with.
fn refused<T: for<'a> FromValue<'a> + std::fmt::Debug>(connection: &Connection, sql: &str) -> (&'static str, String) {
    let error = connection.query_row(sql, ()).unwrap().get::<T>(0).unwrap_err();
    (error.sqlstate(), error.message().to_owned())
}

fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap()
}

#[test]
fn days_of_chrono_are_dates() {
    let (_database, connection) = with_column("DATE");
    for date in [day(1970, 1, 1), day(2024, 2, 29), day(1, 1, 1), day(0, 12, 31), day(-4712, 1, 1), day(9999, 12, 31)] {
        assert_eq!(stored(&connection, date), [Some(date); 3]);
    }
    for last in [NaiveDate::MIN, NaiveDate::MAX] {
        assert_eq!(NaiveDate::try_from(Date::from(last)).unwrap(), last);
    }
    assert_eq!(Date::from(day(2024, 2, 29)), Date::new(2024, 2, 29).unwrap());
    assert_eq!(
        connection.query_row("SELECT $1::text", [day(2024, 2, 29)]).unwrap().get::<&str>(0).unwrap(),
        "2024-02-29"
    );
    for days in [i32::MIN, i32::MAX, Date::from(NaiveDate::MAX).days() + 1, Date::from(NaiveDate::MIN).days() - 1] {
        assert_eq!(NaiveDate::try_from(Date::from_days(days)).unwrap_err().sqlstate(), "22008", "{days}");
    }
    let far = connection.query_row("SELECT $1 AS far", [Date::from_days(96_000_000)]).unwrap();
    let error = far.get::<NaiveDate>("far").unwrap_err();
    assert_eq!(error.sqlstate(), "22008");
    assert!(error.message().starts_with("column \"far\": 264809-01-27"), "{error}");
    assert!(error.message().ends_with(" is out of range for chrono::NaiveDate"), "{error}");
    assert_eq!(code(&connection, "SELECT 'infinity'::date"), "22007", "there is none to be read");
    assert_eq!(refused::<NaiveDate>(&connection, "SELECT NULL::date").0, "22004");
    assert_eq!(refused::<NaiveDate>(&connection, "SELECT now()").0, "42804");
    connection.execute_with("INSERT INTO t (v) VALUES ($1)", [None::<NaiveDate>]).unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t WHERE v IS NULL"), ["1"]);
}

#[test]
fn times_of_chrono_are_times() {
    let (_database, connection) = with_column("TIME");
    let time = |h, m, s, micros| NaiveTime::from_hms_micro_opt(h, m, s, micros).unwrap();
    for time in [time(0, 0, 0, 0), time(12, 30, 15, 250_000), time(23, 59, 59, 999_999)] {
        assert_eq!(stored(&connection, time), [Some(time); 3]);
    }
    // What is less than a microsecond is cut, and a leap second is none.
    let nanos = NaiveTime::from_hms_nano_opt(1, 2, 3, 4_999).unwrap();
    assert_eq!(Time::from(nanos).to_string(), "01:02:03.000004");
    let leap = |h, m| NaiveTime::from_hms_nano_opt(h, m, 59, 1_500_000_000).unwrap();
    assert_eq!(Time::from(leap(12, 0)).to_string(), "12:01:00.5");
    assert_eq!(Time::from(leap(23, 59)).to_string(), "23:59:59.999999");
}

#[test]
fn instants_of_chrono_are_timestamps() {
    let (_database, connection) = with_column("TIMESTAMP");
    let at = |date: NaiveDate, micros: i64| date.and_time(NaiveTime::MIN) + TimeDelta::microseconds(micros);
    for time in [
        at(day(1970, 1, 1), 0),
        at(day(2024, 2, 29), 1),
        at(day(1969, 12, 31), 86_399_999_999),
        at(day(-4000, 1, 1), 5),
    ] {
        assert_eq!(stored(&connection, time), [Some(time); 3]);
    }
    for far in [i64::MIN, i64::MAX] {
        assert_eq!(NaiveDateTime::try_from(Timestamp::from_micros(far)).unwrap_err().sqlstate(), "22008");
        assert_eq!(DateTime::<Utc>::try_from(TimestampTz::from_micros(far)).unwrap_err().sqlstate(), "22008");
    }
    for last in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
        let whole = NaiveDateTime::try_from(Timestamp::from(last)).unwrap();
        assert!((last - whole).num_microseconds() == Some(0), "{last} {whole}");
    }
    let (_database, connection) = with_column("TIMESTAMPTZ");
    let utc = Utc.with_ymd_and_hms(2024, 6, 30, 23, 30, 0).unwrap();
    assert_eq!(stored(&connection, utc), [Some(utc); 3]);
    let east = utc.with_timezone(&FixedOffset::east_opt(2 * 3_600).unwrap());
    assert_eq!(stored(&connection, east), [Some(east); 3], "the same instant");
    assert_eq!(rows(&connection, "SELECT v::text FROM t LIMIT 1"), ["2024-06-30 23:30:00+00"]);
    let read: DateTime<FixedOffset> = connection.query_row("SELECT v FROM t LIMIT 1", ()).unwrap().get(0).unwrap();
    assert_eq!(read.offset().local_minus_utc(), 0, "the offset is not kept");
    assert_eq!(
        refused::<NaiveDateTime>(&connection, "SELECT v FROM t LIMIT 1").0,
        "42804",
        "an instant is no time of a calendar"
    );
    let found = connection.query_row("SELECT count(*) FROM t WHERE v = $1", [east]).unwrap();
    assert_eq!(found.get::<i64>(0).unwrap(), 3);
}

#[test]
fn uuids_are_uuids() {
    let (_database, connection) = with_column("UUID");
    for id in [Uuid::nil(), Uuid::max(), Uuid::from_u128(0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11)] {
        assert_eq!(stored(&connection, id), [Some(id); 3]);
        assert_eq!(Uuid::from(mainstem::Uuid::from(id)), id);
    }
    assert_eq!(rows(&connection, "SELECT v::text FROM t LIMIT 1"), ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]);
    assert_eq!(refused::<Uuid>(&connection, "SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'").0, "42804");
    assert_eq!(refused::<Uuid>(&connection, "SELECT NULL::uuid").0, "22004");
}

#[test]
fn decimals_are_exact_or_refused() {
    let (_database, connection) = with_column("DECIMAL(38, 10)");
    let decimal = |text: &str| text.parse::<Decimal>().unwrap();
    for text in ["0", "-0.0", "12.50", "-0.0000000001", "1234567890123456789.0123456789", "-7922816251426433759"] {
        let value = decimal(text);
        assert_eq!(stored(&connection, value), [Some(value); 3], "{text}");
    }
    let read = |sql: &str| connection.query_row(sql, ()).unwrap().get::<Decimal>(0);
    for (sql, text) in [
        ("SELECT 12.50", "12.50"),
        ("SELECT 7", "7"),
        ("SELECT 9223372036854775807", "9223372036854775807"),
        ("SELECT 79228162514264337593543950335.0", "79228162514264337593543950335"),
        ("SELECT 79228162514264337593543950335.000", "79228162514264337593543950335"),
        ("SELECT -0.00000000000000000000000000010000::decimal(38, 32)", "-0.0000000000000000000000000001"),
        ("SELECT 0::decimal(38, 38)", "0"),
    ] {
        assert_eq!(read(sql).unwrap(), decimal(text), "{sql}");
    }
    // One more, one digit too far, and digits that would have to be rounded away.
    for sql in [
        "SELECT 79228162514264337593543950336.0",
        "SELECT 0.00000000000000000000000000001::decimal(38, 29)",
        "SELECT 7922816251426433759354395033.55",
        "SELECT -99999999999999999999999999999999999999",
    ] {
        let (state, message) = refused::<Decimal>(&connection, sql);
        assert_eq!(state, "22003", "{sql}");
        assert!(message.contains("has more digits than a rust_decimal::Decimal"), "{message}");
    }
    for bound in [Decimal::MAX, Decimal::MIN] {
        let row = connection.query_row("SELECT $1", [bound]).unwrap();
        assert_eq!(row.get::<Decimal>(0).unwrap(), bound);
    }
    let smallest = Decimal::new(1, 28);
    assert_eq!(connection.query_row("SELECT $1", [smallest]).unwrap().get::<Decimal>(0).unwrap(), smallest);
    let error = connection.execute_with("INSERT INTO t (v) VALUES ($1)", [Decimal::MAX]).unwrap_err();
    assert_eq!(error.sqlstate(), "22003", "28 digits before the point, and 10 behind it, are all there is: {error}");
    assert_eq!(refused::<Decimal>(&connection, "SELECT 1.5::double precision").0, "42804");
    assert_eq!(refused::<Decimal>(&connection, "SELECT NULL::numeric").0, "22004");
}

#[test]
fn any_value_is_json() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let json_of = |sql: &str| connection.query_row(&format!("SELECT {sql}"), ()).unwrap().get::<Json>(0).unwrap();
    for (sql, json) in [
        ("NULL", json!(null)),
        ("true", json!(true)),
        ("7::smallint", json!(7)),
        ("(-2147483648)::integer", json!(-2_147_483_648_i64)),
        ("9223372036854775807", json!(i64::MAX)),
        ("0.1::real", json!(0.1)),
        ("3.5e38::double precision", json!(3.5e38)),
        ("'-0.0'::double precision", json!(0.0)),
        ("'NaN'::double precision", json!("NaN")),
        ("'Infinity'::real", json!("Infinity")),
        ("'-Infinity'::double precision", json!("-Infinity")),
        // Numbers where JSON's are the same.
        ("12.50", json!(12.5)),
        ("-0.001", json!(-0.001)),
        ("18446744073709551615::numeric", json!(u64::MAX)),
        ("18446744073709551616::numeric", json!("18446744073709551616")),
        ("0.1234567890123456789", json!("0.1234567890123456789")),
        ("date '2024-02-29'", json!("2024-02-29")),
        ("time '12:30'", json!("12:30:00")),
        ("timestamp '2024-02-29 12:30:00.5'", json!("2024-02-29T12:30:00.5")),
        ("timestamptz '2024-02-29 12:30:00+02'", json!("2024-02-29T10:30:00+00:00")),
        ("timestamp '0001-01-01' - interval '1 day'", json!("0001-12-31T00:00:00 BC")),
        ("'a \"b\"\n'", json!("a \"b\"\n")),
        ("'\\x00ff'::bytea", json!("\\x00ff")),
        ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ] {
        assert_eq!(json_of(sql), json, "{sql}");
    }
    assert!(json_of("'-0.0'::double precision").as_f64().unwrap().is_sign_positive());
    let row = connection.query_row("SELECT 1 AS id, 'x' AS name, NULL AS id, 2.5 AS id_3, 3 AS id", ()).unwrap();
    assert_eq!(row.to_json_object(), json!({ "id": 1, "name": "x", "id_3_": null, "id_3": 2.5, "id_5": 3 }));
    assert_eq!(row.to_json_array(), json!([1, "x", null, 2.5, 3]));
}

#[test]
fn json_is_bound_by_what_it_is() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let typed = |value: Json| {
        let row = connection.query_row("SELECT pg_typeof($1)::text, $1::text", [&value]).unwrap();
        (row.get::<String>(0).unwrap(), row.get::<Option<String>>(1).unwrap())
    };
    let is = |data_type: &str, text: &str| (data_type.to_owned(), Some(text.to_owned()));
    assert_eq!(typed(json!(true)), is("boolean", "true"));
    assert_eq!(typed(json!(-7)), is("bigint", "-7"));
    assert_eq!(typed(json!(u64::MAX)), is("numeric", "18446744073709551615"));
    assert_eq!(typed(json!(1.5)), is("double precision", "1.5"));
    assert_eq!(typed(json!("a")), is("text", "a"));
    assert_eq!(typed(json!([1, "b", null])), is("text", "[1,\"b\",null]"));
    assert_eq!(typed(json!({ "a": [true] })), is("text", "{\"a\":[true]}"));
    assert_eq!(typed(json!(null)).1, None);

    connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, n INTEGER)").unwrap();
    let object = json!({ "tags": ["x", "y"] });
    // Each shape of parameters, on the point path and off it, and appended.
    connection.execute_with("INSERT INTO t VALUES ($1, $2, $3)", (json!(1), &object, json!(5))).unwrap();
    connection.execute_with("INSERT INTO t VALUES ($1, $2, $3)", [json!(2), object.clone(), json!(null)]).unwrap();
    connection.execute_with("INSERT INTO t VALUES ($1, $2, $3)", vec![json!(3), object.clone(), json!(6)]).unwrap();
    let any: [&dyn ToValue; 3] = [&4, &Some(object.clone()), &json!(7)];
    connection.execute_with("INSERT INTO t SELECT $1, $2, $3 FROM generate_series(1, 1)", any).unwrap();
    let named = named_params! { ":k": json!(5), ":v": Box::new(object.clone()), ":n": 8 };
    connection.execute_with("INSERT INTO t VALUES (:k, :v, :n)", named).unwrap();
    let mut appender = connection.appender("t").unwrap();
    appender.append_row((json!(6), &object, json!(9))).unwrap();
    appender.finish().unwrap();
    let expected: Vec<String> = (1..)
        .zip(["5", "NULL", "6", "7", "8", "9"])
        .map(|(k, n)| format!("{k}|{{\"tags\":[\"x\",\"y\"]}}|{n}"))
        .collect();
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), expected);
    let read: Json =
        serde_json::from_str(connection.query_row("SELECT v FROM t WHERE k = $1", [json!(1)]).unwrap().get(0).unwrap())
            .unwrap();
    assert_eq!(read, object);
    let error = connection.execute_with("INSERT INTO t (k, n) VALUES ($1, $2)", (7, json!([1]))).unwrap_err();
    assert_eq!(error.sqlstate(), "22P02", "an array is no integer: {error}");

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let connection = database.connect_async().unwrap();
        let row = connection.query_row("SELECT $1::text", [&object]).await.unwrap();
        assert_eq!(row.get::<String>(0).unwrap(), object.to_string());
    });
}
