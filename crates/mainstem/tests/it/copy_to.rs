//! COPY TO: what is written is what is read back, by any number of threads, whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;

use mainstem::{Connection, Database};

use super::support::{code, quiet, rows};

const COLUMNS: &str = "n INTEGER, b BOOLEAN, s SMALLINT, l BIGINT, r REAL, f DOUBLE PRECISION, d DECIMAL(38, 10), \
                       e DECIMAL(5, 0), day DATE, at TIME, ts TIMESTAMP, tz TIMESTAMPTZ, v TEXT, c CHAR(5), \
                       w VARCHAR(200), raw BYTEA, u UUID";

/// Texts that mean something in a file, as SQL literals.
const HOSTILE: [&str; 16] = [
    "''",
    "'plain'",
    "'a,b'",
    "'say \"hi\"'",
    "E'two\\nlines'",
    "E'carriage\\rreturn\\r\\n'",
    "E'\\\\.'",
    "E'\\\\N'",
    "'NULL'",
    "E'tab\\there'",
    "E'back\\\\slash\\\\'",
    "E'\\uFEFFmark'",
    "E'\\b\\f\\x0b'",
    "'\"'",
    "' blanks '",
    "'ünï\u{1F600}'",
];

/// A table `t` of all types with `count` rows, among them NULLs, ends of ranges and hostile texts.
fn fill(connection: &Connection, count: usize) {
    connection.execute(&format!("CREATE TABLE t ({COLUMNS})")).unwrap();
    let moments = ["0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31"];
    let wide = ["1e-10", "-0.05", "9999999999999999999999999999.9999999999", "-12345678901234567890"];
    let floats = ["0", "-1.5", "1e300", "'NaN'", "'-Infinity'", "1.0e-7", "123456789012345680"];
    for from in (0..count).step_by(500) {
        let values: Vec<String> = (from..count.min(from + 500))
            .map(|n| {
                let text = HOSTILE[n % HOSTILE.len()];
                let moment = moments[n % moments.len()];
                let cells = [
                    (n % 2 == 0).to_string(),
                    format!("{}", (n as i64 * 7_919) % 65_536 - 32_768),
                    [i64::MIN + 1, -1, 0, i64::MAX][n % 4].to_string(),
                    format!("CAST({} AS REAL)", ["0.1", "1e20", "'NaN'", "-2.5"][n % 4]),
                    format!("CAST({} AS DOUBLE PRECISION)", floats[n % floats.len()]),
                    wide[n % wide.len()].to_owned(),
                    format!("{}", n as i64 % 199_999 - 99_999),
                    format!("DATE '{moment}'"),
                    format!("TIME '{:02}:{:02}:{:02}.{:06}'", n % 24, n % 60, (n * 7) % 60, (n * 100) % 1_000_000),
                    format!("TIMESTAMP '{moment} 12:34:56.{:06}'", (n * 1_000) % 1_000_000),
                    format!("TIMESTAMPTZ '{moment} 23:59:59+00'"),
                    text.to_owned(),
                    "' ab'".to_owned(),
                    format!("repeat({text}, 3)"),
                    format!("'\\x{:04x}00ff'", n % 65_536),
                    format!("'00112233-4455-6677-8899-{:012x}'", n),
                ];
                // One of them is NULL, in turn; sometimes all.
                let cells = cells
                    .iter()
                    .enumerate()
                    .map(|(at, cell)| if n % 19 == at || n % 97 == 0 { "NULL" } else { cell.as_str() });
                format!("({n}, {})", cells.collect::<Vec<_>>().join(", "))
            })
            .collect();
        connection.execute(&format!("INSERT INTO t VALUES {}", values.join(", "))).unwrap();
    }
}

fn assert_same(connection: &Connection, count: usize, what: &str) {
    assert_eq!(rows(connection, "SELECT count(*) FROM u"), [count.to_string()], "{what}");
    for (one, other) in [("t", "u"), ("u", "t")] {
        let missing = rows(connection, &format!("SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}"));
        assert!(missing.is_empty(), "{what}: {one} has beside {other}: {:?}", missing.first());
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

#[test]
fn all_types_come_back_from_every_format() {
    let database = quiet();
    let connection = database.connect().unwrap();
    fill(&connection, 1_200);
    connection.execute(&format!("CREATE TABLE u ({COLUMNS})")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = quoted(&folder.path().join("rows"));
    for options in [
        "FORMAT csv",
        "FORMAT csv, HEADER",
        "FORMAT csv, DELIMITER '|', QUOTE '''', NULL 'nil'",
        "FORMAT csv, ESCAPE '\\', NULL '\\N'",
        "FORMAT csv, DELIMITER '-', QUOTE '0'",
        "FORMAT csv, DELIMITER E'\\t', NULL '0'",
        "FORMAT text",
        "FORMAT text, DELIMITER ',', HEADER",
        "FORMAT text, DELIMITER '-'",
        "FORMAT parquet",
        "FORMAT parquet, COMPRESSION snappy",
        "FORMAT parquet, COMPRESSION 'lz4'",
        "FORMAT parquet, COMPRESSION none",
    ] {
        assert_eq!(connection.execute(&format!("COPY t TO {file} ({options})")).unwrap(), 1_200, "{options}");
        connection.execute("TRUNCATE u").unwrap();
        let read = options.split(", COMPRESSION").next().unwrap();
        let copied = connection.execute(&format!("COPY u FROM {file} ({read})"));
        assert_eq!(copied.unwrap_or_else(|e| panic!("{options}: {e}")), 1_200, "{options}");
        assert_same(&connection, 1_200, options);
    }
}

/// More rows than a piece or a row group has, by several threads: the file has them in the order of the query.
#[test]
fn several_threads_keep_the_order_of_the_query() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 3").unwrap();
    let query = "SELECT 300000 - n AS n, CASE WHEN n % 1000 = 0 THEN repeat('long', 100) ELSE 'a,b' END AS v \
                 FROM generate_series(1, 300000) AS s(n) ORDER BY s.n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    assert_eq!(connection.execute(&format!("COPY ({query}) TO {}", quoted(&path))).unwrap(), 300_000);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = 0;
    for (line, n) in text.lines().zip((0..300_000).rev()) {
        let value = if (300_000 - n) % 1_000 == 0 { "long".repeat(100) } else { "\"a,b\"".to_owned() };
        assert_eq!(line, format!("{n},{value}"));
        lines += 1;
    }
    assert_eq!(lines, 300_000);
    // The same through a stream.
    let mut streamed = Vec::new();
    connection.copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT csv)"), &mut streamed).unwrap();
    assert!(streamed == text.as_bytes());
    let path = folder.path().join("rows.parquet");
    assert_eq!(connection.execute(&format!("COPY ({query}) TO {}", quoted(&path))).unwrap(), 300_000);
    connection.execute("CREATE TABLE p (n INTEGER, v TEXT)").unwrap();
    assert_eq!(connection.execute(&format!("COPY p FROM {}", quoted(&path))).unwrap(), 300_000);
    assert_eq!(
        rows(&connection, "SELECT count(*), min(n), max(n), sum(n), sum(length(v)) FROM p"),
        [format!("300000|0|299999|{}|{}", 299_999_i64 * 150_000, 300 * 400 + 299_700 * 3)]
    );
    // In row groups of the size of a segment.
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(&bytes[bytes.len() - 4..], b"PAR1");
}

/// What stands below `folder`: paths, and what is in files.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

#[test]
fn partitions_are_folders() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (n INTEGER, country TEXT, year INTEGER);
             INSERT INTO t VALUES (5, 'DE', 2024), (1, 'DE', 2023), (2, 'a/b', 2023), (3, NULL, 2023), (4, 'DE', 2023)",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let to = quoted(&target);
    let copy =
        format!("COPY (SELECT * FROM t ORDER BY n DESC) TO {to} (FORMAT csv, HEADER, PARTITION_BY (country, year))");
    assert_eq!(connection.execute(&copy).unwrap(), 5);
    let found: Vec<(String, String)> =
        files(folder.path()).into_iter().map(|(path, text)| (path, String::from_utf8(text).unwrap())).collect();
    assert_eq!(
        found,
        [
            ("out/country=DE/year=2023/data_0.csv", "n\n4\n1\n"),
            ("out/country=DE/year=2024/data_0.csv", "n\n5\n"),
            ("out/country=__HIVE_DEFAULT_PARTITION__/year=2023/data_0.csv", "n\n3\n"),
            ("out/country=a%2Fb/year=2023/data_0.csv", "n\n2\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
    );
    // A folder with something in it stays as it is.
    let error = connection.execute(&copy).unwrap_err();
    assert_eq!(error.sqlstate(), "58P02", "{error}");
    assert_eq!(files(folder.path()).len(), 4);
    std::fs::remove_dir_all(&target).unwrap();
    std::fs::create_dir(&target).unwrap();
    assert_eq!(connection.execute(&format!("COPY t TO {to} (FORMAT parquet, PARTITION_BY (year))")).unwrap(), 5);
    let found = files(folder.path());
    assert_eq!(found.keys().collect::<Vec<_>>(), ["out/year=2023/data_0.parquet", "out/year=2024/data_0.parquet"]);
    connection.execute("CREATE TABLE back (n INTEGER, country TEXT)").unwrap();
    let part = quoted(&target.join("year=2023/data_0.parquet"));
    assert_eq!(connection.execute(&format!("COPY back FROM {part}")).unwrap(), 4);
    assert_eq!(rows(&connection, "SELECT * FROM back ORDER BY n"), ["1|DE", "2|a/b", "3|NULL", "4|DE"]);
    // No rows, no folders in it.
    let empty = quoted(&folder.path().join("empty"));
    let sql = format!("COPY (SELECT * FROM t WHERE n > 9) TO {empty} (FORMAT csv, PARTITION_BY (year))");
    assert_eq!(connection.execute(&sql).unwrap(), 0);
    assert!(folder.path().join("empty").is_dir());
    for (options, state) in [
        ("FORMAT csv, PARTITION_BY (nope)", "42703"),
        ("FORMAT csv, PARTITION_BY (year, year)", "42701"),
        ("FORMAT csv, PARTITION_BY (n, country, year)", "22023"),
        ("FORMAT csv, COMPRESSION zstd", "22023"),
        ("FORMAT parquet, COMPRESSION brotli", "22023"),
        ("FORMAT csv, PARTITION_BY year", "42601"),
    ] {
        let other = quoted(&folder.path().join("other"));
        assert_eq!(code(&connection, &format!("COPY t TO {other} ({options})")), state, "{options}");
    }
    let error = connection.copy_out("COPY t TO STDOUT (PARTITION_BY (year))", Vec::new()).unwrap_err();
    assert_eq!(error.sqlstate(), "0A000");
    assert_eq!(code(&connection, "COPY t FROM '/nowhere' (FORMAT csv, PARTITION_BY (year))"), "22023");
    assert!(!folder.path().join("other").exists());
}

/// Partitions of many rows each, and more of them than are encoded at once.
#[test]
fn many_partitions_have_each_row_once() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute("SET threads = 2").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let query = "SELECT n, n % 37 AS part FROM generate_series(0, 99999) AS s(n)";
    let sql = format!("COPY ({query}) TO {} (FORMAT csv, PARTITION_BY (part))", quoted(&target));
    assert_eq!(connection.execute(&sql).unwrap(), 100_000);
    let mut all = Vec::new();
    for (path, text) in files(&target) {
        let part: u32 = path.strip_prefix("part=").and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
        for line in String::from_utf8(text).unwrap().lines() {
            let n: u32 = line.parse().unwrap();
            assert_eq!(n % 37, part);
            all.push(n);
        }
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100_000));
}

#[test]
fn a_copy_that_fails_leaves_the_target_as_it_was() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let failing = "SELECT n, 1 / (150000 - n) AS d FROM generate_series(1, 200000) AS s(n)";
    for (options, name) in
        [("FORMAT csv", "rows"), ("FORMAT parquet", "rows"), ("FORMAT csv, PARTITION_BY (d)", "folder")]
    {
        let path = folder.path().join(name);
        if name == "rows" {
            std::fs::write(&path, "before").unwrap();
        }
        let before = files(folder.path());
        let error = connection.execute(&format!("COPY ({failing}) TO {} ({options})", quoted(&path))).unwrap_err();
        assert_eq!(error.sqlstate(), "22012", "{options}: {error}");
        assert_eq!(files(folder.path()), before, "{options}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before.len(), "{options}");
    }
}

#[test]
fn a_copy_that_is_canceled_leaves_nothing() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let folder = tempfile::tempdir().unwrap();
    connection.execute("SET statement_timeout = '300ms'").unwrap();
    let endless = "SELECT n, repeat('x', 100) AS v FROM generate_series(1, 4000000000) AS s(n)";
    for options in ["FORMAT csv", "FORMAT parquet"] {
        let to = quoted(&folder.path().join("rows"));
        let error = connection.execute(&format!("COPY ({endless}) TO {to} ({options})")).unwrap_err();
        assert_eq!(error.sqlstate(), "57014", "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_with_the_name_of_the_file() {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    let query = "SELECT n FROM generate_series(1, 1000000) AS s(n)";
    for options in ["FORMAT csv", "FORMAT text", "FORMAT parquet"] {
        let error = connection.execute(&format!("COPY ({query}) TO '/dev/full' ({options})")).unwrap_err();
        assert_eq!(error.sqlstate(), "53100", "{options}: {error}");
        assert!(error.message().contains("\"/dev/full\""), "{error}");
    }
}
