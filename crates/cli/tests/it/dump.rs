//! `mainstem dump`, and dumps of PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{run, text};

const FURNISH: &str = "CREATE SCHEMA \"Sales\";
    CREATE TABLE item (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name VARCHAR(20) DEFAULT 'it''s',
        price DECIMAL(12, 2) CHECK (price >= 0), made TIMESTAMPTZ, raw BYTEA, ok BOOLEAN, f DOUBLE PRECISION);
    CREATE TABLE \"Sales\".\"Order Line\" (\"No\" INTEGER, note TEXT, UNIQUE (\"No\")) WITH (segment_rows = 100);
    CREATE TABLE nothing (a INTEGER);
    CREATE VIEW cheap AS SELECT id, name FROM item WHERE price < 5;
    INSERT INTO item (name, price, made, raw, ok, f) VALUES
        (E'tab\\there', 1.5, '2024-02-29 12:00:00+00', '\\x00ff', true, 'NaN'), (E'\\\\.', 7, NULL, NULL, false, 1e300),
        (E'two\\nlines', NULL, NULL, '\\x', NULL, -0.5), (NULL, 2, NULL, NULL, NULL, NULL), ('', 3, NULL, NULL, NULL, 0);
    INSERT INTO \"Sales\".\"Order Line\" SELECT n, E'\\\\N' FROM generate_series(1, 1000) AS s(n);";

const SHOW: [&str; 4] = [
    "SELECT * FROM item ORDER BY id",
    "SELECT count(*), sum(\"No\"), min(note) FROM \"Sales\".\"Order Line\"",
    "SELECT * FROM cheap ORDER BY id",
    "SELECT count(*) FROM nothing",
];

fn shown(database: &Path) -> Vec<String> {
    SHOW.iter().map(|sql| run([text(database), "-c", sql]).ok()).collect()
}

#[test]
fn a_dump_restores_into_an_equal_database() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    run([text(&first), "-c", FURNISH]).ok();
    let printed = run(["dump", text(&first)]).ok();
    let file = dir.path().join("dump.sql");
    assert_eq!(run(["dump", text(&first), "-o", text(&file)]).ok(), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), printed);
    run([text(&second), "-f", text(&file)]).ok();
    assert_eq!(shown(&first), shown(&second));
    // What the second one says of itself is the same.
    assert_eq!(run(["dump", text(&second)]).ok(), printed);
    let insert = "INSERT INTO item (name) VALUES ('next'); SELECT max(id) FROM item";
    assert_eq!(run([text(&first), "-c", insert]).ok(), run([text(&second), "-c", insert]).ok());
    // Into one that has such tables nothing comes.
    run([text(&second), "-f", text(&file)]).failed("42P06");
}

#[test]
fn a_dump_that_fails_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dump.sql");
    run(["dump", text(&dir.path().join("nowhere")), "-o", text(&file)]).failed("58P01");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

fn dump_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(name)
}

/// Written by pg_dump 15, with COPY, and by one of the form of version 18, with INSERT.
#[test]
fn dumps_of_postgresql_are_read() {
    for name in ["postgres15.sql", "postgres18_inserts.sql"] {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("db");
        let ran = run([text(&database), "--format", "none", "-f", text(&dump_of(name))]);
        assert!(ran.status == 0 && ran.err.contains("foreign keys are not enforced"), "{name}: {}", ran.err);
        let ask = |sql: &str| run([text(&database), "-c", sql]).ok();
        assert_eq!(
            ask("SELECT id, name, email, joined, balance FROM customer ORDER BY id"),
            "id,name,email,joined,balance\n1,Ann,ann@example.org,2024-02-29 12:00:00,0.00\n\
             2,Bo\tb,,2023-01-01 00:00:00,0.00\n3,\"Line\nbreak \\ back\",\"\",,0.00\n",
            "{name}"
        );
        assert_eq!(ask("SELECT count(*), sum(amount) FROM shop.sale"), "count,sum\n3,14\n");
        assert_eq!(
            ask("SELECT customer, round(total, 2) AS total FROM shop.revenue ORDER BY customer"),
            "customer,total\n1,30.07\n2,0.01\n"
        );
        // Numbers go on where they were, and keys are enforced.
        assert_eq!(
            ask("INSERT INTO customer (name) VALUES ('Cy'); SELECT max(id), count(*) FROM customer"),
            "max,count\n4,4\n"
        );
        let product = "INSERT INTO shop.product (code, price) VALUES ('C3', 1); SELECT max(id) FROM shop.product";
        assert_eq!(ask(product), "max\n3\n");
        for (sql, state) in [
            ("INSERT INTO customer (id, name) VALUES (1, 'again')", "23505"),
            ("INSERT INTO customer (name, email) VALUES ('x', 'ann@example.org')", "23505"),
            ("INSERT INTO customer (name, balance) VALUES ('x', -5000)", "23514"),
            ("INSERT INTO shop.product (code, price) VALUES ('A1', 1)", "23505"),
            ("INSERT INTO shop.sale (customer, product, at) VALUES (NULL, 1, now())", "23502"),
        ] {
            run([text(&database), "-c", sql]).failed(state);
        }
    }
}

#[test]
fn behind_restrict_no_command_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    fs::write(&file, "\\restrict key\nSELECT 1 AS a;\n\\i other.sql\n").unwrap();
    let ran = run(["-f", text(&file)]);
    assert_eq!(ran.out, "a\n1\n");
    assert!(ran.failed("42601").contains("\\restrict"));
    for text_of in ["\\restrict key\n\\unrestrict other\n", "\\unrestrict key\n", "\\restrict\n"] {
        fs::write(&file, text_of).unwrap();
        run(["-f", text(&file)]).failed("42601");
    }
    fs::write(&file, "\\restrict key\nSELECT 1 AS a;\n\\unrestrict key\n\\x on\n").unwrap();
    run(["-f", text(&file)]).ok();
}
