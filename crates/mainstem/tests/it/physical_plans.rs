//! Physical plans that are kept: run again and again, they answer what a plan of that very run would.

use mainstem::{Connection, Database, Value, ValueRef};

use super::support::{quiet, rows};

/// Queries on `s (k, n, g, t)` and `u (id, name, d)`, with as many of two whole numbers as they take.
const QUERIES: &[(&str, usize)] = &[
    ("SELECT 1", 0),
    ("SELECT $1 + 1, $2 * 2", 2),
    ("SELECT count(*) FROM s", 0),
    ("SELECT count(*) FROM s WHERE n = $1", 1),
    ("SELECT min(k), max(k), min(n), max(t) FROM s", 0),
    ("SELECT min(n), max(n), sum(n) FROM s WHERE n > $1", 1),
    ("SELECT g, count(*), sum(n) FROM s GROUP BY g ORDER BY g", 0),
    ("SELECT g, min(n) FROM s WHERE k < $1 GROUP BY g HAVING count(*) > $2 ORDER BY g", 2),
    ("SELECT g, max(n) FROM s GROUP BY g ORDER BY max(n) DESC, g LIMIT 3", 0),
    ("SELECT k, n FROM s ORDER BY n DESC, k LIMIT 5", 0),
    ("SELECT k FROM s WHERE n >= $1 ORDER BY t, k LIMIT 4 OFFSET 2", 1),
    ("SELECT k, t FROM s WHERE g = 1 ORDER BY k", 0),
    ("SELECT DISTINCT g FROM s WHERE n BETWEEN $1 AND $1 + 20 ORDER BY g", 1),
    ("SELECT k FROM s WHERE n IN ($1, $2, 3) ORDER BY k", 2),
    ("SELECT k FROM s WHERE n NOT IN ($1, 3) ORDER BY k", 1),
    ("SELECT k FROM s WHERE n = $1 OR g = $2 ORDER BY k", 2),
    ("SELECT k, n + $1, n * $2 FROM s WHERE k % 7 = 0 ORDER BY k", 2),
    ("SELECT k FROM s WHERE n + $1 > k ORDER BY k", 1),
    ("SELECT k FROM s WHERE t LIKE 't1%' AND n <> $1 ORDER BY k", 1),
    ("SELECT k FROM s WHERE t IS NULL ORDER BY k", 0),
    ("SELECT CASE WHEN n > $1 THEN 'more' WHEN n = $1 THEN 'as many' ELSE t END FROM s ORDER BY k", 1),
    ("SELECT coalesce(n, $1), nullif(n, $2) FROM s ORDER BY k", 2),
    ("SELECT u.name, count(*) FROM u JOIN s ON s.g = u.id GROUP BY u.name ORDER BY 1", 0),
    ("SELECT a.k, b.k FROM s AS a JOIN s AS b ON a.k = b.n WHERE b.g = $1 ORDER BY 1, 2", 1),
    ("SELECT u.id, s.k FROM u LEFT JOIN s ON s.k = u.id + $1 ORDER BY 1, 2", 1),
    ("SELECT u.id, s.k FROM s RIGHT JOIN u ON s.k = u.id AND s.n > $1 ORDER BY 1, 2", 1),
    ("SELECT u.id, s.k FROM u FULL JOIN s ON s.k = u.id WHERE coalesce(s.k, 1) < $1 ORDER BY 1, 2", 1),
    ("SELECT count(*) FROM u, s WHERE s.n > u.id + $1", 1),
    ("SELECT count(*) FROM u CROSS JOIN s", 0),
    ("SELECT id FROM u WHERE EXISTS (SELECT 1 FROM s WHERE s.g = u.id AND s.n > $1) ORDER BY id", 1),
    ("SELECT id FROM u WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.g = u.id AND s.n > $1) ORDER BY id", 1),
    ("SELECT id FROM u WHERE id NOT IN (SELECT g FROM s WHERE n < $1) ORDER BY id", 1),
    ("SELECT id, (SELECT max(n) FROM s WHERE s.g = u.id AND s.k > $1) FROM u ORDER BY id", 1),
    ("SELECT id, (SELECT count(*) FROM s) + $1 FROM u ORDER BY id", 1),
    ("SELECT k FROM s WHERE n = $1 UNION ALL SELECT id FROM u WHERE id > $2 ORDER BY 1", 2),
    ("SELECT g FROM s WHERE n > $1 UNION SELECT id FROM u ORDER BY 1", 1),
    ("SELECT g FROM s EXCEPT SELECT id FROM u WHERE id < $1 ORDER BY 1", 1),
    (
        "SELECT g, max(r), sum(n) FROM (SELECT g, n, row_number() OVER (PARTITION BY g ORDER BY n, k) AS r FROM s \
         WHERE n > $1) x GROUP BY g ORDER BY g",
        1,
    ),
    ("SELECT g, count(*) FROM (SELECT g FROM s WHERE n > $1 ORDER BY g LIMIT 30) x GROUP BY g ORDER BY g", 1),
    ("SELECT k, row_number() OVER (PARTITION BY g ORDER BY n, k) FROM s WHERE n > $1 ORDER BY k", 1),
    ("SELECT k, sum(n) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM s ORDER BY k", 0),
    ("SELECT k, lag(n) OVER (ORDER BY k), n - avg(n) OVER (PARTITION BY g) FROM s ORDER BY k", 0),
    ("WITH m AS (SELECT g, max(n) AS n FROM s GROUP BY g) SELECT s.k FROM s JOIN m USING (g, n) ORDER BY s.k", 0),
    ("SELECT d * $1, d / 3 FROM u WHERE d > 2.5 ORDER BY id", 1),
    ("SELECT sum(d), avg(d) FROM u WHERE id <> $1", 1),
    // What plans compute while they are made.
    ("SELECT k FROM s WHERE n + 0 IN ($1, $2, 3) ORDER BY k", 2),
    ("SELECT k FROM s WHERE n + 0 IN ($1, $2, 3, 11, 12) ORDER BY k", 2),
    ("SELECT k, n IN ($1, $2), n NOT IN ($2, 7, 8, 9, $1) FROM s ORDER BY k", 2),
    ("SELECT x FROM (VALUES ($1 + 1), ($2 + 1)) AS v (x)", 2),
    ("SELECT x + 1 FROM (VALUES ($1), ($2)) AS v (x)", 2),
    ("SELECT s.k, x FROM s JOIN (VALUES (1, 'one'), (2, 'two')) AS v (g, x) ON v.g = s.g WHERE s.n > $1 ORDER BY 1", 1),
    ("SELECT CASE n WHEN $1 THEN 'first' WHEN $2 THEN 'second' WHEN 3 THEN 'third' END FROM s ORDER BY k", 2),
    ("SELECT k FROM s WHERE CASE WHEN g = $1 THEN n END IS NULL ORDER BY k", 1),
    ("SELECT k FROM s WHERE ($1 = 3 OR n = $2) AND t IS NOT NULL ORDER BY k", 2),
    ("SELECT g, count(*) FILTER (WHERE n > $1) FROM s GROUP BY g ORDER BY g", 1),
    ("SELECT n % $2, count(*) FROM s WHERE n IS NOT NULL GROUP BY n % $2 ORDER BY 1", 2),
    ("SELECT name FROM u WHERE name < 'user 3' ORDER BY name LIMIT $1", 1),
];

fn tables() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    let script = "CREATE TABLE s (k INTEGER PRIMARY KEY, n INTEGER, g INTEGER, t TEXT);
                  CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT, d DECIMAL(8, 2));
                  INSERT INTO s SELECT x, x % 50, x % 5, 't' || x FROM generate_series(1, 60) AS g (x);
                  INSERT INTO u SELECT x, 'user ' || x, x + 0.25 FROM generate_series(0, 6) AS g (x)";
    connection.execute_batch(script).unwrap();
    (database, connection)
}

/// The rows of `query` with the first `count` of `values`, prepared, or its error.
fn answer(connection: &Connection, query: &str, count: usize, values: [Option<i32>; 2]) -> Vec<String> {
    let values: Vec<ValueRef<'_>> =
        values[..count].iter().map(|value| value.map_or(ValueRef::Null, ValueRef::Integer)).collect();
    match connection.query_with(query, &values[..]) {
        Ok(rows) => rows.map(|row| format!("{:?}", row.map(|row| row.values().to_vec()))).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Compares each query by a kept plan with one that is planned.
fn compare(kept: &Connection, planned: &Connection, values: [Option<i32>; 2]) {
    for (query, count) in QUERIES {
        assert_eq!(answer(kept, query, *count, values), answer(planned, query, *count, values), "{query} {values:?}");
    }
}

#[test]
fn kept_plans_answer_as_plans_of_each_run() {
    let (database, kept) = tables();
    let planned = database.connect().unwrap();
    kept.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    planned.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let before = kept.kept_plan_runs();
    let changes = [
        "SELECT 1",
        "UPDATE s SET n = n + 100 WHERE k % 3 = 0",
        "DELETE FROM s WHERE k BETWEEN 10 AND 20",
        "INSERT INTO s SELECT x, NULL, x % 7, NULL FROM generate_series(200, 260) AS g (x)",
        "DELETE FROM s",
        "INSERT INTO s VALUES (5, 1, 1, 't1')",
        "INSERT INTO s SELECT x, x % 50, x % 5, 't' || x FROM generate_series(1000, 3000) AS g (x)",
        "DELETE FROM u WHERE id > 2",
        "DELETE FROM s WHERE k > 20",
    ];
    for (round, change) in (1..).zip(changes) {
        planned.execute(change).unwrap();
        compare(&kept, &planned, [Some(round * 3), Some(round)]);
        compare(&kept, &planned, [None, Some(round)]);
        compare(&kept, &planned, [Some(45 - round * 5), Some(40)]);
    }
    let runs = kept.kept_plan_runs() - before;
    assert!(runs > (QUERIES.len() * changes.len()) as u64, "{runs} runs by kept plans");
}

/// Of tables that one thread reads in less time than a plan for several takes.
#[test]
fn queries_on_more_rows_are_kept_too() {
    let (database, kept) = tables();
    let planned = database.connect().unwrap();
    kept.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    planned.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let queries = [
        ("SELECT count(*), sum(k) FROM s WHERE n = $1", 1),
        ("SELECT g, count(*), sum(n), max(t) FROM s WHERE n > $1 GROUP BY g ORDER BY g", 1),
        ("SELECT u.name, count(*), sum(s.k) FROM u JOIN s ON s.g = u.id WHERE s.n < $1 GROUP BY u.name ORDER BY 1", 1),
        ("SELECT count(*), sum(a.n) FROM s AS a JOIN s AS b ON a.k = b.k + $1 WHERE a.g = $2", 2),
        ("SELECT count(*) FROM u JOIN s ON s.n > u.id + $1", 1),
        ("SELECT k, n FROM s WHERE g = $1 ORDER BY n DESC, k LIMIT 7", 1),
        ("SELECT id FROM u WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.g = u.id AND s.n > $1) ORDER BY id", 1),
    ];
    let changes = [
        "INSERT INTO s SELECT x, x % 50, x % 5, 't' || x FROM generate_series(1000, 60000) AS g (x)",
        "UPDATE s SET n = n + 100 WHERE k % 3 = 0",
        "DELETE FROM s WHERE k % 7 = 0",
        "INSERT INTO u SELECT x, 'user ' || x, NULL FROM generate_series(7, 3000) AS g (x)",
        "DELETE FROM s WHERE k > 5000",
        "INSERT INTO s SELECT x, x % 50, x % 9, NULL FROM generate_series(100000, 280000) AS g (x)",
    ];
    for (round, change) in (1..).zip(changes) {
        planned.execute(change).unwrap();
        for values in [[Some(round), Some(3)], [Some(40), Some(round)], [None, Some(1)]] {
            for (query, count) in queries {
                let (kept, planned) = (answer(&kept, query, count, values), answer(&planned, query, count, values));
                assert_eq!(kept, planned, "{query} {values:?}");
            }
        }
    }
}

/// Bounds of the columns make `x` and `y` constants where the plan is made, but not later.
#[test]
fn bounds_hold_for_the_run_that_found_them() {
    let (database, connection) = tables();
    connection.execute("CREATE TABLE b (x INTEGER NOT NULL, y INTEGER NOT NULL)").unwrap();
    connection.execute("INSERT INTO b VALUES (1, 7), (7, 7), (3, 9), (7, 8)").unwrap();
    let look = database.storage().begin(mainstem_storage::transaction::TransactionMode::default()).unwrap();
    for table in look.catalog().tables().filter(|table| table.name == "b") {
        database.storage().merge(table.id).unwrap();
    }
    connection.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    let queries = ["SELECT x, y FROM b WHERE x >= y ORDER BY x", "SELECT min(x), max(x), max(y) FROM b WHERE x >= y"];
    let answers = |connection: &Connection| queries.map(|query| rows(connection, query));
    for _ in 0..4 {
        assert_eq!(answers(&connection), [vec!["7|7".to_owned()], vec!["7|7|7".to_owned()]]);
    }
    connection.execute("INSERT INTO b VALUES (9, 8), (8, 8), (20, 2)").unwrap();
    let sorted: Vec<String> = ["7|7", "8|8", "9|8", "20|2"].map(str::to_owned).into();
    let expected = [sorted, vec!["7|20|8".to_owned()]];
    assert_eq!(answers(&connection), expected);
    assert_eq!(answers(&database.connect().unwrap()), expected);
}

#[test]
fn kept_plans_see_what_their_transaction_wrote() {
    let (database, kept) = tables();
    kept.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    let other = database.connect().unwrap();
    let count = |connection: &Connection| rows(connection, "SELECT count(*), sum(n) FROM s WHERE g = 1");
    let before = count(&kept);
    kept.execute("BEGIN").unwrap();
    assert_eq!(count(&kept), before);
    other.execute("DELETE FROM s WHERE g = 1 AND k > 10").unwrap();
    assert_eq!(count(&kept), before, "a snapshot stays what it was");
    kept.execute("INSERT INTO s VALUES (1000, 1000, 1, 'own')").unwrap();
    assert_ne!(count(&kept), before);
    kept.execute("ROLLBACK").unwrap();
    assert_eq!(count(&kept), count(&other));
    kept.execute("DROP TABLE s").unwrap();
    assert!(kept.query("SELECT count(*), sum(n) FROM s WHERE g = 1").is_err());
}

#[test]
fn a_statement_may_run_while_its_last_run_is_read() {
    let (_database, connection) = tables();
    connection.execute("INSERT INTO s SELECT x, x, 1, 'x' FROM generate_series(1000, 1299) AS g (x)").unwrap();
    connection.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    // More rows than are made before somebody reads them.
    let statement =
        connection.prepare("SELECT a.k, b.k + $1 FROM s AS a JOIN s AS b ON a.g = b.g OR a.k = b.k").unwrap();
    let expected: Vec<String> =
        statement.query([0]).unwrap().map(|row| format!("{:?}", row.unwrap().values())).collect();
    assert!(expected.len() > 70_000, "{} rows", expected.len());
    for _ in 0..2 {
        let mut first = statement.query([0]).unwrap();
        let mut second = statement.query([1_000_000]).unwrap();
        for row in &expected {
            assert_eq!(&format!("{:?}", first.next().unwrap().unwrap().values()), row);
            assert!(matches!(second.next().unwrap().unwrap().values()[1], Value::Int(sum) if sum > 999_999));
        }
        assert!(first.next().is_none() && second.next().is_none());
    }
    // One that nobody reads to its end is ended by its drop.
    drop(statement.query([0]).unwrap());
    assert_eq!(statement.query([0]).unwrap().count(), expected.len());
}

#[test]
fn an_error_in_a_run_leaves_the_plan_as_it_was() {
    let (_database, connection) = tables();
    connection.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    let statement = connection.prepare("SELECT sum(100 / (n - $1)) FROM s WHERE g = 2").unwrap();
    let found = statement.query([-1]).unwrap().next().unwrap().unwrap().values().to_vec();
    for _ in 0..3 {
        let failed = statement.query([2]).and_then(|mut rows| rows.next().unwrap().map(|_| ()));
        assert_eq!(failed.unwrap_err().sqlstate(), "22012");
        assert_eq!(statement.query([-1]).unwrap().next().unwrap().unwrap().values(), found);
    }
}

#[test]
fn joins_of_kept_plans_are_canceled() {
    let (_database, connection) = tables();
    connection.execute("INSERT INTO s SELECT x, x, 1, 'x' FROM generate_series(1000, 1899) AS g (x)").unwrap();
    connection.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    let join = connection.prepare("SELECT count(*) FROM s AS a JOIN s AS b ON a.t || b.t ~ $1").unwrap();
    let count = || join.query(["nothing"]).and_then(|mut rows| rows.next().unwrap());
    assert_eq!(count().unwrap().get::<i64>(0).unwrap(), 0);
    connection.execute("SET statement_timeout = '5ms'").unwrap();
    assert_eq!(count().unwrap_err().sqlstate(), "57014");
    connection.execute("SET statement_timeout = 0").unwrap();
    assert_eq!(count().unwrap().get::<i64>(0).unwrap(), 0);
}

/// Queries on `o (u, n, a, t)`, whose key is (u, n), each by a short range of it.
const BY_KEY: &[(&str, usize)] = &[
    ("SELECT sum(a), min(n), max(t), count(*) FROM o WHERE u = $1", 1),
    ("SELECT sum(a) FROM o WHERE u = $1 AND n > $2", 2),
    ("SELECT count(*), sum(a) FROM o WHERE u = $1 AND n >= $2 AND n < 70", 2),
    ("SELECT count(*), sum(a) FROM o WHERE u = $1 AND n BETWEEN $2 AND 10000000000", 2),
    ("SELECT avg(a) FROM o WHERE u = $1 AND n <= $2 AND n <= 40 AND a > 3", 2),
    ("SELECT n, a FROM o WHERE u = $1 AND t LIKE 't%5' ORDER BY n", 1),
    ("SELECT n % 3, count(*), sum(a) FROM o WHERE u = $1 AND n IN ($2, 3, 40, 41) GROUP BY n % 3 ORDER BY 1", 2),
    ("SELECT t, row_number() OVER (ORDER BY a DESC, n) FROM o WHERE u = $1 ORDER BY n LIMIT 7", 1),
    ("SELECT u, n FROM o WHERE u = $1 AND a IS NOT NULL ORDER BY u, n DESC LIMIT 3", 1),
    ("SELECT name, sum(a) FROM o JOIN u ON u.id = o.u WHERE o.u = $1 GROUP BY name", 1),
    ("SELECT x.n, y.n FROM o AS x JOIN o AS y ON x.n = y.n WHERE x.u = $1 AND y.u = $2 ORDER BY 1, 2", 2),
    ("SELECT name, (SELECT max(a) FROM o WHERE o.u = $1) FROM u ORDER BY id", 1),
    ("SELECT sum(a) FROM o WHERE u = $1 AND u = $2", 2),
    ("SELECT count(*), sum(a) FROM o WHERE u < 3 AND u IN (SELECT id FROM u WHERE id >= $1)", 1),
    ("SELECT u, count(*), max(t) FROM o WHERE u BETWEEN 40 AND 41 AND n > $1 GROUP BY u ORDER BY u", 1),
    ("SELECT sum(a) FROM o WHERE u = $1 AND n = 1 AND n > $2", 2),
];

#[test]
fn short_ranges_of_keys_in_large_tables_are_read_by_kept_plans() {
    let (database, kept) = tables();
    let planned = database.connect().unwrap();
    let script = "CREATE TABLE o (u INTEGER, n INTEGER, a DECIMAL(8, 2), t TEXT, PRIMARY KEY (u, n));
                  INSERT INTO o SELECT x % 101, x / 101, x % 17 + 0.25, 't' || x FROM generate_series(1, 12000) AS g (x)";
    planned.execute_batch(script).unwrap();
    kept.execute("SET plan_cache_mode = force_generic_plan").unwrap();
    planned.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let values = [[Some(3), Some(20)], [Some(3), Some(3)], [Some(77), None], [Some(500), Some(-1)], [None, Some(1)]];
    let compare = |kept: &Connection, planned: &Connection| {
        for (query, count) in BY_KEY {
            for values in values {
                let answers = [kept, planned].map(|connection| answer(connection, query, *count, values));
                assert_eq!(answers[0], answers[1], "{query} {values:?}");
            }
        }
    };
    let changes = [
        "SELECT 1",
        "UPDATE o SET a = a + 100 WHERE n % 3 = 0 AND u < 50",
        "CHECKPOINT",
        "DELETE FROM o WHERE u = 3 AND n BETWEEN 10 AND 20",
        "INSERT INTO o SELECT 3, x, NULL, NULL FROM generate_series(200, 260) AS g (x)",
        // More than are found one by one.
        "INSERT INTO o SELECT 77, x, x, 'many' FROM generate_series(1000, 6000) AS g (x)",
        "DELETE FROM o WHERE u = 77",
        "DELETE FROM o WHERE n > 2",
    ];
    for change in changes {
        let before = (kept.kept_plan_runs(), kept.kept_plan_key_reads());
        planned.execute(change).unwrap();
        compare(&kept, &planned);
        assert!(kept.kept_plan_runs() - before.0 >= BY_KEY.len() as u64, "{change}");
        assert!(kept.kept_plan_key_reads() - before.1 >= BY_KEY.len() as u64, "{change}");
    }
    assert_eq!(planned.kept_plan_key_reads(), 0);
    // A large range is scanned, and so is what names no range.
    planned.execute("INSERT INTO o SELECT 7, x, x, 'many' FROM generate_series(1000, 6000) AS g (x)").unwrap();
    let before = kept.kept_plan_key_reads();
    for query in ["SELECT sum(a) FROM o WHERE u = $1", "SELECT sum(a) FROM o WHERE n = $1"] {
        assert_eq!(answer(&kept, query, 1, [Some(7), None]), answer(&planned, query, 1, [Some(7), None]));
    }
    assert_eq!(kept.kept_plan_key_reads(), before);
    planned.execute("DELETE FROM o WHERE u = 7").unwrap();
    // What the transaction itself wrote.
    planned.execute("INSERT INTO o SELECT 90, x, x, 'own' FROM generate_series(1001, 10000) AS g (x)").unwrap();
    let write = "INSERT INTO o SELECT 3, x, x, 'own' FROM generate_series(5000, 5040) AS g (x)";
    let query = "SELECT sum(a), count(*) FROM o WHERE u = $1";
    let outside = answer(&planned, query, 1, [Some(3), None]);
    for connection in [&kept, &planned] {
        connection.execute("BEGIN").unwrap();
        connection.execute(write).unwrap();
    }
    let inside = answer(&kept, query, 1, [Some(3), None]);
    assert_eq!(inside, answer(&planned, query, 1, [Some(3), None]));
    assert_ne!(inside, outside);
    planned.execute("ROLLBACK").unwrap();
    kept.execute("ROLLBACK").unwrap();
    assert_eq!(answer(&kept, query, 1, [Some(3), None]), outside);
}

/// Writes whose rows no key names, with as many of two whole numbers as they take.
const WRITES: &[(&str, usize)] = &[
    ("UPDATE w SET n = n + $1 WHERE g = $2", 2),
    ("UPDATE w SET n = $1, t = t || 'x' WHERE n > $2 AND n < 60", 2),
    ("UPDATE w AS x SET t = upper(x.t), g = DEFAULT WHERE x.n % 7 = $1", 1),
    ("UPDATE w SET k = k + 1000 WHERE n % 11 = $1", 1),
    ("UPDATE w SET n = u.id + $1 FROM u WHERE w.g = u.id AND w.k % 5 = $2", 2),
    ("UPDATE w SET n = (SELECT max(id) FROM u) + $1 WHERE t LIKE 't1%'", 1),
    ("UPDATE w SET n = 100 / (n - $1)", 1),
    ("UPDATE w SET n = n * 1000 WHERE n > $1", 1),
    ("DELETE FROM w WHERE n = $1", 1),
    ("DELETE FROM w USING u WHERE u.id = w.g AND w.n > $1", 1),
    ("DELETE FROM w WHERE n < $1 AND g = $2 RETURNING k", 2),
    ("INSERT INTO w SELECT k + 10000 + $1, n, g, t FROM w WHERE g = $2 AND k < 100", 2),
    ("INSERT INTO w (k, n) SELECT $1 + max(k), $2 FROM w", 2),
    ("INSERT INTO w SELECT k, 7, g, t FROM w WHERE n = $1 ON CONFLICT (k) DO UPDATE SET n = excluded.n + w.n", 1),
    ("INSERT INTO w (k, t) SELECT max(k) + 1, id FROM w, u GROUP BY id HAVING id = $1 RETURNING *", 1),
    ("UPDATE w SET t = 'again' || n WHERE n >= $1 RETURNING t", 1),
];

#[test]
fn kept_writes_write_what_planned_ones_do() {
    let sides = ["force_generic_plan", "force_custom_plan"].map(|mode| {
        let (database, connection) = tables();
        let script = "CREATE TABLE w (k INTEGER PRIMARY KEY, n INTEGER CHECK (n < 20000), g INTEGER DEFAULT 3, t TEXT);
                      INSERT INTO w SELECT k, n, g, t FROM s";
        connection.execute_batch(script).unwrap();
        connection.execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
        (database, connection)
    });
    let before = sides[0].1.kept_plan_runs();
    let contents = |connection: &Connection| rows(connection, "SELECT * FROM w ORDER BY k");
    let values = [[Some(3), Some(1)], [Some(40), Some(2)], [None, Some(0)], [Some(20), None], [Some(3), Some(3)]];
    for round in 0..3 {
        for (write, count) in WRITES {
            for (at, values) in values.into_iter().enumerate() {
                let is_undone = at == 0 && round < 2;
                let answers = [0, 1].map(|side| {
                    let connection = &sides[side].1;
                    if is_undone {
                        connection.execute("BEGIN").unwrap();
                    }
                    let values: Vec<ValueRef<'_>> =
                        values[..*count].iter().map(|value| value.map_or(ValueRef::Null, ValueRef::Integer)).collect();
                    let answer = if write.contains("RETURNING") {
                        let mut rows = answer(
                            connection,
                            write,
                            *count,
                            [values.first(), values.get(1)].map(|value| match value {
                                Some(ValueRef::Integer(value)) => Some(*value),
                                _ => None,
                            }),
                        );
                        rows.sort();
                        rows.join("; ")
                    } else {
                        format!("{:?}", connection.execute_with(write, &values[..]).map_err(|error| error.to_string()))
                    };
                    let written = (answer, contents(connection));
                    if is_undone {
                        connection.execute("ROLLBACK").unwrap();
                    }
                    written
                });
                assert_eq!(answers[0], answers[1], "{write} {values:?}");
            }
        }
        let refill = "DELETE FROM w; INSERT INTO w SELECT k, n, g, t FROM s";
        sides.iter().for_each(|(_, connection)| connection.execute_batch(refill).unwrap());
    }
    assert!(sides[0].1.kept_plan_runs() - before > 100, "{}", sides[0].1.kept_plan_runs() - before);
}

/// A constant that is no value of its column is wrong, whether or not a row gets it.
#[test]
fn kept_writes_refuse_values_that_no_row_gets() {
    let (_database, connection) = tables();
    let script = "CREATE TABLE v (k INTEGER PRIMARY KEY, g INTEGER, d DECIMAL(4, 2), t VARCHAR(3));
                  PREPARE p (BIGINT) AS UPDATE v SET g = $1 WHERE d > 99";
    connection.execute_batch(script).unwrap();
    let told = |result: mainstem::Result<u64>| result.map_err(|error| error.to_string());
    let decimal = |value: &str| told(connection.execute_with("UPDATE v SET d = $1 WHERE g = $2", (value, -1)));
    let text = |value: &str| told(connection.execute_with("UPDATE v SET t = $1 WHERE g = $2", (value, -1)));
    let declared = |value: &str| told(connection.execute(&format!("EXECUTE p ({value})")));
    let all = || [decimal("12345.6"), decimal("1.6"), text("abcd"), text("abc"), declared("3000000000"), declared("3")];
    connection.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let planned = all();
    assert!(planned[0].is_err() && planned[1] == Ok(0), "{planned:?}");
    connection.execute("SET plan_cache_mode = auto").unwrap();
    for _ in 0..4 {
        assert_eq!(all(), planned);
    }
    assert!(connection.kept_plan_runs() > 6);
}

/// Writers by kept plans that meet one another lose nothing.
#[test]
fn kept_writes_run_again_after_conflicts() {
    let (database, connection) = tables();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let connection = database.connect().unwrap();
                let update = connection.prepare("UPDATE s SET n = n + $1 WHERE g = $2").unwrap();
                for round in 0..40 {
                    assert_eq!(update.execute((1, round % 5)).unwrap(), 12);
                }
                assert!(connection.kept_plan_runs() > 30);
            });
        }
    });
    let before: i64 = (1..=60).map(|x| x % 50).sum();
    assert_eq!(rows(&connection, "SELECT sum(n) FROM s"), [(before + 3 * 40 * 12).to_string()]);
}
