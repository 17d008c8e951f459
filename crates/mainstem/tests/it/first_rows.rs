//! `ORDER BY ... LIMIT` over scans that leave out rows behind those that are kept answers as without that.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use mainstem::{Connection, Database, OpenOptions, Value};
use mainstem_storage::transaction::TransactionMode;

use super::support::{quiet, rows};

const ROWS: i64 = 120_000;

/// Rows in segments, some of them deleted or changed, and new ones in a delta: with values above and below all others.
fn events() -> Database {
    let options = OpenOptions::new().background(false).segment_rows(8_192);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE e (id BIGINT PRIMARY KEY, at TIMESTAMP NOT NULL, day DATE, n SMALLINT, amount DECIMAL(12, 2), \
             wide DECIMAL(30, 2), t TEXT); CREATE TABLE few (n SMALLINT PRIMARY KEY, name TEXT)",
        )
        .unwrap();
    let insert = "INSERT INTO e SELECT g, TIMESTAMP '2020-01-01' + g * INTERVAL '1 minute', \
        CASE WHEN g % 977 = 0 THEN NULL ELSE DATE '2020-01-01' + (g * 7919 % 3001)::integer END, (g % 100)::smallint, \
        (g * 31 % 100003)::decimal(12, 2) / 100, (g * 31 % 100003)::decimal(30, 2) * 1000000000000, 't' || g % 7 FROM";
    connection.execute(&format!("{insert} generate_series(1, {ROWS}) AS x(g)")).unwrap();
    connection.execute("INSERT INTO few SELECT g, 'name ' || g FROM generate_series(0, 50, 7) AS x(g)").unwrap();
    merge(&database);
    connection.execute("DELETE FROM e WHERE id > 119000 OR id < 50 OR n = 99").unwrap();
    connection.execute("UPDATE e SET amount = -amount, day = NULL WHERE id % 4001 = 3").unwrap();
    connection.execute(&format!("{insert} generate_series({}, {}) AS x(g)", ROWS + 1, ROWS + 300)).unwrap();
    connection.execute("INSERT INTO e VALUES (-1, '1999-01-01', NULL, -5, -99999, 0, 'old')").unwrap();
    drop(connection);
    database
}

fn merge(database: &Database) {
    let look = database.storage().begin(TransactionMode::default()).unwrap();
    let tables: Vec<_> = look.catalog().tables().map(|table| table.id).collect();
    drop(look);
    tables.into_iter().for_each(|id| database.storage().merge(id).unwrap());
}

/// The answers with filters on every scan, and without any.
fn check(connection: &Connection, sql: &str) {
    let answers = [1_u32, u32::MAX].map(|min_rows| {
        connection.execute(&format!("SET dynamic_filter_min_rows = {min_rows}")).unwrap();
        rows(connection, sql)
    });
    assert_eq!(answers[0], answers[1], "{sql}");
    assert!(!answers[0].is_empty(), "{sql}");
}

#[test]
fn answers_are_those_without_filters() {
    let database = events();
    let connection = database.connect().unwrap();
    let orders = [
        "at DESC",
        "at",
        "day DESC, id",
        "day, id",
        "day NULLS FIRST, id",
        "day DESC NULLS LAST, id",
        "n, id DESC",
        "n DESC, amount, id",
        "amount DESC, id",
        "amount, id",
        "wide DESC, id",
        "t, amount, id",
        "-amount, id",
    ];
    for threads in [1, 2] {
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        for order in orders {
            for limit in ["1", "10", "1000 OFFSET 17", "20000"] {
                let sql = format!("SELECT id, at, day, n, amount, wide, t FROM e ORDER BY {order} LIMIT {limit}");
                check(&connection, &sql);
            }
            let filtered = "SELECT id, day FROM e WHERE n % 3 = 1 AND day > DATE '2021-01-01' ORDER BY";
            check(&connection, &format!("{filtered} {order} LIMIT 25"));
        }
    }
}

#[test]
fn filters_pass_operators_that_keep_or_drop_whole_rows() {
    let database = events();
    let connection = database.connect().unwrap();
    for sql in [
        "SELECT n, count(*), sum(amount) FROM e GROUP BY n ORDER BY n DESC LIMIT 3",
        "SELECT day, max(id) FROM e GROUP BY day ORDER BY day LIMIT 40",
        "SELECT e.id, name FROM e JOIN few ON e.n = few.n ORDER BY at DESC LIMIT 30",
        "SELECT e.id, name FROM e LEFT JOIN few ON e.n = few.n ORDER BY at DESC, name LIMIT 30",
        "SELECT few.n, e.id FROM few LEFT JOIN e ON e.n = few.n ORDER BY e.day DESC NULLS LAST, e.id LIMIT 30",
        "SELECT few.n, e.id FROM e RIGHT JOIN few ON e.n = few.n ORDER BY few.n DESC, e.id LIMIT 30",
        "SELECT id, at FROM (SELECT id, at FROM e UNION ALL SELECT -id, at FROM e WHERE n = 5) u ORDER BY at DESC, id LIMIT 30",
        "SELECT * FROM (SELECT id, day, row_number() OVER (ORDER BY id) AS r FROM e) x ORDER BY day DESC, id LIMIT 9",
        "SELECT count(*), sum(id) FROM (SELECT id FROM e ORDER BY amount DESC, id LIMIT 500) x",
        "SELECT id FROM (SELECT id, amount FROM e ORDER BY at LIMIT 20000) x ORDER BY amount, id LIMIT 5",
        "SELECT id FROM e WHERE n IN (SELECT n FROM few) ORDER BY amount DESC, id LIMIT 7",
        "SELECT id FROM e WHERE amount < (SELECT max(amount) FROM (SELECT amount FROM e ORDER BY id LIMIT 20000) x) \
         ORDER BY amount DESC, id LIMIT 7",
    ] {
        check(&connection, sql);
    }
}

/// A limit above a window is that of each partition of the sort below it, which nothing merges.
#[test]
fn limits_above_windows_leave_frames_whole() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, p INTEGER NOT NULL, o INTEGER, x INTEGER); \
             INSERT INTO t SELECT g, (g * 7919 % 5021)::integer, (g * 31 % 10007)::integer, 1 \
             FROM generate_series(1, 300000) x(g); SET threads = 2; SET dynamic_filter_min_rows = 1",
        )
        .unwrap();
    let window = "(PARTITION BY p ORDER BY o, id ROWS UNBOUNDED PRECEDING)";
    let limited = format!("SELECT id, sum(x) OVER {window} AS r FROM t LIMIT 600");
    let plan = rows(&connection, &format!("EXPLAIN {limited}")).concat();
    assert!(plan.contains("TopK(fetch=600)") && !plan.contains("dynamic_filters="), "{plan}");
    let wrong = format!(
        "SELECT count(*) FROM ({limited}) q JOIN (SELECT id, row_number() OVER (PARTITION BY p ORDER BY o, id) AS n \
         FROM t) truth ON truth.id = q.id WHERE q.r <> n"
    );
    for _ in 0..5 {
        assert_eq!(rows(&connection, &wrong), ["0"]);
    }
}

#[test]
fn rows_of_an_open_transaction_come_first_and_kept_plans_begin_anew() {
    let database = events();
    let connection = database.connect().unwrap();
    connection.execute("SET dynamic_filter_min_rows = 1").unwrap();
    let latest = connection.prepare("SELECT id FROM e WHERE n > $1 ORDER BY at DESC LIMIT 2").unwrap();
    let ids = |n: i16| -> Vec<Value> {
        let rows = latest.query([n]).unwrap();
        rows.flat_map(|row| row.unwrap().values().to_vec()).collect()
    };
    let big = |ids: [i64; 2]| ids.map(Value::Int).to_vec();
    for _ in 0..4 {
        assert_eq!(ids(97), big([120_299, 120_298]));
        assert_eq!(ids(-50), big([120_300, 120_299]));
    }
    connection.execute_batch("BEGIN; DELETE FROM e WHERE id = 120300").unwrap();
    connection.execute("INSERT INTO e (id, at, n) VALUES (-7, '2030-01-01', 1)").unwrap();
    assert_eq!(ids(-50), big([-7, 120_299]));
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(ids(-50), big([120_300, 120_299]));
}

#[test]
fn the_latest_rows_are_read_first_and_most_others_not_at_all() {
    let database = events();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 1").unwrap();
    let plan = rows(&connection, "EXPLAIN ANALYZE SELECT id, t FROM e ORDER BY at DESC LIMIT 10").concat();
    let (_, dropped) = plan.split_once("rows_dropped_by_keys=").unwrap();
    let dropped: String = dropped.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    assert!(plan.contains("dynamic_filters=[at]"), "{plan}");
    // Three quarters of the rows stand in segments that a limit of ten has no use for.
    assert!(dropped.parse::<f64>().unwrap() > 80.0, "{plan}");
}

/// Many rows in an order stay in it, whatever is computed above ORDER BY: CHAR gets its blanks there.
#[test]
fn rows_of_a_sort_stay_in_its_order() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 4").unwrap();
    connection.execute("CREATE TABLE c (k BIGINT, d DECIMAL(12,2), c CHAR(3))").unwrap();
    let rows = "SELECT k, k / 100.0, 'c' || k % 7 FROM generate_series(1, 200000) AS g (k)";
    connection.execute(&format!("INSERT INTO c {rows} ORDER BY k % 1000")).unwrap();
    are_in_order(&connection, "SELECT * FROM c ORDER BY k", 200_000);
    are_in_order(&connection, "SELECT DISTINCT k, c FROM c ORDER BY k", 200_000);
    are_in_order(&connection, "SELECT k, c FROM c ORDER BY k LIMIT 150000 OFFSET 10", 150_000);
    are_in_order(&connection, "SELECT k, c FROM c WHERE d > 100 ORDER BY k", 190_000);
    // A subquery for one value stands above the sort, too.
    are_in_order(&connection, "SELECT k, c FROM c WHERE d > (SELECT avg(d) FROM c) ORDER BY k", 100_000);
}

/// The same where no sort is left: a scan has the order, or a window.
#[test]
fn rows_of_an_order_without_a_sort_stay_in_it() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 4").unwrap();
    connection.execute("CREATE TABLE c (k BIGINT PRIMARY KEY, c CHAR(3), d INTEGER NOT NULL)").unwrap();
    let rows = "SELECT k, 'c' || k % 7, k % 100 FROM generate_series(1, 60000) AS g (k)";
    connection.execute(&format!("INSERT INTO c {rows}")).unwrap();
    for _ in 0..3 {
        are_in_order(&connection, "SELECT k, c FROM c ORDER BY k", 60_000);
        are_in_order(&connection, "SELECT k, c FROM c ORDER BY k LIMIT 50000 OFFSET 100", 50_000);
        are_in_order(&connection, "SELECT row_number() OVER (ORDER BY d, k) AS n, c FROM c ORDER BY n", 60_000);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in-order.csv");
    connection.execute(&format!("COPY (SELECT k, c FROM c ORDER BY k) TO '{}'", path.display())).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let keys = text.lines().map(|line| line.split(',').next().unwrap().parse::<i64>().unwrap());
    assert!(keys.eq(1..=60_000), "COPY keeps the order");
}

/// Whether `query` has `rows` rows whose first column, numbers above 0, ascends.
fn are_in_order(connection: &Connection, query: &str, rows: usize) {
    let (mut last, mut count) = (0, 0);
    for batch in connection.query(query).unwrap() {
        for k in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
            assert!(*k > last, "{query}: {k} behind {last}");
            (last, count) = (*k, count + 1);
        }
    }
    assert_eq!(count, rows, "{query}");
}
