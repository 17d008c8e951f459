//! Groups by codes are the groups by values.

use mainstem::{Connection, Database};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::support::{merge, quiet, sorted_rows};

/// Table `t`, of two threads, in two runs and a delta, some rows of which are dead. Texts `s` and `u` are few, the
/// texts of a later run are others; `c` was added later; `w` are many.
fn table() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, u VARCHAR(9), w TEXT, b BOOLEAN, n SMALLINT, d DATE, v INTEGER, m NUMERIC(9, 2))")
        .unwrap();
    let insert = |from: i32, to: i32, text: &str| {
        let sql = format!(
            "INSERT INTO t (id, s, u, w, b, n, d, v, m) SELECT i, CASE WHEN i % 9 = 4 THEN NULL ELSE '{text}' || (i % 5) END, 'u' || (i % 3), 'w' || (i * 31 % 70001), \
             i % 2 = 0, i % 4, date '2024-01-01' + i % 6, CASE WHEN i % 7 = 1 THEN NULL ELSE i % 1000 END, i / 100.0 \
             FROM generate_series({from}, {to}) g(i)"
        );
        connection.execute(&sql).unwrap();
    };
    insert(1, 60_000, "s");
    merge(&database, "t");
    insert(60_001, 90_000, "t");
    merge(&database, "t");
    connection.execute("ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'later'").unwrap();
    insert(90_001, 90_500, "r");
    connection.execute("DELETE FROM t WHERE id % 11 = 5").unwrap();
    connection.execute("UPDATE t SET s = 'changed', v = v + 1 WHERE id % 997 = 3").unwrap();
    (database, connection)
}

/// Of a plan of its own: one that is kept for all snapshots knows no bounds.
fn is_by_codes(connection: &Connection, sql: &str) -> bool {
    connection.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    sorted_rows(connection, &format!("EXPLAIN {sql}")).join("\n").contains("CodeAggregateExec: mode=Partial")
}

const FUNCTIONS: [&str; 12] = [
    "count(*)",
    "count(v)",
    "sum(v)",
    "avg(m)",
    "sum(m)",
    "avg(v)",
    "avg(m * 2) FILTER (WHERE n > 1)",
    "min(d)",
    "max(m) FILTER (WHERE b)",
    "sum(m * 2) FILTER (WHERE n > 1)",
    "bool_or(b)",
    "count(DISTINCT n)",
];

#[test]
fn groups_are_those_of_values() {
    let (_database, connection) = table();
    let columns = ["s", "u", "c", "b", "n", "d"];
    let conditions = ["true", "v > 500", "s LIKE '%1%' OR n = 2", "w LIKE '%9%'", "id < 0", "m < v"];
    let mut random = StdRng::seed_from_u64(11);
    let mut by_codes = 0;
    for _ in 0..80 {
        let mut by = vec![["s", "u", "c"][random.random_range(0..3)]];
        for _ in 0..random.random_range(0..3) {
            let other = columns[random.random_range(0..columns.len())];
            if !by.contains(&other) {
                by.push(other);
            }
        }
        let functions: Vec<&str> = (0..3).map(|_| FUNCTIONS[random.random_range(0..FUNCTIONS.len())]).collect();
        let functions: Vec<String> = functions.iter().enumerate().map(|(at, f)| format!("{f} AS f{at}")).collect();
        let condition = conditions[random.random_range(0..conditions.len())];
        let query = |by: &[String]| {
            let by = by.join(", ");
            format!("SELECT {by}, {} FROM t WHERE {condition} GROUP BY {by}", functions.join(", "))
        };
        let plain: Vec<String> = by.iter().map(|column| (*column).to_owned()).collect();
        let computed: Vec<String> = by.iter().map(|column| format!("coalesce({column}, NULL)")).collect();
        let sql = query(&plain);
        by_codes += usize::from(is_by_codes(&connection, &sql));
        // An expression in the place of a column has no codes: one that the optimizer does not see through.
        let other = query(&computed);
        assert!(!is_by_codes(&connection, &other), "{other}");
        assert_eq!(sorted_rows(&connection, &sql), sorted_rows(&connection, &other), "{sql}");
    }
    assert!(by_codes > 40, "{by_codes} of 80");
}

#[test]
fn plans_group_by_codes_where_texts_are_few() {
    let (_database, connection) = table();
    for (sql, expected) in [
        ("SELECT s, count(*) FROM t GROUP BY s", true),
        ("SELECT DISTINCT s FROM t", true),
        ("SELECT u, s, n, sum(v) FROM t WHERE v > 3 GROUP BY u, s, n", true),
        ("SELECT s, sum(m * (1 + v)) FROM t WHERE s LIKE 's%' GROUP BY s", true),
        // Many texts.
        ("SELECT w, count(*) FROM t GROUP BY w", false),
        // A function of the text itself.
        ("SELECT s, max(s) FROM t GROUP BY s", false),
        // Integers near each other are their own codes, from wherever they come.
        ("SELECT n, count(*) FROM t GROUP BY n", true),
        ("SELECT d, count(*) FROM t GROUP BY d", true),
        ("SELECT DISTINCT v FROM t", true),
        ("SELECT x.v, count(*) FROM t JOIN t x ON t.v = x.id GROUP BY x.v", true),
        ("SELECT far, count(*) FROM (SELECT id * 1000000000::bigint AS far FROM t) x GROUP BY far", false),
        ("SELECT m, count(*) FROM t GROUP BY m", false),
        ("SELECT upper(s), count(*) FROM t GROUP BY upper(s)", false),
        ("SELECT s, count(*) FROM t GROUP BY GROUPING SETS ((s), ())", false),
        ("SELECT t.s, count(*) FROM t JOIN t x ON t.id = x.id GROUP BY t.s", false),
    ] {
        assert_eq!(is_by_codes(&connection, sql), expected, "{sql}");
    }
    let plan = sorted_rows(&connection, "EXPLAIN SELECT s, count(*) FROM t GROUP BY s").join("\n");
    assert!(plan.contains("codes=[s]"), "{plan}");
}

/// A transaction sees its own rows, which are no codes, beside those of segments.
#[test]
fn own_rows_join_the_groups() {
    let (_database, connection) = table();
    let before = sorted_rows(&connection, "SELECT u, count(*) FROM t GROUP BY u");
    connection.execute("BEGIN").unwrap();
    connection.execute("INSERT INTO t (id, u) SELECT -i, 'u' || (i % 4) FROM generate_series(1, 8) g(i)").unwrap();
    let within = sorted_rows(&connection, "SELECT u, count(*) FROM t GROUP BY u");
    connection.execute("ROLLBACK").unwrap();
    let counts = |rows: &[String]| -> Vec<(String, i64)> {
        rows.iter().filter_map(|row| row.split_once('|')).map(|(u, n)| (u.to_owned(), n.parse().unwrap())).collect()
    };
    let mut expected: Vec<_> = counts(&before).into_iter().map(|(u, n)| (u, n + 2)).collect();
    expected.push(("u3".to_owned(), 2));
    assert_eq!(counts(&within), expected);
    assert_eq!(sorted_rows(&connection, "SELECT u, count(*) FROM t GROUP BY u"), before);
}

/// Groups of integers and days, NULL among them, of which some lie beyond the range that segments tell, by hash and by
/// their distance from the least: with few and many rows to a group, and one to each, from which states are made as
/// they are.
#[test]
fn groups_of_integers_are_those_of_any_expression() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (id BIGINT, few SMALLINT, many INTEGER, own BIGINT, d DATE, s TEXT)").unwrap();
    let insert = |from: i32, to: i32, by: i32| {
        let sql = format!(
            "INSERT INTO t SELECT i, CASE WHEN i % 17 <> 3 THEN i % 50 - 20 END, CASE WHEN i % 19 <> 3 THEN i * 7 % 9001 * {by} END, i * {by} - 99, \
             date '1999-12-01' + i % 400, 's' || (i % 7) FROM generate_series({from}, {to}) g(i)"
        );
        connection.execute(&sql).unwrap();
    };
    insert(1, 250_000, 3);
    merge(&database, "t");
    connection.execute("DELETE FROM t WHERE id % 23 = 7").unwrap();
    connection.execute("BEGIN").unwrap();
    // Beyond what is known of the table.
    insert(250_001, 260_000, -4);
    let functions = "count(*), count(many), sum(many), avg(many), avg(own), sum(own), min(s), max(d), count(*) FILTER (WHERE few > 0)";
    for column in ["few", "many", "own", "d", "id"] {
        for condition in ["true", "many > 5000 OR few < 0", "id < 0"] {
            let query = |by: &str| format!("SELECT {by} AS k, {functions} FROM t WHERE {condition} GROUP BY {by}");
            let (plain, computed) = (query(column), query(&format!("coalesce({column}, NULL)")));
            assert!(is_by_codes(&connection, &plain), "{plain}");
            let rows = sorted_rows(&connection, &plain);
            assert_eq!(rows, sorted_rows(&connection, &computed), "{plain}");
            assert_eq!(rows.is_empty(), condition == "id < 0", "{plain}");
        }
    }
    let distinct = |column: &str| sorted_rows(&connection, &format!("SELECT count(DISTINCT {column}) FROM t"));
    assert_eq!(distinct("own"), distinct("coalesce(own, NULL)"));
}
