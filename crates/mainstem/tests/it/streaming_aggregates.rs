//! GROUP BY on the column that leads a sort key, in one step, answers as any other.

use mainstem::{Connection, Database, OpenOptions};

use super::support::{merge, rows};

const ROWS: i64 = 100_000;

/// Orders of seven lines each, in segments; some lines deleted, some new or changed in a delta.
fn lines() -> Database {
    let options = OpenOptions::new().background(false).segment_rows(8_192);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE lines (o BIGINT, n INTEGER, v BIGINT, t TEXT, PRIMARY KEY (o, n))").unwrap();
    let insert = "INSERT INTO lines SELECT v / 7, v % 7, v, 't' || v % 3 FROM";
    connection.execute(&format!("{insert} generate_series(0, {}) AS g(v)", ROWS - 1)).unwrap();
    merge(&database, "lines");
    connection.execute("DELETE FROM lines WHERE o BETWEEN 700 AND 720 OR n = 6").unwrap();
    connection.execute("UPDATE lines SET v = v + 1 WHERE o % 50 = 3 AND o < 2000").unwrap();
    connection.execute(&format!("{insert} generate_series({ROWS}, {}) AS g(v)", ROWS + 500)).unwrap();
    drop(connection);
    database
}

/// Whether EXPLAIN shows an aggregation in one step over ranges of the key.
fn streams(connection: &Connection, sql: &str) -> bool {
    let plan = rows(connection, &format!("EXPLAIN {sql}")).concat();
    assert_eq!(
        plan.contains("cuts="),
        plan.contains("ordering_mode=Sorted") || plan.contains("PartiallySorted"),
        "{plan}"
    );
    // Groups that come in part in order are DataFusion's.
    assert_eq!(plan.contains("StreamingAggregateExec"), plan.contains("ordering_mode=Sorted"), "{plan}");
    plan.contains("SinglePartitioned") && plan.contains("cuts=")
}

/// `sql` answers the same when its key is an expression, which has no order.
fn check(connection: &Connection, threads: usize, when: &str) {
    connection.execute(&format!("SET threads = {threads}")).unwrap();
    for (sql, expected) in [
        ("SELECT o, count(*), sum(v), min(t) FROM (SELECT o, n, v, t FROM lines) l GROUP BY o", true),
        (
            "SELECT count(*), sum(s), max(c) FROM (SELECT o, sum(v) AS s, count(*) AS c FROM lines GROUP BY o) g WHERE c > 3",
            true,
        ),
        ("SELECT o, t, sum(v) FROM lines WHERE v % 5 <> 2 GROUP BY o, t", true),
        ("SELECT DISTINCT o FROM lines WHERE o > 3000", true),
        (
            "SELECT o, avg(v), count(DISTINCT t), sum(v) FILTER (WHERE n > 3), max(t) FILTER (WHERE v % 2 = 0), \
             bool_and(n < 5), string_agg('x', '') FROM lines GROUP BY o",
            true,
        ),
        ("SELECT o, n, count(*), sum(v) FROM lines GROUP BY o, n", true),
        ("SELECT o, array_agg(v ORDER BY v DESC) FROM lines GROUP BY o", false),
        ("SELECT s % 10, count(*) FROM (SELECT o, sum(n) AS s FROM lines GROUP BY o) g GROUP BY s % 10", true),
        // With many partitions the second aggregation takes those of the first as they are.
        ("SELECT o, s, count(*) FROM (SELECT o, sum(n) AS s FROM lines GROUP BY o) g GROUP BY o, s", threads < 4),
        ("SELECT n, count(*) FROM lines GROUP BY n", false),
        (
            "SELECT g.o, h.s FROM (SELECT o, sum(v) AS s FROM lines GROUP BY o) g \
             JOIN (SELECT o, max(v) AS s FROM lines GROUP BY o) h ON g.o = h.o WHERE h.s % 9 = 1",
            true,
        ),
        // The window takes partitions as they are.
        ("SELECT o, s, row_number() OVER (PARTITION BY o) FROM (SELECT o, sum(v) AS s FROM lines GROUP BY o) g", false),
    ] {
        let plain = sql.replace("FROM lines", "FROM (SELECT o + 0 AS o, n, v, t FROM lines) AS plain");
        let sorted = |sql: &str| {
            let mut rows = rows(connection, sql);
            rows.sort();
            rows
        };
        assert_eq!(
            streams(connection, sql),
            expected,
            "{when}: {sql}\n{}",
            rows(connection, &format!("EXPLAIN {sql}")).concat()
        );
        assert!(!streams(connection, &plain), "{plain}");
        assert!(sorted(sql) == sorted(&plain), "{when}: {sql} answers otherwise than {plain}");
    }
}

#[test]
fn groups_of_a_sort_key_are_those_of_any_key() {
    let database = lines();
    let connection = database.connect().unwrap();
    check(&connection, 2, "with a delta");
    check(&connection, 5, "with a delta and five threads");
    merge(&database, "lines");
    check(&connection, 2, "merged");
    connection.execute("BEGIN").unwrap();
    connection.execute("INSERT INTO lines VALUES (5, 100, 1, 'own')").unwrap();
    assert!(!streams(&connection, "SELECT o, count(*) FROM lines GROUP BY o"), "its own rows have no order");
    assert_eq!(
        rows(&connection, "SELECT o, count(*) FROM lines GROUP BY o HAVING count(*) > 6 AND o < 14000"),
        ["5|7"]
    );
    connection.execute("ROLLBACK").unwrap();
}

/// Groups that hold much go out as they end: all of them together are more than memory holds.
#[test]
fn groups_that_have_ended_are_not_held() {
    const GROUPS: i64 = 40;
    let options = OpenOptions::new().background(false).segment_rows(8_192).memory_limit(64 << 20);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE r (g BIGINT, n BIGINT, PRIMARY KEY (g, n))").unwrap();
    connection
        .execute(&format!("INSERT INTO r SELECT v / 10000, v FROM generate_series(0, {}) AS s(v)", GROUPS * 10_000 - 1))
        .unwrap();
    merge(&database, "r");
    connection.execute("SET threads = 2").unwrap();
    let sql = "SELECT g, string_agg(repeat('x', 200), '') AS t FROM r GROUP BY g";
    assert!(rows(&connection, &format!("EXPLAIN {sql}")).concat().contains("StreamingAggregateExec"));
    let lengths = rows(&connection, &format!("SELECT count(*), min(length(t)), max(length(t)) FROM ({sql}) s"));
    assert_eq!(lengths, [format!("{GROUPS}|2000000|2000000")]);
}
