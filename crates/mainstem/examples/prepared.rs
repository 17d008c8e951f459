//! Prepared statements: parsed once, run with typed values.
//!
//! `cargo run -p mainstem --example prepared`

#![allow(clippy::unwrap_used, reason = "an example ends where it does not show what it is to show")]

use mainstem::{Database, Date, Decimal, Result, Timestamp, ToValue};

fn main() -> Result<()> {
    let connection = Database::in_memory()?.connect()?;
    connection.execute(
        "CREATE TABLE booking (id BIGINT PRIMARY KEY, day DATE, at TIMESTAMP, amount DECIMAL(10, 2), note TEXT, scan BYTEA)",
    )?;

    // Values are bound by position: a tuple of whatever types the columns have. `None` is NULL.
    let insert = connection.prepare("INSERT INTO booking VALUES ($1, $2, $3, $4, $5, $6)")?;
    assert_eq!(insert.parameter_count(), 6);
    let day = Date::new(2024, 2, 29)?;
    let at = Timestamp::from_micros(1_709_209_845_000_000);
    insert.execute((1_i64, day, at, Decimal::new(1_999, 2)?, "it's", vec![0_u8, 255]))?;
    insert.execute((2_i64, day, None::<Timestamp>, "7.5".parse::<Decimal>()?, None::<&str>, None::<Vec<u8>>))?;
    // Text spells a value of any type, as a literal does.
    insert.execute(("3", "2024-03-01", "2024-03-01 08:00:00", "0.01", "spelled", "\\xcafe"))?;

    let select = connection.prepare("SELECT amount, note FROM booking WHERE day = $1 AND amount > $2 ORDER BY id")?;
    let mut amounts = Vec::new();
    for row in select.query((day, 1))? {
        amounts.push(row?.get::<Decimal>("amount")?.to_string());
    }
    assert_eq!(amounts, ["19.99", "7.50"]);

    // When the types differ from run to run, or are many: a slice of values.
    let by_choice: Vec<&dyn ToValue> = vec![&day, &10];
    assert_eq!(select.query_row(&by_choice)?.get::<&str>("note")?, "it's");
    assert!(select.query_optional((day, 1_000))?.is_none());

    // What the statement is, is known before it runs.
    let columns = select.columns()?;
    assert_eq!(
        columns.iter().map(|c| format!("{} {}", c.name(), c.data_type())).collect::<Vec<_>>(),
        ["amount numeric(10,2)", "note text"]
    );

    // Wrong values are refused, with the number of the parameter.
    let error = select.query_row(("someday", 1)).unwrap_err();
    assert_eq!(error.sqlstate(), "22007");
    println!("refused: {error}");
    assert_eq!(select.query_row((day, true)).unwrap_err().sqlstate(), "42804");
    assert_eq!(select.query_row([day]).unwrap_err().sqlstate(), "08P01");
    Ok(())
}
