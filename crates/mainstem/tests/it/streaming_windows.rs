//! Windows over groups of the column that leads a sort key need no sort, and answer as any others.

use mainstem::{Connection, Database, OpenOptions};

use super::support::{merge, rows};

/// Groups of seven rows each, in segments; some rows deleted, some new or changed in a delta.
fn lines() -> Database {
    let options = OpenOptions::new().background(false).segment_rows(8_192);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE lines (o BIGINT, n INTEGER, v BIGINT, PRIMARY KEY (o, n))").unwrap();
    let insert = "INSERT INTO lines SELECT v / 7, v % 7, v FROM";
    connection.execute(&format!("{insert} generate_series(0, 99999) AS g(v)")).unwrap();
    merge(&database, "lines");
    connection.execute("DELETE FROM lines WHERE o BETWEEN 700 AND 720 OR n = 6").unwrap();
    connection.execute("UPDATE lines SET v = v + 1 WHERE o % 50 = 3 AND n % 2 = 1 AND o < 2000").unwrap();
    connection.execute(&format!("{insert} generate_series(100000, 100500) AS g(v)")).unwrap();
    drop(connection);
    database
}

/// Whether EXPLAIN shows a scan in ranges of the key below windows, and no sort.
fn streams(connection: &Connection, sql: &str) -> bool {
    let plan = rows(connection, &format!("EXPLAIN {sql}")).concat();
    assert_eq!(plan.contains("cuts="), !plan.contains("SortExec"), "{plan}");
    plan.contains("cuts=")
}

fn check(connection: &Connection, when: &str) {
    connection.execute("SET threads = 2").unwrap();
    for (sql, expected) in [
        ("SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY n) FROM lines", true),
        ("SELECT o, n, sum(v) OVER (PARTITION BY o) FROM lines", true),
        ("SELECT o, n, lag(v) OVER w, sum(v) OVER w FROM lines WINDOW w AS (PARTITION BY o ORDER BY n)", true),
        (
            "SELECT o, n, rank() OVER (PARTITION BY o ORDER BY n), max(v) OVER (PARTITION BY o) FROM lines WHERE v % 5 <> 2",
            true,
        ),
        ("SELECT o, n, count(*) OVER (PARTITION BY o, n) FROM lines", true),
        // In another order, by another column.
        ("SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY n DESC) FROM lines", false),
        ("SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY v, n) FROM lines", false),
        ("SELECT o, n, row_number() OVER (PARTITION BY n ORDER BY o) FROM lines", false),
    ] {
        let plain = sql.replace("FROM lines", "FROM (SELECT o + 0 AS o, n, v FROM lines) AS plain");
        let sorted = |sql: &str| {
            let mut rows = rows(connection, sql);
            rows.sort();
            rows
        };
        assert_eq!(streams(connection, sql), expected, "{when}: {sql}");
        assert!(!streams(connection, &plain), "{plain}");
        assert!(sorted(sql) == sorted(&plain), "{when}: {sql} answers otherwise than {plain}");
    }
}

#[test]
fn windows_over_groups_of_a_sort_key_are_those_of_any_key() {
    let database = lines();
    let connection = database.connect().unwrap();
    check(&connection, "with a delta");
    merge(&database, "lines");
    check(&connection, "merged");
}

/// Whoever takes rows partitioned by the window's key needs them by hash.
#[test]
fn a_join_above_a_window_gets_rows_by_hash() {
    let database = lines();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 2").unwrap();
    let window = "(SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY n) AS r FROM lines)";
    let sql = format!("SELECT count(*), sum(a.r) FROM {window} a JOIN {window} b ON a.o = b.o AND a.r = b.r + 1");
    let expected = "SELECT count(*), sum(r) FROM (SELECT row_number() OVER (PARTITION BY o ORDER BY n) AS r \
                    FROM (SELECT o + 0 AS o, n FROM lines) p) s WHERE r > 1";
    assert_eq!(rows(&connection, &sql), rows(&connection, expected));
}
