//! Bad input and bad luck: each its own message and SQLSTATE, nothing left behind, session and database go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mainstem::{Connection, Database, Error, ErrorKind, OpenOptions};

use super::support::{code, quiet, rows};

/// A table with the rows (1, 10, 'a') and (2, 20, 'b').
fn prepare(database: &Database) -> Connection {
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, n SMALLINT NOT NULL, s VARCHAR(5))").unwrap();
    connection.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')").unwrap();
    connection
}

fn unharmed(connection: &Connection) {
    assert_eq!(rows(connection, "SELECT * FROM t ORDER BY k"), ["1|10|a", "2|20|b"]);
}

fn open_error(path: &Path, options: OpenOptions) -> Error {
    Database::open_with(path, options).map(|_| ()).unwrap_err()
}

fn read_only() -> OpenOptions {
    OpenOptions::new().read_only(true)
}

#[test]
fn a_failed_statement_leaves_nothing_behind() {
    let database = quiet();
    let connection = prepare(&database);
    let failing = [
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ("INSERT INTO nowhere VALUES (1)", "42P01", "nowhere"),
        ("UPDATE t SET nothing = 1", "42703", "nothing"),
        ("SELECT nofunction(k) FROM t", "42883", "nofunction"),
        ("INSERT INTO t VALUES (3, 30, 'c'), ('four', 40, 'd')", "22P02", "four"),
        ("UPDATE t SET n = true", "42804", "\"n\""),
        ("UPDATE t SET n = n * 2000", "22003", "\"n\""),
        ("INSERT INTO t SELECT k + 2147483647, n, s FROM t", "22003", ""),
        ("SELECT k + 9223372036854775807 FROM t", "22003", ""),
        ("INSERT INTO t VALUES (3, 30, 'c'), (1, 1, 'x')", "23505", "(k)=(1)"),
        ("UPDATE t SET k = 7", "23505", "(k)=(7)"),
        ("INSERT INTO t VALUES (3, 30, 'c'), (4, NULL, 'd')", "23502", "\"n\""),
        ("UPDATE t SET s = 'longer'", "22001", "\"s\""),
        ("UPDATE t SET n = n / (k - 2)", "22012", "division by zero"),
        ("DELETE FROM t WHERE k / (k - 2) > 0", "22012", "division by zero"),
        ("UPDATE t SET n = (SELECT n FROM t)", "21000", "more than one row"),
        ("DELETE t", "42601", ""),
        ("COPY t FROM '/no/such/folder/file.csv'", "58P01", "/no/such/folder/file.csv"),
        ("COPY t TO '/no/such/folder/file.csv'", "58P01", "/no/such/folder/file.csv"),
    ];
    for (sql, expected, says) in failing {
        let error = connection.execute(sql).map(|n| panic!("{sql}: {n} rows")).unwrap_err();
        assert_eq!(error.sqlstate(), expected, "{sql}: {error:?}");
        assert!(error.message().contains(says), "{sql}: {error:?}");
        unharmed(&connection);
    }
    // The same inside a transaction: only the statement is undone.
    connection.execute("BEGIN; UPDATE t SET n = n + 1").unwrap();
    for (sql, expected, _) in failing {
        assert_eq!(code(&connection, sql), expected, "{sql}");
        assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), ["1|11|a", "2|21|b"], "{sql}");
    }
    connection.execute("UPDATE t SET n = n - 1; COMMIT").unwrap();
    unharmed(&connection);
    unharmed(&database.connect().unwrap());
}

#[test]
fn malformed_csv_is_named_by_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.csv");
    let database = quiet();
    let connection = prepare(&database);
    let many: String = (10..9_000).map(|k| format!("{k},1,x\n")).collect();
    let cases: [(Vec<u8>, &str, &[&str]); 12] = [
        (b"3,30,c\n4,forty,d\n".into(), "22P02", &["line 2", "\"n\"", "forty"]),
        (b"3,30,c\n4,40\n".into(), "22P04", &["line 2", "\"s\""]),
        (b"3,30,c\n4,40,d,e\n".into(), "22P04", &["line 2", "extra"]),
        (b"3,30,c\n4,40,\"d\n".into(), "22P04", &["line 2", "\"s\"", "quote"]),
        (b"3,30,\"c\nc\"\n4,99999,d\n".into(), "22003", &["line 3", "\"n\""]),
        (b"3,30,c\n4,40,toolong\n".into(), "22001", &["line 2", "\"s\""]),
        (b"3,30,c\n4,,d\n".into(), "23502", &["\"n\""]),
        (b"3,30,c\n4,40,\xff\n".into(), "22021", &["line 2", "\"s\""]),
        (b"3,30,c\n1,40,d\n".into(), "23505", &["(k)=(1)"]),
        (b"3,30,c\n3,40,d\n".into(), "23505", &["(k)=(3)"]),
        (format!("{many}x,1,y\n").into_bytes(), "22P02", &["line 8991", "\"k\""]),
        (format!("{many}10,1,y\n").into_bytes(), "23505", &["(k)=(10)"]),
    ];
    for (text, expected, says) in cases {
        fs::write(&file, &text).unwrap();
        let error = connection.execute(&format!("COPY t FROM '{}' (FORMAT csv)", file.display())).unwrap_err();
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        assert_eq!(error.sqlstate(), expected, "{shown}: {error:?}");
        for word in says {
            assert!(error.message().contains(word), "{shown}: {error:?} does not say {word}");
        }
        unharmed(&connection);
    }
    fs::write(&file, "k,n,s\n3,30,c\n").unwrap();
    assert_eq!(code(&connection, &format!("COPY t FROM '{}' (FORMAT csv)", file.display())), "22P02");
    assert_eq!(connection.execute(&format!("COPY t FROM '{}' (FORMAT csv, HEADER)", file.display())).unwrap(), 1);
    fs::write(&file, "no parquet").unwrap();
    assert_eq!(code(&connection, &format!("COPY t FROM '{}' (FORMAT parquet)", file.display())), "22P04");
    assert_eq!(code(&connection, &format!("COPY t FROM '{}' (FORMAT csv)", folder.path().display())), "42809");
}

/// A device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let database = quiet();
    let connection = prepare(&database);
    for format in ["csv", "parquet"] {
        let error = connection.execute(&format!("COPY t TO '/dev/full' (FORMAT {format})")).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, "53100"), "{format}: {error:?}");
    }
    unharmed(&connection);
}

/// Text nobody would write: no panic, no internal error, and the session goes on.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn odd_statements_are_refused_politely() {
    let database = quiet();
    let connection = prepare(&database);
    let list = (0..5_000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let odd = [
        format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT {}", "-".repeat(50_001)),
        format!("SELECT {}1", "NOT ".repeat(20_000)),
        format!("SELECT 1{}", " + 1".repeat(20_000)),
        format!("SELECT 1{}", " AND 1 = 1".repeat(20_000)),
        format!("SELECT CASE {} END", "WHEN 1 = 2 THEN 3 ".repeat(2_000)),
        format!("{}SELECT 1{}", "SELECT (".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(2_000)),
        format!("SELECT 1{}", " EXCEPT SELECT 1".repeat(150)),
        format!(
            "SELECT 1 FROM (SELECT 1) AS t{}",
            (0..150).map(|i| format!(", (SELECT 1) AS t{i}")).collect::<String>()
        ),
        format!(
            "SELECT 1 FROM (SELECT 1) AS t{}",
            (0..600).map(|i| format!(", (SELECT 1) AS t{i}")).collect::<String>()
        ),
        format!("SELECT 1{}", "::bigint".repeat(2_000)),
        format!(
            "WITH c0 AS (SELECT 1 AS x){} SELECT * FROM c300",
            (0..300).map(|i| format!(", c{} AS (SELECT * FROM c{i})", i + 1)).collect::<String>()
        ),
        format!("SELECT {}1{}", "abs(".repeat(60), ")".repeat(60)),
        format!("SELECT {}true", "NOT ".repeat(60)),
        format!("SELECT 1{}", " + 1".repeat(400)),
        format!("SELECT 1 = 1{}", " AND 1 = 1".repeat(400)),
        format!("SELECT k FROM t WHERE k = 0{}", (1..400).map(|i| format!(" OR k = {i}")).collect::<String>()),
        format!("SELECT '{}'", "x".repeat(3_000_000)),
        format!("SELECT \"{}\" FROM t", "x".repeat(100_000)),
        format!("SELECT k FROM t WHERE k IN ({list})"),
        format!("INSERT INTO t ({}) VALUES (1)", "k, ".repeat(5_000)),
        format!("CREATE TABLE wide ({})", (0..5_000).map(|i| format!("c{i} INTEGER")).collect::<Vec<_>>().join(", ")),
        "SELECT 99999999999999999999999999999999999999999999999999".into(),
        "SELECT 1e999999".into(),
        "SELECT DATE '99999999-01-01'".into(),
        "SELECT TIMESTAMP '2024-13-45 99:99:99'".into(),
        "SELECT CAST('x' AS INTEGER)".into(),
        "SELECT substr('abc', -9223372036854775808, 9223372036854775807)".into(),
        "SELECT repeat('x', 9223372036854775807)".into(),
        "SELECT power(10, 400), sqrt(-1), ln(0)".into(),
        "SELECT -9223372036854775808 / -1, abs(-9223372036854775808)".into(),
        "SELECT (-9223372036854775808) % (-1)".into(),
        "SELECT 'a' LIKE '\\'".into(),
        "SELECT regexp_replace('a', '(', 'b')".into(),
        "SELECT generate_series(1, 2)".into(),
        "SELECT * FROM generate_series(1, 10, 0)".into(),
        "SELECT * FROM t LIMIT -1".into(),
        "SELECT * FROM t LIMIT 99999999999999999999".into(),
        "SELECT * FROM t OFFSET k".into(),
        "SELECT interval '999999999999 years'".into(),
        "SELECT DATE '2024-01-01' + INTERVAL '999999999 months'".into(),
        "SELECT sum(DISTINCT k) OVER () FROM t".into(),
        "SELECT row_number() OVER (ORDER BY nothing) FROM t".into(),
        "SELECT * FROM t AS a JOIN t AS b USING (nothing)".into(),
        "SELECT * FROM (VALUES (1), (1, 2)) AS v".into(),
        "SELECT (SELECT * FROM t)".into(),
        "SELECT k FROM t GROUP BY".into(),
        "INSERT INTO t DEFAULT VALUES".into(),
        "CREATE TABLE".into(),
        "CREATE TABLE x".into(),
        "CREATE TABLE x (a DECIMAL(99, 98))".into(),
        "CREATE TABLE x (a DECIMAL(-1, 5))".into(),
        "CREATE TABLE x (a VARCHAR(0))".into(),
        "CREATE TABLE x (a VARCHAR(99999999999))".into(),
        "CREATE TABLE x (a INTEGER) WITH (segment_rows = 0)".into(),
        "CREATE TABLE x (a INTEGER) WITH (segment_rows = 99999999999)".into(),
        "CREATE TABLE x (a INTEGER) WITH (nonsense = 1)".into(),
        "CREATE TABLE x (a INTEGER) ORDER BY (b)".into(),
        "DROP TABLE t, nowhere".into(),
        "COPY t FROM ''".into(),
        "COPY t FROM '/dev/null' (DELIMITER ',,')".into(),
        "COPY t TO '/dev/null' (FORMAT nonsense)".into(),
        "SET synchronous = 'sometimes'".into(),
        "SELECT \u{0}".into(),
        "SELECT '\u{0}'".into(),
        "\u{feff}SELECT 1".into(),
        "SELECT 1 FROM t WHERE k = $1".into(),
        "SELECT ?".into(),
        "SELECT @x, :y".into(),
        "/* never closed".into(),
        "SELECT 'never closed".into(),
        "SELECT $$never closed".into(),
        "SELECT E'\\xZZ'".into(),
        "SELECT X'0'".into(),
        "🦀".into(),
    ];
    for sql in odd {
        let shown: String = sql.chars().take(80).collect();
        if let Err(error) = connection.execute(&sql) {
            assert_ne!(error.kind(), ErrorKind::Internal, "{shown}: {error:?}");
            assert_eq!(error.sqlstate().len(), 5);
        }
        unharmed(&connection);
    }
}

/// Not a test by itself: holds a database open for [`a_database_open_in_another_process_is_refused_and_says_which`],
/// which runs this binary with the path in the environment.
#[test]
fn holder_in_another_process() {
    let Ok(path) = std::env::var("MAINSTEM_TEST_HOLD") else { return };
    let _database = Database::open(path).unwrap();
    println!("holding");
    // Until the parent closes the pipe.
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
}

#[test]
fn a_database_open_in_another_process_is_refused_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    prepare(&Database::open(&path).unwrap());
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "errors::holder_in_another_process", "--nocapture"])
        .env("MAINSTEM_TEST_HOLD", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = holder.stdout.as_mut().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    assert!(lines.any(|line| line.unwrap().contains("holding")), "the other process did not open the database");
    for options in [OpenOptions::default(), read_only()] {
        let error = open_error(&path, options);
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Closed, "55006"), "{error:?}");
        assert!(error.message().contains(&holder.id().to_string()), "{error:?}");
    }
    drop(holder.stdin.take());
    holder.wait().unwrap();
    unharmed(&Database::open(&path).unwrap().connect().unwrap());
}

#[test]
fn a_read_only_database_takes_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    prepare(&Database::open(&path).unwrap());
    let files = || {
        let mut files = Vec::new();
        visit(&path, &mut |file| files.push((file.to_path_buf(), fs::read(file).unwrap())));
        files.sort();
        files
    };
    let before = files();
    let database = Database::open_with(&path, read_only()).unwrap();
    let second = Database::open_with(&path, read_only()).unwrap();
    let connection = database.connect().unwrap();
    unharmed(&connection);
    unharmed(&second.connect().unwrap());
    for sql in [
        "INSERT INTO t VALUES (3, 30, 'c')",
        "UPDATE t SET n = 1",
        "DELETE FROM t",
        "CREATE TABLE u (a INTEGER)",
        "DROP TABLE t",
        "COPY t FROM '/dev/null' (FORMAT csv)",
        "CHECKPOINT",
    ] {
        assert_eq!(code(&connection, sql), "25006", "{sql}");
    }
    connection.execute("BEGIN").unwrap();
    assert_eq!(code(&connection, "DELETE FROM t"), "25006");
    unharmed(&connection);
    connection.execute("ROLLBACK").unwrap();
    connection.execute("BEGIN READ ONLY").unwrap();
    unharmed(&connection);
    connection.execute("COMMIT").unwrap();
    drop((connection, second));
    database.close().unwrap();
    assert!(before == files(), "a read-only database has changed files");
}

/// Calls `each` with every file under `folder`, the lock file aside.
fn visit(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, each);
        } else if path.file_name().unwrap() != "LOCK" {
            each(&path);
        }
    }
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("holiday.jpg"), "a photo").unwrap();
    let error = open_error(&path, OpenOptions::default());
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    let mut names = Vec::new();
    visit(&path, &mut |file| names.push(file.file_name().unwrap().to_owned()));
    assert_eq!(names, ["holiday.jpg"]);

    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    let error = open_error(&file, OpenOptions::default());
    assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Io), "{error:?}");
    assert_eq!(fs::read(&file).unwrap(), b"text");

    let missing = folder.path().join("missing");
    for options in [OpenOptions::new().create(false), read_only()] {
        let error = open_error(&missing, options);
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::NotFound, "58P01"), "{error:?}");
        assert!(!missing.exists());
    }
}

/// A database on disk with rows in segments and rows in the log only; returns its directory.
fn on_disk(folder: &Path) -> PathBuf {
    let path = folder.join("db");
    let options = OpenOptions::new().background(false);
    let database = Database::open_with(&path, options).unwrap();
    let connection = prepare(&database);
    connection.execute("CREATE TABLE other (a INTEGER, b TEXT)").unwrap();
    connection.execute("INSERT INTO other SELECT i, 'row ' || i FROM generate_series(1, 5000) AS g(i)").unwrap();
    connection.execute("CHECKPOINT").unwrap();
    connection.execute("INSERT INTO other VALUES (0, 'in the log')").unwrap();
    drop(connection);
    database.close().unwrap();
    path
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn another_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = on_disk(folder.path());
    let manifest = path.join("MANIFEST");
    let mut bytes = fs::read(&manifest).unwrap();
    let ours = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    for (version, program) in [(ours + 1, "newer"), (ours - 2, "the program that wrote it")] {
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        // The header is sealed, or it is damage.
        let seal = crc32c(&bytes[..24]).to_le_bytes();
        bytes[24..28].copy_from_slice(&seal);
        fs::write(&manifest, &bytes).unwrap();
        for options in [OpenOptions::default(), read_only()] {
            let error = open_error(&path, options);
            assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, "0A000"), "{error:?}");
            let named = format!("version {version}");
            assert!(error.message().contains(&named) && error.message().contains(program), "{error:?}");
        }
    }
}

#[test]
fn a_damaged_manifest_or_log_is_named_when_the_database_is_opened() {
    for folder_or_file in ["MANIFEST", "wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = on_disk(folder.path());
        let mut damaged = Vec::new();
        let target = path.join(folder_or_file);
        if target.is_dir() {
            visit(&target, &mut |file| damaged.push(file.to_path_buf()));
        } else {
            damaged.push(target);
        }
        damaged.sort();
        // The record that only the log has is in a file that was closed, so its damage is no torn tail.
        Database::open(&path).unwrap().close().unwrap();
        let file = damaged.last().unwrap();
        let mut bytes = fs::read(file).unwrap();
        let at = bytes.windows(10).position(|w| w == b"in the log").unwrap_or(bytes.len() / 2);
        bytes[at] ^= 0x10;
        fs::write(file, bytes).unwrap();
        let error = open_error(&path, OpenOptions::default());
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Corrupt, "XX001"), "{}: {error:?}", file.display());
        assert!(error.message().contains(file.file_name().unwrap().to_str().unwrap()), "{error:?}");
    }
}

#[test]
fn a_damaged_segment_fails_the_queries_that_read_it_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = on_disk(folder.path());
    let mut segments = Vec::new();
    visit(&path.join("data"), &mut |file| segments.push((fs::metadata(file).unwrap().len(), file.to_path_buf())));
    segments.sort();
    let (length, largest) = segments.last().unwrap();
    let mut bytes = fs::read(largest).unwrap();
    bytes[*length as usize / 2] ^= 0x10;
    fs::write(largest, bytes).unwrap();

    let database = Database::open(&path).unwrap();
    let connection = database.connect().unwrap();
    // Metadata would answer without the blocks.
    let query = "SELECT sum(a), max(b || '') FROM other";
    for sql in [query, "UPDATE other SET b = b", "COPY other TO '/dev/null' (FORMAT csv)"] {
        let error = connection.execute(sql).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Corrupt, "XX001"), "{sql}: {error:?}");
        let name = largest.file_name().unwrap().to_str().unwrap();
        assert!(error.message().contains(name), "{sql}: {error:?} does not name {name}");
    }
    unharmed(&connection);
    connection.execute("INSERT INTO other VALUES (-1, 'still')").unwrap();
    connection.execute("UPDATE t SET n = n + 1; UPDATE t SET n = n - 1").unwrap();
    unharmed(&connection);
    let wrong = database.storage().verify();
    assert!(!wrong.is_empty() && wrong.iter().all(|e| e.sqlstate() == "XX001"), "{wrong:?}");
}

/// Functions that make long texts are bounded, each text and all of a batch.
#[test]
fn texts_of_any_length_are_not_made() {
    let options = OpenOptions::new().memory_limit(64 << 20).background(false);
    let database = Database::in_memory_with(options).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE n (n BIGINT, s TEXT)").unwrap();
    connection.execute("INSERT INTO n SELECT 1000 * i, 'x' FROM generate_series(1, 1000) AS g(i)").unwrap();
    connection.execute("INSERT INTO n VALUES (NULL, 'x'), (-5, 'x'), (3, NULL)").unwrap();
    for (sql, expected) in [
        ("SELECT repeat('x', 2000000000)", "54000"),
        ("SELECT repeat('xyz', 9223372036854775807)", "54000"),
        ("SELECT lpad('x', 2000000000)", "54000"),
        ("SELECT rpad('x', 500000000, '\u{e9}')", "54000"),
        ("SELECT lpad('x', 9223372036854775807, 'yz')", "54000"),
        ("SELECT length(repeat(s, 2000000000)) FROM n", "54000"),
        ("SELECT length(rpad(s, n * 10000000)) FROM n", "54000"),
        ("SELECT repeat('x', 100000000)", "53200"),
        ("SELECT length(repeat(s, n)) FROM n", "53200"),
        ("SELECT length(lpad(s, n)) FROM n", "53200"),
        ("SELECT length(rpad(s, 100000, s)) FROM n", "53200"),
    ] {
        let error = connection.execute(sql).map(|_| panic!("{sql}")).unwrap_err();
        assert_eq!(error.sqlstate(), expected, "{sql}: {error:?}");
    }
    let small = "SELECT repeat(s, n / 1000), lpad(s, 3, 'ab'), rpad(s, n / 1000), lpad(s, -1) FROM n WHERE n <= 3000 OR n IS NULL";
    let expected = ["x|abx|x|", "xx|abx|x |", "xxx|abx|x  |", "NULL|abx|NULL|", "|abx||", "NULL|NULL|NULL|NULL"];
    let mut got = rows(&connection, small);
    got.sort();
    let mut expected = expected.map(String::from);
    expected.sort();
    assert_eq!(got, expected);
    assert_eq!(rows(&connection, "SELECT sum(length(repeat(s, 1000))) FROM n"), ["1002000"]);
}

/// Types that do not go together are a user's mistake.
#[test]
fn types_that_do_not_go_together_are_42804() {
    let database = quiet();
    let connection = prepare(&database);
    for sql in [
        "SELECT INTERVAL '1 month' BETWEEN 1001 AND 2000",
        "SELECT k FROM t WHERE k BETWEEN INTERVAL '1 day' AND INTERVAL '2 days'",
        "SELECT DATE '2024-01-01' BETWEEN true AND false",
        "SELECT INTERVAL '1 day' = 1",
        "SELECT true + 1",
    ] {
        let error = connection.execute(sql).map(|_| panic!("{sql}")).unwrap_err();
        assert_eq!(error.sqlstate(), "42804", "{sql}: {error:?}");
    }
    unharmed(&connection);
}
