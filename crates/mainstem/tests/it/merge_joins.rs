//! Joins of tables in the order of their keys answer as hash joins do, and are merged where that is of use.

use mainstem::{Connection, Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::support::{merge, rows};

/// Whether `sql` is planned with a merge of joins of at least `min_rows` rows.
fn merges(connection: &Connection, min_rows: u32, sql: &str) -> bool {
    connection.execute(&format!("SET merge_join_min_rows = {min_rows}")).unwrap();
    let plan = rows(connection, &format!("EXPLAIN {sql}")).concat();
    assert_eq!(plan.contains("MergeJoin"), plan.contains("cuts="), "{plan}");
    plan.contains("MergeJoin")
}

/// The rows of `sql`, sorted.
fn answer(connection: &Connection, min_rows: u32, sql: &str) -> Vec<String> {
    connection.execute(&format!("SET merge_join_min_rows = {min_rows}")).unwrap();
    let mut rows = rows(connection, sql);
    rows.sort();
    rows
}

/// Every kind of join between the tables of [`tables`], and whether it can be merged.
const JOINS: [(&str, bool); 16] = [
    ("SELECT * FROM a JOIN b ON a.k = b.k", true),
    ("SELECT a.n, b.v FROM a JOIN b ON a.k = b.k AND a.v <> b.v", true),
    ("SELECT a.n, b.n FROM a JOIN b ON a.k = b.k AND a.v = b.v", true),
    ("SELECT a.k, a.n, b.k, b.n FROM a LEFT JOIN b ON a.k = b.k", true),
    ("SELECT a.n, b.n, b.t FROM a RIGHT JOIN b ON a.k = b.k", true),
    ("SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k)", true),
    ("SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)", true),
    ("SELECT n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.v <> b.v)", true),
    ("SELECT n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.v <> b.v)", true),
    ("SELECT a.k, count(*), sum(b.v) FROM a JOIN b ON a.k = b.k WHERE b.v % 3 > 0 GROUP BY a.k", true),
    ("SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k", true),
    (
        "SELECT a.n FROM a JOIN c ON a.k = c.k WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v <> a.v) \
         AND NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)",
        true,
    ),
    // All rows of both, by another column, by a part of the key that does not lead, by a value.
    ("SELECT a.n, b.n FROM a FULL JOIN b ON a.k = b.k", false),
    ("SELECT a.n, b.n FROM a JOIN b ON a.v = b.v", false),
    ("SELECT a.k, b.k FROM a JOIN b ON a.n = b.n", false),
    ("SELECT a.k, b.k FROM a JOIN b ON a.k = b.k + 1", false),
];

/// Tables by `k` and `n`, with several rows of most keys, of as many rows as `sizes` say: in runs, and in deltas.
fn tables(random: &mut StdRng, sizes: [i64; 3]) -> Database {
    let options = OpenOptions::new().background(false).segment_rows([7, 100][random.random_range(0..2)]);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    let keys = [5, 60, 400][random.random_range(0..3)];
    for (name, size) in ["a", "b", "c"].into_iter().zip(sizes) {
        let create = format!("CREATE TABLE {name} (k INTEGER NOT NULL, n BIGINT NOT NULL, v INTEGER, t TEXT");
        connection.execute(&format!("{create}, PRIMARY KEY (k, n))")).unwrap();
        let (mut number, parts) = (0, random.random_range(1..4));
        for part in 0..parts {
            let mut row = |n: i64| {
                let (k, v) = (random.random_range(0..keys), random.random_range(0..5));
                let v = if v == 4 { "NULL".to_owned() } else { v.to_string() };
                format!("({k}, {n}, {v}, 't{}')", n % 7)
            };
            let values: Vec<String> = (number..number + size / parts).map(&mut row).collect();
            number += size / parts;
            if !values.is_empty() {
                connection.execute(&format!("INSERT INTO {name} VALUES {}", values.join(", "))).unwrap();
            }
            // The last rows stay in a delta, now and then.
            if part + 1 < parts || random.random_bool(0.5) {
                merge(&database, name);
            }
        }
        let gone = random.random_range(2..9);
        connection.execute(&format!("DELETE FROM {name} WHERE n % {gone} = 1")).unwrap();
        connection.execute(&format!("UPDATE {name} SET v = v + 1 WHERE n % 11 = 3")).unwrap();
    }
    drop(connection);
    database
}

#[test]
fn random_tables_join_as_by_hash() {
    let mut random = StdRng::seed_from_u64(21);
    for case in 0..40 {
        let sizes = [0, 1, 2].map(|_| [0, 6, 90, 500][random.random_range(0..4)]);
        let database = tables(&mut random, sizes);
        let connection = database.connect().unwrap();
        connection.execute(&format!("SET threads = {}", random.random_range(1..4))).unwrap();
        for (sql, can) in JOINS {
            // Of an empty table nothing is left to join.
            if sizes.iter().all(|size| *size > 6) {
                assert_eq!(
                    merges(&connection, 1, sql),
                    can,
                    "{sql}\n{}",
                    rows(&connection, &format!("EXPLAIN {sql}")).concat()
                );
            }
            let [merged, hashed] = [1, u32::MAX].map(|min_rows| answer(&connection, min_rows, sql));
            assert_eq!(merged, hashed, "case {case}, {sizes:?}: {sql}");
        }
    }
}

#[test]
fn rows_of_the_transaction_itself_have_no_order() {
    let mut random = StdRng::seed_from_u64(22);
    let database = tables(&mut random, [90, 90, 90]);
    let connection = database.connect().unwrap();
    connection.execute("BEGIN").unwrap();
    let before = answer(&connection, 1, JOINS[0].0).len();
    connection.execute("INSERT INTO a VALUES (1000, 1, 1, 'own'); INSERT INTO b VALUES (1000, 1, 1, 'own')").unwrap();
    for (sql, _) in JOINS {
        assert!(!merges(&connection, 1, sql), "{sql}");
    }
    assert_eq!(answer(&connection, 1, JOINS[0].0).len(), before + 1);
    connection.execute("ROLLBACK; BEGIN; DELETE FROM a WHERE k = 3; DELETE FROM b WHERE k = 4").unwrap();
    for (sql, can) in JOINS {
        assert_eq!(merges(&connection, 1, sql), can, "{sql}");
        assert_eq!(answer(&connection, 1, sql), answer(&connection, u32::MAX, sql), "{sql}");
    }
}

#[test]
fn large_tables_merge_unless_keys_are_few() {
    let database = Database::in_memory_with(OpenOptions::new().background(false).segment_rows(16_384)).unwrap();
    let connection = database.connect().unwrap();
    connection
        .execute(
            "CREATE TABLE heads (k BIGINT PRIMARY KEY, v INTEGER NOT NULL, t TEXT NOT NULL); \
             CREATE TABLE lines (k BIGINT, n INTEGER, v INTEGER NOT NULL, PRIMARY KEY (k, n)); \
             CREATE TABLE names (v INTEGER PRIMARY KEY, name TEXT); \
             INSERT INTO heads SELECT g * 3, g % 50, 't' FROM generate_series(1, 120000) t(g); \
             INSERT INTO lines SELECT g / 2, g % 2, g % 1000 FROM generate_series(1, 400000) t(g); \
             INSERT INTO names SELECT g, 'n' || g FROM generate_series(1, 50) t(g)",
        )
        .unwrap();
    ["heads", "lines", "names"].iter().for_each(|table| merge(&database, table));
    connection.execute("SET threads = 2; RESET merge_join_min_rows").unwrap();
    let default = rows(&connection, "SHOW merge_join_min_rows").concat().parse().unwrap();
    for (sql, expected) in [
        ("SELECT count(*), sum(lines.v) FROM heads JOIN lines ON heads.k = lines.k", true),
        ("SELECT count(*) FROM lines WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.k = lines.k)", true),
        // The keys of few rows are told to the scan of the others.
        ("SELECT count(*), sum(lines.v) FROM heads JOIN lines ON heads.k = lines.k WHERE heads.v = 7", false),
        (
            "SELECT count(*) FROM heads JOIN lines ON heads.k = lines.k JOIN names ON names.v = heads.v WHERE name = 'n4'",
            false,
        ),
        // A small table.
        ("SELECT count(*) FROM names JOIN lines ON names.v = lines.k", false),
    ] {
        assert_eq!(merges(&connection, default, sql), expected, "{sql}");
        assert_eq!(answer(&connection, default, sql), answer(&connection, u32::MAX, sql), "{sql}");
    }
}

/// A condition is asked about pairs whose keys are equal, all of them, as a hash join does.
#[test]
fn conditions_that_may_fail_are_asked_about_equal_keys() {
    let database = Database::in_memory_with(OpenOptions::new().background(false)).unwrap();
    let connection = database.connect().unwrap();
    for (name, y) in [("a", "n + 4"), ("b", "n + 3")] {
        connection
            .execute(&format!(
                "CREATE TABLE {name} (k INTEGER, n BIGINT, x INTEGER, y INTEGER, PRIMARY KEY (k, n)); \
                 INSERT INTO {name} SELECT g / 4, g % 4, g % 4, {} FROM generate_series(0, 399) t(g)",
                y.replace('n', "g % 4")
            ))
            .unwrap();
        merge(&database, name);
    }
    for sql in [
        "SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.x = b.x AND 100 / (a.y - b.y) > 0",
        "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.x = b.x AND 100 / (a.y - b.y) > 0)",
        "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.x = b.x AND 100 / (a.y - b.y) < 0)",
    ] {
        assert!(merges(&connection, 1, sql), "{sql}");
        assert_eq!(answer(&connection, 1, sql), ["400"], "{sql}");
        assert_eq!(answer(&connection, u32::MAX, sql), ["400"], "{sql}");
    }
}
