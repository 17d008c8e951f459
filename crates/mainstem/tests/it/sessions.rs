//! Transactions, concurrent writers, interrupts, appenders and callers of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mainstem::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use mainstem::{Database, ErrorKind, TransactionStatus, Value};

use super::support::{code, quiet, rows, try_rows};

#[test]
fn a_transaction_sees_its_own_writes_and_rolls_back() {
    let db = quiet();
    let (a, b) = (db.connect().unwrap(), db.connect().unwrap());
    a.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)").unwrap();
    {
        let transaction = a.transaction().unwrap();
        assert_eq!(a.status(), TransactionStatus::Open);
        transaction.execute("INSERT INTO t VALUES (1, 1)").unwrap();
        assert_eq!(code(&a, "INSERT INTO t VALUES (1, 2)"), "23505");
        assert_eq!(rows(&a, "SELECT * FROM t"), ["1|1"]);
        assert_eq!(rows(&b, "SELECT count(*) FROM t"), ["0"]);
    }
    assert_eq!(a.status(), TransactionStatus::Idle);
    assert_eq!(rows(&a, "SELECT count(*) FROM t"), ["0"]);
    let transaction = a.transaction().unwrap();
    transaction.execute("INSERT INTO t VALUES (1, 1); UPDATE t SET v = 2").unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows(&b, "SELECT * FROM t"), ["1|2"]);
}

#[test]
fn a_conflict_fails_the_transaction_until_rollback() {
    let db = quiet();
    let (a, b) = (db.connect().unwrap(), db.connect().unwrap());
    a.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
    a.execute("BEGIN; UPDATE t SET v = 2").unwrap();
    b.execute("UPDATE t SET v = 3").unwrap();
    assert_eq!(code(&a, "COMMIT"), "40001");
    assert_eq!(a.status(), TransactionStatus::Idle);
    assert_eq!(rows(&a, "SELECT v FROM t"), ["3"]);

    // Noticed at the statement when the other has committed by then.
    a.execute("BEGIN").unwrap();
    assert_eq!(rows(&a, "SELECT v FROM t"), ["3"]);
    b.execute("UPDATE t SET v = 4").unwrap();
    assert_eq!(code(&a, "UPDATE t SET v = v + 1"), "40001");
    assert_eq!(a.status(), TransactionStatus::Failed);
    assert_eq!(code(&a, "SELECT v FROM t"), "25P02");
    a.execute("ROLLBACK").unwrap();
    assert_eq!(rows(&a, "SELECT v FROM t"), ["4"]);

    let transaction = a.transaction().unwrap();
    transaction.execute("UPDATE t SET v = 4").unwrap();
    b.execute("UPDATE t SET v = 5").unwrap();
    let error = transaction.commit().unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Conflict, "40001"));
}

#[test]
fn statements_on_their_own_never_conflict() {
    let db = quiet();
    db.connect()
        .unwrap()
        .execute("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)")
        .unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let connection = db.connect().unwrap();
            std::thread::spawn(move || {
                for _ in 0..25 {
                    assert_eq!(connection.execute("UPDATE t SET n = n + 1 WHERE k = 1").unwrap(), 1);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(rows(&db.connect().unwrap(), "SELECT n FROM t"), ["100"]);
}

#[test]
fn a_read_only_transaction_refuses_writes() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k INTEGER)").unwrap();
    c.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(code(&c, "INSERT INTO t VALUES (1)"), "25006");
    assert_eq!(code(&c, "DROP TABLE t"), "25006");
    assert_eq!(rows(&c, "SELECT count(*) FROM t"), ["0"]);
    c.execute("COMMIT").unwrap();
}

#[test]
fn a_result_reads_its_snapshot_whatever_happens() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k BIGINT)").unwrap();
    c.execute("INSERT INTO t SELECT * FROM generate_series(1, 100000)").unwrap();
    let result = c.query("SELECT k FROM t").unwrap();
    c.execute("DELETE FROM t; DROP TABLE t").unwrap();
    assert_eq!(result.count_rows().unwrap(), 100_000);
}

#[test]
fn an_interrupt_ends_a_statement_and_no_other() {
    let db = quiet();
    let c = db.connect().unwrap();
    let handle = c.interrupt_handle();
    handle.interrupt();
    assert_eq!(rows(&c, "SELECT 1"), ["1"]);
    let done = Arc::new(AtomicBool::new(false));
    let helper = std::thread::spawn({
        let done = done.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                handle.interrupt();
            }
        }
    });
    let endless =
        "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x + y = -1";
    assert_eq!(try_rows(&c, endless).unwrap_err().sqlstate(), "57014");
    done.store(true, Ordering::Relaxed);
    helper.join().unwrap();
    assert_eq!(rows(&c, "SELECT 2"), ["2"]);
}

#[test]
fn calls_work_inside_an_async_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let answer = runtime.block_on(async {
        let db = Database::in_memory().unwrap();
        let c = db.connect().unwrap();
        c.execute("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2)").unwrap();
        rows(&c, "SELECT sum(k) FROM t GROUP BY k % 1")
    });
    assert_eq!(answer, ["3"]);
}

#[test]
fn an_appender_inserts_all_or_nothing() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)").unwrap();
    let mut appender = c.appender("t").unwrap();
    for k in 0..20_000 {
        appender.append_values(&[Value::Int(k), Value::Text(format!("row {k}").into())]).unwrap();
    }
    assert_eq!(appender.pending_rows(), 20_000);
    assert_eq!(appender.flush().unwrap(), 20_000);
    appender.append_values(&[Value::Int(50_000), Value::Null]).unwrap();
    appender.append_values(&[Value::Int(7), Value::Null]).unwrap();
    assert_eq!(appender.flush().unwrap_err().sqlstate(), "23505");
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![-1, -2]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    appender.append_batch(&RecordBatch::try_from_iter([("a", keys.clone()), ("b", texts)]).unwrap()).unwrap();
    assert_eq!(appender.finish().unwrap(), 2);
    assert_eq!(rows(&c, "SELECT count(*), min(k), max(k) FROM t"), ["20002|-2|19999"]);
    let mut wrong = c.appender("t").unwrap();
    wrong.append_batch(&RecordBatch::try_from_iter([("a", keys.clone()), ("b", keys)]).unwrap()).unwrap();
    assert_eq!(wrong.finish().unwrap_err().sqlstate(), "23505");
    let other: ArrayRef = Arc::new(Int64Array::from(vec![-3, -4]));
    let mut numbers = c.appender("t").unwrap();
    numbers.append_batch(&RecordBatch::try_from_iter([("a", other.clone()), ("b", other)]).unwrap()).unwrap();
    assert_eq!(numbers.finish().unwrap(), 2, "numbers become text");
    assert_eq!(c.appender("nope").unwrap_err().sqlstate(), "42P01");
}

#[test]
fn deep_and_long_statements_end_in_an_answer_or_an_error() {
    let db = quiet();
    let c = db.connect().unwrap();
    let sum = vec!["1"; 300].join(" + ");
    assert_eq!(rows(&c, &format!("SELECT {sum}")), ["300"]);
    assert_eq!(code(&c, &format!("SELECT {}", vec!["1"; 100_000].join(" + "))), "54001");
    assert_eq!(code(&c, &format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000))), "54001");
    let or = (0..300).map(|n| format!("x = {n}")).collect::<Vec<_>>().join(" OR ");
    assert_eq!(rows(&c, &format!("SELECT count(*) FROM (VALUES (5), (5000)) v(x) WHERE {or}")), ["1"]);
    c.execute("CREATE TABLE t (k INTEGER, v TEXT)").unwrap();
    let values = (0..5_000).map(|n| format!("({n}, 'v{n}')")).collect::<Vec<_>>().join(", ");
    assert_eq!(c.execute(&format!("INSERT INTO t VALUES {values}")).unwrap(), 5_000);
    let list = (0..20_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(rows(&c, &format!("SELECT count(*) FROM t WHERE k IN ({list})")), ["5000"]);
}

#[test]
fn a_closed_database_says_so() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k INTEGER)").unwrap();
    db.close().unwrap();
    assert_eq!(code(&c, "INSERT INTO t VALUES (1)"), "57P01");
    assert_eq!(code(&c, "SELECT * FROM t"), "57P01");
}

/// Schemas of temporary tables that are left.
fn temporary_schemas(db: &Database) -> Vec<String> {
    let catalog = db.storage().catalog();
    catalog.namespaces().filter(|name| name.starts_with("pg_temp")).map(str::to_owned).collect()
}

#[test]
fn temporary_tables_end_with_their_session_or_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let db = Database::open(&path).unwrap();
    let keeps = db.connect().unwrap();
    keeps.execute("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let ends = db.connect().unwrap();
    ends.execute("CREATE TEMP TABLE t (v TEXT); INSERT INTO t VALUES ('a'), ('b')").unwrap();
    assert_eq!(rows(&ends, "SELECT count(*) FROM t"), ["2"]);
    assert_eq!(rows(&keeps, "SELECT count(*) FROM t"), ["1"]);
    let name = temporary_schemas(&db).pop().unwrap();
    // Nobody else gets at it by its real name.
    assert_eq!(code(&keeps, &format!("SELECT * FROM {name}.t")), "42P01");
    assert_eq!(code(&keeps, &format!("DROP TABLE {name}.t")), "42P01");
    assert_eq!(code(&keeps, &format!("DROP SCHEMA {name} CASCADE")), "3F000");
    assert_eq!(code(&keeps, &format!("CREATE TABLE {name}.u (a INTEGER)")), "3F000");
    assert_eq!(rows(&keeps, "SELECT count(*) FROM mainstem.tables"), ["1"]);
    // In an open transaction, too.
    ends.execute("BEGIN; INSERT INTO t VALUES ('c')").unwrap();
    drop(ends);
    assert_eq!(temporary_schemas(&db), Vec::<String>::new());
    // One that never ends, as after a crash.
    let lost = db.connect().unwrap();
    lost.execute("CREATE TEMP TABLE u (v TEXT); INSERT INTO u VALUES ('a')").unwrap();
    assert_eq!(temporary_schemas(&db).len(), 1);
    db.close().unwrap();
    drop((lost, keeps, db));
    let db = Database::open(&path).unwrap();
    assert_eq!(temporary_schemas(&db), Vec::<String>::new());
    let connection = db.connect().unwrap();
    assert_eq!(rows(&connection, "SELECT k FROM t"), ["1"]);
    connection.execute("CREATE TEMP TABLE u (n INTEGER)").unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM u"), ["0"]);
}
