//! COPY FROM files of many chunks, which threads read in pieces: as one thread that reads byte by byte.

use std::path::Path;

use mainstem::{Connection, Database, OpenOptions};

use super::support::{quiet, rows};

const COLUMNS: &str =
    "k INTEGER NOT NULL, v TEXT, d DATE, n DECIMAL(12,2), b BOOLEAN, f DOUBLE PRECISION, s TIMESTAMP, w TEXT";
/// What tells two loads apart: all values, and the order of the rows.
const TOLD: &str = "SELECT count(*), count(v), count(DISTINCT w), sum(k), sum(n), sum(f), min(d), max(s), \
                    count(*) FILTER (WHERE b), md5(string_agg(concat_ws('|', k, v, d, n, b, f, s, w), ',')) FROM t";
const ROWS: usize = 30_000;

fn row(n: usize, text: &str, wide: &str) -> String {
    let day = n % 28 + 1;
    format!(
        "{n},{text},2024-02-{day:02},{}.{:02},{},{}.5,2024-02-{day:02} 12:{:02}:00,{wide}\n",
        n * 7,
        n % 100,
        if n.is_multiple_of(3) { "true" } else { "f" },
        n % 1000,
        n % 60,
    )
}

/// Files of the same shape whose chunks differ: plain ones, ones in quotes, ones that are neither, rows that are
/// longer than a chunk.
fn files() -> Vec<(&'static str, String)> {
    let plain = |n: usize| row(n, &format!("text {}", n % 97), "w");
    let quoted = |n: usize| row(n, &format!("\"text, {}\"", n % 97), "\"w\"");
    let lines = |n: usize| row(n, &format!("\"two\nlines, {n}\""), "\"\"");
    let wild = |n: usize| match n % 5 {
        0 => row(n, &format!("\"a \"\"quote\"\" {n}\""), "").replace('\n', "\r\n"),
        1 => row(n, "", "\"\"\"\""),
        2 => row(n, &format!("\"\n\n{n},like,a,row\n\""), "é"),
        3 => row(n, "x\"y\"z", "w"),
        _ => plain(n),
    };
    let long = |n: usize| if n.is_multiple_of(5_000) { row(n, &"long ".repeat(40_000), "w") } else { plain(n) };
    let all = |of: &dyn Fn(usize) -> String| (0..ROWS).map(of).collect::<String>();
    let first_wild = |n: usize| if n < ROWS / 10 { wild(n) } else { plain(n) };
    let last_wild = |n: usize| if n > ROWS / 2 { wild(n) } else { quoted(n) };
    vec![
        ("plain", all(&plain)),
        ("without a last line feed", all(&plain).trim_end().to_owned()),
        ("carriage returns", all(&plain).replace('\n', "\r\n")),
        ("quoted", all(&quoted)),
        ("quoted line feeds", all(&lines)),
        ("wild", all(&wild)),
        ("wild first", all(&first_wild)),
        ("wild last", all(&last_wild)),
        ("long rows", all(&long)),
    ]
}

/// What a load of `path` into a table of `definition` leaves there.
fn loaded(definition: &str, settings: &str, path: &Path, options: &str) -> Vec<String> {
    let (_database, connection) = with_table(definition);
    connection.execute_batch(settings).unwrap();
    let sql = format!("COPY t FROM '{}' (FORMAT csv{options})", path.display());
    let count = connection.execute(&sql).unwrap_or_else(|e| panic!("{sql}, {settings}: {e}"));
    assert_eq!(count, ROWS as u64);
    rows(&connection, TOLD)
}

fn with_table(definition: &str) -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute(&format!("CREATE TABLE t ({definition})")).unwrap();
    (database, connection)
}

/// Another ESCAPE has a file read by one thread, a byte after the other.
#[test]
fn files_in_chunks_are_loaded_as_byte_by_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (path, one_by_one) = (dir.path().join("chunks.csv"), dir.path().join("bytes.csv"));
    let keyed = COLUMNS.replace("NOT NULL", "PRIMARY KEY");
    for (name, text) in files() {
        std::fs::write(&path, &text).unwrap();
        std::fs::write(&one_by_one, text.replace("\"\"\"\"", "\"\\\"\"").replace("\"\"quote\"\"", "\\\"quote\\\""))
            .unwrap();
        let expected = loaded(COLUMNS, "SET threads = 1", &one_by_one, ", ESCAPE '\\'");
        assert!(expected[0].starts_with(&format!("{ROWS}|")), "{expected:?}");
        for (threads, bytes) in [(3, "64kB"), (2, "300kB"), (1, "64kB"), (3, "0")] {
            let settings = format!("SET threads = {threads}; SET load_chunk_bytes = '{bytes}'");
            for definition in [COLUMNS, &keyed] {
                assert_eq!(loaded(definition, &settings, &path, ""), expected, "{name}, {settings}, {definition}");
            }
        }
    }
}

/// Rows that have to be sorted, of chunks that are read in several ways and so come in several forms.
#[test]
fn files_in_no_order_are_loaded_as_sorted_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (path, sorted) = (dir.path().join("shuffled.csv"), dir.path().join("sorted.csv"));
    let keyed = COLUMNS.replace("NOT NULL", "PRIMARY KEY");
    let line = |place: usize| {
        let n = place * 7_919 % ROWS;
        let text = match place {
            0..3_000 if n.is_multiple_of(2) => format!("\"\n\n{n},like,a,row\n\""),
            0..3_000 => "x\"y\"z".to_owned(),
            12_000..15_000 => String::new(),
            _ => format!("text {}", n % 97),
        };
        (n, row(n, &text, if place < 20_000 { "w" } else { "\"é\"" }))
    };
    let mut lines: Vec<(usize, String)> = (0..ROWS).map(line).collect();
    std::fs::write(&path, lines.iter().map(|(_, line)| line.as_str()).collect::<String>()).unwrap();
    lines.sort_unstable_by_key(|(n, _)| *n);
    std::fs::write(&sorted, lines.iter().map(|(_, line)| line.as_str()).collect::<String>()).unwrap();
    let expected = loaded(&keyed, "SET threads = 1", &sorted, ", ESCAPE '\\'");
    for (threads, bytes) in [(3, "64kB"), (2, "300kB"), (1, "0")] {
        let settings = format!("SET threads = {threads}; SET load_chunk_bytes = '{bytes}'");
        assert_eq!(loaded(&keyed, &settings, &path, ""), expected, "{settings}");
    }
}

/// What is wrong in a piece of a chunk is told with the line that it has in the file.
#[test]
fn errors_of_files_in_chunks_name_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wrong.csv");
    let (_database, connection) = with_table(&COLUMNS.replace("NOT NULL", "PRIMARY KEY CHECK (k <> 40000)"));
    connection.execute_batch("SET load_chunk_bytes = '300kB'; SET threads = 3").unwrap();
    let copy = format!("COPY t FROM '{}' (FORMAT csv", path.display());
    // With plain rows a line is a row; with quoted line feeds it is half of one.
    for (text, line) in [("\"a text\"", 20_001), ("\"two\nlines\"", 40_001)] {
        let good: String = (0..ROWS).map(|n| row(n, text, "w")).collect();
        for (instead, state, says) in [
            ("\n2x000,", "22P02", ""),
            ("\n9999999999,", "22003", ""),
            ("\n,", "23502", ""),
            ("\n40000,", "23514", ""),
            ("\n20000,\"x\",", "22P04", ": extra data"),
            ("\n\n20000,", "22P04", ": missing data for column \"v\""),
            ("\n20000,\"", "22P04", ""),
        ] {
            let wrong = good.replacen("\n20000,", instead, 1);
            std::fs::write(&path, &wrong).unwrap();
            let error = connection.execute(&format!("{copy})")).unwrap_err();
            let (got, message) = (error.sqlstate(), error.to_string());
            assert!(got == state && message.contains(&format!("line {line}{says}")), "{instead:?}: {got} {message}");
        }
        std::fs::write(&path, good.replacen("\n20000,", "\n2x000,", 1)).unwrap();
        assert_eq!(connection.execute(&format!("{copy}, ON_ERROR ignore, REJECTS_TABLE wrong)")).unwrap(), 29_999);
        assert_eq!(rows(&connection, "SELECT line, column_name, text FROM wrong"), [format!("{line}|k|2x000")]);
        connection.execute_batch("DROP TABLE wrong; TRUNCATE t").unwrap();
        // A key that is there twice: both lines.
        std::fs::write(&path, good.replacen("\n20000,", "\n10000,", 1)).unwrap();
        let message = connection.execute(&format!("{copy})")).unwrap_err().to_string();
        let first = line / 2 + 1;
        assert!(message.contains(&format!("line {line}")) && message.contains(&format!("line {first}")), "{message}");
    }
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
}

/// Rows in no order, more than loads have memory for: they go to a temporary file, and come from it by their keys.
#[test]
fn rows_in_no_order_are_loaded_in_the_order_of_their_keys() {
    const ROWS: usize = 40_009;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("db");
    let write = |name: &str, last: &str| {
        let line = |n: usize| match n % 5 {
            0 => format!("{n},,1\n"),
            _ => format!("{n},text {},{}.25\n", n % 11, n * 3),
        };
        let lines: String = (0..ROWS).map(|n| line(n * 7_919 % ROWS)).collect();
        std::fs::write(folder.path().join(name), lines + last).unwrap();
        format!("COPY t FROM '{}' (FORMAT csv)", folder.path().join(name).display())
    };
    let (good, bad) = (write("good.csv", ""), write("bad.csv", "7919,again,2\n"));
    let options = || OpenOptions::new().memory_limit(16 << 20);
    let told = "SELECT count(*), count(v), count(DISTINCT v), sum(k), sum(n), \
                sum(k * n) FILTER (WHERE v = 'text 3') FROM t";
    let database = Database::open_with(&place, options()).unwrap();
    let (connection, other) = (database.connect().unwrap(), database.connect().unwrap());
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT, n NUMERIC(12,2)); BEGIN").unwrap();
    let error = connection.execute(&bad).unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
    let (first, second) = ("line 2", format!("line {}", ROWS + 1));
    assert!(error.to_string().contains(first) && error.to_string().contains(&second), "{error}");
    connection.execute_batch("ROLLBACK; BEGIN").unwrap();
    connection.execute(&good).unwrap();
    assert!(place.join("temp").exists(), "nothing was put aside");
    assert_eq!(rows(&other, "SELECT count(*) FROM t"), ["0"]);
    connection.execute("COMMIT").unwrap();
    let expected = rows(&other, told);
    drop((connection, other));
    database.close().unwrap();

    let database = Database::open_with(&place, options()).unwrap();
    let connection = database.connect().unwrap();
    assert_eq!(rows(&connection, told), expected);
    let sum = ROWS * (ROWS - 1) / 2;
    assert_eq!(
        rows(&connection, "SELECT count(*), count(v), sum(k) FROM t"),
        [format!("{ROWS}|{}|{sum}", ROWS - ROWS.div_ceil(5))]
    );
    assert_eq!(rows(&connection, "SELECT v, n FROM t WHERE k = 7919"), ["text 10|23757.25"]);
}
