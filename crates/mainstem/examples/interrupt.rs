//! Statements that run too long: canceled from another thread, or by a time limit.
//!
//! `cargo run -p mainstem --example interrupt`

#![allow(clippy::unwrap_used, reason = "an example ends where it does not show what it is to show")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mainstem::{Database, Result};

/// Runs for hours unless it is stopped.
const ENDLESS: &str =
    "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y)
                       WHERE x * 7 % 1000003 < y * 11 % 1000033";

fn main() -> Result<()> {
    let database = Database::in_memory()?;
    let connection = database.connect()?;
    connection.execute_batch("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")?;

    // A handle may be sent anywhere. It cancels what the connection runs at that moment.
    let handle = connection.interrupt_handle();
    let (tell, told) = mpsc::channel();
    let canceler = thread::spawn(move || {
        // Until it helps: nothing may run yet when it is called first.
        while told.recv_timeout(Duration::from_millis(100)).is_err() {
            handle.interrupt();
        }
    });
    let error = connection.execute(&format!("INSERT INTO t {ENDLESS}")).unwrap_err();
    assert!(tell.send(()).is_ok() && canceler.join().is_ok());
    assert_eq!(error.sqlstate(), "57014");
    println!("canceled: {error}");

    // A time limit for every statement of the session.
    connection.execute("SET statement_timeout = '100ms'")?;
    let error = connection.execute(ENDLESS).unwrap_err();
    assert_eq!(error.sqlstate(), "57014");
    println!("canceled: {error}");

    // Nothing of a canceled statement is left, and the session goes on.
    connection.execute("RESET statement_timeout")?;
    let row = connection.query_row("SELECT count(*) FROM t", ())?;
    assert_eq!(row.get::<i64>(0)?, 1);
    Ok(())
}
