//! Scans that wait for the keys of joins answer as scans that do not.

use std::time::{Duration, Instant};

use mainstem::{Connection, Database};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::support::{merge, quiet, sorted_rows};

/// Tables `a`, `b` and `c` with columns of the same names, NULLs and repeated keys, in segments and in a delta.
fn tables(database: &Database) -> Connection {
    let connection = database.connect().unwrap();
    for (name, rows) in [("a", 60), ("b", 90), ("c", 40)] {
        let create = format!("CREATE TABLE {name} (id INTEGER, k INTEGER, n BIGINT, d DATE, t TEXT)");
        connection.execute(&create).unwrap();
        let row = |i: i32| {
            let k = if i % 7 == 3 { "NULL".to_owned() } else { (i * 5 % 23).to_string() };
            let day = 1 + i % 28;
            format!("({i}, {k}, {}, DATE '2024-01-{day:02}', 't{}')", i64::from(i % 11) - 5, i % 4)
        };
        let insert = |ids: std::ops::Range<i32>| {
            let rows: Vec<String> = ids.map(row).collect();
            connection.execute(&format!("INSERT INTO {name} VALUES {}", rows.join(", "))).unwrap();
        };
        insert(0..rows / 2);
        merge(database, name);
        insert(rows / 2..rows);
    }
    connection
}

/// With filters on every scan, and with none.
fn both(connection: &Connection, sql: &str) -> [Vec<String>; 2] {
    [1, 1_000_000].map(|min_rows| {
        connection.execute(&format!("SET dynamic_filter_min_rows = {min_rows}")).unwrap();
        sorted_rows(connection, sql)
    })
}

/// The scans of `sql` that have a filter, as EXPLAIN shows them: table, and columns filtered by.
fn filtered(connection: &Connection, sql: &str) -> Vec<String> {
    connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
    let plan = sorted_rows(connection, &format!("EXPLAIN {sql}")).join("\n");
    let scans = plan.split("\\n").filter_map(|line| line.split_once("table="));
    let filtered = scans.filter_map(|(_, scan)| {
        let (table, rest) = scan.split_once(',')?;
        let (_, columns) = rest.split_once("dynamic_filters=[")?;
        Some(format!("{table}: {}", columns.split_once(']')?.0))
    });
    filtered.collect()
}

#[test]
fn keys_are_followed_by_position() {
    let database = quiet();
    let connection = tables(&database);
    for (sql, expected) in [
        // Both tables have a column k, and the query another of that name.
        ("SELECT * FROM a JOIN b ON a.k = b.k WHERE a.id < 5", &["b: k"][..]),
        ("SELECT count(*) FROM (SELECT id AS k, k AS id FROM b) x JOIN a ON a.k = x.k WHERE a.id < 5", &["b: id"]),
        ("SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k AND c.id < 3", &["a: k", "b: k"]),
        // Through groups, to what is summed.
        ("SELECT * FROM a JOIN (SELECT id, sum(n) FROM b GROUP BY id) s ON s.id = a.id WHERE a.n = 3", &["b: id"]),
        ("SELECT * FROM b WHERE k IN (SELECT k FROM a WHERE id < 5)", &["b: k"]),
        ("SELECT * FROM a JOIN b ON a.d = b.d WHERE a.id < 2", &["b: d"]),
        // Not of integers, of a limit, of an aggregate's result, of a side whose rows stay without a partner.
        ("SELECT count(*) FROM a JOIN b ON a.t = b.t WHERE a.id = 7", &[]),
        ("SELECT count(*) FROM a JOIN (SELECT k FROM b LIMIT 70) s ON s.k = a.k WHERE a.id = 7", &[]),
        // The limit's own bound.
        ("SELECT count(*) FROM a JOIN (SELECT k FROM b ORDER BY n LIMIT 70) s ON s.k = a.k WHERE a.id = 7", &["b: n"]),
        ("SELECT count(*) FROM a JOIN (SELECT max(n) AS n FROM b GROUP BY id) s ON s.n = a.n WHERE a.id = 7", &[]),
        ("SELECT * FROM b WHERE k NOT IN (SELECT k FROM a WHERE id < 5)", &[]),
    ] {
        let mut found = filtered(&connection, sql);
        found.sort();
        assert_eq!(found, expected, "{sql}\n{}", sorted_rows(&connection, &format!("EXPLAIN {sql}")).join("\n"));
        let [with, without] = both(&connection, sql);
        if !sql.contains("LIMIT") {
            assert_eq!(with, without, "{sql}");
        }
    }
}

#[test]
fn every_kind_of_join_answers_the_same() {
    let database = quiet();
    let connection = tables(&database);
    let joins = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
    let mut with_filters = 0;
    for (join, second) in joins.into_iter().flat_map(|join| joins.map(|second| (join, second))) {
        // By a key of the first join from either side of it, and by other columns.
        for condition in ["c.k = a.k", "c.k = b.k", "c.n = a.n", "c.n = b.n"] {
            let sql = format!(
                "SELECT a.id, b.id, c.id FROM a {join} b ON a.k = b.k {second} (SELECT * FROM c WHERE id < 2) c ON {condition}"
            );
            let [with, without] = both(&connection, &sql);
            assert_eq!(with, without, "{sql}");
            with_filters += usize::from(!filtered(&connection, &sql).is_empty());
        }
    }
    assert!(with_filters > 20, "{with_filters} have filters");
    for condition in ["IN", "NOT IN"] {
        for nulls in ["", "WHERE k IS NOT NULL"] {
            let sql = format!(
                "SELECT b.id FROM b JOIN c ON b.n = c.n WHERE c.id < 4 AND b.k {condition} (SELECT k FROM a {nulls})"
            );
            let [with, without] = both(&connection, &sql);
            assert_eq!(with, without, "{sql}");
        }
    }
}

/// Joins of three tables, with conditions, groups and subqueries drawn at random.
#[test]
fn random_joins_answer_the_same() {
    let database = quiet();
    let connection = tables(&database);
    let mut random = StdRng::seed_from_u64(7);
    let mut pick = |of: &[&str]| of[random.random_range(0..of.len())].to_owned();
    let (mut some, mut with_filters) = (0, 0);
    for _ in 0..120 {
        let (joins, keys) = (["JOIN", "LEFT JOIN", "RIGHT JOIN"], ["k", "n", "id", "d"]);
        let condition = ["a.id < 7", "b.n = 3", "c.k > 15", "a.k = 10", "b.id BETWEEN 20 AND 40", "c.id IN (1, 5, 9)"];
        let inner = [
            "b",
            "(SELECT k, n, min(id) AS id, max(d) AS d FROM b GROUP BY k, n)",
            "(SELECT * FROM b WHERE n IN (SELECT n FROM c WHERE id < 6))",
            "(SELECT * FROM b UNION ALL SELECT * FROM c)",
            "(SELECT n AS k, k::bigint AS n, id, d FROM b)",
        ];
        let (first, second) = (pick(&keys), pick(&keys));
        let sql = format!(
            "SELECT a.id, b.n, c.id FROM a {} {} b ON a.{first} = b.{first} {} c ON c.{second} = {}.{second} WHERE {}",
            pick(&joins),
            pick(&inner),
            pick(&joins),
            pick(&["a", "b"]),
            pick(&condition),
        );
        let [with, without] = both(&connection, &sql);
        assert_eq!(with, without, "{sql}");
        some += usize::from(!with.is_empty());
        with_filters += usize::from(!filtered(&connection, &sql).is_empty());
    }
    assert!(some > 60 && with_filters > 60, "{some} of the queries have rows, {with_filters} filters");
}

#[test]
fn changes_of_the_transaction_itself_are_filtered_too() {
    let database = quiet();
    let connection = tables(&database);
    connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
    connection.execute("BEGIN").unwrap();
    connection.execute("INSERT INTO b VALUES (1000, 4, 0, NULL, 'new'), (1001, 99, 0, NULL, 'new')").unwrap();
    connection.execute("DELETE FROM b WHERE id < 80").unwrap();
    let sql = "SELECT b.id FROM a JOIN b ON a.k = b.k WHERE a.id = 10";
    assert_eq!(
        sorted_rows(&connection, sql),
        sorted_rows(&connection, "SELECT id FROM b WHERE k = (SELECT k FROM a WHERE id = 10)")
    );
    connection.execute("ROLLBACK").unwrap();
    connection.execute("DELETE FROM a").unwrap();
    assert_eq!(sorted_rows(&connection, sql), [""; 0]);
}

/// A build side that fails, or whose rows nobody wants, leaves no scan waiting.
#[test]
fn nobody_waits_for_keys_that_do_not_come() {
    let database = quiet();
    let connection = tables(&database);
    connection.execute("CREATE TABLE large AS SELECT v AS k, v AS w FROM generate_series(1, 200000) AS g(v)").unwrap();
    connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
    let begun = Instant::now();
    let failing =
        "SELECT count(*) FROM large JOIN (SELECT k, 10 / (id - 5) AS q FROM a) a ON a.k = large.k AND a.q > 0";
    let error = connection.query(failing).and_then(|rows| rows.collect_batches()).unwrap_err();
    assert_eq!(error.sqlstate(), "22012", "{error:?}");
    let sql = "SELECT l.w FROM large l JOIN large m ON l.k = m.w JOIN a ON a.k = m.k WHERE m.k < 50 LIMIT 3";
    assert_eq!(sorted_rows(&connection, sql).len(), 3);
    let sql = "WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT l.k + 1 FROM r JOIN large l ON l.k = r.k WHERE l.k < 30) \
               SELECT count(*) FROM r";
    assert_eq!(sorted_rows(&connection, sql), ["30"]);
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn small_tables_are_read_at_once_and_large_ones_say_what_was_left_out() {
    let database = quiet();
    let connection = tables(&database);
    connection.execute("CREATE TABLE large AS SELECT v AS k, v AS w FROM generate_series(1, 200000) AS g(v)").unwrap();
    let sql = "SELECT sum(w) FROM large JOIN a ON a.k = large.k WHERE a.id < 5";
    let plan = sorted_rows(&connection, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    assert!(plan.contains("table=large, columns=[k, w], dynamic_filters=[k]"), "{plan}");
    assert!(plan.contains("rows_dropped_by_keys="), "{plan}");
    let small =
        sorted_rows(&connection, "EXPLAIN SELECT count(*) FROM b JOIN a ON a.k = b.k WHERE a.id < 5").join("\n");
    assert!(!small.contains("dynamic_filters"), "{small}");
}

/// Rows that an outer join or an anti join lets through for want of a filtered partner, and groups that lack rows, are
/// dropped by the join above: no expression in between may fail for them.
#[test]
fn what_a_filter_changes_reaches_no_expression_that_may_fail() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute(
            "CREATE TABLE x (id INTEGER PRIMARY KEY, k INTEGER); INSERT INTO x SELECT g, g FROM generate_series(1, 1000) t(g);
             CREATE TABLE a (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO a SELECT g, g % 2 FROM generate_series(1, 1000) t(g);
             CREATE TABLE b (k INTEGER, v INTEGER NOT NULL); INSERT INTO b SELECT g % 1000 + 1, 1 FROM generate_series(1, 200000) t(g);
             CREATE TABLE z (k INTEGER); INSERT INTO z SELECT g % 1000 + 1 FROM generate_series(1, 100000) t(g) WHERE g % 2 = 1",
        )
        .unwrap();
    for (sql, expected) in [
        (
            "SELECT sum(s.q) FROM x JOIN (SELECT a.k, 10 / coalesce(b.v, 0) AS q FROM a LEFT JOIN b ON a.k = b.k) s ON s.k = x.k WHERE x.id < 5",
            "8000",
        ),
        (
            "SELECT sum(s.q) FROM x JOIN (SELECT a.k, 10 / coalesce(b.v, 0) AS q FROM b RIGHT JOIN a ON a.k = b.k) s ON s.k = x.k WHERE x.id < 5",
            "8000",
        ),
        (
            "SELECT sum(s.q) FROM x JOIN (SELECT a.k, 10 / a.v AS q FROM a WHERE NOT EXISTS (SELECT 1 FROM z WHERE z.k = a.k)) s ON s.k = x.k WHERE x.id < 8",
            "40",
        ),
        (
            "SELECT count(*) FROM x JOIN (SELECT k, 10 / (count(*) - 199) AS q FROM b GROUP BY k) s ON s.k = x.k WHERE x.id < 8 AND s.q > 5",
            "7",
        ),
    ] {
        for min_rows in [1, 16_384] {
            connection.execute(&format!("SET dynamic_filter_min_rows = {min_rows}")).unwrap();
            assert_eq!(sorted_rows(&connection, sql), [expected], "{sql}");
        }
    }
    let limited = "SELECT s.k FROM (SELECT a.k, 10 / coalesce(b.v, 0) AS q FROM a LEFT JOIN b ON a.k = b.k) s WHERE s.q > 0 ORDER BY s.k LIMIT 2";
    assert_eq!(sorted_rows(&connection, limited), ["1", "1"]);
    // Where nothing can fail, both sides are filtered: the inner one by the keys of either join.
    connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
    for (of, filters) in [("coalesce(b.v, 0)", "[k, k]"), ("10 / coalesce(b.v, 0)", "[k]")] {
        let sql = format!(
            "EXPLAIN SELECT sum(s.q) FROM x JOIN (SELECT a.k, {of} AS q FROM a LEFT JOIN b ON a.k = b.k) s ON s.k = x.k WHERE x.id < 5"
        );
        let plan = sorted_rows(&connection, &sql).join("\n");
        assert!(plan.contains(&format!("table=b, columns=[k, v], dynamic_filters={filters}")), "{plan}");
    }
}
