//! Settings: their scope, and the one that stops statements.

use mainstem::{Connection, Database, OpenOptions, StatementOutcome};

use super::support::{code, quiet, rows};

/// A query that runs for hours unless it is stopped.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y) \
                       WHERE x * 7 % 1000003 < y * 11 % 1000033";

fn connected() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    (database, connection)
}

fn shown(connection: &Connection, name: &str) -> String {
    connection.query_row(&format!("SHOW {name}"), ()).unwrap().get(0).unwrap()
}

#[test]
fn set_ends_with_a_transaction_that_is_rolled_back() {
    let (_database, connection) = connected();
    connection.execute_batch("SET segment_rows = 1000; BEGIN; SET segment_rows = 2000; SET threads = 3").unwrap();
    assert_eq!((shown(&connection, "segment_rows"), shown(&connection, "threads")), ("2000".into(), "3".into()));
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(shown(&connection, "segment_rows"), "1000");
    connection.execute_batch("BEGIN; SET segment_rows = 3000; COMMIT").unwrap();
    assert_eq!(shown(&connection, "segment_rows"), "3000");
    connection.execute_batch("SET synchronous = off; RESET ALL").unwrap();
    assert_eq!(
        (shown(&connection, "segment_rows"), shown(&connection, "synchronous")),
        ("131072".into(), "full".into())
    );
}

#[test]
fn set_local_ends_with_its_transaction() {
    let (_database, connection) = connected();
    for end in ["COMMIT", "ROLLBACK"] {
        connection.execute_batch("SET delta_rows = 100; BEGIN; SET LOCAL delta_rows = 200").unwrap();
        assert_eq!(shown(&connection, "delta_rows"), "200");
        connection.execute(end).unwrap();
        assert_eq!(shown(&connection, "delta_rows"), "100", "{end}");
    }
    // What is set for the session in the same transaction stays.
    connection
        .execute_batch("BEGIN; SET LOCAL delta_rows = 300; SET delta_rows = 400; SET LOCAL delta_rows = 500")
        .unwrap();
    assert_eq!(shown(&connection, "delta_rows"), "500");
    connection.execute("COMMIT").unwrap();
    assert_eq!(shown(&connection, "delta_rows"), "400");
    // Outside a transaction there is nothing to be local to.
    let outcomes: Vec<StatementOutcome> =
        connection.run("SET LOCAL delta_rows = 600").unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(outcomes[0].notices[0].sqlstate, "25P01");
    assert_eq!(shown(&connection, "delta_rows"), "400");
    assert_eq!(code(&connection, "SET LOCAL delta_rows = 0"), "22023");
    assert_eq!(code(&connection, "SET LOCAL nothing = 1"), "42704");
}

#[test]
fn a_transaction_that_fails_takes_its_settings_along() {
    let (database, connection) = connected();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    connection.execute_batch("BEGIN; SET delta_rows = 7; DELETE FROM t").unwrap();
    database.connect().unwrap().execute("DELETE FROM t").unwrap();
    assert_eq!(code(&connection, "COMMIT"), "40001");
    assert_eq!(shown(&connection, "delta_rows"), "131072");
}

#[test]
fn durations_have_units() {
    let (_database, connection) = connected();
    assert_eq!(shown(&connection, "statement_timeout"), "0");
    for (set, shows) in [
        ("50", "50ms"),
        ("'1500ms'", "1500ms"),
        ("'2 s'", "2s"),
        ("120000", "2min"),
        ("'90min'", "90min"),
        ("'24h'", "1d"),
        ("'250us'", "250us"),
        ("1e3", "1s"),
        ("'1.5e2'", "150ms"),
        ("'1e1s'", "10s"),
        ("'2.5E+1 min'", "25min"),
        ("0", "0"),
        ("DEFAULT", "0"),
    ] {
        connection.execute(&format!("SET statement_timeout = {set}")).unwrap();
        assert_eq!(shown(&connection, "statement_timeout"), shows, "{set}");
    }
    for bad in
        ["'-1'", "'1 fortnight'", "''", "'ms'", "99999999999", "'25d'", "1e-3", "1e12", "'1e'", "'1es'", "'1e-1s'"]
    {
        assert_eq!(code(&connection, &format!("SET statement_timeout = {bad}")), "22023", "{bad}");
    }
    assert_eq!(shown(&connection, "statement_timeout"), "0");
    let error = connection.execute("SET statement_timeout = -1e3").unwrap_err();
    assert!(error.message().contains("not \"-1000\""), "{error}");
}

#[test]
fn statement_timeout_stops_what_runs_too_long() {
    let (_database, connection) = connected();
    connection
        .execute_batch(
            "CREATE TABLE t (k BIGINT); CREATE TABLE p (k BIGINT PRIMARY KEY, s TEXT); INSERT INTO p VALUES (1, 'a');
             SET statement_timeout = '150ms'",
        )
        .unwrap();
    // No test of how soon: it would take hours.
    for sql in [
        ENDLESS.to_string(),
        format!("INSERT INTO t {ENDLESS}"),
        format!("COPY ({ENDLESS}) TO '/dev/null' (FORMAT csv)"),
        // By key, with what a point path must not wait for.
        "INSERT INTO p VALUES (2, pg_sleep(1000000) || 'x')".into(),
        "UPDATE p SET s = pg_sleep(1000000) || 'x' WHERE k = 1".into(),
    ] {
        let error = connection.execute(&sql).unwrap_err();
        assert_eq!(error.sqlstate(), "57014", "{sql}");
        assert!(error.to_string().contains("statement_timeout, 150ms"), "{error}");
    }
    // The session goes on. In a transaction only the statement fails.
    connection
        .execute_batch("SET statement_timeout = 0; INSERT INTO t VALUES (1), (2); BEGIN; DELETE FROM t WHERE k = 1")
        .unwrap();
    connection.execute("SET LOCAL statement_timeout = 150").unwrap();
    assert_eq!(code(&connection, ENDLESS), "57014");
    connection.execute("COMMIT").unwrap();
    assert_eq!(rows(&connection, "SELECT * FROM t"), ["2"]);
}

/// However few rows are asked for: those of all rows in deltas have to be known for the first one.
#[test]
fn keys_that_a_scan_in_order_holds_are_memory_of_queries() {
    const ROWS: i64 = 90_000;
    // Queries may take 640 KiB; a key has eight bytes, and four its place in the order.
    let options = OpenOptions::new().memory_limit(2 << 20).background(false);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("SET point_path = off; CREATE TABLE t (k BIGINT PRIMARY KEY)").unwrap();
    for first in (0..ROWS).step_by(3_000) {
        let last = first + 2_999;
        connection.execute(&format!("INSERT INTO t SELECT * FROM generate_series({first}, {last})")).unwrap();
    }
    let first = "SELECT k FROM t ORDER BY k LIMIT 1";
    assert_eq!(code(&connection, first), "53200");
    database.storage().flush(connection.table("t").unwrap().id).unwrap();
    assert_eq!(rows(&connection, first), ["0"], "nothing comes between the rows of a segment");
}

/// Of one batch from its inputs each of these makes rows, or compares pairs, for hours.
#[test]
fn joins_of_any_kind_are_stopped() {
    let (_database, connection) = connected();
    connection
        .execute_batch(
            "CREATE TABLE a (x BIGINT, one BIGINT); CREATE TABLE b (y BIGINT, one BIGINT);
             INSERT INTO a SELECT g, 1 FROM generate_series(1, 400000) g; INSERT INTO b SELECT * FROM a;
             SET statement_timeout = '150ms'",
        )
        .unwrap();
    // No test of how soon: each would take hours.
    for sql in [
        // Many rows, few, and none.
        "SELECT count(*) FROM a, b WHERE x % 7 <> y % 5",
        "SELECT count(*) FROM a, b WHERE x + y = -1 AND x <> y",
        "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE x + y < 0)",
        "SELECT sum(a.x * b.y) FROM a, b",
        "SELECT count(*) FROM a LEFT JOIN b ON x > y + 1000000",
        "SELECT count(*) FROM a JOIN b ON a.one = b.one",
        "SELECT count(*) FROM a JOIN b ON a.one = b.one AND x + y < 0",
        "SELECT count(*) FROM a FULL JOIN b ON a.one = b.one AND x + y < 0",
        "SELECT count(*) FROM generate_series(1, 100000000) g(x), generate_series(1, 100000000) h(y) WHERE x * y = 7",
        "SELECT count(*) FROM a WHERE one IN (SELECT one FROM b) AND x < 0 OR x IN (SELECT x FROM a, b)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
        "DELETE FROM a USING b WHERE x % 7 <> y % 5 AND x + y < 0",
    ] {
        assert_eq!(code(&connection, sql), "57014", "{sql}");
    }
    connection.execute("SET statement_timeout = 0").unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM a"), ["400000"]);
}

#[test]
fn explain_analyze_says_what_scans_did() {
    let (database, connection) = connected();
    connection
        .execute_batch(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER) WITH (segment_rows = 100);
             INSERT INTO t SELECT g, g % 10 FROM generate_series(0, 999) g",
        )
        .unwrap();
    let table = connection.table("t").unwrap().id;
    database.storage().flush(table).unwrap();
    connection
        .execute_batch("INSERT INTO t VALUES (1000, 1), (1001, 2), (1002, 3); DELETE FROM t WHERE k IN (250, 1001)")
        .unwrap();
    let scan_of = |sql: &str| -> String {
        let plan = rows(&connection, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        plan.lines().find(|line| line.contains("table=t")).unwrap_or_else(|| panic!("{plan}")).to_string()
    };
    let scan = scan_of("SELECT v FROM t WHERE k >= 150");
    for metric in [
        "output_rows=851",
        "segments=10",
        "segments_pruned=1",
        "segments_enclosed=8",
        "rows_from_main=849",
        "rows_from_delta=2",
        "rows_from_own_writes=0",
        "elapsed_compute=",
    ] {
        assert!(scan.contains(metric), "{metric}: {scan}");
    }
    let transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO t VALUES (5000, 0), (5001, 0)").unwrap();
    let scan = scan_of("SELECT v FROM t WHERE k > 900");
    for metric in ["segments_pruned=9", "rows_from_main=99", "rows_from_delta=2", "rows_from_own_writes=2"] {
        assert!(scan.contains(metric), "{metric}: {scan}");
    }
}
