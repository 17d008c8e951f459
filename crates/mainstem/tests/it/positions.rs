//! Where an error is in the text that was run, and the names that it offers.

use mainstem::{Connection, Error};

use super::support::quiet;

/// Tables `t` (id, name, "Amount") and `u` (id, name), `sales.orders` (id), and a view `v` (id, label) of `t`.
fn prepare(connection: &Connection) {
    let script = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, \"Amount\" INTEGER); \
        CREATE TABLE u (id INTEGER, name TEXT); \
        CREATE SCHEMA sales; CREATE TABLE sales.orders (id INTEGER); \
        CREATE VIEW v AS SELECT id, name AS label FROM t";
    connection.execute(script).unwrap();
}

fn failure(connection: &Connection, sql: &str) -> Error {
    match connection.execute(sql) {
        Ok(rows) => panic!("{sql}: {rows} rows"),
        Err(error) => error,
    }
}

/// Each text has a `^` in front of the character that the error is at, or none.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn an_error_is_at_its_token() {
    let connection = quiet().connect().unwrap();
    prepare(&connection);
    for marked in [
        // Syntax.
        "^SELEC 1",
        "SELECT 1 FRM ^t WHERE true",
        "SELECT\t'ü', \n  ^FROM t",
        "SELECT 1;\n\nSELECT 'ü' ^'b' c",
        "SELECT * FROM^",
        "SELECT * FROM^ ; SELECT 2",
        "SELECT * FROM^ -- the end",
        "SELECT ^'abc",
        "INSERT INTO t VALUES (1, 'a'^",
        "SELECT ^$x",
        // Columns.
        "SELECT ^nme FROM t",
        "SELECT ^Nme FROM t",
        "SELECT ^\"nme\" FROM t",
        "SELECT ^t.nme FROM t",
        "SELECT ^a.nme FROM t a JOIN t b ON a.id = b.id",
        "SELECT ^x.name FROM t",
        "SELECT ^nme, count(*) FROM t GROUP BY nme",
        "SELECT 1 AS nme FROM t WHERE ^nme > 1",
        "SELECT id nme FROM t WHERE ^nme > 1",
        "SELECT (SELECT max(^nme) FROM u), 'nme' /* nme */, \"nme.\" FROM t -- nme",
        "SELECT * FROM t WHERE id IN (SELECT ^idd FROM u)",
        "SELECT id FROM t ORDER BY ^nme",
        "SELECT ^name FROM t, u",
        "SELECT id, ^name FROM t JOIN u USING (id)",
        "SELECT * FROM t JOIN u USING (^nme)",
        "SELECT ^lable FROM v",
        "INSERT INTO t (id, ^nme) VALUES (1, 'x')",
        "INSERT INTO t VALUES (1, 'a') ON CONFLICT (^nme) DO NOTHING",
        "INSERT INTO t VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET name = ^excluded.nme",
        "INSERT INTO t VALUES (1, 'a') RETURNING ^nme",
        "UPDATE t SET ^nme = 1",
        "UPDATE t SET name = 'x' WHERE ^idd = 1",
        "DELETE FROM t WHERE ^nme = 1",
        "ALTER TABLE t DROP COLUMN ^nme",
        "CREATE TABLE w (a INTEGER, PRIMARY KEY (^b))",
        "CREATE TABLE w (a INTEGER CHECK (^b > 1))",
        "CREATE VIEW w AS SELECT ^nme FROM t",
        "COPY t (^nme) TO STDOUT",
        "EXPLAIN SELECT ^nme FROM t",
        "PREPARE p AS SELECT ^nme FROM t",
        "SELECT 1; SELECT 2; SELECT 'ü', ^nme\n\tFROM t; SELECT nme FROM t",
        // The name stands twice, and nobody has noted which it was.
        "UPDATE t SET nme = 1 WHERE nme = 1",
        // Tables, schemas, functions, types, settings, parameters.
        "SELECT t.id FROM ^missing, t",
        "SELECT * FROM ^sales.order",
        "SELECT * FROM ^slaes.orders",
        "INSERT INTO ^missing(id) VALUES (1)",
        "DROP TABLE ^missing",
        "COPY ^missing TO STDOUT",
        "SELECT ^x.* FROM t",
        "SELECT ^upperr(name), upper FROM (SELECT name, name AS upper FROM t) s",
        "SELECT ^sum(name), 'sum' FROM t",
        "CREATE TABLE w (a ^foo)",
        "SELECT 1::^foo",
        "SET ^treads = 4",
        "SHOW ^treads",
        "SELECT id FROM t WHERE id = ^$1",
        "SELECT id FROM t WHERE id = ^:id",
        "SELECT ^:Name",
        "SELECT name, ':Name', \":Name\", name AS Name FROM t WHERE name = ^:Name",
        "SELECT * FROM ^:t",
        "SELECT * FROM ^:t WHERE :id = 1",
        "SELECT id FROM t LIMIT 1 ^:n",
        "SELECT sum(id) OVER ^w FROM t",
        // Values have no place, and neither has what is wrong in another text.
        "SELECT 1 / 0",
        "SELECT CAST('x' AS INTEGER)",
    ] {
        let sql = marked.replace('^', "");
        let expected = marked.chars().position(|c| c == '^').map(|at| at + 1);
        let error = failure(&connection, &sql);
        assert_eq!(error.position(), expected, "{sql}: {error:?}");
    }
    connection.execute("PREPARE by_id AS SELECT id FROM t WHERE id = $1").unwrap();
    assert_eq!(failure(&connection, "EXECUTE by_id(idd)").position(), None);
}

#[test]
fn every_call_with_a_text_tells_the_place() {
    let connection = quiet().connect().unwrap();
    prepare(&connection);
    let sql = "SELECT id, nme FROM t WHERE id = $1";
    assert_eq!(connection.prepare(sql).unwrap_err().position(), Some(12));
    assert_eq!(connection.query_row(sql, [1]).unwrap_err().position(), Some(12));
    assert_eq!(connection.query("SELECT nme FROM t").unwrap_err().position(), Some(8));
    assert_eq!(connection.copy_in("COPY missing FROM STDIN", &b""[..]).unwrap_err().position(), Some(6));
    assert_eq!(connection.copy_out("COPY missing TO STDOUT", Vec::new()).unwrap_err().position(), Some(6));
    let mut outcomes = connection.run("SELECT 1; SELECT nme FROM t; SELECT 2").unwrap();
    assert!(outcomes.next().unwrap().is_ok());
    assert_eq!(outcomes.next().unwrap().unwrap_err().position(), Some(18));
    assert!(outcomes.next().unwrap().is_ok());
    // The table changes behind a prepared statement's back.
    let prepared = connection.prepare("SELECT id, name FROM t").unwrap();
    connection.execute("DROP VIEW v; ALTER TABLE t RENAME COLUMN name TO label").unwrap();
    let error = prepared.query(()).unwrap_err();
    assert_eq!((error.sqlstate(), error.position()), ("42703", Some(12)));
}

#[test]
fn names_that_are_nearly_there_are_offered() {
    let connection = quiet().connect().unwrap();
    prepare(&connection);
    for (sql, says) in [
        ("SELECT nme FROM t", "column \"nme\" does not exist; did you mean \"name\"?"),
        ("SELECT naem FROM t", "column \"naem\" does not exist; did you mean \"name\"?"),
        ("SELECT nme FROM t, u", "column \"nme\" does not exist; did you mean \"t.name\" or \"u.name\"?"),
        ("SELECT t.nme FROM t, u", "column \"t.nme\" does not exist; did you mean \"t.name\"?"),
        ("SELECT tt.name FROM t", "column \"tt.name\" does not exist; did you mean \"t.name\"?"),
        ("SELECT t.id FROM t x", "column \"t.id\" does not exist; did you mean \"x.id\"?"),
        ("SELECT amount FROM t", "column \"amount\" does not exist; did you mean \"Amount\"?"),
        ("SELECT t.amount FROM t", "column \"t.amount\" does not exist; did you mean t.\"Amount\"?"),
        ("SELECT name FROM t GROUP BY id, nme", "column \"nme\" does not exist; did you mean \"name\"?"),
        ("SELECT lable FROM v", "column \"lable\" does not exist; did you mean \"label\"?"),
        ("SELECT price FROM t", "column \"price\" does not exist"),
        ("UPDATE t SET _row_re = 1 WHERE _row_re = 1", "column \"_row_re\" of relation \"t\" does not exist"),
        ("DELETE FROM t WHERE _row_re = 1", "column \"_row_re\" does not exist"),
        ("UPDATE t SET nme = 1", "column \"nme\" of relation \"t\" does not exist; did you mean \"name\"?"),
        (
            "SELECT * FROM t JOIN u USING (nme)",
            "column \"nme\" specified in USING clause does not exist in left table; did you mean \"name\"?",
        ),
        (
            "CREATE TABLE w (first INTEGER, PRIMARY KEY (fist))",
            "column \"fist\" of the primary key does not exist; did you mean \"first\"?",
        ),
        ("SELECT * FROM orders", "table \"orders\" does not exist; did you mean \"sales.orders\"?"),
        ("SELECT * FROM sales.order", "table \"sales.order\" does not exist; did you mean \"sales.orders\"?"),
        ("SELECT * FROM containers", "table \"containers\" does not exist; did you mean \"mainstem.containers\"?"),
        ("SELECT * FROM mainstem.table", "table \"mainstem.table\" does not exist; did you mean \"mainstem.tables\"?"),
        ("SELECT * FROM slaes.orders", "schema \"slaes\" does not exist; did you mean \"sales\"?"),
        ("SELECT * FROM nowhere", "table \"nowhere\" does not exist"),
        ("WITH totals AS (SELECT 1) SELECT * FROM total", "table \"total\" does not exist; did you mean \"totals\"?"),
        (
            "SELECT * FROM generate_seris(1, 2)",
            "table \"generate_seris\" does not exist; did you mean \"generate_series\"?",
        ),
        ("SELECT suum(id) FROM t", "function suum does not exist; did you mean \"sum\"?"),
        ("SELECT uppre(name) FROM t", "function uppre does not exist; did you mean \"upper\"?"),
        ("SELECT row_numbr() OVER () FROM t", "function row_numbr does not exist; did you mean \"row_number\"?"),
        ("SELECT nofunction(id) FROM t", "function nofunction does not exist"),
        ("SET treads = 4", "there is no setting \"treads\"; did you mean \"threads\"?"),
        ("SHOW date_style", "there is no setting \"date_style\"; did you mean \"datestyle\"?"),
    ] {
        assert_eq!(failure(&connection, sql).message(), says, "{sql}");
    }
}

#[test]
fn a_name_of_another_session_is_not_offered() {
    let database = quiet();
    let (one, other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute("CREATE TEMP TABLE drafts (id INTEGER)").unwrap();
    assert_eq!(failure(&other, "SELECT * FROM draft").message(), "table \"draft\" does not exist");
    assert_eq!(
        failure(&one, "SELECT * FROM draft").message(),
        "table \"draft\" does not exist; did you mean \"drafts\"?"
    );
}
