//! The point path: statements on a whole key answer as their plans do, errors included.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use mainstem::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use mainstem::{Connection, Database, ErrorKind, OpenOptions, ValueRef};
use mainstem_storage::transaction::TransactionMode;

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
    "UPDATE t SET a = coalesce($1, f + 0.5) WHERE k = 1",
    "UPDATE t SET a = coalesce($1, d) WHERE k = 1",
    "UPDATE t SET f = greatest($1, d), x = coalesce(d, $1) WHERE k = 1",
    "UPDATE t SET k = k + 1 WHERE k = $1",
    "DELETE FROM t WHERE k = $1",
    "DELETE FROM t WHERE k = $1 AND a = 10",
    "INSERT INTO t (k, s) VALUES ($1, 'new') RETURNING *",
    "INSERT INTO t (k, s) VALUES (90, 'x'), ($1, 'new'), (91, 'y') RETURNING s AS t, k",
    "INSERT INTO t (k, a, x) VALUES (90, $1, $1) RETURNING a, x",
    "INSERT INTO t (k, s, d, f) VALUES (90, 'x', $1, $1) RETURNING d, f",
    "UPDATE t SET a = a + 1, s = 'two  ' WHERE k = $1 RETURNING k, s, a",
    "UPDATE t SET s = 'toolong' WHERE k = $1 RETURNING k",
    "UPDATE t SET a = 1 WHERE k = $1 RETURNING a + 1",
    "DELETE FROM t WHERE k = $1 RETURNING *, s AS again",
];

const UPSERTS: &[&str] = &[
    "INSERT INTO t (k, s) VALUES ($1, 'new') ON CONFLICT DO NOTHING",
    "INSERT INTO t (k, s) VALUES ($1, 'new'), (1, 'x'), ($1, 'y') ON CONFLICT (k) DO NOTHING RETURNING k, s",
    "INSERT INTO t (k, s) VALUES ($1, 'new') ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t (k, s) VALUES ($1, 'new') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING",
    "INSERT INTO t (k, s, a) VALUES ($1, 'up', 5) ON CONFLICT (k) DO UPDATE SET a = t.a + excluded.a, s = excluded.s",
    "INSERT INTO t AS o (k, s, a) VALUES (3, 'up', 5) ON CONFLICT (k) DO UPDATE SET a = o.a + $1 RETURNING *",
    "INSERT INTO t AS o (k, s, a) VALUES (1, 'up', 5) ON CONFLICT (k) DO UPDATE SET a = o.a * 2 + $1 RETURNING a",
    "INSERT INTO t (k, s, a) VALUES (1, 'up', $1) ON CONFLICT (k) DO UPDATE SET a = excluded.a WHERE t.a < excluded.a RETURNING a, s AS was",
    "INSERT INTO t (k, s) VALUES (2, $1) ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.s <> excluded.s",
    "INSERT INTO t (k, s) VALUES (2, 'x') ON CONFLICT (k) DO UPDATE SET s = $1",
    "INSERT INTO t (k, s) VALUES (2, 'x') ON CONFLICT (k) DO UPDATE SET d = $1, f = $1",
    "INSERT INTO t (k, s, d) VALUES (1, 'x', $1) ON CONFLICT (k) DO UPDATE SET d = excluded.d, x = t.k RETURNING d, x",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = NULL",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = 'toolong'",
    "INSERT INTO t (k, s) VALUES ($1, 'abcde   ') ON CONFLICT (k) DO UPDATE SET s = excluded.s RETURNING s",
    "INSERT INTO t (k, s) VALUES ($1, 'toolong') ON CONFLICT DO NOTHING",
    "INSERT INTO t (k) VALUES ($1) ON CONFLICT DO NOTHING",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET k = 50",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET a = a + 1",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET a = (SELECT 8)",
    "INSERT INTO t (k, s) VALUES ($1, 'a'), ($1, 'b') ON CONFLICT (k) DO UPDATE SET s = excluded.s",
    "INSERT INTO t (k, s) VALUES ($1, 'a'), (2, 'b'), ($1, 'c') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE excluded.s <> 'a'",
    "INSERT INTO t (k, s, a) VALUES ($1, 'a', 1), (3, 'b', 1), (2, 'toolong', 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1",
    "INSERT INTO t (k, s, a) VALUES (2, 'b', 1), (3, 'b', $1), (1, 'c', 2) ON CONFLICT (k) DO UPDATE SET a = t.a - excluded.a, x = t.x + 1 RETURNING k, a, x",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.b",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE NOT t.b OR t.a IS NULL",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.a IS NOT NULL AND (t.a >= 0 OR NULL)",
    "INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.a IS DISTINCT FROM excluded.a",
    "INSERT INTO t (k, s, a) VALUES (2, 'x', $1) ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.a IS NOT DISTINCT FROM excluded.a",
    "INSERT INTO t (k, s) VALUES (3, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.a + 1 > 0 OR $1 IS NULL",
    "INSERT INTO t (k, s) VALUES (3, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s WHERE t.x > $1 AND t.s > 'a' AND t.x <= t.a",
    "INSERT INTO t (k, s, f) VALUES (3, 'x', $1) ON CONFLICT (k) DO UPDATE SET f = excluded.f WHERE t.f < excluded.f OR t.f = excluded.f",
    "INSERT INTO t (k, s, d) VALUES (3, 'x', $1) ON CONFLICT (k) DO UPDATE SET d = excluded.d WHERE t.d > excluded.d",
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
    let [short, planned] = both("");
    for sql in STATEMENTS.iter().chain(UPSERTS) {
        for value in values {
            for connection in [&short, &planned] {
                connection.execute_batch(&format!("DROP TABLE IF EXISTS t; {SETUP}")).unwrap();
            }
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
        let upsert =
            "INSERT INTO t (k, s, a) VALUES ($1, 'up', 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1 RETURNING a, s";
        for (key, gives) in [(52, "Int(1)"), (52, "Int(2)"), (52, "Int(3)"), (3, "22003"), (-4, "Int(-4)")] {
            assert!(run(upsert, key).contains(gives), "{key}");
        }
        assert_eq!(run("INSERT INTO t (k, s) VALUES ($1, 'x') ON CONFLICT DO NOTHING", 52), "0 rows");
        assert!(run("DELETE FROM t WHERE k = $1 RETURNING a", 52).contains("Int(3)"));
        assert_eq!(run("DELETE FROM t WHERE k = $1 RETURNING a", 52), "");
        assert_eq!(run("SELECT s FROM t WHERE k = $1", 51), "", "a statement that failed left a row");
        [&short, &planned].iter().for_each(|c| c.execute_batch(end).unwrap());
        assert_eq!(all_rows(&short, "t"), all_rows(&planned, "t"));
        assert_eq!(all_rows(&short, "t").len(), left);
    }
}

/// Text without parameters: the point path names the columns itself.
#[test]
fn columns_that_repeat_have_one_name() {
    let [on, off] = both(SETUP);
    let names = |connection: &Connection, sql: &str| -> Result<Vec<String>, String> {
        let rows = connection.query(sql).map_err(|e| e.sqlstate().to_owned())?;
        Ok(rows.schema().fields().iter().map(|field| field.name().clone()).collect())
    };
    for (sql, expected) in [
        ("SELECT a, a FROM t WHERE k = 1", Some("a a_2")),
        ("SELECT a, t.a, a AS b FROM t WHERE k = 1", Some("a a_2 b")),
        ("SELECT a + 1, a + 1, a AS b, s AS b FROM t WHERE k = 1", None),
        ("SELECT *, a FROM t WHERE k = 1", None),
        ("SELECT a AS s, s FROM t WHERE k = 1", None),
        ("UPDATE t SET a = 7 WHERE k = 1 RETURNING a, k, a", Some("a k a_3")),
        ("DELETE FROM t WHERE k = 2 RETURNING s, S, \"s\"", Some("s s_2 s_3")),
        ("INSERT INTO t (k, s) VALUES (90, 'x') RETURNING k, k", Some("k k_2")),
    ] {
        let answers = [names(&on, sql), names(&off, sql)];
        assert_eq!(answers[0], answers[1], "{sql}");
        if let Some(expected) = expected {
            assert_eq!(answers[0].as_ref().unwrap().join(" "), expected, "{sql}");
        }
    }
    assert!(on.short_statements() >= 5);
    assert_eq!(off.short_statements(), 0);
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

/// A text is stored without what is too much of its spaces, and found by what is stored.
#[test]
fn keys_are_those_of_the_stored_row() {
    for connection in both("CREATE TABLE w (k VARCHAR(3) PRIMARY KEY, n INTEGER); INSERT INTO w VALUES ('abc', 1)") {
        let run = |sql: &str| answer(&connection, sql, &[]);
        assert!(run("INSERT INTO w VALUES ('abc  ', 2)").starts_with("23505"));
        assert_eq!(run("INSERT INTO w VALUES ('abc  ', 2) ON CONFLICT (k) DO UPDATE SET n = w.n + 10"), "1 rows");
        assert_eq!(run("INSERT INTO w VALUES ('xyz ', 2) ON CONFLICT DO NOTHING"), "1 rows");
        assert_eq!(run("INSERT INTO w VALUES ('xyz', 3) ON CONFLICT DO NOTHING"), "0 rows");
        assert_eq!(all_rows(&connection, "w"), [r#"[Text("abc"), Int(11)]"#, r#"[Text("xyz"), Int(2)]"#]);
    }
}

/// What a write gives may be asked for or not; asking a write for rows that it does not give does not run it.
#[test]
fn returning_may_be_read_or_not() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute_batch("CREATE TABLE c (k INTEGER PRIMARY KEY, n BIGINT)").unwrap();
    let count = "INSERT INTO c VALUES ($1, 1) ON CONFLICT (k) DO UPDATE SET n = c.n + 1";
    let returning = connection.prepare(&format!("{count} RETURNING n AS counted, k")).unwrap();
    assert_eq!(returning.execute([7]).unwrap(), 1);
    let row = returning.query_row([7]).unwrap();
    assert_eq!((row.get::<i64>("counted").unwrap(), row.get::<i32>(1).unwrap()), (2, 7));
    assert_eq!(returning.query_batches([7]).unwrap().count_rows().unwrap(), 1);
    let quiet = connection.prepare(count).unwrap();
    assert_eq!(quiet.query([7]).unwrap_err().sqlstate(), "42601");
    assert_eq!(quiet.execute([7]).unwrap(), 1);
    assert_eq!(all_rows(&connection, "c"), ["[Int(7), Int(4)]"]);
    let batch = connection.query("DELETE FROM c WHERE k = 7 RETURNING n, k").unwrap();
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!((names, batch.count_rows().unwrap()), (vec!["n".to_owned(), "k".to_owned()], 1));
}

/// A write that waits at its table's gate can be canceled there, in its first run too, and leaves the gate as it is.
#[test]
fn whoever_waits_at_a_gate_can_be_canceled() {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE c (k INTEGER PRIMARY KEY, n BIGINT)").unwrap();
    let table = connection.table("c").unwrap().id;
    let gate = database.storage().close_write_gate(table, || Ok(())).unwrap();
    let short = connection.prepare("INSERT INTO c VALUES ($1, 1)").unwrap();
    let planned = connection.prepare("INSERT INTO c SELECT $1, 1").unwrap();
    connection.execute("SET statement_timeout = '30ms'").unwrap();
    let waits = || {
        assert_eq!(short.execute([1]).unwrap_err().sqlstate(), "57014");
        assert_eq!(planned.execute([1]).unwrap_err().sqlstate(), "57014");
    };
    waits();
    connection.execute("BEGIN").unwrap();
    waits();
    connection.execute("ROLLBACK").unwrap();
    // So do statements for the whole of a table, which would else be in the way of whoever holds the gate again and
    // again.
    connection.execute_batch("SET statement_timeout = 0; CREATE TABLE d (a INTEGER); CREATE SCHEMA n").unwrap();
    connection.execute_batch("CREATE TABLE n.t (a INTEGER); SET statement_timeout = '30ms'").unwrap();
    let inner = connection.table("n.t").unwrap().id;
    let inner = database.storage().close_write_gate(inner, || Ok(())).unwrap();
    for sql in [
        "TRUNCATE c",
        "TRUNCATE d, c RESTART IDENTITY",
        "DROP TABLE c",
        "DROP TABLE IF EXISTS nothing, d, c",
        "ALTER TABLE c ADD COLUMN m BIGINT",
        "DROP SCHEMA n CASCADE",
        "DELETE FROM c",
        "COPY c FROM 'nothing.csv'",
    ] {
        assert_eq!(connection.execute(sql).unwrap_err().sqlstate(), "57014", "{sql}");
        connection.execute("BEGIN").unwrap();
        assert_eq!(connection.execute(sql).unwrap_err().sqlstate(), "57014", "{sql}");
        connection.execute("ROLLBACK").unwrap();
    }
    drop(inner);
    connection.execute_batch("SET statement_timeout = 0; TRUNCATE d; DROP SCHEMA n CASCADE; DROP TABLE d").unwrap();
    let handle = connection.interrupt_handle();
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            // Again and again: the statement may not have begun to wait.
            while stopped.recv_timeout(std::time::Duration::from_millis(10)).is_err() {
                handle.interrupt();
            }
        });
        assert_eq!(short.execute([1]).unwrap_err().sqlstate(), "57014");
        stop.send(()).unwrap();
    });
    drop(gate);
    assert_eq!(short.execute([1]).unwrap(), 1);
}

/// Many connections upsert few keys, which come and go, while rows are frozen and merged: none sees a conflict, no
/// count is lost, and each is told once.
#[test]
fn hot_upserts_count() {
    const THREADS: i64 = 16;
    const EACH: i64 = 60;
    let options = mainstem::OpenOptions::new().delta_rows(100).segment_rows(50);
    let folder = tempfile::tempdir().unwrap();
    let databases = [
        Database::in_memory_with(options.clone()).unwrap(),
        Database::open_with(folder.path().join("db"), options).unwrap(),
    ];
    for database in databases {
        database.connect().unwrap().execute_batch("CREATE TABLE c (k INTEGER PRIMARY KEY, n BIGINT)").unwrap();
        let count = "INSERT INTO c VALUES ($1, 1) ON CONFLICT (k) DO UPDATE SET n = c.n + excluded.n RETURNING n";
        let counted: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let database = &database;
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        let connection = database.connect().unwrap();
                        let (count, once) = (
                            connection.prepare(count).unwrap(),
                            connection.prepare("INSERT INTO c VALUES ($1, 1) ON CONFLICT DO NOTHING").unwrap(),
                        );
                        let mut told = Vec::new();
                        for round in 0..EACH {
                            let key = (round + thread) % 3;
                            told.push(count.query_row([key]).unwrap().get::<i64>(0).unwrap() * 3 + key);
                            // One of all threads wins, whose row counts itself.
                            let won = once.execute([1_000 + round]).unwrap() as i64;
                            told.extend((won == 1).then_some(-round - 1));
                        }
                        told
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut counted: Vec<i64> = counted.into_iter().flatten().collect();
        counted.sort_unstable();
        // 1, 2, 3, ... for each of the three keys, and one winner of each round.
        let each = THREADS * EACH / 3;
        let expected: Vec<i64> = (-EACH..0).chain(3..3 * each + 3).collect();
        assert_eq!(counted, expected);
        let connection = database.connect().unwrap();
        let sums = connection.query_row("SELECT sum(n), count(*) FROM c", ()).unwrap();
        assert_eq!(sums.get::<i128>(0).unwrap(), i128::from(THREADS * EACH + EACH));
        assert_eq!(sums.get::<i64>(1).unwrap(), 3 + EACH);
    }
}

/// Runs each of `statements` on both paths, with each of `values`, and expects that the first path was the short one.
fn compare(setup: &str, table: &str, statements: &[&str], values: &[ValueRef<'_>]) {
    let [short, plans] = both(setup);
    for sql in statements {
        for value in values {
            let before = short.short_statements();
            let parameters = if sql.contains("$1") { std::slice::from_ref(value) } else { &[] };
            let mut answers = [&short, &plans].map(|connection| answer(connection, sql, parameters));
            if !sql.contains("ORDER BY") {
                answers = answers.map(|text| {
                    let mut lines: Vec<&str> = text.lines().collect();
                    lines.sort_unstable();
                    lines.join("\n")
                });
            }
            assert_eq!(answers[0], answers[1], "{sql} with {value:?}");
            assert_eq!(all_rows(&short, table), all_rows(&plans, table), "{sql} with {value:?}");
            // A constant that is too long is the plan's.
            let short_ones = u64::from(!answers[0].starts_with("22001") && !sql.contains("toolong"));
            assert_eq!(short.short_statements() - before, short_ones, "{sql} with {value:?}: {}", answers[0]);
        }
    }
    assert_eq!(plans.short_statements(), 0);
}

/// Numbers are drawn as a plan draws them, also by statements that fail.
#[test]
fn identity_columns_are_short() {
    let setup = "
        CREATE TABLE a (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v VARCHAR(3) NOT NULL, n INTEGER DEFAULT 7 CHECK (n > 0));
        CREATE TABLE d (id INTEGER GENERATED BY DEFAULT AS IDENTITY (START WITH 100 INCREMENT BY 10) PRIMARY KEY, s SERIAL, v TEXT)";
    compare(
        setup,
        "a",
        &[
            "INSERT INTO a (v) VALUES ('x')",
            "INSERT INTO a (v) VALUES ('y') RETURNING id",
            "INSERT INTO a (v, n) VALUES ('a', $1), ('b', 3) RETURNING *",
            "INSERT INTO a (v) VALUES ('toolong') RETURNING id",
            "INSERT INTO a (v) VALUES (NULL)",
            "INSERT INTO a (v, n) VALUES ('a', 1), (NULL, -1), ('toolong', 1)",
            "INSERT INTO a (v, n) VALUES ('a', 1), ('b', 0), ('c', -1)",
            "INSERT INTO a (v) VALUES ('again'), ('b') RETURNING id",
            "INSERT INTO a VALUES (DEFAULT, 'p', DEFAULT) RETURNING *",
            "INSERT INTO a VALUES (DEFAULT, 'p')",
            "INSERT INTO a OVERRIDING SYSTEM VALUE VALUES (3, 'own', $1) RETURNING id",
            "INSERT INTO a OVERRIDING USER VALUE VALUES (3, 'own', 1) RETURNING id",
            "INSERT INTO a DEFAULT VALUES",
            "INSERT INTO a (v) VALUES ('up') ON CONFLICT (id) DO UPDATE SET v = 'set' RETURNING *",
            "UPDATE a SET n = DEFAULT, v = 'set' WHERE id = $1 RETURNING *",
        ],
        &[ValueRef::Integer(2), ValueRef::BigInt(4)],
    );
    compare(
        setup,
        "d",
        &[
            "INSERT INTO d (v) VALUES ('x') RETURNING id, s",
            "INSERT INTO d VALUES (DEFAULT, 50, 'a'), ($1, DEFAULT, 'b'), (DEFAULT, DEFAULT, 'c')",
            "INSERT INTO d DEFAULT VALUES RETURNING *",
            "INSERT INTO d (id) VALUES (NULL)",
            "INSERT INTO d (id, v) VALUES ($1, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = excluded.s RETURNING *",
            "UPDATE d SET s = 3 WHERE id = $1",
            "DELETE FROM d WHERE id = $1 RETURNING s",
        ],
        &[ValueRef::Integer(200), ValueRef::BigInt(40)],
    );
    let planned = both(setup).map(|connection| {
        let run = |sql: &str| answer(&connection, sql, &[]);
        assert!(run("INSERT INTO a VALUES (5, 'x')").starts_with("428C9"));
        assert!(run("INSERT INTO a VALUES (DEFAULT, 'x'), (5, 'x')").starts_with("428C9"));
        assert!(run("UPDATE a SET id = 3 WHERE id = 1").starts_with("428C9"));
        assert!(run("INSERT INTO a (id, v) OVERRIDING USER VALUE VALUES (1 / 0, 'x')").starts_with("22012"));
        connection.short_statements()
    });
    assert_eq!(planned, [0, 0]);
}

/// Numbers of a transaction that has made its table, or begun its numbers anew.
#[test]
fn numbers_of_a_transaction() {
    for connection in both("") {
        connection.execute_batch("BEGIN; CREATE TABLE s (id SERIAL PRIMARY KEY, v TEXT)").unwrap();
        let insert = connection.prepare("INSERT INTO s (v) VALUES ($1) RETURNING id").unwrap();
        let next = || insert.query_row(["x"]).unwrap().get::<i32>(0).unwrap();
        assert_eq!((next(), next()), (1, 2));
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(next(), 3);
        connection.execute_batch("BEGIN").unwrap();
        assert_eq!(next(), 4);
        connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(next(), 5);
        connection.execute_batch("BEGIN; TRUNCATE s RESTART IDENTITY").unwrap();
        assert_eq!((next(), next()), (1, 2));
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(next(), 3);
        assert_eq!(all_rows(&connection, "s").len(), 3);
    }
}

/// Blanks of CHAR(n), and literals that spell values of other types, in keys and conditions.
#[test]
fn keys_of_other_types_are_short() {
    let setup = "
        CREATE TABLE c (k CHAR(4) PRIMARY KEY, n INTEGER, c CHAR(3), v VARCHAR(4));
        INSERT INTO c VALUES ('a', 1, 'x', 'x'), ('ab  ', 2, 'yy ', 'yy'), ('', 3, NULL, ' ')";
    let texts = ["a", "a   ", "ab", "", "   ", "b ", "abcd  ", "abcde"].map(ValueRef::Text);
    compare(
        setup,
        "c",
        &[
            "SELECT * FROM c WHERE k = $1",
            "SELECT k, c AS d FROM c WHERE k = 'ab '",
            "UPDATE c SET n = n + 1, c = 'z ', v = k WHERE k = $1 RETURNING c, v, k",
            "UPDATE c SET c = v WHERE k = $1 RETURNING c",
            "DELETE FROM c WHERE k = $1 RETURNING *",
            "INSERT INTO c VALUES ('q', 1, 'abcd', 'x')",
            "INSERT INTO c VALUES ($1, 4, '  b ', '  b ') ON CONFLICT (k) DO UPDATE SET c = 'up' WHERE c.c = 'x ' OR c.c < excluded.c RETURNING *",
            "INSERT INTO c VALUES ('new ', 4, $1, $1) ON CONFLICT (k) DO UPDATE SET c = excluded.v, v = excluded.c WHERE c.v = excluded.c RETURNING *",
        ],
        &texts[..4],
    );
    compare(setup, "c", &["SELECT * FROM c WHERE k = $1", "DELETE FROM c WHERE 'a ' = k"], &texts);
    for (data_type, first, second, parameter) in [
        (
            "UUID",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC999C0B4EF8BB6D6BB9BD380A12",
            ValueRef::Uuid(7_u128.into()),
        ),
        ("TIME", "10:20", "23:59:59.999999", ValueRef::Time("10:20:00".parse().unwrap())),
        ("DATE", "2020-02-29", "1999-12-31", ValueRef::Date(mainstem::Date::from_days(18_321))),
        (
            "TIMESTAMP",
            "2020-02-29 10:20:30",
            "1999-12-31",
            ValueRef::Timestamp(mainstem::Timestamp::from_micros(1_582_971_630_000_000)),
        ),
        ("TEXT", "x", "", ValueRef::Text("x ")),
    ] {
        let setup = format!(
            "CREATE TABLE y (k {data_type} PRIMARY KEY, o {data_type}); INSERT INTO y VALUES ('{first}', '{second}')"
        );
        let update = format!("UPDATE y SET o = k WHERE k = '{second}' RETURNING *");
        let statements = [
            format!("SELECT * FROM y WHERE k = '{first}'"),
            format!("SELECT o FROM y AS z WHERE '{second}' = z.k"),
            "SELECT * FROM y WHERE k = $1".into(),
            "INSERT INTO y VALUES ($1, $1) ON CONFLICT (k) DO UPDATE SET o = excluded.o WHERE y.o <> excluded.o RETURNING *".into(),
            format!("INSERT INTO y VALUES ('{second}', NULL) ON CONFLICT (k) DO UPDATE SET o = NULL WHERE y.o > '{first}' RETURNING o"),
            update,
            format!("DELETE FROM y WHERE k = '{first}' RETURNING k"),
        ];
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        compare(&setup, "y", &statements, &[parameter, ValueRef::Text(first), ValueRef::Text(second), ValueRef::Null]);
    }
}

/// Rows too many for a delta wait for memory that other loads hold no longer than the statement may take.
#[test]
fn an_insert_of_many_rows_waits_as_its_statement_may() {
    let options = OpenOptions::new().memory_limit(32 << 20).background(false);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE held (k BIGINT); CREATE TABLE t (k BIGINT PRIMARY KEY)").unwrap();
    // Loads that stand still, each with a piece of what they share, until none is left.
    let storage = database.storage();
    let mut still = Vec::new();
    for _ in 0..8 {
        let txn = storage.begin(TransactionMode::default()).unwrap();
        let mut statement = txn.statement();
        let schema = txn.catalog().table_named("held").unwrap().clone();
        let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        statement.insert(&schema, &RecordBatch::try_new(schema.arrow(), vec![rows]).unwrap()).unwrap();
        still.push((txn, statement));
    }
    let rows = (0..10_000).map(|k| format!("({k})")).collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT INTO t VALUES {rows}");
    connection.execute("SET statement_timeout = 200").unwrap();
    // Nothing that takes time is done under the limit but this.
    for begin in [None, Some("BEGIN")] {
        begin.map(|begin| connection.execute(begin).unwrap());
        assert_eq!(connection.execute(&insert).map(|_| ()).unwrap_err().sqlstate(), "57014", "after {begin:?}");
    }
    connection.execute_batch("ROLLBACK; SET statement_timeout = 0").unwrap();
    drop(still);
    connection.execute(&insert).unwrap();
    let counted = connection.query("SELECT count(*) FROM t").unwrap().rows().next().unwrap().unwrap();
    assert_eq!(counted.get::<i64>(0).unwrap(), 10_000);
}

#[test]
fn tables_that_empty_themselves_leave_others_their_short_way() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    let setup = "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES (1, 1);
        CREATE TEMP TABLE emptied (k INTEGER PRIMARY KEY, v INTEGER) ON COMMIT DELETE ROWS;
        BEGIN; CREATE TEMP TABLE dropped (k INTEGER PRIMARY KEY) ON COMMIT DROP; COMMIT";
    connection.execute_batch(setup).unwrap();
    let count = |table: &str| all_rows(&connection, table).len();
    // How many statements of `sql` went without a plan.
    let short = |sql: &str| {
        let before = connection.short_statements();
        connection.execute_batch(sql).unwrap();
        connection.short_statements() - before
    };
    assert_eq!(short("INSERT INTO t VALUES (2, 2); UPDATE t SET v = 5 WHERE k = 2; DELETE FROM t WHERE k = 1"), 3);
    assert_eq!(short("SELECT v FROM t WHERE k = 2; SELECT v FROM emptied WHERE k = 1"), 2);
    assert_eq!(count("t"), 1);
    // Outside a transaction a row of it goes with its statement.
    assert_eq!(short("INSERT INTO emptied VALUES (1, 1)"), 0);
    assert_eq!(count("emptied"), 0);
    assert_eq!(short("BEGIN; INSERT INTO emptied VALUES (1, 1); UPDATE emptied SET v = 2 WHERE k = 1"), 2);
    assert_eq!(short("INSERT INTO t VALUES (3, 3)"), 1);
    assert_eq!((count("emptied"), count("t")), (1, 2));
    connection.execute("COMMIT").unwrap();
    assert_eq!((count("emptied"), count("t")), (0, 2));
    let upsert = connection.prepare("INSERT INTO emptied VALUES ($1, 1) ON CONFLICT (k) DO UPDATE SET v = 9").unwrap();
    for _ in 0..2 {
        upsert.execute([ValueRef::Integer(7)]).unwrap();
        assert_eq!(count("emptied"), 0);
    }
}

const ORDERS: &str = "
    CREATE TABLE o (uid BIGINT, n INTEGER, amount DECIMAL(8, 2), note TEXT, PRIMARY KEY (uid, n), UNIQUE (note));
    INSERT INTO o SELECT x / 4, x % 4, x + 0.25, 'note ' || x FROM generate_series(0, 79) AS g (x);
    UPDATE o SET amount = amount + 100 WHERE n = 2;
    DELETE FROM o WHERE uid = 7";

/// Parts and ranges of the key that main is in the order of.
#[test]
fn ranges_of_keys_are_short() {
    let statements = [
        "SELECT * FROM o WHERE uid = $1 ORDER BY n",
        "SELECT count(*) FROM o WHERE uid = $1",
        "SELECT count(*) AS many FROM o WHERE uid > $1 AND n = 2",
        "SELECT n, amount FROM o WHERE uid = $1 ORDER BY n DESC LIMIT 1",
        "SELECT o.note FROM o WHERE uid = $1 AND n BETWEEN 1 AND 2 ORDER BY uid, n DESC",
        "SELECT n AS uid, uid AS n FROM o AS x WHERE x.uid = $1 AND 2 > n ORDER BY x.n",
        "SELECT * FROM o WHERE uid > $1 ORDER BY uid, n LIMIT 3",
        "SELECT * FROM o WHERE uid < $1 AND amount > 10 ORDER BY uid DESC, n DESC LIMIT 3",
        "SELECT note FROM o WHERE uid BETWEEN $1 AND $1 + 2 AND n IN (1, 3) ORDER BY uid, n",
        "SELECT uid + n AS sum FROM o WHERE uid >= $1 AND uid <= $1 ORDER BY uid, n",
        "SELECT * FROM o ORDER BY uid DESC, n DESC LIMIT 2",
        "SELECT * FROM o WHERE uid = $1 AND n = 1 ORDER BY note LIMIT 1",
        "SELECT EXISTS (SELECT 1 FROM o WHERE uid = $1)",
        "SELECT EXISTS (SELECT * FROM o WHERE uid = $1 AND n = 3) AS there",
        "UPDATE o SET amount = amount * 2, note = note || '!' WHERE uid = $1 RETURNING n, amount",
        "UPDATE o SET amount = n WHERE uid IN ($1, 5) AND n = 2",
        "SELECT * FROM o WHERE uid IN ($1, 5, 3) ORDER BY uid, n",
        "SELECT uid, n, note FROM o WHERE uid IN ($1, 5, 2 + $1) AND n > 1 ORDER BY uid DESC, n DESC LIMIT 3",
        "SELECT count(*) FROM o WHERE uid IN (5, $1, 5)",
        "SELECT EXISTS (SELECT 1 FROM o WHERE uid IN ($1, 200) AND amount > 10)",
        "SELECT n, uid FROM o WHERE uid IN ($1, 5) AND n IN (1, 3) ORDER BY uid, n",
        "SELECT * FROM o WHERE uid IN ($1, 6) ORDER BY uid LIMIT 3 FOR UPDATE",
        "UPDATE o SET amount = amount + 1 WHERE uid IN ($1, 4, $1) RETURNING uid, n, amount",
        "DELETE FROM o WHERE uid IN ($1, 11) AND n >= 2 RETURNING uid, n",
        "DELETE FROM o WHERE uid = $1 AND n < 1",
        "DELETE FROM o WHERE uid = $1 AND n IN (1, 2) RETURNING note",
        "INSERT INTO o SELECT $1, 9, 1, NULL",
        "INSERT INTO o (n, uid) SELECT 10, $1 RETURNING *",
    ];
    let values = [3, 7, 19, 100].map(ValueRef::BigInt);
    compare(ORDERS, "o", &statements, &[&values[..], &[ValueRef::Null]].concat());
    // What an error may come of is told by the plan.
    let [short, plans] = both(ORDERS);
    for sql in [
        "UPDATE o SET note = 'one for all' WHERE uid = $1",
        "UPDATE o SET note = 'taken' WHERE uid = $1 AND n > 2",
        "UPDATE o SET amount = amount * 1000000 WHERE uid = $1",
        "SELECT 1 / (n - 2) FROM o WHERE uid = $1",
        "SELECT * FROM o WHERE uid = $1 ORDER BY n LIMIT -1",
        "SELECT n AS uid FROM o WHERE n < 3 ORDER BY uid DESC, n LIMIT 5",
        "SELECT * FROM o WHERE uid IN ($1, 5, 12) ORDER BY n, uid LIMIT 4",
        "SELECT * FROM o WHERE uid IN ($1, 5) ORDER BY uid DESC, n LIMIT 6",
        "SELECT 1 / (n - 2) FROM o WHERE uid IN ($1, 5)",
        "SELECT uid AS n, n AS m FROM o WHERE uid < $1 ORDER BY uid, n LIMIT 5",
    ] {
        for value in values {
            let parameters = if sql.contains("$1") { std::slice::from_ref(&value) } else { &[] };
            let answers = [&short, &plans].map(|connection| answer(connection, sql, parameters));
            assert_eq!(answers[0], answers[1], "{sql} with {value:?}");
            assert_eq!(all_rows(&short, "o"), all_rows(&plans, "o"), "{sql} with {value:?}");
        }
    }
}

const PEOPLE: &str = "
    CREATE TABLE p (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, a INTEGER NOT NULL, b INTEGER, day DATE NOT NULL,
                    UNIQUE (a, b), UNIQUE (day, id)) ORDER BY (day);
    INSERT INTO p SELECT x, CASE WHEN x % 4 > 0 THEN 'user' || (x * 37 % 101) END, x % 5, CASE WHEN x % 7 > 0 THEN x END,
                         DATE '2024-01-01' + (x * 11 % 30) FROM generate_series(1, 80) AS g (x)";

/// What moves the rows of table `p`, all or some, to other places.
fn move_rows(database: &Database, step: usize) {
    let storage = database.storage();
    let look = storage.begin(TransactionMode { read_only: true, ..TransactionMode::default() }).unwrap();
    let table = look.catalog().tables().find(|table| table.name == "p").unwrap().id;
    drop(look);
    match step {
        1 => storage.flush(table).unwrap(),
        2 => storage.freeze(table).unwrap(),
        3 => storage.merge(table).unwrap(),
        _ => {}
    }
}

/// Parts and ranges of keys that main is not in the order of, wherever the rows are.
#[test]
fn ranges_of_any_key_are_short() {
    let statements = [
        "SELECT * FROM p WHERE id > $1 ORDER BY id LIMIT 5",
        "SELECT id, day FROM p WHERE id BETWEEN $1 AND $1 + 9 ORDER BY id DESC",
        "SELECT id FROM p ORDER BY id DESC LIMIT 3",
        "SELECT count(*) FROM p WHERE id <= $1",
        "SELECT id, mail FROM p WHERE mail > 'user4' AND id <> $1 ORDER BY mail LIMIT 4",
        "SELECT mail FROM p WHERE mail BETWEEN 'user1' AND 'user2' AND id > $1 ORDER BY mail DESC",
        "SELECT id FROM p WHERE a = $1 AND b > 20 ORDER BY b",
        "SELECT b FROM p WHERE a = $1 - 1 AND b < 60 ORDER BY b DESC LIMIT 2",
        "SELECT EXISTS (SELECT 1 FROM p WHERE id > $1)",
        "SELECT id FROM p WHERE day = DATE '2024-01-02' ORDER BY id",
        "SELECT x.id, y.id FROM p AS x JOIN p AS y ON y.day = x.day WHERE x.id = $1 ORDER BY y.id",
        "UPDATE p SET b = b + 1000 WHERE id BETWEEN $1 AND $1 + 3 RETURNING id, b",
        "UPDATE p SET b = b + 1, day = day + 1 WHERE mail < 'user2' AND id <> $1",
        "UPDATE p SET day = day + 1 WHERE a = $1 AND b > 5",
        "SELECT a, b FROM p WHERE a IN (3, $1, 1) AND b > 20 ORDER BY a DESC, b DESC LIMIT 4",
        "SELECT id FROM p WHERE day IN (DATE '2024-01-03', DATE '2024-01-02') AND id <> $1 ORDER BY day, id",
        "SELECT sum(b), count(b), min(day), max(id), count(DISTINCT a) FROM p WHERE id BETWEEN $1 AND $1 + 30",
        "SELECT max(id) FROM p",
        "SELECT min(day) AS first FROM p",
        "SELECT max(b) FROM p WHERE a = $1 AND b > 20",
        "SELECT min(id) FROM p WHERE id > $1",
        "SELECT count(*) FROM p AS x JOIN p AS y ON y.day = x.day WHERE x.id = $1",
        "SELECT sum(y.b), max(x.day) FROM p AS x JOIN p AS y ON y.day = x.day WHERE x.id BETWEEN $1 AND $1 + 9",
        "DELETE FROM p WHERE a = $1 AND b < 30",
        "DELETE FROM p WHERE id >= $1 + 70 RETURNING id",
        "INSERT INTO p VALUES ($1 + 100, 'user' || $1, 7, $1, DATE '2024-02-01')",
        "SELECT id FROM p WHERE id < $1 AND mail IS NULL ORDER BY id LIMIT 2 FOR UPDATE",
        "SELECT min(day) AS of_all FROM p",
        "SELECT max(id) AS written FROM p WHERE id > $1",
        "SELECT sum(b) AS written, count(*), max(day) FROM p WHERE a = 7 AND b >= $1 - 100",
    ];
    let values = [3, 40, 4, 77].map(ValueRef::Integer);
    let databases = [(); 2].map(|()| Database::in_memory_with(OpenOptions::new().background(false)).unwrap());
    let [short, plans] = databases.each_ref().map(|database| database.connect().unwrap());
    plans.execute("SET point_path = off").unwrap();
    [&short, &plans].iter().for_each(|c| c.execute_batch(PEOPLE).unwrap());
    let mut ran = BTreeSet::new();
    for step in 0..12 {
        move_rows(&databases[0], step % 4);
        for end in ["ROLLBACK", "COMMIT"] {
            [&short, &plans].iter().for_each(|c| c.execute_batch("BEGIN").unwrap());
            for sql in statements {
                let value = &values[step % 4..=step % 4];
                let (before, value) = (short.short_statements(), if sql.contains("$1") { value } else { &[] });
                let answers = [&short, &plans].map(|connection| answer(connection, sql, value));
                let sorted = |text: &str| {
                    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(sorted(&answers[0]), sorted(&answers[1]), "{sql} with {value:?} in step {step}");
                if sql.contains("ORDER BY") {
                    assert_eq!(answers[0], answers[1], "{sql} with {value:?} in step {step}");
                }
                if short.short_statements() > before {
                    ran.insert(sql);
                }
            }
            [&short, &plans].iter().for_each(|c| c.execute_batch(end).unwrap());
            assert_eq!(all_rows(&short, "p"), all_rows(&plans, "p"), "step {step}");
        }
    }
    let planned: Vec<_> = statements.iter().filter(|sql| !ran.contains(**sql)).collect();
    assert!(planned.is_empty(), "{planned:?}");
}

/// Aggregates of the rows of a key, of ranges and of joins by key.
#[test]
fn aggregates_of_few_rows_are_short() {
    let setup = format!(
        "{ORDERS}; {USERS}; CREATE TABLE m (g INTEGER, k INTEGER, s SMALLINT, b BIGINT, d DECIMAL(38, 2), \
         t TIMESTAMP, x DOUBLE PRECISION, c TEXT, PRIMARY KEY (g, k)); \
         INSERT INTO m SELECT x % 4, x, x - 10, CASE WHEN x % 3 > 0 THEN x * 1000000007 END, x * 1.25, \
         TIMESTAMP '2024-01-01' + x * INTERVAL '1 hour', x / 3.0, 'c' || x FROM generate_series(1, 40) AS g (x); \
         INSERT INTO m VALUES (9, 1, 1, 9223372036854775807, 999999999999999999999999999999999999.99), \
         (9, 2, 1, 1, 1), (8, 1, NULL, NULL, NULL)"
    );
    let statements = [
        "SELECT sum(s), sum(k), sum(b), sum(d) FROM m WHERE g = $1 AND k BETWEEN 1 AND 30",
        "SELECT CAST(sum(b) AS BIGINT) AS b, sum(k)::BIGINT, count(b) AS many FROM m WHERE g = $1",
        "SELECT CAST(sum(amount) AS BIGINT) FROM o WHERE n = 1 AND uid = $1",
        "SELECT COUNT(*), count(m.b), Max(m.t), min(d), count(DISTINCT s) FROM m WHERE g = $1",
        "SELECT max(k) FROM m WHERE g = $1",
        "SELECT min(m.k) AS least FROM m WHERE g = $1 AND k > 7",
        "SELECT max(g) FROM m WHERE g < $1",
        "SELECT max(k), min(k) FROM m WHERE g = $1",
        "SELECT max(k) FROM m WHERE g = $1 AND s < 9",
        "SELECT max(k) FROM m WHERE g IN (1, $1)",
        "SELECT sum(amount) FROM o WHERE uid = $1",
        "SELECT max(amount) FROM o WHERE uid IN ($1, 5) AND n > 0",
        "SELECT sum(n) FROM o WHERE uid = $1 AND n = 2",
        "SELECT count(*) FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
        "SELECT count(*), count(o.n), sum(o.amount) FROM u LEFT JOIN o ON o.uid = u.id AND o.n > 1 WHERE u.id = $1",
        "SELECT count(DISTINCT u.id), max(o.amount) FROM o JOIN u ON u.id = o.n WHERE o.uid = $1 AND o.n < 3",
    ];
    let values = [1, 3, 7, 8, 100].map(ValueRef::BigInt);
    let planned = "SELECT CAST(sum(amount) AS BIGINT) FROM o WHERE n = 1 AND uid = $1";
    let short: Vec<_> = statements.into_iter().filter(|sql| *sql != planned).collect();
    compare(&setup, "o", &short, &[&values[..], &[ValueRef::Null]].concat());
    let [short, plans] = both(&setup);
    for sql in [
        planned,
        "SELECT sum(b) FROM m WHERE g = $1",
        "SELECT sum(d) FROM m WHERE g = $1",
        "SELECT sum(x), avg(k), min(c) FROM m WHERE g = $1",
        "SELECT sum(k), sum(k) FROM m WHERE g = $1",
        "SELECT sum(k), sum(s) AS sum_3, sum(b) FROM m WHERE g = $1 AND k < 30",
        "SELECT sum(k) AS sum, sum(s) AS sum FROM m WHERE g = $1",
        "SELECT sum(k) AS sum, sum(s) FROM m WHERE g = $1",
        "SELECT sum(k) AS sum_2, sum(s), sum(b) FROM m WHERE g = $1 AND k < 30",
        "SELECT sum(nothing) FROM m WHERE g = $1",
        "SELECT CAST(sum(k) AS BIGINT ARRAY) FROM m WHERE g = $1",
        "SELECT sum(c) FROM m WHERE g = $1",
        "SELECT max(k) FROM m WHERE g = $1 GROUP BY g",
        "SELECT max(k) FROM m WHERE g = $1 HAVING count(*) > 100",
        "SELECT max(k) FROM m WHERE g = $1 LIMIT 0",
        "SELECT max(k) FROM m WHERE g = $1 ORDER BY 1",
        "SELECT DISTINCT max(k) FROM m WHERE g = $1",
        "SELECT max(k) OVER () FROM m WHERE g = $1 AND k < 3",
        "SELECT sum(k) FILTER (WHERE k > 3) FROM m WHERE g = $1",
        "SELECT max(k) FROM m WHERE g = $1 FOR UPDATE",
        "SELECT sum(1) FROM m WHERE g = $1",
        "SELECT max(k) FROM m WHERE g = $1 AND 1 / (k - 30) > 0",
        "SELECT count(*) FROM u JOIN o ON o.uid = u.id WHERE u.id = $1 LIMIT 0",
        "SELECT max(n) FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
    ] {
        for value in values.into_iter().chain([ValueRef::BigInt(9), ValueRef::Null]) {
            let answers = [&short, &plans].map(|connection| answer(connection, sql, &[value]));
            assert_eq!(answers[0], answers[1], "{sql} with {value:?}");
        }
    }
}

/// A row with NULL in a column of a key is without it, and no range of the key has it: what may mean such rows is
/// planned.
#[test]
fn rows_without_a_key_are_not_looked_for_by_it() {
    let [short, plans] = both(PEOPLE);
    for (sql, is_short) in [
        ("SELECT id FROM p WHERE a = 3 ORDER BY id", false),
        ("SELECT count(*) FROM p WHERE a = 3", false),
        ("SELECT id FROM p WHERE a > 3 ORDER BY a, b, id LIMIT 7", false),
        ("SELECT mail FROM p ORDER BY mail DESC, id LIMIT 3", false),
        ("SELECT mail FROM p ORDER BY mail, id LIMIT 3", false),
        ("UPDATE p SET b = b WHERE a = 2", false),
        ("SELECT b FROM p WHERE a = 3 AND b >= 0 ORDER BY b", true),
        ("SELECT mail FROM p WHERE mail > '' ORDER BY mail LIMIT 3", true),
        ("SELECT id FROM p WHERE day > DATE '2024-01-20' ORDER BY day, id LIMIT 3", true),
    ] {
        let before = short.short_statements();
        let answers = [&short, &plans].map(|connection| answer(connection, sql, &[]));
        assert_eq!(answers[0], answers[1], "{sql}");
        assert_eq!(short.short_statements() > before, is_short, "{sql}");
        let told = short.query(&format!("EXPLAIN {sql}")).unwrap().rows().last().unwrap().unwrap();
        assert_eq!(told.get::<&str>(1).unwrap().starts_with("compiled: range of keys of p ("), is_short, "{sql}");
    }
    let told = short.query("EXPLAIN SELECT id FROM p WHERE a = 1 AND b > 3").unwrap().rows().last().unwrap().unwrap();
    assert_eq!(told.get::<&str>(1).unwrap(), "compiled: range of keys of p (a, b)");
}

/// More rows than are looked at one by one are scanned.
#[test]
fn large_ranges_are_planned() {
    let [short, plans] = both(
        "CREATE TABLE o (uid BIGINT, n INTEGER, PRIMARY KEY (uid, n));
         INSERT INTO o SELECT x / 5000, x % 5000 FROM generate_series(0, 9999) AS g (x)",
    );
    for (sql, is_short) in [
        ("SELECT n FROM o WHERE uid = $1 ORDER BY n", 0),
        ("SELECT n FROM o WHERE uid = $1 ORDER BY n DESC LIMIT 3", 1),
        ("SELECT count(*) FROM o WHERE uid = $1", 1),
        ("UPDATE o SET uid = uid WHERE uid = $1 AND n < 2000", 0),
        ("DELETE FROM o WHERE uid = $1 AND n >= 4500", 1),
        ("DELETE FROM o WHERE uid = $1", 0),
    ] {
        let before = short.short_statements();
        let answers = [&short, &plans].map(|connection| answer(connection, sql, &[ValueRef::BigInt(1)]));
        assert_eq!(answers[0], answers[1], "{sql}");
        assert_eq!(short.short_statements() - before, is_short, "{sql}");
    }
}

/// In a transaction that has written, and locks rows.
#[test]
fn ranges_see_what_the_transaction_wrote() {
    let databases = [(); 2].map(|()| Database::in_memory().unwrap());
    let [short, plans] = databases.each_ref().map(|database| database.connect().unwrap());
    plans.execute("SET point_path = off").unwrap();
    [&short, &plans].iter().for_each(|c| c.execute_batch(ORDERS).unwrap());
    for end in ["ROLLBACK", "COMMIT"] {
        [&short, &plans].iter().for_each(|c| c.execute_batch("BEGIN").unwrap());
        let before = short.short_statements();
        let statements = [
            "INSERT INTO o VALUES ($1, 9, 9, 'nine')",
            "UPDATE o SET amount = -1 WHERE uid = $1 AND n < 2",
            "SELECT * FROM o WHERE uid = $1 ORDER BY n DESC",
            "DELETE FROM o WHERE uid = $1 AND n > 2",
            "SELECT n, amount FROM o WHERE uid >= $1 ORDER BY uid, n LIMIT 5",
            "SELECT n FROM o WHERE uid = $1 AND n = 1 FOR UPDATE",
            "SELECT n FROM o WHERE uid = $1 ORDER BY n LIMIT 2 FOR SHARE",
        ];
        for sql in statements {
            let answers = [&short, &plans].map(|connection| answer(connection, sql, &[ValueRef::BigInt(4)]));
            assert_eq!(answers[0], answers[1], "{sql}");
        }
        assert_eq!(short.short_statements() - before, statements.len() as u64);
        if end == "COMMIT" {
            // A row that was locked is changed: whoever commits first wins.
            for (connection, database) in [(&short, &databases[0]), (&plans, &databases[1])] {
                let locked = answer(connection, "SELECT n FROM o WHERE uid = $1 FOR UPDATE", &[ValueRef::BigInt(11)]);
                assert_eq!(locked.lines().count(), 4);
                let other = database.connect().unwrap();
                other.execute("UPDATE o SET amount = 0 WHERE uid = 11 AND n = 3").unwrap();
                assert_eq!(connection.execute("COMMIT").unwrap_err().sqlstate(), "40001");
            }
        } else {
            [&short, &plans].iter().for_each(|c| c.execute_batch(end).unwrap());
        }
        assert_eq!(all_rows(&short, "o"), all_rows(&plans, "o"));
    }
}

const USERS: &str = "
    CREATE TABLE u (id BIGINT PRIMARY KEY, name TEXT UNIQUE, n INTEGER);
    INSERT INTO u SELECT x, 'user ' || x, x % 7 FROM generate_series(0, 29) AS g (x);
    UPDATE u SET n = NULL WHERE id = 5";

/// The inner side is looked up by a key for each row of the outer one.
#[test]
fn joins_by_keys_are_short() {
    let setup = format!("{ORDERS}; {USERS}");
    let statements = [
        "SELECT name, amount FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
        "SELECT u.n, o.n FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
        "SELECT u.name, o.amount AS a, o.n AS number FROM u INNER JOIN o ON u.id = o.uid WHERE $1 = u.id AND o.n > 1 ORDER BY o.n DESC LIMIT 2",
        "SELECT o.note, u.name FROM o JOIN u ON u.id = o.uid WHERE o.uid = $1 AND o.n < 3",
        "SELECT o.note, u.name FROM o JOIN u ON u.id = o.n WHERE o.uid = $1",
        "SELECT u.name, x.note FROM u LEFT JOIN o AS x ON x.uid = u.id AND x.n = 2 WHERE u.id = $1",
        "SELECT u.name, x.note FROM u LEFT JOIN o AS x ON x.uid = u.id AND x.n > 1 WHERE u.id BETWEEN $1 AND $1 + 3",
        "SELECT u.name FROM u LEFT JOIN o ON o.uid = u.id WHERE u.id = $1 AND o.note IS NULL",
        "SELECT a.name, b.name AS other FROM u AS a JOIN u AS b ON b.id = a.n WHERE a.id IN ($1, 4, 5, 6)",
        "SELECT o.note FROM o JOIN u ON o.uid = u.id AND u.n = 3 WHERE o.uid >= $1 AND o.uid < 12",
    ];
    let values = [3, 5, 7, 19, 25, 100].map(ValueRef::BigInt);
    compare(&setup, "o", &statements, &[&values[..], &[ValueRef::Null]].concat());
    let [short, plans] = both(&setup);
    for sql in [
        "SELECT * FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
        "SELECT n FROM u JOIN o ON o.uid = u.id WHERE u.id = $1",
        "SELECT u.n FROM u JOIN o ON o.uid = u.id WHERE u.id = $1 AND 1 / (o.n - 2) > 0",
        "SELECT u.n FROM u JOIN o ON o.uid = u.id WHERE u.id > $1 ORDER BY u.id LIMIT 3",
        "SELECT u.n FROM u JOIN o USING (n) WHERE u.id = $1",
        "SELECT * FROM (VALUES (1)) AS v JOIN o ON true WHERE uid = $1",
        "SELECT u.n, x.n AS m FROM u LEFT JOIN o AS x ON true WHERE u.id = $1 AND x.uid = u.id",
        "SELECT u.name FROM u JOIN u AS o ON o.name = u.name WHERE u.id = $1",
    ] {
        for value in values {
            let mut answers = [&short, &plans].map(|connection| answer(connection, sql, &[value]));
            answers = answers.map(|text| {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                lines.join("\n")
            });
            assert_eq!(answers[0], answers[1], "{sql} with {value:?}");
        }
    }
}

/// Both tables are read at one snapshot, with what the transaction wrote to either.
#[test]
fn joins_see_what_the_transaction_wrote() {
    let [short, plans] = both(&format!("{ORDERS}; {USERS}"));
    [&short, &plans].iter().for_each(|c| c.execute_batch("BEGIN; UPDATE u SET name = 'new' WHERE id = 3; INSERT INTO o VALUES (3, 8, 8, 'eight'); DELETE FROM o WHERE uid = 3 AND n = 0").unwrap());
    let before = short.short_statements();
    let sql = "SELECT u.name, o.note FROM u JOIN o ON o.uid = u.id WHERE u.id = $1 ORDER BY o.n";
    let answers = [&short, &plans].map(|connection| answer(connection, sql, &[ValueRef::BigInt(3)]));
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].lines().count(), 4);
    assert_eq!(short.short_statements() - before, 1);
}

/// Names, orders and wrong values that a second reader found to differ.
#[test]
fn names_and_wrong_values_are_those_of_the_plan() {
    let [short, plans] = both(
        "CREATE TABLE a (x INTEGER PRIMARY KEY, s TEXT); CREATE TABLE b (id INTEGER PRIMARY KEY, w DATE);
         CREATE TABLE f (abs INTEGER PRIMARY KEY, v INTEGER); CREATE TABLE c (x INTEGER, z INTEGER, PRIMARY KEY (x, z));
         INSERT INTO a VALUES (1, 'q'), (2, 'r'), (10, 's'), (11, 't'); INSERT INTO b VALUES (1, '2020-01-01');
         INSERT INTO f VALUES (1, -9), (2, 3), (3, 0); INSERT INTO c VALUES (1, 2)",
    );
    for sql in [
        "SELECT * FROM a JOIN b ON a.x = b.id WHERE b.id = 1",
        "SELECT s, * FROM a JOIN b ON a.x = b.id WHERE b.id = 1",
        "SELECT x::text FROM a WHERE x > 0 ORDER BY x",
        "SELECT cast(x AS varchar) FROM a WHERE x > 0 ORDER BY x DESC LIMIT 2",
        "SELECT abs(v) FROM f WHERE abs > 0 ORDER BY abs",
    ] {
        let answers = [&short, &plans].map(|connection| answer(connection, sql, &[]));
        assert_eq!(answers[0], answers[1], "{sql}");
    }
    for sql in [
        "SELECT z FROM c WHERE x = $1 AND z = $2",
        "SELECT s, w FROM a LEFT JOIN b ON b.id = $2 WHERE a.x = $1",
        "SELECT s FROM a WHERE x IN ($1, $2)",
        "SELECT z FROM c WHERE x = $1 AND z > $2",
    ] {
        for first in [ValueRef::Null, ValueRef::Integer(99), ValueRef::Integer(1)] {
            let values = [first, ValueRef::Text("q")];
            let answers = [&short, &plans].map(|connection| answer(connection, sql, &values));
            assert_eq!(answers[0], answers[1], "{sql} with {first:?}");
            assert!(answers[0].starts_with("22P02"), "{sql}: {}", answers[0]);
        }
    }
}

/// A join that would look at many rows is planned.
#[test]
fn joins_of_many_rows_are_planned() {
    let [short, _] = both(
        "CREATE TABLE o (uid INTEGER, n INTEGER, t TEXT, PRIMARY KEY (uid, n));
         INSERT INTO o SELECT x / 100, x % 100, 'x' FROM generate_series(0, 299) AS g (x)",
    );
    let sql = "SELECT o.n FROM o JOIN o AS p ON p.uid = o.uid WHERE o.uid = $1 AND p.t = 'nope'";
    let before = short.short_statements();
    assert_eq!(answer(&short, sql, &[ValueRef::Integer(1)]), "");
    assert_eq!(short.short_statements(), before);
}

#[test]
fn rows_of_tables_without_keys_are_inserted_without_a_plan() {
    let setup = "CREATE TABLE h (n INTEGER, t VARCHAR(9) DEFAULT 'none', d DATE, CHECK (n > 0 OR t = 'low'));
                 INSERT INTO h VALUES (1, 'x', NULL)";
    let statements = [
        "INSERT INTO h VALUES ($1, 'a', '2020-01-02')",
        "INSERT INTO h VALUES ($1, 'low', '2020-01-02') RETURNING *, n + 1 AS more",
        "INSERT INTO h (n) VALUES ($1), (7), (8) RETURNING t, n",
        "INSERT INTO h (t, n) VALUES ('toolong toolong', $1)",
        "INSERT INTO h SELECT $1, 'low', NULL",
        "INSERT INTO h (d, n) VALUES (DEFAULT, 3), ('2021-01-01', 4)",
    ];
    compare(setup, "h", &statements, &[ValueRef::Integer(5), ValueRef::Integer(-5), ValueRef::Null]);
    // Inside a transaction, and undone.
    let [short, plans] = both(setup);
    let before = short.short_statements();
    for connection in [&short, &plans] {
        connection.execute("BEGIN").unwrap();
        let insert = connection.prepare("INSERT INTO h VALUES ($1, 'own', NULL)").unwrap();
        for number in 1..4 {
            insert.execute([number]).unwrap();
        }
        let count = |sql: &str| answer(connection, sql, &[]);
        assert!(count("SELECT count(*) FROM h").contains('4'));
        connection.execute("ROLLBACK").unwrap();
        assert!(count("SELECT count(*) FROM h").contains('1'));
        connection.execute("DELETE FROM h").unwrap();
        insert.execute([9]).unwrap();
    }
    assert_eq!(all_rows(&short, "h"), all_rows(&plans, "h"));
    assert_eq!((short.short_statements() - before, plans.short_statements()), (4, 0));
    // No key, no conflict: a plan says so.
    assert_eq!(
        answer(&short, "INSERT INTO h VALUES (1) ON CONFLICT DO NOTHING", &[]),
        answer(&plans, "INSERT INTO h VALUES (1) ON CONFLICT DO NOTHING", &[])
    );
}
