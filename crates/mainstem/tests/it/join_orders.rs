//! Joins give the same rows in whichever order FROM names their tables.

use mainstem::Connection;

use super::support::{merge, quiet, rows};

/// Tables of very different sizes. `m` has rows that refer to nothing, and to the same thing twice.
const TABLES: &str = "
    CREATE TABLE large (id INTEGER PRIMARY KEY, m_id INTEGER, s_id INTEGER, v INTEGER NOT NULL);
    CREATE TABLE m (id INTEGER PRIMARY KEY, s_id INTEGER, v INTEGER NOT NULL);
    CREATE TABLE s (id INTEGER PRIMARY KEY, name TEXT, v INTEGER NOT NULL);
    CREATE TABLE one (id INTEGER PRIMARY KEY, s_id INTEGER);
    INSERT INTO large SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 90 END, i % 11, i % 13
        FROM generate_series(1, 3000) AS g (i);
    INSERT INTO m SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE i % 12 END, i % 17 FROM generate_series(1, 80) AS g (i);
    INSERT INTO s SELECT i, 'name ' || i % 4, i % 3 FROM generate_series(1, 10) AS g (i);
    INSERT INTO one VALUES (1, 2);
    ";

/// What is asked, the items of FROM, and the conditions.
const QUERIES: &[(&str, &[&str], &str)] = &[
    ("large.id, m.id, s.name", &["large", "m", "s"], "large.m_id = m.id AND m.s_id = s.id"),
    ("large.id, m.id, s.id", &["large", "m", "s"], "large.m_id = m.id AND m.s_id = s.id AND s.v = 1 AND large.v < 4"),
    ("count(*), sum(large.v)", &["large", "m", "s", "one"], "large.m_id = m.id AND m.s_id = s.id AND one.s_id = s.id"),
    // Equal to each other: two of the keys follow from the rest.
    ("large.id, m.id", &["large", "m", "s", "one"], "large.s_id = s.id AND m.s_id = s.id AND one.s_id = m.s_id"),
    (
        "count(*)",
        &["large", "m", "s"],
        "large.s_id = s.id AND m.s_id = s.id AND large.s_id = m.s_id AND large.m_id = m.id",
    ),
    // Two columns of one table equal the same one.
    ("large.id", &["large", "m", "s"], "large.s_id = s.id AND large.v = s.id AND m.s_id = s.id"),
    // Conditions of several tables.
    (
        "large.id, m.v, s.v",
        &["large", "m", "s", "one"],
        "large.m_id = m.id AND m.s_id = s.id AND one.s_id < s.id AND large.v + s.v > m.v AND one.id = s.v",
    ),
    (
        "count(*), min(large.id)",
        &["large", "s AS a", "s AS b", "m"],
        "large.m_id = m.id AND m.s_id = a.id AND large.s_id = b.id
         AND ((a.name = 'name 1' AND b.name = 'name 2') OR (a.name = 'name 2' AND b.name = 'name 1'))",
    ),
    // The same table, and the same names.
    ("a.id, b.id, c.id", &["s AS a", "s AS b", "s AS c", "one"], "a.v = b.id AND b.v = c.v AND c.id = one.s_id"),
    ("*", &["(SELECT id AS x, v FROM m) AS q", "s", "one"], "q.x = s.id AND one.s_id = s.id"),
    // Leaves that are no tables.
    (
        "q.n, s.id",
        &["(SELECT s_id, count(*) AS n FROM large GROUP BY s_id) AS q", "s", "one"],
        "q.s_id = s.id AND one.s_id = s.id",
    ),
    (
        "q.l, q.m, s.id",
        &["(SELECT large.id AS l, m.s_id, m.id AS m FROM m LEFT JOIN large ON large.id = m.id * 40) AS q", "s", "one"],
        "q.s_id = s.id AND one.s_id = s.id",
    ),
    // Computed keys, no keys at all.
    ("large.id, s.id", &["large", "m", "s"], "large.m_id + 1 = m.id AND m.s_id = s.id + 1"),
    ("count(*)", &["m", "s", "one"], "m.id = s.id"),
    // A divisor that is zero for rows that no other table has.
    (
        "count(*)",
        &["large", "m", "s"],
        "large.m_id = m.id AND m.s_id = s.id AND CASE WHEN s.v = 0 THEN false ELSE large.v / s.v > 2 END",
    ),
    // Subqueries: groups that are found once, rows that are found more often.
    (
        "large.id",
        &["large", "m", "s"],
        "large.m_id = m.id AND m.s_id = s.id AND s.id IN (SELECT s_id FROM large GROUP BY s_id HAVING count(*) > 272)",
    ),
    ("large.id", &["large", "m", "s"], "large.m_id = m.id AND m.s_id = s.id AND s.id IN (SELECT s_id FROM m)"),
    (
        "large.id",
        &["large", "m", "s"],
        "large.m_id = m.id AND m.s_id = s.id AND large.v < (SELECT avg(v) FROM m AS o WHERE o.s_id = s.id)",
    ),
    (
        "large.id",
        &["large", "m", "s"],
        "large.m_id = m.id AND m.s_id = s.id AND NOT EXISTS (SELECT 1 FROM m AS o WHERE o.s_id = s.id AND o.v > 15)",
    ),
];

/// All orders of `items`.
fn permutations<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
    let [first, rest @ ..] = items else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in permutations(rest) {
        for at in 0..=order.len() {
            let mut order = order.clone();
            order.insert(at, first);
            all.push(order);
        }
    }
    all
}

fn sorted(connection: &Connection, query: &str) -> Vec<String> {
    let mut found = rows(connection, query);
    found.sort_unstable();
    found
}

fn answer(connection: &Connection, columns: &str, from: &[&str], conditions: &str) -> Vec<String> {
    // The order of columns of * follows FROM.
    let columns = if columns == "*" { "x, q.v, s.id, name, s.v, one.id, one.s_id" } else { columns };
    let query = format!("SELECT {columns} FROM {} WHERE {conditions}", from.join(", "));
    sorted(connection, &query)
}

#[test]
fn every_order_of_from_gives_the_same_rows() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute(TABLES).unwrap();
    for where_rows_are in ["delta", "main"] {
        if where_rows_are == "main" {
            let look = database.storage().begin(mainstem_storage::transaction::TransactionMode::default()).unwrap();
            for table in look.catalog().tables() {
                database.storage().merge(table.id).unwrap();
            }
        }
        for (columns, from, conditions) in QUERIES {
            let expected = answer(&connection, columns, from, conditions);
            for order in permutations(from) {
                let found = answer(&connection, columns, &order, conditions);
                assert_eq!(found, expected, "{where_rows_are}: FROM {order:?} WHERE {conditions}");
            }
        }
    }
}

/// JOIN ... USING, written in several ways.
#[test]
fn joins_that_are_written_out_give_the_same_rows() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute(TABLES).unwrap();
    let ways = [
        "SELECT s_id, large.id, m.id FROM large JOIN m USING (s_id) JOIN one USING (s_id)",
        "SELECT s_id, large.id, m.id FROM one JOIN m USING (s_id) JOIN large USING (s_id)",
        "SELECT s_id, large.id, m.id FROM m JOIN large USING (s_id) JOIN one USING (s_id)",
        "SELECT m.s_id, large.id, m.id FROM large, m, one WHERE large.s_id = m.s_id AND m.s_id = one.s_id",
        "SELECT m.s_id, large.id, m.id FROM large JOIN (m JOIN one ON m.s_id = one.s_id) ON large.s_id = one.s_id",
    ];
    let expected = sorted(&connection, ways[0]);
    assert!(expected.len() > 100);
    for way in ways {
        assert_eq!(sorted(&connection, way), expected, "{way}");
    }
}

/// Of nested joins the inner one begins while the outer one reads its build side: the same rows, the same errors, and
/// none of what nobody asks for.
#[test]
fn probe_sides_that_begin_early_change_nothing() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute(
            "CREATE TABLE a (k INTEGER, n INTEGER); INSERT INTO a SELECT g, g % 1000 FROM generate_series(1, 150000) t(g);
             CREATE TABLE b (k INTEGER, n INTEGER); INSERT INTO b SELECT g * 2, g % 7 FROM generate_series(1, 200000) t(g);
             CREATE TABLE c (k INTEGER, n INTEGER); INSERT INTO c SELECT g * 3, g % 11 FROM generate_series(1, 300000) t(g);
             SET threads = 2; SET plan_cache_mode = force_custom_plan",
        )
        .unwrap();
    for name in ["a", "b", "c"] {
        merge(&database, name);
    }
    let joined = "FROM a JOIN (SELECT b.k, b.n + c.n AS n FROM b JOIN c ON b.k = c.k) x ON a.k = x.k";
    let plan = rows(&connection, &format!("EXPLAIN SELECT count(*), sum(x.n) {joined}")).join("\n");
    assert!(plan.contains("EagerProbe"), "{plan}");
    // Multiples of 6 up to 150,000.
    let expected: i64 = (1..=25_000).map(|i| (i * 3) % 7 + (i * 2) % 11).sum();
    assert_eq!(rows(&connection, &format!("SELECT count(*), sum(x.n) {joined}")), [format!("25000|{expected}")]);
    assert_eq!(rows(&connection, &format!("SELECT 1 {joined} LIMIT 3")).len(), 3);
    let failing = joined.replace("b.n + c.n", "10 / (b.n - c.n)");
    let error = connection.query(&format!("SELECT sum(x.n) {failing}")).and_then(|rows| rows.collect_batches());
    assert_eq!(error.unwrap_err().sqlstate(), "22012");
}
