//! The interactive shell.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use crate::program::text;
use crate::terminal::Terminal;

/// A shell that is ready, or none where there is no `script`.
fn shell(home: &Path, arguments: &str) -> Option<Terminal> {
    let Some(mut terminal) = Terminal::new(home, arguments) else {
        eprintln!("no `script` here: the shell is not tested");
        return None;
    };
    terminal.shows("Type \\? for help");
    terminal.shows("mainstem> ");
    Some(terminal)
}

#[test]
fn a_session_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut terminal) = shell(home.path(), "") else { return };
    // Typed ahead, over several lines.
    terminal.types("CREATE TABLE t (n INTEGER PRIMARY KEY,\r  name TEXT NOT NULL);\rINSERT INTO t\r");
    terminal.shows("\nCREATE TABLE\r\n");
    terminal.shows("...> ");
    terminal.types("VALUES (1, 'a'), (2, 'b');\r");
    terminal.shows("\nINSERT 0 2\r\n");
    terminal.types("BEGIN;\r");
    terminal.shows("mainstem*> ");
    terminal.types("INSERT INTO t VALUES (1, 'c');\r");
    terminal.shows("ERROR 23505: ");
    terminal.shows("mainstem*> ");
    terminal.types("ROLLBACK;\r");
    terminal.shows("mainstem> ");
    terminal.types("\\d\r");
    terminal.shows("│ t     │ n           │ sorted │    2 │");
    terminal.types("\\d t\r");
    terminal.shows("│ name   │ text    │ NOT NULL │");
    terminal.types("\\d missing\r");
    terminal.shows("ERROR 42P01: ");
    terminal.types("\\timing\r");
    terminal.shows("Timing is on.");
    terminal.types("SELECT n FROM t WHERE name = 'b';\r");
    terminal.shows("(1 row)\r\nTime: ");
    terminal.types("SELECT count(*) FROM generate_series(1, 100000000) a(i), generate_series(1, 100000000) b(i) WHERE a.i + b.i < 0;\r");
    // The echo ends the line when the statement begins; Ctrl-C before that would only clear the line, so again and
    // again.
    terminal.shows("< 0;");
    terminal.shows_after_typing("\x03", "ERROR 57014: ");
    // Ctrl-C throws away what is typed, and the session goes on.
    terminal.types("SELECT nonsense\r");
    terminal.shows("...> ");
    terminal.types("\x03");
    terminal.shows("mainstem> ");
    terminal.types("SELECT 40 + 2 AS answer;\r");
    terminal.shows("│     42 │");
    terminal.types("CREATE TABLE u (n INTEGER, name TEXT);\r");
    terminal.shows("\nCREATE TABLE\r\n");
    // Statements and data pasted in one go, as a terminal marks it.
    terminal.types("\x1b[200~COPY u FROM STDIN (DELIMITER ',');\n3,three\n4,four\n\\.\nSELECT count(*) + 80 AS count\nFROM u;\nSELECT 90\x1b[201~");
    terminal.types(" + 9 AS last;\r");
    terminal.shows("\nCOPY 2\r\n");
    terminal.shows("│    82 │");
    terminal.shows("│   99 │");
    // Tabs that are typed are characters.
    terminal.types("COPY u FROM STDIN;\r");
    terminal.shows("data...> ");
    terminal.types("5\tfive\ttabs\r");
    terminal.types("\\.\r");
    terminal.shows("ERROR 22P04: ");
    terminal.types("COPY u FROM STDIN;\r");
    terminal.shows("data...> ");
    terminal.types("6\tsix\r");
    terminal.types("\\.\r");
    terminal.shows("\nCOPY 1\r\n");
    terminal.types("SELECT n * 11 AS six,\t\tlength('a\tb') + 30\tAS tabs FROM u WHERE name = 'six';\r");
    terminal.shows("│  66 │   33 │");
    terminal.types("\\d mainstem.tables\r");
    terminal.shows("│ table_name ");
    terminal.shows("│ text ");
    terminal.types("\\d mainstem.missing\r");
    terminal.shows("ERROR 42P01: ");
    terminal.types("\\q\r");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1), "statements failed");
    let history = fs::read_to_string(home.path().join(".local/state/mainstem/history")).unwrap();
    assert!(history.contains("AS answer"), "{history}");
}

#[test]
fn commands_at_the_prompt() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut terminal) = shell(home.path(), "") else { return };
    terminal.runs("CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT DEFAULT 'none');", "CREATE TABLE\r\n");
    terminal.runs("CREATE VIEW v AS SELECT n FROM t;", "CREATE VIEW\r\n");
    terminal.runs("INSERT INTO t VALUES (1, 'a'), (2, 'b');", "INSERT 0 2\r\n");
    terminal.runs("EXPLAIN SELECT name FROM t WHERE n = 1;", "logical_plan\r\n  ");
    terminal.runs("EXPLAIN ANALYZE SELECT name FROM t;", "Plan with Metrics\r\n  ");
    terminal.runs("\\dt", "│ t     │ n           │ sorted │    2 │\r\n└");
    terminal.runs("\\d+", "│ sort_key │ containers │");
    terminal.runs("\\d+ t", "│ sorted │ n        │       131072 │");
    terminal.runs("\\d v", "│ query ");
    terminal.runs("\\x", "Expanded display is on.\r\n");
    terminal.runs(
        "SELECT * FROM t WHERE n = 1;",
        "─[ RECORD 1 ]┬───\r\n n           │ 1\r\n name        │ a\r\n(1 row)\r\n",
    );
    terminal.runs("\\x off", "Expanded display is off.\r\n");
    terminal.runs("\\timing on", "Timing is on.\r\n");
    terminal.runs("SELECT 1 AS one; SELECT 2 AS two;", "│   1 │\r\n└─────┘\r\n(1 row)\r\nTime: ");
    terminal.runs("\\timing off", "Timing is off.\r\n");

    let (file, results) = (home.path().join("a b.sql"), home.path().join("results"));
    fs::write(&file, "SELECT count(*) * 111 AS all FROM t;\n\nSELECT nme FROM t;\nSELECT 4;\n").unwrap();
    terminal.types(&format!("\\i {}\r", text(&file)));
    terminal.shows("│ 222 │");
    terminal.shows(&format!("{}:3: ERROR 42703: ", text(&file)));

    terminal.runs(&format!("\\o {}", text(&results)), "mainstem");
    terminal.runs("SELECT 300 + 33 AS sum;", "mainstem");
    terminal.runs(&format!("\\o {}/no/such", text(home.path())), "ERROR 58P01: ");
    terminal.runs("SELECT 400 + 44 AS sum;", "mainstem");
    terminal.runs("\\o", "mainstem");
    terminal.runs("SELECT 500 + 55 AS sum;", "│ 555 │");
    let written = fs::read_to_string(&results).unwrap();
    assert!(written.contains("│ 333 │") && written.contains("│ 444 │") && !written.contains("555"), "{written}");

    terminal.runs("\\nothing", "ERROR 42601: there is no command \\nothing");
    terminal.runs("SELECT nme FROM t;", "did you mean \"name\"?\r\nLINE 1: SELECT nme FROM t\r\n               ^\r\n");
    terminal.runs("SELECT name", "...");
    terminal.runs("  FROM tt;", "LINE 2:   FROM tt\r\n               ^\r\n");
    // A command between the lines of a statement.
    terminal.runs("SELECT 600 +", "...");
    terminal.runs("\\x on", "Expanded display is on.\r\n");
    terminal.runs("66 AS sum;", " sum         │ 666\r\n");
    terminal.runs("SELECT 1", "...");
    terminal.types("\\q\r");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1), "statements failed");
}

#[test]
fn words_alone_on_a_line() {
    let home = tempfile::tempdir().unwrap();
    for (quit, status) in [("quit\r", 0), ("EXIT ;\r", 0), ("\\q\r", 0)] {
        let Some(mut terminal) = shell(home.path(), "") else { return };
        terminal.runs("help", "\\timing [on|off]");
        terminal.runs("Help;", "\\timing [on|off]");
        terminal.runs("\\?", "\\timing [on|off]");
        terminal.runs("clear", "\x1b[H\x1b[J");
        terminal.runs("clear;", "\x1b[H\x1b[J");
        // Within a statement they are names.
        terminal.runs("SELECT 6 * 7 AS", "...");
        terminal.runs("help", "...");
        terminal.runs(";", "│ help │");
        terminal.types(quit);
        assert_eq!(terminal.child.wait().unwrap().code(), Some(status), "{quit}");
    }
}

#[test]
fn tabs_complete_or_are_characters() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut terminal) = shell(home.path(), "") else { return };
    terminal.runs("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER, \"Net\" INTEGER);", "CREATE TABLE\r\n");
    terminal.runs("CREATE SCHEMA sales;", "CREATE SCHEMA\r\n");
    terminal.runs("CREATE TABLE sales.targets (target TEXT);", "CREATE TABLE\r\n");
    terminal.runs("INSERT INTO orders VALUES (1, 111, 7);", "INSERT 0 1\r\n");
    // Keywords, columns, tables; a column of the table that the statement names.
    terminal.runs("SELE\tamo\t* 2 AS twice FROM ord\t;", "│   222 │");
    terminal.runs("sele\t3 * o.am\tAS thrice FROM orders o;", "ERROR 42703: ");
    terminal.runs("SELECT", "...");
    terminal.runs("3 * \"N\tAS thrice FROM orders;", "│     21 │");
    terminal.runs("SELECT 'target:' || count(*) AS n FROM sal\ttar\t;", "│ target:0 │");
    // Several: the beginning that they share, and at the second Tab all of them.
    terminal.types("SHOW s\t\t");
    terminal.shows("search_path");
    terminal.shows("synchronous");
    terminal.shows("SHOW s");
    terminal.types("\x03");
    terminal.shows("mainstem> ");
    terminal.runs("SHOW thr\t;", "│ threads │");
    terminal.runs("\\d sales.\t", "│ target │ text │");
    terminal.runs("\\tim\to\tn", "Timing is on.\r\n");
    terminal.runs("\\timing of\t", "Timing is off.\r\n");
    fs::write(home.path().join("script.sql"), "SELECT 300 + 33 AS sum;").unwrap();
    terminal.runs(&format!("\\i {}/scr\t", text(home.path())), "│ 333 │");
    // What the open transaction has made, and what became of it.
    terminal.runs("BEGIN;", "BEGIN\r\n");
    terminal.runs("CREATE TABLE drafts (draft INTEGER);", "CREATE TABLE\r\n");
    terminal.runs("SELECT count(*) + 443 AS n FROM dra\t;", "│ 443 │");
    terminal.runs("ROLLBACK;", "ROLLBACK\r\n");
    terminal.runs("SELECT 'dra\t' AS t;", "│ dra\\t │");
    // There is nothing to complete.
    terminal.runs("\tSELECT\tlength('\t')\t+ 550\tAS\tn;", "│ 551 │");
    // Data of COPY is data, whatever it looks like.
    terminal.runs("COPY sales.targets FROM STDIN (DELIMITER ',');", "data...");
    terminal.runs("SELE\tord\t", "data...");
    terminal.runs("\tFROM", "data...");
    terminal.runs("\\.", "COPY 2\r\n");
    terminal.runs("SELECT target FROM sales.targets WHERE target LIKE 'SELE%';", "│ SELE\\tord\\t │");
    terminal.runs("SELECT length(target) + 660 AS n FROM sales.targets WHERE target LIKE '%FROM';", "│ 665 │");
    assert_eq!(terminal.ends(), Some(1), "a statement failed");
}

#[test]
fn tabs_disturb_no_transaction() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut terminal) = shell(home.path(), "") else { return };
    terminal.runs("CREATE TABLE t (k INTEGER PRIMARY KEY, amount INTEGER);", "CREATE TABLE\r\n");
    terminal.runs("INSERT INTO t VALUES (1, 10);", "INSERT 0 1\r\n");
    terminal.runs("BEGIN;", "mainstem*");
    terminal.runs("UPDATE t SET amo\t= 20;", "UPDATE 1\r\n");
    terminal.runs("SAVEPOINT a;", "SAVEPOINT\r\n");
    terminal.runs("UPDATE t SET amo\t= 30;", "UPDATE 1\r\n");
    terminal.runs("SET statement_timeout = '1us';", "SET\r\n");
    // What cannot be asked is no error.
    terminal.types("DELETE FROM mainst\t");
    terminal.types("\x03");
    terminal.shows("mainstem*> ");
    terminal.runs("RESET statement_timeout;", "SET\r\n");
    terminal.runs("ROLLBACK TO a;", "ROLLBACK\r\n");
    terminal.runs("COMMIT;", "COMMIT\r\n");
    terminal.runs("SELECT amo\t+ 0 AS sum FROM t;", "│  20 │");
    assert_eq!(terminal.ends(), Some(0));
}
