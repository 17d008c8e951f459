//! SQL from `-c`, `-f` and a pipe; exit status; databases that cannot be opened.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::program::{command, run, run_piped, text};

#[test]
fn commands_run_in_order_and_share_a_session() {
    let run = run([
        "-c",
        "CREATE TABLE t (n INTEGER); BEGIN",
        "-c",
        "INSERT INTO t VALUES (1), (2)",
        "-c",
        "COMMIT; SELECT sum(n) AS s FROM t",
    ]);
    assert_eq!(run.ok(), "s\n3\n");
}

#[test]
fn commands_and_files_run_in_the_order_given() {
    let dir = tempfile::tempdir().unwrap();
    let files = [("insert.sql", "INSERT INTO t VALUES (1)"), ("delete.sql", "DELETE FROM t")];
    let [insert, delete] = files.map(|(name, sql)| {
        fs::write(dir.path().join(name), sql).unwrap();
        dir.path().join(name)
    });
    let count = "SELECT count(*) FROM t";
    let args = ["-c", "CREATE TABLE t (n INTEGER)", "-f", text(&insert), "-c", count, "-f", text(&delete), "-c", count];
    assert_eq!(run(args).ok(), "count\n1\ncount\n0\n");
}

#[test]
fn rows_survive_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    run([text(&database), "-c", "CREATE TABLE t (n INTEGER PRIMARY KEY)", "-c", "INSERT INTO t VALUES (7)"]).ok();
    assert_eq!(run([text(&database), "-c", "SELECT n FROM t"]).ok(), "n\n7\n");
}

#[test]
fn the_name_of_memory_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = command()
        .current_dir(folder.path())
        .args([":memory:", "-c", "CREATE TABLE t (n INTEGER)", "-c", "SELECT count(*) AS n FROM t"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "n\n0\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_pipe_is_read_statement_by_statement() {
    let sql =
        "-- a script;\nCREATE TABLE t (n INTEGER,\n  name TEXT);\nINSERT INTO t VALUES (1, 'a;b');\nSELECT * FROM t";
    assert_eq!(run_piped(&[], sql.as_bytes()).ok(), "n,name\n1,a;b\n");
    assert_eq!(run_piped(&[], b"").ok(), "");
    assert_eq!(run_piped(&[], b"  ;;\n-- nothing\n").ok(), "");
}

#[test]
fn a_pipe_is_answered_before_it_ends() {
    let mut child = command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 1..4 {
        writeln!(input, "SELECT {n} AS n;").unwrap();
        assert_eq!(output.next().unwrap().unwrap(), "n");
        assert_eq!(output.next().unwrap().unwrap(), n.to_string());
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_file_runs_and_its_errors_name_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    fs::write(&file, "SELECT 1 AS a;\n\n-- comment\nSELECT *\nFROM missing;\nSELECT 2 AS b;\n").unwrap();
    let ran = run(["-f", text(&file)]);
    assert_eq!(ran.out, "a\n1\n");
    let complaint = ran.failed("42P01");
    assert!(complaint.starts_with(&format!("{}:4: ERROR 42P01: ", file.display())), "{complaint}");
    assert!(complaint.contains("missing"), "{complaint}");
}

#[test]
fn commands_run_before_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    fs::write(&file, "SELECT count(*) AS c FROM t").unwrap();
    assert_eq!(run(["-c", "CREATE TABLE t (n INTEGER)", "-f", text(&file)]).ok(), "c\n0\n");
}

#[test]
fn the_first_error_stops_everything_after_it_and_nothing_before() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let run_1 = run([
        text(&database),
        "-c",
        "CREATE TABLE t (n INTEGER PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
        "-c",
        "INSERT INTO t VALUES (3)",
    ]);
    run_1.failed("23505");
    assert_eq!(run([text(&database), "-c", "SELECT n FROM t"]).ok(), "n\n1\n");
}

#[test]
fn errors_have_their_sqlstate() {
    for (sql, sqlstate) in [
        ("SELEC 1", "42601"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT nothing", "42703"),
        ("CREATE TABLE t (n INTEGER NOT NULL); INSERT INTO t VALUES (NULL)", "23502"),
        ("CREATE INDEX i ON t (n)", "0A000"),
    ] {
        let ran = run(["-c", sql]);
        assert_eq!(ran.out, "", "{sql}");
        ran.failed(sqlstate);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    assert!(run(["-f", "/no/such/file.sql"]).failed("58P01").contains("/no/such/file.sql"));
    let dir = tempfile::tempdir().unwrap();
    run(["-f", text(dir.path())]).failed("58030");
    let ran = run_piped(&["--format", "csv"], b"SELECT 1 AS a;\nSELECT '\xff';\n");
    assert_eq!(ran.out, "a\n1\n");
    assert!(ran.failed("22021").starts_with("stdin:2: "));
}

#[test]
fn a_reader_that_goes_away_hears_nothing() {
    let mut child = command()
        .args(["-c", "CREATE TABLE t AS SELECT 1", "-c", "SELECT 1"])
        .args(["--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("roken pipe") && !said.contains("panicked"), "{said}");
}

#[test]
fn a_read_only_database_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    run([text(&database), "-c", "CREATE TABLE t (n INTEGER)", "-c", "INSERT INTO t VALUES (1)"]).ok();
    let read_only = |sql| run([text(&database), "--read-only", "-c", sql]);
    assert_eq!(read_only("SELECT n FROM t").ok(), "n\n1\n");
    read_only("INSERT INTO t VALUES (2)").failed("25006");
    read_only("DROP TABLE t").failed("25006");
    assert_eq!(read_only("SELECT n FROM t").ok(), "n\n1\n");
}

#[test]
fn read_only_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let complaint = run([text(&database), "--read-only", "-c", "SELECT 1"]).failed("58P01");
    assert!(complaint.contains(text(&database)), "{complaint}");
    assert!(!database.exists());
    assert_eq!(run(["--read-only", "-c", "SELECT 1"]).status, 2, "nothing to read");
    let two = run(["a", "b"]);
    assert!(two.status == 2 && two.err.contains("there is one DATABASE: \"b\" is too many"), "{two:?}");
}

#[test]
fn a_database_in_use_says_so_and_is_free_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let mut first = command().arg(&database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = first.stdin.take().unwrap();
    let mut output = BufReader::new(first.stdout.take().unwrap()).lines();
    writeln!(input, "SELECT 1 AS ready;").unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "ready");
    let complaint = run([text(&database), "-c", "SELECT 1"]).failed("55006");
    assert!(complaint.contains(text(&database)), "{complaint}");
    assert!(complaint.contains(&first.id().to_string()), "it says who has it: {complaint}");
    run([text(&database), "--read-only", "-c", "SELECT 1"]).failed("55006");
    drop(input);
    assert!(first.wait().unwrap().success());
    run([text(&database), "-c", "SELECT 1"]).ok();
}

#[test]
fn a_directory_that_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("letter.txt"), "Dear Sir").unwrap();
    let ran = run([text(dir.path()), "-c", "SELECT 1"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.starts_with("ERROR ") && ran.err.contains(text(dir.path())), "{ran:?}");
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["letter.txt"]);
    let file = dir.path().join("letter.txt");
    let ran = run([text(&file), "-c", "SELECT 1"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.starts_with("ERROR "), "{ran:?}");
}

#[test]
fn a_transaction_left_open_is_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    run([text(&database), "-c", "CREATE TABLE t (n INTEGER); BEGIN; INSERT INTO t VALUES (1)"]).ok();
    assert_eq!(run([text(&database), "-c", "SELECT count(*) AS c FROM t"]).ok(), "c\n0\n");
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_statement_and_ends_a_waiting_script() {
    let interrupt = |id: u32| {
        let done = std::process::Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap();
        assert!(done.success());
    };
    let mut child = command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "SELECT 1 AS ready;").unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "ready");
    // Far more rows than anybody waits for. It runs when it writes.
    writeln!(
        input,
        "COPY (SELECT 'row' FROM generate_series(1, 100000000) a(i), generate_series(1, 100000000) b(i)) TO STDOUT;"
    )
    .unwrap();
    assert_eq!(output.nth(1).unwrap().unwrap(), "row");
    interrupt(child.id());
    assert!(output.all(|line| line.is_ok()));
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("ERROR 57014: "), "{said}");

    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let mut child = command().arg(&database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7); SELECT 1 AS ready;").unwrap();
    assert_eq!(output.nth(1).unwrap().unwrap(), "1");
    writeln!(input, "BEGIN; INSERT INTO t VALUES (8); SELECT 2 AS ready;").unwrap();
    assert_eq!(output.nth(1).unwrap().unwrap(), "2");
    // Until it waits for the next line: while a statement runs, it alone is canceled.
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(100));
        interrupt(child.id());
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // It has closed the database, and what was open is rolled back.
    assert!(database.join("LOG_END").exists());
    assert_eq!(run([text(&database), "-c", "SELECT n FROM t"]).ok(), "n\n7\n");
}

#[test]
fn data_of_a_copy_stands_behind_it() {
    let script = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);\nCOPY t FROM STDIN;\n1\tone;\n2\t\\N\n\\.\n\
                  COPY t FROM STDIN (FORMAT csv);\n3,\"a\nb\"\n\\.\nCOPY (SELECT * FROM t ORDER BY k) TO STDOUT (FORMAT csv);\n\
                  SELECT count(*) AS n FROM t;\n";
    assert_eq!(run_piped(&[], script.as_bytes()).ok(), "1,one;\n2,\n3,\"a\nb\"\nn\n3\n");
    // From a file, in which errors behind the data still name their line.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    fs::write(&file, format!("{script}SELECT * FROM missing;\n")).unwrap();
    let ran = run(["-f", text(&file), "--format", "box"]);
    assert!(ran.out.starts_with("CREATE TABLE\nCOPY 2\nCOPY 1\n1,one;\n"), "{ran:?}");
    assert!(ran.failed("42P01").contains("a.sql:12: "));
    // Data that does not fit, and data that just ends.
    let bad = b"CREATE TABLE t (k INTEGER);\nCOPY t FROM STDIN;\n1\nx\n\\.\nSELECT 1;\n";
    assert!(run_piped(&[], bad).failed("22P02").contains("stdin:2: ERROR 22P02: COPY \"t\": line 2: "));
    assert_eq!(run_piped(&[], b"CREATE TABLE t (k INTEGER);\nCOPY t FROM STDIN;\n1\n2").ok(), "");
}

#[test]
fn data_of_a_command_comes_from_the_pipe() {
    let commands =
        ["-c", "CREATE TABLE t (k INTEGER)", "-c", "COPY t FROM STDIN; COPY t TO STDOUT", "-c", "COPY t FROM STDIN"];
    let more = ["-c", "SELECT sum(k) AS s FROM t"];
    let all: Vec<&str> = commands.into_iter().chain(more).collect();
    assert_eq!(run_piped(&all, b"1\n2\n\\.\n40\n").ok(), "1\n2\ns\n43\n");
}
