//! What decimals of 64 bits add up to is what those of 128 do.

use mainstem::{Connection, Database};

use super::support::{merge, quiet, rows, sorted_rows, try_rows};

/// Table `t`, in two runs and a delta, some rows of which are dead, with decimals up to 18 digits and one of more; `a`
/// was added later. Table `u` has rows for some of `t`'s, several for a few.
fn tables() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 2").unwrap();
    connection
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, n INTEGER, m DECIMAL(9, 2), p DECIMAL(18), \
             q DECIMAL(15, 4), w DECIMAL(19, 2))",
        )
        .unwrap();
    let insert = |from: i32, to: i32| {
        let sql = format!(
            "INSERT INTO t (id, s, n, m, p, q, w) SELECT i, 's' || (i % 5), i % 700, \
             CASE WHEN i % 7 = 1 THEN NULL ELSE (i * 37 % 99991 - 40000) / 100.0 END, \
             CASE i % 5 WHEN 0 THEN 999999999999999999 WHEN 1 THEN -999999999999999999 ELSE i END, \
             i / 8.0, i / 100.0 FROM generate_series({from}, {to}) g(i)"
        );
        connection.execute(&sql).unwrap();
    };
    insert(1, 40_000);
    merge(&database, "t");
    insert(40_001, 60_000);
    merge(&database, "t");
    connection.execute("ALTER TABLE t ADD COLUMN a DECIMAL(7, 3) DEFAULT 1.125").unwrap();
    insert(60_001, 60_400);
    connection.execute("DELETE FROM t WHERE id % 11 = 5").unwrap();
    connection.execute("UPDATE t SET m = m + 1, a = 2.5 WHERE id % 997 = 3").unwrap();
    connection.execute("CREATE TABLE u (k INTEGER, r DECIMAL(12, 3), x TEXT)").unwrap();
    connection
        .execute(
            "INSERT INTO u SELECT i % 500, CASE WHEN i % 9 = 2 THEN NULL ELSE i / 7.0 END, 'x' || (i % 3) \
             FROM generate_series(1, 600) g(i)",
        )
        .unwrap();
    (database, connection)
}

/// The columns that scans of the plan of `sql` give in 64 bits. A plan of its own: kept ones have none.
fn narrow(connection: &Connection, sql: &str) -> String {
    connection.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let plan = sorted_rows(connection, &format!("EXPLAIN {sql}")).join("\n");
    let lists = plan.split(", narrow=[").skip(1).filter_map(|rest| rest.split(']').next());
    lists.collect::<Vec<_>>().join("; ")
}

/// Queries over columns in braces, and those of them that come in 64 bits.
const QUERIES: [(&str, &str); 39] = [
    // From metadata.
    ("SELECT sum({m}), avg({m}), sum({p}), avg({q}), count({a}) FROM t", ""),
    ("SELECT sum({m}), avg({m}), sum({p}), avg({q}), count({a}) FROM t WHERE s LIKE '%3'", "m, p, q"),
    ("SELECT s, sum({m}), avg({q}), sum({a}) FROM t GROUP BY s", "m, q, a"),
    ("SELECT s, sum({p}), avg({p}) FROM t GROUP BY s", "p"),
    ("SELECT n, sum({p}), avg({p} - {m}) FROM t GROUP BY n", "m, p"),
    ("SELECT s, n, sum({m}), sum({q}) FROM t GROUP BY GROUPING SETS ((s), (n), ())", "m, q"),
    ("SELECT {m} * 2, sum({q}) FROM t WHERE n < 9 GROUP BY {m} * 2", "m, q"),
    ("SELECT sum({m} * (1 - {a}) * (1 + {q}) * 2) FROM t", "m, q, a"),
    ("SELECT sum({m}), sum({a}) FROM t WHERE {m} IS DISTINCT FROM {a} - {a} OR s LIKE '%2%'", ""),
    ("SELECT sum({m}), sum(o) FROM t JOIN (SELECT id AS i, {m} AS o FROM t) w ON n = i", "m; m"),
    ("SELECT n, sum({m}), avg({a}) FROM t GROUP BY n", "m, a"),
    ("SELECT n + 1, s, sum({m}), avg({q}) FROM t GROUP BY n + 1, s", "m, q"),
    ("SELECT sum({m} * (1 - {a})), sum({m} + {a}), sum({q} - {m}), sum({m} * {m}) FROM t", "m, q, a"),
    ("SELECT sum({p} + {p}), sum({p} * {m}), sum({p} - 1), sum(0.5 * {p}) FROM t WHERE id % 5 < 3", "m, p"),
    ("SELECT s, sum({m} * (1 - {a}) * (1 + {q})), avg({m} * (1 - {a})) FROM t GROUP BY s", "m, q, a"),
    ("SELECT sum({m} * {w}), sum({w} - {a} * 2) FROM t", "m, a"),
    ("SELECT sum(123456789012345678901 - {m}), sum({a} * 0.0000000000000000001) FROM t", "m, a"),
    ("SELECT sum({m} * 3 + {a} * 7 - (2 - {m}) * {a}) FROM t", "m, a"),
    ("SELECT sum({m} * {a}) FROM t WHERE {m} > 100 AND n IN (3, 5, 8)", "m, a"),
    // A filter that may fail stays above the scan.
    ("SELECT sum({m}), sum({a}) FROM t WHERE {m} * 2 > {q} AND s LIKE '%1%'", "a"),
    ("SELECT sum({m}) FILTER (WHERE {q} > 100), sum({a}) FROM t", "m, a"),
    ("SELECT sum({m}), sum({q}) FILTER (WHERE {m} > 0) FROM t", "q"),
    ("SELECT sum({m}), max({m}), sum({q}) FROM t WHERE s <> 's1'", "q"),
    ("SELECT sum(DISTINCT {m}), sum({q}) FROM t", "q"),
    ("SELECT {m}, sum({q}), sum({m}) FROM t WHERE {m} > 300 GROUP BY {m}", "q"),
    ("SELECT sum(CASE WHEN n > 3 THEN {m} ELSE 0 END), sum({q}) FROM t", "q"),
    ("SELECT sum({m} / 3), sum(-{q}), sum({m} % 7), sum({a}) FROM t", "a"),
    ("SELECT sum({m}::DOUBLE PRECISION), sum(round({q}, 1)), sum({a}) FROM t", "a"),
    ("SELECT n, {m} * 2 FROM t WHERE n < 2", ""),
    ("SELECT x, sum({m} * {r}), avg({r}) FROM t JOIN u ON n = k GROUP BY x", "r; m"),
    ("SELECT x, sum({m}), sum({r}), count(*) FROM t LEFT JOIN u ON n = k GROUP BY x", "r; m"),
    ("SELECT sum({m}), sum({r}) FROM t FULL JOIN u ON n = k AND s = 's1'", "r; m"),
    ("SELECT sum({m} + {q}) FROM t WHERE n IN (SELECT k FROM u WHERE r > 10)", "m, q"),
    ("SELECT sum({m}) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE k = n)", "m"),
    ("SELECT sum({m}), sum({q}), sum({r}) FROM t JOIN u ON n = k AND {m} < {r}", "q"),
    ("SELECT sum({m} - 1), sum({r}) FROM t JOIN u ON {m} = {r}", ""),
    ("SELECT sum(y), avg(z) FROM (SELECT {m} + {a} AS y, {q} AS z, n FROM t) v JOIN u ON n = k", "m, q, a"),
    ("SELECT s, sum(y), max(z) FROM (SELECT s, {m} * {a} AS y, {m} - {a} AS z FROM t) v GROUP BY s", "m, a"),
    ("SELECT sum(y) FROM (SELECT sum({m}) AS y FROM t GROUP BY n UNION ALL SELECT {q} FROM t) v", "m"),
];

/// `query` with its columns as they are, and as expressions that have the same values and no other form.
fn both(query: &str) -> [String; 2] {
    let mut plain = query.to_owned();
    let mut computed = query.to_owned();
    for column in ["m", "p", "q", "a", "w", "r"] {
        let placeholder = format!("{{{column}}}");
        plain = plain.replace(&placeholder, column);
        // One that the optimizer does not see through.
        computed = computed.replace(&placeholder, &format!("coalesce({column}, NULL)"));
    }
    [plain, computed]
}

#[test]
fn sums_are_those_of_wide_decimals() {
    let (database, connection) = tables();
    for (query, expected) in QUERIES {
        let [plain, computed] = both(query);
        let mut names: Vec<String> = narrow(&connection, &plain).split("; ").map(str::to_owned).collect();
        names.sort_unstable();
        let mut expected: Vec<&str> = expected.split("; ").collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "{plain}");
        assert_eq!(narrow(&connection, &computed), "", "{computed}");
        assert_eq!(sorted_rows(&connection, &plain), sorted_rows(&connection, &computed), "{plain}");
    }
    merge(&database, "t");
    for (query, _) in QUERIES {
        let [plain, computed] = both(query);
        assert_eq!(sorted_rows(&connection, &plain), sorted_rows(&connection, &computed), "{plain}, merged");
    }
}

/// A transaction's own rows, and whatever a query with parameters keeps.
#[test]
fn own_rows_and_parameters() {
    let (_database, connection) = tables();
    connection.execute("BEGIN").unwrap();
    connection.execute("INSERT INTO t VALUES (100001, 's1', 1, 0.01, 5, 0.0001, 3, -9999.999)").unwrap();
    connection.execute("UPDATE t SET m = -m WHERE id < 1000").unwrap();
    for (query, expected) in QUERIES {
        let [plain, computed] = both(query);
        // Rows of its own have no metadata.
        assert!(expected.is_empty() || !narrow(&connection, &plain).is_empty(), "{plain}");
        assert_eq!(sorted_rows(&connection, &plain), sorted_rows(&connection, &computed), "{plain}");
    }
    connection.execute("ROLLBACK").unwrap();
    connection.execute("RESET plan_cache_mode").unwrap();
    let sums = ["m", "coalesce(m, NULL)"].map(|m| {
        let sql = format!("SELECT sum({m} * (1 - a) * $1), sum({m} + $1) FROM t WHERE n < $2");
        connection.execute(&format!("PREPARE totals (NUMERIC(5, 1), INTEGER) AS {sql}")).unwrap();
        let run = |n: i32| rows(&connection, &format!("EXECUTE totals ({n}.5, {})", n * 50));
        let mut all: Vec<Vec<String>> = (0..12).map(run).collect();
        connection.execute("SET plan_cache_mode = force_custom_plan").unwrap();
        all.extend((0..3).map(run));
        connection.execute("RESET plan_cache_mode").unwrap();
        connection.execute("DEALLOCATE totals").unwrap();
        all
    });
    assert_eq!(sums[0], sums[1]);
}

/// One thread has other plans: an aggregation is done in one step.
#[test]
fn one_thread_has_the_same_sums() {
    let (_database, connection) = tables();
    connection.execute("SET threads = 1").unwrap();
    for (query, expected) in QUERIES {
        let [plain, computed] = both(query);
        assert!(expected.is_empty() || !narrow(&connection, &plain).is_empty(), "{plain}");
        assert_eq!(sorted_rows(&connection, &plain), sorted_rows(&connection, &computed), "{plain}");
    }
}

/// What has too many digits for 128 bits is an error, as it is of wide decimals.
#[test]
fn too_many_digits() {
    let (_database, connection) = tables();
    for query in ["SELECT sum({p} * {p} * {p}) FROM t", "SELECT n, sum({p} * {p} * {w}) FROM t GROUP BY n"] {
        let errors = both(query).map(|sql| try_rows(&connection, &sql).unwrap_err().to_string());
        assert_eq!(errors[0], errors[1], "{query}");
    }
}
