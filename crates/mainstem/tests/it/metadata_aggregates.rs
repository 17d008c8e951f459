//! Aggregates that metadata answers, wholly or in part, are those of the rows.

use mainstem::{Connection, Database, OpenOptions};
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::TransactionMode;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::support::rows;

/// In memory; nothing moves by itself.
fn database(segment_rows: u32) -> Database {
    Database::in_memory_with(OpenOptions::new().background(false).segment_rows(segment_rows)).unwrap()
}

fn table(database: &Database) -> TableId {
    let look = database.storage().begin(TransactionMode::default()).unwrap();
    look.catalog().tables().next().unwrap().id
}

/// How many segments EXPLAIN ANALYZE says were answered from metadata, of those that may match; `None` if the plan asks
/// no metadata.
fn from_metadata(connection: &Connection, sql: &str) -> Option<(usize, usize)> {
    let plan = rows(connection, &format!("EXPLAIN ANALYZE {sql}")).concat();
    let number = |name: &str| -> usize {
        let (_, rest) = plan.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {plan}"));
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    plan.contains("MetadataAggregateExec")
        .then(|| (number("segments_from_metadata"), number("segments") - number("segments_pruned")))
}

/// Of how many segments EXPLAIN ANALYZE says that codes were added up.
fn on_codes(connection: &Connection, sql: &str) -> usize {
    let plan = rows(connection, &format!("EXPLAIN ANALYZE {sql}")).concat();
    let (_, rest) = plan.split_once("segments_on_codes=").unwrap_or_else(|| panic!("no codes in {plan}"));
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// The same query, one of whose predicates is none of the store's.
fn of_rows(sql: &str) -> String {
    match sql.split_once(" FROM t WHERE ") {
        Some((before, rest)) => format!("{before} FROM t WHERE k + 1 > 0 AND {rest}"),
        None => sql.replace(" FROM t", " FROM t WHERE k + 1 > 0"),
    }
}

/// Connections that keep plans and that do not, without the point path.
fn connections(database: &Database) -> [Connection; 2] {
    ["force_generic_plan", "force_custom_plan"].map(|mode| {
        let connection = database.connect().unwrap();
        connection.execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
        connection.execute("SET point_path = off").unwrap();
        connection
    })
}

#[test]
fn whole_segments_without_deletes_are_answered_from_metadata() {
    let database = database(8_192);
    let connection = database.connect().unwrap();
    let script = "CREATE TABLE t (k BIGINT PRIMARY KEY, v INTEGER, d DECIMAL(12, 2), f DOUBLE PRECISION, t TEXT);
                  INSERT INTO t SELECT x, CASE WHEN x % 9 = 0 THEN NULL ELSE x % 1000 END, x * 0.25, x * 0.5,
                  't' || x % 100 FROM generate_series(0, 99999) AS g (x)";
    connection.execute_batch(script).unwrap();
    database.storage().freeze(table(&database)).unwrap();
    database.storage().flush(table(&database)).unwrap();
    let all = 13;
    for threads in [1, 4] {
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        let check = |sql: &str, expected: Option<(usize, usize)>| {
            assert_eq!(from_metadata(&connection, sql), expected, "{sql}, {threads} threads");
            assert_eq!(from_metadata(&connection, &of_rows(sql)), None, "{sql}");
            assert_eq!(rows(&connection, sql), rows(&connection, &of_rows(sql)), "{sql}, {threads} threads");
        };
        check("SELECT sum(v), avg(v), count(v), sum(d), avg(d) FROM t", Some((all, all)));
        check("SELECT count(*) FROM t WHERE k >= 8192", Some((12, 12)));
        check("SELECT count(*), min(t), max(f), sum(d) FROM t WHERE k >= 10000 AND k < 50000", Some((4, 6)));
        check("SELECT max(v) FROM t WHERE k >= 100 AND k < 8000", None);
        check("SELECT min(a), max(b), sum(a) FROM (SELECT d AS a, k AS b FROM t WHERE k > 50000) AS x", Some((6, 7)));
        // What metadata does not tell, codes do: of segments that are cut, of counts and sums.
        check("SELECT count(*), sum(v), avg(d), count(v) FROM t WHERE k >= 10000 AND k < 50000", Some((4, 6)));
        check("SELECT sum(v), sum(d) FROM t WHERE v < 100 AND t IN ('t5', 't7', 't16')", Some((0, all)));
        check("SELECT count(*) FROM t WHERE v IS NULL", Some((0, all)));
        check("SELECT sum(v) FROM t WHERE v < 0", None);
        for (sql, expected) in [
            ("SELECT count(*), sum(v) FROM t WHERE k >= 10000 AND k < 50000", 2),
            ("SELECT count(*), sum(v), max(k) FROM t WHERE k >= 10000 AND k < 50000", 0),
            ("SELECT sum(v) FROM t WHERE v < 100", all),
        ] {
            assert_eq!(on_codes(&connection, sql), expected, "{sql}");
        }
        // Not what metadata knows, for any of them.
        check("SELECT count(*), sum(f) FROM t WHERE k >= 8192", None);
        check("SELECT count(DISTINCT v), max(k) FROM t WHERE k >= 8192", None);
        check("SELECT sum(v) FILTER (WHERE k > 7), max(k) FROM t WHERE k >= 8192", None);
        check("SELECT sum(v + 0), max(k) FROM t WHERE k >= 8192", None);
    }
    // Deletes of this and another transaction, and rows in the delta.
    connection.execute("DELETE FROM t WHERE k IN (20000, 90000)").unwrap();
    connection.execute("INSERT INTO t VALUES (200000, -5, 1, 2, 'new')").unwrap();
    let sum = "SELECT sum(v), min(k), max(k) FROM t WHERE k >= 8192";
    assert_eq!(from_metadata(&connection, sum), Some((10, 12)));
    assert_eq!(rows(&connection, sum), rows(&connection, &of_rows(sum)));
    assert_eq!(from_metadata(&connection, "SELECT count(*), count(k) FROM t WHERE k >= 8192"), Some((12, 12)));
    assert_eq!(on_codes(&connection, "SELECT sum(v), count(*) FROM t WHERE k >= 8192"), 2, "those with deletes");
    let told = rows(&connection, "EXPLAIN ANALYZE SELECT sum(v), count(*) FROM t WHERE k >= 8192").concat();
    // Of two segments, each of which has lost a row, and of the row in the delta.
    assert!(told.contains("added_from_main=16.38 K") && told.contains("added_from_delta=1,"), "{told}");
    let sums = "SELECT sum(v), avg(d), count(v), count(*) FROM t WHERE k >= 8192";
    assert_eq!(rows(&connection, sums), rows(&connection, &of_rows(sums)));
    connection.execute("BEGIN").unwrap();
    connection.execute("DELETE FROM t WHERE k = 30000").unwrap();
    assert_eq!(on_codes(&connection, "SELECT sum(v), count(*) FROM t WHERE k >= 8192"), 3, "and its own");
    assert_eq!(rows(&connection, sums), rows(&connection, &of_rows(sums)));
    assert_eq!(from_metadata(&connection, sum), Some((9, 12)));
    assert_eq!(rows(&connection, sum), rows(&connection, &of_rows(sum)));
    assert_eq!(from_metadata(&database.connect().unwrap(), sum), Some((10, 12)));
    connection.execute("ROLLBACK").unwrap();
}

#[test]
fn shortened_bounds_are_no_answers() {
    let database = database(100);
    let connection = database.connect().unwrap();
    let script = "CREATE TABLE t (k INTEGER PRIMARY KEY, t TEXT);
                  INSERT INTO t SELECT x, CASE WHEN x = 250 THEN repeat('long', 20) ELSE 't' || x END
                  FROM generate_series(0, 399) AS g (x)";
    connection.execute_batch(script).unwrap();
    database.storage().merge(table(&database)).unwrap();
    for (aggregate, expected) in [("min", (3, 4)), ("max", (4, 4)), ("count", (4, 4))] {
        let sql = format!("SELECT {aggregate}(t) FROM t WHERE k >= 0");
        assert_eq!(from_metadata(&connection, &sql), Some(expected), "{sql}");
        assert_eq!(rows(&connection, &sql), rows(&connection, &of_rows(&sql)), "{sql}");
    }
}

/// Of tables of few rows physical plans are kept, and bound to a snapshot at each run.
#[test]
fn kept_plans_answer_from_the_metadata_of_their_run() {
    let database = database(10);
    let connections = connections(&database);
    let [kept, planned] = &connections;
    let script = "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER);
                  INSERT INTO t SELECT x, x % 13 FROM generate_series(1, 400) AS g (x)";
    planned.execute_batch(script).unwrap();
    let id = table(&database);
    let changes = [
        "SELECT 1",
        "DELETE FROM t WHERE k % 50 = 0",
        "INSERT INTO t SELECT x, x FROM generate_series(1001, 1010) AS g (x)",
        "UPDATE t SET v = v + 100 WHERE k BETWEEN 100 AND 130",
        "DELETE FROM t WHERE k > 300",
    ];
    database.storage().merge(id).unwrap();
    let before = kept.kept_plan_runs();
    for (nth, change) in changes.iter().enumerate() {
        planned.execute(change).unwrap();
        for _ in 0..2 {
            let ranges = [(0, 2000), (20, 90), (95, 400), (500, 600), (1000, 2000)].into_iter().enumerate();
            for ((nth, (from, to)), bounds) in ranges.flat_map(|range| ["", ", min(v), max(k)"].map(|b| (range, b))) {
                let sums = if nth % 2 == 0 { "sum(v), count(v)" } else { "avg(v), count(*)" };
                let sql = format!("SELECT {sums}{bounds} FROM t WHERE v >= 0 AND k > {from} AND k <= {to} + 0");
                let expected = rows(planned, &of_rows(&sql));
                assert_eq!(rows(kept, &sql), expected, "{sql} after {change}");
                assert_eq!(rows(planned, &sql), expected, "{sql} after {change}");
            }
            // Of the transaction itself.
            kept.execute("BEGIN").unwrap();
            kept.execute("DELETE FROM t WHERE k IN (25, 26, 77)").unwrap();
            for bounds in ["", ", min(v), max(k)"] {
                let sql = format!("SELECT sum(v), count(v){bounds} FROM t WHERE v >= 0 AND k > 20 AND k <= 90 + 0");
                assert_eq!(rows(kept, &sql), rows(kept, &of_rows(&sql)), "after {change}");
            }
            kept.execute("ROLLBACK").unwrap();
            if nth % 2 == 1 {
                database.storage().merge(id).unwrap();
            }
        }
    }
    assert!(kept.kept_plan_runs() - before >= 40, "{}", kept.kept_plan_runs() - before);
}

const COLUMNS: [&str; 8] = ["k", "v", "s", "d", "f", "t", "day", "b"];

/// Aggregates over columns, one of them without a type that SUM takes.
fn aggregates(rng: &mut StdRng, columns: &[&str]) -> String {
    let mut all = Vec::new();
    for _ in 0..rng.random_range(1..5) {
        let column = columns.choose(rng).unwrap();
        let functions: &[&str] = match *column {
            "f" | "t" | "day" => &["count", "min", "max"],
            _ => &["count", "min", "max", "sum", "avg"],
        };
        let function = functions.choose(rng).unwrap();
        all.push(if rng.random_ratio(1, 6) { "count(*)".to_owned() } else { format!("{function}({column})") });
    }
    all.join(", ")
}

fn condition(rng: &mut StdRng, columns: &[&str]) -> String {
    let column = *columns.choose(rng).unwrap();
    let op = ["<", "<=", ">", ">=", "=", "<>"].choose(rng).unwrap();
    let number: i32 = rng.random_range(-20..320);
    let value = match column {
        _ if rng.random_ratio(1, 8) => return format!("{column} IS NOT NULL"),
        _ if rng.random_ratio(1, 16) => return format!("{column} IS NULL"),
        "t" => format!("'t{}'", number.abs() % 40),
        "day" => format!("DATE '2024-01-01' + {number}"),
        "d" => format!("{number}.25"),
        "f" if number % 9 == 0 => "'NaN'::DOUBLE PRECISION".to_owned(),
        "f" => format!("{number}.5::DOUBLE PRECISION"),
        _ => number.to_string(),
    };
    format!("{column} {op} {value}")
}

fn new_rows(from: i64, to: i64, columns: &[&str]) -> String {
    let more = if columns.contains(&"w") { ", x % 4" } else { "" };
    format!(
        "INSERT INTO t SELECT x, CASE WHEN x % 7 = 0 THEN NULL ELSE x * 31 % 83 - 20 END, (x % 19)::SMALLINT,
         CASE WHEN x % 50 < 25 THEN NULL ELSE x * 1.75 END,
         CASE WHEN x % 41 = 0 THEN 'NaN'::DOUBLE PRECISION WHEN x % 43 = 0 THEN '-0.0'::DOUBLE PRECISION
              WHEN x % 11 = 0 THEN NULL ELSE x * 0.5 - 20 END,
         CASE WHEN x % 60 = 1 THEN repeat('t', 40) || x ELSE 't' || x % 40 END,
         DATE '2024-01-01' + x::INTEGER, x * 123456789012345{more} FROM generate_series({from}, {to}) AS g (x)"
    )
}

#[test]
fn aggregates_of_random_tables_are_those_of_their_rows() {
    let mut answered = 0;
    for seed in 0..6 {
        let mut rng = StdRng::seed_from_u64(seed);
        let database = database(*[5, 12, 40].choose(&mut rng).unwrap());
        let connections = connections(&database);
        for connection in &connections {
            connection.execute(&format!("SET threads = {}", 1 + seed % 3)).unwrap();
        }
        let writer = &connections[1];
        writer
            .execute(
                "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, s SMALLINT, d DECIMAL(12, 2), f DOUBLE PRECISION,
                 t TEXT, day DATE, b BIGINT)",
            )
            .unwrap();
        let (id, mut next, mut columns) = (table(&database), 0, COLUMNS.to_vec());
        for round in 0..14 {
            let (before, from, to) = (next, rng.random_range(0..=next), rng.random_range(0..20));
            let range = format!("k BETWEEN {from} AND {}", from + to);
            let change = match rng.random_range(0..9) {
                0..4 => {
                    next += rng.random_range(1..70);
                    new_rows(before, next - 1, &columns)
                }
                4 => format!("DELETE FROM t WHERE {range}"),
                5 => format!("DELETE FROM t WHERE k % 37 = {}", from % 37),
                6 => format!("UPDATE t SET v = v - 30, f = -f WHERE {range}"),
                7 if round > 5 && columns.len() == COLUMNS.len() => {
                    columns.push("w");
                    "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 3".to_owned()
                }
                _ => format!("UPDATE t SET t = NULL, d = 5, k = k + 0 WHERE {range}"),
            };
            writer.execute(&change).unwrap();
            match rng.random_range(0..4) {
                0 => database.storage().freeze(id).unwrap(),
                1 | 2 => {
                    database.storage().freeze(id).unwrap();
                    database.storage().flush(id).unwrap();
                }
                _ => database.storage().merge(id).unwrap(),
            }
            let is_in_transaction = rng.random_ratio(1, 3);
            if is_in_transaction {
                for connection in &connections {
                    connection.execute("BEGIN").unwrap();
                    connection.execute(&format!("DELETE FROM t WHERE k = {}", from / 2)).unwrap();
                    connection.execute(&new_rows(5_000, 5_003, &columns)).unwrap();
                }
            }
            for _ in 0..25 {
                let conditions: Vec<_> = (0..rng.random_range(0..4)).map(|_| condition(&mut rng, &columns)).collect();
                let mut sql = format!("SELECT {} FROM t", aggregates(&mut rng, &columns));
                if !conditions.is_empty() {
                    sql += &format!(" WHERE {}", conditions.join(" AND "));
                }
                let expected = rows(writer, &of_rows(&sql));
                for connection in &connections {
                    assert_eq!(rows(connection, &sql), expected, "seed {seed}, round {round}: {sql}");
                }
                answered += from_metadata(writer, &sql).map_or(0, |(segments, _)| segments);
            }
            if is_in_transaction {
                for connection in &connections {
                    connection.execute("ROLLBACK").unwrap();
                }
            }
        }
    }
    assert!(answered > 1_000, "{answered}");
}
