//! Statements one at a time.

use super::support::{code, quiet, rows};

#[test]
fn a_table_from_create_to_drop() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT, d DECIMAL(10,2))").unwrap();
    assert_eq!(c.execute("INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', 2), (3, NULL, NULL)").unwrap(), 3);
    assert_eq!(rows(&c, "SELECT * FROM t ORDER BY k"), ["1|one|1.50", "2|two|2.00", "3|NULL|NULL"]);
    assert_eq!(c.execute("UPDATE t SET v = v || '!', d = d + 1 WHERE k < 3").unwrap(), 2);
    assert_eq!(rows(&c, "SELECT * FROM t ORDER BY k"), ["1|one!|2.50", "2|two!|3.00", "3|NULL|NULL"]);
    assert_eq!(c.execute("DELETE FROM t WHERE v IS NULL").unwrap(), 1);
    assert_eq!(rows(&c, "SELECT count(*) FROM t"), ["2"]);
    assert_eq!(c.execute("INSERT INTO t (v, k) SELECT 'n' || k, k + 10 FROM t").unwrap(), 2);
    assert_eq!(rows(&c, "SELECT k, v, d FROM t ORDER BY k DESC LIMIT 2"), ["12|n2|NULL", "11|n1|NULL"]);
    c.execute("DROP TABLE t").unwrap();
    assert_eq!(code(&c, "SELECT * FROM t"), "42P01");
}

#[test]
fn errors_have_their_sqlstate() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR(3), n SMALLINT NOT NULL)").unwrap();
    c.execute("INSERT INTO t VALUES (1, 'a', 1)").unwrap();
    for (sql, expected) in [
        ("SELEC 1", "42601"),
        ("SELECT 1 FROM nowhere", "42P01"),
        ("SELECT x FROM t", "42703"),
        ("INSERT INTO t VALUES (1, 'b', 2)", "23505"),
        ("INSERT INTO t VALUES (2, 'b', NULL)", "23502"),
        ("INSERT INTO t (k, v) VALUES (2, 'b')", "23502"),
        ("INSERT INTO t VALUES (2, 'long', 2)", "22001"),
        ("INSERT INTO t VALUES (2, 'b', 99999)", "22003"),
        ("INSERT INTO t VALUES (2, 'b', 'x')", "22P02"),
        ("INSERT INTO t VALUES (2, 'b', true)", "42804"),
        ("INSERT INTO t VALUES (2, 'b', 2, 3)", "42601"),
        ("INSERT INTO t (k, nope) VALUES (2, 'b')", "42703"),
        ("UPDATE t SET nope = 1", "42703"),
        ("UPDATE t SET n = n / 0", "22012"),
        ("UPDATE t SET n = NULL", "23502"),
        ("UPDATE t SET n = max(n)", "42803"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT 9223372036854775807 + k FROM t", "22003"),
        ("SELECT -9223372036854775807 - 2", "22003"),
        ("SELECT 9223372036854775807 * k * 2 FROM t", "22003"),
        ("SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) v(x)", "22003"),
        ("SELECT CAST('x' AS INTEGER)", "22P02"),
        ("SELECT k FROM t WHERE k = (SELECT x FROM (VALUES (1), (2)) v(x))", "21000"),
        ("SELECT nofunction(1)", "42883"),
        ("SELECT k, count(*) FROM t", "42803"),
        ("CREATE TABLE t (a INTEGER)", "42P07"),
        ("CREATE TABLE u (a INTEGER, a TEXT)", "42701"),
        ("CREATE TABLE u (a NONSENSE)", "0A000"),
        ("CREATE TABLE u (a INTEGER UNIQUE NULLS NOT DISTINCT)", "0A000"),
        ("CREATE TABLE u (a INTEGER, PRIMARY KEY (b))", "42703"),
        ("DROP TABLE nowhere", "42P01"),
        ("SELECT * FROM t FOR UPDATE SKIP LOCKED", "0A000"),
        ("CREATE INDEX i ON t (n)", "0A000"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "0A000"),
        ("SET nonsense = 1", "42704"),
        ("SHOW nonsense", "42704"),
        ("INSERT INTO mainstem.tables VALUES (1)", "42501"),
        ("SELECT * FROM nowhere.t", "3F000"),
        ("COPY t FROM 'no_such_file.csv'", "58P01"),
        ("COPY t FROM 'x.csv' (FORMAT binary)", "0A000"),
    ] {
        assert_eq!(code(&c, sql), expected, "{sql}: {:?}", c.execute(sql));
    }
    assert_eq!(rows(&c, "SELECT * FROM t"), ["1|a|1"]);
}

#[test]
fn plans_show_what_the_store_does() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, s TEXT, n INTEGER)").unwrap();
    c.execute("INSERT INTO t SELECT i, 's' || i, i % 7 FROM generate_series(1, 100000) g(i)").unwrap();
    let plan = |sql: &str| rows(&c, &format!("EXPLAIN {sql}")).join("\n");
    let point = plan("SELECT * FROM t WHERE k = 5");
    assert!(point.contains("predicates=[k = ") && point.contains("partitions=1"), "{point}");
    assert!(!point.contains("FilterExec"), "{point}");
    let prefix = plan("SELECT n FROM t WHERE s LIKE 's12%'");
    assert!(prefix.contains("s >= ") && !prefix.contains("FilterExec"), "{prefix}");
    let rest = plan("SELECT n FROM t WHERE n % 2 = 1 AND k < 10");
    assert!(rest.contains("predicates=[k < ") && rest.contains("condition=CAST(n@0"), "{rest}");
    // The order of the key needs no sort, unless the scan would look at rows that a filter leaves out.
    let sorted = |sql: &str| plan(sql).contains("SortExec");
    for sql in [
        "SELECT k, n FROM t ORDER BY k",
        "SELECT n, k FROM t ORDER BY k LIMIT 5",
        "SELECT k FROM t WHERE k > 500 ORDER BY k LIMIT 5",
        "SELECT k, row_number() OVER (ORDER BY k) FROM t",
    ] {
        assert!(!sorted(sql) && plan(sql).contains("order=[k"), "{sql}: {}", plan(sql));
    }
    for sql in [
        "SELECT k FROM t ORDER BY k DESC",
        "SELECT k, n FROM t ORDER BY n",
        "SELECT k FROM t WHERE n = 3 ORDER BY k",
        "SELECT k, n FROM t ORDER BY n, k",
    ] {
        assert!(sorted(sql), "{sql}: {}", plan(sql));
    }
    let counted = plan("SELECT count(*) FROM t");
    assert!(!counted.contains("DataSourceExec: table=t"), "{counted}");
    let written = plan("UPDATE t SET n = 0 WHERE k IN (SELECT n FROM t)");
    assert!(written.contains("_row_ref"), "{written}");
    assert_eq!(code(&c, "SELECT _row_ref FROM t"), "42703");
    assert_eq!(code(&c, "SELECT * FROM write_target.t"), "3F000");
}

#[test]
fn the_catalog_can_be_asked() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, d DATE, s VARCHAR(9) NOT NULL) WITH (segment_rows = 10)").unwrap();
    c.execute("INSERT INTO t SELECT i, DATE '2024-01-01', 'x' FROM generate_series(1, 25) g(i)").unwrap();
    let table = c.table("t").unwrap();
    db.storage().merge(table.id).unwrap();
    assert_eq!(
        rows(&c, "SELECT table_name, layout, primary_key, sort_key, segment_rows FROM mainstem.tables"),
        ["t|sorted|k|k|10"]
    );
    assert_eq!(
        rows(&c, "SELECT column_name, data_type, nullable FROM mainstem.columns ORDER BY position"),
        ["k|bigint|false", "d|date|true", "s|varchar(9)|false"]
    );
    assert_eq!(
        rows(
            &c,
            "SELECT rows, deleted, min_key, max_key FROM mainstem.containers WHERE kind = 'segment' ORDER BY container"
        ),
        ["10|0|1|10", "10|0|11|20", "5|0|21|25"]
    );
    let merges =
        "SELECT table_name, state, rows_in, rows_written, started > TIMESTAMP '2024-01-01' FROM mainstem.merges";
    assert_eq!(rows(&c, merges), ["t|installed|25|25|true"]);
    assert_eq!(rows(&c, "SELECT applied = visible, commits FROM mainstem.wal"), ["true|2"]);
    assert_eq!(rows(&c, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"), ["t"]);
    assert_eq!(rows(&c, "SHOW segment_rows"), ["131072"]);
    c.execute("SET segment_rows = 50; SET synchronous TO off").unwrap();
    assert_eq!(
        rows(&c, "SELECT value FROM mainstem.settings WHERE name IN ('segment_rows', 'synchronous')"),
        ["50", "off"]
    );
    c.execute("RESET segment_rows").unwrap();
    assert_eq!(rows(&c, "SHOW segment_rows"), ["131072"]);
}

#[test]
fn sums_are_checked_however_they_are_computed() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (g INTEGER, n BIGINT)").unwrap();
    c.execute("INSERT INTO t SELECT i % 3, 9223372036854775807 - i FROM generate_series(1, 6) g(i)").unwrap();
    c.execute("INSERT INTO t SELECT i % 3, i - 9223372036854775807 FROM generate_series(1, 6) g(i)").unwrap();
    c.execute("INSERT INTO t VALUES (9, NULL), (9, NULL), (8, 1)").unwrap();
    assert_eq!(rows(&c, "SELECT sum(n) FROM t"), ["1"], "what comes between may be large");
    assert_eq!(rows(&c, "SELECT g, sum(n) FROM t GROUP BY g ORDER BY g"), ["0|0", "1|0", "2|0", "8|1", "9|NULL"]);
    assert_eq!(rows(&c, "SELECT sum(n) FILTER (WHERE g = 8), sum(n) FILTER (WHERE g = 7) FROM t"), ["1|NULL"]);
    assert_eq!(rows(&c, "SELECT sum(DISTINCT g) FROM t"), ["20"]);
    assert_eq!(code(&c, "SELECT sum(n) FROM t WHERE n > 0"), "22003");
    assert_eq!(code(&c, "SELECT g, sum(n) FROM t WHERE n > 0 GROUP BY g"), "22003");
    assert_eq!(code(&c, "SELECT sum(DISTINCT n), count(DISTINCT g) FROM t WHERE n > 0"), "22003");
    assert_eq!(
        rows(
            &c,
            "SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WHERE g > 7 ORDER BY n"
        ),
        ["1", "1", "NULL"]
    );
    assert_eq!(code(&c, "SELECT -(n - 1) FROM (VALUES (-9223372036854775807)) v(n)"), "22003");
    assert_eq!(rows(&c, "SELECT (SELECT n FROM t WHERE g = 77)"), ["NULL"]);
}

/// The appender, COPY and the library's statements with values: defaults and checks hold on every way into a table.
#[test]
fn defaults_and_checks_hold_whoever_writes() {
    let db = quiet();
    let connection = db.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER DEFAULT 5 CHECK (v > 0))").unwrap();
    let mut appender = connection.appender("t").unwrap();
    appender.append_row((1, 1)).unwrap();
    appender.append_row((2, None::<i32>)).unwrap();
    assert_eq!(appender.flush().unwrap(), 2);
    appender.append_row((3, 3)).unwrap();
    appender.append_row((4, 0)).unwrap();
    let error = appender.finish().unwrap_err();
    assert_eq!(error.sqlstate(), "23514");
    let message = "new row for relation \"t\" violates check constraint \"t_v_check\"; failing row contains (4, 0)";
    assert_eq!(error.message(), message);
    let insert = connection.prepare("INSERT INTO t (k, v) VALUES ($1, $2), ($1 + 1, DEFAULT)").unwrap();
    assert_eq!(insert.execute((10, 7)).unwrap(), 2);
    assert_eq!(insert.execute((20, -7)).unwrap_err().sqlstate(), "23514");
    let one = connection.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    assert_eq!(one.execute((30, 1)).unwrap(), 1);
    assert_eq!(one.execute((31, 0)).unwrap_err().sqlstate(), "23514");
    let update = connection.prepare("UPDATE t SET v = v - $2 WHERE k = $1").unwrap();
    assert_eq!(update.execute((10, 6)).unwrap(), 1);
    assert_eq!(update.execute((10, 6)).unwrap_err().sqlstate(), "23514");
    assert_eq!(connection.execute("UPDATE t SET v = DEFAULT WHERE k = 1").unwrap(), 1);
    assert_eq!(connection.copy_in("COPY t (k) FROM STDIN (FORMAT csv)", "40\n41\n".as_bytes()).unwrap(), 2);
    let error = connection.copy_in("COPY t FROM STDIN (FORMAT csv)", "50,1\n51,0\n".as_bytes()).unwrap_err();
    assert!(error.sqlstate() == "23514" && error.message().contains("line 2"), "{error}");
    let row = connection.query_row("SELECT count(*), CAST(sum(v) AS BIGINT) FROM t", ()).unwrap();
    // 1: 5, 2: NULL, 10: 1, 11: 5, 30: 1, 40 and 41: 5
    assert_eq!((row.get::<i64>(0).unwrap(), row.get::<i64>(1).unwrap()), (7, 22));
}

/// Views that double one another, and a long chain of them, are refused before they take all time or all of a stack.
#[test]
fn views_over_views_have_an_end() {
    let db = quiet();
    let c = db.connect().unwrap();
    c.execute("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1)").unwrap();
    c.execute("CREATE VIEW d0 AS SELECT k FROM t").unwrap();
    let refused = (1..20).find(|n| {
        let sql = format!("CREATE VIEW d{n} AS SELECT a.k FROM d{0} AS a, d{0} AS b", n - 1);
        code(&c, &sql) != "no error"
    });
    let n = refused.unwrap();
    assert_eq!(code(&c, &format!("SELECT a.k FROM d{0} AS a, d{0} AS b", n - 1)), "54001");
    c.execute("CREATE VIEW c0 AS SELECT k FROM t").unwrap();
    let refused = (1..50).find(|n| code(&c, &format!("CREATE VIEW c{n} AS SELECT k FROM c{}", n - 1)) != "no error");
    let n = refused.unwrap();
    assert!(n > 20, "{n}");
    assert_eq!(rows(&c, &format!("SELECT k FROM c{}", n - 1)), ["1"]);
}
