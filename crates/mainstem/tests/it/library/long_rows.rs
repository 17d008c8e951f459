//! A row of a file that memory has no room for is told, with its line, and nothing else changes.

use std::fs;

use mainstem::{Database, OpenOptions};

#[test]
fn rows_longer_than_memory_allows_are_told() {
    let database = Database::in_memory_with(OpenOptions::new().memory_limit(64 << 20)).unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE t (n BIGINT, v TEXT); INSERT INTO t VALUES (0, 'before')").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let long = "x".repeat(9 << 20);
    let half = "x".repeat(3 << 20);
    // In quotes that do not end there is no end of a row.
    let open = format!("1,a\n2,\"{}", "x\n".repeat(5 << 20));
    for (csv, line) in [(format!("1,a\n2,{long}\n3,b\n"), 2), (format!("1,{half}\n2,{half}\n3,{long}"), 3), (open, 2)] {
        let csv_file = file("t.csv", &csv);
        let text = if csv.contains('"') { format!("1,a\n2,{long}") } else { csv.clone() };
        let text_file = file("t.txt", &text.replace(',', "\t"));
        for sql in [
            format!("COPY t FROM '{csv_file}' (FORMAT csv)"),
            format!("COPY t FROM '{csv_file}' (FORMAT csv, ESCAPE '\\')"),
            format!("COPY t FROM '{text_file}'"),
            format!("SELECT count(*) FROM read_csv('{csv_file}', columns => 'n BIGINT, v TEXT', header => false)"),
        ] {
            let run = || match sql.starts_with("COPY") {
                true => connection.execute(&sql).map(drop),
                false => connection.query(&sql).and_then(|rows| rows.collect_batches()).map(drop),
            };
            let error = run().unwrap_err();
            assert_eq!(error.sqlstate(), "53200", "{sql}: {error}");
            let told = error.to_string();
            assert!(told.contains("longer than 4MB") && told.contains("memory_limit"), "{sql}: {told}");
            assert!(told.contains(&format!("line {line}")), "{sql}: {told}");
        }
        let error = connection.copy_in("COPY t FROM STDIN (FORMAT csv)", csv.as_bytes()).unwrap_err();
        assert!(error.sqlstate() == "53200" && error.to_string().contains(&format!("line {line}")), "{error}");
    }
    let count: i64 = connection.query_row("SELECT count(*) FROM t", ()).unwrap().get(0).unwrap();
    assert_eq!(count, 1, "nothing was inserted");
    // With more memory it is a row like others.
    connection.execute("SET memory_limit = '512MB'").unwrap();
    let path = file("t.csv", &format!("1,a\n2,{long}\n3,b\n"));
    assert_eq!(connection.execute(&format!("COPY t FROM '{path}' (FORMAT csv)")).unwrap(), 3);
    let length: i64 = connection.query_row("SELECT max(length(v)) FROM t", ()).unwrap().get(0).unwrap();
    assert_eq!(length, 9 << 20);
}
