//! Canaries: each fails when DataFusion gives the right answer by itself. What a file makes of such queries may go, and
//! the file with it.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;

/// The rows of `sql` as plain DataFusion has them, sorted; None if it cannot plan or run what it has read.
fn plain(sql: &str) -> Option<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = SessionContext::new();
    let planned = runtime.block_on(context.sql(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches = runtime.block_on(planned.collect()).ok()?;
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            rows.push(cells.join(" "));
        }
    }
    rows.sort();
    Some(rows)
}

#[test]
fn canary_subqueries_and_set_operations_have_other_answers() {
    let (t, u) = ("(VALUES (1), (2), (3)) AS t(x)", "(VALUES (1), (2), (2)) AS u(y)");
    let cases = [
        // `analyze::set_operations`
        ("VALUES (1), (1), (1) EXCEPT ALL VALUES (1)".to_owned(), "1,1"),
        ("VALUES (1), (1), (1) INTERSECT ALL VALUES (1)".to_owned(), "1"),
        // `values`
        (format!("SELECT * FROM (VALUES ((SELECT max(y) FROM {u}))) AS v(x)"), "2"),
        // `null_aware_in`
        (
            "SELECT x IN (SELECT y FROM (VALUES (1), (NULL)) AS v(y)) FROM (VALUES (1), (2)) AS t(x)".to_owned(),
            "NULL,true",
        ),
        // `rule`
        (format!("SELECT EXISTS (SELECT 1 FROM {u} WHERE y > x) FROM {t}"), "false,false,true"),
        // `simple_correlation`, `unnest`
        (format!("SELECT (SELECT count(*) FROM {u} WHERE y < x) FROM {t}"), "0,1,3"),
        (format!("SELECT (SELECT y FROM {u} WHERE y <= x ORDER BY y DESC LIMIT 1) FROM {t}"), "1,2,2"),
        (format!("SELECT (SELECT count(DISTINCT y) FROM {u} WHERE y <= x) FROM {t}"), "1,2,2"),
    ];
    for (sql, right) in cases {
        let rows = plain(&sql).map(|rows| rows.join(","));
        assert_ne!(rows.as_deref(), Some(right), "DataFusion has the right answer to {sql} now");
    }
}
