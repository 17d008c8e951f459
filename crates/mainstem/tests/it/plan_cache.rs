//! Statements kept by their texts: what a kept one must see, and that it answers as the text does.

use mainstem::{Connection, Database};

use super::support::{code, quiet, rows};

fn users(mode: &str) -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    let script = "CREATE TABLE u (id BIGINT PRIMARY KEY, name TEXT, n INTEGER, d DECIMAL(8, 2))";
    connection.execute_batch(script).unwrap();
    connection.execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
    (database, connection)
}

/// How many of the statements that `work` runs were not planned.
fn short(connection: &Connection, work: impl FnOnce()) -> u64 {
    let before = connection.short_statements();
    work();
    connection.short_statements() - before
}

#[test]
fn texts_that_differ_in_literals_are_one_statement() {
    let (_database, connection) = users("auto");
    let insert = |id: i64| {
        let sql = format!("INSERT INTO u VALUES ({id}, 'it''s {id}', {}, -{id}.50)", id % 7);
        assert_eq!(connection.execute(&sql).unwrap(), 1);
    };
    assert_eq!(short(&connection, || (0..100).for_each(insert)), 100);
    let found = rows(&connection, "SELECT * FROM u WHERE id = 42");
    assert_eq!(found, ["42|it's 42|0|-42.50"]);
    assert_eq!(rows(&connection, "SELECT count(*), sum(n), sum(d) FROM u"), ["100|295|-5000.00"]);
    connection.execute("UPDATE u SET name = 'new', n = n + 1 WHERE id = 42").unwrap();
    connection.execute("UPDATE u SET name = 'newer', n = n + 1 WHERE id = 43").unwrap();
    let found = rows(&connection, "SELECT id, name, n FROM u WHERE name LIKE 'new%' ORDER BY id");
    assert_eq!(found, ["42|new|1", "43|newer|2"]);
    for id in [42, 43, 44] {
        assert_eq!(connection.execute(&format!("DELETE FROM u WHERE id = {id}")).unwrap(), 1);
    }
    assert_eq!(connection.execute("DELETE FROM u WHERE id = 42").unwrap(), 0);
}

#[test]
fn answers_and_errors_are_those_of_the_text() {
    let statements = [
        "INSERT INTO u VALUES (1, 'a', 1, 1.25)",
        "INSERT INTO u VALUES (1, 'a', 1, 1.25)",
        "INSERT INTO u VALUES (2, 7, '8', 9)",
        "INSERT INTO u VALUES ('3', 'a', 1.5, 1.255)",
        "INSERT INTO u VALUES (4, 'a', 99999999999, 1)",
        "INSERT INTO u VALUES (5, 'a', 'five', 1)",
        "INSERT INTO u VALUES (6, 'a', 1, 99999999.99)",
        "INSERT INTO u VALUES (7, 'a', true, 1)",
        "INSERT INTO u VALUES (8, 'a', 1)",
        "INSERT INTO u VALUES (8, 'a', 1, 1, 1)",
        "INSERT INTO u (id, none) VALUES (9, 'a')",
        "INSERT INTO u (id, name) VALUES (NULL, 'a')",
        "INSERT INTO u (id, name) VALUES (10, 'a') RETURNING id, name, 5",
        "UPDATE u SET n = 'x' WHERE id = 1",
        "UPDATE u SET n = 2.5, name = 3 WHERE id = '1'",
        "SELECT * FROM u WHERE id = 1",
        "SELECT * FROM u WHERE id = 1.0",
        "SELECT * FROM u WHERE id = 'one'",
        "SELECT * FROM u WHERE id = 1 AND name = 3",
        "SELECT * FROM u WHERE name = 'a'",
        "UPDATE u SET n = 99999999999 WHERE id = 999",
        "DELETE FROM u WHERE id = 1 AND n = '2'",
        "DELETE FROM u WHERE id = 99999999999999999999",
        "SELECT * FROM u ORDER BY id",
    ];
    let answers = |mode| {
        let (_database, connection) = users(mode);
        let answer = |sql: &&str| {
            // Twice: the second time it may be kept.
            let first = outcome_of(&connection, sql);
            (first, outcome_of(&connection, sql))
        };
        statements.iter().map(answer).collect::<Vec<_>>()
    };
    let (texts, kept, seen) = (answers("force_custom_plan"), answers("force_generic_plan"), answers("auto"));
    for (at, sql) in statements.iter().enumerate() {
        assert_eq!((&kept[at], &seen[at]), (&texts[at], &texts[at]), "{sql}");
    }
}

/// The outcome of `sql`: its rows, how many it wrote, or its error.
fn outcome_of(connection: &Connection, sql: &str) -> String {
    let outcome = connection.run(sql).and_then(|mut outcomes| outcomes.next().expect("an outcome"));
    match outcome {
        Err(error) => format!("{} {}", error.sqlstate(), error.message()),
        Ok(outcome) => match outcome.rows {
            None => format!("{} {:?}", outcome.tag, outcome.rows_affected),
            Some(result) => {
                let schema = result.schema();
                let shown = result.rows().map(|row| format!("{row:?}")).collect::<Vec<_>>();
                format!("{schema:?} {shown:?}")
            }
        },
    }
}

#[test]
fn a_kept_statement_sees_definitions_of_all_sessions() {
    let (database, connection) = users("force_generic_plan");
    let other = database.connect().unwrap();
    let insert = |id: i64| connection.execute(&format!("INSERT INTO u (id, name) VALUES ({id}, 'a')"));
    insert(1).unwrap();
    other.execute("ALTER TABLE u ADD COLUMN added TEXT DEFAULT 'new'").unwrap();
    insert(2).unwrap();
    assert_eq!(rows(&connection, "SELECT added FROM u WHERE id = 2"), ["new"]);
    connection.execute("ALTER TABLE u ADD CHECK (id < 4)").unwrap();
    insert(3).unwrap();
    assert_eq!(insert(4).unwrap_err().sqlstate(), "23514");
    other.execute("DROP TABLE u; CREATE TABLE u (id TEXT PRIMARY KEY, name TEXT)").unwrap();
    insert(5).unwrap();
    assert_eq!(rows(&connection, "SELECT id FROM u"), ["5"]);
    other.execute("DROP TABLE u").unwrap();
    assert_eq!(insert(6).unwrap_err().sqlstate(), "42P01");
    other.execute("CREATE VIEW u AS SELECT 1 AS id, 'x' AS name").unwrap();
    assert_eq!(insert(7).unwrap_err().sqlstate(), "42809");
    assert_eq!(rows(&connection, "SELECT name FROM u WHERE id = 1"), ["x"]);
}

#[test]
fn a_kept_statement_sees_commits_and_its_own_transaction() {
    let (database, connection) = users("force_generic_plan");
    let other = database.connect().unwrap();
    let name = |connection: &Connection| rows(connection, "SELECT name FROM u WHERE id = 1");
    assert!(name(&connection).is_empty());
    other.execute("INSERT INTO u VALUES (1, 'one', 1, 1)").unwrap();
    assert_eq!(name(&connection), ["one"]);
    connection.execute("BEGIN").unwrap();
    connection.execute("UPDATE u SET name = 'two' WHERE id = 1").unwrap();
    assert_eq!((name(&connection), name(&other)), (vec!["two".into()], vec!["one".into()]));
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(name(&connection), ["one"]);
}

#[test]
fn a_kept_statement_sees_settings_and_temporary_tables() {
    let (_database, connection) = users("force_generic_plan");
    let insert = |id: i64| connection.execute(&format!("INSERT INTO u (id, name) VALUES ({id}, 'a')")).unwrap();
    insert(1);
    connection.execute("CREATE SCHEMA s; CREATE TABLE s.u (id BIGINT PRIMARY KEY, name TEXT)").unwrap();
    connection.execute("SET search_path = s, public").unwrap();
    insert(2);
    assert_eq!(rows(&connection, "SELECT id FROM s.u"), ["2"]);
    connection.execute("CREATE TEMP TABLE u (id BIGINT PRIMARY KEY, name TEXT)").unwrap();
    insert(3);
    assert_eq!(rows(&connection, "SELECT id FROM u"), ["3"]);
    connection.execute("DROP TABLE u; RESET search_path").unwrap();
    insert(4);
    assert_eq!(rows(&connection, "SELECT id FROM u ORDER BY id"), ["1", "4"]);
    connection.execute("SET point_path = off").unwrap();
    insert(5);
    assert_eq!(rows(&connection, "SELECT count(*) FROM u"), ["3"]);
    assert_eq!(code(&connection, "SET plan_cache_mode = sometimes"), "22023");
}

#[test]
fn one_shot_calls_keep_their_statements() {
    let (database, connection) = users("auto");
    let insert = "INSERT INTO u VALUES ($1, $2, $3, $4)";
    let inserted = short(&connection, || {
        for id in 0..50_i64 {
            connection.execute_with(insert, (id, "a", 1, 2)).unwrap();
        }
    });
    assert_eq!(inserted, 50);
    let select = "SELECT name FROM u WHERE id = $1";
    assert_eq!(connection.query_row(select, [7_i64]).unwrap().get::<&str>(0).unwrap(), "a");
    database.connect().unwrap().execute("ALTER TABLE u RENAME COLUMN name TO title").unwrap();
    assert_eq!(connection.query_row(select, [7_i64]).unwrap_err().sqlstate(), "42703");
    assert_eq!(connection.prepare(select).unwrap_err().sqlstate(), "42703");
    database.connect().unwrap().execute("ALTER TABLE u RENAME COLUMN title TO name").unwrap();
    assert_eq!(connection.query_row(select, [7_i64]).unwrap().get::<&str>(0).unwrap(), "a");
    assert_eq!(connection.query_row(select, (7_i64, 8_i64)).unwrap_err().sqlstate(), "08P01");
}

#[test]
fn two_threads_share_a_connection_and_a_text() {
    let (_database, connection) = users("auto");
    std::thread::scope(|scope| {
        for thread in 0..2_i64 {
            let connection = &connection;
            scope.spawn(move || {
                for id in 0..200 {
                    connection.execute_with("INSERT INTO u (id, n) VALUES ($1, $2)", (2 * id + thread, 1)).unwrap();
                    connection.execute(&format!("UPDATE u SET n = 2 WHERE id = {}", 2 * id + thread)).unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&connection, "SELECT count(*), sum(n) FROM u"), ["400|800"]);
}

/// Queries with their values, and what is done between their runs.
#[test]
fn plans_are_kept_and_see_what_they_must() {
    let (database, connection) = users("auto");
    connection
        .execute("INSERT INTO u SELECT x, 'n' || x, x % 10, x / 4.0 FROM generate_series(1, 100) AS g (x)")
        .unwrap();
    let queries = [
        "SELECT count(*), sum(d) FROM u WHERE n = $1",
        "SELECT id FROM u WHERE id BETWEEN $1 AND $1 + 3 ORDER BY id DESC LIMIT 2",
        "SELECT n, count(*) FROM u WHERE id > $1 GROUP BY n HAVING count(*) > 3 ORDER BY n",
        "SELECT a.id FROM u AS a JOIN u AS b ON a.id = b.id + $1 WHERE b.n = 3 ORDER BY 1",
        "SELECT (SELECT max(id) FROM u AS b WHERE b.n = a.n AND b.id < $1 * 10) FROM u AS a WHERE a.id = $1",
        "SELECT $1 + 1, id + $1 FROM u WHERE d > $1 ORDER BY id LIMIT $1",
        "SELECT name FROM u WHERE name LIKE 'n' || $1 || '%' OR id = $1 ORDER BY name",
        "SELECT id FROM u WHERE n = $1 AND id IN (SELECT n FROM u WHERE n <> $1 + 1) ORDER BY id",
        "WITH w AS (SELECT n, row_number() OVER (ORDER BY id) AS r FROM u WHERE n <> $1) SELECT max(r), min(n) FROM w",
        "SELECT id FROM u WHERE n = $1 UNION SELECT $1 ORDER BY 1",
    ];
    let mut statements: Vec<_> = queries.iter().map(|sql| (*sql, connection.prepare(sql).unwrap())).collect();
    let changes = [
        "SELECT 1",
        "DELETE FROM u WHERE id % 3 = 0",
        "UPDATE u SET n = n + 1 WHERE id > 50",
        "ALTER TABLE u ADD COLUMN more INTEGER DEFAULT 7",
        "CREATE TEMP TABLE u (id BIGINT, name TEXT, n INTEGER, d DECIMAL(8, 2)); INSERT INTO u VALUES (3, 'n3', 3, 9)",
        "DROP TABLE u",
        "SET threads = 1",
        "SET memory_limit = '256MB'",
    ];
    let fresh = database.connect().unwrap();
    fresh.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    for change in changes {
        let is_temporary = change.starts_with("CREATE TEMP") || change.starts_with("DROP");
        connection.execute_batch(change).unwrap();
        for (sql, statement) in &mut statements {
            for value in [3_i64, 4, 3, 90, 3] {
                let shown = |rows: mainstem::Result<mainstem::Rows>| {
                    rows.unwrap().map(|row| format!("{:?}", row.unwrap().values())).collect::<Vec<_>>()
                };
                let kept = shown(statement.query([value]));
                // The temporary table is the connection's own.
                let other = if is_temporary { &connection } else { &fresh };
                let text = sql.replace("$1", &format!("CAST({value} AS BIGINT)"));
                assert_eq!(kept, shown(other.query_with(&text, ())), "{sql} of {value} after {change}");
            }
        }
    }
}

#[test]
fn the_time_and_random_numbers_are_not_kept() {
    let (_database, connection) = users("force_generic_plan");
    for sql in ["SELECT clock_timestamp()", "SELECT now()", "SELECT random()", "SELECT gen_random_uuid()"] {
        let value = || rows(&connection, sql);
        let first = value();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_ne!(first, value(), "{sql}");
    }
    connection.execute("CREATE VIEW late AS SELECT now() AS at, id FROM u").unwrap();
    connection.execute("INSERT INTO u (id) VALUES (1)").unwrap();
    let first = rows(&connection, "SELECT at FROM late");
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_ne!(first, rows(&connection, "SELECT at FROM late"));
    assert_eq!(rows(&connection, "SELECT current_setting('threads') = current_setting('threads')"), ["true"]);
    let threads = || rows(&connection, "SELECT current_setting('threads')");
    connection.execute("SET threads = 1").unwrap();
    assert_eq!(threads(), ["1"]);
    connection.execute("SET threads = 2").unwrap();
    assert_eq!(threads(), ["2"]);
}

#[test]
fn values_of_other_types_have_plans_of_their_own() {
    let (_database, connection) = users("auto");
    connection.execute("INSERT INTO u VALUES (1, '1', 1, 1.5), (2, '2', 2, 2.5)").unwrap();
    let select = connection.prepare("SELECT id, $1 FROM u WHERE d > $1 ORDER BY id").unwrap();
    for _ in 0..3 {
        let shown = |value: &dyn mainstem::ToValue| {
            let rows = select.query([value]).unwrap();
            rows.map(|row| format!("{:?}", row.unwrap().get::<i64>(0).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(shown(&1_i32), ["1", "2"]);
        assert_eq!(shown(&2_i64), ["2"]);
        assert_eq!(shown(&mainstem::Decimal::new(2_499, 3).unwrap()), ["2"]);
        assert_eq!(shown(&2.5_f64), Vec::<String>::new());
        assert_eq!(shown(&"1.5"), ["2"]);
        assert_eq!(shown(&None::<i64>), Vec::<String>::new());
    }
}

#[test]
fn values_without_a_type_of_the_context_are_literals() {
    let (_database, connection) = users("force_generic_plan");
    connection.execute("CREATE TABLE e (k INTEGER PRIMARY KEY, day DATE, uid UUID)").unwrap();
    connection.execute("INSERT INTO e VALUES (1, '2024-01-05', NULL), (2, NULL, NULL)").unwrap();
    for sql in
        ["SELECT coalesce(day, $1) FROM e ORDER BY k", "SELECT CASE WHEN k = 1 THEN day ELSE $1 END FROM e ORDER BY k"]
    {
        let select = connection.prepare(sql).unwrap();
        for _ in 0..3 {
            let rows = select.query(["2024-02-29"]).unwrap();
            let shown: Vec<_> = rows.map(|row| format!("{:?}", row.unwrap().values())).collect();
            let text = sql.replace("$1", "'2024-02-29'");
            let planned = connection.query_with(&text, ()).unwrap().map(|row| format!("{:?}", row.unwrap().values()));
            assert_eq!(shown, planned.collect::<Vec<_>>(), "{sql}");
        }
    }
}

#[test]
fn no_row_has_a_key_that_its_digits_do_not_spell() {
    let (_database, connection) = users("force_generic_plan");
    connection.execute("CREATE TABLE price (d DECIMAL(10, 2) PRIMARY KEY, n INTEGER)").unwrap();
    connection.execute("INSERT INTO price VALUES (1.50, 1)").unwrap();
    for digits in ["1.499", "1.5049"] {
        assert_eq!(connection.execute(&format!("DELETE FROM price WHERE d = '{digits}'")).unwrap(), 0);
        assert_eq!(connection.execute(&format!("UPDATE price SET n = 2 WHERE d = '{digits}'")).unwrap(), 0);
        assert!(rows(&connection, &format!("SELECT n FROM price WHERE d = '{digits}'")).is_empty());
    }
    assert_eq!(rows(&connection, "SELECT n FROM price WHERE d = '1.50'"), ["1"]);
}

#[test]
fn plans_are_kept_by_default() {
    let database = quiet();
    assert_eq!(rows(&database.connect().unwrap(), "SHOW plan_cache_mode"), ["auto"]);
}

/// How many of the queries that `work` runs ran by kept plans.
fn kept(connection: &Connection, work: impl FnOnce()) -> u64 {
    let before = connection.kept_plan_runs();
    work();
    connection.kept_plan_runs() - before
}

/// Prepares `query` with parameters of `types`, and runs it three times with `values`: the answers are those of the
/// first time, which is planned. How many of the other two were by a kept plan is told.
fn kept_of_three(connection: &Connection, types: &str, query: &str, values: &str) -> u64 {
    let types = if types.is_empty() { String::new() } else { format!("({types})") };
    connection.execute(&format!("PREPARE q {types} AS {query}")).unwrap();
    let run = || outcome_of(connection, &format!("EXECUTE q ({values})"));
    let first = run();
    let kept = kept(connection, || {
        for _ in 0..2 {
            assert_eq!(run(), first, "{query} of {values}");
        }
    });
    connection.execute("DEALLOCATE q").unwrap();
    kept
}

fn guarded() -> (Database, Connection) {
    let (database, connection) = users("auto");
    connection.execute("CREATE TABLE g (k INTEGER, v INTEGER, s TEXT, c CHAR(4), d NUMERIC(8, 2), day DATE)").unwrap();
    let values = "(1, 0, 'x', 'a', 1.5, '2024-01-05'), (2, 1, '1', 'b', 2.5, NULL), (3, 10, '2', 'c', NULL, NULL)";
    connection.execute(&format!("INSERT INTO g VALUES {values}")).unwrap();
    (database, connection)
}

#[test]
fn filters_with_parameters_stay_behind_their_guards() {
    let (_database, connection) = guarded();
    for (query, value) in [
        ("SELECT k FROM g WHERE v = 0 OR $1 / v > 20 ORDER BY k", "300"),
        ("SELECT k FROM g WHERE v <> 0 AND $1 / v > 20 ORDER BY k", "300"),
        ("SELECT k FROM g WHERE CASE WHEN v = 0 THEN false ELSE $1 / v > 20 END ORDER BY k", "300"),
        ("SELECT k FROM g WHERE s LIKE '_' AND s <> 'x' AND CAST(s AS INTEGER) >= $1 ORDER BY k", "2"),
        ("SELECT a.k FROM g AS a JOIN g AS b ON a.k = b.k AND b.v <> 0 WHERE $1 / (a.v + b.v) < 20 ORDER BY 1", "300"),
        ("SELECT k FROM g WHERE k = $1", "2"),
    ] {
        connection.execute(&format!("PREPARE p AS {query}")).unwrap();
        let first = outcome_of(&connection, &format!("EXECUTE p ({value})"));
        connection.execute("DEALLOCATE p").unwrap();
        assert!(!first.starts_with("22"), "{query}: {first}");
        assert_eq!(kept_of_three(&connection, "", query, value), 2, "{query}");
    }
}

#[test]
fn texts_that_are_no_texts_beside_other_types_are_not_kept() {
    let (_database, connection) = guarded();
    for (query, value) in [
        ("SELECT k FROM g WHERE c = $1 ORDER BY k", "'a  '"),
        ("SELECT k FROM g WHERE s = $1 OR c = $1 ORDER BY k", "'a  '"),
        ("SELECT k FROM g WHERE c IN ('b', $1) ORDER BY k", "'a  '"),
        ("SELECT k FROM g WHERE c BETWEEN $1 AND 'b' ORDER BY k", "'a  '"),
        ("SELECT k FROM g WHERE d = $1 ORDER BY k", "'1.499'"),
        ("SELECT k FROM g WHERE d > $1 ORDER BY k", "'1.499'"),
        ("SELECT greatest(d, $1) FROM g ORDER BY k", "'1.499'"),
        ("SELECT coalesce(day, $1) FROM g ORDER BY k", "'2024-02-29'"),
        ("SELECT CASE WHEN k = 1 THEN day ELSE $1 END FROM g ORDER BY k", "'2024-02-29'"),
        ("SELECT k FROM g WHERE day = $1", "'2024-01-05'"),
        ("SELECT k FROM g WHERE day = ANY (ARRAY[$1])", "'2024-01-05'"),
        ("SELECT day FROM g UNION SELECT $1 ORDER BY 1", "'2024-02-29'"),
    ] {
        assert_eq!(kept_of_three(&connection, "text", query, value), 0, "{query}");
    }
    for query in [
        "SELECT k FROM g WHERE s = $1 ORDER BY k",
        "SELECT k FROM g WHERE s IN ('2', $1) ORDER BY k",
        "SELECT k FROM g WHERE s LIKE $1 ORDER BY k",
        "SELECT upper(s || $1) FROM g WHERE length($1) = 1 ORDER BY k",
        "SELECT coalesce(s, $1), count(*) FROM g GROUP BY 1 ORDER BY 1",
    ] {
        assert_eq!(kept_of_three(&connection, "text", query, "'1'"), 2, "{query}");
    }
    for digits in ["1.5", "1.50", "1.499", "2.4999"] {
        assert_eq!(kept_of_three(&connection, "", "SELECT k FROM g WHERE d <= $1 ORDER BY k", digits), 2);
        let literal = rows(&connection, &format!("SELECT k FROM g WHERE d <= {digits} ORDER BY k"));
        let select = connection.prepare("SELECT k FROM g WHERE d <= $1 ORDER BY k").unwrap();
        for _ in 0..3 {
            let shown: Vec<_> =
                select.query([digits]).unwrap().map(|row| row.unwrap().get::<i32>(0).unwrap()).collect();
            assert_eq!(shown.iter().map(i32::to_string).collect::<Vec<_>>(), literal, "{digits}");
        }
    }
}

#[test]
fn arguments_that_must_be_literals_are_not_kept() {
    let (_database, connection) = guarded();
    for (query, value) in [
        ("SELECT lag(k, $1 + 1) OVER (ORDER BY k) FROM g ORDER BY k", "0"),
        ("SELECT ntile($1) OVER (ORDER BY k) FROM g ORDER BY k", "2"),
        ("SELECT nth_value(k, $1) OVER (ORDER BY k) FROM g ORDER BY k", "2"),
        ("SELECT string_agg(s, $1 || 'x' ORDER BY k) FROM g", "'-'"),
        ("SELECT percentile_cont($1) WITHIN GROUP (ORDER BY v) FROM g", "0.5"),
    ] {
        assert_eq!(kept_of_three(&connection, "", query, value), 0, "{query}");
    }
    let query = "SELECT sum(k + $1), rank() OVER (ORDER BY count(*)) FROM g WHERE v >= $1";
    assert_eq!(kept_of_three(&connection, "bigint", query, "1"), 2);
}

#[test]
fn an_interrupt_while_a_plan_is_made_is_told_and_the_plan_is_made_later() {
    let (_database, connection) = users("force_generic_plan");
    let sql = "SELECT count(*) FROM u AS a JOIN u AS b USING (id) JOIN u AS c USING (id) JOIN u AS d USING (id)";
    connection.execute("SET statement_timeout = 1").unwrap();
    assert_eq!(connection.query(sql).map(|_| ()).unwrap_err().sqlstate(), "57014");
    connection.execute("SET statement_timeout = 0").unwrap();
    assert_eq!(kept(&connection, || assert_eq!(rows(&connection, sql), ["0"])), 1);
}

#[test]
fn wrong_values_are_errors_whether_or_not_there_is_a_row() {
    let script =
        "CREATE TABLE b (k INTEGER PRIMARY KEY, b BOOLEAN, v INTEGER, s SMALLINT); INSERT INTO b (k) VALUES (1)";
    for point_path in ["on", "off"] {
        let (_database, connection) = users("auto");
        connection.execute_batch(&format!("{script}; SET point_path = {point_path}")).unwrap();
        for key in [1, 999] {
            for sql in [
                format!("SELECT k FROM b WHERE k = {key} AND b = 'x'"),
                format!("DELETE FROM b WHERE k = {key} AND b = 'x'"),
                format!("UPDATE b SET v = 1 WHERE k = {key} AND b = 'x'"),
            ] {
                for _ in 0..3 {
                    assert_eq!(code(&connection, &sql), "22P02", "{sql}");
                }
            }
            let with = |sql: &str, value: &dyn mainstem::ToValue| {
                connection.execute_with(sql, [value, &key]).map_or_else(|e| e.sqlstate(), |_| "no error")
            };
            for _ in 0..3 {
                assert_eq!(with("UPDATE b SET v = $1 WHERE k = $2", &"x"), "22P02");
                assert_eq!(with("UPDATE b SET s = $1 WHERE k = $2", &100_000), "22003");
                assert_eq!(with("UPDATE b SET v = 1 WHERE v = $1 AND k = $2", &"x"), "22P02");
                assert_eq!(with("DELETE FROM b WHERE b = $1 AND k = $2", &"x"), "22P02");
                assert_eq!(with("UPDATE b SET v = $1 WHERE k = $2 AND s = 5", &"7"), "no error");
                let upsert = "INSERT INTO b (k) VALUES ($2) ON CONFLICT (k) DO UPDATE SET v = $1";
                assert_eq!(with(upsert, &"x"), "22P02");
            }
        }
    }
    let (_database, connection) = users("auto");
    let update = "UPDATE u SET name = $1 WHERE id = $2 AND n = 3";
    let is_short = short(&connection, || assert_eq!(connection.execute_with(update, ("a", 999)).unwrap(), 0));
    assert_eq!(is_short, 1);
}

#[test]
fn lists_and_parentheses_stay_short() {
    let (_database, connection) = users("auto");
    connection.execute("INSERT INTO u (id, name) VALUES (1, 'a'), (2, 'b'), (7, 'c')").unwrap();
    for sql in ["SELECT name FROM u WHERE id IN (1, 2)", "SELECT name FROM u WHERE (id = 7)"] {
        assert_eq!(short(&connection, || (0..5).for_each(|_| _ = rows(&connection, sql))), 5, "{sql}");
    }
    let keys = (1..=64).map(|key: i32| key.to_string()).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT name FROM u WHERE name LIKE '%b%' AND id IN ({keys})");
    assert_eq!(rows(&connection, &sql), ["b"]);
}

#[test]
fn a_text_with_parameters_is_not_run_without_values() {
    let (_database, connection) = users("auto");
    for _ in 0..3 {
        assert_eq!(connection.query_row("SELECT $1 + 1", [1_i64]).unwrap().get::<i64>(0).unwrap(), 2);
        assert_eq!(connection.query("SELECT $1 + 1").map(|_| ()).unwrap_err().sqlstate(), "42P02");
        assert_eq!(code(&connection, "SELECT $1 + 1"), "42P02");
    }
}

#[test]
fn parameters_stand_in_grouping_sets() {
    let (_database, connection) = users("auto");
    connection.execute("INSERT INTO u (id, n) SELECT x, x FROM generate_series(1, 6) AS g (x)").unwrap();
    for query in [
        "SELECT id % $1, count(*) FROM u GROUP BY GROUPING SETS ((id % $1), ()) ORDER BY 1, 2",
        "SELECT id % $1 + 1, n > 3, sum(n) FROM u GROUP BY CUBE (id % $1, n > 3) ORDER BY 1, 2, 3",
        "SELECT n, $1, count(*) FROM u GROUP BY ROLLUP (n, $1) ORDER BY 1, 2, 3",
    ] {
        connection.execute(&format!("PREPARE p (bigint) AS {query}")).unwrap();
        let literal = query.replace("$1", "CAST(2 AS BIGINT)");
        let expected = rows(&connection, &literal);
        for _ in 0..3 {
            assert_eq!(rows(&connection, "EXECUTE p (2)"), expected, "{query}");
        }
        connection.execute("DEALLOCATE p").unwrap();
    }
}

#[test]
fn a_refused_insert_draws_one_number() {
    let (_database, connection) = users("auto");
    let table = "CREATE TABLE i (id INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, u INTEGER UNIQUE, n INTEGER NOT NULL)";
    connection.execute(table).unwrap();
    let insert = |u: &str, n: &str| code(&connection, &format!("INSERT INTO i (u, n) VALUES ({u}, {n})"));
    for u in 1..=4 {
        assert_eq!(insert(&u.to_string(), "1"), "no error");
    }
    assert_eq!((insert("4", "1"), insert("5", "NULL"), insert("5", "NULL")), ("23505", "23502", "23502"));
    assert_eq!(insert("6", "1"), "no error");
    assert_eq!(rows(&connection, "SELECT max(id) FROM i"), ["8"]);
}

#[test]
fn a_null_matches_no_pattern_that_is_a_value() {
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let (_database, connection) = users(mode);
        connection.execute("INSERT INTO u (id, name) VALUES (1, NULL), (2, 'a')").unwrap();
        for sql in ["SELECT id FROM u WHERE NOT name ~ $1", "SELECT id FROM u WHERE (name ~ $1) IS NULL AND id <> 1"] {
            assert_eq!(connection.query_with(sql, [".*"]).unwrap().count(), 0, "{sql} {mode}");
        }
    }
}

/// The row `execution` of EXPLAIN, which comes last.
fn execution(connection: &Connection, sql: &str) -> String {
    let last = rows(connection, &format!("EXPLAIN {sql}")).pop().unwrap();
    last.strip_prefix("execution|").expect("a row about the execution").to_owned()
}

#[test]
fn explain_tells_how_a_statement_is_executed() {
    let (_database, connection) = users("auto");
    connection.execute("CREATE TABLE o (uid BIGINT, n INTEGER, PRIMARY KEY (uid, n))").unwrap();
    for (sql, told) in [
        ("SELECT * FROM u WHERE id = 1", "compiled: 1 key of u (id)"),
        ("DELETE FROM u WHERE id IN (1, 2)", "compiled: 2 keys of u (id)"),
        ("SELECT count(*) FROM o WHERE uid = 7", "compiled: range of keys of o (uid, n)"),
        ("UPDATE o SET n = n WHERE uid = 7", "kept plan"),
        ("UPDATE o SET n = n WHERE uid = 7 RETURNING n", "planned"),
        ("INSERT INTO o VALUES (1, 2), (3, 4)", "compiled: 2 rows of VALUES"),
        (
            "SELECT name FROM o JOIN u ON u.id = o.n WHERE o.uid = 1",
            "compiled: range of keys of o (uid, n), then 1 key of u (id)",
        ),
        ("SELECT sum(n) FROM u", "kept plan"),
        ("SELECT now(), n FROM u", "planned"),
        ("SELECT * FROM mainstem.tables", "planned"),
    ] {
        assert_eq!(execution(&connection, sql), told, "{sql}");
    }
    connection.execute("SET plan_cache_mode = force_custom_plan; SET point_path = off").unwrap();
    assert_eq!(execution(&connection, "SELECT sum(n) FROM u"), "planned");
    assert_eq!(execution(&connection, "SELECT * FROM u WHERE id = 1"), "planned");
}

/// The rows of `mainstem.plans` whose texts contain `part`.
fn shared(connection: &Connection, part: &str) -> Vec<String> {
    rows(
        connection,
        &format!("SELECT execution, parameters, reuses, runs FROM mainstem.plans WHERE statement LIKE '%-- {part}'"),
    )
}

#[test]
fn connections_share_what_they_make_of_texts() {
    let (database, first) = users("auto");
    first.execute("INSERT INTO u (id, name) SELECT x, 'user ' || x FROM generate_series(1, 20) AS g (x)").unwrap();
    let by_key = "SELECT name FROM u WHERE id = $1 -- shared";
    let query = "SELECT count(*), min(name) FROM u WHERE name > $1 -- planned";
    for _ in 0..3 {
        first.query_row(by_key, [1]).unwrap();
        first.query_row(query, ["a"]).unwrap();
    }
    assert_eq!(shared(&first, "shared"), ["compiled|1|0|3"]);
    assert_eq!(shared(&first, "planned"), ["kept plan|1|0|3"]);
    let second = database.connect().unwrap();
    let answer = second.query_row(by_key, [1]).unwrap();
    assert_eq!(answer.values(), first.query_row(by_key, [1]).unwrap().values());
    let answer = second.query_row(query, ["a"]).unwrap();
    assert_eq!(answer.values(), first.query_row(query, ["a"]).unwrap().values());
    assert_eq!((second.short_statements(), second.kept_plan_runs()), (1, 1), "the first run of each");
    assert_eq!(shared(&first, "shared"), ["compiled|1|1|5"]);
    assert_eq!(shared(&first, "planned"), ["kept plan|1|1|5"]);
    drop(second);
    assert_eq!(shared(&first, "planned"), ["kept plan|1|1|5"], "runs of connections that are gone");
    let second = database.connect().unwrap();
    // One that does not see them.
    first.execute("ALTER TABLE u RENAME COLUMN name TO called").unwrap();
    let third = database.connect().unwrap();
    for connection in [&third, &second] {
        assert_eq!(connection.query_row(by_key, [1]).unwrap_err().sqlstate(), "42703");
        assert_eq!(connection.query_row(query, ["a"]).unwrap_err().sqlstate(), "42703");
    }
}

#[test]
fn what_names_mean_is_not_shared() {
    let (database, first) = users("auto");
    first.execute("INSERT INTO u (id, name) SELECT x, 'user ' || x FROM generate_series(1, 20) AS g (x)").unwrap();
    let texts = ["SELECT name FROM u WHERE id = $1", "SELECT max(name) || 'x' FROM u WHERE name > '' AND id = $1 + 0"];
    let run = |connection: &Connection| {
        texts.map(|text| {
            (0..3).map(|_| format!("{:?}", connection.query_row(text, [1]).unwrap().values())).collect::<Vec<_>>()
        })
    };
    let of_all = run(&first);
    // A temporary table, and another search path, with and without what others have made of the texts.
    let script = "CREATE SCHEMA other; CREATE TABLE other.u (id INTEGER PRIMARY KEY, name TEXT);
                  INSERT INTO other.u VALUES (1, 'other')";
    first.execute_batch(script).unwrap();
    for _ in 0..2 {
        let temporary = database.connect().unwrap();
        temporary
            .execute_batch("CREATE TEMP TABLE u (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO u VALUES (1, 'own')")
            .unwrap();
        // The first session shares what the texts mean to it, under the schema that has the temporary table, too.
        assert_eq!(run(&first), of_all);
        assert!(run(&temporary).iter().flatten().all(|answer| answer.contains("own")));
        let path = database.connect().unwrap();
        path.execute("SET search_path = other").unwrap();
        assert!(run(&path).iter().flatten().all(|answer| answer.contains("other")));
        assert_eq!(run(&first), of_all);
        assert_eq!(run(&database.connect().unwrap()), of_all);
    }
}

#[test]
fn connections_run_a_shared_text_at_once() {
    let (database, first) = users("auto");
    first.execute("INSERT INTO u (id, name) SELECT x, 'user ' || x FROM generate_series(1, 20) AS g (x)").unwrap();
    let query = "SELECT count(*), sum(id) FROM u WHERE name <> $1";
    let expected = format!("{:?}", first.query_row(query, ["nobody"]).unwrap().values());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let connection = database.connect().unwrap();
                for _ in 0..200 {
                    assert_eq!(format!("{:?}", connection.query_row(query, ["nobody"]).unwrap().values()), expected);
                }
                assert!(connection.kept_plan_runs() >= 199);
            });
        }
    });
}

/// A session whose names mean something else leaves what others share as it is.
#[test]
fn sessions_with_names_of_their_own_share_nothing() {
    let (database, first) = users("auto");
    let query = "SELECT max(name) FROM u WHERE name > $1 -- names";
    let run = |connection: &Connection| format!("{:?}", connection.query_row(query, [""]).unwrap().values());
    let temporary = database.connect().unwrap();
    temporary.execute("CREATE TEMP TABLE other (a INTEGER)").unwrap();
    let path = database.connect().unwrap();
    path.execute("SET search_path = pg_temp, public").unwrap();
    (0..3).for_each(|_| drop(run(&first)));
    (0..3).for_each(|_| assert_eq!(run(&temporary), run(&path)));
    let late = database.connect().unwrap();
    assert_eq!(run(&late), run(&first));
    assert_eq!(late.kept_plan_runs(), 1, "the plan of the first");
    // Nothing is shared of another version of the schema, or of one that nobody else sees.
    late.execute("BEGIN").unwrap();
    late.execute("CREATE TABLE v (a INTEGER)").unwrap();
    (0..3).for_each(|_| drop(run(&late)));
    late.execute("ROLLBACK").unwrap();
    assert_eq!(shared(&first, "names"), ["kept plan|1|3|14"], "three took it over, all of them ran");
    first.execute("CREATE TABLE v (a INTEGER)").unwrap();
    assert_eq!(shared(&first, "names").len(), 0);
}

/// Whatever column a date with its type in front is for.
#[test]
fn dates_with_their_type_are_lifted_out_of_texts() {
    let (_database, connection) = users("auto");
    let tables = ["texts", "none"].map(|name| {
        connection
            .execute(&format!("CREATE TABLE {name} (k INTEGER PRIMARY KEY, d DATE, s TIMESTAMP, t TEXT)"))
            .unwrap();
        name
    });
    let run = |table: &str, number: i32| {
        let day = number % 28 + 1;
        [
            format!("INSERT INTO {table} VALUES ({number}, DATE '2024-03-{day:02}', NULL, 'x'), ({number} + 100, NULL, NULL, 'y')"),
            format!("INSERT INTO {table} (k, s) VALUES ({number} + 200, DATE '2024-03-{day:02}')"),
            format!("INSERT INTO {table} (k, t) VALUES ({number} + 300, date '2024-03-{day:02}')"),
            format!("INSERT INTO {table} (k, d) VALUES ({number} + 400, DATE '2024-02-{number}')"),
            format!("UPDATE {table} SET d = DATE '2023-01-{day:02}' WHERE k = {number} + 100"),
            format!("UPDATE {table} SET t = 'found' WHERE k = {number} AND d = DATE '2024-03-{day:02}'"),
        ]
        .map(|sql| connection.execute(&sql).map_err(|error| error.to_string()))
    };
    let lifted: Vec<_> = (10..40).map(|number| run("texts", number)).collect();
    connection.execute("SET plan_cache_mode = force_custom_plan; SET point_path = off").unwrap();
    let planned: Vec<_> = (10..40).map(|number| run("none", number)).collect();
    assert_eq!(lifted, planned);
    let contents = tables.map(|table| rows(&connection, &format!("SELECT * FROM {table} ORDER BY k")));
    assert_eq!(contents[0], contents[1]);
    assert!(contents[0].iter().any(|row| row.contains("found")), "{contents:?}");
}
