use super::{Piece, Pieces};

fn pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces = Pieces::new(text.as_bytes());
    let mut all = Vec::new();
    while let Some(Piece { text, line }) = pieces.next().unwrap() {
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
}

#[test]
fn bytes_that_are_no_text_are_an_error_after_the_statements_before_them() {
    let mut pieces = Pieces::new(&b"SELECT 1;\nSELECT '\xff';\n"[..]);
    assert_eq!(pieces.next().unwrap().unwrap().text, "SELECT 1");
    assert_eq!(pieces.next().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(pieces.line_read(), 2);
}
