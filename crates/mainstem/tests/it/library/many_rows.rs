//! One statement with many rows of values: as columns where it can be, and as the statement would do it.

use mainstem::{Connection, Database, Decimal, TransactionStatus, Value, ValueRef};

fn connect(definition: &str) -> Connection {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute(definition).unwrap();
    connection
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let rows = connection.query(sql).unwrap().rows();
    rows.map(|row| row.unwrap().get::<String>(0).unwrap()).collect()
}

fn count(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM t", ()).unwrap().get(0).unwrap()
}

const DEFINITION: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR(5) NOT NULL, d DATE, n NUMERIC(6,2), x REAL, \
                          s SMALLINT, b BOOLEAN DEFAULT true, CHECK (s < 100))";

/// Every value, converted as each statement of its own would convert it; refused with the same code.
#[test]
fn values_are_those_of_single_statements() {
    use ValueRef::{BigInt, Bytes, Double, Null, Text};
    let decimal = |text: &str| ValueRef::Decimal(text.parse::<Decimal>().unwrap());
    let rows: Vec<[ValueRef<'_>; 5]> = vec![
        [Text("a"), Text("2026-11-28"), decimal("1.005"), Double(0.1), BigInt(3)],
        [Text("b    "), Null, Text("12.345"), BigInt(7), Text("12")],
        [Text("c"), Text("yesterday?"), Null, Null, Null],
        [Text("toolong"), Null, Null, Null, Null],
        [Null, Null, Null, Null, Null],
        [BigInt(5), Null, Null, Null, Null],
        [Text("d"), Null, decimal("99999.99"), Null, Null],
        [Text("e"), Null, Null, Double(1e300), Null],
        [Text("f"), Null, Null, Null, BigInt(40_000)],
        [Text("g"), Null, Null, Null, BigInt(100)],
        [Text("h"), BigInt(3), Null, Null, Null],
        [Bytes(b"i"), Null, Null, Null, Null],
        [Text("j"), Null, BigInt(3), Text("1e3"), Null],
        [Text("k"), Null, Double(2.675), Double(f64::NAN), Null],
        [Text("l"), Null, Null, Null, Double(2.5)],
    ];
    let insert = "INSERT INTO t (k, v, d, n, x, s) VALUES ($1, $2, $3, $4, $5, $6)";
    let mut taken = 0;
    for (at, row) in rows.iter().enumerate() {
        let [single, many] = [connect(DEFINITION), connect(DEFINITION)];
        let all: Vec<ValueRef<'_>> = std::iter::once(BigInt(at as i64)).chain(row.iter().copied()).collect();
        let one = single.execute_with(insert, all.as_slice());
        let statement = many.prepare(insert).unwrap();
        assert!(statement.insert_rows().unwrap().is_some());
        let together = statement.execute_many([all.as_slice()]);
        match (one, together) {
            (Ok(1), Ok(1)) => taken += 1,
            (Err(one), Err(together)) => assert_eq!(one.sqlstate(), together.sqlstate(), "{at}: {one}; {together}"),
            (one, together) => panic!("row {at}: {one:?}, but {together:?}"),
        }
        let shown = "SELECT concat_ws('|', k, v, d, n, x, s, b) FROM t";
        assert_eq!(texts(&single, shown), texts(&many, shown), "row {at}");
    }
    assert_eq!(taken, 6);
}

#[test]
fn all_or_none() {
    let connection = connect("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)");
    let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let upsert = "INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v || 'x'";
    let upsert = connection.prepare(upsert).unwrap();
    assert!(upsert.insert_rows().unwrap().is_none(), "only a plain INSERT becomes columns");
    for in_transaction in [false, true] {
        connection.execute("DELETE FROM t").unwrap();
        if in_transaction {
            connection.execute("BEGIN; INSERT INTO t VALUES (-1, 'before')").unwrap();
        }
        let before = i64::from(in_transaction);
        assert_eq!(insert.execute_many((0..100).map(|k| (k, "a"))).unwrap(), 100);
        let twice = insert.execute_many((100..200).chain([7]).map(|k| (k, "b"))).unwrap_err();
        assert_eq!(twice.sqlstate(), "23505");
        assert_eq!(count(&connection), 100 + before);
        let wrong =
            upsert.execute_many([(1, "c"), (2, "d")].into_iter().map(|(k, v)| (Some(k), v)).chain([(None, "e")]));
        let wrong = wrong.unwrap_err();
        assert_eq!(wrong.sqlstate(), "23502");
        assert!(wrong.message().starts_with("row 3: "), "{wrong}");
        assert_eq!(texts(&connection, "SELECT v FROM t WHERE k IN (1, 2)"), ["a", "a"]);
        assert_eq!(upsert.execute_many([(1, "c"), (1_000, "d")]).unwrap(), 2);
        let expected = if in_transaction { TransactionStatus::Open } else { TransactionStatus::Idle };
        assert_eq!(connection.status(), expected);
        if in_transaction {
            connection.execute("COMMIT").unwrap();
        }
        assert_eq!(count(&connection), 101 + before);
        assert_eq!(texts(&connection, "SELECT v FROM t WHERE k = 1"), ["cx"]);
    }
    let too_few = insert.execute_many([(1_000_000,)]).unwrap_err();
    assert_eq!(too_few.sqlstate(), "08P01");
}

/// Parts that are written before the last row are undone with it, and nobody sees them before.
#[test]
fn rows_that_do_not_fit_are_one_statement_still() {
    let connection = connect("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)");
    let insert = connection.prepare("INSERT INTO t (v, k) VALUES ($1, $2)").unwrap();
    for in_transaction in [false, true] {
        connection.execute("DELETE FROM t").unwrap();
        if in_transaction {
            connection.execute("BEGIN; INSERT INTO t VALUES (-1, 'before')").unwrap();
        }
        let status = connection.status();
        let mut rows = insert.insert_rows().unwrap().unwrap();
        for part in 0..3 {
            for k in part * 10..part * 10 + 10 {
                rows.push(("v", k)).unwrap();
            }
            rows.flush().unwrap();
        }
        rows.push(("again", 5)).unwrap();
        assert_eq!(rows.finish().unwrap_err().sqlstate(), "23505");
        assert_eq!(count(&connection), i64::from(in_transaction));
        assert_eq!(connection.status(), status);
        let mut rows = insert.insert_rows().unwrap().unwrap();
        rows.push(("v", 1)).unwrap();
        rows.flush().unwrap();
        rows.push(("v", 2)).unwrap();
        drop(rows);
        assert_eq!(count(&connection), i64::from(in_transaction));
        let mut rows = insert.insert_rows().unwrap().unwrap();
        rows.push(("v", 1)).unwrap();
        rows.flush().unwrap();
        rows.push(("v", 2)).unwrap();
        assert_eq!(rows.finish().unwrap(), 2);
        if in_transaction {
            connection.execute("ROLLBACK").unwrap();
            assert_eq!(count(&connection), 0);
        }
        assert_eq!(connection.status(), TransactionStatus::Idle);
    }
}

/// Shapes that are no columns run once a row; the result is the same.
#[test]
fn every_shape_of_statement_runs() {
    let connection = connect("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, w TEXT DEFAULT 'w')");
    let shapes = [
        ("INSERT INTO t VALUES ($1, $2)", true),
        ("INSERT INTO t (v, k) VALUES ($2, $1)", true),
        ("INSERT INTO t VALUES ($1, $2, $2)", true),
        ("INSERT INTO t VALUES (:key, :value)", true),
        ("INSERT INTO t VALUES ($1, upper($2))", false),
        ("INSERT INTO t VALUES ($1, $2, DEFAULT)", false),
        ("INSERT INTO t VALUES ($1, $2, 'x')", false),
        ("INSERT INTO t SELECT $1, $2", false),
        ("INSERT INTO t VALUES ($1, $2) RETURNING k", false),
        ("INSERT INTO t VALUES ($1, $2) ON CONFLICT DO NOTHING", false),
    ];
    for (sql, is_columns) in shapes {
        connection.execute("DELETE FROM t").unwrap();
        let statement = connection.prepare(sql).unwrap();
        assert_eq!(statement.insert_rows().unwrap().is_some(), is_columns, "{sql}");
        let written = statement.execute_many((0..20).map(|k| (k, format!("v{k}")))).unwrap();
        assert!(written == 20 || sql.contains("RETURNING"), "{sql}: {written}");
        assert_eq!(texts(&connection, "SELECT lower(v) FROM t WHERE k = 7"), ["v7"], "{sql}");
        assert_eq!(count(&connection), 20, "{sql}");
    }
    let update = connection.prepare("UPDATE t SET v = $2 WHERE k = $1").unwrap();
    assert_eq!(update.execute_many([(1, "new"), (2, "new"), (99, "none")]).unwrap(), 2);
    let none: [(i64, &str); 0] = [];
    assert_eq!(update.execute_many(none).unwrap(), 0);
    connection.execute("CREATE TABLE g (k BIGINT GENERATED ALWAYS AS IDENTITY, v TEXT)").unwrap();
    let given = connection.prepare("INSERT INTO g (k, v) VALUES ($1, $2)");
    let refused = given.and_then(|given| given.execute_many([(1, "a")])).unwrap_err();
    assert_eq!(refused.sqlstate(), "428C9");
    let values = connection.prepare("INSERT INTO g (v) VALUES ($1)").unwrap();
    assert_eq!(values.execute_many(["a", "b"].map(|v| [v])).unwrap(), 2);
    let row = connection.query_row("SELECT k, v FROM g ORDER BY k DESC LIMIT 1", ()).unwrap();
    assert_eq!(row.values(), [Value::Int(2), Value::Text("b".into())]);
}
