//! The point path: statements on a whole key answer as their plans do, errors included.

use std::fmt::Write as _;

use mainstem::{Connection, Database, ErrorKind, ValueRef};

/// What came of one statement, as text.
fn answer(connection: &Connection, sql: &str, values: &[ValueRef<'_>]) -> String {
    let run = || -> mainstem::Result<String> {
        let statement = connection.prepare(sql)?;
        if statement.columns()?.is_empty() {
            return Ok(format!("{} rows", statement.execute(values)?));
        }
        let mut text = String::new();
        for row in statement.query(values)? {
            let row = row?;
            let columns: Vec<_> = row.columns().iter().map(|c| (c.name(), c.data_type())).collect();
            writeln!(text, "{columns:?} {:?}", row.values()).unwrap();
        }
        Ok(text)
    };
    run().unwrap_or_else(|e| format!("{} {}", e.sqlstate(), e.message()))
}

/// Two databases with the same rows: with the point path, and without.
fn both(setup: &str) -> [Connection; 2] {
    ["on", "off"].map(|setting| {
        let connection = Database::in_memory().unwrap().connect().unwrap();
        connection.execute(&format!("SET point_path = {setting}")).unwrap();
        connection.execute_batch(setup).unwrap();
        connection
    })
}

fn all_rows(connection: &Connection, table: &str) -> Vec<String> {
    let rows = connection.query(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap().rows();
    rows.map(|row| format!("{:?}", row.unwrap().values())).collect()
}

const SETUP: &str = "
    CREATE TABLE t (k BIGINT PRIMARY KEY, a INTEGER, s VARCHAR(5) NOT NULL, d DECIMAL(6, 2), f DOUBLE PRECISION, b BOOLEAN, x SMALLINT);
    INSERT INTO t VALUES (1, 10, 'one', 1.25, 0.5, true, 1), (2, NULL, 'two', NULL, NULL, NULL, NULL),
        (3, 2147483647, 'three', 9999.99, -0.0, false, 32767), (-4, -5, '', 0, 123456789.5, true, -32768)";

const STATEMENTS: &[&str] = &[
    "SELECT * FROM t WHERE k = $1",
    "SELECT a, s AS \"A name\", a, k FROM t AS y WHERE y.k = $1",
    "SELECT s FROM t WHERE $1 = k",
    "SELECT k FROM t WHERE k = 3 AND $1 = $1",
    "INSERT INTO t VALUES ($1, 1, 'new', NULL, NULL, NULL, NULL)",
    "INSERT INTO t (s, k) VALUES ('a', $1), ('b', $1)",
    "INSERT INTO t (s, k, a) VALUES ('toolong', 77, $1)",
    "INSERT INTO t (k, a) VALUES (77, $1)",
    "INSERT INTO t (k, s, a) VALUES (78, 'y', $1)",
    "INSERT INTO t (k, s, x) VALUES (79, 'y', $1)",
    "INSERT INTO t (k, s, d) VALUES (80, 'y', $1)",
    "INSERT INTO t (k, s, f) VALUES (81, 'y', $1)",
    "INSERT INTO t (k, s, b) VALUES (82, 'y', $1)",
    "INSERT INTO t (k, s) VALUES (83, $1)",
    "UPDATE t SET a = a + 1 WHERE k = $1",
    "UPDATE t SET a = a * 2 - 1, s = 'set' WHERE k = $1",
    "UPDATE t SET x = a WHERE k = $1",
    "UPDATE t SET x = x + $1 WHERE k = 1",
    "UPDATE t SET a = $1 WHERE k = 2",
    "UPDATE t SET s = $1 WHERE k = 2",
    "UPDATE t SET s = NULL WHERE k = $1",
    "UPDATE t SET d = $1 WHERE k = 3",
    "UPDATE t SET f = $1, b = NULL WHERE k = 3",
    "UPDATE t SET k = k + 1 WHERE k = $1",
    "DELETE FROM t WHERE k = $1",
    "DELETE FROM t WHERE k = $1 AND a = 10",
];

#[test]
fn both_paths_answer_the_same() {
    let decimal = |text: &str| ValueRef::Decimal(text.parse().unwrap());
    let values = [
        ValueRef::BigInt(1),
        ValueRef::Integer(2),
        ValueRef::SmallInt(3),
        ValueRef::BigInt(-4),
        ValueRef::BigInt(99),
        ValueRef::BigInt(i64::MAX),
        ValueRef::BigInt(3_000_000_000),
        ValueRef::Null,
        ValueRef::Text("3"),
        ValueRef::Text("x"),
        ValueRef::Text("far too long"),
        ValueRef::Double(1.5),
        ValueRef::Real(2.0),
        ValueRef::Boolean(true),
        decimal("1.50"),
        decimal("2"),
        decimal("12345.678"),
        ValueRef::Bytes(b"x"),
    ];
    for sql in STATEMENTS {
        for value in values {
            let [short, planned] = both(SETUP);
            let answers = [&short, &planned].map(|connection| answer(connection, sql, &[value]));
            assert_eq!(answers[0], answers[1], "{sql} with {value:?}");
            assert_eq!(all_rows(&short, "t"), all_rows(&planned, "t"), "{sql} with {value:?}");
        }
    }
}

#[test]
fn both_paths_answer_the_same_inside_a_transaction_and_after_it() {
    let [short, planned] = both(SETUP);
    let run = |sql: &str, value: i64| {
        let answers = [&short, &planned].map(|connection| answer(connection, sql, &[ValueRef::BigInt(value)]));
        assert_eq!(answers[0], answers[1], "{sql} with {value}");
        answers[0].clone()
    };
    for (end, left) in [("ROLLBACK", 4), ("COMMIT", 4)] {
        [&short, &planned].iter().for_each(|c| c.execute_batch("BEGIN").unwrap());
        assert_eq!(run("INSERT INTO t (k, s) VALUES ($1, 'own')", 50), "1 rows");
        assert!(run("SELECT s FROM t WHERE k = $1", 50).contains("own"));
        assert_eq!(run("UPDATE t SET s = 'again' WHERE k = $1", 50), "1 rows");
        assert!(run("SELECT s FROM t WHERE k = $1", 50).contains("again"));
        assert!(run("INSERT INTO t (k, s) VALUES ($1, 'twice')", 50).starts_with("23505"));
        assert_eq!(run("DELETE FROM t WHERE k = $1", 50), "1 rows");
        assert_eq!(run("SELECT s FROM t WHERE k = $1", 50), "");
        assert_eq!(run("DELETE FROM t WHERE k = $1", 1), "1 rows");
        assert_eq!(run("INSERT INTO t (k, s) VALUES ($1, 'back')", 1), "1 rows");
        assert!(run("INSERT INTO t (k, s) VALUES ($1, 'x'), (2, 'x')", 51).starts_with("23505"));
        assert_eq!(run("SELECT s FROM t WHERE k = $1", 51), "", "a statement that failed left a row");
        [&short, &planned].iter().for_each(|c| c.execute_batch(end).unwrap());
        assert_eq!(all_rows(&short, "t"), all_rows(&planned, "t"));
        assert_eq!(all_rows(&short, "t").len(), left);
    }
}

#[test]
fn a_conflict_ends_the_transaction() {
    let database = Database::in_memory().unwrap();
    let (one, other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute_batch(SETUP).unwrap();
    let update = one.prepare("UPDATE t SET a = a + 1 WHERE k = $1").unwrap();
    one.execute_batch("BEGIN; SELECT 1").unwrap();
    other.execute("UPDATE t SET a = 100 WHERE k = 1").unwrap();
    let conflict = update.execute([1_i64]).unwrap_err();
    assert_eq!((conflict.kind(), conflict.sqlstate()), (ErrorKind::Conflict, "40001"));
    assert_eq!(update.execute([2_i64]).unwrap_err().sqlstate(), "25P02");
    one.execute_batch("ROLLBACK").unwrap();
    assert_eq!(update.execute([1_i64]).unwrap(), 1);
    assert_eq!(one.query_row("SELECT a FROM t WHERE k = 1", ()).unwrap().get::<i32>(0).unwrap(), 101);
}

#[test]
fn a_changed_table_is_seen() {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER); INSERT INTO t VALUES (1, 2)").unwrap();
    let select = connection.prepare("SELECT * FROM t WHERE k = $1").unwrap();
    assert_eq!(select.query_row([1]).unwrap().get::<i32>("a").unwrap(), 2);
    connection.execute_batch("DROP TABLE t").unwrap();
    assert_eq!(select.query_row([1]).unwrap_err().sqlstate(), "42P01");
    connection.execute_batch("CREATE TABLE t (b TEXT, k INTEGER PRIMARY KEY); INSERT INTO t VALUES ('x', 1)").unwrap();
    assert_eq!(select.query_row([1]).unwrap().get::<&str>("b").unwrap(), "x");
}

#[test]
fn a_read_only_transaction_takes_no_short_write() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute_batch(SETUP).unwrap();
    let delete = connection.prepare("DELETE FROM t WHERE k = $1").unwrap();
    connection.execute_batch("BEGIN READ ONLY").unwrap();
    assert_eq!(delete.execute([1_i64]).unwrap_err().sqlstate(), "25006");
    connection.execute_batch("ROLLBACK").unwrap();
    assert_eq!(delete.execute([1_i64]).unwrap(), 1);
    assert_eq!(delete.query([2_i64]).unwrap_err().sqlstate(), "42601");
    assert_eq!(all_rows(&connection, "t").len(), 3, "asking a write for rows must not run it");
}

/// Many connections count one row up: none sees a conflict, and no update is lost.
#[test]
fn a_hot_counter_counts() {
    let database = Database::in_memory().unwrap();
    database
        .connect()
        .unwrap()
        .execute_batch("CREATE TABLE c (k INTEGER PRIMARY KEY, n BIGINT); INSERT INTO c VALUES (1, 0)")
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let connection = database.connect().unwrap();
                let count = connection.prepare("UPDATE c SET n = n + 1 WHERE k = $1").unwrap();
                (0..100).for_each(|_| assert_eq!(count.execute([1]).unwrap(), 1));
            });
        }
    });
    let total = database.connect().unwrap().query_row("SELECT n FROM c WHERE k = 1", ()).unwrap();
    assert_eq!(total.get::<i64>(0).unwrap(), 800);
}
