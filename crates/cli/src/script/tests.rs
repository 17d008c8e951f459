use std::collections::VecDeque;

use super::{Kind, Piece, Pieces, Splitter};

fn pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces = Pieces::new(text.as_bytes());
    let mut all = Vec::new();
    while let Some(Piece { text, line, kind }) = pieces.next().unwrap() {
        assert_eq!(kind == Kind::Command, text.starts_with('\\'), "{text}");
        all.push((line, text));
    }
    all
}

fn expected(pieces: &[(usize, &str)]) -> Vec<(usize, String)> {
    pieces.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
}

#[test]
fn statements_know_the_line_they_begin_on() {
    let text = "\n-- a comment; with a semicolon\n\nSELECT 1;\nSELECT\n  2; SELECT 3;\n\n  SELECT 4";
    let cut = [(4, "SELECT 1"), (5, "SELECT\n  2"), (6, "SELECT 3"), (8, "SELECT 4")];
    assert_eq!(pieces(text), expected(&cut));
    let text = "/* one;\n /* two */ \n*/ -- three\n  SELECT 1;\n/* four */ SELECT 2;";
    assert_eq!(pieces(text), expected(&[(4, "SELECT 1"), (5, "SELECT 2")]));
}

#[test]
fn semicolons_in_texts_end_nothing() {
    let text = "SELECT ';\n;', $$ ; $$;\nSELECT \";\" /* ; */;\n-- the end";
    assert_eq!(pieces(text), expected(&[(1, "SELECT ';\n;', $$ ; $$"), (3, "SELECT \";\" /* ; */")]));
}

#[test]
fn blank_input_is_no_statement() {
    assert_eq!(pieces(""), []);
    assert_eq!(pieces(" \n\n"), []);
    assert_eq!(pieces("-- nothing\n-- at all"), []);
    assert_eq!(pieces("/* nothing */;;\n;"), []);
}

#[test]
fn commands_stand_where_statements_begin() {
    let text = "\\d\n  \\timing on  \n-- a comment\n/* another */\n\\d t;\nSELECT 1; \\x\nSELECT 2;; \\d a; SELECT 3;\nSELECT 4;\n\\q";
    let cut = [
        (1, "\\d"),
        (2, "\\timing on"),
        (5, "\\d t;"),
        (6, "SELECT 1"),
        (6, "\\x"),
        (7, "SELECT 2"),
        (7, "\\d a; SELECT 3;"),
        (8, "SELECT 4"),
        (9, "\\q"),
    ];
    assert_eq!(pieces(text), expected(&cut));
    // A quote in a command is none of a statement.
    assert_eq!(pieces("\\i it's\nSELECT 1;\n"), expected(&[(1, "\\i it's"), (2, "SELECT 1")]));
    assert_eq!(
        pieces("SELECT 1; \\i it's\nSELECT 2;\n"),
        expected(&[(1, "SELECT 1"), (1, "\\i it's"), (2, "SELECT 2")])
    );
}

#[test]
fn commands_stand_between_the_lines_of_a_statement_but_not_in_its_texts() {
    let text = "SELECT\n\\x\n 1;\nSELECT 2;";
    assert_eq!(pieces(text), expected(&[(2, "\\x"), (1, "SELECT\n\n 1"), (4, "SELECT 2")]));
    for text in [
        "SELECT 'a\n\\d\n'",
        "SELECT $a$\n\\d\n$a$",
        "SELECT /* a\n\\d\n*/ 1",
        "SELECT \"a\n\\d\n\"",
        "SELECT E'\\'\n\\d\n'",
    ] {
        assert_eq!(pieces(&format!("{text};")), expected(&[(1, text)]));
    }
    assert_eq!(pieces("/*\n\\d\n*/ SELECT 1;"), expected(&[(3, "SELECT 1")]));
    // A long text is not looked at again for each of its lines.
    let long = format!("SELECT '\n{}'", "\\x00 \n".repeat(200_000));
    assert_eq!(pieces(&format!("{long};")), expected(&[(1, &long)]));
}

#[test]
fn what_is_given_up_counts_its_lines() {
    let (mut splitter, mut ready) = (Splitter::default(), VecDeque::new());
    splitter.feed("SELECT 1\n", &mut ready);
    splitter.feed(", 'a\n", &mut ready);
    assert_eq!(splitter.unfinished(), "SELECT 1\n, 'a\n");
    splitter.clear();
    assert_eq!(splitter.unfinished(), "");
    splitter.feed("SELECT 2;\n", &mut ready);
    assert_eq!(ready.pop_front(), Some(Piece { kind: Kind::Statement, text: "SELECT 2".into(), line: 3 }));
    assert_eq!((splitter.unfinished(), splitter.lines()), ("", 4));
}

#[test]
fn bytes_that_are_no_text_are_an_error_after_the_statements_before_them() {
    let mut pieces = Pieces::new(&b"SELECT 1;\nSELECT '\xff';\n"[..]);
    assert_eq!(pieces.next().unwrap().unwrap().text, "SELECT 1");
    assert_eq!(pieces.next().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(pieces.line_read(), 2);
}
