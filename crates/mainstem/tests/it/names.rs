//! What the columns of a result are called.

use super::support::{quiet, rows};

/// PostgreSQL's names, but for those that repeat.
#[test]
fn columns_without_a_name_are_called_as_in_postgresql() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
    for (sql, names) in [
        ("SELECT count(*), 1, 1::int, '2'::text, sum(k), max(k) - 1 FROM t", "count ?column? int4 text sum ?column?_6"),
        ("SELECT v::text, (k), -v, t.k + 1 AS w FROM t", "v k ?column? w"),
        ("SELECT count(*), count(k), max(v) AS m FROM t", "count count_2 m"),
        (
            "SELECT CASE WHEN true THEN 1 END, CASE WHEN true THEN 1 ELSE k END, coalesce(k, 1), (SELECT max(v) FROM t) FROM t",
            "case k coalesce max",
        ),
        (
            "SELECT extract(year FROM now()), trim(BOTH 'b' FROM 'a'), substring('abc' FROM 1), position('a' IN 'b'), ceil(1.2)",
            "extract btrim substring position ceil",
        ),
        (
            "SELECT k BETWEEN 1 AND 2, CAST(k AS DECIMAL(10, 2)), upper('a') || 'b', (k + 1)::bigint FROM t",
            "?column? k ?column?_3 int8",
        ),
        ("SELECT *, k + 1, count(*) OVER () FROM t", "k v ?column? count"),
        ("SELECT k + 1, * FROM t", "?column? k v"),
        ("SELECT 1 UNION SELECT 2", "?column?"),
        ("SELECT row_number() OVER (ORDER BY k) FROM t ORDER BY 1 LIMIT 1", "row_number"),
        ("SELECT DISTINCT v + 1 FROM t ORDER BY 1", "?column?"),
        ("SELECT mod(k, 2), every(v > 0) FROM t GROUP BY k ORDER BY 1", "mod every"),
        ("SELECT sum(k) AS count, count(*) FROM t", "count count_2"),
        ("SELECT 'a' SIMILAR TO 'b', DATE '2024-01-01', '{1}'::int[]", "?column? date int4"),
        ("VALUES (1, 2)", "column1 column2"),
        // By both paths.
        ("SELECT v + 1, length(v::text) FROM t WHERE k = 1", "?column? length"),
        ("SELECT k, v + 1 FROM t WHERE k = $1", "k ?column?"),
    ] {
        for point_path in ["on", "off"] {
            connection.execute(&format!("SET point_path = {point_path}")).unwrap();
            let statement = connection.prepare(sql).unwrap();
            let columns = statement.columns().unwrap();
            let prepared: Vec<&str> = columns.iter().map(|column| column.name()).collect();
            assert_eq!(prepared.join(" "), names, "{sql}");
            if !sql.contains('$') {
                let result = connection.query(sql).unwrap();
                let schema = result.schema();
                let shown: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                assert_eq!(shown.join(" "), names, "{sql}");
            }
        }
    }
    connection.execute("CREATE VIEW w AS SELECT count(*), max(v) FROM t").unwrap();
    assert_eq!(rows(&connection, "SELECT count, max FROM w"), ["1|1"]);
    connection.execute("CREATE TABLE c AS SELECT count(*), max(v) FROM t").unwrap();
    assert_eq!(rows(&connection, "SELECT count, max FROM c"), ["1|1"]);
    let returned = connection.query("UPDATE t SET v = 5 RETURNING k, v + 1").unwrap();
    assert_eq!(returned.schema().field(1).name(), "?column?");
}

/// The character behind the names of tables that are called like a column, or like another table.
const MARK: char = '\u{2060}';

#[test]
fn names_of_tables_come_out_as_the_statement_says_them() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE SCHEMA s; CREATE TABLE s.t (t INTEGER, a INTEGER); CREATE TABLE t (t INTEGER, a INTEGER); \
             INSERT INTO t VALUES (1, 0); INSERT INTO s.t VALUES (1, 2)",
        )
        .unwrap();
    let both = "FROM s.t JOIN public.t ON s.t.t = public.t.t";
    for query in [
        "SELECT t.t, max(t.a) FROM t GROUP BY t.t HAVING max(t.a) > 0".to_owned(),
        format!("SELECT s.t.t, public.t.a {both}"),
        format!("SELECT s.t.*, max(s.t.a) OVER (), public.t.* {both}"),
    ] {
        for explain in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE"] {
            let shown = rows(&connection, &format!("{explain} {query}")).join("\n");
            assert!(shown.contains("t") && !shown.contains(MARK), "{explain} {query}: {shown}");
        }
        let result = connection.query(&query).unwrap();
        for field in result.schema().fields() {
            assert!(!field.name().contains(MARK), "{query}: {field}");
        }
        drop(result);
    }
}
