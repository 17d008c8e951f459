//! `\` commands, plans and carets from `-c`, `-f` and a pipe.

use std::fs;

use crate::program::{command, run, run_piped, text};

const TABLES: &str = "CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', CHECK (n > 0));\n\
    CREATE TABLE other (n INTEGER) WITH (layout = 'insertion');\nCREATE SCHEMA s;\nCREATE TABLE s.\"My t\" (a INTEGER);\n\
    CREATE VIEW v AS SELECT n AS number FROM t;\nINSERT INTO t VALUES (1, 'a'), (2, 'b');\n";

/// What `script` prints behind the tables, through a pipe, a file and as commands.
#[track_caller]
fn printed(format: &str, script: &str) -> String {
    let piped = run_piped(&["--format", format], format!("{TABLES}\\o\n{script}\n").as_bytes()).ok();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    fs::write(&file, format!("{TABLES}{script}")).unwrap();
    assert_eq!(run(["--format", format, "-f", text(&file)]).ok(), piped, "{script}");
    assert_eq!(run(["--format", format, "-c", TABLES, "-c", script]).ok(), piped, "{script}");
    let tags = "CREATE TABLE\nCREATE TABLE\nCREATE SCHEMA\nCREATE TABLE\nCREATE VIEW\nINSERT 0 2\n";
    if format == "box" { piped.strip_prefix(tags).unwrap().to_owned() } else { piped }
}

#[test]
fn tables_and_views_are_listed() {
    let all = "schema,table,primary_key,layout,rows\npublic,other,,insertion,0\npublic,t,n,sorted,2\npublic,v,,view,\ns,My t,,sorted,0\n";
    let insertion = all.replace("s,My t,,sorted,0", "s,My t,,insertion,0");
    assert_eq!(printed("csv", "\\d"), insertion);
    assert_eq!(printed("csv", "\\d;"), insertion);
    let tables =
        "schema,table,primary_key,layout,rows\npublic,other,,insertion,0\npublic,t,n,sorted,2\ns,My t,,insertion,0\n";
    assert_eq!(printed("csv", "\\dt"), tables);
    assert_eq!(printed("csv", "\\dv"), "schema,view\npublic,v\n");
    assert_eq!(printed("csv", "\\dt o*"), "schema,table,primary_key,layout,rows\npublic,other,,insertion,0\n");
    assert_eq!(printed("csv", "\\dt ?"), "schema,table,primary_key,layout,rows\npublic,t,n,sorted,2\n");
    assert_eq!(printed("csv", "\\d s.*"), "schema,table,primary_key,layout,rows\ns,My t,,insertion,0\n");
    assert_eq!(printed("csv", "\\dt _"), "schema,table,primary_key,layout,rows\n");
    let more = printed("csv", "\\dt+ t");
    let (header, row) = more.trim_end().split_once('\n').unwrap();
    assert_eq!(header, "schema,table,primary_key,layout,rows,sort_key,containers,bytes");
    let bytes = row.strip_prefix("public,t,n,sorted,2,n,1,").unwrap();
    assert!(bytes.parse::<u64>().unwrap() > 0, "{more}");
    let more = printed("csv", "\\d+");
    assert!(more.starts_with("schema,table,primary_key,layout,rows,sort_key,containers,bytes\n"), "{more}");
    assert!(more.contains("\npublic,v,,view,,,,\n"), "{more}");
}

#[test]
fn tables_and_views_are_described() {
    let described = "column,type,null,default\nn,integer,NOT NULL,\"\"\nname,text,NOT NULL,'x'\n\
        constraint,kind,on\nt_pkey,PRIMARY KEY,n\nt_n_check,CHECK,n > 0\n";
    let shown = printed("csv", "\\d t");
    assert_eq!(shown.replace("(n > 0)", "n > 0"), described);
    assert_eq!(printed("csv", "  \\d   PUBLIC.T ; "), shown);
    assert_eq!(printed("csv", "\\d S.\"My t\""), "column,type,null,default\na,integer,\"\",\"\"\n");
    assert!(printed("csv", "\\d v").starts_with("column,type\nnumber,integer\nquery\n"));
    assert!(printed("csv", "\\d mainstem.wal").starts_with("column,type\napplied,bigint\n"));
    let more = printed("csv", "\\d+ t");
    let behind = more.strip_prefix(&shown).unwrap();
    let (options, containers) = behind.split_once("containers,count,rows,deleted,bytes\n").unwrap();
    assert_eq!(options, "layout,sort_key,segment_rows,delta_rows\nsorted,n,131072,131072\n");
    assert!(containers.starts_with("delta,1,2,0,"), "{more}");
    let boxed = printed("box", "\\d t");
    assert!(boxed.contains("│ name   │ text    │ NOT NULL │ 'x'     │"), "{boxed}");
}

#[test]
fn a_name_is_described_as_the_search_path_has_it() {
    let columns = |setup: &str, line: &str| {
        let ran = run(["--format", "csv", "-c", setup, "-c", "\\o", "-c", line]);
        let out = ran.ok();
        out.lines().filter(|line| line.contains(",integer")).map(|line| line[..1].to_owned()).collect::<String>()
    };
    let setup = "CREATE SCHEMA a; CREATE SCHEMA z; CREATE TABLE a.b (p INTEGER); CREATE TABLE \"a.b\" (q INTEGER); \
        CREATE VIEW v AS SELECT 1::integer AS r; CREATE VIEW z.v AS SELECT 1::integer AS s; CREATE TABLE a.v (t INTEGER); \
        CREATE VIEW a.w AS SELECT 1::integer AS u; CREATE TABLE z.x (y INTEGER);";
    for (path, line, described) in [
        ("", "\\d a.b", "p"),
        ("", "\\d \"a.b\"", "q"),
        ("", "\\d v", "r"),
        ("SET search_path = z, public;", "\\d v", "s"),
        ("SET search_path = public, z;", "\\d v", "r"),
        ("SET search_path = public, z;", "\\d x", "y"),
        ("SET search_path = a, z, public;", "\\d v", "t"),
        ("SET search_path = z;", "\\d public.v", "r"),
        ("SET search_path = a;", "\\d w", "u"),
        ("SET search_path = a;", "\\d z.v", "s"),
        ("CREATE TEMPORARY TABLE v (c INTEGER);", "\\d v", "c"),
        ("CREATE TEMPORARY TABLE v (c INTEGER); SET search_path = z, pg_temp;", "\\d v", "s"),
        ("CREATE TEMPORARY TABLE v (c INTEGER);", "\\d pg_temp.v", "c"),
    ] {
        assert_eq!(columns(&format!("{setup}{path}"), line), described, "{path} {line}");
    }
    for (path, line, missing) in [
        ("", "\\d w", "w"),
        ("SET search_path = z;", "\\d b", "b"),
        ("DROP TABLE \"a.b\";", "\\d \"a.b\"", "a.b"),
        ("DROP TABLE a.b;", "\\d a.b", "a.b"),
        ("", "\\d pg_temp.v", "pg_temp.v"),
    ] {
        let complaint = run(["-c", &format!("{setup}{path}"), "-c", line]).failed("42P01");
        assert!(complaint.contains(&format!("table \"{missing}\" does not exist")), "{path} {line}: {complaint}");
    }
}

#[test]
fn commands_that_are_wrong_fail() {
    for (line, sqlstate, says) in [
        ("\\nothing", "42601", "there is no command \\nothing; \\? lists them"),
        ("\\", "42601", "there is no command \\"),
        ("\\.", "42601", "there is no command \\."),
        ("\\d missing", "42P01", "table \"missing\" does not exist; \\d lists the tables"),
        ("\\d othr", "42P01", "table \"othr\" does not exist; did you mean \"other\"?"),
        ("\\d s.missing", "42P01", "table \"s.missing\" does not exist"),
        ("\\d mainstem.missing", "42P01", "table \"mainstem.missing\" does not exist"),
        ("\\d a b", "42601", "\"a b\" is not the name of a table"),
        ("\\x maybe", "42601", "\\x is on or off, not \"maybe\""),
        ("\\timing 7", "42601", "\\timing is on or off, not \"7\""),
        ("\\q now", "42601", "\\q stands alone, without \"now\""),
        ("\\i", "42601", "\\i wants the name of a file"),
        ("\\i /no/such/file.sql", "58P01", "/no/such/file.sql"),
        ("\\o /no/such/folder/file", "58P01", "/no/such/folder/file"),
        ("\\o | less", "0A000", "\\o to a program is not supported"),
    ] {
        let script = format!("{TABLES}SELECT 1 AS a;\n{line}\nSELECT 2 AS b;\n");
        let ran = run_piped(&[], script.as_bytes());
        assert_eq!(ran.out, "a\n1\n", "{line}");
        let complaint = ran.failed(sqlstate);
        assert!(complaint.starts_with("stdin:8: ERROR ") && complaint.contains(says), "{line}: {complaint}");
        let ran = run(["-c", TABLES, "-c", line, "-c", "SELECT 2"]);
        assert_eq!(ran.out, "", "{line}");
        assert!(ran.failed(sqlstate).contains(says), "{line}");
    }
}

#[test]
fn commands_and_statements_share_a_text() {
    let mixed = "SELECT 1 AS a; \\x on\nSELECT 2 AS b;\n\\x\nSELECT\n\\x on\n 3 AS c;";
    let out = run(["--format", "box", "-c", mixed]).ok();
    let plain = "┌───┐\n│ a │\n├───┤\n│ 1 │\n└───┘\n(1 row)\n";
    let record = |name: &str, n: i32| format!("─[ RECORD 1 ]┬───\n {name}           │ {n}\n(1 row)\n");
    let expected = format!(
        "{plain}Expanded display is on.\n{}Expanded display is off.\nExpanded display is on.\n{}",
        record("b", 2),
        record("c", 3)
    );
    assert_eq!(out, expected);
    // Other formats are as they were.
    assert_eq!(run(["-c", "\\x on", "-c", "SELECT 1 AS a"]).ok(), "Expanded display is on.\na\n1\n");
    // Without commands nothing of a text runs unless all of it can be read.
    assert_eq!(run(["-c", "SELECT 1 AS a; SELEC 2"]).out, "");
    assert_eq!(run(["-c", "SELECT 1 AS a;\n\\q\nSELEC 2"]).ok(), "a\n1\n");
}

#[test]
fn a_line_of_data_or_text_is_no_command() {
    let script =
        "CREATE TABLE t (k TEXT);\nCOPY t FROM STDIN;\n\\\\d\nx\n\\.\nSELECT k, '\n\\d' AS s FROM t ORDER BY k;\n";
    assert_eq!(run_piped(&[], script.as_bytes()).ok(), "k,s\n\\d,\"\n\\d\"\nx,\"\n\\d\"\n");
}

#[test]
fn timing_is_said_of_each_statement() {
    let out = run_piped(&[], b"\\timing\nSELECT 1 AS a;\nSELECT 2 AS b;\n\\timing off\nSELECT 3 AS c;\n").ok();
    let lines: Vec<&str> = out.lines().collect();
    let shape: Vec<&str> = lines
        .iter()
        .map(|line| if line.starts_with("Time: ") && line.ends_with(" ms") { "time" } else { line })
        .collect();
    assert_eq!(shape, ["Timing is on.", "a", "1", "time", "b", "2", "time", "Timing is off.", "c", "3"]);
    assert!(run(["-c", "\\timing on", "-c", "SELECT 1"]).ok().contains("\nTime: "));
}

#[test]
fn help_and_quit() {
    let help = run(["-c", "\\?"]).ok();
    for command in ["\\d ", "\\d+", "\\dt", "\\i ", "\\o ", "\\x ", "\\timing", "\\q"] {
        assert!(help.lines().any(|line| line.starts_with(command)), "{command}: {help}");
    }
    assert_eq!(run_piped(&[], b"SELECT 1 AS a;\n\\q\nSELECT 2 AS b;\n").ok(), "a\n1\n");
    // `help` and `quit` are words of the terminal.
    run_piped(&[], b"quit;\n").failed("42601");
}

#[test]
fn files_include_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, sql: &str| fs::write(dir.path().join(name), sql).unwrap();
    fs::create_dir(dir.path().join("sub folder")).unwrap();
    write("main.sql", "SELECT 1 AS a;\n\\i 'sub folder/inner.sql'\nSELECT 4 AS d;\n");
    write("sub folder/inner.sql", "SELECT 2 AS b;\n\\ir next.sql\n");
    write(
        "sub folder/next.sql",
        "CREATE TABLE t (k INTEGER);\nCOPY t FROM STDIN;\n3\n\\.\nSELECT k AS c FROM t;\n\\q\nSELECT 9;\n",
    );
    let within = |arguments: &[&str]| {
        let output = command().current_dir(dir.path()).args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let all = "a\n1\nb\n2\nc\n3\nd\n4\n";
    assert_eq!(within(&["-f", "main.sql"]), (0, all.to_owned(), String::new()));
    assert_eq!(within(&["-c", "\\i main.sql"]), (0, all.to_owned(), String::new()));
    // The name needs no quotes.
    assert_eq!(within(&["-c", "\\i sub folder/inner.sql;"]).1, "b\n2\nc\n3\n");

    // The first error stops all of them, and is told once, with the innermost file's line.
    write("sub folder/next.sql", "\nSELECT\n  1 / 0;\n");
    let (status, out, err) = within(&["-f", "main.sql"]);
    assert_eq!((status, out.as_str()), (1, "a\n1\nb\n2\n"));
    assert_eq!(err, "sub folder/next.sql:2: ERROR 22012: division by zero\n");
    write("sub folder/next.sql", "\\i missing.sql\n");
    let (_, _, err) = within(&["-f", "main.sql"]);
    assert!(err.starts_with("sub folder/next.sql:1: ERROR 58P01: could not open missing.sql: "), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");

    write("loop.sql", "SELECT 1 AS a;\n\\ir loop.sql\n");
    let (status, out, err) = within(&["-f", "loop.sql"]);
    assert_eq!((status, out), (1, "a\n1\n".repeat(16)));
    assert!(err.starts_with("loop.sql:2: ERROR 54001: ") && err.contains("loop.sql"), "{err}");
}

#[test]
fn results_go_to_a_file_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one file"), dir.path().join("two"));
    let script = format!(
        "SELECT 1 AS a;\n\\o {}\nSELECT 2 AS b;\nCOPY (SELECT 3) TO STDOUT;\n\\d\n\\o '{}'\nSELECT 4 AS c;\n\\o\nSELECT 5 AS d;\n",
        one.display(),
        two.display()
    );
    assert_eq!(run_piped(&[], script.as_bytes()).ok(), "a\n1\nd\n5\n");
    assert_eq!(fs::read_to_string(&one).unwrap(), "b\n2\n3\nschema,table,primary_key,layout,rows\n");
    assert_eq!(fs::read_to_string(&two).unwrap(), "c\n4\n");
    // What is still open at the end is there too; errors are on standard error, times on standard output.
    let script = format!("\\timing\n\\o {}\nSELECT 6 AS e;\nSELECT 1 / 0;\n", two.display());
    let ran = run_piped(&[], script.as_bytes());
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("Time: ")).count(), 2, "{ran:?}");
    ran.failed("22012");
    assert_eq!(fs::read_to_string(&two).unwrap(), "e\n6\n");
    // A file that cannot be opened changes nothing, and ends the script.
    let script = format!("\\o {}\nSELECT 7 AS f;\n\\o {}/x/y\n", two.display(), dir.path().display());
    let ran = run_piped(&[], script.as_bytes());
    assert_eq!(ran.out, "");
    ran.failed("58P01");
    assert_eq!(fs::read_to_string(&two).unwrap(), "f\n7\n");
    if cfg!(target_os = "linux") {
        let ran = run_piped(&[], b"\\o /dev/full\nSELECT 1;\nSELECT 2;\n");
        assert!(ran.failed("53100").contains("/dev/full"));
    }
}

#[test]
fn plans_are_lines_for_people_and_rows_for_programs() {
    let explain = "EXPLAIN SELECT name FROM t WHERE n > 1";
    let out = printed("box", &format!("{explain};"));
    assert!(out.starts_with("logical_plan\n  ") && out.contains("\nphysical_plan\n  "), "{out}");
    assert!(out.contains("\n    ") && !out.contains("\\n") && !out.contains('│') && !out.contains("row"), "{out}");
    let out = run(["--format", "box", "-c", "EXPLAIN ANALYZE SELECT 1 AS a"]).ok();
    assert!(out.starts_with("Plan with Metrics\n  ") && out.contains("output_rows=1"), "{out}");
    let out = printed("box", "PREPARE p AS EXPLAIN SELECT name FROM t;\nEXECUTE p;");
    assert!(out.starts_with("PREPARE\nlogical_plan\n  "), "{out}");
    let out = printed("box", &format!("\\x\n{explain};"));
    assert!(out.starts_with("Expanded display is on.\nlogical_plan\n  "), "{out}");
    let out = printed("csv", &format!("{explain};"));
    assert!(out.starts_with("plan_type,plan\nlogical_plan,"), "{out}");
    let out = printed("json", &format!("{explain};"));
    let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(rows[0]["plan_type"], "logical_plan");
    assert!(rows[1]["plan"].as_str().unwrap().contains('\n'), "{out}");
}

#[test]
fn a_caret_stands_below_the_place_of_an_error() {
    let table = "CREATE TABLE t (n INTEGER, name TEXT);";
    let caret = |script: &str| {
        let ran = run_piped(&[], format!("{table}\n{script}\n").as_bytes());
        assert_eq!(ran.status, 1, "{ran:?}");
        let (_, below) = ran.err.trim_end_matches('\n').split_once('\n').unwrap_or_default();
        below.to_owned()
    };
    assert_eq!(caret("SELECT nme FROM t;"), "LINE 1: SELECT nme FROM t\n               ^");
    assert_eq!(caret("SELECT n,\n\t'ü', nme\nFROM t;"), "LINE 2:  'ü', nme\n              ^");
    assert_eq!(caret("SELECT n FORM t;"), "LINE 1: SELECT n FORM t\n                      ^");
    assert_eq!(caret("SELECT * FROM"), "LINE 1: SELECT * FROM\n                     ^");
    assert_eq!(caret("COPY tt TO STDOUT;"), "LINE 1: COPY tt TO STDOUT\n             ^");
    assert_eq!(caret("SELECT 1 / 0;"), "", "a value is nowhere");
    let many = "n, ".repeat(100);
    assert_eq!(caret(&format!("SELECT {many}nme FROM t;")).lines().next().unwrap().len(), 8 + 60 + 3);
    let ran = run(["-c", &format!("{table} SELECT 1;\nSELECT nme FROM t; SELECT 2")]);
    assert_eq!(
        ran.err,
        "ERROR 42703: column \"nme\" does not exist; did you mean \"name\"?\nLINE 2: SELECT nme FROM t; SELECT 2\n               ^\n"
    );
}

#[test]
fn memory_is_limited() {
    let limit = |size: &str| run(["--memory-limit", size, "-c", "SHOW memory_limit"]);
    assert_eq!(limit("512MB").ok(), "memory_limit\n536870912\n");
    assert_eq!(limit("2GiB").ok(), "memory_limit\n2147483648\n");
    assert_eq!(limit("1536 mb").ok(), "memory_limit\n1610612736\n");
    assert_eq!(limit("268435456").ok(), "memory_limit\n268435456\n");
    for bad in ["12 apples", "-1", "", "1e9", "1.5GB"] {
        let ran = run([format!("--memory-limit={bad}"), "-c".into(), "SELECT 1".into()]);
        assert!(ran.status == 2 && ran.err.contains("bytes"), "{bad}: {ran:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("db");
    let sql = "SELECT count(*) FROM (SELECT DISTINCT i, repeat('x', 1000) || i FROM generate_series(1, 20000) g(i)) s";
    assert_eq!(run([text(&database), "--memory-limit", "1GB", "-c", sql]).ok(), "count\n20000\n");
    let limited = run([text(&database), "--memory-limit", "8MB", "-c", "SHOW memory_limit"]);
    assert_eq!(limited.ok(), "memory_limit\n8388608\n");
}
