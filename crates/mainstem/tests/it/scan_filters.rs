//! Filters that scans evaluate themselves answer as filters over scans do.

use std::time::Instant;

use mainstem::Connection;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::support::{merge, quiet, sorted_rows};

/// Table `t`, whose rows are in segments, in a delta and dead; its columns have NULLs, few values and many.
fn table() -> Connection {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b BIGINT, f DOUBLE PRECISION, s TEXT, u TEXT, d DATE NOT NULL, q TEXT NOT NULL)",
        )
        .unwrap();
    let row = |from: i32, to: i32| {
        format!(
            "INSERT INTO t SELECT i, i % 7, CASE WHEN i % 5 = 2 THEN NULL ELSE (i * 37) % 101 END, i / 3.0, \
             CASE WHEN i % 11 = 3 THEN NULL ELSE 'kind ' || (i % 13) END, 'text ' || (i * 7919) % 10007, \
             date '2024-01-01' + i % 90, 'q' || (i % 17) FROM generate_series({from}, {to}) g(i)"
        )
    };
    connection.execute(&row(1, 3_000)).unwrap();
    merge(&database, "t");
    connection.execute(&row(3_001, 3_300)).unwrap();
    connection.execute("DELETE FROM t WHERE id % 17 = 5").unwrap();
    connection.execute("UPDATE t SET a = a + 1 WHERE id % 19 = 4").unwrap();
    connection
}

/// A condition no part of which is a predicate of the store.
fn condition(random: &mut StdRng, depth: u32) -> String {
    if depth > 0 && random.random_bool(0.5) {
        let (left, right) = (condition(random, depth - 1), condition(random, depth - 1));
        return match random.random_range(0..5) {
            0 => format!("NOT ({left})"),
            1 => format!("({left} OR {right})"),
            2 => format!("CASE WHEN {left} THEN {right} ELSE a > 2 END"),
            _ => format!("({left} AND {right})"),
        };
    }
    let n = random.random_range(0..100);
    match random.random_range(0..15) {
        0 => format!("s LIKE '%{}%'", n % 13),
        1 => format!("u LIKE '%{}%'", n % 40),
        2 => format!("s IS NULL OR a = {}", n % 7),
        3 => format!("b < a + {n}"),
        4 => format!("s < u OR b > {n}"),
        5 => format!("length(s) + a > {}", n % 14),
        6 => format!("upper(s) = 'KIND {}'", n % 13),
        7 => format!("coalesce(s, 'none') <> 'kind {}'", n % 13),
        8 => format!("extract(month from d) = {}", 1 + n % 4),
        9 => format!("f > b OR f IS NULL OR a = {}", n % 5),
        10 => format!("b IS DISTINCT FROM {n} AND a <> b"),
        11 => format!("(a <> 0 AND 100 / a > {})", n % 50),
        12 => format!("q LIKE '%{}' OR q IS NULL", n % 17),
        13 => format!("s ~ 'd {}$'", n % 13),
        _ => format!("a + b > {n}"),
    }
}

#[test]
fn rows_are_those_of_a_filter_above_the_scan() {
    let connection = table();
    let mut random = StdRng::seed_from_u64(7);
    let mut in_scans = 0;
    for _ in 0..150 {
        let condition = condition(&mut random, 2);
        let columns = ["id", "id, s", "u, a", "count(*)", "s, count(*), sum(b)"][random.random_range(0..5)];
        let tail = if columns.starts_with("s, count") { " GROUP BY s" } else { "" };
        let sql = format!("SELECT {columns} FROM t WHERE {condition}{tail}");
        // A number that is drawn for each row keeps the filter an operator of its own.
        let above = format!("SELECT {columns} FROM t WHERE ({condition}) AND random() >= 0{tail}");
        assert_eq!(sorted_rows(&connection, &sql), sorted_rows(&connection, &above), "{sql}");
        let plan = sorted_rows(&connection, &format!("EXPLAIN {sql}")).join("\n");
        in_scans += usize::from(plan.contains(", condition=") && !plan.contains("FilterExec"));
    }
    assert!(in_scans > 100, "{in_scans} of 150");
}

#[test]
fn plans_show_what_a_scan_evaluates() {
    let connection = table();
    let plan = |sql: &str| sorted_rows(&connection, &format!("EXPLAIN {sql}")).join("\n");
    let in_scan = plan("SELECT id FROM t WHERE s LIKE '%1%' AND a > 2");
    assert!(in_scan.contains("columns=[id], predicates=[a > Int(2)], condition=s@"), "{in_scan}");
    assert!(!in_scan.contains("FilterExec"), "{in_scan}");
    // Each row is to have a number of its own.
    assert!(plan("SELECT id FROM t WHERE s LIKE '%1%' AND random() < 0.5").contains("FilterExec"));
    // A scan in key order has no condition of its own: rows that are left are sorted.
    let ordered = plan("SELECT id FROM t WHERE s LIKE '%1%' ORDER BY id");
    assert!(ordered.contains("condition=") && ordered.contains("SortExec"), "{ordered}");
    // What guards an expression that may fail is a filter of its own.
    let guarded = plan("SELECT id FROM t WHERE s LIKE '%1%' AND 10 / a > 2");
    assert!(guarded.contains("condition=") && !guarded.contains("FilterExec"), "{guarded}");
    let analyzed = sorted_rows(&connection, "EXPLAIN ANALYZE SELECT u FROM t WHERE s LIKE '%1%'").join("\n");
    assert!(analyzed.contains("rows_dropped_by_condition="), "{analyzed}");
}

#[test]
fn conditions_that_fail_are_asked_about_rows_of_the_table_alone() {
    let connection = table();
    connection.execute("DELETE FROM t WHERE a = 0").unwrap();
    let all = sorted_rows(&connection, "SELECT count(*) FROM t WHERE 100 / a > 10 AND s IS NOT NULL");
    assert_eq!(all, sorted_rows(&connection, "SELECT count(*) FROM t WHERE a < 10 AND s IS NOT NULL"));
    connection.execute("INSERT INTO t (id, a, d, q) VALUES (-1, 0, date '2024-01-01', 'q')").unwrap();
    let error = connection.query("SELECT id FROM t WHERE 100 / a > 10").and_then(|rows| rows.collect_batches());
    assert_eq!(error.unwrap_err().sqlstate(), "22012");
}

#[test]
fn writes_find_their_rows_by_conditions_of_scans() {
    let connection = table();
    let count = |sql: &str| sorted_rows(&connection, sql);
    let before = count("SELECT count(*) FROM t WHERE u LIKE '%77%'");
    assert_ne!(before, ["0"]);
    connection.execute("UPDATE t SET s = 'found' WHERE u LIKE '%77%'").unwrap();
    assert_eq!(count("SELECT count(*) FROM t WHERE s = 'found'"), before);
    connection.execute("DELETE FROM t WHERE u LIKE '%77%' AND s || '' = 'found'").unwrap();
    assert_eq!(count("SELECT count(*) FROM t WHERE s = 'found'"), ["0"]);
}

/// A scan that finds nothing is canceled while its expressions are evaluated, on whatever thread: the threads have
/// turned to other statements long before it would have ended.
#[test]
fn scans_that_find_nothing_are_canceled() {
    let connection = quiet().connect().unwrap();
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT)").unwrap();
    connection.execute("INSERT INTO t SELECT i, 'text ' || i FROM generate_series(1, 1000000) g(i)").unwrap();
    // In steps that are short beside the whole, on a machine with other work, too.
    let sql = "SELECT id FROM t WHERE md5(repeat(u, 300)) = 'none'";
    assert!(sorted_rows(&connection, &format!("EXPLAIN {sql}")).join("\n").contains("condition="));
    let took = |sql: &str| {
        let began = Instant::now();
        let answer = connection.query(sql).and_then(|rows| rows.collect_batches());
        (answer.map(|batches| batches.iter().map(|batch| batch.num_rows()).sum::<usize>()), began.elapsed())
    };
    let (all, whole) = took(sql);
    assert_eq!(all.unwrap(), 0);
    connection.execute("SET statement_timeout = '100ms'").unwrap();
    let (canceled, first) = took(sql);
    assert_eq!(canceled.unwrap_err().sqlstate(), "57014");
    connection.execute("SET statement_timeout = 0").unwrap();
    let (longest, next) = took("SELECT max(length(u || id)) FROM t");
    assert_eq!(longest.unwrap(), 1);
    assert!(first + next < whole / 2, "{first:?} and {next:?} of {whole:?}");
}
