//! `--format`.

use crate::program::run;

const ROWS: &str = "CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT, price DECIMAL(9, 2)); \
    INSERT INTO t VALUES (1, 'a, b', 1.50), (2, '', NULL), (3, NULL, -0.05);";
const QUERY: &str = "SELECT * FROM t ORDER BY n";

fn formatted(format: &str) -> String {
    run(["--format", format, "-c", ROWS, "-c", QUERY]).ok()
}

#[test]
fn csv_is_what_a_pipe_gets() {
    let expected = "n,name,price\n1,\"a, b\",1.50\n2,\"\",\n3,,-0.05\n";
    assert_eq!(formatted("csv"), expected);
    assert_eq!(run(["-c", ROWS, "-c", QUERY]).ok(), expected);
}

#[test]
fn tsv() {
    assert_eq!(formatted("tsv"), "n\tname\tprice\n1\ta, b\t1.50\n2\t\"\"\t\n3\t\t-0.05\n");
}

#[test]
fn json_can_be_read() {
    let value: serde_json::Value = serde_json::from_str(&formatted("json")).unwrap();
    let expected =
        r#"[{"n":1,"name":"a, b","price":1.50},{"n":2,"name":"","price":null},{"n":3,"name":null,"price":-0.05}]"#;
    assert_eq!(value, serde_json::from_str::<serde_json::Value>(expected).unwrap());
}

#[test]
fn json_lines() {
    let expected = "{\"n\":1,\"name\":\"a, b\",\"price\":1.50}\n{\"n\":2,\"name\":\"\",\"price\":null}\n\
        {\"n\":3,\"name\":null,\"price\":-0.05}\n";
    assert_eq!(formatted("jsonl"), expected);
}

#[test]
fn a_box_names_what_each_statement_did() {
    let expected = "\
CREATE TABLE
INSERT 0 3
┌───┬──────┬───────┐
│ n │ name │ price │
├───┼──────┼───────┤
│ 1 │ a, b │  1.50 │
│ 2 │      │  NULL │
│ 3 │ NULL │ -0.05 │
└───┴──────┴───────┘
(3 rows)
";
    assert_eq!(formatted("box"), expected);
}

#[test]
fn none_runs_and_says_nothing() {
    assert_eq!(formatted("none"), "");
    run(["--format", "none", "-c", "SELECT 1 / 0"]).failed("22012");
}

#[test]
fn values_of_every_type_have_their_text() {
    let query = "SELECT CAST(true AS BOOLEAN) AS b, CAST(0.1 AS DOUBLE PRECISION) AS f, DATE '2024-02-29' AS d, \
        TIMESTAMP '2024-02-29 12:34:56.050' AS t, CAST(NULL AS INTEGER) AS n";
    assert_eq!(run(["-c", query]).ok(), "b,f,d,t,n\ntrue,0.1,2024-02-29,2024-02-29 12:34:56.05,\n");
}

/// UUID, TIME and CHAR(n), by key (without a plan) and by a scan.
#[test]
fn uuid_time_and_char_have_their_text() {
    const TABLE: &str = "CREATE TABLE t (id UUID PRIMARY KEY, at TIME, c CHAR(3)); \
        INSERT INTO t VALUES ('A0EEBC999C0B4EF8BB6D6BB9BD380A11', '13:02:03.50', 'ab'), \
        ('00000000-0000-0000-0000-000000000007', NULL, NULL);";
    let by_key = "SELECT * FROM t WHERE id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'";
    let shown = |format: &str, query: &str| run(["--format", format, "-c", TABLE, "-c", query]).ok();
    for query in [by_key, "SELECT * FROM t WHERE at IS NOT NULL"] {
        assert_eq!(shown("csv", query), "id,at,c\na0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,13:02:03.5,ab \n", "{query}");
        assert_eq!(
            shown("jsonl", query),
            "{\"id\":\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\",\"at\":\"13:02:03.5\",\"c\":\"ab \"}\n",
            "{query}"
        );
        let expected = "\
CREATE TABLE
INSERT 0 2
┌──────────────────────────────────────┬────────────┬─────┐
│ id                                   │ at         │ c   │
├──────────────────────────────────────┼────────────┼─────┤
│ a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 │ 13:02:03.5 │ ab  │
└──────────────────────────────────────┴────────────┴─────┘
(1 row)
";
        assert_eq!(shown("box", query), expected, "{query}");
    }
    let nulls = "SELECT * FROM t WHERE at IS NULL";
    assert_eq!(shown("csv", nulls), "id,at,c\n00000000-0000-0000-0000-000000000007,,\n");
    let json: serde_json::Value = serde_json::from_str(&shown("json", nulls)).unwrap();
    assert_eq!(json[0]["at"], serde_json::Value::Null);
    assert_eq!(json[0]["id"], "00000000-0000-0000-0000-000000000007");
}

#[test]
fn an_unknown_format_is_refused_with_the_known_ones() {
    let run = run(["--format", "xml", "-c", "SELECT 1"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("jsonl"), "{run:?}");
}
