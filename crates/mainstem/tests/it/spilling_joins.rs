//! Joins whose build sides are larger than what queries may take are run again by joins that spill, and answer as hash
//! joins do.

use mainstem::{Connection, Database, OpenOptions};

use super::support::rows;

/// Bytes that queries may take are a part of it.
const MEMORY_LIMIT: u64 = 16 << 20;

/// Two tables of `count` rows of about 80 bytes, most of which have one partner, some of them several or none, with
/// NULLs.
fn tables(connection: &Connection, count: i64) {
    connection
        .execute_batch(&format!(
            "CREATE TABLE a (k BIGINT, n INTEGER, t TEXT); CREATE TABLE b (k BIGINT, n INTEGER, t TEXT);
             INSERT INTO a SELECT CASE WHEN v % 31 = 7 THEN NULL ELSE v * 7 % {count} END, v % 11, repeat('a', 60) || v
             FROM generate_series(1, {count}) AS g(v);
             INSERT INTO b SELECT CASE WHEN v % 29 = 5 THEN NULL ELSE v * 5 % ({count} + 1000) / 2 * 2 END, v % 13,
             repeat('b', 60) || v FROM generate_series(1, {count}) AS g(v)"
        ))
        .unwrap();
}

fn sorted(connection: &Connection, sql: &str) -> Vec<String> {
    let mut rows = rows(connection, sql);
    rows.sort();
    rows
}

/// Of each kind, with a filter on both sides and without.
fn joins() -> Vec<String> {
    let shown =
        "count(*), count(a.t), count(b.t), sum(length(a.t)), sum(length(b.t)), max(a.t), min(b.t), sum(a.n * b.n)";
    let mut all = Vec::new();
    for filter in ["", " AND a.n + b.n <> 12"] {
        for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
            all.push(format!("SELECT {shown} FROM a {join} b ON a.k = b.k{filter}"));
        }
        for exists in ["EXISTS", "NOT EXISTS"] {
            let inner = format!("{exists} (SELECT 1 FROM b WHERE a.k = b.k{filter})");
            all.push(format!("SELECT count(*), sum(length(a.t)), max(a.t) FROM a WHERE {inner}"));
        }
    }
    all.push("SELECT count(*), sum(length(x.t)), max(y.t) FROM a x JOIN b ON x.k = b.k JOIN a y ON y.k = b.k".into());
    all.push(
        "SELECT a.k, b.t FROM a JOIN b ON a.k = b.k ORDER BY a.k DESC NULLS LAST, b.t LIMIT 5 OFFSET 70000".into(),
    );
    all.push(
        "SELECT k, count(*), max(u) FROM (SELECT a.k, b.t AS u FROM a JOIN b ON a.k = b.k) j
         GROUP BY k HAVING count(*) > 2 AND k < 3000"
            .into(),
    );
    all
}

#[test]
fn a_join_larger_than_the_memory_of_queries_is_answered() {
    // A build side is about four times what queries may take.
    let count = 200_000;
    let ample = Database::in_memory_with(OpenOptions::new().background(false)).unwrap();
    let ample = ample.connect().unwrap();
    tables(&ample, count);
    let small = Database::in_memory_with(OpenOptions::new().memory_limit(1 << 30).background(false)).unwrap();
    let connection = small.connect().unwrap();
    tables(&connection, count);
    connection.execute(&format!("SET memory_limit = {MEMORY_LIMIT}")).unwrap();
    for threads in [1, 2] {
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        for sql in joins() {
            assert_eq!(sorted(&connection, &sql), sorted(&ample, &sql), "{threads} threads: {sql}");
        }
    }
    // By hash only: whether the inner side has a NULL is known at the end.
    let error =
        connection.query("SELECT t FROM a WHERE t NOT IN (SELECT t FROM b)").and_then(|rows| rows.collect_batches());
    assert_eq!(error.unwrap_err().sqlstate(), "53200");
}
