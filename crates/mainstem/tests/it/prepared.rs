//! Prepared statements: parameters of every type in every place, their errors, and statements that outlive the schema.

use std::sync::Arc;
use std::thread;

use mainstem::{
    Connection, DataType, Database, Date, Decimal, Params, Timestamp, TimestampTz, ToValue, Value, ValueRef,
};

use super::support::{code, quiet, rows};

fn with_types() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, b BOOLEAN, s SMALLINT, l BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(8, 2),
             day DATE, at TIMESTAMP, tz TIMESTAMPTZ, txt VARCHAR(5), raw BYTEA)",
        )
        .unwrap();
    (database, connection)
}

fn small() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
        )
        .unwrap();
    (database, connection)
}

/// The SQLSTATE of running `sql` with `params`.
fn code_with(connection: &Connection, sql: &str, params: impl Params) -> &'static str {
    connection.execute_with(sql, params).map(|_| ()).err().map_or("no error", |e| e.sqlstate())
}

const TWELVE: &str = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

#[test]
fn every_type_is_bound_stored_and_read_back() {
    let (_database, connection) = with_types();
    let insert = connection.prepare(TWELVE).unwrap();
    assert_eq!(insert.parameter_count(), 12);
    let types: Vec<DataType> = insert.parameter_types().unwrap().into_iter().map(Option::unwrap).collect();
    assert_eq!(types, connection.table("t").unwrap().columns.iter().map(|c| c.data_type).collect::<Vec<_>>());
    assert!(insert.columns().unwrap().is_empty());
    let day = Date::new(2024, 2, 29).unwrap();
    let (at, tz) = (Timestamp::from_micros(-1), TimestampTz::from_micros(1_500_000));
    let price = Decimal::new(-1250, 2).unwrap();
    let (name, raw) = (String::from("a'\"\\"), vec![0_u8, 255]);
    let written =
        insert.execute((1, true, -7_i16, i64::MIN, 0.1_f32, f64::MIN_POSITIVE, price, day, at, tz, &name, &raw));
    assert_eq!(written.unwrap(), 1);
    let nulls: [Option<i32>; 11] = [None; 11];
    let mut with_key: Vec<&dyn ToValue> = vec![&2];
    with_key.extend(nulls.iter().map(|null| null as &dyn ToValue));
    assert_eq!(insert.execute(&with_key).unwrap(), 1);

    let row = connection.query_row("SELECT * FROM t WHERE k = $1", [1]).unwrap();
    assert_eq!(row.get::<i32>("k").unwrap(), 1);
    assert!(row.get::<bool>("b").unwrap());
    assert_eq!(row.get::<i16>("s").unwrap(), -7);
    assert_eq!(row.get::<i64>("l").unwrap(), i64::MIN);
    assert_eq!(row.get::<f32>("r").unwrap(), 0.1);
    assert_eq!(row.get::<f64>("d").unwrap(), f64::MIN_POSITIVE);
    assert_eq!(row.get::<Decimal>("n").unwrap(), price);
    assert_eq!(row.get::<Date>("day").unwrap(), day);
    assert_eq!(row.get::<Timestamp>("at").unwrap(), at);
    assert_eq!(row.get::<TimestampTz>("tz").unwrap(), tz);
    assert_eq!(row.get::<&str>("txt").unwrap(), name);
    assert_eq!(row.get::<&[u8]>("raw").unwrap(), raw);
    assert_eq!(row.columns().iter().map(|c| c.name()).collect::<Vec<_>>()[10..], ["txt", "raw"]);
    assert_eq!(row.get::<i32>(12).unwrap_err().sqlstate(), "42703");
    assert_eq!(row.get::<i32>("K").unwrap_err().sqlstate(), "42703");
    let wrong = row.get::<i32>("txt").unwrap_err();
    assert_eq!(wrong.to_string(), "column \"txt\": a value of type text cannot be read as i32");
    let nulls = connection.query_row("SELECT * FROM t WHERE k = 2", ()).unwrap();
    assert!(nulls.values()[1..].iter().all(Value::is_null));
    assert_eq!(nulls.get::<ValueRef<'_>>("n").unwrap(), ValueRef::Null);

    // Each value finds its row again.
    for (column, value) in [
        ("b", &true as &dyn ToValue),
        ("s", &-7_i16),
        ("s", &-7_i64),
        ("l", &i64::MIN),
        ("r", &0.1_f32),
        ("r", &0.1_f64),
        ("d", &f64::MIN_POSITIVE),
        ("n", &price),
        ("n", &Decimal::new(-125, 1).unwrap()),
        ("day", &day),
        ("at", &at),
        ("tz", &tz),
        ("txt", &name),
        ("raw", &raw),
        // Text spells any of them.
        ("b", &"yes"),
        ("k", &"1"),
        ("n", &" -12.5 "),
        ("day", &"2024-02-29"),
        ("at", &"1969-12-31 23:59:59.999999"),
        ("tz", &"1970-01-01 00:00:01.5"),
        ("raw", &"\\x00ff"),
    ] {
        let found = connection.query_row(&format!("SELECT k FROM t WHERE {column} = $1"), [value]);
        assert_eq!(found.unwrap().get::<i32>(0).unwrap(), 1, "{column}");
    }
}

#[test]
fn text_spells_every_type_of_column() {
    let (_database, connection) = with_types();
    let spelled = [
        "1",
        "t",
        "2",
        "-3",
        "1.5",
        "2.5e3",
        "12.345",
        "2024-02-29",
        "2024-02-29 12:00:00",
        "2024-02-29 12:00:00",
        "abc",
        "\\xff",
    ];
    assert_eq!(connection.execute_with(TWELVE, spelled).unwrap(), 1);
    assert_eq!(
        rows(&connection, "SELECT k, b, s, l, r, d, n, day, at, txt FROM t"),
        ["1|true|2|-3|1.5|2500.0|12.35|2024-02-29|2024-02-29T12:00:00|abc"]
    );
    for (at, text, code) in [
        (0, "one", "22P02"),
        (0, "3000000000", "22003"),
        (2, "99999", "22003"),
        (5, "much", "22P02"),
        (7, "2024-02-30", "22008"),
        (10, "too long", "22001"),
        (11, "\\xf", "22023"),
    ] {
        let mut values = spelled;
        values[at] = text;
        let error = connection.execute_with(TWELVE, values).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{text}: {error}");
        if code != "22001" {
            assert!(error.to_string().contains(&format!("parameter ${}: \"{text}\"", at + 1)), "{error}");
        }
    }
}

#[test]
fn parameters_stand_wherever_expressions_do() {
    let (_database, connection) = small();
    let texts = |sql: &str, params: &[&dyn ToValue]| -> Vec<String> {
        let rows = connection.query_with(sql, params).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        rows.map(|row| row.unwrap().values().iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join("|")).collect()
    };
    assert_eq!(texts("SELECT k FROM t WHERE k BETWEEN $1 AND $2 ORDER BY k", &[&2, &9]), ["Int(2)", "Int(3)"]);
    assert_eq!(texts("SELECT k FROM t WHERE k IN ($1, $2)", &[&7, &3]), ["Int(3)"]);
    assert_eq!(texts("SELECT k FROM t WHERE v LIKE $1 ORDER BY 1", &[&"%o%"]), ["Int(1)", "Int(2)"]);
    assert_eq!(texts("SELECT k FROM t ORDER BY k DESC LIMIT $1 OFFSET $2", &[&1_i64, &1_i64]), ["Int(2)"]);
    assert_eq!(texts("SELECT k + $1 FROM t WHERE k = $1", &[&1]), ["Int(2)"]);
    // A parameter in ORDER BY or GROUP BY is a constant, not a position.
    assert_eq!(texts("SELECT k FROM t ORDER BY $1, k DESC LIMIT 1", &[&1]), ["Int(3)"]);
    assert_eq!(texts("SELECT count(*) FROM t WHERE k > (SELECT min(k) FROM t WHERE k > $1)", &[&1]), ["Int(1)"]);
    assert_eq!(
        texts("SELECT $1, $2, $3, $4", &[&1, &"x", &None::<i32>, &1.5]),
        ["Int(1)|Text(\"x\")|Null|Double(1.5)"]
    );
    assert_eq!(texts("SELECT coalesce($1, 5)", &[&None::<i32>]), ["Int(5)"]);
    assert_eq!(texts("SELECT upper($1) || $2", &[&"a", &"b"]), ["Text(\"Ab\")"]);
    assert_eq!(
        texts("SELECT CASE WHEN k = $1 THEN $2 ELSE v END FROM t WHERE k < 3 ORDER BY k", &[&1, &"uno"]),
        ["Text(\"uno\")", "Text(\"two\")"]
    );
    assert_eq!(texts("WITH w AS (SELECT $1 AS x) SELECT x FROM w UNION ALL SELECT $1", &[&"a"]), ["Text(\"a\")"; 2]);
    assert_eq!(texts("VALUES ($1, $2), ($2, $1)", &[&1, &2]), ["Int(1)|Int(2)", "Int(2)|Int(1)"]);
    assert_eq!(texts("SELECT CAST($1 AS INTEGER) + $2", &[&"4", &5]), ["Int(9)"]);
    // Text in a literal that looks like a parameter is none.
    assert_eq!(texts("SELECT '$1', $1", &[&"x"]), ["Text(\"$1\")|Text(\"x\")"]);
    assert_eq!(texts("SELECT v FROM t WHERE v = $1", &[&"'; DROP TABLE t; --"]), Vec::<String>::new());
    // NULL is equal to nothing.
    assert_eq!(texts("SELECT k FROM t WHERE v = $1", &[&None::<&str>]), Vec::<String>::new());
    assert_eq!(texts("SELECT k FROM t WHERE v IS NOT DISTINCT FROM $1", &[&None::<&str>]), ["Int(3)"]);
    // A number that the column cannot hold is found in no row, and is no error.
    assert_eq!(texts("SELECT k FROM t WHERE k = $1", &[&3_000_000_000_i64]), Vec::<String>::new());
    assert_eq!(texts("SELECT count(*) FROM t WHERE k < $1", &[&3_000_000_000_i64]), ["Int(3)"]);
    assert_eq!(texts("SELECT count(*) FROM t WHERE k < $1", &[&2.5]), ["Int(2)"]);
    assert_eq!(texts("EXPLAIN SELECT k FROM t WHERE k = $1", &[&1]).len(), 3);
}

#[test]
fn writes_take_parameters() {
    let (_database, connection) = small();
    let update = connection.prepare("UPDATE t SET v = $2, k = k + $3 WHERE k = $1").unwrap();
    assert_eq!(update.execute((1, "uno", 10)).unwrap(), 1);
    assert_eq!(update.execute((1, "uno", 10)).unwrap(), 0);
    assert_eq!(update.execute((2, None::<&str>, 0)).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), ["2|NULL", "3|NULL", "11|uno"]);
    let delete = connection.prepare("DELETE FROM t WHERE v IS NULL AND k < $1").unwrap();
    assert_eq!(delete.execute([3_i64]).unwrap(), 1);
    let insert = connection.prepare("INSERT INTO t (v, k) VALUES ($1, $2), ($1, $2 + 1), ('lit', 100)").unwrap();
    assert_eq!(insert.execute(("p", 50)).unwrap(), 3);
    assert_eq!(
        connection.execute_with("INSERT INTO t SELECT k + $1, $2 FROM t WHERE k > $3", (1000, "sel", 49)).unwrap(),
        3
    );
    assert_eq!(
        rows(&connection, "SELECT * FROM t ORDER BY k"),
        ["3|NULL", "11|uno", "50|p", "51|p", "100|lit", "1050|sel", "1051|sel", "1100|sel"]
    );
    // Values are assigned as literals would be.
    assert_eq!(connection.execute_with("INSERT INTO t VALUES ($1, $2)", (2.5, 7)).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT v FROM t WHERE k = 2"), ["7"]);
    assert_eq!(code_with(&connection, "INSERT INTO t VALUES ($1, $2)", (3_000_000_000_i64, "x")), "22003");
    assert_eq!(code_with(&connection, "INSERT INTO t VALUES ($1, 'x')", [None::<i32>]), "23502");
    assert_eq!(code_with(&connection, "INSERT INTO t VALUES ($1, 'x')", [3]), "23505");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["9"]);
}

#[test]
fn wrong_values_are_refused_and_change_nothing() {
    let (_database, connection) = with_types();
    let select = connection.prepare("SELECT k FROM t WHERE k = $1 AND l > $2").unwrap();
    for wrong in [vec![], vec![1], vec![1, 2, 3]] {
        let error = select.query_row(&wrong).unwrap_err();
        assert_eq!(error.sqlstate(), "08P01");
        assert_eq!(error.to_string(), format!("the statement has 2 parameters, but {} values were given", wrong.len()));
    }
    for (sql, value, code) in [
        ("SELECT * FROM t WHERE k = $1", &true as &dyn ToValue, "42804"),
        ("SELECT * FROM t WHERE b = $1", &1, "42804"),
        ("SELECT * FROM t WHERE day = $1", &1, "42804"),
        ("SELECT * FROM t WHERE raw = $1", &1.5, "42804"),
        ("SELECT * FROM t WHERE n = $1", &Date::from_days(1), "42804"),
        ("SELECT * FROM t WHERE k = $1", &"one", "22P02"),
        ("SELECT * FROM t WHERE k + 1 < $1", &"", "22P02"),
        ("UPDATE t SET k = $1", &true, "42804"),
        ("UPDATE t SET day = $1", &12, "42804"),
        ("INSERT INTO t (k) VALUES ($1)", &Timestamp::from_micros(1), "42804"),
        ("INSERT INTO t (k, raw) VALUES (1, $1)", &1, "42804"),
    ] {
        let error = connection.execute_with(sql, [value]).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{sql}: {error}");
        assert!(error.to_string().contains("parameter $1"), "{sql}: {error}");
    }
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn what_cannot_be_prepared_is_refused() {
    let (_database, connection) = small();
    let refused = |sql: &str| match connection.prepare(sql) {
        Ok(_) => "no error",
        Err(e) => e.sqlstate(),
    };
    for (sql, code) in [
        ("", "42601"),
        ("SELECT 1; SELECT 2", "42601"),
        ("SELEC $1", "42601"),
        ("SELECT $0", "42601"),
        ("SELECT $x", "42601"),
        ("SELECT ?", "42601"),
        ("SELECT $70000", "54000"),
        ("SELECT * FROM nowhere WHERE k = $1", "42P01"),
        ("SELECT nothing FROM t WHERE k = $1", "42703"),
        ("SELECT unheard_of($1)", "42883"),
        ("INSERT INTO nowhere VALUES ($1)", "42P01"),
        ("INSERT INTO t (k, w) VALUES ($1, $2)", "42703"),
        ("UPDATE t SET w = $1", "42703"),
        ("DELETE FROM t WHERE w = $1", "42703"),
        ("CREATE TABLE u (k INTEGER, CHECK (k > $1))", "42P02"),
        ("SET threads = $1", "42P02"),
        ("COPY (SELECT * FROM t WHERE k = $1) TO '/dev/null' (FORMAT csv)", "42P02"),
    ] {
        let found = refused(sql);
        // Grammar that is not there comes before parameters that may not be there.
        assert!(found == code || (code == "42P02" && matches!(found, "0A000" | "42601")), "{sql}: {found}");
    }
    // Without values there are no parameters.
    for sql in ["SELECT $1", "INSERT INTO t VALUES ($1, 'x')", "SELECT 1; DELETE FROM t WHERE k = $1"] {
        assert_eq!(code(&connection, sql), "42P02", "{sql}");
    }
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["3"]);
    // Anything without parameters can be prepared.
    let begin = connection.prepare("BEGIN").unwrap();
    let rollback = connection.prepare("ROLLBACK;").unwrap();
    let delete = connection.prepare("DELETE FROM t").unwrap();
    for _ in 0..3 {
        begin.execute(()).unwrap();
        assert_eq!(delete.execute(()).unwrap(), 3);
        rollback.execute(()).unwrap();
    }
    assert_eq!(connection.prepare("SHOW threads").unwrap().columns().unwrap()[0].name(), "threads");
    // What gives no rows does not run when rows are asked for.
    assert_eq!(delete.query(()).map(|_| ()).unwrap_err().sqlstate(), "42601");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["3"]);
}

#[test]
fn one_row_is_one_row() {
    let (_database, connection) = small();
    let select = connection.prepare("SELECT v FROM t WHERE k >= $1").unwrap();
    assert_eq!(select.query_row([9]).unwrap_err().sqlstate(), "02000");
    assert_eq!(select.query_row([2]).unwrap_err().sqlstate(), "21000");
    assert!(select.query_optional([9]).unwrap().is_none());
    assert_eq!(select.query_optional([2]).unwrap_err().sqlstate(), "21000");
    assert_eq!(select.query_row([3]).unwrap().get::<Option<String>>(0).unwrap(), None);
    assert_eq!(select.query([1]).unwrap().count(), 3);
    assert_eq!(select.query_batches([1]).unwrap().count_rows().unwrap(), 3);
    assert_eq!(select.execute([1]).unwrap(), 0);
}

#[test]
fn columns_and_parameters_are_known_before_the_first_run() {
    let (_database, connection) = with_types();
    let select = connection.prepare("SELECT n, day AS d, k + $1, $2 FROM t WHERE txt = $3 AND d < $4").unwrap();
    let columns: Vec<(String, String)> =
        select.columns().unwrap().iter().map(|c| (c.name().to_string(), c.data_type().to_string())).collect();
    assert_eq!(columns[0], ("n".into(), "numeric(8,2)".into()));
    assert_eq!(columns[1], ("d".into(), "date".into()));
    assert_eq!(columns[2].1, "integer");
    assert_eq!(columns[3].1, "text");
    let types = select.parameter_types().unwrap();
    assert_eq!(types[0], Some(DataType::Integer));
    assert_eq!(types[1], None);
    assert_eq!(types[2], Some(DataType::Text { max_chars: None }));
    assert_eq!(types[3], Some(DataType::Double));
}

#[test]
fn a_prepared_statement_follows_the_schema() {
    let (_database, connection) = small();
    let select = connection.prepare("SELECT * FROM t WHERE k = $1").unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    assert_eq!(select.query_row([1]).unwrap().values().len(), 2);
    connection.execute_batch("DROP TABLE t").unwrap();
    assert_eq!(select.query_row([1]).unwrap_err().sqlstate(), "42P01");
    assert_eq!(insert.execute((1, "x")).unwrap_err().sqlstate(), "42P01");
    connection.execute_batch("CREATE TABLE t (k TEXT, v DECIMAL(4, 1)); INSERT INTO t VALUES ('1', 1)").unwrap();
    assert_eq!(select.columns().unwrap()[0].data_type(), DataType::Text { max_chars: None });
    assert_eq!(select.query_row(["1"]).unwrap().get::<Decimal>("v").unwrap().to_string(), "1.0");
    assert_eq!(insert.parameter_types().unwrap()[1], Some(DataType::Decimal { precision: 4, scale: 1 }));
    assert_eq!(insert.execute(("2", "2.25")).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT k, v FROM t ORDER BY k"), ["1|1.0", "2|2.3"]);
    // Inside a transaction it sees the transaction's tables, and afterwards those that are.
    let transaction = connection.transaction().unwrap();
    transaction.execute("DROP TABLE t; CREATE TABLE t (k BIGINT, v TEXT)").unwrap();
    assert_eq!(insert.execute((7, "seven")).unwrap(), 1);
    assert_eq!(select.query_row([7]).unwrap().get::<i64>(0).unwrap(), 7);
    transaction.rollback();
    assert_eq!(select.query([7]).unwrap().count(), 0);
    assert_eq!(select.query(["2"]).unwrap().count(), 1);
}

#[test]
fn statements_belong_to_the_transaction_of_their_connection() {
    let (database, connection) = small();
    let other = database.connect().unwrap();
    let update = connection.prepare("UPDATE t SET v = $1 WHERE k = 1").unwrap();
    let transaction = connection.transaction().unwrap();
    update.execute(["mine"]).unwrap();
    other.execute_with("UPDATE t SET v = $1 WHERE k = 1", ["theirs"]).unwrap();
    assert_eq!(transaction.query_row("SELECT v FROM t WHERE k = $1", [1]).unwrap().get::<&str>(0).unwrap(), "mine");
    assert_eq!(transaction.commit().unwrap_err().sqlstate(), "40001");
    assert_eq!(update.execute(["again"]).unwrap(), 1);
    assert_eq!(rows(&other, "SELECT v FROM t WHERE k = 1"), ["again"]);
}

#[test]
fn threads_share_a_prepared_statement() {
    let (_database, connection) = small();
    let connection = Arc::new(connection);
    let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let insert = &insert;
            scope.spawn(move || {
                for i in 0..10 {
                    insert.execute((1000 * (thread + 1) + i, format!("thread {thread}"))).unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&connection, "SELECT count(*), count(DISTINCT v) FROM t WHERE k >= 1000"), ["40|4"]);
}

#[test]
fn rows_of_types_that_no_table_has() {
    let (_database, connection) = small();
    let sql = "SELECT INTERVAL '1 day' AS i, make_array(1, 2) AS l, NULL AS n, count(*) AS c FROM t";
    let row = connection.query_row(sql, ()).unwrap();
    assert!(row.get::<&str>("i").unwrap().contains("1 day"), "{row:?}");
    assert_eq!(row.get::<&str>("l").unwrap(), "{1,2}");
    assert_eq!(row.get::<Option<&str>>("n").unwrap(), None);
    assert_eq!(row.get::<i64>("c").unwrap(), 3);
}

#[test]
fn sql_prepares_too() {
    let (database, connection) = small();
    connection.execute("PREPARE add (INTEGER, TEXT) AS INSERT INTO t VALUES ($1, $2)").unwrap();
    connection.execute("PREPARE find AS SELECT v FROM t WHERE k = $1").unwrap();
    assert_eq!(connection.execute("EXECUTE add(10, 'ten')").unwrap(), 1);
    assert_eq!(connection.execute("EXECUTE add('11', 5 + 6)").unwrap(), 1);
    assert_eq!(rows(&connection, "EXECUTE find(10)"), ["ten"]);
    assert_eq!(rows(&connection, "EXECUTE find(5 + 6)"), ["11"]);
    assert_eq!(rows(&connection, "EXECUTE find('10')"), ["ten"]);
    assert_eq!(rows(&connection, "EXECUTE find(NULL)"), Vec::<String>::new());
    let tags: Vec<String> =
        connection.run("EXECUTE add(12, NULL); EXECUTE find(12)").unwrap().map(|o| o.unwrap().tag).collect();
    assert_eq!(tags, ["INSERT 0 1", "SELECT"]);
    // Declared types are assigned to, as columns are.
    connection.execute("PREPARE typed (SMALLINT, DECIMAL(5, 1), DATE) AS SELECT $1, $2, $3").unwrap();
    assert_eq!(rows(&connection, "EXECUTE typed(1.5, 1.25, '2024-02-29')"), ["2|1.3|2024-02-29"]);
    for (sql, code_wanted) in [
        ("EXECUTE nothing(1)", "26000"),
        ("DEALLOCATE nothing", "26000"),
        ("PREPARE find AS SELECT 1", "42P05"),
        ("EXECUTE find", "42601"),
        ("EXECUTE find(1, 2)", "42601"),
        ("EXECUTE find('ten')", "22P02"),
        ("EXECUTE typed(40000, 1, NULL)", "22003"),
        ("EXECUTE typed(1, 1, 5)", "42804"),
        ("EXECUTE find((SELECT count(*) FROM nowhere))", "42P01"),
        ("EXECUTE find(1 / 0)", "22012"),
        ("PREPARE bad AS SELECT * FROM nowhere", "42P01"),
        ("PREPARE bad AS CREATE TABLE u (k INTEGER)", "42601"),
        ("PREPARE bad AS PREPARE worse AS SELECT 1", "0A000"),
        ("EXECUTE bad", "26000"),
    ] {
        assert_eq!(code(&connection, sql), code_wanted, "{sql}");
    }
    // Rows are asked for only of what gives them; the write has not run.
    assert_eq!(connection.query("EXECUTE add(99, 'x')").map(|_| ()).unwrap_err().sqlstate(), "42601");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t WHERE k = 99"), ["0"]);
    // They are the session's own, and outlive transactions that are rolled back.
    assert_eq!(code(&database.connect().unwrap(), "EXECUTE find(1)"), "26000");
    connection.execute("BEGIN; PREPARE inside AS SELECT 1; ROLLBACK; EXECUTE inside").unwrap();
    connection.execute("DEALLOCATE PREPARE inside").unwrap();
    assert_eq!(code(&connection, "EXECUTE inside"), "26000");
    // A prepared EXECUTE is looked up when it runs.
    let execute = connection.prepare("EXECUTE find(2)").unwrap();
    assert_eq!(execute.columns().unwrap()[0].name(), "v");
    assert_eq!(execute.query_row(()).unwrap().get::<&str>(0).unwrap(), "two");
    connection.execute("DEALLOCATE ALL").unwrap();
    assert_eq!(execute.query_row(()).unwrap_err().sqlstate(), "26000");
    assert_eq!(code(&connection, "EXECUTE find(1)"), "26000");
}

#[test]
fn statements_run_with_values_are_remembered_and_stay_right() {
    let (_database, connection) = small();
    let find = "SELECT v FROM t WHERE k = $1";
    for n in 0..200 {
        // More statements than are kept, and some of them again.
        let sql = format!("SELECT k + {n} FROM t WHERE k = $1");
        assert_eq!(connection.query_row(&sql, [1]).unwrap().get::<i64>(0).unwrap(), n + 1);
        assert_eq!(connection.query_row(find, [2]).unwrap().get::<&str>(0).unwrap(), "two");
    }
    connection.execute_batch("DROP TABLE t; CREATE TABLE t (v BIGINT, k TEXT); INSERT INTO t VALUES (7, 'a')").unwrap();
    assert_eq!(connection.query_row(find, ["a"]).unwrap().get::<i64>(0).unwrap(), 7);
    connection.execute("DROP TABLE t").unwrap();
    assert_eq!(connection.query_row(find, ["a"]).unwrap_err().sqlstate(), "42P01");
}

/// Types of parameters and columns, or the error.
fn description(connection: &Connection, sql: &str) -> String {
    match connection.prepare(sql) {
        Ok(statement) => format!("{:?} {:?}", statement.parameter_types().unwrap(), statement.columns().unwrap()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn short_statements_are_described_as_plans_are() {
    let database = quiet();
    let (short, planned) = (database.connect().unwrap(), database.connect().unwrap());
    let script = "CREATE TABLE w (a BIGINT, b SMALLINT, c CHAR(3), v VARCHAR(5), t TEXT NOT NULL, d DECIMAL(8, 2), f REAL,
                                  g DOUBLE PRECISION, y BOOLEAN, e DATE, z TIMESTAMP, x BYTEA, i UUID, PRIMARY KEY (a, b));
                  CREATE TABLE o (a BIGINT PRIMARY KEY, n INTEGER, b SMALLINT)";
    short.execute_batch(script).unwrap();
    planned.execute("SET point_path = off").unwrap();
    let mut statements: Vec<String> = [
        "SELECT * FROM w WHERE a = $1 AND b = $2",
        "SELECT t, a AS \"Key\", d FROM w AS q WHERE q.a = $1",
        "SELECT * FROM w WHERE a = $1 AND $2 < b",
        "SELECT count(*) FROM w WHERE a = $1",
        "SELECT EXISTS (SELECT 1 FROM w WHERE a = $1)",
        "SELECT a FROM w WHERE a > $1 ORDER BY a, b LIMIT $2",
        "SELECT a FROM w WHERE a IN ($1, 5, $2) AND b = 1",
        "SELECT a FROM w WHERE a BETWEEN $1 AND $2",
        "SELECT a FROM w WHERE a BETWEEN $1 AND $1 + 20",
        "SELECT a FROM w WHERE a = $1 AND b = $1",
        "SELECT a + $2 FROM w WHERE a = $1",
        "SELECT $1 FROM w WHERE a = 1",
        "SELECT none FROM w WHERE a = $1",
        "SELECT a FROM w WHERE none = $1",
        "SELECT a FROM none WHERE a = $1",
        "SELECT w.a, o.n FROM w JOIN o ON o.a = w.a WHERE w.a = $1",
        "SELECT o.n, w.t FROM o JOIN w ON w.a = o.a AND w.b = o.b WHERE o.a = $1 AND n > $2",
        "SELECT * FROM w WHERE a = $1 AND b = 1 FOR UPDATE",
        "INSERT INTO o VALUES ($1, $2, $3)",
        "INSERT INTO o VALUES ($1, $2, 5), ($3, 7, $4)",
        "INSERT INTO o (n, a) VALUES ($1, $2) RETURNING *",
        "INSERT INTO o (n, a) VALUES ($1, $2) RETURNING n + $3",
        "INSERT INTO o (n, none) VALUES ($1, $2)",
        "INSERT INTO o VALUES ($1, $2, $3, $4)",
        "INSERT INTO o VALUES ($1, 'x', $2)",
        "INSERT INTO o VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET n = $3",
        "INSERT INTO o VALUES ($1, $1)",
        "UPDATE o SET n = $1 WHERE a = $2",
        "UPDATE o SET n = n + $1 WHERE a = $2 RETURNING n",
        "UPDATE o SET n = $1, b = $1 WHERE a = $2",
        "UPDATE o SET none = $1 WHERE a = $2",
        "DELETE FROM o WHERE a = $1 RETURNING a, n",
        "DELETE FROM o WHERE a = $1 OR n = $2",
    ]
    .map(str::to_owned)
    .into();
    for column in ["a", "b", "c", "v", "t", "d", "f", "g", "y", "e", "z", "x", "i"] {
        statements.push(format!("SELECT {column} FROM w WHERE a = 1 AND b = 2 AND {column} = $1"));
        statements.push(format!("UPDATE w SET {column} = $1 WHERE a = $2 RETURNING {column}"));
        statements.push(format!("INSERT INTO w (a, b, t, {column}) VALUES (1, 2, 'x', $1)"));
    }
    for sql in &statements {
        assert_eq!(description(&short, sql), description(&planned, sql), "{sql}");
    }
}

#[test]
fn parameters_whose_context_takes_no_text_may_be_numbers() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection
        .execute("CREATE TABLE t (v INT, d DATE); INSERT INTO t VALUES (5, '2024-01-01'), (0, '2024-01-02')")
        .unwrap();
    let of_case = "SELECT sum(CASE WHEN v > $1 THEN $2 ELSE $3 END)::text FROM t";
    let recursive =
        "WITH RECURSIVE r(n) AS (SELECT $1 UNION ALL SELECT n + $2 FROM r WHERE n < $3) SELECT sum(n)::text FROM r";
    let text = |sql: &str, params: &[f64]| connection.query_row(sql, params).unwrap().get::<String>(0).unwrap();
    let whole = |sql: &str, params: &[i32]| connection.query_row(sql, params).unwrap().get::<String>(0).unwrap();
    assert_eq!(whole(of_case, &[1, 1, 0]), "1");
    assert_eq!(text(of_case, &[1.0, 1.5, 0.25]), "1.75");
    assert_eq!(whole(recursive, &[1, 1, 10]), "55");
    assert_eq!(whole("SELECT max(d + $1)::text FROM t", &[5]), "2024-01-07");
    assert_eq!(whole("SELECT sum(nullif($1, $2))::text FROM t", &[1, 2]), "2");
    let error = connection.query_row(of_case, (1, "x", "y")).unwrap_err();
    assert_eq!(error.sqlstate(), "42883");
}
