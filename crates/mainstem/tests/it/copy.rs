//! COPY with the streams of a program: STDIN, STDOUT, FORMAT text and CSV.

use std::io::{self, Read, Write};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use mainstem::{Connection, Database};

use super::support::{code, quiet, rows};

fn with_table() -> (Database, Connection) {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT, d DATE)").unwrap();
    (database, connection)
}

fn out(connection: &Connection, sql: &str) -> String {
    let mut data = Vec::new();
    connection.copy_out(sql, &mut data).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    String::from_utf8(data).unwrap()
}

/// The SQLSTATE and message of a COPY of `data`.
fn refused(connection: &Connection, sql: &str, data: &[u8]) -> (&'static str, String) {
    let error = connection.copy_in(sql, data).unwrap_err();
    (error.sqlstate(), error.to_string())
}

#[test]
fn format_text_is_read_as_postgresql_writes_it() {
    let (_database, connection) = with_table();
    let data =
        b"1\tplain\t2024-02-29\n2\t\\N\t\\N\n3\ttab \\t line \\n back \\\\ bell \\x07 oct \\101\\6 other \\q\t\\N\n\
                 4\t\\\\N\t\\N\r\n5\t\t\\N\n6\tover\\\na line\t\\N\n7\tlast\t2024-01-01";
    assert_eq!(connection.copy_in("COPY t FROM STDIN", &data[..]).unwrap(), 7);
    assert_eq!(
        connection.query_row("SELECT v FROM t WHERE k = 3", ()).unwrap().get::<&str>(0).unwrap(),
        "tab \t line \n back \\ bell \u{7} oct A\u{6} other q"
    );
    let texts: Vec<Option<String>> = connection
        .query("SELECT v FROM t WHERE k <> 3 ORDER BY k")
        .unwrap()
        .rows()
        .map(|row| row.unwrap().get(0).unwrap())
        .collect();
    let expected = [Some("plain"), None, Some("\\N"), Some(""), Some("over\na line"), Some("last")];
    assert_eq!(texts, expected.map(|text| text.map(ToString::to_string)));
    // What is written is read back the same.
    let written = out(&connection, "COPY (SELECT * FROM t ORDER BY k) TO STDOUT");
    assert!(
        written.starts_with("1\tplain\t2024-02-29\n2\t\\N\t\\N\n3\ttab \\t line \\n back \\\\ bell \u{7} oct A"),
        "{written}"
    );
    connection.execute("CREATE TABLE u (k INTEGER PRIMARY KEY, v TEXT, d DATE)").unwrap();
    assert_eq!(connection.copy_in("COPY u FROM STDIN", written.as_bytes()).unwrap(), 7);
    assert_eq!(rows(&connection, "SELECT * FROM t EXCEPT SELECT * FROM u"), Vec::<String>::new());
    assert_eq!(rows(&connection, "SELECT count(*) FROM u"), ["7"]);
}

#[test]
fn queries_of_other_databases_are_read_as_in_select() {
    let (_database, connection) = with_table();
    connection.execute("INSERT INTO t (k, v) VALUES (1, 'c'), (2, 'a'), (3, 'b')").unwrap();
    assert_eq!(out(&connection, "COPY (FROM t SELECT k, v ORDER BY k) TO STDOUT"), "1\tc\n2\ta\n3\tb\n");
    assert_eq!(out(&connection, "COPY (FROM t ORDER BY k LIMIT 1) TO STDOUT"), "1\tc\t\\N\n");
    assert_eq!(out(&connection, "COPY (SELECT v FROM t UNION SELECT 'ab' ORDER BY ALL) TO STDOUT"), "a\nab\nb\nc\n");
    assert_eq!(out(&connection, "COPY (SELECT v FROM t ORDER BY ALL DESC) TO STDOUT"), "c\nb\na\n");
    assert_eq!(out(&connection, "COPY (SELECT count(*) FROM (FROM t) x) TO STDOUT"), "3\n");
}

#[test]
fn options_of_format_text() {
    let (_database, connection) = with_table();
    let data = b"ignored\nb|1\n\\||2\nnil|3\n\\.\nnot|read\n";
    let sql = "COPY t (v, k) FROM STDIN (FORMAT text, DELIMITER '|', NULL 'nil', HEADER)";
    assert_eq!(connection.copy_in(sql, &data[..]).unwrap(), 3);
    assert_eq!(rows(&connection, "SELECT k, v FROM t ORDER BY k"), ["1|b", "2||", "3|NULL"]);
    let sql = "COPY (SELECT v, k FROM t ORDER BY k) TO STDOUT (DELIMITER '|', NULL 'nil', HEADER)";
    assert_eq!(out(&connection, sql), "v|k\nb|1\n\\||2\nnil|3\n");
    connection.execute_batch("CREATE TABLE b (raw BYTEA); INSERT INTO b VALUES ('\\x00ff')").unwrap();
    assert_eq!(out(&connection, "COPY (SELECT true, raw, 1.50 FROM b) TO STDOUT"), "t\t\\\\x00ff\t1.50\n");
    // Files too.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.txt").display().to_string();
    connection.execute(&format!("COPY t TO '{path}'")).unwrap();
    connection.execute("DELETE FROM t").unwrap();
    assert_eq!(connection.execute(&format!("COPY t FROM '{path}'")).unwrap(), 3);
}

#[test]
fn csv_through_streams() {
    let (_database, connection) = with_table();
    let data = "k,v,d\n1,\"a,b\",2024-02-29\n2,,\n3,\"\",\n";
    assert_eq!(connection.copy_in("COPY t FROM STDIN (FORMAT csv, HEADER)", data.as_bytes()).unwrap(), 3);
    assert_eq!(out(&connection, "COPY t TO STDOUT (FORMAT csv, HEADER)"), data);
    assert_eq!(connection.copy_in("COPY t FROM STDIN (FORMAT csv)", io::empty()).unwrap(), 0);
}

/// What is refused of a file with the lines `text`, loaded with `options` by a table that was made anew, and holds key
/// 1 already.
fn refused_file(definition: &str, text: &str, options: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows").display().to_string();
    std::fs::write(&path, text).unwrap();
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch(&format!("CREATE TABLE t ({definition}); INSERT INTO t (k) VALUES (1)")).unwrap();
    let sql = options.replacen("FROM", &format!("FROM '{path}'"), 1);
    let error = connection.execute(&sql).unwrap_err();
    assert_eq!(error.sqlstate(), "23505", "{error}");
    let rows: i64 = connection.query_row("SELECT count(*) FROM t", ()).unwrap().get(0).unwrap();
    assert_eq!(rows, 1);
    error.message().to_owned()
}

#[test]
fn a_key_that_may_not_come_is_told_with_its_lines() {
    const TABLE: &str = "k INTEGER PRIMARY KEY, c CHAR(3), n DECIMAL(5, 2), UNIQUE (c, n)";
    for (text, copy, lines) in [
        ("2,a,1\n3,b,1\n2,c,1\n", "COPY t FROM (FORMAT csv)", "line 3 and line 1: "),
        // Of values, not of texts; rows without the key do not count, lines do.
        (
            "k,c,n\n2,a,\n3,a,\n4,\"a\n\",1.5\n5,b ,1.50\n6,b,1.5\n",
            "COPY t FROM (FORMAT csv, HEADER)",
            "line 7 and line 6: ",
        ),
        ("2\tb\t1.5\n3\t\\N\t1.5\n4\tb\t1.50\n", "COPY t FROM", "line 3 and line 1: "),
        // More than two.
        ("9,a,1\n8,a,1\n7,a,1\n", "COPY t FROM (FORMAT csv)", "line 2 and line 1: "),
        // The table has it.
        ("2,a,1\n1,b,1\n", "COPY t FROM (FORMAT csv)", "line 2: "),
        ("b,2\na,1\n", "COPY t (c, k) FROM (FORMAT csv)", "line 2: "),
    ] {
        let message = refused_file(TABLE, text, copy);
        let begins = format!("COPY \"t\": {lines}duplicate key value violates");
        assert!(message.starts_with(&begins), "{message}, not {begins}");
    }
    // The key is not in the file.
    let message = refused_file("k INTEGER PRIMARY KEY DEFAULT 1, v INTEGER", "5\n", "COPY t (v) FROM (FORMAT csv)");
    assert!(message.starts_with("COPY \"t\": duplicate key value violates"), "{message}");
}

/// In segments and chunks far apart; by the order of rows and by an index.
#[test]
fn lines_with_a_key_are_found_far_apart() {
    const ROWS: u64 = 150_000;
    let lines = |rows: &dyn Fn(u64) -> (u64, u64)| -> String {
        (0..ROWS).map(rows).map(|(k, u)| format!("{k},{u},some text\n")).collect()
    };
    let scattered = |row: u64| row * 7_919 % ROWS + 2;
    let definition = "k INTEGER PRIMARY KEY, u INTEGER UNIQUE, v TEXT";
    for (text, constraint) in [
        (lines(&|row| (scattered(if row == 140_000 { 11 } else { row }), row)), "t_pkey"),
        (lines(&|row| (row + 2, scattered(if row == 140_000 { 11 } else { row }))), "t_u_key"),
    ] {
        let message = refused_file(definition, &text, "COPY t FROM (FORMAT csv)");
        let wanted = "COPY \"t\": line 140001 and line 12: duplicate key value violates unique constraint ";
        assert!(message.starts_with(&format!("{wanted}\"{constraint}\"")), "{message}");
    }
}

#[test]
fn a_copy_that_fails_inserts_nothing() {
    let (_database, connection) = with_table();
    for (data, code, message) in [
        (&b"1\ta\n"[..], "22P04", "COPY \"t\": line 1: missing data for column \"d\""),
        (b"1\ta\t\\N\n2\tb\t\\N\tx\n", "22P04", "COPY \"t\": line 2: extra data after last expected column"),
        (
            b"1\ta\\\nb\t\\N\nx\tb\t\\N\n",
            "22P02",
            "COPY \"t\": line 3: column \"k\": invalid input for type integer: \"x\"",
        ),
        (b"1\ta\t\\N\n1\tb\t\\N\n", "23505", ""),
        (b"1\t\xff\t\\N\n", "22021", "COPY \"t\": line 1, column \"v\": the bytes are no valid UTF-8"),
        (b"\\N\ta\t\\N\n", "23502", ""),
    ] {
        let (found, text) = refused(&connection, "COPY t FROM STDIN", data);
        assert_eq!(found, code, "{text}");
        assert!(text.starts_with(message), "{text}");
    }
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for (format, line) in [("text", &b"1\ta\t\\N\n"[..]), ("csv", b"1,a,\n")] {
        let data = line.chain(Broken);
        let error = connection.copy_in(&format!("COPY t FROM STDIN (FORMAT {format})"), data).unwrap_err();
        assert_eq!(error.sqlstate(), "58030", "{error}");
        let error = connection.copy_out(&format!("COPY (SELECT 1) TO STDOUT (FORMAT {format})"), Broken).unwrap_err();
        assert_eq!(error.sqlstate(), "58030", "{error}");
    }
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
    // Streams belong to statements that name them.
    for sql in ["COPY t FROM '/tmp/x.csv'", "SELECT 1", "COPY t TO STDOUT", "COPY t FROM STDIN; SELECT 1", ""] {
        assert_eq!(refused(&connection, sql, b"").0, "42601", "{sql}");
    }
    for sql in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
        assert_eq!(code(&connection, sql), "0A000", "{sql}");
    }
}

#[test]
fn inside_a_transaction_it_goes_with_it() {
    let (_database, connection) = with_table();
    let transaction = connection.transaction().unwrap();
    assert_eq!(transaction.copy_in("COPY t FROM STDIN", &b"1\ta\t\\N\n"[..]).unwrap(), 1);
    let mut data = Vec::new();
    transaction.copy_out("COPY t TO STDOUT", &mut data).unwrap();
    assert_eq!(data, b"1\ta\t\\N\n");
    transaction.rollback();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
}

/// While the stream is read, another connection takes a key of it: the first attempt conflicts at its commit, and the
/// second reads the stream again and finds the key there. That is 23505, never 40001.
#[test]
fn a_stream_is_read_again_when_another_commit_was_in_the_way() {
    struct Meddling<'a> {
        data: &'a [u8],
        other: Connection,
        meddled: bool,
    }
    impl Read for Meddling<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if !std::mem::replace(&mut self.meddled, true) {
                self.other.execute("INSERT INTO t VALUES (2, 'first', NULL); DELETE FROM t WHERE k = 2").unwrap();
                self.other.execute("INSERT INTO t VALUES (3, 'first', NULL)").unwrap();
            }
            self.data.read(buffer)
        }
    }
    let (database, connection) = with_table();
    let meddling = |data| Meddling { data, other: database.connect().unwrap(), meddled: false };
    let (state, _) = refused_stream(&connection, meddling(b"2\tmine\t\\N\n3\tmine\t\\N\n"));
    assert_eq!(state, "23505");
    assert_eq!(rows(&connection, "SELECT k, v FROM t"), ["3|first"]);
    connection.execute("DELETE FROM t").unwrap();
    // With nothing in the way at the end, all of it is there.
    assert_eq!(connection.copy_in("COPY t FROM STDIN", meddling(b"2\tmine\t\\N\n4\tmine\t\\N\n")).unwrap(), 2);
    assert_eq!(rows(&connection, "SELECT k, v FROM t ORDER BY k"), ["2|mine", "3|first", "4|mine"]);
}

/// A pipe that is named as a file gives its bytes once, too.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_again_when_another_commit_was_in_the_way() {
    use std::io::Write;
    let (database, connection) = with_table();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let other = database.connect().unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = std::fs::File::create(path).unwrap();
            // More than fits the pipe: it is read, by a transaction that has begun.
            let rows: String = (10..50_000).map(|k| format!("{k},mine,\n")).collect();
            pipe.write_all(rows.as_bytes()).unwrap();
            other.execute("INSERT INTO t VALUES (2, 'first', NULL)").unwrap();
            pipe.write_all(b"2,mine,\n").unwrap();
        }
    });
    let copy = format!("COPY t FROM '{}' (FORMAT csv)", path.display());
    // The second attempt reads the same rows, and finds the key: without them it would copy none, and succeed.
    assert_eq!(connection.execute(&copy).unwrap_err().sqlstate(), "23505");
    writer.join().unwrap();
    assert_eq!(rows(&connection, "SELECT k, v FROM t"), ["2|first"]);
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, "3,mine,\n4,mine,\n").unwrap()
    });
    assert_eq!(connection.execute(&copy).unwrap(), 2);
    writer.join().unwrap();
    // A statement that is refused does not wait for somebody to write.
    let error = connection.execute(&format!("COPY nowhere FROM '{}' (FORMAT csv)", path.display())).unwrap_err();
    assert_eq!(error.sqlstate(), "42P01");
}

/// A chunk may have more rows than are inserted at once: the line is that of the file.
#[test]
fn a_row_late_in_a_chunk_is_told_by_its_line() {
    let (_database, connection) = with_table();
    connection.execute("CREATE TABLE c (a INTEGER CHECK (a <> 9), d INTEGER DEFAULT 5, e TEXT)").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let copy = format!("COPY c (a) FROM '{}' (FORMAT csv)", path.display());
    std::fs::write(&path, "7\n".repeat(150_000) + "9\n" + &"7\n".repeat(9)).unwrap();
    let error = connection.execute(&copy).unwrap_err();
    assert!(error.sqlstate() == "23514" && error.to_string().contains("line 150001: new row"), "{error}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM c"), ["0"]);
    std::fs::write(&path, "7\n".repeat(150_000)).unwrap();
    assert_eq!(connection.execute(&copy).unwrap(), 150_000);
    assert_eq!(rows(&connection, "SELECT count(*), sum(a), sum(d), count(e) FROM c"), ["150000|1050000|750000|0"]);
}

/// A text that begins with what looks like a mark of byte order comes back as it went.
#[test]
fn a_text_that_begins_with_a_mark_of_byte_order_comes_back() {
    let (_database, connection) = with_table();
    connection.execute("INSERT INTO t VALUES (1, '\u{feff}mark', NULL)").unwrap();
    let text = out(&connection, "COPY (SELECT v, k FROM t) TO STDOUT (FORMAT csv)");
    connection.execute("CREATE TABLE back (v TEXT, k INTEGER)").unwrap();
    assert_eq!(connection.copy_in("COPY back FROM STDIN (FORMAT csv)", text.as_bytes()).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT count(*) FROM back JOIN t USING (v)"), ["1"]);
}

/// Of several rows that are refused, the first one is told, with its own error.
#[test]
fn the_first_row_that_is_refused_is_told() {
    let (_database, connection) = with_table();
    connection.execute("CREATE TABLE c (a VARCHAR(2), b INTEGER NOT NULL CHECK (b <> 7), d INTEGER)").unwrap();
    let refused = |data: &str| {
        let error = connection.copy_in("COPY c FROM STDIN (FORMAT csv)", data.as_bytes()).unwrap_err();
        (error.sqlstate(), error.to_string())
    };
    for (data, state, says) in [
        ("xx,,1\nxxx,1,1\n", "23502", "line 1: null value in column \"b\""),
        ("xx,1,1\nxxx,1,1\nx,,1\n", "22001", "line 2: value too long"),
        ("xx,1,1\nx,2,1\nx,7,1\nx,,1\n", "23514", "line 3: new row"),
        ("xx,1,1\nx,2,1\nx,,1\nx,7,1\n", "23502", "line 3: null value"),
    ] {
        let (found, message) = refused(data);
        assert_eq!(found, state, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

fn refused_stream(connection: &Connection, data: impl Read) -> (&'static str, String) {
    let error = connection.copy_in("COPY t FROM STDIN", data).unwrap_err();
    (error.sqlstate(), error.to_string())
}

/// A Parquet file of columns of 13 types, damaged in many places: read, or refused with its name, never more.
#[test]
fn damaged_parquet_files_are_refused_by_name() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let columns = "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, f DOUBLE PRECISION, d DECIMAL(10,2), day DATE, \
        at TIME, ts TIMESTAMP, tz TIMESTAMPTZ, v TEXT, raw BYTEA";
    connection.execute_batch(&format!("CREATE TABLE t ({columns}); CREATE TABLE u ({columns})")).unwrap();
    for row in 0..40 {
        let null = if row % 7 == 0 { "NULL" } else { "'2024-02-29 12:34:56.05+00'" };
        connection
            .execute(&format!(
                "INSERT INTO t VALUES ({}, {row}, {row} * 1000, {row} * 1000000000, 0.5, {row} / 3.0, {row} + 0.25, \
                 '2024-02-29', '12:34:56', '2024-02-29 12:34:56', {null}, repeat('x{row}', 20), '\\x00ff{row:02}')",
                row % 2 == 0
            ))
            .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let name = path.display().to_string();
    connection.execute(&format!("COPY t TO '{name}'")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(connection.execute(&format!("COPY u FROM '{name}'")).unwrap(), 40);
    let mut refused = 0;
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below
    };
    for round in 0..600 {
        let mut damaged = whole.clone();
        match round % 4 {
            0 => damaged.truncate(random(whole.len())),
            // The end says what is where.
            1 => {
                let at = whole.len() - 1 - random(1_500.min(whole.len()));
                damaged[at] ^= 1 << random(8);
            }
            _ => {
                for _ in 0..=random(3) {
                    damaged[random(whole.len())] = random(256) as u8;
                }
            }
        }
        std::fs::write(&path, &damaged).unwrap();
        connection.execute("TRUNCATE u").unwrap();
        let Err(error) = connection.execute(&format!("COPY u FROM '{name}'")) else { continue };
        refused += 1;
        let code = error.sqlstate();
        // A name of a column, or a value, may be what was damaged.
        assert!(matches!(code, "22P04" | "42703" | "42804" | "22003" | "22008" | "22021"), "{code}: {error}");
        assert!(code != "22P04" || error.to_string().contains("t.parquet") || error.to_string().contains("column"));
    }
    assert!(refused > 200, "{refused}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["40"]);
}

#[test]
fn system_tables_can_be_copied_out() {
    let (_database, connection) = with_table();
    assert_eq!(out(&connection, "COPY mainstem.tables (table_name) TO STDOUT"), "t\n");
    assert!(out(&connection, "COPY information_schema.tables TO STDOUT WITH CSV HEADER").contains(",t,"));
    assert_eq!(refused(&connection, "COPY mainstem.tables FROM STDIN", b"").0, "42501");
}

/// A file is read in chunks by several threads, a stream from its first byte to its last.
#[test]
fn a_file_of_many_chunks_is_what_its_stream_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let columns = "(k BIGINT PRIMARY KEY, v TEXT, d DATE, n DECIMAL(12, 2), f DOUBLE PRECISION, at TIMESTAMP, \
                   short VARCHAR(9), b BOOLEAN)";
    let mut text = String::from("k,v,d,n,f,at,short,b\r\n");
    for k in 0..60_000u64 {
        // Rows of many lengths, quotes about what would end a field, forms of values that are not the plainest.
        let value = match k % 7 {
            0 => String::new(),
            1 => "\"\"".to_owned(),
            2 => format!("\"line\r\nof {k}, with \"\"quotes\"\"\""),
            3 => "x".repeat((k % 300) as usize),
            _ => format!("plain {k}"),
        };
        let date =
            if k % 5_000 == 4_999 { "20240105".to_owned() } else { format!("20{:02}-02-{:02}", k % 99, 1 + k % 28) };
        let number = if k % 11 == 0 { String::new() } else { format!("\"{}.{:02}\"", k, k % 100) };
        let at = if k % 3_000 == 1 { "2024-01-05 12:00" } else { "2024-01-05 12:00:00.25" };
        let flag = if k % 2 == 0 { "yes" } else { "f" };
        text += &format!("{k},{value},{date},{number},{}e-3,{at},v{},{flag}\r\n", k * 17, k % 1_000);
    }
    std::fs::write(&path, &text).unwrap();
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch(&format!("CREATE TABLE by_file {columns}; CREATE TABLE by_stream {columns}")).unwrap();
    let copied = connection.execute(&format!("COPY by_file FROM '{}' (FORMAT csv, HEADER)", path.display())).unwrap();
    assert_eq!(copied, 60_000);
    assert_eq!(connection.copy_in("COPY by_stream FROM STDIN (FORMAT csv, HEADER)", text.as_bytes()).unwrap(), 60_000);
    for (left, right) in [("by_file", "by_stream"), ("by_stream", "by_file")] {
        assert_eq!(rows(&connection, &format!("SELECT * FROM {left} EXCEPT SELECT * FROM {right}")), [""; 0]);
    }
    // Wherever in the file a row is refused, its line is told, and none is kept.
    connection.execute("TRUNCATE by_file").unwrap();
    let last = text.lines().count();
    for (row, code, says) in [
        ("60000,,soon,,,,,", "22007", format!("line {}", last + 1)),
        ("60000,,,,,,\"ten chars!\",", "22001", format!("line {}", last + 1)),
        (",,,,,,,", "23502", format!("line {}", last + 1)),
        ("60000,,,,,,", "22P04", format!("line {}: missing data", last + 1)),
        ("60000,\"open,,,,,,", "22P04", format!("line {}: unterminated quoted field", last + 1)),
        ("59999,,,,,,,", "23505", "(k)=(59999) already exists".to_owned()),
    ] {
        std::fs::write(&path, format!("{text}{row}\r\n")).unwrap();
        let sql = format!("COPY by_file FROM '{}' (FORMAT csv, HEADER)", path.display());
        let error = connection.execute(&sql).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{row}: {error}");
        assert!(error.to_string().contains(&says), "{row}: {error}");
        assert_eq!(rows(&connection, "SELECT count(*) FROM by_file"), ["0"]);
    }
}

/// Row groups that several threads read come in the file's order, whatever memory there is; a damaged one leaves no
/// row.
#[test]
fn row_groups_of_a_parquet_file_come_in_their_order() {
    const ROWS: u64 = 400_000;
    let database = quiet();
    let connection = database.connect().unwrap();
    let columns = "k BIGINT, v TEXT, d DECIMAL(12,2) NOT NULL, c CHAR(3)";
    let layout = "WITH (layout = 'insertion')";
    connection
        .execute_batch(&format!("CREATE TABLE t ({columns}) {layout}; CREATE TABLE u ({columns}) {layout}"))
        .unwrap();
    let values = "k, CASE WHEN k % 5 > 0 THEN 'text ' || k % 1000 END, k / 100.0, 'c' || k % 7";
    let series = format!("generate_series(1, {ROWS}) AS s (k)");
    connection.execute(&format!("INSERT INTO t SELECT {values} FROM {series}")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let name = path.display().to_string();
    connection.execute(&format!("COPY (SELECT * FROM t ORDER BY k) TO '{name}'")).unwrap();
    for (threads, memory, condition) in [(4, "1GB", ""), (4, "16MB", ""), (1, "1GB", ""), (4, "1GB", "WHERE k % 3 = 1")]
    {
        connection.execute(&format!("SET memory_limit = '{memory}'")).unwrap();
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        connection.execute("TRUNCATE u").unwrap();
        let copied = connection.execute(&format!("COPY u FROM '{name}' {condition}")).unwrap();
        connection.execute_batch("SET threads = 1; RESET memory_limit").unwrap();
        let all = rows(&connection, &format!("SELECT count(*) FROM t {condition}"));
        assert_eq!(all, [copied.to_string()], "{threads} {memory}");
        let mut last = 0;
        for batch in connection.query("SELECT k FROM u").unwrap() {
            for k in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                assert!(*k > last, "{k} behind {last}: {threads} {memory}");
                last = *k;
            }
        }
        let differ = format!("SELECT count(*) FROM (SELECT * FROM t {condition} EXCEPT ALL SELECT * FROM u) d");
        assert_eq!(rows(&connection, &differ), ["0"], "{threads} {memory}");
    }
    let mut damaged = std::fs::read(&path).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 4_000].fill(0xff);
    std::fs::write(&path, &damaged).unwrap();
    connection.execute_batch("SET threads = 4; TRUNCATE u").unwrap();
    let error = connection.execute(&format!("COPY u FROM '{name}'")).unwrap_err();
    assert!(error.sqlstate() == "22P04" && error.to_string().contains("t.parquet"), "{error}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM u"), ["0"]);
}

/// Gives at most 1,000 bytes at a time, and fails behind the last ones if it is told to.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(1_000);
        match self.0.read(&mut buffer[..room])? {
            0 if self.1 => Err(io::Error::other("the wire is cut")),
            read => Ok(read),
        }
    }
}

/// A stream of many chunks gives what one reader gives that takes a byte after the other: another ESCAPE asks for that.
#[test]
fn streams_in_chunks_are_read_as_byte_by_byte() {
    let (_database, connection) = with_table();
    connection.execute_batch("SET load_chunk_bytes = '64kB'; SET threads = 3").unwrap();
    let row = |n: usize| match n % 7 {
        0 => format!("{n},\"two\nlines, \"\"é\"\"\",2024-01-{:02}\r\n", n % 31 + 1),
        3 => format!("{n},,\n"),
        5 => format!("{n},\"\",1999-12-31\n"),
        _ => format!("{n},some text of row {n},2024-02-29\n"),
    };
    let text: String = std::iter::once("k,v,d\n".to_owned()).chain((0..40_000).map(row)).collect();
    let one_by_one = text.replace("\"\"é\"\"", "\\\"é\\\"");
    let latin1: Vec<u8> = text.chars().map(|c| u32::from(c) as u8).collect();
    let of_stream = |options: &str, data: &[u8]| {
        connection.execute("TRUNCATE t").unwrap();
        let sql = format!("COPY t FROM STDIN (FORMAT csv, HEADER match{options})");
        assert_eq!(connection.copy_in(&sql, Trickle(data, false)).unwrap(), 40_000, "{options}");
        rows(&connection, "SELECT count(v), count(d), sum(length(v)), max(v), string_agg(v, ',' ORDER BY k) FROM t")
    };
    let expected = of_stream(", ESCAPE '\\'", one_by_one.as_bytes());
    assert_eq!(of_stream("", text.as_bytes()), expected);
    assert_eq!(of_stream(", ENCODING 'LATIN1'", &latin1), expected);
    let ended = format!("\u{feff}{}", text.trim_end());
    assert_eq!(of_stream("", ended.as_bytes()), expected);
    let returns = text.replace("\r\n", "\n").replace("\n", "\r").replace("two\rlines", "two\nlines");
    assert_eq!(of_stream("", returns.as_bytes()), expected);
}

#[test]
fn errors_of_streams_in_chunks_name_lines() {
    let database = quiet();
    let connection = database.connect().unwrap();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY CHECK (k <> 35000), v TEXT, d DATE)").unwrap();
    connection.execute("SET load_chunk_bytes = '64kB'").unwrap();
    let text: String = (0..60_000).map(|n| format!("{n},\"x\ny\",2024-01-01\n")).collect();
    let sql = "COPY t FROM STDIN (FORMAT csv)";
    let good = text.replace("\n35000,", "\n-1,");
    for (found, instead, state, says) in [
        ("\n30000,", "\n3x,", "22P02", "line 60001"),
        ("\n30000,", "\n30000,a,", "22P04", "line 60001: extra data"),
        ("\n30000,", "\n", "22P04", "line 60001: missing data for column \"d\""),
        ("\n30000,", "\n9999999999,", "22003", "line 60001"),
        ("\n30000,", "\n,", "23502", "line 60001"),
        ("\n30000,", "\n35000,", "23514", "line 60001"),
        ("\n30000,", "\n30000,\"", "22P04", "line 60001"),
    ] {
        let (got, message) = refused(&connection, sql, good.replace(found, instead).as_bytes());
        assert!(got == state && message.contains(says), "{instead:?}: {got} {message}");
    }
    let mut bytes = good.clone().into_bytes();
    let last = bytes.len() - 15;
    bytes[last] = 0xFF;
    let (got, message) = refused(&connection, sql, &bytes);
    assert!(got == "22021" && message.contains("column \"v\""), "{got} {message}");
    let (got, message) = refused(&connection, sql, &good.as_bytes()[..good.len() - 13]);
    assert!(got == "22P04" && message.contains("line 119999: unterminated"), "{got} {message}");
    let error = connection.copy_in(sql, Trickle(good.as_bytes(), true)).unwrap_err();
    assert!(error.to_string().contains("the wire is cut"), "{error}");
    let wrong = good.replace("\n30000,", "\n3x,");
    let error = connection.copy_in(sql, Trickle(wrong.as_bytes(), true)).unwrap_err();
    assert!(error.to_string().contains("line 60001"), "what is wrong before is told first: {error}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
    assert_eq!(connection.copy_in(sql, good.as_bytes()).unwrap(), 60_000);
    assert_eq!(code(&connection, "SET load_chunk_bytes = '1kB'"), "22023");
    assert_eq!(rows(&connection, "SHOW load_chunk_bytes"), ["65536"]);
}

/// A stream without end ends when it is canceled.
#[test]
fn streams_are_canceled() {
    struct Endless(mainstem::InterruptHandle, usize);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1 == 300 {
                self.0.interrupt();
            }
            let rows = buffer.len() / 4;
            assert!(rows > 0 && self.1 < 10_000, "it is not canceled");
            buffer[..4 * rows].chunks_mut(4).for_each(|row| row.copy_from_slice(b"7,a\n"));
            Ok(4 * rows)
        }
    }
    let (_database, connection) = with_table();
    connection.execute("CREATE TABLE u (k INTEGER, v TEXT)").unwrap();
    let endless = Endless(connection.interrupt_handle(), 0);
    let error = connection.copy_in("COPY u FROM STDIN (FORMAT csv)", endless).unwrap_err();
    assert_eq!(error.sqlstate(), "57014", "{error}");
    assert_eq!(rows(&connection, "SELECT count(*) FROM u"), ["0"]);
}

/// Files whose names say that they are compressed are read as what they were, with the lines of that in errors.
#[test]
fn compressed_files_are_copied_as_what_they_were() {
    let (_database, connection) = with_table();
    let dir = tempfile::tempdir().unwrap();
    let compressed = |name: &str, text: &str| {
        let path = dir.path().join(name);
        let bytes = match name.ends_with("gz") {
            true => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(text.as_bytes()).unwrap();
                encoder.finish().unwrap()
            }
            false => zstd::encode_all(text.as_bytes(), 1).unwrap(),
        };
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let many: String = (0..150_000).map(|k| format!("{k},\"text\n{k}\",\n")).collect();
    for name in ["t.csv.gz", "t.csv.ZST"] {
        let refused = |text: &str, options: &str| {
            let path = compressed(name, text);
            let error = connection.execute(&format!("COPY t FROM '{path}' ({options})")).unwrap_err();
            (error.sqlstate(), error.to_string())
        };
        connection.execute("TRUNCATE t").unwrap();
        let path = compressed(name, &format!("k,v,d\n{many}"));
        assert_eq!(connection.execute(&format!("COPY t FROM '{path}' (FORMAT csv, HEADER match)")).unwrap(), 150_000);
        let found = rows(&connection, "SELECT count(*), count(d), sum(k), max(length(v)) FROM t");
        assert_eq!(found, ["150000|0|11249925000|11"]);
        // What is written under such a name comes back.
        let back = dir.path().join(format!("back-{name}")).display().to_string();
        assert_eq!(connection.execute(&format!("COPY t TO '{back}' (FORMAT csv, HEADER)")).unwrap(), 150_000);
        assert!(std::fs::metadata(&back).unwrap().len() * 2 < many.len() as u64, "{back} is compressed");
        connection.execute("CREATE TABLE back (k INTEGER, v TEXT, d DATE)").unwrap();
        assert_eq!(connection.execute(&format!("COPY back FROM '{back}' (FORMAT csv, HEADER)")).unwrap(), 150_000);
        assert_eq!(rows(&connection, "SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM back) d"), ["0"]);
        connection.execute("DROP TABLE back").unwrap();
        let (state, message) = refused("1000000,x,\n1000001,y,2024-02-30\n", "FORMAT csv");
        assert!(state == "22008" && message.contains("line 2"), "{state} {message}");
        let (state, message) = refused("1000000,x,\n1000001,y,\n1000000,z,\n", "FORMAT csv");
        assert!(state == "23505" && message.contains("line 3 and line 1"), "{state} {message}");
        connection.execute("TRUNCATE t").unwrap();
        let path = compressed(name, "v;k\na;7\n\"b;c\";8\n");
        assert_eq!(connection.execute(&format!("COPY t FROM '{path}' (FORMAT csv, AUTO_DETECT)")).unwrap(), 2);
        let path = compressed(name, "9\tplain\t\\N\n");
        assert_eq!(connection.execute(&format!("COPY t FROM '{path}'")).unwrap(), 1);
        let path = compressed(name, "10,x,\r11,y,\r");
        assert_eq!(connection.execute(&format!("COPY t FROM '{path}' (FORMAT csv)")).unwrap(), 2);
        let all = rows(&connection, "SELECT k, v FROM t ORDER BY k");
        assert_eq!(all, ["7|a", "8|b;c", "9|plain", "10|x", "11|y"]);
        // What is not what it is called.
        let path = dir.path().join(name);
        std::fs::write(&path, "1,x,\n").unwrap();
        let error = connection.execute(&format!("COPY t FROM '{}' (FORMAT csv)", path.display())).unwrap_err();
        assert_eq!(error.sqlstate(), "58030", "{error}");
        // Cut off.
        let whole = std::fs::read(compressed(name, &many)).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        connection.execute("TRUNCATE t").unwrap();
        let error = connection.execute(&format!("COPY t FROM '{}' (FORMAT csv)", path.display())).unwrap_err();
        assert_eq!(error.sqlstate(), "58030", "{error}");
        assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
    }
}

/// Texts that are codes in a Parquet file go into tables of any form: keys, orders, lengths, blanks, conditions.
#[test]
fn codes_of_parquet_files_are_texts() {
    let database = quiet();
    let connection = database.connect().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.parquet").display().to_string();
    let texts = "CASE WHEN k % 7 > 0 THEN 'mode ' || k % 5 END AS few, 'c' || k % 3 || repeat(' ', k % 2) AS blank, \
                 'text ' || k * 7919 % 150001 AS many, '2024-0' || (1 + k % 9) || '-01' AS day";
    connection
        .execute(&format!(
            "COPY (SELECT k, {texts} FROM generate_series(1, 150000) s (k)) TO '{name}' (FORMAT parquet)"
        ))
        .unwrap();
    let columns = |few: &str, blank: &str| format!("k BIGINT, few {few}, blank {blank}, many TEXT, day TEXT");
    let tables = [
        (columns("TEXT", "TEXT"), ""),
        (columns("VARCHAR(6)", "CHAR(3)"), ""),
        (columns("TEXT", "TEXT") + ", PRIMARY KEY (many, k)", ""),
        (columns("TEXT", "TEXT"), "WITH (layout = 'insertion')"),
        (columns("TEXT", "TEXT") + ", extra TEXT DEFAULT 'x', CHECK (blank <> 'c9')", ""),
        (columns("TEXT", "TEXT"), "WITH (segment_rows = 4096)"),
    ];
    for (number, (columns, options)) in tables.iter().enumerate() {
        connection.execute(&format!("CREATE TABLE t{number} ({columns}) {options}")).unwrap();
        connection.execute(&format!("CREATE TABLE u{number} ({columns}) {options}")).unwrap();
        let named = "(k, few, blank, many, day)";
        let copied = connection.execute(&format!("COPY t{number} {named} FROM '{name}'")).unwrap();
        assert_eq!(copied, 150_000, "{columns}");
        connection.execute(&format!("INSERT INTO u{number} {named} SELECT * FROM read_parquet('{name}')")).unwrap();
        for (one, other) in [("t", "u"), ("u", "t")] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT * FROM {one}{number} EXCEPT ALL SELECT * FROM {other}{number}) d"
            );
            assert_eq!(rows(&connection, &sql), ["0"], "{columns} {options}");
        }
    }
    let few = "SELECT few, count(*), min(many) FROM t0 GROUP BY few ORDER BY few";
    assert_eq!(rows(&connection, few), rows(&connection, &few.replace("t0", "u0")));
    // What the table does not take is told, whether it is in a dictionary or not.
    for (columns, code) in [
        (columns("VARCHAR(5)", "TEXT"), "22001"),
        (columns("TEXT NOT NULL", "TEXT"), "23502"),
        (columns("TEXT CHECK (few <> 'mode 3')", "TEXT"), "23514"),
        (columns("INTEGER", "TEXT"), "42804"),
    ] {
        connection.execute(&format!("CREATE TABLE wrong ({columns})")).unwrap();
        assert_eq!(connection.execute(&format!("COPY wrong FROM '{name}'")).unwrap_err().sqlstate(), code, "{columns}");
        assert_eq!(rows(&connection, "SELECT count(*) FROM wrong"), ["0"]);
        connection.execute("DROP TABLE wrong").unwrap();
    }
    connection.execute("CREATE TABLE some (k BIGINT, few TEXT, blank TEXT, many TEXT, day TEXT)").unwrap();
    let some = connection.execute(&format!("COPY some FROM '{name}' WHERE few = 'mode 2' AND k < 100000")).unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t0 WHERE few = 'mode 2' AND k < 100000"), [some.to_string()]);
}
