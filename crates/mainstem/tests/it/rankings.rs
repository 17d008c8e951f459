//! `row_number`, `rank` and `dense_rank` over windows that cross batches, with NULLs among keys and peers.

use mainstem::{Connection, Database};

use super::support::rows;

/// Rows of windows of all sizes: of one row, of some, and one larger than several batches.
fn table() -> Connection {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, p INTEGER, o INTEGER, s TEXT)").unwrap();
    let insert = "INSERT INTO t SELECT g, \
        CASE WHEN g % 3 = 0 THEN 0 WHEN g % 50 = 1 THEN NULL ELSE (g % 6000)::integer END, \
        CASE WHEN g % 11 = 0 THEN NULL ELSE (g * 7919 % 1009)::integer END, 's' || g % 5 \
        FROM generate_series(1, 60000) AS x(g)";
    connection.execute(insert).unwrap();
    connection
}

/// Holds of each window and each group of peers what defines the three functions.
fn check(connection: &Connection, partition: &str, order: &str) {
    let window = format!("OVER (PARTITION BY {partition} ORDER BY {order})");
    let ranked =
        format!("SELECT p, o, s, row_number() {window} AS n, rank() {window} AS r, dense_rank() {window} AS d FROM t");
    let peers = order.replace(" DESC", "").replace(" NULLS FIRST", "").replace(" NULLS LAST", "");
    // Peers share ranks, and a rank is the number of the first of them.
    let wrong = format!(
        "SELECT count(*) FROM (SELECT {partition}, {peers} FROM ({ranked}) x GROUP BY {partition}, {peers} \
         HAVING min(r) <> max(r) OR min(d) <> max(d) OR min(r) <> min(n) OR max(n) - min(n) + 1 <> count(*)) y"
    );
    assert_eq!(rows(connection, &wrong), ["0"], "{wrong}");
    // Numbers are those from 1 to the count of rows, dense ranks those to the count of peer groups.
    let wrong = format!(
        "SELECT count(*) FROM (SELECT {partition} FROM ({ranked}) x GROUP BY {partition} \
         HAVING min(n) <> 1 OR max(n) <> count(*) OR count(DISTINCT n) <> count(*) OR min(d) <> 1 \
         OR max(d) <> count(DISTINCT d) OR count(DISTINCT r) <> count(DISTINCT d) OR min(r) <> 1) y"
    );
    assert_eq!(rows(connection, &wrong), ["0"], "{wrong}");
}

#[test]
fn ranks_are_those_of_peers_and_start_anew_in_each_window() {
    let connection = table();
    for threads in [1, 2] {
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        for (partition, order) in [("p", "o"), ("p", "o DESC NULLS LAST"), ("p, s", "o NULLS FIRST"), ("s", "o, p")] {
            check(&connection, partition, order);
        }
    }
}

#[test]
fn order_is_that_of_the_window() {
    let connection = table();
    // Ascending numbers come with ascending values: no row is before one with a smaller key.
    let sql = "SELECT count(*) FROM (SELECT o, lag(o) OVER (PARTITION BY p ORDER BY n) AS before FROM \
        (SELECT p, o, row_number() OVER (PARTITION BY p ORDER BY o) AS n FROM t) x) y WHERE before > o";
    assert_eq!(rows(&connection, sql), ["0"]);
    let first =
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY o, id DESC) AS n FROM t) x WHERE n <= 3 ORDER BY n";
    assert_eq!(rows(&connection, first), rows(&connection, "SELECT id FROM t ORDER BY o, id DESC LIMIT 3"));
    let all = "SELECT count(DISTINCT r), min(r), max(d) FROM (SELECT rank() OVER (PARTITION BY p) AS r, \
        dense_rank() OVER (PARTITION BY p) AS d FROM t) x";
    assert_eq!(rows(&connection, all), ["1|1|1"]);
    assert!(rows(&connection, "SELECT rank() OVER (ORDER BY o) FROM t WHERE id < 0").is_empty());
}
