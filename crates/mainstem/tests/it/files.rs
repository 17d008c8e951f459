//! Files as tables: `FROM 'file.csv'`, `read_csv`, `read_parquet`, DESCRIBE and SUMMARIZE of them, and what COPY FROM
//! finds out about a file or leaves out of it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use mainstem::{Connection, Database};

use super::support::{code, quiet, rows};

struct Files {
    _database: Database,
    connection: Connection,
    dir: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let database = quiet();
        let connection = database.connect().unwrap();
        Self { _database: database, connection, dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file with these bytes; its path.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name).display().to_string()
    }

    /// `sql` with the folder of the files in the place of `$`.
    fn sql(&self, sql: &str) -> String {
        sql.replace('$', &self.dir.path().display().to_string())
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.connection, &self.sql(sql))
    }

    fn code(&self, sql: &str) -> String {
        code(&self.connection, &self.sql(sql)).to_string()
    }

    fn message(&self, sql: &str) -> String {
        let sql = self.sql(sql);
        let run = || -> mainstem::Result<()> {
            for outcome in self.connection.run(&sql)? {
                outcome?.rows.into_iter().flatten().try_for_each(|batch| batch.map(drop))?;
            }
            Ok(())
        };
        run().err().unwrap_or_else(|| panic!("{sql} succeeds")).to_string()
    }

    fn execute(&self, sql: &str) -> u64 {
        let sql = self.sql(sql);
        self.connection.execute(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// The notices of a statement.
    fn notices(&self, sql: &str) -> Vec<String> {
        let sql = self.sql(sql);
        let mut notices = Vec::new();
        for outcome in self.connection.run(&sql).unwrap() {
            let outcome = outcome.unwrap_or_else(|e| panic!("{sql}: {e}"));
            notices.extend(outcome.notices.iter().map(|notice| notice.message.clone()));
            assert!(outcome.rows.is_none());
        }
        notices
    }

    /// Names and types of the columns of what is described.
    fn described(&self, what: &str) -> Vec<String> {
        let named = |row: &String| row.split('|').take(2).collect::<Vec<_>>().join(" ");
        self.rows(&format!("DESCRIBE {what}")).iter().map(named).collect()
    }
}

#[test]
fn a_file_is_a_table() {
    let files = Files::new();
    files.write(
        "city.csv",
        "Name,people,since,area\nUlm,128928,1181-07-21,118.69\n\"Jena, Saale\",,1236-01-01,114.76\n",
    );
    assert_eq!(
        files.rows("SELECT * FROM '$/city.csv'"),
        ["Ulm|128928|1181-07-21|118.69", "Jena, Saale|NULL|1236-01-01|114.76"]
    );
    assert_eq!(files.rows("FROM '$/city.csv' LIMIT 1"), ["Ulm|128928|1181-07-21|118.69"]);
    assert_eq!(
        files.rows("SELECT city.Name, c.people FROM '$/city.csv' JOIN '$/city.csv' c USING (name) ORDER BY 2"),
        ["Ulm|128928", "Jena, Saale|NULL"]
    );
    assert_eq!(files.rows("SELECT count(*), sum(people), max(area) FROM '$/city.csv'"), ["2|128928|118.69"]);
    assert_eq!(files.rows("SELECT name FROM '$/city.csv' WHERE since > DATE '1200-01-01'"), ["Jena, Saale"]);
    assert_eq!(files.rows("WITH c AS (FROM '$/city.csv') SELECT count(*) FROM c WHERE people IS NULL"), ["1"]);
    assert_eq!(files.described("'$/city.csv'"), ["name text", "people integer", "since date", "area numeric(18,2)"]);
    assert_eq!(files.code("SELECT nmae FROM '$/city.csv'"), "42703");
    assert!(files.message("SELECT nam FROM '$/city.csv'").contains("name"), "a near name is told");
    // The file may change between two runs of one text.
    files.write("city.csv", "a\n1\n2\n3\n");
    assert_eq!(files.rows("SELECT * FROM '$/city.csv'"), ["1", "2", "3"]);
    for n in 4..8 {
        files.write("city.csv", format!("a\n{}", "7\n".repeat(n)));
        assert_eq!(files.rows("SELECT count(*), sum(a) FROM '$/city.csv'"), [format!("{n}|{}", 7 * n)]);
    }
}

#[test]
fn options_have_names() {
    let files = Files::new();
    files.write("f.txt", "a~b\n1~'x~y'\n2~-\n");
    let call = "read_csv('$/f.txt', delim => '~', quote => '''', header => true, nullstr => '-')";
    assert_eq!(files.rows(&format!("SELECT a, b FROM {call}")), ["1|x~y", "2|NULL"]);
    assert_eq!(files.rows(&format!("SELECT read_csv.a FROM {call} WHERE b IS NULL")), ["2"]);
    assert_eq!(
        files.rows("SELECT * FROM read_csv('$/f.txt', delim = '~', quote := '''', header = 0) t(x, y)"),
        ["a|b", "1|x~y", "2|-"]
    );
    assert_eq!(
        files.described("read_csv('$/f.txt', delim => '~', columns => 'a BIGINT, b TEXT')"),
        ["a bigint", "b text"]
    );
    assert_eq!(files.described("read_csv('$/f.txt', delim => '~', all_varchar => true)"), ["a text", "b text"]);
    assert_eq!(
        files.described("read_csv('$/f.txt', delim => '~', types => 'a DOUBLE PRECISION')"),
        ["a double precision", "b text"]
    );
    assert_eq!(
        files.described("read_csv('$/f.txt', delim => '~', names => ARRAY['x', 'y'], header => true)"),
        ["x integer", "y text"]
    );
    files.write("ragged.csv", "1,2,3\n4\n\n5,6\n");
    assert_eq!(
        files.rows("FROM read_csv('$/ragged.csv', null_padding => true)"),
        ["1|2|3", "4|NULL|NULL", "NULL|NULL|NULL", "5|6|NULL"]
    );
    files.write("latin.csv", b"name\nK\xF6ln\n");
    assert_eq!(files.rows("FROM read_csv('$/latin.csv', encoding => 'LATIN1', header => true)"), ["K\u{f6}ln"]);
    assert!(
        files
            .message("FROM read_csv('$/latin.csv', header => true)")
            .contains("line 2, column \"name\": the bytes are no valid UTF-8")
    );
    files.write("cr.csv", "a,b\r1,x\r2,\"y\rz\"\r");
    assert_eq!(files.rows("SELECT a, replace(b, E'\\r', '/') FROM '$/cr.csv'"), ["1|x", "2|y/z"]);
    for (sql, expected) in [
        ("FROM read_csv('$/f.txt', delimm => ';')", "22023"),
        ("FROM read_csv('$/f.txt', delim => ';;')", "22023"),
        ("FROM read_csv('$/f.txt', header => 'maybe')", "22023"),
        ("FROM read_csv('$/f.txt', header => true, header => true)", "42601"),
        ("FROM read_csv('$/f.txt', ';')", "42601"),
        ("FROM read_csv()", "22023"),
        ("FROM read_csv('$/f.txt', encoding => 'utf-16')", "0A000"),
        ("FROM read_csv('$/f.txt', types => 'zz INTEGER')", "42703"),
        ("FROM read_csv('$/f.txt', types => 'a WRONG')", "0A000"),
        ("FROM read_csv('$/f.txt', types => 'a VARCHAR(9)')", "0A000"),
        ("FROM read_parquet('$/f.txt', header => true)", "22023"),
        ("CREATE VIEW v AS FROM '$/f.txt'", "0A000"),
    ] {
        assert_eq!(files.code(sql), expected, "{sql}");
    }
    assert!(files.message("FROM read_csv('$/f.txt', delimiterr => ';')").contains("delim"));
}

#[test]
fn several_files_are_one_table() {
    let files = Files::new();
    files.write("p1.csv", "a,b\n1,x\n2,y\n");
    files.write("p2.csv", "a,b\n3.5,z\n");
    files.write("p3.csv", "");
    assert_eq!(files.rows("SELECT * FROM '$/p*.csv'"), ["1.0|x", "2.0|y", "3.5|z"]);
    assert_eq!(files.rows("SELECT sum(a) FROM read_csv(ARRAY['$/p2.csv', '$/p1.csv'])"), ["6.5"]);
    assert_eq!(files.described("'$/p[12].csv'"), ["a numeric(18,1)", "b text"]);
    files.write("p4.csv", "a,c\n1,x\n");
    let message = files.message("FROM '$/p*.csv'");
    assert!(message.contains("different columns") && message.contains("p4.csv"), "{message}");
    assert_eq!(files.code("FROM '$/p*.csv'"), "22P04");
    files.execute("COPY (SELECT 1 AS a, 'x' AS b) TO '$/q1.parquet'");
    files.execute("COPY (SELECT a, b FROM (VALUES (2, 'y'), (3, NULL)) t(a, b)) TO '$/q2.parquet'");
    assert_eq!(files.rows("SELECT b, a FROM '$/q?.parquet' ORDER BY a"), ["x|1", "y|2", "NULL|3"]);
    assert_eq!(files.rows("SELECT count(*) FROM read_parquet('$/q*.parquet')"), ["3"]);
    assert_eq!(files.code("FROM read_file(ARRAY['$/q1.parquet', '$/p1.csv'])"), "0A000");
    assert_eq!(files.code("FROM read_parquet('$/p1.csv')"), "22P04");
    files.execute("COPY (SELECT 1 AS a) TO '$/q3.parquet'");
    assert!(files.message("FROM '$/q*.parquet'").contains("has no column \"b\""));
}

/// More than a chunk of rows, for one partition and for several.
#[test]
fn long_files_are_read_in_order_and_in_parts() {
    let files = Files::new();
    let mut file = fs::File::create(files.path("long.csv")).unwrap();
    writeln!(file, "n,half,name").unwrap();
    for n in 0..400_000_u32 {
        writeln!(file, "{n},{}.5,\"name, {}\"", n / 2, n % 1_000).unwrap();
    }
    assert_eq!(files.rows("SELECT count(*) FROM '$/long.csv'"), ["400000"]);
    assert_eq!(
        files.rows("SELECT count(*), sum(n), sum(half), count(DISTINCT name) FROM '$/long.csv'"),
        ["400000|79999800000|40000000000.0|1000"]
    );
    // In the order of the file, though it is read by several threads.
    files.execute("CREATE TABLE t AS FROM '$/long.csv'");
    let result = files.connection.query(&files.sql("SELECT n FROM '$/long.csv' WHERE n % 1000 = 7")).unwrap();
    let found: Vec<i32> = result.rows().map(|row| row.unwrap().get(0).unwrap()).collect();
    assert_eq!(found, (0..400).map(|n| n * 1_000 + 7).collect::<Vec<i32>>());
    let result = files.connection.query(&files.sql("SELECT n FROM '$/long.csv'")).unwrap();
    let found: Vec<i32> = result.rows().map(|row| row.unwrap().get(0).unwrap()).collect();
    assert!(found.len() == 400_000 && found.is_sorted());
    assert_eq!(files.rows("SELECT n FROM '$/long.csv' LIMIT 2 OFFSET 300000"), ["300000", "300001"]);
    assert_eq!(files.rows("SELECT count(*) FROM t JOIN '$/long.csv' f ON t.n = f.n AND t.name = f.name"), ["400000"]);
    let explained = files.rows("EXPLAIN SELECT sum(half) FROM '$/long.csv'").join("\n");
    assert!(explained.contains("FileScan: csv") && explained.contains("columns=[half]"), "{explained}");
    let explained = files.rows("EXPLAIN SELECT count(*) FROM '$/long.csv'").join("\n");
    assert!(explained.contains("columns=[]"), "{explained}");
    let progress = files.connection.progress();
    files.rows("SELECT sum(n) FROM '$/long.csv'");
    assert_eq!((progress.rows(), progress.bytes() >= progress.bytes_total()), (400_000, true));
}

/// A value of another type where no sample looks: behind the first bytes, and before the first piece. Its row is
/// returned.
fn late(files: &Files, name: &str, late: &str) -> usize {
    const HEAD_BYTES: usize = 1 << 20;
    let (mut text, mut at) = (String::from("k,v\n"), None);
    for n in 0..300_000 {
        let is_late = at.is_none() && text.len() > HEAD_BYTES + 20_000;
        text += &format!("{n},{}\n", if is_late { late } else { "1" });
        at = at.or(is_late.then_some(n));
    }
    files.write(name, text);
    at.unwrap()
}

#[test]
fn a_late_value_widens_its_column() {
    let files = Files::new();
    let at = late(&files, "late.csv", "word");
    assert_eq!(files.described("'$/late.csv'"), ["k integer", "v integer"]);
    // Rows that would have gone out are held back, or all values looked at.
    let result = files.connection.query(&files.sql("SELECT v FROM '$/late.csv'")).unwrap();
    let texts: Vec<String> = result.rows().map(|row| row.unwrap().get::<String>(0).unwrap()).collect();
    assert_eq!((texts.len(), texts[at].as_str(), texts[0].as_str()), (300_000, "word", "1"));
    assert_eq!(files.described("'$/late.csv'"), ["k integer", "v text"]);
    for (value, expected, max) in [
        ("3000000000", "bigint", "3000000000"),
        ("2.75", "numeric(18,2)", "2.75"),
        ("1e3", "double precision", "1000.0"),
        ("00:30:00", "text", "1"),
        ("007", "text", "1"),
    ] {
        let name = format!("{}.csv", value.replace([':', '.'], "_"));
        late(&files, &name, value);
        // By an aggregate, whose first run fails.
        assert_eq!(files.rows(&format!("SELECT max(v) FROM '$/{name}'")), [max], "{value}");
        assert_eq!(files.described(&format!("'$/{name}'")), ["k integer".to_owned(), format!("v {expected}")]);
    }
    late(&files, "table.csv", "x");
    let notices = files.notices("CREATE TABLE t AS FROM '$/table.csv'");
    assert!(notices[0].contains("columns (k integer, v text)"), "{notices:?}");
    assert_eq!(files.rows("SELECT count(*), max(v) FROM t"), ["300000|x"]);
    late(&files, "insert.csv", "5000000000");
    files.execute("CREATE TABLE u (k BIGINT, v BIGINT)");
    files.execute("INSERT INTO u SELECT * FROM '$/insert.csv'");
    assert_eq!(files.rows("SELECT count(*), max(v) FROM u"), ["300000|5000000000"]);
    // A first part needs no look at the others.
    let at = late(&files, "part.csv", "y");
    assert_eq!(files.rows("SELECT v FROM '$/part.csv' LIMIT 1"), ["1"]);
    assert_eq!(files.described("'$/part.csv'"), ["k integer", "v integer"]);
    // What is written to a stream cannot be taken back.
    let mut out = Vec::new();
    files.connection.copy_out(&files.sql("COPY (FROM '$/part.csv') TO STDOUT"), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains(&format!("{at}\ty\n")));
    // A type that was told is not widened.
    late(&files, "told.csv", "z");
    assert_eq!(files.code("SELECT sum(v) FROM read_csv('$/told.csv', types => 'v INTEGER')"), "22P02");
}

#[test]
fn what_was_found_can_be_seen() {
    let files = Files::new();
    files.write("f.csv", "id;Preis\n1;2.50\n2;\n");
    let sniffed =
        files.rows("SELECT delimiter, quote, new_line, has_header, columns, whole_file FROM sniff_csv('$/f.csv')");
    assert_eq!(sniffed, ["';'|'\"'|LF|true|id integer, preis numeric(18,2)|true"]);
    // The call that it gives reads the same.
    let prompt = files.rows("SELECT prompt FROM sniff_csv('$/f.csv')").remove(0);
    assert_eq!(rows(&files.connection, &prompt), ["1|2.50", "2|NULL"]);
    assert_eq!(files.rows("DESCRIBE SELECT id, preis * 2 AS p FROM '$/f.csv'")[1].split('|').next(), Some("p"));
    let summary = files.rows("SUMMARIZE '$/f.csv'");
    assert_eq!(summary[0], "id|integer|1|2|2|1.5000000000000000|0.7071067811865476|1|1.5|2|2|0.0", "{summary:?}");
    assert!(
        summary[1].starts_with("preis|numeric(18,2)|2.50|2.50|1|") && summary[1].ends_with("|1|50.0"),
        "{summary:?}"
    );
    files.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, b BOOLEAN NOT NULL DEFAULT true, u UUID UNIQUE, n TEXT)");
    assert_eq!(
        files.rows("DESCRIBE t"),
        [
            "k|integer|NO|PRI|NULL|NULL",
            "b|boolean|NO|NULL|true|NULL",
            "u|uuid|YES|UNI|NULL|NULL",
            "n|text|YES|NULL|NULL|NULL"
        ]
    );
    assert_eq!(files.rows("SHOW TABLES"), ["t"]);
    assert_eq!(files.rows("SUMMARIZE t").len(), 4);
    files
        .execute("INSERT INTO t VALUES (1, false, NULL, 'x'), (2, true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', NULL)");
    assert!(files.rows("SUMMARIZE SELECT b, u, n FROM t")[0].starts_with("b|boolean|false|true|2|"));
    assert_eq!(files.code("DESCRIBE nothing"), "42P01");
    assert_eq!(files.code("SUMMARIZE"), "42601");
    assert_eq!(files.notices("CREATE TABLE c AS SELECT * FROM '$/f.csv'").len(), 1);
    assert_eq!(files.rows("DESCRIBE c").len(), 2);
}

#[test]
fn compressed_files_are_streams() {
    let files = Files::new();
    let text: String =
        std::iter::once("n,m\n".to_owned()).chain((0..300_000).map(|n| format!("{n},{}\n", n % 7))).collect();
    let gz = |path: PathBuf, parts: &[&str]| {
        let mut bytes = Vec::new();
        for part in parts {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            bytes.extend(encoder.finish().unwrap());
        }
        fs::write(path, bytes).unwrap();
    };
    // Of several members, as programs that compress in parallel write them.
    gz(files.path("a.csv.gz"), &[&text[..1_000], &text[1_000..]]);
    fs::write(files.path("b.csv.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    for name in ["a.csv.gz", "b.csv.zst"] {
        assert_eq!(files.rows(&format!("SELECT count(*), sum(n), max(m) FROM '$/{name}'")), ["300000|44999850000|6"]);
        assert_eq!(files.rows(&format!("SELECT n FROM '$/{name}' LIMIT 1 OFFSET 299999")), ["299999"]);
    }
    let bytes = fs::read(files.path("a.csv.gz")).unwrap();
    files.write("cut.csv.gz", &bytes[..bytes.len() / 2]);
    assert!(files.message("SELECT sum(n) FROM '$/cut.csv.gz'").contains("cut.csv.gz"));
    files.write("none.csv.gz", "a\n1\n");
    assert!(files.message("FROM '$/none.csv.gz'").contains("none.csv.gz"));
    assert_eq!(files.rows("FROM read_csv('$/none.csv.gz', compression => 'none')"), ["1"]);
}

#[test]
fn bad_files_are_told() {
    let files = Files::new();
    files.write("empty.csv", "");
    fs::create_dir(files.path("dir.csv")).unwrap();
    files.write("short.csv", "a,b\n1,2\n3\n4,5\n");
    files.write("open.csv", "a,b\n1,\"2\n3,4\n");
    files.write("utf8.csv", b"a,b\n1,x\n2,\xFF\n");
    files.write("nul.csv", b"a,b\n1,x\n2,y\0z\n");
    files.write("bom.csv", "\u{feff}a,b\n1,2\n");
    files.write("broken.parquet", "PAR1 not at all");
    assert_eq!(files.rows("SELECT a FROM '$/bom.csv'"), ["1"]);
    assert_eq!(files.rows("SELECT length(b) FROM '$/nul.csv'"), ["1", "3"]);
    for (sql, state, says) in [
        ("FROM '$/empty.csv'", "22P04", "the file is empty"),
        ("FROM '$/dir.csv'", "42809", "is a directory"),
        ("FROM '$/missing.csv'", "58P01", "missing.csv"),
        ("FROM '$/no*.csv'", "58P01", "no file matches"),
        ("FROM '$/[.csv'", "22023", "no pattern"),
        ("FROM '$/short.csv'", "22P04", "line 3: missing data for column \"b\""),
        ("SELECT count(*) FROM '$/short.csv'", "22P04", "line 3: missing data for column \"b\""),
        (
            "FROM read_csv('$/open.csv', header => true, delim => ',', quote => '\"')",
            "22P04",
            "line 2: unterminated quoted field in column \"b\"",
        ),
        ("FROM '$/utf8.csv'", "22021", "line 3, column \"b\": the bytes are no valid UTF-8"),
        ("FROM '$/broken.parquet'", "22P04", "broken.parquet"),
    ] {
        let message = files.message(sql);
        assert_eq!(files.code(sql), state, "{sql}: {message}");
        assert!(message.contains(says), "{sql}: {message}");
    }
    #[cfg(unix)]
    {
        let pipe = files.path("pipe.csv");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(files.code("FROM '$/pipe.csv'"), "0A000");
    }
}

#[test]
fn files_can_be_kept_from_statements() {
    let files = Files::new();
    files.write("f.csv", "a\n1\n");
    files.execute("CREATE TABLE t (a INTEGER)");
    assert_eq!(files.rows("SHOW enable_file_access"), ["on"]);
    files.execute("SET enable_file_access = off");
    for sql in [
        "FROM '$/f.csv'",
        "SELECT * FROM read_csv('$/f.csv')",
        "COPY t FROM '$/f.csv'",
        "COPY t TO '$/g.csv'",
        "UNLOAD TABLE t TO '$/u'",
        "LOAD TABLE t FROM '$/u'",
        "EXPORT DATABASE '$/e'",
        "IMPORT DATABASE '$/e'",
        "FROM sniff_csv('$/f.csv')",
        "INSERT INTO t SELECT * FROM '$/f.csv'",
        "SET enable_file_access = on",
        "SET LOCAL enable_file_access = on",
        "RESET enable_file_access",
    ] {
        let expected = if sql.starts_with("SET LOCAL") { "0A000" } else { "42501" };
        assert_eq!(files.code(sql), expected, "{sql}");
    }
    files.execute("RESET ALL");
    assert_eq!(files.rows("SHOW enable_file_access"), ["off"]);
    assert_eq!(files.connection.copy_in("COPY t FROM STDIN (FORMAT csv)", &b"7\n"[..]).unwrap(), 1);
}

#[test]
fn copy_finds_options_and_columns() {
    let files = Files::new();
    files.execute("CREATE TABLE t (k INTEGER, \"Name\" TEXT, n BIGINT DEFAULT 9)");
    files.write("f.csv", "name;k\n007;1\n008;2\n");
    let notices = files.notices("COPY t FROM '$/f.csv' (FORMAT csv, AUTO_DETECT)");
    assert!(notices[0].contains("delimiter ';'"), "{notices:?}");
    // The types are those of the table.
    assert_eq!(files.rows("SELECT * FROM t ORDER BY k"), ["1|007|9", "2|008|9"]);
    files.write("g.csv", "name;z\na;1\n");
    assert!(
        files.message("COPY t FROM '$/g.csv' (FORMAT csv, AUTO_DETECT)").contains("the header names a column \"z\"")
    );
    files.write("cr.csv", "3,c,4\r5,\"d\re\",6\r");
    assert_eq!(files.execute("COPY t FROM '$/cr.csv'"), 2);
    assert_eq!(files.connection.copy_in("COPY t FROM STDIN (FORMAT csv)", &b"7,f,8\r9,g,\r"[..]).unwrap(), 2);
    assert_eq!(
        files.rows("SELECT k, replace(\"Name\", E'\\r', '/') FROM t WHERE k > 2 ORDER BY k"),
        ["3|c", "5|d/e", "7|f", "9|g"]
    );
    let mixed = files.connection.copy_in("COPY t FROM STDIN (FORMAT csv)", &b"1,a,1\r2,b,2\n"[..]).unwrap_err();
    assert_eq!((mixed.sqlstate(), mixed.to_string().contains("line 2: unquoted newline")), ("22P04", true), "{mixed}");
    files.write("match.csv", "k,name,n\n1,x,2\n");
    let message = files.message("COPY t FROM '$/match.csv' (FORMAT csv, HEADER match)");
    assert!(
        message.contains("column name mismatch in header line field 2: got \"name\", expected \"Name\""),
        "{message}"
    );
    assert_eq!(files.execute("COPY t (k, \"Name\", n) FROM '$/match.csv' (FORMAT csv, HEADER true)"), 1);
    files.write("fewer.csv", "k,Name\n1,x\n");
    assert!(files.message("COPY t FROM '$/fewer.csv' (HEADER match)").contains("got 2, expected 3"));
    assert_eq!(files.execute("COPY t (k, \"Name\") FROM '$/fewer.csv' (HEADER match)"), 1);
    assert_eq!(files.execute("COPY t FROM '$/fewer.csv' (HEADER, NULL_PADDING)"), 1);
}

#[test]
fn copy_reads_latin1() {
    let files = Files::new();
    files.execute("CREATE TABLE t (a TEXT)");
    let bytes: Vec<u8> = (0xA0..=0xFF).chain(*b"\n").collect();
    files.write("l.csv", &bytes);
    assert_eq!(files.code("COPY t FROM '$/l.csv'"), "22021");
    files.execute("COPY t FROM '$/l.csv' (ENCODING 'LATIN1')");
    files.execute("COPY t FROM '$/l.csv' (FORMAT text, ENCODING 'latin1')");
    let expected: String = (0xA0..=0xFF_u8).map(char::from).collect();
    assert_eq!(files.rows("SELECT a FROM t"), [expected.clone(), expected]);
    assert_eq!(files.code("COPY t TO '$/m.csv' (ENCODING 'LATIN1')"), "0A000");
    assert_eq!(files.code("COPY t FROM '$/l.csv' (ENCODING 'EBCDIC')"), "0A000");
}

#[test]
fn copy_where_leaves_rows_out() {
    let files = Files::new();
    files.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER NOT NULL DEFAULT 5 CHECK (v < 100))");
    files.write("f.csv", "1,10\n2,\n3,300\n4,40\n");
    // Before NOT NULL and CHECK are looked at, as in PostgreSQL.
    assert_eq!(files.execute("COPY t FROM '$/f.csv' WHERE v < 100"), 2);
    assert_eq!(files.rows("SELECT * FROM t ORDER BY k"), ["1|10", "4|40"]);
    assert!(files.message("COPY t FROM '$/f.csv' (FORMAT csv) WHERE k > 1").contains("line 2"));
    assert_eq!(
        files.connection.copy_in("COPY t (k) FROM STDIN WHERE k % 2 = 0 AND v = 5", &b"5\n6\n7\n8\n"[..]).unwrap(),
        2
    );
    files.execute("COPY (SELECT 9 AS k, 1 AS v UNION ALL SELECT 10, 2) TO '$/f.parquet'");
    assert_eq!(files.execute("COPY t FROM '$/f.parquet' WHERE k = 10"), 1);
    for (condition, expected) in
        [("k", "42804"), ("zz = 1", "42703"), ("sum(k) > 1", "42803"), ("k IN (SELECT 1)", "0A000")]
    {
        assert_eq!(files.code(&format!("COPY t FROM '$/f.csv' WHERE {condition}")), expected, "{condition}");
    }
    assert_eq!(files.code("COPY t TO '$/g.csv' WHERE k = 1"), "42601");
}

#[test]
fn copy_leaves_wrong_values_out() {
    let files = Files::new();
    files.execute("CREATE TABLE t (k INTEGER NOT NULL, d DATE, v VARCHAR(3))");
    files.write("f.csv", "1,2024-01-01,a\nx,2024-01-01,b\n3,2024-02-30,c\n4,,d\ny,z,e\n6,2024-01-06,\"f\ng\"\n");
    assert_eq!(files.code("COPY t FROM '$/f.csv'"), "22P02");
    let ignoring = "COPY t FROM '$/f.csv' (FORMAT csv, ON_ERROR ignore";
    assert_eq!(files.notices(&format!("{ignoring})")), ["3 rows were skipped due to data type incompatibility"]);
    assert_eq!(files.rows("SELECT k FROM t ORDER BY k"), ["1", "4", "6"]);
    assert_eq!(files.notices(&format!("{ignoring}, LOG_VERBOSITY silent, REJECT_LIMIT 3)")), Vec::<String>::new());
    let message = files.message(&format!("{ignoring}, REJECT_LIMIT 2)"));
    assert!(message.contains("skipped more than REJECT_LIMIT (2) rows") && message.contains("\"y\""), "{message}");
    assert_eq!(files.code(&format!("{ignoring}, REJECT_LIMIT 2)")), "22P02");
    assert_eq!(files.rows("SELECT count(*) FROM t"), ["6"]);
    // Where they are told.
    files.notices(&format!("{ignoring}, REJECTS_TABLE wrong)"));
    assert_eq!(
        files.rows("SELECT line, byte, column_name, text FROM wrong ORDER BY line"),
        ["2|15|k|x", "3|30|d|2024-02-30", "5|50|k|y"]
    );
    assert_eq!(files.rows("SELECT count(*) FROM wrong WHERE file LIKE '%f.csv' AND reason LIKE '%invalid%'"), ["3"]);
    let data = b"1\t\\N\t\\N\nq\t\\N\t\\N\n";
    let sql = "COPY t FROM STDIN (ON_ERROR ignore, REJECTS_TABLE wrong, LOG_VERBOSITY silent)";
    assert_eq!(files.connection.copy_in(sql, &data[..]).unwrap(), 1);
    assert_eq!(files.rows("SELECT file, line, byte, text FROM wrong WHERE text = 'q'"), ["STDIN|2|8|q"]);
    assert_eq!(
        files.notices(&format!("{ignoring}, REJECTS_FILE '$/wrong.csv')")),
        ["3 rows were skipped due to data type incompatibility"]
    );
    assert_eq!(
        files.rows("SELECT line, byte, column_name, text FROM '$/wrong.csv' WHERE file LIKE '%f.csv' ORDER BY line"),
        ["2|15|k|x", "3|30|d|2024-02-30", "5|50|k|y"]
    );
    // A statement that fails leaves the file as it was.
    assert_eq!(files.code(&format!("{ignoring}, REJECT_LIMIT 1, REJECTS_FILE '$/wrong.csv')")), "22P02");
    assert_eq!(files.rows("SELECT count(*) FROM '$/wrong.csv'"), ["3"]);
    assert_eq!(files.code(&format!("{ignoring}, REJECTS_FILE '$/no/such/folder.csv')")), "58P01");
    // What is no matter of one value is an error.
    for (bytes, state) in [("1,2024-01-01\n", "22P04"), (",2024-01-01,a\n", "23502"), ("1,2024-01-01,abcd\n", "22001")]
    {
        files.write("g.csv", bytes);
        assert_eq!(files.code("COPY t FROM '$/g.csv' (ON_ERROR ignore, REJECTS_TABLE more)"), state, "{bytes}");
    }
    // Nor is a table made then.
    assert_eq!(files.code("SELECT * FROM more"), "42P01");
    for (options, expected) in [
        ("REJECT_LIMIT 3", "22023"),
        ("ON_ERROR stop, REJECT_LIMIT 3", "22023"),
        ("ON_ERROR ignore, REJECT_LIMIT 0", "22023"),
        ("ON_ERROR ignore, REJECTS_TABLE t", "42P16"),
        ("REJECTS_FILE 'x.csv'", "22023"),
        ("ON_ERROR maybe", "22023"),
        ("LOG_VERBOSITY verbose", "0A000"),
        ("FORMAT parquet, ON_ERROR ignore", "22023"),
        ("FORMAT text, AUTO_DETECT", "22023"),
    ] {
        assert_eq!(files.code(&format!("COPY t FROM '$/f.csv' ({options})")), expected, "{options}");
    }
    assert_eq!(files.code("COPY t TO '$/h.csv' (ON_ERROR ignore)"), "22023");
}

/// Wrong values in many chunks, with threads: as many rows and the same rejects as by one stream.
#[test]
fn rejects_are_the_same_by_threads() {
    let files = Files::new();
    files.execute("CREATE TABLE t (k INTEGER, v TEXT)");
    let text: String =
        (0..300_000).map(|n| if n % 1_009 == 5 { format!("{n}x,a\n") } else { format!("{n},b\n") }).collect();
    files.write("f.csv", &text);
    files.execute("COPY t FROM '$/f.csv' (ON_ERROR ignore, REJECTS_TABLE a)");
    let sql = "COPY t FROM STDIN (FORMAT csv, ON_ERROR ignore, REJECTS_TABLE b)";
    files.connection.copy_in(sql, text.as_bytes()).unwrap();
    assert_eq!(files.rows("SELECT count(*), min(line), max(line) FROM a"), ["298|6|299679"]);
    assert_eq!(
        files
            .rows("SELECT line, byte, column_name, reason, text FROM a EXCEPT SELECT line, byte, column_name, reason, text FROM b"),
        Vec::<String>::new()
    );
    for told in files.rows("SELECT byte, text FROM a") {
        let (byte, wrong) = told.split_once('|').unwrap();
        let before = &text[..byte.parse().unwrap()];
        assert!(before.ends_with('\n') && text[before.len()..].starts_with(&format!("{wrong},a")), "{told}");
    }
    assert_eq!(files.rows("SELECT count(*) FROM b"), ["298"]);
    assert_eq!(
        files.rows("SELECT count(*), count(DISTINCT k) FROM t"),
        [format!("{}|{}", 2 * (300_000 - 298), 300_000 - 298)]
    );
}
