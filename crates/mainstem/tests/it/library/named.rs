//! Parameters with names: `:name`.

use mainstem::{Connection, Database, Params, ToValue, named_params};

use crate::support::{code, quiet, rows};

fn with_table() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        )
        .unwrap();
    (database, connection)
}

/// The one value that `sql` gives, as text.
fn one(connection: &Connection, sql: &str, params: impl Params) -> String {
    let row = connection.query_row(&format!("SELECT ({sql})::text"), params).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    row.get::<Option<String>>(0).unwrap().unwrap_or_else(|| "NULL".into())
}

#[test]
fn a_name_is_bound_wherever_it_stands() {
    let (_database, connection) = with_table();
    let select = connection.prepare("SELECT v FROM t WHERE k = :key").unwrap();
    assert_eq!((select.parameter_count(), select.parameter_names()), (1, &["key".into()][..]));
    assert_eq!(select.query_row([(":key", 2)]).unwrap().get::<&str>(0).unwrap(), "b");
    assert_eq!(select.query_row([("key", 3)]).unwrap().get::<&str>(0).unwrap(), "c");
    assert_eq!(select.query_row([1]).unwrap().get::<&str>(0).unwrap(), "a", "in their order, too");

    // One name is one parameter; the order is that of first appearance.
    let both = connection.prepare("SELECT :b || :a || :b || :A").unwrap();
    assert_eq!(both.parameter_names(), ["b".into(), "a".into(), "A".into()]);
    let text = |params: &[(&str, &dyn ToValue)]| both.query_row(params).unwrap().get::<String>(0).unwrap();
    assert_eq!(text(named_params! { ":a": "1", ":b": "2", ":A": "3" }), "2123");
    assert_eq!(both.query_row(("x", "y", "z")).unwrap().get::<&str>(0).unwrap(), "xyxz");
    assert_eq!(both.query_row(vec![("A", "3"), ("b", "2"), ("a", "1")]).unwrap().get::<&str>(0).unwrap(), "2123");

    let upsert = "INSERT INTO t VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = t.v || :v RETURNING v";
    for expected in ["new", "newnew"] {
        let row = connection.query_row(upsert, named_params! { ":v": "new", ":k": 9 }).unwrap();
        assert_eq!(row.get::<&str>(0).unwrap(), expected);
    }
    assert_eq!(connection.execute_with("DELETE FROM t WHERE k > :least", [("least", 2)]).unwrap(), 2);
    let transaction = connection.transaction().unwrap();
    assert_eq!(transaction.execute_with("UPDATE t SET v = :v", [("v", None::<&str>)]).unwrap(), 2);
    transaction.rollback();
    let limited = "SELECT k FROM t WHERE k IN (:a, :b) ORDER BY k LIMIT :n";
    assert_eq!(connection.query_with(limited, [("n", 1), ("a", 2), ("b", 1)]).unwrap().count(), 1);
}

#[test]
fn colons_of_other_meanings_stay_what_they_are() {
    let (_database, connection) = with_table();
    for (sql, expected) in [
        ("':n' || $$:n$$ || $x$ :n $x$ || E':n'", ":n:n :n :n"),
        ("'1'::int + 1 /* :n */ -- :n\n", "2"),
        ("1::int::text", "1"),
        ("array_length((array[10, 20, 30])[1:2], 1)", "2"),
        ("(SELECT (array[10, 20, 30])[1:c] FROM (SELECT 2 AS c) x)", "{10,20}"),
        ("(SELECT (array[10, 20, 30])[c:3] FROM (SELECT 2 AS c) x)", "{20,30}"),
        ("(SELECT (array[10, 20, 30])[c:c] FROM (SELECT 2 AS c) x)", "{20}"),
        ("(SELECT x.all[1:2] FROM (SELECT array[10, 20, 30] AS \"all\") x)", "{10,20}"),
        ("(SELECT x.to[1:c] FROM (SELECT array[10, 20, 30] AS \"to\", 2 AS c) x)", "{10,20}"),
        ("(SELECT (array[10, 20, 30])[x.in:3] FROM (SELECT 2 AS \"in\") x)", "{20,30}"),
        ("(SELECT \":n\" FROM (SELECT 7 AS \":n\") x)", "7"),
    ] {
        assert_eq!(one(&connection, sql, ()), expected, "{sql}");
    }
    for (sql, expected) in [
        (":n::int + 1", "8"),
        (":n::text || ':n'", "7:n"),
        ("(array[:n, 2])[1]", "7"),
        ("(array[[1, 2], [:n, 4]])[2][1]", "7"),
        ("(array[1,2,3,4,5,6,7,8])[:n::int]", "NULL"),
        ("(array[1,2,3,4,5,6,7,8])[(:n)]", "7"),
        ("(array[1,2,3,4,5,6,7,8])[6 : :n]", "{6,7}"),
        ("CASE WHEN true THEN :n ELSE 0 END", "7"),
        ("7 BETWEEN 1 AND :n", "true"),
        ("-:n", "-7"),
    ] {
        if sql.contains("[:n::int]") {
            // There it is the upper bound of a slice, as in PostgreSQL, and slices without a lower bound are refused.
            assert_eq!(connection.prepare(&format!("SELECT {sql}")).unwrap_err().sqlstate(), "0A000", "{sql}");
            continue;
        }
        assert_eq!(one(&connection, sql, [("n", 7)]), expected, "{sql}");
    }
}

#[test]
fn what_cannot_be_bound_is_named() {
    let (_database, connection) = with_table();
    let select = connection.prepare("SELECT v FROM t WHERE k = :key AND v = :text").unwrap();
    let failed = |params: &[(&str, &dyn ToValue)]| {
        let error = select.query_row(params).unwrap_err();
        (error.sqlstate(), error.message().to_owned())
    };
    for (params, code, message) in [
        (named_params! { ":key": 1 }, "08P01", "parameter :text was given no value"),
        (
            named_params! { ":key": 1, ":text": "a", ":other": 2 },
            "42P02",
            "there is no parameter :other; there are :key, :text",
        ),
        (named_params! { ":Key": 1, ":text": "a" }, "42P02", "there is no parameter :Key; there are :key, :text"),
        (named_params! { ":key": 1, "key": 2, ":text": "a" }, "08P01", "parameter :key was given two values"),
        (
            named_params! { ":key": "one", ":text": "a" },
            "22P02",
            "parameter :key: \"one\" is no valid value of type bigint",
        ),
    ] {
        assert_eq!(failed(params), (code, message.to_owned()));
    }
    let error = select.query_row([1]).unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.message()),
        ("08P01", "the statement has 2 parameters, but 1 values were given")
    );
    let error = connection.execute_with("DELETE FROM t WHERE k = $1", [("k", 1)]).unwrap_err();
    assert_eq!(error.sqlstate(), "42P02");
    assert!(error.message().contains("there is no parameter :k; there are none that have names"), "{error}");

    for (sql, code, part) in [
        ("SELECT :a, $1", "42601", "by number or by name, not both $1 and :a"),
        ("SELECT $2, :a", "42601", "not both $2 and :a"),
        ("SELECT :1", "42601", "\":1\" is no parameter (they are $1, $2, ..., or :name)"),
        ("SELECT :\"a\"", "42601", "is no parameter"),
        ("SELECT : a", "42601", "is no parameter"),
        ("SELECT :", "42601", "is no parameter"),
        ("SELECT * FROM :t", "42601", "Expected: identifier, found: :t at Line: 1, Column: 15"),
        ("SELECT :a FROM\n :b", "42601", "Expected: identifier, found: :b at Line: 2, Column: 2"),
        ("SELECT :a LIMIT 1 :b", "42601", "\":b\" at Line: 1, Column: 19"),
        ("CREATE TABLE x (k INTEGER DEFAULT :d)", "42P02", "there is no parameter :d"),
    ] {
        let error = connection.prepare(sql).map(|_| panic!("{sql}")).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{sql}: {error:?}");
        assert!(error.message().contains(part), "{sql}: {error}");
    }
    let error = connection.execute("DELETE FROM t WHERE k = :key").unwrap_err();
    assert_eq!(error.sqlstate(), "42P02");
    assert!(error.message().contains("there is no parameter :key; a statement with parameters is prepared"), "{error}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["3"]);
}

#[test]
fn the_point_path_takes_names() {
    let (_database, connection) = with_table();
    let statements = [
        ("SELECT v FROM t WHERE k = :k", "SELECT v FROM t WHERE k = $1"),
        ("UPDATE t SET v = :v WHERE k = :k", "UPDATE t SET v = $1 WHERE k = $2"),
        ("INSERT INTO t (v, k) VALUES (:v, :k + 100)", "INSERT INTO t (v, k) VALUES ($1, $2 + 100)"),
        ("DELETE FROM t WHERE k = :k", "DELETE FROM t WHERE k = $1"),
    ];
    for (k, (named, numbered)) in (1..).zip(statements) {
        let counted = |run: &dyn Fn() -> mainstem::Result<u64>| {
            let before = connection.short_statements();
            run().unwrap();
            connection.short_statements() - before
        };
        let by_name = connection.prepare(named).unwrap();
        let by_number = connection.prepare(numbered).unwrap();
        let (v, k) = (format!("v{k}"), k);
        let pairs: Vec<(&str, &dyn ToValue)> =
            by_name.parameter_names().iter().map(|n| (&**n, if &**n == "k" { &k as _ } else { &v as _ })).collect();
        assert_eq!(
            counted(&|| by_name
                .query(&pairs[..])
                .map(|rows| rows.count() as u64)
                .or_else(|_| by_name.execute(&pairs[..]))),
            1,
            "{named}"
        );
        let values: Vec<&dyn ToValue> = pairs.iter().map(|(_, value)| *value).collect();
        connection.execute_with("DELETE FROM t WHERE k > 100", ()).unwrap();
        assert_eq!(
            counted(&|| by_number
                .query(&values[..])
                .map(|rows| rows.count() as u64)
                .or_else(|_| by_number.execute(&values[..]))),
            1,
            "{numbered}"
        );
    }
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), ["1|a", "2|v2", "3|c"]);
}

#[test]
fn sql_prepares_and_appenders_take_names() {
    let (_database, connection) = with_table();
    connection.execute("PREPARE find (bigint) AS SELECT v FROM t WHERE k = :k AND v <> :other").unwrap();
    assert_eq!(rows(&connection, "EXECUTE find(2, 'x')"), ["b"]);
    assert_eq!(code(&connection, "EXECUTE find(2)"), "42601");
    assert_eq!(code(&connection, "PREPARE bad AS SELECT :k, $1"), "42601");
    for unbound in ["EXECUTE find(:k, 'x')", "EXECUTE find($1, 'x')"] {
        assert_eq!(code(&connection, unbound), "42P02", "{unbound}");
    }
    let mut appender = connection.appender("t").unwrap();
    appender.append_row(named_params! { "v": "d", "k": 4 }).unwrap();
    assert_eq!(appender.append_row([("k", 5)]).unwrap_err().sqlstate(), "08P01");
    assert_eq!(appender.append_row([("k", "5"), ("w", "x")]).unwrap_err().sqlstate(), "42P02");
    assert_eq!(appender.finish().unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT v FROM t WHERE k >= 4"), ["d"]);
}

#[test]
fn awaited_statements_take_names() {
    let database = quiet();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let connection = database.connect_async().unwrap();
        let statement = connection.prepare("SELECT :b - :a").await.unwrap();
        assert_eq!(statement.parameter_names(), ["b".into(), "a".into()]);
        assert_eq!(statement.query_row([("a", 1), ("b", 10)]).await.unwrap().get::<i64>(0).unwrap(), 9);
        let row = connection.query_row("SELECT :x || :x", named_params! { ":x": "y" }).await.unwrap();
        assert_eq!(row.get::<&str>(0).unwrap(), "yy");
        assert_eq!(statement.query_row([("a", 1)]).await.unwrap_err().sqlstate(), "08P01");
    });
}
