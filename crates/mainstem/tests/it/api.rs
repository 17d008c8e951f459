//! The library as a program uses it: threads, appenders, typed errors, streamed results, interrupts, async runtimes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mainstem::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use mainstem::{
    Appender, Connection, Database, Date, Decimal, Error, ErrorKind, InterruptHandle, OpenOptions, QueryResult,
    StatementOutcome, Synchronous, Timestamp, ToValue, TransactionStatus, Value,
};

use super::support::{code, quiet, rows, try_rows};

/// A query that runs for hours unless it is stopped.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y) \
                       WHERE x * 7 % 1000003 < y * 11 % 1000033";

fn with_table() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT NOT NULL, d DECIMAL(8, 2))").unwrap();
    (database, connection)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn what_threads_may_do() {
    fn send<T: Send + 'static>() {}
    fn share<T: Send + Sync + 'static>() {}
    share::<Database>();
    share::<Connection>();
    share::<InterruptHandle>();
    share::<Error>();
    send::<QueryResult>();
    send::<StatementOutcome>();
}

#[test]
fn threads_share_a_database_and_even_a_connection() {
    let (database, connection) = with_table();
    let shared = Arc::new(database.connect().unwrap());
    thread::scope(|scope| {
        for thread in 0..4 {
            let (database, shared) = (&database, shared.clone());
            scope.spawn(move || {
                let own = database.connect().unwrap();
                for i in 0..10 {
                    let k = thread * 100 + i * 2;
                    own.execute(&format!("INSERT INTO t VALUES ({k}, 'own', NULL)")).unwrap();
                    shared.execute(&format!("INSERT INTO t VALUES ({}, 'shared', NULL)", k + 1)).unwrap();
                    assert_eq!(rows(&shared, &format!("SELECT v FROM t WHERE k = {k}")), ["own"]);
                }
            });
        }
    });
    assert_eq!(rows(&connection, "SELECT v, count(*) FROM t GROUP BY v ORDER BY v"), ["own|40", "shared|40"]);
}

#[test]
fn databases_in_memory_are_apart() {
    let (_first, first) = with_table();
    let other = Database::in_memory().unwrap();
    assert_eq!(code(&other.connect().unwrap(), "SELECT * FROM t"), "42P01");
    assert_eq!(rows(&first, "SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn statements_run_one_by_one_as_they_are_asked_for() {
    let (_database, connection) = with_table();
    let mut statements = connection
        .run("INSERT INTO t VALUES (1, 'a', 1); SELECT * FROM nowhere; SELECT k FROM t; DELETE FROM t")
        .unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
    let inserted = statements.next().unwrap().unwrap();
    assert_eq!((inserted.tag.as_str(), inserted.rows_affected), ("INSERT 0 1", Some(1)));
    assert!(inserted.rows.is_none());
    assert_eq!(statements.next().unwrap().unwrap_err().sqlstate(), "42P01");
    let selected = statements.next().unwrap().unwrap();
    assert_eq!((selected.tag.as_str(), selected.rows_affected), ("SELECT", None));
    assert_eq!(selected.rows.unwrap().count_rows().unwrap(), 1);
    drop(statements);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["1"]);

    // Nothing runs when the text cannot be parsed.
    assert_eq!(connection.run("DELETE FROM t; SELEC 1").map(|_| ()).unwrap_err().sqlstate(), "42601");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["1"]);
    // What ran before an error stays.
    assert_eq!(
        connection.execute("UPDATE t SET v = 'b'; SELECT 1 / 0; DELETE FROM t").unwrap_err().sqlstate(),
        "22012"
    );
    assert_eq!(rows(&connection, "SELECT v FROM t"), ["b"]);
    assert_eq!(connection.execute("").unwrap(), 0);
    assert_eq!(connection.execute(" ; -- nothing\n;").unwrap(), 0);
    for no_query in ["DELETE FROM t", "SELECT 1; SELECT 2", ""] {
        assert_eq!(connection.query(no_query).map(|_| ()).unwrap_err().sqlstate(), "42601", "{no_query}");
    }
    assert_eq!(rows(&connection, "SELECT v FROM t"), ["b"]);
}

#[test]
fn errors_say_what_to_do() {
    let (database, connection) = with_table();
    connection.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    for (sql, kind, code) in [
        ("SELECT * FROM nowhere", ErrorKind::NotFound, "42P01"),
        ("SELECT nothing FROM t", ErrorKind::NotFound, "42703"),
        ("COPY t FROM '/no/such/file.csv'", ErrorKind::NotFound, "58P01"),
        ("SELEC", ErrorKind::Invalid, "42601"),
        ("SELECT 1 / 0", ErrorKind::Invalid, "22012"),
        ("SELECT * FROM t FOR UPDATE SKIP LOCKED", ErrorKind::Invalid, "0A000"),
        ("INSERT INTO t VALUES (1, 'b', 2)", ErrorKind::Constraint, "23505"),
        ("UPDATE t SET v = NULL", ErrorKind::Constraint, "23502"),
    ] {
        let error = connection.execute(sql).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (kind, code), "{sql}: {error:?}");
        assert!(!error.message().is_empty());
        assert_eq!(error.to_string(), error.message());
    }
    let (first, second) = (connection.transaction().unwrap(), database.connect().unwrap());
    first.execute("UPDATE t SET v = 'first'").unwrap();
    second.execute("UPDATE t SET v = 'second'").unwrap();
    let error = first.commit().unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Conflict, "40001"));
    database.close().unwrap();
    assert_eq!(connection.execute("SELECT 1 FROM t").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn transactions_are_guards() {
    let (_database, connection) = with_table();
    let transaction = connection.transaction().unwrap();
    assert_eq!(connection.status(), TransactionStatus::Open);
    assert_eq!(connection.transaction().map(|_| ()).unwrap_err().sqlstate(), "25001");
    transaction.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    assert_eq!(transaction.query("SELECT k FROM t").unwrap().count_rows().unwrap(), 1);
    let mut appender = transaction.appender("t").unwrap();
    appender.append_values(&[Value::Int(2), Value::Text("b".into()), Value::Null]).unwrap();
    assert_eq!(appender.finish().unwrap(), 1);
    transaction.commit().unwrap();
    assert_eq!(connection.status(), TransactionStatus::Idle);
    assert_eq!(rows(&connection, "SELECT k FROM t ORDER BY k"), ["1", "2"]);

    let transaction = connection.transaction().unwrap();
    transaction.execute("DELETE FROM t").unwrap();
    transaction.rollback();
    drop({
        let transaction = connection.transaction().unwrap();
        transaction.execute("DELETE FROM t").unwrap();
        transaction
    });
    assert_eq!(connection.status(), TransactionStatus::Idle);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["2"]);

    // A failed statement undoes only itself.
    let transaction = connection.transaction().unwrap();
    transaction.execute("UPDATE t SET v = 'c' WHERE k = 1").unwrap();
    assert_eq!(transaction.execute("INSERT INTO t VALUES (3, 'd', 1), (1, 'e', 1)").unwrap_err().sqlstate(), "23505");
    transaction.commit().unwrap();
    assert_eq!(rows(&connection, "SELECT k, v FROM t ORDER BY k"), ["1|c", "2|b"]);
}

#[test]
fn a_conflict_ends_the_transaction() {
    let (database, connection) = with_table();
    connection.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    let other = database.connect().unwrap();
    let transaction = connection.transaction().unwrap();
    assert_eq!(transaction.query("SELECT v FROM t").unwrap().count_rows().unwrap(), 1);
    other.execute("UPDATE t SET v = 'other'").unwrap();
    // Statements may find out early; commit does at the latest.
    if let Err(early) = transaction.execute("UPDATE t SET v = 'mine'") {
        assert_eq!(early.sqlstate(), "40001");
        assert_eq!(connection.status(), TransactionStatus::Failed);
        assert_eq!(transaction.execute("SELECT 1").unwrap_err().sqlstate(), "25P02");
        assert_eq!(connection.appender("t").map(|_| ()).unwrap_err().sqlstate(), "25P02");
    }
    assert_eq!(transaction.commit().unwrap_err().sqlstate(), "40001");
    assert_eq!(connection.status(), TransactionStatus::Idle);
    assert_eq!(rows(&connection, "SELECT v FROM t"), ["other"]);
}

fn row(k: i64, v: &str) -> [Value; 3] {
    [Value::Int(k), Value::Text(v.into()), Value::Decimal(150)]
}

#[test]
fn appenders_insert_all_rows_or_none() {
    let (_database, connection) = with_table();
    let mut appender = connection.appender("t").unwrap();
    for k in 0..20_000 {
        appender.append_values(&row(k, "x")).unwrap();
    }
    assert_eq!(appender.pending_rows(), 20_000);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
    assert_eq!(appender.flush().unwrap(), 20_000);
    assert_eq!((appender.pending_rows(), appender.flush().unwrap()), (0, 0));
    assert_eq!(rows(&connection, "SELECT count(*), sum(k), sum(d) FROM t"), ["20000|199990000|30000.00"]);

    // A key twice: within the rows, or with the table.
    for taken in [30_000, 5] {
        appender.append_values(&row(30_000, "y")).unwrap();
        appender.append_values(&row(taken, "y")).unwrap();
        assert_eq!(appender.flush().unwrap_err().sqlstate(), "23505");
        assert_eq!((appender.pending_rows(), appender.flush().unwrap()), (0, 0));
    }
    appender.append_values(&[Value::Int(30_000), Value::Null, Value::Null]).unwrap();
    assert_eq!(appender.flush().unwrap_err().sqlstate(), "23502");
    assert_eq!(appender.append_values(&[Value::Int(1)]).unwrap_err().sqlstate(), "42804");
    appender.append_values(&row(30_001, "forgotten")).unwrap();
    drop(appender);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t WHERE k >= 20000"), ["0"]);
    assert_eq!(connection.appender("nowhere").map(|_: Appender<'_>| ()).unwrap_err().sqlstate(), "42P01");
}

#[test]
fn appenders_take_typed_rows_and_convert_what_can_be_assigned() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE w (k BIGINT PRIMARY KEY, s SMALLINT, r REAL, d DOUBLE PRECISION, n DECIMAL(6, 2), day DATE, t TEXT, raw BYTEA)")
        .unwrap();
    let mut appender = connection.appender("w").unwrap();
    let day = Date::new(2024, 2, 29).unwrap();
    let price = Decimal::new(1250, 2).unwrap();
    appender.append_row((1_i64, 2_i16, 0.5_f32, 1.5, price, day, "text", &b"raw"[..])).unwrap();
    // Other types, as INSERT would take them.
    appender
        .append_row((2, 7_i64, 0.25, 0.5_f32, 3, Timestamp::from_micros(86_400_000_000), 5, None::<Vec<u8>>))
        .unwrap();
    let nulls = [
        &3 as &dyn ToValue,
        &None::<i32>,
        &None::<i32>,
        &None::<i32>,
        &None::<i32>,
        &None::<i32>,
        &None::<i32>,
        &None::<i32>,
    ];
    appender.append_row(nulls).unwrap();
    // A row that does not fit is left out, and named; the others stay.
    for (value, code) in [(&40_000_i64 as &dyn ToValue, "22003"), (&"7", "42804"), (&true, "42804")] {
        let error =
            appender.append_row([&4 as &dyn ToValue, value, &0.5, &0.5, &price, &day, &"x", &None::<i32>]).unwrap_err();
        assert_eq!(error.sqlstate(), code);
        assert!(error.to_string().contains("column \"s\""), "{error}");
    }
    assert_eq!(appender.append_row((1, 2)).unwrap_err().sqlstate(), "42804");
    assert_eq!(appender.pending_rows(), 3);
    assert_eq!(appender.finish().unwrap(), 3);
    assert_eq!(
        rows(&connection, "SELECT k, s, r, d, n, day, t, raw IS NULL FROM w ORDER BY k"),
        [
            "1|2|0.5|1.5|12.50|2024-02-29|text|false",
            "2|7|0.25|0.5|3.00|1970-01-02|5|true",
            "3|NULL|NULL|NULL|NULL|NULL|NULL|true",
        ]
    );
}

/// Rows of 1 MB each: what is kept is bounded, so that most of them are there before anybody asked.
#[test]
fn appenders_keep_a_bounded_number_of_bytes() {
    let (_database, connection) = with_table();
    let mut appender = connection.appender("t").unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
    for k in 0..150 {
        let row = batch(vec![
            ("k", Arc::new(Int32Array::from(vec![k]))),
            ("v", text.clone()),
            ("d", Arc::new(Int32Array::from(vec![1]))),
        ]);
        appender.append_batch(&row).unwrap();
    }
    let there: i64 = connection.query_row("SELECT count(*) FROM t", ()).unwrap().get(0).unwrap();
    assert_eq!(there as usize + appender.pending_rows(), 150);
    assert!(appender.pending_rows() < 70, "{} rows kept", appender.pending_rows());
    // What was inserted on the way is counted by the next flush.
    assert_eq!(appender.finish().unwrap(), 150);
    // Inside a transaction it is undone with it.
    let transaction = connection.transaction().unwrap();
    let mut appender = transaction.appender("t").unwrap();
    for k in 1000..1100 {
        let row = batch(vec![
            ("k", Arc::new(Int32Array::from(vec![k]))),
            ("v", text.clone()),
            ("d", Arc::new(Int32Array::from(vec![1]))),
        ]);
        appender.append_batch(&row).unwrap();
    }
    assert_eq!(appender.finish().unwrap(), 100);
    transaction.rollback();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["150"]);
}

#[test]
fn appenders_take_batches_and_cast_what_can_be_assigned() {
    let (_database, connection) = with_table();
    let mut appender = connection.appender("t").unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let wide = batch(vec![
        ("k", Arc::new(Int64Array::from(vec![1, 2]))),
        ("v", texts.clone()),
        ("d", Arc::new(Int32Array::from(vec![Some(7), None]))),
    ]);
    appender.append_values(&row(0, "row first")).unwrap();
    appender.append_batch(&wide).unwrap();
    appender.append_values(&row(3, "row last")).unwrap();
    assert_eq!(appender.finish().unwrap(), 4);
    let expected = ["0|row first|1.50", "1|a|7.00", "2|b|NULL", "3|row last|1.50"];
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), expected);

    let mut appender = connection.appender("t").unwrap();
    let narrow = batch(vec![("k", Arc::new(Int64Array::from(vec![9])))]);
    assert_eq!(appender.append_batch(&narrow).unwrap_err().sqlstate(), "42804");
    let large = batch(vec![
        ("k", Arc::new(Int64Array::from(vec![10, 1 << 40]))),
        ("v", texts),
        ("d", Arc::new(Int32Array::from(vec![1, 1]))),
    ]);
    appender.append_batch(&large).unwrap();
    assert_eq!(appender.finish().unwrap_err().sqlstate(), "22003");
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), expected);
}

#[test]
fn results_are_streamed_from_one_snapshot() {
    let (database, connection) = with_table();
    connection.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 50000) AS g(i)").unwrap();
    let mut result = connection.query("SELECT k, v FROM t").unwrap();
    let names: Vec<String> = result.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["k", "v"]);
    let first = result.next().unwrap().unwrap().num_rows() as u64;
    assert!((1..=8_192).contains(&first), "{first} rows in a batch");
    // The connection is free, and what it writes is not seen by the result that is being read.
    connection.execute("DELETE FROM t WHERE k > 10").unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["10"]);
    database.storage().merge(connection.table("t").unwrap().id).unwrap();
    assert_eq!(first + result.count_rows().unwrap(), 50_000);
}

#[test]
fn a_result_that_is_not_read_to_its_end_costs_nothing() {
    let (_database, connection) = with_table();
    let endless = "SELECT x, y FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y)";
    for _ in 0..3 {
        let mut result = connection.query(endless).unwrap();
        assert!(result.next().unwrap().unwrap().num_rows() > 0);
    }
    assert_eq!(rows(&connection, "SELECT 1"), ["1"]);
}

#[test]
fn a_result_outlives_its_connection_and_handle() {
    let (database, connection) = with_table();
    connection.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 30000) AS g(i)").unwrap();
    let result = connection.query("SELECT k FROM t").unwrap();
    drop((connection, database));
    assert_eq!(result.count_rows().unwrap(), 30_000);
}

/// Interrupts until `work` ends, since there is no telling when it begins; returns its outcome.
fn interrupted<T: Send>(handle: &InterruptHandle, work: impl FnOnce() -> T + Send) -> T {
    let begun = Instant::now();
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            assert!(begun.elapsed() < Duration::from_secs(300), "the interrupt does not help");
            thread::sleep(Duration::from_millis(20));
            handle.interrupt();
        }
        worker.join().unwrap()
    })
}

#[test]
fn an_interrupt_ends_what_runs_and_nothing_later() {
    let (_database, connection) = with_table();
    connection.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    let handle = connection.interrupt_handle();
    let error = interrupted(&handle, || try_rows(&connection, ENDLESS)).unwrap_err();
    assert_eq!(error.sqlstate(), "57014");
    handle.interrupt();
    assert_eq!(rows(&connection, "SELECT v FROM t"), ["a"]);

    // A write leaves nothing, the transaction around it goes on.
    connection.execute("BEGIN").unwrap();
    connection.execute("UPDATE t SET v = 'b'").unwrap();
    let write = format!("INSERT INTO t SELECT k + 10, v, 1 FROM t WHERE k < ({ENDLESS})");
    let error = interrupted(&handle, || connection.execute(&write)).unwrap_err();
    assert_eq!(error.sqlstate(), "57014");
    assert_eq!(connection.status(), TransactionStatus::Open);
    connection.execute("COMMIT").unwrap();
    assert_eq!(rows(&connection, "SELECT k, v FROM t"), ["1|b"]);
}

#[test]
fn an_interrupt_reaches_results_that_are_being_read() {
    let (database, connection) = with_table();
    let endless = "SELECT x, y FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y)";
    let mut result = connection.query(endless).unwrap();
    result.next().unwrap().unwrap();
    let other = database.connect().unwrap();
    let mut unharmed = other.query(endless).unwrap();
    connection.interrupt_handle().interrupt();
    let end = result.find(Result::is_err).unwrap();
    assert_eq!(end.unwrap_err().sqlstate(), "57014");
    assert!(result.next().is_none());
    assert!(unharmed.next().unwrap().is_ok());
}

/// The same calls inside an async runtime, where blocking on another runtime would panic.
fn use_everything() {
    let (database, connection) = with_table();
    connection.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 9000) AS g(i)").unwrap();
    let mut appender = connection.appender("t").unwrap();
    appender.append_values(&row(0, "x")).unwrap();
    appender.finish().unwrap();
    database.storage().merge(connection.table("t").unwrap().id).unwrap();
    let mut half_read = connection.query("SELECT k FROM t").unwrap();
    half_read.next().unwrap().unwrap();
    assert_eq!(rows(&connection, "SELECT count(*), max(k) FROM t"), ["9001|9000"]);
    let transaction = connection.transaction().unwrap();
    transaction.execute("DELETE FROM t WHERE k < 10").unwrap();
    transaction.commit().unwrap();
    drop((half_read, connection));
    database.close().unwrap();
}

#[test]
fn everything_works_inside_an_async_runtime() {
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    single.block_on(async { use_everything() });
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    many.block_on(async {
        use_everything();
        tokio::spawn(async { use_everything() }).await.unwrap();
        tokio::task::spawn_blocking(use_everything).await.unwrap();
    });
    use_everything();
}

#[test]
fn closing_ends_all_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = Database::open(&path).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let open = database.connect().unwrap();
    open.execute("BEGIN; INSERT INTO t VALUES (2)").unwrap();
    database.close().unwrap();
    database.close().unwrap();
    for sql in ["INSERT INTO t VALUES (3)", "CREATE TABLE u (a INTEGER)", "SELECT * FROM t"] {
        assert_eq!(code(&connection, sql), "57P01", "{sql}");
    }
    assert_eq!(code(&open, "COMMIT"), "57P01");
    // The directory is free although handles are still there.
    let again = Database::open(&path).unwrap();
    assert_eq!(rows(&again.connect().unwrap(), "SELECT k FROM t"), ["1"]);
}

#[test]
fn the_last_handle_closes_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let connection = Database::open(&path).unwrap().connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(Database::open(&path).map(|_| ()).unwrap_err().sqlstate(), "55006");
    drop(connection);
    assert_eq!(rows(&Database::open(&path).unwrap().connect().unwrap(), "SELECT k FROM t"), ["1"]);
}

#[test]
fn every_durability_survives_a_close() {
    let folder = tempfile::tempdir().unwrap();
    for synchronous in [Synchronous::Off, Synchronous::Normal, Synchronous::Full] {
        let path = folder.path().join(synchronous.to_string());
        let options = || OpenOptions::new().synchronous(synchronous);
        let database = Database::open_with(&path, options()).unwrap();
        let connection = database.connect().unwrap();
        assert_eq!(rows(&connection, "SHOW synchronous"), [synchronous.to_string()]);
        connection.execute("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2)").unwrap();
        connection.execute("SET synchronous = 'full'; DELETE FROM t WHERE k = 1").unwrap();
        drop(connection);
        database.close().unwrap();
        let database = Database::open_with(&path, options()).unwrap();
        assert_eq!(rows(&database.connect().unwrap(), "SELECT k FROM t"), ["2"]);
    }
}
