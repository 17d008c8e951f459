//! A Rust source with comments and the contents of literals blanked out: what is left is code, on its old lines.

/// `text` with every comment, string and character literal replaced by spaces; newlines stay where they were.
pub(super) fn code_view(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_comment_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment_end(&chars, at),
            '"' => string_end(&chars, at + 1),
            'r' if !after_word(&chars, at) => raw_string_end(&chars, at).unwrap_or(at),
            '\'' => char_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Whether the character at `at` continues an identifier; `br"..."` counts as a start of its own.
fn after_word(chars: &[char], at: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    match at.checked_sub(1).map(|before| chars[before]) {
        Some('b') => at >= 2 && word(chars[at - 2]),
        Some(before) => word(before),
        None => false,
    }
}

fn line_comment_end(chars: &[char], at: usize) -> usize {
    (at..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// The end of a string whose opening quote stands before `at`.
fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |i: usize| chars[i] == '"' && (1..=hashes).all(|n| chars.get(i + n) == Some(&'#'));
    Some((open + 1..chars.len()).find(|&i| closes(i)).map_or(chars.len(), |i| i + 1 + hashes))
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(chars: &[char], at: usize) -> Option<usize> {
    match (chars.get(at + 1)?, chars.get(at + 2)) {
        ('\\', _) => (at + 3..chars.len()).find(|&i| chars[i] == '\'').map(|i| i + 1),
        (_, Some('\'')) => Some(at + 3),
        _ => None,
    }
}

/// Whether `word` stands in `line` as a word of its own.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| !joins(line[..at].chars().next_back()) && !joins(line[at + word.len()..].chars().next()))
}

#[test]
fn comments_and_literals_are_blanked() {
    let seen = |text: &str| code_view(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(seen("let a = 1; // unsafe"), "let a = 1;");
    assert_eq!(seen("/* a /* nested */ b */ c"), "c");
    assert_eq!(seen(r#"f("un\"safe", 'x', '\'', b'"')"#), "f( , , , b )");
    assert_eq!(seen("f(r#\"a \" b\"#, g)"), "f( , g)");
    assert_eq!(seen("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
    assert_eq!(seen("for x in y { }"), "for x in y { }");
    assert_eq!(code_view("\"a\nb\"\nc"), "  \n  \nc");
}

#[test]
fn words_are_whole() {
    assert!(has_word("an unsafe block", "unsafe"));
    assert!(!has_word("forbid(unsafe_code)", "unsafe"));
    assert!(!has_word("an_unsafe", "unsafe"));
}
