//! Transactions that are run again after conflicts.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mainstem::{AsyncTransaction, Connection, Database, Error, RetryOptions, Transaction, TransactionStatus};

use crate::support::{quiet, rows};

fn with_counter() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE c (id INTEGER PRIMARY KEY, n BIGINT); INSERT INTO c VALUES (1, 0)").unwrap();
    (database, connection)
}

/// Adds one in a way that loses updates without transactions.
fn increment(transaction: &Transaction<'_>) -> mainstem::Result<i64> {
    let n = transaction.query_row("SELECT n FROM c WHERE id = 1", ())?.get::<i64>(0)? + 1;
    transaction.execute_with("UPDATE c SET n = $1 WHERE id = 1", [n])?;
    Ok(n)
}

/// Lets another connection be first, in every run.
fn loses(database: &Database, transaction: &Transaction<'_>) -> mainstem::Result<i64> {
    transaction.query_row("SELECT n FROM c WHERE id = 1", ())?;
    database.connect()?.execute("UPDATE c SET n = n + 100 WHERE id = 1")?;
    increment(transaction)
}

fn quick(attempts_max: u32) -> RetryOptions {
    RetryOptions::new().attempts_max(attempts_max).delay_max(Duration::from_millis(2))
}

#[test]
fn threads_that_count_together_lose_nothing() {
    const THREADS: usize = 6;
    const EACH: usize = 40;
    let (database, connection) = with_counter();
    let (runs, start) = (AtomicU32::new(0), Barrier::new(THREADS));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let own = database.connect().unwrap();
                start.wait();
                for _ in 0..EACH {
                    let options = RetryOptions::new().attempts_max(1_000).time_max(Duration::from_secs(600));
                    own.run_transaction_with(options, |transaction| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let n = transaction.query_row("SELECT n FROM c WHERE id = 1", ())?.get::<i64>(0)? + 1;
                        thread::yield_now();
                        transaction.execute_with("UPDATE c SET n = $1 WHERE id = 1", [n])?;
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&connection, "SELECT n FROM c"), [(THREADS * EACH).to_string()]);
    assert!(runs.into_inner() as usize > THREADS * EACH, "some of them met");
}

#[test]
fn a_conflict_of_a_statement_or_of_the_commit_is_run_again() {
    let (database, connection) = with_counter();
    // Of the statement.
    let mut runs = 0;
    let n = connection.run_transaction(|transaction| {
        runs += 1;
        if runs < 4 { loses(&database, transaction) } else { increment(transaction) }
    });
    assert_eq!((n.unwrap(), runs), (301, 4));
    // Of the commit.
    let mut runs = 0;
    let n = connection.run_transaction(|transaction| {
        runs += 1;
        let n = increment(transaction)?;
        if runs < 3 {
            database.connect()?.execute("UPDATE c SET n = n + 100 WHERE id = 1")?;
        }
        Ok::<_, Error>(n)
    });
    assert_eq!((n.unwrap(), runs), (502, 3));
    // Of a statement whose error the closure forgets: the commit has it.
    let mut runs = 0;
    connection
        .run_transaction(|transaction| {
            runs += 1;
            if runs == 1 {
                assert_eq!(loses(&database, transaction).unwrap_err().sqlstate(), "40001");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(runs, 2);
    assert_eq!(
        (rows(&connection, "SELECT n FROM c"), connection.status()),
        (vec!["602".into()], TransactionStatus::Idle)
    );
}

#[test]
fn the_last_conflict_is_returned_when_nothing_more_is_allowed() {
    let (database, connection) = with_counter();
    let mut runs = 0;
    let error = connection
        .run_transaction_with(quick(5), |transaction| {
            runs += 1;
            loses(&database, transaction)
        })
        .unwrap_err();
    assert_eq!((error.sqlstate(), runs), ("40001", 5));
    assert_eq!(
        (rows(&connection, "SELECT n FROM c"), connection.status()),
        (vec!["500".into()], TransactionStatus::Idle)
    );
    for options in [quick(1), quick(100).time_max(Duration::ZERO)] {
        let mut runs = 0;
        let error = connection
            .run_transaction_with(options, |transaction| {
                runs += 1;
                loses(&database, transaction)
            })
            .unwrap_err();
        assert_eq!((error.sqlstate(), runs), ("40001", 1), "{options:?}");
    }
}

/// An error of a program's own.
#[derive(Debug)]
enum Problem {
    Engine(Error),
    TooPoor(i64),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

#[test]
fn other_errors_roll_back_and_are_returned() {
    let (database, connection) = with_counter();
    let mut runs = 0;
    let mut once = |fails: fn(&Transaction<'_>) -> Result<(), Problem>| {
        runs += 1;
        connection.run_transaction(|transaction| {
            increment(transaction)?;
            fails(transaction)
        })
    };
    assert!(matches!(once(|_| Err(Problem::TooPoor(7))), Err(Problem::TooPoor(7))));
    let error = once(|transaction| Ok(transaction.execute("INSERT INTO c VALUES (1, 1)").map(|_| ())?));
    assert!(matches!(error, Err(Problem::Engine(e)) if e.sqlstate() == "23505"));
    let error = once(|transaction| Ok(transaction.execute("COMMIT").map(|_| ())?));
    assert!(matches!(error, Err(Problem::Engine(e)) if e.sqlstate() == "25P01"), "who commits by hand hears of it");
    assert_eq!(runs, 3);
    assert_eq!(rows(&connection, "SELECT n FROM c"), ["1"], "only what was committed by hand is there");
    // A conflict in a type of one's own is a conflict.
    let mut runs = 0;
    let done: Result<i64, Problem> = connection.run_transaction(|transaction| {
        runs += 1;
        Ok(if runs == 1 { loses(&database, transaction)? } else { increment(transaction)? })
    });
    assert_eq!((done.unwrap(), runs), (102, 2));
    // There is one transaction at a time.
    let open = connection.transaction().unwrap();
    let error = connection.run_transaction(increment).unwrap_err();
    assert_eq!((error.sqlstate(), connection.status()), ("25001", TransactionStatus::Open));
    open.rollback();
}

#[test]
fn a_panic_rolls_back() {
    let (_database, connection) = with_counter();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.run_transaction(|transaction| -> mainstem::Result<()> {
            increment(transaction)?;
            panic!("of the closure");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(
        (rows(&connection, "SELECT n FROM c"), connection.status()),
        (vec!["0".into()], TransactionStatus::Idle)
    );
    assert_eq!(connection.run_transaction(increment).unwrap(), 1);
}

#[test]
fn waits_end_with_an_interrupt_and_no_timeout_of_statements() {
    let (database, connection) = with_counter();
    // Waits are at least half as long.
    let delay = Duration::from_millis(2_500);
    let longer = RetryOptions::new().delay_min(delay).delay_max(delay).time_max(100 * delay);
    connection.execute("SET statement_timeout = '1s'").unwrap();
    let (begun, mut runs) = (Instant::now(), 0);
    let done = connection.run_transaction_with(longer, |transaction| {
        runs += 1;
        if runs == 1 { loses(&database, transaction) } else { increment(transaction) }
    });
    assert_eq!((done.unwrap(), runs), (101, 2));
    assert!(begun.elapsed() >= delay / 2);
    connection.execute("SET statement_timeout = 0").unwrap();
    let hours = Duration::from_secs(36_000);
    let long = longer.delay_min(hours).delay_max(hours).time_max(10 * hours);
    let (handle, started) = (connection.interrupt_handle(), AtomicU32::new(0));
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            while started.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            // It may not wait yet: again and again.
            let deadline = Instant::now() + Duration::from_secs(60);
            while started.load(Ordering::Acquire) == 1 && Instant::now() < deadline {
                handle.interrupt();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let error = connection.run_transaction_with(long, |transaction| {
            let lost = loses(&database, transaction);
            started.store(1, Ordering::Release);
            lost
        });
        started.store(2, Ordering::Release);
        error.unwrap_err()
    });
    assert_eq!(error.sqlstate(), "57014");
    assert_eq!((connection.status(), connection.run_transaction(increment).unwrap()), (TransactionStatus::Idle, 202));
}

/// Data whose reader is broken: the statement panics.
struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("of the reader");
    }
}

/// A statement that panicked has ended the transaction, but no other transaction was first: it is not run again.
#[test]
fn a_panic_in_a_statement_is_no_conflict() {
    let (database, connection) = with_counter();
    let mut runs = 0;
    let error = connection.run_transaction_with(quick(3), |transaction| {
        runs += 1;
        let error = transaction.copy_in("COPY c FROM STDIN", Broken).unwrap_err();
        assert_eq!(error.sqlstate(), "XX000", "{error}");
        let error = increment(transaction).unwrap_err();
        assert!(error.sqlstate() == "25P02" && !error.message().contains("because of a conflict"), "{error}");
        Ok::<_, Error>(())
    });
    let error = error.unwrap_err();
    assert_eq!((error.sqlstate(), runs, connection.status()), ("25P02", 1, TransactionStatus::Idle), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (own, mut runs) = (database.connect_async().unwrap(), 0);
    let error = runtime.block_on(own.run_transaction_with(quick(3), async |transaction: &AsyncTransaction| {
        runs += 1;
        assert_eq!(transaction.copy_in("COPY c FROM STDIN", Broken).await.unwrap_err().sqlstate(), "XX000");
        Ok::<_, Error>(())
    }));
    assert_eq!((error.unwrap_err().sqlstate(), runs), ("25P02", 1));
    assert_eq!(connection.run_transaction(increment).unwrap(), 1);
}

#[test]
fn awaited_transactions_are_run_again_on_any_runtime() {
    let (database, connection) = with_counter();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let own = database.connect_async().unwrap();
                tokio::spawn(async move {
                    for _ in 0..10 {
                        let options = RetryOptions::new().attempts_max(1_000).time_max(Duration::from_secs(600));
                        own.run_transaction_with(options, async |transaction: &AsyncTransaction| {
                            let row = transaction.query_row("SELECT n FROM c WHERE id = 1", ()).await?;
                            let n = row.get::<i64>(0)? + 1;
                            transaction.execute_with("UPDATE c SET n = $1 WHERE id = 1", [n]).await?;
                            Ok::<_, Error>(())
                        })
                        .await
                        .unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let own = database.connect_async().unwrap();
        let mut runs = 0;
        let lost = own.run_transaction_with(quick(3), async |transaction: &AsyncTransaction| {
            runs += 1;
            transaction.query_row("SELECT n FROM c WHERE id = 1", ()).await?;
            database.connect()?.execute("UPDATE c SET n = n + 100 WHERE id = 1")?;
            transaction.execute("UPDATE c SET n = 0 WHERE id = 1").await
        });
        assert_eq!(lost.await.unwrap_err().sqlstate(), "40001");
        assert_eq!(runs, 3);
        let own_error = own.run_transaction(async |transaction: &AsyncTransaction| -> Result<(), Problem> {
            transaction.execute("UPDATE c SET n = 0 WHERE id = 1").await?;
            Err(Problem::TooPoor(1))
        });
        assert!(matches!(own_error.await, Err(Problem::TooPoor(1))));
        assert_eq!(own.status().await.unwrap(), TransactionStatus::Idle);
    });
    assert_eq!(rows(&connection, "SELECT n FROM c"), ["340"]);
}
