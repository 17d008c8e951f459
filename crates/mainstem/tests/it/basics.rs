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
        ("CREATE TABLE u (a INTEGER DEFAULT 1)", "0A000"),
        ("CREATE TABLE u (a INTEGER UNIQUE)", "0A000"),
        ("CREATE TABLE u (a INTEGER CHECK (a > 0))", "0A000"),
        ("CREATE TABLE u (a INTEGER, PRIMARY KEY (b))", "42703"),
        ("CREATE TEMP TABLE u (a INTEGER)", "0A000"),
        ("CREATE TABLE u AS SELECT 1", "0A000"),
        ("DROP TABLE nowhere", "42P01"),
        ("UPDATE t SET n = 1 FROM t AS o", "0A000"),
        ("DELETE FROM t USING t AS o", "0A000"),
        ("INSERT INTO t VALUES (1,'b',2) ON CONFLICT DO NOTHING", "0A000"),
        ("INSERT INTO t VALUES (5,'b',2) RETURNING k", "0A000"),
        ("SELECT * FROM t FOR UPDATE", "0A000"),
        ("CREATE INDEX i ON t (n)", "0A000"),
        ("ALTER TABLE t ADD COLUMN z INTEGER", "0A000"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "0A000"),
        ("SAVEPOINT a", "0A000"),
        ("SET nonsense = 1", "42704"),
        ("SHOW nonsense", "42704"),
        ("INSERT INTO mainstem.tables VALUES (1)", "42501"),
        ("SELECT * FROM nowhere.t", "3F000"),
        ("COPY t FROM 'no_such_file.csv'", "58P01"),
        ("COPY t FROM 'x.csv' (FORMAT text)", "0A000"),
    ] {
        assert_eq!(code(&c, sql), expected, "{sql}: {:?}", c.execute(sql));
    }
    assert_eq!(rows(&c, "SELECT * FROM t"), ["1|a|1"]);
}
