//! Transactions that are run again after a conflict.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mainstem::{Connection, Database, Error, RetryOptions};

use super::super::support::quiet;

fn counter() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE c (id INTEGER PRIMARY KEY, n BIGINT); INSERT INTO c VALUES (1, 0)").unwrap();
    (database, connection)
}

fn value(connection: &Connection) -> i64 {
    connection.query_row("SELECT n FROM c WHERE id = 1", ()).unwrap().get(0).unwrap()
}

fn patient() -> RetryOptions {
    RetryOptions::new().attempts_max(10_000).time_max(Duration::from_secs(120)).wait_max(Duration::from_millis(20))
}

#[test]
fn threads_that_read_and_write_one_row_lose_nothing() {
    let (database, connection) = counter();
    let attempts = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let connection = database.connect().unwrap();
                for _ in 0..25 {
                    let add = |transaction: &mainstem::Transaction<'_>| {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        let n: i64 = transaction.query_row("SELECT n FROM c WHERE id = 1", ())?.get(0)?;
                        std::thread::yield_now();
                        transaction.execute_with("UPDATE c SET n = $1 WHERE id = 1", [n + 1])?;
                        Ok(())
                    };
                    connection.run_transaction_with(&patient(), add).unwrap();
                }
            });
        }
    });
    assert_eq!(value(&connection), 100);
    assert!(attempts.into_inner() >= 100);
}

/// A transaction that meets another committer's row each time.
fn always_late(database: &Database, connection: &Connection, options: &RetryOptions) -> (u32, Error) {
    let other = database.connect().unwrap();
    let mut attempts = 0;
    let outcome = connection.run_transaction_with(options, |transaction| {
        attempts += 1;
        transaction.query_row("SELECT n FROM c WHERE id = 1", ())?;
        other.execute("UPDATE c SET n = n + 1 WHERE id = 1")?;
        transaction.execute("UPDATE c SET n = -1 WHERE id = 1")
    });
    (attempts, outcome.unwrap_err())
}

#[test]
fn it_ends_with_the_last_conflict() {
    let (database, connection) = counter();
    let (attempts, error) = always_late(&database, &connection, &RetryOptions::new().attempts_max(3));
    assert_eq!((attempts, error.sqlstate()), (3, "40001"));
    let (attempts, error) = always_late(&database, &connection, &RetryOptions::new().attempts_max(0));
    assert_eq!((attempts, error.sqlstate()), (1, "40001"));
    let began = Instant::now();
    let short = patient().time_max(Duration::from_millis(60));
    let (attempts, error) = always_late(&database, &connection, &short);
    assert_eq!(error.sqlstate(), "40001");
    assert!(attempts > 1 && began.elapsed() < Duration::from_secs(20), "{attempts} attempts");
    assert_eq!(value(&connection), i64::from(3 + 1 + attempts));
}

#[test]
fn a_conflict_at_the_commit_and_one_that_was_swallowed_are_run_again() {
    let (database, connection) = counter();
    let other = database.connect().unwrap();
    let mut attempts = 0;
    let outcome = connection.run_transaction(|transaction| {
        attempts += 1;
        if attempts < 3 {
            transaction.query_row("SELECT n FROM c WHERE id = 1", ())?;
            other.execute("UPDATE c SET n = n + 1 WHERE id = 1")?;
        }
        // The closure does not look whether it succeeded.
        let _ = transaction.execute("UPDATE c SET n = n + 10 WHERE id = 1");
        Ok(attempts)
    });
    assert_eq!((outcome.unwrap(), value(&connection)), (3, 12));
}

#[test]
fn other_errors_and_panics_roll_back_once() {
    let (_database, connection) = counter();
    let mut attempts = 0;
    let error = connection
        .run_transaction(|transaction| {
            attempts += 1;
            transaction.execute("UPDATE c SET n = 5 WHERE id = 1")?;
            transaction.execute("INSERT INTO c VALUES (1, 1)")
        })
        .unwrap_err();
    assert_eq!((attempts, error.sqlstate(), value(&connection)), (1, "23505", 0));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.run_transaction(|transaction| -> mainstem::Result<()> {
            transaction.execute("UPDATE c SET n = 6 WHERE id = 1")?;
            panic!("the closure gives up")
        })
    }));
    assert!(caught.is_err());
    assert_eq!(value(&connection), 0);
    assert_eq!(connection.run_transaction(|t| t.execute("UPDATE c SET n = 7 WHERE id = 1")).unwrap(), 1);
    connection.execute("BEGIN").unwrap();
    assert_eq!(connection.run_transaction(|t| t.execute("SELECT 1")).unwrap_err().sqlstate(), "25001");
}

#[test]
fn waiting_can_be_interrupted() {
    let (database, connection) = counter();
    connection.execute("SET statement_timeout = '50ms'").unwrap();
    let slow = patient().wait_first(Duration::from_secs(60)).wait_max(Duration::from_secs(60));
    let began = Instant::now();
    let (attempts, error) = always_late(&database, &connection, &slow);
    assert_eq!((attempts, error.sqlstate()), (1, "57014"));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_async_twin_runs_again_too() {
    let (database, connection) = counter();
    let other = database.connect().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let waiting = database.connect_async().unwrap();
    let mut attempts = 0;
    let outcome = runtime.block_on(waiting.run_transaction(async |transaction: &mainstem::AsyncTransaction| {
        attempts += 1;
        let n: i64 = transaction.query_row("SELECT n FROM c WHERE id = 1", ()).await?.get(0)?;
        if attempts < 4 {
            other.execute("UPDATE c SET n = n + 1 WHERE id = 1")?;
        }
        transaction.execute_with("UPDATE c SET n = $1 WHERE id = 1", [n * 100]).await
    }));
    assert_eq!((outcome.unwrap(), attempts, value(&connection)), (1, 4, 300));
    let failed = runtime.block_on(waiting.run_transaction(async |transaction: &mainstem::AsyncTransaction| {
        transaction.execute("UPDATE c SET n = 1 WHERE id = 1").await?;
        transaction.execute("INSERT INTO c VALUES (1, 1)").await
    }));
    assert_eq!((failed.unwrap_err().sqlstate(), value(&connection)), ("23505", 300));
}
